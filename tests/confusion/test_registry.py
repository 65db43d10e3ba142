"""Names of metrics: what a new one takes, and that it is everywhere then."""

import inspect
import re

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm import ComplexMetricClassifier, confusion, metrics
from sklearn_structsvm.confusion import check_metric, get_metric
from sklearn_structsvm.confusion.recalls import RecallMetric
from sklearn_structsvm.metrics import METRICS, MetricBound


class CubicMean(RecallMetric):
    """A metric that the suite does not have."""

    def loss(self, recalls):
        return ((1.0 - recalls) ** 3).mean()

    def slopes(self, recalls):
        return -3.0 * (1.0 - recalls) ** 2 / len(recalls)


def test_a_built_in_metric_is_one_class_and_one_line_of_the_registry(monkeypatch):
    monkeypatch.setitem(METRICS, "cubic_mean", CubicMean)
    metric = get_metric("cubic_mean", ["a", "b", "c"])
    check_metric(metric)
    assert metric.__name__ == "cubic_mean"
    rng = new_rng(0)
    X = rng.standard_normal((300, 2))
    y = np.array(["a", "b", "c"])[(X @ [1.0, -1.0] + rng.random(300) > [[0], [1]]).sum(0)]
    model = ComplexMetricClassifier(metric="cubic_mean").fit(X, y)
    assert model.dual_gap_ <= 1e-3
    assert model.score(X, y) == metric(y, model.predict(X))
    assert metric.scorer()(model, X, y) == model.score(X, y)
    bounded = ComplexMetricClassifier(
        constraints=MetricBound("cubic_mean", at_most=model.objective_ + 0.01)
    )
    assert bounded.fit(X, y).constraint_violation_ <= 0.0
    with pytest.raises(ValueError, match=r"'cubic' is unknown.*'cubic_mean'"):
        ComplexMetricClassifier(metric="cubic").fit(X, y)


@pytest.mark.parametrize("name", ["g_mean", "h_mean", "q_mean", "min_recall", "micro_f1"])
def test_the_name_of_a_score_names_the_metric_that_it_measures(name):
    y, predicted = new_rng().integers(0, 2, (2, 50))
    score = getattr(metrics, f"{name}_score")(y, predicted)
    for written in (name, f"{name}_score"):
        assert get_metric(written, [0, 1])(y, predicted) == score


@pytest.mark.parametrize("kind", METRICS.values())
def test_each_class_of_the_registry_is_public(kind):
    name, file = kind.__name__, inspect.getfile(kind)
    assert name in metrics.__all__, f"__all__ of {file} has no {name}."
    assert getattr(metrics, name) is kind


def test_each_public_name_is_there_and_named_once():
    names = confusion.__all__ + metrics.__all__
    assert len(set(names)) == len(names)
    for face in (confusion, metrics):
        assert all(hasattr(face, name) for name in face.__all__)


def test_each_name_of_the_metrics_is_in_one_group_of_their_module():
    listed = re.findall(r"`(\w+)`", metrics.__doc__)
    parameters = {"metric", "constraints", "scoring"}
    assert sorted({*listed} - parameters) == sorted(metrics.__all__)
    assert len(listed) == len(metrics.__all__) + len(parameters)
