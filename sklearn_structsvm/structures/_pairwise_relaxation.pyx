"""Oracle of labels with pairwise potentials: the relaxation of their labelings.

Its labelings are the points z = (μ, p) of the local polytope (see _qpbo.pyx). In the
plane of h = one + f(z) - f(y_i) and g = L_i(z), they form a convex polygon. The largest
h g is at a vertex, or on an edge between two vertices, whose λ is that of the line
through them. So mixtures of two vertices are all the labelings that are needed.
"""
from sklearn_structsvm._utils import tolerances

from libc.math cimport fabs, fmax, fmin
from libc.string cimport memcpy

from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm._contract._oracle cimport (
    CALL, Plane, reserve_points, reserve_scratch)
from sklearn_structsvm.structures._pairwise cimport PairwiseOracle
from sklearn_structsvm.structures._qpbo cimport RoofDuality


# A mixture stores the share of its second vertex as a multiple of 1 / SHARE_UNITS.
cdef enum:
    SHARE_UNITS = 1 << 30

cdef double VALUE_ROUNDING = tolerances.VALUE_ROUNDING

# Phases of a maximum flow, on average over the calls of training: from 1, for 5 labels in
# a tree, to 6, for 40 labels with all pairs.
cdef enum:
    FLOW_PHASES = 3

# The search for an edge ends after a few steps; only rounding could prolong it.
cdef enum:
    MAX_EDGE_STEPS = 100


cdef class RelaxationOracle(PairwiseOracle):
    """Mixtures of two vertices of the local polytope.

    A labeling is an array: the share of the second vertex, and then 2 a + 8 b for each
    label and each pair, where a and b are its weights at the two vertices: 0, 1/2 or 1.
    A vertex has a share of 0 and a = b.
    """

    cdef RoofDuality roof
    cdef Py_ssize_t size
    # Places of the parts in `work`, after the potentials of the marginals.
    cdef Py_ssize_t single_at, vertices_at, scratch_at

    def __init__(self, Features features, const signed char[:, ::1] Y,
                 const double[:, ::1] costs, double bias,
                 const Py_ssize_t[:, ::1] pairs):
        super().__init__(features, Y, costs, bias, pairs)
        cdef double evaluation, search
        self.roof = RoofDuality(self.k, pairs)
        self.size = self.k + self.n_pairs
        self.max_labels = 1 + self.size
        self.n_values = SHARE_UNITS
        self.single_at = self.size
        self.vertices_at = self.single_at + self.k
        self.scratch_at = self.vertices_at + 3 * self.size
        self.work_size = self.scratch_at + self.roof.scratch_size
        # Evaluation compares a vertex with the truth number by number. The flow sets
        # its capacities and looks at them at the end, and twice in each phase.
        evaluation = CALL + 2.0 * self.size
        search = 2.0 * (1 + FLOW_PHASES) * (2.0 * self.k + 4.0 * self.n_pairs)
        self.relative_cost = (search + evaluation) / evaluation
        self.thread_safe = self.has_candidates = type(self) is RelaxationOracle

    cdef double _truth(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Marginal j of the true labeling."""
        cdef Py_ssize_t e = j - self.k
        if e < 0:
            return self.Y[i, j]
        return self.Y[i, self.pairs[e, 0]] * self.Y[i, self.pairs[e, 1]]

    cdef double _cost(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """The factor of label j's weight in the loss."""
        cdef int truth = self.Y[i, j]
        return -self.costs[j, truth] if truth else self.costs[j, truth]

    cdef void _write(
            self, double share, const double* a, const double* b, int* labels
            ) noexcept nogil:
        cdef Py_ssize_t j
        labels[0] = <int> (share * SHARE_UNITS + 0.5)
        if labels[0] == 0:
            b = a
        elif labels[0] == SHARE_UNITS:
            a = b
            labels[0] = 0
        for j in range(self.size):
            labels[1 + j] = <int> (2.0 * a[j] + 8.0 * b[j])

    cdef double _marginal(self, const int* labels, Py_ssize_t j) noexcept nogil:
        cdef double share = labels[0] / <double> SHARE_UNITS
        cdef int both = labels[1 + j]
        return 0.5 * ((1.0 - share) * (both & 3) + share * (both >> 2))

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        cdef Py_ssize_t j
        labels[0] = 0
        for j in range(self.size):
            labels[1 + j] = <int> (10.0 * self._truth(i, j))
        return 0

    cdef void add_atom(
            self, Py_ssize_t i, double coef, const int* labels,
            double* delta) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.size):
            delta[j] += coef * (self._marginal(labels, j) - self._truth(i, j))

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.size):
            total += work[j] * (self._marginal(labels, j) - self._truth(i, j))
        score[0] = total
        loss[0] = self.loss(i, labels)
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.k):
            total += self._cost(i, j) * (self._marginal(labels, j) - self._truth(i, j))
        return total

    cdef void _best_vertex(
            self, Py_ssize_t i, double lam, double* work, double* z,
            double* score, double* loss) noexcept nogil:
        """The vertex z of largest score + lam loss."""
        cdef Py_ssize_t j
        cdef double* single = work + self.single_at
        for j in range(self.k):
            single[j] = work[j] + lam * self._cost(i, j)
        self.roof.solve(
            single, work + self.k, work + self.scratch_at, z)
        self._measure(i, work, z, score, loss)

    cdef void _measure(
            self, Py_ssize_t i, const double* work, const double* z,
            double* score, double* loss) noexcept nogil:
        cdef Py_ssize_t j
        score[0] = loss[0] = 0.0
        for j in range(self.size):
            score[0] += work[j] * (z[j] - self._truth(i, j))
        for j in range(self.k):
            loss[0] += self._cost(i, j) * (z[j] - self._truth(i, j))

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef double* z = work + self.vertices_at
        self._best_vertex(i, lam, work, z, score, loss)
        self._write(0.0, z, z, labels)
        return 0

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        """Two vertices, and their mixture of largest loss · (one + score).

        A vertex `low` has less loss than the maximizer and a vertex `high` has more. The
        vertex farthest out from the line through both replaces one of them, until none is
        farther out. If λ g exceeds h at that vertex, with the λ of the line, the
        maximizer has less loss.
        """
        cdef double* low = work + self.vertices_at
        cdef double* high = low + self.size
        cdef double* between = high + self.size
        cdef double low_score, low_loss, high_score, high_loss, score, loss, lam
        cdef double size = fabs(one), share
        cdef Py_ssize_t j
        plane.count = 0
        for j in range(self.size):
            size += fabs(work[j])
        for j in range(self.size):
            if j < self.k:
                high[j] = 1.0 - self._truth(i, j)
            else:
                high[j] = (high[self.pairs[j - self.k, 0]]
                           * high[self.pairs[j - self.k, 1]])
        self._measure(i, work, high, &high_score, &high_loss)
        self._best_vertex(i, 0.0, work, low, &low_score, &low_loss)
        if high_loss <= 0.0 or one + low_score <= 0.0:
            return 0
        for _ in range(MAX_EDGE_STEPS):
            if high_loss <= low_loss:
                break
            lam = fmax(low_score - high_score, 0.0) / (high_loss - low_loss)
            self._best_vertex(i, lam, work, between, &score, &loss)
            if (score - low_score + lam * (loss - low_loss)
                    <= VALUE_ROUNDING * (size + lam * high_loss)):
                break
            if lam * loss > one + score:
                high, between = between, high
                high_score, high_loss = score, loss
            else:
                low, between = between, low
                low_score, low_loss = score, loss
        # The largest product along the line from `low` to `high`.
        score = low_score - high_score
        loss = high_loss - low_loss
        if loss <= 0.0:
            share = 0.0
        elif score <= 0.0:
            share = 1.0
        else:
            share = 0.5 * ((one + low_score) / score - low_loss / loss)
            share = fmin(fmax(share, 0.0), 1.0)
        self._note(i, work, plane, 0.0, low, low)
        self._note(i, work, plane, 0.0, high, high)
        self._note(i, work, plane, share, low, high)
        return 0

    cdef int _note(
            self, Py_ssize_t i, const double* work, Plane* plane, double share,
            const double* a, const double* b) except -1 nogil:
        """Add a point to the plane."""
        cdef Py_ssize_t j = plane.count
        cdef int* labels
        reserve_points(plane, j + 1)
        labels = <int*> reserve_scratch(
            plane, (j + 1) * (1 + self.size) * sizeof(int)) + j * (1 + self.size)
        self._write(share, a, b, labels)
        self.evaluate(i, work, labels, &plane.scores[j], &plane.losses[j])
        plane.count = j + 1
        return 0

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        cdef Py_ssize_t n = 1 + self.size
        memcpy(labels, <int*> plane.scratch + j * n, n * sizeof(int))
        return 0
