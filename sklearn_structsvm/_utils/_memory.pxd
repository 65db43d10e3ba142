from libc.stdlib cimport realloc


cdef inline int no_memory(const char* what) except -1 nogil:
    with gil:
        raise MemoryError(f"no memory for {what.decode()}")


cdef inline int grow(
        void** array, Py_ssize_t n_bytes, const char* what) except -1 nogil:
    """Resize an array and keep its content; on MemoryError it is unchanged."""
    cdef void* grown = realloc(array[0], max(n_bytes, 1))
    if grown == NULL:
        no_memory(what)
    array[0] = grown
    return 0
