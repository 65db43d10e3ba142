"""Conditional random fields, with C and l1_ratio chosen by cross-validation."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.options import Option
from sklearn_structsvm.estimators.crf import DUAL_NEEDS, CRFClassifier
from sklearn_structsvm.estimators.crf_path import LARGEST_C, SMALLEST_C
from sklearn_structsvm.estimators.cross_validation import (
    CV_CONSTRAINTS,
    CrossValidatedMixin,
    follow_fits,
)
from sklearn_structsvm.estimators.grid_of_c import warn_of_gaps
from sklearn_structsvm.estimators.named_structures import StructureName
from sklearn_structsvm.estimators.probabilistic import ProbabilisticClassifier
from sklearn_structsvm.structures import Structure


class CRFClassifierCV(CrossValidatedMixin, ProbabilisticClassifier):
    """Conditional random field, with C and l1_ratio chosen by cross-validation.

    >>> from sklearn_structsvm import CRFClassifierCV
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> model = CRFClassifierCV("chain", Cs=[0.01, 0.1], cv=3, random_state=0).fit(X, y)
    >>> model.predict_proba(X)[0].shape == (len(y[0]), len(model.classes_))
    True

    `predict` is that of a :class:`CRFClassifier` with the best ``C_``. For each fold, and
    each l1_ratio, a :class:`CRFClassifier` is fitted to the training part for increasing
    values of C, each time starting from the previous solution, and scored on the test
    part. The model is then refitted to all data with the C and the l1_ratio of the best
    mean score.

    Read more in the :ref:`User Guide <guide-crf-cv>`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        See `CRFClassifier`.
    Cs : int or array-like, default=10
        Values of C to try. An int sets the number of values, which are then evenly spaced
        on a logarithmic scale from 0.001 to 100.
    l1_ratios : array-like of shape (n_l1_ratios,) or None, default=None
        Shares of the L1 norm in the penalty to try, from 0 to 1, each with all of `Cs`.
        None means 0, the squared L2 norm.
    cv : int, cross-validation generator, iterable or None, default=None
        Cross-validation splitting strategy. None means 5 folds, stratified for class
        labels and unshuffled for sequences.
    scoring : str, callable or None, default=None
        None uses `score`. Names are those of scikit-learn's scorers and, of this package,
        "entity_f1", "token_accuracy", "log_likelihood" and "neg_token_log_loss". Scorers
        that accept `sample_weight` get the weights of the test part or, with
        scikit-learn's metadata routing, if they request them. To select accurate
        probabilities use "log_likelihood" or "neg_token_log_loss", or "neg_log_loss" for
        flat data.
    refit : {"best", "one_standard_error"} or callable, default="best"
        Which C the final fit uses: the best mean score, or the smallest C whose mean
        score is within one standard error of it, with the same l1_ratio. A callable is
        given a dict like `cv_results_` of `GridSearchCV`, and returns the place of its
        choice there: that of C in `Cs_` if there is one l1_ratio.
    fit_intercept, class_weight : optional
        See `CRFClassifier`.
    tol, max_iter, random_state : optional
        See `CRFClassifier`. `tol`, `max_iter` and `max_time` apply to each fit.
    n_jobs : int or None, default=None
        Number of folds that are processed in parallel.
    verbose : int, default=0
        If nonzero, print one line per gap check of the final fit.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"decoding": "mbr"}``:

        intercept_scaling, classes : optional
            See `CRFClassifier`.
        label_costs, solver, sampling, acceleration, decoding : optional
            See `CRFClassifier`.
        max_time, gap_check_interval : optional
            See `CRFClassifier`. `tol`, `max_iter` and `max_time` apply to each fit.

    Attributes
    ----------
    C_, l1_ratio_ : float
        The choice: by default the smallest l1_ratio, and then the smallest C, of those
        with the best mean score.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C that were tried, sorted and without duplicates.
    l1_ratios_ : ndarray of shape (n_l1_ratios,)
        The values of l1_ratio that were tried, sorted and without duplicates.
    scores_path_ : ndarray of shape (n_Cs, n_folds) or (n_l1_ratios, n_Cs, n_folds)
        Scores on the test part of each fold. It has three dimensions if `l1_ratios` is
        not None.
    dual_gaps_path_ : ndarray of the same shape
        Duality gap of each fit.
    coef_, intercept_, classes_, structure_ : see `CRFClassifier`
        These and the following describe the final fit.
    dual_gap_, objective_, dual_objective_ : see `CRFClassifier`
        Certificate of the final fit.
    n_iter_, n_oracle_calls_, history_, solver_ : see `CRFClassifier`
        Progress of the final fit.

    See Also
    --------
    CRFClassifier : The same model with a fixed C.
    BCFWClassifierCV : Maximizes margins rather than likelihood.

    Notes
    -----
    An example of weight k counts as k examples: in the training problem of each fold, in
    its score, and in the final fit. Hidden labels do not count in scores.
    """

    C_: float
    l1_ratio_: float
    Cs_: np.ndarray
    l1_ratios_: np.ndarray
    scores_path_: np.ndarray
    dual_gaps_path_: np.ndarray
    solver_: str

    takes_hidden_labels = True
    _final_class = CRFClassifier
    _needs = DUAL_NEEDS
    _parameter_constraints: dict = {
        **{
            name: constraint
            for name, constraint in CRFClassifier._parameter_constraints.items()
            if name not in ("C", "l1_ratio", "warm_start", "solver", "label_costs")
        },
        **CV_CONSTRAINTS,
        "l1_ratios": ["array-like", None],
    }
    _option_table: ClassVar = {
        **CRFClassifier._option_table,
        "solver": Option("auto", CRFClassifier._parameter_constraints["solver"]),
        "label_costs": Option(None, CRFClassifier._parameter_constraints["label_costs"]),
    }

    def __init__(
        self,
        structure: StructureName | Structure = "auto",
        *,
        Cs: int | ArrayLike = 10,
        l1_ratios: ArrayLike | None = None,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        refit: Literal["best", "one_standard_error"] | Callable[..., int] = "best",
        fit_intercept: bool = True,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.structure = structure
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options

    def _warn_of_gaps(self, problem):
        short = self.dual_gaps_path_ > self.tol
        n_Cs, n_folds = short.shape[-2:]
        of_C = short.reshape(-1, n_Cs, n_folds).swapaxes(0, 1).reshape(n_Cs, -1)
        warn_of_gaps(self, problem, self.Cs_, of_C, "fits to folds", "dual_gaps_path_")

    def _range(self, problem):
        return SMALLEST_C, LARGEST_C

    def _follow(self):
        return follow_fits

    def _check_parameters(self):
        super()._check_parameters()
        self._ratios()

    def _ratios(self):
        """The values of `l1_ratio` to try, sorted."""
        given = [0.0] if self.l1_ratios is None else self.l1_ratios
        try:
            ratios = np.asarray(given)
        except ValueError:
            ratios = np.empty(0)
        is_number = ratios.ndim == 1 and len(ratios) and ratios.dtype.kind in "iuf"
        if not is_number or not ((ratios >= 0) & (ratios <= 1)).all():
            raise ValueError(
                f"l1_ratios must be None or numbers from 0 to 1; got {given!r}."
            )
        return np.unique(ratios.astype(np.float64))

    def _penalties(self):
        return [{"l1_ratio": float(ratio)} for ratio in self._ratios()]

    def _keep(self, penalty, scores_path, gaps_path):
        self.l1_ratios_, self.l1_ratio_ = self._ratios(), penalty["l1_ratio"]
        given = self.l1_ratios is not None
        self.scores_path_ = scores_path if given else scores_path[0]
        self.dual_gaps_path_ = gaps_path if given else gaps_path[0]
