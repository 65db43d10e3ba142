cdef struct Line:
    # Where it stands at the lower end of the interval; which one it is.
    double height
    double slope
    Py_ssize_t place


# Doubles that a line has room in.
cdef enum:
    LINE_SIZE = 3


cdef Py_ssize_t segment_row(
    Py_ssize_t r, const double* a, const double* b, double lower, double upper,
    Line* lines, double* etas, Py_ssize_t* active) noexcept nogil

cdef double select_step(
    Py_ssize_t m, double* etas, double* jumps, double slope, double curvature,
    double lower, double upper, double tol) noexcept nogil
