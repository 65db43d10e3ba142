"""Projections by their optimality conditions, and in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st

from sklearn_structsvm.solvers.qp._projection import project_box, weighted_quantile


def random_box(n, seed):
    """(m, l, u, σ, total, h) with a feasible point; about a third of it is degenerate."""
    rng = new_rng(seed)
    m = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4)
    ends = np.sort(rng.standard_normal((2, n)), axis=0)
    sigma = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-2, 2, n)
    h = 10.0 ** rng.uniform(-3, 3, n)
    kind = rng.integers(5)
    if kind == 0:
        sigma, h, ends = np.sign(sigma), np.ones(n), np.array([[0.0], [1.0]]) * np.ones(n)
    elif kind == 1:
        m, h = np.round(m), np.ones(n)
        ends, sigma = np.round(ends), np.sign(sigma)
    elif kind == 2:
        sigma[rng.random(n) < 0.5] = 0.0
    lower, upper = ends
    # In the box, and often at a bound.
    point = lower + (upper - lower) * np.clip(rng.uniform(-0.5, 1.5, n), 0.0, 1.0)
    lower = np.where(rng.random(n) < 0.2, -np.inf, lower)
    upper = np.where(rng.random(n) < 0.2, np.inf, upper)
    return m, lower, upper, sigma, float(sigma @ point), h


def assert_optimal(problem, alpha, theta, rtol=1e-9):
    m, lower, upper, sigma, total, h = problem
    assert (alpha >= lower).all()
    assert (alpha <= upper).all()
    size = np.abs(sigma * alpha).sum() + abs(total) + 1e-300
    assert abs(sigma @ alpha - total) <= 1e-13 * size * len(m)
    slope = h * (alpha - m) - theta * sigma
    terms = h * (np.abs(alpha) + np.abs(m)) + np.abs(theta * sigma) + 1e-300
    assert (slope[alpha > lower] <= rtol * terms[alpha > lower]).all()
    assert (slope[alpha < upper] >= -rtol * terms[alpha < upper]).all()


@given(st.integers(1, 60), st.integers(0, 10**6))
def test_a_box_projection_meets_its_optimality_conditions(n, seed):
    problem = random_box(n, seed)
    m, lower, upper, sigma, total, h = problem
    alpha, theta = project_box(m, lower, upper, sigma, total, h)
    assert_optimal(problem, alpha, theta)


def exact_box(m, lower, upper, sigma, total, h):
    """The projection in fractions, between the kinks of the multiplier around it."""
    m, lower, upper, sigma, h = (
        [Fraction(v) for v in values] for values in (m, lower, upper, sigma, h)
    )

    def at(theta):
        return [
            min(max(mi + theta * si / hi, li), ui)
            for mi, li, ui, si, hi in zip(m, lower, upper, sigma, h, strict=True)
        ]

    def missing(alpha):
        return Fraction(total) - sum(s * a for s, a in zip(sigma, alpha, strict=True))

    kinks = sorted(
        (end - mi) * hi / si
        for ends in (lower, upper)
        for mi, end, si, hi in zip(m, ends, sigma, h, strict=True)
        if si != 0
    )
    left, right = 0, len(kinks) - 1
    # What no point reaches but for the rounding of `total` is met as well as can be.
    while right - left > 1:
        middle = (left + right) // 2
        if missing(at(kinks[middle])) > 0:
            left = middle
        else:
            right = middle
    first, last = at(kinks[left]), at(kinks[right])
    rest, other = missing(first), missing(last)
    share = min(max(rest / (rest - other), 0), 1) if rest != other else 0
    return [a + share * (b - a) for a, b in zip(first, last, strict=True)]


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_a_box_projection_is_that_of_fractions(n, seed):
    rng = new_rng(seed)
    m, h = rng.standard_normal(n), 10.0 ** rng.uniform(-1, 1, n)
    lower, upper = np.sort(rng.standard_normal((2, n)), axis=0)
    sigma = rng.standard_normal(n)
    total = float(sigma @ rng.uniform(lower, upper))
    problem = m, lower, upper, sigma, total, h
    alpha, _ = project_box(*problem)
    expected = np.array([float(a) for a in exact_box(*problem)])
    # The equality is known to rounding, and an entry to that over the slopes' sum.
    atol = 1e-13 * np.abs(sigma).sum() / np.abs(sigma).min()
    np.testing.assert_allclose(alpha, expected, rtol=0, atol=atol)


@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_huge_targets_leave_a_feasible_point_as_good_as_the_best(n, seed):
    rng = new_rng(seed)
    slopes = [
        rng.standard_normal(n),
        np.round(rng.standard_normal(n)),
        np.ones(n),
        1.0 + 1e-16 * rng.integers(-3, 4, n),
        1.0 + 1e-12 * rng.standard_normal(n),
    ][rng.integers(5)]
    m = rng.random(n) + 10.0 ** rng.uniform(-3, 250) * slopes
    h = [
        np.full(n, 1.0 / n),
        rng.dirichlet(np.ones(n)),
        10.0 ** rng.uniform(-300, 0, n),
        10.0 ** rng.uniform(-20, 0, n),
    ][rng.integers(4)]
    sigma = rng.choice([-1.0, 1.0], n) * h
    zero, one = np.zeros(n), np.ones(n)
    alpha, _ = project_box(m, zero, one, sigma, 0.0, h)
    assert (alpha >= 0.0).all()
    assert (alpha <= 1.0).all()
    exact = [Fraction(a) for a in alpha]
    rest = sum(Fraction(s) * a for s, a in zip(sigma, exact, strict=True))
    assert abs(rest) <= 1e-14 * h.sum()
    best = exact_box(m, zero, one, sigma, 0.0, h)
    worse = sum(
        Fraction(w) * (a - b) * (a + b - 2 * Fraction(t))
        for w, a, b, t in zip(h, exact, best, m, strict=True)
    )
    assert worse <= 1e-13 * Fraction((h * (1.0 + np.abs(m))).sum())


@pytest.mark.parametrize("kind", ["random", "equal kinks", "sorted", "far apart"])
def test_large_boxes_are_projected_exactly(kind):
    rng = new_rng(0)
    n = 50_000
    m = rng.standard_normal(n)
    if kind == "equal kinks":
        m[:] = 0.25
    elif kind == "sorted":
        m.sort()
    elif kind == "far apart":
        m = np.sign(m) * 10.0 ** rng.uniform(-8, 8, n)
    sigma = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    problem = m, np.zeros(n), np.ones(n), sigma, 0.0, np.ones(n)
    alpha, theta = project_box(*problem)
    assert_optimal(problem, alpha, theta)
    np.testing.assert_array_equal(alpha, project_box(*problem[:-1])[0])


def test_bounds_that_leave_one_point_are_met():
    one = np.ones(3)
    for total, expected in [(3.0, one), (-3.0, -one)]:
        alpha, _ = project_box([5.0, 0.0, -5.0], -one, one, one, total)
        np.testing.assert_array_equal(alpha, expected)
    alpha, _ = project_box([5.0, 0.0, -5.0], one, one, one, 3.0)
    np.testing.assert_array_equal(alpha, one)
    alpha, theta = project_box([5.0, 0.5], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0], 0.0)
    np.testing.assert_array_equal(alpha, [1.0, 0.5])
    assert theta == 0.0


def test_tiny_coefficients_over_tiny_curvatures_are_as_large_ones():
    m, sigma, h = np.array([2.0, 0.5, -1.0]), np.array([1.0, -1.0, 1.0]), np.ones(3)
    expected, theta = project_box(m, np.zeros(3), h, sigma, 0.0, h)
    alpha, tiny = project_box(m, np.zeros(3), h, 1e-170 * sigma, 0.0, 1e-170 * h)
    np.testing.assert_array_equal(alpha, expected)
    assert tiny == pytest.approx(theta, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"total": 2.1}, r"Σ σ_i α_i = 2.1: it cannot be reached"),
     ({"total": -0.1}, "cannot be reached"),
     ({"lower": [0.0, 2.0]}, "Variable 1 has the bounds 2.0 and 1.0"),
     ({"upper": [-np.inf, 1.0]}, "Variable 0 has the bounds"),
     ({"curvature": [1.0, 0.0]}, "positive and finite; got 0.0 for variable 1"),
     ({"target": [np.nan, 0.0]}, "NaN in variable 0"),
     ({"total": np.nan}, "NaN in total"),
     ({"sigma": [1.0]}, r"sigma must have shape \(2,\); got \(1,\)"),
     ({"sigma": [0.0, 0.0], "total": 1.0}, "cannot be reached"),
     ({"sigma": [1.0, 1e-170]}, "variable 1 are beyond .* its sigma is 1e-170"),
     ({"sigma": [1e170, 1.0]}, "variable 0 are beyond .* its sigma is 1e\\+170"),
     ({"sigma": [1e10, 1], "target": [1e300, 0], "upper": [np.inf, 1]},
      "variable 0 are beyond .* its target 1e\\+300")],
)  # fmt: skip
def test_what_cannot_be_projected_is_refused(change, message):
    problem = {
        "target": [0.0, 0.0], "lower": [0.0, 0.0], "upper": [1.0, 1.0],
        "sigma": [1.0, 1.0], "total": 1.0,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        project_box(**problem | change)


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_a_weighted_quantile_minimizes_the_weighted_distances(n, seed):
    rng = new_rng(seed)
    values, weights = rng.integers(-3, 4, n).astype(float), rng.integers(0, 3, n)
    weights[0] = 1
    level = rng.uniform(0.0, weights.sum())
    order = np.argsort(values, kind="stable")
    counted = weights[order] > 0
    sums = np.cumsum(weights[order])
    expected = values[order][counted & (sums >= level)][0]
    assert weighted_quantile(values, weights, level) == expected
    assert weighted_quantile(values, weights, weights.sum() + 1.0) == max(
        values[weights > 0]
    )
