"""The default classifier reaches on columns as they come what it does on scaled ones."""

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import (
    ComplexMetricClassifier,
    ConformalClassifier,
    MultilabelMetricClassifier,
)
from sklearn_structsvm._utils.scaled_logistic import default_classifier

# By what normal columns are multiplied, what is added, and what probabilities lose of it.
COLUMNS = {
    "time": ([3e7, 1, 1, 1], [1.7e9, 0, 0, 0], 1e-11),
    "times of a day": (1e5, 1.7e9, 1e-9),
    "large and small": ([1e12, 1e-12, 1, 1], 0.0, 1e-12),
    "near the largest": ([1e300, 1e-300, 1, 1], 0.0, 1e-12),
}
FORMS = np.asarray, sparse.csr_array, sparse.csc_matrix


def draw(n=300):
    rng = new_rng(3)
    Z, counts = rng.normal(size=(n, 4)), rng.poisson(0.2, (n, 2))
    y = np.digitize(Z[:, 0] + Z[:, 1] + rng.logistic(size=n), [-1.0, 1.0])
    return Z, counts, y, rng


@pytest.mark.parametrize(("by", "plus", "lost"), COLUMNS.values(), ids=COLUMNS)
def test_columns_of_any_size_get_what_scaled_ones_get(by, plus, lost):
    Z, counts, y, _ = draw()
    X = np.column_stack([by * Z + plus, np.full(len(Z), 1e12), np.zeros(len(Z)), counts])
    scaled = np.column_stack([StandardScaler().fit_transform(Z), counts / counts.max(0)])
    expected = LogisticRegression(max_iter=1000).fit(scaled, y).predict_proba(scaled)
    for form in FORMS:
        found = default_classifier().fit(form(X), y)
        assert (found.coef_[:, 4:6] == 0.0).all()
        np.testing.assert_allclose(found.predict_proba(form(X)), expected, atol=lost)
    if plus == 0.0 and np.max(by) < 1e30:
        found = default_classifier().fit(X.astype(np.float32), y)
        assert found.coef_.dtype == found.intercept_.dtype == np.float32
        P = found.predict_proba(X.astype(np.float32))
        np.testing.assert_allclose(P, expected, atol=1e-5)


@pytest.mark.parametrize("form", FORMS[:2])
def test_a_weight_is_as_good_as_that_many_rows(form):
    Z, counts, y, rng = draw()
    X, weights = np.column_stack([1.7e9 + 1e7 * Z, counts, y]), rng.integers(0, 3, len(y))
    X[weights == 0] = 1e20
    weighted = default_classifier().fit(form(X), y, sample_weight=weights)
    X, y = (np.repeat(part, weights, axis=0) for part in (X, y))
    repeated = default_classifier().fit(form(X), y)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)


def test_strings_and_missing_values_are_told_by_column():
    Z, _, y, _ = draw()
    X = pd.DataFrame(Z, columns=["a", "b", "c", "d"])
    for model, target in (
        (ComplexMetricClassifier(), y),
        (ComplexMetricClassifier(solver_options={"lmo": "weighted"}), y),
        (ConformalClassifier(random_state=0), y),
        (MultilabelMetricClassifier(), np.column_stack([y > 0, y > 1])),
    ):
        for bad, what in ((np.nan, "missing values"), ("x", "strings")):
            with pytest.raises(ValueError, match=f"Column 'b' of X holds {what}"):
                model.fit(X.assign(b=[bad, *Z[1:, 0]]), target)
        with pytest.raises(ValueError, match="Columns 1, 3 of X hold missing values"):
            model.fit(np.where([0, 1, 0, 1], np.nan, Z), target)
        assert model.fit(X, target).feature_names_in_.tolist() == ["a", "b", "c", "d"]
