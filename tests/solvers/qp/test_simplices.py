"""Distributions over labels: projections by sorting, and steps on listed planes."""

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.solvers.qp._simplices import (
    combine_classes,
    combine_pairs,
    project_simplices,
    squared_distance,
    step_classes,
    step_pairs,
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
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 40, 300))])
    points = scale * rng.standard_normal(starts[-1])
    ties = rng.random(len(points)) < 0.3
    points[ties] = scale * np.round(points[ties] / scale)
    projected = project_simplices(points, starts, n_threads)
    for i in range(300):
        part = slice(starts[i], starts[i + 1])
        expected = simplex_by_sorting(points[part])
        np.testing.assert_allclose(projected[part], expected, rtol=0, atol=1e-13)
        assert projected[part].sum() == pytest.approx(1.0, rel=1e-14)
    # Once more changes what the sums of up to 39 entries lack by rounding.
    np.testing.assert_allclose(
        project_simplices(projected, starts), projected, rtol=0, atol=1e-14
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
