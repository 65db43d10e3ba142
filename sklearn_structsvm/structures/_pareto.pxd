from sklearn_structsvm._contract._oracle cimport Plane
from sklearn_structsvm.structures._forest cimport Forest


cdef int forest_front(
    const Forest* forest, double one, double unit, Plane* plane) except -1 nogil
cdef void forest_labels(
    const Forest* forest, const Plane* plane, Py_ssize_t j, int* labels) noexcept nogil
cdef bint of_one_size(const Forest* forest, double* largest) noexcept nogil
cdef int prefix_front(const Forest* forest, Plane* plane) except -1 nogil
cdef void prefix_labels(
    const Forest* forest, const Plane* plane, Py_ssize_t j, int* labels) noexcept nogil
