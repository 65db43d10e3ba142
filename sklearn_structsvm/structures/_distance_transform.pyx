"""Distance transforms of scores on a grid, in time linear in its positions.

For each position p of a parent, this is the best score that a child can have somewhere on
the grid, minus the quadratic cost of its displacement:

    out[p] = max_q scores[q] - cost(q - p - anchor),  cost(d) = linear · d + square · d².

The cost is a sum over both axes, so this is a transform of each row and then one
of each column (Felzenszwalb and Huttenlocher, 2012). Along one axis, with p' = p +
anchor,

    scores[q] - cost(q - p') = g[q] + 2 square p' q + (a term of p' alone),
    g[q] = scores[q] - linear q - square q²,

so that the transform is a maximum of linear functions of p'. One of them is the highest
somewhere exactly if (q, g[q]) is a corner of the upper hull of all these points. One look
at each point finds the hull, and the best corner moves along it as p' grows. Felzenszwalb
and Huttenlocher store the points at which two parabolas meet, for which `square` must be
positive; the hull works for any sign. So the transform is also exact for costs that are
not convex: if `square` is negative, the corner moves the other way, and if it is zero,
not at all.

At each step the processor predicts whether the corner moves, and it is often wrong. On
grids of up to SMALL_GRID rows and columns, it is faster to try all q for each p, several
at a time.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape


cdef extern from "_utils/_vector.h" nogil:
    void vector_max_plus_rows(
        Py_ssize_t n, Py_ssize_t k, const double* x, const double* gains,
        double* out) noexcept
    void vector_raise_by_columns(
        Py_ssize_t n, Py_ssize_t k, const double* x, const double* gains,
        double* out) noexcept


cdef double deformation_cost(
        const Deformation* cost, double displacement) noexcept nogil:
    cdef double d = displacement - cost.anchor
    return d * (cost.linear + cost.square * d)


cdef Py_ssize_t transform_scratch_size(Py_ssize_t n_rows, Py_ssize_t n_columns):
    """Doubles that `raise_to_transform` needs."""
    return n_rows * n_columns + 3 * max(n_rows, n_columns)


cdef void transform_line(
        Py_ssize_t n, const double* scores, const Deformation* cost, double* out,
        Py_ssize_t out_stride, double* hull) noexcept nogil:
    """The transform along one axis; `hull` has room for 2 n doubles."""
    cdef double* place = hull
    cdef double* height = hull + n
    cdef double linear = cost.linear, square = cost.square, g, at, slope, d
    cdef Py_ssize_t q, p, k, last = -1
    for q in range(n):
        at = <double> q
        g = scores[q] - at * (linear + square * at)
        # The last corner is not one if it is on or below the line from the previous one.
        while last > 0 and (
                (height[last] - height[last - 1]) * (at - place[last])
                <= (g - height[last]) * (place[last] - place[last - 1])):
            last -= 1
        last += 1
        place[last] = at
        height[last] = g
    k = 0 if square >= 0.0 else last
    for p in range(n):
        at = p + cost.anchor
        slope = 2.0 * square * at
        if square >= 0.0:
            while k < last and (
                    height[k + 1] + slope * place[k + 1] > height[k] + slope * place[k]):
                k += 1
        else:
            while k > 0 and (
                    height[k - 1] + slope * place[k - 1] > height[k] + slope * place[k]):
                k -= 1
        d = place[k] - at
        out[p * out_stride] = scores[<Py_ssize_t> place[k]] - d * (linear + square * d)


cdef void tabulate(
        Py_ssize_t n, const Deformation* cost, double gain, double* gains
        ) noexcept nogil:
    """gains[n - 1 - d] = gain - cost(d) for all displacements -n < d < n"""
    cdef Py_ssize_t j
    for j in range(2 * n - 1):
        gains[j] = gain - deformation_cost(cost, <double> (n - 1 - j))


cdef void raise_to_transform(
        Py_ssize_t n_rows, Py_ssize_t n_columns, const double* scores,
        const Deformation* down, const Deformation* across, double gain, double* out,
        double* scratch) noexcept nogil:
    """out[p] = max(out[p], gain + the transform at p) for all p = (row, column)."""
    cdef double* gains = scratch + n_rows * n_columns
    if max(n_rows, n_columns) > SMALL_GRID:
        raise_by_hulls(
            n_rows, n_columns, scores, down, across, gain, out, scratch)
        return
    tabulate(n_columns, across, 0.0, gains)
    vector_max_plus_rows(n_rows, n_columns, scores, gains, scratch)
    tabulate(n_rows, down, gain, gains)
    vector_raise_by_columns(n_rows, n_columns, scratch, gains, out)


cdef void raise_by_hulls(
        Py_ssize_t n_rows, Py_ssize_t n_columns, const double* scores,
        const Deformation* down, const Deformation* across, double gain, double* out,
        double* scratch) noexcept nogil:
    """Same as `raise_to_transform`, for grids of any size."""
    cdef Py_ssize_t row, column
    # Here each column is contiguous.
    cdef double* turned = scratch
    cdef double* line = turned + n_rows * n_columns
    cdef double* hull = line + max(n_rows, n_columns)
    cdef double value
    for row in range(n_rows):
        transform_line(
            n_columns, scores + row * n_columns, across, turned + row, n_rows, hull)
    for column in range(n_columns):
        transform_line(n_rows, turned + column * n_rows, down, line, 1, hull)
        for row in range(n_rows):
            value = gain + line[row]
            if value > out[row * n_columns + column]:
                out[row * n_columns + column] = value


def distance_transform(const double[:, ::1] scores, down, across):
    """max_q scores[q] - cost_down(q_row - p_row) - cost_across(q_column - p_column).

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_columns)
    down, across : (anchor, linear, square)
        cost(d) = linear · (d - anchor) + square · (d - anchor)² of a displacement d.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
    """
    cdef Py_ssize_t n_rows = scores.shape[0], n_columns = scores.shape[1]
    cdef Deformation vertical, horizontal
    check_shape("down", down, 3)
    check_shape("across", across, 3)
    vertical.anchor, vertical.linear, vertical.square = down
    horizontal.anchor, horizontal.linear, horizontal.square = across
    result = np.full((n_rows, n_columns), -np.inf)
    cdef double[:, ::1] out = result
    cdef double[::1] scratch = np.empty(transform_scratch_size(n_rows, n_columns))
    if n_rows and n_columns:
        raise_to_transform(
            n_rows, n_columns, &scores[0, 0], &vertical, &horizontal, 0.0,
            &out[0, 0], &scratch[0])
    return result
