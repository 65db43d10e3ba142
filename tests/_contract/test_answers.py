"""The gate: what users' code returns is checked, and each place lets it pass here."""

import re

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    ComplexMetricClassifier,
    ConformalClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    cross_val_predict_proba,
)
from sklearn_structsvm._contract.answers import Answer, checked_folds
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.estimators.complex_metric.levels import fit_at_levels
from sklearn_structsvm.metrics import SelectionRate
from sklearn_structsvm.preprocessing import SequenceTransformer


class Owner:
    """Whose method answers."""


ANSWER = Answer("method", Owner(), 3)


def test_an_error_names_the_method_its_owner_the_example_and_the_value():
    with pytest.raises(ValueError) as caught:
        ANSWER.number("much", 0.0, 1.0)
    assert str(caught.value) == (
        "method of Owner must be a finite number >= 0 and <= 1; got 'much' for example 3."
    )
    assert str(Answer("score", np.ravel)) == "score of ravel"
    assert str(Answer("fold 2", "cv")) == "fold 2 of cv"
    with pytest.raises(ValueError) as caught:
        ANSWER.pair(np.arange(10**6))
    assert len(re.sub("^.*got", "", str(caught.value))) < 200


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, bool, object, "g"])
def test_numbers_of_all_types_become_float64_or_stay_float32(dtype):
    given = np.array([[1, 0], [0, 1]], dtype=dtype)
    found = ANSWER.array(given.T[::-1], 2, "n", least=0, most=1)
    assert found.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, given.T[::-1].astype(float))
    values = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ValueError, match="hold numbers; got masked entries for ex"):
        ANSWER.array(values, 2)
    assert ANSWER.array(values[:1], 1).tolist() == [1.0]


@pytest.mark.parametrize("size", [1, 5, 40])
def test_a_vector_is_that_of_numpy_in_any_layout(size):
    rng = new_rng(size)
    for _ in range(50):
        dense = np.where(rng.random(size) < 0.4, rng.standard_normal(size), 0.0)
        places = rng.permutation(np.repeat(np.arange(size), rng.integers(1, 4, size)))
        shares = dense[places] / np.bincount(places)[places]
        row = sparse.csr_array((shares, places, [0, len(places)]), shape=(1, size))
        for given in (dense, row, row.tocoo(), row.T.tocoo(), row.tocsc(), row.T.tocsc()):
            indices, values = ANSWER.vector(given, size)
            assert indices.dtype == np.intp and values.dtype == np.float64
            assert (np.diff(indices) > 0).all() and values.all()
            found = np.zeros(size)
            found[indices] = values
            np.testing.assert_allclose(found, dense, rtol=1e-12, atol=1e-15)
    # A row may have room for more entries than it has.
    row = sparse.csr_array(([1.0, 2.0, 7.0], [0, 3, 99], [0, 2]), shape=(1, 4))
    indices, values = ANSWER.vector(row, 4)
    assert indices.tolist() == [0, 3] and values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        ([([0, 1], [9])], "fold 0 of cv must have .* 0 to 8 in its test part; got 9"),
        ([([0], [1]), ([-1], [2])], "fold 1 .* in its training part; got -1"),
        ([([0.5], [1])], r"got an array of shape \(1,\) and dtype float64"),
        ([([[0]], [1])], r"got an array of shape \(1, 1\)"),
        ([([0], np.ones(8, bool))], r"got an array of shape \(8,\) and dtype bool"),
        ([([0], [1], [2])], r"fold 0 of cv must be a pair; got \(\[0\], \[1\], \[2\]\)"),
        ([3], "fold 0 of cv must be a pair; got 3"),
    ],
)
def test_folds_out_of_range_are_refused(folds, message):
    with pytest.raises(ValueError, match=message):
        checked_folds(folds, range(9), None)


def test_what_yields_no_folds_is_told_to_be_cv_and_masks_are_places():
    for cv in ("abc", 1.5, {1}, {"a": 1}, np.arange(2), [None], ["a"]):
        with pytest.raises(ValueError, match="of cv|Expected `?cv"):
            checked_folds(cv, range(9), None)
    mask = np.arange(5) % 2 == 0
    ((train, test), (none, _)) = checked_folds([(mask, ~mask), ([], [0])], range(5), None)
    assert train.tolist() == [0, 2, 4] and test.tolist() == [1, 3]
    assert none.dtype == np.intp and len(none) == 0


def rows(n=60, k=3):
    rng = new_rng(8)
    y = np.arange(n) % k
    return rng.standard_normal((n, 2)) + np.eye(k)[y, :2], y


def chains(n=24):
    return make_chains(n_samples=n, n_features=3, n_classes=2, random_state=new_seed(0))


def of_rows(model):
    return lambda cv: model.set_params(cv=cv).fit(*rows())


def at_levels(cv):
    model = ComplexMetricClassifier(constraints=SelectionRate(at_most=0.5))
    name = "constraints__at_most"
    return fit_at_levels(model, *rows(), name, [0.5], cv, None, None, 1)


def of_labels(cv):
    X, y = rows()
    inner = MultiOutputClassifier(LogisticRegression())
    return MultilabelMetricClassifier(inner, cv=cv).fit(X, np.eye(3, dtype=int)[y])


@pytest.mark.parametrize("place", [-1, 60])
@pytest.mark.parametrize(
    "fit",
    [
        of_rows(ComplexMetricClassifier()),
        of_labels,
        at_levels,
        of_rows(ConformalClassifier(LogisticRegression(), confidence_level=0.5)),
        of_rows(BCFWClassifierCV(Cs=[1.0])),
        of_rows(CRFClassifierCV(Cs=[1.0])),
        lambda cv: cross_val_predict_proba(CRFClassifierCV(), *chains(60), cv=cv),
    ],
)
def test_every_splitter_is_checked(fit, place):
    message = f"fold 0 of cv must have places from 0 to 59 in its test part; got {place}"
    with pytest.raises(ValueError, match=message):
        fit([(np.arange(30), np.array([31, place]))])


class LosesRows(TransformerMixin, BaseEstimator):
    """A transformer of rows with a fault."""

    def __init__(self, fault=None):
        self.fault = fault

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return self.fault(np.asarray(X))


def damaged(part):
    def damage(X):
        found = sparse.csr_array(X)
        getattr(found, part)[-1] = 10**7
        return found

    return damage


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda X: X[1:], r"must have \d+ entries, one for each that was asked for; got"),
        (lambda X: X[0, 0], "must have .* entries"),
        (lambda X: None, "must have .* got None"),
        (
            damaged("indices"),
            "must be a sound sparse matrix; got .*indices .* got 10000000",
        ),
        (damaged("indptr"), "must be a sound sparse matrix; got .*indptr"),
    ],
)
def test_what_a_transformer_of_rows_returns_is_checked(fault, message):
    X, y = chains()
    with pytest.raises(ValueError, match=f"transform of LosesRows {message}"):
        SequenceTransformer(LosesRows(fault)).fit(X).transform(X)
    with pytest.raises(ValueError, match=f"transform of LosesRows {message}"):
        make_pipeline(SequenceTransformer(LosesRows(fault)), BCFWClassifier()).fit(X, y)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose answers are changed by a function."""

    def __init__(self, change=None):
        self.change = change

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        return self.change(self.inner_.predict_proba(X))

    def decision_function(self, X):
        return self.change(self.inner_.decision_function(X))

    def predict(self, X):
        return self.inner_.predict(X)


CHANGES = {
    "too few rows": (lambda P: P[1:], "must have shape"),
    "too few columns": (lambda P: P[:, 1:], "must have shape"),
    "NaN": (lambda P: P * np.nan, "must hold .*; got nan at"),
    "complex": (lambda P: P + 1j, "must hold real numbers; got dtype complex128"),
    "no numbers": (lambda P: P.astype(str), "must hold real numbers; got dtype <U"),
}
RANGES = {
    "above 1": (lambda P: P + 1.0, r"must hold probabilities, from 0 to 1; got [12]\."),
    "below 0": (lambda P: P - 1.0, "must hold probabilities, from 0 to 1; got -0"),
    "infinite": (lambda P: P + np.inf, "must hold probabilities, .* got inf"),
}


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_what_an_estimator_says_of_rows_is_checked_before_calibration(
    change, message, method
):
    X, y = rows()
    score = "lac" if method == "predict_proba" else "margin"
    model = ConformalClassifier(Given(change), conformity_score=score, cv=0.5)
    with pytest.raises(ValueError, match=f"{method} of Given {message}"):
        model.fit(X, y)


@pytest.mark.parametrize(("change", "message"), RANGES.values(), ids=RANGES)
@pytest.mark.parametrize(
    "fit",
    [
        lambda own, X, y: ConformalClassifier(own, cv=0.5).fit(X, y),
        lambda own, X, y: ComplexMetricClassifier(own).fit(X, y),
        lambda own, X, y: ConformalClassifier(MultiOutputClassifier(own), cv=0.5).fit(
            X, np.eye(3, dtype=int)[y]
        ),
        lambda own, X, y: MultilabelMetricClassifier(MultiOutputClassifier(own)).fit(
            X, np.eye(3, dtype=int)[y]
        ),
    ],
)
def test_probabilities_out_of_range_are_refused(fit, change, message):
    with pytest.raises(ValueError, match=f"predict_proba of .* {message}"):
        fit(Given(change), *rows())


class OfSequences(BaseEstimator):
    """Probabilities of the labels of sequences, with a fault."""

    def __init__(self, change=None):
        self.change = change

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return [np.zeros(len(x), dtype=int) for x in X]

    def predict_proba(self, X):
        return self.change([np.full((len(x), 2), 0.5) for x in X])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda P: P[1:], r"have \d+ entries"),
        (lambda P: [p[:, :1] for p in P], r"shape \(T, 2\); got .* for example \d+\."),
        (lambda P: [p * 3.0 for p in P], "probabilities.* got 1.5 at .* for example"),
        (lambda P: [p * np.nan for p in P], "probabilities.* got nan at .* for example"),
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda own, X, y: ConformalClassifier(own, cv=0.5).fit(X, y),
        lambda own, X, y: cross_val_predict_proba(own, list(X), list(y), cv=2),
    ],
)
def test_probabilities_of_sequences_are_checked(ask, change, message):
    X, y = chains()
    given = OfSequences(lambda P: np.array([*change(P), None], dtype=object)[:-1])
    with pytest.raises(ValueError, match=f"predict_proba of OfSequences .*{message}"):
        ask(given, X, y)
