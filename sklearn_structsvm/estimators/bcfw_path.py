"""bcfw_path and BCFWClassifierCV: structural SVMs for all C at once."""

from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import Interval, _fit_context, _safe_indexing
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.problem import make_problem
from sklearn_structsvm.estimators.structured import (
    PROBLEM_CONSTRAINTS,
    StructuredClassifier,
)
from sklearn_structsvm.solvers.blocks.bcfw import start_bcfw
from sklearn_structsvm.solvers.blocks.path import first_breakpoint, regularization_path

# 2**-15, where the grid of the paper's appendix K ends.
MIN_LAMBDA = 2.0**-15

# Where the default grid of C ends: paths get long beyond, and their ends seldom win.
MAX_C = 10.0


def bcfw_path(
    X,
    y,
    *,
    structure="auto",
    sample_weight=None,
    eps=0.1,
    kappa=None,
    heuristic=False,
    min_lambda=MIN_LAMBDA,
    fit_intercept=True,
    intercept_scaling=1.0,
    classes=None,
    class_weight=None,
    step="auto",
    sampling="gap",
    cache="auto",
    max_iter=None,
    max_time=None,
    n_jobs=None,
    random_state=None,
):
    """Solutions of a structural SVM for every strength of the regularization.

    For each λ the path holds weights w with ::

        λ/2 ||w||² + (Σ_i s_i H_i(w)) / Σ_i s_i  <=  its minimum + eps,

    piecewise constant in λ (Algorithms 6 and 7 of [1]_). λ and the C of
    :class:`BCFWClassifier` are related by λ = 1 / (C Σ_i s_i).

    Parameters
    ----------
    X, y, sample_weight : as in `BCFWClassifier.fit`
    structure : "auto" or Structure, default="auto"
    eps : float, default=0.1
        Largest suboptimality along the path, in units of the loss.
    kappa : float in (0, 1) or None, default=None
        Each breakpoint is solved to `kappa * eps`; None for the paper's choices, 0.9,
        or 0.7 for the heuristic path.
    heuristic : bool, default=False
        Believe the block gaps as last seen, refreshed every 10 passes, instead of
        checking them at each breakpoint: quicker, but `eps` is then no promise.
    min_lambda : float, default=2**-15
        Where the path ends, unless one solution serves all smaller λ before.
    fit_intercept, intercept_scaling, classes, class_weight, step, sampling, cache : \
as in `BCFWClassifier`
        On chains plain steps, ``step="fw"``, are often the quickest to an `eps` of 0.1.
    max_iter : int or None, default=None
        Passes over the data in all.
    max_time : float or None, default=None
        Seconds in all, which keep a path from being repeated bit for bit. One that is cut
        short ends at its last solved breakpoint, with a ConvergenceWarning.
    n_jobs : int or None, default=None
        Threads of the gap checks.
    random_state : int, RandomState instance or None, default=None
        Which examples are drawn. With an int a path is repeated bit for bit.

    Returns
    -------
    RegularizationPath
        With `lambdas`, `coefs` (flattened weights, see `coef(lam)`), `gaps`, `seconds`
        and `n_iter` per breakpoint.

    Raises
    ------
    ValueError
        For data that `BCFWClassifier.fit` refuses, or parameters out of range.

    References
    ----------
    .. [1] Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien, "Minding the gaps for
       block Frank-Wolfe optimization of structured SVMs", ICML 2016.

    Examples
    --------
    >>> from sklearn_structsvm import bcfw_path
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=20, n_classes=3, random_state=0)
    >>> path = bcfw_path(X, y, eps=0.1, min_lambda=0.1, random_state=0)
    >>> bool((path.gaps <= 0.1).all())
    True
    >>> path.coef(1.0).shape
    (78,)
    """
    estimator = BCFWClassifier(
        structure,
        fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling,
        classes=classes,
        class_weight=class_weight,
        step=step,
        sampling=sampling,
        cache=cache,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    estimator._validate_params()
    _check_positive(eps=eps, max_iter=max_iter, max_time=max_time)
    if kappa is not None and not 0 < kappa < 1:
        raise ValueError(f"kappa must be between 0 and 1; got {kappa!r}.")
    if not min_lambda >= 0:
        raise ValueError(f"min_lambda must be >= 0; got {min_lambda!r}.")
    problem = make_problem(estimator, X, y, sample_weight)
    path, reached = _path(
        estimator,
        problem,
        eps=eps,
        kappa=kappa,
        heuristic=heuristic,
        min_lambda=min_lambda,
        max_iter=np.inf if max_iter is None else max_iter,
        max_time=max_time,
    )
    if not reached:
        warn_caller(
            f"The path was cut short by max_iter={max_iter}, max_time={max_time} at "
            f"lambda={path.lambdas[-1]:.3g}.",
            ConvergenceWarning,
        )
    return path


def _check_positive(**parameters):
    for name, value in parameters.items():
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive; got {value!r}.")


def _start(estimator, problem):
    iterate, _, _ = start_bcfw(
        problem.make_oracle(),
        problem.weights,
        1.0,
        step=estimator.step,
        cache=estimator.cache,
    )
    return iterate


def _path(estimator, problem, **options):
    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    return regularization_path(
        _start(estimator, problem),
        sampling=estimator.sampling,
        n_threads=effective_n_jobs(estimator.n_jobs),
        rng=np.random.default_rng(seed),
        **options,
    )


class BCFWClassifierCV(StructuredClassifier):
    """Structural support vector machine, its C chosen by cross-validation.

    On the training part of each fold, :func:`bcfw_path` gives solutions for all C,
    which are scored on the rest; the C of the best mean score is then fitted to all
    data as by :class:`BCFWClassifier`.

    Parameters
    ----------
    structure : "auto" or Structure, default="auto"
    Cs : int or array-like, default=30
        Values of C, or how many, spread evenly in log(C) between the first breakpoint
        of the path and C = 10.
    cv : int, cross-validation generator or None, default=None
        None for 5 folds: stratified for classes, unshuffled for sequences.
    scoring : str, callable or None, default=None
        None for `score`.
    eps : float, default=0.1
        Suboptimality along the paths.
    heuristic : bool, default=False
        Quicker paths without a guarantee.
    fit_intercept, intercept_scaling, classes, class_weight, step, sampling, cache, \
tol, max_iter, random_state : as in `BCFWClassifier`
    n_jobs : int or None, default=None
        Folds at once.
    verbose : int, default=0

    Attributes
    ----------
    C_ : float
        The value chosen: the smallest of the best.
    Cs_ : ndarray of shape (n_Cs,)
        Increasing.
    scores_path_ : ndarray of shape (n_Cs, n_folds)
        Scores on the folds' test parts.
    coef_, intercept_, classes_, structure_, dual_gap_, objective_, dual_objective_, \
n_iter_, n_oracle_calls_, history_, step_, cache_ : as in `BCFWClassifier`
        Of the final fit.

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
        **PROBLEM_CONSTRAINTS,
        "Cs": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "eps": [Interval(Real, 0, None, closed="neither")],
        "heuristic": ["boolean"],
        "step": BCFWClassifier._parameter_constraints["step"],
        "cache": BCFWClassifier._parameter_constraints["cache"],
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
        sampling="gap",
        cache="auto",
        tol=1e-3,
        max_iter=1000,
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
        self.cache = cache
        self.tol = tol
        self.max_iter = max_iter
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
        structure = problem.structure
        weights = check_weights(sample_weight, len(problem.weights))
        Cs = self._grid(problem)
        final = self._classifier(structure)
        cv = check_cv(
            self.cv, problem.y if structure.flat else None, classifier=structure.flat
        )
        folds = list(cv.split(problem.X, problem.y if structure.flat else None))
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_fold)(
                final,
                problem.X,
                problem.y,
                weights,
                train,
                test,
                Cs,
                self.scoring,
                {"eps": self.eps, "heuristic": self.heuristic},
            )
            for train, test in folds
        )
        scores_path = np.array(scores).T
        best = int(np.argmax(scores_path.mean(axis=1)))
        final.set_params(C=Cs[best], verbose=self.verbose)
        # The final fit is what callbacks follow; the folds' paths have no passes.
        final.set_callbacks(*getattr(self, "_skl_callbacks", []))
        final.fit(X, y, sample_weight)
        fitted = {k: v for k, v in vars(final).items() if k.endswith("_")}
        vars(self).update(fitted)
        self.Cs_ = Cs
        self.C_ = float(Cs[best])
        self.scores_path_ = scores_path

    def _classifier(self, structure):
        shared = self.get_params(deep=False)
        for name in ("Cs", "cv", "scoring", "eps", "heuristic", "n_jobs", "verbose"):
            del shared[name]
        shared["structure"] = clone(structure)
        if structure.has_classes:
            # A fold may lack some of the labels.
            shared["classes"] = structure.classes_
        return BCFWClassifier(**shared)

    def _grid(self, problem):
        if not isinstance(self.Cs, Integral):
            Cs = np.sort(np.asarray(self.Cs, dtype=np.float64))
            valid = (Cs > 0) & np.isfinite(Cs)
            if Cs.ndim != 1 or not len(Cs) or not valid.all():
                raise ValueError(
                    f"Cs must be positive, finite numbers; got {self.Cs!r}."
                )
            return Cs
        largest = first_breakpoint(_start(self, problem), self.eps)
        smallest_C = min(1.0 / (largest * problem.total), MAX_C / 10)
        return np.geomspace(smallest_C, MAX_C, self.Cs)


def _score_fold(
    estimator, X, y, weights, train, test, Cs, scoring, options
):
    """Scores on the test part of the path's solution for each C."""
    estimator = clone(estimator)
    X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
    problem = make_problem(
        estimator, _safe_indexing(X, train), _safe_indexing(y, train), weights[train]
    )
    path, _ = _path(estimator, problem, min_lambda=problem.lam(Cs[-1]), **options)
    scorer = check_scoring(estimator, scoring=scoring)
    kwargs = {"sample_weight": weights[test]} if scoring is None else {}
    scores = []
    for C in Cs:
        estimator._set_weights(problem.structure, path.coef(problem.lam(C)))
        scores.append(scorer(estimator, X_test, y_test, **kwargs))
    return scores
