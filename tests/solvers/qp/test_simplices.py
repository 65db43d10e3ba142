"""Distributions over labels: projections by sorting, and steps on listed planes."""

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.solvers.qp._simplices import project_simplices


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
