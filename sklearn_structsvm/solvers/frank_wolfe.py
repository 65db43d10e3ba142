"""Frank-Wolfe methods for confusion metrics, without constraints and with them."""

import numpy as np
from scipy.optimize import minimize_scalar

from sklearn_structsvm.solvers.bounds import tangent_minorant
from sklearn_structsvm.solvers.feasible_rows import FeasibleRows
from sklearn_structsvm.solvers.gathering import Gathering
from sklearn_structsvm.solvers.master import START_SHARE
from sklearn_structsvm.solvers.mixture import MixtureHistory, run_iterations
from sklearn_structsvm.solvers.pruning import best_weights

# Accuracy of line searches, in the step.
STEP_ACCURACY = 1e-6

# Share of the gap to which "fully_corrective" optimises the weights: optimised further,
# they take twice the calls on abalone.
CORRECTIVE = 0.5

# The weight ζ of the quadratic penalty and the schedule of dual steps η over thirds of
# the iterations: what the paper's experiments have (appendix B.1).
PENALTY = 10.0
DUAL_STEPS = (0.5, 0.1, 0.001)

# Iterations of SplitFW between two mixtures that meet the constraints.
CHECK_INTERVAL = 25

STEPS = ("paper", "line_search", "away", "pairwise", "fully_corrective")
SPLIT_STEPS = ("line_search", "paper")


def run_frank_wolfe(
    problem,
    *,
    step="line_search",
    tol=1e-3,
    max_iter=5000,
    max_time=None,
    on_iteration=None,
    history=None,
):
    """Minimise a smooth metric ψ over the achievable confusion tensors.

    Algorithm 1 of [1]_: the oracle's answer C̃ to the loss ∇ψ(C) is mixed into C, and
    <∇ψ(C), C - C̃> bounds how far ψ(C) is from its minimum, if ψ is convex. A ratio of
    linear functions is neither, but has a bound as well; a metric that is neither ends
    "stationary", with the bound of its parts if it has any. With a metric that is not
    smooth, such as min-max, the method need not converge (figure 10 of [1]_).

    The paper's division of the gradient by its largest entry changes no answer of the
    oracle and is left out. Its line 6 has the step 2 / (t + 1) from t = 1 on: the first
    answer is taken whole, and the start, the oracle's answer to the slope of ψ at the
    uniformly random classifier here, is forgotten.

    Parameters
    ----------
    problem : ConfusionProblem
        Without constraints; `run_split_fw` is for those.
    step : {"line_search", "paper", "away", "pairwise", "fully_corrective"}
        "paper": 2 / (t + 1), which takes O(1 / ε) calls (Theorem 12). "line_search": the
        best step. "away" and "pairwise": also moves weight off the classifier that is
        worst for the gradient [2]_, with which the gap falls much faster towards the end.
        "fully_corrective": the best mixture of all classifiers found so far.
    tol : float
        Stop where value - bound is at most this.
    max_iter : int
        Calls of the oracle, the first one aside.
    max_time : float or None
        Seconds.
    on_iteration : callable or None
        As for `run_column_generation`.
    history : MixtureHistory or None

    Returns
    -------
    MixtureResult

    Raises
    ------
    ValueError
        If the problem has constraints, or there is no such step.

    References
    ----------
    .. [1] Narasimhan, Ramaswamy, Tavker, Khurana, Netrapalli, Agarwal, "Consistent
       multiclass algorithms for complex metrics and constraints", 2022.
    .. [2] Lacoste-Julien, Jaggi, "On the global linear convergence of Frank-Wolfe
       optimization variants", NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.confusion.cells import Cells
    >>> from sklearn_structsvm.confusion.lmo import PluginLMO
    >>> from sklearn_structsvm.confusion.names import get_metric
    >>> from sklearn_structsvm.confusion.problem import ConfusionProblem
    >>> from sklearn_structsvm.solvers.frank_wolfe import run_frank_wolfe
    >>> probabilities = np.random.default_rng(0).dirichlet([8.0, 1.0, 1.0], size=500)
    >>> lmo = PluginLMO(probabilities)
    >>> cells = Cells(lmo.priors, np.arange(3))
    >>> problem = ConfusionProblem(get_metric("h_mean", cells.classes), lmo, cells)
    >>> result = run_frank_wolfe(problem, tol=1e-3)
    >>> result.status, result.bound <= result.value <= result.bound + 1e-3
    ('converged', True)
    """
    if problem.constrained:
        raise ValueError("run_frank_wolfe has no constraints: run_split_fw has.")
    if step not in STEPS:
        raise ValueError(f"step must be one of {STEPS}, got {step!r}.")
    history = MixtureHistory() if history is None else history
    search = _FrankWolfe(problem, step, tol)
    return run_iterations(
        search.move,
        search.gathering,
        history,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        on_iteration=on_iteration,
    )


class _FrankWolfe:
    """The iterate, as weights of the columns, and its moves."""

    def __init__(self, problem, step, tol):
        self.problem, self.step, self.tol = problem, step, tol
        self.gathering = Gathering(problem, tol)
        self.columns = self.gathering.columns
        self.n_steps = 0
        self.weights = None

    def start(self):
        """The oracle's answer to the slope at the uniformly random classifier."""
        minorant = tangent_minorant(self.problem, self.problem.uniform, 1.0)
        self.C, *_ = self.gathering.certify(minorant)
        self.gathering.take(np.ones(1))
        self.weights = np.ones(1)

    def move(self):
        if self.weights is None:
            self.start()
        self.n_steps += 1
        gap = min(self.gathering.gap, 1.0)
        minorant = tangent_minorant(self.problem, self.C, gap)
        C, index, _, low = self.gathering.certify(minorant)
        self.weights = np.append(
            self.weights, np.zeros(len(self.columns) - len(self.weights))
        )
        value = self.problem.value(self.C)
        if not self.gathering.bounds.known and value - low <= self.tol:
            return "stationary"
        before = self.weights
        if self.step == "fully_corrective":
            self.weights = self.corrected(index, gap)
        else:
            self.weights = self.stepped(index, minorant.L.ravel())
        self.C = self.columns.mix(self.weights)
        self.gathering.take(self.weights)
        return "stalled" if np.array_equal(before, self.weights) else None

    def corrected(self, index, gap):
        """The best weights of all columns."""
        start = (1.0 - START_SHARE) * self.weights
        start[index] += START_SHARE
        tol = max(CORRECTIVE * gap, CORRECTIVE * self.tol)
        return best_weights(self.problem, self.columns, tol=tol, weights=start)[0]

    def stepped(self, index, slopes):
        """The weights after a step towards a column, away from one, or both."""
        to = np.zeros_like(self.weights)
        to[index] = 1.0
        if self.step == "paper":
            share = 2.0 / (self.n_steps + 1.0)
            return (1.0 - share) * self.weights + share * to
        way, longest = to - self.weights, 1.0
        if self.step in ("away", "pairwise"):
            held = np.flatnonzero(self.weights)
            worst = held[np.argmax(self.columns.flat[held] @ slopes)]
            off = np.zeros_like(to)
            off[worst] = 1.0
            costs = self.columns.flat @ slopes
            cost = self.weights @ costs
            if self.step == "pairwise":
                way, longest = to - off, self.weights[worst]
            elif costs[worst] - cost > cost - costs[index]:
                rest = 1.0 - self.weights[worst]
                way = self.weights - off
                longest = self.weights[worst] / rest if rest > 0.0 else 0.0
        share = self.best_step(way, longest)
        weights = self.weights + share * way
        if share == longest:
            # What rounding leaves of the weight that is used up.
            weights[np.argmin(way)] = max(0.0, weights[np.argmin(way)])
            weights[weights < STEP_ACCURACY**2] = 0.0
        return np.maximum(weights, 0.0) / np.maximum(weights, 0.0).sum()

    def best_step(self, way, longest):
        """The step in [0, longest] that makes ψ least; its ends are tried too."""
        if longest <= 0.0:
            return 0.0
        along = self.columns.mix(way)

        def value(share):
            return self.problem.value(self.C + share * along)

        found = minimize_scalar(
            value,
            bounds=(0.0, longest),
            method="bounded",
            options={"xatol": STEP_ACCURACY * longest},
        )
        return min((found.x, longest), key=value)


def run_split_fw(
    problem,
    *,
    step="line_search",
    penalty=PENALTY,
    dual_steps=DUAL_STEPS,
    tol=1e-3,
    max_iter=5000,
    max_time=None,
    check_interval=CHECK_INTERVAL,
    on_iteration=None,
    history=None,
):
    """Minimise a smooth metric ψ under convex constraints, by splitting.

    Algorithm 5 of [1]_ (SplitFW): min ψ(C) + ψ(F) with C = F, C achievable and F in the
    set ℱ of tensors that meet the constraints, by Frank-Wolfe steps in both for the
    augmented Lagrangian and gradient steps in the multipliers λ of C = F. What is
    returned is the best mixture of the classifiers found that meets the constraints, the
    pruning of section 8.2.

    With a = ∇ψ(C) + λ + ζ (C - F) and b = ∇ψ(F) - λ - ζ (C - F), the two linear programs
    of an iteration, over 𝒞 and over ℱ, bound ψ: for any C' in both,
    2 ψ(C') >= <∇ψ(C) + ∇ψ(F), C'> + h_C + h_F = <a, C'> + <b, C'> + h_C + h_F, the
    tangents being below ψ.

    ℱ is made of C >= 0 with the problem's row sums, where the paper has the simplex: it
    is smaller, and ψ is convex on it. C and F are measured in rates of their rows
    (section 8.2).

    Parameters
    ----------
    problem : ConfusionProblem
    step : {"line_search", "paper"}
        Line 7 of the algorithm, or 2 / (t + 2) as in the paper's experiments.
    penalty : float
        ζ.
    dual_steps : tuple of float
        η in each part of the `max_iter` iterations; divided by the iteration.
    tol, max_iter, max_time, on_iteration, history
        As for `run_frank_wolfe`.
    check_interval : int
        Iterations between two prunings at first; there are fewer later.

    Returns
    -------
    MixtureResult

    Raises
    ------
    ValueError
        If there is no such step.

    References
    ----------
    .. [1] Narasimhan, Ramaswamy, Tavker, Khurana, Netrapalli, Agarwal, "Consistent
       multiclass algorithms for complex metrics and constraints", 2022.
    """
    if step not in SPLIT_STEPS:
        raise ValueError(
            f"With constraints, step must be one of {SPLIT_STEPS}, got {step!r}."
        )
    history = MixtureHistory() if history is None else history
    search = _SplitFrankWolfe(problem, step, penalty, dual_steps, max_iter, tol)
    search.check_interval = check_interval
    return run_iterations(
        search.move,
        search.gathering,
        history,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        on_iteration=on_iteration,
    )


class _SplitFrankWolfe:
    """C and F in coordinates, their multipliers, and their moves."""

    def __init__(self, problem, step, penalty, dual_steps, max_iter, tol):
        self.problem, self.step, self.penalty = problem, step, penalty
        self.dual_steps, self.max_iter = dual_steps, max_iter
        self.gathering = Gathering(problem, tol, recombines=True)
        self.feasible = FeasibleRows(problem, self.gathering.check_feasible)
        self.coordinates = self.feasible.coordinates
        self.t = 0

    def start(self):
        minorant = tangent_minorant(self.problem, self.problem.uniform, 1.0)
        C, *_ = self.gathering.certify(minorant)
        self.c = self.coordinates.of(C)
        self.f, _ = self.feasible.minimise(np.zeros(self.coordinates.n))
        self.multipliers = np.zeros(self.coordinates.n)

    def move(self):
        if self.t == 0:
            self.start()
        self.t += 1
        to_c, to_f = self.targets()
        share = 2.0 / (self.t + 2.0)
        if self.step == "line_search":
            share = self.best_step(to_c - self.c, to_f - self.f)
        self.c = self.c + share * (to_c - self.c)
        self.f = self.f + share * (to_f - self.f)
        part = len(self.dual_steps) * (self.t - 1) // self.max_iter
        eta = self.dual_steps[min(part, len(self.dual_steps) - 1)]
        self.multipliers = self.multipliers + eta / self.t * (self.c - self.f)
        if self.gathering.is_due(self.t, self.check_interval):
            self.gathering.recombine()
        return None

    def targets(self):
        """The answers of the two linear programs; and the bound that they give."""
        problem, z = self.problem, self.coordinates
        pull = self.multipliers + self.penalty * (self.c - self.f)
        slopes, constants = [], 0.0
        for point in (self.c, self.f):
            G, h = problem.tangent(z.tensor(point))
            slopes.append(z.slopes(G))
            constants += h + z.constant(G)
        a, b = slopes[0] + pull, slopes[1] - pull
        C, _, _, least = self.gathering.ask(z.loss(a))
        to_f, least_f = self.feasible.minimise(b)
        if problem.convex:
            self.gathering.note_dual(0.5 * (least + least_f + constants))
        return z.of(C), to_f

    def best_step(self, along_c, along_f):
        """Line 7: the step in [0, 1] that makes the augmented Lagrangian least."""
        z, apart, along = self.coordinates, self.c - self.f, along_c - along_f

        def lagrangian(share):
            off = apart + share * along
            return (
                self.problem.value(z.tensor(self.c + share * along_c))
                + self.problem.value(z.tensor(self.f + share * along_f))
                + self.multipliers @ off
                + 0.5 * self.penalty * (off @ off)
            )

        found = minimize_scalar(
            lagrangian,
            bounds=(0.0, 1.0),
            method="bounded",
            options={"xatol": STEP_ACCURACY},
        )
        return found.x

