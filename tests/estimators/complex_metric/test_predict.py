"""Predictions of mixtures: what the hash guarantees, what draws do, and groups."""

import copy
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from _mixtures import make_data, mixture_confusion, no_complaint_of_convergence
from _seeds import new_rng
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm._utils.groups import Groups
from sklearn_structsvm.confusion.lmo.weighted import WeightedLMO
from sklearn_structsvm.metrics import DemographicParity, EqualOpportunity


@pytest.fixture(scope="module")
def mixture():
    """(X, model) of a mixture of several plug-in rules."""
    X, y, _ = make_data(4, n=1000)
    model = ComplexMetricClassifier(metric="min_max", cv=None).fit(X, y)
    assert len(model.mixture_weights_) > 1
    return X, y, model


def assert_realized(predicted, P, y):
    """The labels have the confusion matrix of P, but for what draws would leave."""
    k = P.shape[1]
    labels = np.eye(k)[y]
    spread = np.sqrt(labels.T @ (P * (1 - P))) / len(y)
    difference = labels.T @ (np.eye(k)[predicted] - P) / len(y)
    assert (np.abs(difference) <= 5 * spread + 1e-15).all()
    assert spread.max() > 0


class TestHash:
    def test_a_row_gets_one_label_whatever_it_is_predicted_with(self, mixture):
        X, _, model = mixture
        whole = model.predict(X)
        order = new_rng(0).permutation(len(X))
        np.testing.assert_array_equal(model.predict(X[order]), whole[order])
        one_by_one = [model.predict(row[None])[0] for row in X[:50]]
        np.testing.assert_array_equal(one_by_one, whole[:50])
        chunks = [model.predict(part) for part in np.array_split(np.vstack([X, X]), 7)]
        np.testing.assert_array_equal(np.concatenate(chunks), np.append(whole, whole))
        threaded = pickle.loads(pickle.dumps(model))
        threaded.n_jobs = 2
        np.testing.assert_array_equal(threaded.predict(X), whole)
        # One that the mixture gives.
        P = model.predict_proba(X)
        np.testing.assert_allclose(P.sum(axis=1), 1)
        assert (P[np.arange(len(X)), whole] > 0).all()
        assert ((P > 0) & (P < 1)).any()

    def test_no_draw_depends_on_the_form_and_precision_of_the_numbers(self, mixture):
        X, _, model = mixture
        single = X.astype(np.float32)
        hashed = model.row_hash_.choices
        np.testing.assert_array_equal(hashed(X, len(X)), hashed(single, len(X)))
        # A rule may tell the two apart, where a probability is at its threshold.
        same = (model.predict_proba(X) == model.predict_proba(single)).all(axis=1)
        assert same.mean() > 0.99
        predicted = model.predict(X)
        np.testing.assert_array_equal(predicted[same], model.predict(single)[same])
        X = np.round(X, 1)
        expected = model.predict(X)
        for form in (
            np.ndarray.tolist, pd.DataFrame, sparse.csr_matrix, sparse.coo_array,
        ):  # fmt: skip
            np.testing.assert_array_equal(model.predict(form(X)), expected)

    @pytest.mark.parametrize("lmo", ["plugin", "weighted"])
    def test_columns_are_known_by_their_names(self, lmo):
        X, y, _ = make_data(4, n=1000)
        frame = pd.DataFrame(X, columns=list("abcde"))
        chosen = make_column_transformer((StandardScaler(), ["d", "b", "a"]))
        model = ComplexMetricClassifier(
            make_pipeline(chosen, LogisticRegression()), "min_max",
            solver_options={"lmo": lmo}, max_iter=20,
        )  # fmt: skip
        with no_complaint_of_convergence():
            model.fit(frame, y)
        assert len(model.mixture_weights_) > 1
        expected = model.predict(frame)
        for same in (
            frame[list("edcba")],
            frame.assign(more=np.arange(len(X)), text="x"),
            frame.assign(more=1.0)[["b", "more", *"adce"]],
            frame.astype({"c": np.float32}),
        ):
            np.testing.assert_array_equal(model.predict(same), expected)
        # The columns of fit tell rows apart, whether the pipeline takes them or not.
        other = model.predict(frame.assign(e=0.0))
        np.testing.assert_array_equal(
            model.predict_proba(frame), model.predict_proba(frame.assign(e=0.0))
        )
        assert (other != expected).any()

    @pytest.mark.parametrize("k", [2, 4])
    def test_rows_of_few_probabilities_are_divided_all_the_same(self, k):
        """Five leaves have five probabilities: what draws by these flips whole leaves."""
        X, y, _ = make_data(k, n=20000)
        tree = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0)
        for estimator, most in ((tree, 5), (DummyClassifier(), 1)):
            model = ComplexMetricClassifier(estimator, "min_max", cv=None)
            P = model.fit(X[:2000], y[:2000]).predict_proba(X)
            assert len(np.unique(P, axis=0)) <= most
            assert_realized(model.predict(X), P, y)
        # Where nothing is known, all recalls are the same.
        np.testing.assert_allclose(P, 1.0 / k, atol=0.01)

    def test_another_seed_divides_the_rows_otherwise(self, mixture):
        X, y, model = mixture
        frozen = FrozenEstimator(model.estimator_)
        predicted = {
            seed: ComplexMetricClassifier(frozen, "min_max", random_state=seed)
            .fit(X, y)
            .predict(X)
            for seed in (None, 1, 2)
        }
        np.testing.assert_array_equal(predicted[None], model.predict(X))
        for one, other in ((None, 1), (1, 2)):
            differ = predicted[one] != predicted[other]
            assert differ.any()
            P = model.predict_proba(X)
            assert (P[differ] < 1).all()

    def test_equal_rows_stay_together_when_hashed_and_not_when_drawn(self, mixture):
        X, _, model = mixture
        P = model.predict_proba(X)
        row = X[np.abs(P.max(axis=1) - 0.5).argmin()]
        many = np.tile(row, (500, 1))
        assert len(np.unique(model.predict(many))) == 1
        drawn = model.predict(many, random_state=0)
        shares = np.bincount(drawn, minlength=4) / len(many)
        np.testing.assert_allclose(shares, model.predict_proba(row[None])[0], atol=0.1)
        assert (shares > 0).sum() > 1


class TestDraws:
    def test_their_frequencies_are_the_probabilities(self, mixture):
        X, _, model = mixture
        X = X[:200]
        draws = np.stack([model.predict(X, random_state=seed) for seed in range(400)])
        shares = (draws[:, :, None] == model.classes_).mean(axis=0)
        np.testing.assert_allclose(shares, model.predict_proba(X), atol=0.13)
        # A seed repeats them, and a generator goes on.
        rng = np.random.RandomState(7)
        np.testing.assert_array_equal(model.predict(X, random_state=rng), draws[7])
        assert (model.predict(X, random_state=rng) != draws[7]).any()
        assert (draws[7] != draws[8]).any()


class TestRowsOfAnyKind:
    def test_texts_are_classified(self):
        texts = ["good fine", "bad", "fine", "awful bad", "good", "awful"] * 10
        y = np.array(["+", "-", "+", "-", "+", "-"] * 10)
        y[:12] = y[:12][::-1]
        model = ComplexMetricClassifier(make_pipeline(CountVectorizer(),
                                                      LogisticRegression()))  # fmt: skip
        model.fit(texts, y)
        assert set(model.predict(texts)) <= {"+", "-"}
        turned = model.predict(texts[::-1])[::-1]
        np.testing.assert_array_equal(turned, model.predict(texts))

    def test_columns_of_strings_are_classified(self):
        X, y, groups = make_data(3)
        frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(group=groups)
        encoder = make_column_transformer(
            (OneHotEncoder(), ["group"]), remainder="passthrough"
        )
        model = ComplexMetricClassifier(make_pipeline(encoder, LogisticRegression()))
        model.fit(frame, y)
        predicted = model.predict(frame)
        np.testing.assert_array_equal(model.predict(frame.iloc[::2]), predicted[::2])


FAIR = DemographicParity(slack=0.02)


def make_groups(library, columns):
    """Sensitive features as a table of the library."""
    if library == "dask":
        dask = pytest.importorskip("dask.dataframe")
        return dask.from_pandas(pd.DataFrame(columns), npartitions=2)
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


class TestGroups:
    @pytest.mark.parametrize(
        "convert",
        [list, lambda g: np.array(g, dtype=object), lambda g: np.array(g)[:, None],
         lambda g: pd.Series(g, index=np.arange(len(g))[::-1]),
         lambda g: pd.Series(g, dtype="category"), lambda g: pd.Series(g, dtype="string"),
         lambda g: pd.DataFrame({"sex": g}), lambda g: np.array(g) == "young",
         lambda g: np.where(np.array(g) == "young", 2.5, -1.0)],
        ids=["list", "object", "column", "series", "category", "string", "frame", "bool",
             "float"],
    )  # fmt: skip
    def test_any_form_of_one_column_will_do(self, convert):
        X, y, names = make_data(2)
        groups = convert(names.tolist())
        plain = ComplexMetricClassifier(constraints=FAIR)
        plain.fit(X, y, sensitive_features=names)
        model = ComplexMetricClassifier(constraints=FAIR)
        model.fit(X, y, sensitive_features=groups)
        assert model.groups_.tolist() in (["old", "young"], [False, True], [-1.0, 2.5])
        np.testing.assert_array_equal(
            model.predict(X, sensitive_features=groups),
            plain.predict(X, sensitive_features=names),
        )

    @pytest.mark.parametrize("frame", [False, True])
    def test_groups_of_several_columns_are_their_combinations(self, frame):
        X, y, groups = make_data(2)
        city = np.where(X[:, 1] > 0, 2, 10)
        both = pd.DataFrame({"age": groups, "city": city})
        if not frame:
            both = both.to_numpy()
        model = ComplexMetricClassifier(constraints=FAIR, cv=None)
        model.fit(X, y, sensitive_features=both)
        assert model.groups_.tolist() == [
            ("old", 2), ("old", 10), ("young", 2), ("young", 10),
        ]  # fmt: skip
        assert model.cell_confusions_.shape == (4, 2, 2)
        C = mixture_confusion(model, X, y, sensitive_features=both)
        np.testing.assert_allclose(model.cell_confusions_, C, atol=1e-12)
        assert model.constraint_violation_ <= 0

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "dask"])
    def test_columns_of_a_table_are_known_by_name(self, library):
        # The values of both columns are the same, so that places tell nothing.
        X, y, _ = make_data(2)
        sex, origin = new_rng(1).integers(2, size=(2, len(X)))
        model = ComplexMetricClassifier(constraints=FAIR)
        columns = {"sex": sex, "origin": origin}
        model.fit(X, y, sensitive_features=make_groups(library, columns))
        expected = model.predict(X, sensitive_features=np.column_stack([sex, origin]))
        swapped = make_groups(library, {"origin": origin, "sex": sex})
        for method in ("predict", "predict_proba"):
            found = getattr(model, method)(X, sensitive_features=swapped)
            same = getattr(model, method)(X, sensitive_features=pd.DataFrame(columns))
            np.testing.assert_array_equal(found, same)
        np.testing.assert_array_equal(
            model.predict(X, sensitive_features=swapped), expected
        )

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "dask"])
    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["sex"], "lacks column 'origin'. The columns in fit were: 'sex', 'origin'"),
            (["sex", "age"], "lacks column 'origin' and has the unknown column 'age'"),
            (["sex", "origin", "age", "x"], "has the unknown columns 'age', 'x'"),
        ],
        ids=str,
    )
    def test_columns_that_are_missing_or_unknown_are_refused(
        self, library, names, message
    ):
        sex, origin = new_rng(2).integers(2, size=(2, 9))
        of_fit = Groups(make_groups("pandas", {"sex": sex, "origin": origin}), 9)
        with pytest.raises(ValueError, match=message):
            of_fit.encode(make_groups(library, dict.fromkeys(names, sex)), 9)

    def test_columns_that_are_only_numbered_have_no_names(self):
        both = pd.DataFrame({"sex": [0, 1, 1], "origin": [0, 0, 1]})
        groups = Groups(both, 3)
        plain = pd.DataFrame(both.to_numpy())
        np.testing.assert_array_equal(groups.encode(plain, 3), groups.codes)
        twice = both.set_axis(["sex", "sex"], axis=1)
        with pytest.raises(ValueError, match="more than one column 'sex'"):
            groups.encode(twice, 3)
        np.testing.assert_array_equal(Groups(twice, 3).encode(twice, 3), groups.codes)
        # But numbers that fit had are names.
        of_numbers = Groups(plain, 3)
        np.testing.assert_array_equal(of_numbers.encode(plain[[1, 0]], 3), groups.codes)

    def test_a_group_that_fit_did_not_see_is_refused_by_name(self):
        X, y, groups = make_data(2)
        model = ComplexMetricClassifier(constraints=FAIR)
        model.fit(X, y, sensitive_features=groups)
        for method in (model.predict, model.predict_proba):
            with pytest.raises(ValueError, match="'ancient'.*'old', 'young'"):
                method(X[:2], sensitive_features=["old", "ancient"])
        with pytest.raises(ValueError, match="pass sensitive_features"):
            model.predict(X)
        with pytest.raises(ValueError, match="2 rows, but X has 400"):
            model.predict(X, sensitive_features=["old", "young"])
        with pytest.raises(ValueError, match=r"2 column\(s\), but had 1"):
            model.predict(X, sensitive_features=np.stack([groups, groups], axis=1))

    @pytest.mark.parametrize(
        ("features", "error", "message"),
        [
            (["a", None], ValueError, "missing"),
            ([1.0, np.nan], ValueError, "missing"),
            (pd.Series(["a", pd.NA]), ValueError, "missing"),
            (pd.DataFrame({"a": [1, 2], "b": ["x", None]}), ValueError, "missing"),
            (["a"], ValueError, "1 rows, but X has 2"),
            (np.zeros((2, 1, 1)), ValueError, "dimensions"),
            (np.zeros((2, 0)), ValueError, "no columns"),
            (sparse.csr_matrix((2, 1)), TypeError, "dense"),
        ],
        ids=str,
    )
    def test_groups_that_are_none_are_refused(self, features, error, message):
        with pytest.raises(error, match=message):
            Groups(features, 2)

    def test_values_that_cannot_be_sorted_are_groups_too(self):
        groups = Groups(np.array(["a", 1, "a", (2, 3)], dtype=object), 4)
        assert sorted(map(str, groups.names)) == ["(2, 3)", "1", "a"]
        assert [groups.names[c] for c in groups.codes] == ["a", 1, "a", (2, 3)]
        assert groups.array.shape == (3,)

    def test_many_columns_do_not_overflow(self):
        features = new_rng(0).integers(0, 50, (30, 40))
        groups = Groups(features, 30)
        assert len(groups.names) == 30
        for row, code in zip(features, groups.codes, strict=True):
            assert groups.names[code] == tuple(row)
        turned = groups.encode(features[::-1], 30)[::-1]
        np.testing.assert_array_equal(turned, groups.codes)

    def test_the_classifier_and_its_scores_depend_on_the_group(self):
        X, y, groups = make_data(2)
        model = ComplexMetricClassifier(constraints=EqualOpportunity(slack=0.0))
        model.fit(X, y, sensitive_features=groups)
        old, young = (
            model.predict_proba(X, sensitive_features=[group] * len(X))
            for group in ("old", "young")
        )
        assert (old != young).any()
        model.set_params(estimator=DummyClassifier(), metric="zero_one", constraints=FAIR)
        with pytest.warns(UserWarning, match="never"):
            model.fit(X, y, sensitive_features=groups)
        scores = model.decision_function(X, sensitive_features=groups)
        np.testing.assert_array_equal(
            scores > 0, model.predict(X, sensitive_features=groups)
        )


@pytest.mark.parametrize("lmo", ["weighted", WeightedLMO(LogisticRegression())], ids=str)
def test_refitted_classifiers_predict_without_the_groups_of_their_constraints(lmo):
    X, y, _ = make_data(2, n=200)
    group = np.where(X[:, 0] > 0, "a", "b")
    fair, options = EqualOpportunity(slack=0.3), {"solver_options": {"lmo": lmo}}
    model = ComplexMetricClassifier(metric="balanced", constraints=fair, **options)
    with no_complaint_of_convergence():
        model.set_params(max_iter=10).fit(X, y, sensitive_features=group)
    expected = model.predict(X, sensitive_features=group)
    np.testing.assert_array_equal(model.predict(X), expected)


DAMAGE = {
    "plugin": [
        ("weights", lambda w: w[:-1]), ("loss_matrices", lambda L: L[..., :-1]),
        ("own_costs", lambda costs: 0.5), ("n_groups", lambda n: 0.5),
    ],
    "weighted": [("weights", lambda w: w * np.nan), ("n_classes", lambda n: n - 0.5)],
}  # fmt: skip


@pytest.mark.parametrize("lmo", DAMAGE)
def test_a_damaged_mixture_is_refused_by_name(lmo):
    X, y, _ = make_data(3)
    model = ComplexMetricClassifier(metric="min_max", solver_options={"lmo": lmo})
    with no_complaint_of_convergence():
        saved = pickle.dumps(model.fit(X, y))
    for name, change in DAMAGE[lmo]:
        model = pickle.loads(saved)
        setattr(model.mixture_, name, change(getattr(model.mixture_, name)))
        asks = [partial(ask, X) for ask in (model.predict, model.predict_proba)]
        asks.append(partial(model.score, X, y))
        if lmo == "plugin":
            for attribute in ("rule_", "threshold_", "thresholds_"):
                asks.append(partial(getattr, model, attribute))
        for ask in asks:
            with pytest.raises((ValueError, TypeError), match=rf"^mixture_\.{name} must"):
                ask()


def test_classes_and_seeds_that_were_changed_are_refused(mixture):
    X, y, model = mixture
    for change in (lambda c: c[:-1], lambda c: c[np.newaxis], lambda c: c[:0], list):
        damaged = copy.copy(model)
        damaged.classes_ = change(model.classes_)
        for ask in (damaged.predict, damaged.predict_proba):
            with pytest.raises(ValueError, match="classes_ must|loss_matrices must"):
                ask(X)
    damaged = copy.deepcopy(model)
    damaged.row_hash_.seed = -1
    with pytest.raises(ValueError, match="seed must be at least 0; got -1"):
        damaged.score(X, y)


@pytest.mark.parametrize("lmo", ["plugin", "weighted"])
def test_sparse_rows_that_point_beyond_their_columns_are_refused(lmo):
    X, y, _ = make_data(2)
    X = sparse.csr_array(X)
    model = ComplexMetricClassifier(solver_options={"lmo": lmo}).fit(X, y)
    for layout in ("csr", "csc", "coo", "bsr"):
        bad = X.copy().asformat(layout)
        (bad.col if layout == "coo" else bad.indices)[0] = 10**6
        for ask in (model.predict, model.predict_proba, lambda X: model.fit(X, y)):
            words = r"^X\.(indices|coords\[1\]) must be integ"
            with pytest.raises(ValueError, match=words):
                ask(bad)
