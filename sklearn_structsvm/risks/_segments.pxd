cdef struct Line:
    # `height` is its value at the lower end of the interval, `place` its index.
    double height
    double slope
    Py_ssize_t place


# Number of doubles that a Line takes.
cdef enum:
    LINE_SIZE = 3


cdef Py_ssize_t segment_row(
    Py_ssize_t r, const double* a, const double* b, double lower, double upper,
    Line* lines, double* etas, Py_ssize_t* active) noexcept nogil

cdef double select_step(
    Py_ssize_t m, double* etas, double* jumps, double slope, double curvature,
    double lower, double upper, double tol) noexcept nogil
