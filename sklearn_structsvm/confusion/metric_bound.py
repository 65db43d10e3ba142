"""Bounds on metrics, used as constraints."""

from typing import Any

import numpy as np

from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.rate_constraint import (
    SelectiveConstraint,
    check_number,
    one_per_group,
    selected_groups,
)
from sklearn_structsvm.confusion.recalls import RecallMetric
from sklearn_structsvm.confusion.registry import METRICS, get_metric

__all__ = ["MetricBound"]


class MetricBound(SelectiveConstraint):
    r"""Bound on a metric: an upper bound on its loss or a lower bound on its score.

    The constraint is :math:`\psi(C) \le` `at_most` or :math:`1 - \psi(C) \ge` `at_least`.
    Linear metrics, maxima of linear functions, and ratios of linear functions become
    linear conditions. Other convex metrics are used as they are. A ratio of 0/0 satisfies
    every bound, such as the F-measure in a group where the class neither occurs nor is
    predicted.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    metric : str or ConfusionMetric
        The metric to bound.
    at_most : float, default=None
        Upper bound on the loss. Pass exactly one of `at_most` and `at_least`.
    at_least : float, default=None
        Lower bound on the score, which is what a call of the metric returns. Not for
        metrics whose values are costs.
    group : group, default=None
        Count only the examples of this group: a value of the sensitive feature, or a
        tuple of values for several columns. None counts all examples.
    per_group : bool, default=False
        Whether to bound the metric in every group.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import MetricBound
    >>> constraint = MetricBound("f1", at_least=0.9)
    >>> round(constraint([0, 0, 1, 1], [0, 1, 1, 1]), 3)
    0.1
    """

    def __init__(
        self,
        metric: str | ConfusionMetric,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        group: Any = None,
        per_group: bool = False,
    ) -> None:
        self.metric = metric
        self.at_most = at_most
        self.at_least = at_least
        self.group = group
        self.per_group = per_group

    @property
    def _known(self) -> Any:
        """The metric, or its class; ConfusionMetric for what only `get_metric` knows."""
        metric = METRICS.get(self.metric) if isinstance(self.metric, str) else self.metric
        kind: Any = metric if isinstance(metric, type) else type(metric)
        return metric if issubclass(kind, ConfusionMetric) else ConfusionMetric

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        """Whether groups are selected, or the metric needs groups."""
        return super().needs_groups or self._known.needs_groups

    @property
    def needs_costs(self) -> bool:  # type: ignore[override]
        """Whether the metric needs individual costs of the examples."""
        return self._known.needs_costs is True

    def measured_cost(self, cost: float) -> float:
        return cost - self.bound(get_metric(self.metric, range(2)))

    @property
    def has_convex(self) -> bool:  # type: ignore[override]
        """Whether the metric is convex without being a maximum of linear functions."""
        metric = self._known
        kind: Any = metric if isinstance(metric, type) else type(metric)
        if self.needs_costs or not metric.convex:
            return False
        return (
            kind.pieces is ConfusionMetric.pieces and kind.ratio is ConfusionMetric.ratio
        )

    def positive_label(self, classes: Any) -> Any:
        return get_metric(self.metric, classes).positive_label(classes)

    def bound(self, metric: ConfusionMetric) -> float:
        """The upper bound on the loss."""
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("MetricBound requires exactly one of at_most and at_least.")
        if self.at_most is not None:
            return check_number(self.at_most, "at_most", -np.inf, np.inf)
        if not metric.greater_is_better:
            raise ValueError(
                f"{type(metric).__name__} is a cost: bound it with at_most, not at_least."
            )
        return 1.0 - check_number(self.at_least, "at_least", -np.inf, np.inf)

    def check(self, cells: Cells) -> None:
        metric = get_metric(self.metric, cells.classes)
        self.bound(metric)
        if metric.needs_groups and super().needs_groups:
            raise ValueError(
                f"{type(metric).__name__} is a metric of groups: it supports neither "
                "group nor per_group."
            )
        if self.needs_costs:
            if super().needs_groups:
                raise ValueError(
                    f"{type(metric).__name__} does not support group or per_group."
                )
            return
        super().check(cells)

    def counted(self, cells: Cells) -> list[np.ndarray]:
        if self.needs_costs:
            return []
        found = super().counted(cells)
        metric = get_metric(self.metric, cells.classes)
        if isinstance(metric, RecallMetric):
            # A class that a group lacks has no recall there, and is left out.
            rows = np.eye(cells.n_classes, dtype=bool)[:, :, None]
            return [mask & row for mask in found for row in rows]
        D = self.denominators(cells)
        if D is not None and len(D) == len(found):
            found = list(D != 0.0)
        return found

    def linear(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        G, h = [np.zeros((0, *cells.shape))], []
        for mask, mass, (pieces, offsets), _ in self._linear_forms(cells):
            G.append(mask[:, None, None] * (pieces / mass)[:, None])
            h.extend(offsets)
        return np.concatenate(G), np.array(h)

    def denominators(self, cells: Cells) -> np.ndarray | None:
        found = [
            mask[:, None, None] * B / mass
            for mask, mass, _, B in self._linear_forms(cells)
            if B is not None
        ]
        return np.array(found) if found else None

    def _linear_forms(self, cells):
        """(mask, mass, (pieces, offsets), B), B the denominator of a single piece."""
        if self.has_convex:
            return
        metric = get_metric(self.metric, cells.classes)
        bound = self.bound(metric)
        for mask, mass in self._masses(cells):
            priors = cells.priors[mask].sum(axis=0) / mass
            forms, ratio = metric.pieces(priors), metric.ratio(priors)
            if forms is not None:
                yield mask, mass, (forms[0], forms[1] - bound), None
            elif ratio is not None:
                A, B = ratio
                # This makes <B, C> at most 1.
                most = float(priors @ B.max(axis=1))
                A, B = (A / most, B / most) if most > 0.0 else (A, B)
                yield mask, mass, ((A - bound * B)[None], np.zeros(1)), B
            else:
                raise ValueError(
                    f"{type(metric).__name__} cannot be bounded: it is neither "
                    "convex nor a ratio of linear functions."
                )

    def convex_parts(self, cells: Cells) -> list[Constraint]:
        return one_per_group(self, cells)

    def convex_value(self, C: np.ndarray, cells: Cells) -> float:
        metric = get_metric(self.metric, cells.classes)
        return max((v for v, *_ in self._values(C, cells, metric)), default=-np.inf)

    def convex_gradient(self, C: np.ndarray, cells: Cells) -> np.ndarray:
        return self.convex_tangent(C, cells)[0]

    def convex_tangent(self, C: np.ndarray, cells: Cells) -> tuple[np.ndarray, float]:
        metric = get_metric(self.metric, cells.classes)
        bound = self.bound(metric)
        if metric.needs_groups:
            G, h = metric.tangent(cells.by_group(C))
            return G[np.asarray(cells.groups)], h - bound
        G = np.zeros(cells.shape)
        values = list(self._values(C, cells, metric))
        if not values:
            return G, -1.0  # nothing is bounded
        _, mask, mass = max(values, key=lambda found: found[0])
        piece, h = metric.tangent(C[mask].sum(axis=0) / mass)
        G[mask] = piece / mass
        return G, h - bound

    def _values(self, C, cells, metric):
        """(ψ - bound, mask, mass) of each selection."""
        bound = self.bound(metric)
        if metric.needs_groups:
            yield float(metric.value(cells.by_group(C)) - bound), None, 1.0
            return
        for mask, mass in self._masses(cells):
            value = metric.value(C[mask].sum(axis=0) / mass)
            yield float(value - bound), mask, mass

    def _masses(self, cells):
        """The masks of the selected cells, with their shares of the sample."""
        for group in selected_groups(self, cells):
            mask = cells.cells_of(group)
            mass = cells.priors[mask].sum()
            if mass > 0.0:
                yield mask, mass
