"""The dual blocks of chains, and directions in them.

The marginals of a block are T x k for its nodes, and k x k for the sum over its edges,
which share one transition matrix. A few labelings touch few entries of both, so
directions list the entries that they touch.
"""
import numpy as np

from sklearn_structsvm._utils.borders import (
    as_tuple, check_indices, check_shape, check_starts, restore)

from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm

from sklearn_structsvm._utils._matrix._features cimport (
    Features, clip, mark_range, soft_threshold)
from sklearn_structsvm._contract._oracle cimport CALL, LANES, BlockOracle
from sklearn_structsvm.structures._edge_sums cimport (
    EdgeSums, Table, make_table, table_clear, table_fill, table_room)
from sklearn_structsvm.structures._sum_product cimport sum_room

# A direction with more labelings than this does not list the entries of its nodes. (Nor
# does any with at most FEW_LABELS labels.)
cdef enum:
    MANY_LABELINGS = 128


cdef inline Py_ssize_t table_list(
        const Table* table, Py_ssize_t n_listed, Py_ssize_t place) noexcept nogil:
    """List a place, the last one if it is new; returns the number of listed places.

    The table has room for one place more than can be new.
    """
    table.places[n_listed] = <int> place
    n_listed += 1 - table.marks[place]
    table.marks[place] = 1
    return n_listed


cdef void add(Py_ssize_t n, double coef, const double* x, double* y) noexcept nogil:
    cdef int size = <int> n, one = 1
    daxpy(&size, &coef, <double*> x, &one, y, &one)


cdef double dot(Py_ssize_t n, const double* x, const double* y) noexcept nogil:
    cdef int size = <int> n, one = 1
    return ddot(&size, <double*> x, &one, <double*> y, &one)


cdef void gram_product(
        Py_ssize_t T, Py_ssize_t k, const double* gram, const double* delta,
        double* out) noexcept nogil:
    """out = gram delta, for T x T gram, T x k delta."""
    cdef int n = <int> T, m = <int> k
    cdef double one = 1.0, zero = 0.0
    dgemm("N", "N", &m, &n, &n, &one, <double*> delta, &m, <double*> gram, &n,
          &zero, out, &m)


cdef bint rises_to(const Py_ssize_t[::1] offsets, Py_ssize_t stop) noexcept nogil:
    """Whether `check_starts` would accept the offsets; it is slow for a single chain."""
    cdef Py_ssize_t i, n = offsets.shape[0] - 1
    if n < 0 or offsets[0] != 0 or offsets[n] != stop:
        return False
    for i in range(n):
        if offsets[i + 1] < offsets[i]:
            return False
    return True


cdef class ChainBlocks(BlockOracle):
    """Data of chains over k labels, and the state of their blocks."""

    cdef int bind(
            self, Features features, const Py_ssize_t[::1] offsets, const int[::1] y,
            const double[:, ::1] costs, bint bias, bint first, bint last,
            bint transition, bint normalize, allowed, cost_rows) except -1:
        """Check and keep the parameters of `ChainOracle`; lay out the scratch memory."""
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
        # work: θ of the nodes, the address of the transitions, the Viterbi table, then
        # for `soft_oracle` the potentials of nodes and pairs divided by the temperature.
        self.pairs_at = longest * k
        self.table_at = self.pairs_at + 1
        self.soft_at = self.table_at + longest * k
        # Then the memory of `sum_product`, in `sums` after two tables of flipped pairs.
        self.sums_at = self.soft_at + longest * k + k * k
        self.rows_at = self.sums_at + 2 * k * k + sum_room(longest, k)
        # Then the nodes at which given labelings differ from the truth, and a table of
        # the potentials read there.
        self.read_at = self.rows_at + (longest + 1) // 2
        self.work_size = self.read_at + table_room(longest * k + 1)
        self.is_flipped = False
        self.has_forbidden = allowed is not None and not np.all(allowed)
        if self.has_forbidden:
            check_shape("allowed", allowed, k + 1, k + 1)
            self.forbidden = np.logical_not(allowed).astype(np.float64)
            self.has_forbidden_ends = not (np.all(allowed[k]) and np.all(allowed[:, k]))
            self.log_allowed = np.where(np.asarray(allowed)[:k, :k], 0.0, -np.inf)
            self.allowed_pairs = np.exp(self.log_allowed)
            # Logarithms of the numbers of allowed labelings; NaN until first needed.
            self.log_counts = np.full(self.n_blocks, np.nan)
            self.masked_at = self.work_size
            self.front_at = self.masked_at + longest * k + k * k
            self.work_size = self.front_at + longest * k + k * k
        # direction: Δ of the nodes, Δ of the edges, the sum of Δ over the nodes, the
        # product with the Gram matrix (short chains), and X'Δ (other chains); then the
        # lists of the entries of nodes and of edges, and whether X'Δ is computed.
        if has_state:
            self.grams, self.gram_at = features.grams(offsets)
        self.edges_at = longest * k
        self.sum_at = self.edges_at + transition * k * k
        self.product_at = self.sum_at + k
        self.outer_at = self.product_at + longest * k
        self.nodes_room_at = self.outer_at + features.outer_size(offsets, k)
        # One spare place each: the last one written may be a repeat.
        self.edges_room_at = self.nodes_room_at + table_room(longest * k + 1)
        self.flag_at = self.edges_room_at + table_room(transition * k * k + 1)
        self.direction_size = self.flag_at + 1
        self.nodes = np.zeros((features.n_rows * has_state, k))
        self.edges = EdgeSums(self.n_blocks * has_state * transition, k * k)
        # Zeros, for blocks whose edge sums are all zero.
        self.no_edges = np.zeros(k * k if has_state and transition else 0)
        return 0

    def step_cost(self):
        """As for `BlockOracle`; features are read for scores, and for the weights."""
        cdef Py_ssize_t n = max(self.n_blocks, 1)
        cdef Py_ssize_t row = (self.k + LANES - 1) // LANES
        evaluations = CALL * n + 2 * self.features.n_rows
        entries = np.maximum(self.features.n_entries(self.offsets), 0).sum()
        return (self.relative_cost * evaluations + 2 * entries * row) / n

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) noexcept nogil:
        return self.offsets[i + 1] - self.offsets[i]

    cdef Py_ssize_t n_labels(self, Py_ssize_t i) noexcept nogil:
        return self.n_nodes(i)

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        memcpy(labels, &self.y[self.offsets[i]], self.n_labels(i) * sizeof(int))
        return 0

    cdef void set_pairs(self, double* work, const double* pairs) noexcept nogil:
        """Point `work` to these scores of pairs, which are not copied."""
        memcpy(work + self.pairs_at, &pairs, sizeof(pairs))

    cdef const double* pairs(self, const double* work) noexcept nogil:
        """The scores of pairs of labels."""
        cdef const double* pairs
        memcpy(&pairs, work + self.pairs_at, sizeof(pairs))
        return pairs

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
            self.edges_at + 1, out, out + self.nodes_room_at)

    cdef Table edge_table(self, double* out) noexcept nogil:
        """Δ of the edges."""
        return make_table(
            self.k * self.k + 1, out + self.edges_at, out + self.edges_room_at)

    cdef void add_atoms(
            self, Py_ssize_t i, Py_ssize_t n, const double* a, const int* s,
            double* out) noexcept nogil:
        """Δ += Σ_j a_j (μ(s_j) - μ(y_i)); nodes are listed in their order."""
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), t, j, count = 0
        cdef Py_ssize_t n_listed, place, own
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* labels
        cdef Table nodes = self.node_table(out), edges
        cdef bint differs, differed
        cdef Py_ssize_t moved[MANY_LABELINGS]
        for j in range(n):
            if a[j] != 0.0:
                if count == MANY_LABELINGS:
                    # From here on, all entries of nodes count, and none is listed.
                    table_fill(&nodes, T * k)
                    self.add_nodes(i, count, moved, a, s, &nodes)
                    count = 0
                moved[count] = j
                count += 1
        self.add_nodes(i, count, moved, a, s, &nodes)
        if not self.has_transition:
            return
        edges = self.edge_table(out)
        n_listed = edges.count[0]
        for j in range(n):
            if a[j] == 0.0:
                continue
            labels = s + j * T
            differs = labels[0] != y[0]
            for t in range(1, T):
                differed = differs
                differs = labels[t] != y[t]
                if not (differs or differed):
                    continue
                place = labels[t - 1] * k + labels[t]
                own = y[t - 1] * k + y[t]
                edges.values[place] += a[j]
                edges.values[own] -= a[j]
                if n_listed >= 0:
                    n_listed = table_list(&edges, n_listed, place)
                    n_listed = table_list(&edges, n_listed, own)
        edges.count[0] = n_listed

    cdef void add_nodes(
            self, Py_ssize_t i, Py_ssize_t n, const Py_ssize_t* moved, const double* a,
            const int* s, const Table* nodes) noexcept nogil:
        """Add Σ_j a_j (μ(s_j) - μ(y_i)) of the nodes, over the n labelings `moved`."""
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), t, m, j, own
        cdef const int* y = &self.y[self.offsets[i]]
        cdef Py_ssize_t place, n_listed = nodes.count[0]
        cdef double rest
        cdef bint differs
        for t in range(T):
            own = t * k + y[t]
            rest = nodes.values[own]
            differs = False
            for m in range(n):
                j = moved[m]
                place = t * k + s[j * T + t]
                if place != own:
                    nodes.values[place] += a[j]
                    if n_listed >= 0:
                        n_listed = table_list(nodes, n_listed, place)
                    rest -= a[j]
                    differs = True
            if differs:
                if n_listed >= 0:
                    n_listed = table_list(nodes, n_listed, own)
                nodes.values[own] = rest
        nodes.count[0] = n_listed

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
        self.add_atoms(i, n, a, s, out)
        return self.complete(i, out, squared_norm)

    cdef int complete(
            self, Py_ssize_t i, double* out, double* squared_norm) except -1 nogil:
        """Compute the parts of a direction besides Δ itself, and its squared norm."""
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

    cdef double find_outer(self, Py_ssize_t i, double* out) except -1.0 nogil:
        """Compute X'Δ and return its squared norm; if it is known, just return 0."""
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
        cdef bint is_listed
        cdef double* pairs = target + self.transition_at
        cdef const double* edges = direction + self.edges_at
        cdef Table table = self.node_table(<double*> direction)
        is_listed = table.count[0] >= 0
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
        if is_listed:
            self.add_place_biases(last, coef, direction, &table, target)
        if self.has_bias and not is_listed:
            add(k, coef, direction + self.sum_at, target + self.bias_at)
        if self.has_first and not is_listed:
            add(k, coef, direction, target + self.first_at)
        if self.has_last and not is_listed:
            add(k, coef, direction + last, target + self.last_at)
        if self.has_transition:
            table = self.edge_table(<double*> direction)
            if table.count[0] < 0:
                add(k * k, coef, edges, pairs)
            else:
                for j in range(table.count[0]):
                    pairs[table.places[j]] += coef * edges[table.places[j]]
        return 0

    cdef void add_place_biases(
            self, Py_ssize_t last, double coef, const double* direction,
            const Table* nodes, double* target) noexcept nogil:
        """The biases' part of `scatter`; the places of the last node begin at `last`."""
        cdef Py_ssize_t k = self.k, node = 0, j, place, label
        cdef double change
        for j in range(nodes.count[0]):
            place = nodes.places[j]
            while place >= node + k:
                node += k
            label = place - node
            change = coef * direction[place]
            if self.has_bias:
                target[self.bias_at + label] += change
            if self.has_first and node == 0:
                target[self.first_at + label] += change
            if self.has_last and node == last:
                target[self.last_at + label] += change

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
