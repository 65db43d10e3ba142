"""Bounds on how many predictions differ from those of a baseline classifier."""

from typing import Any

import numpy as np

from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.rate_constraint import (
    SelectiveConstraint,
    check_number,
    selected_groups,
)
from sklearn_structsvm.confusion.scoring import check_baseline

__all__ = ["Churn"]


class Churn(SelectiveConstraint):
    r"""Upper bound on churn: predictions that differ from those of a baseline.

    .. math:: \sum_b \sum_{j \neq b} \sum_i C^b_{ij} \le \epsilon

    Here :math:`C^b` is the confusion matrix of the examples to which the baseline assigns
    label b. The baseline's labels divide each group into cells. The constraint is linear
    in C.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    baseline : classifier
        Fitted classifier. Its `predict` is called in `fit` and in `predict`. Cloning the
        constraint does not clone the baseline, so that it stays fitted.
    at_most : float
        The bound ε, in [0, 1].
    label : label, default=None
        Count only examples to which the baseline assigns this label. None counts all.
    group : group, default=None
        Count only the examples of this group: a value of the sensitive feature, or a
        tuple of values for several columns. None counts all examples.
    per_group : bool, default=False
        Whether to bound the churn in every group.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn_structsvm.metrics import Churn
    >>> baseline = DummyClassifier(strategy="constant", constant="a")
    >>> baseline = baseline.fit(np.zeros((2, 1)), ["a", "b"])
    >>> constraint = Churn(baseline, at_most=0.25)
    >>> constraint(["a", "b"], ["a", "b"], y_baseline=["a", "a"])
    0.25
    """

    needs_baseline = True

    def __init__(
        self,
        baseline: Any,
        at_most: float,
        *,
        label: Any = None,
        group: Any = None,
        per_group: bool = False,
    ) -> None:
        self.baseline = baseline
        self.at_most = at_most
        self.label = label
        self.group = group
        self.per_group = per_group

    def __sklearn_clone__(self):
        return type(self)(**self.get_params(deep=False))

    def check(self, cells: Cells) -> None:
        check_baseline(self.baseline)
        super().check(cells)

    def counted(self, cells: Cells) -> list[np.ndarray]:
        found = super().counted(cells)
        if self.label is not None:
            is_of = np.asarray(cells.baseline) == cells.class_index(self.label)
            found = [mask & is_of[:, None, None] for mask in found]
        return found

    def linear(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        bound = check_number(self.at_most, "at_most", 0.0, 1.0)
        if cells.baseline is None:
            raise ValueError(
                "Churn requires the labels of the baseline: pass y_baseline."
            )
        baseline = np.asarray(cells.baseline)
        differs = np.arange(cells.n_classes) != baseline[:, None]
        G = [np.zeros((0, *cells.shape))]
        for group in selected_groups(self, cells):
            mask = cells.cells_of(group)
            if self.label is not None:
                mask = mask & (baseline == cells.class_index(self.label))
            mass = cells.priors[mask].sum()
            if mass > 0.0:
                counted = (mask[:, None] & differs) / mass
                G.append(np.broadcast_to(counted[:, None, :], cells.shape)[None])
        return np.concatenate(G), np.full(len(G) - 1, -bound)
