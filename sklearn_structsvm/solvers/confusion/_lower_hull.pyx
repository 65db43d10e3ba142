"""The lower convex hull of points in the plane."""


def lower_hull(const double[::1] x, const double[::1] y, Py_ssize_t[::1] kept):
    """Find the corners of the lower hull, from left to right.

    For any slope, one of them minimizes y + slope x over all points.

    Parameters
    ----------
    x, y : ndarrays of shape (n,)
        x is non-decreasing.
    kept : ndarray of shape (n,)
        Written: the corners' indices.

    Returns
    -------
    n_kept : int
    """
    cdef Py_ssize_t i, a, b, size = 0
    with nogil:
        for i in range(x.shape[0]):
            while size >= 2:
                a, b = kept[size - 2], kept[size - 1]
                if (x[b] - x[a]) * (y[i] - y[a]) > (y[b] - y[a]) * (x[i] - x[a]):
                    break
                size -= 1
            if size == 1 and x[kept[0]] == x[i] and y[i] <= y[kept[0]]:
                size = 0
            kept[size] = i
            size += 1
    return size
