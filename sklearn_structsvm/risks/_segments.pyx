"""Pointwise maxima of lines, cut into segments, and the minimum of their sum.

The segmentation is Algorithm 4 of Yu et al. (2010).
"""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY, isnan
from libc.stdlib cimport qsort

# Insertion sort is faster up to this many lines.
cdef Py_ssize_t FEW_LINES = 24


cdef int _compare(const void* first, const void* second) noexcept nogil:
    """The line that is higher, or as high and steeper, comes first."""
    cdef const Line* p = <const Line*> first
    cdef const Line* q = <const Line*> second
    if p.height != q.height:
        return 1 if p.height < q.height else -1
    if p.slope != q.slope:
        return 1 if p.slope < q.slope else -1
    return 1 if p.place > q.place else -1


cdef void _sort_lines(Py_ssize_t r, Line* lines) noexcept nogil:
    """Sort by descending height, ties by descending slope."""
    cdef Py_ssize_t j, place
    cdef Line line
    if r > FEW_LINES:
        qsort(lines, r, sizeof(Line), _compare)
        return
    for j in range(1, r):
        line = lines[j]
        place = j
        while place > 0 and _compare(&line, &lines[place - 1]) < 0:
            lines[place] = lines[place - 1]
            place -= 1
        lines[place] = line


cdef Py_ssize_t segment_row(
        Py_ssize_t r, const double* a, const double* b, double lower, double upper,
        Line* lines, double* etas, Py_ssize_t* active) noexcept nogil:
    """Write the segments of η -> max_p b_p + η a_p over [lower, upper]; return the count.

    `active[j]` is the line of segment j, which starts at `etas[j]`; the first segment
    starts at `lower`, the others after it. At `lower` the steepest of tied lines is
    active, so that slopes ascend strictly. All three buffers have room for r.
    """
    cdef Py_ssize_t p, top = 0, m = 0, count = 1
    cdef Py_ssize_t under
    cdef double height, highest = b[0] + lower * a[0], eta, last, end_top = INFINITY
    for p in range(1, r):
        height = b[p] + lower * a[p]
        if height > highest or (height == highest and a[p] > a[top]):
            top, highest = p, height
    # Lines that are no steeper than the first one, or still below it at the other
    # end, are never the largest: most lines are dropped here, before sorting.
    if upper < INFINITY:
        end_top = b[top] + upper * a[top]
    for p in range(r):
        if a[p] > a[top] and (
                end_top == INFINITY or b[p] + upper * a[p] >= end_top):
            height = b[p] + lower * a[p]
            # NaN would have no place in the order.
            lines[m].height = -INFINITY if isnan(height) else height
            lines[m].slope, lines[m].place = a[p], p
            m += 1
    _sort_lines(m, lines)
    etas[0] = lower
    active[0] = top
    for p in range(m):
        top = lines[p].place
        # Of two lines, the one that is lower at `lower` and no steeper stays below.
        if a[top] <= a[active[count - 1]]:
            continue
        last = upper
        while True:
            under = active[count - 1]
            eta = (b[under] - b[top]) / (a[top] - a[under])
            if eta > etas[count - 1] or count == 1:
                break
            # If a segment is removed, the next one cannot start later than it did.
            count -= 1
            last = etas[count]
        if eta > last:
            if last == upper:
                continue
            eta = last
        if eta > etas[count - 1]:
            etas[count] = eta
            count += 1
        active[count - 1] = top
    return count


cdef double select_step(
        Py_ssize_t m, double* etas, double* jumps, double slope, double curvature,
        double lower, double upper, double tol) noexcept nogil:
    """Zero of a non-decreasing piecewise linear function, in time linear in m.

    The function is slope + curvature * η + the sum of the jumps at etas <= η. It is
    negative at `lower`, and assumed to be non-negative at `upper`. The result is the
    first point at which it is >= -tol, or would be, on the piece before a jump. Both
    arrays are permuted.
    """
    cdef Py_ssize_t start = 0, stop = m, less, equal, j
    cdef double pivot, below, here, x, y, z
    while start < stop:
        # Median of three.
        x, y, z = etas[start], etas[(start + stop) // 2], etas[stop - 1]
        pivot = max(min(x, y), min(max(x, y), z))
        # [start, less) is below the pivot, [less, equal) at it, [equal, stop) above.
        less = equal = start
        below = here = 0.0
        for j in range(start, stop):
            x, y = etas[j], jumps[j]
            if x <= pivot:
                etas[j], jumps[j] = etas[equal], jumps[equal]
                etas[equal], jumps[equal] = x, y
                if x < pivot:
                    etas[equal], jumps[equal] = etas[less], jumps[less]
                    etas[less], jumps[less] = x, y
                    below += y
                    less += 1
                else:
                    here += y
                equal += 1
        if slope + below + here + curvature * pivot < -tol:
            slope += below + here
            start = equal
        else:
            upper = pivot
            stop = less
    # No jump is left before `upper`: a straight line from a negative value.
    if curvature > 0.0:
        x = -slope / curvature
        if x < upper:
            upper = x
    return max(lower, upper)


def segment_lines(a, b, lower=0.0, upper=np.inf, n_threads=1):
    """Segments of n pointwise maxima of r lines each, η -> max_p b_p + η a_p.

    Parameters
    ----------
    a, b : array-like of shape (n, r)
        Slopes and offsets, r >= 1.
    lower, upper : float
        The interval, lower < upper; `upper` may be infinite.
    n_threads : int

    Returns
    -------
    starts : ndarray of shape (n + 1,), dtype intp
        The segments of the i-th maximum are starts[i]:starts[i + 1].
    etas : ndarray
        Where each segment begins: the first one at `lower`, the others where two
        active lines cross, ascending.
    active : ndarray of dtype intp
        The line that is largest on each segment. Slopes ascend strictly.

    References
    ----------
    Yu, Vishwanathan, Günter, Schraudolph: A quasi-Newton approach to nonsmooth convex
    optimization problems in machine learning. JMLR 11, 2010, Algorithm 4.

    Examples
    --------
    The largest of 1 - η, 0 and η - 3:

    >>> from sklearn_structsvm.risks._segments import segment_lines
    >>> starts, etas, active = segment_lines([[-1.0, 0.0, 1.0]], [[1.0, 0.0, -3.0]])
    >>> etas.tolist(), active.tolist()
    ([0.0, 1.0, 3.0], [0, 1, 2])
    """
    cdef const double[:, ::1] slopes = np.ascontiguousarray(a, dtype=np.float64)
    cdef const double[:, ::1] offsets = np.ascontiguousarray(b, dtype=np.float64)
    cdef Py_ssize_t n = slopes.shape[0], r = slopes.shape[1], i
    cdef double low = lower, high = upper
    cdef int threads = n_threads
    if slopes.shape[0] != offsets.shape[0] or slopes.shape[1] != offsets.shape[1]:
        raise ValueError(
            f"a and b must have the same shape; got {np.shape(a)} and {np.shape(b)}.")
    if r == 0 or not -np.inf < low < high:
        raise ValueError(
            "Lines and an interval are needed; "
            f"got {r} lines, lower={lower} and upper={upper}.")
    cdef Py_ssize_t[::1] counts = np.zeros(n + 1, dtype=np.intp)
    cdef double[:, ::1] etas = np.empty((n, r))
    cdef Py_ssize_t[:, ::1] active = np.empty((n, r), dtype=np.intp)
    cdef double[:, ::1] lines = np.empty((n, LINE_SIZE * r))
    for i in prange(n, nogil=True, num_threads=threads, schedule="static"):
        counts[i + 1] = segment_row(
            r, &slopes[i, 0], &offsets[i, 0], low, high, <Line*> &lines[i, 0],
            &etas[i, 0], &active[i, 0])
    kept = np.arange(r) < np.asarray(counts)[1:, np.newaxis]
    return np.cumsum(counts), np.asarray(etas)[kept], np.asarray(active)[kept]
