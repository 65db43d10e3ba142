"""Dense rows of features, which BLAS multiplies, and precomputed scores."""
import numpy as np

from libc.stdint cimport uintptr_t
from libc.string cimport memset
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dger

from sklearn_structsvm._utils._matrix._features cimport (
    Features, clip, is_zero, mark_range, soft_threshold)
from sklearn_structsvm._utils._matrix._widen cimport (
    address_of, checked_entries, checked_room, entry, free_room, room_t)

# Entries of dense rows in one BLAS call: BLAS reads float64, so float32 rows are copied
# first, and the copy should stay in the second-level cache.
cdef Py_ssize_t BLAS_TILE = 32768


cdef class DenseFeatures(Features):
    """Rows of one or more C-contiguous items, all of float32 or all of float64.

    A range of rows that is passed to a method lies within one item. With an `order`,
    row t is row order[t] of its item.
    """

    cdef list items
    cdef bint is_single
    cdef const uintptr_t[::1] addresses
    cdef const Py_ssize_t[::1] starts
    cdef const Py_ssize_t[::1] order
    # Rows read at once.
    cdef Py_ssize_t tile

    def __init__(self, items, order=None):
        self.items = items
        self.order = order
        self.is_single = items[0].dtype == np.float32
        self.addresses = np.array(
            [<uintptr_t> address_of(item) for item in items], dtype=np.uintp)
        lengths = [len(item) for item in items]
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
        self.n_rows = self.starts[len(items)]
        self.n_features = items[0].shape[1]
        self.tile = max(1, BLAS_TILE // max(1, self.n_features))

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
            self, Py_ssize_t start, Py_ssize_t stop, room_t* room) except NULL nogil:
        """Rows as `widen` gives them."""
        cdef Py_ssize_t i = self._item(start), f = self.n_features, t, j
        cdef const void* item = <const void*> self.addresses[i]
        cdef double* copy
        if self.order is None:
            return checked_entries(
                item, (start - self.starts[i]) * f, (stop - start) * f, self.is_single,
                room)
        copy = checked_room((stop - start) * f, room)
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

    cdef int add_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        cdef Py_ssize_t end
        if self.n_features == 0:
            return 0
        while start < stop:
            end = min(start + self.tile, stop)
            self._add_tile_scores(start, end, weights, k, out)
            out += (end - start) * k
            start = end
        return 0

    cdef int _add_tile_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        # To BLAS, row-major C += X W is column-major Cᵀ += Wᵀ Xᵀ.
        cdef int m = <int> k, n = <int> (stop - start), f = <int> self.n_features
        cdef int one_inc = 1
        cdef double one = 1.0
        cdef room_t room
        cdef double* x = <double*> self.read(start, stop, &room)
        if n == 1 and k == 1:
            out[0] += ddot(&f, x, &one_inc, <double*> weights, &one_inc)
        elif n == 1:
            dgemv("N", &m, &f, &one, <double*> weights, &m, x, &one_inc, &one, out,
                  &one_inc)
        else:
            dgemm("N", "N", &m, &n, &f, &one, <double*> weights, &m, x, &f,
                  &one, out, &m)
        free_room(&room)
        return 0

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) except -1.0 nogil:
        cdef int size = <int> (self.n_features * k), one_inc = 1
        memset(out, 0, self.n_features * k * sizeof(double))
        self.add_rows(start, stop, 1.0, delta, k, out)
        return ddot(&size, out, &one_inc, out, &one_inc)

    def n_entries(self, offsets):
        return np.diff(offsets) * self.n_features

    def add_grams(self, const Py_ssize_t[::1] offsets, const Py_ssize_t[::1] places,
                  double[::1] grams):
        for i in np.flatnonzero(np.asarray(places) >= 0):
            rows = self._rows(offsets[i], offsets[i + 1])
            size = len(rows)
            own = np.asarray(grams)[places[i]:places[i] + size * size]
            own += (rows @ rows.T).ravel()

    cdef int add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) except -1 nogil:
        cdef Py_ssize_t t = start, end
        if self.n_features == 0:
            return 0
        # Runs of rows with nonzero delta; there are often few, as most labels agree.
        while t < stop:
            if is_zero(delta + (t - start) * k, k):
                t += 1
                continue
            end = t + 1
            while end < stop and end - t < self.tile and not is_zero(
                    delta + (end - start) * k, k):
                end += 1
            self._add_run(t, end, coef, delta + (t - start) * k, k, target)
            t = end
        return 0

    cdef int _add_run(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) except -1 nogil:
        cdef int m = <int> k, f = <int> self.n_features, n = <int> (stop - start)
        cdef double one = 1.0
        cdef room_t room
        cdef double* x = <double*> self.read(start, stop, &room)
        dgemm("N", "T", &m, &f, &n, &coef, <double*> delta, &m, x, &f, &one, target, &m)
        free_room(&room)
        return 0

    cdef void add_outer(
            self, double coef, const double* outer, Py_ssize_t k,
            double* target) noexcept nogil:
        cdef int size = <int> (self.n_features * k), one_inc = 1
        daxpy(&size, &coef, <double*> outer, &one_inc, target, &one_inc)

    cdef int add_outer_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
            double* out) except -1 nogil:
        return self.add_scores(start, stop, outer, k, out)

    cdef int add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) except -1 nogil:
        cdef int f = <int> self.n_features, m = <int> k, one_inc = 1
        cdef double step
        cdef room_t room
        cdef double* x
        if f == 0:
            return 0
        x = <double*> self.read(row, row + 1, &room)
        if k == 1:
            step = coef * delta[0]
            daxpy(&f, &step, x, &one_inc, target, &one_inc)
        else:
            dger(&m, &f, &coef, <double*> delta, &one_inc, x, &one_inc, target, &m)
        free_room(&room)
        return 0

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        clip(self.n_features * k, v, lower, upper, w)

    cdef void shrink_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            double threshold, double* w) noexcept nogil:
        soft_threshold(self.n_features * k, v, threshold, w)

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            Py_ssize_t at, unsigned char* pages) noexcept nogil:
        mark_range(at, at + self.n_features * k, pages)


cdef class GivenScores(DenseFeatures):
    """Rows of k scores of another model. The only weight is a scale s: s X replaces X W.

    <X, delta> is not an inner product of rows, so there are no Gram matrices.
    """

    cdef Py_ssize_t n_weights(self, Py_ssize_t k) noexcept nogil:
        return 1

    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k):
        return 1

    cdef int _add_tile_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        cdef Py_ssize_t j, count = (stop - start) * k
        cdef room_t room
        cdef const double* x = self.read(start, stop, &room)
        for j in range(count):
            out[j] += weights[0] * x[j]
        free_room(&room)
        return 0

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) except -1.0 nogil:
        out[0] = 0.0
        self.add_rows(start, stop, 1.0, delta, k, out)
        return out[0] * out[0]

    def n_entries(self, offsets):
        return np.full(len(offsets) - 1, -np.inf)

    cdef int _add_run(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) except -1 nogil:
        cdef Py_ssize_t j, count = (stop - start) * k
        cdef double total = 0.0
        cdef room_t room
        cdef const double* x = self.read(start, stop, &room)
        for j in range(count):
            total += x[j] * delta[j]
        target[0] += coef * total
        free_room(&room)
        return 0

    cdef void add_outer(
            self, double coef, const double* outer, Py_ssize_t k,
            double* target) noexcept nogil:
        target[0] += coef * outer[0]

    cdef int add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) except -1 nogil:
        return self._add_run(row, row + 1, coef, delta, k, target)

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        clip(1, v, lower, upper, w)

    cdef void shrink_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            double threshold, double* w) noexcept nogil:
        soft_threshold(1, v, threshold, w)

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            Py_ssize_t at, unsigned char* pages) noexcept nogil:
        mark_range(at, at + 1, pages)
