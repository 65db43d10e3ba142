"""ChainStructure: what is its own; `test_listed` has what it shares."""

import numpy as np
import pytest
from _references import CHAIN_PARTS, messy_csr
from _seeds import new_rng

from sklearn_structsvm.structures import ChainStructure


def test_long_alphabets_are_decoded_exactly():
    """Viterbi works on labels in groups of 64: sizes around that boundary."""
    rng = new_rng(0)
    for k in (63, 64, 65, 130):
        x, w = rng.standard_normal((2, 2)), rng.standard_normal(2 * k + k * k)
        classes = np.arange(k)
        structure = ChainStructure(bias=False, first_bias=False, last_bias=False)
        structure.fit([x], [classes[:2]], classes=classes)
        theta, transition = structure.potentials(x, w)
        scores = theta[0][:, np.newaxis] + transition + theta[1]
        best = np.unravel_index(scores.argmax(), scores.shape)
        np.testing.assert_array_equal(structure.decode(x, w), best)


def test_class_weights_multiply_the_costs_of_positions():
    x, y = [np.zeros((4, 1))], [np.array(["a", "b", "b", "b"])]
    structure = ChainStructure(normalize_loss=False)
    structure.fit(x, y, class_weight={"a": 3.0, "b": 0.5})
    assert structure.loss(["a", "b"], ["b", "b"]) == 3.0
    assert structure.loss(["a", "b"], ["b", "a"]) == 3.5


def test_a_loss_of_unequal_lengths_is_refused():
    structure = ChainStructure().fit([np.zeros((2, 1))], [np.array([0, 1])])
    with pytest.raises(ValueError, match="lengths 2 and 1"):
        structure.loss([0, 1], [0])


def test_an_unknown_label_is_named_with_its_place():
    X = [np.zeros((2, 1)), np.zeros((3, 1))]
    structure = ChainStructure().fit(X, [np.array([0, 1]), np.array([1, 1, 0])])
    with pytest.raises(ValueError, match=r"7.*sequence 1, position 2"):
        structure.make_oracle(X, [np.array([0, 1]), np.array([1, 1, 7])])


def test_without_any_part_there_is_nothing_to_learn():
    parts = dict.fromkeys(CHAIN_PARTS, False)
    with pytest.raises(ValueError, match="part"):
        ChainStructure(**parts).fit([np.zeros((2, 1))], [np.array([0, 1])])


def test_the_oracle_leaves_the_users_matrices_alone():
    X = [messy_csr(np.arange(6.0).reshape(2, 3), seed) for seed in (1, 2)]
    kept = [(x.data.copy(), x.indices.copy(), x.indptr.copy()) for x in X]
    y = [np.array([0, 1]), np.array([1, 1])]
    structure = ChainStructure().fit(X, y)
    structure.make_oracle(X, y).decode(np.ones(structure.n_weights_), 1.0)
    for x, before in zip(X, kept, strict=True):
        for now, then in zip((x.data, x.indices, x.indptr), before, strict=True):
            np.testing.assert_array_equal(now, then)
