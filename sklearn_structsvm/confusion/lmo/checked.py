"""A wrapper for any oracle: its results are checked and completed for solvers."""

from numbers import Real

import numpy as np

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.tolerances import FOREIGN_ROUNDING, SAME
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo.arguments import as_cells, as_losses
from sklearn_structsvm.confusion.lmo.base import Minimizer


class CheckedLMO(Minimizer):
    """A fitted LMO, whose confusion tensors and bounds are checked.

    `lmo`: fitted. `y` (n,): labels as 0, ..., k - 1.

    Attributes: `priors_` (m, k). `exact` as of the LMO.
    """

    def __init__(self, lmo, y, cells=None, sample_weight=None, *, n_cells=1, n_classes):
        n, k = len(y), n_classes
        y = check_codes(y, n, k)
        cells, m = as_cells(cells, n, n_cells)
        weights = check_weights(sample_weight, n)
        self.lmo = lmo
        self.shape_ = (m, k, k)
        priors = np.bincount(cells * k + y, weights=weights, minlength=m * k)
        self.priors_ = priors.reshape(m, k) / weights.sum()
        self.exact = bool(lmo.exact)
        self.n_terms = n
        self._name = type(lmo).__name__

    def __call__(self, L):
        """Ask the LMO.

        `L` (m, k, k). Returns `C` (m, k, k); `handle` ((m, k, k), object): L and the
        LMO's own handle; `bound`: the LMO's bound, or <L, C> if it has none, which is
        valid only if the LMO is exact. TypeError if the result is not (C, handle) or
        (C, handle, bound). ValueError if C is not the confusion tensor of any
        classifier, or the bound is above the cost of C.
        """
        L = as_losses(L, self.shape_).copy()
        found = self.lmo(L.copy())
        if not isinstance(found, tuple) or len(found) not in (2, 3):
            raise TypeError(
                f"A call of {self._name} must return (C, handle) or (C, handle, bound); "
                f"got {found!r}."
            )
        C = self._checked_tensor(found[0])
        cost = float(np.vdot(L, C))
        bound = found[2] if len(found) == 3 else None
        if bound is not None:
            self._check_bound(bound, cost, np.abs(L).max())
        return C, (L, found[1]), cost if bound is None else min(float(bound), cost)

    def _checked_tensor(self, C):
        if not hasattr(C, "__array__") and not isinstance(C, (list, tuple)):
            raise TypeError(
                f"A call of {self._name} must return the confusion tensor first and then "
                f"the classifier; got {C!r} first."
            )
        answer = Answer("the confusion tensor", self._name)
        C = answer.array(C, *self.shape_).astype(np.float64)
        off = np.abs(C.sum(axis=2) - self.priors_).max()
        if not (off <= FOREIGN_ROUNDING and C.min() >= -FOREIGN_ROUNDING):
            raise ValueError(
                f"{self._name} gave a confusion tensor that is negative or whose rows do "
                f"not sum to the shares of the labels: they differ by {off:.3g}."
            )
        return C

    def _check_bound(self, bound, cost, largest):
        if not isinstance(bound, Real):
            raise TypeError(
                f"The bound of {self._name} must be a number or None; got {bound!r}."
            )
        # This also rejects NaN.
        if not bound <= cost + SAME * largest:
            raise ValueError(
                f"{self._name} gave the bound {bound:.6g}, which is above the cost "
                f"{cost:.6g} of its own classifier."
            )
