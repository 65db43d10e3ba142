"""ConformalClassifier among scikit-learn's tools, and what it says of bad input."""

import pickle

import numpy as np
import pytest
import sklearn
from _checks import generated_checks
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_param_validation

from sklearn_structsvm import BCFWClassifier, ConformalClassifier, CRFClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.structures import MISSING, HierarchicalStructure


@generated_checks(
    [
        ConformalClassifier(confidence_level=0.5, random_state=0),
        ConformalClassifier(
            RidgeClassifier(), confidence_level=0.5, cv=0.4, random_state=0
        ),
    ],
    lambda estimator: {},
)
def test_generated_checks_pass(estimator, check):
    check(estimator)


def test_parameters_are_validated():
    check_param_validation("ConformalClassifier", ConformalClassifier())


class NeverFitted(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("fit was called")


def classes(n=80, k=3):
    rng = new_rng(0)
    y = np.arange(n) % k
    return rng.standard_normal((n, 2)) + y[:, np.newaxis], y


def chains(n=60):
    return make_chains(n, n_features=3, n_classes=3, random_state=new_seed(0))


FIELD = CRFClassifier(tol=1e-2, max_iter=30, random_state=0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"confidence_level": 0.96}, r"needs at least 24 examples .* There are 20"),
        ({"condition": "class", "cv": 0.1}, "needs at least 9 .* in one class"),
        ({"conformity_score": "likelihood"}, "not for one class per row"),
        ({"condition": "length"}, "condition='length' is not for one class"),
        ({"condition": "group"}, "need each other"),
        ({"coverage": "average", "cv": 4}, "need one held-out part"),
        ({"randomized": True}, "randomized=True requires"),
        ({"cv": 0.001}, "leaves 0 to calibrate and 80"),
        ({"cv": 81}, "needs at least as many examples; got n_samples=80"),
        ({"cv": [(np.arange(40), np.arange(40, 80))] * 2}, "at most one fold"),
        ({"cv": []}, "at least one"),
        ({"cv": [(np.arange(60), np.arange(40, 80))]}, "both its training and its test"),
    ],
)
def test_errors_come_before_any_fit(params, message):
    model = ConformalClassifier(NeverFitted(), **params)
    with pytest.raises(ValueError, match=message):
        model.fit(*classes())


@pytest.mark.parametrize("hidden", [MISSING, None, {0, 1}])
def test_calibration_needs_whole_labelings(hidden):
    X, y = chains()
    entries = [list(labels) for labels in y]
    entries[7][-1] = hidden
    with pytest.raises(ValueError, match=r"y\[7\] has hidden labels"):
        ConformalClassifier(FIELD).fit(X, entries)
    y = [labels.astype(float) for labels in y]
    y[7][-1] = np.nan
    with pytest.raises(ValueError, match=r"y\[7\] has hidden labels"):
        ConformalClassifier(FIELD).fit(X, y)


def test_a_score_that_the_estimator_cannot_give_is_refused_before_any_fit():
    with pytest.raises(TypeError, match="needs an estimator with predict_proba"):
        ConformalClassifier(RidgeClassifier(), conformity_score="aps").fit(*classes())
    piped = make_pipeline(FunctionTransformer(), LogisticRegression())
    piped.max_marginals = None
    for inner, params, error, words in (
        (FIELD, {"conformity_score": "aps"}, ValueError, "not for a labeling per exam"),
        (FIELD, {"conformity_score": np.negative}, ValueError, "callable .* takes prob"),
        (piped, {"conformity_score": "likelihood"}, TypeError, "estimator of this pack"),
        (FIELD, {"conformity_score": "likelihood", "coverage": "average"}, ValueError,
         "for whole labelings"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            ConformalClassifier(inner, **params).fit(*chains())


def test_failed_fits_and_later_parameters_change_no_sets():
    X, y = classes()
    model = ConformalClassifier(random_state=0).fit(X, y)
    before = model.predict_set(X)
    with pytest.raises(ValueError, match="needs at least 99 examples"):
        model.set_params(confidence_level=0.99).fit(X, y)
    np.testing.assert_array_equal(model.predict_set(X), before)
    model = ConformalClassifier(condition="class", cv=0.5, random_state=0).fit(X, y)
    before = model.predict_set(X)
    model.set_params(condition=None, conformity_score="aps", randomized=True)
    np.testing.assert_array_equal(model.predict_set(X), before)
    with pytest.raises(ValueError, match="confidence_level"):
        model.set_params(confidence_level=2.0).conformalize(X, y)


def test_parts_of_few_examples_and_lengths_without_get_full_sets():
    X, y = classes()
    model = ConformalClassifier(
        FrozenEstimator(LogisticRegression().fit(X, y)), condition="group"
    )
    groups = np.array(["many"] * 75 + ["few"] * 5)
    with pytest.warns(UserWarning, match="for the group 'few': it gets full sets"):
        model.fit(X, y, sensitive_features=groups)
    sets = model.predict_set(X, sensitive_features=groups)
    assert sets[75:].all() and not sets[:75].all()
    assert model.strata_ == ["few", "many"]
    assert model.n_calibration_.tolist() == [5, 75]
    report = model.set_report(X[75:], y[75:], sensitive_features=groups[75:])
    assert report["n_full"] == report["n_samples"] == 5
    with pytest.raises(ValueError, match="'other', which did not occur in fit"):
        model.predict_set(X[:1], sensitive_features=["other"])
    with pytest.raises(ValueError, match="sensitive_features are needed"):
        model.predict_set(X)
    X, y = chains()
    model = ConformalClassifier(FrozenEstimator(FIELD.fit(X, y)), condition="length")
    lengths = np.array([len(own) for own in y])
    most = lengths.max().item().bit_length() - 1
    chosen = np.flatnonzero((lengths >= 2**most) | (lengths > 3))
    model.set_params(confidence_level=0.5)
    model.fit([X[i] for i in chosen], [y[i] for i in chosen])
    (sets,) = model.predict_set([np.zeros((1, 3))])
    assert sets.all() and (2**most, 2 ** (most + 1) - 1) in model.strata_


def test_folds_rank_each_score_among_those_of_the_other_folds():
    X, y = classes(60)
    part = np.arange(60) // 3 % 3
    model = ConformalClassifier(
        LogisticRegression(), cv=PredefinedSplit(part), confidence_level=0.8
    ).fit(X, y)
    new = new_rng(1).standard_normal((30, 2)) + 1
    n_larger = np.zeros((30, 3), dtype=int)
    for fold in range(3):
        own = LogisticRegression().fit(X[part != fold], y[part != fold])
        known = 1.0 - own.predict_proba(X)[np.arange(60), y]
        scores = 1.0 - own.predict_proba(new)
        for i in np.flatnonzero(part == fold):
            n_larger += known[i] >= scores
    np.testing.assert_array_equal(model.predict_set(new), 5 * (n_larger + 1) > 61)
    whole = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(new), whole.predict_proba(new))
    assert np.isnan(model.thresholds_).all() and len(model.estimators_) == 3
    with pytest.raises(ValueError, match="conformalize needs one fitted estimator"):
        model.conformalize(X, y)


def test_folds_of_sequences_contain_all_labelings_that_folds_of_labelings_do():
    X, y = chains(40)
    part = np.arange(40) % 2
    model = ConformalClassifier(FIELD, cv=PredefinedSplit(part), confidence_level=0.8)
    model.fit(X, y)
    fits = []
    for fold in range(2):
        keep = np.flatnonzero(part != fold)
        fits.append(clone(FIELD).fit([X[i] for i in keep], [y[i] for i in keep]))
    new, truth = make_chains(20, n_features=3, n_classes=3, random_state=new_seed(1))

    def largest(own, X, y):
        pairs = zip(own.predict_proba(X), y, strict=True)
        return np.array([(1.0 - p[np.arange(len(t)), t]).max() for p, t in pairs])

    known = np.array([largest(own, X, y) for own in fits])[part, np.arange(40)]
    scores = np.array([largest(own, new, truth) for own in fits])[part]
    in_set = 5 * ((known[:, np.newaxis] >= scores).sum(axis=0) + 1) > 41
    for found, own, is_in in zip(model.predict_set(new), truth, in_set, strict=True):
        assert not is_in or found[np.arange(len(own)), own].all()


def test_a_held_out_part_is_a_fit_to_the_rest_and_a_calibration():
    X, y = classes()
    halves = [(np.arange(40), np.arange(40, 80))]
    model = ConformalClassifier(LogisticRegression(), cv=halves).fit(X, y)
    fitted = FrozenEstimator(LogisticRegression().fit(X[:40], y[:40]))
    by_hand = ConformalClassifier(fitted).conformalize(X[40:], y[40:])
    np.testing.assert_array_equal(model.predict_set(X), by_hand.predict_set(X))
    assert model.thresholds_ == by_hand.thresholds_
    masks = [(np.arange(80) < 40, np.arange(80) >= 40)]
    by_masks = ConformalClassifier(LogisticRegression(), cv=masks).fit(X, y)
    assert by_masks.thresholds_ == model.thresholds_
    other = model.conformalize(X[:40], y[:40]).thresholds_
    assert other == ConformalClassifier(fitted).fit(X[:40], y[:40]).thresholds_
    with pytest.raises(TypeError, match="already fitted"):
        by_hand.fit(X, y, sample_weight=np.ones(80))
    with pytest.raises(NotFittedError):
        ConformalClassifier(LogisticRegression(), cv="prefit").fit(X, y)
    with pytest.raises(NotFittedError):
        ConformalClassifier().conformalize(X, y)


def test_it_is_what_the_estimator_inside_is():
    assert is_classifier(ConformalClassifier())
    X, y = chains()
    model = ConformalClassifier(FIELD, confidence_level=0.8, random_state=0)
    search = GridSearchCV(model, {"estimator__C": [0.1, 1.0]}, cv=2).fit(X, y)
    best = search.best_estimator_
    assert best.score(X, y) == best.estimator_.score(X, y)
    for again in (pickle.loads(pickle.dumps(best)), clone(best).fit(X, y)):
        for one, other in zip(best.predict_set(X), again.predict_set(X), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("score", ["lac", "margin", "likelihood"])
def test_pipelines_and_searches_of_sequences_are_asked_through_their_parts(score):
    X, y = chains()
    doubled = FunctionTransformer(lambda X: [2.0 * x for x in X])
    piped = make_pipeline(doubled, clone(FIELD))
    halves = [(np.arange(30), np.arange(30, 60))]
    one = ConformalClassifier(piped, conformity_score=score, cv=halves).fit(X, y)
    inside = clone(FIELD).fit([2.0 * x for x in X[:30]], y[:30])
    other = ConformalClassifier(FrozenEstimator(inside), conformity_score=score)
    other.fit([2.0 * x for x in X[30:]], y[30:])
    assert one.thresholds_ == other.thresholds_
    found = other.predict_set([2.0 * x for x in X])
    for a, b in zip(one.predict_set(X), found, strict=True):
        np.testing.assert_array_equal(a, b)
    search = GridSearchCV(clone(FIELD), {"C": [0.1, 1.0]}, cv=2)
    model = ConformalClassifier(search, conformity_score=score, random_state=0)
    assert model.fit(X, y).predict_set(X)[0].shape == (len(y[0]), 3)


def test_metadata_reach_who_requests_them():
    X, y = classes()
    weights = new_rng(1).random(80)
    halves = [(np.arange(40), np.arange(40, 80))]
    plain = ConformalClassifier(LogisticRegression(), cv=halves)
    plain.fit(X, y, sample_weight=weights)
    expected = LogisticRegression().fit(X[:40], y[:40], sample_weight=weights[:40])
    np.testing.assert_array_equal(plain.estimator_.coef_, expected.coef_)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        routed = ConformalClassifier(inner, cv=halves).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(routed.estimator_.coef_, expected.coef_)
        grouped = ConformalClassifier(inner, cv=GroupKFold(4))
        grouped.fit(X, y, groups=np.arange(80) // 5)
        assert len(grouped.estimators_) == 4
        by_group = ConformalClassifier(condition="group", cv=0.5, random_state=0)
        by_group.set_fit_request(sensitive_features=True)
        piped = make_pipeline(StandardScaler(), by_group)
        piped.fit(X, y, sensitive_features=np.arange(80) % 2)
        assert piped[-1].strata_ == [0, 1]


class Shifted(LogisticRegression):
    """Its scores are of X plus an offset, which fits without one do not know."""

    def predict(self, X, offset=0.0):
        return super().predict(X + np.reshape(offset, (-1, 1)))

    def predict_proba(self, X, offset=0.0):
        return super().predict_proba(X + np.reshape(offset, (-1, 1)))

    def decision_function(self, X, offset=0.0):
        return super().decision_function(X + np.reshape(offset, (-1, 1)))

    def score(self, X, y, sample_weight=None, offset=0.0):
        return super().score(X + np.reshape(offset, (-1, 1)), y, sample_weight)


@pytest.mark.parametrize("cv", [0.5, 4, "prefit"])
@pytest.mark.parametrize("score", ["lac", "margin"])
def test_metadata_reach_the_method_that_scores_are_made_of(score, cv):
    X, y = classes()
    offset = new_rng(2).integers(-8, 9, len(X)) / 8.0
    options = {"conformity_score": score, "cv": cv, "random_state": 0}
    X_moved = X + offset[:, np.newaxis]
    fitted = Shifted().fit(X_moved, y)
    expected = ConformalClassifier(clone(fitted) if cv != "prefit" else fitted, **options)
    expected.fit(X_moved, y)

    class FittedToMoved(Shifted):
        def fit(self, X, y, offset):
            return super().fit(X + offset[:, np.newaxis], y)

    with sklearn.config_context(enable_metadata_routing=True):
        inner = Shifted()
        if cv != "prefit":
            inner = FittedToMoved().set_fit_request(offset=True)
        for name in ("predict", "predict_proba", "decision_function", "score"):
            getattr(inner, f"set_{name}_request")(offset=True)
        if cv == "prefit":
            inner.fit(X_moved, y)
        model = ConformalClassifier(inner, **options).fit(X, y, offset=offset)
        np.testing.assert_array_equal(model.thresholds_, expected.thresholds_)
        for method in ("predict_set", "predict", "predict_proba"):
            found = getattr(model, method)(X, offset=offset)
            np.testing.assert_array_equal(found, getattr(expected, method)(X_moved))
        assert model.score(X, y, offset=offset) == expected.score(X_moved, y)
        report = model.set_report(X, y, offset=offset)
        assert report == expected.set_report(X_moved, y)
        if cv != 4:
            model.conformalize(X, y, offset=offset)
            expected.conformalize(X_moved, y)
            np.testing.assert_array_equal(model.thresholds_, expected.thresholds_)


class OfGroups(LogisticRegression):
    def predict_proba(self, X, sensitive_features):
        found = super().predict_proba(X)
        return np.where(np.equal(sensitive_features, 1)[:, np.newaxis], found, 0.5)


def test_groups_reach_probabilities_that_request_them():
    X, y = classes(k=2)
    groups = np.arange(80) // 2 % 2
    with sklearn.config_context(enable_metadata_routing=True):
        inner = OfGroups().set_predict_proba_request(sensitive_features=True)
        model = ConformalClassifier(inner, condition="group", cv=0.5, random_state=0)
        model.set_fit_request(sensitive_features=True)
        model.fit(X, y, sensitive_features=groups)
        sets = model.predict_set(X, sensitive_features=groups)
    assert model.thresholds_[0] == 0.5
    assert sets[groups == 0].all() and not sets[groups == 1].all()


def test_metadata_and_labelings_that_scores_cannot_take_are_refused():
    X, y = chains()
    longer = [np.append(own, 0) for own in y]
    for score in ("lac", "likelihood"):
        model = ConformalClassifier(clone(FIELD), conformity_score=score, cv=0.5)
        model.fit(X, y)
        with pytest.raises(ValueError, match=r"y\[0\] has"):
            model.conformalize(X, longer)
    with pytest.raises(TypeError, match=r"max_marginals .* takes no \['offset'\]"):
        model.predict_set(X, offset=np.zeros(60))


def test_labels_may_come_in_all_the_ways_of_scikit_learn_and_rows_as_texts():
    X, _ = classes()
    Y = (new_rng(2).random((80, 3)) < 0.5).astype(int)
    Y[:2] = [[0, 0, 0], [1, 1, 1]]
    several = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    dense = ConformalClassifier(FrozenEstimator(several)).fit(X, Y)
    found = dense.predict_set(X)
    tables = several.predict_proba(X)
    expected = [1.0 - table[:, 1] <= dense.thresholds_ for table in tables]
    np.testing.assert_array_equal(found, np.column_stack(expected))
    from_csr = ConformalClassifier(FrozenEstimator(several))
    from_csr.fit(X, sparse.csr_array(Y))
    assert from_csr.thresholds_ == dense.thresholds_
    with pytest.raises(ValueError, match="label indicator matrix of 0 and 1"):
        dense.fit(X, Y + new_rng(3).random((80, 3)))
    texts = ["a b", "b c", "c a", "a", "b", "c"] * 5
    Y = np.array([[w in text for w in "ab"] for text in texts]).astype(int)
    labels = OneVsRestClassifier(LogisticRegression())
    inner = make_pipeline(CountVectorizer(analyzer=str.split), labels)
    model = ConformalClassifier(inner, confidence_level=0.5, random_state=0)
    assert model.fit(texts, Y).predict_set(texts).shape == (30, 2)
    with pytest.raises(ValueError, match="holds one class per row, but held several"):
        model.set_report(texts, Y[:, 0])


def test_classes_that_the_fit_has_not_seen_have_columns():
    X, y = classes()
    y = np.where(y == 0, "a", np.where(y == 1, "b", "c"))
    is_c = np.flatnonzero(y == "c")
    rest = np.flatnonzero(y != "c")
    halves = [(rest[:30], np.concatenate([rest[30:], is_c[:1]]))]
    model = ConformalClassifier(LogisticRegression(), cv=halves).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert not model.predict_set(X)[:, 2].any()
    names = model.set_names(model.predict_set(X))
    assert all(set(own) <= {"a", "b"} for own in names)
    assert model.set_report(X[is_c], y[is_c])["coverage"] == 0.0


def test_a_callable_score_is_that_of_lac_where_it_computes_it():
    X, y = classes()
    one = ConformalClassifier(conformity_score=np.negative, random_state=0).fit(X, y)
    other = ConformalClassifier(conformity_score="lac", random_state=0).fit(X, y)
    np.testing.assert_array_equal(one.predict_set(X), other.predict_set(X))
    with pytest.raises(ValueError, match="conformity_score of ravel must have shape"):
        ConformalClassifier(conformity_score=np.ravel, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="must hold numbers; got nan"):
        nan = ConformalClassifier(conformity_score=lambda p: p * np.nan)
        nan.fit(X, y)


def test_sets_of_a_hierarchy_are_named_by_nodes_and_those_of_sequences_by_positions():
    edges = [("animal", "cat"), ("animal", "dog"), ("plant", "oak")]
    rng = new_rng(4)
    Y = np.eye(3, dtype=int)[rng.integers(3, size=60)]
    X = Y + 0.1 * rng.standard_normal((60, 3))
    inner = BCFWClassifier(HierarchicalStructure(edges), step="pairwise", random_state=0)
    model = ConformalClassifier(inner, random_state=0).fit(X, Y)
    assert model.classes_.tolist() == ["cat", "dog", "oak"]
    names = model.set_names([[True, True, False], [True, False, True]])
    assert [own.tolist() for own in names] == [["animal"], ["cat", "plant"]]
    assert model.predict_set(X).shape == (60, 3)
    X, y = chains()
    model = ConformalClassifier(FIELD, random_state=0).fit(X, y)
    sets = model.predict_set(X)
    names = model.set_names(sets)
    assert [len(own) for own in names] == [len(own) for own in y]
    report = model.set_report(X, y)
    sizes = np.concatenate([own.sum(axis=1) for own in sets])
    assert report["mean_size"] == sizes.mean()
    for name, size in (("n_empty", 0), ("n_single", 1), ("n_full", 3)):
        assert report[name] == (sizes == size).sum()
    assert model.predict_set([]).shape == (0,)
    with pytest.raises(ValueError, match="needs conformity_score='likelihood'"):
        model.predict_lattice(X)


@pytest.mark.parametrize("inner", [None, GaussianNB()], ids=str)
def test_the_scale_of_weights_changes_no_set(inner):
    X, y = classes()
    weights = 1.0 + np.arange(len(y)) % 4
    model = ConformalClassifier(inner, random_state=0)
    once = clone(model).fit(X, y, sample_weight=weights).predict_set(X)
    again = clone(model).fit(X, y, sample_weight=weights / 2**12).predict_set(X)
    assert np.array_equal(again, once)
