"""Mean cost of the predictions, with individual costs for each example."""

from typing import NoReturn

import numpy as np

from sklearn_structsvm.confusion.metric import ConfusionMetric

__all__ = ["ExpectedCost"]


class ExpectedCost(ConfusionMetric):
    r"""Mean cost of the predictions, with individual costs for each example.

    .. math:: \psi = \frac{\sum_r w_r \, c_{r, \hat y_r}}{\sum_r w_r}
       \quad \textrm{or} \quad
       \frac{\sum_r w_r \, c_{r, y_r, \hat y_r}}{\sum_r w_r}

    The costs c have shape (n, k) or (n, k, k), and are passed along with the labels:
    ``fit(X, y, costs=costs)``. This metric is not a function of the confusion matrix. It
    is linear in the decisions, so it can still be minimized, and bounded by
    :class:`~sklearn_structsvm.metrics.MetricBound` [1]_. For costs that are the same for
    all examples use :class:`~sklearn_structsvm.metrics.LinearLoss`.

    Read more in the :ref:`User Guide <guide-costs>`.

    References
    ----------
    .. [1] Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.

    Examples
    --------
    For each loan, the cost of refusing it and the cost of granting it:

    >>> from sklearn_structsvm.metrics import ExpectedCost
    >>> costs = [[0.0, 900.0], [50.0, 0.0], [20.0, 0.0]]
    >>> ExpectedCost()(["bad", "good", "good"], ["bad", "good", "bad"], costs=costs)
    6.66...
    """

    convex = True
    smooth = True
    greater_is_better = False
    needs_costs = True

    def value(self, C: np.ndarray) -> NoReturn:
        raise TypeError("ExpectedCost is not a function of the confusion matrix.")

    def gradient(self, C: np.ndarray) -> NoReturn:
        self.value(C)

    def entries(self, n_classes: int) -> np.ndarray:
        return np.zeros((n_classes, n_classes), dtype=bool)

    def measured_cost(self, cost: float) -> float:
        return cost
