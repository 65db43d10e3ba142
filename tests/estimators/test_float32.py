"""Features in float32: read as they are, with the bits of the same numbers as float64."""

import numpy as np
import pytest
from _estimators import assert_same_fit, assert_same_labels
from _seeds import new_rng
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.structures import (
    ChainStructure,
    GraphStructure,
    PairwiseMultilabelStructure,
    PictorialStructure,
    TreeStructure,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def as_float64(X):
    """The same numbers, in the same places."""
    if isinstance(X, (list, tuple)):
        return type(X)(map(as_float64, X))
    if isinstance(X, SplitMatrix):
        return SplitMatrix(as_float64(X.matrices))
    return X.astype(np.float64) if X.dtype == np.float32 else X


def assert_same_bits(model, X, y):
    single = clone(model).fit(X, y)
    double = clone(model).fit(as_float64(X), y)
    assert_same_fit(single, double)
    assert single.dual_gap_ == double.dual_gap_
    assert single.objective_ == double.objective_
    assert_same_labels(single.predict(X), double.predict(as_float64(X)))
    for name in ("decision_function", "predict_proba"):
        if hasattr(single, name):
            answers = getattr(single, name)(X), getattr(double, name)(as_float64(X))
            for one, other in zip(*answers, strict=True):
                np.testing.assert_array_equal(one, other)


def rows(kind):
    rng = new_rng(0)
    X = rng.standard_normal((150, 40), dtype=np.float32)
    if kind != "dense":
        X *= rng.random(X.shape) < 0.1
    y = np.argmax(X[:, :3] + rng.standard_normal((150, 3)), axis=1)
    return sparse.csr_array(X) if kind == "csr" else X, y


ROWS = [
    BCFWClassifier(random_state=0),
    BCFWClassifier(step="pairwise", max_iter=5, random_state=0),
    BCFWClassifierCV(Cs=[0.01, 0.1], cv=2, random_state=0),
    CRFClassifier(solver="dual", max_iter=20, random_state=0),
    CRFClassifier(solver="newton"),
    CRFClassifier(solver="lbfgs"),
    SlackRescaledSSVM(max_iter=5, random_state=0),
    SubLBFGSClassifier(),
    SubLBFGSClassifier("squared_hinge"),
    SubLBFGSClassifier("squared_hinge", penalty="l1"),
    BMRMClassifier(),
    PragamClassifier(max_iter=50),
]


@pytest.mark.parametrize("model", ROWS, ids=repr)
@pytest.mark.parametrize("kind", ["dense", "few", "csr"])
def test_rows(kind, model):
    assert_same_bits(model, *rows(kind))


@pytest.mark.parametrize(
    "model",
    [
        BCFWClassifier("multilabel", random_state=0),
        BCFWClassifier(PairwiseMultilabelStructure(), max_iter=5, random_state=0),
        CRFClassifier("multilabel", max_iter=10, random_state=0),
        BMRMClassifier(max_iter=10),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_rows_of_several_labels(kind, model):
    X, _ = rows(kind)
    dense = X.toarray() if kind == "csr" else X
    assert_same_bits(model, X, (dense[:, :4] > 0.1).astype(int))


def sequences(n_features, longest=40):
    """Items, and labels; some items are longer than what is read at once."""
    rng = new_rng(1)
    lengths = [*rng.integers(1, longest, 10), 2 * longest]
    X = [rng.standard_normal((T, n_features), dtype=np.float32) for T in lengths]
    y = [np.argmax(x[:, :3] + rng.standard_normal((len(x), 3)), axis=1) for x in X]
    return X, y


@pytest.mark.parametrize(
    "model",
    [
        BCFWClassifier(max_iter=20, random_state=0),
        BCFWClassifier(step="pairwise", max_iter=5, random_state=0),
        CRFClassifier(solver="dual", max_iter=20, random_state=0),
        CRFClassifier(solver="lbfgs", max_iter=20),
        SlackRescaledSSVM(max_iter=2, random_state=0),
        BMRMClassifier("chain", max_iter=10),
        PragamClassifier(structure="chain", max_iter=10),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_features", [8, 1000])
@pytest.mark.parametrize("kind", ["dense", "csr", "split"])
def test_chains(kind, n_features, model):
    X, y = sequences(n_features)
    few = [sparse.csr_array(x * (np.abs(x) > 1)) for x in X]
    if kind == "split":
        X = [SplitMatrix(pair) for pair in zip(X, few, strict=True)]
    elif kind == "csr":
        X = few
    assert_same_bits(model, X, y)


@pytest.mark.parametrize("model", [BCFWClassifier, CRFClassifier])
def test_trees(model):
    X, y = sequences(8)
    rng = new_rng(2)
    parents = [[-1, *(rng.integers(v) for v in range(1, len(x)))] for x in X]
    X = [(x, np.array(p)) for x, p in zip(X, parents, strict=True)]
    assert_same_bits(model(TreeStructure(), max_iter=20, random_state=0), X, y)


@pytest.mark.parametrize(
    "model",
    [
        BCFWClassifier(GraphStructure(), max_iter=10, random_state=0),
        BMRMClassifier(GraphStructure(), max_iter=10),
    ],
    ids=["blocks", "planes"],
)
def test_graphs(model):
    X, y = sequences(8)
    rng = new_rng(3)
    graphs = []
    for x in X:
        edges = np.array([(v, v + 1) for v in range(len(x) - 1)]).reshape(-1, 2)
        own = rng.standard_normal((len(edges), 2), dtype=np.float32)
        graphs.append((x, edges, own))
    assert_same_bits(model, graphs, y)


def test_images():
    rng = new_rng(4)
    X = [rng.standard_normal((2, 6, 7, 3), dtype=np.float32) for _ in range(8)]
    y = [rng.integers(0, 6, (2, 2)) for _ in X]
    model = BCFWClassifier(PictorialStructure([-1, 0]), max_iter=5, random_state=0)
    assert_same_bits(model, X, y)


def test_memory_maps_of_both_types_and_others(tmp_path):
    X, y = sequences(8)
    for i, x in enumerate(X):
        np.save(tmp_path / f"{i}.npy", x)
    mapped = [np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(len(X))]
    model = BCFWClassifier(ChainStructure(), max_iter=10, random_state=0)
    assert_same_fit(clone(model).fit(mapped, y), clone(model).fit(X, y))
    mixed = [x.astype(np.float64) if i % 2 else x for i, x in enumerate(mapped)]
    assert_same_fit(clone(model).fit(mixed, y), clone(model).fit(X, y))
    strided = [np.asfortranarray(x) for x in X]
    assert_same_fit(clone(model).fit(strided, y), clone(model).fit(X, y))
