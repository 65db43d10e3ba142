"""CRFClassifierCV: conditional random fields, C chosen by cross-validation."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm.estimators.crf import CRFClassifier, ProbabilisticClassifier
from sklearn_structsvm.estimators.cross_validation import (
    CV_CONSTRAINTS,
    CrossValidatedMixin,
)

# Where a grid of a number of values begins and ends.
MIN_C, MAX_C = 1e-3, 1e2


class CRFClassifierCV(CrossValidatedMixin, ProbabilisticClassifier):
    """Conditional random field, its C chosen by cross-validation.

    On the training part of each fold, :class:`CRFClassifier` is fitted for one value of C
    after the other, from the smallest on, each time from the solution before, and scored
    on the rest; the C of the best mean score is then fitted to all data.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        See `CRFClassifier`.
    Cs : int or array-like, default=10
        Values of C, in any order, or how many, spread evenly in log(C) between 0.001 and
        100.
    cv : int, cross-validation generator, iterable or None, default=None
        None for 5 folds: stratified for classes, unshuffled for sequences.
    scoring : str, callable or None, default=None
        None for `score`, in which `sample_weight` counts; other scorers see no weights.
        For probabilities that are to be right use `log_likelihood_scorer` or
        `neg_token_log_loss_scorer`, or for flat data "neg_log_loss".
    fit_intercept, intercept_scaling, classes, class_weight, solver, sampling, \
acceleration, decoding, tol, max_iter, max_time, gap_check_interval, \
random_state : as in `CRFClassifier`
        `tol`, `max_iter` and `max_time` are of each fit.
    n_jobs : int or None, default=None
        Folds at once.
    verbose : int, default=0

    Attributes
    ----------
    C_ : float
        The value chosen: the smallest of those of the best mean score.
    Cs_ : ndarray of shape (n_Cs,)
        Increasing, each once.
    scores_path_ : ndarray of shape (n_Cs, n_folds)
        Scores on the folds' test parts.
    dual_gaps_path_ : ndarray of shape (n_Cs, n_folds)
        How far each fit is from its optimum, at most.
    coef_, intercept_, classes_, structure_, dual_gap_, objective_, dual_objective_, \
n_iter_, n_oracle_calls_, history_, solver_ : as in `CRFClassifier`
        Of the final fit.

    See Also
    --------
    CRFClassifier : The same for one C.
    BCFWClassifierCV : Margins in the place of probabilities.

    Notes
    -----
    An example of weight k counts as k examples: in the problem of each fold, in its score
    and in the final fit.

    Examples
    --------
    >>> from sklearn_structsvm import CRFClassifierCV
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=30, n_classes=3, random_state=0)
    >>> model = CRFClassifierCV(Cs=[0.01, 0.1, 1.0], cv=3, random_state=0).fit(X, y)
    >>> model.scores_path_.shape
    (3, 3)
    >>> bool(model.dual_gaps_path_.max() <= 1e-3)
    True
    """

    C_: float
    Cs_: np.ndarray
    scores_path_: np.ndarray
    dual_gaps_path_: np.ndarray
    solver_: str

    _final_class = CRFClassifier
    _parameter_constraints: dict = {
        **{
            name: constraint
            for name, constraint in CRFClassifier._parameter_constraints.items()
            if name not in ("C", "warm_start")
        },
        **CV_CONSTRAINTS,
    }

    def __init__(
        self,
        structure="auto",
        *,
        Cs=10,
        cv=None,
        scoring=None,
        fit_intercept=True,
        intercept_scaling=1.0,
        classes=None,
        class_weight=None,
        solver="auto",
        sampling="auto",
        acceleration="auto",
        decoding="map",
        tol=1e-3,
        max_iter=1000,
        max_time=None,
        gap_check_interval=10,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.structure = structure
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.solver = solver
        self.sampling = sampling
        self.acceleration = acceleration
        self.decoding = decoding
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.gap_check_interval = gap_check_interval
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X, y, sample_weight, transaction):
        self._check_structure()
        super()._fit(X, y, sample_weight, transaction)
        short = self.dual_gaps_path_ > self.tol
        if short.any():
            warn_caller(
                f"{short.sum()} of {short.size} fits to folds ended with a duality gap "
                f"above tol={self.tol:.3g}, the smallest C of them being "
                f"{self.Cs_[short.any(axis=1)][0]:.3g}: see dual_gaps_path_. Increase "
                "max_iter or max_time, scale the features, or end Cs there.",
                ConvergenceWarning,
            )

    def _range(self, problem):
        return MIN_C, MAX_C

    def _follow(self):
        return _follow_fits

    def _keep_gaps(self, gaps_path):
        self.dual_gaps_path_ = gaps_path


def _follow_fits(estimator, X, y, weights, Cs):
    """Fits that start from one another."""

    def fits():
        estimator.set_params(warm_start=True)
        for C in Cs:
            with warnings.catch_warnings():
                # Their gaps are told of all folds together.
                warnings.simplefilter("ignore", ConvergenceWarning)
                estimator.set_params(C=C).fit(X, y, weights)
            yield estimator.dual_gap_

    return fits(), None
