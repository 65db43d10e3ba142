"""Two classes: the oracle over thresholds against all thresholds there are."""

import numpy as np
import pytest
from _plugin_references import threshold_lmo
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st

from sklearn_structsvm.confusion.lmo._roc import threshold_hull
from sklearn_structsvm.confusion.lmo.plugin import predict_plugin


def two_columns(scores):
    """Probabilities of class 0 and of class 1."""
    return np.stack([1 - scores, scores], axis=1)


def cheapest(scores, y, weights, costs):
    """Over all thresholds, of either direction: the least cost of predicting ones."""
    best = 0.0
    for cut in np.unique(scores):
        for ones in (scores >= cut, scores > cut, scores <= cut, scores < cut):
            best = min(best, np.sum(weights[ones] * costs[y[ones]]))
    return best


@st.composite
def samples(draw):
    rng = new_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(1, 14)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    kind = draw(st.sampled_from(["different", "tied", "neighbors"]))
    if kind == "different":
        scores = rng.random(n).astype(dtype)
    elif kind == "tied":
        scores = (rng.integers(0, 4, n) / 3).astype(dtype)
    else:
        # No number lies between two of these.
        scores = np.full(n, 0.3, dtype)
        for _ in range(2):
            up = rng.random(n) < 0.5
            scores[up] = np.nextafter(scores[up], dtype(1))
    weights = None
    if draw(st.booleans()):
        weights = rng.integers(0, 4, n) / 2
        weights[0] = 1.0
    L = rng.integers(-3, 4, (m, 2, 2)) / 2
    return scores, rng.integers(0, 2, n), rng.integers(0, m, n), weights, L


@given(samples())
def test_no_thresholds_cost_less(sample):
    scores, y, cells, weights, L = sample
    lmo = threshold_lmo(two_columns(scores), y, cells, weights, n_cells=len(L))
    assert lmo.exact
    s = np.ones(len(y)) if weights is None else weights
    least = 0.0
    for a in range(len(L)):
        rows = cells == a
        least += np.sum(s[rows] * L[a, y[rows], 0])
        least += cheapest(scores[rows], y[rows], s[rows], L[a, :, 1] - L[a, :, 0])
    C, _, bound = lmo(L)
    assert bound == pytest.approx(least / s.sum(), rel=1e-13, abs=1e-14)
    assert (C * L).sum() == pytest.approx(bound, rel=1e-13, abs=1e-14)


@given(samples())
def test_the_handle_predicts_what_was_counted(sample):
    scores, y, cells, weights, L = sample
    P = two_columns(scores)
    lmo = threshold_lmo(P, y, cells, weights, n_cells=len(L))
    C, handle, _ = lmo(L)
    s = np.ones(len(y)) if weights is None else weights
    counted = np.zeros_like(C)
    np.add.at(counted, (cells, y, predict_plugin(P, handle, cells)), s)
    np.testing.assert_array_equal(C, counted / s.sum())
    np.testing.assert_array_equal(lmo.confusion(handle), C)
    np.testing.assert_allclose(C.sum(axis=2), lmo.priors_, rtol=1e-15)


def test_scores_that_are_wrong_way_round_are_turned():
    lmo = threshold_lmo(two_columns(np.array([0.1, 0.2, 0.8, 0.9])), [1, 1, 0, 0])
    C, handle, bound = lmo(1.0 - np.eye(2)[None])
    assert bound == 0.0
    assert C.tolist() == [[[0.5, 0.0], [0.0, 0.5]]]
    new = two_columns(np.array([0.0, 0.49, 0.51, 1.0]))
    assert predict_plugin(new, handle).tolist() == [1, 1, 0, 0]


def test_thresholds_are_midway_so_that_nothing_is_tied():
    scores = np.array([0.2, 0.4, 0.8])
    _, handle, _ = threshold_lmo(two_columns(scores), [0, 0, 1])(1.0 - np.eye(2)[None])
    assert handle[0].tolist() == pytest.approx(np.array([[0.0, 0.6], [0.0, -0.4]]))
    assert predict_plugin(two_columns(np.array([0.59, 0.61])), handle).tolist() == [0, 1]


@pytest.mark.parametrize("cost", [-1.0, 1.0])
def test_one_class_for_all_is_so_for_new_rows_too(cost):
    lmo = threshold_lmo(two_columns(np.array([0.3, 0.6])), [0, 1])
    C, handle, bound = lmo([[[0.0, cost], [0.0, cost]]])
    ones = cost < 0
    assert bound == min(cost, 0.0)
    assert C[0, :, int(ones)].tolist() == [0.5, 0.5]
    assert (predict_plugin(two_columns(np.linspace(0, 1, 5)), handle) == int(ones)).all()


def test_a_cell_without_examples_keeps_the_rule_of_its_losses():
    L = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 3.0], [1.0, 0.0]]])
    C, handle, _ = threshold_lmo(two_columns(np.array([0.3, 0.6])), [0, 1], n_cells=2)(L)
    np.testing.assert_array_equal(handle[1], L[1])
    assert not C[1].any()


def test_three_classes_have_no_threshold():
    with pytest.raises(ValueError, match="two classes"):
        threshold_lmo(np.full((2, 3), 1 / 3), [0, 1])


class TestHull:
    """The upper chain alone."""

    def test_without_scores_there_is_one_point(self):
        vertices, thresholds, above = threshold_hull(
            np.empty(0), np.empty(0, dtype=np.uint8)
        )
        assert vertices.tolist() == [[0.0, 0.0]]
        assert thresholds.tolist() == [[np.inf, np.inf]]
        assert above.tolist() == [True]
