from sklearn_structsvm.structures._forest cimport Forest

cdef Py_ssize_t sum_room(Py_ssize_t n, Py_ssize_t k) noexcept nogil
cdef double sum_product(
    const Forest* forest, const double* allowed_pairs, double* room, double* nodes,
    double* edges) noexcept nogil
