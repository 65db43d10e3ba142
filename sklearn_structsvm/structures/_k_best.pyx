"""Decodings of one chain or forest beyond its best labeling: k best, max-marginals.

A chain of T positions over K labels scores a labeling y by

    f(y) = Σ_t theta[t, y_t] + Σ_{t >= 1} transition[y_{t-1}, y_t],

and everything here builds on its suffix scores S[t, c]: the best score that positions
t, t + 1, ... can reach together when y_t = c. Once a prefix is fixed, S alone tells
how good its best completion is, and which label comes next.

Without transitions the positions are independent: a multilabel problem with K = 2,
a multiclass problem with T = 1. All potentials must be finite.

In a forest, y_parent(t) replaces y_{t-1} and the suffix of t is the tree below it; a
chain is the path with parent(t) = t - 1. Parents come before their children, so the rest
after a prefix consists of trees whose best scores add up. Each position may have its own
transitions.
"""
from operator import index

import numpy as np

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from sklearn_structsvm._utils._memory cimport no_memory


cdef struct Links:
    # T positions over K labels. `parents` is NULL for a chain. `transition` has the
    # parent's label first, and is NULL for none. The transitions of the next position are
    # `stride` further on; 0 if all positions share them.
    Py_ssize_t T
    Py_ssize_t K
    const Py_ssize_t* parents
    const double* transition
    Py_ssize_t stride


cdef inline Py_ssize_t parent_of(const Links* links, Py_ssize_t t) noexcept nogil:
    return t - 1 if links.parents == NULL else links.parents[t]


cdef inline const double* table_of(const Links* links, Py_ssize_t t) noexcept nogil:
    """The transitions that lead to position t; NULL for none."""
    if links.transition == NULL:
        return NULL
    return links.transition + t * links.stride


cdef inline const double* row_of(
        const Links* links, Py_ssize_t t, const int* labels) noexcept nogil:
    """The transitions from the label of t's parent; NULL for none."""
    cdef Py_ssize_t parent = parent_of(links, t)
    if parent < 0 or links.transition == NULL:
        return NULL
    return table_of(links, t) + labels[parent] * links.K


cdef double highest_of(Py_ssize_t K, const double* scores) noexcept nogil:
    cdef Py_ssize_t c
    cdef double highest = scores[0]
    for c in range(1, K):
        highest = scores[c] if scores[c] > highest else highest
    return highest


cdef void max_plus(
        Py_ssize_t K, const double* scores, const double* matrix,
        double* out) noexcept nogil:
    """out[c] = max_p scores[p] + matrix[p, c]; without a matrix, max_p scores[p]."""
    cdef Py_ssize_t p, c
    cdef double score, value
    cdef const double* row
    if matrix == NULL:
        score = highest_of(K, scores)
        for c in range(K):
            out[c] = score
        return
    for c in range(K):
        out[c] = scores[0] + matrix[c]
    for p in range(1, K):
        score = scores[p]
        row = matrix + p * K
        for c in range(K):
            value = score + row[c]
            out[c] = value if value > out[c] else out[c]


cdef void fill_suffixes(
        const Links* backward, const double* theta, double* suffix, double* message
        ) noexcept nogil:
    """Fill in S (see the module) by transposed transitions; `message` has room for K."""
    cdef Py_ssize_t K = backward.K, t, c, parent
    memcpy(suffix, theta, backward.T * K * sizeof(double))
    for t in range(backward.T - 1, 0, -1):
        parent = parent_of(backward, t)
        if parent < 0:
            continue
        max_plus(K, suffix + t * K, table_of(backward, t), message)
        for c in range(K):
            suffix[parent * K + c] += message[c]


cdef Py_ssize_t next_label(
        Py_ssize_t K, const double* row, const double* suffix, double score,
        Py_ssize_t label, double* found) noexcept nogil:
    """The label after (score, label) in the order of a position, or -1.

    The order is by decreasing row[c] + suffix[c], ties by increasing c; `row` has the
    transitions from the previous label, or is NULL. `found` is the label's score.
    """
    cdef Py_ssize_t c, best = -1
    cdef double value, highest = -INFINITY
    for c in range(K):
        value = suffix[c] if row == NULL else row[c] + suffix[c]
        if value > highest and (value < score or (value == score and c > label)):
            highest = value
            best = c
    found[0] = highest
    return best


cdef void complete_from(
        const Links* links, const double* suffix, Py_ssize_t start, int* labels
        ) noexcept nogil:
    """Set the best labels from position `start` on, given those before it."""
    cdef Py_ssize_t K = links.K, t
    cdef double score
    for t in range(start, links.T):
        labels[t] = <int> next_label(
            K, row_of(links, t, labels), suffix + t * K, INFINITY, -1, &score)


cdef struct Candidate:
    # The best labeling that has the labels of `parent` before `position` and `label`
    # there. It also represents those that have a label there which is later in the order.
    double score
    Py_ssize_t parent
    Py_ssize_t position
    Py_ssize_t label


cdef bint before(const Candidate* a, const Candidate* b) noexcept nogil:
    """Whether a comes before b in a total order, which also breaks ties."""
    if a.score != b.score:
        return a.score > b.score
    if a.parent != b.parent:
        return a.parent < b.parent
    return a.position > b.position


cdef void push(Candidate* heap, Py_ssize_t size, Candidate item) noexcept nogil:
    cdef Py_ssize_t at = size, up
    while at > 0:
        up = (at - 1) // 2
        if not before(&item, &heap[up]):
            break
        heap[at] = heap[up]
        at = up
    heap[at] = item


cdef Candidate pop(Candidate* heap, Py_ssize_t size) noexcept nogil:
    cdef Candidate top = heap[0], item = heap[size - 1]
    cdef Py_ssize_t at = 0, down = 1
    size -= 1
    while down < size:
        if down + 1 < size and before(&heap[down + 1], &heap[down]):
            down += 1
        if not before(&heap[down], &item):
            break
        heap[at] = heap[down]
        at = down
        down = 2 * at + 1
    heap[at] = item
    return top


cdef void list_labelings(
        const Links* links, Py_ssize_t m, const double* suffix, Candidate* heap,
        int* labels, double* scores) noexcept nogil:
    """The m <= K**T best labelings; `heap` has room for 1 + m * T candidates."""
    cdef Py_ssize_t T = links.T, K = links.K, i, t, own, size = 1
    cdef double score, found
    cdef const double* row
    cdef int* current
    cdef Candidate taken, child
    taken.parent = taken.position = 0
    taken.label = next_label(K, NULL, suffix, INFINITY, -1, &taken.score)
    for t in range(1, T):
        if parent_of(links, t) < 0:
            taken.score += highest_of(K, suffix + t * K)
    heap[0] = taken
    for i in range(m):
        taken = pop(heap, size)
        size -= 1
        current = labels + i * T
        memcpy(current, labels + taken.parent * T, taken.position * sizeof(int))
        current[taken.position] = <int> taken.label
        complete_from(links, suffix, taken.position + 1, current)
        scores[i] = taken.score
        if i == m - 1:
            return
        for t in range(taken.position, T):
            row = row_of(links, t, current)
            own = current[t]
            score = suffix[t * K + own] + (0.0 if row == NULL else row[own])
            child.label = next_label(K, row, suffix + t * K, score, own, &found)
            if child.label >= 0:
                # The drop is >= 0 in floating point too, so that scores never rise.
                child.score = taken.score - (score - found)
                child.parent = i
                child.position = t
                push(heap, size, child)
                size += 1


def check_potentials(theta, transition):
    """Potentials as contiguous float64 arrays, copied only if needed.

    ValueError if theta is not of shape (T, K) with T, K >= 1, transition neither
    None nor of shape (K, K) or (T, K, K), or a score or a sum of them not finite.
    """
    theta = np.require(theta, np.float64, "CA")
    if theta.ndim != 2 or 0 in theta.shape:
        raise ValueError(
            f"theta must have shape (T, K) with T, K >= 1; got {theta.shape}.")
    if transition is not None:
        transition = np.require(transition, np.float64, "CA")
        T, K = theta.shape
        if transition.shape not in ((K, K), (T, K, K)):
            raise ValueError(
                f"transition must have shape ({K}, {K}), as theta has {K} labels, or "
                f"({T}, {K}, {K}); got {transition.shape}.")
    # Sums of potentials must not overflow either: infinite scores cannot be ranked.
    with np.errstate(over="ignore"):
        size = np.abs(theta).sum()
        if transition is not None:
            size += len(theta) * np.abs(transition).max()
    if not np.isfinite(size):
        raise ValueError("theta and transition must be finite, their sums as well.")
    return theta, transition


def suffix_scores(theta, transition, parents=None):
    """Best scores of the suffixes of a chain, by their first label.

    S[t, c] = max over y_t, ..., y_{T-1} with y_t = c of
    Σ_{s >= t} theta[s, y_s] + Σ_{s > t} transition[y_{s-1}, y_s], in O(T K²), or
    O(T K) without transitions. In a forest, the sums are over t and all nodes below it.

    Parameters
    ----------
    theta : array-like of shape (T, K)
        Scores of the labels, position by position; finite.
    transition : array-like of shape (K, K) or (T, K, K), or None
        Scores of pairs of labels, the previous one first; one matrix per position if
        they differ.
    parents : ndarray of shape (T,), intp, or None
        Of a forest, -1 <= parents[t] < t; not checked. None for a chain.

    Returns
    -------
    ndarray of shape (T, K), float64

    Raises
    ------
    ValueError
        Where a shape is wrong or a score not finite.

    Examples
    --------
    >>> from sklearn_structsvm.structures._k_best import suffix_scores
    >>> suffix_scores([[0.0, 1.0], [2.0, 0.0]], [[0.0, 0.0], [-3.0, 1.0]])
    array([[2., 2.],
           [2., 0.]])
    """
    theta, transition = check_potentials(theta, transition)
    cdef const double[:, ::1] nodes = theta
    cdef const double[::1] edges = _flat(_transposed(transition))
    cdef const Py_ssize_t[::1] above = parents
    cdef Links backward = links_of(theta, transition, edges, above)
    result, room = np.empty_like(theta), np.empty(backward.K)
    cdef double[:, ::1] suffix = result
    cdef double[::1] message = room
    with nogil:
        fill_suffixes(&backward, &nodes[0, 0], &suffix[0, 0], &message[0])
    return result


def k_best(theta, transition, k, parents=None):
    """The k highest-scoring labelings of a chain or forest, best first.

    The m = min(k, K**T) distinct labelings y of largest

        f(y) = Σ_t theta[t, y_t] + Σ_{t >= 1} transition[y_{t-1}, y_t].

    Labelings are partitioned following Lawler: from each listed labeling, one candidate
    branches off at each position, with the next best label there and the best
    completion after it. Time O(T K² + k T K) and O(k log(k T)) per position for
    the heap, memory O(T K + k T).

    Parameters
    ----------
    theta : array-like of shape (T, K)
        Scores of the labels, position by position; finite.
    transition : array-like of shape (K, K) or (T, K, K), or None
        Scores of pairs of labels, the previous one first; one matrix per position if
        they differ; None if there are none.
    k : int
        How many, at least 1.
    parents : ndarray of shape (T,), intp, or None
        Of a forest, -1 <= parents[t] < t; not checked. None for a chain.

    Returns
    -------
    labels : ndarray of shape (m, T), dtype intc
    scores : ndarray of shape (m,), float64
        Their f, in non-increasing order. The order of ties depends on the potentials
        alone, not on k.

    Raises
    ------
    ValueError
        Where a shape is wrong or a score not finite, or k < 1.

    References
    ----------
    Lawler, E. L. (1972). A procedure for computing the k best solutions to discrete
    optimization problems. Management Science 18(7), 401-405.

    Examples
    --------
    >>> from sklearn_structsvm.structures._k_best import k_best
    >>> labels, scores = k_best([[0.0, 1.0], [2.0, 0.0]], [[0.0, 0.0], [-3.0, 1.5]], 3)
    >>> labels.tolist()
    [[1, 1], [0, 0], [1, 0]]
    >>> scores
    array([2.5, 2. , 0. ])
    """
    k = index(k)
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k!r}.")
    theta, transition = check_potentials(theta, transition)
    suffixes = suffix_scores(theta, transition, parents)
    cdef const double[:, ::1] suffix = suffixes
    cdef const double[::1] edges = _flat(transition)
    cdef const Py_ssize_t[::1] above = parents
    cdef Links links = links_of(theta, transition, edges, above)
    cdef Py_ssize_t T = links.T, K = links.K
    # K ** bit_length(k) > k for K >= 2, so the huge number K ** T is not needed.
    cdef Py_ssize_t m = min(k, int(K) ** min(T, k.bit_length()))
    result, values = np.empty((m, T), dtype=np.intc), np.empty(m)
    cdef int[:, ::1] labels = result
    cdef double[::1] scores = values
    cdef Candidate* heap = <Candidate*> malloc((1 + m * T) * sizeof(Candidate))
    if heap == NULL:
        no_memory("so many labelings")
    with nogil:
        list_labelings(&links, m, &suffix[0, 0], heap, &labels[0, 0], &scores[0])
        free(heap)
    return result, values


def max_marginals(theta, transition, parents=None):
    """Best score of a labeling of a chain or forest, by the label of each position.

    M[t, c] = max over y with y_t = c of
    Σ_s theta[s, y_s] + Σ_{s >= 1} transition[y_{s-1}, y_s], by a forward and a
    backward max-plus pass in O(T K²). Each row's maximum is the score of the best
    labeling. The gap between the row's maximum and its second best entry tells how
    certain the label of that position is.

    Parameters
    ----------
    theta : array-like of shape (T, K)
        Scores of the labels, position by position; finite.
    transition : array-like of shape (K, K) or (T, K, K), or None
        Scores of pairs of labels, the previous one first; one matrix per position if
        they differ; None if there are none.
    parents : ndarray of shape (T,), intp, or None
        Of a forest, -1 <= parents[t] < t; not checked. None for a chain.

    Returns
    -------
    ndarray of shape (T, K), float64

    Raises
    ------
    ValueError
        Where a shape is wrong or a score not finite.

    Examples
    --------
    >>> from sklearn_structsvm.structures._k_best import max_marginals
    >>> max_marginals([[0.0, 1.0], [2.0, 0.0]], [[0.0, 0.0], [-3.0, 1.5]])
    array([[2. , 2.5],
           [2. , 2.5]])
    """
    theta, transition = check_potentials(theta, transition)
    cdef const double[::1] edges = _flat(transition)
    cdef const double[::1] turned = _flat(_transposed(transition))
    cdef const Py_ssize_t[::1] above = parents
    cdef Links links = links_of(theta, transition, edges, above)
    cdef Links backward = links_of(theta, transition, turned, above)
    cdef Py_ssize_t T = links.T, K = links.K, t, c, parent
    # For each position and label, four best scores: of the position and all below it; of
    # the parent without this child and earlier ones; the message to the parent; and of
    # all outside of the position's subtree, to which the messages of its earlier children
    # are added later.
    result, behind = np.array(theta), np.empty_like(theta)
    messages, above_it = np.empty_like(theta), np.empty_like(theta)
    cdef double[:, ::1] suffix = result, later = behind
    cdef double[:, ::1] message = messages, outside = above_it
    cdef double[::1] rest = np.empty(K)
    cdef double trees = 0.0
    with nogil:
        for t in range(T - 1, -1, -1):
            parent = parent_of(&links, t)
            if parent < 0:
                later[t, 0] = trees
                trees += highest_of(K, &suffix[t, 0])
                continue
            max_plus(K, &suffix[t, 0], table_of(&backward, t), &message[t, 0])
            for c in range(K):
                later[t, c] = suffix[parent, c]
                suffix[parent, c] += message[t, c]
        trees = 0.0
        for t in range(T):
            parent = parent_of(&links, t)
            if parent < 0:
                for c in range(K):
                    outside[t, c] = trees + later[t, 0]
                trees += highest_of(K, &suffix[t, 0])
            else:
                for c in range(K):
                    rest[c] = outside[parent, c] + later[t, c]
                    outside[parent, c] += message[t, c]
                max_plus(K, &rest[0], table_of(&links, t), &outside[t, 0])
            for c in range(K):
                suffix[t, c] += outside[t, c]
    return result


def complete(labels, start, suffix, transition, parents=None):
    """Set labels[start:] to the best completion of labels[:start], in place.

    Parameters
    ----------
    labels : ndarray of shape (T,), intc
        Label indices in [0, K) before `start`.
    start : int
    suffix : ndarray of shape (T, K), float64
        The result of `suffix_scores`.
    transition : ndarray of shape (K, K) or (T, K, K), float64, or None
    parents : ndarray of shape (T,), intp, or None
        Same as for `suffix_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.structures._k_best import complete, suffix_scores
    >>> labels = np.zeros(2, dtype=np.intc)
    >>> complete(labels, 0, suffix_scores([[0.0, 1.0], [2.0, 0.0]], None), None)
    >>> labels
    array([1, 0], dtype=int32)
    """
    cdef int[::1] y = labels
    cdef const double[:, ::1] table = suffix
    cdef const double[::1] edges = _flat(transition)
    cdef const Py_ssize_t[::1] above = parents
    cdef Links links = links_of(suffix, transition, edges, above)
    cdef Py_ssize_t first = start
    with nogil:
        complete_from(&links, &table[0, 0], first, &y[0])


cdef Links links_of(
        theta, transition, const double[::1] flat, const Py_ssize_t[::1] parents):
    """The links from position to position; the arrays must outlive them."""
    cdef Links links
    links.T, links.K = theta.shape
    links.parents = links.transition = NULL
    if parents is not None:
        links.parents = &parents[0]
    if flat is not None:
        links.transition = &flat[0]
    links.stride = 0 if transition is None or transition.ndim == 2 else links.K * links.K
    return links


def _flat(transition):
    return None if transition is None else transition.reshape(-1)


def _transposed(transition):
    if transition is None:
        return None
    return np.ascontiguousarray(transition.swapaxes(-1, -2))
