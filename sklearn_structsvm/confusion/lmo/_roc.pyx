"""Thresholds on one score: the upper hull of the false and true positives they reach.

The points that thresholds reach, in either direction, are symmetric about the middle of
the diagonal, since reversing a classifier maps (FP, TP) to (P0 - FP, P1 - TP). Their
convex hull has the same symmetry, so its upper chain, from (0, 0) to (P0, P1), determines
it.
"""
import numpy as np

from libc.math cimport INFINITY


ctypedef fused real:
    float
    double


cdef real _between(real low, real high, bint want_low) noexcept nogil:
    """A number in between, or the requested end if the numbers are neighbors."""
    cdef real middle = low + (high - low) / 2
    if want_low:
        return middle if low <= middle < high else low
    return middle if low < middle <= high else high


cdef Py_ssize_t _merge_counts(
        const real[::1] scores, const unsigned char[::1] positive, const double* weights,
        double* fp, double* tp, Py_ssize_t* last) noexcept nogil:
    """(FP, TP) for each gap between scores, with all above the gap predicted positive.

    Scores descend. `last[t]` is the index of the last score above the gap; point 0 has
    none above it. Returns the number of points.
    """
    cdef Py_ssize_t i, n = scores.shape[0], count = 1
    cdef double weight, false_positives = 0.0, true_positives = 0.0
    fp[0] = tp[0] = 0.0
    last[0] = -1
    for i in range(n):
        weight = weights[i] if weights != NULL else 1.0
        if positive[i]:
            true_positives += weight
        else:
            false_positives += weight
        if i + 1 < n and scores[i + 1] == scores[i]:
            continue
        fp[count], tp[count], last[count] = false_positives, true_positives, i
        count += 1
    return count


cdef inline void _add_vertex(
        double x, double y, Py_ssize_t point, double[:, ::1] vertices, Py_ssize_t* points,
        Py_ssize_t* size) noexcept nogil:
    """Add a point to the right of all others to their upper hull."""
    cdef Py_ssize_t top = size[0] - 1
    if top >= 0 and vertices[top, 0] == x and vertices[top, 1] == y:
        return
    while top >= 1 and (
            (vertices[top, 0] - vertices[top - 1, 0]) * (y - vertices[top - 1, 1])
            >= (vertices[top, 1] - vertices[top - 1, 1]) * (x - vertices[top - 1, 0])):
        top -= 1
    vertices[top + 1, 0] = x
    vertices[top + 1, 1] = y
    points[top + 1] = point
    size[0] = top + 2


cdef Py_ssize_t _hull(
        Py_ssize_t n_points, const double* fp, const double* tp, double[:, ::1] vertices,
        Py_ssize_t* points) noexcept nogil:
    """Write the upper chain of all points and their reversals; return its vertex count.

    `points[v]` is t, or -1 - t if the vertex is point t reversed.
    """
    cdef Py_ssize_t t = 0, s = n_points - 1, size = 0
    cdef double all_fp = fp[s], all_tp = tp[s], x, y
    while t < n_points or s >= 0:
        if s >= 0:
            x, y = all_fp - fp[s], all_tp - tp[s]
        # From left to right, then upward; of equal points, the one that is not reversed
        # is kept.
        if s < 0 or t < n_points and (fp[t] < x or fp[t] == x and tp[t] <= y):
            _add_vertex(fp[t], tp[t], t, vertices, points, &size)
            t += 1
        else:
            _add_vertex(x, y, -1 - s, vertices, points, &size)
            s -= 1
    return size


def threshold_hull(
        const real[::1] scores, const unsigned char[::1] positive,
        const double[::1] weights=None):
    """The upper chain of the (FP, TP) that thresholds on a score reach.

    Parameters
    ----------
    scores : ndarray of shape (n,), descending
    positive : ndarray of shape (n,), uint8
        Whether each example is of the positive class.
    weights : ndarray of shape (n,) or None

    Returns
    -------
    vertices : ndarray of shape (v, 2)
        Weights of the false and true positives, from (0, 0) to those of all examples.
    thresholds : ndarray of shape (v, 2)
        Midway between two scores, or infinite; exact in the scores' precision. The first
        is for predicting scores above it positive, the second for predicting scores below
        it positive; they differ if there is no number in between.
    above : ndarray of shape (v,), bool
        True if the first gives the vertex and the second its reversal; False if it is the
        other way round.
    """
    cdef Py_ssize_t n = scores.shape[0], n_points, size, v, t
    cdef double[::1] counts = np.empty(2 * n + 2)
    cdef Py_ssize_t[::1] last = np.empty(n + 1, dtype=np.intp)
    cdef Py_ssize_t[::1] points = np.empty(2 * n + 2, dtype=np.intp)
    cdef double[:, ::1] vertices = np.empty((2 * n + 2, 2))
    cdef const double* w = NULL
    cdef double* fp = &counts[0]
    cdef double* tp = &counts[n + 1]
    cdef double[:, ::1] cuts
    cdef real low, high
    if weights is not None and n:
        w = &weights[0]
    with nogil:
        n_points = _merge_counts(scores, positive, w, fp, tp, &last[0])
        size = _hull(n_points, fp, tp, vertices, &points[0])
    thresholds = np.empty((size, 2))
    cuts = thresholds
    for v in range(size):
        t = points[v] if points[v] >= 0 else -1 - points[v]
        if t == 0:
            cuts[v, 0] = cuts[v, 1] = INFINITY
        elif t == n_points - 1:
            cuts[v, 0] = cuts[v, 1] = -INFINITY
        else:
            low, high = scores[last[t] + 1], scores[last[t]]
            cuts[v, 0] = _between(low, high, True)
            cuts[v, 1] = _between(low, high, False)
    above = np.asarray(points)[:size] >= 0
    return np.asarray(vertices)[:size].copy(), thresholds, above


def best_vertices(
        const double[:, ::1] vertices, const Py_ssize_t[::1] starts,
        const double[:, ::1] costs, Py_ssize_t[::1] found, unsigned char[::1] turned):
    """For each cell, the vertex at which costs[a, 0] FP + costs[a, 1] TP is least.

    Parameters
    ----------
    vertices : ndarray of shape (v, 2)
        The upper chains of all cells, one after the other.
    starts : ndarray of shape (m + 1,)
        Where each chain starts.
    costs : ndarray of shape (m, 2)
    found : ndarray of shape (m,)
        Written: the vertices.
    turned : ndarray of shape (m,), uint8
        Written: whether the vertex has to be reversed.
    """
    cdef Py_ssize_t a, low, high, middle
    cdef double x, y
    with nogil:
        for a in range(costs.shape[0]):
            x, y = costs[a, 0], costs[a, 1]
            turned[a] = y > 0 or y == 0 and x < 0
            if turned[a]:
                x, y = -x, -y
            # Edges become less steep; the cost falls along all edges before the best
            # vertex.
            low, high = starts[a], starts[a + 1] - 1
            while low < high:
                middle = (low + high) // 2
                if (x * (vertices[middle + 1, 0] - vertices[middle, 0])
                        + y * (vertices[middle + 1, 1] - vertices[middle, 1])) < 0:
                    low = middle + 1
                else:
                    high = middle
            found[a] = low
