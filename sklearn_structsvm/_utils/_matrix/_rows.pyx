"""Rows of features, dense or CSR, for solvers that process them one at a time.

The operations on a row are in `_rows.h`, so that they are compiled into the solver's
loop.
"""
import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import as_contiguous, as_csr

from cython cimport floating

from sklearn_structsvm._utils._matrix._widen cimport (
    address_of, checked_entries, free_room, room_t)

# Dense rows are stored as CSR if less than this share of their entries is nonzero: steps
# read rows in random order, and would read and multiply the zeros for nothing.
cdef double FEW_ENTRIES = 0.3
# Number of rows sampled to decide that.
cdef Py_ssize_t SAMPLE_ROWS = 1000


cdef class Rows:
    """Rows of X, each followed by a constant feature.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Not copied if it is C-contiguous float32 or float64 with few zeros, or CSR with
        32-bit indices, rising within each row. Otherwise only the parts that do not
        comply are copied.
    bias : float
        The constant feature; 0 for none.

    Raises
    ------
    ValueError
        If there are more columns than a 32-bit index can address, or if a sparse X has
        indices out of bounds.
    """

    def __init__(self, X, double bias=0.0):
        self.n_rows, self.n_features = X.shape
        self.bias = bias
        self.indices = None
        if self.n_features > np.iinfo(np.intc).max:
            raise ValueError(f"X has too many features: {self.n_features}.")
        if sparse.issparse(X):
            X = as_csr(X)
            self._take(X.data, X.indices, X.indptr)
        else:
            X = as_features_type(X)
            packed = pack([X]) if seems_sparse([X]) else None
            if packed is None:
                self.values = _not_empty(X)
                self.starts = np.arange(self.n_rows + 1) * self.n_features
            else:
                self._take(*packed)
        self.view.is_single = self.values.dtype == np.float32
        self.view.indices = NULL
        if self.indices is not None:
            self.view.indices = &self.indices[0]
        self.view.values = address_of(self.values)
        self.view.starts = &self.starts[0]
        self.view.n_features = self.n_features
        self.view.bias = bias

    def _take(self, values, indices, starts):
        self.values = _not_empty(as_features_type(values))
        self.indices = _not_empty(np.require(indices, np.intc, "CA"))
        self.starts = np.require(starts, np.intp, "CA")

    def squared_norms(self):
        """‖x_i‖² with the constant feature, an ndarray of shape (n_rows,)."""
        cdef Py_ssize_t i, j, count
        cdef room_t room
        cdef const double* x
        cdef double[::1] norms = np.full(self.n_rows, self.bias * self.bias)
        with nogil:
            for i in range(self.n_rows):
                count = self.starts[i + 1] - self.starts[i]
                x = checked_entries(
                    self.view.values, self.starts[i], count, self.view.is_single, &room)
                for j in range(count):
                    norms[i] += x[j] * x[j]
                free_room(&room)
        return np.asarray(norms)


def as_features_type(X):
    """X as C-contiguous float32 or float64, which kernels read; copied if necessary."""
    return as_contiguous(X, np.float32 if X.dtype == np.float32 else np.float64)


def _pack_item(
        const floating[:, ::1] X, floating[::1] values, int[::1] indices,
        Py_ssize_t[::1] starts, Py_ssize_t n, Py_ssize_t room):
    """Append rows after n entries; return the new number, or -1 if there is no room."""
    cdef Py_ssize_t i, j
    for i in range(X.shape[0]):
        if n >= room:
            return -1
        for j in range(X.shape[1]):
            values[n] = X[i, j]
            indices[n] = <int> j
            n += X[i, j] != 0.0
        starts[i + 1] = n
    return n


def pack(items):
    """Stacked dense rows as CSR, of the same type.

    Parameters
    ----------
    items : list of ndarrays of shape (T_i, n_features), as of `as_features_type`

    Returns
    -------
    tuple of (values, indices, starts), or None
        None if the rows have too many nonzero entries.
    """
    cdef Py_ssize_t n = 0, t = 0, f = items[0].shape[1]
    cdef Py_ssize_t n_rows = sum(len(item) for item in items)
    cdef Py_ssize_t room = <Py_ssize_t> (FEW_ENTRIES * n_rows * f)
    cdef Py_ssize_t[::1] starts = np.zeros(n_rows + 1, dtype=np.intp)
    # Memory that is never written is not allocated. There is room for one more row,
    # because a row's entries are not counted before it is written.
    values = np.empty(room + f, dtype=items[0].dtype)
    cdef int[::1] indices = np.empty(room + f, dtype=np.intc)
    for item in items:
        n = _pack_item(item, values, indices, starts[t:], n, room)
        if n < 0:
            return None
        t += len(item)
    return values[:n], np.asarray(indices)[:n], np.asarray(starts)


def seems_sparse(items):
    """Whether few entries of stacked dense rows are nonzero, judged by a sample."""
    n_rows = sum(map(len, items))
    step = max(1, n_rows // SAMPLE_ROWS)
    start = n_nonzero = n_entries = 0
    for item in items:
        sample = item[-start % step :: step]
        start += len(item)
        n_nonzero += np.count_nonzero(sample)
        n_entries += sample.size
    return n_nonzero < FEW_ENTRIES * n_entries


def _not_empty(array):
    """The array flattened, with a valid address even if it is empty."""
    return array.ravel() if array.size else np.zeros(1, dtype=array.dtype)
