"""The most violating confusion table: a loss of its counts, and sums of scores.

f(o, i) + outer[o] + inner[i] is maximized over o = 0, ..., p and i = 0, ..., q, where

    f(o, i) = (num[0] + num[1] o + num[2] i) / (den[0] + den[1] o + den[2] i)

is concave in i, and inner[i] is a sum of steps that do not increase. So for each o, hill
climbing finds the best i, starting from the best i of o - 1. All climbs together take
O(p + q) steps if the best i changes direction only a few times, as for the F-measure.
"""

import numpy as np

from libc.math cimport fabs


cdef struct Ratio:
    double n0, n1, n2, d0, d1, d2


cdef inline double ratio_at(Ratio* f, Py_ssize_t o, Py_ssize_t i) noexcept nogil:
    return (f.n0 + f.n1 * o + f.n2 * i) / (f.d0 + f.d1 * o + f.d2 * i)


cdef inline double gain(
    Ratio* f, Py_ssize_t o, Py_ssize_t i, const double* steps
) noexcept nogil:
    """The gain of increasing i by 1, without subtracting two close values of f."""
    cdef double N = f.n0 + f.n1 * o + f.n2 * i
    cdef double D = f.d0 + f.d1 * o + f.d2 * i
    return (f.n2 * D - f.d2 * N) / (D * (D + f.d2)) + steps[i]


def best_table(
    const double[::1] outer,
    const double[::1] inner,
    const double[::1] steps,
    const double[::1] num,
    const double[::1] den,
    outer_slope=None,
    inner_slope=None,
    double rtol=0.0,
):
    """The pair (o, i) with the largest value; among ties, the one with the largest slope.

    Parameters
    ----------
    outer, inner : ndarray of shape (p + 1,) and (q + 1,)
    steps : ndarray of shape (q + 1,)
        inner[i + 1] - inner[i]; the last one is not read.
    num, den : ndarray of shape (3,)
    outer_slope, inner_slope : ndarray of the shapes of `outer` and `inner`, or None
        The slope of a pair is outer_slope[o] + inner_slope[i]. If None, any pair with the
        largest value may be returned.
    rtol : float
        Values are tied if they differ by at most this, relative to 1 plus the magnitudes
        of the two sums.

    Returns
    -------
    o, i : int
    """
    cdef Py_ssize_t p = outer.shape[0] - 1, q = inner.shape[0] - 1
    if inner.shape[0] != steps.shape[0] or p < 0 or q < 0:
        raise ValueError("outer, inner and steps do not fit together.")
    if num.shape[0] != 3 or den.shape[0] != 3:
        raise ValueError("num and den must have 3 coefficients.")
    cdef Ratio f = Ratio(num[0], num[1], num[2], den[0], den[1], den[2])
    cdef const double* by = &steps[0]
    cdef Py_ssize_t[::1] best_i = np.empty(p + 1, dtype=np.intp)
    cdef double[::1] values = np.empty(p + 1)
    cdef Py_ssize_t o, i = 0, at = 0
    with nogil:
        for o in range(p + 1):
            while i < q and gain(&f, o, i, by) > 0.0:
                i += 1
            while i > 0 and gain(&f, o, i - 1, by) < 0.0:
                i -= 1
            best_i[o] = i
            values[o] = ratio_at(&f, o, i) + outer[o] + inner[i]
            if values[o] > values[at]:
                at = o
    if outer_slope is None:
        return at, best_i[at]

    cdef const double[::1] rise = outer_slope
    cdef const double[::1] run = inner_slope
    if rise.shape[0] != p + 1 or run.shape[0] != q + 1:
        raise ValueError("The slopes do not fit the values.")
    cdef double least = values[at] - rtol * (
        1.0 + fabs(outer[at]) + fabs(inner[best_i[at]])
    )
    cdef double slope = rise[at] + run[best_i[at]]
    cdef Py_ssize_t to_o = at, to_i = best_i[at], j
    with nogil:
        for o in range(p + 1):
            if values[o] < least:
                continue
            # The ties at this o are adjacent.
            j = best_i[o]
            while j < q and ratio_at(&f, o, j + 1) + outer[o] + inner[j + 1] >= least:
                j += 1
            while j >= 0 and ratio_at(&f, o, j) + outer[o] + inner[j] >= least:
                if rise[o] + run[j] > slope:
                    slope, to_o, to_i = rise[o] + run[j], o, j
                j -= 1
    return to_o, to_i
