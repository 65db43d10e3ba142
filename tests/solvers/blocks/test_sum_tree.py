"""Draws in proportion to weights that change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sklearn_structsvm.solvers.blocks._sum_tree import SumTree

ALMOST_ONE = np.nextafter(1.0, 0.0)

weights = hnp.arrays(
    float,
    st.integers(1, 40),
    elements=st.just(0.0) | st.floats(1e-300, 1e300) | st.floats(0.1, 10.0),
)


def tree_of(values):
    tree = SumTree(len(values))
    tree.set_weights(values)
    return tree


@given(
    hnp.arrays(float, st.integers(1, 40), elements=st.integers(0, 8)), st.integers(0, 63)
)
def test_a_draw_is_the_inverse_of_the_cumulative_weights(values, sixty_fourths):
    if not values.any():
        values[0] = 1.0
    uniform = sixty_fourths / 64
    expected = np.searchsorted(np.cumsum(values), uniform * values.sum(), side="right")
    assert tree_of(values).draw(uniform) == expected


@given(weights, st.floats(0, ALMOST_ONE))
def test_an_item_of_weight_zero_is_never_drawn(values, uniform):
    if not values.any():
        values[-1] = 1.0
    for u in (0.0, uniform, ALMOST_ONE):
        assert values[tree_of(values).draw(u)] > 0.0


@pytest.mark.parametrize("at", [0, 1, 2, 4])
def test_a_total_where_products_round_up_leads_to_no_empty_side(at):
    # 0.9 times the smallest number is that number again.
    values = np.zeros(8)
    values[at] = 5e-324
    assert tree_of(values).draw(0.9) == at


@given(weights, st.lists(st.tuples(st.integers(0, 39), st.floats(0, 5)), max_size=9))
def test_changing_one_weight_after_another_equals_setting_all(values, changes):
    tree = tree_of(values)
    for i, value in changes:
        values[i % len(values)] = value
        tree.set_weight(i % len(values), value)
    if not values.any():
        values[0] = 1.0
        tree.set_weight(0, 1.0)
    again = tree_of(values)
    for uniform in np.linspace(0, ALMOST_ONE, 33):
        assert tree.draw(uniform) == again.draw(uniform)


def test_a_negative_gap_counts_as_zero():
    tree = tree_of([-1e-17, 2.0, -3.0])
    assert {tree.draw(u) for u in (0.0, 0.5, ALMOST_ONE)} == {1}
    tree.set_weight(1, -1.0)
    tree.set_weight(2, 1.0)
    assert tree.draw(0.5) == 2
