"""Counts between labels and probabilities."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy.optimize import minimize
from scipy.special import expit

from sklearn_structsvm.confusion import smoothing
from sklearn_structsvm.confusion.lmo.thresholds import ThresholdLMO
from sklearn_structsvm.confusion.smoothing import (
    _common_slope,
    fit_sigmoid,
    fit_sigmoids,
    fit_softmax,
    log_odds,
    nearest_to_zero,
    shrunk_hits,
    smoothed_shares,
)


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
    assert loss(found, *arguments) <= best + 1e-7 * max(abs(best), 1.0)
    residuals = weights * expit(found[0] * z + found[1]) - hits
    slope = np.array([residuals @ z, residuals.sum()]) + 5.0 * (found - around)
    assert np.abs(slope).max() <= 1e-5 * max(np.abs(weights * z).sum(), 1.0)


def test_half_of_a_hundred_labels_is_their_own():
    rng = new_rng(2)
    eta = rng.random(300)
    hits = np.zeros(300)
    hits[rng.permutation(300)[:90]] = 1.0
    a, b = fit_sigmoid(log_odds(eta), hits, np.ones(300))
    found, rest = shrunk_hits(eta, hits, np.ones(300), 10.0, 100.0, (a, b))
    assert found == pytest.approx((hits + expit(a * log_odds(eta) + b)) / 2)
    assert rest == 5.0


def test_no_labels_leave_what_the_others_say():
    eta = new_rng(3).random(50)
    found, rest = shrunk_hits(eta, np.zeros(50), np.ones(50), 0.0, 0.0, (1.0, -3.0))
    assert found == pytest.approx(expit(log_odds(eta) - 3.0))
    assert rest == 0.0
    none = np.empty(0)
    found, rest = shrunk_hits(none, none, none, 4.0, 4.0, (1.0, 0.0))
    assert len(found) == 0
    assert rest == pytest.approx(4.0 * 4.0 / 104.0)


def test_zero_is_half_of_what_is_next_to_it():
    assert nearest_to_zero(np.array([0.0, 0.02, 1.0]), np.array([1.0, 0.5])) == 0.01
    assert nearest_to_zero(np.array([0.0, 1e-200, 1.0])) == 1e-9
    assert log_odds(np.array([0.0, 1.0]), 0.1) == pytest.approx(np.log([1 / 9, 9]))
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()


def of_one_cell(scores, positive, weights=None):
    weights = np.ones(len(scores)) if weights is None else weights
    return smoothed_shares(scores, positive, weights, np.zeros(len(scores), dtype=int), 1)


def some(rng, n, n_scores=None):
    scores = rng.random(n)
    if n_scores is not None:
        scores = rng.choice(rng.random(n_scores), size=n)
    return scores, (rng.random(n) < scores**2).astype(float)


@pytest.mark.parametrize("n", [3, 7, 60, 300])
def test_shares_are_a_sigmoid_and_the_mean_of_what_it_leaves_around(n):
    scores, positive = some(new_rng(4), n)
    floor = nearest_to_zero(scores, 1 - scores)
    a, b = fit_sigmoid(log_odds(scores, floor), positive, np.ones(n))
    order = np.argsort(scores)
    q = expit(a * log_odds(scores[order], floor) + b)
    left = positive[order] - q
    h = max(1, int(0.25 * n**0.8))
    found = of_one_cell(scores, positive)[order]
    padded = np.concatenate([left[:h][::-1], left, left[-h:][::-1]])
    around = [padded[i : i + 2 * h + 1].mean() for i in range(n)]
    assert found == pytest.approx(np.clip(q + around, 0, 1))


def test_equal_scores_have_equal_shares_in_any_order(monkeypatch):
    rng = new_rng(5)
    scores, positive = some(rng, 200, n_scores=30)
    found = of_one_cell(scores, positive)
    order = rng.permutation(200)
    assert of_one_cell(scores[order], positive[order]) == pytest.approx(found[order])
    for score in np.unique(scores):
        assert np.ptp(found[scores == score]) == 0.0
    # A window that reaches no other score: their own labels.
    monkeypatch.setattr(smoothing, "WINDOW", 0.0)
    scores, positive = np.repeat(scores, 20), np.repeat(positive, 20)
    many = of_one_cell(scores, positive)
    for score in np.unique(scores):
        rows = scores == score
        assert many[rows] == pytest.approx(positive[rows].mean(), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e9])
def test_the_scale_of_weights_and_the_order_of_rows_change_no_share(scale):
    rng = new_rng(12)
    scores, positive = some(rng, 300, n_scores=80)
    cells, weights = rng.integers(0, 2, size=300), rng.exponential(size=300)
    once = smoothed_shares(scores, positive, weights, cells, 2)
    order = rng.permutation(300)
    again = smoothed_shares(
        scores[order], positive[order], scale * weights[order], cells[order], 2
    )
    assert again == pytest.approx(once[order], abs=1e-6)


def test_examples_without_weight_change_no_share():
    rng = new_rng(13)
    scores, positive = some(rng, 300)
    weights = rng.integers(0, 2, size=300).astype(float)
    rows = weights > 0
    found = of_one_cell(scores, positive, weights)[rows]
    assert found == pytest.approx(of_one_cell(scores[rows], positive[rows]))


def test_cells_are_smoothed_by_themselves_around_one_sigmoid():
    rng = new_rng(6)
    scores, positive = some(rng, 300)
    cells = rng.integers(0, 2, size=300)
    positive[cells == 1] = rng.random((cells == 1).sum()) < 0.5
    found = smoothed_shares(scores, positive, np.ones(300), cells, 3)
    for cell in (0, 1):
        rows = cells == cell
        assert found[rows].mean() == pytest.approx(positive[rows].mean(), abs=0.1)
    assert np.corrcoef(found[cells == 0], scores[cells == 0])[0, 1] > 0.8


def test_small_cells_like_all_others_are_smoothed_by_the_labels_of_all():
    rng = new_rng(9)
    n, small = 4000, 40
    scores = rng.random(n)
    cells = np.minimum(np.arange(n) // small, 50)  # 50 small cells and the rest
    positive = (rng.random(n) < scores).astype(int)
    found = smoothed_shares(scores, positive, np.ones(n), cells, 51)
    alone = np.concatenate(
        [of_one_cell(scores[r], positive[r], np.ones(small))
         for r in np.split(np.arange(50 * small), 50)]
    )  # fmt: skip
    off = [np.square(each[: 50 * small] - scores[: 50 * small]).mean()
           for each in (found, alone)]  # fmt: skip
    assert off[0] < 0.7 * off[1]


def test_cells_of_many_labels_that_differ_from_others_follow_their_own():
    rng = new_rng(10)
    n = 6000
    scores, cells = rng.random(n), np.arange(n) % 2
    chance = np.where(cells == 1, 1.0 - scores, scores)
    positive = (rng.random(n) < chance).astype(int)
    found = smoothed_shares(scores, positive, np.ones(n), cells, 2)
    assert np.abs(found - chance).mean() < 0.1


def test_no_threshold_is_better_for_smoothed_labels_than_the_one_found():
    rng = new_rng(7)
    scores, positive = some(rng, 80, n_scores=50)
    cells = rng.integers(0, 2, size=80)
    P, weights = np.column_stack([1 - scores, scores]), rng.exponential(size=80)
    lmo = ThresholdLMO(smooth=True).fit(P, positive.astype(int), weights, cells, 2)
    share = smoothed_shares(scores, positive, weights, cells, 2)
    counted = np.stack([1 - share, share]) * weights / weights.sum()
    assert lmo.priors_ == pytest.approx(
        np.array([counted[:, cells == a].sum(axis=1) for a in (0, 1)])
    )
    for _ in range(20):
        L = rng.normal(size=(2, 2, 2))
        C, handle, bound = lmo(L)
        best = 0.0
        for a in (0, 1):
            rows = cells == a
            cuts = np.append(np.unique(scores[rows]), np.inf)
            above = scores[rows] >= cuts[:, None]
            costs = [
                (L[a, :, guess.astype(int)].T * counted[:, rows]).sum()
                for guess in np.concatenate([above, ~above])
            ]
            best += min(costs)
        assert bound == pytest.approx(best)
        assert np.vdot(L, C) == pytest.approx(best)
        # The labels themselves are there to be counted.
        predicted = lmo.predict(handle, P, cells)
        hits = weights @ ((positive == 1) & (predicted == 1)) / weights.sum()
        assert lmo.confusion(handle)[:, 1, 1].sum() == pytest.approx(hits)


def test_the_softmax_is_the_most_probable_one():
    rng = new_rng(9)
    P = rng.dirichlet(np.ones(3), size=60)
    y, weights, Z = rng.integers(3, size=60), rng.exponential(size=60), np.log(P)
    shares = np.array([0.7, 0.2, 0.1])

    def value(found):
        scores = found[0] * Z + found[1:]
        logs = scores[np.arange(60), y] - np.log(np.exp(scores).sum(axis=1))
        off = found[1:] - (1.0 - found[0]) * np.log(shares)
        prior = (found[0] - 1.0) ** 2 + 7.0 * (off**2).sum()
        return -weights @ logs + prior / 2

    found, least = fit_softmax(Z, y, weights, shares, 7.0)
    assert least == pytest.approx(value(found))
    for step in rng.normal(size=(50, 4)):
        for size in (1e-3, 1.0):
            assert value(found) <= value(found + size * step) + 1e-7


def of_labels(rng, knows):
    """Log odds, hits and weights of labels; probabilities know rows, or only shares."""
    shares, n = rng.uniform(0.05, 0.5, size=12), 400
    z = [log_odds(share) + 0.5 * rng.standard_normal(n) for share in shares]
    true = [expit(own) if knows else share for own, share in zip(z, shares, strict=True)]
    hits = [(rng.random(n) < eta).astype(float) for eta in true]
    return z, hits, [np.ones(n)] * len(shares)


def test_labels_of_which_only_shares_are_known_have_small_slopes():
    rng = new_rng(12)
    slopes = [fit_sigmoids(*of_labels(rng, knows))[:, 0] for knows in (False, True)]
    # Between labels log odds are right, which a sigmoid for all takes for a slope of 1.
    assert (slopes[0] > 0.0).all()
    assert slopes[0].mean() < 0.5 < slopes[1].mean()


def test_the_slope_in_common_is_the_most_probable_one():
    rng = new_rng(13)
    z, hits, weights = of_labels(rng, knows=bool(rng.integers(2)))
    starts = np.array([own.mean() for own in z]) + 0.1 * rng.standard_normal(len(z))
    z = [own - own.mean() for own in z]

    def loss(found):
        fit = found[0] ** 2 / 2.0 + 5.0 / 2.0 * ((found[1:] - starts) ** 2).sum()
        for own, of, w, at in zip(z, hits, weights, found[1:], strict=True):
            scores = np.exp(found[0]) * own + at
            fit += w @ np.logaddexp(0.0, scores) - of @ scores
        return fit

    best = minimize(loss, np.append(0.0, starts), method="BFGS").x
    found = _common_slope(z, hits, weights, starts)
    assert np.log(found) == pytest.approx(best[0], abs=1e-3)
