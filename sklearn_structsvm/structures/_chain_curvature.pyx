"""What `chain_curvature` computes from one position to the next, of chains end to end."""
import numpy as np

from libc.math cimport INFINITY, exp, log
from libc.string cimport memcpy


def step_probabilities(
        const double[:, ::1] theta, const double[:, ::1] transition,
        const Py_ssize_t[::1] starts):
    """p(y_t), and p(y_t | y_{t-1}) with the previous label first, of shape (n, k, k).

    The latter are zero at the starts of chains, and after labels that are impossible.
    The chains end where the next one starts; the last of `starts` is n. Scores may be
    -inf.
    """
    cdef Py_ssize_t n = theta.shape[0], k = theta.shape[1], i, t, p, c
    nodes, onward = np.zeros((n, k)), np.zeros((n, k, k))
    cdef double[:, ::1] node = nodes
    cdef double[:, :, ::1] step = onward
    cdef double[::1] ahead = np.zeros(k), after = np.zeros(k)
    cdef double highest, total
    with nogil:
        for i in range(starts.shape[0] - 1):
            after[:] = 0.0
            for t in range(starts[i + 1] - 1, starts[i], -1):
                for c in range(k):
                    ahead[c] = theta[t, c] + after[c]
                for p in range(k):
                    after[p] = _normalize(
                        k, &transition[p, 0], &ahead[0], &step[t, p, 0])
                # Large numbers would cost digits in their differences.
                highest = -INFINITY
                for p in range(k):
                    highest = max(highest, after[p])
                for p in range(k):
                    after[p] -= highest
            t = starts[i]
            _normalize(k, &theta[t, 0], &after[0], &node[t, 0])
            for t in range(starts[i] + 1, starts[i + 1]):
                total = 0.0
                for p in range(k):
                    for c in range(k):
                        node[t, c] += node[t - 1, p] * step[t, p, c]
                for c in range(k):
                    total += node[t, c]
                # In spite of rounding they sum to 1, so that errors do not add up.
                for c in range(k):
                    node[t, c] /= total
    return nodes, onward


cdef double _normalize(
        Py_ssize_t k, const double* x, const double* y, double* out) noexcept nogil:
    """out = exp(x + y) / their sum, or 0; returns the logarithm of the sum."""
    cdef Py_ssize_t c
    cdef double highest = -INFINITY, total = 0.0
    for c in range(k):
        out[c] = x[c] + y[c]
        highest = max(highest, out[c])
    if highest == -INFINITY:
        for c in range(k):
            out[c] = 0.0
        return highest
    for c in range(k):
        out[c] = exp(out[c] - highest)
        total += out[c]
    for c in range(k):
        out[c] /= total
    return highest + log(total)


def carry(
        const double[:, :, ::1] step, const double[:, :, ::1] now,
        double[:, ::1] passed, double[:, :, ::1] held):
    """held[t] = passed, and passed = now[t] + step[t]ᵀ passed, for all t in turn."""
    cdef Py_ssize_t n = now.shape[0], k = now.shape[1], d = now.shape[2], t, p, c, j
    cdef double share
    with nogil:
        for t in range(n):
            memcpy(&held[t, 0, 0], &passed[0, 0], k * d * sizeof(double))
            memcpy(&passed[0, 0], &now[t, 0, 0], k * d * sizeof(double))
            for p in range(k):
                for c in range(k):
                    share = step[t, p, c]
                    if share != 0.0:
                        for j in range(d):
                            passed[c, j] += share * held[t, p, j]
