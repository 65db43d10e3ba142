"""Projections by their optimality conditions, and against a generic solver."""

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from sklearn_structsvm.solvers.qp._projection import (
    combine_classes,
    combine_pairs,
    project_box,
    project_simplices,
    squared_distance,
    step_classes,
    step_pairs,
    weighted_quantile,
)


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


@settings(max_examples=400)
@given(st.integers(1, 60), st.integers(0, 10**6))
def test_a_box_projection_meets_its_optimality_conditions(n, seed):
    problem = random_box(n, seed)
    m, lower, upper, sigma, total, h = problem
    alpha, theta = project_box(m, lower, upper, sigma, total, h)
    assert_optimal(problem, alpha, theta)


@pytest.mark.parametrize("seed", range(20))
def test_no_point_that_a_generic_solver_finds_is_nearer_than_a_box_projection(seed):
    """α minimises the Lagrangian over the box, which has curvature h.

    So at any x of the box it is at least f(α) + ½ ||x - α||²_h, and a projection that is
    off by more than the solver is not.
    """
    rng = new_rng(seed)
    n = 8
    m, h = rng.standard_normal(n), 10.0 ** rng.uniform(-1, 1, n)
    lower, upper = np.sort(rng.standard_normal((2, n)), axis=0)
    sigma = rng.standard_normal(n)
    total = float(sigma @ rng.uniform(lower, upper))
    alpha, theta = project_box(m, lower, upper, sigma, total, h)
    found = minimize(
        lambda a: 0.5 * h @ (a - m) ** 2,
        np.clip(m, lower, upper),
        jac=lambda a: h * (a - m),
        bounds=np.column_stack([lower, upper]),
        constraints=LinearConstraint(sigma, total, total),
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    x = np.clip(found.x, lower, upper)
    assert sigma @ x == pytest.approx(total, abs=1e-6)
    value = 0.5 * h @ (alpha - m) ** 2
    lagrangian = 0.5 * h @ (x - m) ** 2 - theta * (sigma @ x - total)
    assert lagrangian >= value + 0.5 * h @ (x - alpha) ** 2 - 1e-12 * (1.0 + value)


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


def test_the_equality_decides_where_all_variables_are_free():
    n = 5
    free = np.full(n, np.inf)
    m, sigma = np.arange(5.0), np.array([1.0, -1.0, 2.0, 0.0, 1.0])
    alpha, _ = project_box(m, -free, free, sigma, 3.0)
    expected = m + sigma * (3.0 - sigma @ m) / (sigma @ sigma)
    np.testing.assert_allclose(alpha, expected, rtol=1e-15)


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
    [
        ({"total": 2.1}, r"Σ σ_i α_i = 2.1: it cannot be reached"),
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
        (
            {"sigma": [1e10, 1], "target": [1e300, 0], "upper": [np.inf, 1]},
            "variable 0 are beyond .* its target 1e\\+300",
        ),
    ],
)
def test_what_cannot_be_projected_is_refused(change, message):
    problem = {
        "target": [0.0, 0.0],
        "lower": [0.0, 0.0],
        "upper": [1.0, 1.0],
        "sigma": [1.0, 1.0],
        "total": 1.0,
    }
    with pytest.raises(ValueError, match=message):
        project_box(**problem | change)


@settings(max_examples=200)
@given(st.integers(1, 30), st.integers(0, 10**6))
def test_a_weighted_quantile_minimises_the_weighted_distances(n, seed):
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


def simplex_by_sorting(x):
    """The projection of Held, Wolfe and Crowder (1974)."""
    falling = np.sort(x)[::-1]
    thetas = (np.cumsum(falling) - 1.0) / np.arange(1, len(x) + 1)
    return np.maximum(x - thetas[np.flatnonzero(falling > thetas)[-1]], 0.0)


@pytest.mark.parametrize("scale", [1e-9, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_vectors_are_projected_onto_simplices(scale, n_threads):
    rng = new_rng(0)
    sizes = rng.integers(1, 40, 300)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    points = scale * rng.standard_normal(starts[-1])
    ties = rng.random(len(points)) < 0.3
    points[ties] = scale * np.round(points[ties] / scale)
    projected = project_simplices(points, starts, n_threads)
    for i in range(300):
        part = slice(starts[i], starts[i + 1])
        expected = simplex_by_sorting(points[part])
        np.testing.assert_allclose(projected[part], expected, rtol=0, atol=1e-13)
        assert projected[part].sum() == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(
        project_simplices(projected, starts), projected, rtol=0, atol=1e-15
    )


def test_huge_entries_leave_a_point_of_the_simplex():
    points = np.array([1e20, 1e20, -1e300, 5.0, 1e300, 0.0])
    projected = project_simplices(points, np.array([0, 3, 6]))
    np.testing.assert_array_equal(projected, [0.5, 0.5, 0.0, 0.0, 1.0, 0.0])


@pytest.mark.parametrize("rescaled", [False, True])
def test_steps_and_combinations_of_classes_are_those_of_the_listed_planes(rescaled):
    rng = new_rng(0)
    n, k = 20, 5
    costs = rng.uniform(0.5, 2.0, (k, k))
    np.fill_diagonal(costs, 0.0)
    truth = rng.integers(k, size=n).astype(np.intc)
    Z, p = rng.standard_normal((n, k)), rng.dirichlet(np.ones(n))
    alpha = rng.dirichlet(np.ones(k), n)
    out, B = np.empty((n, k)), np.empty((n, k))
    step_classes(alpha, Z, costs, truth, rescaled, 0.7, out)
    loss = combine_classes(alpha, costs, truth, rescaled, p, B)
    # The planes c_y + ⟨β_y, z⟩ of example i.
    beta = np.eye(k) - np.eye(k)[truth][:, np.newaxis]
    cost = costs[truth]
    if rescaled:
        beta = beta * cost[:, :, np.newaxis]
    slopes = cost + np.einsum("iyl,il->iy", beta, Z)
    for i in range(n):
        expected = simplex_by_sorting(alpha[i] + 0.7 * slopes[i])
        np.testing.assert_allclose(out[i], expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        B, p[:, np.newaxis] * np.einsum("iy,iyl->il", alpha, beta), rtol=0, atol=1e-16
    )
    assert loss == pytest.approx(p @ (alpha * cost).sum(axis=1), rel=1e-14)


def test_steps_and_combinations_of_pairs_are_those_of_the_listed_planes():
    rng = new_rng(0)
    n, k = 15, 4
    sizes = rng.integers(1, 7, n)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    N = starts[-1]
    gained, lost = rng.integers(k, size=(2, N)).astype(np.intc)
    costs, Z = rng.uniform(0.0, 2.0, N), rng.standard_normal((n, k))
    p, alpha = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(N))
    out, B = np.empty(N), np.empty((n, k))
    step_pairs(alpha, Z, starts, gained, lost, costs, 0.7, out)
    loss = combine_pairs(alpha, starts, gained, lost, costs, p, B)
    beta, example = np.eye(k)[gained] - np.eye(k)[lost], np.repeat(np.arange(n), sizes)
    slopes = costs + (beta * Z[example]).sum(axis=1)
    expected = project_simplices(alpha + 0.7 * slopes, starts)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)
    sums = np.zeros((n, k))
    np.add.at(sums, example, (p[example] * alpha)[:, np.newaxis] * beta)
    np.testing.assert_allclose(B, sums, rtol=0, atol=1e-16)
    assert loss == pytest.approx(p[example] @ (alpha * costs), rel=1e-14)
    other = rng.standard_normal(N)
    assert squared_distance(alpha, other, starts, p) == pytest.approx(
        p[example] @ (alpha - other) ** 2, rel=1e-14
    )
