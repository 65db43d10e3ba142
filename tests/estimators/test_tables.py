"""Tables of any library are tables to every estimator."""

import numpy as np
import pytest
import sklearn
from _seeds import new_rng
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)

ESTIMATORS = [
    BCFWClassifier(random_state=0), BCFWClassifierCV(Cs=[1.0], cv=2, random_state=0),
    SlackRescaledSSVM(random_state=0), SubLBFGSClassifier(), BMRMClassifier(),
    PragamClassifier(tol=0.01), ComplexMetricClassifier(random_state=0),
]  # fmt: skip
each = pytest.mark.parametrize("model", ESTIMATORS, ids=lambda m: type(m).__name__)


def draw_columns():
    rng = new_rng(0)
    columns = {name: rng.normal(size=80) for name in "abc"}
    y = np.where(columns["a"] + 0.1 * columns["b"] > 0, "yes", "no")
    return columns, y, rng.uniform(0.5, 1.0, size=80)


def make_table(library, columns, *others):
    """The columns as a table of the library, and the others as its columns."""
    module = pytest.importorskip(library)
    if library == "pyarrow":
        return module.table(columns), *map(module.array, others)
    return module.DataFrame(columns), *map(module.Series, others)


@each
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_table_is_the_array_of_its_columns(model, library):
    columns, y, weights = draw_columns()
    X = np.column_stack(list(columns.values()))
    table, labels, shares = make_table(library, columns, y, weights)
    if library == "pyarrow" and isinstance(model, ComplexMetricClassifier):
        if parse_version(sklearn.__version__) < parse_version("1.7"):
            pytest.skip("scikit-learn 1.6 takes no rows of Arrow tables")
    expected = clone(model).fit(X, y, sample_weight=weights)
    fitted = clone(model).fit(table, labels, sample_weight=shares)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert (fitted.predict(table) == expected.predict(X)).mean() >= 0.95
    if library == "pandas":
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(table[["c", "b", "a"]])
    assert fitted.score(table, labels) > 0.8
    # scikit-learn takes rows of Arrow tables since 1.8.
    if library != "pyarrow" or parse_version(sklearn.__version__) >= parse_version("1.8"):
        scores = cross_val_score(clone(model), table, labels, cv=2)
        assert scores.shape == (2,) and scores.min() > 0.7


@each
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_what_set_output_hands_on_is_taken(model, library):
    columns, y, _ = draw_columns()
    table, labels = make_table(library, columns, y)
    pipeline = make_pipeline(StandardScaler(), clone(model))
    pipeline.set_output(transform=library).fit(table, labels)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipeline.score(table, labels) > 0.8
