from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm.structures._chain cimport ChainOracle


cdef class EdgeFeatureOracle(ChainOracle):
    cdef Features edge_features
    cdef const Py_ssize_t[::1] edge_offsets
    cdef Py_ssize_t n_pairs, n_sums
    # Places of the parts in w; in `work`: the scores of pairs at each edge, and their
    # weights; and in a direction: the sums, and the changes of pairs at each edge.
    cdef Py_ssize_t pair_weights_at, tables_at, weights_at, edge_sums_at, delta_at
    cdef double[:, ::1] edge_sums

    cdef int bind_edges(
        self, Features edge_features, const Py_ssize_t[::1] edge_offsets,
        Py_ssize_t n_pairs, bint has_truth) except -1
    cdef Py_ssize_t n_edges(self, Py_ssize_t i) noexcept nogil
    cdef int find_tables(
        self, Py_ssize_t i, const double* weights, double* tables) except -1 nogil
    cdef int set_weights(
        self, Py_ssize_t i, const double* weights, double* work) except -1 nogil
    cdef int sum_up(
        self, Py_ssize_t i, const double* of_pairs, double* out) except -1 nogil
