"""Graphs that skl2onnx makes say what the estimators say; what cannot be is refused."""

import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    StackedStructureClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.estimators.complex_metric.thresholds import NamedThresholds
from sklearn_structsvm.metrics import Churn, EqualOpportunity, FBeta, PredictiveParity
from sklearn_structsvm.structures import (
    BinaryStructure,
    MulticlassStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
)

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from skl2onnx.common.data_types import (  # noqa: E402
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

from sklearn_structsvm.onnx import register_converters  # noqa: E402
from sklearn_structsvm.onnx._converters import _costs_of_cuts  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.* weights of zero are as good:UserWarning"),
    pytest.mark.filterwarnings("ignore:The classifier predicts:UserWarning"),
]
register_converters()

N, D = 40, 4
TYPES = {np.float32: FloatTensorType, np.float64: DoubleTensorType}
in_both_precisions = pytest.mark.parametrize("real", TYPES, ids=["float32", "float64"])

SVMS = {
    "bcfw": BCFWClassifier(max_iter=5, random_state=0),
    "bcfw-cv": BCFWClassifierCV(Cs=2, cv=2, max_iter=5, random_state=0),
    "slack": SlackRescaledSSVM(max_iter=5, random_state=0),
    "bmrm": BMRMClassifier(max_iter=5),
    "pragam": PragamClassifier(max_iter=50),
    "sublbfgs": SubLBFGSClassifier(max_iter=5),
    "no intercept": SubLBFGSClassifier(fit_intercept=False, max_iter=5),
    "intercept of 10": BMRMClassifier(
        solver_options={"intercept_scaling": 10.0}, max_iter=5
    ),
}
CRFS = {
    "crf": CRFClassifier(random_state=0),
    "crf-cv": CRFClassifierCV(Cs=2, cv=2, random_state=0),
    "crf-mbr": CRFClassifier(
        fit_intercept=False, random_state=0, solver_options={"decoding": "mbr"}
    ),
}
COSTLY = {
    "binary": BinaryStructure(label_costs=[[0, 1], [4, 0]]),
    "multiclass": MulticlassStructure(label_costs=[[0, 1, 2], [3, 0, 1], [1, 5, 0]]),
    "multilabel": MultilabelStructure(label_costs=[[1, 3], [2, 1], [1, 1]]),
}


def features(n=N, seed=0):
    """Rows in single precision, one column of which is constant."""
    X = new_rng(seed).normal(size=(n, D)).astype(np.float32)
    X[:, 1] = 0.5
    return X


def labels_of(kind, X, seed=0):
    noisy = X @ new_rng(1).normal(size=(D, 3)) + new_rng(seed, 2).normal(size=(len(X), 3))
    if kind == "multilabel":
        return (noisy > 0).astype(int)
    codes = noisy.argmax(axis=1)
    codes[:3] = 0, 1, 2
    return np.minimum(codes, 1) if kind == "binary" else np.array(["c", "a", "b"])[codes]


def run(model, X, real=np.float64, options=None, **inputs):
    types = [("X", TYPES[real]([None, X.shape[1]]))]
    feed = {"X": np.asarray(X, dtype=real)}
    for name, values in inputs.items():
        kinds = {"f": DoubleTensorType, "i": Int64TensorType, "b": Int64TensorType}
        kind = kinds.get(values.dtype.kind, StringTensorType)
        types.append((name, kind([None, 1])))
        as_type = {StringTensorType: object, Int64TensorType: np.int64}
        feed[name] = values[:, np.newaxis].astype(as_type.get(kind, np.float64))
    options = {"zipmap": False} if options is None else options
    return answers(skl2onnx.to_onnx(model, initial_types=types, options=options), feed)


def answers(graph, feed):
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)


def scores_of(model, X):
    """Scores of all classes or labels, and how far those in a graph may be off.

    A sum of D products and an intercept, all of them rounded, is off by D + 3 roundings
    of its terms at most; so are the scores of scikit-learn.
    """
    W, b = np.atleast_2d(model.coef_), getattr(model, "intercept_", 0.0)
    scores, size = X @ W.T + b, np.abs(X) @ np.abs(W.T) + np.abs(b)
    if hasattr(model, "threshold_"):
        scores, size = scores - model.threshold_, size + abs(model.threshold_)
    if isinstance(model.structure_, BinaryStructure):
        scores, size = np.hstack([-scores, scores]), np.hstack([size, size])
    return scores, 2 * (D + 3) * size


def is_clear(values, off):
    """Rows whose largest value is the largest one whatever the rounding."""
    best = values.argmax(axis=1)[:, np.newaxis]
    lead = np.take_along_axis(values - off, best, axis=1) - (values + off)
    np.put_along_axis(lead, best, np.inf, axis=1)
    return (lead > 0).all(axis=1)


def check_linear(model, X, real):
    """Labels and numbers of a graph against those of a classifier of rows."""
    labels, numbers = run(model, X, real)
    assert numbers.dtype == real
    scores, off = scores_of(model, X.astype(np.float64))
    off = off * np.finfo(real).eps
    expected, several = scores, isinstance(model.structure_, MultilabelStructure)
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(X)
        # Softmax and sigmoid stretch no difference; their own rounding comes on top.
        values, off = expected, 2 * off.max() + 64 * np.finfo(real).eps
        if model._decoding == "mbr" and several:
            absent, present = model.structure_.label_costs_.T
            values, off = expected * present - (1 - expected) * absent, 8 * off
        elif model._decoding == "mbr":
            values, off = -(expected @ model.structure_.label_costs_), 16 * off
        elif several:
            values = expected - 0.5
    else:
        values = scores
    assert (np.abs(numbers - expected) <= off).all()
    found = model.predict(X)
    assert labels.dtype.kind == ("O" if found.dtype.kind == "U" else "i")
    clear = np.abs(values) > off if several else is_clear(values, off)
    assert clear.any()
    np.testing.assert_array_equal(labels[clear], found[clear])


def fitted(model, kind="binary", n=N, **metadata):
    X = features(n)
    return clone(model).fit(X, labels_of(kind, X), **metadata), X


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel"])
@pytest.mark.parametrize("estimator", [*SVMS.values(), *CRFS.values()], ids=SVMS | CRFS)
def test_linear_classifiers_of_rows(estimator, kind):
    X = features()
    model = clone(estimator).fit(X, labels_of(kind, X))
    for real in TYPES:
        check_linear(model, features(seed=5), real)


@pytest.mark.parametrize("kind", COSTLY)
def test_decoding_by_least_expected_cost(kind):
    X = features()
    model = CRFClassifier(COSTLY[kind], C=0.1, solver_options={"decoding": "mbr"})
    model.fit(X, labels_of(kind, X))
    likeliest = clone(model).set_params(solver_options__decoding="map")
    likeliest.fit(X, labels_of(kind, X))
    # Farther and farther away there are rows of every probability, so of those between
    # the thresholds, even if almost all labels are the same.
    far = features(1000, seed=5) * np.geomspace(1.0, 30.0, 1000)[:, None]
    assert (model.predict(far) != likeliest.predict(far)).any()
    for real in TYPES:
        check_linear(model, X, real)
        check_linear(model, far, real)


# How well it has learned is not asked.
@pytest.mark.filterwarnings("ignore:The fit with loss=:UserWarning")
@pytest.mark.parametrize("loss", ["slack_hinge", "f1", "roc_auc", "break_even"])
def test_other_losses_are_linear_too(loss):
    kind = "multiclass" if loss == "slack_hinge" else "binary"
    check_linear(
        *fitted(BMRMClassifier(loss=loss, C=10.0, max_iter=50), kind), np.float64
    )
    l1 = SubLBFGSClassifier(loss="logistic", penalty="l1", max_iter=5)
    check_linear(*fitted(l1, "binary"), np.float32)


def test_a_fit_to_sparse_rows_and_two_classes_in_the_multiclass_form():
    X = features() * (features(seed=3) > 0)
    y = labels_of("binary", X)
    model = BCFWClassifier("multiclass", max_iter=5).fit(sparse.csr_array(X), y)
    check_linear(model, X, np.float64)


@pytest.mark.parametrize(
    "names",
    [
        [False, True], [0.0, 3.0], np.array([-5, 7], dtype=np.int8),
        np.array(["no", "yes"]), np.array(["no", "yes", "may be"], dtype=object),
    ],
    ids=["bool", "float", "int8", "str", "object"],
)  # fmt: skip
def test_labels_are_integers_or_strings(names):
    X, names = features(), np.asarray(names)
    codes = labels_of("binary" if len(names) == 2 else "multiclass", X)
    if len(names) > 2:
        codes = np.searchsorted(["a", "b", "c"], codes)
    model = CRFClassifier().fit(X, names[codes])
    labels, _ = run(model, X)
    assert labels.dtype.kind == ("O" if names.dtype.kind in "UO" else "i")
    np.testing.assert_array_equal(labels.astype(names.dtype), model.predict(X))


@in_both_precisions
def test_ties_go_to_the_first_class_and_to_absent_labels(real):
    X = np.array([[1, 2, 0, 0], [0, 0, 0, 0], [-1, 3, 2, 1]])
    for kind, structure in COSTLY.items():
        for model in (SubLBFGSClassifier(max_iter=1), CRFClassifier(structure)):
            model.fit(features(), labels_of(kind, features()))
            # All scores are the same number, which is small enough to be exact.
            model.coef_ = np.ones(model.coef_.shape) * [1, 0, 2, -3]
            if kind != "multiclass":
                model.coef_ *= 0
            model.intercept_ = np.zeros(len(model.coef_))
            if hasattr(model.structure_, "threshold_"):
                model.structure_.threshold_ = 0.0
            labels, _ = run(model, X, real)
            np.testing.assert_array_equal(labels, model.predict(X))
            first = 0 if kind == "multilabel" else model.classes_[0]
            assert (labels == first).all()


def test_batches_of_any_size():
    X = features()
    model = CRFClassifier().fit(X, labels_of("multiclass", X))
    whole = run(model, X)
    for n in (0, 1, 7):
        for part, expected in zip(run(model, X[:n]), whole, strict=True):
            if part.dtype == object:
                np.testing.assert_array_equal(part, expected[:n])
            else:
                np.testing.assert_allclose(part, expected[:n], rtol=1e-12)
            assert len(part) == n


def test_pipelines_searches_and_dictionaries_of_probabilities():
    X = features().astype(np.float64)
    y = labels_of("multiclass", X)
    model = make_pipeline(
        make_column_transformer((StandardScaler(), [0, 2]), ("passthrough", [3])),
        GridSearchCV(CRFClassifier(random_state=0), {"C": [0.1, 1.0]}, cv=2),
    ).fit(X, y)
    _, found = run(model, X, np.float32, options={})
    found = np.array([[row[name] for name in model.classes_] for row in found])
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-4)
    labels, found = run(model, X, options={id(model[-1]): {"zipmap": False}})
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-12)


def test_columns_of_a_data_frame():
    rng = new_rng(7)
    X = pd.DataFrame(
        {"age": rng.normal(size=N), "town": rng.choice(["here", "there"], size=N)}
    )
    y = (X["age"] + 0.5 * rng.normal(size=N) > 0.0).to_numpy().astype(int)
    encode = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), [1]))
    for model in (
        make_pipeline(encode, CRFClassifier()),
        ComplexMetricClassifier(make_pipeline(encode, CRFClassifier()), "f1", cv=None),
    ):
        model.fit(X, y)
        types = [
            ("age", DoubleTensorType([None, 1])),
            ("town", StringTensorType([None, 1])),
        ]
        graph = skl2onnx.to_onnx(model, initial_types=types, options={"zipmap": False})
        feed = {name: X[[name]].to_numpy() for name in X}
        labels, found = answers(graph, feed)
        np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-6)
        np.testing.assert_array_equal(labels, model.predict(X))


@in_both_precisions
@pytest.mark.parametrize("decoding", ["map", "mbr", None])
def test_chains_over_a_classifier(decoding, real):
    """For one sequence: the labels, and probabilities or (of an SVM) max-marginals."""
    X, y = make_chains(12, random_state=new_seed(0))
    final, n_clear = BCFWClassifier(max_iter=5, random_state=0), 0
    if decoding is not None:
        final = CRFClassifier(random_state=0, solver_options={"decoding": decoding})
    base = make_pipeline(StandardScaler(), LogisticRegression())
    model = StackedStructureClassifier(base, final, cv=3).fit(X, y)
    final = model.final_estimator_
    final.coef_ = new_rng(9).normal(size=final.coef_.shape)
    types, off = [("X", TYPES[real]([None, X[0].shape[1]]))], 1e4 * np.finfo(real).eps
    graph = skl2onnx.to_onnx(model, initial_types=types)
    for x in [*X, X[0][:1]]:
        labels, numbers = answers(graph, {"X": x.astype(real)})
        (best,) = model.max_marginals([x])
        expected = best if decoding is None else model.predict_proba([x])[0]
        np.testing.assert_allclose(numbers, expected, atol=off)
        clear = is_clear(expected if decoding == "mbr" else best, off)
        np.testing.assert_array_equal(labels[clear], model.predict([x])[0][clear])
        n_clear += clear.sum()
    assert n_clear > 0


def check_mixture(model, X, **inputs):
    """Labels for the hash of `predict` and for other draws, and their probabilities."""
    groups = inputs.get("sensitive_features")
    n_rules = len(model.mixture_.weights)
    if n_rules > 1:
        inputs["uniforms"] = model.row_hash_.choices(X, len(X))
    labels, shares = run(model, X, **inputs)
    np.testing.assert_array_equal(labels, model.predict(X, sensitive_features=groups))
    expected = model.predict_proba(X, sensitive_features=groups)
    np.testing.assert_allclose(shares, expected, atol=1e-12)
    if n_rules > 1:
        seed = new_seed(9)
        inputs["uniforms"] = np.random.RandomState(seed).random_sample(len(X))
        labels, _ = run(model, X, **inputs)
        drawn = model.predict(X, sensitive_features=groups, random_state=seed)
        np.testing.assert_array_equal(labels, drawn)


def as_mixture(model, n_rules, seed=0):
    """A fitted model whose rules are random instead, which tries more of them."""
    mixture, rng = model.mixture_, new_rng(8, seed)
    shape = (n_rules, *mixture.loss_matrices.shape[1:])
    mixture.loss_matrices = rng.normal(size=shape)
    mixture.weights = model.mixture_weights_ = rng.dirichlet(np.ones(n_rules))
    return model


# In double precision from end to end, in which no row is tied but by chance of 1e-12.
EXACT = CRFClassifier(C=0.1, random_state=0)


@pytest.mark.parametrize("n_rules", [1, 2, 5])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_plugin_rules_and_their_mixtures(kind, n_rules):
    model, X = fitted(ComplexMetricClassifier(EXACT, "g_mean", cv=None), kind, 60)
    check_mixture(model, X)
    check_mixture(as_mixture(model, n_rules), X)


@pytest.mark.parametrize("names", [["a", "b", "c"], [7, -1, 3], [True, False, True]])
@pytest.mark.parametrize("n_rules", [1, 3])
def test_rules_for_groups_take_the_group(names, n_rules):
    X = features(60)
    groups = np.array(names)[np.arange(60) % 3]
    model = ComplexMetricClassifier(EXACT, "f1", EqualOpportunity(slack=0.5), cv=None)
    model.fit(X, labels_of("binary", X), sensitive_features=groups)
    model = as_mixture(model, n_rules)
    check_mixture(model, X, sensitive_features=groups)
    unknown = np.full(60, "z") if groups.dtype.kind == "U" else np.full(60, 99)
    uniforms = {"uniforms": np.zeros(60)} if n_rules > 1 else {}
    with pytest.raises(Exception, match="out of data bounds"):
        run(model, X, sensitive_features=unknown, **uniforms)


@pytest.mark.filterwarnings("ignore:Groups of fewer than:UserWarning")
@pytest.mark.parametrize("names", [["a", "b", "c", "d"], [7, -1, 3, 5]])
def test_rules_know_the_groups_that_were_pooled(names):
    X = features(60)
    groups = new_rng(5).permutation(np.repeat(names, [30, 13, 10, 7]))
    model = ComplexMetricClassifier(
        EXACT, "f1", EqualOpportunity(slack=0.5), solver_options={"min_group_size": 14},
        cv=None,
    )  # fmt: skip
    model.fit(X, labels_of("binary", X), sensitive_features=groups)
    assert len(model.groups_) == 2 and len(model.pooled_groups_) == 3
    check_mixture(model, X, sensitive_features=groups)


@in_both_precisions
@pytest.mark.parametrize("named", [0, 1])
def test_ties_with_a_threshold_are_those_of_predict(named, real):
    """Leaves of four rows have the very probabilities that rules compare with."""
    X = np.repeat(np.arange(5.0), 4)[:, None].astype(np.float32)
    y = (np.tile(np.arange(4), 5) < np.repeat(np.arange(5), 4)).astype(int)
    model = ComplexMetricClassifier(
        DecisionTreeClassifier(), FBeta(pos_label=named), cv=None
    ).fit(X, y)
    assert model.mixture_.named == named
    for at in (0.0, 0.25, 0.5, 0.75, 1.0):
        for sign in (1.0, -1.0):
            # Of the named label, above or below the threshold.
            L = np.zeros((1, 1, 2, 2))
            L[0, 0, :, named] = sign * at
            L[0, 0, named, named] -= sign
            model.mixture_.weights, model.mixture_.loss_matrices = np.ones(1), L
            labels, _ = run(model, X, real)
            np.testing.assert_array_equal(labels, model.predict(X))


@pytest.mark.parametrize("named", [0, 1])
def test_single_precision_has_the_thresholds_of_double_precision(named):
    """For all single numbers next to a threshold that is none of them."""
    for at in (0.3, 1 / 3, 0.1, 0.7, 0.25, 1e-9, 1.0 - 1e-9, np.inf, -np.inf):
        for sign in (1.0, -1.0):
            L = np.zeros((1, 1, 2, 2))
            L[0, 0, :, named] = np.sign(at) if np.isinf(at) else sign * at
            L[0, 0, named, named] -= sign * np.isfinite(at)
            cuts = NamedThresholds(L, named)
            near = np.float32(np.clip(at, 0.0, 1.0))
            ends = np.array([-1, 2], dtype=np.float32)
            p = np.concatenate([[near], np.nextafter(near, ends), [0.0, 0.5, 1.0]])
            P = np.column_stack([p, p]).clip(0, 1).astype(np.float32)
            b, D = _costs_of_cuts(cuts, SimpleNamespace(real=np.float32))
            b, D = b[0, 0].astype(np.float32), D[0, 0].astype(np.float32)
            where = 0, np.zeros(len(P), dtype=int)
            np.testing.assert_array_equal((P @ D + b).argmin(1), cuts.codes(where, P))


def test_single_rules_are_graphs_without_chance():
    X = features(60)
    y, groups = labels_of("binary", X), np.array(["a", "b"])[np.arange(60) % 2]
    parity = EqualOpportunity(slack=0.2)
    for constraints, metadata in ((), {}), (parity, {"sensitive_features": groups}):
        model = ComplexMetricClassifier(
            EXACT, "min_max", constraints, cv=None, randomized=False
        )
        model.fit(X, y, **metadata)
        labels, _ = run(model, X, **metadata)
        np.testing.assert_array_equal(labels, model.predict(X, **metadata))
        for threshold in np.ravel(model.rule_.columns["threshold"]):
            assert np.isfinite(threshold)
    model.set_params(constraints=PredictiveParity(slack=0.2)).fit(X, y, **metadata)
    labels, _ = run(model, X, **metadata)
    np.testing.assert_array_equal(labels, model.predict(X, **metadata))
    model.set_params(constraints=()).fit(X, labels_of("multiclass", X))
    labels, _ = run(model, X)
    np.testing.assert_array_equal(labels, model.predict(X))


@pytest.mark.parametrize("of_groups", [None, CRFClassifier(C=0.01)])
def test_rules_that_are_blind_to_groups(of_groups):
    X = features(60)
    groups = np.array(["a", "b"])[(X[:, 0] + new_rng(4).normal(size=60) > 0).astype(int)]
    model = ComplexMetricClassifier(
        EXACT, "zero_one", EqualOpportunity(slack=0.5), cv=None,
        group_blind=True, solver_options={"group_estimator": of_groups},
    )  # fmt: skip
    model.fit(X, labels_of("multiclass", X) != "c", sensitive_features=groups)
    check_mixture(as_mixture(model, 3), X)


def test_probabilities_that_were_corrected():
    X = features(200)
    # The label of all rows but some is another one than the model thinks.
    y = np.where(X[:, 0] > 0, "a", np.where(X[:, 2] > 0, "b", "c"))
    wrong = clone(EXACT).set_params(C=10.0).fit(X, np.roll(["a", "b", "c"], 1)[
        np.searchsorted(["a", "b", "c"], y)
    ])  # fmt: skip
    model = ComplexMetricClassifier(wrong, "g_mean", cv="prefit").fit(X, y)
    assert model.mixture_.correction is not None
    check_mixture(as_mixture(model, 2), X)


def test_a_frozen_classifier_and_one_that_lacks_a_class():
    X = features(60)
    y = labels_of("multiclass", X)
    known = clone(EXACT).fit(X[y != "b"], y[y != "b"])
    model = ComplexMetricClassifier(FrozenEstimator(clone(EXACT).fit(X, y)), cv=None)
    model.fit(X, y)
    check_mixture(model, X)
    model.estimator_ = known
    check_mixture(as_mixture(model, 2), X)


def test_costs_of_examples_are_taken_for_their_means():
    costs = new_rng(3).uniform(size=(60, 2, 2))
    model = ComplexMetricClassifier(EXACT, "expected_cost", cv=None)
    model, X = fitted(model, n=60, costs=costs)
    assert model.mixture_.needs_costs
    check_mixture(model, X)


FIELDS = CRFClassifier("multilabel", C=0.1)
RULES = {
    "thresholds": {},
    "one threshold": {"average": "micro"},
    "two labels": {"labels_per_row": 2},
    "two labels by recall": {"labels_per_row": 2, "metric": "recall"},
    "two labels of samples": {"labels_per_row": 2, "average": "samples"},
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rules_of_many_labels(rule):
    model, X = fitted(MultilabelMetricClassifier(FIELDS, cv=None, **rule), "multilabel")
    labels, found = run(model, X, options={})
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(labels, model.predict(X))


@pytest.mark.parametrize("value", [-np.inf, 0.0, np.inf])
def test_thresholds_that_all_or_no_rows_pass(value):
    model, X = fitted(MultilabelMetricClassifier(FIELDS, cv=None), "multilabel")
    model.label_rule_.values = np.array([value, 0.5, value])
    np.testing.assert_array_equal(run(model, X, options={})[0], model.predict(X))


def test_many_labels_by_the_default_classifier_and_a_single_label():
    X = features(60)
    for n_labels in (3, 1):
        Y = labels_of("multilabel", X)[:, :n_labels]
        model = MultilabelMetricClassifier(cv=None).fit(X, Y)
        labels, found = run(model, X, options={})
        expected = model.predict_proba(X)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        clear = np.abs(expected - model.thresholds_) > 1e-5
        np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])


def with_half_a_class():
    model, X = fitted(CRFClassifier())
    model.classes_ = np.array([0.5, 1.0])
    return model, X


def with_baseline():
    churn = Churn(fitted(DummyClassifier())[0], at_most=1.0)
    return fitted(ComplexMetricClassifier(EXACT, constraints=churn, cv=None))


FAIR = ComplexMetricClassifier(EXACT, constraints=EqualOpportunity(slack=1.0))
OF_PAIRS = BCFWClassifier(PairwiseMultilabelStructure(), max_iter=2)
FORESTS = MultilabelMetricClassifier(RandomForestClassifier(2), cv=None)
BY_F = MultilabelMetricClassifier(average="samples", cv=None)
STACKED = StackedStructureClassifier(DummyClassifier(), passthrough=True)
TWO_COLUMNS = np.array([["a", "x"], ["b", "y"]])[np.arange(N) % 2]
REFUSED = [
    (lambda: (CRFClassifier().fit(*make_chains(6, random_state=new_seed(0))), features()),
     "CRFClassifier has no form in ONNX: ChainStructure decodes"),
    (lambda: fitted(OF_PAIRS, "multilabel"),
     "BCFWClassifier has no form in ONNX: PairwiseMultilabelStructure decodes"),
    (lambda: (STACKED.fit(*make_chains(9, random_state=new_seed(0))), features()),
     "StackedStructureClassifier has no form in ONNX: only plain chains over"),
    (with_half_a_class, r"its classes are \[0.5, 1.0\]"),
    (lambda: fitted(ComplexMetricClassifier(EXACT, solver_options={"lmo": "weighted"})),
     "its classifiers decide without class probabilities"),
    (with_baseline, "depend on the predictions of a baseline"),
    (lambda: fitted(FAIR, sensitive_features=TWO_COLUMNS), "or of several columns"),
    (lambda: fitted(BY_F, "multilabel"), "expected F-measure are found by a search"),
    (lambda: fitted(FORESTS, "multilabel"), "OneVsRestClassifier gives one array"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_what_has_no_form_in_onnx_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        run(*make())


def test_inputs_that_are_missing_or_of_another_type_are_named():
    X = features()
    y, groups = labels_of("binary", X), np.array(["a", "b"])[np.arange(N) % 2]
    model = ComplexMetricClassifier(EXACT, "f1", EqualOpportunity(slack=1.0), cv=None)
    model.fit(X, y, sensitive_features=groups)
    as_mixture(model, 2)
    with pytest.raises(ValueError, match=r"\('sensitive_features', StringTensorType"):
        run(model, X)
    with pytest.raises(ValueError, match="must be of type StringTensorType"):
        run(model, X, sensitive_features=np.arange(N))
    with pytest.raises(ValueError, match=r"a mixture of 2 rules.*'uniforms'"):
        run(model, X, sensitive_features=groups)
    linear = CRFClassifier().fit(X, y)
    with pytest.raises(ValueError, match="one matrix of features"):
        run(linear, X, more=np.zeros(N))


def test_an_unfitted_and_a_damaged_classifier_are_refused():
    with pytest.raises(ValueError, match="not fitted"):
        run(CRFClassifier(), features())
    model = CRFClassifier().fit(features(), labels_of("binary", features()))
    model.coef_ = model.coef_[:, :-1]
    with pytest.raises(ValueError, match="^coef_ must"):
        run(model, features())


def test_without_skl2onnx_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    for name in list(sys.modules):
        if name.startswith("sklearn_structsvm.onnx"):
            monkeypatch.delitem(sys.modules, name)
    module = importlib.import_module("sklearn_structsvm.onnx")
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        module.register_converters()
