"""Distance transforms of grids against the double loop over their positions."""

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st

from sklearn_structsvm.structures._distance_transform import distance_transform


def cost_table(n, cost):
    """[p, q] of the displacements q - p."""
    anchor, linear, square = cost
    d = np.arange(n) - np.arange(n)[:, np.newaxis] - anchor
    return linear * d + square * d**2


def double_loop(scores, down, across):
    n_rows, n_columns = scores.shape
    rows, columns = cost_table(n_rows, down), cost_table(n_columns, across)
    best = np.empty(scores.shape)
    for r in range(n_rows):
        for c in range(n_columns):
            costs = rows[r][:, np.newaxis] + columns[c]
            best[r, c] = (scores - costs).max()
    return best


def quarters(*sizes):
    return st.tuples(*[st.integers(-size, size).map(lambda n: n / 4) for size in sizes])


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    quarters(20, 8, 6),
    quarters(20, 8, 6),
    st.integers(0, 999),
)
def test_small_grids_have_the_maxima_of_the_double_loop(shape, down, across, seed):
    """Costs of both signs, none, and anchors off the grid; ties, and exact sums."""
    scores = new_rng(seed).integers(-6, 7, size=shape) / 4.0
    found = distance_transform(scores, down, across)
    np.testing.assert_array_equal(found, double_loop(scores, down, across))


@pytest.mark.parametrize("square", [0.0, 1e-300, 1e-9, 0.01, 3.0, -0.01, -3.0])
@pytest.mark.parametrize(
    "shape", [(64, 9), (9, 64), (65, 9), (7, 90), (1, 130), (100, 1)]
)
def test_long_lines_do_too(shape, square):
    """Those of more than 64 positions by the hull of the scores."""
    rng = new_rng(0)
    for linear in (0.0, rng.normal()):
        down = rng.normal(scale=5.0), linear, square
        across = rng.normal(scale=5.0), linear, square * rng.uniform(0.5, 2.0)
        for scores in (
            rng.normal(size=shape),
            rng.integers(3, size=shape).astype(float),
            np.zeros(shape),
            np.add.outer(np.arange(shape[0]), np.arange(shape[1])) ** 2.0,
        ):
            found = distance_transform(scores, down, across)
            expected = double_loop(scores, down, across)
            size = 1.0 + np.abs(expected).max() + abs(square) * 200**2
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * size)


def test_no_positions_have_no_maxima():
    assert distance_transform(np.empty((0, 3)), (0, 0, 1), (0, 0, 1)).shape == (0, 3)
    with pytest.raises(ValueError, match="down must have shape"):
        distance_transform(np.ones((2, 2)), (0, 1), (0, 0, 1))
