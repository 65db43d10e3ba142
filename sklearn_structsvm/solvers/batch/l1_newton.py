"""Newton's method under an L1 penalty for many weights, within one orthant at a time."""

from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.backtracking import MAX_HALVINGS
from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO, VALUE_ROUNDING
from sklearn_structsvm.solvers.accuracy import ROUGH_SHARE
from sklearn_structsvm.solvers.batch.newton import (
    LEAST_DAMPING,
    MAX_PRODUCTS,
    Diagonal,
)
from sklearn_structsvm.solvers.batch.owlqn import L1Risk, orthant_step

# A second derivative counts as at least this share of the largest one that the loss can
# have: rows that are far from their margin now may be near it after the step.
LEAST_CURVATURE = 1e-2

# And at least this share of the largest one of all columns, because a column of zeros has
# none.
LEAST_SCALE = ROUNDED_ZERO**2

# A ridge that is added to the Hessian, as a share of its diagonal. The Hessian may be
# singular (with more weights than rows of positive curvature, or with indicators that sum
# to 1), and a full step would then be far too long. As the gradient vanishes, so does the
# ridge. No residual of a direction need be a smaller share of the gradient.
DAMPING = 1e-3


class L1NewtonSteps:
    """Newton and proximal steps on a smooth risk, one at a time.

    A Newton step changes the nonzero weights, within their orthant. A proximal gradient
    step, scaled by the Hessian's diagonal, frees and zeroes weights. As in [1]_, the
    method makes the step whose part of the subgradient is larger.

    `n_products`: products with the Hessian, plus the times a subclass wrote it out.

    .. [1] Chen, Curtis, Robinson, "A reduced-space algorithm for minimizing
       l1-regularized convex functions", SIAM Journal on Optimization 27, 2017.
    """

    method = "newton"

    def __init__(self, risk, lam, w0=None, ridge=0.0):
        self.objective = L1Risk(risk, lam, w0, ridge=ridge)
        self.diagonal = Diagonal(risk)
        self.largest_scales = self.diagonal.of(risk.largest_curvatures())
        self.stretch = 1.0
        self.n_products = 0

    def renew(self):
        """Continue from the same point after the risk has changed."""
        self.objective.renew()
        self.largest_scales = self.diagonal.of(self.objective.risk.largest_curvatures())

    @property
    def weights(self):
        return self.objective.weights

    def n_calls(self):
        """Passes over the examples."""
        n_passes = self.n_products + self.objective.n_planes
        return n_passes * np.count_nonzero(self.objective.risk.weights)

    def row(self):
        return self.objective.row() | {"n_oracle_calls": self.n_calls()}

    def move(self, deadline=np.inf):
        """Make one step. Returns whether there was one."""
        sizes = np.abs(self.objective.gradient)
        used = self.objective.weights != 0.0
        newton_first = sizes[used].max(initial=0.0) >= sizes[~used].max(initial=0.0)
        if newton_first and self._newton_step(deadline):
            return True
        if self._proximal_step():
            return True
        if newton_first:
            return False
        return self._newton_step(deadline) or self._freeing_step(deadline)

    def _scales(self, response):
        """The Hessian's diagonal, bounded from below."""
        risk, ridge = self.objective.risk, self.objective.ridge
        scales = self.diagonal.of(risk.curvatures(response)) + ridge
        largest = self.largest_scales + ridge
        if not scales.any():
            scales = largest
        scales = np.maximum(scales, LEAST_CURVATURE * largest)
        least = LEAST_SCALE * scales.max(initial=0.0)
        return np.maximum(scales, least if least > 0.0 else 1.0)

    def _proximal_step(self):
        objective, risk = self.objective, self.objective.risk
        lam, w, gradient = objective.lam, objective.weights, objective.smooth_gradient
        scales = self._scales(risk.respond(objective.scores)[1])
        smooth = objective.value - lam * float(np.abs(w).sum())
        for _ in range(MAX_HALVINGS):
            stretched = self.stretch * scales
            target = self._proximal_target(stretched)
            change = target - w
            scores = risk.scores(target)
            value = objective.evaluate(target, scores)
            model = smooth + gradient @ change + 0.5 * (stretched * change) @ change
            model += lam * np.abs(target).sum()
            # A proximal step must not exceed a value by more than this share of it.
            if value <= model + 1e-15 * abs(model):
                # A step that fails is tried again with larger curvatures.
                self.stretch = max(1.0, self.stretch / 2.0)
                if value < objective.value:
                    objective.go_to(target, scores, value)
                    return True
                return False
            self.stretch *= 2.0
        return False

    def _proximal_change(self):
        objective = self.objective
        _, response = objective.risk.respond(objective.scores)
        target = self._proximal_target(self.stretch * self._scales(response))
        return target - objective.weights

    def _proximal_target(self, scales):
        objective = self.objective
        target = objective.weights - objective.smooth_gradient / scales
        sizes = np.maximum(np.abs(target) - objective.lam / scales, 0.0)
        return np.sign(target) * sizes

    def _newton_step(self, deadline):
        objective = self.objective
        direction = self._direction(deadline)
        slope = float(objective.gradient @ direction)
        if not slope < 0.0:
            return False
        if -slope <= VALUE_ROUNDING * abs(objective.value):
            return self._whole_steps(lambda: direction)
        return orthant_step(objective, direction, 1.0)

    def _freeing_step(self, deadline):
        """Free weights by a proximal step, and make a Newton step with them."""
        return self._whole_steps(self._proximal_change, lambda: self._direction(deadline))

    def _whole_steps(self, *directions):
        """Make steps that the gradient judges, as the objective can no longer decide.

        Each direction is a function, called after earlier steps. Weights stop at zero.
        """
        objective = self.objective
        before = objective.weights, objective.scores, objective.value
        size = np.abs(objective.gradient).max()
        for direction in directions:
            target = objective.weights + direction()
            target[target * objective.weights < 0.0] = 0.0
            scores = objective.risk.scores(target)
            objective.go_to(target, scores, objective.evaluate(target, scores))
        if np.abs(objective.gradient).max() < 0.5 * size:
            return True
        objective.go_to(*before)
        return False

    def _damping(self):
        """The ridge that is added to the Hessian, as a share of its diagonal."""
        objective = self.objective
        used = objective.weights != 0.0
        size = float(np.linalg.norm(objective.gradient[used]))
        size /= np.sqrt(np.count_nonzero(used))
        share = size / objective.lam if size < objective.lam else 1.0
        return max(DAMPING * share, LEAST_DAMPING)

    def _direction(self, deadline):
        """-H⁻¹ g for the nonzero weights, by conjugate gradients."""
        objective, risk = self.objective, self.objective.risk
        used = objective.weights != 0.0
        if not objective.gradient[used].any():
            return np.zeros_like(objective.weights)
        _, response = risk.respond(objective.scores)

        residual = np.where(used, -objective.gradient, 0.0)
        direction = np.zeros_like(residual)
        norm = float(np.linalg.norm(residual))
        scales = self._scales(response)
        damping = self._damping()
        # More accuracy is useless: a zero weight is free within λ.
        size = objective.lam * np.sqrt(np.count_nonzero(used))
        share = ROUGH_SHARE
        if norm < ROUGH_SHARE**2 * size:
            share = max(DAMPING, np.sqrt(norm / size))
        mapped = residual / scales
        conjugate, product = mapped.copy(), float(residual @ mapped)
        for _ in range(MAX_PRODUCTS):
            curved = risk.curved(response, risk.scores(conjugate))
            image = np.where(used, risk.gradient(curved), 0.0)
            image += (damping * scales + objective.ridge) * conjugate
            self.n_products += 1
            curvature = float(conjugate @ image)
            if not curvature > 0.0:
                break
            length = product / curvature
            direction += length * conjugate
            residual -= length * image
            is_enough = np.linalg.norm(residual) <= share * norm
            if is_enough or perf_counter() >= deadline:
                break
            mapped = residual / scales
            before, product = product, float(residual @ mapped)
            conjugate *= product / before
            conjugate += mapped
        return direction
