from libc.stdlib cimport realloc


cdef inline int grow(
        void** array, Py_ssize_t n_bytes, const char* what) except -1 nogil:
    """Resize an array and keep its content; on MemoryError it is unchanged."""
    cdef void* grown = realloc(array[0], max(n_bytes, 1))
    if grown == NULL:
        with gil:
            raise MemoryError(f"no memory for {what.decode()}")
    array[0] = grown
    return 0
