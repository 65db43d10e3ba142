"""Scores of rows that are barred, whatever the weights are."""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape

from sklearn_structsvm._utils._matrix._features cimport Features


cdef class BarredScores(Features):
    """No features, but a penalty where `allowed`, of shape (n_rows, k), is False.

    There are no weights, so that in all but the scores this adds nothing.
    """

    cdef const unsigned char[:, ::1] allowed
    # Whether all labels of a row are allowed, as in most rows.
    cdef unsigned char[::1] is_free
    cdef double penalty

    def __init__(self, allowed, double penalty):
        check_shape("allowed", allowed, "n", "k")
        self.n_rows, self.n_features = len(allowed), 0
        self.allowed = np.ascontiguousarray(allowed, dtype=bool).view(np.uint8)
        self.penalty = penalty
        self.is_free = np.all(self.allowed, axis=1).view(np.uint8)

    cdef void add_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) noexcept nogil:
        cdef Py_ssize_t i, j
        cdef double penalty = self.penalty
        for i in range(start, stop):
            if self.is_free[i]:
                continue
            for j in range(k):
                # Without a branch, which could not be foreseen.
                out[(i - start) * k + j] -= penalty * <double> (
                    1 - <int> self.allowed[i, j])

    def n_entries(self, offsets):
        return np.zeros(len(offsets) - 1, dtype=np.intp)

    def add_grams(self, offsets, places, grams):
        pass
