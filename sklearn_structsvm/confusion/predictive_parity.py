"""Predictive parity: groups whose precisions are close, which is not a convex set."""

from typing import Any

import numpy as np

from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.fairness import GroupParity

__all__ = ["PredictiveParity"]


class PredictiveParity(GroupParity):
    r"""Predictive parity: all groups have similar precision of the positive class.

    .. math:: \left| \frac{C^a_{ii}}{\sum_j C^a_{ji}} - \frac{C^b_{ii}}{\sum_j C^b_{ji}}
       \right| \le \epsilon \quad \text{for all groups } a, b

    Here i is the positive class. A group in which it is never predicted has no precision
    and is left out; a warning names it, and it is never certified. With
    ``reference="overall"``, the precision of each group is compared with that of all
    examples, :math:`\sum_a C^a_{ii} / \sum_{aj} C^a_{ji}`.

    Unlike the other fairness constraints this is not convex. For a given level q, "the
    precision of each group is from q to q + ε" is linear. So classifiers solve a sequence
    of problems, by branch and bound over the level, and `dual_gap_` bounds the distance
    from the optimum over all levels.

    Read more in the :ref:`User Guide <guide-predictive-parity>`.

    Parameters
    ----------
    slack : float, default=0.05
        The largest allowed difference ε, for ``bound="difference"``.
    ratio : float, default=0.8
        The smallest allowed ratio of the lower to the higher precision, for
        ``bound="ratio"``.
    bound : {'difference', 'ratio'}, default='difference'
        Which of the two is bounded. The other parameter is ignored.
    reference : {'groups', 'overall'}, default='groups'
        What the precision of a group is compared with: that of each other group, or that
        of all examples (two groups may then differ by up to 2ε).
    feature : column, default=None
        With several columns of sensitive features: the one whose values are the groups,
        by its name in a data frame or its index. None means that the groups are the
        combinations of all columns.
    pos_label : label or None, default=None
        The positive class. For more than two classes, None means each class in turn. For
        two classes, None means 1 for labels 0 and 1 or -1 and 1, and True for booleans.
        Other pairs of labels require `pos_label`.
    label : label or None, default=None
        Another name for `pos_label`.

    Attributes
    ----------
    has_levels : bool
        True: `between` gives linear conditions that hold for an interval of levels.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import PredictiveParity
    >>> constraint = PredictiveParity(slack=0.1)
    >>> groups = ["f", "f", "m", "m"]
    >>> round(constraint([1, 0, 1, 0], [1, 1, 1, 0], sensitive_features=groups), 3)
    0.4
    """

    symmetric = False
    has_levels = True

    def linear(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """No conditions: none hold for all levels."""
        return np.zeros((0, *cells.shape)), np.zeros(0)

    def denominators(self, cells: Cells) -> np.ndarray | None:
        """None: there are no linear conditions."""
        return None

    def n_levels(self, cells: Cells) -> int:
        """One for each label whose precisions must agree."""
        return len(self.positives(cells))

    def precisions(self, cells: Cells) -> list[Any]:
        """For each label (masks, overall), the parts whose precisions are compared.

        Returns
        -------
        list of (list of ndarray of shape (m,), ndarray of shape (m,))
            Masks of the cells of each group with examples, and of all cells.
        """
        masks = [
            mask
            for mask in cells.masks_of(self.feature)
            if cells.priors[mask].sum() > 0.0
        ]
        return [(masks, np.ones(cells.n_cells, dtype=bool))] * self.n_levels(cells)

    def _counted_of_events(self, cells):
        return [(slice(None), index) for index in self.positives(cells)]

    def rate_of(
        self, index: int, mask: np.ndarray, cells: Cells
    ) -> tuple[np.ndarray, np.ndarray]:
        """(N, D): the precision is <N, C> / <D, C>, with D between 0 and 1."""
        N, D = np.zeros(cells.shape), np.zeros(cells.shape)
        mass = cells.priors[mask].sum()
        N[mask, index, index] = 1.0 / mass
        D[mask, :, index] = 1.0 / mass
        return N, D

    def levels(self, C: np.ndarray, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """The levels at which a tensor meets the conditions.

        Returns
        -------
        low, high : ndarray of shape (n_levels,)
            Those from low to high. None does if low > high; infinite if all do.
        """
        low = np.full(self.n_levels(cells), -np.inf)
        high = -low
        for p, (rates, overall) in enumerate(self._values(C, cells)):
            for rate in rates:
                least, most = self._levels_of(rate)
                low[p], high[p] = max(low[p], least), min(high[p], most)
            if self.reference == "overall" and len(rates):
                low[p], high[p] = max(low[p], overall), min(high[p], overall)
        return low, high

    def between(
        self, cells: Cells, low: np.ndarray, high: np.ndarray, strict: bool = False
    ) -> Constraint:
        """Linear conditions for levels in a box.

        Parameters
        ----------
        cells : Cells
        low, high : ndarray of shape (n_levels,)
        strict : bool
            False gives conditions that are necessary: a tensor that meets the constraint
            at a level of the box meets them. True gives sufficient ones. At a single
            level both are the same.

        Returns
        -------
        Constraint
        """
        rows = []
        for p, (index, (masks, everyone)) in enumerate(
            zip(self.positives(cells), self.precisions(cells), strict=True)
        ):
            ends = (high[p], low[p]) if strict else (low[p], high[p])
            bounds = self._rates_at(ends[0])[0], self._rates_at(ends[1])[1]
            rows += [(index, mask, *bounds) for mask in masks]
            if self.reference == "overall":
                rows.append((index, everyone, low[p], high[p]))
        return _PrecisionsBetween(self, rows)

    def disparity(self, C: np.ndarray, cells: Cells) -> float:
        differences, ratios = [0.0], [1.0]
        for rates, overall in self._values(C, cells):
            against = rates
            if self.reference == "overall":
                against = np.array([overall]) if len(rates) else rates
            high = np.maximum(rates[:, None], against)
            low = np.minimum(rates[:, None], against)
            differences.append((high - low).max(initial=0.0))
            ratios.extend(low[high > 0.0] / high[high > 0.0])
        return float(max(differences) if self.bound == "difference" else min(ratios))

    def violation(self, C: np.ndarray, cells: Cells) -> float:
        disparity = self.disparity(C, cells)
        if self.bound == "difference":
            worst = disparity - self.slack
        else:
            worst = self.ratio - disparity
        return max(worst, 0.0) if self.empty_counts(cells, C) else worst

    def _values(self, C, cells):
        """For each label the precisions of the groups that have one, and of all."""
        found = []
        for index, (masks, everyone) in zip(
            self.positives(cells), self.precisions(cells), strict=True
        ):
            pairs = []
            for mask in [*masks, everyone]:
                N, D = self.rate_of(index, mask, cells)
                pairs.append((np.vdot(N, C), np.vdot(D, C)))
            *rates, overall = (n / d if d > ROUNDED_ZERO else np.nan for n, d in pairs)
            rates = np.array(rates)
            found.append((rates[~np.isnan(rates)], overall))
        return found

    def _rates_at(self, level):
        """The least and the largest rate of a group at a level."""
        is_overall = self.reference == "overall"
        if self.bound == "difference":
            return level - self.slack if is_overall else level, level + self.slack
        if not is_overall:
            return self.ratio * level, level
        return self.ratio * level, level / self.ratio if self.ratio > 0.0 else np.inf

    def _levels_of(self, rate):
        """The least and the largest level at which a group may have a rate."""
        is_overall = self.reference == "overall"
        if self.bound == "difference":
            return rate - self.slack, rate + self.slack if is_overall else rate
        most = rate / self.ratio if self.ratio > 0.0 else np.inf
        return self.ratio * rate if is_overall else rate, most


class _PrecisionsBetween(Constraint):
    """Bounds (index, mask, low, high) on precisions, without those that say nothing."""

    needs_groups = True

    def __init__(self, parity, rows):
        self.parity = parity
        self.rows = [
            (index, mask, sign, bound)
            for index, mask, low, high in rows
            for sign, bound in ((-1.0, low), (1.0, high))
            if (bound > 0.0 if sign < 0.0 else bound < 1.0)
        ]

    def linear(self, cells):
        G = [np.zeros((0, *cells.shape))]
        for index, mask, sign, bound in self.rows:
            N, D = self.parity.rate_of(index, mask, cells)
            G.append(sign * (N - bound * D)[None])
        return np.concatenate(G), np.zeros(len(self.rows))

    def denominators(self, cells):
        D = [self.parity.rate_of(index, mask, cells)[1] for index, mask, *_ in self.rows]
        return np.array(D).reshape(-1, *cells.shape)
