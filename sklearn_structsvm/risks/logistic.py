"""The logistic losses of two classes, of independent labels and of several classes."""

import numpy as np
from scipy.special import expit, xlogy

from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm.risks._softmax import softmax_curved, softmax_losses
from sklearn_structsvm.risks.smooth import SmoothRisk, signs_of


class LogLoss(SmoothRisk):
    """A loss whose response P consists of the probabilities from the scores.

    With Y the indicator of the truth, B = p (P - Y).

    `shift` (n_samples, n_scores) or None: costs of labels, which are added to the scores.
    """

    shift = None

    def shifted(self, Z):
        """The scores with the costs."""
        return Z if self.shift is None else Z + self.shift

    def cost_of(self, B, scale):
        """What the costs add to the dual's value."""
        return 0.0 if self.shift is None else scale * float(np.vdot(B, self.shift))

    def curvatures(self, P):
        return self.weights[:, np.newaxis] * (P * (1.0 - P))

    def largest_curvatures(self):
        return np.repeat(0.25 * self.weights[:, np.newaxis], self.n_scores, axis=1)


class Logistic(LogLoss):
    """R(W) = Σ_i p_i Σ_c ln(1 + exp(-y_ic ⟨w_c, x_i⟩)), y_ic in {-1, 1}.

    Two classes have a single c. Several independent labels have one c each.

    `y` (n_samples,) or (n_samples, n_labels): encoded labels: 0 for -1 (such as the
    first of two classes), and 1 for 1.
    """

    def __init__(self, X, y, sample_weight=None, *, bias=0.0, n_threads=1, shift=None):
        k = np.shape(y)[1] if np.ndim(y) == 2 else 1
        super().__init__(X, k, sample_weight, bias=bias, n_threads=n_threads)
        self.shift = shift
        self.signs = signs_of(y, self.n_samples)

    def sample_losses(self, Z):
        Z = np.reshape(Z, self.signs.shape)
        margins = self.signs * self.shifted(Z)
        return np.logaddexp(0.0, -margins).sum(axis=1)

    def plane(self, Z, along=None, rtol=0.0, out=None):
        """The tangent plane at Z for any direction, since B belongs to the gradient."""
        Z = np.reshape(Z, self.signs.shape)
        B = np.empty(Z.shape) if out is None else out
        np.multiply(self.signs, expit(-self.signs * self.shifted(Z)), out=B)
        B *= -self.weights[:, np.newaxis]
        return B, self.value(Z) - float(np.vdot(B, Z))

    def respond(self, Z, out=None):
        return self.value(Z), expit(self.shifted(Z), out=out)

    def coefficients(self, P, out=None):
        B = np.subtract(P, self.signs > 0.0, out=out)
        B *= self.weights[:, np.newaxis]
        return B

    def dual_value(self, B, scale=1.0):
        """inf R(W) - ⟨scale · Xᵀ B, W⟩ over scores, the dual's value.

        With a = scale |B_ic| / p_i in [0, 1], it is the entropy
        -Σ_i p_i Σ_c [a ln a + (1 - a) ln(1 - a)].
        """
        used = self.weights > 0.0
        p = self.weights[used]
        a = np.minimum(scale * np.abs(B[used]) / p[:, np.newaxis], 1.0)
        entropy = -float(p @ (xlogy(a, a) + xlogy(1.0 - a, 1.0 - a)).sum(axis=1))
        return entropy + self.cost_of(B, scale)


class Multinomial(LogLoss):
    """R(W) = Σ_i p_i (ln Σ_c exp ⟨w_c, x_i⟩ - ⟨w_{y_i}, x_i⟩): multinomial regression.

    `y` (n_samples,): classes as 0, ..., n_classes - 1.
    """

    # The derivative of B_ic in another score z_ie is -p P_ic P_ie.
    is_coupled = True

    def __init__(
        self,
        X,
        y,
        sample_weight=None,
        *,
        n_classes,
        bias=0.0,
        n_threads=1,
        shift=None,
    ):
        super().__init__(X, n_classes, sample_weight, bias=bias, n_threads=n_threads)
        self.shift = shift
        self.y = check_codes(y, self.n_samples, n_classes)

    def sample_losses(self, Z):
        Z = self.shifted(Z)
        return softmax_losses(Z, self.y, np.empty(Z.shape), self.n_threads)

    def plane(self, Z, along=None, rtol=0.0, out=None):
        """The tangent plane at Z for any direction, since B belongs to the gradient."""
        value, P = self.respond(Z)
        B = self.coefficients(P, out)
        return B, value - float(np.vdot(B, Z))

    def respond(self, Z, out=None):
        P = np.empty(Z.shape) if out is None else out
        losses = softmax_losses(self.shifted(Z), self.y, P, self.n_threads)
        return float(self.weights @ losses), P

    def coefficients(self, P, out=None):
        p = self.weights
        B = np.multiply(P, p[:, np.newaxis], out=out)
        B[np.arange(len(p)), self.y] -= p
        return B

    def dual_value(self, B, scale=1.0):
        """As for `Logistic`: the entropy of the distributions Y + scale · B / p."""
        used = self.weights > 0.0
        p = self.weights[used]
        Q = scale * B[used] / p[:, np.newaxis]
        Q[np.arange(len(p)), self.y[used]] += 1.0
        np.clip(Q, 0.0, 1.0, out=Q)
        return -float(p @ xlogy(Q, Q).sum(axis=1)) + self.cost_of(B, scale)

    def as_dual(self, B, low=0.0):
        """That of the true class is minus the sum of the others, to twice the digits."""
        parts = np.array(B), low + np.zeros_like(B)
        truth = np.arange(len(B)), self.y
        for part in parts:
            part[truth] = 0.0
        total, rest = np.zeros(len(B)), parts[1].sum(axis=1)
        for column in parts[0].T:
            before, total = total, total + column
            added = total - before
            rest += (before - (total - added)) + (column - added)
        parts[0][truth], parts[1][truth] = -total, -rest
        return parts

    def curved(self, P, V, out=None):
        out = np.empty(V.shape) if out is None else out
        softmax_curved(self.weights, P, V, out, self.n_threads)
        return out
