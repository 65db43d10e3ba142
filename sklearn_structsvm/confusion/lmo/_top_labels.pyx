"""Rows of label probabilities: the k labels with the largest gain, and block ascent."""
from sklearn_structsvm._utils import tolerances

from libc.stdint cimport int32_t

# Relative to a row's weight: the rounding error left after removing a label's last row.
cdef double SUM_ROUNDING = tolerances.SUM_ROUNDING


cdef struct Best:
    # The k best labels of a row so far, best first; ties go to the smaller label.
    Py_ssize_t k
    Py_ssize_t size
    double* gains
    int32_t* labels
    double* eta


cdef inline bint _is_better(
        double gain, int32_t label, double than, int32_t other) noexcept nogil:
    return gain > than or gain == than and label < other


cdef bint _offer(Best* best, double gain, int32_t label, double eta) noexcept nogil:
    """Insert a label if it is among the k best; return whether it is."""
    cdef Py_ssize_t at = best.size
    if at == best.k:
        at -= 1
        if not _is_better(gain, label, best.gains[at], best.labels[at]):
            return False
    else:
        best.size += 1
    while at > 0 and _is_better(gain, label, best.gains[at - 1], best.labels[at - 1]):
        best.gains[at] = best.gains[at - 1]
        best.labels[at] = best.labels[at - 1]
        best.eta[at] = best.eta[at - 1]
        at -= 1
    best.gains[at] = gain
    best.labels[at] = label
    best.eta[at] = eta
    return True


def top_labels(
        const Py_ssize_t[::1] starts, const int32_t[::1] labels, const double[::1] eta,
        const double[:, ::1] gains, const int32_t[::1] order,
        int32_t[:, ::1] chosen, double[:, ::1] chosen_eta,
        double[::1] best_gains, Py_ssize_t[::1] seen):
    """For each row, the k labels l with the largest gains[l, 0] + gains[l, 1] η_l.

    Parameters
    ----------
    starts, labels, eta : as in `LabelRows`
    gains : ndarray of shape (L, 2)
    order : ndarray of shape (L,)
        All labels by descending gains[:, 0], ties by ascending label: labels that a row
        does not store have this gain.
    chosen, chosen_eta : ndarrays of shape (n, k)
        Written: the labels, best first, and their η.
    best_gains : ndarray of shape (k,)
    seen : ndarray of shape (L,)
        Zeros. Both arrays are scratch space.
    """
    cdef Py_ssize_t n = chosen.shape[0], n_labels = gains.shape[0], i, e, r
    cdef int32_t label
    cdef Best best
    best.k = chosen.shape[1]
    if n == 0 or best.k == 0:
        return
    best.gains = &best_gains[0]
    with nogil:
        for i in range(n):
            best.size = 0
            best.labels = &chosen[i, 0]
            best.eta = &chosen_eta[i, 0]
            for e in range(starts[i], starts[i + 1]):
                label = labels[e]
                seen[label] = i + 1
                _offer(&best, gains[label, 0] + gains[label, 1] * eta[e], label, eta[e])
            for r in range(n_labels):
                label = order[r]
                if seen[label] == i + 1:
                    continue
                if not _offer(&best, gains[label, 0], label, 0.0):
                    break


def count_labels(
        const int32_t[:, ::1] chosen, const double[:, ::1] chosen_eta,
        const double[::1] weights, double[::1] hits, double[::1] predicted):
    """Write, for each label, the sums of w_i η_il and w_i over the rows that chose it."""
    cdef Py_ssize_t i, j
    cdef int32_t label
    with nogil:
        hits[:] = 0.0
        predicted[:] = 0.0
        for i in range(chosen.shape[0]):
            for j in range(chosen.shape[1]):
                label = chosen[i, j]
                hits[label] += weights[i] * chosen_eta[i, j]
                predicted[label] += weights[i]


cdef inline double _loss(const double* c, double hits, double predicted) noexcept nogil:
    """The ratio of `ratio_values`, for the six coefficients of a label."""
    cdef double denominator = c[3] + c[4] * hits + c[5] * predicted
    if not denominator > 0.0:
        return 1.0
    return (c[0] + c[1] * hits + c[2] * predicted) / denominator


cdef inline void _update(
        int32_t label, const double[:, ::1] coefficients, const double[::1] hits,
        const double[::1] predicted, double[::1] losses) noexcept nogil:
    losses[label] = _loss(&coefficients[label, 0], hits[label], predicted[label])


def ascend(
        const Py_ssize_t[::1] starts, const int32_t[::1] labels, const double[::1] eta,
        const double[::1] weights, const double[:, ::1] coefficients,
        const int32_t[::1] order, double[::1] hits, double[::1] predicted,
        double[::1] losses, int32_t[:, ::1] chosen, double[:, ::1] chosen_eta,
        double[::1] best_gains, Py_ssize_t[::1] seen):
    """One pass of block coordinate ascent: the best k labels of each row in turn.

    Of the labels that a row does not store, the first k of `order` are candidates.

    Parameters
    ----------
    starts, labels, eta : as in `LabelRows`
    weights : ndarray of shape (n,)
        Weights of the rows, which sum to 1.
    coefficients : ndarray of shape (L, 6)
        Of each label's loss, as in `LabelLoss`.
    order : ndarray of shape (L,)
    hits, predicted : ndarrays of shape (L,)
        t and q of each label, updated.
    losses : ndarray of shape (L,)
        Written: the labels' losses at these t and q.
    chosen, chosen_eta : ndarrays of shape (n, k)
        The labels of each row, updated.
    best_gains, seen : as in `top_labels`
    """
    cdef Py_ssize_t n = chosen.shape[0], k = chosen.shape[1], n_labels = hits.shape[0]
    cdef Py_ssize_t i, e, r, j, n_more
    cdef double w, t, q
    cdef int32_t label
    cdef Best best
    best.k = k
    if n == 0 or k == 0:
        return
    best.gains = &best_gains[0]
    with nogil:
        for label in range(<int32_t> n_labels):
            _update(label, coefficients, hits, predicted, losses)
        for i in range(n):
            w = weights[i]
            best.size = 0
            best.labels = &chosen[i, 0]
            best.eta = &chosen_eta[i, 0]
            for j in range(k):
                label = best.labels[j]
                hits[label] -= w * best.eta[j]
                predicted[label] -= w
                if predicted[label] <= SUM_ROUNDING * w:
                    # No other row has this label, and what is left is rounding: a ratio
                    # of such numbers would be meaningless.
                    hits[label] = predicted[label] = 0.0
                _update(label, coefficients, hits, predicted, losses)
            for e in range(starts[i], starts[i + 1]):
                label = labels[e]
                seen[label] = i + 1
                t, q = hits[label] + w * eta[e], predicted[label] + w
                _offer(
                    &best, losses[label] - _loss(&coefficients[label, 0], t, q),
                    label, eta[e])
            n_more = 0
            for r in range(n_labels):
                if n_more == k:
                    break
                label = order[r]
                if seen[label] == i + 1:
                    continue
                n_more += 1
                t, q = hits[label], predicted[label] + w
                _offer(
                    &best, losses[label] - _loss(&coefficients[label, 0], t, q),
                    label, 0.0)
            for j in range(k):
                label = best.labels[j]
                hits[label] += w * best.eta[j]
                predicted[label] += w
                _update(label, coefficients, hits, predicted, losses)
