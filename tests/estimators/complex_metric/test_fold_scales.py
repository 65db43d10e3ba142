import numpy as np
import pytest
from _seeds import new_rng
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric.probabilities import (
    matched_quantiles,
    on_scale_of,
)


def proba(z):
    return np.column_stack([expit(-z), expit(z)])


@pytest.mark.parametrize("m", [1, 5, 19, 20, 57, 400, 1001])
def test_quantiles_of_a_line_are_matched_by_that_line(m):
    rng = new_rng(m)
    before = rng.standard_cauchy(m)
    # One bin shows no slope.
    slope = rng.uniform(0.1, 3.0) if m >= 20 else 1.0
    matched = matched_quantiles(before, rng.permutation(slope * before - 2.0), np.ones(m))
    z = 10.0 * rng.standard_normal(50)
    np.testing.assert_allclose(matched(z), slope * z - 2.0, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_values", [1, 2, 3, 50])
def test_matched_quantiles_keep_the_order_of_ties_too(n_values):
    rng = new_rng(n_values)
    before, after = rng.integers(n_values, size=(2, 300)) * [[1.0], [2.5]]
    z = np.sort(rng.uniform(-n_values, 2 * n_values, 1000))
    found = matched_quantiles(before, after, np.ones(300))(z)
    assert np.isfinite(found).all()
    assert (np.diff(found) >= -1e-9).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_scales_are_left_as_they_are(dtype):
    rng = new_rng(3)
    P = proba(4.0 * rng.standard_normal(500)).astype(dtype)
    P[:3] = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    rows = rng.permutation(500)[:300]
    found = on_scale_of(P, P, [slice(0, 500)], [(rows, P[rows])], np.ones(500))
    assert found.dtype == dtype
    rounding = 1e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(found[2:], P[2:], atol=rounding)
    # A 0 is half of the smallest other value.
    assert found[0, 1] == found[:, 1].min()
    assert found[1, 1] == found[:, 1].max()


class GrowsWithRows(ClassifierMixin, BaseEstimator):
    """Log odds in proportion to the number of training rows, as for repeated features."""

    def fit(self, X, y):
        self.classes_, self.n_rows_ = np.unique(y), len(y)
        return self

    def predict_proba(self, X):
        return proba((X[:, 0] - 0.3) * self.n_rows_ / 100.0 + self.n_rows_ / 150.0)


@pytest.mark.parametrize("metric", ["f1", "kappa"])
@pytest.mark.parametrize(
    "cv", [StratifiedKFold(5), StratifiedShuffleSplit(1, random_state=0)]
)
def test_thresholds_are_on_the_scale_of_the_classifier_that_predicts(metric, cv):
    rng = new_rng(7)
    X = rng.standard_normal((400, 1))
    y = (X[:, 0] + rng.standard_normal(400) > 0.5).astype(int)
    model = ComplexMetricClassifier(GrowsWithRows(), metric, cv=cv).fit(X, y)
    rows = np.concatenate([test for _, test in cv.split(X, y)])
    fitted = GrowsWithRows().fit(X, y)
    reference = ComplexMetricClassifier(fitted, metric, cv="prefit")
    reference.fit(X[rows], y[rows])
    np.testing.assert_allclose(model.confusion_, reference.confusion_, atol=1e-12)
    Z = rng.standard_normal((1000, 1))
    np.testing.assert_array_equal(model.predict(Z), reference.predict(Z))


def test_folds_may_be_masks_lists_or_arrays():
    rng = new_rng(8)
    X = rng.standard_normal((300, 1))
    y = (X[:, 0] + rng.standard_normal(300) > 0.5).astype(int)
    folds = list(StratifiedKFold(3).split(X, y))
    every = np.arange(300)
    kinds = [
        folds,
        [(train.tolist(), test.tolist()) for train, test in folds],
        [(np.isin(every, train), np.isin(every, test)) for train, test in folds],
    ]
    found = [
        ComplexMetricClassifier(GrowsWithRows(), "f1", cv=cv).fit(X, y).threshold_
        for cv in kinds
    ]
    assert found[0] == found[1] == found[2]
