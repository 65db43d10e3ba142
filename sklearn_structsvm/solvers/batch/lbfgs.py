"""L-BFGS for the log-loss of conditional random fields, with a certificate."""

import numpy as np

from sklearn_structsvm.solvers.batch._lbfgs import LimitedMemory
from sklearn_structsvm.solvers.batch.quasi_newton import (
    BUFFER,
    RestartedSteps,
    update_pair,
    wolfe_step,
)
from sklearn_structsvm.solvers.loop import run_passes

# Of a difference between two values of an objective, as a share of it.
ROUNDING = 1e-13


def run_lbfgs(
    oracle,
    weights,
    lam,
    *,
    tol=1e-3,
    max_iter=1000,
    max_time=None,
    n_threads=1,
    w0=None,
    on_pass=None,
    history=None,
):
    """Minimise P(w) = λ/2 ||w||² + Σ_i p_i log Σ_y exp ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩.

    P is strongly convex, and so never more than ||∇P(w)||² / 2λ above its minimum. That
    is the duality gap, too, at the distributions that w gives: their dual point has the
    weights w - ∇P(w) / λ.

    Parameters
    ----------
    oracle : BlockOracle
        That `has_sums`, its dual state as new.
    weights : ndarray of shape (n_blocks,)
        p_i, non-negative, summing to 1.
    lam : float
        λ > 0.
    tol : float
        Stop where the duality gap is at most this.
    max_iter : int
    max_time : float or None
        Seconds.
    n_threads : int
    w0 : ndarray of shape (n_weights,) or None
        Zero by default.
    on_pass : callable or None
        Called after each iteration, as for `run_bcfw`.
    history : History or None
        To be filled: a row for each iteration.

    Returns
    -------
    SolverResult
        "stalled" is where no step makes the objective less but for rounding. Oracle
        calls are sums over the labelings of an example.

    References
    ----------
    .. [1] Liu, Nocedal, "On the limited memory BFGS method for large scale
       optimization", Mathematical Programming 45, 1989.
    """
    objective = RegularisedLogLoss(oracle, weights, lam, n_threads, w0)
    steps = _Steps(objective, LimitedMemory(oracle.n_weights, BUFFER))
    return run_passes(
        lambda deadline: "stalled" if steps.move() else None,
        lambda done: (objective.row(), objective.weights),
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        on_pass=on_pass,
        history=history,
    )


class RegularisedLogLoss:
    """P at a point.

    Attributes
    ----------
    weights, gradient : ndarray of shape (d,)
    value, dual_objective, gap : float
        `dual_objective` is the best lower bound so far.
    """

    def __init__(self, oracle, weights, lam, n_threads=1, w0=None):
        self.oracle, self.p, self.lam = oracle, weights, lam
        self.n_threads = n_threads
        self.n_evaluations = 0
        self.dual_objective = -np.inf
        w0 = np.zeros(oracle.n_weights) if w0 is None else np.array(w0)
        self._take(w0, *self._evaluate(w0))

    def _evaluate(self, w):
        loss, gradient = self.oracle.log_loss(self.p, w, self.n_threads)
        self.n_evaluations += 1
        gradient += self.lam * w
        return 0.5 * self.lam * w.dot(w) + loss, gradient

    def _take(self, w, value, gradient):
        self.weights, self.value, self.gradient = w, value, gradient
        self.probed = None
        gap = 0.5 * gradient.dot(gradient) / self.lam
        self.dual_objective = max(self.dual_objective, value - gap)
        # A difference is no smaller than its rounding.
        self.gap = min(gap, value - self.dual_objective + ROUNDING * abs(value))

    def probe(self, direction, step):
        """P(w + η p), and its slope along p there."""
        w = self.weights + step * direction
        self.probed = w, *self._evaluate(w)
        return self.probed[1], float(self.probed[2] @ direction)

    def gains(self):
        """Whether it is better where it was probed last, but for rounding."""
        _, value, gradient = self.probed
        if value < self.value - ROUNDING * abs(self.value):
            return True
        return gradient @ gradient < self.gradient @ self.gradient

    def accept(self):
        """Go to where it was probed last."""
        self._take(*self.probed)

    def row(self):
        return {
            "objective": self.value,
            "dual_objective": self.dual_objective,
            "dual_gap": self.gap,
            "n_oracle_calls": self.n_evaluations * np.count_nonzero(self.p),
        }


class _Steps(RestartedSteps):
    """Iterations of L-BFGS."""

    def __init__(self, objective, inverse):
        self.objective, self.inverse = objective, inverse

    def _attempt(self):
        objective, inverse = self.objective, self.inverse
        w, gradient = objective.weights, objective.gradient
        direction = -inverse.multiply(gradient)
        slope = float(gradient @ direction)
        if not slope < 0.0:
            return False
        # Without an estimate of the Hessian there is no length to believe in.
        first = 1.0 if inverse.count else 1.0 / np.sqrt(direction @ direction)
        if wolfe_step(objective, direction, slope, first=first) == 0.0:
            return False
        if not objective.gains():
            return False
        objective.accept()
        update_pair(inverse, objective.weights - w, objective.gradient - gradient)
        return True
