"""Class probabilities that agree with the labels, where they did not."""

import numpy as np
from scipy.special import chdtri

# A model that is right is corrected this often.
LEVEL = 0.01

# What the labels count, against the probabilities, where these are corrected: recalls of
# few examples are noise, and those of a wrong model are wrong. How much other shares
# change is in benchmarks/README.md.
SHARE_OF_LABELS = 0.5


class LabelCorrection:
    """Multiplies class probabilities so that they go half the way to the labels.

    The rows are divided by what the rule of balanced costs says of them, argmax_j η_j /
    π_j: rules for metrics of recalls differ from it at its borders. In part b let N_bi
    be how many examples are of class i, and M_bi how many by their probabilities. If the
    latter are right,

        Σ_b (N_bb - M_bb)² / V_b,   V_b the sum of η_b (1 - η_b) over part b,

    is about chi-squared with k degrees of freedom. Where it is too large for that, at a
    level of 1 %, probabilities become proportional to η_i ((N_bi + M_bi) / 2) / M_bi.
    They are a function of η, so that the plug-in rule for them is a rule by η, and the
    best one if they are right. (Algorithm 9 of Narasimhan et al. counts labels instead,
    for which there is no certificate.)

    Parameters
    ----------
    shares : ndarray of shape (k,)
        π, of the labels.
    factors : ndarray of shape (k, k)
        For part b and class i.
    """

    def __init__(self, shares, factors):
        self.shares, self.factors = shares, factors

    @classmethod
    def fit(cls, P, y, weights):
        """The correction, or None where the labels do not contradict.

        Parameters
        ----------
        P : ndarray of shape (n, k)
        y : ndarray of shape (n,)
            Codes of the labels.
        weights : ndarray of shape (n,)
            Numbers of examples.
        """
        k = P.shape[1]
        shares = np.bincount(y, weights=weights, minlength=k) / weights.sum()
        parts = _parts(P, shares)
        by_label = np.zeros((k, k))
        np.add.at(by_label, (parts, y), weights)
        by_model, variance = np.zeros((k, k)), np.zeros(k)
        for i in range(k):
            of_class = P[:, i].astype(np.float64, copy=False)
            by_model[:, i] = np.bincount(parts, weights=weights * of_class, minlength=k)
            rows = parts == i
            spread = of_class[rows] * (1.0 - of_class[rows])
            variance[i] = float(weights[rows] @ np.maximum(spread, 0.0))
        off = np.square(np.diagonal(by_label) - np.diagonal(by_model))
        known = variance > 0.0
        statistic = float((off[known] / variance[known]).sum())
        if not statistic > chdtri(k, LEVEL):
            return None
        factors = np.ones((k, k))
        wanted = SHARE_OF_LABELS * by_label + (1.0 - SHARE_OF_LABELS) * by_model
        np.divide(wanted, by_model, out=factors, where=by_model > 0.0)
        return cls(shares, factors)

    def __call__(self, P):
        """The corrected probabilities, in the precision of P."""
        corrected = P * self.factors[_parts(P, self.shares)].astype(P.dtype, copy=False)
        return corrected / corrected.sum(axis=1, keepdims=True)


def _parts(P, shares):
    """What the rule of balanced costs predicts; a class without examples never."""
    return np.argmax(P * balanced_gain(shares).astype(P.dtype, copy=False), axis=1)


def balanced_gain(shares):
    """1 / π, the gain of a class in the rule of balanced costs; 0 without examples."""
    return np.divide(1.0, shares, out=np.zeros(len(shares)), where=shares > 0.0)
