"""MultilabelMetricClassifier: rules, classifiers of all forms, scikit-learn's tools."""

import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from _checks import generated_checks
from _labelings import as_csr, mean_label_loss, random_eta
from _seeds import cache_by_seed, new_rng, new_seed
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    fbeta_score,
    jaccard_score,
    make_scorer,
    multilabel_confusion_matrix,
    precision_score,
    recall_score,
)
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_param_validation

from sklearn_structsvm import BCFWClassifier, CRFClassifier, MultilabelMetricClassifier
from sklearn_structsvm._utils import pieces
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm.confusion import get_metric
from sklearn_structsvm.confusion.label_rows import LabelRows
from sklearn_structsvm.estimators.complex_metric import label_predicting
from sklearn_structsvm.estimators.complex_metric.label_rules import (
    LabelSigmoids,
    choose_thresholds,
)
from sklearn_structsvm.metrics import (
    EqualOpportunity,
    FBeta,
    LinearLoss,
    Precision,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

# Whether a label is predicted for few rows is up to the seed.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Rows have the label:UserWarning"),
    pytest.mark.filterwarnings("ignore:Fewer than 5 of the rows:UserWarning"),
]


class Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose rows are their own probabilities."""

    def __init__(self, form="array"):
        self.form = form

    def fit(self, X, y, sample_weight=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def predict_proba(self, X):
        if self.form == "list":
            self.classes_ = [np.array([0, 1])] * X.shape[1]
            return [np.stack([1.0 - p, p], axis=1) for p in X.T]
        return X


@cache_by_seed
def some_data():
    X, Y = make_multilabel_classification(
        n_samples=160, n_classes=4, n_labels=2, random_state=new_seed(1)
    )
    Y[0], Y[1] = 0, 1
    return X, Y


def given(rng, n=30, n_labels=4):
    eta = random_eta(rng, n, n_labels, share=0.8)
    return eta, (rng.random(eta.shape) < eta).astype(int)


def prefit(**params):
    # Tests of sets of labels are about the probabilities that they give.
    if "labels_per_row" in params or params.get("average") == "samples":
        params = {"confusion": "probabilities"} | params
    return MultilabelMetricClassifier(Given(), cv="prefit", **params)


CLASSIFIERS = [
    None,
    ClassifierChain(LogisticRegression(max_iter=1000), order=[3, 1, 0, 2]),
    MultiOutputClassifier(LogisticRegression(max_iter=1000)),
    RandomForestClassifier(n_estimators=5, max_depth=3, random_state=0),
    CRFClassifier("multilabel", C=0.01, tol=0.1, random_state=0),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
def test_classifiers_of_all_forms_are_taken(classifier):
    X, Y = some_data()
    model = MultilabelMetricClassifier(classifier, confusion="labels", cv=2).fit(X, Y)
    proba = model.predict_proba(X)
    assert proba.shape == Y.shape
    assert np.array_equal(model.predict(X), (proba > model.thresholds_).astype(int))
    again = clone(model.estimator_).fit(X, Y).predict_proba(X)
    if isinstance(again, list):
        again = np.stack([part[:, 1] for part in again], axis=1)
    assert np.allclose(proba, again, atol=0.05)
    assert 0.0 < model.dual_gap_ <= 1e-13


MACRO, MICRO = {"average": "macro"}, {"average": "micro"}
SCORES = [
    (MICRO, f1_score, MICRO),
    ({"average": "weighted"}, f1_score, {"average": "weighted"}),
    ({"metric": "jaccard"}, jaccard_score, MACRO),
    ({"metric": FBeta(beta=2.0), "average": "samples"}, fbeta_score,
     {"average": "samples", "beta": 2.0}),
    ({"metric": "recall", "labels_per_row": 1}, recall_score, MACRO),
    ({"metric": "precision", "labels_per_row": 1}, precision_score, MACRO),
    ({"labels_per_row": 1, "average": "micro"}, f1_score, MICRO),
]  # fmt: skip


@pytest.mark.parametrize(("params", "function", "options"), SCORES)
def test_score_is_that_of_scikit_learn(params, function, options):
    X, Y = some_data()
    weights = new_rng(2).integers(0, 3, size=len(X)) + 0.5
    model = MultilabelMetricClassifier(cv=None, **params).fit(X, Y)
    for s in (None, weights):
        expected = function(
            Y, model.predict(X), sample_weight=s, zero_division=0, **options
        )
        assert model.score(X, Y, sample_weight=s) == pytest.approx(expected)


def test_the_score_of_balanced_is_the_mean_of_the_labels_own():
    X, Y = some_data()
    model = MultilabelMetricClassifier(metric="balanced", confusion="labels", cv=None)
    predicted = model.fit(X, Y).predict(X)
    own = [balanced_accuracy_score(*both) for both in zip(Y.T, predicted.T, strict=True)]
    assert model.score(X, Y) == pytest.approx(np.mean(own))
    assert model.objective_ == pytest.approx(1.0 - np.mean(own))
    assert model.confusion_.sum(axis=(1, 2)) == pytest.approx(np.ones(4))


def test_no_other_threshold_of_all_labels_is_better_on_average():
    eta, Y = given(new_rng(3))
    model = prefit(average="micro", confusion="labels").fit(eta, Y)
    best = f1_score(Y, model.predict(eta), average="micro", zero_division=0)
    assert 1.0 - model.objective_ == pytest.approx(best)
    for threshold in np.linspace(-0.05, 1.0, 22):
        predicted = (eta > threshold).astype(int)
        found = f1_score(Y, predicted, average="micro", zero_division=0)
        assert found <= best + 1e-12


def test_costs_are_those_of_the_labels():
    rng = new_rng(4)
    eta, Y = given(rng, n=60)
    costs = LinearLoss({(1, 0): 3.0, (0, 1): 1.0})
    model = prefit(metric=costs, confusion="probabilities").fit(eta, Y)
    # Of probabilities that are right, a label pays from 1 / (1 + 3) on.
    assert np.array_equal(model.predict(eta), (eta > 0.25).astype(int))
    paid = 3.0 * (Y > model.predict(eta)) + (Y < model.predict(eta))
    assert model.score(eta, Y) == pytest.approx(-paid.mean())
    model = prefit(metric=costs, labels_per_row=2).fit(eta, Y)
    order = np.argsort(-eta, axis=1, kind="stable")[:, :2]
    top = np.zeros(Y.shape, dtype=int)
    np.put_along_axis(top, order, 1, axis=1)
    assert np.array_equal(model.predict(eta), top)
    assert 0.0 < model.dual_gap_ <= 1e-13


@pytest.mark.parametrize("metric", ["f1", "g_mean", "min_max", "mcc", "recall"])
def test_with_labels_per_row_the_objective_is_that_of_the_rule_above_the_bound(metric):
    eta, Y = given(new_rng(6), n=40)
    model = prefit(metric=metric, labels_per_row=2).fit(eta, Y)
    predicted = model.predict(eta).astype(float)
    resolved = get_metric(metric, [0, 1])
    value = mean_label_loss(resolved, predicted, eta, np.ones(40))
    assert model.objective_ == pytest.approx(value, abs=1e-9)
    assert model.dual_gap_ > 0.0
    if metric == "recall":
        assert model.dual_gap_ <= 1e-13
    # No rule of other gains is below the bound.
    for gains in new_rng(7).normal(size=(20, 4, 2)):
        other = np.zeros(eta.shape)
        order = np.argsort(-(gains[:, 0] + gains[:, 1] * eta), axis=1)[:, :2]
        np.put_along_axis(other, order, 1.0, axis=1)
        value = mean_label_loss(resolved, other, eta, np.ones(40))
        assert value >= model.dual_objective_ - 1e-9


@pytest.mark.filterwarnings("ignore:More than 10 times:UserWarning")
def test_a_batch_gets_what_is_best_for_its_own_probabilities():
    rng = new_rng(8)
    eta, Y = given(rng)
    new, _ = given(rng, n=50)
    metric = get_metric("f1", [0, 1])
    model = prefit().fit(eta, Y)
    expected = prefit(confusion="probabilities").fit(new, np.zeros(new.shape, dtype=int))
    assert np.array_equal(model.predict_batch(new), expected.predict(new))
    model = prefit(labels_per_row=2).fit(eta, Y)
    by_batch, by_rule = (
        mean_label_loss(metric, P.astype(float), new, np.ones(50))
        for P in (model.predict_batch(new), model.predict(new))
    )
    assert np.all(model.predict_batch(new).sum(axis=1) == 2)
    by_fit = prefit(labels_per_row=2).fit(new, Y[rng.integers(len(Y), size=50)])
    assert by_fit.dual_objective_ <= by_batch <= by_fit.objective_ + 1e-6
    assert by_fit.dual_objective_ <= by_rule + 1e-12
    samples = prefit(average="samples").fit(eta, Y)
    assert np.array_equal(samples.predict_batch(new), samples.predict(new))
    end = "the set of labels with the largest expected score"
    assert str(samples.rule_).endswith(end)


@pytest.mark.parametrize(
    "params",
    [{}, {"average": "micro"}, {"average": "samples"}, {"labels_per_row": 2},
     {"confusion": "probabilities"}],
)  # fmt: skip
def test_sparse_probabilities_and_labels_are_decided_as_dense_ones(params):
    eta, Y = given(new_rng(10))
    dense = prefit(**params).fit(eta, Y)
    model = prefit(**params).fit(as_csr(eta), sparse.csc_matrix(Y))
    assert sparse.issparse(model.predict(as_csr(eta)))
    assert np.array_equal(model.predict(as_csr(eta)).toarray(), dense.predict(eta))
    assert model.score(as_csr(eta), sparse.coo_array(Y)) == dense.score(eta, Y)
    assert model.dual_objective_ == dense.dual_objective_
    assert sparse.issparse(model.predict_proba(as_csr(eta)))


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize(
    "inner",
    [
        KNeighborsClassifier(3),
        ClassifierChain(LogisticRegression()),
        make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_sparse_labels_are_those_of_dense_ones_for_any_classifier(inner, n_labels):
    rng = new_rng(8)
    X = rng.normal(size=(60, 4))
    noisy = X @ rng.normal(size=(4, n_labels)) + rng.normal(size=(60, n_labels))
    Y = (noisy > 0).astype(int)
    model = MultilabelMetricClassifier(inner, "g_mean", cv=None)
    dense = model.fit(X, Y).predict(X)
    for kind in (sparse.csr_array, sparse.csc_matrix):
        found = model.fit(X, kind(Y)).predict(X)
        assert sparse.issparse(found)
        np.testing.assert_array_equal(found.toarray(), dense)


def test_labels_that_are_always_or_never_predicted_are_so_in_sparse_rows_and_written():
    eta, Y = given(new_rng(12))
    Y[:, 1] = 1
    eta[:5, 1] = 0.0
    model = prefit(confusion="labels").fit(as_csr(eta), sparse.csr_array(Y))
    assert model.thresholds_[1] == -np.inf
    assert np.all(model.predict(as_csr(eta))[:, [1]].toarray() == 1)
    model.label_rule_.values = np.array([np.inf, -np.inf, 0.25, 0.5])
    lines = ["never 0", "always 1", "2 if p(2) > 0.25", "3 if p(3) > 0.5"]
    assert str(model.rule_).splitlines()[1:] == [f"  {line}" for line in lines]


@pytest.mark.thread_unsafe(reason="memory is traced of all threads")
@pytest.mark.parametrize("params", [{}, {"labels_per_row": 3}, {"average": "samples"}])
def test_sparse_probabilities_are_never_made_dense(params):
    n, n_labels, per_row = 8000, 400, 5
    rng = new_rng(13)
    labels = rng.integers(0, n_labels, size=(n, per_row)).ravel()
    eta = sparse.csr_array(
        (rng.random(n * per_row), labels, np.arange(n + 1) * per_row), (n, n_labels)
    )
    eta.sum_duplicates()
    eta.data = np.minimum(eta.data, 1.0)
    Y = sparse.csr_array((eta > 0.5).astype(int))
    tracemalloc.start()
    model = prefit(**params).fit(eta, Y)
    model.predict(eta)
    model.predict_batch(eta)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # An array would have 25.6 MB; the entries are half a megabyte.
    assert most < 8e6


@pytest.mark.parametrize("form", ["array", "list"])
@pytest.mark.parametrize("at_once", [1, 2**24])
def test_candidates_are_the_most_probable_labels(form, at_once, monkeypatch):
    """The same as of a classifier that returns no others, however many rows at once."""
    monkeypatch.setattr(label_predicting, "DENSE_AT_ONCE", at_once)
    monkeypatch.setattr(pieces, "MIN_PIECE", 1)
    eta, Y = given(new_rng(42), n_labels=6)
    first = np.argsort(-eta, axis=1, kind="stable")[:, :3]
    short = np.zeros_like(eta)
    np.put_along_axis(short, first, np.take_along_axis(eta, first, axis=1), axis=1)
    model = MultilabelMetricClassifier(Given(form), cv="prefit", n_candidates=3)
    model.fit(eta, Y)
    np.testing.assert_array_equal(model.predict_proba(eta).toarray(), short)
    wanted = prefit().fit(as_csr(short), Y)
    assert np.array_equal(model.predict(eta), wanted.predict(as_csr(short)))
    assert model.objective_ == wanted.objective_


def test_all_labels_are_candidates_where_more_are_asked_for_and_those_of_no_number():
    X, Y = some_data()
    model = MultilabelMetricClassifier(cv=2).fit(X, Y)
    many = MultilabelMetricClassifier(cv=2, n_candidates=9).fit(X, Y)
    assert np.array_equal(model.predict(X), many.predict(X))
    eta, Y = given(new_rng(43))
    eta[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"from 0 to 1; got nan at \(3, 1\)"):
        prefit(n_candidates=2).fit(eta, Y)


@pytest.mark.thread_unsafe(reason="memory is traced of all threads")
@pytest.mark.filterwarnings("ignore:More than 10 times")
def test_probabilities_of_many_labels_are_dense_for_some_rows_only(monkeypatch):
    class Wide(Given):
        def predict_proba(self, X):
            return 1.0 / (2.0 + (X + np.arange(500)) % 97)

    monkeypatch.setattr(label_predicting, "DENSE_AT_ONCE", 2**15)
    X, Y = np.arange(500.0)[:, None], sparse.eye_array(500, format="csr")
    model = MultilabelMetricClassifier(Wide(), cv="prefit", n_candidates=5)
    tracemalloc.start()
    model.fit(X, Y)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # An array of all would have 2 MB; a piece has a quarter, beside places and copies.
    assert most < 1.5e6


def test_weights_stand_for_repeated_rows():
    # Without ties, which rounding breaks.
    eta = random_eta(new_rng(14), 30, 4, ties=False, share=1.0)
    Y = (new_rng(21).random(eta.shape) < eta).astype(int)
    times = new_rng(15).integers(0, 3, size=len(eta))
    times[0] = 1
    for params in (
        {"confusion": "labels"},
        {"average": "micro", "confusion": "labels"},
        {"metric": "balanced", "labels_per_row": 1},
    ):
        weighted = prefit(**params).fit(eta, Y, sample_weight=times)
        repeated = prefit(**params).fit(
            np.repeat(eta, times, axis=0), np.repeat(Y, times, axis=0)
        )
        assert weighted.objective_ == pytest.approx(repeated.objective_)
        # Two rules may be equally good, and rounding chooses.
        again = np.repeat(weighted.predict(eta), times, axis=0)
        counted = multilabel_confusion_matrix(np.repeat(Y, times, axis=0), again)
        assert weighted.confusion_ == pytest.approx(counted / times.sum())


def of_sure_labels(seed, n=1000):
    """Labels that are rarely sure, with right probabilities: two halves."""
    rng = new_rng(seed)
    eta = rng.beta(0.4, 3.0, size=(2 * n, 20))
    Y = (rng.random(eta.shape) < eta).astype(int)
    return eta[:n], Y[:n], eta[n:], Y[n:]


@pytest.mark.parametrize("k", [None, 1, 3])
def test_the_best_precision_is_not_that_of_one_row(k):
    eta, Y, new, Y_new = of_sure_labels(50)
    model = MultilabelMetricClassifier(
        Given(), metric="precision", labels_per_row=k, cv="prefit"
    ).fit(eta, Y)
    predicted = model.predict(new)
    assert (predicted.sum(axis=0) > 0).all()
    options = {"average": "macro", "zero_division": 0}
    reached = precision_score(Y_new, predicted, **options)
    assert reached > 1.0 - model.objective_ - 0.1
    if k is None:
        simple = new > 0.5
    else:
        simple = new >= np.sort(new, axis=1)[:, [-k]]
    assert reached > precision_score(Y_new, simple, **options)


@pytest.mark.parametrize("n", [10, 40])
def test_the_support_of_a_precision_is_that_of_three_more_rows(n):
    rng = new_rng(51)
    eta = rng.random((n, 1))
    Y = (rng.random(eta.shape) < eta).astype(int)
    Y[:4, 0] = 0, 0, 1, 1
    given = LabelRows.of(eta), np.ones(n), as_csr(Y)
    metric = get_metric("precision", [0, 1])
    found = choose_thresholds(*given, metric, "macro", (), [0], shrink=True)
    order = np.argsort(-eta[:, 0])
    share = Y.sum() / (Y.sum() + 100.0)
    # By any threshold, with what is counted between the labels and their sigmoid.
    q = LabelSigmoids.fit(*given)(given[0]).matrix().toarray()[:, 0]
    counted = share * Y[:, 0] + (1 - share) * q
    rows, hits = np.arange(1, n + 1), np.cumsum(counted[order])
    support = min(3.0, hits[-1])
    expected = (hits + support * counted.mean()) / (rows + support)
    assert 1.0 - found.objective == pytest.approx(expected.max())


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"metric": LinearLoss({(1, 0): 1.0, (0, 1): 1.0})}, "Rows have .* 2, but none"),
        ({"metric": "recall", "constraints": Precision(at_least=0.6)}, "says nothing"),
        ({"average": "micro"}, "Rows have the label.* 2, but none gets them"),
        ({"average": "samples"}, "Rows have the label.* 2, but none gets them"),
    ],
)
def test_labels_that_are_never_predicted_are_named(params, words):
    eta, Y = given(new_rng(52), n=200)
    # Nobody can tell who has it.
    eta[:, 2], Y[:, 2] = 0.1, np.arange(200) % 10 == 0
    if "average" in params:
        eta[:, :2], Y[:, 0] = 0.9, 1
        eta[:, 2], Y[:, 2] = 0.01, np.arange(200) == 7
    model = prefit(**params)
    with pytest.warns(UserWarning, match=words):
        model.fit(eta, Y)
    got = model.predict(eta).sum(axis=0)
    assert got[2] == 0
    assert model.diagnostics_["rows"] == pytest.approx(Y.sum(axis=0))
    assert model.diagnostics_["predicted_rows"] == pytest.approx(got)


def test_labels_that_few_rows_get_are_named_with_the_remedy():
    eta, Y, eta_new, Y_new = of_sure_labels(53)
    words = "Fewer than 5 of the rows get the label.*confusion='auto' lets more"
    off = {}
    for confusion in ("labels", "probabilities", "auto"):
        for k in (None, 3) if confusion != "labels" else (None,):
            model = prefit(metric="precision", confusion=confusion, labels_per_row=k)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                model.fit(eta, Y)
            is_told = any(re.match(words, str(one.message)) for one in told)
            assert is_told == (confusion != "auto")
            off[confusion, k] = model.score(eta, Y) - model.score(eta_new, Y_new)
    assert off["auto", 3] < off["probabilities", 3] - 0.1


def test_micro_averages_calibrate_each_label():
    rng = new_rng(54)
    n, k = 800, 30
    share = np.linspace(0.05, 0.6, k)
    eta = 1 / (1 + np.exp(-np.log(share / (1 - share)) - rng.normal(size=(n, k))))
    Y = (rng.random(eta.shape) < eta).astype(int)
    # Too sure, and with another bias for each label.
    odds = (eta / (1 - eta)) ** 4 * np.exp(3.0 * rng.normal(size=k))
    bent = odds / (1 + odds)
    half = slice(n // 2), slice(n // 2, None)
    model = MultilabelMetricClassifier(Given(), average="micro", cv="prefit")
    model.fit(bent[half[0]], Y[half[0]])
    right = clone(model).fit(eta[half[0]], Y[half[0]])
    reached, possible = (
        m.score(rows[half[1]], Y[half[1]]) for m, rows in ((model, bent), (right, eta))
    )
    assert reached > possible - 0.03
    one = model.set_params(confusion="labels").fit(bent[half[0]], Y[half[0]])
    assert reached > one.score(bent[half[1]], Y[half[1]])


@pytest.mark.parametrize("params", [{}, {"metric": "h_mean"}, {"metric": "precision"}])
def test_weighted_averages_are_sums_of_what_is_counted_of_each_label(params):
    eta, Y = given(new_rng(55), n=60)
    eta *= [1.0, 0.7, 0.4, 0.2]
    shares = eta.mean(axis=0) / eta.mean(axis=0).sum()
    for k in (None, 2):
        model = prefit(
            average="weighted", labels_per_row=k, confusion="probabilities", **params
        )
        model.fit(eta, Y)
        predicted = model.predict(eta)
        losses = [
            mean_label_loss(model.metric_, predicted[:, [j]], eta[:, [j]], np.ones(60))
            for j in range(4)
        ]
        assert model.objective_ == pytest.approx(shares @ losses)
        assert model.dual_objective_ <= model.objective_ + 1e-9
        if k is None:
            macro = clone(model).set_params(average="macro").fit(eta, Y)
            assert np.array_equal(macro.thresholds_, model.thresholds_)


EVERY_KIND = [
    {"average": average, "labels_per_row": k, "metric": metric}
    for average, metric in (("macro", "precision"), ("micro", "f1"), ("samples", "f1"))
    for k in (None, 2)
]


@pytest.mark.parametrize("params", EVERY_KIND, ids=str)
def test_the_scale_of_weights_changes_nothing(params):
    eta, Y = given(new_rng(30), n=300)
    weights = 1.0 + new_rng(31).integers(0, 3, size=len(eta))
    model = MultilabelMetricClassifier(Given(), cv="prefit", **params)
    once = clone(model).fit(eta, Y, sample_weight=weights)
    # Powers of 2 are free of rounding.
    for scale in (2.0**-300, 2.0**-12, 2.0**20):
        again = clone(model).fit(eta, Y, sample_weight=scale * weights)
        assert again.objective_ == pytest.approx(once.objective_, abs=1e-9)
        assert again.dual_objective_ == pytest.approx(once.dual_objective_, abs=1e-9)
        assert np.array_equal(again.predict(eta), once.predict(eta))


def test_weights_reach_the_classifier_where_it_takes_them():
    X, Y = some_data()
    weights = new_rng(16).integers(0, 3, size=len(X)) + 0.5
    inner = MultiOutputClassifier(LogisticRegression(max_iter=1000))
    model = MultilabelMetricClassifier(inner, cv=None).fit(X, Y, sample_weight=weights)
    expected = clone(inner).fit(X, Y, sample_weight=weights).predict_proba(X)
    assert np.array_equal(model.predict_proba(X)[:, 0], expected[0][:, 1])
    with pytest.warns(
        UserWarning, match="OneVsRestClassifier does not accept sample_weig"
    ):
        MultilabelMetricClassifier(cv=None).fit(X, Y, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        routed = MultilabelMetricClassifier(cv=2)
        routed.set_fit_request(sample_weight=True).fit(X, Y, sample_weight=weights)
        logistic = default_classifier()
        weights = weights * (weights.sum() / (weights @ weights))
        expected = OneVsRestClassifier(logistic).fit(X, Y, sample_weight=weights)
    assert np.allclose(routed.predict_proba(X), expected.predict_proba(X))


def test_folds_give_probabilities_that_were_not_trained_on():
    X, Y = some_data()
    folds = list(KFold(4).split(X))
    model = MultilabelMetricClassifier(cv=folds).fit(X, Y)
    inner = OneVsRestClassifier(default_classifier())
    held_out = np.empty(Y.shape)
    for train, test in folds:
        held_out[test] = clone(inner).fit(X[train], Y[train]).predict_proba(X[test])
    assert np.array_equal(model.thresholds_, prefit().fit(held_out, Y).thresholds_)
    whole = clone(inner).fit(X, Y)
    assert np.array_equal(model.predict_proba(X), whole.predict_proba(X))
    frozen = MultilabelMetricClassifier(FrozenEstimator(whole)).fit(X, Y)
    in_sample = MultilabelMetricClassifier(inner, cv=None).fit(X, Y)
    assert np.array_equal(frozen.thresholds_, in_sample.thresholds_)


def test_a_label_of_no_row_or_of_all_rows_is_told_once_and_not_for_each_fold():
    X, Y = some_data()
    Y = Y.copy()
    Y[:, 0], Y[:, 1] = 0, 1
    said = "is present in all training examples"
    for given in (Y, sparse.csr_array(Y)):
        with pytest.warns(UserWarning) as caught:
            MultilabelMetricClassifier().fit(X, given)
        told = sorted(str(w.message) for w in caught)
        assert told == [f"Label 1 {said}.", f"Label not 0 {said}."]
    # A label that is missing only without a fold is warned about for that fold.
    Y[:, 1], Y[0, 0] = Y[:, 2], 1
    with pytest.warns(UserWarning) as caught:
        MultilabelMetricClassifier().fit(X, Y)
    assert [str(w.message) for w in caught] == [f"Label not 0 {said}."]


def rare_label(rng, n=1000, n_positive=3):
    """A label that a few rows have, where it is thought improbable, and three more."""
    eta = np.column_stack([rng.beta(0.05, 5.0, size=n), rng.random((n, 3))])
    eta = np.maximum(eta, 1e-12)
    Y = (rng.random(eta.shape) < eta).astype(int)
    Y[:, 0] = 0
    Y[:n_positive, 0] = 1
    eta[0, 0] = 0.0
    return eta, Y


@pytest.mark.parametrize("metric", ["f1", "jaccard"])
def test_a_rare_label_is_not_predicted_for_every_row(metric):
    eta, Y = rare_label(new_rng(22))
    eta[:3, 0] = 0.0
    with pytest.warns(UserWarning, match=r"label\(s\) 0 as have them: label 0 is predic"):
        by_labels = prefit(metric=metric, confusion="labels").fit(eta, Y)
    assert by_labels.thresholds_[0] == -np.inf
    model = prefit(metric=metric).fit(eta, Y)
    assert np.isfinite(model.thresholds_[0])
    # Nor one that is never thought possible, where others are not known.
    eta[:, 0] = 0.0
    with pytest.warns(UserWarning, match=r"Rows have the label\(s\) 0, but none"):
        model = prefit(metric=metric).fit(sparse.csr_array(eta), Y)
    assert not model.predict(sparse.csr_array(eta))[:, 0].any()


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("metric", ["recall", "f1", "jaccard", "balanced"])
def test_labels_never_thought_possible_have_the_simple_threshold(metric, average):
    rng = new_rng(24)
    eta, Y = given(rng, n=1600)
    Y[:, 0] = rng.random(1600) < 0.03
    eta[:, 0], half = 0.0, (slice(800), slice(800, None))
    model, by_labels = (
        prefit(metric=metric, average=average, confusion=confusion)
        for confusion in ("auto", "labels")
    )
    model.fit(eta[half[0]], Y[half[0]])
    by_labels.fit(eta[half[0]], Y[half[0]])
    # Everywhere or nowhere: what balances both sides gains nothing by it.
    found = np.inf if metric == "balanced" else -np.inf
    assert model.thresholds_[0] == by_labels.thresholds_[0] == found
    scores = [one.score(eta[half[1]], Y[half[1]]) for one in (model, by_labels)]
    assert scores[0] >= scores[1] - 0.02


SETS = [{"labels_per_row": 2}, {"average": "samples"}]


@pytest.mark.parametrize("params", SETS, ids=str)
def test_sets_are_chosen_by_calibrated_probabilities(params, monkeypatch):
    # Of those that they choose from, simple rules are hardly worse here.
    def own(_, choice, raw, rows, *rest):
        return choice, rows

    monkeypatch.setattr(MultilabelMetricClassifier, "_or_simple", own)
    rng = new_rng(26)
    eta, Y = given(rng, n=300)
    # As they are, they would hardly choose the last label.
    bent = eta**3 * [1.0, 0.1, 0.01, 0.001]
    model = MultilabelMetricClassifier(Given(), cv="prefit", **params).fit(bent, Y)
    a, b = model.label_sigmoids_.T
    # Half of the smallest distance from 0 or 1.
    floor = max(min(bent[bent > 0].min(), (1 - bent[bent < 1]).min()) / 2, 1e-9)
    clipped = np.clip(bent, floor, 1 - floor)
    by_hand = 1 / (1 + np.exp(-a * np.log(clipped / (1 - clipped)) - b))
    by_hand[bent == 0] = 0.0
    plain = prefit(**params).fit(by_hand, Y)
    assert plain.label_sigmoids_ is None
    assert model.objective_ == pytest.approx(plain.objective_)
    assert model.dual_objective_ == pytest.approx(plain.dual_objective_)
    assert (model.predict(bent) == plain.predict(by_hand)).mean() > 0.99
    assert np.array_equal(model.predict_proba(bent), bent)
    # Sparse ones are calibrated where they are stored.
    found = clone(model).fit(as_csr(bent), sparse.csr_array(Y))
    assert found.label_sigmoids_ == pytest.approx(model.label_sigmoids_)
    assert np.array_equal(found.predict(as_csr(bent)).toarray(), model.predict(bent))


ONE_OF_EACH_ROW = [
    {"average": "micro"},
    {"average": "samples"},
    {"metric": "recall", "average": "weighted"},
    {"metric": "f1"},
    {"metric": "min_max"},
]


@pytest.mark.parametrize("params", ONE_OF_EACH_ROW, ids=str)
def test_the_most_probable_label_is_chosen_where_labels_say_that_it_is_better(params):
    # The most probable label of a row is the right one, but how probable depends on the
    # row, so that sigmoids of labels see little but how often each occurs.
    rng = new_rng(56)
    truth = rng.choice(3, p=[0.5, 0.3, 0.2], size=400)
    Y = np.eye(3, dtype=int)[truth]
    eta = 1.0 / (1.0 + np.exp(-rng.uniform(-25, 25, size=(400, 1)) - 3.0 * Y))
    model = prefit(labels_per_row=1, confusion="auto", **params)
    model.fit(eta[:200], Y[:200])
    assert np.array_equal(model.predict(eta[200:]), Y[200:])
    assert np.array_equal(model.predict_batch(eta[200:]), Y[200:])
    assert model.label_sigmoids_ is None
    assert model.dual_objective_ <= model.objective_
    assert "the 1 most probable labels" in str(model.rule_)


@pytest.mark.parametrize(
    "params",
    [
        {"metric": "mcc"},
        {"metric": "kappa", "average": "micro"},
        {"metric": "specificity", "average": "weighted", "labels_per_row": 5},
    ],
    ids=str,
)
def test_simple_rules_are_chosen_where_labels_differ_by_chance_only(params):
    if "labels_per_row" in params:
        eta, Y, _, _ = of_sure_labels(57)
    else:
        z = new_rng(57).normal(size=(300, 30))
        Y = (new_rng(58).random(z.shape) < 1.0 / (1.0 + np.exp(-z))).astype(int)
        eta = 1.0 / (1.0 + np.exp(-8.0 * z))
    model = prefit(confusion="auto", **params).fit(eta, Y)
    assert model.label_sigmoids_ is None
    assert model.dual_objective_ <= model.objective_
    # The same for all labels.
    rule = model.label_rule_
    own = rule.values if "labels_per_row" not in params else rule.gains
    assert np.all(own == own[0])


@pytest.mark.filterwarnings("ignore:More than 10 times:UserWarning")
def test_how_far_below_a_billionth_a_probability_is_tells_labels_apart():
    # Naive Bayes of many features says such things, and they are in the right order.
    rng = new_rng(22)
    t = rng.uniform(30.0, 150.0, size=(400, 5))
    Y = (rng.random(t.shape) < 1.0 / (1.0 + np.exp((t - 80.0) / 10.0))).astype(int)
    model = prefit(metric="recall", average="micro", labels_per_row=1, confusion="auto")
    eta = np.exp(-t)
    predicted = model.fit(eta, Y).predict(eta)
    assert model.label_floor_ < 1e-30
    assert (predicted.argmax(axis=1) == eta.argmax(axis=1)).mean() > 0.8


def test_labels_that_no_row_has_are_calibrated_all_the_same():
    eta, Y = given(new_rng(27))
    Y[:, 1], eta[:, 2] = 0, 0.0
    for params in SETS:
        model = MultilabelMetricClassifier(Given(), cv="prefit", **params).fit(eta, Y)
        assert np.isfinite(model.label_sigmoids_).all()
        assert model.predict(eta).shape == Y.shape


def test_pipelines_searches_and_scorers_take_it():
    X, Y = some_data()
    pipe = make_pipeline(StandardScaler(), MultilabelMetricClassifier(cv=2))
    scores = cross_val_score(pipe, X, Y, scoring="f1_macro", cv=2)
    own = cross_val_score(
        pipe, X, Y, scoring=make_scorer(f1_score, average="macro"), cv=2
    )
    assert np.array_equal(scores, own)
    grid = {
        "multilabelmetricclassifier__average": ["macro", "micro"],
        "multilabelmetricclassifier__estimator": [OneVsRestClassifier(
            LogisticRegression(C=C, max_iter=1000)) for C in (0.1, 1.0)],
    }  # fmt: skip
    search = GridSearchCV(pipe, grid, scoring="f1_micro", cv=2).fit(X, Y)
    assert search.predict(X).shape == Y.shape
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict(X), search.predict(X))


def test_constraints_hold_for_each_label_or_the_one_that_cannot_meet_them_is_named():
    eta, Y = given(new_rng(17), n=80)
    model = prefit(constraints=SelectionRate(at_most={1: 0.2})).fit(eta, Y)
    assert np.all(model.predict(eta).mean(axis=0) <= 0.2)
    model = prefit(
        metric="recall", constraints=[Precision(at_least=0.5)], confusion="labels"
    )
    predicted = model.fit(eta, Y).predict(eta)
    given_out = predicted.sum(axis=0)
    assert np.all((predicted * Y).sum(axis=0) >= 0.5 * given_out - 1e-9)
    assert 0.0 < model.dual_gap_ <= 1e-13
    # A fit that fails leaves the model as it was.
    eta, Y = given(new_rng(18))
    Y[0] = 1
    model = prefit().fit(eta, Y)
    before = dict(vars(model))
    model.set_params(
        constraints=[SelectionRate(at_least={1: 0.5}), SelectionRate(at_most={1: 0.1})]
    )
    with pytest.raises(InfeasibleConstraintError, match="of label 0"):
        model.fit(eta, Y)
    named = pd.DataFrame(Y, columns=[f"tag {j}" for j in range(Y.shape[1])])
    with pytest.raises(InfeasibleConstraintError, match="of label 'tag 0' meets"):
        model.fit(eta, named)
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert fitted == {name: before[name] for name in fitted}
    assert np.array_equal(model.predict(eta), (eta > model.thresholds_).astype(int))


PRECISE, ROWS = Precision(at_least=0.5), {"labels_per_row": 2}
REFUSED = [
    ({"metric": "macro_f1"}, "metric='f1', average='macro'"),
    ({"metric": "expected_cost"}, "a metric of the costs of each example"),
    ({"metric": "f2"}, "metric='f2' is unknown"),
    ({"metric": FBeta(pos_label=3)}, "pos_label=3 is not a class"),
    ({"metric": "jaccard", "average": "samples"}, "supports only F-measures"),
    ({"metric": FBeta(pos_label=0), "average": "samples"}, "supports only F-measures"),
    ({"labels_per_row": 5}, "exceeds the 4 labels"),
    ({"labels_per_row": 3, "n_candidates": 2}, "=3 exceeds n_candidates=2"),
    (ROWS | {"confusion": "labels"}, "requires labels_per_row=None"),
    (ROWS | {"constraints": [PRECISE]},
     "constraints=.* requires labels_per_row=None; got labels_per_row=2"),
    ({"average": "samples", "constraints": PRECISE},
     "constraints=.* requires average='macro', 'weighted' or 'micro'"),
    ({"constraints": EqualOpportunity(slack=0.1)}, "uses groups"),
    ({"constraints": SelectionRate(at_most={2: 0.1})}, "2 is not a class"),
]  # fmt: skip
NO_INDICATORS = [
    ([0, 1, 1], r"indicator of shape \(n_samples, n_labels\).*got shape \(3,\)"),
    ([[0, 1], [2, 0], [0, 0]], "0 and 1 only; got 2"),
    ([[0.0, np.nan], [1, 0], [0, 0]], "has the label nan"),
    ([[0.0, np.inf], [1, 0], [0, 0]], "must not contain NaN or infinity"),
    ([[0, 1], [1, 0]], "inconsistent numbers of samples"),
    ([[], [], []], "one column per label"),
    (sparse.csr_array([[0, 3], [1, 0], [0, 0]]), "0 and 1 only; got 3"),
    ([[0], [1, 0], [1]], "holds lists of labels"),
]


def test_what_does_not_go_together_and_what_is_no_indicator_is_refused():
    eta, Y = given(new_rng(19))
    half = np.full((3, 2), 0.5)
    cases = [(params, eta, Y, words) for params, words in REFUSED]
    cases += [({}, half, labels, words) for labels, words in NO_INDICATORS]
    Y = np.array([[0, 1], [1, 0]])
    cases.append(
        ({}, half[:2].repeat(2, 1)[:, :3], Y, r"of Given must .* \(2, 2\).* \(2, 3")
    )
    cases.append(({}, 4.0 * half[:2], Y, "of Given .* from 0 to 1; got 2.0"))
    for params, rows, labels, words in cases:
        with pytest.raises(ValueError, match=words):
            prefit(**params).fit(rows, labels)
    with pytest.raises(TypeError, match="must have the method predict_proba"):
        MultilabelMetricClassifier(OneVsRestClassifier(LinearSVC())).fit(Y, Y)
    name = "MultilabelMetricClassifier"
    check_param_validation(name, MultilabelMetricClassifier())


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("k", [None, 2])
def test_the_written_rule_decides_as_predict_does_by_the_names_of_labels(average, k):
    eta, Y = given(new_rng(21))
    names = [f"topic {j}" for j in range(Y.shape[1])]
    model = prefit(average=average, labels_per_row=k)
    model.fit(eta, pd.DataFrame(Y, columns=names))
    rows, table = LabelRows.of(eta), model.rule_.columns
    if model.label_sigmoids_ is not None:
        rows = LabelSigmoids(model.label_sigmoids_, model.label_floor_)(rows)
    q = rows.matrix().toarray()
    if k is None:
        expected = q > table["threshold"]
    else:
        gains = table["at_0"] + table["slope"] * q
        at = np.argsort(-gains, axis=1, kind="stable")[:, :k]
        expected = (at[:, :, None] == np.arange(len(names))).any(axis=1)
    np.testing.assert_array_equal(model.predict(eta), expected)
    assert table["label"] == model.label_names_ == names
    first, *lines = str(model.rule_).splitlines()
    assert first.startswith(f"f1, average={average!r}")
    if average == "micro":
        assert lines == []
    else:
        for name, line in zip(names, lines[k is not None :], strict=True):
            assert f"{name}" in line and f"p({name})" in line


@pytest.mark.parametrize(
    "model", [MultilabelMetricClassifier(), BCFWClassifier("multilabel", tol=0.1)]
)
def test_labels_to_score_go_by_their_names(model):
    X, Y = make_multilabel_classification(60, n_classes=4, random_state=new_seed())
    Y = pd.DataFrame(Y, columns=list("abcd"))
    score = model.fit(X, Y).score(X, Y)
    assert model.score(X, Y[list("dcba")]) == model.score(X, Y.to_numpy()) == score


def test_attributes_that_were_changed_are_refused_by_name():
    eta, Y = given(new_rng(20))
    for params, name, value, words in [
        (ROWS, "label_rule_.gains", np.ones((2, 2)), "gains must have shape"),
        (ROWS, "label_rule_.k", 9, "labels_per_row must be from 1 to 4"),
        ({}, "label_rule_.values", np.ones(2), "thresholds must have shape"),
        ({"average": "samples"}, "label_rule_.beta", [1.0], "beta must have shape"),
        (ROWS, "label_sigmoids_", np.ones((4, 3)), "^label_sigmoids_ must have shape"),
        (ROWS, "label_floor_", {}, "^label_floor_ must hold numbers"),
    ]:
        model = prefit(**params).fit(eta, Y)
        if name in ("label_sigmoids_", "label_floor_"):
            model.label_sigmoids_, model.label_floor_ = np.ones((Y.shape[1], 2)), 1e-9
        *of, last = name.split(".")
        setattr(model.label_rule_ if of else model, last, value)
        with pytest.raises((ValueError, TypeError), match=words):
            model.predict(eta)


REASONS = {
    "hands over a column of other labels than 0 and 1: y is an indicator":
        "estimators_dtypes sample_weights_pandas_series sample_weights_not_an_array "
        "sample_weights_shape sample_weights_not_overwritten fit2d_1feature "
        "classifier_data_not_an_array",
    "hands over one label of each row, in one dimension: y is an indicator":
        "complex_data classifiers_one_label classifiers_one_label_sample_weights "
        "classifiers_classes classifier_not_supporting_multiclass",
    "asks that predictions have the shape, and probabilities the columns, of classes":
        "classifiers_train estimator_sparse_array estimator_sparse_matrix",
    "asks for thresholds of one half": "classifier_multioutput",
}  # fmt: skip


def expected_failed_checks(estimator):
    return {
        f"check_{name}": why for why, names in REASONS.items() for name in names.split()
    }


@pytest.mark.filterwarnings("ignore:Label .* is present in all training:UserWarning")
@generated_checks(
    [MultilabelMetricClassifier(MultiOutputClassifier(LogisticRegression()), cv=None)],
    expected_failed_checks,
)
def test_it_passes_the_generated_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("metric", ["f1", "g_mean"])
def test_a_search_is_told_kept_and_limited_in_time(metric, capfd):
    eta, Y = given(new_rng(40), n=60)
    model = prefit(metric=metric, labels_per_row=2, tol=0.0, verbose=1).fit(eta, Y)
    history = model.history_
    assert (np.diff(history["n_iter"]) == 1).all()
    assert history["n_iter"][-1] == model.n_iter_
    assert (np.diff(history["seconds"]) >= 0.0).all()
    assert history["dual_objective"][-1] == model.dual_objective_
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[-1].startswith(f"[MultilabelMetricClassifier] pass {model.n_iter_}, ")
    model.set_params(tol=0.0, solver_options__max_time=1e-9, verbose=0)
    with pytest.warns(ConvergenceWarning, match="stopped at max_time=1e-09.*max_time"):
        model.fit(eta, Y)
    assert model.n_iter_ == 1
    # Without a search there is no history.
    for params in ({"labels_per_row": None}, {"average": "micro", "labels_per_row": 2}):
        model = prefit(metric=metric, verbose=1, **params).fit(eta, Y)
        assert not hasattr(model, "history_")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("params", [{}, {"average": "micro"}, {"labels_per_row": 2}])
def test_the_order_of_the_rows_does_not_matter(params):
    for seed in range(4):
        X, Y = make_multilabel_classification(
            200, n_classes=4, random_state=new_seed(seed)
        )
        base = OneVsRestClassifier(LogisticRegression(max_iter=1000)).fit(X, Y)
        model = MultilabelMetricClassifier(base, cv="prefit", **params).fit(X, Y)
        order = new_rng(seed).permutation(200)
        other = MultilabelMetricClassifier(base, cv="prefit", **params)
        other.fit(X[order], Y[order])
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
