"""The atoms of each block: its active set (alpha > 0) and its cache.

The active set of pairwise and away steps is a subset of the cache, as the paper
advises (section 3.3), so one container holds both. The Gram matrix of the joint features
of a block's atoms makes it possible to correct the block's dual variables as a whole, as
`mixture` does for all blocks at once.
"""
import numpy as np

cimport cython
from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memmove

from sklearn_structsvm._utils._memory cimport grow, no_memory

cdef const char* ATOM = "another atom"


# The most pairwise steps of one correction: it only has to make most of the possible
# gain, since the next visit continues.
cdef enum:
    MOST_STEPS = 50


# Whether to free the sets depends on the owner: the garbage collector must not clear it
# first.
@cython.no_gc_clear
cdef class ActiveSets:
    """One small set of labelings per block.

    Parameters
    ----------
    sizes : ndarray of shape (n_blocks,), dtype intp
        Integers in a labeling of each block.
    keeps_gram : bool
        Whether to keep a Gram matrix for each block; a solver fills in a row when it adds
        an atom.
    owner : ActiveSets or None
        If given, share its sets of labelings, for a thread whose blocks no other thread
        uses.
    """

    def __cinit__(self, const Py_ssize_t[::1] sizes, bint keeps_gram=False,
                  ActiveSets owner=None):
        cdef Py_ssize_t i
        self.keeps_gram = keeps_gram
        self.n_blocks = sizes.shape[0]
        if owner is not None:
            self.owner = owner
            self.sets, self.sizes = owner.sets, owner.sizes
            self.clock = owner.clock
            self.reserve(owner.most)
            return
        self.sets = <Atoms*> calloc(max(self.n_blocks, 1), sizeof(Atoms))
        self.sizes = <Py_ssize_t*> calloc(max(self.n_blocks, 1), sizeof(Py_ssize_t))
        if self.sets == NULL or self.sizes == NULL:
            no_memory("the atoms of the blocks")
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
        cdef Atoms* atoms = &self.sets[i]
        cdef Py_ssize_t c, size = self.sizes[i]
        for c in range(atoms.count):
            if memcmp(atoms.labels + c * size, labels, size * sizeof(int)) == 0:
                return c
        return -1

    cdef Py_ssize_t add(
            self, Py_ssize_t i, const int* labels, double loss) except -1 nogil:
        """Append a labeling with alpha 0; returns its place."""
        cdef Atoms* atoms = &self.sets[i]
        cdef Py_ssize_t size = self.sizes[i], c = atoms.count, capacity, a
        if c == atoms.capacity:
            capacity = 2 * c if c else 4
            self.reserve(capacity)
            grow(<void**> &atoms.labels, capacity * size * sizeof(int), ATOM)
            grow(<void**> &atoms.alpha, capacity * sizeof(double), ATOM)
            grow(<void**> &atoms.before, capacity * sizeof(double), ATOM)
            grow(<void**> &atoms.loss, capacity * sizeof(double), ATOM)
            grow(<void**> &atoms.last_used, capacity * sizeof(long long), ATOM)
            if self.keeps_gram:
                grow(<void**> &atoms.gram, capacity * capacity * sizeof(double), ATOM)
                # Last row first, so that none overwrites a row that has yet to move.
                for a in range(c - 1, 0, -1):
                    memmove(atoms.gram + a * capacity, atoms.gram + a * c,
                            c * sizeof(double))
            atoms.capacity = capacity
        memcpy(atoms.labels + c * size, labels, size * sizeof(int))
        atoms.alpha[c] = atoms.before[c] = 0.0
        atoms.loss[c] = loss
        atoms.count = c + 1
        self.touch(i, c)
        return c

    cdef int reserve(self, Py_ssize_t most) except -1 nogil:
        """Make room in the scratch space for this many atoms."""
        if most <= self.most:
            return 0
        grow(<void**> &self.values, most * sizeof(double), ATOM)
        grow(<void**> &self.masses, most * sizeof(double), ATOM)
        grow(<void**> &self.coefs, most * sizeof(double), ATOM)
        self.most = most
        return 0

    cdef void save_masses(self, Py_ssize_t i) noexcept nogil:
        """Save the masses of block i; labelings added later count as having had none."""
        cdef Atoms* atoms = &self.sets[i]
        memcpy(atoms.before, atoms.alpha, atoms.count * sizeof(double))

    def lengths(self):
        """Integers in a labeling of each block."""
        return np.asarray(<Py_ssize_t[:self.n_blocks]> self.sizes)

    cdef void remove(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil:
        """Drop a labeling; the last one takes its place."""
        cdef Atoms* atoms = &self.sets[i]
        cdef Py_ssize_t size = self.sizes[i], last = atoms.count - 1, a
        cdef Py_ssize_t stride = atoms.capacity
        if c != last:
            memcpy(atoms.labels + c * size, atoms.labels + last * size,
                   size * sizeof(int))
            atoms.alpha[c] = atoms.alpha[last]
            atoms.loss[c] = atoms.loss[last]
            atoms.last_used[c] = atoms.last_used[last]
        if c != last and self.keeps_gram:
            memcpy(atoms.gram + c * stride, atoms.gram + last * stride,
                   atoms.count * sizeof(double))
            for a in range(last):
                atoms.gram[a * stride + c] = atoms.gram[a * stride + last]
        atoms.count = last

    cdef Py_ssize_t stalest(self, Py_ssize_t i) noexcept nogil:
        """The inactive atom that was used longest ago, or -1."""
        cdef Atoms* atoms = &self.sets[i]
        cdef Py_ssize_t c, found = -1
        for c in range(atoms.count):
            if atoms.alpha[c] == 0.0 and (
                    found < 0 or atoms.last_used[c] < atoms.last_used[found]):
                found = c
        return found

    cdef void touch(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil:
        """Record that an atom is used now."""
        self.clock += 1
        self.sets[i].last_used[c] = self.clock

    cdef double correct(
            self, Py_ssize_t i, double scale, double tol) noexcept nogil:
        """Pairwise steps on the dual variables of block i, all others fixed.

        Reads the `values` of its atoms at w and updates them to those after the steps;
        writes the new α to `masses`.

        Parameters
        ----------
        i : int
        scale : double
            p_i / λ: a shift of mass δ from atom a to atom b lowers the values by
            scale · δ (gram[b] - gram[a]).
        tol : double
            Stop once the largest value exceeds the smallest value of an atom with mass by
            at most this much.

        Returns
        -------
        double
            This difference of values before the first step.
        """
        cdef double* values = self.values
        cdef double* masses = self.masses
        cdef Atoms* atoms = &self.sets[i]
        cdef Py_ssize_t c, high = 0, low = -1, n = atoms.count, stride = atoms.capacity
        cdef const double* to_row = atoms.gram
        cdef const double* from_row = atoms.gram
        cdef double first = 0.0, curvature, change, shift = 0.0, value
        cdef double largest, least
        cdef int t
        memcpy(masses, atoms.alpha, n * sizeof(double))
        for t in range(MOST_STEPS + 1):
            largest, least = -INFINITY, INFINITY
            for c in range(n):
                value = values[c] - shift * (to_row[c] - from_row[c])
                values[c] = value
                if value > largest:
                    largest = value
                    high = c
                if masses[c] > 0.0 and value < least:
                    least = value
                    low = c
            if t == 0:
                first = largest - least
            if t == MOST_STEPS or not largest - least > tol:
                break
            to_row = atoms.gram + high * stride
            from_row = atoms.gram + low * stride
            curvature = scale * (to_row[high] + from_row[low] - 2.0 * to_row[low])
            change = masses[low]
            if largest - least < change * curvature:
                change = (largest - least) / curvature
                masses[low] -= change
            else:
                masses[low] = 0.0
            masses[high] += change
            shift = scale * change
        return first
