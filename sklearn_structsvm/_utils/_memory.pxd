from libc.stdlib cimport realloc


cdef inline int grow(
        void** array, Py_ssize_t n_bytes, const char* what) except -1 nogil:
    """Give an array this size and keep its content; it stays as it is on MemoryError."""
    cdef void* grown = realloc(array[0], max(n_bytes, 1))
    if grown == NULL:
        with gil:
            raise MemoryError(f"no memory for {what.decode()}")
    array[0] = grown
    return 0
