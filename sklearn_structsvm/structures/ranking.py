"""Rankings of labels, cut off at a threshold."""

from copy import copy

import numpy as np

from sklearn_structsvm._utils.arrays import as_codes
from sklearn_structsvm._utils.labels import label_cost_matrix
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.structures.flat import MultilabelStructure


class RankingStructure(MultilabelStructure):
    """k labels by their scores Wᵀx, those above one threshold present.

    Trained on a `MultilabelHinge`, present labels score above absent ones. This does not
    determine the threshold, which `with_threshold` learns from the scores.

    `label_costs` (n_labels, n_labels) or None: ``label_costs[present, absent]``, the
    margin asked between two labels.

    Attributes: `threshold_`: 0 until it is learned.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.structures.ranking import RankingStructure
    >>> X, Y = np.eye(2), np.array([[1, 0, 1], [0, 0, 1]])
    >>> w = np.array([5.0, 2.0, 4.0, 2.0, 0.0, 3.0])
    >>> structure = RankingStructure().fit(X, Y).with_threshold(X, Y, w)
    >>> structure.threshold_, structure.decode_batch(X, w).tolist()
    (2.5, [[1, 0, 1], [0, 0, 1]])
    """

    def __init__(self, label_costs=None):
        self.label_costs = label_costs

    def _fit_costs(self):
        self.label_costs_ = label_cost_matrix(self.label_costs, self._k)
        self.threshold_ = 0.0

    def _fitted_shapes(self):
        costs = {"label_costs_": (self._k, self._k)}
        return super()._fitted_shapes() | costs | {"threshold_": ()}

    def with_threshold(self, X, Y, w, sample_weight=None):
        """A copy whose threshold leaves the fewest wrong labels in Y.

        Of equally good ones it takes the middle of the widest gap between scores.
        """
        scores = self.decision_function(X, w)
        weights = np.ones(len(scores)) if sample_weight is None else sample_weight
        result = copy(self)
        result.threshold_ = best_threshold(
            scores.ravel(),
            self._encode(np.asarray(Y)).ravel() != 0,
            np.repeat(weights, scores.shape[1]),
        )
        return result

    def make_oracle(self, X, y):
        raise TypeError(
            "RankingStructure has no max-oracle over label sets; its hinge loss is "
            "sklearn_structsvm.risks.MultilabelHinge."
        )

    def _predict(self, scores):
        return as_codes(scores > self.threshold_)

    def present_scores(self, scores):
        return scores - self.threshold_

    def loss(self, y_true, y):
        truth, labels = self._encode(np.asarray([y_true, y]))
        return float(np.count_nonzero(truth != labels))


def best_threshold(scores, present, weights):
    """The threshold of least weight of (score > threshold) != present.

    `weights` (m,): not negative; those of zero do not count.
    """
    used = weights > 0.0
    scores, present, weights = scores[used], present[used], weights[used]
    order = np.argsort(scores)
    scores, change = scores[order], np.where(present, weights, -weights)[order]
    # The wrong labels if the j lowest scores are cut off, up to a constant.
    wrong = np.concatenate([[0.0], np.cumsum(change)])
    gaps = np.concatenate([[0.0], np.diff(scores), [0.0]])
    possible = gaps > 0.0
    possible[[0, -1]] = True
    least = wrong[possible].min() + SUM_ROUNDING * weights.sum()
    best = np.flatnonzero(possible & (wrong <= least))
    cut = best[gaps[best].argmax()]
    if cut == 0:
        return float(scores[0] - 1.0)
    if cut == len(scores):
        return float(scores[-1] + 1.0)
    below, above = scores[cut - 1], scores[cut]
    middle = below + 0.5 * (above - below)
    return float(middle if middle < above else below)
