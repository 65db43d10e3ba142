"""A structure over any classifier is its parts put together by hand, without leakage."""

import pickle

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from joblib import parallel_config
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import (
    BCFWClassifier,
    ConformalClassifier,
    CRFClassifier,
    CRFClassifierCV,
    SlackRescaledSSVM,
    StackedStructureClassifier,
    uncertainty,
)
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import MISSING, ChainStructure, GraphStructure

CLASSES = np.array(["run", "sit", "walk"])


def series(n=12, length=25, noise=1.0):
    """Series of long runs of labels, with noisy features of single rows."""
    rng = new_rng()
    y = [np.repeat(rng.permuted(np.tile(CLASSES, 2)), 5)[:length] for _ in range(n)]
    onehot = [(labels[:, None] == CLASSES).astype(float) for labels in y]
    return [x + noise * rng.normal(size=x.shape) for x in onehot], y


def logs_by_hand(X, y, weights, groups, cv):
    """Out-of-fold log-probabilities of the items, and the least probability."""
    rows, labels, s = np.vstack(X), np.concatenate(y), np.repeat(weights, 25)
    items = np.repeat(np.arange(len(X)), 25)
    logs = np.empty((len(rows), 3))
    for train, test in cv.split(X, y, groups):
        own, other = np.isin(items, test), np.isin(items, train)
        fitted = LogisticRegression().fit(rows[other], labels[other], s[other])
        logs[own] = np.log(fitted.predict_proba(rows[own]))
    low = logs < -np.log(len(rows))
    right = low[labels[:, None] == CLASSES].sum()
    least = max(1 / len(rows), (1 + right) / (len(rows) + low.sum()))
    return np.split(np.maximum(logs, np.log(least)), len(X)), least


@pytest.mark.parametrize(
    ("final", "passthrough", "way"),
    [(CRFClassifier, False, "plain"), (CRFClassifier, True, "weights"),
     (CRFClassifier, False, "groups"), (BCFWClassifier, False, "weights"),
     (BCFWClassifier, True, "groups"), (SlackRescaledSSVM, False, "groups"),
     (SlackRescaledSSVM, True, "plain"), (CRFClassifierCV, False, "plain")],
)  # fmt: skip
def test_it_is_its_parts_put_together_by_hand(passthrough, final, way):
    X, y = series()
    weights = new_rng().integers(1, 4, size=len(X)).astype(float)
    weights = weights if way == "weights" else np.ones(len(X))
    groups = np.repeat([0, 1, 2, 3], 3) if way == "groups" else None
    cv = GroupKFold(2) if way == "groups" else KFold(5)
    model = StackedStructureClassifier(
        LogisticRegression(), final("chain", random_state=0), passthrough=passthrough,
        cv=cv if way == "groups" else None, n_jobs=2,
    )  # fmt: skip
    given = {"groups": groups} if way == "groups" else {}
    with parallel_config("threading"):
        model.fit(X, y, weights if way == "weights" else None, **given)
    items, least = logs_by_hand(X, y, weights, groups, cv)
    np.testing.assert_allclose(model.least_probability_, least)
    if passthrough:
        items = list(zip(X, items, strict=True))
    structure = ChainStructure(emission="both" if passthrough else "given")
    by_hand = final(structure, random_state=0).fit(items, y, weights)
    np.testing.assert_array_equal(model.final_estimator_.coef_, by_hand.coef_)
    base = LogisticRegression()
    base.fit(np.vstack(X), np.concatenate(y), np.repeat(weights, 25))
    np.testing.assert_array_equal(model.estimator_.coef_, base.coef_)
    scores = [np.log(np.maximum(base.predict_proba(x), least)) for x in X]
    new = list(zip(X, scores, strict=True)) if passthrough else scores
    copied = pickle.loads(pickle.dumps(model))
    expected = by_hand.predict(new)
    for found in (model.predict(X), copied.predict(X)):
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(own, other)
    assert model.score(X, y) == by_hand.score(new, y)
    # Context mends labels that flicker.
    assert model.score(X, y) > base.score(np.vstack(X), np.concatenate(y))


def long_series(n=24, length=200, own=0.7):
    """A few long segments, and features that are off for a whole series."""
    rng, X, y = new_rng(), [], []
    for _ in range(n):
        codes = rng.permutation([0, 1, 2, *rng.integers(3, size=5)])
        labels = np.repeat(codes, length // 8)
        noise = own * rng.normal(size=3) + 0.7 * rng.normal(size=(length, 3))
        X.append(np.eye(3)[labels] + noise)
        y.append(labels)
    return X, y


def test_an_item_counts_as_one_row_or_ten_by_the_folds():
    X, y = long_series()
    model = StackedStructureClassifier(LogisticRegression()).fit(X, y)
    scores = np.empty((5, 4))
    ways = [(C, how) for C in (1 / 200, 10 / 200) for how in ("mbr", "map")]
    rows, labels = np.vstack(X), np.concatenate(y)
    least, items = model.least_probability_, np.repeat(np.arange(24), 200)
    logs = np.empty((len(rows), 3))
    for train, test in KFold(5).split(X):
        base = LogisticRegression()
        base.fit(rows[np.isin(items, train)], labels[np.isin(items, train)])
        own = np.isin(items, test)
        logs[own] = np.log(np.maximum(base.predict_proba(rows[own]), least))
    logs = np.split(logs, 24)
    tests = [test for _, test in KFold(5).split(X)]
    for held in ([0, 3], [1, 4], [2]):
        train = np.concatenate([tests[f] for f in range(5) if f not in held])
        for k, (C, decoding) in enumerate(ways):
            final = CRFClassifier(ChainStructure(emission="given"), C=C)
            final.set_params(solver_options__decoding=decoding)
            final.fit([logs[i] for i in train], [y[i] for i in train])
            for f in held:
                own = [logs[i] for i in tests[f]], [y[i] for i in tests[f]]
                scores[f, k] = final.score(*own)
    gains = scores - scores[:, :1]
    mean = gains.mean(axis=0)
    is_sure = mean > gains.std(axis=0, ddof=1) / np.sqrt(5)
    expected = ways[int(np.where(is_sure, mean, 0.0).argmax())]
    final = model.final_estimator_
    assert (final.C, final._decoding) == (pytest.approx(expected[0]), expected[1])
    prefit = LogisticRegression().fit(np.vstack(X), np.concatenate(y))
    one = StackedStructureClassifier(prefit, cv="prefit").fit(X[:1], y[:1])
    assert (one.final_estimator_.C, one.final_estimator_._decoding) == (1 / 200, "mbr")


def test_labels_that_a_forest_calls_impossible_are_as_likely_as_they_are_right():
    X, y = series(noise=2.0)
    tree = DecisionTreeClassifier(random_state=0)
    model = StackedStructureClassifier(tree, cv=3).fit(X, y)
    rows, labels = np.vstack(X), np.concatenate(y)
    items, wrong, n_zeros = np.repeat(np.arange(12), 25), 0, 0
    for train, test in KFold(3).split(X):
        own, other = np.isin(items, test), np.isin(items, train)
        proba = clone(tree).fit(rows[other], labels[other]).predict_proba(rows[own])
        n_zeros += (proba == 0.0).sum()
        wrong += (proba[labels[own][:, None] == CLASSES] == 0.0).sum()
    np.testing.assert_allclose(model.least_probability_, (1 + wrong) / (300 + n_zeros))
    scores = np.vstack(model._scored(X))
    np.testing.assert_allclose(scores.min(), np.log(model.least_probability_))


@pytest.mark.parametrize("base", [DecisionTreeClassifier(), KNeighborsClassifier(1)])
def test_a_classifier_that_memorizes_gains_no_trust(base):
    """It is right about rows that it was fitted to, but not about others."""
    X, y = long_series(own=0.2)
    rows, labels = np.vstack(X[12:]), np.concatenate(y[12:])
    fitted = clone(base).fit(np.vstack(X[:12]), np.concatenate(y[:12]))
    trust, scores = [], [fitted.score(rows, labels)]
    for model, cv in ((base, 5), (fitted, "prefit")):
        model = StackedStructureClassifier(model, cv=cv).fit(X[:12], y[:12])
        final = model.final_estimator_
        trust += final.structure_.weight_parts(final.coef_)["emission"].tolist()
        scores.append(model.score(X[12:], y[12:]))
    assert abs(trust[0]) < 0.8 * abs(trust[1])
    assert scores[1] > max(scores[0], scores[2])


def test_columns_that_only_the_classifier_can_read_go_to_it():
    X, y = series()
    frames = [
        frame.assign(kind=pd.Categorical(np.where(frame.a > 0.5, "high", "low"),
                                         categories=["high", "low"]),
                     b=frame.b.where(frame.b > 0))
        for frame in (pd.DataFrame(x, columns=list("abc")) for x in X)
    ]  # fmt: skip
    columns = make_column_transformer(
        (OneHotEncoder(), ["kind"]), (SimpleImputer(), ["a", "b", "c"])
    )
    base = make_pipeline(columns, LogisticRegression())
    model = StackedStructureClassifier(base, cv=3).fit(frames, y)
    alone = model.estimator_.score(pd.concat(frames), np.concatenate(y))
    assert model.score(frames, y) > alone
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "kind"]
    with pytest.raises(ValueError, match=r"passthrough=True needs.*X\[0\]"):
        clone(model).set_params(passthrough=True).fit(frames, y)
    items = [sparse.csr_array(x) for x in X]
    scores = [
        StackedStructureClassifier(LogisticRegression()).fit(own, y).score(own, y)
        for own in (X, items)
    ]
    np.testing.assert_allclose(*scores, atol=0.02)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "tokens"])
def test_items_of_every_library_are_fitted_as_their_arrays(kind):
    X, y = series()
    base, names = LogisticRegression(), ["a", "b", "c"]
    by_hand = StackedStructureClassifier(base, cv=3).fit(X, y)
    if kind == "tokens":
        base = make_pipeline(DictVectorizer(sparse=False), base)
        items = [[dict(zip(names, row, strict=True)) for row in x.tolist()] for x in X]
    else:
        library = pytest.importorskip(kind)
        make = library.table if kind == "pyarrow" else library.DataFrame
        items = [make({name: x[:, j] for j, name in enumerate(names)}) for x in X]
    model = StackedStructureClassifier(base, cv=3).fit(items, y)
    found, expected = model.final_estimator_, by_hand.final_estimator_
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    for own, other in zip(model.predict(items), by_hand.predict(X), strict=True):
        np.testing.assert_array_equal(own, other)
    assert list(getattr(model, "feature_names_in_", names)) == names


@pytest.mark.filterwarnings("ignore:Could not find the number of physical cores")
def test_categories_and_missing_labels_are_those_of_all_items():
    """Items read from files of their own know only the categories that they have."""
    X, y = series()
    kinds = [np.where(x[:, 0] > 0, "up", f"down {i % 2}") for i, x in enumerate(X)]
    frames = [pd.DataFrame({"kind": kind, "b": x[:, 1]}).astype({"kind": "category"})
              for kind, x in zip(kinds, X, strict=True)]  # fmt: skip
    y[0] = np.where(np.arange(25) < 2, None, y[0])
    base = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5)
    with pytest.warns(UserWarning, match="None or NaN: 2 of 300") as warned:
        model = StackedStructureClassifier(base, cv=3).fit(frames, y)
    assert sum("None or NaN" in str(own.message) for own in warned) == 1
    assert model.estimator_.is_categorical_.tolist() == [True, False]
    with pytest.raises(ValueError, match="single numbers: for one feature use"):
        model.fit([x[:, 0] for x in X], y)


def test_graphs_and_trees_keep_their_edges():
    X, y = series()
    edges = np.column_stack([np.arange(24), np.arange(1, 25)])
    parents = np.arange(-1, 24)
    for rest in (edges, parents):
        items = [(x, rest) for x in X]
        model = StackedStructureClassifier(LogisticRegression()).fit(items, y)
        alone = model.estimator_.score(np.vstack(X), np.concatenate(y))
        assert model.score(items, y) > alone
        rows = [(x[:1], rest[:1] if rest is parents else rest[:0]) for x in X[:2]]
        assert [len(labels) for labels in model.predict(rows)] == [1, 1]
    both = StackedStructureClassifier(LogisticRegression(), passthrough=True)
    assert both.fit(items, y).predict(items[-1:])[0].shape == (25,)
    # Graphs without edges, all or the first, are no trees.
    y = [y[0][:1], *y[1:]]
    for rest in ([], edges):
        items = [(X[0][:1], []), *((x, rest) for x in X[1:])]
        model = StackedStructureClassifier(LogisticRegression()).fit(items, y)
        assert isinstance(model.final_estimator_.structure_, GraphStructure)


def test_an_item_with_most_of_the_rows_is_said_to_leave_few_for_its_scores():
    """Such as the giant component of a graph."""
    X, y = series()
    X, y = [np.vstack(X[:8]), *X[8:]], [np.concatenate(y[:8]), *y[8:]]
    model = StackedStructureClassifier(LogisticRegression(), cv=2)
    with pytest.warns(UserWarning, match=r"X\[0\] has 67% .* to 100 others.*max_rows"):
        model.fit(X, y)
    halves = [np.vstack(X[1:]), X[0][:100]], [np.concatenate(y[1:]), y[0][:100]]
    model.fit(*halves)
    prefit = LogisticRegression().fit(X[0], y[0])
    StackedStructureClassifier(prefit, cv="prefit").fit(X, y)


def test_hidden_labels_are_left_out_below_and_hidden_above():
    X, y = series()
    hidden = [labels.astype(object) for labels in y]
    for labels in hidden:
        labels[::3] = MISSING
        labels[1] = {labels[1], "walk" if labels[1] == "run" else "run"}
    model = StackedStructureClassifier(LogisticRegression()).fit(X, hidden)
    keep = [np.array([isinstance(own, str) for own in labels]) for labels in hidden]
    rows = np.vstack([x[own] for x, own in zip(X, keep, strict=True)])
    labels = np.concatenate([own[k] for own, k in zip(y, keep, strict=True)])
    by_hand = LogisticRegression().fit(rows, labels)
    np.testing.assert_array_equal(model.estimator_.coef_, by_hand.coef_)
    assert model.score(X, y) > by_hand.score(np.vstack(X), np.concatenate(y))
    # Integers beside hidden labels are labels, and folds without any choose nothing.
    codes = [np.searchsorted(CLASSES, labels).astype(object) for labels in y]
    for labels in codes[:5]:
        labels[:] = MISSING
    items = [X[0][:0]] * 3 + X, [y[0][:0]] * 3 + codes
    for data, cv in (((X, codes), None), (items, 7)):
        model = StackedStructureClassifier(LogisticRegression(), cv=cv).fit(*data)
        assert model.score(X, [np.searchsorted(CLASSES, own) for own in y]) > 0.4
        assert model.classes_.tolist() == [0, 1, 2]
        assert {own.dtype.kind for own in model.predict(X)} == {"i"}


def test_each_fold_has_items_with_labels_wherever_they_stand():
    X, y = series()
    few = [own if i < 4 else np.full(len(own), MISSING) for i, own in enumerate(y)]
    order = new_rng().permutation(12)
    for places in (np.arange(12), order):
        given = [X[i] for i in places], [few[i] for i in places]
        model = StackedStructureClassifier(LogisticRegression(), cv=3).fit(*given)
        by_hand = LogisticRegression().fit(
            np.vstack([X[i] for i in places if i < 4]),
            np.concatenate([y[i] for i in places if i < 4]),
        )
        np.testing.assert_array_equal(model.estimator_.coef_, by_hand.coef_)
        assert model.score(X, y) > 0.4


@pytest.mark.parametrize("base", [LogisticRegression(), LinearSVC()])
def test_a_fold_may_lack_all_classes_but_one(base):
    """Of sensor data, what happens to one person only."""
    X, y = series(n=2)
    y = [np.full(25, "walk"), np.repeat(["walk", "fall"], [20, 5])]
    cv = [([0], [1]), ([1], [0])]
    final = CRFClassifier(ChainStructure(emission="given"), random_state=0)
    model = StackedStructureClassifier(base, final, cv=cv).fit(X, y)
    fitted = clone(base).fit(X[1], y[1])
    if hasattr(base, "predict_proba"):
        least = np.log(model.least_probability_)
        logs = fitted.predict_log_proba(X[0]), np.tile([-np.inf, 0.0], (25, 1))
        items = [np.maximum(own, least) for own in logs]
    else:
        distances = fitted.decision_function(X[0])[:, np.newaxis]
        items = [0.5 * distances * [-1, 1], np.zeros((25, 2))]
    coef = final.fit(items, y).coef_
    np.testing.assert_allclose(model.final_estimator_.coef_, coef, atol=1e-9)


def test_classes_of_a_fitted_classifier_that_y_lacks_are_left_out():
    X, y = series()
    prefit = LogisticRegression().fit(np.vstack(X), np.concatenate(y))
    few = [np.where(labels == "run", "walk", labels) for labels in y]
    model = StackedStructureClassifier(prefit, cv="prefit").fit(X, few)
    kept = [list(CLASSES).index(label) for label in model.classes_]
    assert model.classes_.tolist() == sorted(set(CLASSES) - {"run"})
    logs = np.log(np.maximum(prefit.predict_proba(np.vstack(X)), 1e-300))[:, kept]
    least = np.log(model.least_probability_)
    np.testing.assert_array_equal(np.vstack(model._scored(X)), logs.clip(least))
    with pytest.raises(ValueError, match="not one of the classes"):
        model.fit(X, [np.full(len(labels), 7) for labels in y])


def test_items_without_weight_labels_or_rows_count_as_no_row():
    X, y = series()
    whole = StackedStructureClassifier(LogisticRegression()).fit(X, y)
    hidden = [np.full(25, MISSING), np.full(25, MISSING)]
    folds = enumerate(KFold(4).split(X))
    folds = [(train, [*test, 12 + k]) for k, (train, test) in folds]
    model = StackedStructureClassifier(LogisticRegression(), cv=folds)
    model.fit([*X, *X[:2], X[0][:0], X[0][:0]], [*y, *hidden, y[0][:0], y[0][:0]])
    C = {whole.final_estimator_.C, model.final_estimator_.C}
    assert C <= {1 / 25, 10 / 25}
    weights = np.ones(12)
    weights[-3:] = 0.0
    model = StackedStructureClassifier(LogisticRegression()).fit(X, y, weights)
    rows, labels = np.vstack(X[:-3]), np.concatenate(y[:-3])
    by_hand = LogisticRegression().fit(rows, labels, np.ones(len(rows)))
    np.testing.assert_array_equal(model.estimator_.coef_, by_hand.coef_)
    assert model.least_probability_ >= 1 / len(rows)
    with pytest.raises(ValueError, match="sample_weight must not be zero"):
        model.fit(X, y, np.zeros(12))
    # Their scale does not matter to the default.
    weights = new_rng(7).uniform(0.5, 2.0, 12)
    one, other = (
        StackedStructureClassifier(GaussianNB()).fit(X, y, own).final_estimator_
        for own in (weights, 2.0**-7 * weights)
    )
    assert other.C == pytest.approx(2.0**7 * one.C)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6, atol=1e-9)


def test_scores_of_pairs_of_classes_are_refused():
    """Three classes have three pairs, so that their number tells nothing."""
    X, y = series()
    base, rows = SVC(decision_function_shape="ovo"), (np.vstack(X), np.concatenate(y))
    stacked = StackedStructureClassifier(base)
    sets = ConformalClassifier(base, confidence_level=0.5, conformity_score="margin")
    for model, given in ((stacked, (X, y)), (sets, rows)):
        with pytest.raises(ValueError, match=r"each class; got one for each pair"):
            model.fit(*given)


@pytest.mark.parametrize("given", [False, True])
def test_weights_of_rows_multiply_those_of_their_items(given):
    X, y = series()
    rng = new_rng(8)
    of_items = rng.integers(1, 4, size=12).astype(float) if given else None
    of_rows = [rng.integers(0, 3, size=25) if i % 3 else None for i in range(12)]
    pairs = [
        labels if own is None else (labels, own.tolist())
        for labels, own in zip(y, of_rows, strict=True)
    ]
    base = make_pipeline(StandardScaler(), LogisticRegression())
    cv = [(np.arange(6, 12), np.arange(6)), (np.arange(6), np.arange(6, 12))]
    final = BCFWClassifier("chain", random_state=0)
    model = StackedStructureClassifier(base, final, cv=cv).fit(X, pairs, of_items)
    weights = np.concatenate([np.ones(25) if own is None else own for own in of_rows])
    weights *= np.repeat(np.ones(12) if of_items is None else of_items, 25)
    rows, labels, logs = np.vstack(X), np.concatenate(y), []

    def fitted(first, last):
        used = np.arange(300)[25 * first : 25 * last]
        used = used[weights[used] > 0.0]
        beside = {"logisticregression__sample_weight": weights[used]}
        return clone(base).fit(rows[used], labels[used], **beside)

    for first, last in ((6, 12), (0, 6)):
        logs.append(fitted(first, last).predict_log_proba(rows[25 * (6 - first) :][:150]))
    np.testing.assert_array_equal(model.estimator_[-1].coef_, fitted(0, 12)[-1].coef_)
    items = np.split(np.maximum(np.vstack(logs), np.log(model.least_probability_)), 12)
    by_hand = clone(final).set_params(structure=ChainStructure(emission="given"))
    by_hand.fit(items, pairs, of_items)
    np.testing.assert_array_equal(model.final_estimator_.coef_, by_hand.coef_)
    # The likelihood counts all rows, so that their weights do not change the default C.
    C = StackedStructureClassifier(base).fit(X, pairs).final_estimator_.C
    assert C in (pytest.approx(1 / 25), pytest.approx(10 / 25))
    none = [(labels, np.zeros(25)) for labels in y]
    with pytest.raises(ValueError, match="Weights must not be zero for all labels"):
        clone(model).fit(X, none)
    with pytest.raises(ValueError, match=r"y\[1\]\[1\] has the weight -1"):
        clone(model).fit(X, [y[0], (y[1], -np.ones(25)), *y[2:]])
    by_neighbors = StackedStructureClassifier(KNeighborsClassifier())
    with pytest.raises(TypeError, match="accepts neither sample_weight"):
        by_neighbors.fit(X, pairs)


@pytest.mark.parametrize("k", [2, 3])
def test_decision_functions_are_scores(k):
    X, y = series()
    y = y if k == 3 else [np.where(labels == "run", "run", "walk") for labels in y]
    model = StackedStructureClassifier(LinearSVC(random_state=0)).fit(X, y)
    rows = np.vstack(X)
    scores = model._scored(X)
    given = model.estimator_.decision_function(rows)
    if k == 2:
        np.testing.assert_allclose(np.diff(np.vstack(scores), axis=1)[:, 0], given)
    else:
        np.testing.assert_array_equal(np.vstack(scores), given)
    named = StackedStructureClassifier(LinearSVC(), BCFWClassifier())
    with pytest.raises(TypeError, match="estimator must have predict_proba"):
        named.set_params(stack_method="predict_proba").fit(X, y)


def test_all_that_the_structure_can_do_is_there():
    X, y = series()
    model = StackedStructureClassifier(LogisticRegression(), cv=3).fit(X, y)
    scores = model._scored(X)
    final = model.final_estimator_
    for name in ("predict_log_proba", "max_marginals", "entropy"):
        found = getattr(model, name)(X)
        expected = getattr(final, name)(scores)
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(own, other)
    only = [[None] * 25 for _ in X]
    only[0][0] = "sit"
    assert model.predict(X, allowed=only)[0][0] == "sit"
    np.testing.assert_array_equal(
        model.log_likelihood(X, y), final.log_likelihood(scores, y)
    )
    runs = CRFClassifier(ChainStructure(transitions="runs"), random_state=0)
    spans = StackedStructureClassifier(LogisticRegression(), runs).fit(X, y)
    items, least = logs_by_hand(X, y, np.ones(12), None, KFold(5))
    runs.structure.emission = "given"
    base = LogisticRegression().fit(np.vstack(X), np.concatenate(y))
    logs = [np.log(np.maximum(base.predict_proba(x), least)) for x in X]
    expected = runs.fit(items, y).predict_spans(logs, threshold=0.1)
    assert spans.predict_spans(X, threshold=0.1).tolist() == expected.tolist()
    for own, other in zip(
        model.predict_k_best(X, 2)[0], final.predict_k_best(scores, 2)[0], strict=True
    ):
        np.testing.assert_array_equal(own, other)
    assert uncertainty(model, X).shape == (12,)
    sets = ConformalClassifier(model, confidence_level=0.5).fit(X, y).predict_set(X)
    assert len(sets) == 12
    y[0] = np.where(np.arange(25) < 3, "fall", y[0])
    # A class that folds lack has its column.
    proba = StackedStructureClassifier(LogisticRegression()).fit(X, y).predict_proba(X)
    assert {own.shape for own in proba} == {(25, 4)}
    np.testing.assert_allclose(proba[0].sum(axis=1), 1.0)
    large_margin = StackedStructureClassifier(LogisticRegression(), BCFWClassifier())
    assert not hasattr(large_margin, "predict_proba")
    assert hasattr(large_margin, "max_marginals")


def test_weights_and_groups_are_routed_through_pipelines_and_searches():
    X, y = series()
    beside = {"groups": np.repeat([0, 1, 2, 3], 3), "sample_weight": np.arange(1.0, 13.0)}
    final = CRFClassifier("chain", random_state=0)
    alone = StackedStructureClassifier(LogisticRegression(), final, cv=GroupKFold(2))
    scaled = SequenceTransformer(StandardScaler())
    alone.fit(scaled.fit_transform(X), y, **beside)
    with config_context(enable_metadata_routing=True):
        model = clone(alone).set_fit_request(groups=True, sample_weight=True)
        model.set_score_request(sample_weight=True)
        # scikit-learn before 1.8 asks the pipeline itself.
        pipe = make_pipeline(scaled, model).set_score_request(sample_weight=True)
        pipe.fit(X, y, **beside)
        parts = "estimator__C", "final_estimator__C"  # parameters of both
        grid = {f"stackedstructureclassifier__{own}": [1.0] for own in parts}
        search = GridSearchCV(pipe, grid, cv=GroupKFold(2)).fit(X, y, **beside)
    for own in (pipe[-1], search.best_estimator_[-1]):
        np.testing.assert_array_equal(
            own.final_estimator_.coef_, alone.final_estimator_.coef_
        )
    for k, (train, test) in enumerate(GroupKFold(2).split(X, y, beside["groups"])):
        few, held = ({name: own[part] for name, own in beside.items()}
                     for part in (train, test))  # fmt: skip
        parts = [[own[i] for i in part] for part in (train, test) for own in (X, y)]
        scaled.fit(parts[0])
        own = clone(alone).fit(scaled.transform(parts[0]), parts[1], **few)
        score = own.score(scaled.transform(parts[2]), parts[3], held["sample_weight"])
        assert search.cv_results_[f"split{k}_test_score"][0] == score


def test_one_item_gets_what_it_gets_among_others_and_a_second_fit_may_start_warm():
    X, y = series()
    model = StackedStructureClassifier(DecisionTreeClassifier(max_depth=3), cv=3)
    model.fit(X, y)
    whole = model.predict(X)
    for x, labels in zip(X, whole, strict=True):
        np.testing.assert_array_equal(model.predict([x])[0], labels)
    assert len(model.predict([])) == 0
    assert model.predict([X[0][:0]])[0].shape == (0,)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    with pytest.raises(TypeError, match="must be a list of sequences"):
        model.predict(X[0])
    final = CRFClassifier(tol=1e-6, warm_start=True, random_state=0)
    model = StackedStructureClassifier(LogisticRegression(), final).fit(X, y)
    first = model.final_estimator_
    model.fit(X, y)
    assert model.final_estimator_.n_iter_ < first.n_iter_


class Silent(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self


OVER_ROWS = StackedStructureClassifier(LogisticRegression())
REFUSED = [
    (StackedStructureClassifier(Silent()), {}, TypeError, "estimator must have"),
    (StackedStructureClassifier(LogisticRegression(), CRFClassifier("multiclass")), {},
     ValueError, "final_estimator must have a ChainStructure"),
    (StackedStructureClassifier(KNeighborsClassifier()), {"sample_weight": np.ones(12)},
     TypeError, "accepts neither sample_weight"),
    (StackedStructureClassifier(LogisticRegression(), cv=[([0], [1])]), {}, ValueError,
     "each item in the test part"),
    (StackedStructureClassifier(LogisticRegression(), cv="prefit"), {}, NotFittedError,
     "not fitted"),
    (OVER_ROWS, {"X": series()[0][:1], "y": series()[1][:1]}, ValueError,
     r"cv=5 needs as many labeled items, and there are 1\. Cut .*max_rows.*cv='prefit'"),
    (OVER_ROWS, {"y": [["a"]] * 12}, ValueError,
     r"y\[0\] has 1 labels, but X\[0\] has 25 rows"),
    (OVER_ROWS, {"y": [["a"]]}, ValueError, "X has 12 items, but y has 1"),
    (OVER_ROWS, {"y": None}, ValueError, "requires y"),
    (OVER_ROWS, {"X": np.ones((25, 3)), "y": ["a"] * 25}, TypeError, "a list of"),
    (OVER_ROWS, {"y": [[MISSING] * 25] * 12}, ValueError, "y has no label"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "change", "error", "message"), REFUSED)
def test_what_cannot_be_stacked_is_refused_before_any_fit(model, change, error, message):
    X, y = series()
    with pytest.raises(error, match=message):
        model.fit(**({"X": X, "y": y} | change))
    assert not hasattr(model, "estimator_")
