"""Oracle of chains whose edges have features.

With z_t the features of the edge from position t - 1 to t, preceded by the number 1, the
weights are read as

    [those of a chain without transitions]
    [pairs (1 + n_edge_features, k, k), previous label first],

so that the scores of the pairs at this edge are the k x k table Σ_f z_t[f] pairs[f]. The
marginals of a block are those of its nodes, and Σ_t z_t ⊗ μ_t for its edges, which has
the length of their weights. So do its log factors.
"""
import numpy as np

from sklearn_structsvm._utils.borders import as_tuple, restore

from libc.math cimport INFINITY, isnan, log
from libc.string cimport memcpy, memset

from sklearn_structsvm._contract._oracle cimport Plane
from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm.structures._chain cimport ChainOracle
from sklearn_structsvm.structures._chain_blocks cimport add, dot
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


cdef class EdgeChainOracle(ChainOracle):
    """Chains over k labels, with features of their edges.

    Parameters
    ----------
    features, offsets, y, costs, bias, first, last, normalize, allowed, cost_rows
        As for `ChainOracle`.
    edge_features : Features
        One row for each edge, over all chains: T - 1 rows for a chain of T positions. The
        first column is the number 1.
    """

    cdef Features edge_features
    cdef Py_ssize_t n_pairs, n_sums
    # Places of the parts in w; in `work`: the tables of the edges and their weights, then
    # tables for sums, the probabilities of pairs, and the tables of a front; and in a
    # direction.
    cdef Py_ssize_t pair_weights_at, tables_at, weights_at, tilted_at, likely_at
    cdef Py_ssize_t front_tables_at, edge_sums_at, delta_at
    cdef double[:, ::1] edge_sums

    def __init__(self, Features features, const Py_ssize_t[::1] offsets,
                 Features edge_features, const int[::1] y, const double[:, ::1] costs, *,
                 bint bias, bint first, bint last, bint normalize, allowed=None,
                 cost_rows=None):
        super().__init__(
            features, offsets, y, costs, bias=bias, first=first, last=last,
            transition=False, normalize=normalize, allowed=allowed, cost_rows=cost_rows)
        cdef Py_ssize_t k = self.k, n_edges = features.n_rows - self.n_blocks, room
        cdef bint is_own = type(self) is EdgeChainOracle
        if edge_features.n_rows != n_edges:
            raise ValueError(
                f"edge_features must have {n_edges} rows; got {edge_features.n_rows}.")
        self.edge_features = edge_features
        self.n_pairs = k * k
        self.n_sums = edge_features.n_features * self.n_pairs
        self.pair_weights_at = self.n_weights
        self.n_weights += self.n_sums
        room = max(self.max_labels - 1, 0) * self.n_pairs
        self.tables_at = self.work_size
        self.weights_at = self.tables_at + room
        self.tilted_at = self.weights_at + self.n_sums
        self.likely_at = self.tilted_at + room
        self.front_tables_at = self.likely_at + room
        self.work_size = self.front_tables_at + self.has_forbidden * room
        self.edge_sums_at = self.direction_size
        self.delta_at = self.edge_sums_at + self.n_sums
        self.direction_size = self.delta_at + room
        self.edge_sums = np.zeros((self.n_blocks * (y is not None), self.n_sums))
        self.relative_cost = self.counted_cost(n_edges)
        self.thread_safe = self.has_marginals = self.has_sums = is_own
        self.has_candidates = is_own

    cdef Py_ssize_t n_edges(self, Py_ssize_t i) noexcept nogil:
        return self.n_nodes(i) - 1

    cdef Py_ssize_t first_edge(self, Py_ssize_t i) noexcept nogil:
        """The row of the first edge of chain i."""
        return self.offsets[i] - i

    cdef const double* pairs(self, const double* work) noexcept nogil:
        """The scores of pairs of labels, a table for each edge."""
        return work + self.tables_at

    cdef Py_ssize_t n_pair_scores(self, Py_ssize_t i) noexcept nogil:
        return self.n_edges(i) * self.n_pairs

    cdef int find_tables(
            self, Py_ssize_t i, const double* weights, double* tables) except -1 nogil:
        cdef Py_ssize_t first = self.first_edge(i)
        return self.edge_features.scores(
            first, first + self.n_edges(i), weights, self.n_pairs, tables)

    cdef int set_weights(
            self, Py_ssize_t i, const double* weights, double* work) except -1 nogil:
        """Keep the weights of pairs in `work`, and the tables that they give."""
        memcpy(work + self.weights_at, weights, self.n_sums * sizeof(double))
        return self.find_tables(i, weights, work + self.tables_at)

    cdef int sum_up(
            self, Py_ssize_t i, const double* of_pairs, double* out) except -1 nogil:
        """out = Σ_t z_t ⊗ (the numbers of pairs at edge t)."""
        cdef Py_ssize_t first = self.first_edge(i)
        memset(out, 0, self.n_sums * sizeof(double))
        return self.edge_features.add_rows(
            first, first + self.n_edges(i), 1.0, of_pairs, self.n_pairs, out)

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        ChainOracle.potentials(self, i, w, work)
        return self.set_weights(i, w + self.pair_weights_at, work)

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

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        ChainOracle.block_score(self, i, work, score)
        score[0] += dot(self.n_sums, work + self.weights_at, &self.edge_sums[i, 0])
        return 0

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

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        memset(out + self.delta_at, 0, self.n_pair_scores(i) * sizeof(double))
        # `add_atoms` comes before the sums that `complete` needs.
        ChainOracle.direction(self, i, c, n, a, s, out, NULL)
        self.sum_up(i, out + self.delta_at, out + self.edge_sums_at)
        if c != 0.0:
            add(self.n_sums, c, &self.edge_sums[i, 0], out + self.edge_sums_at)
        return 0 if squared_norm == NULL else self.complete(i, out, squared_norm)

    cdef int complete(
            self, Py_ssize_t i, double* out, double* squared_norm) except -1 nogil:
        cdef const double* sums = out + self.edge_sums_at
        ChainOracle.complete(self, i, out, squared_norm)
        if squared_norm != NULL:
            squared_norm[0] += dot(self.n_sums, sums, sums)
        return 0

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        ChainOracle.image(self, i, direction, work)
        return self.set_weights(i, direction + self.edge_sums_at, work)

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        ChainOracle.move(self, i, gamma, direction)
        add(self.n_sums, gamma, direction + self.edge_sums_at, &self.edge_sums[i, 0])
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        ChainOracle.scatter(self, i, coef, direction, target)
        add(self.n_sums, coef, direction + self.edge_sums_at,
            target + self.pair_weights_at)
        return 0

    def get_blocks(self):
        return np.array(self.nodes), np.array(self.edge_sums)

    def set_blocks(self, blocks):
        nodes, sums = as_tuple("blocks", blocks, 2)
        restore("nodes of the blocks", self.nodes, nodes)
        restore("edges of the blocks", self.edge_sums, sums)

    def scale_blocks(self, double rho):
        np.asarray(self.nodes)[...] *= rho
        np.asarray(self.edge_sums)[...] *= rho
