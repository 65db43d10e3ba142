# One of those that are sorted; its height is that at the lower end of the interval. It
# takes no more room than three doubles.
cdef struct Line:
    double height
    double slope
    Py_ssize_t place


cdef Py_ssize_t segment_row(
    Py_ssize_t r, const double* a, const double* b, double lower, double upper,
    Line* lines, double* etas, Py_ssize_t* active) noexcept nogil

cdef double select_step(
    Py_ssize_t m, double* etas, double* jumps, double slope, double curvature,
    double lower, double upper, double tol) noexcept nogil
