from sklearn_structsvm.structures._chain_sums cimport ChainSums
from sklearn_structsvm.structures._forest cimport Forest


cdef class ChainOracle(ChainSums):
    # Whether `add_scores` agrees with `evaluate`, which a subclass may override.
    cdef bint knows_scores
    # Whether scores of all labels of a node take no longer than those of a few.
    cdef bint reads_whole_rows

    cdef double counted_cost(self, Py_ssize_t n_edges)
    cdef Py_ssize_t differing(
        self, Py_ssize_t i, Py_ssize_t n, const int* labelings, int* rows) noexcept nogil
    cdef void add_biases(
        self, Py_ssize_t t, Py_ssize_t T, const double* w, double* row) noexcept nogil
    cdef void add_scores(
        self, Py_ssize_t i, const double* work, const double* transition,
        Py_ssize_t n_rows, const int* rows, Py_ssize_t n, const int* labelings,
        double* scores) noexcept nogil
    cdef int read_potentials(
        self, Py_ssize_t i, const double* w, Py_ssize_t n_rows, const int* rows,
        Py_ssize_t n, const int* labelings, double* work) except -1 nogil
    cdef double penalty(
        self, Py_ssize_t i, double one, const double* work) noexcept nogil
    cdef Forest front_forest(self, Py_ssize_t i, const double* work) noexcept nogil
