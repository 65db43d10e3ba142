"""Features from what users pass: stacked where they lie, dense, CSR or split."""

from functools import reduce

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils._matrix._csr_features import CSRFeatures
from sklearn_structsvm._utils._matrix._dense_features import DenseFeatures, GivenScores
from sklearn_structsvm._utils._matrix._features import FeaturesBeside
from sklearn_structsvm._utils._matrix._rows import as_features_type, pack, seems_sparse
from sklearn_structsvm._utils.borders import as_contiguous, as_csr
from sklearn_structsvm._utils.pieces import LARGEST_INDEX
from sklearn_structsvm._utils.split_matrix import SplitMatrix

# Scores of a row from which on sparse products are as fast, an entry, as dense ones.
MANY_SCORES = 8


def as_features(X, k=1, order=None, given=False):
    """Wrap a 2-D array or matrix of rows, or a list of them; copy what must be.

    Dense rows with few nonzero entries are kept as CSR if each entry meets at least
    MANY_SCORES weights: skipping zeros then saves more than BLAS gains.

    `X` (ndarray, sparse matrix or `SplitMatrix` (n_rows, n_features), or a list): of a
    list of them the rows are stacked, where they lie if they are dense, contiguous and
    all of float32 or all of float64. `k`: scores that a row gets. `order` (n_rows,) intp:
    for each place the row of its item that stands there; None as they are. `given`:
    whether the features of X, dense, are the k scores themselves. ValueError if there are
    more columns than a 32-bit index can name, or if a sparse X points beyond them.
    """
    items = list(X) if isinstance(X, (list, tuple)) else [X]
    if isinstance(items[0], SplitMatrix):
        parts = zip(*(item.matrices for item in items), strict=True)
        return reduce(FeaturesBeside, [as_features(part, k, order) for part in parts])
    n_features = items[0].shape[1]
    if n_features > LARGEST_INDEX:
        raise ValueError(f"X has too many features: {n_features}.")
    if not sparse.issparse(items[0]):
        dtype = result_type(items)
        items = [as_features_type(item.astype(dtype, copy=False)) for item in items]
        if given:
            return GivenScores(items, order)
        if k < MANY_SCORES or not seems_sparse(items):
            return DenseFeatures(items, order)
        packed = pack(in_order(items, order))
        if packed is None:
            return DenseFeatures(items, order)
        return CSRFeatures(*packed, n_features)
    X = as_csr(stack_csr(in_order(items, order)))
    return CSRFeatures(
        as_features_type(X.data),
        as_contiguous(X.indices, np.intc),
        as_contiguous(X.indptr.astype(np.intp, copy=False), np.intp),
        n_features,
    )


def in_order(items, order):
    """Items with their rows in an order as of `as_features`."""
    if order is None:
        return items
    ends = np.cumsum([item.shape[0] for item in items])
    own = np.split(order, ends[:-1])
    return [item[places] for item, places in zip(items, own, strict=True)]


def stack_csr(items):
    """All rows of CSR matrices below one another; one matrix of any format as it is."""
    if len(items) == 1:
        return items[0]
    # By hand: sparse.vstack checks each of the many small items again.
    starts = np.cumsum([0] + [item.nnz for item in items], dtype=np.int64)
    indptr = [np.zeros(1, dtype=np.int64)]
    indptr += [
        item.indptr[1:] + start for item, start in zip(items, starts, strict=False)
    ]
    data = np.empty(sum(item.nnz for item in items), result_type(items))
    indices = np.empty(len(data), dtype=np.intc)
    for item, start in zip(items, starts, strict=False):
        # There may be room for more entries than there are.
        data[start : start + item.nnz] = item.data[: item.nnz]
        indices[start : start + item.nnz] = item.indices[: item.nnz]
    shape = sum(item.shape[0] for item in items), items[0].shape[1]
    return sparse.csr_array((data, indices, np.concatenate(indptr)), shape=shape)


def result_type(items):
    """That of all items together."""
    return np.result_type(*{item.dtype for item in items})
