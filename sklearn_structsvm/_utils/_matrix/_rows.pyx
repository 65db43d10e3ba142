"""Rows of features, dense or CSR, for solvers that meet them one at a time.

What is done with a row stands in `_rows.h`, so that it is compiled into the solver's
loop.
"""
import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import check_sparse

# Dense rows with fewer entries than this share that are not zero are kept as CSR: a step
# reads them in no order, and the rest of each would be read and multiplied for nothing.
cdef double FEW_ENTRIES = 0.3
# Rows that are looked at for that.
cdef Py_ssize_t SAMPLE_ROWS = 1000


cdef class Rows:
    """Rows of X, each with a constant feature behind it.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Copied only as far as it is not C-contiguous float64 with few zeros, or CSR with
        32-bit indices that occur once in a row, in any order.
    bias : float
        The constant feature; 0 for none.

    Raises
    ------
    ValueError
        If there are more columns than a 32-bit index can name, or if a sparse X points
        beyond them.
    """

    def __init__(self, X, double bias=0.0):
        self.n_rows, self.n_features = X.shape
        self.bias = bias
        self.indices = None
        if self.n_features > np.iinfo(np.intc).max:
            raise ValueError(f"X has too many features: {self.n_features}.")
        if sparse.issparse(X):
            check_sparse(X)
            X = sparse.csr_array(X)
            self._take_csr(X)
            if self._has_duplicates():
                X = X.copy()
                X.sum_duplicates()
                self._take_csr(X)
        elif not (seems_sparse(X) and self._pack(np.require(X, np.float64, "CA"))):
            self.values = _not_empty(X, np.float64)
            self.starts = np.arange(self.n_rows + 1) * self.n_features
        self.view.indices = NULL if self.indices is None else &self.indices[0]
        self.view.values = &self.values[0]
        self.view.starts = &self.starts[0]
        self.view.n_features = self.n_features
        self.view.bias = bias

    def _take_csr(self, X):
        self.values = _not_empty(X.data, np.float64)
        self.indices = _not_empty(X.indices, np.intc)
        self.starts = np.require(X.indptr, np.intp, "CA")

    def _pack(self, const double[:, ::1] X):
        """Take dense rows as CSR; False if they have too many entries for that."""
        cdef Py_ssize_t i, j, n = 0, f = self.n_features
        cdef Py_ssize_t room = <Py_ssize_t> (FEW_ENTRIES * self.n_rows * f)
        cdef Py_ssize_t[::1] starts = np.zeros(self.n_rows + 1, dtype=np.intp)
        # What is not written to takes no memory. A row more, for a row is not looked at
        # before it is written.
        cdef double[::1] values = np.empty(room + f)
        cdef int[::1] indices = np.empty(room + f, dtype=np.intc)
        for i in range(self.n_rows):
            if n >= room:
                return False
            for j in range(f):
                values[n] = X[i, j]
                indices[n] = <int> j
                n += X[i, j] != 0.0
            starts[i + 1] = n
        self.values, self.indices, self.starts = values, indices, starts
        return True

    def _has_duplicates(self):
        """Whether a row has an index twice: to sort the rows would take far longer."""
        cdef Py_ssize_t i, j
        cdef Py_ssize_t[::1] seen_in = np.full(self.n_features, -1, dtype=np.intp)
        for i in range(self.n_rows):
            for j in range(self.starts[i], self.starts[i + 1]):
                if seen_in[self.indices[j]] == i:
                    return True
                seen_in[self.indices[j]] = i
        return False

    def squared_norms(self):
        """‖x_i‖² with the constant feature, an ndarray of shape (n_rows,)."""
        cdef Py_ssize_t i, j
        cdef double[::1] norms = np.full(self.n_rows, self.bias * self.bias)
        with nogil:
            for i in range(self.n_rows):
                for j in range(self.starts[i], self.starts[i + 1]):
                    norms[i] += self.values[j] * self.values[j]
        return np.asarray(norms)


def seems_sparse(X):
    """Whether few entries of dense rows are not zero, by a sample."""
    sample = X[:: max(1, len(X) // SAMPLE_ROWS)]
    return np.count_nonzero(sample) < FEW_ENTRIES * sample.size


def _not_empty(array, dtype):
    """Contiguous and flat, with an address even where there is nothing."""
    array = np.require(array, dtype, "CA").ravel()
    return array if len(array) else np.zeros(1, dtype=dtype)
