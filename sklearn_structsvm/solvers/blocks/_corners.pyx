"""The corners of each block: its active set (alpha > 0) and its cache.

The active set of pairwise and away steps is a subset of the cache, as the paper
advises (section 3.3), so one container holds both. With the Gram matrix of the joint
features of a block's corners its dual variables can be corrected as a whole, as `mixture`
does it for all blocks at once.
"""
import numpy as np

cimport cython
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memmove

from sklearn_structsvm._utils._memory cimport grow

cdef const char* CORNER = "another corner"


# Pairwise steps of one correction at most: it is to end once it gained most of what there
# is to gain, and the next visit goes on.
cdef enum:
    MOST_STEPS = 50


# The garbage collector is not to clear the owner first, which says what to free.
@cython.no_gc_clear
cdef class CornerSets:
    """One small set of labelings per block.

    Parameters
    ----------
    sizes : ndarray of shape (n_blocks,), dtype intp
        Integers in a labeling of each block.
    keeps_gram : bool
        Whether there is to be a Gram matrix for each block, whose rows a solver fills
        when it adds a corner.
    owner : CornerSets or None
        Whose sets of labelings these are to be, for a thread that looks at other blocks
        than the others do.
    """

    def __cinit__(self, const Py_ssize_t[::1] sizes, bint keeps_gram=False,
                  CornerSets owner=None):
        cdef Py_ssize_t i
        self.keeps_gram = keeps_gram
        self.n_blocks = sizes.shape[0]
        if owner is not None:
            self.owner = owner
            self.sets, self.sizes = owner.sets, owner.sizes
            self.clock = owner.clock
            self.reserve(owner.most)
            return
        self.sets = <Corners*> calloc(max(self.n_blocks, 1), sizeof(Corners))
        self.sizes = <Py_ssize_t*> calloc(max(self.n_blocks, 1), sizeof(Py_ssize_t))
        if self.sets == NULL or self.sizes == NULL:
            raise MemoryError("no memory for the corners of the blocks")
        for i in range(self.n_blocks):
            self.sizes[i] = sizes[i]

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.owner is None:
            if self.sets != NULL:
                for i in range(self.n_blocks):
                    free(self.sets[i].labels)
                    free(self.sets[i].alpha)
                    free(self.sets[i].before)
                    free(self.sets[i].loss)
                    free(self.sets[i].last_used)
                    free(self.sets[i].gram)
            free(self.sets)
            free(self.sizes)
        free(self.values)
        free(self.masses)
        free(self.coefs)

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
        cdef Py_ssize_t size = self.sizes[i], c = corners.count, capacity, a
        if c == corners.capacity:
            capacity = 2 * c if c else 4
            self.reserve(capacity)
            grow(<void**> &corners.labels, capacity * size * sizeof(int), CORNER)
            grow(<void**> &corners.alpha, capacity * sizeof(double), CORNER)
            grow(<void**> &corners.before, capacity * sizeof(double), CORNER)
            grow(<void**> &corners.loss, capacity * sizeof(double), CORNER)
            grow(<void**> &corners.last_used, capacity * sizeof(long long), CORNER)
            if self.keeps_gram:
                grow(<void**> &corners.gram, capacity * capacity * sizeof(double), CORNER)
                # The last row first: none overwrites one that is still to move.
                for a in range(c - 1, 0, -1):
                    memmove(corners.gram + a * capacity, corners.gram + a * c,
                            c * sizeof(double))
            corners.capacity = capacity
        memcpy(corners.labels + c * size, labels, size * sizeof(int))
        corners.alpha[c] = corners.before[c] = 0.0
        corners.loss[c] = loss
        corners.count = c + 1
        self.touch(i, c)
        return c

    cdef int reserve(self, Py_ssize_t most) except -1 nogil:
        """Room for a number of each of this many corners."""
        if most <= self.most:
            return 0
        grow(<void**> &self.values, most * sizeof(double), CORNER)
        grow(<void**> &self.masses, most * sizeof(double), CORNER)
        grow(<void**> &self.coefs, most * sizeof(double), CORNER)
        self.most = most
        return 0

    cdef void remember(self, Py_ssize_t i) noexcept nogil:
        """Note the masses of block i; labelings that are added later had none."""
        cdef Corners* corners = &self.sets[i]
        memcpy(corners.before, corners.alpha, corners.count * sizeof(double))

    def lengths(self):
        """Integers in a labeling of each block."""
        return np.asarray(<Py_ssize_t[:self.n_blocks]> self.sizes)

    cdef void remove(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil:
        """Drop a labeling; the last one takes its place."""
        cdef Corners* corners = &self.sets[i]
        cdef Py_ssize_t size = self.sizes[i], last = corners.count - 1, a
        cdef Py_ssize_t stride = corners.capacity
        if c != last:
            memcpy(corners.labels + c * size, corners.labels + last * size,
                   size * sizeof(int))
            corners.alpha[c] = corners.alpha[last]
            corners.loss[c] = corners.loss[last]
            corners.last_used[c] = corners.last_used[last]
        if c != last and self.keeps_gram:
            memcpy(corners.gram + c * stride, corners.gram + last * stride,
                   corners.count * sizeof(double))
            for a in range(last):
                corners.gram[a * stride + c] = corners.gram[a * stride + last]
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

    cdef double correct(
            self, Py_ssize_t i, double scale, double tol) noexcept nogil:
        """Pairwise steps on the dual variables of block i, all others fixed.

        Reads the `values` of its corners at w and changes them to those after the steps;
        `masses` is where α then is.

        Parameters
        ----------
        i : int
        scale : double
            p_i / λ: a shift of mass δ from corner a to corner b lowers the values by
            scale · δ (gram[b] - gram[a]).
        tol : double
            The largest value may exceed the least one of a corner with mass by this much
            in the end.

        Returns
        -------
        double
            That difference of values before the first step.
        """
        cdef double* values = self.values
        cdef double* masses = self.masses
        cdef Corners* corners = &self.sets[i]
        cdef Py_ssize_t c, high, low, n = corners.count, stride = corners.capacity
        cdef const double* to_row
        cdef const double* from_row
        cdef double excess, first = 0.0, curvature, change
        cdef int t
        memcpy(masses, corners.alpha, n * sizeof(double))
        for t in range(MOST_STEPS):
            high, low = 0, -1
            for c in range(n):
                if values[c] > values[high]:
                    high = c
                if masses[c] > 0.0 and (low < 0 or values[c] < values[low]):
                    low = c
            excess = values[high] - values[low]
            if t == 0:
                first = excess
            if not excess > tol:
                break
            to_row = corners.gram + high * stride
            from_row = corners.gram + low * stride
            curvature = scale * (to_row[high] + from_row[low] - 2.0 * to_row[low])
            change = masses[low]
            if excess < change * curvature:
                change = excess / curvature
                masses[low] -= change
            else:
                masses[low] = 0.0
            masses[high] += change
            for c in range(n):
                values[c] -= scale * change * (to_row[c] - from_row[c])
        return first
