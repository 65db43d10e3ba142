"""MulticlassStructure: what is its own; `test_listed` has what it shares."""

import numpy as np
import pytest
from _cases import multiclass_cases, some
from _references import messy_csr
from _seeds import new_rng
from hypothesis import given

from sklearn_structsvm.structures import MulticlassStructure


@some
@given(multiclass_cases())
def test_decision_function_gives_the_score_of_each_class(case):
    scores = case.structure.decision_function(case.X, case.w)
    np.testing.assert_allclose(
        scores, np.array(case.listed.phi) @ case.w, rtol=0, atol=1e-12
    )


@some
@given(multiclass_cases())
def test_weights_come_back_from_coef_and_intercept(case):
    coef, intercept = case.structure.split_weights(case.w)
    assert coef.shape == (len(case.structure.classes_), case.structure.n_features_in_)
    back = case.structure.join_weights(coef, intercept)
    np.testing.assert_allclose(back, case.w, rtol=1e-15)


def test_coef_and_intercept_give_the_scores():
    rng = new_rng(0)
    X, w = rng.standard_normal((5, 4)), rng.standard_normal(15)
    structure = MulticlassStructure().fit(X, [0, 1, 2, 1, 0], bias=2.0)
    coef, intercept = structure.split_weights(w)
    np.testing.assert_allclose(
        structure.decision_function(X, w), X @ coef.T + intercept, rtol=1e-13
    )


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


def test_the_oracle_leaves_the_users_matrix_alone():
    X = messy_csr(np.arange(12.0).reshape(4, 3))
    kept = X.data.copy(), X.indices.copy(), X.indptr.copy()
    structure = MulticlassStructure().fit(X, [0, 1, 0, 2])
    structure.make_oracle(X, [0, 1, 0, 2]).decode(np.ones(9), 1.0)
    for now, before in zip((X.data, X.indices, X.indptr), kept, strict=True):
        np.testing.assert_array_equal(now, before)
