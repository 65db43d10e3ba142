"""Metrics and constraints as scikit-learn's scorers, with metadata routed."""

import pickle

import numpy as np
import pytest
import sklearn
from _seeds import new_rng, new_seed
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    FBeta,
    GMean,
    Ordinal,
    Recall,
    confusion_tensor,
)

FOLDS = KFold(3, shuffle=True, random_state=0)


class GroupThresholds(ClassifierMixin, BaseEstimator):
    """Says "y" above a threshold that depends on the group, if it is told the group."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y, sample_weight=None, sensitive_features=None):
        self.classes_ = np.unique(y)
        self.fitted_with_ = sample_weight is not None, sensitive_features is not None
        return self

    def predict(self, X, sensitive_features=None):
        scores = X[:, 0].copy()
        if sensitive_features is not None:
            scores += self.shift * (np.asarray(sensitive_features) == "m")
        return self.classes_[(scores > 0.0).astype(int)]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def data():
    X, y = make_classification(
        n_samples=180, weights=[0.7], class_sep=0.7, flip_y=0.1, random_state=new_seed(0)
    )
    rng = new_rng(0)
    groups = np.array(["f", "m"])[rng.integers(2, size=len(y))]
    X = X - X.mean(axis=0)
    X[:, 0] = y - 0.5 + 0.6 * rng.normal(size=len(y))
    return X, np.array(["n", "y"])[y], groups, rng.integers(1, 4, size=len(y))


def by_fold(data, score):
    """`score` of the indices of each test fold, after a fit to the others."""
    X = data[0]
    return [score(train, test) for train, test in FOLDS.split(X)]


def test_an_object_given_as_scoring_scores_estimators(data):
    X, y, _, _ = data
    model = LogisticRegression()

    def expected(train, test):
        guess = clone(model).fit(X[train], y[train]).predict(X[test])
        return GMean()(y[test], guess)

    for scoring in (GMean(), GMean().scorer(), make_scorer(GMean())):
        scores = cross_val_score(model, X, y, cv=FOLDS, scoring=scoring)
        np.testing.assert_allclose(scores, by_fold(data, expected))


def test_costs_and_violations_are_scored_with_a_minus(data):
    X, y, groups, _ = data
    model = LogisticRegression().fit(X, y)
    guess = model.predict(X)
    for measure in (Ordinal(), Recall(label="y", at_least=0.99)):
        value = measure(y, guess)
        assert value > 0.0
        assert measure(model, X, y) == measure.scorer()(model, X, y) == -value
        assert make_scorer(measure, greater_is_better=False)(model, X, y) == -value
    parity = DemographicParity()
    found = parity.scorer()(model, X, y, sensitive_features=groups)
    assert found == -parity(y, guess, sensitive_features=groups)


def test_scorers_have_the_name_of_what_they_measure():
    assert repr(GMean().scorer()) == "make_scorer(g_mean, response_method='predict')"
    text = repr(FBeta().scorer(response="predict_proba"))
    assert text == "make_scorer(f_beta, response_method='predict_proba')"
    assert "greater_is_better=False" in repr(Recall(at_least=0.5, label="y").scorer())
    with pytest.raises(ValueError, match="response must be one of 'predict',"):
        GMean().scorer(response="decision_function")
    for response in ("predict", "predict_proba"):
        for thing in ({}, 3.0, object()):
            with pytest.raises(TypeError, match=f"has no method {response}, which is ne"):
                GMean().scorer(response=response)(thing, [[0]], [0])


def test_metrics_tune_thresholds(data):
    X, y, _, _ = data
    model = LogisticRegression()
    positive = model.fit(X, y).predict_proba(X)[:, 1]
    for scoring in (GMean().scorer(), make_scorer(GMean())):
        tuned = TunedThresholdClassifierCV(
            model, scoring=scoring, cv="prefit", refit=False, store_cv_results=True
        )
        tuned.fit(X, y)
        scores = [
            GMean()(y, model.classes_[(positive >= threshold).astype(int)])
            for threshold in tuned.cv_results_["thresholds"]
        ]
        np.testing.assert_allclose(tuned.cv_results_["scores"], scores, rtol=1e-12)
        assert tuned.best_score_ == pytest.approx(max(scores)) and max(scores) > 0
        assert tuned.best_score_ == pytest.approx(GMean()(y, tuned.predict(X)))


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="scikit-learn weights scores so since 1.9",
)
def test_weights_reach_the_score_without_routing_in_a_grid_search(data):
    X, y, _, weights = data
    model = LogisticRegression()

    def expected(train, test):
        fitted = clone(model).fit(X[train], y[train], sample_weight=weights[train])
        guess = fitted.predict(X[test])
        return GMean()(y[test], guess, sample_weight=weights[test])

    for scoring in (GMean(), GMean().scorer()):
        search = GridSearchCV(model, {"C": [1.0]}, scoring=scoring, cv=FOLDS)
        search.fit(X, y, sample_weight=weights)
        assert search.best_score_ == pytest.approx(np.mean(by_fold(data, expected)))


def test_weights_are_routed_where_they_are_asked_for(data, routing):
    X, y, _, weights = data
    model = LogisticRegression().set_fit_request(sample_weight=True)
    params = {"sample_weight": weights}

    def expected(weighted):
        def score(train, test):
            fitted = clone(model).fit(X[train], y[train], sample_weight=weights[train])
            s = weights[test] if weighted else None
            return GMean()(y[test], fitted.predict(X[test]), sample_weight=s)

        return by_fold(data, score)

    for wanted in (True, False):
        for scorer in (GMean().scorer(), make_scorer(GMean())):
            scorer.set_score_request(sample_weight=wanted)
            scores = cross_val_score(model, X, y, cv=FOLDS, scoring=scorer, params=params)
            np.testing.assert_allclose(scores, expected(wanted))
    scorer = GMean().scorer()
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
        cross_val_score(model, X, y, cv=FOLDS, scoring=scorer, params=params)
    # A request that is not named stays as it is.
    scorer.set_score_request(sample_weight=True)
    requests = scorer.get_metadata_routing().score.requests
    assert requests["sample_weight"] is True
    assert requests["sensitive_features"] is True
    scorer.set_score_request(sensitive_features="gender")
    requests = scorer.get_metadata_routing().score.requests
    assert requests["sensitive_features"] == "gender"


def group_model(shift=0.6):
    return (
        GroupThresholds(shift)
        .set_fit_request(sensitive_features=True, sample_weight=False)
        .set_predict_request(sensitive_features=True)
    )


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_groups_are_routed_to_the_score_and_to_predict(data, routing, in_pipeline):
    X, y, groups, _ = data
    model = group_model()
    if in_pipeline:
        model = make_pipeline(StandardScaler(with_mean=False), model)

    for measure in (GMean(), DemographicParity()):

        def expected(train, test, measure=measure):
            fitted = clone(model).fit(X[train], y[train])
            guess = fitted.predict(X[test], sensitive_features=groups[test])
            assert (guess != fitted.predict(X[test])).any()
            sign = 1 if measure.greater_is_better else -1
            return sign * measure(y[test], guess, sensitive_features=groups[test])

        scores = cross_val_score(
            model, X, y, cv=FOLDS, scoring=measure.scorer(),
            params={"sensitive_features": groups},
        )  # fmt: skip
        np.testing.assert_allclose(scores, by_fold(data, expected))


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_scorer_that_is_called_hands_groups_on_without_routing(data, in_pipeline):
    """To a predict that takes them, and to no other one."""
    X, y, groups, weights = data
    known = {"sensitive_features": groups}
    for model, given in ((GroupThresholds(0.6), known), (LogisticRegression(), {})):
        if in_pipeline:
            model = make_pipeline(StandardScaler(with_mean=False), model)
        guess = model.fit(X, y).predict(X, **given)
        kwargs = {"sample_weight": weights} | known
        assert GMean().scorer()(model, X, y, **kwargs) == GMean()(y, guess, **kwargs)
        assert GMean()(model, X, y, **kwargs) == GMean()(y, guess, **kwargs)
        parity = DemographicParity()
        found = parity.scorer()(model, X, y, **known)
        assert found == -parity(y, guess, **known)


def test_probabilities_are_scored_as_a_randomized_classifier(data):
    X, y, groups, weights = data
    model = LogisticRegression().fit(X[y == "y"][:5].repeat(2, 0), ["n", "y"] * 5)
    model.fit(X, y)
    P = model.predict_proba(X)
    kwargs = {"sample_weight": weights, "sensitive_features": groups}
    C, _ = confusion_tensor(y, P, labels=["n", "y"], **kwargs)
    for measure in (GMean(), FBeta(pos_label="y"), DemographicParity()):
        found = measure.scorer(response="predict_proba")(model, X, y, **kwargs)
        sign = 1 if measure.greater_is_better else -1
        assert found == sign * measure(y, P, labels=["n", "y"], **kwargs)
    rng = new_rng(0)
    draws = [
        GMean()(y, np.where(rng.random(len(y)) < P[:, 1], "y", "n")) for _ in range(300)
    ]
    expected = GMean().scorer(response="predict_proba")(model, X, y)
    assert np.mean(draws) == pytest.approx(expected, abs=0.01)


def test_a_class_that_a_fold_lacks_does_not_move_the_ranks():
    X = np.zeros((3, 1))
    model = DummyClassifier(strategy="constant", constant=3).fit(X, [1, 2, 3])
    for response in ("predict", "predict_proba"):
        scorer = Ordinal().scorer(response=response)
        assert scorer(model, X, [1, 1, 3]) == pytest.approx(-4 / 3)
        assert scorer(model, X, [1, 1, 4]) == pytest.approx(-5 / 3)


def test_churn_is_scored_against_its_baseline(data):
    X, y, groups, _ = data
    baseline = DummyClassifier(strategy="constant", constant="n").fit(X, y)
    model = LogisticRegression().fit(X, y)
    found = Churn(baseline, at_most=0.1).scorer()(model, X, y)
    assert found == pytest.approx(0.1 - np.mean(model.predict(X) != "n"))
    aware = GroupThresholds(5.0).fit(X, y)
    labels = aware.predict(X, sensitive_features=groups)
    found = Churn(aware, at_most=0.1).scorer()(model, X, y, sensitive_features=groups)
    assert found == pytest.approx(0.1 - np.mean(model.predict(X) != labels))


def test_scorers_are_pickled_and_cloned(data):
    X, y, _, _ = data
    model = LogisticRegression().fit(X, y)
    for measure in (GMean(), FBeta(pos_label="n"), Recall(at_least=0.5, label="y")):
        scorer = measure.scorer()
        expected = scorer(model, X, y)
        assert pickle.loads(pickle.dumps(scorer))(model, X, y) == expected
        assert clone(scorer, safe=False)(model, X, y) == expected
