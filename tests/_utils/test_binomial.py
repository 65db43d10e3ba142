"""Exact bounds on rates and on sums of two rates."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy.stats import binom, binomtest

from sklearn_structsvm._utils.binomial import (
    clopper_pearson,
    pair_p_bounds,
    sum_p_value,
    union_p_value,
    upper_limit,
)


def test_limits_and_p_values_of_one_rate_are_those_of_scipy():
    rng = new_rng(0)
    for n in (1, 7, 60):
        k, confidence = int(rng.integers(n + 1)), float(rng.uniform(0.5, 0.99))
        exact = binomtest(k, n).proportion_ci(confidence, method="exact")
        found = clopper_pearson(k, n, confidence)
        assert found == pytest.approx((exact.low, exact.high), abs=1e-12)
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    k, n = int(rng.integers(1, 30)), 40
    expected = binomtest(k, n, 0.6, alternative="less").pvalue
    assert sum_p_value([2.0], [k], [n], 1.2, 0.05) == pytest.approx(expected)


def largest_probability(costs, k, n, bound):
    """Over a fine grid of the line where the sum of rates is at its bound."""
    first = np.linspace(
        max(0.0, (bound - costs[1]) / costs[0]), min(1.0, bound / costs[0]), 400
    )
    second = np.clip((bound - costs[0] * first) / costs[1], 0.0, 1.0)
    K = np.meshgrid(*(np.arange(m + 1) for m in n), indexing="ij")
    sums = costs[0] * K[0] / n[0] + costs[1] * K[1] / n[1]
    inside = sums <= costs[0] * k[0] / n[0] + costs[1] * k[1] / n[1] + 1e-12
    pmf = [
        binom.pmf(np.arange(m + 1)[None], m, p[:, None])
        for m, p in zip(n, (first, second), strict=True)
    ]
    return np.einsum("gi,gj,ij->g", *pmf, inside).max()


def test_the_p_value_of_a_sum_of_two_is_no_less_than_by_enumeration():
    rng, error, n_sharp = new_rng(2), 0.1, 0
    for _ in range(40):
        n, costs = rng.integers(2, 30, 2), rng.uniform(0.2, 2.0, 2)
        bound = rng.uniform(0.3, 0.95) * costs.sum()
        k = [int(rng.binomial(m, 0.7 * bound / costs.sum())) for m in n]
        found = sum_p_value(costs, k, n, bound, error)
        # Confined to a confidence interval, the largest is found or what it is smaller
        # than is added.
        exact = largest_probability(costs, k, n, bound)
        if found <= error:
            assert exact <= error
            n_sharp += 1
        assert found <= 1.0
    assert n_sharp > 0


def test_no_pair_of_rates_that_is_above_the_bound_is_accepted_too_often():
    """Exact probability of an error, of all counts, by enumeration."""
    n, costs, bound, error = (9, 14), (1.0, 1.0), 1.1, 0.1
    K = list(np.ndindex(n[0] + 1, n[1] + 1))
    accepted = np.zeros((n[0] + 1, n[1] + 1))
    for k in K:
        accepted[k] = sum_p_value(costs, k, n, bound, error) <= error
    assert accepted.any()
    for first in new_rng(3).uniform(0.1, 1.0, 25):
        rates = first, bound - first
        pmf = [binom.pmf(np.arange(m + 1), m, p) for m, p in zip(n, rates, strict=True)]
        assert pmf[0] @ accepted @ pmf[1] <= error + 1e-12


def test_a_union_is_at_the_limits_of_its_error_and_two_rates_are_known_better():
    k, n, costs, bound = np.array([3, 5, 2]), np.array([20, 30, 10]), np.ones(3), 1.3
    p = union_p_value(costs, k, n, bound)
    assert costs @ upper_limit(k, n, p / 3) == pytest.approx(bound, abs=1e-6)
    data = [1.0, 1.0], [300, 90], [500, 200], 1.2
    assert sum_p_value(*data, 0.05) < union_p_value(*data)


def test_what_needs_no_counts():
    assert sum_p_value([0.5, 0.5], [3, 3], [3, 3], 1.0, 0.05) == 0.0
    assert sum_p_value([0.5, 0.5], [0, 0], [3, 3], -0.1, 0.05) == 1.0
    assert sum_p_value([1.0], [0], [0], 0.5, 0.05) == 1.0
    assert sum_p_value([1.0, 1.0], [0, 0], [0, 9], 0.5, 0.05) == 1.0


def test_bounds_of_pairs_are_never_below_their_p_values():
    rng = new_rng()
    size = (400, 2)
    n = rng.integers(0, 300, size)
    k = rng.binomial(n, rng.beta(1.0, 1.0, size))
    costs = rng.choice([1.0, 0.5, 0.02], size)
    rates = (k + 1.0) / (n + 2.0)
    bound = (costs * rates).sum(axis=1) + rng.normal(0.05, 0.1, len(k))
    extremes = rng.random(len(k)) < 0.2
    k[extremes] = rng.choice([0.0, 1.0], (extremes.sum(), 2)) * n[extremes]
    for error in (0.01, 0.1):
        bounds = pair_p_bounds(costs, k, n, bound, error)
        exact = [
            sum_p_value(*pair, error) for pair in zip(costs, k, n, bound, strict=True)
        ]
        assert (bounds >= exact).all()
        # They decide often.
        is_sure = np.array(exact) < 0.1 * error
        assert is_sure.any() and (bounds[is_sure] < error).mean() > 0.8
