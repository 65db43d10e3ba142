"""Block ascent and its bound against all labelings of a few rows."""

from itertools import combinations, product

import numpy as np
import pytest
from _labelings import all_labelings, all_sets, as_csr, mean_label_loss, random_eta
from _seeds import new_rng

from sklearn_structsvm.confusion import get_metric
from sklearn_structsvm.confusion.label_metric import LabelLoss
from sklearn_structsvm.confusion.label_rows import LabelRows
from sklearn_structsvm.confusion.lmo import top_labels
from sklearn_structsvm.confusion.lmo.top_labels import TopLabelsLMO
from sklearn_structsvm.metrics import FBeta
from sklearn_structsvm.solvers.confusion.block_ascent import (
    best_rule,
    price_bound,
    run_block_ascent,
)

METRICS = ["f1", FBeta(beta=2.0), "jaccard", "precision"]


def some_problem(metric, eta, k, weights=None):
    metric = get_metric(metric, [0, 1])
    lmo = TopLabelsLMO(LabelRows.of(as_csr(eta)), k, weights)
    found = [LabelLoss(metric, p).coefficients.ravel() for p in lmo.prior]
    return metric, lmo, np.array(found)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize(("n", "n_labels", "k"), [(7, 3, 1), (5, 4, 2), (6, 3, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_of_few_rows_the_best_of_all_labelings_is_found(
    metric, n, n_labels, k, weighted, monkeypatch
):
    rng = new_rng(1, n, k, weighted)
    eta = random_eta(rng, n, n_labels)
    weights = rng.uniform(0.5, 2.0, size=n) if weighted else None
    metric, lmo, coefficients = some_problem(metric, eta, k, weights)
    result = run_block_ascent(lmo, coefficients, tol=1e-13)
    bound, _ = price_bound(lmo.rows, lmo.weights, lmo.prior, coefficients, k)
    monkeypatch.setattr(top_labels, "MAX_ENUMERATED", 1)
    ascent = run_block_ascent(lmo, coefficients, tol=0.0)
    labelings = np.array(list(all_labelings(n, n_labels, k)))
    # All at once: t and q of each, and the ratio of each label.
    t = np.einsum("ynl,nl,n->yl", labelings, eta, lmo.weights)
    q = np.einsum("ynl,n->yl", labelings, lmo.weights)
    a0, a1, a2, b0, b1, b2 = coefficients.T
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = (a0 + a1 * t + a2 * q) / (b0 + b1 * t + b2 * q)
    best = np.where(b0 + b1 * t + b2 * q > 0.0, losses, 1.0).mean(axis=1).min()
    assert bound <= best + 1e-12
    assert bound - 1e-14 <= ascent.dual_objective < bound
    assert ascent.objective >= best - 1e-12
    assert result.objective == pytest.approx(best, abs=1e-12)
    assert 0.0 < result.objective - result.dual_objective <= 1e-14
    assert result.status == "converged"
    Y = result.solution.matrix(n_labels).toarray()
    assert np.all(Y.sum(axis=1) == k)
    value = mean_label_loss(metric, Y, eta, lmo.weights)
    assert result.objective == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_what_is_found_is_no_worse_than_the_start_or_than_any_change_of_one_row(metric):
    eta = random_eta(new_rng(2), 25, 4, ties=False, share=1.0)
    metric, lmo, coefficients = some_problem(metric, eta, 2)
    result = run_block_ascent(lmo, coefficients, tol=0.0)
    assert result.status in ("stationary", "converged")
    Y = result.solution.matrix(4).toarray().astype(float)
    value = mean_label_loss(metric, Y, eta, lmo.weights)
    top = np.zeros((25, 4))
    np.put_along_axis(top, np.argsort(-eta, axis=1)[:, :2], 1.0, axis=1)
    assert value <= mean_label_loss(metric, top, eta, lmo.weights) + 1e-12
    for row in range(25):
        for labels in all_sets(4, 2):
            other = Y.copy()
            other[row] = labels
            # A pass that gains less than 1e-6 is the last one.
            assert value <= mean_label_loss(metric, other, eta, lmo.weights) + 1e-6


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("k", [1, 2])
def test_no_change_of_two_rows_is_better_than_what_is_found(metric, k, monkeypatch):
    monkeypatch.setattr(top_labels, "MAX_ENUMERATED", 1)
    eta = random_eta(new_rng(8, k), 6, 3)
    metric, lmo, coefficients = some_problem(metric, eta, k)
    result = run_block_ascent(lmo, coefficients, tol=0.0)
    Y = result.solution.matrix(3).toarray().astype(float)
    sets = all_sets(3, k)
    for first, second in combinations(range(6), 2):
        for labels in product(sets, repeat=2):
            other = Y.copy()
            other[[first, second]] = labels
            value = mean_label_loss(metric, other, eta, lmo.weights)
            assert result.objective <= value + 1e-6


def test_the_bound_is_the_best_of_all_prices():
    eta = random_eta(new_rng(3), 40, 5)
    metric, lmo, coefficients = some_problem("f1", eta, 2)
    bound, _ = price_bound(lmo.rows, lmo.weights, lmo.prior, coefficients, 2)
    by_price = []
    curves = [np.sort(p)[::-1] for p in eta.T]
    sizes = np.arange(41)
    for price in np.linspace(-1.0, 1.0, 401):
        total = -2 * price
        for curve, p in zip(curves, eta.T, strict=True):
            hits = np.concatenate(([0.0], np.cumsum(curve)))
            f = 2 * hits / np.maximum(sizes + p.sum(), 1e-300)
            total += min((1.0 - f) / 5 + price * sizes / 40)
        by_price.append(total)
    assert bound >= max(by_price) - 1e-6


def test_without_a_limit_that_binds_the_bound_is_met():
    # Each label is certain for as many rows as there are to be predicted.
    _, lmo, coefficients = some_problem("f1", np.eye(4)[np.arange(12) % 4], 1)
    result = run_block_ascent(lmo, coefficients)
    assert result.status == "converged"
    assert result.objective == pytest.approx(0.0, abs=1e-12)
    gains, sets, loss = best_rule(lmo, coefficients, result.solution)
    assert loss == pytest.approx(0.0, abs=1e-12)
    assert np.array_equal(lmo.choose(gains).labels, sets.labels)


def test_rows_with_fewer_labels_than_are_wanted_get_others():
    eta = np.array([[0.9, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.8, 0.3]])
    _, lmo, coefficients = some_problem("f1", eta, 2)
    Y = run_block_ascent(lmo, coefficients).solution.matrix(3).toarray()
    assert Y.sum(axis=1).tolist() == [2, 2, 2]


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_where_every_label_is_wanted_the_bound_is_the_only_choice(metric):
    # Sums of weights are 1 but for rounding, one way or the other.
    for trial in range(10):
        rng = new_rng(7, trial)
        n, n_labels = rng.integers(2, 12), rng.integers(1, 5)
        eta = random_eta(rng, n, n_labels)
        _, lmo, coefficients = some_problem(
            metric, eta, n_labels, rng.exponential(size=n)
        )
        result = run_block_ascent(lmo, coefficients, tol=0.0)
        assert result.objective == pytest.approx(result.dual_objective, abs=1e-12)
        assert result.solution.labels.shape == (n, n_labels)


def test_repeated_rows_and_weights_have_bounds_of_the_same_labelings():
    rng = new_rng(5)
    eta = random_eta(rng, 6, 3)
    times = rng.integers(1, 4, size=6)
    _, weighted, coefficients = some_problem("f1", eta, 1, times.astype(float))
    _, repeated, same = some_problem("f1", np.repeat(eta, times, axis=0), 1)
    assert same == pytest.approx(coefficients)
    found = run_block_ascent(weighted, coefficients, tol=0.0)
    # Repeated rows may be decided differently, so that there is more to choose from.
    assert run_block_ascent(repeated, same).dual_objective <= found.objective + 1e-12
