"""Metrics as objects: names, labels, parameters, copies, cells."""

import pickle

import numpy as np
import pytest
from _random_confusion import OF_CONFUSION
from sklearn.base import clone

from sklearn_structsvm.confusion import Cells, ConfusionMetric, get_metric
from sklearn_structsvm.metrics import (
    METRICS,
    CohenKappa,
    FBeta,
    GMean,
    HMean,
    Jaccard,
    LinearLoss,
    MacroF1,
    MatthewsCorrelation,
    MicroF1,
    MinMax,
    Ordinal,
    QMean,
    ZeroOne,
)

COSTS = [[0.0, 1.0, 5.0], [2.0, -1.0, 1.0], [4.0, 0.5, 0.0]]
C3 = np.array([[0.15, 0.03, 0.02], [0.1, 0.2, 0.01], [0.04, 0.05, 0.4]])

OBJECTS = [
    ZeroOne(),
    Ordinal(),
    GMean(),
    QMean(),
    MinMax(),
    MacroF1(),
    MacroF1("weighted"),
    MatthewsCorrelation(),
    CohenKappa("linear"),
    LinearLoss(COSTS),
    LinearLoss({(0, 1): 1.0, (2, 0): 3.0}),
    MicroF1(default_label=2),
    FBeta(0.5, pos_label=1),
    Jaccard(pos_label=0),
    Jaccard("micro"),
]


def test_zero_over_zero_is_a_score_of_zero():
    alone = np.array([[1.0, 0.0], [0.0, 0.0]])
    assert FBeta().score_of(alone) == 0.0
    assert Jaccard().score_of(alone) == 0.0
    assert MicroF1().score_of(alone) == 0.0
    assert CohenKappa().score_of(alone) == 0.0
    assert MatthewsCorrelation().score_of(alone) == 0.0
    assert MatthewsCorrelation().score_of(np.array([[0.6, 0.0], [0.4, 0.0]])) == 0.0


@pytest.mark.parametrize("given", [None, "O"])
def test_the_default_label_that_was_taken_is_an_attribute(given):
    metric = get_metric(MicroF1(given), ["B", "I", "O"])
    assert metric.default_label_ == ("O" if given else "B")
    assert get_metric("micro_f1", [3, 5]).default_label_ == 3


def test_a_class_that_is_never_found_makes_g_and_h_mean_zero():
    assert GMean()([0, 0, 1], [0, 0, 0]) == 0.0
    assert HMean()([0, 0, 1], [0, 0, 0]) == 0.0


@pytest.mark.parametrize("name", OF_CONFUSION)
def test_names_give_metrics(name):
    metric = get_metric(name, [0, 1])
    assert metric.__name__ == METRICS[name]().__name__
    assert metric.greater_is_better == METRICS[name]().greater_is_better
    assert np.isfinite(metric([0, 1, 1], [0, 0, 1]))


def test_unknown_metrics_are_refused():
    with pytest.raises(ValueError, match="metric='f2' is unknown. Valid names are"):
        get_metric("f2", [0, 1])
    for wrong in (None, 3):
        with pytest.raises(TypeError, match="metric must be a name such as"):
            get_metric(wrong, [0, 1])


def test_a_users_gradient_is_compared_with_differences_before_it_is_used():
    class Right(ConfusionMetric):
        def value(self, C):
            return float(np.square(C).sum())

        def gradient(self, C):
            return 2 * C

    class Wrong(Right):
        def gradient(self, C):
            return C

    class ValueOnly(GMean):
        def value(self, C):
            return super().value(C) ** 2

    class NoGradient(ConfusionMetric):
        value = Right.value

    for kind in (Right, NoGradient, GMean):
        assert type(get_metric(kind(), range(4))) is kind
    for kind in (Wrong, ValueOnly):
        with pytest.raises(ValueError, match=f"gradient of {kind.__name__} is wrong"):
            get_metric(kind(), range(4))


def test_resolving_leaves_the_object_as_it_is():
    metric = FBeta(2.0, pos_label="y")
    resolved = metric.resolve(["y", "z", "n"])
    assert resolved is not metric
    assert resolved.positive(3) == 0
    assert metric.__dict__ == {"beta": 2.0, "pos_label": "y", "label": None}
    with pytest.raises(ValueError, match=r"call resolve\(classes\) first"):
        metric.value(np.eye(3) / 3)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (FBeta(pos_label="x"), "pos_label='x' is not a class. The classes are"),
        (FBeta(0.0, pos_label=1), "beta must be a positive .* is finite, got 0.0"),
        (FBeta("1", pos_label=1), "beta must be a positive .* is finite, got '1'"),
        (Jaccard("samples"), "average must be"),
        (MicroF1("x"), "default_label='x' is not a class"),
        (Jaccard(np.array(["macro"])), "average must be one of 'binary', 'macro'"),
        (Jaccard(pos_label=np.ones(2)), "pos_label=.* is not a class"),
        (FBeta({"a": 1}, pos_label=1), "beta must be a positive number"),
        (FBeta(np.ones(2), pos_label=1), "beta must be a positive number"),
        (CohenKappa("cubic"), "weights must be one of None, 'linear', 'quadratic'"),
        (CohenKappa(np.ones(2)), "weights must be one of None"),
        (LinearLoss(np.eye(2)), r"costs must have shape \(3, 3\)"),
        (LinearLoss("none"), r"costs must have shape \(3, 3\)"),
        (LinearLoss([[0, 1, 1], [1]]), "costs must be an array"),
        (LinearLoss([["a"] * 3] * 3), "costs must hold numbers"),
        (LinearLoss({(0, 1): "a"}), "costs must hold numbers"),
        (LinearLoss(np.full((3, 3), np.nan)), "costs must be finite"),
        (LinearLoss({("a", 0): 1.0}), "a label in costs='a' is not a class"),
        (LinearLoss({"ab": 1.0}), r"pairs \(label, prediction\), got 'ab'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(metric, message):
    with pytest.raises(ValueError, match=message):
        metric.resolve([0, 1, 2])


def test_micro_f1_needs_a_class_besides_the_default_one():
    with pytest.raises(ValueError, match="one class besides"):
        MicroF1().resolve([0])


def test_costs_by_label_are_costs_by_index():
    classes = ["a", "b", "c"]
    named = LinearLoss({("a", "b"): 1.0, ("a", "c"): 5.0, ("b", "b"): -1.0})
    L = [[0.0, 1.0, 5.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0]]
    assert named.resolve(classes).value(C3) == LinearLoss(L).value(C3)


@pytest.mark.parametrize("metric", OBJECTS, ids=str)
def test_metrics_are_cloned_and_pickled(metric):
    expected = metric.resolve(np.arange(3)).value(C3)
    for copy in (clone(metric), pickle.loads(pickle.dumps(metric))):
        assert copy.get_params().keys() == metric.get_params().keys()
        assert copy.resolve(np.arange(3)).value(C3) == expected
    assert pickle.loads(pickle.dumps(metric.resolve(np.arange(3)))).value(C3) == expected


@pytest.mark.parametrize("metric", OBJECTS, ids=str)
def test_values_do_not_change_what_they_are_given(metric):
    metric = metric.resolve(np.arange(3))
    C = C3.copy()
    kept = C.copy()
    C.flags.writeable = False
    gradient = metric.gradient(C)
    metric.value(C), metric.tangent(C), metric.ratio_terms(C.sum(axis=1))
    np.testing.assert_array_equal(C, kept)
    gradient[:] = np.nan
    assert np.isfinite(metric.value(C)) and np.isfinite(metric.gradient(C)).all()


def test_cells_know_labels_and_groups():
    priors = np.full((4, 2), 0.125)
    cells = Cells(
        priors,
        np.array(["n", "y"]),
        groups=np.array([0, 0, 1, 1]),
        group_names=[("f", 1), ("m", 2)],
        baseline=np.array([0, 1, 0, 1]),
    )
    assert (cells.shape, cells.n_groups) == ((4, 2, 2), 2)
    assert cells.class_index("y") == 1
    assert cells.group_index(("m", 2)) == 1
    assert cells.cells_of(1).tolist() == [False, False, True, True]
    C = np.arange(16.0).reshape(4, 2, 2)
    np.testing.assert_array_equal(cells.by_group(C), [C[:2].sum(0), C[2:].sum(0)])
    np.testing.assert_array_equal(cells.total(C), C.sum(axis=0))
    with pytest.raises(ValueError, match=r"group=\('m', 1\) is not a group"):
        cells.group_index(("m", 1))
    with pytest.raises(ValueError, match="label='x' is not a class"):
        cells.class_index("x")
    single = Cells.single([0.3, 0.7])
    assert single.by_group(C[:1]).shape == (1, 2, 2)
    assert single.cells_of(None).tolist() == [True]
    with pytest.raises(ValueError, match="group='a' needs sensitive_features"):
        single.group_index("a")
