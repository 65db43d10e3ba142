"""Features in float32: read as they are, with the bits of the same numbers as float64."""

from itertools import product

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
from sklearn_structsvm.structures import PairwiseMultilabelStructure, PictorialStructure

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def as_float64(X):
    """The same numbers, in the same places."""
    if isinstance(X, (list, tuple)):
        return type(X)(map(as_float64, X))
    if isinstance(X, SplitMatrix):
        return SplitMatrix(as_float64(X.matrices))
    return X.astype(np.float64) if X.dtype == np.float32 else X


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
    CRFClassifier(solver="newton"), CRFClassifier(solver="lbfgs"),
    SlackRescaledSSVM(max_iter=5, random_state=0), SubLBFGSClassifier(),
    SubLBFGSClassifier("squared_hinge"),
    SubLBFGSClassifier("squared_hinge", penalty="l1"), BMRMClassifier(),
    PragamClassifier(max_iter=50),
]  # fmt: skip


def sequences(n_features, longest=40):
    """Items, and labels; some items are longer than what is read at once."""
    rng = new_rng(1)
    lengths = [*rng.integers(1, longest, 10), 2 * longest]
    X = [rng.standard_normal((T, n_features), dtype=np.float32) for T in lengths]
    y = [np.argmax(x[:, :3] + rng.standard_normal((len(x), 3)), axis=1) for x in X]
    return X, y


def labels(kind):
    X, _ = rows(kind)
    dense = X.toarray() if kind == "csr" else X
    return X, (dense[:, :4] > 0.1).astype(int)


def chains(kind, n_features):
    X, y = sequences(n_features)
    few = [sparse.csr_array(x * (np.abs(x) > 1)) for x in X]
    if kind == "split":
        X = [SplitMatrix(pair) for pair in zip(X, few, strict=True)]
    return few if kind == "csr" else X, y


def others(kind):
    """Trees, graphs with features of edges, or images."""
    rng, (X, y) = new_rng(2), sequences(8)
    if kind == "tree":
        parents = [[-1, *(rng.integers(v) for v in range(1, len(x)))] for x in X]
        return [(x, np.array(p)) for x, p in zip(X, parents, strict=True)], y
    if kind == "images":
        X = [rng.standard_normal((2, 6, 7, 3), dtype=np.float32) for _ in range(8)]
        return X, [rng.integers(0, 6, (2, 2)) for _ in X]
    edges = [np.column_stack([range(len(x) - 1), range(1, len(x))]) for x in X]
    own = [rng.standard_normal((len(e), 2), dtype=np.float32) for e in edges]
    return list(zip(X, edges, own, strict=True)), y


SHORT = {"max_iter": 5, "random_state": 0}
LABELS = [
    BCFWClassifier("multilabel", random_state=0), BMRMClassifier(max_iter=10),
    BCFWClassifier(PairwiseMultilabelStructure(), **SHORT),
    CRFClassifier("multilabel", **SHORT),
]  # fmt: skip
CHAINS = [
    BCFWClassifier(**SHORT), BCFWClassifier(step="pairwise", **SHORT),
    CRFClassifier(solver="dual", **SHORT), CRFClassifier(solver="lbfgs", max_iter=20),
    SlackRescaledSSVM(max_iter=2, random_state=0), BMRMClassifier("chain", max_iter=10),
    PragamClassifier(structure="chain", max_iter=10),
]  # fmt: skip
CASES = [
    *product(ROWS, [rows], [["dense"], ["csr"]]), *product(ROWS[::4], [rows], [["few"]]),
    *product(LABELS, [labels], [["dense"], ["csr"]]),
    *product(CHAINS, [chains], [("dense", 8), ("csr", 1000), ("split", 8)]),
    *product(CHAINS[::2], [chains], [("dense", 1000), ("csr", 8), ("split", 1000)]),
    (BCFWClassifier("tree", **SHORT), others, ["tree"]),
    (CRFClassifier("tree", **SHORT), others, ["tree"]),
    (BCFWClassifier("graph", **SHORT), others, ["graph"]),
    (BMRMClassifier("graph", max_iter=10), others, ["graph"]),
    (BCFWClassifier(PictorialStructure([-1, 0]), **SHORT), others, ["images"]),
]  # fmt: skip


def name_of(own):
    return getattr(own, "__name__", repr(own))


@pytest.mark.parametrize(("model", "draw", "of"), CASES, ids=name_of)
def test_numbers_in_float32_have_the_bits_of_the_same_in_float64(model, draw, of):
    X, y = draw(*of)
    single = clone(model).fit(X, y)
    double = clone(model).fit(as_float64(X), y)
    assert_same_fit(single, double)
    assert_same_labels(single.predict(X), double.predict(as_float64(X)))
    for name in ("decision_function", "predict_proba"):
        if hasattr(single, name):
            answers = getattr(single, name)(X), getattr(double, name)(as_float64(X))
            for one, other in zip(*answers, strict=True):
                np.testing.assert_array_equal(one, other)


def test_memory_maps_and_items_of_both_types_do_as_well(tmp_path):
    X, y = sequences(8)
    for i, pair in enumerate(zip(X, y, strict=True)):
        for name, part in zip("Xy", pair, strict=True):
            np.save(tmp_path / f"{name}{i}.npy", part)
    mapped, labels = (
        [np.load(tmp_path / f"{name}{i}.npy", mmap_mode="r") for i in range(len(X))]
        for name in "Xy"
    )
    assert not mapped[0].flags.writeable
    mixed = [x.astype(np.float64) if i % 2 else x for i, x in enumerate(mapped)]
    expected = BCFWClassifier(**SHORT).fit(X, y)
    for items in (mapped, mixed, [np.asfortranarray(x) for x in X]):
        model = BCFWClassifier(**SHORT).fit(items, labels)
        assert_same_fit(model, expected)
        assert_same_labels(model.predict(items), expected.predict(X))
