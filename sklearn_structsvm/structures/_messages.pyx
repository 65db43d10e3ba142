"""Labels of graphs with cycles and more than two labels: messages, and expansion.

*Sequential tree-reweighted message passing* (Kolmogorov, 2006): sweeps over the nodes,
forward and backward, move scores along the edges so that an upper bound on the best score
never rises, and the labels that are read off usually get better. The best of these need
not be the best labeling, but the bound always holds.

*Expansion* (Boykov, Veksler and Zabih, 2001): one round of messages gives a bound and
labels to start from. Then, for one label after another, roof duality finds the best set
of nodes to change to it, until no change raises the score. Nodes that it leaves
undecided keep their labels, so the labeling never gets worse.
"""
from sklearn_structsvm._utils import tolerances

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from sklearn_structsvm.structures._chain_blocks cimport add
from sklearn_structsvm.structures._qpbo cimport roof


cdef extern from "_utils/_vector.h" nogil:
    void vector_add_max_plus(
        Py_ssize_t k, const double* previous, const double* transition,
        double* current) noexcept


# All labels are expanded at most this often.
cdef enum:
    MAX_EXPANSIONS = 100

# Message passing stops once a round lowers the bound by no more than this share of its
# distance to the best labeling found.
cdef double LEAST_PROGRESS = 1e-3

cdef double VALUE_ROUNDING = tolerances.VALUE_ROUNDING


cdef Py_ssize_t message_scratch_size(
        Py_ssize_t n_nodes, Py_ssize_t n_edges, Py_ssize_t k, Py_ssize_t n_weights
        ) noexcept nogil:
    cdef Py_ssize_t tables = 0 if n_weights == 1 else 2 * n_edges * k * k
    return 2 * k + n_edges * k + n_nodes + tables


cdef void pass_potts(
        Py_ssize_t k, const double* scores, double gain, double* message
        ) noexcept nogil:
    """message[d] = max_c scores[c] + gain [c = d]"""
    cdef Py_ssize_t c, best = 0
    cdef double second = -INFINITY
    for c in range(1, k):
        if scores[c] > scores[best]:
            second = scores[best]
            best = c
        else:
            second = max(second, scores[c])
    for c in range(k):
        message[c] = max(
            scores[c] + gain, second if c == best else scores[best])


cdef double lower_by_highest(Py_ssize_t k, double* x) noexcept nogil:
    """Subtract the largest entry from all, and return it."""
    cdef Py_ssize_t c
    cdef double highest = x[0]
    for c in range(1, k):
        highest = max(highest, x[c])
    for c in range(k):
        x[c] -= highest
    return highest


cdef double decode_scored(
        const ScoredGraph* scored, bint expands, double* scratch, double* cut,
        int* labels) noexcept nogil:
    """Good labels, and an upper bound of the best score.

    `scratch` has `message_scratch_size` doubles. `cut`, which only expansion needs, has
    three doubles per node, one per edge, and `roof_scratch_size` more.
    """
    cdef Py_ssize_t k = scored.k, T = scored.graph.n_labels, m = scored.graph.n_pairs, v
    cdef double* buffer = scratch
    cdef double* messages = buffer + 2 * k
    cdef int* found = <int*> (messages + m * k)
    cdef double* tables = messages + m * k + T
    cdef double bound, best = -INFINITY, score, least = INFINITY, before, away
    cdef int c, d
    memset(messages, 0, m * k * sizeof(double))
    if scored.n_weights > 1:
        # For each edge its table, then the transpose.
        for v in range(m):
            for c in range(k):
                for d in range(k):
                    score = pair_score(scored, v, c, d)
                    tables[2 * v * k * k + c * k + d] = score
                    tables[(2 * v + 1) * k * k + d * k + c] = score
    for _ in range(1 if expands else MAX_ROUNDS):
        _sweep(scored, True, tables, buffer, messages, found)
        score = total_score(scored, found)
        if score > best:
            best = score
            memcpy(labels, found, T * sizeof(int))
        before = least
        bound = _sweep(scored, False, tables, buffer, messages, found)
        least = min(least, bound)
        score = total_score(scored, found)
        if score > best:
            best = score
            memcpy(labels, found, T * sizeof(int))
        away = least - best
        if away <= VALUE_ROUNDING * fabs(best) or before - least <= LEAST_PROGRESS * away:
            break
    if expands:
        _expand(scored, cut, labels)
    _flip(scored, buffer, labels)
    return least


cdef void _expand(
        const ScoredGraph* scored, double* cut, int* labels) noexcept nogil:
    """Label by label, change a set of nodes to it that together raise the score."""
    cdef Py_ssize_t k = scored.k, T = scored.graph.n_labels, m = scored.graph.n_pairs
    cdef Py_ssize_t v, e
    cdef const double* table = scored.nodes
    cdef double* q = cut
    cdef double* mu = q + T
    cdef int* found = <int*> (mu + T)
    cdef double* J = mu + 2 * T
    cdef const int* ends
    cdef int a, b, c, unchanged = 0
    cdef double none, first, second, score = total_score(scored, labels), other
    cdef double least = VALUE_ROUNDING * fabs(score)
    for _ in range(MAX_EXPANSIONS):
        for c in range(<int> k):
            for v in range(T):
                q[v] = table[v * k + c] - table[v * k + labels[v]]
            for e in range(m):
                ends = scored.ends + 2 * e
                a, b = labels[ends[0]], labels[ends[1]]
                none = pair_score(scored, e, a, b)
                first = pair_score(scored, e, c, b) - none
                second = pair_score(scored, e, a, c) - none
                q[ends[0]] += first
                q[ends[1]] += second
                J[e] = pair_score(scored, e, c, c) - none - first - second
            roof(&scored.graph, q, J, J + m, mu)
            for v in range(T):
                found[v] = c if mu[v] == 1.0 else labels[v]
            other = total_score(scored, found)
            unchanged += 1
            if other > score + least:
                score, unchanged = other, 0
                memcpy(labels, found, T * sizeof(int))
            if unchanged == k:
                return


cdef double total_score(
        const ScoredGraph* scored, const int* labels) noexcept nogil:
    """The score of a labeling by the table of the nodes."""
    cdef const double* table = scored.nodes
    cdef const int* ends
    cdef double total = 0.0
    cdef Py_ssize_t v, e
    for v in range(scored.graph.n_labels):
        total += table[v * scored.k + labels[v]]
    for e in range(scored.graph.n_pairs):
        ends = scored.ends + 2 * e
        total += pair_score(scored, e, labels[ends[0]], labels[ends[1]])
    return total


cdef double _sweep(
        const ScoredGraph* scored, bint forth, const double* tables,
        double* buffer, double* messages, int* labels) noexcept nogil:
    """Send messages from all nodes to those after them, in forward or backward order.

    Each edge holds one message, which points to the node last written to. Returns the
    bound, which is valid after a sweep in each direction.
    """
    cdef Py_ssize_t k = scored.k, T = scored.graph.n_labels, at, v, u, e, slot, c
    cdef const double* table = scored.nodes
    cdef const int* first = scored.graph.first
    cdef const int* other = scored.graph.other
    cdef const int* pair = scored.graph.pair
    cdef double* scores = buffer + k
    cdef double* message
    cdef double bound = 0.0, share
    cdef int before, after
    for at in range(T):
        v = at if forth else T - 1 - at
        memcpy(buffer, table + v * k, k * sizeof(double))
        # A label is chosen given the labels of nodes before, and messages from the rest.
        memcpy(scores, table + v * k, k * sizeof(double))
        before = after = 0
        for slot in range(first[v], first[v + 1]):
            e, u = pair[slot], other[slot]
            add(k, 1.0, messages + e * k, buffer)
            if (u > v) == forth:
                after += 1
                add(k, 1.0, messages + e * k, scores)
            else:
                before += 1
                for c in range(k):
                    scores[c] += link(scored, e, v, <int> c, labels[u])
        labels[v] = 0
        for c in range(1, k):
            if scores[c] > scores[labels[v]]:
                labels[v] = <int> c
        bound += lower_by_highest(k, buffer)
        share = 1.0 / max(max(before, after), 1)
        for slot in range(first[v], first[v + 1]):
            e, u = pair[slot], other[slot]
            if (u > v) != forth:
                continue
            message = messages + e * k
            for c in range(k):
                scores[c] = share * buffer[c] - message[c]
            if scored.n_weights == 1:
                pass_potts(k, scores, scored.edges[e], message)
            else:
                memset(message, 0, k * sizeof(double))
                c = 2 * e + (scored.ends[2 * e] != v)
                vector_add_max_plus(k, scores, tables + c * k * k, message)
            bound += lower_by_highest(k, message)
    return bound


cdef void _flip(
        const ScoredGraph* scored, double* scores, int* labels) noexcept nogil:
    """Change single labels as long as that raises the score."""
    cdef Py_ssize_t k = scored.k, v, slot, c, best
    cdef const double* table = scored.nodes
    cdef const int* first = scored.graph.first
    cdef const int* other = scored.graph.other
    cdef const int* pair = scored.graph.pair
    cdef double least = VALUE_ROUNDING * fabs(total_score(scored, labels))
    cdef bint has_gained = True
    while has_gained:
        has_gained = False
        for v in range(scored.graph.n_labels):
            memcpy(scores, table + v * k, k * sizeof(double))
            for slot in range(first[v], first[v + 1]):
                for c in range(k):
                    scores[c] += link(
                        scored, pair[slot], v, <int> c, labels[other[slot]])
            best = labels[v]
            for c in range(k):
                if scores[c] > scores[best]:
                    best = c
            if scores[best] > scores[labels[v]] + least:
                labels[v] = <int> best
                has_gained = True
