# Labels and the pairs they are in: slots first[j] ... first[j + 1] are those of label j.
# `other` is the second label of the pair, `reverse` the slot of the pair there.
cdef struct Graph:
    int n_labels
    int n_pairs
    const int* first
    const int* other
    const int* reverse
    const int* pair


cdef Py_ssize_t roof_scratch_size(Py_ssize_t n_labels, Py_ssize_t n_pairs) noexcept nogil
cdef void roof(
    const Graph* graph, const double* q, const double* J, double* scratch,
    double* mu) noexcept nogil
cdef double weight_of_both(double J, double left, double right) noexcept nogil
cdef void round_off(
    const Graph* graph, const double* q, const double* J, const double* mu,
    double* labels, double* gains) noexcept nogil


cdef class RoofDuality:
    cdef readonly Py_ssize_t k
    # Doubles of scratch memory that `solve` needs.
    cdef readonly Py_ssize_t scratch_size
    cdef const int[:, ::1] pairs
    cdef const int[::1] first, other, reverse, pair
    cdef Graph graph

    cdef void solve(
        self, const double* q, const double* J, double* scratch,
        double* z) noexcept nogil
    cdef void decode(
        self, const double* q, const double* J, double* scratch,
        double* mu, double* labels, double* gains) noexcept nogil
