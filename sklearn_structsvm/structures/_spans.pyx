"""Probabilities of whole spans of a chain's tags.

With theta and transition of one example, a labeling of T positions has the probability
exp(Σ_t theta[t, y_t] + Σ_{t >= 1} transition[y_{t-1}, y_t]) / Z. Its labels are then a
Markov chain. With the logarithms of sums over the positions that follow,

    beta_t(p) = log Σ_c exp(transition[p, c] + theta[t + 1, c] + beta_{t+1}(c)),

label p of position t is followed by c with the probability

    step(p, c) = exp(transition[p, c] + theta[t + 1, c] + beta_{t+1}(c) - beta_t(p)).

A table of pairs says whether label c continues the span of the label p before it. A span
of a type begins at a label of the type that does not continue the one before, and its run

    r_t(c) = P(the span began at s and holds t, and y_t = c)

is passed on by the pairs that continue; the other pairs end the span. All terms are
probabilities, so nothing cancels or grows.

A span that began at s and holds t has at most the probability Σ_c r_t(c). Runs below the
threshold are dropped. The runs at one position exclude each other, so there are never
more than 1 / threshold of them. With m labels of a type, the time is
O(T k² + T m² / threshold), at most O(T k² + T² m² types).
"""
import numpy as np

from libc.math cimport INFINITY, log
from libc.string cimport memcpy

from sklearn_structsvm.structures._forest cimport fill


cdef extern from "structures/_sum_product.h" nogil:
    void vector_exp(
        Py_ssize_t k, const double* x, double shift, double* out) noexcept
    void vector_range(
        Py_ssize_t k, const double* x, double* lowest, double* highest) noexcept
    void vector_multiply(Py_ssize_t n, const double* x, double* out) noexcept
    double vector_multiply_normalized(
        Py_ssize_t k, const double* x, double* out) noexcept
    void vector_times(
        Py_ssize_t k, const double* x, const double* matrix, double* out) noexcept


# As in `_sum_product`: no product of three exponentials underflows if the scores of a
# position, and those of pairs, are within this spread. Others are summed by logarithms.
cdef double MAX_SPREAD = 230.0


cdef struct Pairs:
    # k x k tables of the pairs of labels: scores, those of the next position `stride`
    # further on; whether the label continues the span of
    # the previous one; and, if `narrow`, the exponentials of scores, their transpose, and
    # both again with zeros for pairs that continue.
    Py_ssize_t k
    const double* scores
    Py_ssize_t stride
    const unsigned char* joins
    bint narrow
    const double* factor
    const double* transposed
    const double* other
    const double* other_transposed


cdef bint is_narrow(Py_ssize_t n, const double* x, double* highest) noexcept nogil:
    """Whether scores other than -inf are within MAX_SPREAD; also finds the highest."""
    cdef Py_ssize_t j
    cdef double lowest
    vector_range(n, x, &lowest, highest)
    if lowest == -INFINITY:
        lowest = highest[0]
        for j in range(n):
            if x[j] > -INFINITY:
                lowest = min(lowest, x[j])
    return highest[0] > -INFINITY and highest[0] - lowest <= MAX_SPREAD


cdef double step_row(
        Py_ssize_t k, const double* pairs, const double* ahead, double* row
        ) noexcept nogil:
    """Write the label's row of `step`; return the logarithm of its divisor.

    The row is 0, and the result -inf, if no label may follow.
    """
    cdef Py_ssize_t c
    cdef double lowest, highest
    for c in range(k):
        row[c] = pairs[c] + ahead[c]
    vector_range(k, row, &lowest, &highest)
    if highest == -INFINITY:
        fill(k, 0.0, row)
        return highest
    vector_exp(k, row, highest, row)
    return highest + log(vector_multiply_normalized(k, NULL, row))


cdef void look_ahead(
        const Pairs* pairs, Py_ssize_t T, double* ahead, double* row, double* sums
        ) noexcept nogil:
    """Add beta to `ahead`, which holds theta, up to a constant for each position."""
    cdef Py_ssize_t k = pairs.k, t, p
    cdef double highest, lowest
    cdef double* here
    cdef const double* scores
    for t in range(T - 2, -1, -1):
        here = ahead + t * k
        if pairs.narrow and is_narrow(k, here + k, &highest):
            vector_exp(k, here + k, highest, row)
            vector_times(k, row, pairs.transposed, sums)
            for p in range(k):
                here[p] += log(sums[p])
        else:
            scores = pairs.scores + (t + 1) * pairs.stride
            for p in range(k):
                here[p] += step_row(k, scores + p * k, here + k, row)
        # Large numbers would cost digits in their differences.
        vector_range(k, here, &lowest, &highest)
        if highest > -INFINITY:
            for p in range(k):
                here[p] -= highest


cdef void advance(
        const Pairs* pairs, Py_ssize_t t, const double* ahead, double* label,
        double* begins, double* ends, double* step, double* row, double* sums
        ) noexcept nogil:
    """Probabilities at position t, from those of the labels at the one before.

    Parameters
    ----------
    label : k doubles
        Probabilities of the labels at one position; set to those at the next.
    begins, ends : k doubles
        Set to the probabilities that a label begins a span at the next position, and
        that the span of a label of this position ends, given the label.
    step : k x k doubles
        Set for the pairs that continue a span; the other entries must not be read.
    row, sums : k doubles
    """
    cdef Py_ssize_t k = pairs.k, p, c
    cdef const double* scores = pairs.scores + t * pairs.stride
    cdef double highest, here
    if pairs.narrow and is_narrow(k, ahead, &highest):
        vector_exp(k, ahead, highest, row)
        vector_times(k, row, pairs.transposed, sums)
        vector_times(k, row, pairs.other_transposed, ends)
        for p in range(k):
            here = 1.0 / sums[p] if sums[p] > 0.0 else 0.0
            ends[p] *= here
            label[p] *= here
            for c in range(k):
                if pairs.joins[p * k + c]:
                    step[p * k + c] = here * pairs.factor[p * k + c] * row[c]
        vector_times(k, label, pairs.other, begins)
        vector_times(k, label, pairs.factor, sums)
        vector_multiply(k, row, begins)
        vector_multiply(k, row, sums)
        memcpy(label, sums, k * sizeof(double))
        return
    fill(k, 0.0, begins)
    fill(k, 0.0, sums)
    for p in range(k):
        step_row(k, scores + p * k, ahead, step + p * k)
        ends[p] = 0.0
        for c in range(k):
            here = label[p] * step[p * k + c]
            sums[c] += here
            if not pairs.joins[p * k + c]:
                begins[c] += here
                ends[p] += step[p * k + c]
    memcpy(label, sums, k * sizeof(double))


def span_probabilities(
        theta, transition, types, goes_on, double threshold, stops=None):
    """The spans of a chain that are likely enough, and their probabilities.

    Parameters
    ----------
    theta : ndarray of shape (T, k), float64
        Scores of the labels; -inf for labels that are not allowed. T >= 1.
    transition : ndarray of shape (k, k) or (T, k, k), float64
        Scores of pairs of labels, the previous one first; -inf likewise. One table per
        position if they differ.
    types : ndarray of shape (k,), intp
        The type of each label's span, from 0; -1 for labels outside of all spans.
    goes_on : ndarray of shape (k, k), uint8
        Whether the label continues the span of the previous one, which then has the
        same type.
    threshold : float
        Must be positive; ignored if `stops` is given.
    stops : ndarray of shape (T, n_types), intp, or None
        Where the span of this type that starts here stops; 0 if it is not wanted.

    Returns
    -------
    list of (start, stop, type, probability), or None if no labeling is possible
        The span has the positions from start to stop - 1. Sorted, by position first.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.structures._spans import span_probabilities
    >>> zeros = np.zeros((2, 2))  # Labels O and B-x of one type.
    >>> span_probabilities(zeros, zeros, np.array([-1, 0]), np.uint8(zeros), 0.5)
    [(0, 1, 0, 0.5), (1, 2, 0, 0.5)]
    """
    cdef const double[:, :, ::1] scores = transition.reshape(-1, *theta.shape[1:] * 2)
    cdef const unsigned char[:, ::1] joins = goes_on
    cdef const Py_ssize_t[:, ::1] wanted = stops
    cdef double[:, ::1] ahead = np.array(theta)
    cdef Py_ssize_t T = ahead.shape[0], k = ahead.shape[1], n_types = types.max() + 1
    cdef Py_ssize_t room = T * n_types, size = 0, kept, t, c, q, j, i, own
    cdef double highest
    if wanted is None:
        # With a margin for rounding.
        room = int(min(room, 1.001 / threshold + 1.0))
    # Labels sorted by type, and where those of each type start.
    cdef Py_ssize_t[::1] members = np.argsort(types, kind="stable")
    cdef Py_ssize_t[::1] first = np.searchsorted(types[members], np.arange(n_types + 1))
    cdef double[:, ::1] step = np.empty((k, k))
    cdef double[:, :, ::1] factors = np.zeros((4, k, k))
    cdef Pairs pairs
    pairs.k, pairs.scores, pairs.joins = k, &scores[0, 0, 0], &joins[0, 0]
    pairs.stride = k * k if transition.ndim == 3 else 0
    # Exponentials are worth their while if all positions share them.
    pairs.narrow = pairs.stride == 0 and is_narrow(k * k, pairs.scores, &highest)
    if pairs.narrow:
        vector_exp(k * k, pairs.scores, highest, &factors[0, 0, 0])
        for c in range(k):
            for q in range(k):
                factors[1, q, c] = factors[0, c, q]
                if not joins[c, q]:
                    factors[2, c, q] = factors[3, q, c] = factors[0, c, q]
    pairs.factor, pairs.transposed = &factors[0, 0, 0], &factors[1, 0, 0]
    pairs.other, pairs.other_transposed = &factors[2, 0, 0], &factors[3, 0, 0]
    # Probabilities of the labels here, that a label begins a span, and that the span of
    # a label ends with it.
    cdef double[::1] label = np.empty(k), begins = np.empty(k), ends = np.empty(k)
    cdef double[::1] sums = np.empty(k), row = np.empty(k)
    cdef double[:, ::1] run = np.empty((max(room, 1), k))
    cdef Py_ssize_t[::1] start = np.empty(max(room, 1), dtype=np.intp)
    cdef Py_ssize_t[::1] run_type = np.empty(max(room, 1), dtype=np.intp)
    cdef double[::1] nothing = np.zeros(k)
    cdef double mass
    found = []
    with nogil:
        look_ahead(&pairs, T, &ahead[0, 0], &row[0], &sums[0])
    if step_row(k, &nothing[0], &ahead[0, 0], &label[0]) == -INFINITY:
        return None
    for t in range(T + 1):
        # From position t - 1, whose labels are in `label` and `run`, to t.
        if t == 0:
            begins[:] = label
        elif t == T:
            fill(k, 1.0, &ends[0])
        else:
            advance(
                &pairs, t, &ahead[t, 0], &label[0], &begins[0], &ends[0], &step[0, 0],
                &row[0], &sums[0])
        kept = 0
        for i in range(size):
            own = run_type[i]
            mass = 0.0
            for j in range(first[own], first[own + 1]):
                mass += run[i, members[j]] * ends[members[j]]
            if mass >= threshold if wanted is None else wanted[start[i], own] == t:
                found.append((start[i], t, own, min(mass, 1.0)))
            if t == T or not (wanted is None or wanted[start[i], own] > t):
                continue
            mass = 0.0
            for j in range(first[own], first[own + 1]):
                q = members[j]
                sums[q] = 0.0
                for c in range(first[own], first[own + 1]):
                    if joins[members[c], q]:
                        sums[q] += run[i, members[c]] * step[members[c], q]
                mass += sums[q]
            if wanted is None and mass < threshold:
                continue
            start[kept], run_type[kept] = start[i], own
            for j in range(first[own], first[own + 1]):
                run[kept, members[j]] = sums[members[j]]
            kept += 1
        size = kept
        if t == T:
            break
        for own in range(n_types):
            mass = 0.0
            for j in range(first[own], first[own + 1]):
                mass += begins[members[j]]
            if mass < threshold if wanted is None else wanted[t, own] == 0:
                continue
            start[size], run_type[size] = t, own
            for j in range(first[own], first[own + 1]):
                run[size, members[j]] = begins[members[j]]
            size += 1
    found.sort()
    return found
