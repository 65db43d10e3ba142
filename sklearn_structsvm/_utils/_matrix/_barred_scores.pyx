"""Penalties for the labels that a row may not have, whatever the weights are."""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape

from sklearn_structsvm._utils._matrix._features cimport Features


cdef class BarredScores(Features):
    """No features, but a penalty where a row's label is not allowed.

    There are no weights, so this contributes nothing but scores.

    Parameters
    ----------
    n_rows : int
    rows : ndarray of shape (m,), dtype intp
        The rows at which some labels are barred, in increasing order.
    allowed : ndarray of shape (m, k), dtype bool
        Which labels these rows may have.
    penalty : float
    """

    cdef const Py_ssize_t[::1] rows
    cdef const unsigned char[:, ::1] allowed
    cdef double penalty

    def __init__(self, Py_ssize_t n_rows, rows, allowed, double penalty):
        check_shape("allowed", allowed, len(rows), "k")
        self.n_rows, self.n_features = n_rows, 0
        self.rows = rows
        self.allowed = np.ascontiguousarray(allowed, dtype=bool).view(np.uint8)
        self.penalty = penalty

    cdef Py_ssize_t first_at(self, Py_ssize_t row) noexcept nogil:
        """The index of the first of `rows` that is not before this row."""
        cdef Py_ssize_t low = 0, high = self.rows.shape[0], middle
        while low < high:
            middle = (low + high) // 2
            if self.rows[middle] < row:
                low = middle + 1
            else:
                high = middle
        return low

    cdef int add_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        cdef Py_ssize_t i, j
        cdef double penalty = self.penalty
        cdef double* row
        for i in range(self.first_at(start), self.rows.shape[0]):
            if self.rows[i] >= stop:
                break
            row = out + (self.rows[i] - start) * k
            for j in range(k):
                # Without a branch, which would be unpredictable.
                row[j] -= penalty * <double> (1 - <int> self.allowed[i, j])
        return 0

    def n_entries(self, offsets):
        return np.zeros(len(offsets) - 1, dtype=np.intp)

    def add_grams(self, offsets, places, grams):
        pass
