"""Score functions, gaps between groups and confusion tensors, against other libraries."""

import inspect
import math
import pickle
import re

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn import metrics as sk
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_structsvm import metrics
from sklearn_structsvm.confusion import functions, make_cells
from sklearn_structsvm.metrics import (
    GMean,
    confusion_tensor,
    cost_loss,
    expected_cost_score,
    g_mean_score,
    h_mean_score,
    micro_f1_score,
    min_recall_score,
    ordinal_loss,
    q_mean_score,
    quantification_loss,
)

# Two labels, of which the second is hidden.
MASKED = np.ma.masked_array([0, 1], mask=[False, True])
RECALL_SCORES = [g_mean_score, h_mean_score, q_mean_score, min_recall_score]
GAPS = [
    "demographic_parity_difference", "demographic_parity_ratio",
    "equal_opportunity_difference", "equal_opportunity_ratio",
    "equalized_odds_difference", "equalized_odds_ratio",
]  # fmt: skip


def sample(seed, n=90, k=3, m=3):
    """Labels, predictions that are often right, weights with zeros, and groups."""
    rng = new_rng(seed)
    y = rng.integers(k, size=n)
    guess = np.where(rng.random(n) < 0.6, y, rng.integers(k, size=n))
    return y, guess, rng.integers(4, size=n) / 2.0, rng.integers(m, size=n)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_g_mean_agrees_with_imbalanced_learn(k, weighted):
    imblearn = pytest.importorskip("imblearn.metrics")
    y, guess, weights, _ = sample(k, k=k)
    names = np.array(list("fbdace"))
    weights = weights if weighted else None
    for y_true, y_pred in ((y, guess), (names[y], names[guess])):
        expected = imblearn.geometric_mean_score(y_true, y_pred, sample_weight=weights)
        score = g_mean_score(y_true, y_pred, sample_weight=weights)
        assert score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
@pytest.mark.parametrize("name", GAPS)
def test_gaps_agree_with_fairlearn(name, method, weighted):
    fairlearn = pytest.importorskip("fairlearn.metrics")
    y, guess, weights, groups = sample(7, k=2)
    weights = weights if weighted else None
    expected = getattr(fairlearn, name)(
        y, guess, sensitive_features=groups, method=method, sample_weight=weights
    )
    found = getattr(metrics, name)(
        y,
        guess,
        sensitive_features=groups,
        reference={"between_groups": "groups", "to_overall": "overall"}[method],
        sample_weight=weights,
    )
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", GAPS)
def test_gaps_of_strings_are_those_of_numbers(name):
    y, guess, weights, groups = sample(9, k=2)
    function = getattr(metrics, name)
    expected = function(y, guess, sensitive_features=groups, sample_weight=weights)
    labels, names = np.array(["no", "yes"]), np.array(["x", "y", "z"])
    found = function(
        labels[y], labels[guess], sensitive_features=names[groups], sample_weight=weights,
        pos_label="yes",
    )  # fmt: skip
    assert found == expected
    other = function(y, guess, sensitive_features=groups, pos_label=0)
    flipped = function(1 - y, 1 - guess, sensitive_features=groups)
    assert other == pytest.approx(flipped, abs=1e-12)


def test_gaps_of_several_classes_are_the_worst_of_each_against_the_rest():
    y, guess, _, groups = sample(10, k=4)
    for name, worst in (
        ("demographic_parity_difference", max),
        ("demographic_parity_ratio", min),
        ("equal_opportunity_difference", max),
        ("equal_opportunity_ratio", min),
    ):
        function = getattr(metrics, name)
        each = [
            function((y == i).astype(int), (guess == i).astype(int),
                     sensitive_features=groups)
            for i in range(4)
        ]  # fmt: skip
        all_classes = function(y, guess, sensitive_features=groups)
        assert all_classes == pytest.approx(worst(each), abs=1e-12)
        one = function(y, guess, sensitive_features=groups, pos_label=2)
        assert one == pytest.approx(each[2], abs=1e-12)


def test_rates_that_are_zero_in_every_group_have_ratio_one():
    ratio = metrics.demographic_parity_ratio(
        [0, 1, 0, 1], [0, 0, 0, 0], sensitive_features=[0, 0, 1, 1]
    )
    assert ratio == 1.0


def test_functions_of_recalls_leave_absent_classes_out():
    y, guess, weights, _ = sample(1)
    for function in RECALL_SCORES:
        score = function(y, guess, sample_weight=weights)
        assert function(y, guess, sample_weight=weights, labels=range(5)) == score
        assert function(y, np.where(np.arange(90) < 3, 7, guess)) > 0.0


@pytest.mark.parametrize("default_label", [None, 0, 2])
def test_micro_f1_agrees_with_scikit_learn(default_label):
    y, guess, weights, _ = sample(2, k=4)
    others = [i for i in range(4) if i != (default_label or 0)]
    s = {"sample_weight": weights}
    expected = sk.f1_score(y, guess, average="micro", labels=others, **s)
    score = micro_f1_score(y, guess, default_label=default_label, **s)
    assert score == pytest.approx(expected)


def test_micro_f1_of_nothing_but_the_default_class_is_what_zero_division_says():
    y = ["O", "O"]
    with pytest.warns(UndefinedMetricWarning, match="ill-defined and set to 0.0"):
        assert micro_f1_score(y, y) == 0.0
    assert micro_f1_score(y, y, zero_division=1) == 1.0
    assert micro_f1_score(y, y, zero_division=0, labels=["O", "x"]) == 0.0
    assert math.isnan(micro_f1_score(y, y, zero_division=np.nan))
    with pytest.raises(ValueError, match="zero_division must be"):
        micro_f1_score(y, y, zero_division=2)


def test_costs_and_ranks_agree_with_means_over_examples():
    y, guess, weights, _ = sample(3, k=4)
    expected = sk.mean_absolute_error(y, guess, sample_weight=weights)
    assert ordinal_loss(y, guess, sample_weight=weights) == pytest.approx(expected)
    L = new_rng(0).normal(size=(4, 4))
    mean = np.average(L[y, guess], weights=weights)
    assert cost_loss(y, guess, costs=L, sample_weight=weights) == pytest.approx(mean)


def test_ranks_are_those_of_the_labels_that_are_given():
    assert ordinal_loss([1, 5], [5, 5]) == 0.5
    assert ordinal_loss([1, 5], [5, 5], labels=[1, 2, 3, 4, 5]) == 2.0
    assert ordinal_loss(["low", "high"], ["high", "high"], labels=["low", "mid", "high"])


def test_quantification_loss_is_the_divergence_of_the_class_shares():
    y, guess, weights, _ = sample(4)
    p = np.bincount(y, weights=weights) / weights.sum()
    q = np.bincount(guess, weights=weights) / weights.sum()
    expected = sum(p * np.log(p / q))
    assert quantification_loss(y, guess, sample_weight=weights) == pytest.approx(expected)
    assert quantification_loss([0, 1, 1], [1, 0, 1]) == 0.0
    assert quantification_loss([0, 1], [1, 1]) == np.inf


@pytest.mark.parametrize("divided", [False, True])
def test_a_confusion_tensor_is_a_matrix_for_each_group_and_baseline(divided):
    y, guess, weights, groups = sample(6)
    baseline = np.roll(y, 1) if divided else None
    C, cells = confusion_tensor(
        y, guess, sample_weight=weights, sensitive_features=groups, y_baseline=baseline
    )
    assert C.shape == (9 if divided else 3, 3, 3)
    for a in range(len(C)):
        rows = groups == cells.group_names[cells.groups[a]]
        if divided:
            rows &= baseline == cells.baseline[a]
        expected = np.zeros((3, 3))
        np.add.at(expected, (y[rows], guess[rows]), weights[rows])
        np.testing.assert_allclose(C[a] * weights.sum(), expected, atol=1e-12)
    np.testing.assert_allclose(cells.priors, C.sum(axis=2), atol=1e-15)
    assert C.sum() == pytest.approx(1.0)


def test_predicted_probabilities_are_counted_as_shares():
    y, _, weights, groups = sample(6)
    P = new_rng(0).dirichlet(np.ones(3), size=len(y))
    labels = ["a", "b", "c"]
    C, _ = confusion_tensor(
        np.array(labels)[y], P, labels=labels, sample_weight=weights,
        sensitive_features=groups,
    )  # fmt: skip
    expected = np.zeros((3, 3, 3))
    for i in range(len(y)):
        expected[groups[i], y[i]] += weights[i] * P[i]
    np.testing.assert_allclose(C, expected / weights.sum(), atol=1e-14)
    with pytest.raises(ValueError, match="needs labels"):
        confusion_tensor(y, P)
    with pytest.raises(ValueError, match="has 3 columns, but there are 4 labels"):
        confusion_tensor(y, P, labels=range(4))


def test_labels_of_any_kind_and_order_are_counted():
    C, cells = confusion_tensor(
        np.array(["b", "a"], dtype=object), ["b", "b"], labels=["c", "b", "a"]
    )
    assert cells.classes.tolist() == ["c", "b", "a"]
    assert C[0].tolist() == [[0, 0, 0], [0, 0.5, 0], [0, 0.5, 0]]
    C, cells = confusion_tensor([2.0, 1.0], np.array([2, 2]))
    assert C[0].tolist() == [[0, 0.5], [0, 0.5]]
    C, cells = confusion_tensor([True, False], [True, True])
    assert cells.classes.tolist() == [False, True]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [(([0, 1], [0, 1, 1]), {}, "inconsistent numbers of samples"),
     (([0.5, 1.2], [0, 1]), {}, "y_true must hold class labels"),
     (([], []), {}, "y_true is empty"),
     (([0, 1], [0, 2]), {"labels": [0, 1]}, "y_pred has the label 2 .item 1"),
     (([0, 1], [0, [1]]), {}, "y_pred must be an array"),
     (([["a"], ["a", "b"]], [0, 1]), {}, "one label for each .* token_accuracy_score"),
     (([0, 1], [0, 1]), {"labels": {0, 1}}, "labels must be a list .* order"),
     ((None, [0, 1]), {}, r"y_true must have shape \(n,\); got \(\)"),
     (([0, 1], sparse.eye_array(2)), {}, r"y_pred must have shape \(n,\); got \(\)"),
     (([0, 1], MASKED), {}, r"y_pred is a masked array, and its entry \[1\]"),
     (([0, 1], [0, 1]), {"sample_weight": MASKED}, "sample_weight is a masked array"),
     (([0, 1], [0, 1]), {"y_baseline": MASKED}, "y_baseline has a masked label"),
     (([0, 1], [0, 1]), {"sensitive_features": MASKED}, "features is a masked array"),
     (([0, 1], [["a", 1.0]] * 2), {"labels": [0, 1]}, "y_pred must hold numbers"),
     (([0, 1], [0, 1]), {"labels": []}, "labels is empty"),
     (([0, 1], [0, 1]), {"labels": 2}, r"labels must have shape \(n_classes,\)"),
     (([0, 1], [0, 1]), {"sensitive_features": np.array([0, []], dtype=object)},
      "sensitive_features holds no groups: .*unhashable"),
     (([0, 1], [0, 1]), {"sample_weight": [1, -1]}, r"sample_weight\[1\] .* got -1"),
     (([0, 1], [0, 1]), {"y_baseline": [0, 3], "labels": [0, 1]}, "y_baseline has")],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        confusion_tensor(*args, **kwargs)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([0, [1]], [0, 1]), "y_true must be an array"),
        ((MASKED, [0, 1]), "y_true has a masked label"),
        (([0, 1], MASKED), "y_pred is a masked array"),
        (([0, 1], sparse.eye_array(2)), "y_pred must have shape"),
        (([0, 1], [0, 1, 1]), "y_pred has 3 labels, but y_true has 2"),
    ],
)
def test_what_has_no_costs_is_refused(args, message):
    with pytest.raises(ValueError, match=message):
        expected_cost_score(*args, costs=np.ones((2, 2)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": [0, [1]]}, "y must be an array"),
        ({"y": MASKED}, "y is a masked array"),
        ({"y": [0, 2]}, r"y must be integers in \[0, 2\); got 2"),
        ({"classes": None}, r"classes must have shape \(n_classes,\)"),
        ({"weights": MASKED}, "weights is a masked array"),
        ({"baseline": [0]}, "inconsistent numbers of samples"),
    ],
)
def test_what_makes_no_cells_is_refused(changed, message):
    given = {"y": [0, 1], "weights": np.ones(2), "classes": ["a", "b"]}
    with pytest.raises(ValueError, match=message):
        make_cells(**given | changed)


def test_cells_without_groups_or_baseline_are_one():
    codes, cells = make_cells(np.array([0, 1, 1]), np.full(3, 1 / 3), np.array([5, 6]))
    assert codes.tolist() == [0, 0, 0]
    assert cells.groups is None and cells.baseline is None
    np.testing.assert_allclose(cells.priors, [[1 / 3, 2 / 3]])


def test_a_metric_takes_only_labels_by_position():
    with pytest.raises(TypeError, match="g_mean takes y_true and y_pred"):
        GMean()([0, 1], [0, 1], [1, 1])


@pytest.mark.parametrize("name", functions.__all__)
def test_functions_are_made_as_if_they_were_written(name):
    function = getattr(metrics, name)
    assert function.__name__ == function.__qualname__ == name
    assert pickle.loads(pickle.dumps(function)) is function
    parameters = inspect.signature(function).parameters
    assert [*parameters][:2] == ["y_true", "y_pred"]
    said = inspect.getdoc(function)
    for parameter in parameters:
        assert re.search(rf"^(.*, )?{parameter}\b.* : ", said, re.M)
    assert f">>> {name}(" in function.__doc__ or f"round({name}(" in function.__doc__
    assert not re.search("<[A-Z]+>", function.__doc__)


@pytest.mark.parametrize("name", functions.__all__)
def test_labels_of_sequences_are_refused_with_the_scores_for_them(name):
    needed = {"costs": np.ones((3, 2)), "sensitive_features": [0, 1, 1]}
    function, ragged, flat = getattr(metrics, name), [["a", "b"], ["a"], ["b"]], [*"aba"]
    known = inspect.signature(function).parameters
    given = {key: value for key, value in needed.items() if key in known}
    words = (
        r"^y_true must be an array: y_true\[0\] is .* one label for each example.*_score"
    )
    with pytest.raises(ValueError, match=words):
        function(ragged, ragged, **given)
    with pytest.raises(ValueError, match=r"^y_pred must be an array: y_pred\[0\] is "):
        function(flat, ragged, **given)


def test_labels_that_cannot_be_sorted_are_refused():
    mixed, costs = np.array(["a", 1], dtype=object), np.ones((2, 2))
    for name, labels in (("y_true", (mixed, [0, 1])), ("y_pred", ([0, 1], mixed))):
        words = f"^{name} mixes labels that cannot be"
        with pytest.raises(ValueError, match=words):
            metrics.expected_cost_score(*labels, costs=costs)
        with pytest.raises(ValueError, match=words):
            confusion_tensor(*labels)
