"""The hinge of two classes, and a line search for it: each loss has one breakpoint."""
import numpy as np

from sklearn_structsvm._utils import tolerances
from sklearn_structsvm._utils.borders import check_shape

from cython.parallel cimport prange
from libc.math cimport INFINITY, NAN, fabs, sqrt

from sklearn_structsvm.risks._hinge cimport (
    BLOCK, SAMPLE, SAMPLE_ERRORS, SAMPLE_RATIO, Hinge, slopes)
from sklearn_structsvm.risks._segments cimport select_step


cdef extern from "risks/_scan_binary.h" nogil:
    void binary_slopes(
        Py_ssize_t count, const Py_ssize_t* rows, const double* Z, const double* A,
        const double* signs, const double* costs, const double* etas,
        const slopes* out) noexcept
    void binary_slopes_range(
        Py_ssize_t begin, Py_ssize_t count, const double* Z, const double* A,
        const double* signs, const double* costs, const double* etas,
        const slopes* out) noexcept
    void binary_losses(
        Py_ssize_t count, const double* Z, const double* signs, const double* costs,
        double* out) noexcept
    double binary_worst(
        Py_ssize_t count, const double* Z, const double* A, const double* signs,
        const double* costs, const double* p, double rtol, double* B) noexcept
    Py_ssize_t binary_ends(
        Py_ssize_t begin, Py_ssize_t count, const double* Z, const double* A,
        const double* signs, const double* costs, const double* p, double lower,
        double upper, double* sums, Py_ssize_t* rows) noexcept


cdef double SLOPE_ROUNDING = tolerances.SLOPE_ROUNDING

# At most this many brackets are tried. If the minimum is beyond a bracket, the next one
# extends to this multiple of its upper end.
cdef int MAX_BRACKETS = 4
cdef double BRACKET_GROWTH = 4.0

# Sums over a block of examples: the derivatives at both ends, their magnitudes, and the
# derivatives of those examples whose breakpoint is not between the ends.
cdef enum:
    N_SUMS = 5


cdef class BinaryLines(Hinge):
    """max(0, cost_i - y_i z_i) with y_i in {-1, 1}."""

    cdef const double[::1] signs
    cdef const double[::1] costs

    def __init__(self, p, const double[::1] signs, const double[::1] costs):
        super().__init__(p, 1)
        check_shape("signs", signs, self.n_samples)
        check_shape("costs", costs, self.n_samples)
        self.signs, self.costs = signs, costs
        self.max_lines = 2

    cdef void derivatives(
            self, Py_ssize_t count, const Py_ssize_t* rows, const double* z,
            const double* a, const double* etas, const slopes* out) noexcept nogil:
        # Rows ascend, so these are all rows from the first to the last.
        if rows[count - 1] - rows[0] == count - 1:
            binary_slopes_range(
                rows[0], count, z, a, &self.signs[0], &self.costs[0], etas, out)
        else:
            binary_slopes(
                count, rows, z, a, &self.signs[0], &self.costs[0], etas, out)

    cdef void losses(
            self, Py_ssize_t first, Py_ssize_t count, const double* z,
            double* out) noexcept nogil:
        binary_losses(count, z + first, &self.signs[first], &self.costs[first], out)

    cdef double choose(
            self, Py_ssize_t first, Py_ssize_t count, const double* z, const double* a,
            double rtol, double* B) noexcept nogil:
        if a == NULL:
            return binary_worst(
                count, z + first, NULL, &self.signs[first], &self.costs[first],
                &self.p[first], 0.0, B + first)
        return binary_worst(
            count, z + first, a + first, &self.signs[first], &self.costs[first],
            &self.p[first], rtol, B + first)

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

    cpdef double quick_step(
            self, const double[:, ::1] Z, const double[:, ::1] along, double slope,
            double curvature, double largest, int n_threads) except? -1.0:
        cdef Py_ssize_t n = self.n_samples, n_blocks = (n + BLOCK - 1) // BLOCK
        cdef Py_ssize_t b, j, m = 0
        cdef double lower, upper, at_lower, at_upper, size, size_upper, settled, tol
        cdef double[:, ::1] sums
        cdef Py_ssize_t[::1] rows, counts
        cdef int _trial
        lower, upper = self.bracket(Z, along, slope, curvature, largest)
        sums = np.empty((n_blocks, N_SUMS))
        rows, counts = np.empty(n, dtype=np.intp), np.empty(n_blocks, dtype=np.intp)
        for _trial in range(MAX_BRACKETS):
            if not 0.0 <= lower < upper < INFINITY:
                return NAN
            for b in prange(
                    n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
                counts[b] = binary_ends(
                    b * BLOCK, min(BLOCK, n - b * BLOCK), &Z[0, 0], &along[0, 0],
                    &self.signs[0], &self.costs[0], &self.p[0], lower, upper,
                    &sums[b, 0], &rows[b * BLOCK])
            at_lower = at_upper = size = size_upper = settled = 0.0
            for b in range(n_blocks):
                at_lower += sums[b, 0]
                at_upper += sums[b, 1]
                size += sums[b, 2]
                size_upper += sums[b, 3]
                settled += sums[b, 4]
            size = max(size, size_upper)
            tol = SLOPE_ROUNDING * (fabs(slope) + size + curvature * lower)
            if slope + curvature * lower + at_lower >= -tol:
                if lower == 0.0:
                    return 0.0
                lower, upper = 0.0, lower
                continue
            tol = SLOPE_ROUNDING * (fabs(slope) + size + curvature * upper)
            if slope + curvature * upper + at_upper < -tol:
                lower, upper = upper, min(BRACKET_GROWTH * upper, largest)
                continue
            for b in range(n_blocks):
                for j in range(counts[b]):
                    rows[m] = rows[b * BLOCK + j]
                    m += 1
            slope += settled
            tol = SLOPE_ROUNDING * (fabs(slope) + size + curvature * lower)
            return self.select(
                Z, along, rows[:m], slope, curvature, lower, upper, tol)
        return NAN

    cdef double select(
            self, const double[:, ::1] Z, const double[:, ::1] along,
            const Py_ssize_t[::1] rows, double slope, double curvature, double lower,
            double upper, double tol) except? -1.0:
        """The zero of the derivative between two steps; `rows` have breakpoints there."""
        cdef Py_ssize_t m = rows.shape[0], j, i
        cdef double[::1] etas, jumps
        cdef double rise, offset
        if m == 0:
            if curvature > 0.0:
                upper = min(upper, -slope / curvature)
            return max(lower, upper)
        etas, jumps = np.empty(m), np.empty(m)
        for j in range(m):
            i = rows[j]
            rise = -self.signs[i] * along[i, 0]
            offset = self.costs[i] - self.signs[i] * Z[i, 0]
            # A falling loss counts up to its breakpoint.
            slope += self.p[i] * min(rise, 0.0)
            etas[j] = min(max(-offset / rise, lower), upper)
            jumps[j] = self.p[i] * fabs(rise)
        return select_step(m, &etas[0], &jumps[0], slope, curvature, lower, upper, tol)

    cdef (double, double) bracket(
            self, const double[:, ::1] Z, const double[:, ::1] along, double slope,
            double curvature, double largest) except *:
        """Two steps between which the minimum probably lies, from a sample."""
        cdef Py_ssize_t n = self.n_samples, stride = n // SAMPLE, i, m = 0
        cdef double mass = 0.0, square = 0.0, rise, offset, first, second
        cdef double[::1] etas, jumps
        if stride < SAMPLE_RATIO:
            return NAN, NAN
        for i in range(0, n, stride):
            mass += self.p[i]
        if mass == 0.0:
            return NAN, NAN
        etas, jumps = np.empty(n // stride + 1), np.empty(n // stride + 1)
        for i in range(0, n, stride):
            rise = -self.signs[i] * along[i, 0] * self.p[i] / mass
            offset = (self.costs[i] - self.signs[i] * Z[i, 0]) * self.p[i] / mass
            square += rise * rise
            if offset > 0.0:
                slope += rise
            # Not all of those beyond `largest` need to be known.
            if (offset > 0.0) == (rise < 0.0) and rise != 0.0:
                etas[m], jumps[m] = -offset / rise, fabs(rise)
                m += 1
        rise = SAMPLE_ERRORS * sqrt(square)
        first = select_step(
            m, &etas[0], &jumps[0], slope + rise, curvature, 0.0, largest, 0.0)
        second = select_step(
            m, &etas[0], &jumps[0], slope - rise, curvature, 0.0, largest, 0.0)
        return first, second
