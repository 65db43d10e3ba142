"""Oracle of a chain: Viterbi over positions with shared transitions.

With x_t the features of position t, the weights are read as

    [emission (n_features, k)] [bias (k,)] [first (k,)] [last (k,)]
    [transition (k, k), previous label first],

where each part may be absent. Scoring given labelings reads only the weights that these
labelings touch. The dual blocks are in _chain_blocks.pyx, and sums over all labelings in
_chain_sums.pyx.

The potentials ignore forbidden labels and pairs, because inner products with marginals
use the potentials. Decoders and sums read copies from which a penalty is subtracted. It
is infinite for maxima and sums. The front of slack rescaling subtracts scores, so there
the penalty is finite: just large enough to make one + score negative.
"""
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dasum

from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm._contract._oracle cimport (
    CALL, LANES, BlockOracle, Plane, not_finite)
from sklearn_structsvm.structures._chain_blocks cimport FEW_LABELS
from sklearn_structsvm.structures._chain_sums cimport ChainSums
from sklearn_structsvm.structures._edge_sums cimport Table, make_table
from sklearn_structsvm.structures._forest cimport Forest
from sklearn_structsvm.structures._pareto cimport (
    forest_front, forest_labels)


cdef extern from "structures/_max_plus.h" nogil:
    void add_max_plus(
        Py_ssize_t k, const double* previous, const double* pairs,
        double* current) noexcept


cdef extern from "structures/_sum_product.h" nogil:
    void vector_range(
        Py_ssize_t k, const double* x, double* lowest, double* highest) noexcept


# Nodes whose scores are added to those of labelings at once.
cdef enum:
    NODES_AT_ONCE = 64


cdef class ChainOracle(ChainSums):
    """Chains over k labels.

    Parameters
    ----------
    features : Features
        One row per position, over all chains; no columns if there is no
        emission.
    offsets : ndarray of shape (n + 1,), dtype intp
        Chain i is rows offsets[i]:offsets[i + 1]; no chain is empty.
    y : ndarray of shape (offsets[n],), dtype intc, or None
        Label indices. None for an oracle that only decodes and sums; it has no dual
        state, so that a solver cannot use it.
    costs : ndarray of shape (k, k), or (m, k)
        costs[truth, label] of one position, zero on the diagonal. With `cost_rows`, a
        position's row has the cost of each label, and zero for its label in y.
    bias, first, last, transition : bool
        Which parts the model has.
    normalize : bool
        Whether the loss of a chain is divided by its length.
    allowed : ndarray of shape (k + 1, k + 1), dtype bool, or None
        allowed[a, b]: whether label b may follow label a. The last row is for the
        beginning and the last column for the end of a chain. None allows all. The true
        labelings must comply, which is not checked.
    cost_rows : ndarray of shape (offsets[n],), dtype intc, or None
        The row of `costs` for each position; None if that is its label.
    """

    def __init__(self, Features features, const Py_ssize_t[::1] offsets,
                 const int[::1] y, const double[:, ::1] costs, *, bint bias,
                 bint first, bint last, bint transition, bint normalize, allowed=None,
                 cost_rows=None):
        cdef bint is_chain = type(self) is ChainOracle
        self.bind(
            features, offsets, y, costs, bias, first, last, transition, normalize,
            allowed, cost_rows)
        self.n_scores = self.max_labels * self.k if is_chain else 0
        self.relative_cost = self.counted_cost(
            (transition or self.has_forbidden) * (features.n_rows - self.n_blocks))
        self.thread_safe = self.has_marginals = self.has_candidates = is_chain
        self.has_sums = self.knows_scores = is_chain
        self.reads_whole_rows = features.scores_whole_rows(self.k)

    cdef double counted_cost(self, Py_ssize_t n_edges):
        """`relative_cost` of all blocks, with `n_edges` scored pairs of nodes in all."""
        cdef Py_ssize_t n_nodes = self.features.n_rows, k = self.k
        cdef Py_ssize_t row = (k + LANES - 1) // LANES
        cdef double evaluation, search
        # One term per node and one per pair.
        evaluation = CALL * self.n_blocks + n_nodes + n_edges
        # Forward pass: a row of costs per node, and k rows per pair. Backward pass: each
        # label of each node.
        search = n_nodes * (row + k) + n_edges * (CALL + k * row)
        return (search + evaluation) / evaluation

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        cdef Py_ssize_t start = self.offsets[i], stop = self.offsets[i + 1]
        cdef Py_ssize_t k = self.k, T = stop - start, t
        self.features.scores(start, stop, w, k, work)
        for t in range(T):
            self.add_biases(t, T, w, work + t * k)
        if self.has_transition:
            self.set_pairs(work, w + self.transition_at)
        return 0

    cdef void add_biases(
            self, Py_ssize_t t, Py_ssize_t T, const double* w, double* row
            ) noexcept nogil:
        """row += the biases of node t of T."""
        cdef Py_ssize_t k = self.k, c
        cdef const double* bias = w + self.bias_at
        if self.has_bias:
            for c in range(k):
                row[c] += bias[c]
        if self.has_first and t == 0:
            for c in range(k):
                row[c] += w[self.first_at + c]
        if self.has_last and t == T - 1:
            for c in range(k):
                row[c] += w[self.last_at + c]

    cdef int finite_potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        cdef int size = <int> (self.k * self.k), one = 1
        BlockOracle.finite_potentials(self, i, w, work)
        if self.n_scores > 0 and self.has_transition and not (
                dasum(&size, <double*> w + self.transition_at, &one) < INFINITY):
            not_finite(i)
        return 0

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
        # The backward pass finds the best predecessors again: k additions per position
        # are cheaper than tracking the arg-maxima over k² pairs in the forward pass.
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
        """List the nodes at which a labeling differs from the truth; return how many."""
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
        """Same scores as `evaluate`, for labelings equal to the truth except at `rows`.

        Terms that agree with the truth add zero.
        """
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), j, r, t, count, n_pairs
        cdef Py_ssize_t first = 0, before = 0
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* labels
        # The scores of the truth at these nodes, the first nodes of the pairs with these
        # nodes, and the scores of the truth there.
        cdef double[NODES_AT_ONCE] own
        cdef Py_ssize_t[2 * NODES_AT_ONCE] pairs
        cdef double[2 * NODES_AT_ONCE] own_pairs
        cdef double total
        for j in range(n):
            scores[j] = 0.0
        while first < n_rows:
            count = min(n_rows - first, NODES_AT_ONCE)
            n_pairs = 0
            for r in range(count):
                t = rows[first + r]
                own[r] = work[t * k + y[t]]
                if not self.has_transition:
                    continue
                # The pair with the node before, unless already listed, and with the next.
                if t > before:
                    pairs[n_pairs] = t - 1
                    n_pairs += 1
                before = t + 1
                if before < T:
                    pairs[n_pairs] = t
                    n_pairs += 1
            for r in range(n_pairs):
                t = pairs[r]
                own_pairs[r] = transition[y[t] * k + y[t + 1]]
            for j in range(n):
                labels = labelings + j * T
                total = scores[j]
                for r in range(count):
                    t = rows[first + r]
                    total += work[t * k + labels[t]] - own[r]
                for r in range(n_pairs):
                    t = pairs[r]
                    total += transition[labels[t] * k + labels[t + 1]] - own_pairs[r]
                scores[j] = total
            first += NODES_AT_ONCE

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

    cdef int read_potentials(
            self, Py_ssize_t i, const double* w, Py_ssize_t n_rows, const int* rows,
            Py_ssize_t n, const int* labelings, double* work) except -1 nogil:
        """Same as `potentials`, only for the true and the given labels at these nodes.

        If all labels of a node take no longer than a few, it computes them all.
        """
        cdef Py_ssize_t start = self.offsets[i], stop = self.offsets[i + 1]
        cdef Py_ssize_t k = self.k, T = stop - start, r, t, j, at, place
        # One spare place: the last label written may be a repeat, which is not counted.
        cdef Table read = make_table(self.edges_at + 1, work, work + self.read_at)
        cdef Py_ssize_t count = 0
        cdef int* places = read.places
        cdef unsigned char* marks = read.marks
        cdef const int* labels
        if self.reads_whole_rows:
            for r in range(n_rows):
                t = rows[r]
                self.features.scores(start + t, start + t + 1, w, k, work + t * k)
                self.add_biases(t, T, w, work + t * k)
            return 0
        for r in range(n_rows):
            t = rows[r]
            labels = labelings + t
            at = count
            place = t * k + self.y[start + t]
            work[place] = 0.0
            places[count] = <int> place
            marks[place] = 1
            count += 1
            for j in range(n):
                place = t * k + labels[j * T]
                work[place] = 0.0
                places[count] = <int> place
                count += 1 - marks[place]
                marks[place] = 1
            for j in range(at, count):
                marks[places[j]] = 0
        self.features.add_place_scores(
            start, stop, w, k, count, places, work)
        r = 0
        for j in range(count):
            place = places[j]
            while place >= (rows[r] + 1) * k:
                r += 1
            t = rows[r]
            if self.has_bias:
                work[place] += w[self.bias_at + place - t * k]
            if self.has_first and t == 0:
                work[place] += w[self.first_at + place]
            if self.has_last and t == T - 1:
                work[place] += w[self.last_at + place - t * k]
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        cdef Py_ssize_t t
        cdef double cost = 0.0
        cdef const int* cost_row = &self.cost_rows[self.offsets[i]]
        for t in range(self.n_labels(i)):
            cost += self.costs[cost_row[t], labels[t]]
        return cost * self.loss_unit(i)

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
