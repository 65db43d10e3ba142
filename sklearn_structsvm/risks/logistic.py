"""The logistic loss of two classes, which is smooth."""

import numpy as np
from scipy.special import expit, xlogy

from sklearn_structsvm._contract.risk import Risk
from sklearn_structsvm._utils.labels import check_codes


class Logistic(Risk):
    """R(w) = Σ_i p_i ln(1 + exp(-y_i ⟨w, x_i⟩)), y_i in {-1, 1}.

    Of several classes it would be Σ_i p_i (ln Σ_c exp(z_ic) - z_{i,y_i}), with
    B = p (softmax(Z) - Y) for the indicator Y; for two classes that is the loss here of
    the difference of their scores, so that one score will do.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Encoded: 0 stands for the class -1, and 1 for 1.
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

    smooth = True

    def __init__(self, X, y, sample_weight=None, *, bias=0.0, n_threads=1):
        super().__init__(X, 1, sample_weight, bias=bias, n_threads=n_threads)
        self.signs = 2.0 * check_codes(y, self.n_samples, 2) - 1.0

    def value(self, Z):
        return float(self.weights @ self.sample_losses(Z))

    def sample_losses(self, Z):
        return np.logaddexp(0.0, -self.signs * np.ravel(Z))

    def plane(self, Z, along=None, rtol=0.0, out=None):
        """The tangent plane at Z, whatever the direction: B is the gradient's."""
        z = np.ravel(Z)
        B = np.empty((self.n_samples, 1)) if out is None else out
        B[:, 0] = -self.weights * self.signs * expit(-self.signs * z)
        return B, self.value(Z) - float(B[:, 0] @ z)

    def dual_values(self, pairs):
        """inf R(W) - ⟨scale · Xᵀ B, W⟩ over scores, for each pair of B and a scale."""
        return [self.dual_value(B, scale) for B, scale in pairs]

    def dual_value(self, B, scale=1.0):
        """inf R(W) - ⟨scale · Xᵀ B, W⟩ over scores, the dual's value.

        With a_i = scale |B_i| / p_i in [0, 1], it is the entropy
        -Σ_i p_i [a_i ln a_i + (1 - a_i) ln(1 - a_i)].
        """
        used = self.weights > 0.0
        p = self.weights[used]
        a = np.minimum(scale * np.abs(B[used, 0]) / p, 1.0)
        return -float(p @ (xlogy(a, a) + xlogy(1.0 - a, 1.0 - a)))

    def line_search(self, Z, along, wp, pp, lam, largest=np.inf):
        """A smooth loss has no breakpoints to search: this always raises.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError(
            "The logistic loss has no exact line search; use one for smooth functions."
        )
