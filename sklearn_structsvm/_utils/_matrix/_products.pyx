"""The two products that a batch solver needs: scores X W and subgradients Xᵀ B.

X is dense or CSR, with a constant feature or without. Each dense row is read once for all
columns. A CSR matrix is copied by columns after a few subgradients, so that one thread
computes the whole sum of a column; a sum over few rows is still computed from these rows.
Sums are split in the same way whatever the number of threads, so that results are the
same bit for bit.
"""
import numpy as np
from scipy import sparse

from sklearn_structsvm._utils._matrix._rows import as_features_type
from sklearn_structsvm._utils.borders import as_csr

from cython.parallel cimport prange
from libc.string cimport memset

from sklearn_structsvm._utils._matrix._widen cimport (
    address_of, entry, free_room, gather_entries, no_room, room_t, widen)


cdef extern from "_utils/_matrix/_products.h" nogil:
    Py_ssize_t panels_size(Py_ssize_t f, Py_ssize_t k) noexcept
    void pack_panels(
        Py_ssize_t f, Py_ssize_t k, const double* W, double* panels) noexcept
    void dense_scores(
        Py_ssize_t count, Py_ssize_t f, Py_ssize_t k, const double* X,
        const double* panels, double* out) noexcept
    void dense_score(
        Py_ssize_t count, Py_ssize_t f, const double* X, const double* w,
        double* out) noexcept
    void dense_gradient(
        Py_ssize_t count, Py_ssize_t f, Py_ssize_t k, const double* X,
        const double* B, double* sums) noexcept


# Rows that one thread takes at a time.
cdef Py_ssize_t ROWS = 256

# Rows that the loops process together, and entries converted to float64 at once, which
# are then read from the first-level cache.
cdef Py_ssize_t GROUP_OF_ROWS = 4
cdef Py_ssize_t LOOP_TILE = 2048

# Parts of the dense rows that have their own subgradients, which are summed at the end.
cdef Py_ssize_t GRADIENT_PARTS = 16


# The copy by columns takes about as long as this many sums.
cdef int SUMS_BEFORE_COPY = 8

# A sum over at most this share of the entries of X is computed by rows: on one thread, as
# rows share columns, but reading nothing else.
cdef double MAX_SHARE_BY_ROWS = 0.25


cdef class Products:
    """Abstract: X W and Xᵀ B, for X with a constant feature or without.

    Attributes
    ----------
    n_samples, n_features : int
        Including the constant feature.
    bias : float
    """

    cdef readonly Py_ssize_t n_samples
    cdef readonly Py_ssize_t n_features
    cdef readonly double bias
    # Without the constant feature.
    cdef Py_ssize_t f

    def __init__(self, X, bias=0.0):
        self.n_samples, self.f = X.shape
        self.bias = bias
        self.n_features = self.f + (self.bias != 0.0)

    def scores(self, const double[:, ::1] W, double[:, ::1] out, int n_threads=1):
        """out = X W, of shape (n_samples, k)."""
        cdef Py_ssize_t n = self.n_samples, k = W.shape[1], i, c
        self._check(W.shape[0], k, out.shape[0], out.shape[1])
        self._scores(W, out, n_threads)
        if self.bias != 0.0:
            for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
                for c in range(k):
                    out[i, c] += self.bias * W[self.f, c]

    def gradient(self, const double[:, ::1] B, double[:, ::1] out, int n_threads=1):
        """out = Xᵀ B, of shape (n_features, k)."""
        cdef Py_ssize_t k = B.shape[1]
        self._check(out.shape[0], out.shape[1], B.shape[0], k)
        self._gradient(B, out, n_threads)
        if self.bias != 0.0:
            np.multiply(
                np.sum(B, axis=0), self.bias, out=np.asarray(out[self.f]))

    cdef int _check(
            self, Py_ssize_t f, Py_ssize_t k, Py_ssize_t n, Py_ssize_t k2) except -1:
        if f != self.n_features or n != self.n_samples or k != k2:
            raise ValueError(
                f"Weights of shape ({f}, {k}) and scores of shape ({n}, {k2}) do not "
                f"fit X of shape ({self.n_samples}, {self.n_features}).")
        return 0

    cdef int _scores(
            self, const double[:, ::1] W, double[:, ::1] out, int n_threads) except -1:
        return 0

    cdef int _gradient(
            self, const double[:, ::1] B, double[:, ::1] out, int n_threads) except -1:
        return 0


cdef class DenseProducts(Products):
    """C-contiguous rows of float32 or float64."""

    cdef object X
    cdef const void* values
    cdef bint is_single

    def __init__(self, X, bias=0.0):
        X = as_features_type(np.asarray(X))
        super().__init__(X, bias)
        self.X = X
        self.values = address_of(X)
        self.is_single = X.dtype == np.float32

    cdef int _scores(
            self, const double[:, ::1] W, double[:, ::1] out, int n_threads) except -1:
        cdef Py_ssize_t n = self.n_samples, f = self.f, k = W.shape[1], b
        cdef Py_ssize_t n_blocks = (n + ROWS - 1) // ROWS
        cdef int failed = 0
        cdef double[::1] panels
        if f == 0:
            out[:] = 0.0
            return 0
        panels = np.empty(panels_size(f, k))
        pack_panels(f, k, &W[0, 0], &panels[0])
        for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
            failed |= self.score_rows(
                b * ROWS, min(n, (b + 1) * ROWS), k, &W[0, 0], &panels[0], &out[0, 0])
        return no_room() if failed else 0

    cdef Py_ssize_t end_of_tile(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """The end of the rows read at once: all rows, or as many as fit in a tile."""
        cdef Py_ssize_t groups = LOOP_TILE // (GROUP_OF_ROWS * self.f)
        if not self.is_single:
            return stop
        return min(stop, start + GROUP_OF_ROWS * max(1, groups))

    cdef bint score_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* W,
            const double* panels, double* out) noexcept nogil:
        """The scores of some rows; returns whether it is out of memory."""
        cdef Py_ssize_t end, f = self.f
        cdef const double* X
        cdef room_t room
        while start < stop:
            end = self.end_of_tile(start, stop)
            X = widen(self.values, start * f, (end - start) * f, self.is_single, &room)
            if X == NULL:
                return True
            if k == 1:
                dense_score(end - start, f, X, W, out + start)
            else:
                dense_scores(end - start, f, k, X, panels, out + start * k)
            free_room(&room)
            start = end
        return False

    cdef bint add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* B,
            double* sums) noexcept nogil:
        """The subgradient of some rows; returns whether it is out of memory."""
        cdef Py_ssize_t end, f = self.f
        cdef const double* X
        cdef room_t room
        while start < stop:
            end = self.end_of_tile(start, stop)
            X = widen(self.values, start * f, (end - start) * f, self.is_single, &room)
            if X == NULL:
                return True
            dense_gradient(end - start, f, k, X, B + start * k, sums)
            free_room(&room)
            start = end
        return False

    cdef int _gradient(
            self, const double[:, ::1] B, double[:, ::1] out, int n_threads) except -1:
        cdef Py_ssize_t n = self.n_samples, f = self.f, k = B.shape[1], part
        cdef int failed = 0
        # Few enough that summing the parts costs little in comparison.
        cdef Py_ssize_t n_parts = max(1, min(GRADIENT_PARTS, n // (8 * k)))
        cdef double[:, :, ::1] sums = np.zeros((n_parts, k, f))
        if f == 0:
            return 0
        for part in prange(
                n_parts, nogil=True, num_threads=n_threads, schedule="static"):
            failed |= self.add_rows(
                part * n // n_parts, (part + 1) * n // n_parts, k, &B[0, 0],
                &sums[part, 0, 0])
        if failed:
            no_room()
        np.asarray(out)[:f] = np.sum(sums, axis=0).T
        return 0


cdef class SparseProducts(Products):
    """CSR rows with 32-bit column indices, and their copy by columns."""

    cdef object data
    cdef const void* values
    cdef bint is_single
    cdef const int[::1] indices
    cdef const Py_ssize_t[::1] indptr
    cdef object column_data
    cdef const void* column_values
    cdef const int[::1] column_rows
    cdef const Py_ssize_t[::1] column_starts
    cdef int n_sums

    def __init__(self, X, bias=0.0):
        if max(X.shape) > np.iinfo(np.intc).max:
            raise ValueError(
                f"X has too many rows or columns for 32-bit indices: {X.shape}.")
        X = as_csr(X)
        super().__init__(X, bias)
        self.column_starts = None
        self.n_sums = 0
        self.data = as_features_type(X.data)
        self.values = address_of(self.data)
        self.is_single = self.data.dtype == np.float32
        self.indices = np.require(X.indices, np.intc, "CA")
        self.indptr = np.require(X.indptr, np.intp, "CA")

    cdef inline double at(self, Py_ssize_t j) noexcept nogil:
        return entry(self.values, j, self.is_single)

    cdef inline double at_column(self, Py_ssize_t j) noexcept nogil:
        return entry(self.column_values, j, self.is_single)

    cdef int _scores(
            self, const double[:, ::1] W, double[:, ::1] out, int n_threads) except -1:
        cdef Py_ssize_t n = self.n_samples, b
        cdef Py_ssize_t n_blocks = (n + ROWS - 1) // ROWS
        cdef int failed = 0
        for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            failed |= self.score_rows(b * ROWS, min(n, (b + 1) * ROWS), W, out)
        return no_room() if failed else 0

    cdef bint score_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double[:, ::1] W,
            double[:, ::1] out) noexcept nogil:
        """The scores of some rows; returns whether it is out of memory."""
        cdef Py_ssize_t i, j, end, k = W.shape[1]
        cdef double s0, s1
        cdef const double* w
        memset(&out[start, 0], 0, (stop - start) * k * sizeof(double))
        if self.indices.shape[0] == 0:
            return False
        w = &W[0, 0]
        for i in range(start, stop):
            j, end = self.indptr[i], self.indptr[i + 1]
            if j == end:
                continue
            if k > 1:
                if gather_entries(
                        end - j, self.indices.shape[0] - j, self.values, j,
                        self.is_single, &self.indices[j], w, k, &out[i, 0]):
                    return True
                continue
            s0 = s1 = 0.0
            while j + 1 < end:
                s0 += self.at(j) * w[self.indices[j]]
                s1 += self.at(j + 1) * w[self.indices[j + 1]]
                j += 2
            if j < end:
                s0 += self.at(j) * w[self.indices[j]]
            out[i, 0] = s0 + s1
        return False

    def _transpose(self):
        cdef Py_ssize_t n = self.n_samples
        columns = sparse.csr_array(
            (self.data, np.asarray(self.indices), np.asarray(self.indptr)),
            shape=(n, self.f)).tocsc()
        self.column_data = columns.data
        self.column_values = address_of(self.column_data)
        self.column_rows = columns.indices.astype(np.intc, copy=False)
        self.column_starts = columns.indptr.astype(np.intp)

    cdef int _gradient(
            self, const double[:, ::1] B, double[:, ::1] out, int n_threads) except -1:
        cdef Py_ssize_t n = self.n_samples, k = B.shape[1], b
        cdef Py_ssize_t n_blocks = (self.f + ROWS - 1) // ROWS
        cdef Py_ssize_t[::1] starts
        cdef int[::1] labels
        cdef double[::1] values
        cdef int failed = 0
        cdef double work = self.work_by_rows(B)
        self.n_sums += 1
        if work <= MAX_SHARE_BY_ROWS * self.indices.shape[0] or (
                self.n_sums <= SUMS_BEFORE_COPY and work <= self.indices.shape[0]):
            with nogil:
                self.scatter_rows(B, out)
            return 0
        if self.column_starts is None:
            self._transpose()
        if k == 1:
            for b in prange(
                    n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                self.sum_columns(b * ROWS, min(self.f, (b + 1) * ROWS), B, out)
            return 0
        starts = np.zeros(n + 1, dtype=np.intp)
        with nogil:
            count_entries(B, starts)
        if 2 * starts[n] > n * k:
            for b in prange(
                    n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                failed |= self.gather_columns(
                    b * ROWS, min(self.f, (b + 1) * ROWS), B, out)
            return no_room() if failed else 0
        labels = np.empty(starts[n], dtype=np.intc)
        values = np.empty(starts[n])
        with nogil:
            copy_entries(B, labels, values)
        for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            self.sum_entries(
                b * ROWS, min(self.f, (b + 1) * ROWS), starts, labels, values, out)
        return 0

    cdef double work_by_rows(self, const double[:, ::1] B) noexcept nogil:
        """Number of products of an entry of X and one of B in a sum by rows."""
        cdef Py_ssize_t i, c
        cdef int count
        cdef double work = 0.0
        for i in range(B.shape[0]):
            count = 0
            for c in range(B.shape[1]):
                count += B[i, c] != 0.0
            work += <double> count * (self.indptr[i + 1] - self.indptr[i])
        return work

    cdef void scatter_rows(
            self, const double[:, ::1] B, double[:, ::1] out) noexcept nogil:
        cdef Py_ssize_t i, j, c, k = B.shape[1]
        cdef double x
        if self.f > 0:
            memset(&out[0, 0], 0, self.f * k * sizeof(double))
        for i in range(B.shape[0]):
            for c in range(k):
                x = B[i, c]
                if x == 0.0:
                    continue
                for j in range(self.indptr[i], self.indptr[i + 1]):
                    out[self.indices[j], c] += x * self.at(j)

    cdef void sum_columns(
            self, Py_ssize_t start, Py_ssize_t stop, const double[:, ::1] B,
            double[:, ::1] out) noexcept nogil:
        cdef Py_ssize_t c, j, end
        cdef double s0, s1
        for c in range(start, stop):
            j, end = self.column_starts[c], self.column_starts[c + 1]
            s0 = s1 = 0.0
            while j + 1 < end:
                s0 += self.at_column(j) * B[self.column_rows[j], 0]
                s1 += self.at_column(j + 1) * B[self.column_rows[j + 1], 0]
                j += 2
            if j < end:
                s0 += self.at_column(j) * B[self.column_rows[j], 0]
            out[c, 0] = s0 + s1

    cdef bint gather_columns(
            self, Py_ssize_t start, Py_ssize_t stop, const double[:, ::1] B,
            double[:, ::1] out) noexcept nogil:
        """The sums of some columns; returns whether it is out of memory."""
        cdef Py_ssize_t c, j, nnz = self.column_rows.shape[0], k = out.shape[1]
        memset(&out[start, 0], 0, (stop - start) * k * sizeof(double))
        for c in range(start, stop):
            j = self.column_starts[c]
            if j < self.column_starts[c + 1] and gather_entries(
                    self.column_starts[c + 1] - j, nnz - j, self.column_values, j,
                    self.is_single, &self.column_rows[j], &B[0, 0], k, &out[c, 0]):
                return True
        return False

    cdef void sum_entries(
            self, Py_ssize_t start, Py_ssize_t stop, const Py_ssize_t[::1] starts,
            const int[::1] labels, const double[::1] values,
            double[:, ::1] out) noexcept nogil:
        cdef Py_ssize_t c, j, i, e, k = out.shape[1]
        cdef double x
        memset(&out[start, 0], 0, (stop - start) * k * sizeof(double))
        for c in range(start, stop):
            for j in range(self.column_starts[c], self.column_starts[c + 1]):
                i, x = self.column_rows[j], self.at_column(j)
                for e in range(starts[i], starts[i + 1]):
                    out[c, labels[e]] += x * values[e]


cdef void count_entries(const double[:, ::1] B, Py_ssize_t[::1] starts) noexcept nogil:
    """Write where the nonzero entries of each row of B start once they are copied."""
    cdef Py_ssize_t i, c, count
    for i in range(B.shape[0]):
        count = 0
        for c in range(B.shape[1]):
            count += B[i, c] != 0.0
        starts[i + 1] = starts[i] + count


cdef void copy_entries(
        const double[:, ::1] B, int[::1] labels, double[::1] values) noexcept nogil:
    cdef Py_ssize_t i, c, count = 0
    for i in range(B.shape[0]):
        for c in range(B.shape[1]):
            if B[i, c] != 0.0:
                labels[count] = <int> c
                values[count] = B[i, c]
                count += 1


def as_products(X, bias=0.0):
    """The products of an array or sparse matrix.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Copied only if it is not C-contiguous float32 or float64, or CSR.
    bias : float
        Value of a constant feature, the last one; 0 for none.

    Returns
    -------
    Products

    Raises
    ------
    ValueError
        If a sparse X has more rows or columns than a 32-bit index can address, or indices
        out of bounds.
    """
    if sparse.issparse(X):
        return SparseProducts(X, bias)
    return DenseProducts(X, bias)
