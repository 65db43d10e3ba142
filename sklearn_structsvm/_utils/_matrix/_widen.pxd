from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer)

from sklearn_structsvm._utils._memory cimport no_memory


cdef extern from "_utils/_matrix/_widen.h" nogil:
    ctypedef struct room_t:
        pass

    double* make_room(Py_ssize_t count, room_t* room) noexcept
    const double* widen(
        const void* values, Py_ssize_t start, Py_ssize_t count, int is_single,
        room_t* room) noexcept
    double entry(const void* values, Py_ssize_t j, int is_single) noexcept
    void free_room(room_t* room) noexcept
    bint gather_entries(
        Py_ssize_t count, Py_ssize_t available, const void* values, Py_ssize_t start,
        int is_single, const int* indices, const double* weights, Py_ssize_t k,
        double* out) noexcept


cdef inline int no_room() except -1 nogil:
    return no_memory("a copy of some features")


cdef inline double* checked_room(Py_ssize_t count, room_t* room) except NULL nogil:
    cdef double* found = make_room(count, room)
    if found == NULL:
        no_room()
    return found


cdef inline const double* checked_entries(
        const void* values, Py_ssize_t start, Py_ssize_t count, int is_single,
        room_t* room) except NULL nogil:
    cdef const double* found = widen(values, start, count, is_single, room)
    if found == NULL:
        no_room()
    return found


cdef inline const void* address_of(array) except? NULL:
    """The address of a contiguous NumPy array, which may be read-only."""
    cdef Py_buffer view
    cdef const void* address
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    address = view.buf
    PyBuffer_Release(&view)
    return address
