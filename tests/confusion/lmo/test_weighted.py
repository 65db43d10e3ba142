"""Oracles that fit a classifier for each loss tensor."""

import pickle

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm.confusion.lmo.weighted import WeightedLMO, fit_weighted

X, Y = load_iris(return_X_y=True)
# One feature that tells little, so that costs matter.
X = X[:, 1:2]


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is fitted to; predicts what a table says, or 0."""

    fits = None

    def fit(self, X, y, sample_weight=None):
        self.fits_ = (np.asarray(X), y, sample_weight)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class ClassWeighted(ClassifierMixin, BaseEstimator):
    """Logistic regression with class weights and no others."""

    def __init__(self, class_weight=None):
        self.class_weight = class_weight

    def fit(self, X, y):
        self.model_ = LogisticRegression(class_weight=self.class_weight).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


def count(y, predicted, k, cells=None, weights=None, m=1):
    C = np.zeros((m, k, k))
    cells = np.zeros(len(y), dtype=int) if cells is None else cells
    weights = np.ones(len(y)) if weights is None else weights
    np.add.at(C, (cells, y, predicted), weights)
    return C / weights.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_weighted_error_is_the_cost_up_to_a_constant(weighted):
    rng = new_rng(0)
    n, k, m = 60, 4, 2
    y, cells = rng.integers(0, k, n), rng.integers(0, m, n)
    s = rng.random(n) if weighted else np.ones(n)
    L = rng.standard_normal((m, k, k))
    lmo = WeightedLMO(Recorder()).fit(np.arange(n)[:, None], y, s, cells=cells, n_cells=m)
    _, classifier = lmo(L)
    rows, labels, weights = classifier.classifier.fits_
    rows = rows[:, 0]
    assert weights.sum() == pytest.approx(n)
    assert (weights > 0).all()
    differences = []
    for _ in range(10):
        predicted = rng.integers(0, k, n)
        error = weights[labels != predicted[rows]].sum()
        differences.append((error, (s * L[cells, y, predicted]).sum()))
    errors, costs = np.array(differences).T
    slope = np.polyfit(costs, errors, 1)[0]
    assert slope > 0
    np.testing.assert_allclose(errors - errors[0], slope * (costs - costs[0]), atol=1e-9)


def test_costs_of_labels_are_class_weights_and_nothing_is_repeated():
    lmo = WeightedLMO(Recorder()).fit(X, Y)
    # A metric's gradient: rounding in the off-diagonal costs is no reason to repeat.
    L = 0.1 + np.array([0.3, 0.5, 0.7])[:, None] - np.diag([1.0, 2.0, 3.0])
    L += 1e-16 * np.arange(9).reshape(3, 3)
    rows, labels, weights = lmo(L[None])[1].classifier.fits_
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_allclose(weights, np.array([0.5, 1.0, 1.5])[Y])


def test_a_label_that_costs_more_than_another_is_taught_as_the_other():
    lmo = WeightedLMO(Recorder()).fit(X, Y)
    L = np.array([[3.0, 1.0, 3.0], [1.0, 0.0, 1.0], [2.0, 2.0, 0.0]])
    fitted = lmo(L[None])[1]
    _, labels, weights = fitted.classifier.fits_
    # Classes 0 and 1 as 1, class 2 as 2; the fit sees 0 and 1 for these.
    assert fitted.labels.tolist() == [1, 2]
    np.testing.assert_array_equal(labels, (Y == 2).astype(int))
    np.testing.assert_allclose(weights, np.array([2.0, 1.0, 2.0])[Y] * 150 / 250)
    assert set(fitted.predict(X)) == {1}


def test_the_confusion_is_counted_by_cell_and_weight():
    rng = new_rng(0)
    cells, s = rng.integers(0, 2, 150), rng.random(150)
    lmo = WeightedLMO(LogisticRegression()).fit(X, Y, s, cells, n_cells=3)
    L = np.stack([-np.diag([1.0, 3.0, 1.0]), -np.diag([2.0, 1.0, 5.0]), np.eye(3)])
    C, classifier = lmo(L)
    predicted = lmo.predict(classifier, X, cells)
    np.testing.assert_allclose(C, count(Y, predicted, 3, cells, s, 3), rtol=1e-13)
    assert not C[2].any()
    of_labels = -np.stack([np.diag(part) for part in L])[cells, Y] * s
    expected = LogisticRegression().fit(X, Y, of_labels * 150 / of_labels.sum())
    np.testing.assert_array_equal(predicted, expected.predict(X))


def test_nothing_to_gain_and_one_label_to_gain_need_no_fit():
    lmo = WeightedLMO(Recorder()).fit(X, Y)
    C, classifier = lmo(np.ones((1, 3, 3)))
    np.testing.assert_array_equal(C, count(Y, np.zeros(150, dtype=int), 3))
    L = np.zeros((1, 3, 3))
    L[:, :, 2] = -1.0
    C, classifier = lmo(L)
    np.testing.assert_array_equal(C, count(Y, np.full(150, 2), 3))
    assert classifier.predict(sparse.csr_array(X)).tolist() == [2] * 150
    assert classifier.predict(X.tolist()).tolist() == [2] * 150
    assert lmo.n_fits_ == 0


@pytest.mark.parametrize("routing", [False, True])
def test_the_last_step_of_a_pipeline_takes_the_weights(routing):
    L = -np.diag([1.0, 6.0, 2.0])[None]
    with config_context(enable_metadata_routing=routing):
        pipeline = make_pipeline(StandardScaler(), LogisticRegression())
        C = WeightedLMO(pipeline).fit(X, Y)(L)[0]
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(
        C, WeightedLMO(LogisticRegression()).fit(scaled, Y)(L)[0]
    )


@pytest.mark.parametrize("wrap", [lambda c: c, lambda c: make_pipeline(c)])
def test_class_weights_do_where_they_are_all_that_is_needed(wrap):
    lmo = WeightedLMO(wrap(ClassWeighted())).fit(X, Y)
    for costs in ([1.0, 6.0, 2.0], [3.0, 1.0, 1.0]):
        L = -np.diag(costs)[None]
        np.testing.assert_array_equal(
            lmo(L)[0], WeightedLMO(LogisticRegression()).fit(X, Y)(L)[0]
        )
    with pytest.raises(TypeError, match="a weight per example"):
        WeightedLMO(wrap(ClassWeighted())).fit(X, Y, np.arange(150.0))(L)


def test_class_weights_go_by_the_names_of_the_classes():
    names = np.array(["low", "middle", "top"])
    by_name = {"low": 1.0, "middle": 2.0, "top": 4.0}
    found = fit_weighted(ClassWeighted(), X, names[Y], 2.0**Y)
    expected = LogisticRegression(class_weight=by_name).fit(X, names[Y])
    np.testing.assert_array_equal(found.model_.coef_, expected.coef_)


def test_a_classifier_without_weights_is_refused():
    with pytest.raises(TypeError, match=r"KNeighborsClassifier\(\) accepts neither"):
        WeightedLMO(KNeighborsClassifier()).fit(X, Y)(-np.eye(3)[None])


@pytest.mark.parametrize("form", [pd.DataFrame, sparse.csr_array])
def test_rows_of_any_container_are_repeated(form):
    L = new_rng(0).random((1, 3, 3))
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    names = form(X)
    if form is pd.DataFrame:
        names.columns = ["width"]
    one = WeightedLMO(tree).fit(names, Y)(L)[0]
    np.testing.assert_array_equal(one, WeightedLMO(tree).fit(X, Y)(L)[0])


def test_it_is_cloned_pickled_and_leaves_the_estimator_alone():
    tree = DecisionTreeClassifier(random_state=0)
    lmo = clone(WeightedLMO(tree).fit(X, Y)).fit(X, Y)
    C, classifier = lmo(-np.diag([1.0, 2.0, 3.0])[None])
    assert not hasattr(tree, "tree_")
    assert not hasattr(lmo.estimator, "tree_")
    again, same = pickle.loads(pickle.dumps((lmo, classifier)))
    np.testing.assert_array_equal(same.predict(X), classifier.predict(X))
    np.testing.assert_array_equal(again(-np.diag([1.0, 2.0, 3.0])[None])[0], C)
