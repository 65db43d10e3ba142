"""The plug-in oracle and its predictions, against loops over rows and classes."""

import pickle
from itertools import product

import numpy as np
import pytest
from _plugin_references import (
    count_by_loops,
    exact_losses,
    exact_sample,
    plugin_lmo,
    predict_by_loops,
)
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from sklearn_structsvm.confusion.lmo._costs import reduce_costs
from sklearn_structsvm.confusion.lmo.base import LMO
from sklearn_structsvm.confusion.lmo.plugin import (
    PluginLMO,
    mixture_proba,
    predict_plugin,
)

BOTH = ["labels", "probabilities"]


def random_sample(n, k, m=1, seed=0):
    rng = new_rng(seed)
    P = rng.dirichlet(np.full(k, 0.7), n)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return P, y, rng.integers(0, m, n), rng


@st.composite
def problems(draw):
    rng = new_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(1, 6))
    m = draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    P, y, cells = exact_sample(rng, draw(st.integers(1, 90)), k, m, dtype)
    L = exact_losses(rng, m, k, draw(st.sampled_from(["any", "separable"])))
    weights = None
    if draw(st.booleans()):
        weights = rng.integers(0, 5, len(y)) / 4
        weights[0] = 1.0
    return P, y, cells, weights, L


@given(problems(), st.sampled_from(BOTH), st.sampled_from(BOTH))
def test_a_call_counts_what_loops_count(problem, confusion, counted):
    P, y, cells, weights, L = problem
    m = len(L)
    lmo = plugin_lmo(P, y, cells, weights, n_cells=m, confusion=confusion)
    predicted = predict_by_loops(P, L, cells)
    s = np.ones(len(y)) if weights is None else weights
    C = lmo.confusion(L, counted)
    expected = count_by_loops(P, y, cells, s, predicted, m, counted)
    np.testing.assert_array_equal(C, expected)
    if counted == confusion:
        np.testing.assert_array_equal(lmo(L)[0], C)
        np.testing.assert_allclose(lmo.priors_, C.sum(axis=2), rtol=1e-15)


@given(problems())
def test_predictions_are_the_first_of_the_cheapest_classes(problem):
    P, _, cells, _, L = problem
    predicted = predict_plugin(P, L, cells)
    assert predicted.dtype == np.intp
    np.testing.assert_array_equal(predicted, predict_by_loops(P, L, cells))
    # The handle is a copy of the losses.
    _, handle, _ = plugin_lmo(P, None, cells, n_cells=len(L))(L)
    np.testing.assert_array_equal(handle, L)
    assert not np.shares_memory(handle, L)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["any", "separable"])
@pytest.mark.parametrize("k", [20, 33, 66])
def test_many_classes_and_rows_of_several_blocks(k, kind, dtype):
    rng = new_rng(k)
    P, y, cells = exact_sample(rng, 1100, k, 2, dtype)
    weights = rng.integers(0, 5, len(y)) / 4
    L = exact_losses(rng, 2, k, kind)
    predicted = predict_by_loops(P, L, cells)
    np.testing.assert_array_equal(predict_plugin(P, L, cells), predicted)
    for s in (None, weights):
        lmo = plugin_lmo(P, y, cells, s)
        for counted in BOTH:
            of_rows = np.ones(len(y)) if s is None else s
            expected = count_by_loops(P, y, cells, of_rows, predicted, 2, counted)
            np.testing.assert_array_equal(lmo.confusion(L, counted), expected)


def test_no_rows_are_predicted_too():
    assert predict_plugin(np.empty((0, 3)), np.zeros((3, 3))).shape == (0,)
    assert mixture_proba(np.empty((0, 3)), np.zeros((2, 1, 3, 3)), [0.5, 0.5]).shape == (
        0,
        3,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("confusion", BOTH)
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_change_no_bit(confusion, dtype, weighted):
    P, y, cells, rng = random_sample(30_000, 5, m=3)
    P, weights = P.astype(dtype), rng.random(len(y)) if weighted else None
    L, Ls = rng.random((3, 5, 5)), rng.random((4, 3, 5, 5))
    shares, results = [0.1, 0.2, 0.3, 0.4], []
    for n_threads in (1, 2, 3):
        options = {"n_threads": n_threads}
        lmo = plugin_lmo(P, y, cells, weights, confusion=confusion, **options)
        predicted = predict_plugin(P, L, cells, **options)
        mixed = mixture_proba(P, Ls, shares, cells, **options)
        results.append([lmo.priors_, lmo(L)[0], predicted, mixed])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", ["any", "separable"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_are_those_that_were_counted(dtype, kind):
    # Of random numbers, where another order of operations might choose another class.
    P, y, cells, rng = random_sample(5000, 4, m=2)
    P = P.astype(dtype)
    L = rng.random((2, 4, 4))
    if kind == "separable":
        L = rng.random((2, 4, 1)) + rng.random((2, 1, 4)) - 3 * np.eye(4)
    predicted = predict_plugin(P, L, cells)
    expected = np.zeros((2, 4, 4))
    np.add.at(expected, (cells, y, predicted), 1.0)
    C = plugin_lmo(P, y, cells, confusion="labels").confusion(L)
    np.testing.assert_array_equal(C, expected / len(y))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_no_classifier_costs_less_under_the_model(seed, weighted):
    rng = new_rng(seed)
    n, k, m = rng.integers(1, 6), rng.integers(2, 4), rng.integers(1, 3)
    P, cells = rng.dirichlet(np.ones(k), n), rng.integers(0, m, n)
    weights = rng.random(n) if weighted else np.ones(n)
    lmo = plugin_lmo(P, None, cells, weights, n_cells=m)
    assert lmo.exact
    L = rng.standard_normal((m, k, k))
    costs = [
        sum(
            w * (eta @ L[a])[j]
            for w, eta, a, j in zip(weights, P, cells, predicted, strict=True)
        )
        for predicted in product(range(k), repeat=n)
    ]
    C, _, bound = lmo(L)
    assert bound == pytest.approx(min(costs) / weights.sum(), rel=1e-12, abs=1e-14)
    assert bound == pytest.approx((L * C).sum(), rel=1e-12, abs=1e-15)


def test_on_labels_the_rule_is_not_the_best():
    lmo = plugin_lmo([[0.6, 0.4]], [1], confusion="labels")
    assert not lmo.exact
    assert lmo(1.0 - np.eye(2)[None])[2] == 1.0


def test_it_is_an_lmo_whose_examples_are_class_probabilities():
    P, y, cells, rng = random_sample(50, 3, 2)
    lmo = PluginLMO(n_threads=2)
    assert isinstance(lmo, LMO) and clone(lmo).get_params() == lmo.get_params()
    assert lmo.fit(P, y, cells=cells, n_cells=2) is lmo
    C, handle, bound = lmo(rng.random((2, 3, 3)))
    expected = predict_plugin(P, handle, cells)
    np.testing.assert_array_equal(lmo.predict(handle, P, cells), expected)
    kept = lmo.without_examples()
    assert len(pickle.dumps(kept)) < 500
    np.testing.assert_array_equal(kept.predict(handle, P, cells), expected)


def test_a_mixture_is_the_mean_of_its_parts():
    P, y, cells, rng = random_sample(600, 3, m=2)
    Ls, weights = rng.standard_normal((5, 2, 3, 3)), rng.dirichlet(np.ones(5))
    proba = mixture_proba(P, Ls, weights, cells)
    expected = np.zeros((600, 3))
    for L, weight in zip(Ls, weights, strict=True):
        expected[np.arange(600), predict_plugin(P, L, cells)] += weight
    np.testing.assert_array_equal(proba, expected)
    lmo = plugin_lmo(P, y, cells)
    for counted in BOTH:
        C = lmo.mixture_confusion(Ls, weights, counted)
        parts = [w * lmo.confusion(L, counted) for L, w in zip(Ls, weights, strict=True)]
        np.testing.assert_allclose(C, sum(parts), rtol=1e-13, atol=1e-17)
    of_labels = lmo.mixture_confusion(Ls, weights, "labels")
    for a, i in product(range(2), range(3)):
        rows = (cells == a) & (y == i)
        np.testing.assert_allclose(of_labels[a, i], proba[rows].sum(axis=0) / 600)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout_of_probabilities_is_read(dtype):
    P, y, cells, rng = random_sample(100, 3, m=2)
    P, L = P.astype(dtype), rng.random((2, 3, 3))
    wide = np.zeros((200, 5), dtype=dtype)
    wide[::2, 1:4] = P
    locked = P.copy()
    locked.flags.writeable = False
    C = plugin_lmo(P, y, cells)(L)[0]
    for same in (np.asfortranarray(P), wide[::2, 1:4], locked):
        np.testing.assert_array_equal(plugin_lmo(same, y, cells)(L)[0], C)
    np.testing.assert_array_equal(
        plugin_lmo(P.tolist(), y.tolist(), cells.tolist())(L)[0],
        plugin_lmo(P.astype(np.float64), y, cells)(L)[0],
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-60, 1e60, 1e300])
def test_only_ratios_of_costs_matter(scale):
    P, y, _, rng = random_sample(200, 4)
    for L in (rng.random((1, 4, 4)), -np.diag(rng.random(4))[None]):
        for dtype in (np.float32, np.float64):
            predicted = predict_plugin(P.astype(dtype), L)
            np.testing.assert_array_equal(
                predict_plugin(P.astype(dtype), scale * L), predicted
            )


class TestReducedCosts:
    """Costs are k multiplications a row where they can be, and right where not."""

    @pytest.mark.parametrize("k", [1, 2, 3, 4, 9])
    def test_sums_of_rows_columns_and_a_diagonal_are_recognized(self, k):
        rng = new_rng(k)
        rows, columns, diagonal = 10.0 ** rng.uniform(-2, 2, (3, 50, k))
        L = rows[:, :, None] - columns[:, None, :] + diagonal[:, :, None] * np.eye(k)
        costs, separable = reduce_costs(L, False)
        assert separable.all()
        c, d = costs[:, :k], costs[:, k : 2 * k]
        # What predicting j costs more than predicting 0 does.
        eta = rng.dirichlet(np.ones(k), 50)
        plain = np.einsum("ai,aij->aj", eta, L)
        reduced = c + d * eta
        largest = np.abs(L).max(axis=(1, 2))
        scale = 2.0 ** -np.frexp(largest)[1]
        np.testing.assert_allclose(
            reduced - reduced[:, :1], (plain - plain[:, :1]) * scale[:, None], atol=1e-13
        )

    @pytest.mark.parametrize("large", [1.0, 1e12])
    @pytest.mark.parametrize("column", [0, 1, 2, 3])
    def test_a_small_difference_is_not_taken_for_rounding(self, column, large):
        L = np.ones((1, 4, 4))
        L[0, 3, (column + 1) % 3] += 1e-12
        L[0, :, column] *= large
        assert not reduce_costs(L, False)[1][0]

    def test_cells_are_reduced_one_by_one(self):
        rng = new_rng(0)
        L = np.stack([np.eye(3), rng.random((3, 3)), 1e200 * np.ones((3, 3))])
        assert reduce_costs(L, True)[1].tolist() == [1, 0, 1]
        assert np.isfinite(reduce_costs(L, True)[0]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"probabilities": np.ones((3, 0))}, "shape"),
        ({"probabilities": [[0.5, 0.5], [0.5, 0.4], [1, 0]]}, r"0.4\] in row 1"),
        ({"probabilities": [[0.5, 0.5], [1.5, -0.5], [1, 0]]}, "row 1"),
        ({"probabilities": [[0.5, 0.5], [0.5, 0.5], [np.nan, 1]]}, "row 2"),
        ({"y": [0, 1]}, r"y must have shape \(3,\)"),
        ({"y": [0, 2, 1]}, "got 2 for sample 1"),
        ({"y": [0.0, 0.5, 1.0]}, "got 0.5 for sample 1"),
        ({"y": None, "confusion": "labels"}, "needs y"),
        ({"cells": [0, 1, 2], "n_cells": 2}, "got 2 for sample 2"),
        ({"sample_weight": [1.0, np.inf, 0.0]}, r"sample_weight\[1\] .* got inf"),
        ({"sample_weight": [0.0, 0.0, 0.0]}, "must not be zero for every"),
        ({"confusion": "counts"}, "counts"),
        ({"probabilities": np.empty((0, 2)), "y": []}, "There must be a sample"),
    ],
)
def test_bad_samples_are_named(change, words):
    good = {"probabilities": np.full((3, 2), 0.5), "y": [0, 1, 1]}
    with pytest.raises(ValueError, match=words):
        plugin_lmo(**(good | change))


def test_bad_losses_are_named():
    lmo = plugin_lmo(np.full((3, 2), 0.5))
    with pytest.raises(ValueError, match=r"shape \(1, 2, 2\); got \(3, 3\)"):
        lmo(np.ones((3, 3)))
    with pytest.raises(ValueError, match="finite"):
        lmo(np.full((1, 2, 2), np.nan))
    with pytest.raises(ValueError, match="where y was given"):
        lmo.confusion(np.ones((1, 2, 2)), "labels")
    with pytest.raises(ValueError, match=r"weights must have shape \(2,\)"):
        mixture_proba(np.full((3, 2), 0.5), np.zeros((2, 1, 2, 2)), [1.0])
    with pytest.raises(ValueError, match="got 1 for sample 0"):
        predict_plugin(np.full((1, 2), 0.5), np.zeros((1, 2, 2)), [1])


@given(problems(), st.integers(1, 3), st.integers(1, 2), st.sampled_from(BOTH))
def test_rules_that_do_not_see_the_group_are_rules_of_pairs(problem, g, p, counted):
    P, y, _, weights, _ = problem
    k, n = P.shape[1], len(P)
    rng = new_rng(n)
    # Of a share that is a power of two each, so that nothing is rounded.
    shares = (
        np.array([1.0]) if g == 1 else np.array([0.25] * (g - 1) + [1 - 0.25 * (g - 1)])
    )
    P = (shares[:, None] * P[:, None, :]).reshape(n, g * k).astype(P.dtype)
    cells = rng.integers(0, g * p, n)
    L = exact_losses(rng, g * p, k, "any")
    of_pairs = np.array([np.concatenate(L[b::p]) for b in range(p)])
    predicted = predict_by_loops(P, of_pairs, cells % p)
    args = {"n_groups": g}
    np.testing.assert_array_equal(predict_plugin(P, L, cells % p, **args), predicted)
    mixed = mixture_proba(P, [L, L], [0.25, 0.75], cells % p, **args)
    np.testing.assert_array_equal(mixed, np.eye(k)[predicted])
    lmo = PluginLMO(counted, n_groups=g).fit(P, y, weights, cells, g * p)
    np.testing.assert_array_equal(lmo.predict(L, P, cells % p), predicted)
    s = np.ones(n) if weights is None else weights
    expected = np.zeros((g * p, k, k))
    for r, j in enumerate(predicted):
        if counted == "labels":
            expected[cells[r], y[r], j] += s[r]
        else:
            expected[cells[r] % p :: p, :, j] += s[r] * P[r].reshape(g, k)
    C, handle, bound = lmo(L)
    np.testing.assert_array_equal(C, expected / expected.sum())
    np.testing.assert_array_equal(handle, L)
    assert bound == pytest.approx((L * C).sum(), rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(lmo.priors_, C.sum(axis=2), rtol=1e-14)


def test_pairs_have_as_many_columns_for_each_group():
    with pytest.raises(ValueError, match=r"2 groups .* got shape \(1, 3\)"):
        predict_plugin([[0.5, 0.25, 0.25]], np.eye(2)[None], n_groups=2)
