"""Rows of features, dense or CSR: the only place where the two differ.

They are float32 or float64, which is read as it is and added up as float64: the same
numbers give the same bits. Dense rows may lie in as many places as there are items.

Weights are stored features-first, W of shape (n_features, k), so that a sparse
entry meets k contiguous weights. An outer product D = X[start:stop]ᵀ delta is
formed once in a buffer of the caller and then added wherever it is needed: all
of D for dense rows, only the touched features' rows for CSR. For short blocks the norm
of D comes from the Gram matrix of their rows, and D is never formed.
"""
import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import check_sparse
from sklearn_structsvm._utils._matrix._rows import as_features_type, pack, seems_sparse

from libc.stdint cimport uintptr_t
from libc.string cimport memset
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dger

from sklearn_structsvm._utils._matrix._widen cimport (
    address_of, entry, fill_with_nan, free_room, make_room, room_t, widen)


cdef extern from "_utils/_vector.h" nogil:
    void vector_gather(
        Py_ssize_t count, Py_ssize_t available, const double* values,
        const int* indices, const double* weights, Py_ssize_t k,
        double* out) noexcept
    void vector_axpy(
        Py_ssize_t k, double a, const double* x, double* y) noexcept


# Scores of a row from which on sparse products are as fast, an entry, as dense ones.
MANY_SCORES = 8

# Entries of dense rows that BLAS is given at once: it reads float64, so others need room
# for a copy, which should stay in the cache of the second level.
cdef Py_ssize_t TILE = 32768


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


cdef bint _is_zero(const double* delta, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        if delta[j] != 0.0:
            return False
    return True


cdef class DenseFeatures(Features):
    """Rows of one or more C-contiguous items, all of float32 or all of float64.

    A range of rows, as methods take it, lies in one item. With an `order`, row t is row
    order[t] of its item.
    """

    cdef list items
    cdef bint is_single
    cdef const uintptr_t[::1] addresses
    cdef const Py_ssize_t[::1] starts
    cdef const Py_ssize_t[::1] order
    # Rows that are read at once.
    cdef Py_ssize_t tile

    def __init__(self, items, order=None):
        self.items = items
        self.order = order
        self.is_single = items[0].dtype == np.float32
        self.addresses = np.array([item.ctypes.data for item in items], dtype=np.uintp)
        lengths = [len(item) for item in items]
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
        self.n_rows = self.starts[len(items)]
        self.n_features = items[0].shape[1]
        self.tile = max(1, TILE // max(1, self.n_features))

    cdef Py_ssize_t _item(self, Py_ssize_t row) noexcept nogil:
        """The item that a row lies in."""
        cdef Py_ssize_t low = 0, high = self.addresses.shape[0], middle
        while high - low > 1:
            middle = (low + high) // 2
            if self.starts[middle] <= row:
                low = middle
            else:
                high = middle
        return low

    cdef const double* read(
            self, Py_ssize_t start, Py_ssize_t stop, room_t* room) noexcept nogil:
        """Rows as `widen` gives them."""
        cdef Py_ssize_t i = self._item(start), f = self.n_features, t, j
        cdef const void* item = <const void*> self.addresses[i]
        cdef double* copy
        if self.order is None:
            return widen(item, (start - self.starts[i]) * f, (stop - start) * f,
                         self.is_single, room)
        copy = make_room((stop - start) * f, room)
        if copy != NULL:
            for t in range(start, stop):
                for j in range(f):
                    copy[(t - start) * f + j] = entry(
                        item, self.order[t] * f + j, self.is_single)
        return copy

    def _rows(self, Py_ssize_t start, Py_ssize_t stop):
        """Some rows as a float64 array."""
        cdef Py_ssize_t i = self._item(start)
        if self.order is None:
            rows = self.items[i][start - self.starts[i]:stop - self.starts[i]]
        else:
            rows = self.items[i][np.asarray(self.order[start:stop])]
        return rows.astype(np.float64, copy=False)

    def row_norms(self):
        cdef Py_ssize_t i, start, stop
        norms = np.empty(self.n_rows)
        for i in range(len(self.items)):
            for start in range(self.starts[i], self.starts[i + 1], self.tile):
                stop = min(start + self.tile, self.starts[i + 1])
                rows = self._rows(start, stop)
                np.einsum("ij,ij->i", rows, rows, out=norms[start:stop])
        return norms

    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k):
        return self.n_features * k

    cdef void scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) noexcept nogil:
        cdef Py_ssize_t end
        if self.n_features == 0:
            memset(out, 0, k * (stop - start) * sizeof(double))
            return
        while start < stop:
            end = min(start + self.tile, stop)
            self._tile_scores(start, end, weights, k, out)
            out += (end - start) * k
            start = end

    cdef void _tile_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) noexcept nogil:
        # Row-major C = X W is column-major Cᵀ = Wᵀ Xᵀ to BLAS.
        cdef int m = <int> k, n = <int> (stop - start), f = <int> self.n_features
        cdef int one_inc = 1
        cdef double one = 1.0, zero = 0.0
        cdef room_t room
        cdef double* x = <double*> self.read(start, stop, &room)
        if x == NULL:
            fill_with_nan(out, n * k)
        elif n == 1:
            if k == 1:
                out[0] = ddot(&f, x, &one_inc, <double*> weights, &one_inc)
            else:
                dgemv("N", &m, &f, &one, <double*> weights, &m, x, &one_inc,
                      &zero, out, &one_inc)
        else:
            dgemm("N", "N", &m, &n, &f, &one, <double*> weights, &m, x, &f,
                  &zero, out, &m)
        free_room(&room)

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
        for i in np.flatnonzero(sizes):
            rows = self._rows(offsets[i], offsets[i + 1])
            matrix = grams[places[i]:places[i] + sizes[i]]
            np.matmul(rows, rows.T, out=matrix.reshape(len(rows), len(rows)))
        return grams, np.where(sizes > 0, places, -1).astype(np.intp)

    cdef void add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) noexcept nogil:
        cdef Py_ssize_t t = start, end
        if self.n_features == 0:
            return
        # Runs of rows with non-zero delta; often few, as most labels agree.
        while t < stop:
            if _is_zero(delta + (t - start) * k, k):
                t += 1
                continue
            end = t + 1
            while end < stop and end - t < self.tile and not _is_zero(
                    delta + (end - start) * k, k):
                end += 1
            self._add_run(t, end, coef, delta + (t - start) * k, k, target)
            t = end

    cdef void _add_run(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) noexcept nogil:
        cdef int m = <int> k, f = <int> self.n_features, n = <int> (stop - start)
        cdef double one = 1.0
        cdef room_t room
        cdef double* x = <double*> self.read(start, stop, &room)
        if x == NULL:
            fill_with_nan(target, self.n_features * k)
        else:
            dgemm("N", "T", &m, &f, &n, &coef, <double*> delta, &m, x, &f, &one,
                  target, &m)
        free_room(&room)

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
        cdef room_t room
        cdef double* x
        if f == 0:
            return
        x = <double*> self.read(row, row + 1, &room)
        if x == NULL:
            fill_with_nan(target, f * k)
        elif k == 1:
            step = coef * delta[0]
            daxpy(&f, &step, x, &one_inc, target, &one_inc)
        else:
            dger(&m, &f, &coef, <double*> delta, &one_inc, x, &one_inc, target, &m)
        free_room(&room)

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        clip(self.n_features * k, v, lower, upper, w)

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            unsigned char* pages) noexcept nogil:
        mark_range(0, self.n_features * k, pages)


cdef class GivenScores(DenseFeatures):
    """Rows of k scores of another model. Their only weight is a scale: s X for X W."""

    cdef Py_ssize_t n_weights(self, Py_ssize_t k) noexcept nogil:
        return 1

    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k):
        return 1

    cdef void _tile_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) noexcept nogil:
        cdef Py_ssize_t j, count = (stop - start) * k
        cdef room_t room
        cdef const double* x = self.read(start, stop, &room)
        if x == NULL:
            fill_with_nan(out, count)
        else:
            for j in range(count):
                out[j] = weights[0] * x[j]
        free_room(&room)

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) noexcept nogil:
        out[0] = 0.0
        self.add_rows(start, stop, 1.0, delta, k, out)
        return out[0] * out[0]

    def grams(self, const Py_ssize_t[::1] offsets):
        return Features.grams(self, offsets)

    cdef void _add_run(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) noexcept nogil:
        cdef Py_ssize_t j, count = (stop - start) * k
        cdef double total = 0.0
        cdef room_t room
        cdef const double* x = self.read(start, stop, &room)
        if x == NULL:
            fill_with_nan(target, 1)
        else:
            for j in range(count):
                total += x[j] * delta[j]
            target[0] += coef * total
        free_room(&room)

    cdef void add_outer(
            self, double coef, const double* outer, Py_ssize_t k,
            double* target) noexcept nogil:
        target[0] += coef * outer[0]

    cdef void add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) noexcept nogil:
        self._add_run(row, row + 1, coef, delta, k, target)

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        clip(1, v, lower, upper, w)

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            unsigned char* pages) noexcept nogil:
        mark_range(0, 1, pages)


cdef class CSRFeatures(Features):
    """CSR rows of float32 or float64 with 32-bit column indices."""

    cdef object data
    cdef const void* values
    cdef bint is_single
    cdef const int[::1] indices
    cdef const Py_ssize_t[::1] indptr
    # Doubles in front of an outer product's rows: its header and slot map.
    cdef Py_ssize_t header

    def __init__(self, data, const int[::1] indices,
                 const Py_ssize_t[::1] indptr, Py_ssize_t n_features):
        self.data = data
        self.values = address_of(data)
        self.is_single = data.dtype == np.float32
        self.indices = indices
        self.indptr = indptr
        self.n_rows = indptr.shape[0] - 1
        self.n_features = n_features
        self.header = 0

    cdef inline double at(self, Py_ssize_t p) noexcept nogil:
        return entry(self.values, p, self.is_single)

    def row_norms(self):
        cdef double[::1] norms = np.zeros(self.n_rows)
        cdef Py_ssize_t i, j
        for i in range(self.n_rows):
            for j in range(self.indptr[i], self.indptr[i + 1]):
                norms[i] += self.at(j) * self.at(j)
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
        cdef Py_ssize_t t, p, count
        cdef double x
        cdef double* row
        cdef const double* values
        cdef room_t room
        for t in range(start, stop):
            row = out + (t - start) * k
            if k == 1:
                x = 0.0
                for p in range(self.indptr[t], self.indptr[t + 1]):
                    x += self.at(p) * weights[self.indices[p]]
                row[0] = x
                continue
            memset(row, 0, k * sizeof(double))
            p = self.indptr[t]
            count = self.indptr[t + 1] - p
            if count == 0:
                continue
            values = widen(self.values, p, count, self.is_single, &room)
            if values == NULL:
                fill_with_nan(row, k)
            else:
                vector_gather(
                    count, self.indices.shape[0] - p, values, &self.indices[p], weights,
                    k, row)
            free_room(&room)

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
                vector_axpy(k, self.at(p), step, rows + (slots[j] - 1) * k)
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
                    vector_axpy(k, self.at(p), rows + (slot - 1) * k,
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
                        row[self.indices[p]] = self.at(p)
                    for u in range(t, T):
                        x = 0.0
                        for p in range(self.indptr[offsets[i] + u],
                                       self.indptr[offsets[i] + u + 1]):
                            x += row[self.indices[p]] * self.at(p)
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
                target[self.indices[p]] += coef * self.at(p) * delta[0]
            else:
                vector_axpy(k, coef * self.at(p), delta,
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


def as_features(X, Py_ssize_t k=1, order=None, bint given=False):
    """Wrap a 2-D array or sparse matrix of rows, or a list of them; copy what must be.

    Dense rows with few nonzero entries are kept as CSR if each entry meets at least
    MANY_SCORES weights: skipping zeros then saves more than BLAS gains.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features), or list of them
        Of a list the rows are stacked, where they lie if they are dense, contiguous and
        all of float32 or all of float64.
    k : int
        Scores that a row gets.
    order : ndarray of shape (n_rows,), dtype intp, or None
        For each place the row of its item that stands there; None as they are.
    given : bool
        Whether the features of X, dense, are the k scores themselves.

    Raises
    ------
    ValueError
        If there are more columns than a 32-bit index can name, or if a sparse X points
        beyond them.
    """
    items = list(X) if isinstance(X, (list, tuple)) else [X]
    n_features = items[0].shape[1]
    if n_features > np.iinfo(np.intc).max:
        raise ValueError(f"X has too many features: {n_features}.")
    if not sparse.issparse(items[0]):
        dtype = result_type(items)
        items = [as_features_type(item.astype(dtype, copy=False)) for item in items]
        if given:
            return GivenScores(items, order)
        if k < MANY_SCORES or not seems_sparse(items):
            return DenseFeatures(items, order)
        packed = pack(in_order(items, order))
        if packed is None:
            return DenseFeatures(items, order)
        return CSRFeatures(*packed, n_features)
    for item in items:
        check_sparse(item)
    X = stack_csr(in_order(items, order))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return CSRFeatures(
        as_features_type(X.data), np.require(X.indices, np.intc, "CA"),
        np.require(X.indptr, np.intp, "CA"), n_features)


def in_order(items, order):
    """Items with their rows in an order as of `as_features`."""
    if order is None:
        return items
    ends = np.cumsum([item.shape[0] for item in items])
    own = np.split(order, ends[:len(items) - 1])
    return [item[places] for item, places in zip(items, own)]


def stack_csr(items):
    """All rows of CSR matrices below one another, as they are if there is one."""
    if len(items) == 1:
        return sparse.csr_array(items[0])
    # By hand: sparse.vstack checks each of the many small items again.
    starts = np.cumsum([0] + [item.nnz for item in items], dtype=np.int64)
    indptr = [np.zeros(1, dtype=np.int64)]
    indptr += [item.indptr[1:] + start for item, start in zip(items, starts)]
    data = np.empty(sum(item.nnz for item in items), result_type(items))
    indices = np.empty(len(data), dtype=np.intc)
    for item, start in zip(items, starts):
        data[start:start + item.nnz] = item.data
        indices[start:start + item.nnz] = item.indices
    shape = sum(item.shape[0] for item in items), items[0].shape[1]
    return sparse.csr_array((data, indices, np.concatenate(indptr)), shape=shape)


def result_type(items):
    """That of all items together."""
    return np.result_type(*{item.dtype for item in items})
