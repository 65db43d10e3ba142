"""Outlines of convex sets that are known by their support function."""

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from sklearn_structsvm._utils.outlines import convex_outline, swept_outline


class Counted:
    """The support function of some points, counting its calls."""

    def __init__(self, points):
        self.points = np.asarray(points, dtype=float)
        self.n_calls = 0

    def __call__(self, direction):
        self.n_calls += 1
        return self.points[np.argmax(self.points @ direction)]


def in_order(vertices):
    """The same polygon from its lowest vertex on."""
    first = np.lexsort(vertices.T)[0]
    return np.roll(vertices, -first, axis=0)


@given(st.integers(0, 10**6), st.integers(3, 60))
def test_polygon_is_found_exactly_with_two_calls_a_vertex(seed, n):
    support = Counted(new_rng(seed).normal(size=(n, 2)))
    found = convex_outline(support, tol=1e-12)
    expected = support.points[ConvexHull(support.points).vertices]
    np.testing.assert_array_equal(in_order(found), in_order(expected))
    assert support.n_calls <= 4 + 2 * len(expected)


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_nothing_of_a_disc_is_further_outside_than_tol(tol):
    outline = convex_outline(lambda d: 3.0 * d / np.hypot(*d), tol=tol)
    angles = np.linspace(0, 2 * np.pi, 1000)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    reach = (outline @ directions.T).max(axis=0)
    assert (reach <= 3.0 + 1e-12).all() and (reach >= 3.0 - 6.0 * tol).all()
    calls = []
    limited = convex_outline(
        lambda d: calls.append(d) or d / np.hypot(*d), tol=0.0, max_calls=50
    )
    assert len(calls) == 50 and len(limited) == 50
    # Counterclockwise.
    x, y = outline.T
    assert (x * np.roll(y, -1) - np.roll(x, -1) * y).sum() > 0


@pytest.mark.parametrize("outline_of", [convex_outline, swept_outline])
@pytest.mark.parametrize(
    "points", [[[0.5, 0.25]], [[0, 0], [1, 0]], [[0, 0], [0, 2]], [[0, 1], [0.5, 0]]]
)
def test_point_or_segment_is_its_ends(outline_of, points):
    found = outline_of(Counted(points))
    np.testing.assert_array_equal(found[np.lexsort(found.T[::-1])], points)


def test_sweep_finds_what_a_wrong_answer_hides():
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])

    def point_of(direction):
        if np.ptp(direction) < 1e-9:  # toward (1, 1), which is not found there
            return square[1]
        # Of equal ones along an axis, the corners on the lower axes.
        return square[np.argmax(square @ (direction - 1e-6))]

    assert len(convex_outline(point_of)) == 3
    assert len(swept_outline(point_of)) == 4
