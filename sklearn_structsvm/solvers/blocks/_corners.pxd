cdef struct Corners:
    Py_ssize_t count
    Py_ssize_t capacity
    int* labels
    double* alpha
    double* loss
    long long* last_used


cdef class CornerSets:
    cdef Py_ssize_t n_blocks
    cdef long long clock
    cdef Corners* sets
    cdef Py_ssize_t* sizes

    cdef Py_ssize_t find(self, Py_ssize_t i, const int* labels) noexcept nogil
    cdef Py_ssize_t add(
        self, Py_ssize_t i, const int* labels, double loss) except -1 nogil
    cdef void remove(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil
    cdef Py_ssize_t stalest(self, Py_ssize_t i) noexcept nogil
    cdef void touch(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil
