cdef extern from "_utils/_matrix/_rows.h" nogil:
    void ask_for(const void* address, Py_ssize_t n_bytes) noexcept


# Prefetch at most this many rows of a Gram matrix.
cdef enum:
    GRAM_ROWS = 16


cdef struct Atoms:
    Py_ssize_t count
    Py_ssize_t capacity
    int* labels
    double* alpha
    # `alpha` before the round of a part, see `_parts`.
    double* before
    double* loss
    long long* last_used
    # Inner products of the joint features, capacity x capacity; NULL if not kept.
    double* gram


cdef class ActiveSets:
    cdef Py_ssize_t n_blocks
    cdef bint keeps_gram
    # The owner of the sets, if this is a part, which adds only its own scratch space.
    cdef ActiveSets owner
    cdef long long clock
    cdef Atoms* sets
    cdef Py_ssize_t* sizes
    # Scratch space, one number for each atom of a block: values at w, masses after a
    # correction, and coefficients of a direction.
    cdef Py_ssize_t most
    cdef double* values
    cdef double* masses
    cdef double* coefs

    cdef Py_ssize_t find(self, Py_ssize_t i, const int* labels) noexcept nogil
    cdef Py_ssize_t add(
        self, Py_ssize_t i, const int* labels, double loss) except -1 nogil
    cdef void save_masses(self, Py_ssize_t i) noexcept nogil
    cdef void remove(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil
    cdef Py_ssize_t stalest(self, Py_ssize_t i) noexcept nogil
    cdef void touch(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil
    cdef double correct(
        self, Py_ssize_t i, double scale, double tol) noexcept nogil
    cdef int reserve(self, Py_ssize_t most) except -1 nogil


cdef inline void ask_for_atoms(ActiveSets atoms, Py_ssize_t i) noexcept nogil:
    """Prefetch the atoms of block i, which is visited next."""
    cdef const Atoms* own = &atoms.sets[i]
    cdef Py_ssize_t c, n_rows = min(own.count, GRAM_ROWS) if own.gram != NULL else 0
    ask_for(own.labels, own.count * atoms.sizes[i] * sizeof(int))
    ask_for(own.alpha, own.count * sizeof(double))
    ask_for(own.loss, own.count * sizeof(double))
    for c in range(n_rows):
        ask_for(own.gram + c * own.capacity, own.count * sizeof(double))
