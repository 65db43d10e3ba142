"""Thresholds of labels against the trial of all of them."""

import numpy as np
import pytest
from _labelings import threshold_losses
from _seeds import new_rng

from sklearn_structsvm.confusion import get_metric
from sklearn_structsvm.confusion.label_thresholds import best_metric_threshold
from sklearn_structsvm.metrics import FBeta, LinearLoss, Precision, Recall, SelectionRate

METRICS = [
    "f1", FBeta(beta=2.0), "jaccard", "balanced", "g_mean", "min_max", "mcc", "kappa",
    LinearLoss([[0.0, 1.0], [3.0, 0.0]]), LinearLoss([[0.0, -1.0], [2.0, 0.5]]),
]  # fmt: skip


def some_label(rng, n=12):
    eta = np.round(rng.beta(0.6, 1.5, size=n), 1)
    y = (rng.random(n) < 0.4).astype(float)
    weights = rng.integers(0, 4, size=n) + 0.5 * (rng.random() < 0.5)
    weights[0] = 1.0
    return eta, y, weights


def find(eta, counted, weights, metric, constraints=()):
    stored = eta > 0.0
    return best_metric_threshold(
        eta[stored], (counted * weights)[stored], weights[stored],
        float(weights[~stored] @ counted[~stored]), get_metric(metric, [0, 1]),
        constraints, total=weights.sum(), positives=weights @ counted,
    )  # fmt: skip


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("counts", ["labels", "probabilities"])
def test_the_threshold_found_is_the_best_of_all(metric, counts):
    rng = new_rng(1)
    resolved = get_metric(metric, [0, 1])
    for _ in range(12):
        eta, y, weights = some_label(rng)
        counted = y if counts == "labels" else eta
        threshold, loss, violation = find(eta, counted, weights, metric)
        tried = threshold_losses(resolved, eta, counted, weights)
        assert loss == pytest.approx(min(value for _, value in tried), abs=1e-12)
        assert violation == -np.inf
        chosen = (eta > threshold).astype(float)
        tried = threshold_losses(resolved, eta, counted, weights)
        of_chosen = [v for rows, v in tried if np.array_equal(rows, chosen)]
        assert of_chosen and min(of_chosen) == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize(
    "constraint",
    [Precision(at_least={1: 0.6}), SelectionRate(at_most={1: 0.3}),
     Recall(at_least={1: 0.7})],
    ids=repr,
)  # fmt: skip
def test_the_threshold_found_is_the_best_of_those_that_meet_a_constraint(constraint):
    rng = new_rng(2)
    for _ in range(12):
        eta, y, weights = some_label(rng)
        threshold, loss, least = find(eta, y, weights, "f1", [constraint])
        metric, met, violations = get_metric("f1", [0, 1]), [], []
        for chosen, value in threshold_losses(metric, eta, y, weights):
            labels = chosen.astype(int)
            violations.append(
                constraint(y.astype(int), labels, labels=[0, 1], sample_weight=weights)
            )
            if violations[-1] <= 1e-12:
                met.append(value)
        assert least == pytest.approx(min(violations), abs=1e-12)
        assert loss == pytest.approx(min(met, default=np.inf), abs=1e-12)


def test_of_equal_thresholds_the_highest_is_taken():
    none = np.zeros(3)
    threshold, loss, _ = find(np.array([0.2, 0.5, 0.9]), none, np.ones(3), "f1")
    assert threshold == np.inf
    assert loss == 1.0


def test_thresholds_between_neighboring_numbers_keep_them_apart():
    low = 0.3
    high = np.nextafter(low, 1.0)
    eta = np.array([high, low])
    threshold, loss, _ = find(eta, np.array([1.0, 0.0]), np.ones(2), "f1")
    assert (eta > threshold).tolist() == [True, False]
    assert loss == 0.0


def test_a_label_that_is_always_there_is_predicted_where_its_probability_is_0():
    threshold, loss, _ = find(np.array([0.0, 0.4]), np.ones(2), np.ones(2), "f1")
    assert threshold == -np.inf
    assert loss == 0.0
