"""What fits and predictions take beside their data."""

import tracemalloc

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.structures.validation import stack

pytestmark = [
    pytest.mark.thread_unsafe(reason="memory is traced of all threads"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def added(call):
    """Bytes that a call takes at most, and what it returns."""
    tracemalloc.start()
    try:
        result = call()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def size_of(X):
    """Bytes of features."""
    if isinstance(X, list):
        return sum(map(size_of, X))
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes


def rows(kind, n_samples=4000, n_features=250):
    rng = new_rng(0)
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    y = (X[:, 0] + rng.normal(size=n_samples) > 0).astype(int)
    if kind == "csr":
        X = sparse.csr_array(X * (X > 0))
    return X, y


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("n_features", [50, 250])
@pytest.mark.parametrize("solver", ["newton", "lbfgs", "dual"])
def test_logistic_regression_keeps_no_second_x(solver, n_features, kind):
    X, y = rows(kind, 10**6 // n_features, n_features)
    X = X.astype(np.float64)
    CRFClassifier(solver=solver, max_iter=2).fit(X[:100], y[:100])
    most, _ = added(lambda: CRFClassifier(solver=solver, max_iter=2).fit(X, y))
    # Some numbers for each row, and a piece of X.
    assert most < 0.2 * size_of(X) + 130 * len(y)


@pytest.mark.parametrize("model", [BCFWClassifier, CRFClassifier])
def test_a_fit_to_float32_makes_one_copy(model):
    X, y = rows("dense")
    most, _ = added(lambda: model(max_iter=2).fit(X, y))
    # In float64.
    assert most < 2.2 * size_of(X) + 130 * len(y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_sequences_are_put_below_one_another_once(dtype):
    items = [np.ones((10, 50), dtype=dtype) for _ in range(500)]
    most, (rows, _) = added(lambda: stack(items))
    assert rows.dtype == np.float64
    assert most < 1.1 * rows.nbytes
