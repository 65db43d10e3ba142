"""Oracle of chains whose edges have features.

The features of the edge from position t - 1 to t are preceded by the number 1. The
weights are read as

    [those of a chain without transitions]
    [pairs (1 + n_edge_features, k, k), previous label first].

The log factors of a block have the lengths of its marginals: see `_edge_features`.
"""
import numpy as np

from libc.math cimport INFINITY, isnan, log
from libc.string cimport memcpy, memset

from sklearn_structsvm._contract._oracle cimport Plane
from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm.structures._chain cimport ChainOracle
from sklearn_structsvm.structures._chain_blocks cimport add, dot
from sklearn_structsvm.structures._edge_features cimport EdgeFeatureOracle
from sklearn_structsvm.structures._edge_sums cimport Table, table_fill
from sklearn_structsvm.structures._forest cimport Forest
from sklearn_structsvm.structures._pareto cimport forest_front
from sklearn_structsvm.structures._sum_product cimport sum_product


cdef extern from "structures/_max_plus.h" nogil:
    void add_max_plus(
        Py_ssize_t k, const double* previous, const double* pairs,
        double* current) noexcept


cdef extern from "structures/_sum_product.h" nogil:
    void vector_range(
        Py_ssize_t k, const double* x, double* lowest, double* highest) noexcept
    void vector_sum(
        Py_ssize_t n, const double* x, const double* y, double* out) noexcept
    void vector_mix(
        Py_ssize_t n, double gamma, const double* x, const double* y,
        double* out) noexcept
    double vector_move_to(
        Py_ssize_t n, const double* x, const double* y, const double* m,
        const double* nu, double* z, double* before, double* after) noexcept


cdef class EdgeChainOracle(EdgeFeatureOracle):
    """Chains over k labels, with features of their edges.

    Parameters
    ----------
    features, offsets, y, costs, bias, first, last, normalize, allowed, cost_rows
        As for `ChainOracle`.
    edge_features : Features
        One row for each edge, over all chains: T - 1 rows for a chain of T positions. The
        first column is the number 1.
    """

    # Places in `work`: tables for sums, probabilities of pairs, and tables of a front.
    cdef Py_ssize_t tilted_at, likely_at, front_tables_at

    def __init__(self, Features features, const Py_ssize_t[::1] offsets,
                 Features edge_features, const int[::1] y, const double[:, ::1] costs, *,
                 bint bias, bint first, bint last, bint normalize, allowed=None,
                 cost_rows=None):
        super().__init__(
            features, offsets, y, costs, bias=bias, first=first, last=last,
            transition=False, normalize=normalize, allowed=allowed, cost_rows=cost_rows)
        cdef Py_ssize_t n_edges = features.n_rows - self.n_blocks, room
        cdef bint is_own = type(self) is EdgeChainOracle
        if edge_features.n_rows != n_edges:
            raise ValueError(
                f"edge_features must have {n_edges} rows; got {edge_features.n_rows}.")
        starts = np.asarray(offsets) - np.arange(self.n_blocks + 1)
        self.bind_edges(edge_features, starts, self.k * self.k, y is not None)
        room = max(self.max_labels - 1, 0) * self.n_pairs
        self.tilted_at = self.work_size
        self.likely_at = self.tilted_at + room
        self.front_tables_at = self.likely_at + room
        self.work_size = self.front_tables_at + self.has_forbidden * room
        self.relative_cost = self.counted_cost(n_edges)
        self.thread_safe = self.has_marginals = self.has_sums = is_own
        self.has_candidates = is_own

    cdef Forest forest(self, Py_ssize_t i, const double* work) noexcept nogil:
        cdef Forest result = ChainOracle.forest(self, i, work)
        result.edge = self.pairs(work)
        result.edge_stride = self.n_pairs
        return result

    # ----------------------------------------------------------------- decoding

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, T = self.n_labels(i), t, c, best
        cdef const double* pairs = self.pairs(work)
        cdef const double* own
        cdef const int* cost_row = &self.cost_rows[self.offsets[i]]
        cdef double* table = work + self.table_at
        # A table without what is forbidden.
        cdef double* masked = work + self.tilted_at
        cdef double value, highest, unit = lam * self.loss_unit(i)
        memcpy(table, work, T * k * sizeof(double))
        if unit != 0.0:
            for t in range(T):
                add(k, unit, &self.costs[cost_row[t], 0], table + t * k)
        if self.has_forbidden:
            self.forbid_ends(i, INFINITY, table)
        for t in range(1, T):
            own = pairs + (t - 1) * self.n_pairs
            if self.has_forbidden:
                vector_sum(self.n_pairs, own, &self.log_allowed[0, 0], masked)
                own = masked
            add_max_plus(k, table + (t - 1) * k, own, table + t * k)
        for t in range(T - 1, -1, -1):
            best, highest = 0, -INFINITY
            own = pairs + t * self.n_pairs
            for c in range(k):
                value = table[t * k + c]
                if t < T - 1:
                    value += own[c * k + labels[t + 1]]
                    if self.has_forbidden:
                        value += self.log_allowed[c, labels[t + 1]]
                if c == 0 or value > highest:
                    highest = value
                    best = c
            labels[t] = <int> best
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, t
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const double* own = self.pairs(work)
        ChainOracle.evaluate(self, i, work, labels, score, loss)
        for t in range(self.n_edges(i)):
            if labels[t] != y[t] or labels[t + 1] != y[t + 1]:
                score[0] += (own[labels[t] * k + labels[t + 1]]
                             - own[y[t] * k + y[t + 1]])
            own += self.n_pairs
        return 0

    # ---------------------------------------------------------- slack rescaling

    cdef double penalty(
            self, Py_ssize_t i, double one, const double* work) noexcept nogil:
        cdef double found = ChainOracle.penalty(self, i, one, work)
        cdef double lowest, highest
        cdef Py_ssize_t t
        for t in range(self.n_edges(i)):
            vector_range(
                self.n_pairs, self.pairs(work) + t * self.n_pairs, &lowest, &highest)
            found += 2.0 * (highest - lowest)
        return found

    cdef Forest front_forest(self, Py_ssize_t i, const double* work) noexcept nogil:
        cdef Forest result = self.forest(i, work)
        if self.has_forbidden:
            result.theta = work + self.front_at
            result.edge = work + self.front_tables_at
        return result

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef Forest forest = self.front_forest(i, work)
        cdef Py_ssize_t size = forest.n * self.k, t, c
        cdef double* theta = work + self.front_at
        cdef double* tables = work + self.front_tables_at
        cdef double penalty
        if self.has_forbidden:
            penalty = self.penalty(i, one, work)
            memcpy(theta, work, size * sizeof(double))
            self.forbid_ends(i, penalty, theta)
            memcpy(tables, self.pairs(work), self.n_pair_scores(i) * sizeof(double))
            for t in range(self.n_edges(i)):
                for c in range(self.k):
                    add(self.k, -penalty, &self.forbidden[c, 0],
                        tables + t * self.n_pairs + c * self.k)
        return forest_front(&forest, one, self.loss_unit(i), plane)

    # --------------------------------------------------------------------- sums

    cdef double sums(
            self, Py_ssize_t i, const double* theta, const double* transition,
            double* work, double* nodes, double* edges) noexcept nogil:
        cdef Forest forest = self.forest(i, work)
        cdef double* masked = work + self.masked_at
        forest.theta, forest.edge = theta, transition
        if not self.has_forbidden:
            return sum_product(&forest, NULL, work + self.sums_at, nodes, edges)
        if self.has_forbidden_ends:
            memcpy(masked, theta, forest.n * self.k * sizeof(double))
            self.forbid_ends(i, INFINITY, masked)
            forest.theta = masked
        return sum_product(
            &forest, &self.allowed_pairs[0, 0], work + self.sums_at, nodes, edges)

    cdef void take_truth(
            self, Py_ssize_t i, double* nodes, double* edges) noexcept nogil:
        """Subtract the marginals of the truth."""
        cdef const int* y = &self.y[self.offsets[i]]
        cdef Py_ssize_t k = self.k, t
        for t in range(self.n_nodes(i)):
            nodes[t * k + y[t]] -= 1.0
        for t in range(self.n_edges(i)):
            edges[t * self.n_pairs + y[t] * k + y[t + 1]] -= 1.0

    cdef int soft_oracle(
            self, Py_ssize_t i, double lam, double temperature, double* work,
            double* value, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, start = self.offsets[i], T = self.n_nodes(i), t
        cdef Py_ssize_t size = T * k, n_scores = self.n_pair_scores(i)
        cdef double unit = lam * self.loss_unit(i), by = 1.0 / temperature
        cdef double log_z, cost = 0.0, log_count = T * log(<double> k)
        cdef double* theta = work + self.soft_at
        cdef double* tables = work + self.tilted_at
        cdef double* likely = work + self.likely_at
        cdef double* nodes = &self.nodes[start, 0]
        memset(theta, 0, size * sizeof(double))
        memset(tables, 0, n_scores * sizeof(double))
        if self.has_forbidden:
            if isnan(self.log_counts[i]):
                self.log_counts[i] = self.sums(i, theta, tables, work, NULL, NULL)
            log_count = self.log_counts[i]
        add(size, by, work, theta)
        for t in range(T):
            add(k, by * unit, &self.costs[self.cost_rows[start + t], 0], theta + t * k)
        add(n_scores, by, self.pairs(work), tables)
        log_z = self.sums(i, theta, tables, work, nodes, likely)
        for t in range(T):
            cost += dot(k, &self.costs[self.cost_rows[start + t], 0], nodes + t * k)
        if temperature == INFINITY:
            value[0] = (dot(size, work, nodes) + dot(n_scores, self.pairs(work), likely)
                        + unit * cost)
        else:
            value[0] = temperature * (log_z - log_count)
        value[0] -= self.true_score(i, work)
        loss[0] = cost * self.loss_unit(i)
        self.take_truth(i, nodes, likely)
        return self.sum_up(i, likely, &self.edge_sums[i, 0])

    cdef Py_ssize_t n_factors(self, Py_ssize_t i) noexcept nogil:
        return self.n_nodes(i) * self.k + self.n_sums

    cdef int load_factors(
            self, Py_ssize_t i, const double* factors, double* work) except -1 nogil:
        ChainOracle.load_factors(self, i, factors, work)
        return self.set_weights(i, factors + self.n_nodes(i) * self.k, work)

    cdef int tilt(
            self, Py_ssize_t i, double gamma, double* work, const double* factors,
            double* tilted, double* out, double* squared_norm, double* slope,
            double* entropy) except -1 nogil:
        cdef Py_ssize_t k = self.k, size = self.n_nodes(i) * k, t
        cdef const int* y = &self.y[self.offsets[i]]
        cdef double* tables = work + self.tilted_at
        cdef double* likely = work + self.likely_at
        cdef double* sums = out + self.edge_sums_at
        cdef const double* weights = work + self.weights_at
        cdef double before, after
        cdef Table node_table = self.node_table(out)
        table_fill(&node_table, size)
        vector_mix(size, gamma, factors, work, tilted)
        vector_mix(self.n_sums, gamma, factors + size, weights, tilted + size)
        self.find_tables(i, tilted + size, tables)
        entropy[0] = self.sums(i, tilted, tables, work, out, likely)
        self.take_truth(i, out, likely)
        for t in range(self.n_nodes(i)):
            entropy[0] -= tilted[t * k + y[t]]
        for t in range(self.n_edges(i)):
            entropy[0] -= tables[t * self.n_pairs + y[t] * k + y[t + 1]]
        self.sum_up(i, likely, sums)
        slope[0] = vector_move_to(
            size, factors, work, tilted, &self.nodes[self.offsets[i], 0], out,
            &before, &slope[1])
        entropy[0] -= before
        slope[0] += vector_move_to(
            self.n_sums, factors + size, weights, tilted + size, &self.edge_sums[i, 0],
            sums, &before, &after)
        entropy[0] = max(entropy[0] - before, 0.0)
        slope[1] += after
        return self.complete(i, out, squared_norm)

    # ------------------------------------------------------------------- blocks

    cdef void add_atoms(
            self, Py_ssize_t i, Py_ssize_t n, const double* a, const int* s,
            double* out) noexcept nogil:
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), t, j
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* labels
        cdef double* own
        ChainOracle.add_atoms(self, i, n, a, s, out)
        for j in range(n):
            if a[j] == 0.0:
                continue
            labels = s + j * T
            own = out + self.delta_at
            for t in range(T - 1):
                if labels[t] != y[t] or labels[t + 1] != y[t + 1]:
                    own[labels[t] * k + labels[t + 1]] += a[j]
                    own[y[t] * k + y[t + 1]] -= a[j]
                own += self.n_pairs
