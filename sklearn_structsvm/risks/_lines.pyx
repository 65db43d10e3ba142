"""The hinges: what their lines are, given scores Z and a direction's scores.

Each is written twice: for many examples at once as vector code (`_scan.h`), which is
what a solver's iterations cost, and as a list of lines for the segmentation of the few
examples that a line search leaves open.
"""
from libc.math cimport fabs
from libc.string cimport memset

from sklearn_structsvm.risks._hinge cimport BLOCK, Hinge, slopes
from sklearn_structsvm.risks._segments cimport segment_row


cdef extern from "risks/_scan.h" nogil:
    void multiclass_slopes(
        Py_ssize_t count, const Py_ssize_t* rows, Py_ssize_t k, const double* Z,
        const double* A, const int* truth, const double* costs, int rescaled,
        const double* etas, const slopes* out) noexcept
    void multiclass_worst(
        Py_ssize_t first, Py_ssize_t count, Py_ssize_t k, const double* Z,
        const double* A, const int* truth, const double* costs, int rescaled,
        double rtol, double* losses, int* labels) noexcept
    void binary_slopes(
        Py_ssize_t count, const Py_ssize_t* rows, const double* Z, const double* A,
        const double* signs, const double* costs, const double* etas,
        const slopes* out) noexcept
    void binary_slopes_range(
        Py_ssize_t begin, Py_ssize_t count, const double* Z, const double* A,
        const double* signs, const double* costs, const double* etas,
        const slopes* out) noexcept
    void separable_slopes(
        Py_ssize_t count, const Py_ssize_t* rows, Py_ssize_t k, const double* Z,
        const double* A, const signed char* present, double margin,
        const double* etas, const slopes* out) noexcept


cdef class BinaryLines(Hinge):
    """max(0, cost_i - y_i z_i) with y_i in {-1, 1}."""

    cdef const double[::1] signs
    cdef const double[::1] costs

    def __init__(self, p, const double[::1] signs, const double[::1] costs):
        super().__init__(p, 1)
        self.signs, self.costs = signs, costs
        self.max_lines = 2

    cdef void derivatives(
            self, Py_ssize_t count, const Py_ssize_t* rows, const double* z,
            const double* a, const double* etas, const slopes* out) noexcept nogil:
        # Rows ascend, so that these are all there are between the first and the last.
        if rows[count - 1] - rows[0] == count - 1:
            binary_slopes_range(
                rows[0], count, z, a, &self.signs[0], &self.costs[0], etas, out)
        else:
            binary_slopes(
                count, rows, z, a, &self.signs[0], &self.costs[0], etas, out)

    cdef void losses(
            self, Py_ssize_t first, Py_ssize_t count, const double* z,
            double* out) noexcept nogil:
        cdef Py_ssize_t j, i
        cdef double value
        for j in range(count):
            i = first + j
            value = self.costs[i] - self.signs[i] * z[i]
            out[j] = value if value > 0.0 else 0.0

    cdef double choose(
            self, Py_ssize_t first, Py_ssize_t count, const double* z, const double* a,
            double rtol, double* B) noexcept nogil:
        cdef Py_ssize_t i
        cdef double value, threshold, offset = 0.0
        cdef bint wrong
        for i in range(first, first + count):
            value = self.costs[i] - self.signs[i] * z[i]
            wrong = value > 0.0
            if a != NULL:
                threshold = rtol * max(1.0, self.costs[i] + fabs(z[i]))
                if fabs(value) <= threshold:
                    wrong = self.signs[i] * a[i] < 0.0
            B[i] = -self.p[i] * self.signs[i] if wrong else 0.0
            offset += self.p[i] * self.costs[i] if wrong else 0.0
        return offset

    cdef Py_ssize_t segments(
            self, Py_ssize_t i, const double* z, const double* a, double lower,
            double upper, double* work, double* etas, double* steps) noexcept nogil:
        cdef double slope = -self.signs[i] * a[i]
        cdef double offset = self.costs[i] - self.signs[i] * z[i]
        cdef double value = offset + lower * slope, hinge
        cdef bint positive = value > 0.0 or (value == 0.0 and slope > 0.0)
        etas[0] = lower
        steps[0] = slope if positive else 0.0
        if slope == 0.0 or positive == (slope > 0.0):
            return 1
        hinge = -offset / slope
        if hinge > upper:
            return 1
        if hinge <= lower:
            steps[0] = 0.0 if positive else slope
            return 1
        etas[1] = hinge
        steps[1] = 0.0 if positive else slope
        return 2


cdef class MulticlassLines(Hinge):
    """max_c costs[t, c] + z_c - z_t, or rescaled max_c costs[t, c] (1 + z_c - z_t)."""

    cdef const int[::1] truth
    cdef const double[:, ::1] costs
    cdef bint rescaled

    def __init__(self, p, const int[::1] truth, const double[:, ::1] costs,
                 bint rescaled=False):
        super().__init__(p, costs.shape[0])
        self.truth, self.costs = truth, costs
        self.rescaled = rescaled

    cdef void derivatives(
            self, Py_ssize_t count, const Py_ssize_t* rows, const double* z,
            const double* a, const double* etas, const slopes* out) noexcept nogil:
        multiclass_slopes(
            count, rows, self.n_scores, z, a, &self.truth[0], &self.costs[0, 0],
            self.rescaled, etas, out)

    cdef void losses(
            self, Py_ssize_t first, Py_ssize_t count, const double* z,
            double* out) noexcept nogil:
        multiclass_worst(
            first, count, self.n_scores, z, NULL, &self.truth[0], &self.costs[0, 0],
            self.rescaled, 0.0, out, NULL)

    cdef double choose(
            self, Py_ssize_t first, Py_ssize_t count, const double* z, const double* a,
            double rtol, double* B) noexcept nogil:
        cdef double[BLOCK] losses
        cdef int[BLOCK] labels
        cdef Py_ssize_t k = self.n_scores, i, t, c
        cdef double coef, cost, offset = 0.0
        multiclass_worst(
            first, count, k, z, a, &self.truth[0], &self.costs[0, 0], self.rescaled,
            rtol, losses, labels)
        memset(B + first * k, 0, count * k * sizeof(double))
        for i in range(first, first + count):
            t, c = self.truth[i], labels[i - first]
            if c == t:
                continue
            cost = self.costs[t, c]
            coef = self.p[i] * cost if self.rescaled else self.p[i]
            B[i * k + c] = coef
            B[i * k + t] = -coef
            offset += self.p[i] * cost
        return offset

    cdef Py_ssize_t segments(
            self, Py_ssize_t i, const double* z, const double* a, double lower,
            double upper, double* work, double* etas, double* steps) noexcept nogil:
        cdef Py_ssize_t k = self.n_scores, c, count
        cdef double* rises = work
        cdef double* offsets = work + k
        cdef Py_ssize_t* order = <Py_ssize_t*> (work + 2 * k)
        cdef Py_ssize_t* active = order + k
        cdef const double* cost = &self.costs[self.truth[i], 0]
        cdef const double* zi = z + i * k
        cdef const double* ai = a + i * k
        cdef double z0 = zi[self.truth[i]], a0 = ai[self.truth[i]]
        for c in range(k):
            offsets[c] = cost[c] + (zi[c] - z0)
            rises[c] = ai[c] - a0
            if self.rescaled:
                offsets[c] = cost[c] * (1.0 + (zi[c] - z0))
                rises[c] *= cost[c]
        count = segment_row(k, rises, offsets, lower, upper, order, etas, active)
        for c in range(count):
            steps[c] = rises[active[c]]
        return count
