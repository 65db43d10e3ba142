"""A row has the same set alone, in every batch, in any order and of any type."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng, new_seed
from scipy import sparse
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import ConformalClassifier

RANDOMIZED = [
    {"conformity_score": score, "randomized": True, "cv": cv}
    for score in ("aps", "raps")
    for cv in ("prefit", 3)
]
LEVEL = 0.9


class Known(ClassifierMixin, BaseEstimator):
    """Column j of X, of three, is the weight of class j."""

    def fit(self, X, y=None):
        self.classes_ = np.arange(3)
        return self

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        weights = X.toarray() if sparse.issparse(X) else np.asarray(X)
        weights = weights.astype(np.float64)
        return weights / weights.sum(axis=1, keepdims=True)


def draw(rng, n):
    """Weights that float32 holds exactly, and labels drawn by them."""
    X = rng.integers(1, 2**12, (n, 3)).astype(float)
    ends = np.cumsum(X / X.sum(axis=1, keepdims=True), axis=1)
    return X, np.minimum((rng.random((n, 1)) > ends).sum(axis=1), 2)


def fitted(params, seed=0):
    X, y = draw(new_rng(seed), 200)
    model = ConformalClassifier(Known().fit(X), random_state=new_seed(seed), **params)
    return model.fit(X, y)


@pytest.mark.parametrize("params", RANDOMIZED, ids=str)
def test_sets_do_not_depend_on_the_batch(params):
    model, (X, _) = fitted(params), draw(new_rng(9), 120)
    sets = model.predict_set(X)
    order = new_rng(10).permutation(len(X))
    np.testing.assert_array_equal(model.predict_set(X[order]), sets[order])
    cuts = np.sort(new_rng(11).integers(0, len(X), 5))
    parts = [model.predict_set(part) for part in np.split(X, cuts) if len(part)]
    np.testing.assert_array_equal(np.vstack(parts), sets)
    alone = np.vstack([model.predict_set(x[None]) for x in X])
    np.testing.assert_array_equal(alone, sets)
    for form in (
        X.astype(np.float32), X.astype(int), np.asfortranarray(X), X.tolist(),
        sparse.csr_array(X), sparse.csc_matrix(X), pd.DataFrame(X),
    ):  # fmt: skip
        np.testing.assert_array_equal(model.predict_set(form), sets)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(model.predict_set, [X] * 8):
            np.testing.assert_array_equal(found, sets)
    # Random shares differ between rows: plain sums have other sets.
    plain = fitted(params | {"randomized": False})
    assert (plain.predict_set(X) != sets).any()


@pytest.mark.parametrize("score", ["aps", "raps"])
def test_coverage_holds_row_by_row(score):
    n_fits, params = 200, {"conformity_score": score, "randomized": True, "cv": "prefit"}
    alone = batch = 0
    for seed in range(n_fits):
        model, (X, y) = fitted(params, 100 + seed), draw(new_rng(1000 + seed), 3)
        alone += model.predict_set(X[:1])[0, y[0]]
        batch += model.predict_set(X)[1, y[1]]
    # 181 of 201 ranks are covered.
    low, high = binom(n_fits, 181 / 201).ppf([1e-7, 1.0 - 1e-7])
    assert low <= alone <= high and low <= batch <= high


def test_one_fit_covers_its_rows_one_at_a_time():
    """Not by the same random number for every row that is asked for alone."""
    params = {"conformity_score": "aps", "randomized": True, "cv": "prefit"}
    X, y = draw(new_rng(5), 400)
    for seed in range(2):
        model = fitted(params, seed)
        sets = np.vstack([model.predict_set(x[None]) for x in X])
        covered = sets[np.arange(len(y)), y].mean()
        # The threshold of 200 rows, and 400 new ones.
        error = np.sqrt(LEVEL * (1 - LEVEL) * (1 / 200 + 1 / len(y)))
        assert abs(covered - LEVEL) < 6 * error


def test_rows_of_text_have_shares_of_their_own_and_classes_without_rows_are_named():
    rng = new_rng(3)
    words, y = rng.choice(list("abcdef"), (80, 12)), rng.integers(0, 2, 80)
    X = [" ".join(word * 2 for word in row) for row in words]
    inner = make_pipeline(CountVectorizer(), MultinomialNB())
    model = ConformalClassifier(
        inner, conformity_score="aps", randomized=True, confidence_level=0.6,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    alone = np.vstack([model.predict_set([x]) for x in X])
    np.testing.assert_array_equal(alone, model.predict_set(X))
    assert len(np.unique(alone, axis=0)) > 1
    X, y = draw(new_rng(0), 200)
    rows = y < 2
    model = ConformalClassifier(Known().fit(X), cv="prefit", condition="class")
    with pytest.warns(UserWarning, match="No calibration examples of the class 2"):
        model.fit(X[rows], y[rows])
    assert model.predict_set(X)[:, 2].all()
