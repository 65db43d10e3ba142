"""MultilabelStructure: what is its own; `test_listed` has what it shares."""

import numpy as np
import pytest

from sklearn_structsvm.structures import MultilabelStructure

X = np.zeros((2, 1))
Y = np.array([[1, 0, 1], [0, 0, 1]])


def test_a_normalized_loss_is_the_share_of_wrong_labels():
    structure = MultilabelStructure(normalize_loss=True).fit(X, Y)
    assert structure.loss(Y[0], [0, 0, 1]) == pytest.approx(1 / 3)
    assert MultilabelStructure().fit(X, Y).loss(Y[0], [0, 1, 0]) == 3.0


def test_costs_tell_false_alarms_from_misses():
    structure = MultilabelStructure(label_costs=[[1, 2], [3, 4], [5, 6]]).fit(X, Y)
    assert structure.loss([1, 0, 0], [0, 0, 0]) == 2
    assert structure.loss([0, 0, 0], [0, 1, 1]) == 3 + 5


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1, 0, 2], [0, 0, 1]], "got .*2.* in row 0, column 2"),
        ([[1, 0], [0, 1]], r"must have shape \(n_samples, 3\); got \(2, 2\)"),
        ([1, 0, 1], r"must have shape \(n_samples, 3\); got \(3,\)"),
    ],
)
def test_what_is_no_indicator_is_refused(bad, message):
    structure = MultilabelStructure().fit(X, Y)
    with pytest.raises(ValueError, match=message):
        structure.make_oracle(X, np.array(bad))


@pytest.mark.parametrize(
    ("parameters", "options", "message"),
    [
        ({"label_costs": [[1, 1]]}, {}, r"shape \(3, 2\).* got \(1, 2\)"),
        ({"label_costs": [[1, 1], [1, -1], [1, 1]]}, {}, "must be >= 0; got -1"),
        ({}, {"class_weight": "balanced"}, "class_weight cannot be used"),
        ({}, {"classes": ["a", "b"]}, "name for each of the 3 columns of y; got 2"),
    ],
)
def test_settings_that_do_not_fit_the_labels_are_refused(parameters, options, message):
    with pytest.raises(ValueError, match=message):
        MultilabelStructure(**parameters).fit(X, Y, **options)
