"""Index arrays of CSR matrices that nobody else can write to.

Kernels read rows where their indices point, without a look at each. So a fit takes a copy
of the indices first, because X may change meanwhile: a callback, a user's method or
another thread may write to it. Values stay where they are. If they change, results are
wrong, but no memory is read or written that is not theirs.
"""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import check_sparse, scan_csr
from sklearn_structsvm._utils.pieces import csr_of_parts
from sklearn_structsvm._utils.split_matrix import SplitMatrix


def with_own_indices(x):
    """A matrix, or an item with some, with copies of the indices of CSR matrices.

    What cannot be written to, such as a memory map that is opened to read, is not copied.
    A matrix whose columns are unsorted, or occur twice in a row, is copied as a whole:
    others might sort it in place.
    """
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, SplitMatrix):
        return SplitMatrix(list(map(with_own_indices, x.matrices)))
    if isinstance(x, tuple):
        parts = map(with_own_indices, x)
        return x._make(parts) if hasattr(x, "_make") else tuple(parts)
    if not (sparse.issparse(x) and x.format == "csr"):
        return x
    indices, indptr = _own(x.indices), _own(x.indptr)
    # After the copies: what is checked cannot change any more.
    is_within, is_canonical = scan_csr(indices, indptr, len(x.data), *x.shape)
    kept = csr_of_parts(type(x), x.shape, x.data, indices, indptr, is_canonical)
    if not is_within:
        check_sparse(kept)
    elif len(x.data) > indptr[-1]:
        # There is room for more entries.
        kept.data, kept.indices = x.data[: indptr[-1]], indices[: indptr[-1]]
    if not is_canonical:
        kept = kept.copy()
        kept.sum_duplicates()
        kept.indices.flags.writeable = kept.indptr.flags.writeable = False
    return kept


def _own(array):
    """The array, or a copy that cannot be written to, if others can write to it."""
    if not is_writable(array):
        return array
    own = array.copy()
    own.flags.writeable = False
    return own


def is_writable(array):
    """Whether an array can be written to, also by what it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    try:
        return array is not None and not memoryview(array).readonly
    except TypeError:
        return True
