"""OWL-QN for conditional random fields with an L1 penalty, with a certificate."""

import numpy as np

from sklearn_structsvm.solvers.batch.owlqn import SHARES, OrthantSteps
from sklearn_structsvm.solvers.batch.quasi_newton import count_pairs
from sklearn_structsvm.solvers.loop import Rounding, certified, run_steps


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

    Parameters
    ----------
    oracle, weights, lam, n_threads, w0, squares, rounding, **limits
        As for `run_lbfgs`.
    l1_ratio : float
        ρ, above 0 and at most 1.

    Returns
    -------
    SolverResult
        "stalled" if no step decreases the objective beyond rounding. Oracle calls are
        sums over the labelings of an example.
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


class SparseLogLoss:
    """The objective at a point, as `OrthantSteps` needs it, with the same parameters.

    Attributes
    ----------
    weights, smooth_gradient, gradient : ndarray of shape (d,)
        w, the gradient of all but the L1 penalty, and the least subgradient.
    lam : float
        ρ λ.
    value, dual_objective : float
        `dual_objective` is the best lower bound so far.
    """

    def __init__(
        self, oracle, weights, lam, l1_ratio, n_threads=1, w0=None, rounding=None
    ):
        self.rounding = Rounding() if rounding is None else rounding
        self.of_image = self.rounding.of_means
        self.oracle, self.p, self.n_threads = oracle, weights, n_threads
        self.lam, self.ridge = l1_ratio * lam, (1.0 - l1_ratio) * lam
        self.n_evaluations = 0
        self.mean, self.dual_objective = None, -np.inf
        w0 = np.zeros(oracle.n_weights) if w0 is None else np.array(w0)
        found = self.look(w0)
        self.go_to(w0, found, self.evaluate(w0, found))

    def look(self, w):
        """The mean log-loss and its gradient."""
        self.n_evaluations += 1
        return self.oracle.log_loss(self.p, w, self.n_threads)

    def evaluate(self, w, found):
        squares = 0.5 * self.ridge * float(w @ w)
        return squares + self.lam * float(np.abs(w).sum()) + found[0]

    def go_to(self, w, found, value):
        loss, gradient = found
        self.weights, self.value = w, value
        g = self.smooth_gradient = gradient + self.ridge * w
        at_zero = np.sign(g) * np.maximum(np.abs(g) - self.lam, 0.0)
        self.gradient = np.where(w == 0.0, at_zero, g + self.lam * np.sign(w))
        # The entropy is the difference of terms that are huge if w is far off.
        self.error = self.rounding.of_values(w, loss, value)
        point = loss - float(w @ gradient) - self.error, gradient
        bound = self.dual(*point)
        if self.mean is None:
            self.mean = point
        else:
            entropy, image = self.mean
            means = [
                (entropy + s * (point[0] - entropy), image + s * (point[1] - image))
                for s in SHARES
            ]
            values = [self.dual(*mean) for mean in means]
            self.mean = means[int(np.argmax(values))]
            bound = max(bound, *values)
        self.dual_objective = max(self.dual_objective, bound)

    def dual(self, entropy, image):
        """The best objective over scaled versions of a dual point."""
        sizes = np.abs(image) + self.of_image
        sizes = sizes[sizes > self.lam]
        if not len(sizes):
            return entropy
        feasible = self.lam / sizes.max()
        if self.ridge == 0.0:
            return feasible * entropy
        best = -np.inf
        for share in (1.0, 0.5 * (1.0 + feasible), feasible):
            beyond = np.maximum(share * sizes - self.lam, 0.0)
            conjugate = 0.5 * float(beyond @ beyond) / self.ridge
            error = self.rounding.of_values(0.0, conjugate)
            best = max(best, share * entropy - conjugate - error)
        return best

    def slope(self, direction):
        """sup ⟨g, p⟩ over the subgradients at w."""
        w = self.weights
        signs = np.where(w == 0.0, np.sign(direction), np.sign(w))
        return float((self.smooth_gradient + self.lam * signs) @ direction)

    def row(self):
        n_calls = self.n_evaluations * np.count_nonzero(self.p)
        return certified(self.value, self.dual_objective, self.error, n_calls)
