from libc.stdint cimport uintptr_t


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
    """The address of a NumPy array, which may be read-only."""
    return <const void*> <uintptr_t> array.ctypes.data
