"""Rows of features, dense or CSR: the only place where the two differ.

Weights are stored features-first, W of shape (n_features, k), so that a sparse
entry meets k contiguous weights. An outer product D = X[start:stop]ᵀ delta is
formed once in a buffer of the caller and then added wherever it is needed: all
of D for dense rows, only the touched features' rows for CSR. For short blocks the norm
of D comes from the Gram matrix of their rows, and D is never formed.
"""
import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import check_sparse
from sklearn_structsvm._utils._matrix._rows import seems_sparse

from libc.string cimport memset
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dger


cdef extern from "_utils/_vector.h" nogil:
    void vector_gather(
        Py_ssize_t count, Py_ssize_t available, const double* values,
        const int* indices, const double* weights, Py_ssize_t k,
        double* out) noexcept
    void vector_axpy(
        Py_ssize_t k, double a, const double* x, double* y) noexcept


# Scores of a row from which on sparse products are as fast, an entry, as dense ones.
MANY_SCORES = 8


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


cdef bint _is_zero(const double* delta, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        if delta[j] != 0.0:
            return False
    return True


cdef class DenseFeatures(Features):
    """C-contiguous rows of float64."""

    cdef const double[:, ::1] X

    def __init__(self, const double[:, ::1] X):
        self.X = X
        self.n_rows = X.shape[0]
        self.n_features = X.shape[1]

    def row_norms(self):
        X = np.asarray(self.X)
        return np.einsum("ij,ij->i", X, X)

    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k):
        return self.n_features * k

    cdef void scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) noexcept nogil:
        # Row-major C = X W is column-major Cᵀ = Wᵀ Xᵀ to BLAS.
        cdef int m = <int> k, n = <int> (stop - start), f = <int> self.n_features
        cdef int one_inc = 1
        cdef double one = 1.0, zero = 0.0
        cdef double* x
        if f == 0:
            memset(out, 0, k * (stop - start) * sizeof(double))
            return
        x = <double*> &self.X[start, 0]
        if n == 1:
            if k == 1:
                out[0] = ddot(&f, x, &one_inc, <double*> weights, &one_inc)
            else:
                dgemv("N", &m, &f, &one, <double*> weights, &m, x, &one_inc,
                      &zero, out, &one_inc)
        else:
            dgemm("N", "N", &m, &n, &f, &one, <double*> weights, &m, x, &f,
                  &zero, out, &m)

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) noexcept nogil:
        cdef int size = <int> (self.n_features * k), one_inc = 1
        memset(out, 0, self.n_features * k * sizeof(double))
        self.add_rows(start, stop, 1.0, delta, k, out)
        return ddot(&size, out, &one_inc, out, &one_inc)

    def grams(self, const Py_ssize_t[::1] offsets):
        lengths = np.diff(offsets)
        # As long as they take no more memory than the rows themselves.
        sizes = np.where(lengths <= self.n_features, lengths**2, 0)
        places = np.cumsum(sizes) - sizes
        grams = np.empty(sizes.sum())
        X = np.asarray(self.X)
        for i in np.flatnonzero(sizes):
            rows = X[offsets[i]:offsets[i + 1]]
            matrix = grams[places[i]:places[i] + sizes[i]]
            np.matmul(rows, rows.T, out=matrix.reshape(len(rows), len(rows)))
        return grams, np.where(sizes > 0, places, -1).astype(np.intp)

    cdef void add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) noexcept nogil:
        cdef int m = <int> k, f = <int> self.n_features, run
        cdef double one = 1.0
        cdef Py_ssize_t t = start, end
        if f == 0:
            return
        # Runs of rows with non-zero delta; often few, as most labels agree.
        while t < stop:
            if _is_zero(delta + (t - start) * k, k):
                t += 1
                continue
            end = t + 1
            while end < stop and not _is_zero(delta + (end - start) * k, k):
                end += 1
            run = <int> (end - t)
            dgemm("N", "T", &m, &f, &run, &coef,
                  <double*> delta + (t - start) * k, &m,
                  <double*> &self.X[t, 0], &f, &one, target, &m)
            t = end

    cdef void add_outer(
            self, double coef, const double* outer, Py_ssize_t k,
            double* target) noexcept nogil:
        cdef int size = <int> (self.n_features * k), one_inc = 1
        daxpy(&size, &coef, <double*> outer, &one_inc, target, &one_inc)

    cdef void outer_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
            double* out) noexcept nogil:
        self.scores(start, stop, outer, k, out)

    cdef void add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) noexcept nogil:
        cdef int f = <int> self.n_features, m = <int> k, one_inc = 1
        cdef double step
        if f == 0:
            return
        if k == 1:
            step = coef * delta[0]
            daxpy(&f, &step, <double*> &self.X[row, 0], &one_inc, target, &one_inc)
        else:
            dger(&m, &f, &coef, <double*> delta, &one_inc,
                 <double*> &self.X[row, 0], &one_inc, target, &m)

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        clip(self.n_features * k, v, lower, upper, w)

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            unsigned char* pages) noexcept nogil:
        mark_range(0, self.n_features * k, pages)


cdef class CSRFeatures(Features):
    """CSR rows of float64 with 32-bit column indices."""

    cdef const double[::1] data
    cdef const int[::1] indices
    cdef const Py_ssize_t[::1] indptr
    # Doubles in front of an outer product's rows: its header and slot map.
    cdef Py_ssize_t header

    def __init__(self, const double[::1] data, const int[::1] indices,
                 const Py_ssize_t[::1] indptr, Py_ssize_t n_features):
        self.data = data
        self.indices = indices
        self.indptr = indptr
        self.n_rows = indptr.shape[0] - 1
        self.n_features = n_features
        self.header = 0

    def row_norms(self):
        cdef double[::1] norms = np.zeros(self.n_rows)
        cdef Py_ssize_t i, j
        for i in range(self.n_rows):
            for j in range(self.indptr[i], self.indptr[i + 1]):
                norms[i] += self.data[j] * self.data[j]
        return np.asarray(norms)

    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k):
        cdef Py_ssize_t i, nnz, most = 0
        for i in range(offsets.shape[0] - 1):
            nnz = self.indptr[offsets[i + 1]] - self.indptr[offsets[i]]
            most = max(most, min(nnz, self.n_features))
        # Layout, in doubles: [touched count][slot of each feature, int]
        # [touched features, int][their rows of k].
        self.header = 1 + (self.n_features + 1) // 2 + (most + 1) // 2
        return self.header + most * k

    cdef void scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) noexcept nogil:
        cdef Py_ssize_t t, p
        cdef double x
        cdef double* row
        for t in range(start, stop):
            row = out + (t - start) * k
            if k == 1:
                x = 0.0
                for p in range(self.indptr[t], self.indptr[t + 1]):
                    x += self.data[p] * weights[self.indices[p]]
                row[0] = x
                continue
            memset(row, 0, k * sizeof(double))
            p = self.indptr[t]
            if p == self.indptr[t + 1]:
                continue
            vector_gather(
                self.indptr[t + 1] - p, self.indices.shape[0] - p, &self.data[p],
                &self.indices[p], weights, k, row)

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) noexcept nogil:
        cdef int* slots = <int*> (out + 1)
        cdef int* touched = <int*> (out + 1 + (self.n_features + 1) // 2)
        cdef double* rows = out + self.header
        cdef const double* step
        cdef Py_ssize_t t, p, j, count = <Py_ssize_t> out[0]
        cdef double norm = 0.0
        for j in range(count):
            slots[touched[j]] = 0
        count = 0
        for t in range(start, stop):
            step = delta + (t - start) * k
            if _is_zero(step, k):
                continue
            for p in range(self.indptr[t], self.indptr[t + 1]):
                j = self.indices[p]
                if slots[j] == 0:
                    touched[count] = <int> j
                    count += 1
                    slots[j] = <int> count
                    memset(rows + (count - 1) * k, 0, k * sizeof(double))
                vector_axpy(k, self.data[p], step, rows + (slots[j] - 1) * k)
        out[0] = <double> count
        cdef int size = <int> (count * k), one_inc = 1
        if count:
            norm = ddot(&size, rows, &one_inc, rows, &one_inc)
        return norm

    cdef void add_outer(
            self, double coef, const double* outer, Py_ssize_t k,
            double* target) noexcept nogil:
        cdef const int* touched = <const int*> (outer + 1 + (self.n_features + 1) // 2)
        cdef const double* rows = outer + self.header
        cdef Py_ssize_t s
        for s in range(<Py_ssize_t> outer[0]):
            vector_axpy(k, coef, rows + s * k, target + touched[s] * k)

    cdef void outer_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
            double* out) noexcept nogil:
        cdef const int* slots = <const int*> (outer + 1)
        cdef const double* rows = outer + self.header
        cdef Py_ssize_t t, p
        cdef int slot
        memset(out, 0, (stop - start) * k * sizeof(double))
        for t in range(start, stop):
            for p in range(self.indptr[t], self.indptr[t + 1]):
                slot = slots[self.indices[p]]
                if slot:
                    vector_axpy(k, self.data[p], rows + (slot - 1) * k,
                                out + (t - start) * k)

    def grams(self, const Py_ssize_t[::1] offsets):
        cdef Py_ssize_t i, t, u, p, T, n = offsets.shape[0] - 1
        cdef double x
        cdef double* gram
        starts, lengths = np.asarray(self.indptr)[np.asarray(offsets)], np.diff(offsets)
        # As long as they take no more memory than the rows themselves.
        sizes = np.where(lengths**2 <= np.diff(starts), lengths**2, 0)
        places = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1).astype(np.intp)
        grams = np.empty(sizes.sum())
        cdef const Py_ssize_t[::1] at = places
        cdef double[::1] out = grams
        # A row as dense numbers, all zero between two of them.
        cdef double[::1] row = np.zeros(max(self.n_features, 1))
        with nogil:
            for i in range(n):
                if at[i] < 0:
                    continue
                gram = &out[at[i]]
                T = offsets[i + 1] - offsets[i]
                for t in range(T):
                    for p in range(self.indptr[offsets[i] + t],
                                   self.indptr[offsets[i] + t + 1]):
                        row[self.indices[p]] = self.data[p]
                    for u in range(t, T):
                        x = 0.0
                        for p in range(self.indptr[offsets[i] + u],
                                       self.indptr[offsets[i] + u + 1]):
                            x += row[self.indices[p]] * self.data[p]
                        gram[t * T + u] = gram[u * T + t] = x
                    for p in range(self.indptr[offsets[i] + t],
                                   self.indptr[offsets[i] + t + 1]):
                        row[self.indices[p]] = 0.0
        return grams, places

    cdef void add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(start, stop):
            if not _is_zero(delta + (t - start) * k, k):
                self.add_row(t, coef, delta + (t - start) * k, k, target)

    cdef void add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.indptr[row], self.indptr[row + 1]):
            if k == 1:
                target[self.indices[p]] += coef * self.data[p] * delta[0]
            else:
                vector_axpy(k, coef * self.data[p], delta,
                            target + self.indices[p] * k)

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        cdef Py_ssize_t p, j
        for p in range(self.indptr[start], self.indptr[stop]):
            j = self.indices[p] * k
            clip(k, v + j, lower + j, upper + j, w + j)

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            unsigned char* pages) noexcept nogil:
        cdef Py_ssize_t t, p, j
        for t in range(start, stop):
            if not _is_zero(delta + (t - start) * k, k):
                for p in range(self.indptr[t], self.indptr[t + 1]):
                    j = self.indices[p] * k
                    mark_range(j, j + k, pages)


def as_features(X, Py_ssize_t k=1):
    """Wrap a 2-D array or sparse matrix of rows; copies only what must be.

    Dense rows with few nonzero entries are kept as CSR if each entry meets at least
    MANY_SCORES weights: skipping zeros then saves more than BLAS gains.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
    k : int
        Scores that a row gets.

    Raises
    ------
    ValueError
        If there are more columns than a 32-bit index can name, or if a sparse X points
        beyond them.
    """
    if X.shape[1] > np.iinfo(np.intc).max:
        raise ValueError(f"X has too many features: {X.shape[1]}.")
    if sparse.issparse(X):
        check_sparse(X)
    elif k >= MANY_SCORES and seems_sparse(X):
        X = sparse.csr_array(np.asarray(X))
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return CSRFeatures(
            np.require(X.data, np.float64, "CA"),
            np.require(X.indices, np.intc, "CA"),
            np.require(X.indptr, np.intp, "CA"), X.shape[1])
    return DenseFeatures(np.require(X, np.float64, "CA"))
