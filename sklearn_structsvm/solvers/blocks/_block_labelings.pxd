from sklearn_structsvm._contract._oracle cimport BlockOracle
from sklearn_structsvm.solvers.blocks._active_sets cimport ActiveSets
from sklearn_structsvm.solvers.blocks._proximal cimport ProximalIterate


cdef class BlockLabelings(ProximalIterate):
    cdef readonly BlockOracle oracle
    cdef const double[::1] p
    cdef Py_ssize_t cache_size, n_active_blocks
    cdef bint is_part
    # Pairwise, away and corrective steps need the masses α of the atoms; plain steps do
    # not, and then any atom may leave the cache.
    cdef bint keeps_atoms, keeps_mass
    cdef readonly ActiveSets atoms
    # The labelings of cutting planes, and the index of each block's labeling in each
    # plane.
    cdef ActiveSets planes
    cdef unsigned char[:, ::1] places
    cdef double[::1] work, first
    cdef int[::1] labels

    cdef Py_ssize_t scan(
        self, Py_ssize_t i, double* work, double* best_value,
        Py_ssize_t* away, double* away_value, Py_ssize_t* n_active) except -2 nogil
    cdef Py_ssize_t add_atom(
        self, Py_ssize_t i, const int* labels, double loss) except -1 nogil
    cdef int tidy(self, Py_ssize_t i) except -1 nogil
    cdef int forget_idle(self, Py_ssize_t i) except -1 nogil
    cdef int keep_at_most(self, Py_ssize_t i, Py_ssize_t most) except -1 nogil
    cdef int drop_atom(self, Py_ssize_t i, Py_ssize_t c) except -1 nogil
    cdef int let_go(self, Py_ssize_t i, const int* labels) except -1 nogil
    cdef int _forget_place(
        self, Py_ssize_t i, Py_ssize_t c, Py_ssize_t most) except -1 nogil
