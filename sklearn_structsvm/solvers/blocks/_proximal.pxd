cdef class ProximalIterate:
    cdef readonly double lam, kappa, l1_ratio
    # By how much the oracle's bounds in the last check exceed the values it found.
    cdef public double bound_excess
    # The best weights that planes have led to or, with an L1 penalty, those of the
    # checks; None if there are none. And H(w) there.
    cdef readonly object best_weights
    cdef double best_hinge
    # The plane ⟨a, w⟩ + b that is subtracted from the objective; a is None for none.
    cdef readonly object minus_a
    cdef readonly double minus_b
    # The `Rounding` of means over the blocks.
    cdef public object rounding
    # The best lower bound that checks have found, if there is an L1 penalty.
    cdef public double best_bound
    # v, and w = prox(v): the same array if there are no bounds and no L1 penalty.
    cdef double[::1] v, w
    # The soft threshold between the two.
    cdef double threshold
    # The center z, and w at the last center; both are empty while κ is 0.
    cdef double[::1] z, w_before
    # Which pages of the weights its steps have changed; kept by parts, see `_parts`.
    cdef unsigned char[::1] pages
    cdef readonly bint has_box, is_mapped
    cdef const double[::1] lower, upper

    cdef double proximal_lam(self) noexcept nogil
    cdef void set_threshold(self) noexcept nogil
    cdef double best_gamma(
        self, double loss_change, double product, double norm) noexcept nogil
