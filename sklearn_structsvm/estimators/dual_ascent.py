"""Block ascent of the dual: the `Method` for an estimator's parameters."""

from functools import partial

from sklearn_structsvm.estimators.method import Method
from sklearn_structsvm.estimators.partial_labels import hinge_steps
from sklearn_structsvm.estimators.steps import BlockSteps, ExactSteps, as_it_is
from sklearn_structsvm.estimators.warm_start import find_warm_start, warn_of_cold_start
from sklearn_structsvm.solvers.blocks import bcfw, exact

# The entries of every dual point that a fit keeps.
ENTRIES = ("blocks", "loss")

# Bytes of a dual point, a quarter of the memory of a small machine, above which another
# solver that needs less is used or, where it is another class, recommended.
MOST_MEMORY = 2**31


def frank_wolfe(
    estimator,
    problem,
    previous,
    *,
    average,
    bounds,
    algorithm="block",
    cache="auto",
    wrap=as_it_is,
    l1_ratio=0.0,
    **others,
):
    """Frank-Wolfe steps, starting from the previous fit's dual point if possible.

    `average`, `bounds`, `cache` and `l1_ratio` are for `start_bcfw`, `algorithm` is for
    `run_bcfw`, and `**others` are for `find_warm_start`. Batch steps are plain and keep
    no active sets. `previous`: attributes of the previous fit. `wrap`: a picklable
    function from the structure's oracle to the oracle in use.
    """
    step = estimator.step
    is_batch = algorithm == "batch"
    if is_batch:
        step, cache = "fw", False
    elif problem.is_remote and step == "auto":
        # A message costs more than the steps of a part.
        step = "corrective"
    steps = BlockSteps(step, cache, average, bounds, wrap, l1_ratio)
    start = find_warm_start(estimator, problem, previous, ENTRIES, **others)
    if not is_batch:
        start.state = _with_active_sets(start.state, estimator.step)
    iterate, resolved, options = _started(estimator, problem, steps, start)
    certify = None
    if problem.is_remote:
        options["sampling"] = "permuted"
    else:
        options |= {"algorithm": algorithm, "average": average}
        n_threads = options["n_threads"]
        certify = partial(bcfw.certify, iterate, average, estimator.tol, n_threads)
    solve = partial(bcfw.run_bcfw, iterate, **options)
    method = Method("BCFW", solve, iterate, certify, start.kept, resolved)
    if problem.has_hidden:
        names = ("sampling", "acceleration", "rng", "algorithm", "average")
        own = {name: options[name] for name in names}
        return hinge_steps(estimator, problem, start, method, own)
    return method


def exact_steps(estimator, problem, previous):
    """Exact steps, which the structure must support."""
    start = find_warm_start(estimator, problem, previous, ENTRIES)
    iterate, resolved, options = _started(estimator, problem, ExactSteps(), start)
    if problem.is_remote:
        # Without acceleration, exact steps need too many rounds.
        options |= {"sampling": "permuted", "at_once": True}
        solve, certify = partial(bcfw.run_bcfw, iterate, **options), None
    else:
        if estimator._options.sampling == "auto":
            options["sampling"] = "gap"
        solve = partial(exact.run_exact, iterate, **options)
        certify = partial(exact.certify, iterate, estimator.tol, options["n_threads"])
    return Method("BCFW", solve, iterate, certify, start.kept, resolved)


def _started(estimator, problem, steps, start):
    """The iterate, the resolved values of "auto", and the solver's options.

    Where examples or their weights have changed, what canceled in the dual point may no
    longer do so. If its value is then below zero, that of the truth, it is dropped.
    """
    rng, lam = estimator._rng(), problem.lam(estimator.C)
    state = start.dual_state()
    iterate, resolved = problem.make_iterate(lam, steps, rng=rng, state=state)
    is_comparable = start.has_moved and not problem.has_hidden
    if is_comparable and iterate.dual_objective < 0.0:
        start.drop()
        iterate, resolved = problem.make_iterate(lam, steps, rng=rng)
    options = {
        "sampling": estimator._options.sampling,
        "acceleration": estimator._options.acceleration,
        "gap_check_interval": estimator._options.gap_check_interval,
        "rng": rng,
        **estimator._limits(),
    }
    if problem.is_remote:
        options["team"] = iterate
    return iterate, resolved, options


def _with_active_sets(state, step):
    """A dual point for the requested steps, or None if it lacks data."""
    if state is None or step in ("auto", "fw") or "atoms" in state:
        return state
    warn_of_cold_start("the step is not that", "dual point has no active sets and is")
    return None
