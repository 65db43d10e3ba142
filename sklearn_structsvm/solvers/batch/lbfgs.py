"""L-BFGS for the log-loss of conditional random fields, with a certificate."""

import numpy as np

from sklearn_structsvm._utils.tolerances import VALUE_ROUNDING
from sklearn_structsvm.solvers.accuracy import INNER_SHARE
from sklearn_structsvm.solvers.batch._lbfgs import LimitedMemory
from sklearn_structsvm.solvers.batch.composite import Composite
from sklearn_structsvm.solvers.batch.quasi_newton import (
    BUFFER,
    RestartedSteps,
    count_pairs,
    update_pair,
    wolfe_step,
)
from sklearn_structsvm.solvers.loop import History, Rounding, run_steps

# Where values agree up to rounding, gradients go on to fall, but not at each step: with a
# column of Unix time by a factor of a hundred. After so many steps in which they do not,
# the estimate of the Hessian has seen no others, twice over.
PATIENCE = 2 * BUFFER


def run_lbfgs(
    oracle,
    weights,
    lam,
    *,
    n_threads=1,
    w0=None,
    squares=None,
    concave=None,
    rounding=None,
    **limits,
):
    """Minimize P(w) = λ/2 ||w||² + Σ_i p_i log Σ_y exp ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩.

    P is strongly convex, so it is at most ||∇P(w)||² / 2λ above its minimum. This is also
    the duality gap at the distributions that w gives, whose dual point has the weights w
    - ∇P(w) / λ.

    `oracle` (BlockOracle or BoundedLogLoss): an oracle that `has_sums`, with a new dual
      state. If it has bounds of the sums, P and its gap are those of the bounds.
    `weights` (n_blocks,): p_i, non-negative, summing to 1.
    `w0` (n_weights,) or None: zero by default.
    `squares` (n_weights,) or None: the size of P's second derivatives without λ, from
      which the first, diagonal estimate of the Hessian is made. Without them, columns
      of different scales need very many steps.
    `concave` or None: a convex function A to subtract, with a method `at` like that of
      `sklearn_structsvm.solvers.blocks.concave_convex.LogSums`. The bound is then that
      of the convex problem with the plane of A at w.
    `**limits`: as for `run_passes`.
    Returns a `SolverResult`: "stalled" if no step decreases the objective beyond
      rounding. Oracle calls are sums over the labelings of an example.

    .. [1] Liu, Nocedal, "On the limited memory BFGS method for large scale
       optimization", Mathematical Programming 45, 1989.
    """
    steps = LBFGSSteps(oracle, weights, lam, n_threads, w0, squares, concave, rounding)
    if concave is not None:
        limits["history"] = limits.get("history") or History()
        limits["history"].step = 0
    return run_steps(steps, **limits)


class RegularizedLogLoss(Composite):
    """P at a point, with its `gradient`."""

    def __init__(
        self, oracle, weights, lam, n_threads=1, w0=None, concave=None, rounding=None
    ):
        rounding = Rounding() if rounding is None else rounding
        super().__init__(oracle.n_weights, rounding, ridge=lam, w0=w0)
        self.concave, self.is_convex = concave, concave is None
        self.oracle, self.p, self.n_threads = oracle, weights, n_threads
        self.n_evaluations = self.n_idle = 0
        self.least_square = np.inf
        # No loss is negative, but for a function that is subtracted.
        self.dual_objective = 0.0 if self.is_convex else -np.inf
        self._take(self.weights, *self._evaluate(self.weights))

    def n_calls(self):
        n_calls = self.n_evaluations * np.count_nonzero(self.p)
        return n_calls if self.concave is None else n_calls + self.concave.n_calls

    def _evaluate(self, w):
        loss, gradient = self.oracle.log_loss(self.p, w, self.n_threads)
        self.n_evaluations += 1
        gradient += self.ridge * w
        if self.concave is not None:
            value, slope = self.concave.at(w)
            loss, gradient = loss - value, gradient - slope
        return self.penalized(w, loss), gradient

    def _take(self, w, value, gradient, gap=None):
        self.take(w, value)
        self.gradient, self.probed = gradient, None
        self.least_square = min(self.least_square, gradient @ gradient)
        self.note(value - (self.square_of(gradient) if gap is None else gap))

    def probe(self, direction, step):
        """P(w + η p), and its slope along p there."""
        w = self.weights + step * direction
        self.probed = w, *self._evaluate(w)
        return self.probed[1], float(self.probed[2] @ direction)

    def gains(self):
        """Whether the last probed point is better, or may lead to a better one."""
        _, value, gradient = self.probed
        rounding = VALUE_ROUNDING * abs(self.value)
        if value > self.value + rounding and not self.is_convex:
            return False
        is_better = value < self.value - rounding
        is_better = is_better or gradient @ gradient < self.least_square
        self.n_idle = 0 if is_better else self.n_idle + 1
        return self.n_idle <= PATIENCE

    def accept(self):
        """Move to the last probed point."""
        self._take(*self.probed)


class RegularizedBound(RegularizedLogLoss):
    """The same for upper bounds of the log-losses that `tighten` lowers.

    P is jointly convex in w and the messages of the bounds. Lines are searched with the
    current messages, and more are passed after each step. The dual point has the
    marginals that `tighten` ends with.
    """

    def _take(self, w, value, gradient):
        square = float(gradient @ gradient)
        loss, gradient, slack, direction = self.oracle.tighten(
            self.p, w, INNER_SHARE * 0.5 * square / self.ridge, self.n_threads
        )
        self.n_evaluations += 2
        direction += self.ridge * w
        gap = slack + self.square_of(direction)
        super()._take(w, self.penalized(w, loss), gradient + self.ridge * w, gap)


class LBFGSSteps(RestartedSteps):
    """Iterations of L-BFGS, one at a time; see `run_lbfgs`.

    They use u = w / scales, in which second derivatives have similar sizes.
    """

    method = "lbfgs"

    def __init__(
        self,
        oracle,
        weights,
        lam,
        n_threads=1,
        w0=None,
        squares=None,
        concave=None,
        rounding=None,
    ):
        kind = RegularizedBound if oracle.can_tighten else RegularizedLogLoss
        self.objective = kind(oracle, weights, lam, n_threads, w0, concave, rounding)
        self.inverse = LimitedMemory(oracle.n_weights, count_pairs(oracle.n_weights))
        squares = np.zeros(oracle.n_weights) if squares is None else squares
        self.scales = np.sqrt(lam / (lam + squares))

    def _attempt(self):
        objective, inverse, scales = self.objective, self.inverse, self.scales
        w, gradient = objective.weights, objective.gradient
        direction = -scales * inverse.multiply(scales * gradient)
        slope = float(gradient @ direction)
        if not slope < 0.0:
            return False
        # Without an estimate of the Hessian, the length of the step means nothing.
        first = 1.0 if inverse.count else 1.0 / np.sqrt(direction @ direction)
        if wolfe_step(objective, direction, slope, first=first) == 0.0:
            return False
        if not objective.gains():
            return False
        # With other messages, slopes differ at the same point, too.
        step, change = objective.probed[0] - w, objective.probed[2] - gradient
        objective.accept()
        update_pair(inverse, step / scales, scales * change)
        return True
