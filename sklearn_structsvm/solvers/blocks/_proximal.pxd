cdef class ProximalIterate:
    cdef readonly double lam, kappa, l1_ratio
    # How far the oracle's bounds of the last check are above what it found.
    cdef public double bound_excess
    # The best weights that planes have led to, or of the checks with an L1 penalty, or
    # None; and H(w) there.
    cdef readonly object best_weights
    cdef double best_hinge
    # The plane ⟨a, w⟩ + b that is subtracted from the objective; a is None for none.
    cdef readonly object minus_a
    cdef readonly double minus_b
    # v, and w = prox(v), which without bounds and an L1 penalty is the same array.
    cdef double[::1] v, w
    # The soft threshold between the two.
    cdef double threshold
    # The center z, and w at the last center; empty as long as κ is 0.
    cdef double[::1] z, w_before
    # Which pages of the weights its steps have changed; kept by parts, see `_parts`.
    cdef unsigned char[::1] pages
    cdef readonly bint has_box, is_mapped
    cdef const double[::1] lower, upper

    cdef double proximal_lam(self) noexcept nogil
    cdef void set_threshold(self) noexcept nogil
