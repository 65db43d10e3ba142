"""Quasi-Newton steps on nonsmooth convex functions: subBFGS and subLBFGS.

From Yu, Vishwanathan, Günter, Schraudolph, "A quasi-Newton approach to nonsmooth convex
optimization problems in machine learning", JMLR 11, 2010: Algorithms 1 and 2, and the
line search conditions (16).
"""

from abc import ABC, abstractmethod

import numpy as np

from sklearn_structsvm._utils.tolerances import TINY, VALUE_ROUNDING
from sklearn_structsvm.solvers.batch._lbfgs import LimitedMemory

# The paper's settings: the pairs kept, and the accuracy of direction finding. It names no
# k_max. Usually one or two directions suffice. At a start where all labels are tied,
# directions of descent appear after about as many as there are labels, and with 100 of
# them the following steps were no better than with 20.
BUFFER = 15
DIRECTION_TOL = 1e-5
MAX_DIRECTIONS = 20

# The bytes that the pairs of L-BFGS for sequences may take, whose weights may be many
# millions, unless the pairs are fewer than FEWEST_PAIRS: with fewer it is slow.
MOST_BYTES_OF_PAIRS = 2**30
FEWEST_PAIRS = 4

# This many times k_max are tried before the search concludes that there is no descent.
DIRECTION_PATIENCE = 10

# ⟨s, y⟩ / ⟨y, y⟩ of a pair is at least this, so that B stays positive definite.
MIN_CURVATURE = 1e-8

# Constants of the inexact line search: those of the paper's toy example.
WOLFE_DECREASE = 1e-3
CURVATURE = 0.8


class Objective(ABC):
    """A convex function J at a point w that moves, as subBFGS sees it.

    `weights` (d,): w. `gradient` (d,): a subgradient at w.
    """

    is_convex = True

    @abstractmethod
    def slope(self, direction):
        """sup ⟨g, p⟩ over the subgradients g at w, for p = `direction`."""

    @abstractmethod
    def steepest(self, direction):
        """A subgradient at w that attains `slope`."""

    @abstractmethod
    def exact_step(self, direction):
        """argmin J(w + η p) over η >= 0."""

    @abstractmethod
    def probe(self, direction, step):
        """J(w + η p), and sup ⟨g, p⟩ over the subgradients g there."""

    @abstractmethod
    def move(self, direction, step):
        """Go to w + η p and take the subgradient that is steepest along p there.

        Any other subgradient could equal the last one, as in the paper's toy example.
        Then ⟨s, y⟩ would be zero, and nothing would be learned about the curvature.
        """


class FullMatrix:
    """B of BFGS, written out; B₀ = I, scaled at the first update.

    `rescale`: False leaves B₀ = I.
    """

    def __init__(self, n_weights, rescale=True):
        self.n_weights, self.rescale = n_weights, rescale
        self.reset()

    def reset(self):
        """Forget all updates."""
        self.matrix = np.eye(self.n_weights)
        self.count = 0

    def update(self, step, change):
        """Use a pair (s, y) with ⟨s, y⟩ > 0, by equation (6)."""
        product = step @ change
        if self.rescale and self.count == 0:
            self.matrix *= product / (change @ change)
        mapped = self.matrix @ change
        share = (1.0 + change @ mapped / product) / product
        self.matrix += share * np.outer(step, step)
        cross = np.outer(mapped / product, step)
        self.matrix -= cross + cross.T
        self.count += 1

    def multiply(self, vector):
        """B v."""
        return self.matrix @ vector


def update_pair(inverse, step, change):
    """Use a pair of any curvature, raised to the smallest safe value.

    It is left out if rounding decides the sign of its product.
    """
    square, product = float(change @ change), float(step @ change)
    if square < TINY:
        return
    lack = MIN_CURVATURE - product / square
    if lack > 0.0:
        step = step + lack * change
        product = float(step @ change)
    rounding = len(step) * np.finfo(float).eps * np.linalg.norm(step)
    if product > rounding * np.sqrt(square):
        inverse.update(step, change)


def descent_direction(
    objective, multiply, *, tol=DIRECTION_TOL, max_directions, patience=DIRECTION_PATIENCE
):
    """Minimize the model ½ pᵀ B⁻¹ p + sup ⟨g, p⟩ over directions p, approximately.

    Algorithm 2: each round adds the subgradient that is steepest along p, and moves to
    the best convex combination of p and -B times that subgradient.

    `multiply`: v -> B v. `tol`: accuracy in the model's value. `max_directions`: k_max.
    `patience`: the factor on `max_directions` as long as no direction of descent was
    found. Returns `direction` (d,): the minimizer of the model; `slope`: sup ⟨g, p⟩. It
    is not negative if no descent direction was found; `n_directions`: directions tried,
    at least 1; `gap`: ε: the most by which the model exceeds its minimum.
    """
    mean = objective.gradient
    p = -multiply(mean)
    slope, square = objective.slope(p), -float(p @ mean)
    best = p, slope, slope + 0.5 * square
    gap = slope + square
    n = 1
    # Condition (10) is strict: at a slope of zero no step is possible either.
    while (best[1] >= 0.0 and n < patience * max_directions) or (
        (slope >= 0.0 or gap > tol) and n < max_directions
    ):
        g = objective.steepest(p)
        mapped = multiply(g)
        rise = slope + square
        curvature = float(g @ mapped) + 2.0 * slope + square
        if not rise > 0.0:
            # g adds nothing: p is the model's minimizer.
            break
        share = min(1.0, rise / curvature) if curvature > 0.0 else 1.0
        mean = (1.0 - share) * mean + share * g
        p = (1.0 - share) * p - share * mapped
        slope, square = objective.slope(p), -float(p @ mean)
        if slope + 0.5 * square < best[2]:
            best = p, slope, slope + 0.5 * square
        gap = best[2] + 0.5 * square
        n += 1
    # The paper gives up if the last direction is not one of descent, but the best one may
    # be.
    return best[0], best[1], n, gap


def wolfe_step(objective, direction, slope, *, first=1.0):
    """A step that meets the subgradient Wolfe conditions (16), by bisection.

    `direction` (d,). `slope`: sup ⟨g, p⟩ at w, negative. `first`: tried first. Returns
    zero if 100 trials found none, which only rounding can cause (Theorem 8).
    """
    low, high, step = 0.0, np.inf, first
    start = objective.value
    for _ in range(100):
        value, slope_there = objective.probe(direction, step)
        # A convex function has fallen by at least -step · slope_there. This decides where
        # its values agree up to rounding, near which any function is convex.
        least_slope = WOLFE_DECREASE * slope
        is_above = value > start + step * least_slope
        is_convex = objective.is_convex or value <= start + VALUE_ROUNDING * abs(start)
        if is_above and (slope_there > least_slope or not is_convex):
            high = step
        elif slope_there < CURVATURE * slope:
            low = step
        else:
            return step
        step = 2.0 * step if high == np.inf else 0.5 * (low + high)
    return 0.0


def count_pairs(n_weights):
    """How many pairs L-BFGS keeps."""
    return max(FEWEST_PAIRS, min(BUFFER, MOST_BYTES_OF_PAIRS // (16 * n_weights)))


def lbfgs_memory(n_weights):
    """About the number of bytes that L-BFGS takes."""
    return 8 * n_weights * (2 * count_pairs(n_weights) + 8)


class RestartedSteps:
    """Base class of iterations with an estimate `inverse` of the inverse Hessian.

    A subclass has an `objective`, and `_attempt()`, which says whether it made a step.
    """

    @property
    def weights(self):
        return self.objective.weights

    def row(self):
        return self.objective.row()

    def move(self, deadline=np.inf):
        """Make one iteration. Returns whether there was one."""
        if self._attempt():
            return True
        # A bad estimate of the Hessian may be the reason. Without an estimate, the point
        # is a minimum.
        if self.inverse.count == 0:
            return False
        self.inverse.reset()
        return self._attempt()


class QuasiNewtonSteps(RestartedSteps):
    """Algorithm 1, one iteration at a time.

    `line_search` ({"exact", "wolfe"}). `objective`: moved in place. `buffer`: pairs
    kept; not used with `full_matrix`. `patience`: as for `descent_direction`.

    Attributes: `n_directions`: rounds of direction finding beyond the first, in all.
    """

    method = "sublbfgs"

    def __init__(
        self,
        objective,
        *,
        buffer=BUFFER,
        line_search="exact",
        direction_tol=DIRECTION_TOL,
        max_directions=MAX_DIRECTIONS,
        full_matrix=False,
        patience=DIRECTION_PATIENCE,
    ):
        self.objective = objective
        self.patience = patience
        self.line_search = line_search
        self.direction_tol, self.max_directions = direction_tol, max_directions
        n_weights = len(objective.weights)
        self.inverse = (
            FullMatrix(n_weights) if full_matrix else LimitedMemory(n_weights, buffer)
        )
        self.n_directions = 0

    def _attempt(self):
        objective, inverse = self.objective, self.inverse
        direction, slope, n, _ = descent_direction(
            objective,
            inverse.multiply,
            tol=self.direction_tol,
            max_directions=self.max_directions,
            patience=self.patience,
        )
        self.n_directions += n - 1
        if not slope < -TINY:
            return False
        if self.line_search == "exact":
            step = objective.exact_step(direction)
        else:
            step = wolfe_step(objective, direction, slope)
        if step == 0.0:
            return False
        gradient = objective.gradient
        objective.move(direction, step)
        update_pair(inverse, step * direction, objective.gradient - gradient)
        return True
