"""The plug-in rule for examples with individual costs.

The confusion tensor C of shape (m, k, k) gets an additional slab, which represents the
mean cost K of the predictions like the confusion of one more cell. Entry [m, 0, 0] is κ =
(K - low) / (high - low), [m, 0, 1] is 1 - κ, and all others are 0, where low and high are
the smallest and largest possible mean costs. So its rows have constant sums like all
others, and solvers need no special treatment of it.
"""

import numpy as np

from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.counts import count
from sklearn_structsvm.confusion.lmo.arguments import (
    as_cells,
    as_losses,
    as_probabilities,
)
from sklearn_structsvm.confusion.lmo.base import Minimizer
from sklearn_structsvm.confusion.mean_costs import costs_of_labels


class CostLMO(Minimizer):
    """The best rule for a loss tensor and a price of the mean cost.

    Costs of shape (n, k, k) are known for new examples, too. The rule is argmin_j Σ_i η_i
    (L[a, i, j] + λ c[r, i, j]) [1]_. Costs of shape (n, k) are known in training only,
    and may depend on the actual label, so the rule sees only the features. For two
    classes whose labels are counted, it is the best threshold for the costs in each cell.
    Otherwise, the mean cost over the examples of each cell and label replaces the
    individual costs.

    Class 1 is predicted above a threshold. Predicting it below a threshold is considered
    only in cells whose mean costs ask for it, because predicting 1 instead of 0 costs
    less for label 0 than for label 1. In other cells, such a rule would be the best for a
    few rows by chance, and wrong for others.

    `counted` ({"probabilities", "labels"}): as for `PluginLMO`.

    Attributes: `exact`: whether bounds are true: for "probabilities", and for
    thresholds. `knows_costs`: whether rules depend on the costs of the example.
    `cost_range` (float, float): the least and the largest mean cost. `uniform_cost`:
    the mean cost of labels that are drawn at random. `mean_costs` (m, k, k): what
    stands for costs that are not known.

    .. [1] Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.
    """

    def __init__(self, counted):
        self.counted = counted

    def fit(self, P, y, sample_weight, cells, n_cells, costs):
        """Read the sample, as in `PluginLMO`, with costs."""
        self.P = as_probabilities(P).astype(np.float64, copy=False)
        n, k = self.P.shape
        self.y = check_codes(y, n, k)
        self.cells, m = as_cells(cells, n, n_cells)
        weights = check_weights(sample_weight, n)
        self.weights = weights / weights.sum()
        self.shape_ = (m + 1, k, k)
        self.knows_costs = costs.ndim == 3
        self.mean_costs = _mean_costs(costs, self.y, self.cells, self.weights, m)
        by_label = self.counted == "labels"
        self.by_threshold = by_label and k == 2 and not self.knows_costs
        self.exact = not by_label or self.by_threshold
        # The costs that the rule expects, and the costs that are counted.
        if self.knows_costs:
            self.expected = np.einsum("ri,rij->rj", self.P, costs)
        else:
            self.expected = np.einsum("ri,rij->rj", self.P, self.mean_costs[self.cells])
        realized = costs_of_labels(costs, self.y)
        self.costs = {"labels": realized, "probabilities": self.expected}
        of_each = self.costs[self.counted]
        self.cost_range = (
            float(self.weights @ of_each.min(axis=1)),
            float(self.weights @ of_each.max(axis=1)),
        )
        self.uniform_cost = float(self.weights @ of_each.mean(axis=1))
        self.n_terms = n
        priors = self._count(np.zeros(n, dtype=np.intp), self.counted).sum(axis=2)
        self.priors_ = priors[:-1]
        if self.by_threshold:
            self._sort()
        return self

    def price(self, L):
        """λ: the price that L puts on a unit of the mean cost."""
        low, high = self.cost_range
        return float(L[-1, 0, 0] - L[-1, 0, 1]) / (high - low) if high > low else 0.0

    def __call__(self, L):
        """(C, handle, bound) for L of shape (m + 1, k, k), with the slab last."""
        L = as_losses(L, self.shape_).copy()
        if self.by_threshold:
            predicted, handle = self._thresholds(L)
        else:
            handle = L
            if not self.knows_costs:
                handle = np.zeros_like(L)
                handle[:-1] = L[:-1] + self.price(L) * self.mean_costs
            predicted = self._predicted(handle)
        C = self._count(predicted, self.counted)
        return C, handle, float(np.vdot(L, C))

    def mixture_confusion(self, Ls, weights, counted=None):
        """Same as for `PluginLMO`, of handles."""
        counted = counted or self.counted
        tensors = [self._count(self._predicted(L), counted) for L in Ls]
        return np.tensordot(weights, tensors, axes=1)

    def _predicted(self, L):
        L = as_losses(L, self.shape_)
        price = self.price(L)
        costs = self.expected if price and self.knows_costs else None
        return rule_costs(self.P, L[:-1], self.cells, price, costs).argmin(axis=1)

    def _count(self, predicted, counted):
        m, k = self.shape_[0] - 1, self.shape_[1]
        C = np.zeros(self.shape_)
        if counted == "labels":
            C[:m] = count(self.cells, self.y, predicted, self.weights, (m, k, k))
        else:
            flat = self.cells * k + predicted
            for i in range(k):
                weighted = self.weights * self.P[:, i]
                sums = np.bincount(flat, weights=weighted, minlength=m * k)
                C[:m, i] = sums.reshape(m, k)
            C[:m] /= C[:m].sum()
        low, high = self.cost_range
        each = self.costs[counted][np.arange(len(predicted)), predicted]
        cost = float(self.weights @ each)
        share = (cost - low) / (high - low) if high > low else 0.0
        C[m, 0, :2] = share, 1.0 - share
        return C

    def _sort(self):
        """The rows of each cell by falling probability, and possible thresholds."""
        M = self.mean_costs
        self.may_fall = M[:, 1, 1] - M[:, 1, 0] > M[:, 0, 1] - M[:, 0, 0]
        self.parts = []
        for a in range(self.shape_[0] - 1):
            rows = np.flatnonzero((self.cells == a) & (self.weights > 0.0))
            rows = rows[np.argsort(-self.P[rows, 1], kind="stable")]
            scores = self.P[rows, 1]
            # A threshold follows this many rows: none, those where scores differ, or all.
            cuts = np.flatnonzero(np.append(np.diff(scores) != 0.0, len(rows) > 0)) + 1
            between = (scores[cuts[:-1] - 1] + scores[cuts[:-1]]) / 2.0
            thresholds = np.concatenate([[2.0], between, [-1.0] * (len(cuts) > 0)])
            self.parts.append((rows, np.concatenate([[0], cuts]), thresholds))

    def _thresholds(self, L):
        """Predictions of the best threshold of each cell, and the tensor of its rule."""
        handle = np.zeros(self.shape_)
        predicted = np.zeros(len(self.y), dtype=np.intp)
        price, costs = self.price(L), self.costs["labels"]
        for a, (rows, cuts, thresholds) in enumerate(self.parts):
            of_label = L[a, self.y[rows], :]
            gain = of_label[:, 1] - of_label[:, 0]
            gain = gain + price * (costs[rows, 1] - costs[rows, 0])
            sums = np.concatenate([[0.0], np.cumsum(self.weights[rows] * gain)])[cuts]
            # Rows above the threshold are predicted 1; if turned, the rows below it.
            turned = sums[-1] - sums
            up = not self.may_fall[a] or sums.min() <= turned.min()
            best = int(np.argmin(sums if up else turned))
            threshold = thresholds[best]
            sign = 1.0 if up else -1.0
            handle[a, :, 1] = sign * threshold, sign * (threshold - 1.0)
            predicted[rows[: cuts[best]]] = int(up)
            predicted[rows[cuts[best] :]] = int(not up)
        return predicted, handle


def rule_costs(P, L, cells, price=0.0, costs=None):
    """The cost of each prediction by a rule, (n, k): Σ_i η_i L[a, i, j] + λ c_j."""
    found = np.empty(P.shape)
    for a in range(len(L)):
        rows = slice(None) if len(L) == 1 else cells == a
        found[rows] = P[rows] @ L[a]
    return found if costs is None else found + price * costs


def _mean_costs(costs, y, cells, weights, m):
    """Mean costs (m, k, k) of predicting j for label i in a cell.

    If costs are given for each label, this is the mean over all examples of the cell. If
    they are given for the actual label, it is the mean over the cell's examples of the
    label or, if there are none, over those of all cells.
    """
    k = costs.shape[1]
    if costs.ndim == 3:
        sums, sizes = np.zeros((m, k, k)), np.zeros((m, 1, 1))
        np.add.at(sums, cells, weights[:, None, None] * costs)
        np.add.at(sizes, cells, weights[:, None, None])
    else:
        sums, sizes = np.zeros((m, k, k)), np.zeros((m, k, 1))
        np.add.at(sums, (cells, y), weights[:, None] * costs)
        np.add.at(sizes, (cells, y), weights[:, None])
    total, size = sums.sum(axis=0), sizes.sum(axis=0)
    overall = np.divide(total, size, out=np.zeros((k, k)), where=size > 0.0)
    found = np.broadcast_to(overall, (m, k, k)).copy()
    return np.divide(sums, sizes, out=found, where=sizes > 0.0)
