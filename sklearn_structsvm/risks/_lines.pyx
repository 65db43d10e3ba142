"""The lines of the hinges, given scores Z and a direction's scores.

Each hinge is implemented twice: as vector code for many examples at once (`_scan.h`), in
which solvers spend most of their time, and as a list of lines, to segment the few
examples that a line search leaves open.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from sklearn_structsvm.risks._hinge cimport BLOCK, Hinge, slopes
from sklearn_structsvm.risks._segments cimport LINE_SIZE, Line, segment_row


cdef extern from "risks/_scan.h" nogil:
    enum costs:
        UNIFORM, LISTED, RESCALED
    void multiclass_slopes(
        Py_ssize_t count, const Py_ssize_t* rows, Py_ssize_t k, const double* Z,
        const double* A, const int* truth, const double* costs, int kind, double margin,
        const double* etas, const slopes* out) noexcept
    void multiclass_worst(
        Py_ssize_t first, Py_ssize_t count, Py_ssize_t k, const double* Z,
        const double* A, const int* truth, const double* costs, int kind, double margin,
        double rtol, double* losses, int* labels) noexcept
    void separable_slopes(
        Py_ssize_t count, const Py_ssize_t* rows, Py_ssize_t k, const double* Z,
        const double* A, const signed char* present, double margin,
        const double* etas, const slopes* out) noexcept


cdef class MulticlassLines(Hinge):
    """max_c costs[t, c] + z_c - z_t, or rescaled max_c costs[t, c] (1 + z_c - z_t)."""

    cdef const int[::1] truth
    cdef const double[:, ::1] costs
    cdef bint rescaled
    # How vector code looks up costs, and the cost of all wrong labels if it is the same.
    cdef int kind
    cdef double margin

    def __init__(self, p, const int[::1] truth, const double[:, ::1] costs,
                 bint rescaled=False):
        super().__init__(p, costs.shape[0])
        check_shape("costs", costs, self.n_scores, self.n_scores)
        check_shape("truth", truth, self.n_samples)
        check_indices("truth", truth, self.n_scores)
        self.truth, self.costs = truth, costs
        self.rescaled = rescaled
        wrong = np.asarray(costs)[~np.eye(self.n_scores, dtype=bool)]
        self.margin = wrong[0] if len(wrong) else 0.0
        self.kind = LISTED
        if rescaled:
            self.kind = RESCALED
        elif np.all(wrong == self.margin):
            self.kind = UNIFORM

    cdef void derivatives(
            self, Py_ssize_t count, const Py_ssize_t* rows, const double* z,
            const double* a, const double* etas, const slopes* out) noexcept nogil:
        multiclass_slopes(
            count, rows, self.n_scores, z, a, &self.truth[0], &self.costs[0, 0],
            self.kind, self.margin, etas, out)

    cdef void losses(
            self, Py_ssize_t first, Py_ssize_t count, const double* z,
            double* out) noexcept nogil:
        cdef int[BLOCK] labels
        multiclass_worst(
            first, count, self.n_scores, z, NULL, &self.truth[0], &self.costs[0, 0],
            self.kind, self.margin, 0.0, out, labels)

    cdef double choose(
            self, Py_ssize_t first, Py_ssize_t count, const double* z, const double* a,
            double rtol, double* B) noexcept nogil:
        cdef double[BLOCK] losses
        cdef int[BLOCK] labels
        cdef Py_ssize_t k = self.n_scores, i, t, c
        cdef double coef, cost, offset = 0.0
        multiclass_worst(
            first, count, k, z, a, &self.truth[0], &self.costs[0, 0], self.kind,
            self.margin, rtol, losses, labels)
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
        cdef Line* lines = <Line*> (work + 2 * k)
        cdef Py_ssize_t* active = <Py_ssize_t*> (work + (2 + LINE_SIZE) * k)
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
        count = segment_row(k, rises, offsets, lower, upper, lines, etas, active)
        for c in range(count):
            steps[c] = rises[active[c]]
        return count


cdef class SeparableLines(Hinge):
    """max(0, margin + max of absent labels' z - min of present labels' z).

    The maximum over pairs splits into one maximum for each side, so that an example costs
    O(k). An example that lacks one side has no loss.
    """

    cdef const signed char[:, ::1] present
    cdef double margin

    def __init__(self, p, const signed char[:, ::1] present, double margin):
        super().__init__(p, present.shape[1])
        check_shape("present", present, self.n_samples, self.n_scores)
        self.present = present
        self.margin = margin
        # Each side, their sum, and a hinge on two of its segments.
        self.max_lines = 2 * self.n_scores + 2

    cdef void derivatives(
            self, Py_ssize_t count, const Py_ssize_t* rows, const double* z,
            const double* a, const double* etas, const slopes* out) noexcept nogil:
        separable_slopes(
            count, rows, self.n_scores, z, a, &self.present[0, 0], self.margin, etas,
            out)

    cdef void losses(
            self, Py_ssize_t first, Py_ssize_t count, const double* z,
            double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double top, bottom
        for i in range(first, first + count):
            self.ends(i, z, &top, &bottom)
            out[i - first] = max(0.0, self.margin + (top - bottom))

    cdef void ends(
            self, Py_ssize_t i, const double* z, double* top, double* bottom
            ) noexcept nogil:
        """Largest score of an absent label, and smallest score of a present one."""
        cdef Py_ssize_t c
        cdef double value
        top[0], bottom[0] = -INFINITY, INFINITY
        for c in range(self.n_scores):
            value = z[i * self.n_scores + c]
            if self.present[i, c]:
                bottom[0] = min(bottom[0], value)
            else:
                top[0] = max(top[0], value)

    cdef double choose(
            self, Py_ssize_t first, Py_ssize_t count, const double* z, const double* a,
            double rtol, double* B) noexcept nogil:
        cdef Py_ssize_t k = self.n_scores, i, c, up, down
        cdef double top, bottom, value, tol, rise, fall, size, offset = 0.0
        cdef const double* zi
        cdef const double* ai
        memset(B + first * k, 0, count * k * sizeof(double))
        for i in range(first, first + count):
            self.ends(i, z, &top, &bottom)
            value = self.margin + (top - bottom)
            if value == -INFINITY:
                continue
            zi = z + i * k
            ai = zi if a == NULL else a + i * k
            tol = 0.0
            if a != NULL:
                size = 0.0
                for c in range(k):
                    size = max(size, fabs(zi[c]) + self.margin)
                tol = rtol * size
            if value < -tol:
                continue
            up = down = -1
            rise, fall = -INFINITY, INFINITY
            for c in range(k):
                if self.present[i, c]:
                    if zi[c] <= bottom + tol and ai[c] < fall:
                        down, fall = c, ai[c]
                elif zi[c] >= top - tol and ai[c] > rise:
                    up, rise = c, ai[c]
            # With NaN scores, no label may be found on a side.
            if up < 0 or down < 0 or (
                    value <= tol and (a == NULL or rise - fall <= 0.0)):
                continue
            B[i * k + up] = self.p[i]
            B[i * k + down] = -self.p[i]
            offset += self.p[i] * self.margin
        return offset

    cdef Py_ssize_t segments(
            self, Py_ssize_t i, const double* z, const double* a, double lower,
            double upper, double* work, double* etas, double* steps) noexcept nogil:
        cdef Py_ssize_t k = self.n_scores, c, m, up, down, u = 0, d = 0, found = 0
        cdef Py_ssize_t ups = 0, downs = 0
        cdef double eta = lower, end, rise, start, value, zero
        # Lines of each side: absent labels from the front, present ones from the back.
        cdef double* rises = work
        cdef double* offsets = work + k
        cdef double* up_etas = work + 2 * k
        cdef double* down_etas = work + 3 * k
        cdef Line* lines = <Line*> (work + 4 * k)
        cdef Py_ssize_t* up_active = <Py_ssize_t*> (work + (4 + LINE_SIZE) * k)
        cdef Py_ssize_t* down_active = up_active + k
        for c in range(k):
            if self.present[i, c]:
                downs += 1
                rises[k - downs] = -a[i * k + c]
                offsets[k - downs] = -z[i * k + c]
            else:
                rises[ups] = a[i * k + c]
                offsets[ups] = z[i * k + c]
                ups += 1
        etas[0], steps[0] = lower, 0.0
        if ups == 0 or downs == 0:
            return 1
        m = segment_row(ups, rises, offsets, lower, upper, lines, up_etas, up_active)
        downs = segment_row(
            downs, rises + ups, offsets + ups, lower, upper, lines, down_etas,
            down_active)
        ups, downs, c = m, downs, ups
        # Walk over both sides' segments, and cut their sum where it crosses zero.
        while True:
            up, down = up_active[u], c + down_active[d]
            end = upper
            if u + 1 < ups:
                end = up_etas[u + 1]
            if d + 1 < downs:
                end = min(end, down_etas[d + 1])
            rise = rises[up] + rises[down]
            start = self.margin + (offsets[up] + offsets[down])
            value = start + eta * rise
            if value > 0.0 or (value == 0.0 and rise > 0.0):
                found = _emit(eta, rise, found, etas, steps)
            else:
                found = _emit(eta, 0.0, found, etas, steps)
            if rise != 0.0 and (value > 0.0) == (rise < 0.0):
                zero = max(eta, -start / rise)
                if zero <= end:
                    found = _emit(zero, max(rise, 0.0), found, etas, steps)
            if u + 1 >= ups and d + 1 >= downs:
                return found
            eta = end
            if u + 1 < ups and up_etas[u + 1] <= eta:
                u += 1
            if d + 1 < downs and down_etas[d + 1] <= eta:
                d += 1


cdef inline Py_ssize_t _emit(
        double eta, double slope, Py_ssize_t found, double* etas, double* steps
        ) noexcept nogil:
    """Append a segment, unless its slope is no larger than the last one's."""
    if found and eta <= etas[found - 1]:
        steps[found - 1] = slope if found == 1 else max(steps[found - 1], slope)
        return found
    if found and slope <= steps[found - 1]:
        return found
    etas[found], steps[found] = eta, slope
    return found + 1


cdef class PairLines(Hinge):
    """max(0, max over pairs of costs[present, absent] + z_absent - z_present)."""

    cdef const signed char[:, ::1] present
    cdef const double[:, ::1] costs
    cdef double largest

    def __init__(self, p, const signed char[:, ::1] present,
                 const double[:, ::1] costs):
        super().__init__(p, present.shape[1])
        check_shape("present", present, self.n_samples, self.n_scores)
        check_shape("costs", costs, self.n_scores, self.n_scores)
        self.present, self.costs = present, costs
        self.largest = np.max(costs)
        counts = np.count_nonzero(present, axis=1)
        self.max_lines = 1 + int(np.max(counts * (self.n_scores - counts), initial=0))

    cdef void derivatives(
            self, Py_ssize_t count, const Py_ssize_t* rows, const double* z,
            const double* a, const double* etas, const slopes* out) noexcept nogil:
        cdef Py_ssize_t k = self.n_scores, j, c, d
        cdef int e
        cdef double eta, value, slope, top, low, high
        cdef const double* zi
        cdef const double* ai
        cdef const signed char* held
        for j in range(count):
            zi, ai, held = z + rows[j] * k, a + rows[j] * k, &self.present[rows[j], 0]
            for e in range(2):
                eta = etas[e]
                top = low = high = 0.0
                for c in range(k):
                    if not held[c]:
                        continue
                    for d in range(k):
                        if held[d]:
                            continue
                        slope = ai[d] - ai[c]
                        value = (self.costs[c, d] + (zi[d] - zi[c])) + eta * slope
                        if value > top:
                            top = value
                            low = high = slope
                        elif value == top:
                            low, high = min(low, slope), max(high, slope)
                out.left[e][j], out.right[e][j] = low, high

    cdef void losses(
            self, Py_ssize_t first, Py_ssize_t count, const double* z,
            double* out) noexcept nogil:
        cdef Py_ssize_t k = self.n_scores, i, c, d
        cdef double top
        for i in range(first, first + count):
            top = 0.0
            for c in range(k):
                if self.present[i, c]:
                    for d in range(k):
                        if not self.present[i, d]:
                            top = max(
                                top, self.costs[c, d] + (z[i * k + d] - z[i * k + c]))
            out[i - first] = top

    cdef double choose(
            self, Py_ssize_t first, Py_ssize_t count, const double* z, const double* a,
            double rtol, double* B) noexcept nogil:
        cdef Py_ssize_t k = self.n_scores, i, c, d, up, down
        cdef double value, slope, top, steepest, tol, offset = 0.0
        cdef const double* zi
        memset(B + first * k, 0, count * k * sizeof(double))
        for i in range(first, first + count):
            zi = z + i * k
            self.losses(i, 1, z, &top)
            tol = 0.0
            if a != NULL:
                for c in range(k):
                    tol = max(tol, fabs(zi[c]) + self.largest)
                tol *= rtol
            up = down = -1
            # The pair of a label with itself: cost and slope are zero.
            steepest = 0.0 if top <= tol else -INFINITY
            for c in range(k):
                if not self.present[i, c]:
                    continue
                for d in range(k):
                    if self.present[i, d]:
                        continue
                    value = self.costs[c, d] + (zi[d] - zi[c])
                    slope = 0.0 if a == NULL else a[i * k + d] - a[i * k + c]
                    if value >= top - tol and slope > steepest:
                        up, down, steepest = d, c, slope
            if up >= 0:
                B[i * k + up] = self.p[i]
                B[i * k + down] = -self.p[i]
                offset += self.p[i] * self.costs[down, up]
        return offset

    cdef Py_ssize_t segments(
            self, Py_ssize_t i, const double* z, const double* a, double lower,
            double upper, double* work, double* etas, double* steps) noexcept nogil:
        cdef Py_ssize_t k = self.n_scores, r = 1, c, d, count
        cdef double* rises = work
        cdef double* offsets = work + self.max_lines
        cdef Line* lines = <Line*> (work + 2 * self.max_lines)
        cdef Py_ssize_t* active = (
            <Py_ssize_t*> (work + (2 + LINE_SIZE) * self.max_lines))
        rises[0] = offsets[0] = 0.0
        for c in range(k):
            if not self.present[i, c]:
                continue
            for d in range(k):
                if not self.present[i, d]:
                    rises[r] = a[i * k + d] - a[i * k + c]
                    offsets[r] = self.costs[c, d] + (z[i * k + d] - z[i * k + c])
                    r += 1
        count = segment_row(r, rises, offsets, lower, upper, lines, etas, active)
        for c in range(count):
            steps[c] = rises[active[c]]
        return count
