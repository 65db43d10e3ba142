"""Fits to labels of which some are hidden: the `Method` of an estimator for them."""

from functools import partial

import numpy as np

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.estimators.method import Method
from sklearn_structsvm.solvers.batch.chain_newton import PASSES_PER_WEIGHT
from sklearn_structsvm.solvers.batch.lbfgs import LBFGSSteps, run_lbfgs
from sklearn_structsvm.solvers.blocks._crf import MarginalAscent
from sklearn_structsvm.solvers.blocks.ascent import Limits
from sklearn_structsvm.solvers.blocks.bcfw import make_planes, run_bcfw, start_bcfw
from sklearn_structsvm.solvers.blocks.concave_convex import (
    ConcaveConvex,
    LogSums,
    Maxima,
)
from sklearn_structsvm.solvers.blocks.crf import SLOW_IF_LEFT, Slow, run_crf
from sklearn_structsvm.solvers.blocks.forecast import FIRST_FORECAST
from sklearn_structsvm.solvers.turns import Turn, run_turns
from sklearn_structsvm.structures.answers import bounds_of
from sklearn_structsvm.structures.graph_data import known_part

# The gap to which L-BFGS goes before dual ascent, in units of `tol`. Sums over labelings
# of an OCR word to 1e-3, with 30, 50 and 70 % of the letters hidden: 176, 173 and 169. By
# L-BFGS alone they are 232, 206 and 152, by convex steps alone 192, - and 422.
FIRST_GAP = 100.0

# Iterations, or passes, for the weights that a hinge begins with.
FIRST_STEPS = 30

# What a dual point of likelihoods consists of.
KEPT = ("factors", "starts", "weights")


def likelihood_steps(estimator, problem, start, dual=None, newton=None, is_cheap=True):
    """Steps of a `CRFClassifier`: L-BFGS on the marginal likelihood, and what follows.

    `dual` (BlockOracle): a new dual state, for convex steps, or None. `newton`: (λ,
    number of threads, weights, concave part) -> Newton steps on the problem, or None.
    `is_cheap`: whether these come as soon as L-BFGS is slow, and not where it stalls.
    """
    lam, limits = problem.lam(estimator.C), estimator._limits()
    n_threads = limits["n_threads"]
    oracle, weights, squares = problem.make_sums()

    def make_concave():
        return LogSums(problem.make_completed_sums(), weights, n_threads)

    concave = make_concave()
    options = {"w0": start_weights(problem, start), "squares": squares}
    options |= {"n_threads": n_threads, "concave": concave}
    options["rounding"] = problem.rounding
    first = LBFGSSteps(oracle, weights, lam, **options)
    if dual is None:
        then = newton and (lambda w: newton(lam, n_threads, w, make_concave()))
        return _primal_steps(estimator, first, then, start, is_cheap)
    has_costs = problem.costs is not None
    ascent = MarginalAscent(dual, weights, lam, has_costs=has_costs)
    ascent.rounding = problem.rounding
    if start.state is not None:
        # Without the center of an acceleration.
        state = {name: start.state[name] for name in KEPT if name in start.state}
        ascent.set_state(state, start.places)
    ascend = partial(
        run_crf,
        ascent,
        sampling=estimator._options.sampling,
        acceleration=estimator._options.acceleration,
        rng=estimator._rng(),
    )
    procedure = ConcaveConvex(ascent, concave, first.weights, first=first)
    first_tol = FIRST_GAP * estimator.tol
    return _method(estimator, procedure, ascend, start, {"solver_": "dual"}, first_tol)


def _primal_steps(estimator, first, then, start, is_cheap):
    """Steps of L-BFGS, and from where they are slow those of (w) -> steps, if not None.

    If these are not cheap, from where L-BFGS stalls.

    On columns as raw as Unix time, Newton's method ends where the others creep.
    """
    method = Method("L-BFGS", None, kept=start.kept)

    def begin(name, steps, row=None, w=None):
        method.iterate = turn = Turn(steps, row, w)
        method.certify, method.resolved["solver_"] = turn.check, name
        return turn

    def go_on(row, w):
        # Each bound is of the convex problem at other weights.
        return begin("newton", then(w), row | {"dual_objective": -np.inf}, w)

    def solve(on_pass, history):
        limits = estimator._limits()
        history.step, turn = 0, begin("lbfgs", first)
        turn.then = then and go_on
        if then is not None and is_cheap:
            least_left = min(PASSES_PER_WEIGHT * len(first.weights), limits["max_iter"])
            limit = max(SLOW_IF_LEFT, least_left)
            slow = Slow(Limits(**limits, history=history), FIRST_FORECAST, limit)
            turn.is_over = slow.ends_ascent
        del limits["n_threads"]
        return run_turns(turn, history, **limits, on_pass=on_pass)

    method.solve = solve
    return method


def hinge_steps(estimator, problem, start, method, options):
    """Steps of a `BCFWClassifier`: convex ones, by block Frank-Wolfe steps.

    `method`: block Frank-Wolfe with all labels known. `options`: of `run_bcfw`.
    """
    iterate, w = method.iterate, start_weights(problem, start)
    n_threads = count_threads(estimator.n_jobs)
    if problem.allowed is None:
        concave = Completions(problem)
        w = np.zeros(problem.structure.n_weights_) if w is None else w
    else:
        concave = Maxima(problem.make_completions(), problem.weights, n_threads)
        if w is None:
            first = first_fit(estimator, problem, n_threads)
            w = first.solution
            iterate.n_oracle_calls += first.n_oracle_calls
    procedure = ConcaveConvex(iterate, concave, w)
    names = ("acceleration", "algorithm", "average")
    own = {name: options[name] for name in names}
    planes = make_planes(iterate, estimator.tol, n_threads, **own)
    ascend = partial(run_bcfw, iterate, planes=planes, **options)
    return _method(estimator, procedure, ascend, start, method.resolved)


def first_fit(estimator, problem, n_threads):
    """`SolverResult` of weights that complete labelings well enough for a beginning.

    Those of the marginal likelihood or, of structures without sums, of the hinge over the
    nodes whose labels are known. At zero all completions are alike.
    """
    lam, weights = problem.lam(estimator.C), problem.weights
    oracle = problem.make_oracle()
    max_time = estimator._options.max_time
    limits = {"tol": 0.0, "max_iter": FIRST_STEPS, "max_time": max_time}
    if oracle.has_sums:
        concave = LogSums(problem.make_completions(), weights, n_threads)
        squares = problem.structure._mean_squares(problem.X, weights)
        options = limits | {"n_threads": n_threads, "squares": squares}
        options["rounding"] = problem.rounding
        return run_lbfgs(oracle, weights, lam, concave=concave, **options)
    X, y, kept = known_part(problem.X, problem.y, problem.allowed)
    weights = weights[kept] / weights[kept].sum()
    oracle = problem.structure.make_oracle(X, y)
    iterate, _, _ = start_bcfw(oracle, weights, lam, bounds=bounds_of(problem.structure))
    return run_bcfw(iterate, rng=estimator._rng(), **limits)


class Completions:
    """Scores of the best labelings by a structure's own `complete`: A of hinges."""

    def __init__(self, problem):
        self.problem, self.n_calls = problem, 0
        self.mean_of_y = self._mean(problem.y)

    def _mean(self, y):
        """Σ_i p_i φ(x_i, y_i)."""
        structure, weights = self.problem.structure, self.problem.weights
        total = np.zeros(structure.n_weights_)
        for i, (x, labels) in enumerate(zip(self.problem.X, y, strict=True)):
            if weights[i] > 0.0:
                answer = Answer("joint_feature", structure, i)
                phi = structure.joint_feature(x, labels)
                indices, values = answer.vector(phi, len(total))
                total[indices] += weights[i] * values
        return total

    def at(self, w):
        """A(w), or less if `complete` is not exact, and a subgradient a."""
        if not w.any():
            # All completions are alike: those that are guessed.
            return 0.0, np.zeros(len(w))
        w = np.array(w)
        w.flags.writeable = False
        self.n_calls += np.count_nonzero(self.problem.weights)
        a = self._mean(self.problem.completed(w)) - self.mean_of_y
        return w.dot(a), a


def start_weights(problem, start):
    """The weights of the previous fit, or None."""
    if start.state is None or "weights" not in start.state:
        return None
    return as_floats("weights", start.state["weights"], problem.structure.n_weights_)


def _method(estimator, procedure, ascend, start, resolved, first_tol=0.0):
    def solve(on_pass, history):
        interval = estimator._options.gap_check_interval
        limits = estimator._limits() | {"gap_check_interval": interval}
        limits = Limits(**limits, on_pass=on_pass, history=history)
        return procedure.run(ascend, limits, first_tol)

    name = "The concave-convex procedure"
    return Method(name, solve, procedure, procedure.certify, start.kept, resolved)
