"""k best labelings and max-marginals of a chain, against enumeration."""

import doctest

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_structsvm.structures import _constrained, _k_best
from sklearn_structsvm.structures._k_best import k_best, max_marginals, suffix_scores


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
