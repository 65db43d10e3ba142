"""k best labelings and max-marginals of a chain, against enumeration."""

import doctest
from itertools import product

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_structsvm.structures import _constrained, _k_best
from sklearn_structsvm.structures._k_best import (
    complete,
    k_best,
    max_marginals,
    suffix_scores,
)


@st.composite
def chains(draw, max_length=5, max_labels=4):
    """(theta, transition): small integers, so that ties abound, or reals."""
    T = draw(st.integers(1, max_length))
    K = draw(st.integers(1, max_labels))
    rng = new_rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        theta = rng.integers(-2, 3, size=(T, K)).astype(float)
        transition = rng.integers(-2, 3, size=(K, K)).astype(float)
    else:
        theta, transition = rng.normal(size=(T, K)), rng.normal(size=(K, K))
    return theta, draw(st.sampled_from([None, transition]))


def score(theta, transition, y):
    total = sum(theta[t, label] for t, label in enumerate(y))
    if transition is not None:
        total += sum(transition[pair] for pair in zip(y, y[1:], strict=False))
    return total


def enumerate_scores(theta, transition):
    T, K = theta.shape
    return {y: score(theta, transition, y) for y in product(range(K), repeat=T)}


@given(chains(), st.integers(1, 40))
def test_k_best_lists_the_highest_scoring_labelings(chain, k):
    scores = enumerate_scores(*chain)
    labels, values = k_best(*chain, k)
    m = min(k, len(scores))
    assert labels.shape == (m, len(chain[0])) and labels.dtype == np.intc
    listed = [tuple(y) for y in labels.tolist()]
    assert len(set(listed)) == m
    assert_allclose(values, sorted(scores.values(), reverse=True)[:m], atol=1e-12)
    assert_allclose(values, [scores[y] for y in listed], atol=1e-12)


@given(chains())
def test_k_best_lists_every_labeling_once_when_asked_for_more(chain):
    scores = enumerate_scores(*chain)
    labels, _ = k_best(*chain, 10**30)
    assert sorted(map(tuple, labels.tolist())) == sorted(scores)


@given(chains(), st.integers(1, 20))
def test_a_shorter_list_begins_a_longer_one_even_among_ties(chain, k):
    few, few_values = k_best(*chain, k)
    many, many_values = k_best(*chain, k + 7)
    assert_array_equal(few, many[: len(few)])
    assert_array_equal(few_values, many_values[: len(few)])


def test_scores_of_a_long_chain_never_increase_and_belong_to_their_labelings():
    rng = new_rng(0)
    theta, transition = rng.normal(size=(700, 6)), rng.normal(size=(6, 6))
    labels, values = k_best(theta, transition, 200)
    assert (np.diff(values) <= 0).all()
    assert len(np.unique(labels, axis=0)) == 200
    recomputed = theta[np.arange(700), labels].sum(axis=1)
    recomputed += transition[labels[:, :-1], labels[:, 1:]].sum(axis=1)
    assert_allclose(values, recomputed, rtol=1e-12)


def test_where_all_labelings_tie_each_is_listed_once():
    labels, values = k_best(np.zeros((4, 3)), np.zeros((3, 3)), 81)
    assert len(np.unique(labels, axis=0)) == 81
    assert_array_equal(values, np.zeros(81))


@given(chains())
def test_max_marginals_are_the_best_scores_by_label(chain):
    scores = enumerate_scores(*chain)
    T, K = chain[0].shape
    expected = [
        [max(s for y, s in scores.items() if y[t] == c) for c in range(K)]
        for t in range(T)
    ]
    assert_allclose(max_marginals(*chain), expected, atol=1e-12)


@given(chains())
def test_suffix_scores_are_the_best_scores_of_the_chains_cut_off(chain):
    theta, transition = chain
    K = theta.shape[1]
    suffix = suffix_scores(theta, transition)
    for t in range(len(theta)):
        scores = enumerate_scores(theta[t:], transition)
        expected = [max(s for y, s in scores.items() if y[0] == c) for c in range(K)]
        assert_allclose(suffix[t], expected, atol=1e-12)


@given(chains(), st.data())
def test_complete_keeps_the_prefix_and_adds_the_best_suffix(chain, data):
    theta, transition = chain
    T, K = theta.shape
    start = data.draw(st.integers(0, T))
    prefix = data.draw(st.lists(st.integers(0, K - 1), min_size=start, max_size=start))
    labels = np.array(prefix + [0] * (T - start), dtype=np.intc)
    complete(labels, start, suffix_scores(theta, transition), transition)
    assert labels[:start].tolist() == prefix
    scores = enumerate_scores(theta, transition)
    best = max(s for y, s in scores.items() if list(y[:start]) == prefix)
    assert_allclose(scores[tuple(labels.tolist())], best, atol=1e-12)


@given(chains())
def test_no_transitions_are_transitions_of_zero(chain):
    theta = chain[0]
    zeros = np.zeros((theta.shape[1], theta.shape[1]))
    assert_array_equal(k_best(theta, None, 9)[1], k_best(theta, zeros, 9)[1])
    assert_allclose(max_marginals(theta, None), max_marginals(theta, zeros), atol=1e-12)


def test_potentials_of_any_memory_layout_give_the_same():
    rng = new_rng(0)
    theta = rng.normal(size=(5, 3)).astype(np.float32)
    transition = rng.normal(size=(3, 3)).astype(np.float32)
    expected = k_best(theta.astype(float), transition.astype(float), 4)
    for variant in (np.asfortranarray, np.ndarray.tolist, read_only):
        labels, values = k_best(variant(theta), variant(transition), 4)
        assert_array_equal(labels, expected[0])
        assert_array_equal(values, expected[1])


def read_only(array):
    array = array.astype(float)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("theta", "transition", "message"),
    [
        (np.zeros(3), None, r"theta must have shape .* got \(3,\)"),
        (np.zeros((0, 3)), None, r"theta must have shape .* got \(0, 3\)"),
        (np.zeros((3, 0)), None, r"theta must have shape .* got \(3, 0\)"),
        (np.zeros((3, 2)), np.zeros((3, 3)), r"transition .* \(2, 2\).* \(3, 3\)"),
        (np.array([[np.nan, 0.0]]), None, "finite"),
        (np.array([[0.0, -np.inf]]), None, "finite"),
        (np.zeros((1, 1)), np.array([[np.inf]]), "finite"),
        (np.full((2, 1), 1e308), None, "finite"),
    ],
)
def test_potentials_that_cannot_be_decoded_are_refused(theta, transition, message):
    for decode in (max_marginals, suffix_scores, lambda *chain: k_best(*chain, 1)):
        with pytest.raises(ValueError, match=message):
            decode(theta, transition)


def test_less_than_one_labeling_cannot_be_asked_for():
    with pytest.raises(ValueError, match="k must be at least 1; got 0"):
        k_best(np.zeros((1, 1)), None, 0)
    with pytest.raises(TypeError):
        k_best(np.zeros((1, 1)), None, 1.5)


@pytest.mark.thread_unsafe(reason="doctest patches what shows tracebacks")
@pytest.mark.parametrize("kernel", [_k_best, _constrained])
def test_examples_in_the_kernels_docstrings_hold(kernel):
    failed, attempted = doctest.testmod(kernel)
    assert attempted > 0
    assert failed == 0
