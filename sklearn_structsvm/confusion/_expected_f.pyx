"""Sets of labels with the largest expected F-measure, row by row."""


cdef Py_ssize_t _best_size(
        Py_ssize_t m, const double* p, double beta2, Py_ssize_t only,
        double* f, double* g, double* h, double* value) noexcept nogil:
    """The number of most probable labels that have the largest expected F.

    With `only`, every set counts as having that many labels, impossible ones included.

    p descends. f[s] is the probability that s of the m labels are present, and g[s] the
    expected number of the first `size` labels that are present, counting only outcomes
    with s labels in all. With size k,

        E F = Σ_s g[s] (1 + β²) / (β² s + k).

    h is f without label k, which is divided out from the side on which rounding errors do
    not grow. A row thus takes O(m²).
    """
    cdef Py_ssize_t s, j, size, best = 0
    cdef double x, expected
    value[0] = 0.0
    f[0] = 1.0
    for j in range(m):
        f[j + 1] = f[j] * p[j]
        for s in range(j, 0, -1):
            f[s] = f[s] * (1.0 - p[j]) + f[s - 1] * p[j]
        f[0] *= 1.0 - p[j]
    for s in range(m + 1):
        g[s] = 0.0
    for size in range(1, m + 1):
        x = p[size - 1]
        if x <= 0.5:
            h[0] = f[0] / (1.0 - x)
            for s in range(1, m):
                h[s] = (f[s] - x * h[s - 1]) / (1.0 - x)
        else:
            h[m - 1] = f[m] / x
            for s in range(m - 1, 0, -1):
                h[s - 1] = (f[s] - (1.0 - x) * h[s]) / x
        expected = 0.0
        for s in range(1, m + 1):
            g[s] += x * h[s - 1]
            expected += g[s] / (beta2 * s + (only if only else size))
        expected *= 1.0 + beta2
        if expected > value[0]:
            best, value[0] = size, expected
        if size == only:
            break
    return best


def best_sizes(
        const Py_ssize_t[::1] starts, const double[::1] eta, double beta2,
        Py_ssize_t only, double[:, ::1] room, Py_ssize_t[::1] sizes, double[::1] values):
    """The size of the best set of each row, and its expected F.

    Parameters
    ----------
    starts : ndarray of shape (n + 1,)
    eta : ndarray
        Descending in each row.
    beta2 : float
        β².
    only : int
        The size that all sets must have, impossible labels included; 0 for any size.
    room : ndarray of shape (3, most entries of a row + 1)
    sizes, values : ndarrays of shape (n,)
        Written.
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(sizes.shape[0]):
            if starts[i] == starts[i + 1]:
                sizes[i], values[i] = 0, 0.0
                continue
            sizes[i] = _best_size(
                starts[i + 1] - starts[i], &eta[starts[i]], beta2, only,
                &room[0, 0], &room[1, 0], &room[2, 0], &values[i])
