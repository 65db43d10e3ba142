"""Class probabilities that agree with the labels, the more these are the more so."""

import numpy as np

from sklearn_structsvm.confusion.smoothing import fit_softmax, nearest_to_zero

# A class's share of what is wanted is by its labels n / (n + this), for n examples of it:
# recalls of few examples are noise, and those of a wrong model are wrong.
EXAMPLES_FOR_HALF = 30.0


class LabelCorrection:
    """Calibrates class probabilities, and then draws what they sum up to to the labels.

    First η becomes q = softmax(a log η + b), the most probable one for a prior around
    η itself. Then rows are divided by what the rule of balanced costs says of them,
    argmax_j q_j / π_j: rules for metrics of recalls differ from it at its borders. In
    part b let N_bi be how many examples are of class i, and M_bi how many by q.
    Probabilities become proportional to q_i (λ_i N_bi + (1 - λ_i) M_bi) / M_bi with λ_i =
    n_i / (n_i + 30) for the n_i examples of class i. They are a function of η, so that
    the plug-in rule for them is a rule by η, and the best one if they are right.
    (Algorithm 9 of Narasimhan et al. counts labels instead, for which there is no
    certificate.)

    Parameters
    ----------
    floor : float
        What probabilities are at least taken for.
    calibration : ndarray of shape (k + 1,)
        a, and b of each class.
    shares : ndarray of shape (k,)
        π, of the labels.
    factors : ndarray of shape (k, k)
        For part b and class i.
    """

    def __init__(self, floor, calibration, shares, factors):
        self.floor, self.calibration = floor, calibration
        self.shares, self.factors = shares, factors

    @classmethod
    def fit(cls, P, y, weights):
        """The correction for labels.

        Parameters
        ----------
        P : ndarray of shape (n, k)
        y : ndarray of shape (n,)
            Codes of the labels.
        weights : ndarray of shape (n,)
            Numbers of examples.
        """
        k = P.shape[1]
        numbers = np.bincount(y, weights=weights, minlength=k)
        shares = numbers / weights.sum()
        floor = nearest_to_zero(P)
        calibration = fit_softmax(_log(P, floor), y, weights)
        q = calibrated(P, floor, calibration)
        parts = _parts(q, shares)
        by_label = np.zeros((k, k))
        np.add.at(by_label, (parts, y), weights)
        by_model = np.zeros((k, k))
        for i in range(k):
            of_class = q[:, i].astype(np.float64, copy=False)
            by_model[:, i] = np.bincount(parts, weights=weights * of_class, minlength=k)
        own = numbers / (numbers + EXAMPLES_FOR_HALF)
        factors = np.ones((k, k))
        wanted = own * by_label + (1.0 - own) * by_model
        np.divide(wanted, by_model, out=factors, where=by_model > 0.0)
        return cls(floor, calibration, shares, factors)

    def __call__(self, P):
        """The corrected probabilities, in the precision of P."""
        q = calibrated(P, self.floor, self.calibration)
        corrected = q * self.factors[_parts(q, self.shares)].astype(P.dtype, copy=False)
        return corrected / corrected.sum(axis=1, keepdims=True)


def calibrated(P, floor, calibration):
    """softmax(a log P + b), in the precision of P."""
    a, b = np.split(calibration.astype(P.dtype), [1])
    scores = a * _log(P, floor) + b
    q = np.exp(scores - scores.max(axis=1, keepdims=True))
    return q / q.sum(axis=1, keepdims=True)


def _log(P, floor):
    return np.log(np.maximum(P, P.dtype.type(floor)))


def _parts(P, shares):
    """Predictions of the rule of balanced costs; never a class without examples."""
    return np.argmax(P * balanced_gain(shares).astype(P.dtype, copy=False), axis=1)


def balanced_gain(shares):
    """1 / π, the gain of a class in the rule of balanced costs; 0 without examples."""
    return np.divide(1.0, shares, out=np.zeros(len(shares)), where=shares > 0.0)
