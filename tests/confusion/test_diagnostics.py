"""Shares and calibration errors of labels, against sums over the rows."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier, MultilabelMetricClassifier
from sklearn_structsvm.confusion.diagnostics import N_BINS, label_diagnostics


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_shares_are_weighted_means_and_errors_those_of_bins_of_equal_width(form):
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
        found = label_diagnostics(form(P), form(Y), weights, np.arange(4) / 10)
        np.testing.assert_allclose(found["calibration_error"], expected, atol=1e-12)
        for name, values in (("share", Y), ("expected_share", P)):
            mean = np.average(values, axis=0, weights=weights)
            np.testing.assert_allclose(found[name], mean)
        assert found["predicted_share"].tolist() == [0.0, 0.1, 0.2, 0.3]


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
