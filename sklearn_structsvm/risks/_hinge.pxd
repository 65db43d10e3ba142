cdef extern from "risks/_scan.h" nogil:
    cdef struct slopes:
        double* left[2]
        double* right[2]


# Examples of a block: their scores stay in the second-level cache between two scans.
cdef enum:
    BLOCK = 256

# A line search begins with a sample of this many examples if it has at least SAMPLE_RATIO
# times as many. The sample brackets the minimum unless its slopes err by more than this
# many times their standard error.
cdef enum:
    SAMPLE = 1024
    SAMPLE_RATIO = 4
    SAMPLE_ERRORS = 3


cdef class Hinge:
    cdef readonly Py_ssize_t n_samples
    cdef readonly Py_ssize_t n_scores
    cdef readonly Py_ssize_t max_lines
    cdef const double[::1] p

    cdef void derivatives(
        self, Py_ssize_t count, const Py_ssize_t* rows, const double* z,
        const double* a, const double* etas, const slopes* out) noexcept nogil
    cdef void losses(
        self, Py_ssize_t first, Py_ssize_t count, const double* z,
        double* out) noexcept nogil
    cdef double choose(
        self, Py_ssize_t first, Py_ssize_t count, const double* z, const double* a,
        double rtol, double* B) noexcept nogil
    cdef Py_ssize_t segments(
        self, Py_ssize_t i, const double* z, const double* a, double lower,
        double upper, double* work, double* etas, double* steps) noexcept nogil
    cpdef double quick_step(
        self, const double[:, ::1] Z, const double[:, ::1] along, double slope,
        double curvature, double largest, int n_threads) except? -1.0
    cdef Py_ssize_t work_size(self) noexcept nogil
    cdef double weigh(
        self, Py_ssize_t first, Py_ssize_t count, const double* losses) noexcept nogil
    cdef int fill_segments(
        self, const double[:, ::1] Z, const double[:, ::1] along, double lower,
        double upper, const Py_ssize_t[::1] rows, Py_ssize_t[::1] starts,
        double[::1] etas, double[::1] steps, int n_threads) except -1
    cdef int segment_block(
        self, Py_ssize_t start, Py_ssize_t stop, const Py_ssize_t* rows,
        const double* z, const double* a, double lower, double upper, bint count,
        Py_ssize_t* places, double* etas, double* steps) noexcept nogil
