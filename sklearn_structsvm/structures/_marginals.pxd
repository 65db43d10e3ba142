from sklearn_structsvm.structures._forest cimport Forest

cdef Py_ssize_t marginals_room(Py_ssize_t n, Py_ssize_t k) noexcept nogil
cdef double forest_marginals(
    const Forest* forest, double unit, double temperature, double* room,
    double* nodes, double* edges) noexcept nogil
