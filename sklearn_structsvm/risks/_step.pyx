"""Exact line search over a quadratic and a risk whose losses are maxima of lines."""
import numpy as np

from sklearn_structsvm._utils import tolerances
from sklearn_structsvm._utils.borders import check_shape

from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs, sqrt

from sklearn_structsvm.risks._hinge cimport (
    BLOCK, SAMPLE, SAMPLE_ERRORS, SAMPLE_RATIO, Hinge, slopes)
from sklearn_structsvm.risks._segments cimport select_step

cdef double SLOPE_ROUNDING = tolerances.SLOPE_ROUNDING

# Examples are scanned again until so few are left open that cutting each of them into
# segments costs less.
cdef Py_ssize_t FEW_EXAMPLES = 128

# Examples left after this many scans are cut into segments, however many they are.
cdef int MAX_SCANS = 32

# If the minimum is beyond the steps of a scan, the next scan goes further: its first step
# is longer by a factor between the first two numbers, and its second step is the first
# one times the third number.
cdef double LEAST_GROWTH = 2.0
cdef double MOST_GROWTH = 100.0
cdef double SPREAD = 1.5

# The two steps of a scan within a bracket are to the left and right of the point where
# the derivative's secant is zero, at a distance of at most this share of the bracket.
cdef double NARROWING = 0.1


cdef struct Sums:
    # Σ p slope to the left and right of a step.
    double left
    double right


cdef class LineSearch:
    """The bracket of one line search, and the examples that are not settled in it.

    If a loss has the same slope at both ends of the bracket, it is linear in between: its
    example is settled, and later scans read only the others.
    """

    cdef Hinge hinge
    cdef const double[:, ::1] Z
    cdef const double[:, ::1] along
    cdef int n_threads
    # The weights are multiplied by this.
    cdef double scale
    # Examples not settled, in ascending order, and their slopes at the bracket's ends.
    cdef Py_ssize_t m
    cdef Py_ssize_t[::1] rows
    cdef double[::1] at_lower
    cdef double[::1] at_upper
    # Slopes to the left and right of the two steps that were scanned last.
    cdef double[::1] left1
    cdef double[::1] right1
    cdef double[::1] left2
    cdef double[::1] right2
    cdef double[:, ::1] partial
    # Σ p slope of the settled ones; Σ p |slope| and Σ (p slope)² of all.
    cdef double settled
    cdef double size
    cdef double square

    def __cinit__(self, Hinge hinge, const double[:, ::1] Z,
                  const double[:, ::1] along, Py_ssize_t[::1] rows, double scale,
                  int n_threads):
        cdef Py_ssize_t m = rows.shape[0]
        self.hinge = hinge
        self.Z, self.along = Z, along
        self.n_threads = n_threads
        self.scale = scale
        self.m = m
        self.rows = rows
        self.at_lower, self.at_upper = np.empty(m), np.empty(m)
        self.left1, self.right1 = np.empty(m), np.empty(m)
        self.left2, self.right2 = np.empty(m), np.empty(m)
        self.partial = np.empty(((m + BLOCK - 1) // BLOCK, 6))
        self.settled = self.size = self.square = 0.0

    cdef void scan(
            self, double first, double second, Sums* at_first, Sums* at_second
            ) noexcept nogil:
        """Derivatives of the risk at two steps, settled examples included."""
        cdef Py_ssize_t n_blocks = (self.m + BLOCK - 1) // BLOCK, b
        cdef double size = 0.0, square = 0.0
        for b in prange(n_blocks, num_threads=self.n_threads, schedule="static"):
            self.scan_block(b, first, second)
        at_first.left = at_first.right = self.settled
        at_second.left = at_second.right = self.settled
        for b in range(n_blocks):
            at_first.left += self.partial[b, 0]
            at_first.right += self.partial[b, 1]
            at_second.left += self.partial[b, 2]
            at_second.right += self.partial[b, 3]
            size += self.partial[b, 4]
            square += self.partial[b, 5]
        self.size = max(self.size, size)
        self.square = max(self.square, square)

    cdef void scan_block(self, Py_ssize_t b, double first, double second) noexcept nogil:
        cdef Py_ssize_t begin = b * BLOCK, j
        cdef Py_ssize_t count = min(BLOCK, self.m - begin)
        cdef double p, l1 = 0.0, r1 = 0.0, l2 = 0.0, r2 = 0.0, size = 0.0, square = 0.0
        cdef double[2] etas
        cdef slopes out
        cdef const double* weights = &self.hinge.p[0]
        cdef const Py_ssize_t* rows = &self.rows[begin]
        etas[0], etas[1] = first, second
        out.left[0], out.right[0] = &self.left1[begin], &self.right1[begin]
        out.left[1], out.right[1] = &self.left2[begin], &self.right2[begin]
        self.hinge.derivatives(count, rows, &self.Z[0, 0], &self.along[0, 0], etas, &out)
        for j in range(count):
            p = self.scale * weights[rows[j]]
            l1 += p * out.left[0][j]
            r1 += p * out.right[0][j]
            l2 += p * out.left[1][j]
            r2 += p * out.right[1][j]
            size += p * fabs(out.right[1][j])
            square += (p * out.right[1][j]) ** 2
        self.partial[b, 0], self.partial[b, 1] = l1, r1
        self.partial[b, 2], self.partial[b, 3] = l2, r2
        self.partial[b, 4], self.partial[b, 5] = size, square

    cdef void settle(self) noexcept nogil:
        """Drop the examples that have no breakpoint inside the bracket."""
        cdef Py_ssize_t j, i, kept = 0
        cdef double p
        cdef bint is_open
        for j in range(self.m):
            i = self.rows[j]
            p = self.scale * self.hinge.p[i]
            is_open = (self.at_lower[j] != self.at_upper[j]) & (p != 0.0)
            self.settled += 0.0 if is_open else p * self.at_lower[j]
            self.rows[kept] = i
            self.at_lower[kept] = self.at_lower[j]
            self.at_upper[kept] = self.at_upper[j]
            kept += is_open
        self.m = kept

    cdef double minimize(
            self, double slope, double curvature, double largest, double first,
            double second) except *:
        """The exact minimum; the two steps, first < second, are tried first."""
        cdef double lower = 0.0, upper = largest, g_lower = 0.0, g_upper = 0.0
        cdef double longest = largest, rise, point, tol1, tol2
        cdef bint has_lower = False, has_upper = False
        cdef Sums g1, g2
        cdef int _scan
        for _scan in range(MAX_SCANS):
            with nogil:
                self.scan(first, second, &g1, &g2)
            tol1 = SLOPE_ROUNDING * (fabs(slope) + self.size + curvature * first)
            tol2 = SLOPE_ROUNDING * (fabs(slope) + self.size + curvature * second)
            rise = slope + curvature * first
            g1.left += rise
            g1.right += rise
            rise = slope + curvature * second
            g2.left += rise
            g2.right += rise
            if g1.right >= -tol1:
                # The minimum is not after the first step.
                if first == 0.0 or g1.left < -tol1:
                    return first
                upper, g_upper, has_upper = first, g1.left, True
                self.at_upper, self.left1 = self.left1, self.at_upper
            elif g2.right < -tol2:
                # It is after the second one.
                if second >= longest:
                    return second
                point = lower if has_lower else first
                rise = g_lower if has_lower else g1.right
                lower, g_lower, has_lower = second, g2.right, True
                self.at_lower, self.right2 = self.right2, self.at_lower
                if not has_upper:
                    # The risk is convex: even if it went on falling as steeply as here,
                    # the quadratic would end the descent.
                    if curvature > 0.0:
                        longest = min(longest, second - g2.right / curvature)
                    point = second + (second - point) * g2.right / (rise - g2.right)
                    if not point < MOST_GROWTH * second:
                        point = MOST_GROWTH * second
                    longest = min(longest, largest)
                    first = min(max(point, LEAST_GROWTH * second), longest)
                    second = min(SPREAD * first, longest)
                    continue
            else:
                if g2.left < -tol2:
                    return second
                lower, g_lower, has_lower = first, g1.right, True
                upper, g_upper, has_upper = second, g2.left, True
                self.at_lower, self.right1 = self.right1, self.at_lower
                self.at_upper, self.left2 = self.left2, self.at_upper
            if not has_lower:
                first, second = 0.0, 0.5 * upper
                continue
            with nogil:
                self.settle()
            if self.m <= FEW_EXAMPLES or not g_upper > g_lower:
                break
            point = lower + (upper - lower) * (g_lower / (g_lower - g_upper))
            rise = NARROWING * (upper - lower)
            first = max(point - rise, 0.5 * (lower + point))
            second = min(point + rise, 0.5 * (point + upper))
            if not lower < first < second < upper:
                break
        return self.finish(slope, curvature, lower, min(upper, longest))

    cdef double finish(
            self, double slope, double curvature, double lower, double upper) except *:
        """The exact minimum inside a bracket, by segmentation and selection."""
        cdef Py_ssize_t s, j, m = 0
        cdef double[::1] etas, steps
        cdef Py_ssize_t[::1] starts
        cdef double last, p, tol
        if not lower < upper:
            return upper
        slope += self.settled
        tol = SLOPE_ROUNDING * (fabs(slope) + self.size + curvature * lower)
        starts, etas, steps = self.hinge.segment(
            self.Z, self.along, lower, upper, np.asarray(self.rows[:self.m]),
            self.n_threads)
        for j in range(self.m):
            last = 0.0
            p = self.scale * self.hinge.p[self.rows[j]]
            for s in range(starts[j], starts[j + 1]):
                if s == starts[j]:
                    slope += p * steps[s]
                else:
                    etas[m] = etas[s]
                    steps[m] = p * (steps[s] - last)
                    m += 1
                last = steps[s]
        if m == 0:
            if curvature > 0.0:
                upper = min(upper, -slope / curvature)
            return max(lower, upper)
        return select_step(
            m, &etas[0], &steps[0], slope, curvature, lower, upper, tol)


cdef (double, double) guess(
        Hinge hinge, const double[:, ::1] Z, const double[:, ::1] along, double slope,
        double curvature, double largest, double start, int n_threads) except *:
    """Two steps between which the minimum probably lies, from a sample of examples."""
    cdef Py_ssize_t n = hinge.n_samples, stride = n // SAMPLE, i
    cdef double mass = 0.0, first, second, error
    cdef LineSearch search
    if stride < SAMPLE_RATIO:
        return 0.0, start
    rows = np.arange(0, n, stride)
    for i in range(0, n, stride):
        mass += hinge.p[i]
    if mass == 0.0:
        return 0.0, start
    search = LineSearch(hinge, Z, along, rows.copy(), 1.0 / mass, n_threads)
    second = search.minimize(slope, curvature, largest, 0.0, start)
    error = SAMPLE_ERRORS * sqrt(search.square)
    start = second if 0.0 < second < INFINITY else start
    search = LineSearch(hinge, Z, along, rows.copy(), 1.0 / mass, n_threads)
    first = search.minimize(slope + error, curvature, largest, 0.0, start)
    search = LineSearch(hinge, Z, along, rows, 1.0 / mass, n_threads)
    second = search.minimize(
        slope - error, curvature, largest, start, min(2.0 * start, largest))
    if not first < second < INFINITY:
        return 0.0, start
    return first, second


def exact_step(Hinge hinge, const double[:, ::1] Z, const double[:, ::1] along,
               double slope, double curvature, double largest, double start,
               int n_threads=1):
    """argmin over 0 <= η <= largest of slope η + curvature η²/2 + R(Z + η along).

    A scan computes the left and right derivatives at two steps, over all examples that
    are not settled. The first scans bracket the minimum (with many examples, around a
    guess from a sample of them); the next ones narrow the bracket around the point where
    the derivative's secant is zero. When few examples are left, segmentation finds their
    breakpoints within the bracket, and selection finds the minimum among these: exactly,
    and in time linear in the number of scores.

    Parameters
    ----------
    hinge : Hinge
    Z, along : ndarray of shape (n, k)
    slope, curvature : float
        λ ⟨w, p⟩ and λ ||p||².
    largest : float
        At least 0; may be infinite.
    start : float
        A positive step to try first.
    n_threads : int

    Returns
    -------
    float
        `largest` if the minimum is not before it.
    """
    cdef double first, second
    cdef LineSearch search
    check_shape("Z", Z, hinge.n_samples, hinge.n_scores)
    check_shape("along", along, hinge.n_samples, hinge.n_scores)
    if largest == 0.0:
        return 0.0
    first = hinge.quick_step(Z, along, slope, curvature, largest, n_threads)
    if first >= 0.0:
        return first
    first, second = guess(
        hinge, Z, along, slope, curvature, largest, min(start, largest), n_threads)
    search = LineSearch(hinge, Z, along, np.arange(hinge.n_samples), 1.0, n_threads)
    return search.minimize(slope, curvature, largest, first, second)
