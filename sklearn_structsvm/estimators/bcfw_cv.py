"""BCFWClassifierCV: structural SVMs, C chosen along paths by cross-validation."""

from contextlib import suppress
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import (
    Interval,
    _fit_context,
    _safe_indexing,
)
from sklearn_structsvm._utils.labels import listed
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.bcfw_path import (
    PATH_CONSTRAINTS,
    find_path,
    start_path,
)
from sklearn_structsvm.estimators.problem import make_problem
from sklearn_structsvm.estimators.structured import StructuredClassifier
from sklearn_structsvm.solvers.blocks.path import default_kappa, first_breakpoint

# Where the default grid of C ends: paths get long beyond, and their ends seldom win.
MAX_C = 10.0


class BCFWClassifierCV(StructuredClassifier):
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

    _parameter_constraints: dict = {
        **PATH_CONSTRAINTS,
        "Cs": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Choose C by cross-validation and train at it.

        Parameters
        ----------
        X, y, sample_weight : as in `BCFWClassifier.fit`

        Returns
        -------
        self
        """
        return self._fit_or_restore(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, transaction):
        problem = make_problem(self, X, y, sample_weight)
        weights = check_weights(sample_weight, len(problem.weights))
        Cs = self._grid(problem)
        folds = self._folds(problem, weights)
        final = self._classifier(problem.structure)
        limits = ("eps", "heuristic", "max_iter", "max_time")
        options = {name: getattr(self, name) for name in limits}
        fold_args = (final, problem.X, problem.y, weights, Cs, self.scoring, options)
        paths = Parallel(n_jobs=min(effective_n_jobs(self.n_jobs), len(folds)))(
            delayed(_score_fold)(*fold, *fold_args) for fold in folds
        )
        scores_path = np.full((len(Cs), len(folds)), np.nan)
        for k, (scores, _) in enumerate(paths):
            scores_path[: len(scores), k] = scores
        n_scored = min(len(scores) for scores, _ in paths)
        with np.errstate(invalid="ignore"):
            means = scores_path[:n_scored].mean(axis=1)
        best = _best(means)
        final.set_params(C=Cs[best], verbose=self.verbose)
        # The final fit is what callbacks follow; the folds' paths have no passes.
        final.set_callbacks(*getattr(self, "_skl_callbacks", []))
        try:
            final.fit(X, y, sample_weight)
        finally:
            # Also where it ends with a warning that was turned into an error.
            if hasattr(final, "coef_"):
                fitted = {k: v for k, v in vars(final).items() if k.endswith("_")}
                vars(self).update(fitted)
                self.Cs_ = Cs
                self.C_ = float(Cs[best])
                self.scores_path_ = scores_path
                transaction.commit()
        self._warn_of_gaps(Cs, means, [cut_by for _, cut_by in paths])

    def _warn_of_gaps(self, Cs, means, cut_by):
        """Say which values of C were not chosen among, and why."""
        undefined = Cs[: len(means)][~np.isfinite(means)]
        if len(undefined):
            warn_caller(
                f"The mean score of C={listed(undefined)} is not finite, as that of a "
                "fold is not. C was chosen among the other values.",
                UserWarning,
            )
        limits = [limit for limit in cut_by if limit is not None]
        if limits:
            lost = "no C has a score in all folds, and the smallest was taken"
            if len(means):
                lost = f"C above {Cs[len(means) - 1]:.3g} has no score"
            warn_caller(
                f"The paths of {len(limits)} of {len(cut_by)} folds were cut short by "
                f"{limits[0]}={getattr(self, limits[0])}, so that {lost}. Scale the "
                f"features (as StandardScaler does), increase {limits[0]}, or end Cs "
                "there.",
                ConvergenceWarning,
            )

    def _classifier(self, structure):
        shared = self.get_params(deep=False)
        for name in ("Cs", "cv", "scoring", "eps", "heuristic", "n_jobs", "verbose"):
            del shared[name]
        shared["structure"] = clone(structure)
        if structure.has_classes:
            # A fold may lack some of the labels.
            shared["classes"] = structure.classes_
        return BCFWClassifier(**shared)

    def _folds(self, problem, weights):
        """Pairs of training and test examples that all have something to say."""
        flat = problem.structure.flat
        y = problem.y if flat else None
        folds = list(check_cv(self.cv, y, classifier=flat).split(problem.X, y))
        if not folds:
            raise ValueError(
                "cv gives no folds. An iterator of folds is used up by one fit: use a "
                "list, or a splitter."
            )
        for k, (train, test) in enumerate(folds):
            parts = {"training": train, "test": test}
            for name, part in parts.items():
                if len(part) == 0:
                    raise ValueError(f"Fold {k} of cv has no example in its {name} part.")
            if self.scoring is not None:
                # Then only training has weights.
                del parts["test"]
            for name, part in parts.items():
                if not weights[part].any():
                    raise ValueError(
                        f"Fold {k} of cv has only examples whose sample_weight is zero "
                        f"in its {name} part."
                    )
        return folds

    def _grid(self, problem):
        if isinstance(self.Cs, Integral):
            kappa = default_kappa(self.sampling, self.acceleration, self.heuristic)
            largest = first_breakpoint(start_path(self, problem), self.eps, kappa)
            smallest_C = min(1.0 / (largest * problem.total), MAX_C / 10)
            return np.geomspace(smallest_C, MAX_C, self.Cs)
        try:
            Cs = np.asarray(self.Cs)
        except ValueError:
            Cs = np.empty(0)
        is_number = Cs.ndim == 1 and len(Cs) and Cs.dtype.kind in "iuf"
        if not is_number or not ((Cs > 0) & np.isfinite(Cs)).all():
            raise ValueError(f"Cs must be positive, finite numbers; got {self.Cs!r}.")
        return np.unique(Cs.astype(np.float64))


def _best(means):
    """The place of the best mean score, the first of those that are alike."""
    finite = np.isfinite(means)
    if len(means) and not finite.any():
        raise ValueError(
            f"The mean score of every C is {means[0]}: no C can be chosen. Scores that "
            "are not defined for some predictions may have an argument that says what "
            "they are then, such as zero_division."
        )
    return int(np.argmax(np.where(finite, means, -np.inf))) if len(means) else 0


def _score_fold(train, test, estimator, X, y, weights, Cs, scoring, options):
    """Scores on the test part of the path's solution for each C that it reaches.

    Returns
    -------
    scores : list of float
        Of the first values of C.
    cut_by : "max_iter", "max_time" or None
        What kept the path from the others.
    """
    estimator = clone(estimator)
    X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
    problem = make_problem(
        estimator, _safe_indexing(X, train), _safe_indexing(y, train), weights[train]
    )
    lams = [problem.lam(C) for C in Cs]
    path, cut_by = find_path(estimator, problem, min_lambda=lams[-1], **options)
    scorer = check_scoring(estimator, scoring=scoring)
    kwargs = {"sample_weight": weights[test]} if scoring is None else {}
    scores = []
    for lam in lams:
        if lam < path.end:
            return scores, cut_by
        estimator._set_weights(problem.structure, path.coef(lam))
        scores.append(_as_number(scorer(estimator, X_test, y_test, **kwargs)))
    return scores, None


def _as_number(score):
    """What a scorer returned as a float, as scikit-learn's searches read it."""
    with suppress(AttributeError, ValueError):
        score = score.item()
    if not isinstance(score, Real):
        raise ValueError(
            f"scoring must return a number, got {score!r} ({type(score).__name__})."
        )
    return float(score)
