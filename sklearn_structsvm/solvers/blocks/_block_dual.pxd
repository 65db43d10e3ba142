from sklearn_structsvm.solvers.blocks._block_labelings cimport BlockLabelings
from sklearn_structsvm.solvers.blocks._sum_tree cimport SumTree


cdef class BlockDual(BlockLabelings):
    cdef public long long n_oracle_calls
    cdef readonly double gap
    cdef double[::1] loss_bar, gaps, hinges, means, excesses
    # Whether the masses of a block have changed, but not yet its ν_i: see `catch_up`.
    cdef unsigned char[::1] is_behind
    # Σ p_i ℓ_i has changed by this much since the last round of a part.
    cdef readonly double loss_change
    cdef SumTree tree
    cdef object risk
    cdef bint is_risk_cached

    cdef double visit(self, Py_ssize_t i, bint cached=*) except? -1.0 nogil
    cdef double make_steps(
        self, const Py_ssize_t[::1] blocks, bint cached, bint checks
        ) except? -1.0 nogil
    cdef void save_before(self, const Py_ssize_t[::1] blocks) noexcept nogil
    cdef int scale_changes(
        self, const Py_ssize_t[::1] blocks, double gamma) except -1 nogil
    cdef int map_block(self, Py_ssize_t i, const double* direction) except -1 nogil
    cdef int keep_share(self, Py_ssize_t i, double share) except -1
    cdef int catch_up(self, Py_ssize_t i) except -1 nogil
    cdef int _mean(
        self, Py_ssize_t i, double* work, double* values, double* mean
        ) except -1 nogil
    cdef int _check(
        self, Py_ssize_t i, const double* w, double lam, double* work,
        int* labels, double* hinge, double* mean, double* excess) except -1 nogil
