"""The mean of costs that each example has of its own."""

import numpy as np

from sklearn_structsvm.confusion.metric import ConfusionMetric

__all__ = ["ExpectedCost"]


class ExpectedCost(ConfusionMetric):
    r"""Mean cost of the predictions, each example having costs of its own.

    .. math:: \psi = \frac{\sum_r w_r \, c_{r, \hat y_r}}{\sum_r w_r}
       \quad \textrm{or} \quad
       \frac{\sum_r w_r \, c_{r, y_r, \hat y_r}}{\sum_r w_r}

    with the costs c of shape (n, k) or (n, k, k), which are passed beside the labels:
    ``fit(X, y, costs=costs)``. It is no function of the confusion matrix, but linear in
    the decisions, so that it can be minimised and, by
    :class:`~sklearn_structsvm.metrics.MetricBound`, bounded all the same [1]_. Costs that
    are the same for all examples are :class:`~sklearn_structsvm.metrics.LinearLoss`.

    References
    ----------
    .. [1] Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.

    Examples
    --------
    Of each loan, what is lost when it is refused, and when it is granted:

    >>> from sklearn_structsvm.metrics import ExpectedCost
    >>> costs = [[0.0, 900.0], [50.0, 0.0], [20.0, 0.0]]
    >>> ExpectedCost()(["bad", "good", "good"], ["bad", "good", "bad"], costs=costs)
    6.66...
    """

    convex = True
    smooth = True
    greater_is_better = False
    needs_costs = True

    def value(self, C):
        raise TypeError("ExpectedCost is no function of the confusion matrix.")

    def gradient(self, C):
        return self.value(C)

    def entries(self, n_classes):
        return np.zeros((n_classes, n_classes), dtype=bool)

    def measured_cost(self, cost):
        return cost
