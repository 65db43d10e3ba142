"""Thresholds of conformal prediction: ranks among the scores of calibration examples."""

from fractions import Fraction
from math import ceil, floor

import numpy as np


def error_level(confidence_level):
    """1 - confidence_level as a fraction: 0.9 is nine tenths, as it is written."""
    return 1 - Fraction(repr(float(confidence_level)))


def smallest_calibration(confidence_level):
    """The smallest number of calibration examples that can give such a promise.

    With n examples the smallest possible error is 1 / (n + 1).
    """
    return ceil(1 / error_level(confidence_level)) - 1


def allowed_rank(confidence_level, n):
    """The m for which the m-th largest of n scores is the threshold; 0 if there is none.

    An exchangeable new score is larger than it with a probability of at most
    m / (n + 1).
    """
    return floor(error_level(confidence_level) * (n + 1))


class Threshold:
    """What scores may be, so that the new ones are at most that as often as asked.

    `largest`: for each model, and each calibration example that the model has not seen,
    the largest score that its truth needs; -inf if it needs nothing. `needed` or None:
    all scores that each truth needs, to bound the expected share of those that are
    missed, rather than the probability that any is. Only with one model.

    Attributes: `value`: the threshold; infinite if there are too few examples. NaN with
    several models.
    """

    def __init__(self, confidence_level, largest, needed=None):
        self.sorted = [np.sort(own) for own in largest]
        self.n = sum(map(len, largest))
        self.rank = allowed_rank(confidence_level, self.n)
        if needed is not None:
            self.value = _risk_threshold(confidence_level, needed)
        elif len(largest) > 1:
            self.value = np.nan
        else:
            in_order = self.sorted[0]
            self.value = float(in_order[self.n - self.rank]) if self.rank else np.inf

    def includes(self, scores):
        """Whether scores, an array for each model, are small enough.

        With several models the rank of a score is the sum of its ranks among the scores
        of each of them [Vovk, 2015].
        """
        if len(scores) == 1:
            return scores[0] <= self.value
        n_larger = np.zeros(np.shape(scores[0]), dtype=np.intp)
        for own, known in zip(scores, self.sorted, strict=True):
            n_larger += len(known) - np.searchsorted(known, own, side="left")
        return n_larger >= self.rank


def _risk_threshold(confidence_level, examples):
    """The smallest q with (sum of the shares above q + 1) / (n + 1) <= error level."""
    bound = float(error_level(confidence_level) * (len(examples) + 1)) - 1.0
    if bound < 0.0:
        return np.inf
    examples = [own for own in examples if len(own)]
    if not examples:
        return -np.inf
    scores = np.concatenate(examples)
    shares = np.concatenate([np.full(len(own), 1.0 / len(own)) for own in examples])
    order = np.argsort(-scores, kind="stable")
    scores, missed = scores[order], np.cumsum(shares[order])
    # Rounding must not break the promise.
    bound -= len(scores) * np.finfo(np.float64).eps * max(missed[-1], 1.0)
    # Scores that are equal are missed together.
    ends = np.append(scores[1:] != scores[:-1], True)
    n_missed = np.flatnonzero(ends & (missed <= bound))[-1:] + 1
    at = int(n_missed[0]) if len(n_missed) else 0
    return float(scores[at]) if at < len(scores) else -np.inf
