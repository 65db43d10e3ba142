"""Losses that are linear in the confusion matrix: a cost for each kind of mistake."""

import numpy as np

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm.confusion.metric import ConfusionMetric

__all__ = ["LinearLoss", "Ordinal", "ZeroOne"]


class CostMetric(ConfusionMetric):
    """Base of the linear losses; a subclass gives `cost_matrix(n_classes)`."""

    convex = True
    smooth = True

    def cost_matrix(self, n_classes):
        """L of shape (k, k), L[i, j] the cost of predicting j for label i."""
        raise NotImplementedError

    def value(self, C):
        return float(np.vdot(self.cost_matrix(len(C)), C))

    def gradient(self, C):
        return self.cost_matrix(len(C)).copy()

    def pieces(self, priors):
        return self.cost_matrix(len(priors))[None], np.zeros(1)

    def ratio(self, priors):
        L = self.cost_matrix(len(priors))
        return L, np.ones_like(L)

    def entries(self, n_classes):
        return self.cost_matrix(n_classes) != 0.0


class LinearLoss(CostMetric):
    r"""Mean cost of the predictions (Example 1 of the paper).

    .. math:: \psi(C) = \sum_{ij} L_{ij} C_{ij}

    Parameters
    ----------
    costs : array-like of shape (k, k), or dict
        L, the cost of predicting class j where the label is class i, with rows and
        columns in the order of the sorted labels; or ``{(label, prediction): cost}``, all
        others costing 0. Of any sign, and the diagonal need not be 0.

    Examples
    --------
    A missed "ill" is ten times as bad as a false alarm:

    >>> from sklearn_structsvm.metrics import LinearLoss
    >>> metric = LinearLoss({("ill", "well"): 10.0, ("well", "ill"): 1.0})
    >>> metric(["ill", "well", "well", "ill"], ["ill", "ill", "well", "well"])
    2.75
    """

    greater_is_better = False

    def __init__(self, costs):
        self.costs = costs

    def cost_matrix(self, n_classes):
        if isinstance(self.costs, dict):
            L = np.zeros((n_classes, n_classes), dtype=object)
            for pair, cost in self.costs.items():
                label, prediction = _pair(pair)
                i = self.index_of(label, "a label in costs")
                L[i, self.index_of(prediction, "a prediction in costs")] = cost
        else:
            L = self.costs
        return as_floats("costs", L, n_classes, n_classes)

    def check(self, n_classes):
        self.cost_matrix(n_classes)


def _pair(pair):
    if isinstance(pair, tuple) and len(pair) == 2:
        return pair
    raise ValueError(f"Keys of costs must be pairs (label, prediction), got {pair!r}.")


class ZeroOne(CostMetric):
    """Share of wrong predictions, 1 - accuracy.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import ZeroOne
    >>> ZeroOne()(["a", "b", "b", "b"], ["a", "b", "b", "a"])
    0.75
    """

    def cost_matrix(self, n_classes):
        return 1.0 - np.eye(n_classes)

    def entries(self, n_classes):
        return np.eye(n_classes, dtype=bool)


class Ordinal(CostMetric):
    r"""Mean distance between the ranks of label and prediction.

    .. math:: \psi(C) = \sum_{ij} |i - j| \, C_{ij}

    The rank of a label is its place among the sorted classes, so that scoring part of a
    sample needs `labels`, all the classes in order.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Ordinal
    >>> Ordinal()([1, 2, 3, 3], [1, 2, 3, 1])
    0.5
    """

    greater_is_better = False

    def cost_matrix(self, n_classes):
        ranks = np.arange(n_classes, dtype=np.float64)
        return np.abs(ranks[:, None] - ranks)
