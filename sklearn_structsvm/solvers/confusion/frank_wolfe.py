"""Frank-Wolfe methods for smooth confusion metrics without constraints."""

import numpy as np
from scipy.optimize import minimize_scalar

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.options import Option
from sklearn_structsvm._utils.tolerances import UNNOTICED
from sklearn_structsvm.solvers.accuracy import INNER_SHARE, ROUGH_SHARE
from sklearn_structsvm.solvers.confusion.bounds import tangent_minorant
from sklearn_structsvm.solvers.confusion.column_generation import least_violated
from sklearn_structsvm.solvers.confusion.incumbent import Incumbent
from sklearn_structsvm.solvers.confusion.master import START_SHARE
from sklearn_structsvm.solvers.confusion.pruning import best_weights
from sklearn_structsvm.solvers.confusion.solver import ConfusionSolver

STEPS = {"paper", "line_search", "away", "pairwise", "fully_corrective"}


class FrankWolfe(ConfusionSolver):
    """Minimize a smooth metric ψ over the achievable confusion tensors.

    Algorithm 1 of the paper: the oracle's answer C̃ to the loss ∇ψ(C) is mixed into C,
    and <∇ψ(C), C - C̃> bounds how far ψ(C) is from its minimum, if ψ is convex. A ratio
    of linear functions is not convex, but has a bound as well. For any other metric the
    run ends as "stationary", with the bound from its ratios if it has any. With a metric
    that is not smooth, such as min-max, the method may not converge (figure 10 of the
    paper).

    The paper divides the gradient by its largest entry. This does not change the oracle's
    answers and is omitted. Its line 6 has the step 2 / (t + 1) from t = 1 on, so the
    first answer replaces the start, which is here the oracle's answer for the slope of ψ
    at the uniformly random classifier.

    `step` ({"line_search", "paper", "away", "pairwise", "fully_corrective"}): "paper":
    2 / (t + 1), which takes O(1 / ε) calls (Theorem 12). "line_search": the best step.
    "away" and "pairwise": also move weight away from the classifier that is worst for
    the gradient [1]_, so the gap falls much faster toward the end. "fully_corrective":
    the best mixture of all classifiers found so far.

    .. [1] Lacoste-Julien, Jaggi, "On the global linear convergence of Frank-Wolfe
       optimization variants", NeurIPS 2015.
    """

    CALLED = "solver='frank_wolfe'"
    OPTIONS = {
        "step": Option("line_search", [StrOptions(STEPS)]),
    }

    def __init__(self, problem, tol, max_iter, options):
        super().__init__(problem, tol, max_iter, options)
        if problem.constrained:
            raise ValueError("run_frank_wolfe has no constraints: run_split_fw has.")
        self.incumbent = Incumbent(problem, tol, least_violated)
        self.columns = self.incumbent.columns
        self.n_steps = 0
        self.weights, self.share = None, ROUGH_SHARE

    def start(self):
        """The oracle's answer to the slope at the uniformly random classifier."""
        minorant = tangent_minorant(self.problem, self.problem.uniform, 1.0)
        self.C, *_ = self.incumbent.certify(minorant)
        self.incumbent.take(np.ones(1))
        self.weights = np.ones(1)

    def move(self):
        if self.weights is None:
            self.start()
        self.n_steps += 1
        before, gap_before = self.weights, self.incumbent.gap
        gap = min(gap_before, 1.0)
        minorant = tangent_minorant(self.problem, self.C, gap)
        C, index, _, low = self.incumbent.certify(minorant)
        n_new = len(self.columns) - len(before)
        self.weights = before = np.append(before, np.zeros(n_new))
        # If no classifier is new, the weights of the known ones are not good enough yet.
        self.share = ROUGH_SHARE if n_new else INNER_SHARE * self.share
        value = self.problem.value(self.C)
        if not self.incumbent.bounds.known and value - low <= self.tol:
            return "stationary"
        if self.step == "fully_corrective":
            self.weights = self.corrected(index, gap)
        else:
            self.weights = self.stepped(index, minorant.L.ravel())
        self.C = self.columns.mix(self.weights)
        self.incumbent.take(self.weights)
        # The smaller the gap, the nearer to C the next slope is taken, and the sharper is
        # its bound.
        stays = np.array_equal(before, self.weights)
        return "stalled" if stays and not self.incumbent.gap < gap_before else None

    def corrected(self, index, gap):
        """The best weights of all columns."""
        start = (1.0 - START_SHARE) * self.weights
        start[index] += START_SHARE
        tol = max(self.share * gap, ROUGH_SHARE * self.tol)
        return best_weights(self.problem, self.columns, tol=tol, weights=start)[0]

    def stepped(self, index, slopes):
        """The weights after a step toward a column, away from one, or both."""
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
        share = self.line_search(way, longest)
        weights = self.weights + share * way
        if share == longest:
            # Remove what rounding leaves of a weight that is used up.
            weights[np.argmin(way)] = max(0.0, weights[np.argmin(way)])
            weights[weights < UNNOTICED**2] = 0.0
        return np.maximum(weights, 0.0) / np.maximum(weights, 0.0).sum()

    def line_search(self, way, longest):
        """The step in [0, longest] that minimizes ψ; both ends are tried as well."""
        if longest <= 0.0:
            return 0.0
        along = self.columns.mix(way)

        def value(share):
            return self.problem.value(self.C + share * along)

        return min((best_step(value, longest), longest), key=value)


def best_step(value, longest=1.0):
    """The step inside [0, longest] that minimizes value(step)."""
    return minimize_scalar(
        value,
        bounds=(0.0, longest),
        method="bounded",
        options={"xatol": UNNOTICED * longest},
    ).x


run_frank_wolfe = FrankWolfe.run
