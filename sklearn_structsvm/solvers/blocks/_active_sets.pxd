cdef struct Atoms:
    Py_ssize_t count
    Py_ssize_t capacity
    int* labels
    double* alpha
    # The same before the round of a part, see `_parts`.
    double* before
    double* loss
    long long* last_used
    # Inner products of the joint features, capacity x capacity; NULL if not kept.
    double* gram


cdef class ActiveSets:
    cdef Py_ssize_t n_blocks
    cdef bint keeps_gram
    # If this is a part: the owner of the sets, to which it only adds its own scratch.
    cdef ActiveSets owner
    cdef long long clock
    cdef Atoms* sets
    cdef Py_ssize_t* sizes
    # One number for each atom of a block, for whoever looks at one: values at w, masses
    # after a correction, and coefficients of a direction.
    cdef Py_ssize_t most
    cdef double* values
    cdef double* masses
    cdef double* coefs

    cdef Py_ssize_t find(self, Py_ssize_t i, const int* labels) noexcept nogil
    cdef Py_ssize_t add(
        self, Py_ssize_t i, const int* labels, double loss) except -1 nogil
    cdef void save_masses(self, Py_ssize_t i) noexcept nogil
    cdef void remove(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil
    cdef Py_ssize_t stalest(self, Py_ssize_t i) noexcept nogil
    cdef void touch(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil
    cdef double correct(
        self, Py_ssize_t i, double scale, double tol) noexcept nogil
    cdef int reserve(self, Py_ssize_t most) except -1 nogil
