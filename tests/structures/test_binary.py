"""BinaryStructure against enumeration of its two classes."""

import numpy as np
import pytest
from _cases import (
    angles,
    binary_cases,
    check_batch_equals_single_calls,
    check_constrained_decoding,
    check_features_and_losses,
    check_it,
    check_scores_of_the_solver,
    few,
    some,
)
from _seeds import new_rng
from hypothesis import given

from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.structures import BinaryStructure, MulticlassStructure


@some
@given(binary_cases())
def test_joint_feature_and_loss_are_those_of_the_definition(case):
    check_features_and_losses(case)


@few
@given(binary_cases())
def test_it_is_what_training_takes_it_for(case):
    check_it(case)


@some
@given(binary_cases())
def test_decoding_many_examples_equals_decoding_each(case):
    check_batch_equals_single_calls(case)


@some
@given(binary_cases())
def test_the_solver_sees_the_scores_of_the_joint_features(case):
    check_scores_of_the_solver(case)


@some
@given(binary_cases(), angles())
def test_constrained_decode_finds_the_best_class_within_the_angle(case, angle):
    check_constrained_decoding(case, *angle)


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
