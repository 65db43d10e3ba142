"""CSR rows of features, multiplied entry by entry, without the zeros."""
import numpy as np

from libc.string cimport memset
from scipy.linalg.cython_blas cimport ddot

from sklearn_structsvm._utils._matrix._features cimport (
    Features, clip, is_zero, mark_range, soft_threshold)
from sklearn_structsvm._utils._matrix._widen cimport (
    address_of, checked_entries, checked_room, entry, free_room, gather_entries, no_room,
    room_t)

# Columns of a row are read or written one by one if at most one in this many is needed:
# a vector holds that many at once.
cdef enum:
    COLUMNS_PER_PLACE = 4

# Fewer columns do not fill a pack of `_columns.h`.
cdef enum:
    FEW_COLUMNS = 4

# At most this many weights (half a MB) stay in the second-level cache, and their rows are
# not prefetched. The scores of this many columns then take no longer than those of a few.
cdef enum:
    FEW_WEIGHTS = 65536
    MOST_COLUMNS = 32


cdef extern from "_utils/_vector.h" nogil:
    void vector_axpy(
        Py_ssize_t k, double a, const double* x, double* y) noexcept


cdef extern from "_utils/_matrix/_columns.h" nogil:
    void gather_columns(
        Py_ssize_t count, Py_ssize_t available, const double* values,
        const int* indices, const double* weights, Py_ssize_t k, double* out) noexcept
    void scatter_columns(
        Py_ssize_t count, double coef, const double* values, const int* indices,
        const double* delta, Py_ssize_t k, double* weights) noexcept


cdef extern from "_utils/_matrix/_places.h" nogil:
    void add_to_columns(
        Py_ssize_t count, double coef, const double* values, const int* indices,
        Py_ssize_t n, const int* places, Py_ssize_t first, const double* delta,
        Py_ssize_t k, double* target) noexcept
    void add_column_scores(
        Py_ssize_t count, const double* values, const int* indices,
        const double* weights, Py_ssize_t k, Py_ssize_t n, const int* places,
        Py_ssize_t first, double* out) noexcept


cdef inline Py_ssize_t end_of_row(
        Py_ssize_t n, const int* places, Py_ssize_t first, Py_ssize_t k, Py_ssize_t* row
        ) noexcept nogil:
    """Advance `row` to that of places[first]; return the index after its last place."""
    cdef Py_ssize_t end = first
    while places[first] >= (row[0] + 1) * k:
        row[0] += 1
    while end < n and places[end] < (row[0] + 1) * k:
        end += 1
    return end


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

    def scores_whole_rows(self, Py_ssize_t k):
        return (FEW_COLUMNS <= k <= MOST_COLUMNS
                and self.n_features * k <= FEW_WEIGHTS)

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

    cdef int scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        cdef Py_ssize_t t, p, count
        cdef double x
        cdef double* row
        cdef const double* entries
        cdef room_t room
        cdef bint asks_ahead = self.n_features * k > FEW_WEIGHTS
        for t in range(start, stop):
            row = out + (t - start) * k
            if k == 1:
                x = 0.0
                for p in range(self.indptr[t], self.indptr[t + 1]):
                    x += self.at(p) * weights[self.indices[p]]
                row[0] = x
                continue
            p = self.indptr[t]
            count = self.indptr[t + 1] - p
            memset(row, 0, k * sizeof(double))
            if count == 0:
                continue
            if k < FEW_COLUMNS:
                if gather_entries(
                        count, self.indices.shape[0] - p, self.values, p, self.is_single,
                        &self.indices[p], weights, k, row):
                    no_room()
                continue
            entries = checked_entries(self.values, p, count, self.is_single, &room)
            gather_columns(
                count, self.indices.shape[0] - p if asks_ahead else 0, entries,
                &self.indices[p], weights, k, row)
            free_room(&room)
        return 0

    cdef int add_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, double* out) except -1 nogil:
        cdef Py_ssize_t t
        cdef room_t room
        cdef double* row = checked_room(k, &room)
        try:
            for t in range(start, stop):
                self.scores(t, t + 1, weights, k, row)
                vector_axpy(k, 1.0, row, out + (t - start) * k)
        finally:
            free_room(&room)
        return 0

    cdef double outer(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
            Py_ssize_t k, double* out) except -1.0 nogil:
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
            if is_zero(step, k):
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

    cdef int add_outer_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
            double* out) except -1 nogil:
        cdef const int* slots = <const int*> (outer + 1)
        cdef const double* rows = outer + self.header
        cdef Py_ssize_t t, p
        cdef int slot
        for t in range(start, stop):
            for p in range(self.indptr[t], self.indptr[t + 1]):
                slot = slots[self.indices[p]]
                if slot:
                    vector_axpy(k, self.at(p), rows + (slot - 1) * k,
                                out + (t - start) * k)
        return 0

    def n_entries(self, offsets):
        return np.diff(np.asarray(self.indptr)[np.asarray(offsets)])

    def add_grams(self, const Py_ssize_t[::1] offsets, const Py_ssize_t[::1] places,
                  double[::1] grams):
        cdef Py_ssize_t i, t, u, p, T, n = offsets.shape[0] - 1
        cdef double x
        cdef double* gram
        # One row as dense numbers; zeroed again before the next row.
        cdef double[::1] row = np.zeros(max(self.n_features, 1))
        with nogil:
            for i in range(n):
                if places[i] < 0:
                    continue
                gram = &grams[places[i]]
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
                        gram[t * T + u] += x
                        if u > t:
                            gram[u * T + t] += x
                    for p in range(self.indptr[offsets[i] + t],
                                   self.indptr[offsets[i] + t + 1]):
                        row[self.indices[p]] = 0.0

    cdef int add_rows(
            self, Py_ssize_t start, Py_ssize_t stop, double coef,
            const double* delta, Py_ssize_t k, double* target) except -1 nogil:
        cdef Py_ssize_t t
        for t in range(start, stop):
            if not is_zero(delta + (t - start) * k, k):
                self.add_row(t, coef, delta + (t - start) * k, k, target)
        return 0

    cdef int add_row(
            self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
            double* target) except -1 nogil:
        cdef Py_ssize_t p = self.indptr[row], count = self.indptr[row + 1] - p
        cdef room_t room
        cdef const double* entries
        if k == 1:
            for p in range(self.indptr[row], self.indptr[row + 1]):
                target[self.indices[p]] += coef * self.at(p) * delta[0]
        elif count > 0:
            entries = checked_entries(self.values, p, count, self.is_single, &room)
            scatter_columns(count, coef, entries, &self.indices[p], delta, k, target)
            free_room(&room)
        return 0

    cdef int add_places(
            self, Py_ssize_t start, Py_ssize_t stop, double coef, const double* delta,
            Py_ssize_t n, const int* places, Py_ssize_t k, double* target
            ) except -1 nogil:
        cdef Py_ssize_t t = 0, first = 0, end, p, count
        cdef room_t room
        cdef const double* x
        while first < n:
            end = end_of_row(n, places, first, k, &t)
            p = self.indptr[start + t]
            count = self.indptr[start + t + 1] - p
            if count > 0:
                x = checked_entries(self.values, p, count, self.is_single, &room)
                # Columns are given as places, which are offset by t k.
                add_to_columns(
                    count, coef, x, &self.indices[p], end - first, places + first,
                    t * k, delta, k, target)
                free_room(&room)
            first = end
        return 0

    cdef int add_place_scores(
            self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
            Py_ssize_t k, Py_ssize_t n, const int* places, double* out) except -1 nogil:
        cdef Py_ssize_t t = 0, first = 0, end, p, count
        cdef room_t room
        cdef const double* x
        while first < n:
            end = end_of_row(n, places, first, k, &t)
            p = self.indptr[start + t]
            count = self.indptr[start + t + 1] - p
            if count > 0 and (end - first) * COLUMNS_PER_PLACE > k:
                self.add_scores(start + t, start + t + 1, weights, k, out + t * k)
            elif count > 0:
                x = checked_entries(self.values, p, count, self.is_single, &room)
                add_column_scores(
                    count, x, &self.indices[p], weights, k, end - first,
                    places + first, t * k, out)
                free_room(&room)
            first = end
        return 0

    cdef void project_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            const double* lower, const double* upper, double* w) noexcept nogil:
        cdef Py_ssize_t p, j
        for p in range(self.indptr[start], self.indptr[stop]):
            j = self.indices[p] * k
            clip(k, v + j, lower + j, upper + j, w + j)

    cdef void shrink_rows(
            self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
            double threshold, double* w) noexcept nogil:
        cdef Py_ssize_t p, j
        for p in range(self.indptr[start], self.indptr[stop]):
            j = self.indices[p] * k
            soft_threshold(k, v + j, threshold, w + j)

    cdef void mark_rows(
            self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
            Py_ssize_t at, unsigned char* pages) noexcept nogil:
        cdef Py_ssize_t t, p, j
        for t in range(start, stop):
            if not is_zero(delta + (t - start) * k, k):
                for p in range(self.indptr[t], self.indptr[t + 1]):
                    j = at + self.indices[p] * k
                    mark_range(j, j + k, pages)
