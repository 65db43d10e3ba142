"""Bounds on how many predictions differ from those of a baseline classifier."""

import numpy as np

from sklearn_structsvm.confusion.rates import (
    SelectiveConstraint,
    check_number,
    selected_groups,
)
from sklearn_structsvm.confusion.scoring import check_baseline

__all__ = ["Churn"]


class Churn(SelectiveConstraint):
    r"""Bound the share of the examples that a baseline classifier gives another label.

    .. math:: \sum_b \sum_{j \neq b} \sum_i C^b_{ij} \le \epsilon

    with C^b the confusion matrix of the examples to which the baseline gives label b: its
    labels divide each group into cells. Linear in C.

    Parameters
    ----------
    baseline : classifier
        Fitted: it is asked to `predict` in `fit` and in `predict`. Cloning the constraint
        keeps it as it is, since it is a point of reference and not to be fitted again.
    at_most : float
        ε in [0, 1].
    label : label, default=None
        Count only examples that the baseline gives this label; None is all.
    group : group, default=None
        Count the examples of this group only; None is all.
    per_group : bool, default=False
        Bound the share in every group.

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

    def __init__(self, baseline, at_most, *, label=None, group=None, per_group=False):
        self.baseline = baseline
        self.at_most = at_most
        self.label = label
        self.group = group
        self.per_group = per_group

    def __sklearn_clone__(self):
        return type(self)(**self.get_params(deep=False))

    def check(self, cells):
        check_baseline(self.baseline)
        if cells.baseline is None:
            raise ValueError("Churn needs the baseline's labels (y_baseline).")
        super().check(cells)

    def linear(self, cells):
        bound = check_number(self.at_most, "at_most", 0.0, 1.0)
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
        G = np.concatenate(G)
        return G, np.full(len(G), -bound)
