"""Bounds on the divergence of predicted from true class frequencies."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.rate_constraint import (
    SelectiveConstraint,
    check_number,
    one_per_group,
    selected_groups,
)

__all__ = ["Quantification"]


class Quantification(SelectiveConstraint):
    r"""Upper bound on the divergence of predicted from true class frequencies.

    .. math:: \sum_i p_i \log \frac{p_i}{q_i} \le \epsilon, \qquad q_i = \sum_j C_{ji}

    This is the Kullback-Leibler divergence, Example 6 of Narasimhan et al. (JMLR 2024).
    It is convex in C and not linear. To keep values finite for classes that are hardly
    ever predicted, the logarithm is continued linearly below :math:`p_i \exp(-1 -
    \epsilon / p_i)`, the smallest :math:`q_i` within the bound, or :math:`10^{-12} p_i`
    if that is larger. A classifier that never predicts a class with :math:`p_i > 0`
    violates the bound.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    at_most : float
        The bound ε > 0, in nats.
    target : array-like of shape (k,), dict or None, default=None
        Target frequencies p: one per class, summing to 1, or ``{label: frequency}``, in
        which missing ones are 0. None uses the label frequencies (in the group).
    group : group, default=None
        Count only the examples of this group: a value of the sensitive feature, or a
        tuple of values for several columns. None counts all examples.
    per_group : bool, default=False
        Whether to bound the divergence in every group.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Quantification
    >>> constraint = Quantification(at_most=0.1)
    >>> round(constraint(["a", "a", "b", "b"], ["a", "b", "b", "b"]), 4)
    0.0438
    """

    has_convex = True

    def __init__(
        self,
        at_most: float = 0.01,
        *,
        target: ArrayLike | dict[Any, float] | None = None,
        group: Any = None,
        per_group: bool = False,
    ) -> None:
        self.at_most = at_most
        self.target = target
        self.group = group
        self.per_group = per_group

    def shares(self, cells: Cells, group: Any = None) -> Any:
        """Target frequencies (k,) of a group, by index, or of all examples for None."""
        k = cells.n_classes
        if self.target is None:
            priors = cells.label_shares[cells.cells_of(group)].sum(axis=0)
            return priors / priors.sum() if priors.any() else priors
        if isinstance(self.target, dict):
            shares: Any = np.zeros(k, dtype=object)
            for label, share in self.target.items():
                shares[cells.class_index(label, "target")] = share
        else:
            shares = self.target
        shares = as_floats("target", shares, k)
        if (shares < 0.0).any() or not np.isclose(shares.sum(), 1.0):
            raise ValueError(
                f"target must be {k} non-negative frequencies that sum to 1; got "
                f"{self.target!r}."
            )
        return shares

    def check(self, cells: Cells) -> None:
        if check_number(self.at_most, "at_most", 0.0, np.inf) == 0.0:
            raise ValueError("at_most must be positive, got 0.")
        self.shares(cells)
        super().check(cells)

    def convex_parts(self, cells: Cells) -> list[Constraint]:
        return one_per_group(self, cells)

    def convex_value(self, C: np.ndarray, cells: Cells) -> float:
        G, h = self.convex_tangent(C, cells)
        return float(np.vdot(G, C) + h)

    def convex_gradient(self, C: np.ndarray, cells: Cells) -> np.ndarray:
        return self.convex_tangent(C, cells)[0]

    def convex_tangent(self, C: np.ndarray, cells: Cells) -> tuple[np.ndarray, float]:
        tangents = (self._tangent(C, cells, own) for own in selected_groups(self, cells))
        return max(tangents, key=lambda tangent: np.vdot(tangent[0], C) + tangent[1])

    def _tangent(self, C, cells, group):
        """(G, h) of one group's divergence."""
        p = self.shares(cells, group)
        mask = cells.cells_of(group)
        mass = cells.priors[mask].sum()
        G = np.zeros(cells.shape)
        at_most = check_number(self.at_most, "at_most", 0.0, np.inf)
        if not mass > 0.0:
            return G, -at_most
        q = C[mask].sum(axis=(0, 1)) / mass
        used = p > 0.0
        # In units of p: the cost of a class that is never predicted, and the end of the
        # line to it.
        never = 2.0 + at_most / p[used]
        least = np.maximum(np.exp(1.0 - never), SUM_ROUNDING)
        ratio = np.maximum(q[used] / p[used], least)
        rare = q[used] / p[used] < least
        # p log(p / q) is at least p (1 - log r) - p / (p r) q, with equality at q = p r,
        # where r belongs to the tangent.
        slopes = np.zeros(len(p))
        slopes[used] = np.where(rare, -(never + np.log(least)) / least, -1.0 / ratio)
        G[mask] = slopes / mass
        ends = np.where(rare, never, 1.0 - np.log(ratio))
        return G, float(p[used] @ ends - at_most)
