"""Shared by smooth losses: the derivatives that Newton's method needs."""

from abc import abstractmethod

import numpy as np

from sklearn_structsvm._contract.risk import Risk
from sklearn_structsvm._utils.labels import check_codes, check_indicator


class SmoothRisk(Risk):
    """A risk with a gradient everywhere, and second derivatives almost everywhere.

    The scores Z determine the response A of each example, with one number per score: a
    probability for logistic losses, the slack for the squared hinge. The derivatives
    follow from it.
    """

    smooth = True

    # Whether B_ic depends on other scores of the example than its own.
    is_coupled = False
    # Whether |B_ic| is at most p_i.
    is_bounded = True
    # Whether it smooths a hinge around a `center`, as the method of multipliers needs it:
    # with `hinge`, `hinge_dual_value` and `width`.
    smooths_hinge = False

    def value(self, Z):
        return float(self.weights @ self.sample_losses(Z))

    @abstractmethod
    def respond(self, Z, out=None):
        """R at the scores Z, and A there, of shape (n_samples, n_scores)."""

    @abstractmethod
    def coefficients(self, A, out=None):
        """B for the response A, such that Xᵀ B is the gradient of R."""

    @abstractmethod
    def curvatures(self, A):
        """The derivatives of B, each with respect to its own score."""

    @abstractmethod
    def largest_curvatures(self):
        """The upper bound of `curvatures`."""

    def curved(self, A, V, out=None):
        """The derivative of B along a change V of the scores."""
        return np.multiply(self.curvatures(A), V, out=out)

    def as_dual(self, B, low=0.0):
        """Coefficients as two arrays whose sum is a dual point, not only up to rounding.

        `low` is what rounding took from B.
        """
        return B, low + np.zeros_like(B)

    def dual_values(self, pairs):
        """inf R(W) - ⟨scale · Xᵀ B, W⟩ over scores, for each pair of B and a scale."""
        return [self.dual_value(B, scale) for B, scale in pairs]

    def line_search(self, Z, along, wp, pp, lam, largest=np.inf):
        """Always raises, because a smooth loss has no breakpoints."""
        raise NotImplementedError(
            f"{type(self).__name__} has no exact line search; use one for smooth "
            "functions."
        )


def signs_of(y, n_samples):
    """1 for the class or labels of an example, and -1 for the others.

    `y` (n_samples,) or (n_samples, n_labels): codes 0 and 1 of two classes, or an
    indicator. Returns (n_samples, 1) or (n_samples, n_labels).
    """
    y = np.asarray(y)
    if y.ndim == 2:
        y = check_indicator(y, n_samples)
    else:
        y = check_codes(y, n_samples, 2)[:, np.newaxis]
    return 2.0 * y - 1.0
