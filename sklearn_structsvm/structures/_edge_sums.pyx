"""The summed edge marginals of each example, with only their nonzero entries in memory.

In a block of n labelings of T nodes, at most n (T - 1) of the k² pairs of labels are not
zero. Distributions over all labelings have all pairs.
"""
import numpy as np
from scipy import sparse

from sklearn_structsvm._utils import tolerances
from sklearn_structsvm._utils.borders import as_floats, as_tuple

from libc.math cimport fabs
from libc.stdlib cimport calloc, free
from scipy.linalg.cython_blas cimport daxpy, ddot

from sklearn_structsvm._utils._memory cimport grow, no_memory

cdef const char* SUMS = "the marginals of edges"

# The sums of labelings that were dropped are zero except for rounding. They are deleted
# when others need their room.
cdef double ROUNDED_ZERO = tolerances.ROUNDED_ZERO

# Up to this many sums are all stored from the start: a list would be slower.
cdef enum:
    FEW = 100


cdef class EdgeSums:
    """n_blocks times `size` sums, zero at first.

    Parameters
    ----------
    n_blocks, size : int
    """

    def __cinit__(self, Py_ssize_t n_blocks, Py_ssize_t size):
        cdef Py_ssize_t i
        self.n_blocks, self.size = n_blocks, size
        self.blocks = <Sums*> calloc(max(n_blocks, 1), sizeof(Sums))
        if self.blocks == NULL:
            no_memory(SUMS)
        if size <= FEW:
            for i in range(n_blocks):
                self.all_values(i)

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.blocks != NULL:
            for i in range(self.n_blocks):
                self._forget(i)
        free(self.blocks)

    cdef void _forget(self, Py_ssize_t i) noexcept nogil:
        """Set all sums of block i to zero, and free their memory."""
        free(self.blocks[i].values)
        free(self.blocks[i].places)
        self.blocks[i].values = NULL
        self.blocks[i].places = NULL
        self.blocks[i].count = self.blocks[i].capacity = 0

    cdef bint is_all(self, Py_ssize_t i) noexcept nogil:
        """Whether all sums of block i are stored."""
        return self.blocks[i].count < 0

    cdef const double* all_or_none(self, Py_ssize_t i) except? NULL nogil:
        """All sums of block i, or NULL if all are zero."""
        if self.blocks[i].count == 0:
            return NULL
        return self.all_values(i)

    cdef double* all_values(self, Py_ssize_t i) except NULL nogil:
        """All sums of block i; from now on, all of them are stored."""
        cdef Sums* sums = &self.blocks[i]
        cdef double* values
        cdef Py_ssize_t j
        if sums.count < 0:
            return sums.values
        values = <double*> calloc(max(self.size, 1), sizeof(double))
        if values == NULL:
            no_memory(SUMS)
        for j in range(sums.count):
            values[sums.places[j]] = sums.values[j]
        self._forget(i)
        sums.values = values
        sums.count = -1
        return values

    cdef double dot(self, Py_ssize_t i, const double* weights) noexcept nogil:
        """Σ of sums times weights."""
        cdef const Sums* sums = &self.blocks[i]
        cdef Py_ssize_t j
        cdef int n = <int> self.size, one = 1
        cdef double total = 0.0
        if sums.count < 0:
            return ddot(&n, sums.values, &one, <double*> weights, &one)
        for j in range(sums.count):
            total += sums.values[j] * weights[sums.places[j]]
        return total

    cdef void add_to(self, Py_ssize_t i, double c, const Table* table) noexcept nogil:
        """table += c * sums of block i."""
        cdef const Sums* sums = &self.blocks[i]
        cdef Py_ssize_t j
        cdef int n = <int> self.size, one = 1
        if sums.count < 0:
            table_fill(table, self.size)
            daxpy(&n, &c, sums.values, &one, table.values, &one)
            return
        for j in range(sums.count):
            table_add(table, sums.places[j], c * sums.values[j])

    cdef int move(self, Py_ssize_t i, double gamma, const Table* table) except -1 nogil:
        """sums of block i += gamma * table."""
        cdef Sums* sums = &self.blocks[i]
        cdef Py_ssize_t j, place
        cdef int n = <int> self.size, one = 1
        cdef unsigned char* marks = table.marks
        cdef const double* changes = table.values
        cdef double* values
        cdef int* places
        if table.count[0] < 0 or sums.count < 0:
            values = self.all_values(i)
            if table.count[0] < 0:
                daxpy(&n, &gamma, table.values, &one, values, &one)
                return 0
            for j in range(table.count[0]):
                place = table.places[j]
                values[place] += gamma * table.values[place]
            return 0
        self._reserve(sums, table.count[0])
        values, places = sums.values, sums.places
        for j in range(sums.count):
            place = places[j]
            if marks[place]:
                values[j] += gamma * changes[place]
                marks[place] = 2
        for j in range(table.count[0]):
            place = table.places[j]
            if marks[place] == 1 and changes[place] != 0.0:
                places[sums.count] = <int> place
                values[sums.count] = gamma * changes[place]
                sums.count += 1
            marks[place] = 1
        return 0

    cdef int _reserve(self, Sums* sums, Py_ssize_t n_more) except -1 nogil:
        """Make room for this many more sums; delete those close to zero if needed."""
        cdef Py_ssize_t j, kept = 0, capacity
        if sums.count + n_more <= sums.capacity:
            return 0
        for j in range(sums.count):
            if fabs(sums.values[j]) > ROUNDED_ZERO:
                sums.values[kept] = sums.values[j]
                sums.places[kept] = sums.places[j]
                kept += 1
        sums.count = kept
        if 2 * (kept + n_more) <= sums.capacity:
            return 0
        capacity = 2 * (kept + n_more)
        grow(<void**> &sums.values, capacity * sizeof(double), SUMS)
        grow(<void**> &sums.places, capacity * sizeof(int), SUMS)
        sums.capacity = capacity
        return 0

    def scale(self, double rho):
        """All sums times rho."""
        cdef Py_ssize_t i, j
        for i in range(self.n_blocks):
            for j in range(self.size if self.is_all(i) else self.blocks[i].count):
                self.blocks[i].values[j] *= rho

    def get(self):
        """Values, places and starts of a CSR array of shape (n_blocks, size)."""
        cdef Py_ssize_t i, j, count, at = 0
        starts = np.zeros(self.n_blocks + 1, dtype=np.int64)
        cdef long long[::1] start = starts
        for i in range(self.n_blocks):
            count = self.size if self.is_all(i) else self.blocks[i].count
            start[i + 1] = start[i] + count
        values = np.empty(starts[self.n_blocks])
        places = np.empty(starts[self.n_blocks], dtype=np.intc)
        cdef double[::1] value = values
        cdef int[::1] place = places
        for i in range(self.n_blocks):
            for j in range(start[i + 1] - start[i]):
                value[at] = self.blocks[i].values[j]
                place[at] = <int> j if self.is_all(i) else self.blocks[i].places[j]
                at += 1
        return values, places, starts

    def set(self, saved):
        """Take what `get` returned, or an ndarray; ValueError if it does not fit."""
        cdef Py_ssize_t i, j
        cdef Sums* sums
        cdef double* all_sums
        name = "edges of the blocks"
        shape = self.n_blocks, self.size
        if isinstance(saved, (list, tuple)):
            given, columns, begin = as_tuple(name, saved, 3)
            given = as_floats(name, given, np.size(given))
            rows = sparse.csr_array((given, columns, begin), shape=shape)
        else:
            saved = as_floats(name, saved, *np.shape(saved))
            if saved.size != self.n_blocks * self.size:
                raise ValueError(
                    f"{name} must be {shape} numbers; got the shape {saved.shape}.")
            rows = sparse.csr_array(saved.reshape(shape))
        rows.check_format(full_check=True)
        rows.sum_duplicates()
        cdef const double[::1] values = as_floats(name, rows.data, rows.nnz)
        cdef const int[::1] places = rows.indices.astype(np.intc)
        cdef const long long[::1] starts = rows.indptr.astype(np.int64)
        for i in range(self.n_blocks):
            self._forget(i)
            if self.size <= FEW:
                all_sums = self.all_values(i)
                for j in range(starts[i], starts[i + 1]):
                    all_sums[places[j]] = values[j]
                continue
            sums = &self.blocks[i]
            self._reserve(sums, starts[i + 1] - starts[i])
            for j in range(starts[i], starts[i + 1]):
                sums.places[sums.count] = places[j]
                sums.values[sums.count] = values[j]
                sums.count += 1
