"""Costs of predictions, in the form that takes the fewest operations per row."""
import numpy as np

from sklearn_structsvm._utils import tolerances

from libc.math cimport INFINITY, fabs, frexp, ldexp

# Off-diagonal costs within this relative tolerance of sums r_i + c_j are treated as such
# sums: the costs of solvers have this form, and a row then takes k multiplications
# instead of k².
cdef double VALUE_ROUNDING = tolerances.VALUE_ROUNDING


cdef void _split_off_diagonal(
        Py_ssize_t k, const double* L, double* c, double* r) noexcept nogil:
    """Write c and r with L_ij = r_i + c_j for i ≠ j, if there are such; k >= 3.

    One of these numbers is free: r_q = 0. Differences use the smallest numbers possible,
    so that a few large costs do not blur all others.
    """
    cdef Py_ssize_t i, j, q = 0
    cdef double size, smallest = INFINITY
    for i in range(k):
        size = 0.0
        for j in range(k):
            size += fabs(L[i * k + j]) if j != i else 0.0
        if size < smallest:
            q, smallest = i, size
    for j in range(k):
        c[j] = L[q * k + j]
    for i in range(k):
        r[i] = 0.0
        smallest = INFINITY
        for j in range(k):
            size = fabs(L[i * k + j]) + fabs(c[j])
            if i != q and j != i and j != q and size < smallest:
                r[i], smallest = L[i * k + j] - c[j], size
    smallest = INFINITY
    for i in range(k):
        size = fabs(L[i * k + q]) + fabs(r[i])
        if i != q and size < smallest:
            c[q], smallest = L[i * k + q] - r[i], size


cdef void _transpose(
        Py_ssize_t k, Py_ssize_t q, const double* L, double scale,
        double* costs) noexcept nogil:
    """Write Lᵀ, scaled; L is k x q."""
    cdef Py_ssize_t e
    for e in range(k * q):
        costs[e] = L[e % k * q + e // k] * scale


cdef bint _separate(
        Py_ssize_t k, const double* L, double scale, double* costs) noexcept nogil:
    """Write c and d with L_ij = r_i + c_j + d_j [i = j] and return true, or write Lᵀ.

    For a row of probabilities, predicting j then costs c_j + d_j η_j plus a term that
    does not depend on j. With two classes, the first costs nothing, so that only η_1
    matters.
    """
    cdef Py_ssize_t i, j
    cdef double excess
    # Overwritten if Lᵀ is written in the end.
    cdef double* r = costs + 2 * k
    if k <= 2:
        costs[0] = costs[k] = 0.0
        if k == 2:
            costs[1] = (L[1] - L[0]) * scale
            costs[3] = ((L[3] - L[2]) - (L[1] - L[0])) * scale
        return True
    _split_off_diagonal(k, L, costs, r)
    for i in range(k):
        for j in range(k):
            excess = L[i * k + j] - r[i] - costs[j]
            if j == i:
                costs[k + j] = excess
            elif fabs(excess) > VALUE_ROUNDING * (
                    fabs(L[i * k + j]) + fabs(r[i]) + fabs(costs[j])):
                _transpose(k, k, L, scale, costs)
                return False
    for j in range(2 * k):
        costs[j] *= scale
    return True


def reduce_costs(const double[:, :, ::1] L, bint single):
    """Costs of predictions as the kernel reads them.

    Parameters
    ----------
    L : ndarray of shape (m, k, q), finite
    single : bool
        Whether to return float32.

    Returns
    -------
    costs : ndarray of shape (m, max(k q, 2 k))
        For each cell, k numbers c and then k numbers d such that predicting j costs
        c_j + d_j η_j, up to a term that does not depend on j; or Lᵀ, always if q is not
        k. Scaled by a power of two, so that they fit in float32.
    separable : ndarray of shape (m,), uint8
        Whether the cell has c and d.
    """
    cdef Py_ssize_t m = L.shape[0], k = L.shape[1], q = L.shape[2], a, e
    cdef double largest = 0.0
    cdef int exponent = 0
    cdef double[:, ::1] costs
    cdef unsigned char[::1] separable
    out = np.zeros((m, max(k * q, 2 * k)))
    flags = np.zeros(m, dtype=np.uint8)
    costs, separable = out, flags
    with nogil:
        for a in range(m):
            largest = 0.0
            for e in range(k * q):
                largest = max(largest, fabs((&L[a, 0, 0])[e]))
            frexp(largest, &exponent)
            if q == k:
                separable[a] = _separate(
                    k, &L[a, 0, 0], ldexp(1.0, -exponent), &costs[a, 0])
            else:
                _transpose(k, q, &L[a, 0, 0], ldexp(1.0, -exponent), &costs[a, 0])
    return (out.astype(np.float32) if single else out), flags
