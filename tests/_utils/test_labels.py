"""Labels of any kind as numbers, and what errors cost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_structsvm._utils.labels import (
    check_codes,
    class_weight_vector,
    encode,
    label_cost_matrix,
    learn_classes,
)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([0, 1], r"y must have shape \(3,\); got \(2,\)"),
        (["0", "1", "0"], "y must hold integers; got <U1"),
        ([0.0, 0.5, 0.0], "y must be among 0, ..., 1; got 0.5 for sample 1"),
        ([0.0, np.nan, 0.0], "got nan for sample 1"),
        ([0, 2, 1], "y must be among 0, ..., 1; got 2 for sample 1"),
        ([0, 1, -1], "y must be among 0, ..., 1; got -1 for sample 2"),
        (np.array([0, 2**62, 1]), "got 4611686018427387904 for sample 1"),
    ],
)
def test_codes_are_those_of_classes(codes, message):
    with pytest.raises(ValueError, match=message):
        check_codes(codes, 3, 2)
    for right in ([True, False, True], [1.0, 0.0, 1.0], np.array([1, 0, 1], np.uint8)):
        assert check_codes(right, 3, 2).tolist() == [1, 0, 1]


@settings(max_examples=30)
@given(
    st.lists(st.integers(-5, 5), min_size=2)
    | st.lists(st.text("aé漢", max_size=3), min_size=2)
)
def test_labels_come_back_from_their_places(labels):
    if len(set(labels)) < 2:
        labels = [*labels, 99 if isinstance(labels[0], int) else "another"]
    classes = learn_classes(np.array(labels))
    np.testing.assert_array_equal(classes, sorted(set(labels)))
    np.testing.assert_array_equal(classes[encode(labels, classes)], labels)


def test_classes_may_hold_labels_that_y_lacks_and_come_in_any_order():
    assert encode(["b", "a", "c"], ["c", "a", "b"]).tolist() == [2, 1, 0]
    assert encode([1, 1.0, True], np.array([7, 1])).tolist() == [1, 1, 1]
    classes = learn_classes(np.array(["b", "a"]), ["c", "b", "a", "longer"])
    np.testing.assert_array_equal(classes, ["a", "b", "c", "longer"])


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([3, 3], None, "only one class: .*3"),
        ([1, 2], [1, 3], "label .*2.* not among `classes`"),
        ([1, 2], [1, 2, 2], "holds a label twice"),
        (np.array([1, "a"], dtype=object), None, "y mixes labels"),
        ([1, 2], 3.0, r"classes must have shape \(n_classes,\); got \(\)"),
        ([1, 2], [[1, 2]], r"classes must have shape \(n_classes,\); got \(1, 2\)"),
        ([1, 2], [[1, 2], [3]], "classes must be an array"),
        ([1, 2], [], "classes is empty"),
    ],
)
def test_classes_that_cannot_be_are_refused(labels, classes, message):
    with pytest.raises(ValueError, match=message):
        learn_classes(np.asarray(labels), classes)


@pytest.mark.parametrize(
    ("labels", "classes", "shown"),
    [
        (["a", "x"], ["a", "b"], "'x'.*item 1"),
        ([0, 5], [0, 1], "5.*item 1"),
        ([-9, 1], [0, 1], "-9.*item 0"),
        (["0", "1"], [0, 1], "'0'.*item 0"),
        ([0, 1], ["a", "b"], "0.*item 0"),
        (["a", "abc"], ["a", "ab"], "'abc'.*item 1"),
        ([0.5, 1.0], [0, 1], "0.5.*item 0"),
    ],
)
def test_an_unknown_label_is_refused_by_name(labels, classes, shown):
    with pytest.raises(ValueError, match=f"y has the label {shown}"):
        encode(labels, np.array(classes))
    for other, message in (
        ([[0, 1]], r"have shape \(n,\); got \(1, 2\)"),
        (1, r"have shape \(n,\); got \(\)"),
        ([[0], [0, 1]], "be an array"),
    ):
        with pytest.raises(ValueError, match=f"truth must {message}"):
            encode(other, [0, 1], "truth")


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1, 2], [1, 0, 2]], r"shape \(3, 3\).* got \(2, 3\)"),
        ([[0, 1, 1], [1, 2, 1], [1, 1, 0]], "zero on the diagonal; got 2.0 for class 1"),
        ([[0, 1, 1], [1, 0, -3], [1, 1, 0]], "label_costs must be >= 0; got -3"),
        ([[0, 1, 1], [1, 0, np.nan], [1, 1, 0]], "label_costs must be finite; got nan"),
        ([[0, 1, 1], [1, 0, np.inf], [1, 1, 0]], "label_costs must be finite; got inf"),
        ([[0, 1], [1]], "label_costs must be an array"),
        ([["a"] * 3] * 3, "label_costs must hold numbers"),
    ],
)
def test_a_matrix_that_is_no_cost_is_refused(costs, message):
    with pytest.raises(ValueError, match=message):
        label_cost_matrix(costs, 3)


def test_costs_are_one_or_given_times_the_weight_of_the_truth():
    assert label_cost_matrix(None, 3).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    given = np.array([[0.0, 2.0], [3.0, 0.0]])
    costs = label_cost_matrix(given, 2, np.array([10.0, 0.5]))
    assert costs.tolist() == [[0, 20], [1.5, 0]]
    assert given.tolist() == [[0, 2], [3, 0]]
    assert not label_cost_matrix(np.zeros((2, 2)), 2).any()


def test_class_weights_are_those_of_scikit_learn_and_one_without_examples():
    weights = class_weight_vector("balanced", np.array([0, 1]), [0, 0, 0, 1])
    np.testing.assert_allclose(weights, [4 / 6, 2.0])
    classes = np.array(["a", "b", "c"])
    weights = class_weight_vector({"a": 3.0}, classes, ["a", "c"])
    np.testing.assert_array_equal(weights, [3, 1, 1])
    balanced = class_weight_vector("balanced", classes, ["a", "c", "c", "c"])
    np.testing.assert_allclose(balanced, [2, 1, 2 / 3])
    assert class_weight_vector(None, np.array([0, 1]), [0, 1]) is None
