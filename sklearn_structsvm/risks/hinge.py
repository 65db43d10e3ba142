"""Hinge losses of two classes, of k classes and of label sets."""

import numpy as np

from sklearn_structsvm._contract.risk import Risk
from sklearn_structsvm._utils.labels import (
    check_codes,
    check_indicator,
    label_cost_matrix,
)
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.risks._binary_lines import BinaryLines
from sklearn_structsvm.risks._lines import MulticlassLines, PairLines, SeparableLines
from sklearn_structsvm.risks._step import exact_step

# The number of examples whose pairs of labels are listed at a time.
LISTED_ROWS = 256


class HingeRisk(Risk):
    """A risk whose losses are maxima of planes. A subclass sets `self.hinge`."""

    def value(self, Z):
        return self.hinge.value(_scores(Z), self.n_threads)

    def sample_losses(self, Z):
        return self.hinge.sample_losses(_scores(Z))

    def plane(self, Z, along=None, rtol=SUM_ROUNDING, out=None):
        if out is None:
            out = np.empty((self.n_samples, self.n_scores))
        along = None if along is None else _scores(along)
        return out, self.hinge.plane(_scores(Z), along, rtol, out, self.n_threads)

    def line_search(self, Z, along, wp, pp, lam, largest=np.inf, start=1.0):
        """The step that minimizes λ/2 ||w + η d||² + R(w + η d), exactly.

        It brackets the minimum, and selects among the remaining breakpoints, in time
        linear in the number of scores.

        `Z`, `along` (n_samples, n_scores): scores of w and of d. `wp`, `pp`: ⟨w, d⟩ and
        ⟨d, d⟩. `lam`: λ >= 0. `largest`: the longest step. `start`: the first step to
        try, which affects only the time. Returns the smallest η >= 0 at which a
        subgradient vanishes up to rounding, or `largest` if there is none below it.
        """
        Z, along = _scores(Z), _scores(along)
        if not largest >= 0.0:
            raise ValueError(f"largest must be >= 0; got {largest}.")
        if not 0.0 < start < np.inf:
            raise ValueError(f"start must be positive and finite; got {start}.")
        return exact_step(
            self.hinge, Z, along, lam * wp, lam * pp, largest, start, self.n_threads
        )


class BinaryHinge(HingeRisk):
    """R(w) = Σ_i p_i max(0, cost_i - y_i ⟨w, x_i⟩), y_i in {-1, 1}.

    `y` (n_samples,): encoded labels: 0 for the class -1, and 1 for 1. `label_costs` (2,
    2): ``label_costs[truth, label]``; None for 1 off the diagonal. The required margin
    of an example is the cost of the wrong label.

    Yu, Vishwanathan, Günter, Schraudolph: A quasi-Newton approach to nonsmooth convex
    optimization problems in machine learning. JMLR 11, 2010, (19) to (23).
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


class MulticlassHinge(HingeRisk):
    """R(W) = Σ_i p_i max_c costs[y_i, c] + ⟨w_c - w_{y_i}, x_i⟩.

    Rescaled by the costs (slack rescaling), the loss is
    max_c costs[y_i, c] (1 + ⟨w_c - w_{y_i}, x_i⟩) instead.

    `y` (n_samples,): classes as 0, ..., n_classes - 1. `n_classes`: None means ``max(y)
    + 1``, or the number of rows of `label_costs`. `label_costs` (n_classes, n_classes):
    ``label_costs[truth, label]`` >= 0, zero on the diagonal; None for 1 off it.
    `rescaled`: whether costs rescale the slack instead of the margin.

    Yu et al. (see `BinaryHinge`), (35) to (41) and footnote 2.
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


class MultilabelHinge(HingeRisk):
    """R(W) = Σ_i p_i max(0, max over pairs of costs[c, d] + ⟨w_d - w_c, x_i⟩).

    A pair is a label c that the example has and a label d that it does not have. If all
    pairs have the same cost, the inner maximum is the largest score of the absent labels
    minus the smallest score of the present ones, in O(k) instead of O(k²) time. An
    example with all labels, or with none, has no pair and no loss.

    `Y` (n_samples, n_labels): indicator of 0 and 1. `label_costs` (n_labels, n_labels),
    float: ``label_costs[present, absent]`` >= 0, zero on the diagonal: the required
    margin between the two. A number applies to all pairs. None means 1.

    Yu et al. (see `BinaryHinge`), (50) to (54).
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
        self.present = check_indicator(Y, self.n_samples)
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
        for first in range(0, self.n_samples, LISTED_ROWS):
            present = self.present[first : first + LISTED_ROWS].astype(bool)
            i, c, d = np.nonzero(present[:, :, np.newaxis] & ~present[:, np.newaxis, :])
            begin = starts[first]
            place = np.arange(len(i)) + begin + 1 + i
            gained[place], lost[place], cost[place] = d, c, self.label_costs[c, d]
        return "pairs", {"starts": starts, "gained": gained, "lost": lost, "cost": cost}


def _scores(Z):
    return np.require(Z, np.float64, "CA")
