"""The direction from w to another point, reading each vector once.

Vectors may have millions of entries. They are processed in blocks that fit in the
first-level cache, so that products with entries just written cost nothing extra.
"""
import numpy as np

from scipy.linalg.cython_blas cimport ddot

cdef Py_ssize_t PIECE = 1024


def direction_to(const double[::1] target, const double[::1] w, double[::1] out):
    """out = target - w.

    Returns
    -------
    wp, pp : float
        ⟨w, out⟩ and ⟨out, out⟩.
    """
    cdef Py_ssize_t i, start = 0, n = w.shape[0]
    cdef int count, one = 1
    cdef double wp = 0.0, pp = 0.0
    if target.shape[0] != n or out.shape[0] != n:
        raise ValueError("Vectors must be of one length.")
    with nogil:
        while start < n:
            count = <int> min(PIECE, n - start)
            for i in range(start, start + count):
                out[i] = target[i] - w[i]
            wp += ddot(&count, <double*> &w[start], &one, &out[start], &one)
            pp += ddot(&count, &out[start], &one, &out[start], &one)
            start += count
    return wp, pp


def moved(const double[::1] w, const double[::1] direction, double step):
    """w + step · direction, and its squared norm."""
    cdef Py_ssize_t i, start = 0, n = w.shape[0]
    cdef int count, one = 1
    cdef double square = 0.0
    if direction.shape[0] != n:
        raise ValueError("Vectors must be of one length.")
    result = np.empty(n)
    cdef double[::1] out = result
    with nogil:
        while start < n:
            count = <int> min(PIECE, n - start)
            for i in range(start, start + count):
                out[i] = w[i] + step * direction[i]
            square += ddot(&count, &out[start], &one, &out[start], &one)
            start += count
    return result, square
