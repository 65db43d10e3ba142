"""MulticlassStructure: what is its own; `test_listed` has what it shares."""

import numpy as np
import pytest
from _cases import multiclass_cases, some
from _seeds import new_rng
from hypothesis import given

from sklearn_structsvm.structures import MulticlassStructure


@some
@given(multiclass_cases())
def test_scores_and_weights_are_those_of_coef_and_intercept(case):
    scores = case.structure.decision_function(case.X, case.w)
    expected = np.array(case.listed.phi) @ case.w
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    coef, intercept = case.structure.split_weights(case.w)
    linear = case.X @ coef.T + (0.0 if intercept is None else intercept)
    np.testing.assert_allclose(linear, scores, rtol=0, atol=1e-12)
    assert coef.shape == (len(case.structure.classes_), case.structure.n_features_in_)
    back = case.structure.join_weights(coef, intercept)
    np.testing.assert_allclose(back, case.w, rtol=1e-15)


def test_the_decision_of_two_classes_is_the_difference_of_their_scores():
    rng = new_rng(0)
    X, w = rng.standard_normal((4, 2)), rng.standard_normal(4)
    two = MulticlassStructure().fit(X, [0, 1, 0, 1])
    scores = two.present_scores(two.decision_function(X, w))
    W = w.reshape(2, 2)
    np.testing.assert_allclose(scores, X @ (W[:, 1] - W[:, 0]), rtol=1e-12)


def test_class_weights_multiply_the_examples_weights():
    X = np.zeros((4, 1))
    structure = MulticlassStructure().fit(
        X, ["a", "b", "b", "b"], class_weight="balanced"
    )
    np.testing.assert_allclose(
        structure.example_weights(["a", "b", "b", "b"]), [2, 2 / 3, 2 / 3, 2 / 3]
    )


def test_a_label_not_seen_in_fit_is_named():
    structure = MulticlassStructure().fit(np.zeros((2, 1)), ["a", "b"])
    assert structure.unseen_labels(["c", "a", "d", "c"]) == ["c", "d"]
    with pytest.raises(ValueError, match="'c' .item 1., which is not one of .* 'a', 'b'"):
        structure.make_oracle(np.zeros((2, 1)), ["a", "c"])
