"""The way from w to another point, in one reading of each vector.

Vectors may be millions long. They are worked on in blocks that the first-level cache
holds, so that the products of what was just written are of no further cost.
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
    """w + step · direction, and the product of that with itself."""
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
