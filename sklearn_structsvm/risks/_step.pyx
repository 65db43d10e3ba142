"""Exact line search over a quadratic and a risk whose losses are maxima of lines."""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs

from sklearn_structsvm.risks._hinge cimport BLOCK, Hinge
from sklearn_structsvm.risks._segments cimport select_step

# A sum of slopes is zero within this many rounding errors of its largest partial sum.
cdef double ROUNDING = 8.0 * 2.220446049250313e-16

# The search scans the examples whose slope is not settled until so few are left that
# cutting each into segments costs less than scanning them again.
cdef Py_ssize_t FEW_EXAMPLES = 128

# Scans that look for a step that is too long, and that narrow the bracket; what is left
# after them is cut into segments, however much it is. The factors bound the growth of
# the step from one scan to the next.
cdef int MAX_EXPANSIONS = 8
cdef int MAX_SCANS = 24
cdef double LEAST_GROWTH = 2.0
cdef double MOST_GROWTH = 100.0


cdef class LineSearch:
    """The state of one line search: the bracket, and the examples not settled in it."""

    cdef Hinge hinge
    cdef const double[:, ::1] Z
    cdef const double[:, ::1] along
    cdef int n_threads
    # Examples that are not settled, and their slopes at the ends of the bracket.
    cdef Py_ssize_t m
    cdef Py_ssize_t[::1] rows
    cdef double[::1] at_lower
    cdef double[::1] at_upper
    # Slopes at the step that was scanned last.
    cdef double[::1] left
    cdef double[::1] right
    cdef double[:, ::1] sums
    # Σ p slope of the settled ones, and Σ p |slope| of all.
    cdef double settled
    cdef double size

    def __cinit__(self, Hinge hinge, const double[:, ::1] Z,
                  const double[:, ::1] along, int n_threads):
        cdef Py_ssize_t n = hinge.n_samples
        self.hinge = hinge
        self.Z, self.along = Z, along
        self.n_threads = n_threads
        self.m = n
        self.settled = self.size = 0.0
        self.rows = np.arange(n)
        self.at_lower, self.at_upper = np.empty(n), np.empty(n)
        self.left, self.right = np.empty(n), np.empty(n)
        self.sums = np.empty(((n + BLOCK - 1) // BLOCK, 3))

    cdef void scan(self, double eta, double* left, double* right) noexcept nogil:
        """Σ p slope at a step, to its left and its right, settled ones included."""
        cdef Py_ssize_t n_blocks = (self.m + BLOCK - 1) // BLOCK, b
        cdef double size = 0.0
        for b in prange(n_blocks, num_threads=self.n_threads, schedule="static"):
            self.scan_block(b, eta)
        left[0] = right[0] = self.settled
        for b in range(n_blocks):
            left[0] += self.sums[b, 0]
            right[0] += self.sums[b, 1]
            size += self.sums[b, 2]
        self.size = max(self.size, size)

    cdef void scan_block(self, Py_ssize_t b, double eta) noexcept nogil:
        cdef Py_ssize_t first = b * BLOCK, j
        cdef Py_ssize_t count = min(BLOCK, self.m - first)
        cdef double p, low = 0.0, high = 0.0, size = 0.0
        cdef const double* weights = &self.hinge.p[0]
        cdef const Py_ssize_t* rows = &self.rows[first]
        cdef double* left = &self.left[first]
        cdef double* right = &self.right[first]
        self.hinge.slopes(
            count, rows, &self.Z[0, 0], &self.along[0, 0], eta, left, right)
        for j in range(count):
            p = weights[rows[j]]
            low += p * left[j]
            high += p * right[j]
            size += p * fabs(right[j])
        self.sums[b, 0], self.sums[b, 1], self.sums[b, 2] = low, high, size

    cdef void settle(self) noexcept nogil:
        """Drop the examples that have no breakpoint inside the bracket."""
        cdef Py_ssize_t j, i, kept = 0
        for j in range(self.m):
            i = self.rows[j]
            if self.at_lower[j] == self.at_upper[j] or self.hinge.p[i] == 0.0:
                self.settled += self.hinge.p[i] * self.at_lower[j]
                continue
            self.rows[kept] = i
            self.at_lower[kept] = self.at_lower[j]
            self.at_upper[kept] = self.at_upper[j]
            kept += 1
        self.m = kept

    cdef double minimise(
            self, double slope, double curvature, double largest, double trial
            ) except *:
        cdef double lower = 0.0, upper = largest, low, high, g_lower, g_upper, tol
        cdef double longest = INFINITY, step
        cdef int scans
        cdef bint bracketed = False
        if self.m == 0:
            return min(largest, -slope / curvature) if slope < 0.0 else 0.0
        with nogil:
            self.scan(0.0, &low, &high)
        g_lower = slope + high
        tol = ROUNDING * (fabs(slope) + self.size)
        if g_lower >= -tol:
            return 0.0
        # R is convex: its slope only rises, so the quadratic alone ends the descent.
        if curvature > 0.0:
            longest = -g_lower / curvature
        if trial >= longest:
            trial = longest
        self.at_lower, self.right = self.right, self.at_lower
        for scans in range(MAX_EXPANSIONS):
            with nogil:
                self.scan(trial, &low, &high)
            g_upper = slope + low + curvature * trial
            tol = ROUNDING * (fabs(slope) + self.size + curvature * trial)
            if slope + high + curvature * trial >= -tol:
                if g_upper < -tol:
                    return trial
                self.at_upper, self.left = self.left, self.at_upper
                upper = trial
                bracketed = True
                break
            if trial >= longest or trial >= largest:
                return trial
            high += slope + curvature * trial
            step = trial + (trial - lower) * high / (g_lower - high)
            lower, g_lower = trial, high
            self.at_lower, self.right = self.right, self.at_lower
            trial = max(
                LEAST_GROWTH * trial, min(MOST_GROWTH * trial, 1.5 * step))
            trial = min(trial, min(longest, largest))
        if bracketed:
            with nogil:
                self.settle()
                lower, upper = self.narrow(
                    slope, curvature, lower, upper, g_lower, g_upper)
            if lower == upper:
                return upper
        else:
            upper = min(longest, largest)
        return self.finish(slope, curvature, lower, upper)

    cdef (double, double) narrow(
            self, double slope, double curvature, double lower, double upper,
            double g_lower, double g_upper) noexcept nogil:
        """Scan at zeros of the derivative's secant, until few examples are left.

        An end that stays has its derivative halved (the Illinois rule), so that both
        ends move. Equal ends are returned for a breakpoint that is the minimum.
        """
        cdef double low, high, trial, tol
        cdef int scans, side = 0
        for scans in range(MAX_SCANS):
            if self.m <= FEW_EXAMPLES or not g_upper > g_lower:
                break
            trial = lower + (upper - lower) * (g_lower / (g_lower - g_upper))
            if not lower < trial < upper:
                break
            self.scan(trial, &low, &high)
            low += slope + curvature * trial
            high += slope + curvature * trial
            tol = ROUNDING * (fabs(slope) + self.size + curvature * trial)
            if high < -tol:
                lower, g_lower = trial, high
                if side < 0:
                    g_upper *= 0.5
                side = -1
                self.at_lower[:self.m] = self.right[:self.m]
            elif low < -tol:
                return trial, trial
            else:
                upper, g_upper = trial, low
                if side > 0:
                    g_lower *= 0.5
                side = 1
                self.at_upper[:self.m] = self.left[:self.m]
            self.settle()
        return lower, upper

    cdef double finish(
            self, double slope, double curvature, double lower, double upper) except *:
        """The exact minimum inside a bracket."""
        cdef Py_ssize_t s, j, m = 0
        cdef double[::1] etas, slopes
        cdef Py_ssize_t[::1] starts
        cdef double last, tol
        if not lower < upper:
            return upper
        slope += self.settled
        tol = ROUNDING * (fabs(slope) + self.size + curvature * lower)
        starts, etas, slopes = self.hinge.segment(
            self.Z, self.along, lower, upper, np.asarray(self.rows[:self.m]),
            self.n_threads)
        for j in range(self.m):
            last = 0.0
            for s in range(starts[j], starts[j + 1]):
                if s == starts[j]:
                    slope += self.hinge.p[self.rows[j]] * slopes[s]
                else:
                    etas[m] = etas[s]
                    slopes[m] = self.hinge.p[self.rows[j]] * (slopes[s] - last)
                    m += 1
                last = slopes[s]
        if m == 0:
            if curvature > 0.0:
                upper = min(upper, -slope / curvature)
            return max(lower, upper)
        return select_step(
            m, &etas[0], &slopes[0], slope, curvature, lower, upper, tol)


def exact_step(Hinge hinge, const double[:, ::1] Z, const double[:, ::1] along,
               double slope, double curvature, double largest, double start,
               int n_threads=1):
    """argmin over 0 <= η <= largest of slope η + curvature η²/2 + R(Z + η along).

    All examples are scanned at zero and at one trial step or a few, until the
    minimum is bracketed. An example whose slope is the same at both ends of the
    bracket is linear in between, and is settled: later scans, at steps where the
    derivative's secant is zero, read the others only. When those are few, the
    breakpoints that they have within the bracket are found by segmentation, and
    among those the minimum by selection.

    Parameters
    ----------
    hinge : Hinge
    Z, along : ndarray of shape (n, k)
    slope, curvature : float
        λ ⟨w, p⟩ and λ ||p||².
    largest : float
    start : float
        The first step to try, positive.
    n_threads : int

    Returns
    -------
    float
    """
    cdef LineSearch search = LineSearch(hinge, Z, along, n_threads)
    return search.minimise(slope, curvature, largest, min(start, largest))
