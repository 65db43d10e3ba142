"""Oracle of trees: max-sum from the leaves to the roots.

The oracle of a chain is the case in which each node's parent is its successor. With x_v
the features of node v, the weights are read as

    [emission (n_features, k)] [bias (k,)] [root (k,)]
    [transition (k, k), the parent's label first],

where each part may be absent.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm.structures._chain cimport ChainOracle
from sklearn_structsvm.structures._chain_blocks cimport add, dot
from sklearn_structsvm.structures._chain_sums cimport transpose
from sklearn_structsvm.structures._edge_sums cimport Table, table_add
from sklearn_structsvm.structures._forest cimport Forest


cdef extern from "structures/_max_plus.h" nogil:
    void add_max_plus(
        Py_ssize_t k, const double* previous, const double* pairs,
        double* current) noexcept


cdef class TreeOracle(ChainOracle):
    """Trees, or forests, over k labels.

    Parameters
    ----------
    features : Features
        Rows of all nodes of all trees, children before their parents; no columns
        if there is no emission.
    offsets : ndarray of shape (n + 1,), dtype intp
        Tree i is rows offsets[i]:offsets[i + 1]; none is empty.
    parents : ndarray of shape (offsets[n],), dtype intp
        The parent of each node, counted from the first of its tree; -1 for a root.
    y : ndarray of shape (offsets[n],), dtype intc
        Label indices.
    costs : ndarray of shape (k, k)
        costs[truth, label] of one node, zero on the diagonal.
    bias, root, transition : bool
        Which parts the model has.
    normalize : bool
        Whether the loss of a tree is divided by the number of its nodes.
    allowed : ndarray of shape (k + 1, k + 1), dtype bool, or None
        allowed[a, b]: whether a child may have label b if its parent has label a. The
        last row is for roots and the last column for leaves. None allows all. The true
        labelings must comply, which is not checked.
    cost_rows : as for `ChainOracle`
    """

    cdef const Py_ssize_t[::1] parents
    cdef bint has_root
    # Places of the transitions, child's label first, in `work`, and of the sum over the
    # roots in a direction.
    cdef Py_ssize_t flipped_at, root_sum_at
    cdef const unsigned char[::1] is_leaf

    def __init__(self, Features features, const Py_ssize_t[::1] offsets,
                 const Py_ssize_t[::1] parents, const int[::1] y,
                 const double[:, ::1] costs, *, bint bias, bint root, bint transition,
                 bint normalize, allowed=None, cost_rows=None):
        super().__init__(
            features, offsets, y, costs, bias=bias, first=root, last=False,
            transition=transition, normalize=normalize,
            allowed=None if allowed is None else np.ascontiguousarray(allowed.T),
            cost_rows=cost_rows)
        check_shape("parents", parents, features.n_rows)
        sizes, above = np.diff(offsets), np.asarray(parents)
        own = np.arange(features.n_rows) - np.repeat(offsets[:self.n_blocks], sizes)
        if ((above != -1) & ((above <= own) | (above >= np.repeat(sizes, sizes)))).any():
            raise ValueError(
                "parents must come after their children, within their tree, or be -1.")
        # The weights of the first position are those of the roots; this class adds them.
        self.has_first = False
        self.has_root = root
        self.thread_safe = type(self) is TreeOracle
        self.has_candidates = self.thread_safe
        self.has_marginals = type(self) is TreeOracle
        self.has_sums = type(self) is TreeOracle
        self.knows_scores = type(self) is TreeOracle
        self.n_scores = self.max_labels * self.k if type(self) is TreeOracle else 0
        is_leaf = np.ones(features.n_rows, dtype=np.uint8)
        is_leaf[(above - own + np.arange(features.n_rows))[above >= 0]] = 0
        self.is_leaf = is_leaf
        self.is_flipped = True
        self.parents = parents
        self.relative_cost = self.counted_cost(
            (transition or self.has_forbidden) * np.count_nonzero(above >= 0))
        self.flipped_at = self.work_size
        self.work_size += self.k * self.k
        self.root_sum_at = self.direction_size
        self.direction_size += self.k

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        cdef Py_ssize_t start = self.offsets[i], k = self.k, v, p, c
        cdef double* flipped = work + self.flipped_at
        ChainOracle.potentials(self, i, w, work)
        if self.has_root:
            for v in range(self.n_labels(i)):
                if self.parents[start + v] < 0:
                    add(k, 1.0, w + self.first_at, work + v * k)
        if self.has_transition:
            for p in range(k):
                for c in range(k):
                    flipped[c * k + p] = w[self.transition_at + p * k + c]
        return 0

    cdef int load_factors(
            self, Py_ssize_t i, const double* factors, double* work) except -1 nogil:
        ChainOracle.load_factors(self, i, factors, work)
        if self.has_transition:
            transpose(self.k, self.pairs(work), work + self.flipped_at)
        return 0

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, T = self.n_labels(i), v, c, best
        cdef const Py_ssize_t* parent = &self.parents[self.offsets[i]]
        cdef bint has_pairs = self.has_transition or self.has_forbidden
        # The child's label first.
        cdef const double* pairs = work + self.flipped_at
        cdef double* table = work + self.table_at
        cdef const int* cost_row = &self.cost_rows[self.offsets[i]]
        cdef const double* column
        cdef double value, highest, unit = lam * self.loss_unit(i)
        memcpy(table, work, T * k * sizeof(double))
        if self.has_forbidden:
            self.forbid_ends(i, INFINITY, table)
            pairs = self.forbid_pairs(pairs, INFINITY, work + self.masked_at)
        for v in range(T):
            if unit != 0.0:
                add(k, unit, &self.costs[cost_row[v], 0], table + v * k)
            if has_pairs and parent[v] >= 0:
                add_max_plus(k, table + v * k, pairs, table + parent[v] * k)
        for v in range(T - 1, -1, -1):
            column = NULL
            if has_pairs and parent[v] >= 0:
                column = pairs + labels[parent[v]]
            best = 0
            highest = table[v * k] + (0.0 if column == NULL else column[0])
            for c in range(1, k):
                value = table[v * k + c] + (0.0 if column == NULL else column[c * k])
                if value > highest:
                    highest = value
                    best = c
            labels[v] = <int> best
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t k = self.k, v, p
        cdef const Py_ssize_t* parent = &self.parents[self.offsets[i]]
        cdef const double* transition = self.pairs(work)
        cdef const int* y = &self.y[self.offsets[i]]
        cdef double total = 0.0
        for v in range(self.n_labels(i)):
            p = parent[v]
            if labels[v] != y[v]:
                total += work[v * k + labels[v]] - work[v * k + y[v]]
            if self.has_transition and p >= 0 and (
                    labels[v] != y[v] or labels[p] != y[p]):
                total += (transition[labels[p] * k + labels[v]]
                          - transition[y[p] * k + y[v]])
        score[0] = total
        loss[0] = self.loss(i, labels)
        return 0

    cdef void forbid_ends(
            self, Py_ssize_t i, double penalty, double* theta) noexcept nogil:
        cdef Py_ssize_t start = self.offsets[i], k = self.k, v, c
        if not self.has_forbidden_ends:
            return
        for v in range(self.n_nodes(i)):
            for c in range(k):
                if self.is_leaf[start + v] and self.forbidden[k, c] != 0.0:
                    theta[v * k + c] -= penalty
                if self.parents[start + v] < 0 and self.forbidden[c, k] != 0.0:
                    theta[v * k + c] -= penalty

    cdef Forest forest(self, Py_ssize_t i, const double* work) noexcept nogil:
        cdef Forest result = ChainOracle.forest(self, i, work)
        result.parent = &self.parents[self.offsets[i]]
        if self.has_transition:
            result.edge = work + self.flipped_at
        return result

    cdef int read_potentials(
            self, Py_ssize_t i, const double* w, Py_ssize_t n_rows, const int* rows,
            Py_ssize_t n, const int* labelings, double* work) except -1 nogil:
        cdef Py_ssize_t k = self.k, r
        ChainOracle.read_potentials(self, i, w, n_rows, rows, n, labelings, work)
        for r in range(n_rows if self.has_root else 0):
            if self.parents[self.offsets[i] + rows[r]] < 0:
                add(k, 1.0, w + self.first_at, work + rows[r] * k)
        return 0

    cdef void add_scores(
            self, Py_ssize_t i, const double* work, const double* transition,
            Py_ssize_t n_rows, const int* rows, Py_ssize_t n, const int* labelings,
            double* scores) noexcept nogil:
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), j, r, v, p
        cdef const Py_ssize_t* parent = &self.parents[self.offsets[i]]
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* labels
        cdef double total
        for j in range(n):
            labels = labelings + j * T
            total = 0.0
            for r in range(n_rows):
                v = rows[r]
                total += work[v * k + labels[v]] - work[v * k + y[v]]
            for v in range(T if self.has_transition and n_rows > 0 else 0):
                p = parent[v]
                if p >= 0 and (labels[v] != y[v] or labels[p] != y[p]):
                    total += (transition[labels[p] * k + labels[v]]
                              - transition[y[p] * k + y[v]])
            scores[j] = total

    cdef void add_atoms(
            self, Py_ssize_t i, Py_ssize_t n, const double* a, const int* s,
            double* out) noexcept nogil:
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), v, p, j
        cdef const Py_ssize_t* parent = &self.parents[self.offsets[i]]
        cdef const int* y = &self.y[self.offsets[i]]
        cdef const int* labels
        cdef Table nodes = self.node_table(out), edges = self.edge_table(out)
        for v in range(T):
            p = parent[v] if self.has_transition else -1
            for j in range(n):
                labels = s + j * T
                if a[j] == 0.0:
                    continue
                if labels[v] != y[v]:
                    table_add(&nodes, v * k + labels[v], a[j])
                    table_add(&nodes, v * k + y[v], -a[j])
                if p >= 0 and (labels[v] != y[v] or labels[p] != y[p]):
                    table_add(&edges, labels[p] * k + labels[v], a[j])
                    table_add(&edges, y[p] * k + y[v], -a[j])

    cdef int complete(
            self, Py_ssize_t i, double* out, double* squared_norm) except -1 nogil:
        cdef Py_ssize_t start = self.offsets[i], k = self.k, u
        cdef double* roots = out + self.root_sum_at
        ChainOracle.complete(self, i, out, squared_norm)
        if self.has_root:
            memset(roots, 0, k * sizeof(double))
            for u in range(self.n_labels(i)):
                if self.parents[start + u] < 0:
                    add(k, 1.0, out + u * k, roots)
            if squared_norm != NULL:
                squared_norm[0] += dot(k, roots, roots)
        return 0

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        cdef Py_ssize_t v
        ChainOracle.image(self, i, direction, work)
        if self.has_root:
            for v in range(self.n_labels(i)):
                if self.parents[self.offsets[i] + v] < 0:
                    add(self.k, 1.0, direction + self.root_sum_at, work + v * self.k)
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        ChainOracle.scatter(self, i, coef, direction, target)
        if self.has_root:
            add(self.k, coef, direction + self.root_sum_at, target + self.first_at)
        return 0
