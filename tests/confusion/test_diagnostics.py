"""Shares and calibration errors of labels, against sums over the rows."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier, MultilabelMetricClassifier
from sklearn_structsvm.confusion.diagnostics import N_BINS, label_diagnostics


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_shares_are_weighted_means(form):
    rng = new_rng(0)
    P, Y = rng.random((40, 3)), (rng.random((40, 3)) < 0.4).astype(float)
    P[rng.random(P.shape) < 0.5] = 0.0
    weights = rng.uniform(0.1, 2.0, 40)
    found = label_diagnostics(form(P), form(Y), weights, [0.1, 0.2, 0.3])
    for name, values in (("share", Y), ("expected_share", P)):
        expected = np.average(values, axis=0, weights=weights)
        np.testing.assert_allclose(found[name], expected)
    assert found["predicted_share"].tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_calibration_error_is_that_of_bins_of_equal_width(form):
    rng = new_rng(1)
    for _ in range(20):
        P = rng.random((30, 4))
        P[rng.random(P.shape) < 0.3] = rng.choice([0.0, 0.5, 1.0])
        Y = (rng.random(P.shape) < 0.5).astype(float)
        weights = rng.uniform(0.1, 2.0, 30)
        expected = np.zeros(4)
        for label in range(4):
            bins = np.minimum((N_BINS * P[:, label]).astype(int), N_BINS - 1)
            for b in range(N_BINS):
                rows = bins == b
                off = weights[rows] @ (P[rows, label] - Y[rows, label])
                expected[label] += abs(off) / weights.sum()
        found = label_diagnostics(form(P), form(Y), weights, np.zeros(4))
        np.testing.assert_allclose(found["calibration_error"], expected, atol=1e-12)


def test_probabilities_that_are_right_have_no_calibration_error():
    """Each value p is that of rows of which the share p has the label."""
    p, y = np.repeat([0.25, 0.5, 0.75], 4), np.tile([1.0, 0.0, 0.0, 0.0], 3)
    y[5], y[9:11] = 1.0, 1.0
    found = label_diagnostics(p[:, None], y[:, None], np.ones(12), [0.0])
    assert found["calibration_error"][0] == pytest.approx(0.0, abs=1e-12)
    wrong = label_diagnostics(1.0 - p[:, None], y[:, None], np.ones(12), [0.0])
    assert wrong["calibration_error"][0] > 0.1


def rare(rng):
    """Two classes that X hardly tells apart; one in 300 rows is positive."""
    y = np.zeros(3000, dtype=int)
    y[:10] = 1
    return rng.normal(size=(3000, 1)) + 0.1 * y[:, None], y


def test_a_class_that_is_predicted_far_more_often_than_it_occurs_is_warned_of():
    X, y = rare(new_rng(2))
    labels = np.where(y, "fraud", "fair")
    model = ComplexMetricClassifier(
        LogisticRegression(), metric="balanced", confusion="labels", cv=None
    )
    with pytest.warns(UserWarning, match="'fraud' is predicted for .* of the rows"):
        model.fit(X, labels)
    found = model.diagnostics_
    assert found["predicted_share"][1] > 10 * found["share"][1] > 0.0


def test_classifiers_keep_what_they_say_of_each_label():
    rng = new_rng(3)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = ComplexMetricClassifier(metric="g_mean").fit(X, y)
    found = model.diagnostics_
    np.testing.assert_allclose(found["share"], np.bincount(y) / 300)
    np.testing.assert_allclose(found["expected_share"].sum(), 1.0)
    np.testing.assert_allclose(found["predicted_share"], model.confusion_.sum(axis=0))
    Y = np.column_stack([y, 1 - y])
    labels = MultilabelMetricClassifier().fit(X, Y)
    np.testing.assert_allclose(labels.diagnostics_["share"], Y.mean(axis=0))
    predicted = labels.confusion_[:, :, 1].sum(axis=1)
    np.testing.assert_allclose(labels.diagnostics_["predicted_share"], predicted)
