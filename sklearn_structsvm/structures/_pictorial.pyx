"""Oracle of pictorial structures: parts on a grid, and springs between them.

A part has a position of the grid and a type. With x_v(p) the features of part v at
position p, δ = (p_v - p_u - anchor) / unit the displacement of a part from where its
parent u expects it, and one-hot types e, the weights are read as

    [unary (n_parts, T, n_features)] [bias (n_parts, T)] [compatibility (n_edges, T, T)]
    [deformation (n_edges, T, T, 4)],

where types are those of the child and the parent, in this order, and the costs are those
of δ_row, δ_row², δ_column and δ_column². There is an edge for each part that has a
parent, in the order of the parts. A labeling has three integers per part: its type, row
and column.

Max-sum from the leaves to the roots finds the best labeling. Distance transforms compute
its messages (see _distance_transform.pyx): for each edge and pair of types, two lines per
position. The way back finds the child of a parent by one look at each of the child's
positions and types, which is cheaper than storing where each maximum was.

The dual state of a block is Σ_y α(y) (φ(x, y) - φ(x, y_i)) itself, with the length of w.
Marginals would need n_parts · positions · T numbers for the positions of the parts, and
more for displacements; w has n_parts · T · n_features + n_parts · T + 5 n_edges · T². For
14 parts on a grid of 32 x 32, with one type and a map each, these are 14,336 and 93. If
there are more positions than types (and than 5 T² over the number of features), dual
states are smaller than the maps of features.

Only `max_oracle` computes the potentials of all positions: the score of a labeling needs
those of n_parts positions.
"""
import numpy as np

from sklearn_structsvm._utils.borders import (
    check_indices, check_shape, check_starts, restore)

from libc.math cimport INFINITY, floor, sqrt
from libc.string cimport memcpy, memset

from sklearn_structsvm._contract._oracle cimport CALL, LANES, BlockOracle
from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm.structures._chain_blocks cimport add, dot
from sklearn_structsvm.structures._distance_transform cimport (
    SMALL_GRID, Deformation, deformation_cost, raise_to_transform, transform_scratch_size)


# The cost of a part that is off by d, with radius r: [d > r], min(1, d / r) and
# min(1, (d / r)²).
COSTS = ("missed", "linear", "squared")

cdef enum:
    MISSED
    LINEAR

# Additions and comparisons per position of a distance transform by hulls along one axis:
# g; two tests of corners of the hull; two looks at the next corner; the value.
cdef enum:
    HULL = 16


cdef double part_cost(int kind, double square, double radius) noexcept nogil:
    """The cost of a part at this squared distance from the truth."""
    if square == 0.0:
        return 0.0
    if kind == MISSED:
        return 1.0 if square > radius * radius else 0.0
    if square >= radius * radius:
        return 1.0
    square /= radius * radius
    return sqrt(square) if kind == LINEAR else square


cdef class PictorialOracle(BlockOracle):
    """Trees of parts, each of T types, at positions of grids.

    Parameters
    ----------
    features : Features
        One row per position of each map of features of each image, in this order.
    shapes : ndarray of shape (n, 3), dtype intp
        Number of maps, rows and columns of each image. An image has one map per part, or
        a single map that all parts share.
    starts : ndarray of shape (n + 1,), dtype intp
        Where the rows of each image start.
    parents : ndarray of shape (n_parts,), dtype intp
        The parent of each part; -1 for a root.
    order : ndarray of shape (n_parts,), dtype intp
        All parts, children before their parents.
    anchors : ndarray of shape (n_edges, T, T, 2)
        Expected rows and columns from a parent to its child, with the child's type first.
    unit : float
        Displacements are divided by it.
    y : ndarray of shape (n, n_parts, 3), dtype intc
        Types, rows and columns.
    radii : ndarray of shape (n,)
        The radius of the cost of a part, for each image.
    cost : {"missed", "linear", "squared"}
    normalize : bool
        Whether the loss of an image is divided by the number of parts.
    """

    cdef Features features
    cdef const Py_ssize_t[:, ::1] shapes
    cdef const Py_ssize_t[::1] starts, parents, order
    cdef Py_ssize_t[::1] edges
    cdef const double[:, :, :, ::1] anchors
    cdef const int[:, :, ::1] y
    cdef const double[::1] radii
    cdef double unit, loss_unit
    cdef int cost
    cdef Py_ssize_t n_parts, T
    # Places of the parts in w; and places in `work`, which begins with w, of the score of
    # the true labeling, the tables, a message and the scratch memory of transforms.
    cdef Py_ssize_t bias_at, pairs_at, costs_at
    cdef Py_ssize_t truth_at, tables_at, message_at, scratch_at
    cdef double[:, ::1] means

    def __init__(self, Features features, const Py_ssize_t[:, ::1] shapes,
                 const Py_ssize_t[::1] starts, const Py_ssize_t[::1] parents,
                 const Py_ssize_t[::1] order, const double[:, :, :, ::1] anchors,
                 double unit, const int[:, :, ::1] y, const double[::1] radii, *,
                 cost, bint normalize):
        cdef Py_ssize_t n = shapes.shape[0], n_parts = parents.shape[0]
        cdef Py_ssize_t T = anchors.shape[1], n_edges, rows, columns, largest, i
        check_shape("shapes", shapes, n, 3)
        check_starts("starts", starts, n, features.n_rows)
        if (np.diff(starts) != np.prod(shapes, axis=1)).any():
            raise ValueError("starts must be those of maps of these shapes.")
        check_indices("shapes", shapes, features.n_rows + 1, 1)
        if not np.isin(np.asarray(shapes)[:, 0], (1, n_parts)).all():
            raise ValueError(f"Images must have 1 or {n_parts} maps.")
        check_indices("parents", parents, n_parts, -1)
        check_shape("order", order, n_parts)
        place = np.full(n_parts + 1, n_parts)
        if not np.array_equal(np.sort(order), np.arange(n_parts)):
            raise ValueError("order must have each part once.")
        place[np.asarray(order)] = np.arange(n_parts)
        # place[-1], for the parent of a root, is after all others.
        if (place[np.asarray(parents)] <= place[:n_parts]).any():
            raise ValueError("order must have children before their parents.")
        has_parent = np.asarray(parents) >= 0
        n_edges = int(has_parent.sum())
        check_shape("anchors", anchors, n_edges, T, T, 2)
        if not unit > 0.0:
            raise ValueError(f"unit must be positive; got {unit}.")
        check_shape("y", y, n, n_parts, 3)
        check_shape("radii", radii, n)
        self.features, self.shapes, self.starts = features, shapes, starts
        self.parents, self.order = parents, order
        self.edges = np.where(has_parent, np.cumsum(has_parent) - 1, -1)
        self.anchors, self.unit = anchors, unit
        self.y, self.radii, self.cost = y, radii, COSTS.index(cost)
        self.loss_unit = 1.0 / n_parts if normalize else 1.0
        self.n_parts, self.T = n_parts, T
        self.n_blocks, self.max_labels = n, 3 * n_parts
        areas = np.prod(np.asarray(shapes)[:, 1:], axis=1)
        for i in range(n):
            self._check_labels("y", i, y[i])
        self.bias_at = n_parts * features.n_features * T
        self.pairs_at = self.bias_at + n_parts * T
        self.costs_at = self.pairs_at + n_edges * T * T
        self.n_weights = self.costs_at + 4 * n_edges * T * T
        rows, columns = np.max(shapes, axis=0)[1:] if n else (1, 1)
        largest = int(areas.max()) if n else 1
        self.n_values = max(T, rows, columns)
        self.truth_at = self.n_weights
        self.tables_at = self.truth_at + 1
        self.message_at = self.tables_at + n_parts * T * largest
        self.scratch_at = self.message_at + largest
        self.work_size = self.scratch_at + transform_scratch_size(rows, columns)
        self.direction_size = self.n_weights
        self._count_cost(n_edges)
        self.thread_safe = type(self) is PictorialOracle
        self.means = np.zeros((n, self.n_weights))

    def _check_labels(self, name, Py_ssize_t i, labels):
        """ValueError if the grid of image i has no such types, rows or columns."""
        for column, limit in enumerate((self.T, self.shapes[i, 1], self.shapes[i, 2])):
            check_indices(name, np.asarray(labels).reshape(-1, 3)[:, column], limit)

    def _count_cost(self, Py_ssize_t n_edges):
        cdef Py_ssize_t pairs = n_edges * self.T * self.T, n_rows, n_columns
        cdef double scores, evaluation, search = 0.0, transform
        scores = (self.features.n_features + LANES - 1) // LANES
        evaluation = CALL + self.n_parts * (CALL + scores) + 8.0 * n_edges
        for _, n_rows, n_columns in np.asarray(self.shapes):
            transform = 2.0 * HULL
            if max(n_rows, n_columns) <= SMALL_GRID:
                transform = 2.0 * (n_rows + n_columns) / LANES
            # Scores, transforms along both axes, adding messages, and the backward pass.
            search += n_rows * n_columns * (
                self.n_parts * self.T * (scores + 1.0) + pairs * (transform + 1.0)
                + (n_edges + self.n_parts) * self.T)
        self.relative_cost = 1.0 + search / (max(self.n_blocks, 1) * evaluation)

    cdef Py_ssize_t area(self, Py_ssize_t i) noexcept nogil:
        return self.shapes[i, 1] * self.shapes[i, 2]

    cdef Py_ssize_t first_row(self, Py_ssize_t i, Py_ssize_t part) noexcept nogil:
        """First row of the features that a part sees."""
        if self.shapes[i, 0] == 1:
            return self.starts[i]
        return self.starts[i] + part * self.area(i)

    cdef Py_ssize_t unary_at(self, Py_ssize_t part, Py_ssize_t t) noexcept nogil:
        """Index of the first weight of a part's features."""
        return (part * self.T + t) * self.features.n_features

    cdef void springs(
            self, const double* w, Py_ssize_t edge, Py_ssize_t t, Py_ssize_t s,
            Deformation* down, Deformation* across) noexcept nogil:
        """Costs of displacements, in positions, for child type t and parent type s."""
        cdef const double* own = (
            w + self.costs_at + 4 * ((edge * self.T + t) * self.T + s))
        cdef double square = self.unit * self.unit
        down.anchor = self.anchors[edge, t, s, 0]
        down.linear = own[0] / self.unit
        down.square = own[1] / square
        across.anchor = self.anchors[edge, t, s, 1]
        across.linear = own[2] / self.unit
        across.square = own[3] / square

    # --------------------------------------------------------------- potentials

    cdef double score(
            self, Py_ssize_t i, const double* w, const int* labels) except? -1.0 nogil:
        """⟨w, φ(x_i, labels)⟩"""
        cdef Py_ssize_t T = self.T, area = self.area(i), columns = self.shapes[i, 2]
        cdef Py_ssize_t n_features = self.features.n_features, v, e, row, pair
        cdef Py_ssize_t to_next = 0 if self.shapes[i, 0] == 1 else area
        cdef const int* own
        cdef const int* above
        cdef const double* costs
        cdef double down, across, value, per_unit = 1.0 / self.unit, total = 0.0
        for v in range(self.n_parts):
            own = labels + 3 * v
            row = self.starts[i] + v * to_next + own[1] * columns + own[2]
            self.features.scores(
                row, row + 1, w + (v * T + own[0]) * n_features, 1, &value)
            total += value + w[self.bias_at + v * T + own[0]]
            e = self.edges[v]
            if e < 0:
                continue
            above = labels + 3 * self.parents[v]
            pair = (e * T + own[0]) * T + above[0]
            costs = w + self.costs_at + 4 * pair
            down = own[1] - above[1] - self.anchors[e, own[0], above[0], 0]
            across = own[2] - above[2] - self.anchors[e, own[0], above[0], 1]
            down *= per_unit
            across *= per_unit
            total += (w[self.pairs_at + pair] - down * (costs[0] + costs[1] * down)
                      - across * (costs[2] + costs[3] * across))
        return total

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        memcpy(labels, &self.y[i, 0, 0], 3 * self.n_parts * sizeof(int))
        return 0

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        memcpy(work, w, self.n_weights * sizeof(double))
        work[self.truth_at] = self.score(i, work, &self.y[i, 0, 0])
        return 0

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        return self.potentials(i, direction, work)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        score[0] = self.score(i, work, labels) - work[self.truth_at]
        loss[0] = self.loss(i, labels)
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        cdef const int* truth = &self.y[i, 0, 0]
        cdef Py_ssize_t v
        cdef int down, across
        cdef double total = 0.0
        for v in range(self.n_parts):
            down = labels[3 * v + 1] - truth[3 * v + 1]
            across = labels[3 * v + 2] - truth[3 * v + 2]
            total += part_cost(
                self.cost, <double> down * down + <double> across * across,
                self.radii[i])
        return total * self.loss_unit

    # ----------------------------------------------------------------- decoding

    cdef int fill_table(
            self, Py_ssize_t i, Py_ssize_t v, double lam, const double* work,
            double* table) except -1 nogil:
        """Scores plus losses of a part, up to a constant over all its positions."""
        cdef Py_ssize_t T = self.T, first = self.first_row(i, v), area = self.area(i)
        cdef Py_ssize_t n_rows = self.shapes[i, 1], n_columns = self.shapes[i, 2]
        cdef Py_ssize_t row, column, t, p, down, across, reach
        cdef Py_ssize_t true_row = self.y[i, v, 1], true_column = self.y[i, v, 2]
        cdef double radius = self.radii[i], bias, gain
        for t in range(T):
            self.features.scores(
                first, first + area, work + self.unary_at(v, t), 1, table + t * area)
            if T > 1:
                bias = work[self.bias_at + v * T + t]
                for p in range(area):
                    table[t * area + p] += bias
        if lam == 0.0:
            return 0
        # Beyond the radius, a part costs 1 anywhere. (One more, as r² is rounded.)
        reach = 1 + <Py_ssize_t> min(floor(radius), <double> max(n_rows, n_columns))
        for row in range(max(0, true_row - reach), min(n_rows, true_row + reach + 1)):
            down = row - true_row
            for column in range(max(0, true_column - reach),
                                min(n_columns, true_column + reach + 1)):
                across = column - true_column
                gain = lam * (1.0 - part_cost(
                    self.cost, <double> (down * down + across * across), radius))
                for t in range(T):
                    table[t * area + row * n_columns + column] -= gain
        return 0

    cdef void send(
            self, Py_ssize_t i, Py_ssize_t v, double* work, double* tables
            ) noexcept nogil:
        """Add the message of a part to the table of its parent."""
        cdef Py_ssize_t T = self.T, area = self.area(i), t, s, p
        cdef Py_ssize_t u = self.parents[v], e = self.edges[v]
        cdef const double* table = tables + v * area * T
        cdef double* above = tables + u * area * T
        cdef double* message = work + self.message_at
        cdef Deformation down, across
        for s in range(T):
            for p in range(area):
                message[p] = -INFINITY
            for t in range(T):
                self.springs(work, e, t, s, &down, &across)
                raise_to_transform(
                    self.shapes[i, 1], self.shapes[i, 2], table + t * area, &down,
                    &across, work[self.pairs_at + (e * T + t) * T + s], message,
                    work + self.scratch_at)
            for p in range(area):
                above[s * area + p] += message[p]

    cdef void set_best(
            self, Py_ssize_t i, Py_ssize_t v, double* work, const double* tables,
            int* labels) noexcept nogil:
        """The first of a part's best labels, given the label of its parent."""
        cdef Py_ssize_t T = self.T, area = self.area(i), columns = self.shapes[i, 2]
        cdef Py_ssize_t e = self.edges[v], t, row, column
        cdef const double* table = tables + v * area * T
        cdef const int* above = labels + 3 * self.parents[v]
        cdef int* own = labels + 3 * v
        cdef double* costs = work + self.scratch_at
        cdef Deformation down, across
        cdef double value, base = 0.0, highest = -INFINITY
        own[0] = own[1] = own[2] = 0
        memset(costs, 0, columns * sizeof(double))
        for t in range(T):
            if e >= 0:
                self.springs(work, e, t, above[0], &down, &across)
                for column in range(columns):
                    costs[column] = deformation_cost(&across, column - above[2])
            for row in range(self.shapes[i, 1]):
                if e >= 0:
                    base = (work[self.pairs_at + (e * T + t) * T + above[0]]
                            - deformation_cost(&down, row - above[1]))
                for column in range(columns):
                    value = table[column] - costs[column] + base
                    if value > highest:
                        highest = value
                        own[0], own[1], own[2] = <int> t, <int> row, <int> column
                table += columns

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t size = self.area(i) * self.T, v, j
        cdef double* tables = work + self.tables_at
        for v in range(self.n_parts):
            self.fill_table(i, v, lam * self.loss_unit, work, tables + v * size)
        for j in range(self.n_parts):
            if self.parents[self.order[j]] >= 0:
                self.send(i, self.order[j], work, tables)
        for j in range(self.n_parts - 1, -1, -1):
            self.set_best(i, self.order[j], work, tables, labels)
        return self.evaluate(i, work, labels, score, loss)

    # --------------------------------------------------------------- dual state

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        score[0] = dot(self.n_weights, work, &self.means[i, 0])
        return 0

    cdef int add_feature(
            self, Py_ssize_t i, double coef, const int* labels, double* out
            ) except -1 nogil:
        """out += coef · φ(x_i, labels)"""
        cdef Py_ssize_t T = self.T, columns = self.shapes[i, 2], v, e, row, pair
        cdef const int* own
        cdef const int* above
        cdef double* costs
        cdef double down, across, one = 1.0, per_unit = 1.0 / self.unit
        for v in range(self.n_parts):
            own = labels + 3 * v
            row = self.first_row(i, v) + own[1] * columns + own[2]
            self.features.add_row(
                row, coef, &one, 1, out + self.unary_at(v, own[0]))
            out[self.bias_at + v * T + own[0]] += coef
            e = self.edges[v]
            if e < 0:
                continue
            above = labels + 3 * self.parents[v]
            pair = (e * T + own[0]) * T + above[0]
            costs = out + self.costs_at + 4 * pair
            down = own[1] - above[1] - self.anchors[e, own[0], above[0], 0]
            across = own[2] - above[2] - self.anchors[e, own[0], above[0], 1]
            down *= per_unit
            across *= per_unit
            out[self.pairs_at + pair] += coef
            costs[0] -= coef * down
            costs[1] -= coef * down * down
            costs[2] -= coef * across
            costs[3] -= coef * across * across
        return 0

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        memset(out, 0, self.n_weights * sizeof(double))
        for j in range(n):
            if a[j] != 0.0:
                self.add_feature(i, a[j], s + j * self.max_labels, out)
                total += a[j]
        if total != 0.0:
            self.add_feature(i, -total, &self.y[i, 0, 0], out)
        if c != 0.0:
            add(self.n_weights, c, &self.means[i, 0], out)
        if squared_norm != NULL:
            squared_norm[0] = dot(self.n_weights, out, out)
        return 0

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        add(self.n_weights, gamma, direction, &self.means[i, 0])
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        add(self.n_weights, coef, direction, target)
        return 0

    def get_blocks(self):
        return np.array(self.means)

    def set_blocks(self, blocks):
        restore("blocks", self.means, blocks)

    def scale_blocks(self, double rho):
        np.asarray(self.means)[...] *= rho

    def labeling_from_object(self, Py_ssize_t i, saved):
        labels = BlockOracle.labeling_from_object(self, i, saved)
        self._check_labels(f"labeling of example {i}", i, labels)
        return labels
