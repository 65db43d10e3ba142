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
    entity_f1_score,
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


@forms
def test_a_grid_search_reaches_the_parameters_of_the_structure(container, sparse):
    X, y = chains(container, sparse)
    grid = {"C": [0.01, 1.0], "structure__transition": [True, False]}
    search = GridSearchCV(chain_model(), grid, cv=3).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and len(set(scores)) > 1
    best = search.best_estimator_
    assert best.structure.transition == search.best_params_["structure__transition"]
    assert best.structure_.n_weights_ == 15 + 9 + 9 * best.structure.transition
    assert_same_labels(search.predict(X), best.predict(X))
    assert search.score(X, y) == best.score(X, y)


@forms
def test_cross_validated_scores_are_those_of_the_folds_by_hand(container, sparse):
    X, y = chains(container, sparse)
    scores = cross_val_score(chain_model(), X, y, cv=3)
    expected = [
        chain_model().fit(*take(train, X, y)).score(*take(test, X, y))
        for train, test in KFold(3).split(X)
    ]
    np.testing.assert_array_equal(scores, expected)
    named = cross_val_score(chain_model(), X, y, cv=3, scoring=token_accuracy_scorer)
    np.testing.assert_array_equal(named, expected)


@forms
@pytest.mark.parametrize("equal", [{}, {"min_length": 4, "max_length": 4}], ids=str)
def test_cross_val_predict_puts_each_sequence_in_its_place(container, sparse, equal):
    X, y = chains(container, sparse, **equal)
    predicted = cross_val_predict(chain_model(), X, y, cv=3)
    assert len(predicted) == len(X)
    for train, test in KFold(3).split(X):
        model = chain_model().fit(*take(train, X, y))
        (expected,) = take(test, predicted)
        assert_same_labels(expected, model.predict(*take(test, X)))


@forms
def test_a_learning_curve_and_a_split_take_sequences(container, sparse):
    X, y = chains(container, sparse)
    sizes, *scores = learning_curve(chain_model(), X, y, cv=3, train_sizes=[0.5, 1.0])
    np.testing.assert_array_equal(sizes, [8, 16])

    def by_hand(train, *tests):
        model = chain_model().fit(*take(train, X, y))
        return [model.score(*take(test, X, y)) for test in tests]

    folds = list(KFold(3).split(X))
    expected = [
        [by_hand(train[:size], train[:size], test) for train, test in folds]
        for size in sizes
    ]
    np.testing.assert_array_equal(scores, np.moveaxis(expected, 2, 0))
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=new_seed(0))
    train, test = train_test_split(np.arange(len(X)), random_state=new_seed(0))
    score = chain_model().fit(X_train, y_train).score(X_test, y_test)
    assert [score] == by_hand(train, test)


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "chain-csr"])
def test_a_grid_search_compares_margin_and_slack_rescaling(kind):
    problem = make_problem(kind, n=24, model=SlackRescaledSSVM)
    grid = {"rescaling": ["slack", "margin"], "C": [0.01, 1.0]}
    search = GridSearchCV(problem.estimator(tol=1e-2), grid, cv=KFold(3))
    search.fit(problem.X, problem.y)
    splits = list(KFold(3).split(problem.y))
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        scores = [
            problem.estimator(tol=1e-2, **params)
            .fit(*problem.take(train))
            .score(*problem.take(test))
            for train, test in splits
        ]
        assert score == pytest.approx(np.mean(scores), abs=1e-14)
        if params["rescaling"] == "margin":
            other = make_problem(kind, n=24).estimator(tol=1e-2, C=params["C"])
            margin = cross_val_score(other, problem.X, problem.y, cv=KFold(3))
            np.testing.assert_array_equal(scores, margin)
    best = search.best_estimator_
    assert_same_labels(search.predict(problem.X), best.predict(problem.X))


def test_entity_f1_scores_a_search():
    X, y = chains()
    tags = np.array(["O", "B-X", "I-X"])
    y = [tags[labels] for labels in y]
    scores = cross_val_score(chain_model(), X, y, cv=3, scoring=entity_f1_scorer)
    expected = []
    for train, test in KFold(3).split(X):
        predicted = chain_model().fit(*take(train, X, y)).predict(*take(test, X))
        expected.append(entity_f1_score(*take(test, y), predicted))
    np.testing.assert_array_equal(scores, expected)


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
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


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


@pytest.mark.parametrize("lengths", [(1, 1), (4, 4), (1, 6)])
def test_the_splitter_does_not_depend_on_what_the_sequences_look_like(lengths):
    X, y = chains(min_length=lengths[0], max_length=lengths[1])
    # A fold may lack a label.
    model = chain_model(classes=[0, 1, 2])
    splitter = check_cv(3, y, classifier=is_classifier(model))
    assert isinstance(splitter, KFold) and not isinstance(splitter, StratifiedKFold)
    scores = cross_val_score(model, X, y, cv=3)
    np.testing.assert_array_equal(scores, cross_val_score(model, X, y, cv=KFold(3)))


def test_a_fold_that_lacks_a_label_is_scored_and_classes_name_it():
    X, y = chains(n=9)
    y = [np.where(labels == 2, 1, labels) for labels in y]
    y[0][0] = 2
    scores = cross_val_score(chain_model(classes=[0, 1, 2]), X, y, cv=KFold(3))
    assert np.isfinite(scores).all()
    with pytest.warns(UserWarning, match="not seen in fit: 2"):
        without = cross_val_score(chain_model(), X, y, cv=KFold(3))
    assert without[0] < 1.0 and np.isfinite(without).all()


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


@for_each_estimator
@pytest.mark.parametrize("kind", ["binary", "multilabel"])
def test_names_of_columns_are_kept_and_checked(make_problem, kind):
    pandas = pytest.importorskip("pandas")
    problem = make_problem(kind)
    names = [f"feature {j}" for j in range(problem.X.shape[1])]
    frame = pandas.DataFrame(problem.X, columns=names)
    model = problem.estimator().fit(frame, problem.y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.coef_, problem.fitted().coef_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])
    model.fit(problem.X, problem.y)
    assert not hasattr(model, "feature_names_in_")


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


def test_a_label_of_one_fold_alone_has_its_column():
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
