cdef class SumTree:
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t leaves
    cdef double[::1] nodes

    cdef void update(self, Py_ssize_t i, double value) noexcept nogil
    cdef void rebuild(self, const double[::1] values) noexcept nogil
    cdef double total(self) noexcept nogil
    cdef Py_ssize_t find(self, double uniform) noexcept nogil
