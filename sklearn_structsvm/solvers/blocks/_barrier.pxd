cdef class Barrier:
    cdef Py_ssize_t n_threads
    cdef long n_waiting, n_meetings, is_left
    # Of each thread: whether it sleeps, and the lock at which it does.
    cdef long* asleep
    cdef void** gates

    cdef void mend(self) noexcept nogil
    cdef bint wait(self, Py_ssize_t k) noexcept nogil
    cdef void leave(self) noexcept nogil
    cdef bint _is_over(self, long meeting) noexcept nogil
    cdef void _wake(self) noexcept nogil
