cdef Py_ssize_t segment_row(
    Py_ssize_t r, const double* a, const double* b, double lower, double upper,
    Py_ssize_t* order, double* etas, Py_ssize_t* active) noexcept nogil

cdef double select_step(
    Py_ssize_t m, double* etas, double* jumps, double slope, double curvature,
    double lower, double upper, double tol) noexcept nogil
