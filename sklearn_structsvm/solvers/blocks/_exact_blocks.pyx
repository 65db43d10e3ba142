"""The blocks of `_exact`: maximizers of the dual over one example.

In the unit cube, they are found one coordinate at a time; for one label this is the
method of Hsieh et al. 2008, "A dual coordinate descent method for large-scale linear
SVM". In the simplex, they are found by a projection, as in Keerthi et al. 2008, "A
sequential dual method for large scale multi-class linear SVMs".
"""
from sklearn_structsvm._utils.borders import check_indices, check_shape

from libc.string cimport memset

from sklearn_structsvm.solvers.blocks._exact cimport ExactAscent
from sklearn_structsvm._utils._matrix._rows cimport Rows


cdef extern from "solvers/blocks/_exact_blocks.h" nogil:
    void class_values(
        Py_ssize_t k, double beta, const double* cost, const double* theta,
        const double* nu, double* values, double* raised, double* best,
        double* highest) noexcept
    double class_hinge(
        Py_ssize_t k, const double* cost, const double* theta, const double* nu,
        double* behind) noexcept


cdef class LabelAscent(ExactAscent):
    """Blocks of k labels, present or not, each with a cost if it is wrong.

    Parameters
    ----------
    Y : ndarray of shape (n, k), dtype int8
        Indicator.
    costs : ndarray of shape (k, 2)
        costs[c, truth]: the cost of label c if it is wrong.
    """

    cdef const signed char[:, ::1] Y
    cdef const double[:, ::1] costs

    def __init__(self, Rows rows, const signed char[:, ::1] Y,
                 const double[:, ::1] costs, const double[::1] weights, double lam):
        super().__init__(rows, Y.shape[1], weights, lam)
        check_shape("Y", Y, rows.n_rows, self.k)
        check_indices("Y", Y, 2)
        check_shape("costs", costs, self.k, 2)
        self.Y = Y
        self.costs = costs
        self.n_held_bytes = (self.k + 7) // 8

    cdef Py_ssize_t maximize(
            self, Py_ssize_t i, const double* theta, double* delta, double* gap
            ) noexcept nogil:
        cdef Py_ssize_t c, n_changed = 0
        cdef int truth
        cdef double sign, cost, alpha, new, gain, loss = 0.0
        cdef double beta = self.curvatures[i] / self.proximal_lam()
        gap[0] = 0.0
        for c in range(self.k):
            truth = self.Y[i, c]
            cost = self.costs[c, truth]
            sign = -1.0 if truth else 1.0
            # The mass on the wrong label, and the gain from moving mass there.
            new = alpha = sign * self.nu[i, c]
            gain = cost + sign * theta[c]
            if gain > 0.0:
                gap[0] += gain * (1.0 - alpha)
                new = 1.0
                if gain < (1.0 - alpha) * beta:
                    new = alpha + gain / beta
            elif gain < 0.0:
                gap[0] -= gain * alpha
                new = 0.0
                if -gain < alpha * beta:
                    new = alpha + gain / beta
            loss += cost * new
            delta[c] = sign * (new - alpha)
            if new != alpha:
                self.nu[i, c] = sign * new
                self.changed[n_changed] = <int> c
                n_changed += 1
        self.loss_bar[i] = loss
        return n_changed

    cdef double hinge_and_gap(
            self, Py_ssize_t i, const double* theta, double* gap) noexcept nogil:
        cdef Py_ssize_t c
        cdef int truth
        cdef double sign, alpha, gain, hinge = 0.0
        gap[0] = 0.0
        for c in range(self.k):
            truth = self.Y[i, c]
            sign = -1.0 if truth else 1.0
            alpha = sign * self.nu[i, c]
            gain = self.costs[c, truth] + sign * theta[c]
            if gain > 0.0:
                hinge += gain
                gap[0] += gain * (1.0 - alpha)
            else:
                gap[0] -= gain * alpha
        return hinge

    cdef double hinge_and_slope(
            self, Py_ssize_t i, const double* theta, const double* along, double step,
            double* slope) noexcept nogil:
        cdef Py_ssize_t c
        cdef int truth
        cdef double sign, gain, hinge = 0.0
        slope[0] = 0.0
        for c in range(self.k):
            truth = self.Y[i, c]
            sign = -1.0 if truth else 1.0
            gain = self.costs[c, truth] + sign * (theta[c] + step * along[c])
            if gain > 0.0:
                hinge += gain
                slope[0] += sign * along[c]
        return hinge

    # `held` has a bit for each label: whether it is wrong.

    cdef Py_ssize_t answer(
            self, Py_ssize_t i, const double* theta, unsigned char* held, double* delta,
            double* loss) noexcept nogil:
        cdef Py_ssize_t c, n_changed = 0
        cdef int truth
        cdef double sign
        memset(held, 0, self.n_held_bytes)
        loss[0] = 0.0
        for c in range(self.k):
            truth = self.Y[i, c]
            sign = -1.0 if truth else 1.0
            delta[c] = 0.0
            if self.costs[c, truth] + sign * theta[c] > 0.0:
                held[c >> 3] |= 1 << (c & 7)
                loss[0] += self.costs[c, truth]
                delta[c] = sign
                self.changed[n_changed] = <int> c
                n_changed += 1
        return n_changed

    cdef void mix_block(
            self, Py_ssize_t i, double kept, Py_ssize_t n, const Py_ssize_t* planes,
            const double* shares, const unsigned char* held) noexcept nogil:
        cdef Py_ssize_t c, m, size = self.n_held_bytes
        cdef double wrong, loss = kept * self.loss_bar[i]
        for c in range(self.k):
            wrong = 0.0
            for m in range(n):
                if held[planes[m] * size + (c >> 3)] >> (c & 7) & 1:
                    wrong += shares[planes[m]]
            loss += wrong * self.costs[c, self.Y[i, c]]
            self.nu[i, c] *= kept
            self.nu[i, c] += -wrong if self.Y[i, c] else wrong
        self.loss_bar[i] = loss


cdef double simplex_level(
        Py_ssize_t n, double mass, const double* behind, double* left) noexcept nogil:
    """The level with Σ_j max(0, level - behind[j]) = mass > 0; the least `behind` is 0.

    The level falls as entries above it are left out, until none is above it (Michelot
    1986).
    """
    cdef Py_ssize_t j, m = 0, n_left
    cdef double level, total = 0.0
    for j in range(n):
        left[m] = behind[j]
        if behind[j] < mass:
            total += behind[j]
            m += 1
    while True:
        level = (total + mass) / m
        n_left = m
        m = 0
        total = 0.0
        for j in range(n_left):
            left[m] = left[j]
            if left[j] < level:
                total += left[j]
                m += 1
        if m == n_left:
            return level


cdef class ClassAscent(ExactAscent):
    """Blocks of one of k classes, with any costs of labels.

    Parameters
    ----------
    y : ndarray of shape (n,), dtype intc
        Class indices.
    costs : ndarray of shape (k, k)
        costs[truth, label], zero on the diagonal.
    """

    cdef const int[::1] y
    cdef const double[:, ::1] costs

    def __init__(self, Rows rows, const int[::1] y, const double[:, ::1] costs,
                 const double[::1] weights, double lam):
        super().__init__(rows, costs.shape[0], weights, lam)
        check_shape("y", y, rows.n_rows)
        check_indices("y", y, self.k)
        check_shape("costs", costs, self.k, self.k)
        self.y = y
        self.costs = costs
        self.n_held_bytes = sizeof(unsigned short)

    cdef Py_ssize_t maximize(
            self, Py_ssize_t i, const double* theta, double* delta, double* gap
            ) noexcept nogil:
        """α maximizes ⟨H, α⟩ - β/2 ‖α - old α‖² over the simplex.

        So α(c) = max(0, level - behind(c)) / β, where behind(c) is how far H + β old α is
        below its maximum at c, and the level is such that α sums to 1.
        """
        cdef Py_ssize_t c, j, n, m, corner = -1, k = self.k, truth = self.y[i]
        cdef const double* cost = &self.costs[truth, 0]
        cdef double* nu = &self.nu[i, 0]
        cdef double* values = delta + k
        cdef double* raised = values + k
        cdef double* behind = raised + k
        cdef int* listed = &self.changed[0]
        cdef double beta = self.curvatures[i] / self.proximal_lam()
        cdef double best, highest, level = 0.0, alpha, change
        cdef double gain = 0.0, squares = 0.0, loss = 0.0
        class_values(k, beta, cost, theta, nu, values, raised, &best, &highest)
        # ν of the truth is its α - 1.
        raised[truth] += beta
        highest = max(highest, raised[truth])
        # The few classes that have mass or may get some, without unpredictable branches.
        listed[0] = <int> truth
        n = 1
        for c in range(k):
            listed[n] = <int> c
            n += (c != truth) & ((raised[c] >= highest - beta) | (nu[c] > 0.0))
        gap[0] = best - values[truth]
        for j in range(n):
            c = listed[j]
            gap[0] += nu[c] * (best - values[c])
            behind[j] = highest - raised[c]
        if not gap[0] > 0.0:
            return 0
        if beta > 0.0:
            level = simplex_level(n, beta, behind, raised)
        else:
            # All features are zero: all mass goes to one of the best.
            corner = 0
            while behind[corner] > 0.0:
                corner += 1
        for j in range(n):
            c = listed[j]
            alpha = j == corner
            if behind[j] < level:
                alpha = (level - behind[j]) / beta
            change = alpha - nu[c] - (j == 0)
            gain -= change * (best - values[c])
            squares += change * change
            loss += cost[c] * alpha
            behind[j] = change
        # If the gain is only rounding, the dual would not increase.
        if not gain > 0.5 * beta * squares:
            return 0
        memset(delta, 0, k * sizeof(double))
        m = 0
        for j in range(n):
            c = listed[j]
            delta[c] = behind[j]
            nu[c] += behind[j]
            listed[m] = <int> c
            m += behind[j] != 0.0
        self.loss_bar[i] = loss
        return m

    cdef double hinge_and_gap(
            self, Py_ssize_t i, const double* theta, double* gap) noexcept nogil:
        cdef Py_ssize_t truth = self.y[i]
        cdef double best = class_hinge(
            self.k, &self.costs[truth, 0], theta, &self.nu[i, 0], gap)
        # ν of the truth is its α - 1.
        best -= theta[truth]
        gap[0] += best
        return best

    cdef double hinge_and_slope(
            self, Py_ssize_t i, const double* theta, const double* along, double step,
            double* slope) noexcept nogil:
        cdef Py_ssize_t c, best = 0, truth = self.y[i]
        cdef const double* cost = &self.costs[truth, 0]
        cdef double value, most = cost[0] + theta[0] + step * along[0]
        for c in range(1, self.k):
            value = cost[c] + theta[c] + step * along[c]
            if value > most:
                most = value
                best = c
        slope[0] = along[best] - along[truth]
        return most - theta[truth] - step * along[truth]

    # `held` is the class, in two bytes.

    cdef Py_ssize_t answer(
            self, Py_ssize_t i, const double* theta, unsigned char* held, double* delta,
            double* loss) noexcept nogil:
        cdef Py_ssize_t c, best = 0, truth = self.y[i]
        cdef const double* cost = &self.costs[truth, 0]
        for c in range(1, self.k):
            if cost[c] + theta[c] > cost[best] + theta[best]:
                best = c
        (<unsigned short*> held)[0] = <unsigned short> best
        loss[0] = cost[best]
        if best == truth:
            return 0
        memset(delta, 0, self.k * sizeof(double))
        delta[best] = 1.0
        delta[truth] = -1.0
        self.changed[0] = <int> best
        self.changed[1] = <int> truth
        return 2

    cdef void mix_block(
            self, Py_ssize_t i, double kept, Py_ssize_t n, const Py_ssize_t* planes,
            const double* shares, const unsigned char* held) noexcept nogil:
        cdef Py_ssize_t c, m
        cdef double* nu = &self.nu[i, 0]
        cdef double share, mass = 0.0, loss = kept * self.loss_bar[i]
        for c in range(self.k):
            nu[c] *= kept
        for m in range(n):
            share = shares[planes[m]]
            c = (<const unsigned short*> held)[planes[m]]
            nu[c] += share
            mass += share
            loss += share * self.costs[self.y[i], c]
        nu[self.y[i]] -= mass
        self.loss_bar[i] = loss
