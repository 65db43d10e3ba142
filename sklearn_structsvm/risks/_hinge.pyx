"""Losses that are maxima of lines, over blocks of examples.

A subclass of `Hinge` computes a loss, its derivatives along a line and its segments from
scores; this base class computes sums over examples and the plane below the risk. Sums run
over blocks of a fixed size and then over the blocks in order, so that results are the
same bit for bit whatever the number of threads.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape

from cython.parallel cimport prange
from libc.math cimport NAN
from libc.stdlib cimport free, malloc

from sklearn_structsvm._utils._memory cimport no_memory


cdef class Hinge:
    """Abstract: n examples, k scores each, and their weights p."""

    def __init__(self, const double[::1] p, Py_ssize_t n_scores):
        self.p = p
        self.n_samples = p.shape[0]
        self.n_scores = n_scores
        self.max_lines = n_scores

    @property
    def weights(self):
        return np.asarray(self.p)

    cdef void derivatives(
            self, Py_ssize_t count, const Py_ssize_t* rows, const double* z,
            const double* a, const double* etas, const slopes* out) noexcept nogil:
        """Slopes of the losses of `rows` (ascending), left and right of two steps."""

    cdef void losses(
            self, Py_ssize_t first, Py_ssize_t count, const double* z,
            double* out) noexcept nogil:
        """Losses of the examples first, first + 1, ...; at most BLOCK of them."""

    cdef double choose(
            self, Py_ssize_t first, Py_ssize_t count, const double* z, const double* a,
            double rtol, double* B) noexcept nogil:
        """Write their rows of B; return the sum of p Δ of the labels chosen.

        `a` may be NULL.
        """
        return 0.0

    cdef Py_ssize_t segments(
            self, Py_ssize_t i, const double* z, const double* a, double lower,
            double upper, double* work, double* etas, double* steps) noexcept nogil:
        """Segments of one loss along the line: where they begin, and their slopes."""
        return 0

    cpdef double quick_step(
            self, const double[:, ::1] Z, const double[:, ::1] along, double slope,
            double curvature, double largest, int n_threads) except? -1.0:
        """The step of an exact line search, or NaN if a longer search is needed."""
        return NAN

    cdef Py_ssize_t work_size(self) noexcept nogil:
        """Doubles for `etas`, `steps` and `work`, which takes six for each line."""
        return 8 * self.max_lines + 8

    def value(self, const double[:, ::1] Z, int n_threads=1):
        """Σ_i p_i ℓ_i(z_i)."""
        check_shape("Z", Z, self.n_samples, self.n_scores)
        cdef Py_ssize_t n = self.n_samples, b
        cdef Py_ssize_t n_blocks = (n + BLOCK - 1) // BLOCK
        cdef double[::1] losses = np.empty(n)
        cdef double[::1] sums = np.empty(n_blocks)
        for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
            self.losses(
                b * BLOCK, min(BLOCK, n - b * BLOCK), &Z[0, 0], &losses[b * BLOCK])
            sums[b] = self.weigh(b * BLOCK, min(BLOCK, n - b * BLOCK), &losses[0])
        return float(np.sum(sums))

    cdef double weigh(
            self, Py_ssize_t first, Py_ssize_t count, const double* losses
            ) noexcept nogil:
        cdef Py_ssize_t i
        cdef double total = 0.0
        for i in range(first, first + count):
            total += self.p[i] * losses[i]
        return total

    def sample_losses(self, const double[:, ::1] Z):
        """ℓ_i(z_i), shape (n,)."""
        check_shape("Z", Z, self.n_samples, self.n_scores)
        cdef Py_ssize_t n = self.n_samples, b
        cdef double[::1] losses = np.empty(n)
        with nogil:
            for b in range((n + BLOCK - 1) // BLOCK):
                self.losses(
                    b * BLOCK, min(BLOCK, n - b * BLOCK), &Z[0, 0], &losses[b * BLOCK])
        return np.asarray(losses)

    def plane(self, const double[:, ::1] Z, const double[:, ::1] along, double rtol,
              double[:, ::1] B, int n_threads=1):
        """Fill B, whose rows are the chosen lines' slopes; returns the offset."""
        cdef Py_ssize_t n = self.n_samples, b
        cdef Py_ssize_t n_blocks = (n + BLOCK - 1) // BLOCK
        cdef const double* a = NULL
        cdef double[::1] sums = np.empty(n_blocks)
        check_shape("Z", Z, n, self.n_scores)
        check_shape("B", B, n, self.n_scores)
        if along is not None:
            check_shape("along", along, n, self.n_scores)
            a = &along[0, 0]
        for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
            sums[b] = self.choose(
                b * BLOCK, min(BLOCK, n - b * BLOCK), &Z[0, 0], a, rtol, &B[0, 0])
        return float(np.sum(sums))

    def segment(self, const double[:, ::1] Z, const double[:, ::1] along,
                double lower=0.0, double upper=np.inf, rows=None, int n_threads=1):
        """Every loss along η -> Z + η along, cut into segments over [lower, upper].

        Parameters
        ----------
        Z, along : ndarray of shape (n, k)
        lower, upper : float
        rows : ndarray of dtype intp or None
            The examples; None for all.
        n_threads : int

        Returns
        -------
        starts : ndarray of shape (n_rows + 1,), dtype intp
            Segments starts[j]:starts[j + 1] belong to the j-th of `rows`.
        etas : ndarray
            Where each segment begins, the first one at `lower`.
        slopes : ndarray
            Derivative of the loss on each segment; strictly ascending within an example.
        """
        if not lower < upper:
            raise ValueError(f"lower < upper is needed; got {lower} and {upper}.")
        cdef const Py_ssize_t[::1] chosen = (
            np.arange(self.n_samples) if rows is None else rows)
        check_shape("Z", Z, self.n_samples, self.n_scores)
        check_shape("along", along, self.n_samples, self.n_scores)
        check_indices("rows", chosen, self.n_samples)
        cdef Py_ssize_t[::1] starts = np.zeros(chosen.shape[0] + 1, dtype=np.intp)
        self.fill_segments(Z, along, lower, upper, chosen, starts, None, None, n_threads)
        starts = np.cumsum(starts)
        size = starts[chosen.shape[0]]
        etas, rises = np.empty(size), np.empty(size)
        self.fill_segments(Z, along, lower, upper, chosen, starts, etas, rises, n_threads)
        return np.asarray(starts), etas, rises

    cdef int fill_segments(
            self, const double[:, ::1] Z, const double[:, ::1] along, double lower,
            double upper, const Py_ssize_t[::1] rows, Py_ssize_t[::1] starts,
            double[::1] etas, double[::1] slopes, int n_threads) except -1:
        """Count the segments of each row or, once `starts` is known, write them."""
        cdef Py_ssize_t m = rows.shape[0], b
        cdef Py_ssize_t n_blocks = (m + BLOCK - 1) // BLOCK
        cdef bint count = etas is None
        if m == 0:
            return 0
        cdef Py_ssize_t* places = &starts[0]
        cdef double* eta_out = NULL if count else &etas[0]
        cdef double* slope_out = NULL if count else &slopes[0]
        cdef int failed = 0
        for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
            failed |= self.segment_block(
                b * BLOCK, min(m, (b + 1) * BLOCK), &rows[0], &Z[0, 0], &along[0, 0],
                lower, upper, count, places, eta_out, slope_out)
        if failed:
            no_memory("the segments of an example")
        return 0

    cdef int segment_block(
            self, Py_ssize_t start, Py_ssize_t stop, const Py_ssize_t* rows,
            const double* z, const double* a, double lower, double upper, bint count,
            Py_ssize_t* places, double* etas, double* slopes) noexcept nogil:
        cdef Py_ssize_t j, s, found
        cdef double* work = <double*> malloc(self.work_size() * sizeof(double))
        if work == NULL:
            return 1
        cdef double* eta = work
        cdef double* slope = work + self.max_lines + 1
        for j in range(start, stop):
            found = self.segments(
                rows[j], z, a, lower, upper, slope + self.max_lines + 1, eta, slope)
            if count:
                places[j + 1] = found
                continue
            for s in range(found):
                etas[places[j] + s] = eta[s]
                slopes[places[j] + s] = slope[s]
        free(work)
        return 0
