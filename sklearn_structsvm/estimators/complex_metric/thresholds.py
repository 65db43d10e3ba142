"""Rules of two classes as thresholds of the probability of one of them, the named label.

A rule compares one number, this probability as the classifier gives it, with a threshold.
What is published, predicted and exported is this one comparison. Where both numbers are
equal, the first class is predicted, as by the plug-in rule for any number of classes.
"""

import numpy as np

# The number of digits to which 1 - p is exact up to rounding.
DECIMALS = 15

# How the named label is told, by its place and whether it is predicted below.
SIGNS = {(0, False): ">=", (0, True): "<=", (1, False): ">", (1, True): "<"}


class NamedThresholds:
    """The thresholds of rules, by the loss matrices that they stand for.

    `losses` (..., 2, 2). `named` ({0, 1}): the label whose probability is compared.

    Attributes: `at` (...): the named label is predicted where its probability is above,
    or below. -inf means always, and inf means never. `below` (...) bool: whether it is
    predicted below, which happens only with misleading probabilities. `excess` (...,
    2): what predicting the named label costs more than the other one, by label.
    """

    def __init__(self, losses, named):
        self.named, other = named, 1 - named
        self.excess = losses[..., named] - losses[..., other]
        if_named, if_other = self.excess[..., named], self.excess[..., other]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.at = np.array(if_other / (if_other - if_named))
        wins = np.less if named else np.less_equal
        for_both = wins(self.excess, 0.0)
        # A threshold below 0, or above 1, is told as it is.
        is_up = if_named < if_other
        self.at[~is_up & for_both.all(axis=-1)] = -np.inf
        self.at[~is_up & ~for_both.any(axis=-1)] = np.inf
        self.below = ~is_up & np.isfinite(self.at)

    @property
    def told(self):
        """Thresholds for users: NaN where the named label is predicted below."""
        return np.where(self.below, np.nan, self.at)

    def codes(self, which, P):
        """Codes of the predictions; `which` is the place of each row's rule."""
        p = P[:, self.named].astype(np.float64, copy=False)
        at, below = self.at[which], self.below[which]
        if self.named:
            return np.where(below, p < at, p > at).astype(np.intp)
        return 1 - np.where(below, p <= at, p >= at).astype(np.intp)

    def scores(self, which, P):
        """The distance from the threshold, in costs; above 0, class 1 is predicted."""
        p = P[:, self.named].astype(np.float64, copy=False)
        at, excess = self.at[which], self.excess[which]
        if_named, if_other = excess[..., self.named], excess[..., 1 - self.named]
        is_finite = np.isfinite(at)
        distance = np.where(is_finite, at, 0.0) - p
        costs = np.where(
            is_finite,
            (if_other - if_named) * distance,
            if_named * p + if_other * (1.0 - p),
        )
        return -costs if self.named else costs


def named_losses(losses, scores):
    """Loss matrices of thresholds of p_1, as such of thresholds of p_0.

    For rows whose p_1 is 1 - p_0, as computed, predictions are the same.

    `losses` (..., 2, 2). `scores` (n,): the p_1 of these rows.
    """
    cuts, found = NamedThresholds(losses, 1), losses.copy()
    for where in map(tuple, np.argwhere(np.isfinite(cuts.at))):
        at, below = cuts.at[where], cuts.below[where]
        cut = round(1.0 - at, DECIMALS)
        if (np.abs(scores - at) <= 2.0 * 10.0**-DECIMALS).any():
            # The last p_0 for which 1 - p_0 is still rounded to the threshold.
            away = -np.inf if below else np.inf
            cut = 1.0 - at - (np.nextafter(at, away) - at) / 2.0
            while (1.0 - cut < at) if below else (1.0 - cut > at):
                cut = np.nextafter(cut, away)
        sign = -1.0 if below else 1.0
        found[where] = [[sign * (cut - 1.0), 0.0], [sign * cut, 0.0]]
    return found
