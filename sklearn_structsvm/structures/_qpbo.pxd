# Arcs of the doubled graph. Node `side * k + j` is Y_j on side 0 and 1 - Y_j on side 1;
# slots first[j]:first[j + 1] are the pairs that label j is in, on both sides.
cdef struct Graph:
    Py_ssize_t k
    Py_ssize_t n_slots
    const Py_ssize_t* first
    const Py_ssize_t* other
    const Py_ssize_t* reverse
    const Py_ssize_t* pair


cdef class RoofDuality:
    cdef readonly Py_ssize_t k
    # What `solve` is lent: this many doubles and this many integers.
    cdef readonly Py_ssize_t n_reals
    cdef readonly Py_ssize_t n_integers
    cdef const Py_ssize_t[:, ::1] pairs
    cdef const Py_ssize_t[::1] first, other, reverse, pair
    cdef Graph graph

    cdef void solve(
        self, const double* q, const double* J, double* reals, Py_ssize_t* integers,
        double* z) noexcept nogil
    cdef void decode(
        self, const double* q, const double* J, double* reals, Py_ssize_t* integers,
        double* mu, double* labels, double* gains) noexcept nogil
