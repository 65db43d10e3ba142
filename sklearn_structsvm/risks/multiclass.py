"""The hinge loss of k classes, with any label costs."""

import numpy as np

from sklearn_structsvm._utils.labels import check_codes, label_cost_matrix
from sklearn_structsvm.risks._lines import MulticlassLines
from sklearn_structsvm.risks.base import HingeRisk


class MulticlassHinge(HingeRisk):
    """R(W) = Σ_i p_i max_c costs[y_i, c] + ⟨w_c - w_{y_i}, x_i⟩.

    Rescaled by the costs (slack rescaling), the loss is
    max_c costs[y_i, c] (1 + ⟨w_c - w_{y_i}, x_i⟩) instead.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Classes as 0, ..., n_classes - 1.
    sample_weight : array-like of shape (n_samples,) or None
    n_classes : int or None
        None for ``max(y) + 1``, or as many as there are costs.
    label_costs : array-like of shape (n_classes, n_classes) or None
        ``label_costs[truth, label]`` >= 0, zero on the diagonal; None for 1 off it.
    rescaled : bool
        Whether costs rescale the slack and not the margin.
    bias : float
    n_threads : int

    References
    ----------
    Yu, Vishwanathan, Günter, Schraudolph: A quasi-Newton approach to nonsmooth convex
    optimization problems in machine learning. JMLR 11, 2010, (35) to (41) and
    footnote 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.risks import MulticlassHinge
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0, 1, 2]
    >>> risk = MulticlassHinge(X, y, label_costs=[[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> Z = risk.scores(np.zeros(risk.n_weights))
    >>> risk.sample_losses(Z).tolist()
    [2.0, 1.0, 2.0]
    """

    def __init__(
        self,
        X,
        y,
        sample_weight=None,
        *,
        n_classes=None,
        label_costs=None,
        rescaled=False,
        bias=0.0,
        n_threads=1,
    ):
        if n_classes is None:
            n_classes = int(np.max(y)) + 1 if label_costs is None else len(label_costs)
        self.label_costs = label_cost_matrix(label_costs, n_classes)
        super().__init__(X, n_classes, sample_weight, bias=bias, n_threads=n_threads)
        self.truth = check_codes(y, self.n_samples, n_classes).astype(np.intc)
        self.rescaled = bool(rescaled)
        self.hinge = MulticlassLines(
            self.weights, self.truth, self.label_costs, self.rescaled
        )

    def dual_form(self):
        return "simplex", {
            "truth": self.truth,
            "cost": self.label_costs,
            "rescaled": self.rescaled,
        }
