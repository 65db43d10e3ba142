"""The hinge loss of label sets: every present label above every absent one."""

import numpy as np

from sklearn_structsvm._utils.labels import label_cost_matrix, plain
from sklearn_structsvm.risks._lines import PairLines, SeparableLines
from sklearn_structsvm.risks.base import HingeRisk

# Examples whose pairs are listed at a time.
ROWS = 256


class MultilabelHinge(HingeRisk):
    """R(W) = Σ_i p_i max(0, max over pairs of costs[c, d] + ⟨w_d - w_c, x_i⟩).

    A pair is a label c that the example has and a label d that it has not. With the same
    cost for all pairs, the inner maximum is that of the absent labels' scores less the
    least of the present ones', which takes O(k) time and not O(k²). An example with all
    labels, or with none, has no pair and no loss.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    Y : array-like of shape (n_samples, n_labels)
        Indicator of 0 and 1.
    sample_weight : array-like of shape (n_samples,) or None
    label_costs : array-like of shape (n_labels, n_labels), float or None
        ``label_costs[present, absent]`` >= 0, zero on the diagonal: the margin asked
        between the two. A number stands for all pairs, None for 1.
    bias : float
    n_threads : int

    References
    ----------
    Yu, Vishwanathan, Günter, Schraudolph: A quasi-Newton approach to nonsmooth convex
    optimization problems in machine learning. JMLR 11, 2010, (50) to (54).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.risks import MultilabelHinge
    >>> risk = MultilabelHinge(np.eye(2), [[1, 1, 0], [1, 0, 0]])
    >>> Z = np.array([[3.0, 1.0, 0.5], [0.0, -2.0, 0.25]])
    >>> risk.sample_losses(Z).tolist()
    [0.5, 1.25]
    """

    def __init__(
        self, X, Y, sample_weight=None, *, label_costs=None, bias=0.0, n_threads=1
    ):
        Y = np.asarray(Y)
        if Y.ndim != 2:
            raise ValueError(
                f"Y must be an indicator of shape (n_samples, n_labels); got {Y.shape}."
            )
        super().__init__(X, Y.shape[1], sample_weight, bias=bias, n_threads=n_threads)
        if len(Y) != self.n_samples:
            raise ValueError(f"Y must have {self.n_samples} rows; got {len(Y)}.")
        bad = np.argwhere(~np.isin(Y, (0, 1)))
        if len(bad):
            i, c = bad[0]
            raise ValueError(
                f"Y must be an indicator of 0 and 1; got {plain(Y[i, c])!r} in row {i}, "
                f"column {c}."
            )
        self.present = np.ascontiguousarray(Y, dtype=np.int8)
        k = self.n_scores
        if label_costs is not None and np.ndim(label_costs) == 0:
            label_costs = label_costs * (1.0 - np.eye(k))
        self.label_costs = costs = label_cost_matrix(label_costs, k)
        pairs = costs[~np.eye(k, dtype=bool)]
        if np.all(pairs == pairs[:1]):
            margin = pairs[0] if len(pairs) else 0.0
            self.hinge = SeparableLines(self.weights, self.present, margin)
        else:
            self.hinge = PairLines(self.weights, self.present, costs)

    def dual_form(self):
        counts = np.count_nonzero(self.present, axis=1)
        # The first line of each example is zero.
        counts = 1 + counts * (self.n_scores - counts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        gained, lost = np.zeros((2, starts[-1]), dtype=np.intc)
        cost = np.zeros(starts[-1])
        for first in range(0, self.n_samples, ROWS):
            present = self.present[first : first + ROWS].astype(bool)
            i, c, d = np.nonzero(present[:, :, np.newaxis] & ~present[:, np.newaxis, :])
            begin = starts[first]
            place = np.arange(len(i)) + begin + 1 + i
            gained[place], lost[place], cost[place] = d, c, self.label_costs[c, d]
        return "pairs", {"starts": starts, "gained": gained, "lost": lost, "cost": cost}
