from sklearn_structsvm.structures._chain_blocks cimport ChainBlocks
from sklearn_structsvm.structures._forest cimport Forest


cdef class ChainSums(ChainBlocks):
    cdef double loss_unit(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t n_pair_scores(self, Py_ssize_t i) noexcept nogil
    cdef Forest forest(self, Py_ssize_t i, const double* work) noexcept nogil
    cdef void forbid_ends(
        self, Py_ssize_t i, double penalty, double* theta) noexcept nogil
    cdef const double* forbid_pairs(
        self, const double* transition, double penalty, double* out) noexcept nogil
    cdef double true_score(self, Py_ssize_t i, const double* work) noexcept nogil
    cdef double sums(
        self, Py_ssize_t i, const double* theta, const double* transition,
        double* work, double* nodes, double* edges) noexcept nogil


cdef void transpose(Py_ssize_t k, const double* x, double* out) noexcept nogil
