"""Class probabilities that agree with the labels, more so the more labels there are."""

import numpy as np
from scipy.special import xlogy

from sklearn_structsvm._utils.weights import effective_number, effective_weights
from sklearn_structsvm.confusion.smoothing import (
    FLOORS,
    fit_softmax,
    nearest_to_zero,
)

# With n examples of a class, its labels have the share n / (n + this) in the wanted
# counts: recalls of few examples are noisy, and those of a wrong model are wrong. It is
# also the precision of the prior of b, which moves the rule of balanced costs.
EXAMPLES_FOR_HALF = 30.0

# Values of t, the part of the labels' share with which each part gets its errors.
CELL_SHARES = np.linspace(0.0, 1.0, 21)


class LabelCorrection:
    """Calibrates class probabilities, and moves their sums toward the labels.

    First η becomes q = softmax(a log η + b), the most probable one for a prior around η
    itself: around a = 1, and around the b that leave the rule of balanced costs as it is,
    which few labels cannot improve. Then rows are divided by their prediction under
    balanced costs, argmax_j q_j / π_j, because rules for metrics of recalls differ from
    it near its borders. In part b, let N_bi be the number of examples of class i, and
    M_bi the number expected by q. Probabilities become proportional to q_i W_bi / M_bi,
    where W lies between M and N, closer to N the larger λ_i = n_i / (n_i + 30) is, with
    n_i examples of class i; see `wanted_counts`. They are a function of η. So their
    plug-in rule is a rule based on η, and the best one if they are correct. (Algorithm 9
    of Narasimhan et al. counts labels instead, without a certificate.)

    `floor`: smaller probabilities are replaced by this. `calibration` (k + 1,): a, and
    b of each class. `shares` (k,): π, of the labels. `factors` (k, k): for part b and
    class i.
    """

    def __init__(self, floor, calibration, shares, factors):
        self.floor, self.calibration = floor, calibration
        self.shares, self.factors = shares, factors

    @classmethod
    def fit(cls, P, y, weights):
        """The correction for labels.

        `P` (n, k). `y` (n,): codes of the labels. `weights` (n,): of any scale.
        """
        k = P.shape[1]
        weights = effective_weights(weights)
        shares = np.bincount(y, weights=weights, minlength=k) / weights.sum()
        numbers = np.array([effective_number(weights[y == i]) for i in range(k)])
        floor, calibration = _fit_calibration(P, y, weights, shares)
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
        wanted = wanted_counts(by_label, by_model, own)
        np.divide(wanted, by_model, out=factors, where=by_model > 0.0)
        return cls(floor, calibration, shares, factors)

    def __call__(self, P):
        """The corrected probabilities, in the precision of P."""
        q = calibrated(P, self.floor, self.calibration)
        corrected = q * self.factors[_parts(q, self.shares)].astype(P.dtype, copy=False)
        return corrected / corrected.sum(axis=1, keepdims=True)


def wanted_counts(by_label, by_model, own):
    """Sums of the corrected probabilities in each part, between labels and model.

    In the part of their own class, labels count by λ. The errors of a class are many in
    total, but few in each other part, where their labels are noisy. So their total is
    counted by λ, and divided among the parts by the model, or by a share t λ of the
    labels in each part. The chosen t best predicts the part of an error from the others.

    `by_label`, `by_model` (k, k): N and M, for part b and class i. `own` (k,): λ.
    Returns (k, k).
    """
    errors = ~np.eye(len(own), dtype=bool)
    wanted = own * by_label + (1.0 - own) * by_model
    by_class, by_class_of_model = (
        counts.sum(axis=0, where=errors) for counts in (wanted, by_model)
    )
    scale = np.ones(len(own))
    np.divide(by_class, by_class_of_model, out=scale, where=by_class_of_model > 0.0)
    divided = by_model * scale
    found, best = divided, -np.inf
    for share in CELL_SHARES[:, np.newaxis] * own:
        counts = share * by_label + (1.0 - share) * divided
        without = share * np.minimum(by_label, 1.0)
        others = counts.sum(axis=0, where=errors) - without
        fit = xlogy(by_label, counts - without) - xlogy(by_label, others)
        fit = fit.sum(where=errors & (by_model > 0.0))
        if fit > best:
            found, best = counts, fit
    return np.where(errors, found, wanted)


def _fit_calibration(P, y, weights, shares):
    """The most probable floor, with its a and b."""
    tiny = float(np.finfo(P.dtype).tiny)
    floors = {nearest_to_zero(P, at_least=max(floor, tiny)) for floor in FLOORS}
    fits = [
        (*fit_softmax(_log(P, floor), y, weights, shares, EXAMPLES_FOR_HALF), floor)
        for floor in sorted(floors, reverse=True)
    ]
    calibration, _, floor = min(fits, key=lambda fit: fit[1])
    return floor, calibration


def calibrated(P, floor, calibration):
    """softmax(a log P + b), in the precision of P."""
    a, b = np.split(calibration.astype(P.dtype), [1])
    scores = a * _log(P, floor) + b
    q = np.exp(scores - scores.max(axis=1, keepdims=True))
    return q / q.sum(axis=1, keepdims=True)


def _log(P, floor):
    return np.log(np.maximum(P, P.dtype.type(floor)))


def _parts(P, shares):
    """Predictions of the rule of balanced costs, never a class without examples."""
    return np.argmax(P * balanced_gain(shares).astype(P.dtype, copy=False), axis=1)


def balanced_gain(shares):
    """1 / π, the gain of a class in the rule of balanced costs; 0 without examples."""
    return np.divide(1.0, shares, out=np.zeros(len(shares)), where=shares > 0.0)
