"""What smooth losses share: derivatives as Newton's method needs them."""

from abc import abstractmethod

import numpy as np

from sklearn_structsvm._contract.risk import Risk
from sklearn_structsvm._utils.labels import check_codes, check_indicator


class SmoothRisk(Risk):
    """A risk with a gradient everywhere, and second derivatives almost everywhere.

    What the scores Z say of each example is its response A, one number per score: a
    probability of the logistic losses, the slack of the squared hinge. The derivatives
    follow from it.
    """

    smooth = True

    def __init__(self, X, n_scores, sample_weight=None, *, bias=0.0, n_threads=1):
        super().__init__(X, n_scores, sample_weight, bias=bias, n_threads=n_threads)
        self.X, self.bias = X, bias

    def value(self, Z):
        return float(self.weights @ self.sample_losses(Z))

    @abstractmethod
    def respond(self, Z, out=None):
        """R at the scores Z, and A there, of shape (n_samples, n_scores)."""

    @abstractmethod
    def coefficients(self, A, out=None):
        """B, whose Xᵀ B is the gradient of R, of the response A."""

    @abstractmethod
    def curvatures(self, A):
        """The derivatives of B, each by its own score."""

    @abstractmethod
    def largest_curvatures(self):
        """What `curvatures` never exceeds."""

    def curved(self, A, V, out=None):
        """The derivative of B along a change V of the scores."""
        return np.multiply(self.curvatures(A), V, out=out)

    def dual_values(self, pairs):
        """inf R(W) - ⟨scale · Xᵀ B, W⟩ over scores, for each pair of B and a scale."""
        return [self.dual_value(B, scale) for B, scale in pairs]

    def line_search(self, Z, along, wp, pp, lam, largest=np.inf):
        """A smooth loss has no breakpoints to search: this always raises.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no exact line search; use one for smooth "
            "functions."
        )


def signs_of(y, n_samples):
    """1 for what an example is or has, and -1 for the rest.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
        Codes 0 and 1 of two classes, or an indicator.
    n_samples : int

    Returns
    -------
    ndarray of shape (n_samples, 1) or (n_samples, n_labels)
    """
    y = np.asarray(y)
    if y.ndim == 2:
        y = check_indicator(y, n_samples)
    else:
        y = check_codes(y, n_samples, 2)[:, np.newaxis]
    return 2.0 * y - 1.0
