"""ChainStructure: what is its own; `test_listed` has what it shares."""

import numpy as np
import pytest
from _references import CHAIN_PARTS

from sklearn_structsvm.structures import ChainStructure


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
