"""Structural SVMs, with C chosen by cross-validation along regularization paths."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.options import Option
from sklearn_structsvm.estimators.bcfw import NO_CACHE, BCFWClassifier
from sklearn_structsvm.estimators.bcfw_path import (
    PATH_CONSTRAINTS,
    PATH_OPTIONS,
    find_path,
    start_path,
)
from sklearn_structsvm.estimators.coefficients import weight_attributes
from sklearn_structsvm.estimators.constraints import LIMITS, POSITIVE
from sklearn_structsvm.estimators.cross_validation import (
    CV_CONSTRAINTS,
    CrossValidatedMixin,
    follow_fits,
)
from sklearn_structsvm.estimators.named_structures import StructureName
from sklearn_structsvm.estimators.problem import bind_local
from sklearn_structsvm.estimators.structured import StructuredClassifier
from sklearn_structsvm.solvers.blocks.path import default_kappa, first_breakpoint
from sklearn_structsvm.solvers.blocks.steps import StepName
from sklearn_structsvm.structures import Structure

# The end of the default grid of C. Beyond it, paths get long, and such values seldom win.
MAX_C = 10.0


class BCFWClassifierCV(CrossValidatedMixin, StructuredClassifier):
    """Structural support vector machine, with C chosen by cross-validation.

    >>> from sklearn_structsvm import BCFWClassifierCV
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> model = BCFWClassifierCV("chain", Cs=[0.01, 0.1], cv=3, tol=0.01, random_state=0)
    >>> model.fit(X, y).predict(X)[0].shape == y[0].shape
    True

    `predict` is that of a :class:`BCFWClassifier` with the best ``C_``. For each fold, a
    path like that of :func:`bcfw_path` goes from one value of C to the next on the
    training part, and its solutions are scored on the test part. The model is then
    refitted to all data by :class:`BCFWClassifier`, with the C of the best mean score.

    Read more in the :ref:`User Guide <guide-cv>`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        See `BCFWClassifier`.
    Cs : int or array-like, default=30
        Values of C to try. An int sets the number of values, which are then evenly spaced
        on a logarithmic scale from the first breakpoint of the path to C = 10.
    cv : int, cross-validation generator, iterable or None, default=None
        Cross-validation splitting strategy. None means 5 folds, stratified for class
        labels and unshuffled for sequences.
    scoring : str, callable or None, default=None
        None uses `score`. Names are those of scikit-learn's scorers and, of this package,
        "entity_f1", "token_accuracy", "log_likelihood" and "neg_token_log_loss". Scorers
        that accept `sample_weight` get the weights of the test part or, with
        scikit-learn's metadata routing, if they request them.
    refit : {"best", "one_standard_error"} or callable, default="best"
        Which C the final fit uses: the best mean score, or the smallest C whose mean
        score is within one standard error of it. A callable is given a dict like
        `cv_results_` of `GridSearchCV`, and returns the place of C in `Cs_`.
    fit_intercept, class_weight : optional
        See `BCFWClassifier`.
    step, tol, random_state : optional
        See `BCFWClassifier`.
    max_iter : int, default=1000
        Maximum number of passes over the data, for each whole path and for the final fit.
    n_jobs : int or None, default=None
        Number of folds that are processed in parallel.
    verbose : int, default=0
        If nonzero, print one line per gap check of the final fit.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        eps : float, default=0.1
            Suboptimality of the solutions along the paths.
        heuristic : bool, default=False
            Whether to compute paths faster, without a guarantee. See :func:`bcfw_path`.
        intercept_scaling, classes : optional
            See `BCFWClassifier`.
        sampling, acceleration, cache : optional
            See `BCFWClassifier`.
        max_time : float or None, default=None
            Time limit in seconds, for each path and for the final fit. A fit that is cut
            short by it is not reproducible bit for bit. If `max_iter` or `max_time` cuts
            a path short, the values of C beyond its end get no score, and a
            ConvergenceWarning is issued. C is then chosen among the values with a score
            in every fold. It is an error if there are none.

    Attributes
    ----------
    C_ : float
        The chosen C: by default the smallest of those with the best mean score.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C that were tried, sorted and without duplicates.
    scores_path_ : ndarray of shape (n_Cs, n_folds)
        Scores on the test part of each fold; NaN beyond the end of a path.
    coef_, intercept_, classes_, structure_ : see `BCFWClassifier`
        These and the following describe the final fit.
    dual_gap_, objective_, dual_objective_ : see `BCFWClassifier`
        Certificate of the final fit.
    n_iter_, n_oracle_calls_, history_, step_, cache_ : see `BCFWClassifier`
        Progress and settings of the final fit.

    Notes
    -----
    An example of weight k counts as k examples: in the training problem of each fold, in
    its score, and in the final fit. With hidden labels, there are no paths: each C is
    fitted to the duality gap `eps`, from the solution before. Solutions of equivalent
    problems agree only within `eps` along the paths and within `tol` in the final fit, so
    their scores and `C_` may differ slightly.
    """

    C_: float
    Cs_: np.ndarray
    scores_path_: np.ndarray
    step_: str
    cache_: bool

    takes_hidden_labels = takes_completions = True
    _final_class = BCFWClassifier
    _needs: ClassVar = {"step": [NO_CACHE]}
    _parameter_constraints: dict = {
        **{name: values for name, values in LIMITS.items() if name != "C"},
        **PATH_CONSTRAINTS,
        **CV_CONSTRAINTS,
    }
    _option_table: ClassVar = {
        **PATH_OPTIONS,
        "eps": Option(0.1, POSITIVE),
        "heuristic": Option(False, ["boolean"]),
    }

    def __init__(
        self,
        structure: StructureName | Structure = "auto",
        *,
        Cs: int | ArrayLike = 30,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        refit: Literal["best", "one_standard_error"] | Callable[..., int] = "best",
        fit_intercept: bool = True,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        step: StepName = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.structure = structure
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.step = step
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options

    def _range(self, problem):
        options = self._options
        kappa = default_kappa(options.sampling, options.acceleration, options.heuristic)
        largest = first_breakpoint(start_path(self, problem), options.eps, kappa)
        return min(1.0 / (largest * problem.total), MAX_C / 10), MAX_C

    def _follow(self):
        settings, limits = self._settings(), ("eps", "heuristic", "max_iter", "max_time")
        options = {name: settings[name] for name in limits}
        return partial(_follow_path, options=options)


def _follow_path(estimator, X, y, weights, Cs, options):
    """The solutions of a path that jumps from one C to the next, until its end."""
    problem = bind_local(estimator, X, y, weights, warns=False)
    if problem.has_hidden:
        estimator.set_params(
            tol=options["eps"],
            max_iter=options["max_iter"],
            solver_options__max_time=options["max_time"],
        )
        return follow_fits(estimator, X, y, weights, Cs)
    lams = [problem.lam(C) for C in Cs]
    path, stopped_by = find_path(
        estimator, problem, min_lambda=lams[-1], wanted=np.array(lams), **options
    )
    is_whole = lams[-1] >= path.end

    def solutions():
        for C, lam in zip(Cs, lams, strict=True):
            if lam < path.end:
                return
            estimator.set_params(C=float(C))
            found = weight_attributes(problem.structure, path.coef(lam))
            vars(estimator).update(found)
            # It is within `eps`, except on heuristic paths.
            yield np.nan

    return solutions(), None if is_whole else stopped_by
