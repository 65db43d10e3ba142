"""OWL-QN for conditional random fields with an L1 penalty, with a certificate."""

import numpy as np

from sklearn_structsvm.solvers.batch.composite import SparseComposite
from sklearn_structsvm.solvers.batch.owlqn import SHARES, OrthantSteps
from sklearn_structsvm.solvers.batch.quasi_newton import count_pairs
from sklearn_structsvm.solvers.loop import Rounding, run_steps


def run_elastic_net(
    oracle,
    weights,
    lam,
    l1_ratio,
    *,
    n_threads=1,
    w0=None,
    squares=None,
    rounding=None,
    **limits,
):
    """Minimize Ω(w) + Σ_i p_i log Σ_y exp ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩.

    The penalty is Ω(w) = λ ((1 - ρ)/2 ||w||² + ρ ||w||₁). The steps are those of `owlqn`.

    *The certificate.* With R the mean log-loss, the distributions that w gives have the
    image g = -∇R(w) and the mean entropy H = R(w) + ⟨w, g⟩. The entropy is concave. So an
    average of such distributions over several w has the averages of g and at least the
    average of H. If a share s of it is mixed with the true labelings, these become s g
    and s H. All of these are dual points, with an objective of at least s H - Ω*(s g).
    The best of them bounds the optimum, after H is lowered and the sizes of g are raised
    by their rounding errors.

    `oracle`, `weights`, `lam`, `n_threads`, `w0`, `squares`, `rounding`, `**limits`: as
    for `run_lbfgs`. `l1_ratio`: ρ, above 0 and at most 1. Returns a `SolverResult`:
    "stalled" if no step decreases the objective beyond rounding. Oracle calls are sums
    over the labelings of an example.
    """
    steps = SparseSteps(oracle, weights, lam, l1_ratio, n_threads, w0, squares, rounding)
    return run_steps(steps, **limits)


class SparseSteps(OrthantSteps):
    """The steps of `run_elastic_net`, one at a time, with its parameters."""

    def __init__(
        self,
        oracle,
        weights,
        lam,
        l1_ratio,
        n_threads=1,
        w0=None,
        squares=None,
        rounding=None,
    ):
        objective = SparseLogLoss(oracle, weights, lam, l1_ratio, n_threads, w0, rounding)
        squares = np.zeros(oracle.n_weights) if squares is None else squares
        super().__init__(
            objective,
            buffer=count_pairs(oracle.n_weights),
            scales=np.sqrt(lam / (lam + squares)),
        )


class SparseLogLoss(SparseComposite):
    """The objective of `run_elastic_net` at a point, with the same parameters.

    `concave` or None: as for `run_lbfgs`, with ρ = 0.

    Attributes: `point` (float, ndarray): a lower bound on the mean entropy at w, and the
    image.
    """

    def __init__(
        self,
        oracle,
        weights,
        lam,
        l1_ratio,
        n_threads=1,
        w0=None,
        rounding=None,
        concave=None,
    ):
        rounding = Rounding() if rounding is None else rounding
        penalties = l1_ratio * lam, (1.0 - l1_ratio) * lam
        super().__init__(oracle.n_weights, rounding, *penalties, w0)
        self.oracle, self.p, self.n_threads = oracle, weights, n_threads
        self.n_evaluations, self.mean = 0, None
        self.concave, self.is_convex = concave, concave is None
        found = self.look(self.weights)
        self.go_to(self.weights, found, self.evaluate(self.weights, found))

    def n_calls(self):
        n_calls = self.n_evaluations * np.count_nonzero(self.p)
        return n_calls if self.concave is None else n_calls + self.concave.n_calls

    def look(self, w):
        """The mean log-loss and its gradient."""
        self.n_evaluations += 1
        loss, gradient = self.oracle.log_loss(self.p, w, self.n_threads)
        if self.concave is None:
            return loss, gradient
        value, slope = self.concave.at(w)
        return loss - value, gradient - slope

    def evaluate(self, w, found):
        return self.penalized(w, found[0])

    def go_to(self, w, found, value):
        self.found, (loss, gradient) = found, found
        # The entropy is the difference of terms that are huge if w is far off.
        self.take(w, value, loss)
        self.take_gradient(gradient)
        if self.concave is not None:
            self.note(value - self.square_of(self.smooth_gradient))
            return
        point = self.point = loss - float(w @ gradient) - self.error, gradient
        bound = self.dual(point[0], self.sizes(gradient))
        if self.mean is None:
            self.mean = point
        else:
            entropy, image = self.mean
            means = [
                (entropy + s * (point[0] - entropy), image + s * (point[1] - image))
                for s in SHARES
            ]
            values = [self.dual(h, self.sizes(u)) for h, u in means]
            self.mean = means[int(np.argmax(values))]
            bound = max(bound, *values)
        self.dual_objective = max(self.dual_objective, bound)

    def dual(self, entropy, sizes):
        """The best objective over scaled versions of a dual point; `sizes` as below."""
        best = -np.inf
        for share in self.scales(sizes):
            conjugate = self.conjugate(share * sizes)
            error = self.rounding.of_values(0.0, conjugate)
            best = max(best, share * entropy - conjugate - error)
        return best

    def raise_bound(self, entropy, sizes):
        """Use distributions whose image is no larger. Returns whether the gap halves."""
        gap = self.value - self.dual_objective
        self.dual_objective = max(self.dual_objective, self.dual(entropy, sizes))
        return self.value - self.dual_objective < 0.5 * gap
