"""Oracle of a chain: Viterbi over positions with shared transitions.

With x_t the features of position t, the weights are read as

    [emission (n_features, k)] [bias (k,)] [first (k,)] [last (k,)]
    [transition (k, k), previous label first],

each part present or not. All edges share one transition matrix, so that the
marginals of a block are T x k for its nodes and the sum k x k of its edges. A few
labelings touch little of both: directions list what they touch, and scores of given
labelings read no other weights.

Forbidden labels and pairs leave the potentials as they are, because products with
marginals are made of these. Decoders and sums read copies with a penalty: infinite for
maxima and sums, and for the front of slack rescaling, which subtracts scores, just large
enough to make one + score negative.
"""
import numpy as np

from sklearn_structsvm._utils.borders import (
    as_floats, as_tuple, check_indices, check_shape, check_starts, restore)

from libc.math cimport INFINITY, fabs, isnan, log
from cython.parallel cimport prange, threadid
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dasum, daxpy, ddot, dgemm

from sklearn_structsvm._utils._matrix._features cimport (
    Features, clip, mark_range, soft_threshold)
from sklearn_structsvm._contract._oracle cimport (
    CALL, LANES, BlockOracle, Plane, not_finite)
from sklearn_structsvm.structures._edge_sums cimport (
    EdgeSums, Table, make_table, table_add, table_clear, table_fill, table_room)
from sklearn_structsvm.structures._forest cimport Forest, parent_of, true_edge
from sklearn_structsvm.structures._pareto cimport (
    forest_front, forest_labels)
from sklearn_structsvm.structures._sum_product cimport sum_product, sum_room


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
        Py_ssize_t n, const double* x, const double* y, const double* nu,
        double* z) noexcept

# With more labelings than this in a direction, its nodes are not listed; nor with so few
# labels that all of them take no longer.
cdef enum:
    MANY_LABELINGS = 128
    FEW_LABELS = 8


cdef void add(Py_ssize_t n, double coef, const double* x, double* y) noexcept nogil:
    cdef int size = <int> n, one = 1
    daxpy(&size, &coef, <double*> x, &one, y, &one)


cdef double dot(Py_ssize_t n, const double* x, const double* y) noexcept nogil:
    cdef int size = <int> n, one = 1
    return ddot(&size, <double*> x, &one, <double*> y, &one)


cdef void transpose(Py_ssize_t k, const double* x, double* out) noexcept nogil:
    cdef Py_ssize_t a, b
    for a in range(k):
        for b in range(k):
            out[b * k + a] = x[a * k + b]


cdef void gram_product(
        Py_ssize_t T, Py_ssize_t k, const double* gram, const double* delta,
        double* out) noexcept nogil:
    """out = gram delta, for T x T gram, T x k delta."""
    cdef int n = <int> T, m = <int> k
    cdef double one = 1.0, zero = 0.0
    dgemm("N", "N", &m, &n, &n, &one, <double*> delta, &m, <double*> gram, &n,
          &zero, out, &m)


cdef bint rises_to(const Py_ssize_t[::1] offsets, Py_ssize_t stop) noexcept nogil:
    """Whether offsets are what `check_starts` lets pass, which is slow for one chain."""
    cdef Py_ssize_t i, n = offsets.shape[0] - 1
    if n < 0 or offsets[0] != 0 or offsets[n] != stop:
        return False
    for i in range(n):
        if offsets[i + 1] < offsets[i]:
            return False
    return True


cdef class ChainOracle(BlockOracle):
    """Chains over k labels.

    Parameters
    ----------
    features : Features
        Rows of all positions of all chains; no columns if there is no
        emission.
    offsets : ndarray of shape (n + 1,), dtype intp
        Chain i is rows offsets[i]:offsets[i + 1]; none is empty.
    y : ndarray of shape (offsets[n],), dtype intc, or None
        Label indices. None for an oracle that only decodes and sums: it has no dual
        state, and is not for a solver.
    costs : ndarray of shape (k, k), or (m, k)
        costs[truth, label] of one position, zero on the diagonal. With `cost_rows`,
        costs of labels, zero for the position's label in y.
    bias, first, last, transition : bool
        Which parts the model has.
    normalize : bool
        Whether the loss of a chain is divided by its length.
    allowed : ndarray of shape (k + 1, k + 1), dtype bool, or None
        Which label may follow which, the last row and column being of the beginning and
        of the end; None for all. The true labelings keep to it, which is not checked.
    cost_rows : ndarray of shape (offsets[n],), dtype intc, or None
        The row of `costs` of each position, if that is not its label.
    """

    def __init__(self, Features features, const Py_ssize_t[::1] offsets,
                 const int[::1] y, const double[:, ::1] costs, *, bint bias,
                 bint first, bint last, bint transition, bint normalize, allowed=None,
                 cost_rows=None):
        cdef Py_ssize_t k = costs.shape[1], at = features.n_weights(k)
        cdef Py_ssize_t i, longest = 0
        cdef bint has_state = y is not None
        if not rises_to(offsets, features.n_rows):
            check_starts("offsets", offsets, offsets.shape[0] - 1, features.n_rows)
        for i in range(offsets.shape[0] - 1):
            if offsets[i + 1] == offsets[i]:
                raise ValueError(f"X[{i}] is empty, and has nothing to label.")
            longest = max(longest, offsets[i + 1] - offsets[i])
        check_shape("costs", costs, k if cost_rows is None else len(costs), k)
        if y is None:
            y = np.zeros(features.n_rows, dtype=np.intc)
        else:
            check_shape("y", y, features.n_rows)
            check_indices("y", y, k)
        self.features = features
        self.offsets = offsets
        self.y = self.cost_rows = y
        self.costs = costs
        if cost_rows is not None:
            self.cost_rows = cost_rows
            check_shape("cost_rows", cost_rows, features.n_rows)
            check_indices("cost_rows", cost_rows, len(costs))
        self.k = k
        self.has_bias, self.has_first, self.has_last = bias, first, last
        self.has_transition, self.normalize = transition, normalize
        self.bias_at = at
        self.first_at = self.bias_at + bias * k
        self.last_at = self.first_at + first * k
        self.transition_at = self.last_at + last * k
        self.n_blocks = offsets.shape[0] - 1
        self.n_weights = self.transition_at + transition * k * k
        self.max_labels = longest
        self.n_values = k
        # work: θ of the nodes, the address of the transitions, the table of Viterbi, both
        # once they are softened.
        self.pairs_at = longest * k
        self.table_at = self.pairs_at + 1
        self.soft_at = self.table_at + longest * k
        # And the sums, or the pairs the other way around and then the sums.
        self.sums_at = self.soft_at + longest * k + k * k
        self.rows_at = self.sums_at + 2 * k * k + sum_room(longest, k)
        # Nodes at which given labelings differ from the truth, and what is read of them.
        self.read_at = self.rows_at + (longest + 1) // 2
        self.work_size = self.read_at + table_room(longest * k)
        self.n_scores = longest * k if type(self) is ChainOracle else 0
        self.is_flipped = False
        self.has_forbidden = allowed is not None and not np.all(allowed)
        if self.has_forbidden:
            check_shape("allowed", allowed, k + 1, k + 1)
            self.forbidden = np.logical_not(allowed).astype(np.float64)
            self.has_forbidden_ends = not (np.all(allowed[k]) and np.all(allowed[:, k]))
            self.log_allowed = np.where(np.asarray(allowed)[:k, :k], 0.0, -np.inf)
            self.allowed_pairs = np.exp(self.log_allowed)
            # Logarithms of the numbers of labelings, once they are asked for.
            self.log_counts = np.full(self.n_blocks, np.nan)
            self.masked_at = self.work_size
            self.front_at = self.masked_at + longest * k + k * k
            self.work_size = self.front_at + longest * k + k * k
        # direction: Δ of the nodes, of the edges, the sum of the nodes', for short chains
        # a product with their Gram matrix, and X'Δ for the others; what is listed of the
        # nodes and of the edges, and whether X'Δ is computed.
        if has_state:
            self.grams, self.gram_at = features.grams(offsets)
        self.edges_at = longest * k
        self.sum_at = self.edges_at + transition * k * k
        self.product_at = self.sum_at + k
        self.outer_at = self.product_at + longest * k
        self.nodes_room_at = self.outer_at + features.outer_size(offsets, k)
        self.edges_room_at = self.nodes_room_at + table_room(longest * k)
        self.flag_at = self.edges_room_at + table_room(transition * k * k)
        self.direction_size = self.flag_at + 1
        self.relative_cost = self.counted_cost(features.n_rows - self.n_blocks)
        self.thread_safe = type(self) is ChainOracle
        # A front has the costs of labels that are known.
        self.has_candidates = self.thread_safe and cost_rows is None
        self.has_marginals = type(self) is ChainOracle
        self.has_sums = self.knows_scores = type(self) is ChainOracle
        self.nodes = np.zeros((features.n_rows * has_state, k))
        self.edges = EdgeSums(self.n_blocks * has_state * transition, k * k)
        # For blocks that have none yet.
        self.no_edges = np.zeros(k * k if has_state and transition else 0)

    cdef double counted_cost(self, Py_ssize_t n_edges):
        """`relative_cost` of all blocks, which have this many pairs of nodes."""
        cdef Py_ssize_t n_nodes = self.features.n_rows, k = self.k
        cdef Py_ssize_t row = (k + LANES - 1) // LANES
        cdef double evaluation, search
        if not (self.has_transition or self.has_forbidden):
            n_edges = 0
        # A term of each node and of each pair.
        evaluation = CALL * self.n_blocks + n_nodes + n_edges
        # On the way out a row of costs for each node, and k rows for each pair; on the
        # way back each label of each node.
        search = n_nodes * (row + k) + n_edges * (CALL + k * row)
        return (search + evaluation) / evaluation

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) noexcept nogil:
        return self.offsets[i + 1] - self.offsets[i]

    cdef Py_ssize_t n_labels(self, Py_ssize_t i) noexcept nogil:
        return self.n_nodes(i)

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        memcpy(labels, &self.y[self.offsets[i]], self.n_labels(i) * sizeof(int))
        return 0

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        cdef Py_ssize_t start = self.offsets[i], stop = self.offsets[i + 1]
        cdef Py_ssize_t k = self.k, T = stop - start, t, c
        cdef const double* bias = w + self.bias_at
        self.features.scores(start, stop, w, k, work)
        if self.has_bias:
            for t in range(T):
                for c in range(k):
                    work[t * k + c] += bias[c]
        if self.has_first:
            for c in range(k):
                work[c] += w[self.first_at + c]
        if self.has_last:
            for c in range(k):
                work[(T - 1) * k + c] += w[self.last_at + c]
        if self.has_transition:
            self.set_pairs(work, w + self.transition_at)
        return 0

    cdef void set_pairs(self, double* work, const double* pairs) noexcept nogil:
        """Let `work` have these scores of pairs, which are not copied."""
        memcpy(work + self.pairs_at, &pairs, sizeof(pairs))

    cdef const double* pairs(self, const double* work) noexcept nogil:
        """The scores of pairs of labels."""
        cdef const double* pairs
        memcpy(&pairs, work + self.pairs_at, sizeof(pairs))
        return pairs

    cdef int finite_potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        cdef int size = <int> (self.k * self.k), one = 1
        BlockOracle.finite_potentials(self, i, w, work)
        if self.n_scores > 0 and self.has_transition and not (
                dasum(&size, <double*> w + self.transition_at, &one) < INFINITY):
            not_finite(i)
        return 0

    cdef double loss_unit(self, Py_ssize_t i) noexcept nogil:
        return 1.0 / self.n_labels(i) if self.normalize else 1.0

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, T = self.n_labels(i), t, c, best, following
        cdef bint has_pairs = self.has_transition or self.has_forbidden
        cdef const double* transition = self.pairs(work)
        cdef double* table = work + self.table_at
        cdef const int* cost_row = &self.cost_rows[self.offsets[i]]
        cdef const double* cost
        cdef const double* row
        cdef double value, highest, unit = lam * self.loss_unit(i)
        memcpy(table, work, T * k * sizeof(double))
        if unit != 0.0:
            for t in range(T):
                cost = &self.costs[cost_row[t], 0]
                for c in range(k):
                    table[t * k + c] += unit * cost[c]
        if self.has_forbidden:
            self.forbid_ends(i, INFINITY, table)
            transition = self.forbid_pairs(
                transition, INFINITY, work + self.masked_at)
        if has_pairs:
            for t in range(1, T):
                add_max_plus(
                    k, table + (t - 1) * k, transition, table + t * k)
        # The best predecessors are found again on the way back: k additions a
        # position there are cheaper than keeping k² arg-maxima on the way out.
        for t in range(T - 1, -1, -1):
            row = table + t * k
            best = 0
            if t == T - 1 or not has_pairs:
                highest = row[0]
                for c in range(1, k):
                    if row[c] > highest:
                        highest = row[c]
                        best = c
            else:
                following = labels[t + 1]
                highest = row[0] + transition[following]
                for c in range(1, k):
                    value = row[c] + transition[c * k + following]
                    if value > highest:
                        highest = value
                        best = c
            labels[t] = <int> best
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, T = self.n_labels(i), t
        cdef const double* transition = self.pairs(work)
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* cost_row = &self.cost_rows[self.offsets[i]]
        cdef double total = 0.0, cost = 0.0
        for t in range(T):
            if labels[t] != y[t]:
                total += work[t * k + labels[t]] - work[t * k + y[t]]
                cost += self.costs[cost_row[t], labels[t]]
        if self.has_transition:
            for t in range(1, T):
                if labels[t] != y[t] or labels[t - 1] != y[t - 1]:
                    total += (transition[labels[t - 1] * k + labels[t]]
                              - transition[y[t - 1] * k + y[t]])
        score[0] = total
        loss[0] = cost * self.loss_unit(i)
        return 0

    cdef Py_ssize_t differing(
            self, Py_ssize_t i, Py_ssize_t n, const int* labelings, int* rows
            ) noexcept nogil:
        """Write the nodes at which a labeling differs from the truth; their number."""
        cdef Py_ssize_t T = self.n_nodes(i), t, j, count = 0
        cdef const int* y = &self.y[self.offsets[i]]
        cdef int differs
        for t in range(T):
            differs = 0
            for j in range(n):
                differs |= labelings[j * T + t] ^ y[t]
            rows[count] = <int> t
            count += differs != 0
        return count

    cdef void add_scores(
            self, Py_ssize_t i, const double* work, const double* transition,
            Py_ssize_t n_rows, const int* rows, Py_ssize_t n, const int* labelings,
            double* scores) noexcept nogil:
        """Scores of labelings that differ from the truth at these nodes, as `evaluate`.

        What is equal to the truth adds zero.
        """
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), j, r, t, before
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* labels
        cdef double total
        for j in range(n):
            labels = labelings + j * T
            total = 0.0
            for r in range(n_rows):
                t = rows[r]
                total += work[t * k + labels[t]] - work[t * k + y[t]]
            before = 0
            for r in range(n_rows if self.has_transition else 0):
                t = rows[r]
                # The pair with the node before, unless it is counted, and the one after.
                if t > before:
                    total += (transition[labels[t - 1] * k + labels[t]]
                              - transition[y[t - 1] * k + y[t]])
                before = t + 1
                if before < T:
                    total += (transition[labels[t] * k + labels[before]]
                              - transition[y[t] * k + y[before]])
            scores[j] = total

    cdef int evaluate_each(
            self, Py_ssize_t i, double* work, Py_ssize_t n, const int* labelings,
            double* scores) except -1 nogil:
        cdef int* rows = <int*> (work + self.rows_at)
        cdef Py_ssize_t n_rows
        if not self.knows_scores:
            return BlockOracle.evaluate_each(self, i, work, n, labelings, scores)
        n_rows = self.differing(i, n, labelings, rows)
        self.add_scores(i, work, self.pairs(work), n_rows, rows, n, labelings, scores)
        return 0

    cdef int scores_of(
            self, Py_ssize_t i, const double* w, double* work, Py_ssize_t n,
            const int* labelings, double* scores) except -1 nogil:
        cdef int* rows = <int*> (work + self.rows_at)
        cdef Py_ssize_t n_rows
        if not self.knows_scores or self.k <= FEW_LABELS:
            return BlockOracle.scores_of(self, i, w, work, n, labelings, scores)
        n_rows = self.differing(i, n, labelings, rows)
        self.read_potentials(i, w, n_rows, rows, n, labelings, work)
        self.add_scores(
            i, work, w + self.transition_at, n_rows, rows, n, labelings, scores)
        return 0

    cdef void read_potentials(
            self, Py_ssize_t i, const double* w, Py_ssize_t n_rows, const int* rows,
            Py_ssize_t n, const int* labelings, double* work) noexcept nogil:
        """As `potentials`, for the labels that labelings have at some nodes."""
        cdef Py_ssize_t start = self.offsets[i], stop = self.offsets[i + 1]
        cdef Py_ssize_t k = self.k, T = stop - start, r, t, j, at, place
        cdef Table read = make_table(self.edges_at, work, work + self.read_at)
        read.count[0] = 0
        for r in range(n_rows):
            t = rows[r]
            at = read.count[0]
            place = t * k + self.y[start + t]
            work[place] = 0.0
            table_add(&read, place, 0.0)
            for j in range(n):
                place = t * k + labelings[j * T + t]
                if not read.marks[place]:
                    work[place] = 0.0
                    table_add(&read, place, 0.0)
            for j in range(at, read.count[0]):
                read.marks[read.places[j]] = 0
        self.features.add_place_scores(
            start, stop, w, k, read.count[0], read.places, work)
        r = 0
        for j in range(read.count[0]):
            place = read.places[j]
            while place >= (rows[r] + 1) * k:
                r += 1
            t = rows[r]
            if self.has_bias:
                work[place] += w[self.bias_at + place - t * k]
            if self.has_first and t == 0:
                work[place] += w[self.first_at + place]
            if self.has_last and t == T - 1:
                work[place] += w[self.last_at + place - t * k]

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        cdef Py_ssize_t t
        cdef double cost = 0.0
        cdef const int* cost_row = &self.cost_rows[self.offsets[i]]
        for t in range(self.n_labels(i)):
            cost += self.costs[cost_row[t], labels[t]]
        return cost * self.loss_unit(i)

    cdef Forest forest(self, Py_ssize_t i, const double* work) noexcept nogil:
        """Chain i as a forest, whose edges lead from each position to the next."""
        cdef Forest result
        result.n = self.n_labels(i)
        result.k = self.k
        result.parent = NULL
        result.theta = work
        result.truth = &self.y[self.offsets[i]]
        result.costs = &self.costs[0, 0]
        result.own_costs = False
        result.edge = self.pairs(work) if self.has_transition else NULL
        result.edge_stride = 0
        return result

    cdef void forbid_ends(
            self, Py_ssize_t i, double penalty, double* theta) noexcept nogil:
        """Subtract a penalty from labels that are forbidden at the first or last node."""
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), c
        if not self.has_forbidden_ends:
            return
        for c in range(k):
            if self.forbidden[k, c] != 0.0:
                theta[c] -= penalty
            if self.forbidden[c, k] != 0.0:
                theta[(T - 1) * k + c] -= penalty

    cdef const double* forbid_pairs(
            self, const double* transition, double penalty, double* out
            ) noexcept nogil:
        """Write to `out` the scores of pairs, less a penalty for forbidden ones."""
        cdef Py_ssize_t k = self.k, p, c
        cdef const double* forbidden
        cdef double score
        if penalty == INFINITY and self.has_transition:
            vector_sum(k * k, transition, &self.log_allowed[0, 0], out)
            return out
        for p in range(k):
            forbidden = &self.forbidden[p, 0]
            for c in range(k):
                score = transition[p * k + c] if self.has_transition else 0.0
                out[p * k + c] = score - penalty if forbidden[c] != 0.0 else score
        return out

    cdef double penalty(
            self, Py_ssize_t i, double one, const double* work) noexcept nogil:
        """A penalty that makes one + score negative, whatever the other labels are."""
        cdef Py_ssize_t k = self.k, t
        cdef double lowest = 0.0, highest = 0.0, spread = 0.0
        for t in range(self.n_nodes(i)):
            vector_range(k, work + t * k, &lowest, &highest)
            spread += highest - lowest
        if self.has_transition:
            vector_range(k * k, self.pairs(work), &lowest, &highest)
            spread += self.n_nodes(i) * (highest - lowest)
        return 1.0 + 2.0 * (spread + fabs(one))

    cdef Forest front_forest(self, Py_ssize_t i, const double* work) noexcept nogil:
        """The forest that `candidates` works on."""
        cdef Forest result = self.forest(i, work)
        if self.has_forbidden:
            result.theta = work + self.front_at
            result.edge = work + self.front_at + self.max_labels * self.k
        return result

    cdef int soft_oracle(
            self, Py_ssize_t i, double lam, double temperature, double* work,
            double* value, double* loss) except -1 nogil:
        cdef Forest forest = self.forest(i, work)
        cdef Py_ssize_t start = self.offsets[i], k = self.k, v, parent
        cdef Py_ssize_t size = forest.n * k
        cdef double unit = lam * self.loss_unit(i), by = 1.0 / temperature
        cdef double score = 0.0, cost = 0.0, log_z, log_count, mean, soft
        cdef const double* transition = self.pairs(work)
        cdef double* theta = work + self.soft_at
        cdef double* pairs = theta + size
        cdef double* nodes = &self.nodes[start, 0]
        cdef double* edges = self.edges.all_values(i) if self.has_transition else NULL
        cdef int truth
        memset(theta, 0, (size + k * k) * sizeof(double))
        if self.has_forbidden and isnan(self.log_counts[i]):
            self.log_counts[i] = self.sums(i, theta, pairs, work, NULL, NULL)
        add(size, by, forest.theta, theta)
        for v in range(forest.n):
            add(k, by * unit, &self.costs[self.cost_rows[start + v], 0], theta + v * k)
        if self.has_transition:
            add(k * k, by, transition, pairs)
        log_z = self.sums(i, theta, pairs, work, nodes, edges)
        mean = dot(size, forest.theta, nodes)
        if self.has_transition:
            mean += dot(k * k, transition, edges)
        log_count = forest.n * log(<double> k)
        if self.has_forbidden:
            log_count = self.log_counts[i]
        soft = temperature * (log_z - log_count)
        for v in range(forest.n):
            truth = self.y[start + v]
            cost += dot(k, &self.costs[self.cost_rows[start + v], 0], nodes + v * k)
            score += forest.theta[v * k + truth]
            nodes[v * k + truth] -= 1.0
            parent = parent_of(&forest, v)
            if parent < forest.n:
                score += true_edge(&forest, v, parent)
                if self.is_flipped:
                    edges[self.y[start + parent] * k + truth] -= 1.0
                else:
                    edges[truth * k + self.y[start + parent]] -= 1.0
        if temperature == INFINITY:
            soft = mean + unit * cost
        value[0] = soft - score
        loss[0] = cost * self.loss_unit(i)
        return 0

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef Forest forest = self.front_forest(i, work)
        cdef Py_ssize_t size = forest.n * self.k
        cdef double* theta = work + self.front_at
        cdef double penalty
        if self.has_forbidden:
            penalty = self.penalty(i, one, work)
            memcpy(theta, work, size * sizeof(double))
            self.forbid_ends(i, penalty, theta)
            self.forbid_pairs(self.forest(i, work).edge, penalty,
                              theta + self.max_labels * self.k)
        return forest_front(&forest, one, self.loss_unit(i), plane)

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        cdef Forest forest = self.front_forest(i, work)
        forest_labels(&forest, plane, j, labels)
        return 0

    cdef Py_ssize_t n_factors(self, Py_ssize_t i) noexcept nogil:
        return (self.n_nodes(i) + self.has_transition * self.k) * self.k

    cdef int true_factors(
            self, Py_ssize_t i, double odds, double* factors) except -1 nogil:
        cdef Py_ssize_t t
        memset(factors, 0, self.n_factors(i) * sizeof(double))
        for t in range(self.n_nodes(i)):
            factors[t * self.k + self.y[self.offsets[i] + t]] = odds
        return 0

    cdef int load_factors(
            self, Py_ssize_t i, const double* factors, double* work) except -1 nogil:
        cdef Py_ssize_t k = self.k, size = self.n_nodes(i) * k
        memcpy(work, factors, size * sizeof(double))
        if self.has_transition:
            self.set_pairs(work, factors + size)
        return 0

    cdef int log_sum(
            self, Py_ssize_t i, double* work, double* value) except -1 nogil:
        cdef Forest forest = self.forest(i, work)
        if self.has_forbidden:
            value[0] = self.sums(
                i, work, self.pairs(work), work, NULL, NULL)
        else:
            value[0] = sum_product(&forest, NULL, work + self.sums_at, NULL, NULL)
        # No probability is above one, and no entropy below zero, but for rounding.
        value[0] = max(value[0] - self.true_score(i, work), 0.0)
        return 0

    cdef double true_score(self, Py_ssize_t i, const double* work) noexcept nogil:
        """⟨θ_i, μ(y_i)⟩."""
        cdef Forest forest = self.forest(i, work)
        cdef Py_ssize_t v, p
        cdef double total = 0.0
        for v in range(forest.n):
            total += forest.theta[v * forest.k + forest.truth[v]]
            p = parent_of(&forest, v)
            if p < forest.n:
                total += true_edge(&forest, v, p)
        return total

    cdef double sums(
            self, Py_ssize_t i, const double* theta, const double* transition,
            double* work, double* nodes, double* edges) noexcept nogil:
        """log Z of these potentials, and their marginals; see `sum_product`."""
        cdef Forest forest = self.forest(i, work)
        cdef double* flipped = work + self.sums_at
        cdef double* pairs = flipped + self.k * self.k
        cdef double* room = pairs + self.k * self.k
        cdef double* masked = work + self.masked_at
        cdef const double* allowed_pairs = NULL
        cdef double log_z
        forest.theta = theta
        if self.has_forbidden:
            allowed_pairs = &self.allowed_pairs[0, 0]
            if self.has_forbidden_ends:
                memcpy(masked, theta, forest.n * self.k * sizeof(double))
                self.forbid_ends(i, INFINITY, masked)
                forest.theta = masked
            if not self.has_transition:
                masked += self.max_labels * self.k
                memset(masked, 0, self.k * self.k * sizeof(double))
                forest.edge = masked
        if not self.has_transition:
            return sum_product(&forest, allowed_pairs, room, nodes, NULL)
        forest.edge = transition
        if not self.is_flipped:
            return sum_product(&forest, allowed_pairs, room, nodes, edges)
        transpose(self.k, transition, flipped)
        forest.edge = flipped
        log_z = sum_product(&forest, allowed_pairs, room, nodes, pairs)
        if edges != NULL:
            transpose(self.k, pairs, edges)
        return log_z

    cdef int tilt(
            self, Py_ssize_t i, double gamma, double* work, const double* factors,
            double* tilted, double* out, double* squared_norm, double* slope,
            double* entropy) except -1 nogil:
        cdef Forest forest = self.forest(i, work)
        cdef Py_ssize_t k = self.k, size = forest.n * k, v, p
        cdef const int* y = forest.truth
        cdef const double* transition = self.pairs(work)
        cdef double* edges = out + self.edges_at
        cdef const double* before
        cdef Table node_table = self.node_table(out), edge_table
        table_fill(&node_table, size)
        vector_mix(size, gamma, factors, work, tilted)
        if self.has_transition:
            vector_mix(k * k, gamma, factors + size, transition, tilted + size)
        entropy[0] = self.sums(i, tilted, tilted + size, work, out, edges)
        entropy[0] -= dot(size, tilted, out)
        for v in range(forest.n):
            out[v * k + y[v]] -= 1.0
        slope[0] = vector_move_to(
            size, factors, work, &self.nodes[self.offsets[i], 0], out)
        if self.has_transition:
            edge_table = self.edge_table(out)
            table_fill(&edge_table, k * k)
            before = self.edges.all_or_none(i)
            if before == NULL:
                before = &self.no_edges[0]
            entropy[0] -= dot(k * k, tilted + size, edges)
            for v in range(forest.n):
                p = parent_of(&forest, v)
                if p < forest.n and self.is_flipped:
                    edges[y[p] * k + y[v]] -= 1.0
                elif p < forest.n:
                    edges[y[v] * k + y[p]] -= 1.0
            slope[0] += vector_move_to(
                k * k, factors + size, transition, before, edges)
        entropy[0] = max(entropy[0], 0.0)
        return self.complete(i, out, squared_norm)

    def marginals(self, w, int n_threads=1):
        """Probabilities of the labels of all nodes of all blocks, given the weights.

        Parameters
        ----------
        w : array-like of shape (n_weights,)
        n_threads : int

        Returns
        -------
        nodes : ndarray of shape (Σ_i n_labels(i), k)
        entropies : ndarray of shape (n_blocks,)
            Of the distributions over the labelings.
        log_sums : ndarray of shape (n_blocks,)
            log Z_i - ⟨θ_i, μ(y_i)⟩, which is -log of the probability of y_i.
        """
        cdef Py_ssize_t i, j, n = self.n_blocks, k = self.k, size
        cdef const double[::1] weights = as_floats(
            "w", w, self.n_weights, finite=self.n_scores == 0)
        nodes, entropies, log_sums = (
            np.zeros((self.offsets[n], k)), np.zeros(n), np.zeros(n))
        cdef double[:, ::1] probabilities = nodes
        cdef double[::1] entropy = entropies, log_sum = log_sums
        cdef int t
        n_threads = max(1, min(n_threads, n)) if self.thread_safe else 1
        cdef double[:, ::1] work = np.zeros((n_threads, self.work_size))
        cdef double[:, ::1] pairs = np.zeros((n_threads, k * k))
        cdef const double* transition
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
            t = threadid()
            self.finite_potentials(i, &weights[0], &work[t, 0])
            transition = self.pairs(&work[t, 0])
            size = self.n_nodes(i) * k
            j = self.offsets[i]
            log_sum[i] = self.sums(
                i, &work[t, 0], transition, &work[t, 0], &probabilities[j, 0],
                &pairs[t, 0])
            entropy[i] = log_sum[i] - dot(size, &work[t, 0], &probabilities[j, 0])
            if self.has_transition:
                entropy[i] = entropy[i] - dot(k * k, transition, &pairs[t, 0])
            entropy[i] = max(entropy[i], 0.0)
            log_sum[i] = max(log_sum[i] - self.true_score(i, &work[t, 0]), 0.0)
        return nodes, entropies, log_sums

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        cdef Py_ssize_t k = self.k
        score[0] = dot(self.n_nodes(i) * k, work, &self.nodes[self.offsets[i], 0])
        if self.has_transition:
            score[0] += self.edges.dot(i, self.pairs(work))
        return 0

    cdef Table node_table(self, double* out) noexcept nogil:
        """Δ of the nodes."""
        return make_table(
            self.edges_at, out, out + self.nodes_room_at)

    cdef Table edge_table(self, double* out) noexcept nogil:
        """Δ of the edges."""
        return make_table(
            self.k * self.k, out + self.edges_at, out + self.edges_room_at)

    cdef void add_corners(
            self, Py_ssize_t i, Py_ssize_t n, const double* a, const int* s,
            double* out) noexcept nogil:
        """Δ += Σ_j a_j (μ(s_j) - μ(y_i)), with nodes in their order in the list."""
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), t, j, count = 0
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* labels
        cdef Table nodes = self.node_table(out), edges
        cdef Py_ssize_t moved[MANY_LABELINGS]
        for j in range(n):
            if a[j] != 0.0:
                if count == MANY_LABELINGS:
                    # No node is left out, and none is listed.
                    table_fill(&nodes, T * k)
                    self.add_nodes(i, count, moved, a, s, &nodes)
                    count = 0
                moved[count] = j
                count += 1
        self.add_nodes(i, count, moved, a, s, &nodes)
        if not self.has_transition:
            return
        edges = self.edge_table(out)
        for j in range(n):
            labels = s + j * T
            for t in range(1, T if a[j] != 0.0 else 0):
                if labels[t] != y[t] or labels[t - 1] != y[t - 1]:
                    table_add(&edges, labels[t - 1] * k + labels[t], a[j])
                    table_add(&edges, y[t - 1] * k + y[t], -a[j])

    cdef void add_nodes(
            self, Py_ssize_t i, Py_ssize_t n, const Py_ssize_t* moved, const double* a,
            const int* s, const Table* nodes) noexcept nogil:
        """Σ a_j (μ(s_j) - μ(y_i)) of the nodes, for the n labelings `moved`."""
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), t, m, j
        cdef const int* y = &self.y[self.offsets[i]]
        for t in range(T):
            for m in range(n):
                j = moved[m]
                if s[j * T + t] != y[t]:
                    table_add(nodes, t * k + s[j * T + t], a[j])
                    table_add(nodes, t * k + y[t], -a[j])

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        cdef Py_ssize_t start = self.offsets[i], k = self.k
        cdef Table nodes = self.node_table(out), edges
        table_clear(&nodes)
        if self.has_transition:
            edges = self.edge_table(out)
            table_clear(&edges)
            if c != 0.0:
                self.edges.add_to(i, c, &edges)
            if k <= FEW_LABELS:
                table_fill(&edges, k * k)
        if c != 0.0 or k <= FEW_LABELS:
            table_fill(&nodes, self.n_nodes(i) * k)
        if c != 0.0:
            add(self.n_nodes(i) * k, c, &self.nodes[start, 0], out)
        self.add_corners(i, n, a, s, out)
        return self.complete(i, out, squared_norm)

    cdef int complete(
            self, Py_ssize_t i, double* out, double* squared_norm) except -1 nogil:
        """Compute the parts of a direction beside Δ itself, and its squared norm."""
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), t, j, place
        cdef double* edges = out + self.edges_at
        cdef double* total = out + self.sum_at
        cdef double* product = out + self.product_at
        cdef Table table = self.node_table(out)
        cdef double norm = 0.0
        out[self.flag_at] = 0.0
        if self.has_bias:
            memset(total, 0, k * sizeof(double))
            if table.count[0] < 0:
                for t in range(T):
                    for j in range(k):
                        total[j] += out[t * k + j]
            else:
                t = 0
                for j in range(table.count[0]):
                    place = table.places[j]
                    while place >= (t + 1) * k:
                        t += 1
                    total[place - t * k] += out[place]
        if squared_norm == NULL:
            return 0
        if self.gram_at[i] >= 0:
            # ||X'Δ||² = ⟨Δ, XX'Δ⟩
            gram_product(T, k, &self.grams[self.gram_at[i]], out, product)
            norm = dot(T * k, out, product)
        else:
            norm = self.find_outer(i, out)
        if self.has_bias:
            norm += dot(k, total, total)
        if self.has_first:
            norm += dot(k, out, out)
        if self.has_last:
            norm += dot(k, out + (T - 1) * k, out + (T - 1) * k)
        if self.has_transition:
            table = self.edge_table(out)
            if table.count[0] < 0:
                norm += dot(k * k, edges, edges)
            else:
                for j in range(table.count[0]):
                    norm += edges[table.places[j]] * edges[table.places[j]]
        squared_norm[0] = norm
        return 0

    cdef double find_outer(self, Py_ssize_t i, double* out) noexcept nogil:
        """X'Δ into its place, unless it is known; its squared norm if not."""
        if out[self.flag_at] != 0.0:
            return 0.0
        out[self.flag_at] = 1.0
        return self.features.outer(
            self.offsets[i], self.offsets[i + 1], out, self.k, out + self.outer_at)

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        cdef Py_ssize_t start = self.offsets[i], stop = self.offsets[i + 1]
        cdef Py_ssize_t k = self.k, T = stop - start, t
        if self.gram_at[i] >= 0:
            gram_product(T, k, &self.grams[self.gram_at[i]], direction, work)
        else:
            self.find_outer(i, <double*> direction)
            self.features.outer_scores(start, stop, direction + self.outer_at, k, work)
        if self.has_bias:
            for t in range(T):
                add(k, 1.0, direction + self.sum_at, work + t * k)
        if self.has_first:
            add(k, 1.0, direction, work)
        if self.has_last:
            add(k, 1.0, direction + (T - 1) * k, work + (T - 1) * k)
        if self.has_transition:
            self.set_pairs(work, direction + self.edges_at)
        return 0

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        cdef Py_ssize_t j, place
        cdef Table table = self.edge_table(<double*> direction)
        cdef double* nodes = &self.nodes[self.offsets[i], 0]
        if self.has_transition:
            self.edges.move(i, gamma, &table)
        table = self.node_table(<double*> direction)
        if table.count[0] < 0:
            add(self.n_nodes(i) * self.k, gamma, direction, nodes)
        else:
            for j in range(table.count[0]):
                place = table.places[j]
                nodes[place] += gamma * direction[place]
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        cdef Py_ssize_t start = self.offsets[i], stop = self.offsets[i + 1]
        cdef Py_ssize_t k = self.k, last = (stop - start - 1) * k, j
        cdef double* pairs = target + self.transition_at
        cdef const double* edges = direction + self.edges_at
        cdef Table table = self.node_table(<double*> direction)
        if direction[self.flag_at] != 0.0:
            self.features.add_outer(coef, direction + self.outer_at, k, target)
        elif table.count[0] < 0 and self.gram_at[i] < 0:
            self.find_outer(i, <double*> direction)
            self.features.add_outer(coef, direction + self.outer_at, k, target)
        elif table.count[0] < 0:
            self.features.add_rows(start, stop, coef, direction, k, target)
        else:
            self.features.add_places(
                start, stop, coef, direction, table.count[0], table.places, k, target)
        if self.has_bias:
            add(k, coef, direction + self.sum_at, target + self.bias_at)
        if self.has_first:
            add(k, coef, direction, target + self.first_at)
        if self.has_last:
            add(k, coef, direction + last, target + self.last_at)
        if self.has_transition:
            table = self.edge_table(<double*> direction)
            if table.count[0] < 0:
                add(k * k, coef, edges, pairs)
            else:
                for j in range(table.count[0]):
                    pairs[table.places[j]] += coef * edges[table.places[j]]
        return 0

    cdef int project(
            self, Py_ssize_t i, const double* direction, const double* v,
            const double* lower, const double* upper, double* w) except -1 nogil:
        cdef Py_ssize_t j = self.bias_at
        self.features.project_rows(
            self.offsets[i], self.offsets[i + 1], self.k, v, lower, upper, w)
        clip(self.n_weights - j, v + j, lower + j, upper + j, w + j)
        return 0

    cdef int shrink(
            self, Py_ssize_t i, const double* direction, const double* v,
            double threshold, double* w) except -1 nogil:
        cdef Py_ssize_t j = self.bias_at
        self.features.shrink_rows(
            self.offsets[i], self.offsets[i + 1], self.k, v, threshold, w)
        soft_threshold(self.n_weights - j, v + j, threshold, w + j)
        return 0

    cdef int mark(
            self, Py_ssize_t i, const double* direction, unsigned char* pages
            ) except -1 nogil:
        self.features.mark_rows(
            self.offsets[i], self.offsets[i + 1], direction, self.k, 0, pages)
        mark_range(self.bias_at, self.n_weights, pages)
        return 0

    def get_blocks(self):
        return np.array(self.nodes), self.edges.get()

    def set_blocks(self, blocks):
        nodes, edges = as_tuple("blocks", blocks, 2)
        restore("nodes of the blocks", self.nodes, nodes)
        self.edges.set(edges)

    def scale_blocks(self, double rho):
        np.asarray(self.nodes)[...] *= rho
        self.edges.scale(rho)
