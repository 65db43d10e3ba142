"""The hinge loss of two classes."""

import numpy as np

from sklearn_structsvm._utils.labels import check_codes, label_cost_matrix
from sklearn_structsvm.risks._binary_lines import BinaryLines
from sklearn_structsvm.risks.base import HingeRisk


class BinaryHinge(HingeRisk):
    """R(w) = Σ_i p_i max(0, cost_i - y_i ⟨w, x_i⟩), y_i in {-1, 1}.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Encoded: 0 stands for the class -1, and 1 for 1.
    sample_weight : array-like of shape (n_samples,) or None
    label_costs : array-like of shape (2, 2) or None
        ``label_costs[truth, label]``; None for 1 off the diagonal. The margin asked of
        an example is what the wrong label costs.
    bias : float
    n_threads : int

    References
    ----------
    Yu, Vishwanathan, Günter, Schraudolph: A quasi-Newton approach to nonsmooth convex
    optimization problems in machine learning. JMLR 11, 2010, (19) to (23).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.risks import BinaryHinge
    >>> risk = BinaryHinge(np.array([[1.0], [2.0]]), [1, 0])
    >>> Z = risk.scores(np.zeros(1))
    >>> risk.value(Z)
    1.0
    >>> B, offset = risk.plane(Z)
    >>> risk.gradient(B).tolist(), offset
    ([0.5], 1.0)
    >>> along = risk.scores(np.array([-1.0]))
    >>> risk.line_search(Z, along, wp=0.0, pp=1.0, lam=0.1)
    0.5
    """

    def __init__(
        self, X, y, sample_weight=None, *, label_costs=None, bias=0.0, n_threads=1
    ):
        super().__init__(X, 1, sample_weight, bias=bias, n_threads=n_threads)
        y = check_codes(y, self.n_samples, 2)
        costs = label_cost_matrix(label_costs, 2)
        margins = np.array([costs[0, 1], costs[1, 0]])
        self.signs, self.costs = 2.0 * y - 1.0, margins[y]
        self.hinge = BinaryLines(self.weights, self.signs, self.costs)

    def dual_form(self):
        return "box", {"sign": self.signs, "cost": self.costs}
