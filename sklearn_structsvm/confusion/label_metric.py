"""A metric of two classes for each of several labels, and its mean."""

import numpy as np

from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.confusion.metric import ConfusionMetric

# "Not predicted" and "predicted", as the classes of a metric.
ABSENT_PRESENT = np.array([0, 1])


class LabelMean(ConfusionMetric):
    """The mean of a metric over labels: a metric of the L matrices (2, 2) of labels.

    ψ(C) = 1/L Σ_l ψ₂(L C_l), where C of shape (L, 2, 2) sums to 1, and each C_l to 1/L.
    With a single label it is ψ₂ itself. This is the micro-average if the pairs of rows
    and labels are the examples.

    `metric`: ψ₂, resolved to the classes 0 and 1. `weights` (L,): of the labels, with
    sum 1; None means 1/L each.
    """

    needs_groups = True

    def __init__(self, metric, weights=None):
        self.metric, self.weights = metric, weights

    @property
    def convex(self):
        """Whether ψ₂ is convex."""
        return self.metric.convex

    @property
    def smooth(self):
        """Whether ψ₂ is."""
        return self.metric.smooth

    @property
    def _error_of_slopes(self):
        return self.metric._error_of_slopes

    def value(self, C):
        return self._mean([self.metric.value(C_l) for C_l in len(C) * C])

    def gradient(self, C):
        return self._scaled([self.metric.gradient(C_l) for C_l in len(C) * C])

    def tangent(self, C):
        slopes, offsets = zip(
            *(self.metric.tangent(C_l) for C_l in len(C) * C), strict=True
        )
        return self._scaled(slopes), self._mean(offsets)

    def _mean(self, values):
        return float(np.average(values, weights=self.weights))

    def _scaled(self, slopes):
        slopes = np.array(slopes)
        if self.weights is None:
            return slopes
        return slopes * (len(slopes) * self.weights)[:, None, None]


def label_weights(average, shares):
    """Weights of the labels in a mean, from the shares of rows that have them.

    `average` ({"macro", "weighted"}), `shares` (L,). Returns (L,) with sum 1, or None,
    which means 1/L each.
    """
    total = shares.sum()
    return shares / total if average == "weighted" and total > 0.0 else None


class LabelLoss:
    """ψ₂ of one label as a function of its hits and its number of predictions.

    For a fixed share p of examples with the label, the matrix is a function of t, the
    share that is correctly predicted, and q, the share that is predicted.

    `metric`: resolved to the classes 0 and 1. `prior`: p. `support`: a share of the
    rows. If ψ₂ is 0/0 where the label is never (or always) predicted, as is precision,
    this many more rows are (or are not), with the share p of hits. The best precision
    of few rows is mostly chance.

    Attributes: `coefficients` (2, 3): (a, b) with ψ₂ = (a_0 + a_1 t + a_2 q) / (b_0 +
    b_1 t + b_2 q), and 1 if the denominator is 0; None if ψ₂ has no such form.
    `linear`: whether b_1 = b_2 = 0.
    """

    def __init__(self, metric, prior, support=0.0):
        self.metric, self.prior = metric, prior
        self._ratio = self._pieces = None
        priors = np.array([1.0 - prior, prior])
        pieces = metric.pieces(priors)
        if pieces is not None:
            G, h = pieces
            self._pieces = np.array([self._of_hits(G_p) for G_p in G])
            self._pieces[:, 0] += h
            if len(h) == 1:
                self._ratio = np.array([self._pieces[0], [1.0, 0.0, 0.0]])
        else:
            ratio = metric.ratio(priors)
            if ratio is not None:
                self._ratio = np.array([self._of_hits(part) for part in ratio])
                self._support(support)

    @property
    def coefficients(self):
        return self._ratio

    @property
    def linear(self):
        return self._ratio is not None and not self._ratio[1, 1:].any()

    def _support(self, share):
        """Add as many rows of the label's prior where the ratio is 0/0 without any."""
        b = self._ratio[1]
        of_a_row = self._ratio @ [0.0, self.prior, 1.0]
        if b[0] == 0.0:
            self._ratio[:, 0] += share * of_a_row
        elif b[0] + of_a_row[1] == 0.0:
            self._ratio[:, 0] -= share * of_a_row

    def _of_hits(self, G):
        return coefficients_of_hits(G, self.prior)

    def __call__(self, hits, predicted):
        """ψ₂ for arrays of t and q."""
        hits, predicted = np.asarray(hits), np.asarray(predicted)
        if self._ratio is not None:
            return ratio_values(self._ratio, hits, predicted)
        if self._pieces is not None:
            values = [c[0] + c[1] * hits + c[2] * predicted for c in self._pieces]
            return np.max(values, axis=0)
        tensors = matrices_of_hits(hits, predicted, self.prior)
        return np.array([self.metric.value(C) for C in tensors])


def ratio_values(coefficients, hits, predicted):
    """(a_0 + a_1 t + a_2 q) / (b_0 + b_1 t + b_2 q), 1 if the denominator is 0.

    `coefficients` (2, 3) or (2, 3, L).
    """
    (a0, a1, a2), (b0, b1, b2) = coefficients
    numerators = a0 + a1 * hits + a2 * predicted
    denominators = b0 + b1 * hits + b2 * predicted
    values = np.ones(np.shape(numerators))
    np.divide(numerators, denominators, out=values, where=denominators > 0.0)
    return values


def coefficients_of_hits(G, prior):
    """(c_0, c_1, c_2) with <G, C> = c_0 + c_1 t + c_2 q; G of shape (..., 2, 2)."""
    (g00, g01), (g10, g11) = np.moveaxis(G, (-2, -1), (0, 1))
    constant = g00 * (1.0 - prior) + g10 * prior
    return np.stack([constant, g11 - g01 - g10 + g00, g01 - g00], axis=-1)


def matrices_of_hits(hits, predicted, prior):
    """Matrices (..., 2, 2) of sum 1, from t, q and p."""
    hits, predicted, prior = np.broadcast_arrays(hits, predicted, prior)
    absent = np.stack([1.0 - predicted - prior + hits, predicted - hits], axis=-1)
    present = np.stack([prior - hits, hits], axis=-1)
    C = np.stack([absent, present], axis=-2)
    return np.where(C > SUM_ROUNDING, C, 0.0)


def label_confusions(truth, predicted, weights):
    """Shares of the rows by label, (L, 2, 2): there or not, predicted or not.

    `weights` (n,). `truth`, `predicted` (CSR (n, L)): indicators.
    """
    total = weights.sum()
    hits = predicted.multiply(truth).T @ weights / total
    shares = predicted.T @ weights / total, truth.T @ weights / total
    return matrices_of_hits(hits, *shares)
