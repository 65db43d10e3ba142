"""What a user passes must be the same after a call, bit for bit."""

from contextlib import contextmanager

import numpy as np
from scipy import sparse

from sklearn_structsvm.preprocessing import SplitMatrix

PLAIN = (int, float, complex, str, bytes, type(None))


class Changed(AssertionError):
    """A call has written to what was passed."""


@contextmanager
def untouched(**arguments):
    """Raise `Changed` if an argument has other contents at the end, or after an error."""
    before = {name: contents(value) for name, value in arguments.items()}
    try:
        yield
    finally:
        changed = [
            name for name, value in arguments.items() if contents(value) != before[name]
        ]
        if changed:
            raise Changed(f"the call has changed {', '.join(changed)}")


def tangled(X, kind=sparse.csr_array):
    """The CSR form of X with each entry as two halves, and columns in falling order.

    The halves are exact, so sums are those entries. SciPy tidies it up in place where it
    needs to, also in methods that seem only to read.
    """
    rows = [np.flatnonzero(row)[::-1].repeat(2) for row in np.asarray(X)]
    values = [row[own] / 2 for row, own in zip(np.asarray(X), rows, strict=True)]
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.concatenate([[], *rows]).astype(np.intc)
    parts = np.concatenate([[], *values]), columns, starts.astype(np.intc)
    return kind(parts, shape=np.shape(X))


def contents(value):
    """Bytes and types of the arrays in a value, at any depth; else what it is."""
    if sparse.issparse(value):
        names = ("data", "indices", "indptr", "coords", "offsets", "rows")
        kept = {name: getattr(value, name) for name in names if hasattr(value, name)}
        if value.format == "dok":
            kept = dict(value.items())
        return value.format, value.shape, contents(kept)
    if isinstance(value, SplitMatrix):
        return contents(value.matrices)
    if isinstance(value, np.ma.MaskedArray):
        return contents([value.data, value.mask])
    if isinstance(value, np.ndarray):
        known = value.dtype.str, value.shape
        if value.dtype.hasobject:
            return *known, contents(value.ravel().tolist())
        return *known, value.tobytes()
    if isinstance(value, dict):
        return type(value), contents(list(value)), contents(list(value.values()))
    if isinstance(value, (list, tuple)):
        return type(value), *map(contents, value)
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(map(contents, value))
    if hasattr(value, "to_numpy") and hasattr(value, "shape"):
        return type(value), contents(value.to_numpy())
    if isinstance(value, (*PLAIN, np.generic)):
        return type(value), repr(value)
    return id(value)
