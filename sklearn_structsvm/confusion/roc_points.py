"""All thresholds of each cell for two classes, with their confusion tensors."""

import numpy as np

# A threshold keeps this share of the gap between two scores as a distance from both.
MARGIN = 0.25


class RocPoints:
    """The points of the ROC curve of each cell: class 1 above a threshold.

    Point t of a cell predicts class 1 for the examples with the t highest of its distinct
    scores. Its part of the confusion tensor is of shape (2, 2). With individual costs it
    also contributes to the slab, see `CostLMO`.

    `weights` (n,), `cells` (n,). `scores` (n,), float32 or float64: probabilities of
    class 1. `shares` (n,): the share of each example that counts as class 1 (0 or 1 for
    a label). `costs` (n, 2) or None: costs of predictions. `cost_range` (float, float)
    or None: the mean costs that the slab represents as 0 and 1.

    Attributes: `shape`: the shape of the tensor, including the slab. `sizes`: the
    number of points of each cell; 1 for a cell without examples.
    """

    def __init__(
        self, scores, shares, weights, cells, n_cells, costs=None, cost_range=None
    ):
        self.shape = (n_cells + (costs is not None), 2, 2)
        self.tensors, self.costs, self._gaps = [], [], []
        weights = weights / weights.sum()
        for a in range(n_cells):
            rows = np.flatnonzero((cells == a) & (weights > 0.0))
            rows = rows[np.argsort(-scores[rows], kind="stable")]
            of_rows = scores[rows]
            changes = np.append(np.diff(of_rows) != 0.0, len(rows) > 0)
            cuts = np.append(0, np.flatnonzero(changes[: len(rows)]) + 1)
            mass = np.stack([1.0 - shares[rows], shares[rows]]) * weights[rows]
            above = _running(mass)[:, cuts]
            tensors = np.stack([above[:, -1:] - above, above], axis=-1)
            self.tensors.append(np.ascontiguousarray(tensors.transpose(1, 0, 2)))
            edges = np.concatenate([[np.inf], of_rows[cuts[1:] - 1], [-np.inf]])
            self._gaps.append((edges[1:], edges[:-1], scores.dtype.type))
            if costs is not None:
                low, high = cost_range
                # The slab is 0 if all classifiers have the same cost.
                unit = weights[rows] / (high - low) if high > low else 0.0 * rows
                gains = _running(unit * (costs[rows, 1] - costs[rows, 0]))[cuts]
                least = low / (high - low) if high > low and a == 0 else 0.0
                self.costs.append(gains + unit @ costs[rows, 0] - least)

    @property
    def sizes(self):
        """The number of points of each cell."""
        return [len(tensors) for tensors in self.tensors]

    def parts(self, L):
        """<L, C> as a constant plus a part for each cell.

        Returns `constant`; `parts` (list of (size,)).
        """
        parts = [np.tensordot(C, L[a]) for a, C in enumerate(self.tensors)]
        if not self.costs:
            return 0.0, parts
        slope = L[-1, 0, 0] - L[-1, 0, 1]
        for part, cost in zip(parts, self.costs, strict=True):
            part += slope * cost
        return float(L[-1, 0, 1]), parts

    def tensor(self, points):
        """The confusion tensor of one point of each cell."""
        C = np.zeros(self.shape)
        for a, t in enumerate(points):
            C[a] = self.tensors[a][t]
        if self.costs:
            share = sum(cost[t] for cost, t in zip(self.costs, points, strict=True))
            C[-1, 0] = share, 1.0 - share
        return C

    def losses(self, points, fallback):
        """The loss tensor (m, 2, 2) of the rule with these thresholds.

        `fallback` (m, 2, 2): the losses of cells without examples.
        """
        L = np.zeros((len(self.tensors), 2, 2))
        for a, t in enumerate(points):
            if len(self.tensors[a]) == 1:
                L[a] = fallback[a]
                continue
            cut = self.threshold(a, t)
            if np.isinf(cut):
                L[a, :, 1] = np.sign(cut)
            else:
                L[a, :, 1] = cut, cut - 1.0
        return L

    def threshold(self, a, t):
        """The threshold of a point, the shortest decimal well inside its gap."""
        below, above, dtype = self._gaps[a]
        low, high = below[t], above[t]
        if np.isinf(low) or np.isinf(high):
            return -float(np.inf) if np.isinf(low) else float(np.inf)
        return short_number(dtype(low), dtype(high))


def short_number(low, high):
    """A short decimal θ with low <= θ < high, far from both if possible.

    The condition holds in the precision of the two scores.
    """
    gap = float(high) - float(low)
    middle = float(low) + gap / 2.0
    for n_decimals in range(17):
        near = round(middle, n_decimals)
        is_inside = low <= type(low)(near) < high
        if is_inside and abs(near - middle) <= (0.5 - MARGIN) * gap:
            return near
    middle = low + (high - low) / 2
    return float(middle if low <= middle < high else low)


def _running(values):
    """Sums of the first 0, 1, 2, ... values along the last axis."""
    zero = np.zeros((*np.shape(values)[:-1], 1))
    return np.concatenate([zero, np.cumsum(values, axis=-1)], axis=-1)
