"""Losses and second derivatives of log Σ_c exp z_c - z_y, over rows of scores.

NumPy would pass over the scores once for each of half a dozen operations.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape

from cython.parallel cimport prange
from libc.math cimport exp, log1p


def softmax_losses(
        const double[:, ::1] Z, const Py_ssize_t[::1] y, double[:, ::1] P,
        int n_threads=1):
    """log Σ_c exp z_c - z_y of each row of Z, and softmax(Z).

    Parameters
    ----------
    Z : ndarray of shape (n, k)
    y : ndarray of shape (n,)
    P : ndarray of shape (n, k)
        Written: the probabilities.
    n_threads : int

    Returns
    -------
    ndarray of shape (n,)
    """
    cdef Py_ssize_t i, n = Z.shape[0]
    check_shape("y", y, n)
    check_shape("P", P, n, Z.shape[1])
    check_indices("y", y, Z.shape[1])
    result = np.empty(n)
    cdef double[::1] losses = result
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        losses[i] = row_loss(&Z[i, 0], y[i], &P[i, 0], Z.shape[1])
    return result


cdef double row_loss(
        const double* z, Py_ssize_t truth, double* p, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t c, best = 0
    cdef double rest = 0.0, scale
    for c in range(1, k):
        best = c if z[c] > z[best] else best
    for c in range(k):
        p[c] = exp(z[c] - z[best])
    # The sum leaves out the largest term, which is 1, so that a small loss keeps its
    # digits.
    for c in range(k):
        rest += p[c] if c != best else 0.0
    scale = 1.0 / (1.0 + rest)
    for c in range(k):
        p[c] *= scale
    return log1p(rest) + (z[best] - z[truth])


def softmax_curved(
        const double[::1] weights, const double[:, ::1] P, const double[:, ::1] V,
        double[:, ::1] out, int n_threads=1):
    """p_i (diag(π_i) - π_i π_iᵀ) v_i for each row π_i of P and v_i of V.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        p.
    P, V, out : ndarray of shape (n, k)
        The result is written to `out`.
    n_threads : int
    """
    cdef Py_ssize_t i, n = P.shape[0], k = P.shape[1]
    check_shape("weights", weights, n)
    check_shape("V", V, n, k)
    check_shape("out", out, n, k)
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        curve_row(weights[i], &P[i, 0], &V[i, 0], &out[i, 0], k)


cdef void curve_row(
        double weight, const double* p, const double* v, double* out, Py_ssize_t k
        ) noexcept nogil:
    cdef Py_ssize_t c
    cdef double mean = 0.0
    for c in range(k):
        mean += p[c] * v[c]
    for c in range(k):
        out[c] = weight * p[c] * (v[c] - mean)
