"""Distributions over the labels of each example: projected, moved and combined.

The dual variables of an example lie in a simplex. The projection of m onto it is
max(m_y - θ, 0). Newton's method finds θ from the left, where the sum is convex; it takes
at most as many steps as there are entries, and usually a few. Steps of projected gradient
ascent on duals of piecewise linear losses project as they go: no slope is stored.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape, check_starts

from cython.parallel cimport prange

cdef extern from "solvers/qp/_simplex.h" nogil:
    void simplex_project(Py_ssize_t n, double* x) noexcept


def project_simplices(points, const Py_ssize_t[::1] starts, int n_threads=1):
    """The nearest point of the simplex, for each of n vectors.

    Parameters
    ----------
    points : ndarray of shape (N,)
        The vectors, one after another.
    starts : ndarray of shape (n + 1,), dtype intp
        Vector i is points[starts[i]:starts[i + 1]]; it has at least one entry.
    n_threads : int

    Returns
    -------
    ndarray of shape (N,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.qp._simplices import project_simplices
    >>> points = np.array([1.0, 0.5, -1.0, 7.0])
    >>> project_simplices(points, np.array([0, 3, 4])).tolist()
    [0.75, 0.25, 0.0, 1.0]
    """
    result = np.array(points, dtype=np.float64)
    check_starts("starts", starts, starts.shape[0] - 1, len(result))
    if (np.diff(starts) < 1).any():
        raise ValueError("Each vector must have an entry: starts must rise.")
    cdef double[::1] out = result
    cdef Py_ssize_t i, n = starts.shape[0] - 1
    for i in prange(n, nogil=True, num_threads=max(n_threads, 1), schedule="static"):
        simplex_project(starts[i + 1] - starts[i], &out[starts[i]])
    return result


cdef void class_step(
        Py_ssize_t k, const double* start, const double* z, const double* cost,
        Py_ssize_t truth, bint rescaled, double step, double* out) noexcept nogil:
    cdef Py_ssize_t y
    cdef double margin = 1.0 - z[truth]
    if rescaled:
        for y in range(k):
            out[y] = start[y] + step * cost[y] * (margin + z[y])
    else:
        # z[truth] is left out: a constant shift does not change the projection.
        for y in range(k):
            out[y] = start[y] + step * (cost[y] + z[y])
    simplex_project(k, out)


def step_classes(
        const double[:, ::1] start, const double[:, ::1] scores,
        const double[:, ::1] costs, const int[::1] truth, bint rescaled, double step,
        double[:, ::1] out, int n_threads=1):
    """out_i = the projection of start_i + step · slopes_i onto the simplex.

    The slope of example i and class y is c_y + z_y - z_truth, or c_y (1 + z_y - z_truth)
    if the loss is rescaled.

    Parameters
    ----------
    start, scores, out : ndarray of shape (n, k)
        `out` may be `start`.
    costs : ndarray of shape (k, k)
        Row truth[i] is the c of example i, zero at its truth.
    truth : ndarray of shape (n,), dtype intc
    rescaled : bool
    step : float
    n_threads : int
    """
    cdef Py_ssize_t i, n = start.shape[0], k = start.shape[1]
    check_shape("scores", scores, n, k)
    check_shape("out", out, n, k)
    check_shape("costs", costs, k, k)
    check_shape("truth", truth, n)
    for i in prange(n, nogil=True, num_threads=max(n_threads, 1), schedule="static"):
        class_step(k, &start[i, 0], &scores[i, 0], &costs[truth[i], 0], truth[i],
                   rescaled, step, &out[i, 0])


def combine_classes(
        const double[:, ::1] alpha, const double[:, ::1] costs, const int[::1] truth,
        bint rescaled, const double[::1] weights, double[:, ::1] out):
    """out_i = p_i Σ_y α_iy β_iy, the planes' slopes in the scores; returns Σ p α c.

    β_iy = e_y - e_truth, times c_y if the loss is rescaled. Arguments are as for
    `step_classes`, and the weights p have shape (n,).
    """
    cdef Py_ssize_t i, y, n = alpha.shape[0], k = alpha.shape[1]
    cdef double loss = 0.0, mean, mass, part
    cdef const double* cost
    check_shape("out", out, n, k)
    check_shape("costs", costs, k, k)
    check_shape("truth", truth, n)
    check_shape("weights", weights, n)
    with nogil:
        for i in range(n):
            cost = &costs[truth[i], 0]
            mean = mass = 0.0
            for y in range(k):
                mean += alpha[i, y] * cost[y]
                part = alpha[i, y] * cost[y] if rescaled else alpha[i, y]
                part = 0.0 if y == truth[i] else weights[i] * part
                mass += part
                out[i, y] = part
            out[i, truth[i]] = -mass
            loss += weights[i] * mean
    return loss


cdef void pair_step(
        Py_ssize_t n, const double* start, const double* z, const int* gained,
        const int* lost, const double* cost, double step, double* out) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = start[j] + step * (cost[j] + z[gained[j]] - z[lost[j]])
    simplex_project(n, out)


def step_pairs(
        const double[::1] start, const double[:, ::1] scores,
        const Py_ssize_t[::1] starts, const int[::1] gained, const int[::1] lost,
        const double[::1] costs, double step, double[::1] out, int n_threads=1):
    """Same as `step_classes`, for planes c_j + z_gained(j) - z_lost(j).

    The planes of example i are starts[i]:starts[i + 1] of the arrays of shape (N,).
    """
    cdef Py_ssize_t i, j, n = starts.shape[0] - 1
    for i in prange(n, nogil=True, num_threads=max(n_threads, 1), schedule="static"):
        j = starts[i]
        pair_step(starts[i + 1] - j, &start[j], &scores[i, 0], &gained[j], &lost[j],
                  &costs[j], step, &out[j])


def combine_pairs(
        const double[::1] alpha, const Py_ssize_t[::1] starts, const int[::1] gained,
        const int[::1] lost, const double[::1] costs, const double[::1] weights,
        double[:, ::1] out):
    """Same as `combine_classes`, for the planes of `step_pairs`."""
    cdef Py_ssize_t i, j, n = starts.shape[0] - 1
    cdef double loss = 0.0, mean, part
    out[:, :] = 0.0
    with nogil:
        for i in range(n):
            mean = 0.0
            for j in range(starts[i], starts[i + 1]):
                part = weights[i] * alpha[j]
                mean += alpha[j] * costs[j]
                out[i, gained[j]] += part
                out[i, lost[j]] -= part
            loss += weights[i] * mean
    return loss


def squared_distance(
        const double[::1] a, const double[::1] b, const Py_ssize_t[::1] starts,
        const double[::1] weights):
    """Σ_i p_i ‖a_i - b_i‖², with the vectors of `project_simplices`."""
    cdef Py_ssize_t i, j
    cdef double total = 0.0, part
    with nogil:
        for i in range(starts.shape[0] - 1):
            part = 0.0
            for j in range(starts[i], starts[i + 1]):
                part += (a[j] - b[j]) * (a[j] - b[j])
            total += weights[i] * part
    return total
