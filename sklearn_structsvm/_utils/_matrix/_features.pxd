# Weights in a page, the unit in which changes made by steps are recorded.
cdef enum:
    PAGE = 32


cdef class Features:
    cdef readonly Py_ssize_t n_rows
    cdef readonly Py_ssize_t n_features

    cdef Py_ssize_t n_weights(self, Py_ssize_t k) noexcept nogil
    cdef Py_ssize_t outer_size(self, const Py_ssize_t[::1] offsets, Py_ssize_t k)
    cdef int scores(
        self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
        Py_ssize_t k, double* out) except -1 nogil
    cdef int add_scores(
        self, Py_ssize_t start, Py_ssize_t stop, const double* weights,
        Py_ssize_t k, double* out) except -1 nogil
    cdef double outer(
        self, Py_ssize_t start, Py_ssize_t stop, const double* delta,
        Py_ssize_t k, double* out) except -1.0 nogil
    cdef int add_rows(
        self, Py_ssize_t start, Py_ssize_t stop, double coef, const double* delta,
        Py_ssize_t k, double* target) except -1 nogil
    cdef int add_places(
        self, Py_ssize_t start, Py_ssize_t stop, double coef, const double* delta,
        Py_ssize_t n, const int* places, Py_ssize_t k, double* target) except -1 nogil
    cdef int add_place_scores(
        self, Py_ssize_t start, Py_ssize_t stop, const double* weights, Py_ssize_t k,
        Py_ssize_t n, const int* places, double* out) except -1 nogil
    cdef void add_outer(
        self, double coef, const double* outer, Py_ssize_t k,
        double* target) noexcept nogil
    cdef int outer_scores(
        self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
        double* out) except -1 nogil
    cdef int add_outer_scores(
        self, Py_ssize_t start, Py_ssize_t stop, const double* outer, Py_ssize_t k,
        double* out) except -1 nogil
    cdef int add_row(
        self, Py_ssize_t row, double coef, const double* delta, Py_ssize_t k,
        double* target) except -1 nogil
    cdef void project_rows(
        self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
        const double* lower, const double* upper, double* w) noexcept nogil
    cdef void shrink_rows(
        self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t k, const double* v,
        double threshold, double* w) noexcept nogil
    cdef void mark_rows(
        self, Py_ssize_t start, Py_ssize_t stop, const double* delta, Py_ssize_t k,
        Py_ssize_t at, unsigned char* pages) noexcept nogil


cdef void clip(
    Py_ssize_t n, const double* v, const double* lower, const double* upper,
    double* w) noexcept nogil


cdef void soft_threshold(
    Py_ssize_t n, const double* v, double threshold, double* w) noexcept nogil


cdef void mark_range(
    Py_ssize_t first, Py_ssize_t last, unsigned char* pages) noexcept nogil


cdef bint is_zero(const double* delta, Py_ssize_t k) noexcept nogil
