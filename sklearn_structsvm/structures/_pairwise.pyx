"""Oracles of labels with pairwise potentials: their shared part, and all labelings.

Marginals of a block are those of the labels, and for each pair that of both labels
being present; the three other combinations follow from these.

Enumeration represents a labeling by its flips, the set of labels in which it differs from
the true one. Its score and loss are then differences from those of the truth, so that
rounding errors are small, and both are exactly 0 at the truth. With U_l the gain in score
of flipping label l alone, and J_lm the extra gain of flipping both l and m,

    f(y) - f(y_i) = Σ_{l in S} U_l + Σ_{l < m in S} J_lm

for the flips S. The table of all 2^k of them takes two additions each.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.string cimport memset

from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm._contract._oracle cimport (
    CALL, CHUNK, LANES, Plane, reserve_points, reserve_scratch)
from sklearn_structsvm.structures._flat cimport FlatOracle, IndicatorOracle


cdef extern from "structures/_subsets.h" nogil:
    const int MAX_SUBSET_LABELS
    void subset_sums(
        int k, double start, const double* terms, double* sums) noexcept
    void subset_scores(
        int k, const double* single, const double* pair, double* scores) noexcept
    void subset_values(
        Py_ssize_t n, double a, double b, double c, const double* scores,
        double* values) noexcept
    void subset_maxima(
        int k, const double* values, double* largest, double* subset) noexcept
    void subset_gains(int k, double* scores, double* gains) noexcept


# With more labels, the tables of one example take more than 4 MB and a millisecond.
MAX_LABELS = MAX_SUBSET_LABELS


cdef class PairwiseOracle(IndicatorOracle):
    """Shared part: weights and marginals; a subclass defines what a labeling is.

    The weights are those of `FlatOracle`, then four for each pair (l, m), one for each of
    the combinations (Y_l, Y_m) = 00, 01, 10, 11.

    Parameters
    ----------
    features, Y, costs, bias
        As for `IndicatorOracle`.
    pairs : ndarray of shape (m, 2), dtype intp
    """

    def __init__(self, Features features, const signed char[:, ::1] Y,
                 const double[:, ::1] costs, double bias,
                 const Py_ssize_t[:, ::1] pairs):
        super().__init__(features, Y, costs, bias)
        check_shape("pairs", pairs, pairs.shape[0], 2)
        check_indices("pairs", pairs, self.k)
        self.pairs = pairs
        self.n_pairs = pairs.shape[0]
        self.pair_at = self.n_weights
        self.n_weights += 4 * self.n_pairs
        self.direction_size = self.k + self.n_pairs
        self.nu = np.zeros((self.n_blocks, self.direction_size))

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        """Potentials of the marginals, at the front of `work`."""
        cdef Py_ssize_t e
        cdef const double* v = w + self.pair_at
        FlatOracle.potentials(self, i, w, work)
        for e in range(self.n_pairs):
            work[self.pairs[e, 0]] += v[2] - v[0]
            work[self.pairs[e, 1]] += v[1] - v[0]
            work[self.k + e] = v[0] - v[1] - v[2] + v[3]
            v += 4
        return 0

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.k + self.n_pairs):
            total += work[j] * self.nu[i, j]
        score[0] = total
        return 0

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        cdef Py_ssize_t e, j
        cdef double nodes = 0.0, pairs = 0.0, left, right, both, neither
        for j in range(self.k + self.n_pairs):
            out[j] = c * self.nu[i, j]
        self.add_atoms(i, n, a, s, out)
        if squared_norm == NULL:
            return 0
        for j in range(self.k):
            nodes += out[j] * out[j]
        for e in range(self.n_pairs):
            both = out[self.k + e]
            left = out[self.pairs[e, 0]] - both
            right = out[self.pairs[e, 1]] - both
            neither = left + right + both
            pairs += left * left + right * right + both * both + neither * neither
        squared_norm[0] = self.row_norms[i] * nodes + pairs
        return 0

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        cdef Py_ssize_t e, left, right
        cdef double x, y, both, neither
        FlatOracle.image(self, i, direction, work)
        for e in range(self.n_pairs):
            left, right = self.pairs[e, 0], self.pairs[e, 1]
            # How `scatter` changes the four weights of the pair.
            both = direction[self.k + e]
            x = direction[left] - both
            y = direction[right] - both
            neither = -(x + y + both)
            work[left] += x - neither
            work[right] += y - neither
            work[self.k + e] = neither - y - x + both
        return 0

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        cdef Py_ssize_t j
        for j in range(self.k + self.n_pairs):
            self.nu[i, j] += gamma * direction[j]
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        cdef Py_ssize_t e
        cdef double left, right, both
        cdef double* v = target + self.pair_at
        FlatOracle.scatter(self, i, coef, direction, target)
        for e in range(self.n_pairs):
            both = direction[self.k + e]
            left = direction[self.pairs[e, 0]] - both
            right = direction[self.pairs[e, 1]] - both
            v[0] -= coef * (left + right + both)
            v[1] += coef * right
            v[2] += coef * left
            v[3] += coef * both
            v += 4
        return 0


cdef class EnumerationOracle(PairwiseOracle):
    """Labels as integers 0 and 1; k is at most MAX_LABELS."""

    # Whether all costs are `unit`, so that the number of flips gives the loss.
    cdef bint equal_costs
    cdef double unit
    # Places of the parts in `work`, after the potentials of the marginals.
    cdef Py_ssize_t single_at, pairwise_at, flag_at, scores_at, values_at

    def __init__(self, Features features, const signed char[:, ::1] Y,
                 const double[:, ::1] costs, double bias,
                 const Py_ssize_t[:, ::1] pairs):
        super().__init__(features, Y, costs, bias, pairs)
        cdef Py_ssize_t k = _check(self.k)
        cdef double evaluation, search
        self.unit = costs[0, 0]
        self.equal_costs = bool((np.asarray(costs) == self.unit).all())
        self.single_at = k + self.n_pairs
        self.pairwise_at = self.single_at + k
        self.flag_at = self.pairwise_at + k * k
        self.scores_at = self.flag_at + 1
        self.values_at = self.scores_at + (1 << k)
        self.work_size = self.values_at + (0 if self.equal_costs else 1 << k)
        # One term per label, and one per pair of flips if half of the labels are flipped.
        evaluation = CALL + k + k * (k - 2) / 8.0
        # Two sums per label, then two additions and a comparison per subset; and about
        # as many again for the losses, unless the number of flips gives them.
        search = 2 * CALL * k + 3.0 * (1 << k) / LANES
        if not self.equal_costs:
            search += CALL * k + 3.0 * (1 << k) / LANES
        self.relative_cost = (search + evaluation) / evaluation
        self.thread_safe = self.has_candidates = type(self) is EnumerationOracle

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        """Potentials of the marginals, and of the flips."""
        PairwiseOracle.potentials(self, i, w, work)
        self._turn_to_flips(i, work)
        return 0

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        PairwiseOracle.image(self, i, direction, work)
        self._turn_to_flips(i, work)
        return 0

    cdef void _turn_to_flips(self, Py_ssize_t i, double* work) noexcept nogil:
        """Compute the potentials of the flips from those of the marginals."""
        cdef Py_ssize_t k = self.k, e, j, left, right
        cdef const signed char* truth = &self.Y[i, 0]
        cdef double* single = work + self.single_at
        cdef double* pairwise = work + self.pairwise_at
        cdef double both
        for j in range(k):
            single[j] = -work[j] if truth[j] else work[j]
        memset(pairwise, 0, k * k * sizeof(double))
        for e in range(self.n_pairs):
            left, right = self.pairs[e, 0], self.pairs[e, 1]
            both = work[k + e]
            if truth[right]:
                single[left] += -both if truth[left] else both
            if truth[left]:
                single[right] += -both if truth[right] else both
            if truth[left] != truth[right]:
                both = -both
            pairwise[left * k + right] = pairwise[right * k + left] = both
        work[self.flag_at] = 0.0

    cdef void _tabulate(self, double* work) noexcept nogil:
        """Compute the scores of all flips, once for these potentials."""
        if work[self.flag_at] == 0.0:
            subset_scores(<int> self.k, work + self.single_at,
                          work + self.pairwise_at, work + self.scores_at)
            work[self.flag_at] = 1.0

    cdef void _maxima(
            self, Py_ssize_t i, double a, double b, double c, double* work,
            double* largest, double* subset) noexcept nogil:
        """For each number of flips, the largest a · score + b · loss + c · score · loss.

        If costs are equal, the labeling of the largest score attains it.
        """
        cdef double[MAX_SUBSET_LABELS] costs
        cdef Py_ssize_t j
        self._tabulate(work)
        if self.equal_costs:
            subset_maxima(<int> self.k, work + self.scores_at, largest, subset)
            for j in range(self.k + 1):
                largest[j] = (a * largest[j] + b * self.unit * j
                              + c * largest[j] * self.unit * j)
        else:
            for j in range(self.k):
                costs[j] = self.costs[j, self.Y[i, j]]
            subset_sums(<int> self.k, 0.0, costs, work + self.values_at)
            subset_values(1 << self.k, a, b, c, work + self.scores_at,
                          work + self.values_at)
            subset_maxima(<int> self.k, work + self.values_at, largest, subset)

    cdef void _read_flips(
            self, Py_ssize_t i, Py_ssize_t flips, int* labels) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.k):
            labels[j] = self.Y[i, j] ^ ((flips >> j) & 1)

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef double[MAX_SUBSET_LABELS + 1] largest, subset
        cdef Py_ssize_t size, best = 0
        self._maxima(i, 1.0, lam, 0.0, work, largest, subset)
        for size in range(1, self.k + 1):
            if largest[size] > largest[best]:
                best = size
        self._read_flips(i, <Py_ssize_t> subset[best], labels)
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t j, n, count = 0
        cdef Py_ssize_t[MAX_SUBSET_LABELS] flips
        cdef const double* row
        cdef double total = 0.0
        for j in range(self.k):
            if labels[j] != self.Y[i, j]:
                row = work + self.pairwise_at + j * self.k
                total += work[self.single_at + j]
                for n in range(count):
                    total += row[flips[n]]
                flips[count] = j
                count += 1
        score[0] = total
        loss[0] = self.loss(i, labels)
        return 0

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        """For each number of flips, the labeling of largest loss · (one + score)."""
        cdef double[MAX_SUBSET_LABELS + 1] largest, subset
        cdef int[MAX_SUBSET_LABELS] labels
        cdef Py_ssize_t size
        cdef Py_ssize_t* flips
        reserve_points(plane, self.k + 1)
        flips = <Py_ssize_t*> reserve_scratch(plane, (self.k + 1) * sizeof(Py_ssize_t))
        self._maxima(i, 0.0, one, 1.0, work, largest, subset)
        for size in range(self.k + 1):
            flips[size] = <Py_ssize_t> subset[size]
            plane.scores[size] = work[self.scores_at + flips[size]]
            self._read_flips(i, flips[size], labels)
            plane.losses[size] = self.loss(i, labels)
        plane.count = self.k + 1
        return 0

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        self._read_flips(i, (<Py_ssize_t*> plane.scratch)[j], labels)
        return 0

    cdef void add_atom(
            self, Py_ssize_t i, double coef, const int* labels,
            double* delta) noexcept nogil:
        cdef Py_ssize_t e, left, right
        cdef const signed char* truth = &self.Y[i, 0]
        IndicatorOracle.add_atom(self, i, coef, labels, delta)
        for e in range(self.n_pairs):
            left, right = self.pairs[e, 0], self.pairs[e, 1]
            delta[self.k + e] += coef * (
                labels[left] * labels[right] - truth[left] * truth[right])


def flip_scores(const double[::1] single, const double[:, ::1] pairwise):
    """Σ_{l in S} single[l] + Σ_{l < m in S} pairwise[l, m] for all sets S of labels.

    Parameters
    ----------
    single : ndarray of shape (k,)
    pairwise : ndarray of shape (k, k), symmetric

    Returns
    -------
    ndarray of shape (2**k,)
        The index of a set has bit l set if label l is in the set.
    """
    cdef int k = _check(single.shape[0])
    check_shape("pairwise", pairwise, k, k)
    scores = np.empty(1 << k)
    cdef double[::1] out = scores
    with nogil:
        subset_scores(k, &single[0], &pairwise[0, 0], &out[0])
    return scores


def decode_all(const double[:, ::1] single, const double[:, ::1] pairwise,
               bint gains=False, int n_threads=1):
    """The best set of labels of each row of `single`, or the gain of each label.

    Parameters
    ----------
    single : ndarray of shape (n, k)
    pairwise : ndarray of shape (k, k), symmetric
    gains : bool
        Whether to return, for each label, by how much the best score with it exceeds
        the best without, instead of the indicator of the best set.
    n_threads : int

    Returns
    -------
    ndarray of shape (n, k)
    """
    cdef int k = _check(single.shape[1])
    cdef Py_ssize_t i, first, stop, n = single.shape[0]
    cdef int t
    check_shape("pairwise", pairwise, k, k)
    n_threads = max(1, min(n_threads, n))
    result = np.zeros((n, k))
    cdef double[:, ::1] out = result, work = np.empty((n_threads, 1 << k))
    for first in range(0, n, CHUNK):
        PyErr_CheckSignals()
        stop = min(first + CHUNK, n)
        for i in prange(
                first, stop, nogil=True, num_threads=n_threads, schedule="static"):
            t = threadid()
            subset_scores(k, &single[i, 0], &pairwise[0, 0], &work[t, 0])
            if gains:
                subset_gains(k, &work[t, 0], &out[i, 0])
            else:
                _best_set(k, &work[t, 0], &out[i, 0])
    return result


cdef void _best_set(int k, const double* scores, double* out) noexcept nogil:
    cdef double[MAX_SUBSET_LABELS + 1] largest, subset
    cdef Py_ssize_t j, best = 0
    subset_maxima(k, scores, largest, subset)
    for j in range(1, k + 1):
        if largest[j] > largest[best]:
            best = j
    for j in range(k):
        out[j] = (<Py_ssize_t> subset[best] >> j) & 1


cdef int _check(Py_ssize_t k) except -1:
    if not 1 <= k <= MAX_SUBSET_LABELS:
        raise ValueError(f"from 1 to {MAX_SUBSET_LABELS} labels; got {k}")
    return <int> k
