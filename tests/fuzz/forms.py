"""The same content in other forms.

Numbers are multiples of 1/8, which all forms hold exactly.
"""

from importlib.util import find_spec

import numpy as np
import pandas as pd
from _untouched import tangled
from scipy import sparse

from sklearn_structsvm.preprocessing import SplitMatrix


def _read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def _named(x):
    return {f"c{j}": x[:, j] for j in range(x.shape[1])}


def _chunked(y):
    parts = [pyarrow.array(own.tolist()) for own in np.array_split(y, 2)]
    return pyarrow.chunked_array(parts, type=pyarrow.array(y.tolist()).type)


# Tables, whose columns have names, and columns.
TABLES = {"data frame": lambda x: pd.DataFrame(_named(x))}
COLUMNS = {"series": pd.Series}
# Columns of lists, for all examples together.
OF_LISTS = {}
if find_spec("polars"):
    import polars

    TABLES["polars frame"] = lambda x: polars.DataFrame(_named(x))
    COLUMNS["polars column"] = lambda y: polars.Series(y.tolist())
    OF_LISTS["polars column of lists"] = polars.Series
if find_spec("pyarrow"):
    import pyarrow

    TABLES["Arrow table"] = lambda x: pyarrow.table(_named(x))
    COLUMNS["Arrow column"] = lambda y: pyarrow.array(y.tolist())
    COLUMNS["Arrow column of chunks"] = _chunked
    OF_LISTS["Arrow column of lists"] = pyarrow.array
FRAMES = (*TABLES,)

# Of a matrix of rows, or of the features of an item.
MATRICES = {
    "float32": lambda x: x.astype(np.float32),
    "longdouble": lambda x: x.astype(np.longdouble),
    "Fortran": np.asfortranarray,
    "read-only": _read_only,
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "CSR": sparse.csr_array,
    "CSR matrix": sparse.csr_matrix,
    "CSR of 64 bits": lambda x: _with_long_indices(sparse.csr_array(x)),
    "float32 CSR": lambda x: sparse.csr_array(x.astype(np.float32)),
    "repeated entries": tangled,
    "lists": lambda x: x.tolist(),
    "objects": lambda x: x.astype(object),
} | TABLES
OF_ROWS = MATRICES | {"CSC": sparse.csc_array, "COO": sparse.coo_array}
OF_ITEMS = MATRICES | {
    "split": lambda x: SplitMatrix([x[:, :1], sparse.csr_array(x[:, 1:])])
}

# Of the labels of rows, and of one item.
LABELS = {
    "list": lambda y: y.tolist(),
    # scikit-learn takes no objects but strings.
    "objects": lambda y: y.astype(object) if y.dtype.kind == "U" else y,
    "strided": lambda y: np.repeat(y, 2, axis=0)[::2],
    "read-only": _read_only,
} | COLUMNS
VECTORS = {"list": lambda v: v.tolist(), "read-only": _read_only} | COLUMNS
INDICATORS = {
    "list": lambda y: y.tolist(),
    "CSR": sparse.csr_array,
    "CSR matrix": sparse.csr_matrix,
    "bool": lambda y: y.astype(bool),
    "float": lambda y: y.astype(float),
} | TABLES


def _with_long_indices(x):
    x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    return x


def other_form(rng, X):
    """(name, X in that form), for rows and for lists of items or of tuples of them."""
    if isinstance(X, np.ndarray):
        name = [*OF_ROWS][rng.integers(len(OF_ROWS))]
        return name, OF_ROWS[name](X)
    are_arrays = all(isinstance(x, np.ndarray) and len(x) for x in X)
    names = [*OF_ITEMS, *OF_LISTS] if are_arrays else [*OF_ITEMS]
    name = names[rng.integers(len(names))]
    if name in OF_LISTS:
        return name, OF_LISTS[name]([x.tolist() for x in X])
    make = OF_ITEMS[name]
    items = [_with_features(x, make) for x in X]
    if rng.random() < 0.2:
        items = tuple(items)
    return name, items


def other_labels(rng, y):
    """(name, y in another form)."""
    forms = INDICATORS if isinstance(y, np.ndarray) and y.ndim == 2 else LABELS
    is_one = isinstance(y, np.ndarray)
    forms = forms if is_one else forms | OF_LISTS
    name = [*forms][rng.integers(len(forms))]
    if is_one:
        return name, forms[name](y)
    if name in OF_LISTS:
        return name, OF_LISTS[name]([labels.tolist() for labels in y])
    return name, [forms[name](labels) for labels in y]


def other_vector(rng, values):
    """Weights or groups in another form."""
    name = [*VECTORS][rng.integers(len(VECTORS))]
    return VECTORS[name](values)


def _with_features(x, make):
    """An item whose features, be they beside scores or edges, are in another form."""
    if isinstance(x, tuple):
        return (_with_features(x[0], make), *x[1:])
    return make(x)
