"""The logistic losses: of two classes, of independent labels, of several classes."""

from abc import abstractmethod

import numpy as np
from scipy.special import expit, xlogy

from sklearn_structsvm._contract.risk import Risk
from sklearn_structsvm._utils.labels import check_codes, check_indicator
from sklearn_structsvm.risks._softmax import softmax_curved, softmax_losses


class LogLoss(Risk):
    """A smooth risk with second derivatives, as Newton's method needs them.

    With Y the indicator of the truth, the gradient is that of B = p (P - Y), P being the
    probabilities that the scores give.
    """

    smooth = True

    def __init__(self, X, n_scores, sample_weight=None, *, bias=0.0, n_threads=1):
        super().__init__(X, n_scores, sample_weight, bias=bias, n_threads=n_threads)
        self.X, self.bias = X, bias

    def value(self, Z):
        return float(self.weights @ self.sample_losses(Z))

    @abstractmethod
    def probabilities(self, Z, out=None):
        """R at the scores Z, and P there, of shape (n_samples, n_scores)."""

    @abstractmethod
    def coefficients(self, P, out=None):
        """B, of the probabilities P."""

    @abstractmethod
    def curved(self, P, V, out=None):
        """The derivative of B along a change V of the scores."""

    def variances(self, P):
        """The diagonal of that derivative: p P (1 - P)."""
        return self.weights[:, np.newaxis] * (P * (1.0 - P))

    def line_search(self, Z, along, wp, pp, lam, largest=np.inf):
        """A smooth loss has no breakpoints to search: this always raises.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError(
            "The logistic loss has no exact line search; use one for smooth functions."
        )


class Logistic(LogLoss):
    """R(W) = Σ_i p_i Σ_c ln(1 + exp(-y_ic ⟨w_c, x_i⟩)), y_ic in {-1, 1}.

    Two classes have one c; several labels, independent of each other, one each.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
        Encoded: 0 stands for -1, as of the first of two classes, and 1 for 1.
    sample_weight : array-like of shape (n_samples,) or None
    bias : float
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.risks import Logistic
    >>> risk = Logistic(np.array([[1.0], [2.0]]), [1, 0])
    >>> B, _ = risk.plane(risk.scores(np.zeros(1)))
    >>> risk.gradient(B).tolist()
    [0.25]
    """

    def __init__(self, X, y, sample_weight=None, *, bias=0.0, n_threads=1):
        y = np.asarray(y)
        k = y.shape[1] if y.ndim == 2 else 1
        super().__init__(X, k, sample_weight, bias=bias, n_threads=n_threads)
        if y.ndim == 2:
            y = check_indicator(y, self.n_samples)
        else:
            y = check_codes(y, self.n_samples, 2)[:, np.newaxis]
        self.signs = 2.0 * y - 1.0

    def sample_losses(self, Z):
        margins = self.signs * np.reshape(Z, self.signs.shape)
        return np.logaddexp(0.0, -margins).sum(axis=1)

    def plane(self, Z, along=None, rtol=0.0, out=None):
        """The tangent plane at Z, whatever the direction: B is the gradient's."""
        Z = np.reshape(Z, self.signs.shape)
        B = np.empty(Z.shape) if out is None else out
        np.multiply(self.signs, expit(-self.signs * Z), out=B)
        B *= -self.weights[:, np.newaxis]
        return B, self.value(Z) - float(np.vdot(B, Z))

    def probabilities(self, Z, out=None):
        return self.value(Z), expit(Z, out=out)

    def coefficients(self, P, out=None):
        B = np.subtract(P, self.signs > 0.0, out=out)
        B *= self.weights[:, np.newaxis]
        return B

    def curved(self, P, V, out=None):
        return np.multiply(self.variances(P), V, out=out)

    def dual_values(self, pairs):
        """inf R(W) - ⟨scale · Xᵀ B, W⟩ over scores, for each pair of B and a scale."""
        return [self.dual_value(B, scale) for B, scale in pairs]

    def dual_value(self, B, scale=1.0):
        """inf R(W) - ⟨scale · Xᵀ B, W⟩ over scores, the dual's value.

        With a = scale |B_ic| / p_i in [0, 1], it is the entropy
        -Σ_i p_i Σ_c [a ln a + (1 - a) ln(1 - a)].
        """
        used = self.weights > 0.0
        p = self.weights[used]
        a = np.minimum(scale * np.abs(B[used]) / p[:, np.newaxis], 1.0)
        return -float(p @ (xlogy(a, a) + xlogy(1.0 - a, 1.0 - a)).sum(axis=1))


class Multinomial(LogLoss):
    """R(W) = Σ_i p_i (ln Σ_c exp ⟨w_c, x_i⟩ - ⟨w_{y_i}, x_i⟩): multinomial regression.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Classes as 0, ..., n_classes - 1.
    sample_weight : array-like of shape (n_samples,) or None
    n_classes : int
    bias : float
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.risks import Multinomial
    >>> risk = Multinomial(np.array([[1.0], [2.0]]), [1, 0], n_classes=2)
    >>> B, _ = risk.plane(risk.scores(np.zeros(2)))
    >>> risk.gradient(B).tolist()
    [-0.25, 0.25]
    """

    def __init__(self, X, y, sample_weight=None, *, n_classes, bias=0.0, n_threads=1):
        super().__init__(X, n_classes, sample_weight, bias=bias, n_threads=n_threads)
        self.y = check_codes(y, self.n_samples, n_classes)

    def sample_losses(self, Z):
        return softmax_losses(Z, self.y, np.empty(Z.shape), self.n_threads)

    def plane(self, Z, along=None, rtol=0.0, out=None):
        """The tangent plane at Z, whatever the direction: B is the gradient's."""
        value, P = self.probabilities(Z)
        B = self.coefficients(P, out)
        return B, value - float(np.vdot(B, Z))

    def probabilities(self, Z, out=None):
        P = np.empty(Z.shape) if out is None else out
        losses = softmax_losses(Z, self.y, P, self.n_threads)
        return float(self.weights @ losses), P

    def coefficients(self, P, out=None):
        p = self.weights
        B = np.multiply(P, p[:, np.newaxis], out=out)
        B[np.arange(len(p)), self.y] -= p
        return B

    def curved(self, P, V, out=None):
        out = np.empty(V.shape) if out is None else out
        softmax_curved(self.weights, P, V, out, self.n_threads)
        return out
