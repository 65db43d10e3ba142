"""BCFWClassifierCV: structural SVMs, C chosen along paths by cross-validation."""

from functools import partial

import numpy as np

from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.bcfw_path import (
    PATH_CONSTRAINTS,
    find_path,
    start_path,
)
from sklearn_structsvm.estimators.cross_validation import (
    CV_CONSTRAINTS,
    CrossValidatedMixin,
)
from sklearn_structsvm.estimators.problem import make_problem
from sklearn_structsvm.estimators.structured import StructuredClassifier
from sklearn_structsvm.solvers.blocks.path import default_kappa, first_breakpoint

# Where the default grid of C ends: paths get long beyond, and their ends seldom win.
MAX_C = 10.0


class BCFWClassifierCV(CrossValidatedMixin, StructuredClassifier):
    """Structural support vector machine, its C chosen by cross-validation.

    On the training part of each fold, :func:`bcfw_path` gives solutions for all C,
    which are scored on the rest; the C of the best mean score is then fitted to all
    data as by :class:`BCFWClassifier`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        See `BCFWClassifier`.
    Cs : int or array-like, default=30
        Values of C, in any order, or how many, spread evenly in log(C) between the first
        breakpoint of the path and C = 10.
    cv : int, cross-validation generator, iterable or None, default=None
        None for 5 folds: stratified for classes, unshuffled for sequences.
    scoring : str, callable or None, default=None
        None for `score`, in which `sample_weight` counts; other scorers see no weights.
    eps : float, default=0.1
        Suboptimality along the paths.
    heuristic : bool, default=False
        Quicker paths without a guarantee.
    fit_intercept, intercept_scaling, classes, class_weight, step, sampling, \
acceleration, cache, tol, random_state : as in `BCFWClassifier`
    max_iter : int, default=1000
        Passes over the data in all of a path, and of the final fit.
    max_time : float or None, default=None
        Seconds of a path, and of the final fit, which keep a fit from being repeated bit
        for bit. A path that `max_iter` or `max_time` cuts short, as of features that are
        large or of very different scales, leaves the values of C beyond its end without a
        score, with a ConvergenceWarning. C is chosen among those that have one in all
        folds; where there is none it is the smallest.
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
        Scores on the folds' test parts; NaN where a path ended before.
    coef_, intercept_, classes_, structure_, dual_gap_, objective_, dual_objective_, \
n_iter_, n_oracle_calls_, history_, step_, cache_ : as in `BCFWClassifier`
        Of the final fit.

    Notes
    -----
    An example of weight k counts as k examples: in the problem of each fold, in its score
    and in the final fit. What is computed of equal problems differs by `eps` along the
    paths, so that scores, and with them `C_`, may differ; and by `tol` in the final fit.

    Examples
    --------
    >>> from sklearn_structsvm import BCFWClassifierCV
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=30, n_classes=3, random_state=0)
    >>> model = BCFWClassifierCV(Cs=[0.01, 0.1, 1.0], cv=3, random_state=0).fit(X, y)
    >>> model.scores_path_.shape
    (3, 3)
    """

    C_: float
    Cs_: np.ndarray
    scores_path_: np.ndarray
    step_: str
    cache_: bool

    _final_class = BCFWClassifier
    _parameter_constraints: dict = {
        **PATH_CONSTRAINTS,
        **CV_CONSTRAINTS,
        "tol": BCFWClassifier._parameter_constraints["tol"],
        "max_iter": BCFWClassifier._parameter_constraints["max_iter"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        structure="auto",
        *,
        Cs=30,
        cv=None,
        scoring=None,
        eps=0.1,
        heuristic=False,
        fit_intercept=True,
        intercept_scaling=1.0,
        classes=None,
        class_weight=None,
        step="auto",
        sampling="auto",
        acceleration="auto",
        cache="auto",
        tol=1e-3,
        max_iter=1000,
        max_time=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.structure = structure
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.eps = eps
        self.heuristic = heuristic
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.step = step
        self.sampling = sampling
        self.acceleration = acceleration
        self.cache = cache
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _range(self, problem):
        kappa = default_kappa(self.sampling, self.acceleration, self.heuristic)
        largest = first_breakpoint(start_path(self, problem), self.eps, kappa)
        return min(1.0 / (largest * problem.total), MAX_C / 10), MAX_C

    def _follow(self):
        limits = ("eps", "heuristic", "max_iter", "max_time")
        options = {name: getattr(self, name) for name in limits}
        return partial(_follow_path, options=options)


def _follow_path(estimator, X, y, weights, Cs, options):
    """The solutions of :func:`bcfw_path`, as far as it gets."""
    problem = make_problem(estimator, X, y, weights)
    lams = [problem.lam(C) for C in Cs]
    path, cut_by = find_path(estimator, problem, min_lambda=lams[-1], **options)
    is_whole = lams[-1] >= path.end

    def solutions():
        for lam in lams:
            if lam < path.end:
                return
            estimator._set_weights(problem.structure, path.coef(lam))
            # It is within `eps`, but for heuristic paths.
            yield np.nan

    return solutions(), None if is_whole else cut_by
