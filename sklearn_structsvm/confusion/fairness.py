"""Fairness constraints: demographic parity, equal opportunity, equalized odds."""

from typing import Any, Literal

import numpy as np

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm._utils.conditions import Conditions
from sklearn_structsvm.confusion.cells import Cells, positive_index
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.rate_constraint import check_number

__all__ = ["DemographicParity", "EqualOpportunity", "EqualizedOdds"]


class GroupParity(Constraint):
    """Base: the rates of events in the groups are close, by difference or ratio.

    A subclass gives `events(cells)`. The parameters of all are those of
    :class:`EqualOpportunity`. A group without an example that an event is about is left
    out of that event, and `empty_counts` names it.
    """

    needs_groups = True
    # Whether of two classes the differences of one are those of the other, so that which
    # of them counts makes no difference to them (but to ratios).
    symmetric = True

    def __init__(
        self,
        *,
        slack: float = 0.05,
        ratio: float = 0.8,
        bound: Literal["difference", "ratio"] = "difference",
        reference: Literal["groups", "overall"] = "groups",
        feature: Any = None,
        pos_label: Any = None,
        label: Any = None,
    ) -> None:
        self.slack = slack
        self.ratio = ratio
        self.bound = bound
        self.reference = reference
        self.feature = feature
        self.pos_label = pos_label
        self.label = label

    def __repr__(self, **options: Any) -> str:
        # What is asked is read in reports, also where it is the default.
        name = "ratio" if self.bound == "ratio" else "slack"
        text = super().__repr__(**options)
        if f"{name}=" in text:
            return text
        rest = text.partition("(")[2]
        return f"{type(self).__name__}({name}={getattr(self, name)!r}" + (
            f", {rest}" if rest != ")" else rest
        )

    def events(self, cells: Cells) -> Any:
        """Pairs (label, prediction) of class indices, whose rates must agree.

        The rate is that of the prediction among the examples with the label, or among
        all examples if label is None.
        """
        raise NotImplementedError

    def positives(self, cells: Cells) -> Any:
        """Class indices: of the one that counts, or of more than two of all."""
        label = self.positive_label(cells.classes)
        if label is not None:
            return [cells.class_index(label)]
        return [1] if cells.n_classes == 2 else list(range(cells.n_classes))

    def positive_label(self, classes: Any) -> Any:
        label = self.named_label()
        if label is None and (
            len(classes) != 2 or (self.symmetric and self.bound == "difference")
        ):
            return None
        index = positive_index(classes, label, type(self).__name__)
        return np.asarray(classes).tolist()[index]

    def check(self, cells: Cells) -> None:
        check_number(self.slack, "slack", 0.0, 1.0)
        check_number(self.ratio, "ratio", 0.0, 1.0)
        check_choice("bound", self.bound, ("difference", "ratio"))
        check_choice("reference", self.reference, ("groups", "overall"))
        super().check(cells)

    def counted(self, cells: Cells) -> list[np.ndarray]:
        masks = cells.masks_of(self.feature)
        found: list[np.ndarray] = []
        limit = 1.0 - self.slack if self.bound == "difference" else self.ratio
        if len(masks) == 1 or limit == 0.0:
            return found
        for rows, columns in self._counted_of_events(cells):
            event = np.zeros(cells.shape[1:], dtype=bool)
            event[rows, columns] = True
            found += [mask[:, None, None] & event for mask in masks]
        return found

    def _counted_of_events(self, cells):
        """Rows and columns among which the rates of events are."""
        labels = dict.fromkeys(label for label, _ in self.events(cells))
        return [(slice(None) if i is None else i, slice(None)) for i in labels]

    def rates(self, cells: Cells) -> list[Any]:
        """For each event the rates of the groups and the overall one, as tensors.

        Returns
        -------
        list of (R, overall)
            R has shape (g, m, k, k) for the g groups (values of `feature`, if that is
            given) that have a rate; overall (m, k, k).
        """
        found = []
        for label, prediction in self.events(cells):
            rows = slice(None) if label is None else [label]
            event = np.zeros(cells.shape)
            event[:, rows, prediction] = 1.0
            sizes = cells.priors[:, rows].sum(axis=1)
            masks = cells.masks_of(self.feature)
            shares = [sizes[mask].sum() for mask in masks]
            present = [a for a, share in enumerate(shares) if share > 0.0]
            if not present:
                continue
            R = np.stack([event * masks[a][:, None, None] / shares[a] for a in present])
            found.append((R, event / sizes.sum()))
        return found

    def linear(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        G = [np.zeros((0, *cells.shape))]
        for R, overall in self.rates(cells):
            pairs = self._pairs(R, overall)
            if self.bound == "difference":
                G.extend((one - other)[None] for one, other in pairs)
            else:
                G.extend((self.ratio * one - other)[None] for one, other in pairs)
        h = np.full(len(G) - 1, -self.slack if self.bound == "difference" else 0.0)
        return np.concatenate(G), h

    def denominators(self, cells: Cells) -> np.ndarray | None:
        if self.bound == "difference":
            return None
        above = [
            one for R, overall in self.rates(cells) for one, _ in self._pairs(R, overall)
        ]
        return np.array(above).reshape(-1, *cells.shape)

    def _conditions(self, cells: Cells) -> Conditions:
        is_own = type(self).linear is not GroupParity.linear
        if self.reference == "overall" or is_own:
            return super()._conditions(cells)
        found = [R for R, _ in self.rates(cells) if len(R) > 1]
        # Three groups have as many pairs as halves.
        if all(len(R) <= 3 for R in found):
            return super()._conditions(cells)
        is_ratio = self.bound == "ratio"
        factor, slack = (self.ratio, 0.0) if is_ratio else (1.0, self.slack)
        G, h, D = [np.zeros((0, *cells.shape))], [], [np.zeros((0, *cells.shape))]
        halves = []
        for e, R in enumerate(found, start=1):
            G += [factor * R, -R]
            h += [-slack] * len(R) + [0.0] * len(R)
            D += [R, np.zeros_like(R)]
            halves += [e] * len(R) + [-e] * len(R)
        return Conditions(
            np.concatenate(G),
            np.array(h),
            np.concatenate(D) if is_ratio else None,
            np.array(halves, dtype=int),
        )

    def _pairs(self, R, overall):
        """Ordered pairs of rates, of which the first must not be above the second."""
        if self.reference == "overall":
            return [pair for rate in R for pair in ((rate, overall), (overall, rate))]
        return [(R[a], R[b]) for a in range(len(R)) for b in range(len(R)) if a != b]

    def disparity(self, C: np.ndarray, cells: Cells) -> float:
        """Largest difference, or smallest ratio, between the rates of groups at C.

        Two rates that are both 0 have ratio 1. With fewer than two groups to compare, the
        difference is 0 and the ratio is 1.
        """
        differences, ratios = [0.0], [1.0]
        for R, overall in self.rates(cells):
            rates = np.tensordot(R, C, axes=3)
            if self.reference == "overall":
                against = np.array([np.vdot(overall, C)])
            else:
                against = rates
            high = np.maximum(rates[:, None], against)
            low = np.minimum(rates[:, None], against)
            differences.append((high - low).max())
            defined = high > 0.0
            ratios.extend(low[defined] / high[defined])
        return float(max(differences) if self.bound == "difference" else min(ratios))

    def violation(self, C: np.ndarray, cells: Cells) -> float:
        # With nothing to compare the difference is 0, and the ratio 1.
        least = -self.slack if self.bound == "difference" else self.ratio - 1.0
        return max(super().violation(C, cells), least)


class DemographicParity(GroupParity):
    r"""Demographic parity: all groups have similar selection rates.

    .. math:: \Big| \frac{1}{\mu_a} \sum_j C^a_{ji} - \frac{1}{\mu_b} \sum_j C^b_{ji}
       \Big| \le \epsilon \quad \text{for all groups } a, b

    Here i is the positive class and :math:`\mu_a` is the fraction of examples in group a.
    With ``reference="overall"``, where a group is compared with :math:`\sum_j C_{ji}`, it
    is Example 7 of Narasimhan et al. (JMLR 2024).

    Read more in the :ref:`User Guide <guide-groups>`.

    Parameters
    ----------
    slack : float, default=0.05
        The largest allowed difference ε, for ``bound="difference"``.
    ratio : float, default=0.8
        The smallest allowed ratio of the lower to the higher rate, for ``bound="ratio"``.
        0.8 is the "four-fifths rule".
    bound : {'difference', 'ratio'}, default='difference'
        Which of the two is bounded. The other parameter is ignored.
    reference : {'groups', 'overall'}, default='groups'
        What the rate of a group is compared with: the rate of each other group (as
        `between_groups` in fairlearn), or the rate of all examples (as in Definition 2 of
        the paper, which lets two groups differ by up to 2ε).
    feature : column, default=None
        With several columns of sensitive features: the one whose values are the groups,
        by its name in a data frame or its index. None means that the groups are the
        combinations of all columns.
    pos_label : label or None, default=None
        The positive class. For more than two classes, None means each class in turn. For
        two classes, None means 1 for labels 0 and 1 or -1 and 1, and True for booleans.
        Other pairs of labels require `pos_label`, except for `DemographicParity` and
        `EqualizedOdds`, whose differences do not depend on it.
    label : label or None, default=None
        Another name for `pos_label`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import DemographicParity
    >>> constraint = DemographicParity(slack=0.1)
    >>> groups = ["f", "f", "m", "m"]
    >>> round(constraint([0, 1, 0, 1], [1, 1, 0, 1], sensitive_features=groups), 3)
    0.4
    """

    def events(self, cells: Cells) -> Any:
        return [(None, i) for i in self.positives(cells)]


class EqualOpportunity(GroupParity):
    r"""Equal opportunity: all groups have similar recall of the positive class.

    .. math:: \Big| \frac{1}{\mu_{ai}} C^a_{ii} - \frac{1}{\mu_{bi}} C^b_{ii} \Big|
       \le \epsilon \quad \text{for all groups } a, b

    Here i is the positive class and :math:`\mu_{ai}` is the fraction of examples that are
    in group a and have label i. With ``reference="overall"``, where a group is compared
    with :math:`C_{ii} / \pi_i` and :math:`\pi_i` is the fraction with label i, it is
    Example 8 of Narasimhan et al. (JMLR 2024).

    Read more in the :ref:`User Guide <guide-groups>`.

    Parameters
    ----------
    slack : float, default=0.05
        The largest allowed difference ε, for ``bound="difference"``.
    ratio : float, default=0.8
        The smallest allowed ratio of the lower to the higher rate, for ``bound="ratio"``.
        0.8 is the "four-fifths rule".
    bound : {'difference', 'ratio'}, default='difference'
        Which of the two is bounded. The other parameter is ignored.
    reference : {'groups', 'overall'}, default='groups'
        What the rate of a group is compared with: the rate of each other group (as
        `between_groups` in fairlearn), or the rate of all examples (as in Definition 2 of
        the paper, which lets two groups differ by up to 2ε).
    feature : column, default=None
        With several columns of sensitive features: the one whose values are the groups,
        by its name in a data frame or its index. None means that the groups are the
        combinations of all columns.
    pos_label : label or None, default=None
        The positive class. For more than two classes, None means each class in turn. For
        two classes, None means 1 for labels 0 and 1 or -1 and 1, and True for booleans.
        Other pairs of labels require `pos_label`, except for `DemographicParity` and
        `EqualizedOdds`, whose differences do not depend on it.
    label : label or None, default=None
        Another name for `pos_label`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import EqualOpportunity
    >>> constraint = EqualOpportunity(slack=0.1)
    >>> groups = ["f", "f", "m", "m"]
    >>> round(constraint([1, 1, 1, 0], [1, 1, 0, 1], sensitive_features=groups), 3)
    0.9
    """

    symmetric = False

    def events(self, cells: Cells) -> Any:
        return [(i, i) for i in self.positives(cells)]


class EqualizedOdds(GroupParity):
    r"""Equalized odds: all groups have similar prediction rates given the label.

    .. math:: \Big| \frac{1}{\mu_{ai}} C^a_{ij} - \frac{1}{\mu_{bi}} C^b_{ij} \Big|
       \le \epsilon \quad \text{for all groups } a, b \text{ and all } i, j

    Here :math:`\mu_{ai}` is the fraction of examples that are in group a and have label
    i. With ``reference="overall"``, a group is compared with :math:`C_{ij} / \pi_i`,
    where :math:`\pi_i` is the fraction with label i. For two classes these are the true
    and false positive rates. With `pos_label`, only predictions of that class count.

    Read more in the :ref:`User Guide <guide-groups>`.

    Parameters
    ----------
    slack : float, default=0.05
        The largest allowed difference ε, for ``bound="difference"``.
    ratio : float, default=0.8
        The smallest allowed ratio of the lower to the higher rate, for ``bound="ratio"``.
        0.8 is the "four-fifths rule".
    bound : {'difference', 'ratio'}, default='difference'
        Which of the two is bounded. The other parameter is ignored.
    reference : {'groups', 'overall'}, default='groups'
        What the rate of a group is compared with: the rate of each other group (as
        `between_groups` in fairlearn), or the rate of all examples (as in Definition 2 of
        the paper, which lets two groups differ by up to 2ε).
    feature : column, default=None
        With several columns of sensitive features: the one whose values are the groups,
        by its name in a data frame or its index. None means that the groups are the
        combinations of all columns.
    pos_label : label or None, default=None
        The positive class. For more than two classes, None means each class in turn. For
        two classes, None means 1 for labels 0 and 1 or -1 and 1, and True for booleans.
        Other pairs of labels require `pos_label`, except for `DemographicParity` and
        `EqualizedOdds`, whose differences do not depend on it.
    label : label or None, default=None
        Another name for `pos_label`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import EqualizedOdds
    >>> constraint = EqualizedOdds(slack=0.1)
    >>> groups = ["f", "f", "m", "m"]
    >>> round(constraint([0, 1, 0, 1], [1, 1, 0, 1], sensitive_features=groups), 3)
    0.9
    """

    def events(self, cells: Cells) -> Any:
        return [(i, j) for i in range(cells.n_classes) for j in self.positives(cells)]
