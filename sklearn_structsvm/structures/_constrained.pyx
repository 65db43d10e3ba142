"""Kernels of the branch and bound for the constrained λ-oracle, see `constrained`.

Chains, forests and suffix scores are those of `_decodings`: if parents are given,
y_parent(t) replaces y_{t-1}.
"""
import numpy as np

from libc.math cimport INFINITY


cdef double best_score(
        Py_ssize_t K, const double* row, const double* suffix) noexcept nogil:
    """max_c row[c] + suffix[c]; `row` may be NULL."""
    cdef Py_ssize_t c
    cdef double value, best = -INFINITY
    for c in range(K):
        value = suffix[c] + (0.0 if row == NULL else row[c])
        best = value if value > best else best
    return best


def _of_each(transition, shape):
    """A table of transitions for each position of (..., T, K), without a copy."""
    if transition is None:
        return None
    if transition.ndim == len(shape):
        transition = np.expand_dims(transition, -3)
    return np.broadcast_to(transition, (*shape, shape[len(shape) - 1]))


def coordinate_path(theta, transition, costs, truth, labels, parents=None):
    """The two coordinates of slack rescaling, summed up position by position.

    With f(y) = Σ_t theta[t, y_t] + Σ_{t >= 1} transition[y_{t-1}, y_t], these are
    h = 1 + f(labels) - f(truth) and g = Σ_t costs[t, labels_t]. Terms that the two
    labelings share are left out, so that h is 1 exactly at the truth.

    Parameters
    ----------
    theta : ndarray of shape (T, K), float64
    transition : ndarray of shape (K, K) or (T, K, K), float64, or None
    costs : ndarray of shape (T, K), float64
        Loss of each label at each position, zero at the true one.
    truth, labels : ndarray of shape (T,), intc
        Label indices in [0, K); they are not checked.
    parents : ndarray of shape (T,), intp, or None
        Of a forest, -1 <= parents[t] < t; not checked. None for a chain.

    Returns
    -------
    ndarray of shape (2, T + 1), float64
        Column t has the parts of h - 1 and of g from the positions before t. Labelings
        that agree so far have the same numbers, to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.structures._constrained import coordinate_path
    >>> theta, costs = np.array([[3.0, 1.0], [0.0, 4.0]]), 1.0 - np.eye(2)
    >>> truth, labels = np.array([[0, 1], [1, 1]], dtype=np.intc)
    >>> coordinate_path(theta, None, costs, truth, labels)
    array([[ 0., -2., -2.],
           [ 0.,  1.,  1.]])
    """
    cdef const double[:, ::1] nodes = theta, losses = costs
    cdef const double[:, :, :] edges = _of_each(transition, theta.shape)
    cdef const int[::1] y = truth, z = labels
    cdef const Py_ssize_t[::1] above = parents
    cdef Py_ssize_t T = nodes.shape[0], t, p
    cdef double margin = 0.0, loss = 0.0
    result = np.zeros((2, T + 1))
    cdef double[:, ::1] path = result
    with nogil:
        for t in range(T):
            if z[t] != y[t]:
                margin += nodes[t, z[t]] - nodes[t, y[t]]
                loss += losses[t, z[t]]
            p = t - 1 if above is None else above[t]
            if edges is not None and p >= 0:
                if z[t] != y[t] or z[p] != y[p]:
                    margin += edges[t, z[p], z[t]] - edges[t, y[p], y[t]]
            path[0, t + 1] = margin
            path[1, t + 1] = loss
    return result


def deviations(labels, start, nodes, edges, suffixes, parents=None):
    """The parts into which the other labelings with a prefix fall, and their bounds.

    The labels of a position are ordered by the best score, under the first of J scores,
    of a labeling that has them there. Part t consists of the labelings that agree with
    `labels` before position t and have a label after labels[t] in that order at t.
    If labels[start + 1:] is best given the rest, the parts t >= start hold all
    labelings that agree with `labels` before `start` and have no label before
    labels[start] there, except `labels` itself.

    Parameters
    ----------
    labels : ndarray of shape (T,), intc
    start : int
    nodes, suffixes : ndarray of shape (J, T, K), float64
        Node potentials of J scores, and the `suffix_scores` of each.
    edges : ndarray of shape (J, K, K) or (J, T, K, K), float64, or None
        Transitions of the J scores.
    parents : ndarray of shape (T,), intp, or None
        Of a forest, -1 <= parents[t] < t; not checked. None for a chain.

    Returns
    -------
    following : ndarray of shape (T,), intc
        The first label of part t at position t; -1 if part t is empty.
    highest : ndarray of shape (J, T), float64
        The maximum of each score over part t; -inf if it is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.structures._constrained import deviations
    >>> from sklearn_structsvm.structures._k_best import suffix_scores
    >>> nodes = np.array([[[0.0, 1.0], [2.0, 0.0]]])
    >>> suffixes = suffix_scores(nodes[0], None)[np.newaxis]
    >>> deviations(np.array([1, 0], dtype=np.intc), 0, nodes, None, suffixes)
    (array([0, 1], dtype=int32), array([[2., 1.]]))
    """
    cdef const int[::1] y = labels
    cdef const double[:, :, ::1] theta = nodes, suffix = suffixes
    cdef const double[:, :, :, :] transition = _of_each(edges, nodes.shape)
    cdef const Py_ssize_t[::1] above = parents
    cdef Py_ssize_t J = theta.shape[0], T = theta.shape[1], K = theta.shape[2]
    cdef Py_ssize_t j, t, c, p, own, first = start
    cdef double value, score
    cdef const double* row
    labels_found, bounds = np.full(T, -1, dtype=np.intc), np.zeros((J, T))
    cdef int[::1] following = labels_found
    cdef double[:, ::1] highest = bounds
    # Scores of the positions before t, and of the best pending trees: their roots come
    # after t, the parents of the roots before t. A chain has none.
    cdef double[::1] fixed = np.zeros(J)
    # Which labels are left at position t: those after its own in the first score's order.
    cdef unsigned char[::1] left = np.empty(K, dtype=np.uint8)
    with nogil:
        # First, highest[j, t] is what changes in the scores of pending trees at t.
        for t in range(first + 1, T if above is not None else 0):
            p = above[t]
            for j in range(J if p < t - 1 else 0):
                row = NULL
                if p >= 0 and transition is not None:
                    row = &transition[j, t, y[p], 0]
                value = best_score(K, row, &suffix[j, t, 0])
                highest[j, p + 1] += value
                highest[j, t] -= value
        for t in range(T):
            own = y[t]
            p = t - 1 if above is None else above[t]
            for j in range(J):
                fixed[j] += highest[j, t]
                highest[j, t] = -INFINITY
            for j in range(J if t >= first else 0):
                row = NULL
                if p >= 0 and transition is not None:
                    row = &transition[j, t, y[p], 0]
                if j == 0:
                    score = suffix[0, t, own] + (0.0 if row == NULL else row[own])
                for c in range(K):
                    value = suffix[j, t, c] + (0.0 if row == NULL else row[c])
                    if j == 0:
                        left[c] = value < score or (value == score and c > own)
                    if left[c] and value > highest[j, t]:
                        highest[j, t] = value
                        if j == 0:
                            following[t] = <int> c
                highest[j, t] += fixed[j]
            for j in range(J):
                fixed[j] += theta[j, t, own]
                if p >= 0 and transition is not None:
                    fixed[j] += transition[j, t, y[p], own]
    return labels_found, bounds
