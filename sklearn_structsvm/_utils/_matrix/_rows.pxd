cdef extern from "_utils/_matrix/_rows.h" nogil:
    ctypedef struct rows_t:
        const void* values
        int is_single
        const int* indices
        const Py_ssize_t* starts
        Py_ssize_t n_features
        double bias

    void ask_for(const void* address, Py_ssize_t n_bytes) noexcept
    void rows_ask(const rows_t* rows, Py_ssize_t i) noexcept
    bint rows_scores(
        const rows_t* rows, Py_ssize_t i, const double* weights, Py_ssize_t k,
        double* out) noexcept
    bint rows_add(
        const rows_t* rows, Py_ssize_t i, double step, const double* delta,
        Py_ssize_t n_changed, const int* changed, Py_ssize_t k,
        double* weights) noexcept


cdef class Rows:
    cdef readonly Py_ssize_t n_rows
    cdef readonly Py_ssize_t n_features
    cdef readonly double bias
    # The struct that the functions above read; it is valid as long as this object lives.
    cdef rows_t view
    # float32 or float64.
    cdef object values
    cdef const int[::1] indices
    cdef const Py_ssize_t[::1] starts
