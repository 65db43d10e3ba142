"""A smooth loss with a penalty at a point that moves, and the best lower bound so far."""

import numpy as np

from sklearn_structsvm._utils.backtracking import backtrack
from sklearn_structsvm.solvers.loop import certified


class Composite:
    """P(w) = λ ||w||₁ + κ/2 ||w||² + R(w) at a point w.

    `lam`, `ridge`: λ and κ. `w0` (d,) or None: zero by default.

    Attributes: `weights` (d,): w. `value`, `error`: P(w), and its rounding error.
    `dual_objective`: the best lower bound so far.
    """

    # Values above a tangent are then an error.
    is_convex = True

    def __init__(self, n_weights, rounding, lam=0.0, ridge=0.0, w0=None):
        self.rounding, self.lam, self.ridge = rounding, lam, ridge
        self.weights = np.zeros(n_weights) if w0 is None else np.array(w0, np.float64)
        self.dual_objective = -np.inf

    def n_calls(self):
        """Calls of the oracle, or passes over an example."""
        raise NotImplementedError

    def penalized(self, w, loss):
        """P(w) for R(w)."""
        value = self.lam * float(np.abs(w).sum()) + loss if self.lam else loss
        return value + 0.5 * self.ridge * float(w @ w) if self.ridge else value

    def take(self, w, value, *terms):
        """Move to w. The error is that of the value and of these terms of bounds."""
        self.weights, self.value = w, value
        self.error = self.rounding.of_values(w, value, *terms)

    def note(self, bound):
        """Use a lower bound, which is lowered by the error of the value here."""
        # Without convexity, it belongs to the convex problem at w.
        before = self.dual_objective if self.is_convex else -np.inf
        self.dual_objective = max(before, bound - self.error)

    def square_of(self, gradient):
        """||∇P||² / 2κ, with the rounding errors of the gradient.

        Without an L1 penalty, P is at most this above its minimum.
        """
        sizes = np.abs(gradient) + self.rounding.of_means
        return 0.5 * float(sizes @ sizes) / self.ridge

    def row(self):
        """A row of the history."""
        return certified(self.value, self.dual_objective, self.error, self.n_calls())


class SparseComposite(Composite):
    """The same with λ > 0, for `orthant_step` and `descent_direction`, too.

    A dual point with the image u has its own value less Ω*(u). Here Ω*(u) is ||S(u, λ)||²
    / 2κ with the soft threshold S. If κ = 0, no entry of u may exceed λ. So a dual point
    is also scaled toward the one of image zero.

    `smooth_gradient` (d,): the gradient of all but the L1 penalty. `gradient` (d,): the
    subgradient of least size.
    """

    def take_gradient(self, gradient):
        """Use ∇R(w)."""
        w = self.weights
        g = gradient + self.ridge * w if self.ridge else gradient
        self.smooth_gradient = g
        self.gradient = np.where(w == 0.0, self.at_zero(g), g + self.lam * np.sign(w))

    def at_zero(self, g):
        """The subgradient at weights of zero."""
        return np.sign(g) * np.maximum(np.abs(g) - self.lam, 0.0)

    def look(self, w):
        """Compute what `evaluate` and `go_to` need at a point w."""
        raise NotImplementedError

    def between(self, w, found, step):
        """The same for a w a step of the way to a point of which this was found."""
        return self.look(w)

    def evaluate(self, w, found):
        """P(w)."""
        raise NotImplementedError

    def go_to(self, w, found, value):
        raise NotImplementedError

    def search(self, target_of, step=1.0):
        """Move to the first of successively halved steps that pays; 0.0 if none does.

        `target_of`: (step) -> the point there, `look` of it, and the change that slopes
        promise. `step`: tried first.
        """

        def attempt(step):
            target, found, promised = target_of(step)
            return self.evaluate(target, found), promised, (target, found)

        step, value, found = backtrack(attempt, self.value, step)
        if step > 0.0:
            self.go_to(*found, value)
        return step

    def slope(self, direction):
        """sup ⟨g, p⟩ over the subgradients at w."""
        return float(self.steepest(direction) @ direction)

    def steepest(self, direction):
        """The subgradient that attains it."""
        w = self.weights
        signs = np.where(w == 0.0, np.sign(direction), np.sign(w))
        return self.smooth_gradient + self.lam * signs

    def sizes(self, u):
        """The sizes of a dual point's image, raised by their rounding errors."""
        return np.abs(u) + self.rounding.of_means

    def scale(self, sizes):
        """The largest scale of a dual point for which no size exceeds λ."""
        largest = float(sizes.max(initial=0.0))
        return min(1.0, self.lam / largest) if largest > 0.0 else 1.0

    def scales(self, sizes):
        """Scales of a dual point that may be the best."""
        feasible = self.scale(sizes)
        if self.ridge == 0.0 or feasible == 1.0:
            return (feasible,)
        return (1.0, 0.5 * (1.0 + feasible), feasible)

    def conjugate(self, sizes):
        """Ω* at images of these sizes, where it is finite."""
        if self.ridge == 0.0:
            return 0.0
        beyond = np.maximum(sizes - self.lam, 0.0)
        return 0.5 * float(beyond @ beyond) / self.ridge
