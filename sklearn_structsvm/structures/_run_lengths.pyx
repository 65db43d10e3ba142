"""Labelings of a chain whose runs of equal labels have a least length.

A chain of T positions over K labels scores a labeling y by

    f(y) = Σ_t theta[t, y_t] + Σ_{t >= 1} transition[y_{t-1}, y_t].

Each run of the label k is to have at least lengths[k] positions. A run is its first
lengths[k] positions, taken in one step, and then one position after the other. So with
D[t, k], the best score of the positions to t if a run of k that is long enough ends there
or goes on,

    D[t, k] = max(D[t-1, k] + transition[k, k] + theta[t, k],
                  max_{j != k} D[s-1, j] + transition[j, k] + run of k from s to t),

where s = t - lengths[k] + 1; for s = 0 the run is the first. That is O(T K (K + L)). In
the place of maxima, sums of exponentials give probabilities. Scores may be -inf.

A chain that is shorter than all of these lengths is one run of any label.
"""
import numpy as np

from libc.math cimport INFINITY, exp, log


cdef double run_score(
        const double[:, ::1] theta, double stay, Py_ssize_t start, Py_ssize_t stop,
        Py_ssize_t k) noexcept nogil:
    """The score of a run of k from start to stop, without what leads to it."""
    cdef Py_ssize_t t
    cdef double score = theta[start, k]
    for t in range(start + 1, stop):
        score += theta[t, k] + stay
    return score


cdef inline double log_sum(double a, double b) noexcept nogil:
    """log(exp(a) + exp(b))."""
    cdef double high = a if a > b else b
    cdef double low = b if a > b else a
    if low == -INFINITY:
        return high
    return high + log(1.0 + exp(low - high))


cdef double entered(
        const double[:, ::1] D, const double[:, ::1] transition, Py_ssize_t t,
        Py_ssize_t k, bint sums, int* source) noexcept nogil:
    """The score of ending another run at t and going on with k; the best such run."""
    cdef Py_ssize_t j
    cdef double score, best = -INFINITY
    source[0] = -1
    for j in range(D.shape[1]):
        if j == k:
            continue
        score = D[t, j] + transition[j, k]
        if sums:
            best = log_sum(best, score)
        elif score > best:
            best = score
            source[0] = <int>j
    return best


cdef void ways_to(
        const double[:, ::1] D, const double[:, ::1] theta,
        const double[:, ::1] transition, const Py_ssize_t[::1] lengths, Py_ssize_t t,
        Py_ssize_t k, bint sums, double* goes_on, double* starts,
        int* source) noexcept nogil:
    """The scores of D[t, k] by going on, and by a run that is just long enough at t."""
    cdef Py_ssize_t start = t - lengths[k] + 1
    goes_on[0] = starts[0] = -INFINITY
    source[0] = -1
    if t > 0:
        goes_on[0] = D[t - 1, k] + transition[k, k] + theta[t, k]
    if start > 0:
        starts[0] = entered(D, transition, start - 1, k, sums, source)
    elif start == 0:
        starts[0] = 0.0
    if starts[0] > -INFINITY:
        starts[0] += run_score(theta, transition[k, k], start, t + 1, k)


def decode_runs(
        const double[:, ::1] theta, const double[:, ::1] transition,
        const Py_ssize_t[::1] lengths):
    """The best labeling, int32 of shape (T,); None if no labeling has a finite score."""
    cdef Py_ssize_t T = theta.shape[0], K = theta.shape[1], t, k, start, s
    cdef double goes_on, starts, best
    cdef int source
    labels = np.empty(T, dtype=np.int32)
    cdef int[::1] y = labels
    cdef double[:, ::1] D = np.empty((T, K))
    # The label before the run that begins so that it is long enough at t; -2: it went on.
    cdef int[:, ::1] before = np.empty((T, K), dtype=np.int32)
    with nogil:
        for t in range(T):
            for k in range(K):
                ways_to(
                    D, theta, transition, lengths, t, k, False, &goes_on, &starts,
                    &source)
                # Of equally good ones the longer run: fewer changes.
                D[t, k] = goes_on if goes_on >= starts else starts
                before[t, k] = -2 if goes_on >= starts else source
        best, k = -INFINITY, -1
        for s in range(K):
            if D[T - 1, s] > best:
                best, k = D[T - 1, s], s
        t = T - 1
        while k >= 0 and t >= 0:
            if before[t, k] == -2:
                y[t] = <int>k
                t -= 1
                continue
            start = t - lengths[k] + 1
            for s in range(start, t + 1):
                y[s] = <int>k
            k, t = before[t, k], start - 1
    return labels if best > -INFINITY else None


def run_marginals(
        const double[:, ::1] theta, const double[:, ::1] transition,
        const Py_ssize_t[::1] lengths):
    """Probabilities of the labels, (T, K); None if no labeling has a finite score."""
    cdef Py_ssize_t T = theta.shape[0], K = theta.shape[1], t, k, j, s, stop
    cdef double goes_on, starts, total, mass
    cdef int source
    # B[t, k]: all ways to go on from D[t, k].
    cdef double[:, ::1] D = np.empty((T, K)), B = np.empty((T, K))
    found = np.zeros((T, K))
    cdef double[:, ::1] P = found
    with nogil:
        for t in range(T):
            for k in range(K):
                ways_to(
                    D, theta, transition, lengths, t, k, True, &goes_on, &starts,
                    &source)
                D[t, k] = log_sum(goes_on, starts)
        total = -INFINITY
        for k in range(K):
            total = log_sum(total, D[T - 1, k])
        for t in range(T - 1, -1, -1):
            for k in range(K):
                B[t, k] = 0.0 if t == T - 1 else (
                    B[t + 1, k] + transition[k, k] + theta[t + 1, k]
                )
            for j in range(K):
                stop = t + 1 + lengths[j]
                if stop > T or B[stop - 1, j] == -INFINITY:
                    continue
                mass = run_score(theta, transition[j, j], t + 1, stop, j)
                mass += B[stop - 1, j]
                for k in range(K):
                    if k != j and mass > -INFINITY:
                        B[t, k] = log_sum(B[t, k], transition[k, j] + mass)
        if total > -INFINITY:
            for t in range(T):
                for k in range(K):
                    if B[t, k] == -INFINITY:
                        continue
                    ways_to(
                        D, theta, transition, lengths, t, k, True, &goes_on, &starts,
                        &source)
                    P[t, k] += exp(goes_on + B[t, k] - total)
                    mass = exp(starts + B[t, k] - total)
                    # Each position by itself: a sum over all of them would cancel.
                    if mass > 0.0:
                        for s in range(t - lengths[k] + 1, t + 1):
                            P[s, k] += mass
    if total == -INFINITY:
        return None
    # Scores of long chains are known up to an error that all labels of a position share.
    return found / found.sum(axis=1, keepdims=True)
