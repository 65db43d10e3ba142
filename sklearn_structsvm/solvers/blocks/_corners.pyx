"""The corners of each block: its active set (alpha > 0) and its cache.

The active set of pairwise and away steps is a subset of the cache, as the paper
advises (section 3.3), so one container holds both.
"""
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy


cdef class CornerSets:
    """One small set of labelings per block.

    Parameters
    ----------
    sizes : ndarray of shape (n_blocks,), dtype intp
        Integers in a labeling of each block.
    """

    def __cinit__(self, const Py_ssize_t[::1] sizes):
        cdef Py_ssize_t i
        self.n_blocks = sizes.shape[0]
        self.sets = <Corners*> calloc(max(self.n_blocks, 1), sizeof(Corners))
        self.sizes = <Py_ssize_t*> calloc(max(self.n_blocks, 1), sizeof(Py_ssize_t))
        if self.sets == NULL or self.sizes == NULL:
            raise MemoryError("no memory for the corners of the blocks")
        for i in range(self.n_blocks):
            self.sizes[i] = sizes[i]

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.sets != NULL:
            for i in range(self.n_blocks):
                free(self.sets[i].labels)
                free(self.sets[i].alpha)
                free(self.sets[i].loss)
                free(self.sets[i].last_used)
        free(self.sets)
        free(self.sizes)

    cdef Py_ssize_t find(self, Py_ssize_t i, const int* labels) noexcept nogil:
        """Place of a labeling in block i's set, or -1."""
        cdef Corners* corners = &self.sets[i]
        cdef Py_ssize_t c, size = self.sizes[i]
        for c in range(corners.count):
            if memcmp(corners.labels + c * size, labels, size * sizeof(int)) == 0:
                return c
        return -1

    cdef Py_ssize_t add(
            self, Py_ssize_t i, const int* labels, double loss) except -1 nogil:
        """Append a labeling with alpha 0; returns its place."""
        cdef Corners* corners = &self.sets[i]
        cdef Py_ssize_t size = self.sizes[i], c = corners.count, capacity
        cdef void* grown
        if c == corners.capacity:
            capacity = 2 * c if c else 4
            grown = realloc(corners.labels, capacity * size * sizeof(int))
            if grown != NULL:
                corners.labels = <int*> grown
                grown = realloc(corners.alpha, capacity * sizeof(double))
            if grown != NULL:
                corners.alpha = <double*> grown
                grown = realloc(corners.loss, capacity * sizeof(double))
            if grown != NULL:
                corners.loss = <double*> grown
                grown = realloc(corners.last_used, capacity * sizeof(long long))
            if grown == NULL:
                with gil:
                    raise MemoryError("no memory for another corner")
            corners.last_used = <long long*> grown
            corners.capacity = capacity
        memcpy(corners.labels + c * size, labels, size * sizeof(int))
        corners.alpha[c] = 0.0
        corners.loss[c] = loss
        corners.count = c + 1
        self.touch(i, c)
        return c

    cdef void remove(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil:
        """Drop a labeling; the last one takes its place."""
        cdef Corners* corners = &self.sets[i]
        cdef Py_ssize_t size = self.sizes[i], last = corners.count - 1
        if c != last:
            memcpy(corners.labels + c * size, corners.labels + last * size,
                   size * sizeof(int))
            corners.alpha[c] = corners.alpha[last]
            corners.loss[c] = corners.loss[last]
            corners.last_used[c] = corners.last_used[last]
        corners.count = last

    cdef Py_ssize_t stalest(self, Py_ssize_t i) noexcept nogil:
        """The inactive corner that was best longest ago, or -1."""
        cdef Corners* corners = &self.sets[i]
        cdef Py_ssize_t c, found = -1
        for c in range(corners.count):
            if corners.alpha[c] == 0.0 and (
                    found < 0 or corners.last_used[c] < corners.last_used[found]):
                found = c
        return found

    cdef void touch(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil:
        """Note that a corner was used now."""
        self.clock += 1
        self.sets[i].last_used[c] = self.clock
