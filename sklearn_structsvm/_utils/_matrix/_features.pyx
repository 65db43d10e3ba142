"""Rows of features, dense, CSR or both: the only code that depends on which.

Entries are float32 or float64; they are read as they are and summed in float64, so that
the same numbers give the same bits. `DenseFeatures` and `CSRFeatures` have their own
files, `FeaturesBeside` joins their columns, and `as_features` chooses among them.

Weights are stored features-first, W of shape (n_features, k), so that a sparse
entry meets k contiguous weights. An outer product D = X[start:stop]ᵀ delta is
formed once in a buffer of the caller and then added wherever it is needed: all
of D for dense rows, only the touched features' rows for CSR. For short blocks the norm
of D is computed from the Gram matrix of their rows, and D is never formed.
"""
import numpy as np

from libc.string cimport memset

# This many multiplications take no longer than another BLAS call.
cdef enum:
    LEAST_PRODUCT = 2048


cdef void clip(
        Py_ssize_t n, const double* v, const double* lower, const double* upper,
        double* w) noexcept nogil:
    cdef Py_ssize_t j
    cdef double x
    for j in range(n):
        x = v[j]
        x = lower[j] if x < lower[j] else x
        w[j] = upper[j] if x > upper[j] else x


cdef void soft_threshold(
        Py_ssize_t n, const double* v, double threshold, double* w) noexcept nogil:
    """w = sign(v) max(|v| - threshold, 0), the soft threshold."""
    cdef Py_ssize_t j
    cdef double x
    for j in range(n):
        x = v[j]
        x = -threshold if x < -threshold else x
        w[j] = v[j] - (threshold if x > threshold else x)


cdef class Features:
    """Abstract: n_rows rows of n_features features."""

    cdef Py_ssize_t n_weights(self, Py_ssize_t k) noexcept nogil:
        """Number of weights in W, for k scores per row."""
        return self.n_features * k

    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k):
        """Doubles that `outer` needs for any block offsets[i]:offsets[i + 1]."""
        return 0

    cdef int scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        """out = X[start:stop] @ W."""
        memset(out, 0, (stop - start) * k * sizeof(double))
        return self.add_scores(start, stop, weights, k, out)

    def scores_whole_rows(self, Py_ssize_t k):
        """Whether all k scores of a row take no longer than a few of them."""
        return False

    cdef int add_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        """out += X[start:stop] @ W."""
        return 0

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) except -1.0 nogil:
        """D = X[start:stop]ᵀ delta into `out`; returns its squared norm."""
        return 0.0

    def grams(self, const Py_ssize_t[::1] offsets):
        """Gram matrices X X' of the blocks for which they pay off.

        Returns
        -------
        grams : ndarray
            The matrices, concatenated.
        places : ndarray of shape (n_blocks,), dtype intp
            Where each starts; -1 if the block has none.
        """
        squares = np.diff(offsets)**2
        # As long as they take no more memory than the rows themselves.
        sizes = np.where(squares <= self.n_entries(offsets), squares, 0)
        places = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1).astype(np.intp)
        grams = np.zeros(sizes.sum())
        self.add_grams(offsets, places, grams)
        return grams, places

    def n_entries(self, offsets):
        """Stored entries of each block; -inf if its Gram matrix is of no use."""
        raise NotImplementedError

    def add_grams(self, const Py_ssize_t[::1] offsets, const Py_ssize_t[::1] places,
                  double[::1] grams):
        """Add the Gram matrices of the blocks that have places in `grams`."""
        raise NotImplementedError

    cdef int add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) except -1 nogil:
        """target += coef * X[start:stop]ᵀ delta."""
        return 0

    cdef int add_places(
            self, Py_ssize_t start, Py_ssize_t stop, double coef, const double* delta,
            Py_ssize_t n, const int* places, Py_ssize_t k, double* target
            ) except -1 nogil:
        """The same for a delta that is zero except at n places, row after row."""
        return self.add_rows(start, stop, coef, delta, k, target)

    cdef int add_place_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, Py_ssize_t n, const int* places, double* out) except -1 nogil:
        """out += X[start:stop] @ W at n places, row after row.

        Other places of these rows may be overwritten with meaningless numbers.
        """
        cdef Py_ssize_t first = 0, t = 0, end
        # Rows at most this far apart are multiplied together with those in between.
        cdef Py_ssize_t apart = 1 + LEAST_PRODUCT // max(1, self.n_features * k)
        while first < n:
            while places[first] >= (t + 1) * k:
                t += 1
            end = t
            while first < n and places[first] < (end + 1 + apart) * k:
                while places[first] >= (end + 1) * k:
                    end += 1
                first += 1
            self.add_scores(start + t, start + end + 1, weights, k, out + t * k)
            t = end + 1
        return 0

    cdef void add_outer(
            self, double coef, const double* outer, Py_ssize_t k,
            double* target) noexcept nogil:
        """target += coef * D."""

    cdef int outer_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
            double* out) except -1 nogil:
        """out = X[start:stop] @ D."""
        memset(out, 0, (stop - start) * k * sizeof(double))
        return self.add_outer_scores(start, stop, outer, k, out)

    cdef int add_outer_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
            double* out) except -1 nogil:
        """out += X[start:stop] @ D."""
        return 0

    cdef int add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) except -1 nogil:
        """target += coef * x_row ⊗ delta."""
        return 0

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        """w = clip(v, lower, upper) on the features of these rows, or on all features."""

    cdef void shrink_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            double threshold, double* w) noexcept nogil:
        """w = soft threshold of v on the features of these rows, or on all features."""

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            Py_ssize_t at, unsigned char* pages) noexcept nogil:
        """Mark the pages of weights that `add_rows` changes for these rows and delta.

        The first weight of these features has index `at`.
        """


cdef class FeaturesBeside(Features):
    """The rows of `left` and `right` side by side: X W is the sum of both products.

    Weights and outer products are those of `left`, followed by those of `right`.
    """

    cdef Features left, right
    # Number of doubles in the outer product of `left`.
    cdef Py_ssize_t of_left

    def __init__(self, Features left, Features right):
        self.left, self.right = left, right
        self.n_rows = left.n_rows
        self.n_features = left.n_features + right.n_features
        self.of_left = 0

    cdef Py_ssize_t n_weights(self, Py_ssize_t k) noexcept nogil:
        return self.left.n_weights(k) + self.right.n_weights(k)

    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k):
        self.of_left = self.left.outer_size(offsets, k)
        return self.of_left + self.right.outer_size(offsets, k)

    cdef int scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        self.left.scores(start, stop, weights, k, out)
        return self.right.add_scores(
            start, stop, weights + self.left.n_weights(k), k, out)

    cdef int add_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        self.left.add_scores(start, stop, weights, k, out)
        return self.right.add_scores(
            start, stop, weights + self.left.n_weights(k), k, out)

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) except -1.0 nogil:
        return (self.left.outer(start, stop, delta, k, out)
                + self.right.outer(start, stop, delta, k, out + self.of_left))

    def n_entries(self, offsets):
        return self.left.n_entries(offsets) + self.right.n_entries(offsets)

    def row_norms(self):
        return self.left.row_norms() + self.right.row_norms()

    def add_grams(self, const Py_ssize_t[::1] offsets, const Py_ssize_t[::1] places,
                  double[::1] grams):
        self.left.add_grams(offsets, places, grams)
        self.right.add_grams(offsets, places, grams)

    cdef int add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) except -1 nogil:
        self.left.add_rows(start, stop, coef, delta, k, target)
        return self.right.add_rows(
            start, stop, coef, delta, k, target + self.left.n_weights(k))

    cdef int add_places(
            self, Py_ssize_t start, Py_ssize_t stop, double coef, const double* delta,
            Py_ssize_t n, const int* places, Py_ssize_t k, double* target
            ) except -1 nogil:
        self.left.add_places(start, stop, coef, delta, n, places, k, target)
        return self.right.add_places(
            start, stop, coef, delta, n, places, k, target + self.left.n_weights(k))

    cdef int add_place_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, Py_ssize_t n, const int* places, double* out) except -1 nogil:
        self.left.add_place_scores(start, stop, weights, k, n, places, out)
        return self.right.add_place_scores(
            start, stop, weights + self.left.n_weights(k), k, n, places, out)

    cdef void add_outer(
            self, double coef, const double* outer, Py_ssize_t k,
            double* target) noexcept nogil:
        self.left.add_outer(coef, outer, k, target)
        self.right.add_outer(
            coef, outer + self.of_left, k, target + self.left.n_weights(k))

    cdef int add_outer_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
            double* out) except -1 nogil:
        self.left.add_outer_scores(start, stop, outer, k, out)
        return self.right.add_outer_scores(start, stop, outer + self.of_left, k, out)

    cdef int add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) except -1 nogil:
        self.left.add_row(row, coef, delta, k, target)
        return self.right.add_row(
            row, coef, delta, k, target + self.left.n_weights(k))

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        cdef Py_ssize_t at = self.left.n_weights(k)
        self.left.project_rows(start, stop, k, v, lower, upper, w)
        self.right.project_rows(
            start, stop, k, v + at, lower + at, upper + at, w + at)

    cdef void shrink_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            double threshold, double* w) noexcept nogil:
        cdef Py_ssize_t at = self.left.n_weights(k)
        self.left.shrink_rows(start, stop, k, v, threshold, w)
        self.right.shrink_rows(start, stop, k, v + at, threshold, w + at)

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            Py_ssize_t at, unsigned char* pages) noexcept nogil:
        self.left.mark_rows(start, stop, delta, k, at, pages)
        self.right.mark_rows(
            start, stop, delta, k, at + self.left.n_weights(k), pages)


cdef void mark_range(
        Py_ssize_t first, Py_ssize_t last, unsigned char* pages) noexcept nogil:
    """Mark the weights from first up to, not including, last as changed."""
    if last > first:
        memset(pages + first // PAGE, 1, (last - 1) // PAGE - first // PAGE + 1)


cdef bint is_zero(const double* delta, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        if delta[j] != 0.0:
            return False
    return True
