"""Oracles of structures with one scored vector per example.

The potentials of an example are θ = Wᵀx + bias · b, one for each class or label;
its joint feature is x ⊗ μ(y) (and bias · μ(y) for the intercepts b, which are
the last row of W). So the squared norm of a direction is ‖x‖², computed once, times
‖Δμ‖², and no vector of the length of w is formed.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape, restore

from libc.math cimport exp, fabs, log1p
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport ddot

from sklearn_structsvm._utils._matrix._features cimport (
    Features, clip, mark_range, soft_threshold)
from sklearn_structsvm._contract._oracle cimport (
    LANES, CALL, BlockOracle, Plane, reserve_points)
from sklearn_structsvm.structures._forest cimport Forest
from sklearn_structsvm.structures._pareto cimport (
    forest_front, forest_labels, of_one_size, prefix_front, prefix_labels)


cdef class FlatOracle(BlockOracle):
    """Shared part; a subclass defines the marginals μ(y) of a labeling."""

    def __init__(self, Features features, Py_ssize_t k, double bias):
        self.features = features
        self.bias = bias
        self.k = k
        self.n_blocks = features.n_rows
        self.n_weights = (features.n_features + (bias != 0.0)) * k
        self.work_size = k
        self.direction_size = k
        self.nu = np.zeros((self.n_blocks, k))
        self.row_norms = features.row_norms() + bias * bias

    cdef void add_atom(
            self, Py_ssize_t i, double coef, const int* labels,
            double* delta) noexcept nogil:
        """delta += coef * (μ(labels) - μ(y_i))."""

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        cdef Py_ssize_t c
        cdef const double* intercept
        self.features.scores(i, i + 1, w, self.k, work)
        if self.bias != 0.0:
            intercept = w + self.features.n_features * self.k
            for c in range(self.k):
                work[c] += self.bias * intercept[c]
        return 0

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        cdef int k = <int> self.k, one = 1
        score[0] = ddot(&k, <double*> work, &one, &self.nu[i, 0], &one)
        return 0

    def step_cost(self):
        """As for `BlockOracle`; features are read for scores, and for the weights."""
        cdef Py_ssize_t n = max(self.n_blocks, 1)
        cdef Py_ssize_t row = (self.k + LANES - 1) // LANES
        starts = np.arange(self.n_blocks + 1)
        entries = np.maximum(self.features.n_entries(starts), 0).sum()
        return BlockOracle.step_cost(self) + 2 * entries * row / n

    cdef Py_ssize_t n_factors(self, Py_ssize_t i) noexcept nogil:
        return self.k

    cdef int load_factors(
            self, Py_ssize_t i, const double* factors, double* work) except -1 nogil:
        memcpy(work, factors, self.k * sizeof(double))
        return 0

    cdef int tilt(
            self, Py_ssize_t i, double gamma, double* work, const double* factors,
            double* tilted, double* out, double* squared_norm, double* slope,
            double* entropy) except -1 nogil:
        cdef Py_ssize_t c
        for c in range(self.k):
            tilted[c] = factors[c] + gamma * (work[c] - factors[c])
        entropy[0] = self.distribute(tilted, out)
        self.subtract_truth(i, out)
        slope[0] = slope[1] = 0.0
        for c in range(self.k):
            out[c] -= self.nu[i, c]
            slope[0] += (work[c] - factors[c]) * out[c]
            slope[1] += tilted[c] * out[c]
        self.find_norm(i, out, squared_norm)
        return 0

    cdef double distribute(
            self, const double* factors, double* marginals) noexcept nogil:
        """Set the marginals given these log factors; return the entropy."""

    cdef void subtract_truth(self, Py_ssize_t i, double* marginals) noexcept nogil:
        """marginals -= μ(y_i)."""

    cdef void find_norm(
            self, Py_ssize_t i, const double* out, double* squared_norm) noexcept nogil:
        cdef int k = <int> self.k, one = 1
        if squared_norm != NULL:
            squared_norm[0] = self.row_norms[i] * ddot(
                &k, <double*> out, &one, <double*> out, &one)

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        cdef Py_ssize_t j
        for j in range(self.k):
            out[j] = c * self.nu[i, j]
        self.add_atoms(i, n, a, s, out)
        self.find_norm(i, out, squared_norm)
        return 0

    cdef void add_atoms(
            self, Py_ssize_t i, Py_ssize_t n, const double* a, const int* s,
            double* delta) noexcept nogil:
        """delta += Σ_{j < n} a_j (μ(s_j) - μ(y_i))."""
        cdef Py_ssize_t j
        for j in range(n):
            if a[j] != 0.0:
                self.add_atom(i, a[j], s + j * self.max_labels, delta)

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        cdef Py_ssize_t j
        for j in range(self.k):
            work[j] = self.row_norms[i] * direction[j]
        return 0

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        cdef Py_ssize_t j
        for j in range(self.k):
            self.nu[i, j] += gamma * direction[j]
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        cdef Py_ssize_t j
        cdef double* intercept
        self.features.add_row(i, coef, direction, self.k, target)
        if self.bias != 0.0:
            intercept = target + self.features.n_features * self.k
            for j in range(self.k):
                intercept[j] += coef * self.bias * direction[j]
        return 0

    cdef int project(
            self, Py_ssize_t i, const double* direction, const double* v,
            const double* lower, const double* upper, double* w) except -1 nogil:
        cdef Py_ssize_t j = self.features.n_features * self.k
        self.features.project_rows(i, i + 1, self.k, v, lower, upper, w)
        clip(self.n_weights - j, v + j, lower + j, upper + j, w + j)
        return 0

    cdef int shrink(
            self, Py_ssize_t i, const double* direction, const double* v,
            double threshold, double* w) except -1 nogil:
        cdef Py_ssize_t j = self.features.n_features * self.k
        self.features.shrink_rows(i, i + 1, self.k, v, threshold, w)
        soft_threshold(self.n_weights - j, v + j, threshold, w + j)
        return 0

    cdef int mark(
            self, Py_ssize_t i, const double* direction, unsigned char* pages
            ) except -1 nogil:
        self.features.mark_rows(i, i + 1, direction, self.k, 0, pages)
        mark_range(self.features.n_features * self.k, self.n_weights, pages)
        return 0

    def get_blocks(self):
        return np.array(self.nu)

    def set_blocks(self, blocks):
        restore("blocks", self.nu, blocks)

    def scale_blocks(self, double rho):
        np.asarray(self.nu)[...] *= rho


cdef class MulticlassOracle(FlatOracle):
    """One of k classes, with any costs; μ(y) is one-hot.

    Parameters
    ----------
    features : Features
    y : ndarray of shape (n,), dtype intc
        Class indices.
    costs : ndarray of shape (k, k)
        costs[truth, label], zero on the diagonal.
    bias : float
        The constant feature; 0 for none.
    """

    cdef const int[::1] y
    cdef const double[:, ::1] costs

    def __init__(self, Features features, const int[::1] y,
                 const double[:, ::1] costs, double bias):
        super().__init__(features, costs.shape[0], bias)
        check_shape("costs", costs, self.k, self.k)
        check_shape("y", y, self.n_blocks)
        check_indices("y", y, self.k)
        self.n_values = self.k
        self.y = y
        self.costs = costs
        self.max_labels = 1
        # Each class is looked at once, and then the best one is evaluated.
        self.relative_cost = (CALL + self.k) / <double> CALL
        self.thread_safe = self.has_candidates = type(self) is MulticlassOracle
        self.has_sums = type(self) is MulticlassOracle

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        labels[0] = self.y[i]
        return 0

    cdef int true_factors(
            self, Py_ssize_t i, double odds, double* factors) except -1 nogil:
        cdef Py_ssize_t c
        for c in range(self.k):
            factors[c] = odds if c == self.y[i] else 0.0
        return 0

    cdef int log_sum(
            self, Py_ssize_t i, double* work, double* value) except -1 nogil:
        cdef Py_ssize_t c, best = 0
        cdef double rest = 0.0
        for c in range(1, self.k):
            best = c if work[c] > work[best] else best
        for c in range(self.k):
            if c != best:
                rest += exp(work[c] - work[best])
        value[0] = log1p(rest) + (work[best] - work[self.y[i]])
        return 0

    cdef double distribute(
            self, const double* factors, double* marginals) noexcept nogil:
        cdef Py_ssize_t c, best = 0
        cdef double rest = 0.0, mean = 0.0
        for c in range(1, self.k):
            best = c if factors[c] > factors[best] else best
        for c in range(self.k):
            marginals[c] = exp(factors[c] - factors[best])
            if c != best:
                rest += marginals[c]
        for c in range(self.k):
            marginals[c] /= 1.0 + rest
            mean += marginals[c] * (factors[c] - factors[best])
        return log1p(rest) - mean

    cdef void subtract_truth(self, Py_ssize_t i, double* marginals) noexcept nogil:
        marginals[self.y[i]] -= 1.0

    cdef void add_atom(
            self, Py_ssize_t i, double coef, const int* labels,
            double* delta) noexcept nogil:
        delta[self.y[i]] -= coef
        delta[labels[0]] += coef

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t c, best = 0
        cdef const double* cost = &self.costs[self.y[i], 0]
        cdef double value, highest = work[0] + lam * cost[0]
        for c in range(1, self.k):
            value = work[c] + lam * cost[c]
            if value > highest:
                highest = value
                best = c
        labels[0] = <int> best
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        score[0] = work[labels[0]] - work[self.y[i]]
        loss[0] = self.costs[self.y[i], labels[0]]
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        return self.costs[self.y[i], labels[0]]

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef Py_ssize_t c
        reserve_points(plane, self.k)
        for c in range(self.k):
            plane.scores[c] = work[c] - work[self.y[i]]
            plane.losses[c] = self.costs[self.y[i], c]
        plane.count = self.k
        return 0

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        labels[0] = <int> j
        return 0


cdef class IndicatorOracle(FlatOracle):
    """Labelings Y in {0, 1}^k, with a cost for each wrong label.

    Parameters
    ----------
    features : Features
    Y : ndarray of shape (n, k), dtype int8
        Indicator.
    costs : ndarray of shape (k, 2)
        costs[c, truth]: what label c costs if it is wrong.
    bias : float
        The constant feature; 0 for none.
    """

    def __init__(self, Features features, const signed char[:, ::1] Y,
                 const double[:, ::1] costs, double bias):
        super().__init__(features, Y.shape[1], bias)
        check_shape("Y", Y, self.n_blocks, self.k)
        check_indices("Y", Y, 2)
        check_shape("costs", costs, self.k, 2)
        self.n_values = 2
        self.Y = Y
        self.costs = costs
        self.max_labels = self.k

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        cdef Py_ssize_t c
        for c in range(self.k):
            labels[c] = self.Y[i, c]
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        cdef Py_ssize_t c
        cdef double cost = 0.0
        for c in range(self.k):
            if labels[c] != self.Y[i, c]:
                cost += self.costs[c, self.Y[i, c]]
        return cost

    cdef void add_atom(
            self, Py_ssize_t i, double coef, const int* labels,
            double* delta) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(self.k):
            delta[c] += coef * (labels[c] - self.Y[i, c])


cdef Forest flips_of(Py_ssize_t k, const double* work) noexcept nogil:
    """k labels as nodes without edges, each to be flipped (1) or not (0)."""
    cdef Forest result
    result.n = k
    result.k = 2
    result.parent = NULL
    result.theta = work + k
    result.truth = NULL
    result.costs = work + 3 * k
    result.cost_rows = NULL
    result.edge = NULL
    result.edge_stride = 0
    return result


cdef class MultilabelOracle(IndicatorOracle):
    """k independent labels, μ(Y) = Y.

    Parameters are those of `IndicatorOracle`.
    """

    def __init__(self, Features features, const signed char[:, ::1] Y,
                 const double[:, ::1] costs, double bias):
        super().__init__(features, Y, costs, bias)
        # work: θ, then for each label 0 and its gain if flipped, then 0 and its cost.
        self.work_size = 5 * self.k
        # Each label is looked at once to decide on it, and once to evaluate it.
        self.relative_cost = (CALL + 2 * self.k) / <double> (CALL + self.k)
        self.thread_safe = self.has_candidates = type(self) is MultilabelOracle
        self.has_sums = type(self) is MultilabelOracle

    cdef int true_factors(
            self, Py_ssize_t i, double odds, double* factors) except -1 nogil:
        cdef Py_ssize_t c
        for c in range(self.k):
            factors[c] = odds if self.Y[i, c] else -odds
        return 0

    cdef int log_sum(
            self, Py_ssize_t i, double* work, double* value) except -1 nogil:
        cdef Py_ssize_t c
        cdef double gain
        value[0] = 0.0
        for c in range(self.k):
            gain = -work[c] if self.Y[i, c] else work[c]
            value[0] += max(gain, 0.0) + log1p(exp(-fabs(gain)))
        return 0

    cdef double distribute(
            self, const double* factors, double* marginals) noexcept nogil:
        cdef Py_ssize_t c
        cdef double entropy = 0.0, other, share
        for c in range(self.k):
            # The share is the probability of the less probable of the two.
            other = exp(-fabs(factors[c]))
            share = other / (1.0 + other)
            marginals[c] = 1.0 / (1.0 + other) if factors[c] > 0.0 else share
            entropy += log1p(other) + share * fabs(factors[c])
        return entropy

    cdef void subtract_truth(self, Py_ssize_t i, double* marginals) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(self.k):
            marginals[c] -= self.Y[i, c]

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t c
        cdef int truth
        cdef double gain
        for c in range(self.k):
            truth = self.Y[i, c]
            gain = -work[c] if truth else work[c]
            labels[c] = truth ^ (gain + lam * self.costs[c, truth] > 0.0)
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t c
        cdef int truth
        cdef double total = 0.0, cost = 0.0
        for c in range(self.k):
            truth = self.Y[i, c]
            if labels[c] != truth:
                cost += self.costs[c, truth]
                total += -work[c] if truth else work[c]
        score[0] = total
        loss[0] = cost
        return 0

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef Forest forest
        cdef Py_ssize_t c
        cdef double largest
        cdef double* gains = work + self.k
        cdef double* costs = work + 3 * self.k
        for c in range(self.k):
            gains[2 * c] = costs[2 * c] = 0.0
            gains[2 * c + 1] = -work[c] if self.Y[i, c] else work[c]
            costs[2 * c + 1] = self.costs[c, self.Y[i, c]]
        forest = flips_of(self.k, work)
        if of_one_size(&forest, &largest):
            return prefix_front(&forest, plane)
        return forest_front(&forest, one, 1.0, plane)

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        cdef Forest forest = flips_of(self.k, work)
        cdef Py_ssize_t c
        cdef double largest
        if of_one_size(&forest, &largest):
            prefix_labels(&forest, plane, j, labels)
        else:
            forest_labels(&forest, plane, j, labels)
        for c in range(self.k):
            labels[c] ^= self.Y[i, c]
        return 0
