"""Newton's method for few weights of structures with sums, with an elastic net."""

import numpy as np

from sklearn_structsvm._utils.tolerances import SUM_ROUNDING, UNNOTICED
from sklearn_structsvm.solvers.batch.elastic_net import SparseLogLoss
from sklearn_structsvm.solvers.batch.feasible_image import feasible_point
from sklearn_structsvm.solvers.batch.l1_newton import LEAST_SCALE
from sklearn_structsvm.solvers.batch.proximal_newton import ModelSteps
from sklearn_structsvm.solvers.loop import run_steps

# On a chain, Newton's method takes about ten steps, whose Hessian costs as much as a pass
# for each 5 weights. Others go on with it if they need more passes than that.
PASSES_PER_WEIGHT = 2.0

# -log p for the least probability p, which is the most that an entropy changes by for a
# change of p.
MOST_SURPRISE = 745.0


def run_chain_newton(
    oracle,
    weights,
    hessian,
    lam,
    l1_ratio,
    *,
    n_threads=1,
    w0=None,
    rounding=None,
    nodes=None,
    **limits,
):
    """Minimize Ω(w) + Σ_i p_i log Σ_y exp ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩.

    The steps are those of `proximal_newton`, and the certificate that of `elastic_net`.

    `oracle`, `weights`, `lam`, `l1_ratio`, `n_threads`, `w0`, `rounding`, `**limits`:
    as for `run_elastic_net`. `hessian`: w -> second derivatives of the loss at w.
    `nodes` or None: w -> the positions as rows of a `SmoothRisk` in the first weights,
    its response at w, and the sum of their weights. They decide whether dual points are
    feasible if columns are so large that λ is a rounding error. Returns a
    `SolverResult`: "stalled" if no step decreases the objective beyond rounding. Oracle
    calls are sums over the labelings of an example; the Hessian counts as one for each.
    """
    steps = ChainNewtonSteps(
        oracle, weights, hessian, lam, l1_ratio, n_threads, w0, rounding, nodes
    )
    return run_steps(steps, **limits)


class ChainNewtonSteps(ModelSteps):
    """The steps, one at a time, with the parameters of the above.

    `concave` or None: a function to subtract, as for `run_lbfgs`, with ρ = 0. `bend`: w
    -> its second derivatives. Where the difference is not convex, steps are those for its
    tangent plane, which bounds the difference from above.
    """

    def __init__(
        self,
        oracle,
        weights,
        hessian,
        lam,
        l1_ratio,
        n_threads=1,
        w0=None,
        rounding=None,
        nodes=None,
        concave=None,
        bend=None,
    ):
        self.objective = SparseLogLoss(
            oracle, weights, lam, l1_ratio, n_threads, w0, rounding, concave
        )
        self.hessian, self.n_hessians, self.nodes = hessian, 0, nodes
        self.bend = bend
        self.largest = np.zeros(len(self.objective.weights))

    @property
    def weights(self):
        return self.objective.weights

    def row(self):
        row = self.objective.row()
        row["n_oracle_calls"] += self.n_hessians * np.count_nonzero(self.objective.p)
        return row

    def move(self, deadline=np.inf):
        """Make one step. Returns whether there was one."""
        H = self.hessian(self.objective.weights)
        self.n_hessians += 1
        diagonal = np.diagonal(H) + self.objective.ridge
        if not np.isfinite(diagonal).all():
            return False
        # Where probabilities are close to 0 and 1, little is left of large terms.
        self.largest = np.maximum(self.largest, diagonal)
        diagonal = np.maximum(diagonal, SUM_ROUNDING * self.largest)
        diagonal += LEAST_SCALE * diagonal.max(initial=0.0)
        diagonal[diagonal <= 0.0] = 1.0
        own = np.arange(len(H))
        if self.bend is not None:
            self.n_hessians += 1
            bent = H - self.bend(self.objective.weights)
            if self._minimize_model(bent, own, diagonal, most_damping=self.damping):
                return True
        return self._minimize_model(H, own, diagonal) or self._fit_bounds()

    def _fit_bounds(self):
        """Bring the dual point within its bounds. Returns whether the gap halves."""
        objective = self.objective
        lam, errors = objective.lam, objective.rounding.of_means
        is_rough = self.nodes is not None and np.max(errors) > UNNOTICED * lam
        if objective.ridge or not is_rough:
            return False
        risk, response, total = self.nodes(objective.weights)
        n, B = risk.n_weights, risk.coefficients(response)
        found = feasible_point(risk, response, B, objective.weights[:n], lam / total)
        if found is None:
            return False
        # The probabilities of pairs change by no more than twice as much as those of
        # positions, and entropies by a multiple of that.
        entropy, image = objective.point
        moved = total * float(np.abs(found[0] - B).sum())
        others = np.abs(image[n:]) + errors[n:] + 2.0 * moved
        largest = max(total * found[1], others.max(initial=0.0))
        return objective.raise_bound(entropy - MOST_SURPRISE * 3.0 * moved, largest)
