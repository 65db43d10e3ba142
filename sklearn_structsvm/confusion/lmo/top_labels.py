"""Exactly k labels for each row: the sets of labels with the lowest cost."""

from dataclasses import dataclass
from itertools import combinations
from math import comb, log

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.label_metric import (
    coefficients_of_hits,
    matrices_of_hits,
)
from sklearn_structsvm.confusion.lmo._top_labels import ascend, count_labels, top_labels
from sklearn_structsvm.confusion.lmo.arguments import as_losses
from sklearn_structsvm.confusion.lmo.base import Minimizer

# If all choices for all rows are tried, at most this many numbers are stored: 8 MB, and
# about 20 ms.
MAX_ENUMERATED = 2**20


@dataclass
class LabelSets:
    """k labels for each row, and their sums.

    `labels` (n, k), int32. `eta` (n, k): their probabilities. `hits`, `predicted` (L,):
    t and q of each label: the expected share of rows for which it is correctly
    predicted, and the share for which it is predicted.
    """

    labels: np.ndarray
    eta: np.ndarray
    hits: np.ndarray
    predicted: np.ndarray

    def matrix(self, n_labels):
        """Indicator, CSR of shape (n, L)."""
        n, k = self.labels.shape
        labels = np.sort(self.labels, axis=1).ravel()
        starts = np.arange(n + 1, dtype=np.int64) * k
        ones = np.ones(n * k, dtype=np.int64)
        return sparse.csr_array((ones, labels, starts), shape=(n, n_labels))


class TopLabelsLMO(Minimizer):
    """The best rule that predicts k labels for each row, for any loss tensor.

    Labels are the cells: C[l, i, j] is the share of pairs of a row and a label that have
    label l, where i says whether the row has it and j whether it is predicted. It counts
    the probabilities. For a loss tensor, the gain of predicting label l for a row is
    linear in η_l, and the labels with the k largest gains form the best set. So bounds
    are valid, also for mixtures.

    `sample_weight` (n,) or None. `k`: from 1 to the number of labels.

    Attributes: `priors_` (L, 2). `prior` (L,): p, the expected share of the rows that
    have each label. `weights` (n,): of sum 1.
    """

    exact = True

    def __init__(self, rows, k, sample_weight=None):
        self.rows, self.k = rows, k
        weights = check_weights(sample_weight, len(rows))
        self.n_terms = len(rows)
        self.weights = weights / weights.sum()
        n_labels = rows.n_labels
        by_entry = np.repeat(self.weights, np.diff(rows.starts)) * rows.eta
        prior = np.bincount(rows.labels, weights=by_entry, minlength=n_labels)
        self.prior = np.minimum(prior, 1.0)
        self.shape_ = (n_labels, 2, 2)
        self.priors_ = np.stack([1.0 - self.prior, self.prior], axis=1) / n_labels
        self._room = np.empty(k), np.zeros(n_labels, dtype=np.intp)

    def __call__(self, L):
        """The best sets for L: their tensor, L itself, and the minimum <L, C>."""
        L = as_losses(L, self.shape_)
        sets = self.choose(gains_of_losses(L))
        C = matrices_of_hits(sets.hits, sets.predicted, self.prior) / len(L)
        return C, L, float(np.vdot(L, C))

    def choose(self, gains):
        """The k labels with the largest gains in each row.

        `gains` (L, 2), or loss tensor (L, 2, 2): predicting label l for a row gains
        gains[l, 0] + gains[l, 1] η_l. Returns `LabelSets`.
        """
        if np.ndim(gains) == 3:
            gains = gains_of_losses(gains)
        labels, eta = best_labels(self.rows, gains, self.k, self._room)
        return self.counted(labels, eta)

    def counted(self, labels, eta):
        """`LabelSets` of these labels."""
        hits, predicted = np.empty((2, self.rows.n_labels))
        count_labels(labels, eta, self.weights, hits, predicted)
        return LabelSets(labels, eta, hits, predicted)

    def ascend(self, sets, coefficients, order):
        """One pass over the rows, in which each takes the best labels given all others.

        `sets`: they are not modified. `coefficients` (L, 6): coefficients of the
        labels' losses, see `LabelLoss`. `order` (L,), int32: among the labels that a
        row does not store, the first k of this order are tried. Returns `LabelSets`.
        """
        labels, eta = sets.labels.copy(), sets.eta.copy()
        rows = self.rows
        ascend(
            rows.starts, rows.labels, rows.eta, self.weights, coefficients, order,
            sets.hits.copy(), sets.predicted.copy(), np.empty(rows.n_labels),
            labels, eta, *self._cleared(),
        )  # fmt: skip
        return self.counted(labels, eta)

    def enumerated(self, losses):
        """The best of all choices of k labels per row, if there are few.

        `losses`: maps t and q, each of shape (m, L), to the losses of the labels, (m,
        L). Returns `LabelSets`, or None if there are too many choices, or only one.
        """
        n, n_labels = len(self.rows), self.rows.n_labels
        n_choices = comb(n_labels, self.k)
        if n_choices == 1 or n * log(n_choices) > log(MAX_ENUMERATED / n_labels):
            return None
        choices = np.array(list(combinations(range(n_labels), self.k)), dtype=np.int32)
        chosen = np.zeros((len(choices), n_labels))
        np.put_along_axis(chosen, choices, 1.0, axis=1)
        eta = self.rows.matrix().toarray()
        hits = predicted = np.zeros((1, n_labels))
        for of_row, weight in zip(eta, self.weights, strict=True):
            # The sums over the rows so far, with each choice for this row.
            hits, predicted = (
                (before[:, None] + weight * part).reshape(-1, n_labels)
                for before, part in ((hits, of_row * chosen), (predicted, chosen))
            )
        best = int(np.argmin(losses(hits, predicted).mean(axis=1)))
        at = np.unravel_index(best, (len(choices),) * n)
        labels = choices[list(at)]
        return self.counted(labels, np.take_along_axis(eta, labels, axis=1))

    def _cleared(self):
        self._room[1][:] = 0
        return self._room


def gains_of_losses(L):
    """The gain of predicting each label, as a linear function of η, (L, 2)."""
    _, by_hits, by_predicted = np.moveaxis(coefficients_of_hits(L, 0.0), -1, 0)
    return -np.stack([by_predicted, by_hits], axis=1)


def best_labels(rows, gains, k, room=None):
    """The k labels with the largest gains per row, best first, then by label.

    Returns `labels` (n, k), int32; `eta` (n, k): their probabilities.
    """
    n = len(rows)
    gains = np.ascontiguousarray(gains, dtype=np.float64)
    labels, eta = np.empty((n, k), dtype=np.int32), np.empty((n, k))
    best, seen = room or (np.empty(k), np.zeros(rows.n_labels, dtype=np.intp))
    seen[:] = 0
    top_labels(
        rows.starts, rows.labels, rows.eta, gains, by_constant(gains), labels, eta,
        best, seen,
    )  # fmt: skip
    return labels, eta


def by_constant(gains):
    """Labels by falling gain at η = 0, then by label."""
    return np.argsort(-gains[:, 0], kind="stable").astype(np.int32)
