"""Kernels of the constrained λ-oracle's branch and bound, see `constrained`.

Chains and suffix scores are those of `_decodings`.
"""
import numpy as np


def coordinate_path(theta, transition, costs, truth, labels):
    """The two coordinates of slack rescaling, summed up position by position.

    With f(y) = Σ_t theta[t, y_t] + Σ_{t >= 1} transition[y_{t-1}, y_t], these are
    h = 1 + f(labels) - f(truth) and g = Σ_t costs[t, labels_t]. Terms that the two
    labelings share are left out, so that h is 1 exactly at the truth.

    Parameters
    ----------
    theta : ndarray of shape (T, K), float64
    transition : ndarray of shape (K, K), float64, or None
    costs : ndarray of shape (T, K), float64
        Loss of each label at each position, zero at the true one.
    truth, labels : ndarray of shape (T,), intc
        Label indices in [0, K); they are not checked.

    Returns
    -------
    ndarray of shape (2, T + 1), float64
        Columns t hold the parts of h - 1 and of g that positions before t make up:
        of labelings that agree so far, the same numbers to the last bit.

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
    cdef const double[:, ::1] nodes = theta, losses = costs, edges = transition
    cdef const int[::1] y = truth, z = labels
    cdef Py_ssize_t T = nodes.shape[0], t
    cdef double margin = 0.0, loss = 0.0
    result = np.zeros((2, T + 1))
    cdef double[:, ::1] path = result
    with nogil:
        for t in range(T):
            if z[t] != y[t]:
                margin += nodes[t, z[t]] - nodes[t, y[t]]
                loss += losses[t, z[t]]
            if edges is not None and t > 0:
                if z[t] != y[t] or z[t - 1] != y[t - 1]:
                    margin += edges[z[t - 1], z[t]] - edges[y[t - 1], y[t]]
            path[0, t + 1] = margin
            path[1, t + 1] = loss
    return result


def deviations(labels, start, nodes, edges, suffixes):
    """The parts that the other labelings with a prefix fall into, and their bounds.

    Labels of a position are ordered by the best score, by the first of J scores, of a
    labeling that has them there. Part t consists of the labelings that agree with
    `labels` before position t and have a label after labels[t] in that order at t.
    With labels[start + 1:] best given the rest, the parts t >= start hold all
    labelings that agree with `labels` before `start` and have no label before
    labels[start] there, but for `labels` itself.

    Parameters
    ----------
    labels : ndarray of shape (T,), intc
    start : int
    nodes, suffixes : ndarray of shape (J, T, K), float64
        Node potentials of J scores, and what `suffix_scores` gave for each.
    edges : ndarray of shape (J, K, K), float64, or None
        Transitions of the J scores.

    Returns
    -------
    following : ndarray of shape (T,), intc
        The first label of part t at position t; -1 where part t is empty.
    highest : ndarray of shape (J, T), float64
        The maximum of each score over part t; -inf where it is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.structures._constrained import deviations
    >>> from sklearn_structsvm.structures._decodings import suffix_scores
    >>> nodes = np.array([[[0.0, 1.0], [2.0, 0.0]]])
    >>> suffixes = suffix_scores(nodes[0], None)[np.newaxis]
    >>> deviations(np.array([1, 0], dtype=np.intc), 0, nodes, None, suffixes)
    (array([0, 1], dtype=int32), array([[2., 1.]]))
    """
    cdef const int[::1] y = labels
    cdef const double[:, :, ::1] theta = nodes, transition = edges, suffix = suffixes
    cdef Py_ssize_t J = theta.shape[0], T = theta.shape[1], K = theta.shape[2]
    cdef Py_ssize_t j, t, c, own, first = start
    cdef double value, score
    cdef const double* row
    labels_found, bounds = np.full(T, -1, dtype=np.intc), np.full((J, T), -np.inf)
    cdef int[::1] following = labels_found
    cdef double[:, ::1] highest = bounds
    cdef double[::1] prefix = np.zeros(J)
    # Which labels are left at position t: those after its own in the first score.
    cdef unsigned char[::1] left = np.empty(K, dtype=np.uint8)
    with nogil:
        for t in range(T):
            own = y[t]
            for j in range(J if t >= first else 0):
                row = NULL
                if t > 0 and transition is not None:
                    row = &transition[j, y[t - 1], 0]
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
                highest[j, t] += prefix[j]
            for j in range(J):
                prefix[j] += theta[j, t, own]
                if t > 0 and transition is not None:
                    prefix[j] += transition[j, y[t - 1], own]
    return labels_found, bounds
