"""Labelings of a chain whose runs of equal labels have a least length.

A chain of T positions over K labels scores a labeling y by

    f(y) = Σ_t theta[t, y_t] + Σ_{t >= 1} transition[y_{t-1}, y_t],

where the scores of transitions may differ from one t to the other. Each run of the label
k is to have at least lengths[k] positions. A run is its first
lengths[k] positions, taken in one step, and then one position after the other. So with
D[t, k], the best score of the positions to t if a run of k that is long enough ends there
or goes on,

    D[t, k] = max(D[t-1, k] + transition[k, k] + theta[t, k],
                  max_{j != k} D[s-1, j] + transition[j, k] + run of k from s to t),

where s = t - lengths[k] + 1; for s = 0 the run is the first. That is O(T K (K + L)). In
the place of maxima, sorted lists give the k best labelings, and sums of exponentials give
probabilities. Scores may be -inf.

A chain that is shorter than all of these lengths is one run of any label.
"""
import numpy as np

from libc.math cimport INFINITY, exp, log

WAY = np.dtype([("score", "f8"), ("label", "i4"), ("place", "i4")])


cdef double run_score(
        const double[:, ::1] theta, const double[:, :, :] transition, Py_ssize_t start,
        Py_ssize_t stop, Py_ssize_t k) noexcept nogil:
    """The score of a run of k from start to stop, without what leads to it."""
    cdef Py_ssize_t t
    cdef double score = theta[start, k]
    for t in range(start + 1, stop):
        score += theta[t, k] + transition[t, k, k]
    return score


cdef inline double log_sum(double a, double b) noexcept nogil:
    """log(exp(a) + exp(b))."""
    cdef double high = a if a > b else b
    cdef double low = b if a > b else a
    if low == -INFINITY:
        return high
    return high + log(1.0 + exp(low - high))


cdef double entered(
        const double[:, ::1] D, const double[:, :, :] transition, Py_ssize_t t,
        Py_ssize_t k) noexcept nogil:
    """The log of the sum of all ways that end another run at t and go on with k."""
    cdef Py_ssize_t j
    cdef double total = -INFINITY
    for j in range(D.shape[1]):
        if j != k:
            total = log_sum(total, D[t, j] + transition[t + 1, j, k])
    return total


cdef void ways_to(
        const double[:, ::1] D, const double[:, ::1] theta,
        const double[:, :, :] transition, const Py_ssize_t[::1] lengths, Py_ssize_t t,
        Py_ssize_t k, double* goes_on, double* starts) noexcept nogil:
    """The parts of D[t, k]: by going on, and by a run that is just long enough at t."""
    cdef Py_ssize_t start = t - lengths[k] + 1
    goes_on[0] = starts[0] = -INFINITY
    if t > 0:
        goes_on[0] = D[t - 1, k] + transition[t, k, k] + theta[t, k]
    if start > 0:
        starts[0] = entered(D, transition, start - 1, k)
    elif start == 0:
        starts[0] = 0.0
    if starts[0] > -INFINITY:
        starts[0] += run_score(theta, transition, start, t + 1, k)


cdef struct Way:
    # A labeling to a position: its score, and the one that it prolongs, as the label and
    # the place in the list of the position before. The label is -1 at the beginning.
    double score
    int label
    int place


cdef Py_ssize_t merge(
        Way[:, :, ::1] D, const Py_ssize_t[:, ::1] sizes, const double[:, ::1] theta,
        const double[:, :, :] transition, Py_ssize_t least, Py_ssize_t t, Py_ssize_t k,
        Py_ssize_t* heads) noexcept nogil:
    """Fill the list D[t, k] from the sorted lists before it; the number of its entries.

    `heads` has room for K. Of equally good ways the longer run is first: fewer changes.
    """
    cdef Py_ssize_t start = t - least + 1, found = 0, j, best
    cdef double run, score, highest
    if start < 0:
        return 0
    run = run_score(theta, transition, start, t + 1, k)
    if start == 0:
        D[t, k, 0] = Way(run, -1, 0)
        return run > -INFINITY
    for j in range(D.shape[1]):
        heads[j] = 0
    while found < D.shape[2]:
        best, highest = -1, -INFINITY
        if heads[k] < sizes[t - 1, k]:
            score = D[t - 1, k, heads[k]].score + transition[t, k, k] + theta[t, k]
            if score > highest:
                best, highest = k, score
        for j in range(D.shape[1]):
            if j == k or heads[j] >= sizes[start - 1, j]:
                continue
            score = D[start - 1, j, heads[j]].score + transition[start, j, k] + run
            if score > highest:
                best, highest = j, score
        if best < 0:
            break
        D[t, k, found] = Way(highest, <int>best, <int>heads[best])
        heads[best] += 1
        found += 1
    return found


def k_best_runs(
        const double[:, ::1] theta, transitions, const Py_ssize_t[::1] lengths, k=1):
    """The m <= k best labelings (m, T), int32, and their scores (m,), best first.

    `transitions` has the shape (K, K), or (T, K, K) if they differ.
    None if no labeling has a finite score. Lists of the k best take the place of D: each
    labeling is reached in one way only. O(k T K (K + L)), and memory for 2 k T K numbers.
    """
    cdef Py_ssize_t T = theta.shape[0], K = theta.shape[1], m, t, c, j, i, place, start
    cdef const double[:, :, :] transition = np.broadcast_to(transitions, (T, K, K))
    # K ** bit_length(k) > k for K >= 2, so the huge number K ** T is not needed.
    m = min(k, int(K) ** min(T, k.bit_length()))
    cdef Way[:, :, ::1] D = np.empty((T, K, m), dtype=WAY)
    cdef Py_ssize_t[:, ::1] sizes = np.zeros((T, K), dtype=np.intp)
    cdef Py_ssize_t[::1] heads = np.empty(K, dtype=np.intp)
    cdef Py_ssize_t best, found = 0
    labels, values = np.empty((m, T), dtype=np.int32), np.empty(m)
    cdef int[:, ::1] y = labels
    cdef double[::1] scores = values
    cdef Way way
    with nogil:
        for t in range(T):
            for c in range(K):
                sizes[t, c] = merge(
                    D, sizes, theta, transition, lengths[c], t, c, &heads[0])
        for c in range(K):
            heads[c] = 0
        while found < m:
            best = -1
            for j in range(K):
                if heads[j] < sizes[T - 1, j] and (
                        best < 0 or D[T - 1, j, heads[j]].score > scores[found]):
                    best, scores[found] = j, D[T - 1, j, heads[j]].score
            if best < 0:
                break
            c, place, t = best, heads[best], T - 1
            heads[best] += 1
            while t >= 0:
                way = D[t, c, place]
                start = t if way.label == c else t - lengths[c] + 1
                for i in range(start, t + 1):
                    y[found, i] = <int>c
                t = start - 1
                c, place = way.label, way.place
            found += 1
    return (labels[:found], values[:found]) if found else None


def run_marginals(
        const double[:, ::1] theta, transitions, const Py_ssize_t[::1] lengths):
    """Probabilities of the labels, (T, K), and the log of the sum over all labelings.

    None if no labeling has a finite score.
    """
    cdef Py_ssize_t T = theta.shape[0], K = theta.shape[1], t, k, j, s, stop
    cdef const double[:, :, :] transition = np.broadcast_to(transitions, (T, K, K))
    cdef double goes_on, starts, total, mass
    # B[t, k]: all ways to go on from D[t, k].
    cdef double[:, ::1] D = np.empty((T, K)), B = np.empty((T, K))
    found = np.zeros((T, K))
    cdef double[:, ::1] P = found
    with nogil:
        for t in range(T):
            for k in range(K):
                ways_to(D, theta, transition, lengths, t, k, &goes_on, &starts)
                D[t, k] = log_sum(goes_on, starts)
        total = -INFINITY
        for k in range(K):
            total = log_sum(total, D[T - 1, k])
        for t in range(T - 1, -1, -1):
            for k in range(K):
                B[t, k] = 0.0 if t == T - 1 else (
                    B[t + 1, k] + transition[t + 1, k, k] + theta[t + 1, k]
                )
            for j in range(K):
                stop = t + 1 + lengths[j]
                if stop > T or B[stop - 1, j] == -INFINITY:
                    continue
                mass = run_score(theta, transition, t + 1, stop, j)
                mass += B[stop - 1, j]
                for k in range(K):
                    if k != j and mass > -INFINITY:
                        B[t, k] = log_sum(B[t, k], transition[t + 1, k, j] + mass)
        if total > -INFINITY:
            for t in range(T):
                for k in range(K):
                    if B[t, k] == -INFINITY:
                        continue
                    ways_to(D, theta, transition, lengths, t, k, &goes_on, &starts)
                    P[t, k] += exp(goes_on + B[t, k] - total)
                    mass = exp(starts + B[t, k] - total)
                    # Each position by itself: a sum over all of them would cancel.
                    if mass > 0.0:
                        for s in range(t - lengths[k] + 1, t + 1):
                            P[s, k] += mass
    if total == -INFINITY:
        return None
    # Scores of long chains are known up to an error that all labels of a position share.
    return found / found.sum(axis=1, keepdims=True), total
