"""Scores that are added to those of rows, whatever the weights are."""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape

from sklearn_structsvm._utils._matrix._features cimport Features


cdef class AddedScores(Features):
    """No features and no weights: a subclass contributes nothing but scores."""

    def n_entries(self, offsets):
        return np.zeros(len(offsets) - 1, dtype=np.intp)

    def add_grams(self, offsets, places, grams):
        pass

    def row_norms(self):
        return np.zeros(self.n_rows)


cdef class TableScores(AddedScores):
    """The scores that a table has for each row, such as the costs of its labels.

    Parameters
    ----------
    table : ndarray of shape (m, k)
    lines : ndarray of shape (n_rows,), dtype intp
        The line of the table with the scores of each row.
    """

    cdef const double[:, ::1] table
    cdef const Py_ssize_t[::1] lines

    def __init__(self, const double[:, ::1] table, const Py_ssize_t[::1] lines):
        check_indices("lines", lines, table.shape[0])
        self.n_rows, self.n_features = lines.shape[0], 0
        self.table, self.lines = table, lines

    cdef int add_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        cdef Py_ssize_t i, j
        cdef const double* added
        for i in range(start, stop):
            added = &self.table[self.lines[i], 0]
            for j in range(k):
                out[(i - start) * k + j] += added[j]
        return 0


cdef class BarredScores(AddedScores):
    """A penalty where a row's label is not allowed.

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
