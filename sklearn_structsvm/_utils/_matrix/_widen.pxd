from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer)


cdef extern from "_utils/_matrix/_widen.h" nogil:
    ctypedef struct room_t:
        pass

    double* make_room(Py_ssize_t count, room_t* room) noexcept
    const double* widen(
        const void* values, Py_ssize_t start, Py_ssize_t count, int is_single,
        room_t* room) noexcept
    double entry(const void* values, Py_ssize_t j, int is_single) noexcept
    void free_room(room_t* room) noexcept
    void fill_with_nan(double* out, Py_ssize_t count) noexcept
    void gather_entries(
        Py_ssize_t count, Py_ssize_t available, const void* values, Py_ssize_t start,
        int is_single, const int* indices, const double* weights, Py_ssize_t k,
        double* out) noexcept


cdef inline const void* address_of(array) except? NULL:
    """The address of a contiguous NumPy array, which may be read-only."""
    cdef Py_buffer view
    cdef const void* address
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    address = view.buf
    PyBuffer_Release(&view)
    return address
