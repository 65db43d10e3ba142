"""An allocation of a kernel that fails is a MemoryError, and nothing is half done."""

import os
import pickle
from functools import partial

import numpy as np
import pytest
from _estimators import PythonMulticlass, assert_same_fit, exact_ssvm, make_problem
from _failing_malloc import watched
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.base import clone

import sklearn_structsvm
from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure, GraphStructure

KERNELS = os.path.join(os.path.dirname(sklearn_structsvm.__file__), "")
# A fit may allocate thousands of times: of these, so many fail, one by one.
MOST = 25

pytestmark = [
    pytest.mark.usefixtures("small_parts"),
    pytest.mark.thread_unsafe(reason="what kernels call is changed for all threads"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def wide_rows(kind):
    """Rows of float32 of more entries than kernels convert on the stack."""
    rng = new_rng(0)
    X = rng.standard_normal((12, 1500), dtype=np.float32)
    X = sparse.csr_array(X * (X > -0.9)) if kind == "csr" else X
    return X, np.arange(12) % 3


def wide_chains(kind):
    X, y = wide_rows(kind)
    parts = [slice(t, t + 3) for t in range(0, 12, 3)]
    return [X[part] for part in parts], [y[part] for part in parts]


def letters():
    return make_chains(12, n_features=3, n_classes=14, random_state=new_seed(0))


def forests():
    X, y = make_chains(8, n_features=3, n_classes=2, random_state=new_seed(0))
    edges = [np.c_[np.arange(len(x) - 1), np.arange(1, len(x))] for x in X]
    return list(zip(X, edges, strict=True)), y


def of(kind):
    problem = make_problem(kind)
    return problem.X, problem.y


FEW = {"max_iter": 3, "random_state": 0}
EXACT = FEW | {"search": "exact"}
PAIRWISE = BCFWClassifier(step="pairwise", **FEW)
HYBRID = SubLBFGSClassifier(solver="hybrid", max_iter=3)
FITS = {
    "active sets": (PAIRWISE, partial(of, "chain")),
    "gram matrices": (BCFWClassifier(step="corrective", **FEW), partial(of, "chain")),
    "threads": (clone(PAIRWISE).set_params(n_jobs=2), partial(of, "chain")),
    "sums of edges": (BCFWClassifier(ChainStructure(), **FEW), letters),
    "python": (BCFWClassifier(PythonMulticlass(), **FEW), partial(of, "custom")),
    "searches": (SlackRescaledSSVM(**FEW), partial(of, "chain")),
    "candidates": (exact_ssvm(ChainStructure(), **EXACT), partial(of, "chain")),
    "forests": (exact_ssvm(GraphStructure(), **EXACT), forests),
    "segments": (HYBRID, partial(of, "multiclass")),
    "exact steps": (BCFWClassifier(**FEW), partial(wide_rows, "dense")),
    "exact steps csr": (BCFWClassifier(**FEW), partial(wide_rows, "csr")),
    "scores": (CRFClassifier(solver="newton", **FEW), partial(wide_rows, "dense")),
    "scores csr": (BMRMClassifier(max_iter=3), partial(wide_rows, "csr")),
    "features": (CRFClassifier(**FEW), partial(wide_chains, "dense")),
    "features csr": (PAIRWISE, partial(wide_chains, "csr")),
}


def some_of(n):
    return sorted({int(k) for k in np.linspace(1, n, min(n, MOST))})


@pytest.mark.parametrize(("model", "data"), FITS.values(), ids=FITS)
def test_a_fit_raises_it_and_the_next_one_is_the_same(model, data):
    X, y = data()
    expected = clone(model).fit(X, y)
    with watched(KERNELS) as allocations:
        clone(model).fit(X, y)
        n = allocations.count
        assert n > 0
        again = clone(model)
        for k in some_of(n):
            allocations.restart(fails_at=k)
            with pytest.raises(MemoryError, match="no memory for "):
                again.fit(X, y)
            if hasattr(again, "coef_"):
                # It was made, and the advice after it was short of memory.
                assert_same_fit(again, expected)
                again = clone(model)
    assert_same_fit(again.fit(X, y), expected)


def k_best():
    model = CRFClassifier(**FEW).fit(*of("chain"))
    return lambda: model.predict_k_best(of("chain")[0], 3)


def predictions(kind):
    X, y = wide_chains(kind)
    model = BCFWClassifier(**FEW).fit(X, y)
    return lambda: model.predict(X)


def words():
    X = [[["a", "b"], ["b", "c"]], [["c"]]]
    transformer = SequenceTransformer().fit(X)
    return lambda: [x.toarray() for x in transformer.transform(X)]


CALLS = {
    "k best": k_best, "predictions": partial(predictions, "dense"),
    "predictions csr": partial(predictions, "csr"), "words": words,
}  # fmt: skip


@pytest.mark.parametrize("make", CALLS.values(), ids=CALLS)
def test_other_calls_raise_it_and_answer_the_next_time(make):
    call = make()
    expected = call()
    with watched(KERNELS) as allocations:
        call()
        n = allocations.count
        assert n > 0
        for k in some_of(n):
            allocations.restart(fails_at=k)
            with pytest.raises(MemoryError, match="no memory for "):
                call()
    assert pickle.dumps(call()) == pickle.dumps(expected)
