"""The hinge smoothed around a dual point, for the method of multipliers."""

import numpy as np

from sklearn_structsvm._utils.labels import label_cost_matrix
from sklearn_structsvm.risks.smooth import SmoothRisk, signs_of


class ProximalHinge(SmoothRisk):
    """R(w) = Σ_i p_i max_{0 <= a <= 1} a (cost_i - y_i ⟨w, x_i⟩) - δ/2 (a - center_i)².

    It is nowhere above the hinge, and equals it where the maximum is at the center. The
    response is the maximizing a.

    `y` (n_samples,): 0 for the class -1, and 1 for 1. `label_costs` (2, 2) or None: as
    for `BinaryHinge`.

    Attributes: `width`: δ > 0. `center` (n_samples, 1): in [0, 1].
    """

    smooths_hinge = True

    def __init__(
        self, X, y, sample_weight=None, *, label_costs=None, bias=0.0, n_threads=1
    ):
        super().__init__(X, 1, sample_weight, bias=bias, n_threads=n_threads)
        self.signs = signs_of(y, self.n_samples)
        costs = label_cost_matrix(label_costs, 2)
        self.costs = np.where(self.signs > 0.0, costs[1, 0], costs[0, 1])
        self.width, self.center = 1.0, np.zeros((self.n_samples, 1))

    def hinge(self, Z):
        """Σ_i p_i max(0, cost_i - y_i z_i), the hinge that is smoothed."""
        return float(self.weights @ np.maximum(self._excess(Z), 0.0)[:, 0])

    def hinge_dual_value(self, B, scale=1.0):
        """The `dual_value` of the hinge itself: Σ_i scale |B_i| cost_i."""
        return scale * float(np.abs(B[:, 0]) @ self.costs[:, 0])

    def _excess(self, Z):
        return self.costs - self.signs * np.reshape(Z, self.signs.shape)

    def respond(self, Z, out=None):
        excess = self._excess(Z)
        A = np.divide(excess, self.width, out=out)
        A += self.center
        np.clip(A, 0.0, 1.0, out=A)
        return float(self.weights @ self._losses(excess, A)), A

    def _losses(self, excess, A):
        return (A * excess - 0.5 * self.width * (A - self.center) ** 2)[:, 0]

    def sample_losses(self, Z):
        return self._losses(self._excess(Z), self.respond(Z)[1])

    def plane(self, Z, along=None, rtol=0.0, out=None):
        """The tangent plane at Z for any direction, since B belongs to the gradient."""
        value, A = self.respond(Z)
        B = self.coefficients(A, out)
        return B, value - float(np.vdot(B, np.reshape(Z, B.shape)))

    def coefficients(self, A, out=None):
        B = np.multiply(self.signs, A, out=out)
        B *= -self.weights[:, np.newaxis]
        return B

    def curvatures(self, A):
        inside = (A > 0.0) & (A < 1.0)
        return self.largest_curvatures() * inside

    def largest_curvatures(self):
        return self.weights[:, np.newaxis] / self.width

    def dual_value(self, B, scale=1.0):
        """inf R(w) - ⟨scale · Xᵀ B, w⟩ over scores, the dual's value."""
        used = self.weights > 0.0
        p = self.weights[used, np.newaxis]
        A = np.minimum(scale * np.abs(B[used]) / p, 1.0)
        A_center = A - self.center[used]
        return float((p * (A * self.costs[used] - 0.5 * self.width * A_center**2)).sum())
