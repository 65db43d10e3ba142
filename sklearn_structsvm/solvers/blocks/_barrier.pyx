"""A meeting of threads that comes a thousand times a second.

To wake a thread takes about 50 microseconds, and a round of `_parts` as little as ten
times that. So a thread that is early looks out for the others about as long before it
sleeps: at worst it loses what it would have lost to sleep.
"""
from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock,
    PyThread_release_lock, WAIT_LOCK,
)
from libc.stdlib cimport calloc, free

from sklearn_structsvm._utils._memory cimport no_memory

cdef extern from "_utils/_compiler.h":
    long ATOMIC_GET(long* x) nogil
    long ATOMIC_SWAP(long* x, long value) nogil
    long ATOMIC_ADD(long* x, long value) nogil
    void PAUSE() nogil

# Looks before a thread sleeps: 20 to 70 microseconds, depending on the processor.
cdef enum:
    N_LOOKS = 1000


cdef class Barrier:
    """Where this many threads wait for each other."""

    def __cinit__(self, Py_ssize_t n_threads):
        cdef Py_ssize_t k
        self.n_threads = n_threads
        self.asleep = <long*> calloc(max(n_threads, 1), sizeof(long))
        self.gates = <void**> calloc(max(n_threads, 1), sizeof(void*))
        if self.asleep == NULL or self.gates == NULL:
            no_memory("a barrier")
        for k in range(n_threads):
            self.gates[k] = PyThread_allocate_lock()
            if self.gates[k] == NULL:
                no_memory("a barrier")
            PyThread_acquire_lock(self.gates[k], WAIT_LOCK)

    def __dealloc__(self):
        cdef Py_ssize_t k
        for k in range(self.n_threads if self.gates != NULL else 0):
            if self.gates[k] != NULL:
                PyThread_release_lock(self.gates[k])
                PyThread_free_lock(self.gates[k])
        free(self.gates)
        free(self.asleep)

    cdef void mend(self) noexcept nogil:
        """Begin anew after a thread has left; none may be waiting."""
        self.n_waiting = self.is_left = 0

    cdef bint wait(self, Py_ssize_t k) noexcept nogil:
        """Wait, as thread k, for all others; False if one of them has left."""
        cdef long meeting = ATOMIC_GET(&self.n_meetings)
        cdef int _
        if ATOMIC_ADD(&self.n_waiting, 1) == self.n_threads - 1:
            self.n_waiting = 0
            ATOMIC_ADD(&self.n_meetings, 1)
            self._wake()
            return not ATOMIC_GET(&self.is_left)
        for _ in range(N_LOOKS):
            if self._is_over(meeting):
                break
            PAUSE()
        # Who still wakes those of the meeting before may wake this thread as well.
        while not self._is_over(meeting):
            ATOMIC_SWAP(&self.asleep[k], 1)
            # Who saw it asleep opens the gate, even if the meeting was over before.
            if not self._is_over(meeting) or not ATOMIC_SWAP(&self.asleep[k], 0):
                PyThread_acquire_lock(self.gates[k], WAIT_LOCK)
        return not ATOMIC_GET(&self.is_left)

    cdef void leave(self) noexcept nogil:
        """Let the others go, now and whenever they wait until `mend`."""
        ATOMIC_SWAP(&self.is_left, 1)
        self._wake()

    cdef bint _is_over(self, long meeting) noexcept nogil:
        return ATOMIC_GET(&self.n_meetings) != meeting or ATOMIC_GET(&self.is_left)

    cdef void _wake(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_threads):
            if ATOMIC_SWAP(&self.asleep[k], 0):
                PyThread_release_lock(self.gates[k])
