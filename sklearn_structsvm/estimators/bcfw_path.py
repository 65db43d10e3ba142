"""Regularization paths of structural SVMs: solutions for all values of C."""

import sys
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.mistakes import validate_params
from sklearn_structsvm._utils.options import check_options
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.constraints import (
    BLOCK_OPTIONS,
    BLOCKS,
    CACHE_OPTION,
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    SHARE,
    check_ranges,
)
from sklearn_structsvm.estimators.grid_of_c import warm_fits, warn_of_gaps
from sklearn_structsvm.estimators.named_structures import StructureName
from sklearn_structsvm.estimators.oracle_faults import (
    check_nothing_to_learn,
    wrong_words,
)
from sklearn_structsvm.estimators.problem import bind_local
from sklearn_structsvm.estimators.remedies import cut_words
from sklearn_structsvm.estimators.weight_bounds import refuse_bounds
from sklearn_structsvm.solvers.blocks.bcfw import start_bcfw
from sklearn_structsvm.solvers.blocks.path import (
    RegularizationPath,
    first_breakpoint,
    regularization_path,
)
from sklearn_structsvm.solvers.blocks.steps import StepName
from sklearn_structsvm.solvers.loop import History
from sklearn_structsvm.structures import Structure
from sklearn_structsvm.structures.answers import bounds_of

# 2**-15, the end of the grid in the paper's appendix K.
MIN_LAMBDA = 2.0**-15

# The common parameters and options of a path and of cross-validation along paths.
PATH_CONSTRAINTS = {
    **BLOCKS,
    "step": BCFWClassifier._parameter_constraints["step"],
}
PATH_OPTIONS = BLOCK_OPTIONS | CACHE_OPTION


RANGES = {
    "eps": POSITIVE,
    "kappa": [*SHARE, None],
    "min_lambda": NON_NEGATIVE,
    "max_iter": [*COUNT, None],
}


@validate_params(
    PATH_CONSTRAINTS | RANGES | {"heuristic": ["boolean"]},
    prefer_skip_nested_validation=False,
)
def bcfw_path(
    X: Any,
    y: Any,
    *,
    structure: StructureName | Structure = "auto",
    sample_weight: ArrayLike | None = None,
    eps: float = 0.1,
    kappa: float | None = None,
    heuristic: bool = False,
    min_lambda: float = MIN_LAMBDA,
    fit_intercept: bool = True,
    class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
    step: StepName = "auto",
    max_iter: int | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    solver_options: dict[str, Any] | None = None,
) -> RegularizationPath:
    r"""Compute the regularization path of a structural SVM: solutions for all C.

    For each :math:`\lambda`, the path holds weights w whose objective is within `eps` of
    the minimum,

    .. math::

        F_\lambda(w) \le \min_v F_\lambda(v) + \mathtt{eps}, \qquad
        F_\lambda(w) = \frac{\lambda}{2} \|w\|^2
        + \frac{1}{\sum_i s_i} \sum_i s_i H_i(w).

    The weights are piecewise constant in :math:`\lambda` (Algorithms 6 and 7 of [1]_).
    The C of :class:`BCFWClassifier` corresponds to :math:`\lambda = 1 / (C \sum_i s_i)`.

    With hidden labels the problem is not convex, and a path has solutions at powers of
    two alone (and at `min_lambda`). Each is a concave-convex procedure of its own, which
    starts from the solution before and ends where one more convex problem could gain no
    more than `eps`.

    Read more in the :ref:`User Guide <guide-path>`.

    Parameters
    ----------
    X, y, sample_weight : as in `BCFWClassifier.fit`
        Training data.
    structure : "auto", str or Structure, default="auto"
        See `BCFWClassifier`.
    eps : float, default=0.1
        Maximum suboptimality along the path, in units of the loss.
    kappa : float in (0, 1) or None, default=None
        Each breakpoint is solved to a duality gap of `kappa * eps`. None means 0.9, or
        0.7 for the heuristic path and if steps may be accelerated.
    heuristic : bool, default=False
        Whether to trust the last known block gaps, refreshed every 10 passes, rather than
        compute the gap at each breakpoint. This is faster, but `eps` is not guaranteed.
    min_lambda : float, default=2**-15
        Stop at this value, unless one solution is found to serve all smaller ones.
    fit_intercept, class_weight : optional
        See `BCFWClassifier`.
    step : optional
        See `BCFWClassifier`.
    max_iter : int or None, default=None
        Maximum number of passes over the data for the whole path. Without a limit, paths
        take long if features are large or differ much in scale: scale them first.
    n_jobs : int or None, default=None
        Number of threads for accelerated steps, see :class:`BCFWClassifier`.
    random_state : int, RandomState instance or None, default=None
        Controls the order in which examples are drawn. With an int and a fixed `n_jobs`,
        paths are reproducible bit for bit.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        intercept_scaling, classes : optional
            See `BCFWClassifier`.
        sampling, acceleration, cache : optional
            See `BCFWClassifier`.
        max_time : float or None, default=None
            Time limit in seconds for the whole path. A path that is cut short by it is
            not reproducible bit for bit. If `max_iter` or `max_time` cuts the path short,
            it ends at the last solved breakpoint, `path.end`, with a ConvergenceWarning.

    Returns
    -------
    path : RegularizationPath
        Its method `coef(lam)` gives the weights for any value down to `path.end` or, with
        hidden labels, for each of `path.lambdas`.

    Raises
    ------
    ValueError
        If `BCFWClassifier.fit` would reject the data, or if a parameter is out of range;
        with hidden labels also for `kappa`, `heuristic`, and ``min_lambda=0``.

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
    check_options("bcfw_path", solver_options, PATH_OPTIONS)
    estimator = BCFWClassifier(
        structure,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        step=step,
        n_jobs=n_jobs,
        random_state=random_state,
        solver_options=solver_options,
    )
    estimator._check_parameters()
    options = {"eps": eps, "min_lambda": min_lambda}
    limits = {"kappa": kappa, "max_iter": max_iter}
    check_ranges("bcfw_path", options | limits, RANGES)
    options["max_time"] = max_time = estimator._options.max_time
    problem = bind_local(estimator, X, y, sample_weight)
    if problem.has_hidden:
        if heuristic or kappa is not None or min_lambda == 0.0:
            raise ValueError(
                "y has unknown labels, so each value of lambda is a fit of its own. This "
                "needs heuristic=False, kappa=None and a positive min_lambda; got "
                f"{heuristic}, {kappa} and {min_lambda}."
            )
        path, stopped_by = fit_values(
            estimator, problem, max_iter=max_iter or sys.maxsize, **options
        )
    else:
        path, stopped_by = find_path(
            estimator,
            problem,
            kappa=kappa,
            heuristic=heuristic,
            max_iter=np.inf if max_iter is None else max_iter,
            **options,
        )
    if stopped_by is not None:
        limit = {"max_iter": max_iter, "max_time": max_time}[stopped_by]
        advice = cut_words(estimator, problem, f"increase {stopped_by}")
        warn_caller(
            f"The path was cut short by {stopped_by}={limit} at lambda={path.end:.3g}. "
            f"{advice}",
            ConvergenceWarning,
        )
    return path


def fit_values(estimator, problem, *, eps, min_lambda, max_iter, max_time):
    """The path with hidden labels: a fit for each power of two, as `find_path`.

    Each starts from the one before, and ends once a convex step gains at most `eps`.
    """
    first = first_breakpoint(start_path(estimator, problem), eps)
    powers = np.arange(np.ceil(np.log2(min_lambda)), np.floor(np.log2(first)) + 1.0)
    lams = np.unique(np.append(2.0**powers, min_lambda))[::-1]
    fits = warm_fits(estimator, problem, 1.0 / (lams * problem.total))
    started, n_iter, n_calls, seconds = perf_counter(), 0, 0, 0.0
    max_time = np.inf if max_time is None else max_time
    rows, coefs, stopped_by = [], [], None
    for lam in lams:
        left = None if max_time == np.inf else max_time - seconds
        estimator.set_params(
            tol=eps, max_iter=max_iter - n_iter, solver_options__max_time=left
        )
        gap = next(fits)
        n_iter += estimator.n_iter_
        n_calls += estimator.n_oracle_calls_
        seconds = perf_counter() - started
        is_last = lam == lams[-1] and gap <= eps
        if not is_last and (n_iter >= max_iter or seconds >= max_time):
            stopped_by = "max_iter" if n_iter >= max_iter else "max_time"
        # The last fit counts if it was not cut short, or if it is all there is.
        if gap <= eps or stopped_by is None or not rows:
            rows.append((lam, gap, seconds, n_iter, n_calls))
            coefs.append(estimator.coef_)
        if stopped_by is not None:
            break
    columns = map(np.array, zip(*rows, strict=True))
    lambdas, gaps, seconds, n_iter, n_oracle_calls = columns
    path = RegularizationPath(
        lambdas=lambdas,
        coefs=np.array(coefs),
        gaps=gaps,
        seconds=seconds,
        n_iter=n_iter,
        n_oracle_calls=n_oracle_calls,
        eps=eps,
        complete=False,
        has_hidden=True,
    )
    if stopped_by is None:
        Cs, is_short = 1.0 / (lambdas * problem.total), (gaps > eps)[:, np.newaxis]
        warn_of_gaps(estimator, problem, Cs, is_short, "fits", "path.gaps")
    return path, stopped_by


def start_path(estimator, problem):
    """A new iterate, with which a path begins."""
    bounds = bounds_of(problem.structure)
    if bounds is not None and not np.isin(bounds, (-np.inf, 0.0, np.inf)).all():
        # With these, w is 1/λ times its value at λ = 1, while α does not change.
        refuse_bounds(problem.structure, "a path, unless they are 0 or infinite,")
    iterate, _, _ = start_bcfw(
        problem.make_oracle(),
        problem.weights,
        1.0,
        step=estimator.step,
        cache=estimator._options.cache,
        bounds=bounds,
    )
    iterate.rounding = problem.rounding
    return iterate


def find_path(estimator, problem, **options):
    """`regularization_path` of a problem, with the estimator's parameters."""
    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    path, stopped_by = regularization_path(
        start_path(estimator, problem),
        sampling=estimator._options.sampling,
        acceleration=estimator._options.acceleration,
        n_threads=count_threads(estimator.n_jobs),
        rng=np.random.default_rng(seed),
        history=History(wrong_words(problem.structure)),
        **options,
    )
    if not path.coefs.any() and not problem.structure.flat:
        check_nothing_to_learn(problem)
    return path, stopped_by
