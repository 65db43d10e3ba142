"""Chains whose edges have features.

`test_listed`, `test_sums` and `test_given_scores` compare their decoders, sums and
objectives with enumeration.
"""

from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import (
    BCFWClassifier,
    CRFClassifier,
    StackedStructureClassifier,
    uncertainty,
)
from sklearn_structsvm._utils.tags import entities_of
from sklearn_structsvm.export import export_tagger
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import MISSING, ChainStructure

TAGS = np.array(["B-x", "I-x", "O"])


def made(n=8, longest=5, seed=0, n_edge_features=2):
    rng = new_rng(seed)
    lengths = [1, *rng.integers(2, longest + 1, n - 1)]
    X = [
        (rng.normal(size=(T, 3)), rng.normal(size=(T - 1, n_edge_features)))
        for T in lengths
    ]
    y = [TAGS[rng.integers(3, size=T)] for T in lengths]
    y[1][:2] = "B-x", "I-x"
    return X, [np.where(own == "I-x", "O", own) if i != 1 else own
               for i, own in enumerate(y)]  # fmt: skip


def fitted(model, structure=None, **options):
    X, y = made(**options)
    structure = structure or ChainStructure(edge_features=True)
    return clone(model).set_params(structure=structure).fit(X, y), X, y


def with_random_weights(structure=None, scale=1.5):
    """A CRF with weights drawn at random, and its items."""
    model, X, _ = fitted(CRFClassifier(random_state=0, tol=0.1), structure)
    model.coef_ = scale * new_rng(5).normal(size=model.coef_.shape)
    return model, X


def listed(model, x, is_kept=lambda labels: True):
    """The labelings of an item, and their probabilities among those that are kept."""
    labelings = [z for z in model.structure_.labelings(x) if is_kept(z)]
    scores = [model.structure_.joint_feature(x, z) @ model.coef_ for z in labelings]
    weights = np.exp(np.subtract(scores, np.max(scores)))
    return labelings, weights / weights.sum()


@pytest.mark.parametrize("with_bars", [False, True])
def test_long_runs_are_those_of_enumeration(with_bars):
    bars = [("O", "I-x"), (None, "I-x")] if with_bars else None
    model, X = with_random_weights(ChainStructure(transitions=bars, edge_features=True))
    for x in X:
        T = len(x[0])

        def is_kept(z, T=T):
            return min(len(list(run)) for _, run in groupby(z)) >= min(2, T)

        labelings, p = listed(model, x, is_kept)
        proba = sum(
            q * (z[:, np.newaxis] == TAGS) for z, q in zip(labelings, p, strict=True)
        )
        (found,) = model.predict_proba([x], min_length=2)
        np.testing.assert_allclose(found, proba, atol=1e-11)
        (best,), _ = model.predict_k_best([x], 3, min_length=2)
        order = np.argsort(-p, kind="stable")[:3]
        np.testing.assert_array_equal(best, np.array(labelings)[order])
        (labels,) = model.predict([x], min_length=2)
        np.testing.assert_array_equal(labels, labelings[p.argmax()])


@pytest.mark.parametrize("scale", [1.5, 300.0])
def test_spans_are_those_of_enumeration(scale):
    structure = ChainStructure(transitions="bio", edge_features=True)
    model, X = with_random_weights(structure, scale)
    for x, spans in zip(X, model.predict_spans(X, threshold=1e-200), strict=True):
        expected = {}
        for z, p in zip(*listed(model, x), strict=True):
            for name, first, last in entities_of(z.tolist(), None):
                span = first, last + 1, name
                expected[span] = expected.get(span, 0.0) + p
        expected = {span: p for span, p in expected.items() if p >= 1e-200}
        assert {span[:3] for span in spans} == set(expected)
        for *at, p in spans:
            assert p == pytest.approx(expected[tuple(at)], rel=1e-9)


def test_known_labels_and_unknown_ones():
    model, X = with_random_weights()
    allowed = [[None] * len(x) for x, _ in X]
    allowed[1][0], allowed[3][1] = {"B-x", "O"}, "I-x"
    proba = model.predict_proba(X, allowed=allowed)
    found = model.predict(X, allowed=allowed)
    for i in (1, 3):

        def is_kept(z, own=allowed[i]):
            return all(
                e is None or label == e or label in e
                for label, e in zip(z, own, strict=True)
            )

        labelings, p = listed(model, X[i], is_kept)
        expected = sum(
            q * (z[:, np.newaxis] == TAGS) for z, q in zip(labelings, p, strict=True)
        )
        np.testing.assert_allclose(proba[i], expected, atol=1e-11)
        np.testing.assert_array_equal(found[i], labelings[p.argmax()])
    (labels, entropy), k = listed(model, X[2]), 4
    order = np.argsort(-entropy, kind="stable")[:k]
    best = model.predict_k_best([X[2]], k=k)[0][0]
    np.testing.assert_array_equal(best, np.array(labels)[order])
    p = entropy[entropy > 0]
    assert model.entropy([X[2]])[0] == pytest.approx(-(p * np.log(p)).sum(), rel=1e-9)
    assert len(uncertainty(model, X)) == len(X)


@pytest.mark.parametrize("kind", [BCFWClassifier, CRFClassifier])
def test_hidden_labels_are_summed_or_maximized_out(kind):
    X, y = made(n=12)
    hidden = [own.astype(object) for own in y]
    for own in hidden[4:]:
        own[0] = MISSING
    hidden[2][1] = {"B-x", "O"}
    model = kind(ChainStructure(edge_features=True), tol=1e-4, random_state=0)
    model.fit(X, hidden)
    risk = 0.0
    structure, w = model.structure_, model.coef_
    for x, own in zip(X, hidden, strict=True):
        labelings = list(structure.labelings(x))
        scores = np.array([structure.joint_feature(x, z) @ w for z in labelings])
        may = [
            all(e is MISSING or label == e or (isinstance(e, set) and label in e)
                for label, e in zip(z, own, strict=True))
            for z in labelings
        ]  # fmt: skip
        if kind is CRFClassifier:
            log_sums = [np.logaddexp.reduce(s) for s in (scores, scores[may])]
            risk += (log_sums[0] - log_sums[1]) / len(X)
            continue
        losses = [
            np.mean([not (e is MISSING or label == e or (isinstance(e, set)
                     and label in e)) for label, e in zip(z, own, strict=True)])
            for z in labelings
        ]  # fmt: skip
        risk += ((scores + losses).max() - scores[may].max()) / len(X)
    expected = w @ w / (2.0 * model.C * len(X)) + risk
    assert model.objective_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("solver", ["dual", "lbfgs"])
def test_costs_of_labels_are_added_in_training(solver):
    X, y = made()
    costs = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 0.5], [0.0, 1.5, 0.0]])
    model = CRFClassifier(
        ChainStructure(edge_features=True), label_costs=costs, solver=solver, tol=1e-6,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    structure, w, risk = model.structure_, model.coef_, 0.0
    for x, truth in zip(X, y, strict=True):
        labelings = list(structure.labelings(x))
        scores = [structure.joint_feature(x, z) @ w for z in labelings]
        codes = np.searchsorted(TAGS, truth)
        added = [costs[codes, np.searchsorted(TAGS, z)].sum() for z in labelings]
        own = structure.joint_feature(x, truth) @ w
        risk += (np.logaddexp.reduce(np.add(scores, added)) - own) / len(X)
    expected = w @ w / (2.0 * model.C * len(X)) + risk
    assert model.objective_ == pytest.approx(expected, rel=1e-9)
    assert model.dual_gap_ <= model.tol


def test_parts_on_a_cluster_give_the_same():
    bag = pytest.importorskip("dask.bag")
    X, y = made()
    model = CRFClassifier(ChainStructure(edge_features=True), tol=1e-4, random_state=0)
    objective, tol = model.fit(X, y).objective_, model.dual_gap_
    parts = [bag.from_sequence(own, npartitions=2) for own in (X, y)]
    found = model.fit(*parts)
    assert found.objective_ == pytest.approx(objective, abs=tol + found.dual_gap_)


@pytest.mark.parametrize("layout", [sparse.csr_array, np.float32, np.ndarray.tolist])
def test_edges_may_come_in_any_layout(layout):
    X, y = made()
    X = [(x, np.where(np.abs(z) > 0.5, np.round(z, 2), 0.0)) for x, z in X]
    if layout is np.float32:
        X = [(x, z.astype(np.float32).astype(float)) for x, z in X]
    given = [(x, layout(z) if len(z) else z) for x, z in X]
    model = CRFClassifier(ChainStructure(edge_features=True), random_state=0, tol=1e-4)
    w = model.fit(X, y).coef_
    np.testing.assert_allclose(model.fit(given, y).coef_, w, atol=1e-9)


def test_pipelines_scale_the_features_of_positions():
    X, y = made()
    scaler = SequenceTransformer(StandardScaler())
    chain = CRFClassifier(ChainStructure(edge_features=True), random_state=0)
    model = make_pipeline(scaler, chain).fit(X, y)
    rows = np.concatenate([x for x, _ in model[:-1].transform(X)])
    np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=1e-12)
    assert all(a[1] is b[1] for a, b in zip(model[:-1].transform(X), X, strict=True))
    stacked = StackedStructureClassifier(LogisticRegression(), chain, cv=2).fit(X, y)
    assert [len(own) for own in stacked.predict(X)] == [len(own) for own in y]
    tables = [(pd.DataFrame(x), z) for x, z in X]
    names = StackedStructureClassifier(LogisticRegression(), chain, cv=2).fit(tables, y)
    assert names.n_features_in_ == 3


def test_a_long_gap_makes_a_change_of_label_likelier():
    """Labels of a Markov process in time, read at irregular times."""
    rng, X, y = new_rng(11), [], []
    for _ in range(30):
        gaps = rng.exponential(size=(39, 1))
        changes = rng.random(39) < 0.5 * (1.0 - np.exp(-gaps[:, 0]))
        labels = np.r_[0, np.cumsum(changes)] % 2
        X.append((labels[:, None] + rng.normal(size=(40, 1)), gaps))
        y.append(labels)
    model = CRFClassifier(ChainStructure(edge_features=True), random_state=0).fit(X, y)
    (of_gaps,) = model.structure_.weight_parts(model.coef_)["edge_transition"]
    assert of_gaps[0, 1] + of_gaps[1, 0] > of_gaps[0, 0] + of_gaps[1, 1]
    # In the middle between the labels, and one before that is surely 0.
    rows = np.array([[-9.0], [0.5]])
    proba = model.predict_proba([(rows, np.array([[gap]])) for gap in (0.1, 5.0)])
    assert proba[1][1, 1] > proba[0][1, 1]


def test_exports_are_refused(tmp_path):
    model, _ = with_random_weights()
    with pytest.raises(ValueError, match="not support edge_features"):
        export_tagger(model, tmp_path / "tagger.npz")


def test_sequences_of_one_position_have_no_edges():
    X = [(np.eye(2)[[j % 2]], np.empty((0, 3))) for j in range(6)]
    y = [[j % 2] for j in range(6)]
    model = CRFClassifier(ChainStructure(edge_features=True), random_state=0).fit(X, y)
    assert model.structure_.n_edge_features_ == 3
    assert np.concatenate(model.predict(X)).tolist() == [0, 1] * 3
    longer = [(np.eye(2), np.ones((1, 3))), (np.empty((0, 2)), [])]
    assert list(map(len, model.predict(longer))) == [2, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, z: x, r"X\[0\] must be a pair \(features, edge_features\) with"),
        (lambda x, z: (x, z, z), "got tuple of 3 items"),
        (lambda x, z: (x, x), r"X\[0\]\[1\] has 1 rows, but X\[0\]\[0\] has 1 positions: "
         "0 rows are needed, one for each but the first"),
        (lambda x, z: (x, z[1:]), r"X\[1\]\[1\] has \d rows, but X\[1\]\[0\] has \d pos"),
        (lambda x, z: (x, z[:, 0]), r"X\[1\]\[1\] must be 2-D"),
        (lambda x, z: (x, z[:, :0]), r"X\[1\]\[1\] has 0 features"),
        (lambda x, z: (x, np.nan * z), r"X\[1\]\[1\] contains NaN"),
        (lambda x, z: (x, z[:, : len(z)]), r"X\[\d\]\[1\] has 2 features, but there"),
    ],
)  # fmt: skip
def test_mistakes_are_named(change, message):
    X, y = made()
    X[1] = (X[1][0][:2], X[1][1][:1])
    y[1] = y[1][:2]
    model = BCFWClassifier(ChainStructure(edge_features=True))
    with pytest.raises(ValueError, match=message):
        model.fit([change(*x) for x in X], y)


def test_pairs_and_parameters_are_not_guessed():
    X, y = made()
    with pytest.raises(ValueError, match=r"ChainStructure\(edge_features=True\) for"):
        BCFWClassifier(ChainStructure()).fit(X, y)
    structure = ChainStructure(transition=False, edge_features=True)
    with pytest.raises(ValueError, match="edge_features=True needs transition=True"):
        BCFWClassifier(structure).fit(X, y)
    model = CRFClassifier(ChainStructure(edge_features=True), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"X\[0\]\[1\] has 1 features, but there were 2"):
        model.predict([(np.ones((2, 3)), np.ones((1, 1)))])
    with pytest.raises(ValueError, match="solver='newton' requires"):
        model.set_params(solver="newton").fit(X, y)
