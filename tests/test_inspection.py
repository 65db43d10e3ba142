"""Explanations add up to differences of scores; pairs of labels beside enumeration."""

import sys

import numpy as np
import pandas as pd
import pytest
from _options import placed
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.inspection import explain, top_features, transition_table
from sklearn_structsvm.preprocessing import SplitMatrix, WordFeatures
from sklearn_structsvm.structures import ChainStructure, TreeStructure

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LABELS = ["B-x", "I-x", "O"]


def as_they_are(x):
    return x


FORMS = {
    "dense": as_they_are,
    "CSR": sparse.csr_array,
    "split": lambda x: SplitMatrix([x[:, :1], sparse.csr_array(x[:, 1:])]),
}
STRUCTURES = {
    "chain": ChainStructure(),
    "bio": ChainStructure(transitions="bio"),
    "without transitions": ChainStructure(transition=False, last_bias=False),
    "both": ChainStructure(emission="both"),
    "given": ChainStructure(emission="given"),
    "edges": ChainStructure(edge_features=True, transitions=[("O", "I-x")]),
    "tree": TreeStructure(),
    "tree with bans": TreeStructure(transitions=[("O", "I-x"), (None, "I-x")]),
}


def tagger(name, form="dense", estimator=CRFClassifier):
    """A fitted estimator whose weights were drawn at random, and items."""
    rng, structure = new_rng(1), STRUCTURES[name]
    X = []
    for T in (1, 2, 4, 4):
        x = FORMS[form](rng.normal(size=(T, 3)))
        if structure.emission == "both":
            x = x, rng.normal(size=(T, 3))
        if name == "edges":
            x = x, rng.normal(size=(T - 1, 2))
        if isinstance(structure, TreeStructure):
            x = x, np.array([-1, *(rng.integers(t) for t in range(1, T))])
        X.append(x)
    n_nodes = [1, 2, 4, 4]
    model = placed(estimator)(
        structure, classes=LABELS, max_iter=1, random_state=new_seed(1)
    )
    model.fit(X, [["B-x"] * n for n in n_nodes])
    model.coef_ = rng.normal(size=len(model.coef_))
    return model, X


def score(model, x, labels):
    return model.coef_ @ model.structure_.joint_feature(x, labels)


CASES = [*((name, "dense") for name in STRUCTURES), ("chain", "CSR"), ("tree", "split")]


@pytest.mark.parametrize("name, form", CASES)
@pytest.mark.parametrize("estimator", [CRFClassifier, BCFWClassifier])
def test_contributions_sum_to_the_difference_from_the_next_best_label(
    name, form, estimator
):
    model, X = tagger(name, form, estimator)
    for x, labels in zip(X, model.predict(X), strict=True):
        possible = {tuple(own) for own in model.structure_.labelings(x)}
        for own in explain(model, x):
            assert own.label == labels[own.position]
            scores = {}
            for other in LABELS:
                changed = labels.copy()
                changed[own.position] = other
                if other != own.label and tuple(changed) in possible:
                    scores[other] = score(model, x, changed)
            if not scores:
                assert own.other is None and own.contributions == []
                continue
            assert own.other == max(scores, key=scores.get)
            expected = score(model, x, labels) - scores[own.other]
            assert own.difference == pytest.approx(expected, rel=1e-9, abs=1e-9)
            total = sum(value for _, value in own.contributions)
            assert total == pytest.approx(expected, rel=1e-9, abs=1e-9)
            sizes = [abs(value) for _, value in own.contributions]
            assert sizes == sorted(sizes, reverse=True)


def test_contributions_have_the_names_of_the_pipeline():
    X, y = [["the", "cat"], ["a", "dog"], ["the", "cow"]], [["DET", "NOUN"]] * 3
    model = make_pipeline(WordFeatures(), CRFClassifier("chain", random_state=0))
    own = explain(model.fit(X, y), ["the", "dog"])[1]
    names = {name for name, _ in own.contributions}
    assert {"lower=dog", "-1:lower=the", "previous=DET", "bias", "last_bias"} <= names
    weights = dict(top_features(model, "NOUN", n_features=1000))
    other = dict(top_features(model, "DET", n_features=1000))
    value = weights["lower=dog"] - other["lower=dog"]
    assert dict(own.contributions)["lower=dog"] == pytest.approx(value)
    sizes = [abs(value) for value in weights.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert len(top_features(model, "NOUN", n_features=3)) == 3


@pytest.mark.parametrize("name", STRUCTURES)
def test_tables_have_the_weights_with_their_names(name):
    model, _ = tagger(name)
    found = top_features(model, "I-x", n_features=2)
    frame = top_features(model, "I-x", n_features=2, as_frame=True)
    expected = pd.DataFrame(found, columns=["feature", "weight"])
    pd.testing.assert_frame_equal(frame, expected)
    table = transition_table(model)
    assert table.index.tolist() == table.columns.tolist() == LABELS
    structure = model.structure_
    weights = structure.weight_parts(model.coef_).get("transition", np.zeros((3, 3)))
    allowed = np.ones((3, 3), dtype=bool)
    if structure.allowed_ is not None:
        allowed = structure.allowed_[:3, :3]
    expected = np.where(allowed, weights, -np.inf)
    assert np.array_equal(table.to_numpy(), expected)


def test_tables_without_pandas_say_what_is_missing(monkeypatch):
    model, _ = tagger("chain")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="transition_table needs pandas"):
        transition_table(model)
    with pytest.raises(ImportError, match=r"top_features\(as_frame=True\) needs pandas"):
        top_features(model, "O", as_frame=True)


def test_what_cannot_be_explained_is_refused():
    model = CRFClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="needs an estimator over a ChainStructure"):
        explain(model, [[0.0]])
    model, _ = tagger("chain")
    with pytest.raises(ValueError, match="label must be one of the classes"):
        top_features(model, "B-y")


@pytest.mark.parametrize("with_masks", [False, True])
@pytest.mark.parametrize("name", STRUCTURES)
def test_pairs_have_the_sums_of_their_labelings(name, with_masks):
    model, X = tagger(name)
    masks = None
    if with_masks:
        # At least the prediction stays possible.
        rng, best = new_rng(2), model.predict(X)
        masks = [rng.random((len(own), 3)) < 0.6 for own in best]
        for mask, own in zip(masks, best, strict=True):
            mask[np.arange(len(own)), np.searchsorted(LABELS, own)] = True
    found = model.predict_edge_proba(X, allowed=masks)
    for i, x in enumerate(X):
        codes = [np.searchsorted(LABELS, own) for own in model.structure_.labelings(x)]
        if with_masks:
            codes = [own for own in codes if masks[i][np.arange(len(own)), own].all()]
        scores = [score(model, x, np.array(LABELS)[own]) for own in codes]
        shares = np.exp(scores - np.max(scores))
        shares /= shares.sum()
        T = len(codes[0])
        parents = x[1] if name.startswith("tree") else np.arange(T) - 1
        children = np.flatnonzero(parents >= 0)
        expected = np.zeros((len(children), 3, 3))
        for own, share in zip(codes, shares, strict=True):
            for e, v in enumerate(children):
                expected[e, own[parents[v]], own[v]] += share
        np.testing.assert_allclose(found[i], expected, atol=1e-12)


def test_pairs_of_graphs_are_not_offered():
    model = CRFClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
    assert not hasattr(model, "predict_edge_proba")


def test_scores_far_apart_do_not_overflow():
    model, X = tagger("bio")
    model.coef_ *= 1e3
    for pairs, proba in zip(
        model.predict_edge_proba(X), model.predict_proba(X), strict=True
    ):
        np.testing.assert_allclose(pairs.sum(axis=1), proba[1:], atol=1e-9)
