"""Counts between labels and probabilities."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy.optimize import minimize
from scipy.special import expit

from sklearn_structsvm.confusion.smoothing import fit_sigmoid, log_odds, shrunk_hits


def loss(found, z, hits, weights, around, precision):
    scores = found[0] * z + found[1]
    fit = (weights * np.logaddexp(0.0, scores) - hits * scores).sum()
    return fit + precision / 2 * ((found - np.asarray(around)) ** 2).sum()


@pytest.mark.parametrize("case", ["plain", "one label", "certain and wrong", "weights"])
def test_the_sigmoid_is_the_most_probable_one(case):
    rng = new_rng(1)
    eta = rng.beta(0.3, 0.3, size=80)
    hits = (rng.random(80) < eta).astype(float)
    weights = np.ones(80)
    if case == "one label":
        hits[:] = 0.0
    elif case == "certain and wrong":
        eta = np.round(eta)
        hits = 1.0 - eta
    elif case == "weights":
        weights = rng.exponential(1e3, size=80)
        hits = hits * weights
    z, around = log_odds(eta), rng.normal(size=2)
    found = fit_sigmoid(z, hits, weights, around, 5.0)
    arguments = z, hits, weights, around, 5.0
    best = minimize(loss, around, arguments, method="Nelder-Mead", tol=1e-10).fun
    reached = loss(found, *arguments)
    assert reached <= best + 1e-7 * max(abs(best), 1.0)
    residuals = weights * expit(found[0] * z + found[1]) - hits
    slope = np.array([residuals @ z, residuals.sum()]) + 5.0 * (found - around)
    assert np.abs(slope).max() <= 1e-5 * max(np.abs(weights * z).sum(), 1.0)


def test_half_of_a_hundred_labels_is_their_own():
    rng = new_rng(2)
    eta = rng.random(300)
    hits = np.zeros(300)
    hits[rng.permutation(300)[:90]] = 1.0
    a, b = fit_sigmoid(log_odds(eta), hits, np.ones(300))
    found, rest = shrunk_hits(eta, hits, np.ones(300), 10.0, (1.0, 0.0), 1.0)
    assert found == pytest.approx((hits + expit(a * log_odds(eta) + b)) / 2)
    assert rest == 5.0


def test_no_labels_leave_what_the_others_say():
    eta = new_rng(3).random(50)
    found, rest = shrunk_hits(eta, np.zeros(50), np.ones(50), 0.0, (1.0, -3.0), 1e9)
    assert found == pytest.approx(expit(log_odds(eta) - 3.0), abs=1e-4)
    assert rest == 0.0
    none = np.empty(0)
    found, rest = shrunk_hits(none, none, none, 4.0, (1.0, 0.0), 1.0)
    assert len(found) == 0
    assert rest == 0.0
