from sklearn_structsvm._utils._matrix._rows cimport Rows
from sklearn_structsvm.solvers.blocks._proximal cimport ProximalIterate


cdef class ExactAscent(ProximalIterate):
    cdef readonly Rows rows
    cdef readonly Py_ssize_t k
    cdef readonly long long n_steps
    cdef public long long n_oracle_calls
    # Examples of positive weight.
    cdef readonly object active_blocks
    cdef const double[::1] p
    # `curvatures` holds p_i ‖x_i‖²; divided by λ', this is the curvature of block i.
    cdef double[::1] average, curvatures, loss_bar, gaps, work
    cdef double[:, ::1] nu
    cdef int[::1] changed
    # All examples, those of this sweep first; the sweeps that each example rested last
    # time, and those that it still has to rest.
    cdef Py_ssize_t[::1] order
    cdef int[::1] rests, waits
    cdef double small
    cdef long long n_averaged
    # ν and ℓ of a part, and Σ p_i ℓ_i, before the round.
    cdef object before
    cdef double loss_before
    cdef bint is_part
    # The labelings of cutting planes, by example and plane, and the bytes of a labeling.
    cdef unsigned char[:, :, ::1] held
    cdef readonly Py_ssize_t n_held_bytes
    cdef double entries_per_step, entries

    cdef Py_ssize_t maximize(
        self, Py_ssize_t i, const double* theta, double* delta, double* gap
        ) noexcept nogil
    cdef double hinge_and_gap(
        self, Py_ssize_t i, const double* theta, double* gap) noexcept nogil
    cdef double hinge_and_slope(
        self, Py_ssize_t i, const double* theta, const double* along, double step,
        double* slope) noexcept nogil
    cdef Py_ssize_t answer(
        self, Py_ssize_t i, const double* theta, unsigned char* held, double* delta,
        double* loss) noexcept nogil
    cdef void mix_block(
        self, Py_ssize_t i, double kept, Py_ssize_t n, const Py_ssize_t* planes,
        const double* shares, const unsigned char* held) noexcept nogil
    cdef int step(self, Py_ssize_t i) except -1 nogil
    cdef bint _check(
        self, Py_ssize_t i, const double* w, double* theta, bint keep_gap, double* hinge
        ) noexcept nogil
