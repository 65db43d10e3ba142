from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm._contract._oracle cimport BlockOracle


cdef class FlatOracle(BlockOracle):
    cdef Features features
    cdef double bias
    cdef Py_ssize_t k
    cdef double[:, ::1] nu
    cdef const double[::1] row_norms

    cdef double distribute(
        self, const double* factors, double* marginals) noexcept nogil
    cdef void subtract_truth(self, Py_ssize_t i, double* marginals) noexcept nogil
    cdef void find_norm(
        self, Py_ssize_t i, const double* out, double* squared_norm) noexcept nogil
    cdef void add_atom(
        self, Py_ssize_t i, double coef, const int* labels,
        double* delta) noexcept nogil
    cdef void add_atoms(
        self, Py_ssize_t i, Py_ssize_t n, const double* a, const int* s,
        double* delta) noexcept nogil


cdef class IndicatorOracle(FlatOracle):
    cdef const signed char[:, ::1] Y
    cdef const double[:, ::1] costs


cdef class MultilabelOracle(IndicatorOracle):
    pass
