"""The multiplier that best bounds the largest h g of all labelings of a forest.

With K(λ) the maximum of h + λ g, h g <= K(λ)² / (4 λ) for all labelings (Lemma 5 of
Choi, Meshi and Srebro 2016). The same holds for the labelings that a partial labeling is
part of, with the maximum over these. Messages from the leaves to the roots give K(λ);
messages back give the maxima for all partial labelings.
"""
import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy

from sklearn_structsvm.structures._forest cimport (
    Forest, costs_of, edge_of, fill, highest_of, parent_of, true_edge, true_label)


cdef extern from "_utils/_vector.h" nogil:
    void vector_add_max_plus(
        Py_ssize_t k, const double* previous, const double* transition,
        double* current) noexcept


# The search ends once the bound is tight up to the share LOOSENESS / n (the more nodes,
# the more a tight bound gains), or after this many steps.
cdef double LOOSENESS = 0.5
cdef Py_ssize_t MAX_BOUND_STEPS = 12

cdef double epsilon = np.finfo(float).eps


cdef Messages messages_at(const Forest* forest, double* start) noexcept nogil:
    cdef Py_ssize_t size = forest.n * forest.k
    cdef Messages result
    result.rest = start
    result.node = start + size
    result.below = start + 2 * size
    result.message = start + 3 * size
    return result


cdef void best_labeling(
        const Forest* forest, double lam, double one, Messages m, int* labels,
        Point* point) noexcept nogil:
    """Max-sum from the leaves to the roots: the maximum of h + λ g and its place."""
    cdef Py_ssize_t n = forest.n, k = forest.k, v, c, parent, best = 0
    cdef double truth, highest, score
    cdef const double* cost
    cdef const double* theta
    cdef const double* below
    cdef const double* edge
    point.value = one
    for v in range(n):
        theta = forest.theta + v * k
        cost = costs_of(forest, v)
        truth = theta[true_label(forest, v)]
        for c in range(k):
            m.node[v * k + c] = theta[c] - truth + lam * cost[c]
    memcpy(m.below, m.node, n * k * sizeof(double))
    for v in range(n):
        parent = parent_of(forest, v)
        if parent == n:
            m.message[v * k] = highest_of(k, m.below + v * k, &best)
            labels[v] = <int> best
            point.value += m.message[v * k]
            continue
        fill(k, -true_edge(forest, v, parent), m.message + v * k)
        vector_add_max_plus(
            k, m.below + v * k, edge_of(forest, v), m.message + v * k)
        for c in range(k):
            m.below[parent * k + c] += m.message[v * k + c]
    for v in range(n - 1, -1, -1):
        parent = parent_of(forest, v)
        if parent < n:
            below = m.below + v * k
            edge = edge_of(forest, v)
            best = 0
            highest = below[0] + edge[labels[parent]]
            for c in range(1, k):
                score = below[c] + edge[c * k + labels[parent]]
                if score > highest:
                    highest = score
                    best = c
            labels[v] = <int> best
    measure(forest, one, labels, point)


cdef void measure(
        const Forest* forest, double one, const int* labels, Point* at) noexcept nogil:
    """The h and g of a labeling."""
    cdef Py_ssize_t n = forest.n, k = forest.k, v, parent
    cdef double h = one, g = 0.0
    for v in range(n - 1, -1, -1):
        parent = parent_of(forest, v)
        if parent < n:
            h += (edge_of(forest, v)[labels[v] * k + labels[parent]]
                  - true_edge(forest, v, parent))
        h += (forest.theta[v * k + labels[v]]
              - forest.theta[v * k + true_label(forest, v)])
        g += costs_of(forest, v)[labels[v]]
    at.h = h
    at.g = g
    at.incumbent = max(at.incumbent, h * g if h > 0.0 else 0.0)


cdef void mix(
        const Forest* forest, double excess, const int* other, int* own) noexcept nogil:
    """Take labels of another labeling, from the roots on, to reduce the loss by `excess`.

    If both maximize h + λ g, so does a mixture that takes all labels of a connected part
    in which they differ from one of them. At most the last part is cut.
    """
    cdef Py_ssize_t v, parent
    for v in range(forest.n - 1, -1, -1):
        parent = parent_of(forest, v)
        if excess > 0.0 and (parent == forest.n or own[parent] == other[parent]):
            excess -= costs_of(forest, v)[own[v]] - costs_of(forest, v)[other[v]]
            own[v] = other[v]


cdef void bound_the_rest(
        const Forest* forest, double value, Messages m, double* buffer) noexcept nogil:
    """From the roots to the leaves: rest[v][c] is an upper bound on the score of
    everything except node v, given that v has label c. The buffer has
    room for k (k + 1)."""
    cdef Py_ssize_t n = forest.n, k = forest.k, v, c, p, parent
    cdef double* rest
    cdef double* flipped = buffer + k
    cdef const double* edge
    cdef const double* last = NULL
    for v in range(n - 1, -1, -1):
        rest = m.rest + v * k
        parent = parent_of(forest, v)
        if parent == n:
            fill(k, value - m.message[v * k], rest)
        else:
            for c in range(k):
                buffer[c] = (m.rest[parent * k + c] + m.node[parent * k + c]
                             - m.message[v * k + c])
            edge = edge_of(forest, v)
            if edge != last:
                last = edge
                for p in range(k):
                    for c in range(k):
                        flipped[c * k + p] = edge[p * k + c]
            fill(k, -true_edge(forest, v, parent), rest)
            vector_add_max_plus(k, buffer, flipped, rest)
        for c in range(k):
            rest[c] += m.below[v * k + c] - m.node[v * k + c]


cdef double rounding(const Forest* forest, double lam, double one) noexcept nogil:
    """An upper bound on the rounding error of any h + λ g here."""
    cdef Py_ssize_t n = forest.n, k = forest.k, v, c
    cdef Py_ssize_t n_edges = 0 if forest.edge == NULL else (
        (n if forest.edge_stride else 1) * k * k)
    cdef double size = fabs(one), theta, cost, edge = 0.0
    for v in range(n):
        theta = cost = 0.0
        for c in range(k):
            theta = max(theta, fabs(forest.theta[v * k + c]))
            cost = max(cost, costs_of(forest, v)[c])
        size += 2.0 * theta + lam * cost
    for c in range(n_edges):
        edge = max(edge, fabs(forest.edge[c]))
    return (16 + 8 * n) * epsilon * (size + 2.0 * n * edge)


cdef double find_multiplier(
        const Forest* forest, double one, double largest, Messages m, int* labels,
        Point* point) noexcept nogil:
    """A λ with a tight bound K² / (4 λ) on all h g; `m` has the messages for it.

    If h > λ g at the maximum K of h + λ g, the bound falls as λ grows, at most until λ
    reaches that h / g. If the maximum is still there, the bound is h g itself. Between
    two maxima, one on each side, the search tries the λ for which both are as good. If no
    labeling is better there, no other λ is, but mixtures of the two have other losses.
    `labels` has room for three labelings.
    """
    cdef double low = 0.0, high = INFINITY
    # Usually near one / largest; larger if few of many nodes are wrong.
    cdef double lam = (fabs(one) if one != 0.0 else 1.0) * sqrt(sqrt(forest.n)) / largest
    cdef double h, g, h_low = 0.0, g_low = -1.0, h_high = 0.0, g_high = -1.0
    cdef double bound, best_bound = INFINITY, best = 0.0, last = 0.0
    cdef bint between = False
    cdef Point mixture
    cdef int* low_labels = labels + forest.n
    cdef int* high_labels = low_labels + forest.n
    cdef Py_ssize_t _
    point.incumbent = 0.0
    for _ in range(MAX_BOUND_STEPS):
        last = lam
        best_labeling(forest, lam, one, m, labels, point)
        h = point.h
        g = point.g
        bound = max(point.value, 0.0) * max(point.value, 0.0) / (4.0 * lam)
        if bound < best_bound:
            best_bound = bound
            best = lam
        if point.incumbent >= (1.0 - LOOSENESS / forest.n) * best_bound or (
                between and (g == g_low or g == g_high)):
            break
        if h > lam * g:
            low = lam
            h_low = h
            g_low = g
            memcpy(low_labels, labels, forest.n * sizeof(int))
        else:
            high = lam
            h_high = h
            g_high = g
            memcpy(high_labels, labels, forest.n * sizeof(int))
        between = low > 0.0 and high < INFINITY
        if between:
            lam = (h_low - h_high) / (g_high - g_low)
        elif g > 0.0 and h > 0.0:
            lam = h / g
        else:
            lam = 4.0 * lam if low > 0.0 else lam / 4.0
        if not low < lam < high:
            break
    if best != last:
        best_labeling(forest, best, one, m, labels, point)
    if between:
        mixture = point[0]
        mix(forest, g_high - 0.5 * point.value / best, low_labels, high_labels)
        measure(forest, one, high_labels, &mixture)
        if mixture.h * mixture.g > point.h * point.g:
            point[0] = mixture
            memcpy(labels, high_labels, forest.n * sizeof(int))
    return best
