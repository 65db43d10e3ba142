"""bcfw_path: structural SVMs for all C at once."""

from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import Interval, validate_params
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.problem import (
    check_nothing_to_learn,
    make_problem,
    refuse_bounds,
)
from sklearn_structsvm.estimators.structured import PROBLEM_CONSTRAINTS
from sklearn_structsvm.solvers.blocks.bcfw import start_bcfw
from sklearn_structsvm.solvers.blocks.path import regularization_path

# 2**-15, where the grid of the paper's appendix K ends.
MIN_LAMBDA = 2.0**-15

# What a path and a cross-validation along paths have in common.
PATH_CONSTRAINTS = {
    **PROBLEM_CONSTRAINTS,
    "eps": [Interval(Real, 0, None, closed="neither")],
    "heuristic": ["boolean"],
    "step": BCFWClassifier._parameter_constraints["step"],
    "cache": BCFWClassifier._parameter_constraints["cache"],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
}


@validate_params(
    {
        **PATH_CONSTRAINTS,
        "kappa": [Interval(Real, 0, 1, closed="neither"), None],
        "min_lambda": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    },
    prefer_skip_nested_validation=True,
)
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
    sampling="auto",
    acceleration="auto",
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
    structure : "auto", str or Structure, default="auto"
        See `BCFWClassifier`.
    eps : float, default=0.1
        Largest suboptimality along the path, in units of the loss.
    kappa : float in (0, 1) or None, default=None
        Each breakpoint is solved to `kappa * eps`; None for the paper's choices, 0.9,
        or 0.7 for the heuristic path, and for 0.7 where steps may be accelerated.
    heuristic : bool, default=False
        Believe the block gaps as last seen, refreshed every 10 passes, instead of
        checking them at each breakpoint: quicker, but `eps` is then no promise.
    min_lambda : float, default=2**-15
        Where the path ends, unless one solution serves all smaller λ before.
    fit_intercept, intercept_scaling, classes, class_weight, step, sampling, \
acceleration, cache : as in `BCFWClassifier`
    max_iter : int or None, default=None
        Passes over the data in all. Without a limit the path of features that are large,
        or of very different scales, takes long: scale them.
    max_time : float or None, default=None
        Seconds in all, which keep a path from being repeated bit for bit. One that
        `max_iter` or `max_time` cuts short ends at its last solved breakpoint,
        `path.end`, with a ConvergenceWarning.
    n_jobs : int or None, default=None
        Threads, as of :class:`BCFWClassifier`; of steps that are accelerated.
    random_state : int, RandomState instance or None, default=None
        Which examples are drawn. With an int a path is repeated bit for bit, for
        the same `n_jobs`.

    Returns
    -------
    RegularizationPath
        With `lambdas`, `coefs` (flattened weights, see `coef(lam)`), `gaps`, `seconds`
        and `n_iter` per breakpoint, down to `end`.

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
        acceleration=acceleration,
        cache=cache,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    problem = make_problem(estimator, X, y, sample_weight)
    path, cut_by = find_path(
        estimator,
        problem,
        eps=eps,
        kappa=kappa,
        heuristic=heuristic,
        min_lambda=min_lambda,
        max_iter=np.inf if max_iter is None else max_iter,
        max_time=max_time,
    )
    if cut_by is not None:
        limit = {"max_iter": max_iter, "max_time": max_time}[cut_by]
        warn_caller(
            f"The path was cut short by {cut_by}={limit} at lambda={path.end:.3g}. To go "
            f"on, scale the features (as StandardScaler does), or increase {cut_by}.",
            ConvergenceWarning,
        )
    return path


def start_path(estimator, problem):
    """A fresh iterate, as a path begins with."""
    bounds = problem.structure.weight_bounds()
    if bounds is not None and not np.isin(bounds, (-np.inf, 0.0, np.inf)).all():
        # With those, w is 1/λ times what it is for λ = 1, where α stays as it is.
        refuse_bounds(problem.structure, "a path, unless they are 0 or infinite,")
    iterate, _, _ = start_bcfw(
        problem.make_oracle(),
        problem.weights,
        1.0,
        step=estimator.step,
        cache=estimator.cache,
        bounds=bounds,
    )
    return iterate


def find_path(estimator, problem, **options):
    """`regularization_path` of a problem, as the estimator's parameters have it."""
    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    path, cut_by = regularization_path(
        start_path(estimator, problem),
        sampling=estimator.sampling,
        acceleration=estimator.acceleration,
        n_threads=count_threads(estimator.n_jobs),
        rng=np.random.default_rng(seed),
        **options,
    )
    if not path.coefs.any() and not problem.structure.flat:
        check_nothing_to_learn(problem)
    return path, cut_by
