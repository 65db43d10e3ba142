"""BinaryStructure: what is its own; `test_listed` has what it shares."""

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.structures import BinaryStructure, MulticlassStructure


def test_the_hinge_is_that_of_the_support_vector_machine():
    rng = new_rng(0)
    X, w = rng.standard_normal((20, 3)), rng.standard_normal(3)
    signs = np.where(np.arange(20) % 2, 1, -1)
    oracle = BinaryStructure().fit(X, signs).make_oracle(X, signs)
    hinge = BlockFrankWolfe(oracle, np.full(20, 1 / 20), 1.0).hinge(w)
    expected = np.maximum(0.0, 1.0 - signs * (X @ w)).mean()
    assert hinge == pytest.approx(expected, rel=1e-14)


def test_a_wrong_class_costs_what_the_matrix_says():
    structure = BinaryStructure(label_costs=[[0, 2], [5, 0]])
    structure.fit(np.zeros((2, 1)), ["no", "yes"])
    assert structure.loss("no", "yes") == 2
    assert structure.loss("yes", "no") == 5


def test_three_classes_are_refused():
    with pytest.raises(ValueError, match="Only binary.*3 classes"):
        BinaryStructure().fit(np.zeros((3, 1)), ["a", "b", "c"])


def test_the_decision_is_the_difference_of_two_classes_scores():
    rng = new_rng(0)
    X, w = rng.standard_normal((4, 2)), rng.standard_normal(4)
    two = MulticlassStructure().fit(X, [0, 1, 0, 1])
    scores = two.present_scores(two.decision_function(X, w))
    W = w.reshape(2, 2)
    np.testing.assert_allclose(scores, X @ (W[:, 1] - W[:, 0]), rtol=1e-12)
