"""How uncertain labelings are, beside enumeration of all of them."""

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import BCFWClassifier, CRFClassifier, uncertainty
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import GraphStructure, TreeStructure

KINDS = "margin", "least_confidence", "entropy"


def fitted(cls, structure="chain"):
    X, y = make_chains(12, n_features=3, n_classes=3, random_state=new_seed(0))
    X, y = [x[:4] for x in X], [own[:4] for own in y]
    if structure != "chain":
        X = [(x, np.arange(len(x)) - 1) for x in X]
    return cls(structure, C=0.1, tol=0.1, random_state=0).fit(X, y), X


def scores_of(model, x):
    """The scores of all labelings, the best first."""
    structure = model.structure_
    scores = [model.coef_ @ structure.joint_feature(x, y) for y in structure.labelings(x)]
    return np.sort(scores)[::-1]


@pytest.mark.parametrize("structure", ["chain", TreeStructure()])
def test_each_kind_is_its_definition(structure):
    model, X = fitted(CRFClassifier, structure)
    found = {kind: uncertainty(model, X, kind=kind) for kind in KINDS}
    for i, x in enumerate(X):
        p = np.exp(scores_of(model, x))
        p /= p.sum()
        assert found["margin"][i] == pytest.approx(p[1] - p[0], abs=1e-12)
        assert found["least_confidence"][i] == pytest.approx(1.0 - p[0], abs=1e-12)
        assert found["entropy"][i] == pytest.approx(-np.sum(p * np.log(p)), abs=1e-10)
    np.testing.assert_array_equal(uncertainty(model, X), found["margin"])


def test_margins_of_scores():
    model, X = fitted(BCFWClassifier)
    found = uncertainty(model, X)
    for x, value in zip(X, found, strict=True):
        scores = scores_of(model, x)
        assert value == pytest.approx(scores[1] - scores[0], abs=1e-10)


def test_nothing_is_uncertain_if_all_labels_are_known():
    (crf, X), (svm, _) = fitted(CRFClassifier), fitted(BCFWClassifier)
    X = [*X, X[0][:0]]
    known = list(svm.predict(X))
    expected = {"margin": -1.0, "least_confidence": 0.0, "entropy": 0.0}
    for kind in KINDS:
        found = uncertainty(crf, X, kind=kind, allowed=known)
        np.testing.assert_allclose(found, expected[kind], atol=1e-10)
    np.testing.assert_array_equal(uncertainty(svm, X, allowed=known), -np.inf)
    assert [len(uncertainty(crf, [], kind=kind)) for kind in KINDS] == [0, 0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipeline_is_as_its_last_step(kind):
    rng = new_rng(1)
    X = [rng.standard_normal((3, 2)) for _ in range(6)]
    y = [np.array(["a", "b", "c"])] * 6
    model = CRFClassifier("chain", random_state=0)
    pipeline = make_pipeline(SequenceTransformer(StandardScaler()), model).fit(X, y)
    allowed = [[None, {"a", "b"}, None]] * 6
    expected = uncertainty(
        pipeline[-1], pipeline[:-1].transform(X), kind=kind, allowed=allowed
    )
    np.testing.assert_array_equal(
        uncertainty(pipeline, X, kind=kind, allowed=allowed), expected
    )
    alone = make_pipeline(model).fit(X, y)
    np.testing.assert_array_equal(
        uncertainty(alone, X, kind=kind), uncertainty(alone[-1], X, kind=kind)
    )


def test_what_an_estimator_lacks_is_said():
    svm, X = fitted(BCFWClassifier)
    for kind in ("least_confidence", "entropy"):
        with pytest.raises(TypeError, match=f"{kind}.* requires a CRFClassifier"):
            uncertainty(svm, X, kind=kind)
    with pytest.raises(ValueError, match="kind must be"):
        uncertainty(svm, X, kind="least_confident")
    with pytest.raises(NotFittedError):
        uncertainty(CRFClassifier(), X)
    flat = CRFClassifier().fit(np.eye(4), [0, 1, 0, 1])
    for kind in ("margin", "least_confidence"):
        with pytest.raises(TypeError, match="over sequences, trees or forests"):
            uncertainty(flat, np.eye(4), kind=kind)
    entropies = uncertainty(flat, np.eye(4), kind="entropy")
    np.testing.assert_array_equal(entropies, flat.entropy(np.eye(4)))


def test_graphs_without_cycles_have_margins():
    _, X = fitted(CRFClassifier)
    y = [np.arange(len(x)) % 2 for x in X]
    edges = [np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))]) for x in X]
    model = BCFWClassifier(GraphStructure(), tol=0.1, random_state=0)
    graphs = list(zip(X, edges, strict=True))
    for x, value in zip(graphs, uncertainty(model.fit(graphs, y), graphs), strict=True):
        scores = scores_of(model, x)
        assert value == pytest.approx(scores[1] - scores[0], abs=1e-10)
