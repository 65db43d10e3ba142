"""Sizes of columns and of entries, of arrays of every layout."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_structsvm._utils.columns import largest_entry, mean_sizes
from tests._seeds import new_rng

LAYOUTS = {
    "float64": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "Fortran": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "not aligned": lambda X: np.ndarray(X.shape, buffer=b"0" + X.tobytes(), offset=1),
    "other byte order": lambda X: X.astype(">f8"),
    "integers": lambda X: np.round(X).astype(int),
    "CSR": sparse.csr_matrix,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_are_those_of_the_definition(layout):
    rng = new_rng()
    dense = [3.0 * rng.normal(size=(t, 5)) for t in (4, 0, 1, 7)]
    items, weights = list(map(LAYOUTS[layout], dense)), rng.random(4)
    full = [X.toarray() if sparse.issparse(X) else X.astype(float) for X in items]
    expected = sum(p * np.abs(X).sum(axis=0) for p, X in zip(weights, full, strict=True))
    np.testing.assert_allclose(mean_sizes(items, weights), expected, rtol=1e-13)
    assert largest_entry(*items) == max(np.abs(X).max(initial=0.0) for X in full)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_the_largest_entry_keeps_what_is_not_finite(odd):
    rng = new_rng()
    items = [rng.normal(size=(3, 2)).astype(kind) for kind in ("f4", "f8", "f4")]
    items[rng.integers(3)][rng.integers(3), rng.integers(2)] = odd
    np.testing.assert_equal(largest_entry(*items), abs(odd))
    assert largest_entry() == largest_entry(np.empty((0, 3))) == 0.0
