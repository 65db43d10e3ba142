"""Sequences in scikit-learn's own tools: searches, splitters, pipelines, routing."""

import numpy as np
import pytest
import sklearn
from _estimators import as_objects, assert_same_labels, for_each_estimator, make_problem
from _options import placed
from _seeds import new_rng, new_seed
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    check_cv,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    CRFClassifier,
    SlackRescaledSSVM,
    cross_val_predict_proba,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.metrics import (
    entity_f1_scorer,
    token_accuracy_score,
    token_accuracy_scorer,
    token_log_loss,
)
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure, MulticlassStructure

CONTAINERS = {"list": list, "objects": as_objects}
forms = pytest.mark.parametrize(
    ("container", "sparse"),
    [(c, s) for c in CONTAINERS.values() for s in (False, True)],
    ids=[f"{c}-{s}" for c in CONTAINERS for s in ("dense", "csr")],
)


class Scaled(TransformerMixin, BaseEstimator):
    """Multiplies all features of all sequences."""

    def __init__(self, factor=2.0):
        self.factor = factor

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, X):
        return [self.factor * x for x in X]


def chains(container=list, sparse=False, n=24, **options):
    options |= {"n_features": 5, "n_classes": 3, "n_active": 3}
    X, y = make_chains(n, sparse=sparse, random_state=new_seed(0), **options)
    return container(X), container(y)


def take(at, *parts):
    """Some items of each."""
    return [[part[i] for i in at] for part in parts]


def chain_model(**params):
    defaults = {"step": "pairwise", "cache": False, "tol": 1e-2, "random_state": 0}
    return placed(BCFWClassifier)(ChainStructure(), **defaults | params)


@pytest.mark.parametrize("equal", [{}, {"min_length": 4, "max_length": 4}], ids=str)
@forms
def test_scores_predictions_and_curves_are_those_of_the_folds_by_hand(
    container, sparse, equal
):
    X, y = chains(container, sparse, **equal)
    model = chain_model(classes=[0, 1, 2])
    splitter = check_cv(3, y, classifier=is_classifier(model))
    assert isinstance(splitter, KFold) and not isinstance(splitter, StratifiedKFold)
    folds = list(KFold(3).split(X))
    fits = [clone(model).fit(*take(train, X, y)) for train, _ in folds]

    def scores_at(scorer):
        pairs = zip(fits, folds, strict=True)
        return [scorer(own, *take(test, X, y)) for own, (_, test) in pairs]

    expected = scores_at(token_accuracy_scorer)
    for scoring in (None, token_accuracy_scorer):
        scores = cross_val_score(model, X, y, cv=3, scoring=scoring)
        np.testing.assert_array_equal(scores, expected)
    predicted = cross_val_predict(model, X, y, cv=3)
    assert len(predicted) == len(X)
    for own, (_, test) in zip(fits, folds, strict=True):
        assert_same_labels(take(test, predicted)[0], own.predict(*take(test, X)))
    sizes, trained, tested = learning_curve(model, X, y, cv=3, train_sizes=[0.5, 1.0])
    np.testing.assert_array_equal(sizes, [8, 16])
    np.testing.assert_array_equal(tested[1], expected)
    train, test = train_test_split(np.arange(len(X)), random_state=new_seed(0))
    parts = train_test_split(X, y, random_state=new_seed(0))
    score = clone(model).fit(*take(train, X, y)).score(*take(test, X, y))
    assert clone(model).fit(*parts[::2]).score(*parts[1::2]) == score
    tags = np.array(["O", "B-X", "I-X"])
    y = [tags[labels] for labels in y]
    model.set_params(solver_options__classes=None)
    fits = [clone(model).fit(*take(train, X, y)) for train, _ in folds]
    scores = cross_val_score(model, X, y, cv=3, scoring=entity_f1_scorer)
    np.testing.assert_array_equal(scores, scores_at(entity_f1_scorer))


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "chain-csr"])
def test_a_grid_search_compares_margin_and_slack_rescaling(kind):
    problem = make_problem(kind, n=24, model=SlackRescaledSSVM)
    grid = {"rescaling": ["slack", "margin"], "C": [0.01, 1.0]}
    search = GridSearchCV(problem.estimator(tol=1e-2), grid, cv=KFold(3))
    search.fit(problem.X, problem.y)
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        model = problem.estimator(tol=1e-2, **params)
        if params["rescaling"] == "margin":
            model = make_problem(kind, n=24).estimator(tol=1e-2, C=params["C"])
        scores = cross_val_score(model, problem.X, problem.y, cv=KFold(3))
        assert score == pytest.approx(np.mean(scores), abs=1e-14)
    best = search.best_estimator_
    assert_same_labels(search.predict(problem.X), best.predict(problem.X))


def test_a_pipeline_ends_in_a_model_of_chains():
    X, y = chains()
    pipe = make_pipeline(Scaled(), chain_model()).fit(X, y)
    scaled = Scaled().transform(X)
    assert_same_labels(pipe.predict(X), chain_model().fit(scaled, y).predict(scaled))
    grid = {
        "scaled__factor": [0.1, 1.0],
        "bcfwclassifier__structure__bias": [True, False],
    }
    search = GridSearchCV(pipe, grid, cv=2).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and len(set(scores)) > 1
    best = search.best_estimator_[-1]
    bias = search.best_params_["bcfwclassifier__structure__bias"]
    assert best.structure.bias == bias
    assert best.structure_.n_weights_ == 15 + 6 + 3 * bias + 9


@pytest.mark.parametrize(
    "estimator", [BCFWClassifier, BCFWClassifierCV, SlackRescaledSSVM]
)
def test_only_over_flat_structures_is_it_a_classifier_to_scikit_learn(estimator):
    for structure in ("auto", MulticlassStructure()):
        model = estimator(structure)
        assert is_classifier(model) and get_tags(model).input_tags.two_d_array
        assert get_tags(model).input_tags.sparse
    model = estimator(ChainStructure())
    assert not is_classifier(model)
    tags = get_tags(model)
    assert tags.estimator_type is None and tags.classifier_tags is None
    assert not tags.input_tags.two_d_array and tags.target_tags.required


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@for_each_estimator
@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_weights_are_routed_through_a_pipeline(routing, make_problem, kind):
    problem = make_problem(kind, n=24)
    weights = new_rng(0).uniform(size=problem.n)
    first = StandardScaler() if kind == "multiclass" else Scaled()
    if kind == "multiclass":
        first.set_fit_request(sample_weight=False)
    pipe = make_pipeline(first, problem.estimator().set_fit_request(sample_weight=True))
    pipe.fit(problem.X, problem.y, sample_weight=weights)
    X = clone(first).fit(problem.X).transform(problem.X)
    alone = problem.estimator().fit(X, problem.y, weights)
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)
    unweighted = problem.estimator().fit(X, problem.y)
    assert not np.array_equal(alone.coef_, unweighted.coef_)


@pytest.mark.parametrize("own_score", [False, True])
def test_weights_are_routed_through_a_search_to_fit_and_score(routing, own_score):
    X, y = chains()
    weights = new_rng(0).uniform(size=len(X))
    model = chain_model().set_fit_request(sample_weight=True)
    scoring = make_scorer(token_accuracy_score).set_score_request(sample_weight=True)
    if own_score:
        scoring = None
        model.set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"C": [0.01, 1.0]}, cv=KFold(3), scoring=scoring)
    search.fit(X, y, sample_weight=weights)
    for C, got in zip([0.01, 1.0], search.cv_results_["mean_test_score"], strict=True):
        expected = [
            chain_model(C=C)
            .fit(*take(train, X, y), weights[train])
            .score(*take(test, X, y), weights[test])
            for train, test in KFold(3).split(X)
        ]
        assert got == pytest.approx(np.mean(expected), abs=1e-14)


def test_nested_parameters_can_be_read_and_set():
    model = BCFWClassifier(MulticlassStructure())
    assert model.get_params()["structure__label_costs"] is None
    costs = [[0, 1], [5, 0]]
    model.set_params(structure__label_costs=costs, C=3.0)
    assert model.structure.label_costs is costs and model.C == 3.0
    copy = clone(model)
    assert copy.structure is not model.structure
    assert copy.get_params()["structure__label_costs"] == costs
    with pytest.raises(ValueError, match="Invalid parameter 'transition'"):
        model.set_params(structure__transition=False)


@pytest.mark.parametrize("words", [False, True])
def test_probabilities_by_fits_to_other_sequences(words):
    X, y = make_chains(15, n_features=4, n_classes=3, random_state=new_seed(0))
    model = CRFClassifier(tol=0.1, random_state=0)
    if words:
        y = [np.array(["c", "a", "b"])[labels] for labels in y]
        model = make_pipeline(SequenceTransformer(StandardScaler()), model)
    X[3], y[3] = X[3][:0], y[3][:0]
    found = cross_val_predict_proba(model, X, y, cv=3)
    assert found.shape == (15,)
    classes = np.unique(np.concatenate([labels for labels in y if len(labels)]))
    for train, test in KFold(3).split(X):
        alone = clone(model).fit(*take(train, X, y))
        columns = np.searchsorted(classes, alone.classes_)
        for i, rows in zip(test, alone.predict_proba(*take(test, X)), strict=True):
            np.testing.assert_array_equal(found[i][:, columns], rows)
            assert found[i].shape == (len(y[i]), len(classes))
    assert found[3].shape == (0, len(classes))
    assert token_log_loss(y, found, labels=classes) < np.inf
    # A label of one fold alone has its column.
    X = [np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]]), np.array([[2.0], [1.0]])]
    y = [[0, 2], [0, 2], [0, 5]]
    found = cross_val_predict_proba(CRFClassifier("chain"), X, y, cv=3)
    assert [rows.shape for rows in found] == [(2, 3)] * 3
    assert (found[2][:, 2] == 0.0).all() and (found[0][:, 2] > 0.0).all()
    np.testing.assert_allclose([rows.sum(axis=1) for rows in found], 1.0)


def test_probabilities_need_folds_and_sequences():
    X, y = make_chains(6, n_classes=2, random_state=new_seed(0))
    weights = np.ones(6)
    groups = [0, 0, 1, 1, 2, 2]
    found = cross_val_predict_proba(
        CRFClassifier("chain", tol=0.1), X, y, cv=GroupKFold(3), groups=groups,
        params={"sample_weight": weights},
    )  # fmt: skip
    assert len(found) == 6
    with pytest.raises(ValueError, match="the test part of exactly one fold"):
        cross_val_predict_proba(CRFClassifier("chain"), X, y, cv=[([0, 1, 2], [3, 4])])
    rows, labels = np.arange(8.0).reshape(-1, 1), [0, 1] * 4
    with pytest.raises(TypeError, match="CRFClassifier predicts rows"):
        cross_val_predict_proba(CRFClassifier(), rows, labels, cv=2)
    for bad in (None, 5, iter(X), "ab"):
        with pytest.raises(TypeError, match="^X must be a sequence with one item per ex"):
            cross_val_predict_proba(CRFClassifier("chain"), bad, y)
    for bad in (5, ["sample_weight"], {"sample_weight"}):
        with pytest.raises(TypeError, match="^params must be a dict or None; got"):
            cross_val_predict_proba(CRFClassifier("chain"), X, y, params=bad)
