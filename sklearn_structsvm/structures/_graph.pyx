"""Oracle of graphs: labels of nodes, and scores of the pairs of labels along edges.

The weights are read as

    [emission (n_features, k)] [bias (k,)] [transition (n_edge_features, n_pairs)],

where each part may be absent. A table says which of the `n_pairs` weights of an edge
feature, if any, belongs to the labels (a, b) of an edge's two ends. So one oracle covers
Potts terms, symmetric tables and directed tables.

*Forests* are decoded by max-sum from the leaves to the roots. If all graphs are forests,
slack rescaling uses their Pareto fronts (see _pareto.pyx). *Other graphs of two labels*
are decoded over the local polytope by roof duality (see _qpbo.pyx), which is exact if
pairs attract. Its labelings may be half one label and half the other at a node, which a
third value, HALF, encodes. For an edge between two such nodes, a flag says whether their
labels are equal or different. The flags follow the labels of the nodes.

*Other graphs of more labels* are decoded by messages or by expansion (see
_messages.pyx). The labels found need not be the best labeling, but they come with an
upper bound on its score, which `upper_bound` returns.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from sklearn_structsvm._contract._oracle cimport CALL, LANES, Plane
from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm._utils._memory cimport no_memory
from sklearn_structsvm.structures._chain_blocks cimport add
from sklearn_structsvm.structures._edge_features cimport EdgeFeatureOracle
from sklearn_structsvm.structures._edge_sums cimport Table, table_fill
from sklearn_structsvm.structures._forest cimport Forest
from sklearn_structsvm.structures._messages cimport (
    EXPANSIONS, MAX_ROUNDS, ScoredGraph, decode_scored, link, message_scratch_size,
    pair_score, total_score)
from sklearn_structsvm.structures._pareto cimport forest_front, forest_labels
from sklearn_structsvm.structures._qpbo cimport (
    roof, roof_scratch_size, round_off, weight_of_both)
from sklearn_structsvm.structures._qpbo import adjacency


cdef extern from "_utils/_vector.h" nogil:
    void vector_add_max_plus(
        Py_ssize_t k, const double* previous, const double* transition,
        double* current) noexcept


# The label of a node that is half one label and half the other.
cdef enum:
    HALF = 2

# How the graphs of a block are decoded.
cdef enum:
    FOREST
    CUT
    MESSAGES
    EXPANSION

# How often a maximum flow looks at each arc.
cdef enum:
    FLOW_LOOKS = 6

# Graphs with more scores of pairs than this check for signals one by one: a chunk of
# smaller graphs takes some tenths of a second.
cdef enum:
    LARGE = 1000


cdef class GraphOracle(EdgeFeatureOracle):
    """Graphs over k labels.

    Parameters
    ----------
    features : Features
        Rows of all nodes of all graphs; no columns if there is no emission.
    offsets : ndarray of shape (n + 1,), dtype intp
        The nodes of graph i are rows offsets[i]:offsets[i + 1]; none is empty.
    edge_features : Features
        Rows of all edges of all graphs; none if there is no transition.
    edge_offsets : ndarray of shape (n + 1,), dtype intp
        Same as `offsets`, for the edges.
    edges : ndarray of shape (edge_offsets[n], 2), dtype intc
        The two ends, counted from the graph's first node.
    parents : list of n ndarrays or None
        For a forest of the graph's T nodes, an array of shape (3, T): the nodes, children
        before their parents; the parent of each, or -1; and the edge to that parent.
        None for a graph with cycles.
    y : ndarray of shape (offsets[n],), dtype intc
        Label indices.
    costs, normalize, cost_rows : as for `ChainOracle`
    pair_of : ndarray of shape (k, k), dtype intc
        The weight of the labels of an edge's first and second end; -1 for none.
    bias : bool
    relaxed : bool
        Whether the labelings of graphs with cycles may be half integral. If not, they are
        rounded. Set it for training, where the truth is known, not for predictions.
    expands : bool
        Whether graphs of more than two labels are decoded by expansion, not by messages.
    """

    cdef const int[:, ::1] ends
    cdef const int[:, ::1] pair_of
    cdef bint relaxed, expands
    # The rows of `parents`, for all nodes; the place of each parent among these; and how
    # each graph is decoded.
    cdef int[::1] order, parent, parent_edge
    cdef Py_ssize_t[::1] parent_place
    cdef const signed char[::1] kind
    # The slots of all nodes: see `Graph`.
    cdef int[::1] first, other, reverse, pair
    # Places in `work`.
    cdef Py_ssize_t bound_at, scratch_at, cut_at, forest_at

    def __init__(self, Features features, const Py_ssize_t[::1] offsets,
                 Features edge_features, const Py_ssize_t[::1] edge_offsets,
                 const int[:, ::1] edges, list parents, const int[::1] y,
                 const double[:, ::1] costs, const int[:, ::1] pair_of, *, bint bias,
                 bint normalize, bint relaxed, bint expands=False, cost_rows=None):
        super().__init__(
            features, offsets, y, costs, bias=bias, first=False, last=False,
            transition=False, normalize=normalize, cost_rows=cost_rows)
        cdef Py_ssize_t k = self.k, n = self.n_blocks, most
        cdef double search, evaluation
        sizes = np.diff(offsets)
        check_shape("pair_of", pair_of, k, k)
        self.bind_edges(
            edge_features, edge_offsets, np.asarray(pair_of).max() + 1, True)
        check_shape("edges", edges, edge_features.n_rows, 2)
        if len(parents) != n:
            raise ValueError(f"parents must have {n} items; got {len(parents)}.")
        for i in range(n):
            check_indices("edges", edges[edge_offsets[i]:edge_offsets[i + 1]], sizes[i])
        self.ends = edges
        self.pair_of, self.relaxed, self.expands = pair_of, relaxed, expands
        self._lay_out(parents)
        self.n_values = max(k, HALF + 1)
        most = int(np.diff(edge_offsets).max()) if n else 0
        self.bound_at = self.work_size
        self.scratch_at = self.bound_at + 1
        self.cut_at = self.scratch_at
        if np.any(np.asarray(self.kind) >= MESSAGES):
            self.cut_at += message_scratch_size(self.max_labels, most, k, self.n_pairs)
        self.work_size = max(
            self.scratch_at + k * k,
            self.cut_at + 4 * self.max_labels + most
            + roof_scratch_size(self.max_labels, most))
        self.has_candidates = type(self) is GraphOracle and not np.any(self.kind)
        self.forest_at = self.work_size
        if self.has_candidates:
            # This memory takes no pages until it is used.
            self.work_size += self.max_labels * ((k + 1) * (k + 1))
        self.max_labels = max(
            (int(self.n_labels(i)) for i in range(n)), default=0)
        evaluation = CALL * n + features.n_rows + edge_features.n_rows
        search = features.n_rows * (2.0 * k + (k + LANES - 1) // LANES)
        if np.any(np.asarray(self.kind) == CUT):
            search += edge_features.n_rows * 2.0 * FLOW_LOOKS * 2
        elif np.any(self.kind):
            rounds = 1.0 if expands else MAX_ROUNDS / 4
            search += edge_features.n_rows * rounds * 2.0 * k * k
            search += edge_features.n_rows * expands * EXPANSIONS * k * 2.0 * FLOW_LOOKS
        else:
            search += edge_features.n_rows * (CALL + k * ((k + LANES - 1) // LANES))
        self.relative_cost = (search + evaluation) / evaluation
        self.thread_safe = type(self) is GraphOracle

    def _lay_out(self, parents):
        """The order of forests, and the adjacency of the other graphs."""
        n, offsets = self.n_blocks, np.asarray(self.offsets)
        edges, edge_offsets = np.asarray(self.ends), np.asarray(self.edge_offsets)
        order, parent, parent_edge = (
            np.full(max(offsets[n], 1), -1, dtype=np.intc) for _ in range(3))
        parent_place = np.full(len(parent), -1)
        # Each graph has one entry more than it has nodes, or than twice its edges.
        first = np.zeros(offsets[n] + n + 1, dtype=np.intc)
        other, reverse, pair = (
            np.zeros(2 * edge_offsets[n] + n + 1, dtype=np.intc) for _ in range(3))
        kind = np.full(max(n, 1), FOREST, dtype=np.int8)
        for i in range(n):
            nodes = slice(offsets[i], offsets[i + 1])
            T, m = offsets[i + 1] - offsets[i], edge_offsets[i + 1] - edge_offsets[i]
            if parents[i] is not None:
                given = np.asarray(parents[i])
                check_shape("parents", given, 3, T)
                check_indices("parents", given[0], T)
                check_indices("parents", given[1] + 1, T + 1)
                check_indices("parents", given[2] + 1, m + 1)
                order[nodes], parent[nodes], parent_edge[nodes] = given
                # One extra place, so that the parent -1 of a root stays -1.
                place = np.full(T + 1, -1)
                place[given[0]] = np.arange(T)
                parent_place[nodes] = place[given[1]]
                continue
            kind[i] = CUT if self.k == 2 else EXPANSION if self.expands else MESSAGES
            own = adjacency(T, edges[edge_offsets[i]:edge_offsets[i + 1]])
            first[offsets[i] + i:offsets[i + 1] + i + 1] = own[0]
            slots = slice(2 * edge_offsets[i] + i, 2 * edge_offsets[i + 1] + i + 1)
            other[slots], reverse[slots], pair[slots] = own[1:]
        self.order, self.parent, self.parent_edge = order, parent, parent_edge
        self.parent_place = parent_place
        self.first, self.other, self.reverse, self.pair = first, other, reverse, pair
        self.kind = kind

    cdef Py_ssize_t n_labels(self, Py_ssize_t i) noexcept nogil:
        if self.relaxed and self.kind[i] == CUT:
            return self.n_nodes(i) + self.n_edges(i)
        return self.n_nodes(i)

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        memset(labels, 0, self.n_labels(i) * sizeof(int))
        memcpy(labels, &self.y[self.offsets[i]], self.n_nodes(i) * sizeof(int))
        return 0

    cdef const int* edge(self, Py_ssize_t i, Py_ssize_t e) noexcept nogil:
        """Both ends of an edge."""
        return &self.ends[self.edge_offsets[i] + e, 0]

    # --------------------------------------------------------------- potentials

    cdef ScoredGraph scored(self, Py_ssize_t i, const double* work) noexcept nogil:
        cdef ScoredGraph result
        result.graph.n_labels = <int> self.n_nodes(i)
        result.graph.n_pairs = <int> self.n_edges(i)
        result.graph.first = &self.first[self.offsets[i] + i]
        result.graph.other = &self.other[2 * self.edge_offsets[i] + i]
        result.graph.reverse = &self.reverse[2 * self.edge_offsets[i] + i]
        result.graph.pair = &self.pair[2 * self.edge_offsets[i] + i]
        result.k, result.n_weights = self.k, self.n_pairs
        result.ends = self.edge(i, 0) if self.n_edges(i) else NULL
        result.weight_of = &self.pair_of[0, 0]
        result.nodes = work + self.table_at
        result.edges = work + self.tables_at
        return result

    cdef double edge_score(
            self, Py_ssize_t i, const ScoredGraph* scored, Py_ssize_t e,
            const int* labels) noexcept nogil:
        """The score of an edge in a labeling that may be half integral."""
        cdef const int* ends = self.edge(i, e)
        cdef int a = labels[ends[0]], b = labels[ends[1]]
        if self.kind[i] != CUT or (a != HALF and b != HALF):
            return pair_score(scored, e, a, b)
        if a == HALF and b == HALF:
            a = labels[self.n_nodes(i) + e]
            return 0.5 * (pair_score(scored, e, a, 1)
                          + pair_score(scored, e, 1 - a, 0))
        if a == HALF:
            return 0.5 * (pair_score(scored, e, 0, b) + pair_score(scored, e, 1, b))
        return 0.5 * (pair_score(scored, e, a, 0) + pair_score(scored, e, a, 1))

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, v, e
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* ends
        cdef double total = 0.0
        cdef ScoredGraph scored = self.scored(i, work)
        for v in range(self.n_nodes(i)):
            if labels[v] == y[v]:
                continue
            if self.kind[i] == CUT and labels[v] == HALF:
                total += 0.5 * (work[v * k + 1 - y[v]] - work[v * k + y[v]])
            else:
                total += work[v * k + labels[v]] - work[v * k + y[v]]
        for e in range(self.n_edges(i)):
            ends = self.edge(i, e)
            if labels[ends[0]] != y[ends[0]] or labels[ends[1]] != y[ends[1]]:
                total += (self.edge_score(i, &scored, e, labels)
                          - pair_score(&scored, e, y[ends[0]], y[ends[1]]))
        score[0] = total
        loss[0] = self.loss(i, labels)
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        cdef Py_ssize_t v, start = self.offsets[i]
        cdef double total = 0.0
        cdef const double* cost
        cdef int truth
        for v in range(self.n_nodes(i)):
            truth = self.y[start + v]
            cost = &self.costs[self.cost_rows[start + v], 0]
            if self.kind[i] == CUT and labels[v] == HALF:
                total += 0.5 * cost[1 - truth]
            elif labels[v] != truth:
                total += cost[labels[v]]
        return total * self.loss_unit(i)

    # ----------------------------------------------------------------- decoding

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, start = self.offsets[i], v
        cdef double* table = work + self.table_at
        cdef double unit = lam * self.loss_unit(i)
        memcpy(table, work, self.n_nodes(i) * k * sizeof(double))
        if unit != 0.0:
            for v in range(self.n_nodes(i)):
                add(k, unit, &self.costs[self.cost_rows[start + v], 0], table + v * k)
        if self.kind[i] == CUT:
            self._cut(i, work, labels)
        elif self.kind[i] == FOREST:
            self._climb(i, work, labels)
        else:
            self._decode_scored(i, work, labels)
        if self.n_edges(i) * k * k > LARGE:
            with gil:
                PyErr_CheckSignals()
        return self.evaluate(i, work, labels, score, loss)

    cdef double upper_bound(
            self, Py_ssize_t i, const double* work, double value) noexcept nogil:
        if self.kind[i] >= MESSAGES:
            return max(value, work[self.bound_at])
        return value

    cdef void _climb(self, Py_ssize_t i, double* work, int* labels) noexcept nogil:
        """The best labels of a forest, from the table of its nodes."""
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), start = self.offsets[i]
        cdef Py_ssize_t at, v, p, e
        cdef double* table = work + self.table_at
        cdef double* transition = work + self.scratch_at
        cdef int c, d, best
        cdef double value, highest
        cdef ScoredGraph scored = self.scored(i, work)
        for at in range(T):
            v, p = self.order[start + at], self.parent[start + at]
            if p < 0:
                continue
            e = self.parent_edge[start + at]
            for c in range(k):
                for d in range(k):
                    transition[c * k + d] = link(&scored, e, v, c, d)
            vector_add_max_plus(k, table + v * k, transition, table + p * k)
        for at in range(T - 1, -1, -1):
            v, p = self.order[start + at], self.parent[start + at]
            e = self.parent_edge[start + at]
            best, highest = 0, 0.0
            for c in range(k):
                value = table[v * k + c]
                if p >= 0:
                    value += link(&scored, e, v, c, labels[p])
                if c == 0 or value > highest:
                    highest = value
                    best = c
            labels[v] = best

    # ---------------------------------------------------------- slack rescaling

    cdef Forest forest(self, Py_ssize_t i, const double* work) noexcept nogil:
        """The nodes of a forest in its order, as `_lay_down` wrote them."""
        cdef Py_ssize_t k = self.k, most = self.max_labels
        cdef Forest result
        result.n, result.k = self.n_nodes(i), k
        result.theta = work + self.forest_at
        result.costs = result.theta + most * k
        result.edge = result.costs + most * k
        result.truth = <const int*> (result.edge + most * k * k)
        result.parent = &self.parent_place[self.offsets[i]]
        result.cost_rows = NULL
        result.edge_stride = k * k
        return result

    cdef void _lay_down(self, Py_ssize_t i, double* work) noexcept nogil:
        cdef Py_ssize_t k = self.k, start = self.offsets[i], at, v, e
        cdef Forest forest = self.forest(i, work)
        cdef ScoredGraph scored = self.scored(i, work)
        cdef double* theta = <double*> forest.theta
        cdef double* costs = <double*> forest.costs
        cdef double* edge = <double*> forest.edge
        cdef int* truth = <int*> forest.truth
        cdef int c, d
        for at in range(forest.n):
            v, e = self.order[start + at], self.parent_edge[start + at]
            truth[at] = self.y[start + v]
            memcpy(theta + at * k, work + v * k, k * sizeof(double))
            memcpy(costs + at * k, &self.costs[self.cost_rows[start + v], 0],
                   k * sizeof(double))
            for c in range(k):
                for d in range(k):
                    edge[(at * k + c) * k + d] = (
                        0.0 if e < 0 else link(&scored, e, v, c, d))

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef Forest forest
        self._lay_down(i, work)
        forest = self.forest(i, work)
        return forest_front(&forest, one, self.loss_unit(i), plane)

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        cdef Forest forest = self.forest(i, work)
        cdef Py_ssize_t at
        cdef int* found = <int*> malloc(max(forest.n, 1) * sizeof(int))
        if found == NULL:
            no_memory("a labeling")
        forest_labels(&forest, plane, j, found)
        for at in range(forest.n):
            labels[self.order[self.offsets[i] + at]] = found[at]
        free(found)
        return 0

    # -------------------------------------------------------------- relaxations

    cdef void _cut(self, Py_ssize_t i, double* work, int* labels) noexcept nogil:
        """The best labels over the local polytope, rounded unless `relaxed`."""
        cdef Py_ssize_t T = self.n_nodes(i), m = self.n_edges(i), v, e
        cdef const double* table = work + self.table_at
        cdef double* q = work + self.cut_at
        cdef double* mu = q + T
        cdef double* rounded = mu + T
        cdef double* gains = rounded + T
        cdef double* J = gains + T
        cdef const int* ends
        cdef double none, first, second
        cdef ScoredGraph scored = self.scored(i, work)
        for v in range(T):
            q[v] = table[2 * v + 1] - table[2 * v]
        for e in range(m):
            ends = self.edge(i, e)
            none = pair_score(&scored, e, 0, 0)
            first = pair_score(&scored, e, 1, 0) - none
            second = pair_score(&scored, e, 0, 1) - none
            q[ends[0]] += first
            q[ends[1]] += second
            J[e] = pair_score(&scored, e, 1, 1) - none - first - second
        roof(&scored.graph, q, J, J + m, mu)
        if not self.relaxed:
            round_off(&scored.graph, q, J, mu, rounded, gains)
            mu = rounded
        for v in range(T):
            labels[v] = HALF if mu[v] == 0.5 else <int> mu[v]
        if self.relaxed:
            for e in range(m):
                ends = self.edge(i, e)
                labels[T + e] = (labels[ends[0]] == HALF and labels[ends[1]] == HALF
                                 and weight_of_both(J[e], 0.5, 0.5) > 0.0)

    cdef void _decode_scored(
            self, Py_ssize_t i, double* work, int* labels) noexcept nogil:
        """Good labels and a bound, from the table of the nodes."""
        cdef const int* truth = &self.y[self.offsets[i]]
        cdef ScoredGraph scored = self.scored(i, work)
        cdef double bound = decode_scored(
            &scored, self.kind[i] == EXPANSION, work + self.scratch_at,
            work + self.cut_at, labels)
        cdef double score = total_score(&scored, truth)
        if self.relaxed and score > total_score(&scored, labels):
            memcpy(labels, truth, self.n_nodes(i) * sizeof(int))
        # Bounds are differences from the true labeling, as scores are.
        work[self.bound_at] = bound - score

    # ---------------------------------------------------------------- marginals

    cdef void add_atoms(
            self, Py_ssize_t i, Py_ssize_t n, const double* a, const int* s,
            double* out) noexcept nogil:
        cdef Py_ssize_t j
        cdef Table nodes = self.node_table(out)
        table_fill(&nodes, self.n_nodes(i) * self.k)
        for j in range(n):
            if a[j] != 0.0:
                self._add_atom(i, a[j], s + j * self.n_labels(i), out)

    cdef void _add_atom(
            self, Py_ssize_t i, double coef, const int* labels,
            double* delta) noexcept nogil:
        """delta += coef * (μ(labels) - μ(y_i)), of the nodes and of the edges."""
        cdef Py_ssize_t k = self.k, v, e
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* ends
        cdef double* edge
        cdef int a, b
        for v in range(self.n_nodes(i)):
            if labels[v] == y[v]:
                continue
            if self.kind[i] == CUT and labels[v] == HALF:
                delta[v * k + 1 - y[v]] += 0.5 * coef
                delta[v * k + y[v]] -= 0.5 * coef
            else:
                delta[v * k + labels[v]] += coef
                delta[v * k + y[v]] -= coef
        for e in range(self.n_edges(i)):
            ends = self.edge(i, e)
            a, b = labels[ends[0]], labels[ends[1]]
            if a == y[ends[0]] and b == y[ends[1]]:
                continue
            edge = delta + self.delta_at + e * self.n_pairs
            self._add_pair(-coef, y[ends[0]], y[ends[1]], edge)
            if self.kind[i] != CUT or (a != HALF and b != HALF):
                self._add_pair(coef, a, b, edge)
            elif a == HALF and b == HALF:
                a = labels[self.n_nodes(i) + e]
                self._add_pair(0.5 * coef, a, 1, edge)
                self._add_pair(0.5 * coef, 1 - a, 0, edge)
            elif a == HALF:
                self._add_pair(0.5 * coef, 0, b, edge)
                self._add_pair(0.5 * coef, 1, b, edge)
            else:
                self._add_pair(0.5 * coef, a, 0, edge)
                self._add_pair(0.5 * coef, a, 1, edge)

    cdef void _add_pair(
            self, double coef, int a, int b, double* edge) noexcept nogil:
        cdef int place = self.pair_of[a, b]
        if place >= 0:
            edge[place] += coef

    def labeling_from_object(self, Py_ssize_t i, saved):
        labels = super().labeling_from_object(i, saved)
        T, name = self.n_nodes(i), f"labeling of example {i}"
        check_indices(name, labels[:T], HALF + 1 if self.kind[i] == CUT else self.k)
        check_indices(name, labels[T:], 2)
        return labels
