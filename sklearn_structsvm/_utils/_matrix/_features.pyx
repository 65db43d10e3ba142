"""Rows of features, dense or CSR: the only place where the two differ.

They are float32 or float64, which is read as it is and added up as float64: the same
numbers give the same bits. `DenseFeatures` and `CSRFeatures` are in files of their own,
and `as_features` chooses between them.

Weights are stored features-first, W of shape (n_features, k), so that a sparse
entry meets k contiguous weights. An outer product D = X[start:stop]ᵀ delta is
formed once in a buffer of the caller and then added wherever it is needed: all
of D for dense rows, only the touched features' rows for CSR. For short blocks the norm
of D comes from the Gram matrix of their rows, and D is never formed.
"""
import numpy as np

from libc.string cimport memset


cdef void clip(
        Py_ssize_t n, const double* v, const double* lower, const double* upper,
        double* w) noexcept nogil:
    cdef Py_ssize_t j
    cdef double x
    for j in range(n):
        x = v[j]
        x = lower[j] if x < lower[j] else x
        w[j] = upper[j] if x > upper[j] else x


cdef class Features:
    """Abstract: n_rows rows of n_features features."""

    cdef Py_ssize_t n_weights(self, Py_ssize_t k) noexcept nogil:
        """Of W, for k scores of a row."""
        return self.n_features * k

    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k):
        """Doubles that `outer` needs for any block offsets[i]:offsets[i + 1]."""
        return 0

    cdef void scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) noexcept nogil:
        """out = X[start:stop] @ W."""

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) noexcept nogil:
        """D = X[start:stop]ᵀ delta into `out`; returns its squared norm."""
        return 0.0

    def grams(self, const Py_ssize_t[::1] offsets):
        """Gram matrices X X' of the blocks for which they pay.

        Returns
        -------
        grams : ndarray
            The matrices, one after another.
        places : ndarray of shape (n_blocks,), dtype intp
            Where each starts; -1 for none.
        """
        return np.empty(0), np.full(offsets.shape[0] - 1, -1, dtype=np.intp)

    cdef void add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) noexcept nogil:
        """target += coef * X[start:stop]ᵀ delta."""

    cdef void add_outer(
            self, double coef, const double* outer, Py_ssize_t k,
            double* target) noexcept nogil:
        """target += coef * D."""

    cdef void outer_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
            double* out) noexcept nogil:
        """out = X[start:stop] @ D."""

    cdef void add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) noexcept nogil:
        """target += coef * x_row ⊗ delta."""

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        """w = clip(v, lower, upper) on the features of some rows, or all."""

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            unsigned char* pages) noexcept nogil:
        """Note which pages of weights rows times delta, as `add_rows` adds it, touch."""


cdef void mark_range(
        Py_ssize_t first, Py_ssize_t last, unsigned char* pages) noexcept nogil:
    """Note that weights from first to last are changed."""
    if last > first:
        memset(pages + first // PAGE, 1, (last - 1) // PAGE - first // PAGE + 1)


cdef bint is_zero(const double* delta, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        if delta[j] != 0.0:
            return False
    return True
