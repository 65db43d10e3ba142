# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Oracles for test_compiled.py: one written from the guide's list, and broken ones."""

import numpy as np

from libc.math cimport exp, log

from sklearn_structsvm._contract._oracle cimport BlockOracle, Plane, reserve_points


cdef class Minimal(BlockOracle):
    """Classes y with φ(x, y) = x ⊗ e_y and zero-one loss: all that must be defined.

    A direction is Δ of the classes' marginals, followed by the example's number.
    """

    cdef const double[:, ::1] X
    cdef const int[::1] y
    cdef Py_ssize_t k, f
    cdef double[:, ::1] nu

    def __init__(self, const double[:, ::1] X, const int[::1] y, Py_ssize_t k):
        self.X = X
        self.y = y
        self.k = k
        self.f = X.shape[1]
        self.n_blocks = X.shape[0]
        self.n_weights = self.f * k
        self.max_labels = 1
        self.n_values = k
        self.work_size = k
        self.direction_size = k
        self.nu = np.zeros((X.shape[0], k))

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        labels[0] = self.y[i]
        return 0

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        cdef Py_ssize_t c, j
        for c in range(self.k):
            work[c] = 0.0
            for j in range(self.f):
                work[c] += self.X[i, j] * w[j * self.k + c]
        return 0

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Py_ssize_t c, best = self.y[i]
        for c in range(self.k):
            if work[c] + lam * (c != self.y[i]) > work[best] + lam * (best != self.y[i]):
                best = c
        labels[0] = <int> best
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        score[0] = work[labels[0]] - work[self.y[i]]
        loss[0] = labels[0] != self.y[i]
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        return labels[0] != self.y[i]

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        cdef Py_ssize_t c
        score[0] = 0.0
        for c in range(self.k):
            score[0] += work[c] * self.nu[i, c]
        return 0

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        cdef Py_ssize_t j
        cdef double size = 0.0, norm = 0.0
        for j in range(self.k):
            out[j] = c * self.nu[i, j]
        for j in range(n):
            if a[j] != 0.0:
                out[s[j]] += a[j]
                out[self.y[i]] -= a[j]
        for j in range(self.k):
            norm += out[j] * out[j]
        for j in range(self.f):
            size += self.X[i, j] * self.X[i, j]
        if squared_norm != NULL:
            squared_norm[0] = size * norm
        return 0

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction) except -1 nogil:
        cdef Py_ssize_t c
        for c in range(self.k):
            self.nu[i, c] += gamma * direction[c]
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        cdef Py_ssize_t c, j
        for j in range(self.f):
            for c in range(self.k):
                target[j * self.k + c] += coef * self.X[i, j] * direction[c]
        return 0

    def get_blocks(self):
        return np.array(self.nu)

    def set_blocks(self, blocks):
        np.asarray(self.nu)[...] = blocks

    def scale_blocks(self, double rho):
        np.asarray(self.nu)[...] *= rho


cdef class Unfinished(BlockOracle):
    def __init__(self, const double[:, ::1] X, const int[::1] y, Py_ssize_t k):
        self.n_blocks = X.shape[0]
        self.n_weights = X.shape[1] * k
        self.max_labels = 1
        self.n_values = k


cdef class WithoutValues(Minimal):
    def __init__(self, X, y, k):
        super().__init__(X, y, k)
        self.n_values = 0


cdef class OfAnotherTruth(Minimal):
    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        labels[0] = (self.y[i] + 1) % self.k
        return 0


cdef class WithoutLoss(Minimal):
    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        return Minimal.max_oracle(self, i, 0.0, work, labels, score, loss)


cdef class OfOtherScores(Minimal):
    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        Minimal.max_oracle(self, i, lam, work, labels, score, loss)
        # The right value, of another score and loss.
        if lam > 0.0:
            score[0] += 0.5 * lam
            loss[0] -= 0.5
        return 0


cdef class OfAnotherLoss(Minimal):
    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        return 2.0 * Minimal.loss(self, i, labels)


cdef class OfAnotherNorm(Minimal):
    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        Minimal.direction(self, i, c, n, a, s, out, squared_norm)
        if squared_norm != NULL:
            squared_norm[0] *= 2.0
        return 0


cdef class OfAnotherImage(Minimal):
    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        Minimal.image(self, i, direction, work)
        work[self.y[i]] += 1.0
        return 0


cdef class WithoutTheBlock(Minimal):
    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        return Minimal.direction(self, i, 0.0, n, a, s, out, squared_norm)


cdef class WithTheFirstAlone(Minimal):
    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        return Minimal.direction(self, i, c, min(n, 1), a, s, out, squared_norm)


cdef class Transposed(Minimal):
    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        cdef Py_ssize_t c, j
        for j in range(self.f):
            for c in range(self.k):
                target[c * self.f + j] += coef * self.X[i, j] * direction[c]
        return 0


cdef class WithoutMoves(Minimal):
    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction) except -1 nogil:
        return 0


cdef class WithoutProjection(Minimal):
    cdef int project(
            self, Py_ssize_t i, const double* direction, const double* v,
            const double* lower, const double* upper, double* w) except -1 nogil:
        return 0


cdef class WithoutScaling(Minimal):
    def scale_blocks(self, double rho):
        pass


cdef class WithoutRestoring(Minimal):
    def set_blocks(self, blocks):
        pass


cdef class BoundedBelow(Minimal):
    cdef double upper_bound(
            self, Py_ssize_t i, const double* work, double value) noexcept nogil:
        return value - 1.0


cdef class WithCandidates(Minimal):
    """All classes are candidates, or as many as there are `n_candidates`."""

    cdef Py_ssize_t n_candidates

    def __init__(self, X, y, k, n_candidates=None):
        super().__init__(X, y, k)
        self.has_candidates = self.thread_safe = True
        self.n_candidates = k if n_candidates is None else n_candidates

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef Py_ssize_t c
        cdef int label
        reserve_points(plane, self.n_candidates)
        for c in range(self.n_candidates):
            label = <int> c
            self.evaluate(i, work, &label, &plane.scores[c], &plane.losses[c])
        plane.count = self.n_candidates
        return 0

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        labels[0] = <int> j
        return 0


cdef class WithOneCandidate(WithCandidates):
    def __init__(self, X, y, k):
        super().__init__(X, y, k, 1)


cdef class WithOtherCandidates(WithCandidates):
    """Whose labelings are not those of their points."""

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        labels[0] = <int> ((j + 1) % self.k)
        return 0


cdef class WithoutTheLast(WithCandidates):
    """Restricts max_oracle, and not the candidates that it inherits."""

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef double last = work[self.k - 1]
        work[self.k - 1] = -1e300
        Minimal.max_oracle(self, i, lam, work, labels, score, loss)
        work[self.k - 1] = last
        return 0


cdef class WithAngles(Minimal):
    def __init__(self, X, y, k):
        super().__init__(X, y, k)
        self.has_constrained = True

    cdef bint constrained_oracle(
            self, Py_ssize_t i, double lam, double alpha, double beta,
            bint strict_alpha, bint strict_beta, double one, double* work,
            int* labels, double* score, double* loss) except? -1 nogil:
        cdef int c, best = -1
        cdef double f, g, h, highest = -1e300
        for c in range(<int> self.k):
            self.evaluate(i, work, &c, &f, &g)
            h = one + f
            if g < beta * h or (strict_beta and g == beta * h):
                continue
            if alpha * h < g or h < 0.0 or (strict_alpha and (alpha * h == g or h == 0)):
                continue
            if h + lam * g > highest:
                highest = h + lam * g
                best = c
                score[0] = f
                loss[0] = g
        labels[0] = best
        return best >= 0


cdef class WithLooseAngles(WithAngles):
    cdef bint constrained_oracle(
            self, Py_ssize_t i, double lam, double alpha, double beta,
            bint strict_alpha, bint strict_beta, double one, double* work,
            int* labels, double* score, double* loss) except? -1 nogil:
        return WithAngles.constrained_oracle(
            self, i, lam, alpha, beta, False, strict_beta, one, work, labels, score, loss)


cdef class WithMarginals(Minimal):
    def __init__(self, X, y, k):
        super().__init__(X, y, k)
        self.has_marginals = True

    cdef int soft_oracle(
            self, Py_ssize_t i, double lam, double temperature, double* work,
            double* value, double* loss) except -1 nogil:
        cdef Py_ssize_t c
        cdef int truth = self.y[i]
        cdef double top = 0.0, total = 0.0
        for c in range(self.k):
            self.nu[i, c] = work[c] - work[truth] + lam * (c != truth)
            top = max(top, self.nu[i, c])
        for c in range(self.k):
            self.nu[i, c] = exp((self.nu[i, c] - top) / temperature)
            total += self.nu[i, c]
        for c in range(self.k):
            self.nu[i, c] /= total
        loss[0] = 1.0 - self.nu[i, truth]
        self.nu[i, truth] -= 1.0
        value[0] = top + temperature * log(total / self.k)
        return 0


cdef class WithSumsForMeans(WithMarginals):
    """Whose soft maxima exceed the largest value."""

    cdef int soft_oracle(
            self, Py_ssize_t i, double lam, double temperature, double* work,
            double* value, double* loss) except -1 nogil:
        WithMarginals.soft_oracle(self, i, lam, temperature, work, value, loss)
        value[0] += temperature * log(<double> self.k)
        return 0


cdef class WithColdMarginals(WithMarginals):
    """Whose marginals are those of another temperature."""

    cdef int soft_oracle(
            self, Py_ssize_t i, double lam, double temperature, double* work,
            double* value, double* loss) except -1 nogil:
        cdef double soft = 0.0
        WithMarginals.soft_oracle(self, i, lam, temperature, work, &soft, loss)
        WithMarginals.soft_oracle(self, i, lam, 0.5 * temperature, work, value, loss)
        value[0] = soft
        return 0
