"""The squared hinge of two classes, of one class against the rest, of several labels."""

import numpy as np

from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm.risks.smooth import SmoothRisk, signs_of


class SquaredHinge(SmoothRisk):
    """R(W) = Σ_i p_i Σ_c max(0, 1 - y_ic ⟨w_c, x_i⟩)², y_ic in {-1, 1}.

    Two classes have a single c. With more classes, each has a c against the rest. Several
    labels have one c each. The response is the slack max(0, 1 - y_ic z_ic).

    `y` (n_samples,) or (n_samples, n_labels): classes 0, ..., n_classes - 1 (for two
    classes, 0 means -1 and 1 means 1), or an indicator of labels. `n_classes`: needed
    if y has one entry per example.

    Fan, Chang, Hsieh, Wang, Lin, "LIBLINEAR: a library for large linear classification",
    JMLR 9, 2008.
    """

    is_bounded = False

    def __init__(self, X, y, sample_weight=None, *, n_classes=2, bias=0.0, n_threads=1):
        y = np.asarray(y)
        k = y.shape[1] if y.ndim == 2 else 1 if n_classes == 2 else n_classes
        super().__init__(X, k, sample_weight, bias=bias, n_threads=n_threads)
        if y.ndim == 1 and n_classes > 2:
            codes = check_codes(y, self.n_samples, n_classes)
            y = codes[:, np.newaxis] == np.arange(n_classes)
        self.signs = signs_of(y, self.n_samples)

    def _slacks(self, Z, out=None):
        A = np.multiply(self.signs, np.reshape(Z, self.signs.shape), out=out)
        np.subtract(1.0, A, out=A)
        return np.maximum(A, 0.0, out=A)

    def sample_losses(self, Z):
        A = self._slacks(Z)
        return np.einsum("ic,ic->i", A, A)

    def plane(self, Z, along=None, rtol=0.0, out=None):
        """The tangent plane at Z for any direction, since B belongs to the gradient."""
        value, A = self.respond(Z)
        B = self.coefficients(A, out)
        return B, value - float(np.vdot(B, np.reshape(Z, B.shape)))

    def respond(self, Z, out=None):
        A = self._slacks(Z, out)
        return float(self.weights @ np.einsum("ic,ic->i", A, A)), A

    def coefficients(self, A, out=None):
        B = np.multiply(self.signs, A, out=out)
        B *= -2.0 * self.weights[:, np.newaxis]
        return B

    def curvatures(self, A):
        return self.largest_curvatures() * (A > 0.0)

    def largest_curvatures(self):
        return np.repeat(2.0 * self.weights[:, np.newaxis], self.n_scores, axis=1)

    def dual_value(self, B, scale=1.0):
        """inf R(W) - ⟨scale · Xᵀ B, W⟩ over scores, the dual's value.

        With b = scale |B_ic|, it is Σ_i Σ_c b - b² / (4 p_i): minima of
        p_i ξ² + b (1 - ξ) over the slack ξ.
        """
        used = self.weights > 0.0
        b = scale * np.abs(B[used])
        return float((b - b**2 / (4.0 * self.weights[used, np.newaxis])).sum())
