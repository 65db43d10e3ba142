"""What oracles share whose edges have features.

With z_e the features of edge e, the last weights are a table (n_edge_features, n_pairs),
and the scores of the pairs at this edge are Σ_f z_e[f] pairs[f]. The marginals of a block
are those of its nodes, and Σ_e z_e ⊗ μ_e for its edges, which has the length of their
weights.
"""
import numpy as np

from sklearn_structsvm._utils.borders import as_tuple, check_starts, restore

from libc.string cimport memcpy, memset

from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm.structures._chain cimport ChainOracle
from sklearn_structsvm.structures._chain_blocks cimport add, dot


cdef class EdgeFeatureOracle(ChainOracle):
    """Nodes as of a chain without transitions, and edges with features.

    A subclass calls `bind_edges` at the end of its own layout of a chain, and writes the
    changes of pairs at each edge behind `delta_at` in `add_atoms`.
    """

    cdef int bind_edges(
            self, Features edge_features, const Py_ssize_t[::1] edge_offsets,
            Py_ssize_t n_pairs, bint has_truth) except -1:
        cdef Py_ssize_t n = self.n_blocks, room
        check_starts("edge_offsets", edge_offsets, n, edge_features.n_rows)
        self.edge_features, self.edge_offsets = edge_features, edge_offsets
        self.n_pairs = n_pairs
        self.n_sums = edge_features.n_features * n_pairs
        self.pair_weights_at = self.n_weights
        self.n_weights += self.n_sums
        room = (int(np.diff(edge_offsets).max()) if n else 0) * n_pairs
        self.tables_at = self.work_size
        self.weights_at = self.tables_at + room
        self.work_size = self.weights_at + self.n_sums
        self.edge_sums_at = self.direction_size
        self.delta_at = self.edge_sums_at + self.n_sums
        self.direction_size = self.delta_at + room
        self.edge_sums = np.zeros((n * has_truth, self.n_sums))
        return 0

    cdef Py_ssize_t n_edges(self, Py_ssize_t i) noexcept nogil:
        return self.edge_offsets[i + 1] - self.edge_offsets[i]

    cdef const double* pairs(self, const double* work) noexcept nogil:
        """The scores of pairs of labels, a table for each edge."""
        return work + self.tables_at

    cdef Py_ssize_t n_pair_scores(self, Py_ssize_t i) noexcept nogil:
        return self.n_edges(i) * self.n_pairs

    cdef int find_tables(
            self, Py_ssize_t i, const double* weights, double* tables) except -1 nogil:
        return self.edge_features.scores(
            self.edge_offsets[i], self.edge_offsets[i + 1], weights, self.n_pairs, tables)

    cdef int set_weights(
            self, Py_ssize_t i, const double* weights, double* work) except -1 nogil:
        """Keep the weights of pairs in `work`, and the tables that they give."""
        memcpy(work + self.weights_at, weights, self.n_sums * sizeof(double))
        return self.find_tables(i, weights, work + self.tables_at)

    cdef int sum_up(
            self, Py_ssize_t i, const double* of_pairs, double* out) except -1 nogil:
        """out = Σ_e z_e ⊗ (the numbers of pairs at edge e)."""
        memset(out, 0, self.n_sums * sizeof(double))
        return self.edge_features.add_rows(
            self.edge_offsets[i], self.edge_offsets[i + 1], 1.0, of_pairs, self.n_pairs,
            out)

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        ChainOracle.potentials(self, i, w, work)
        return self.set_weights(i, w + self.pair_weights_at, work)

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        ChainOracle.block_score(self, i, work, score)
        if self.n_sums:
            score[0] += dot(self.n_sums, work + self.weights_at, &self.edge_sums[i, 0])
        return 0

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        memset(out + self.delta_at, 0, self.n_pair_scores(i) * sizeof(double))
        # `add_atoms` comes before the sums that `complete` needs.
        ChainOracle.direction(self, i, c, n, a, s, out, NULL)
        if self.n_sums:
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
        if self.n_sums:
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
