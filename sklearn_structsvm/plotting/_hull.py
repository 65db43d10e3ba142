"""A convex set in the plane, found through its support function."""

import numpy as np
from scipy.spatial import ConvexHull, QhullError

# The first directions: of the axes, counterclockwise.
_FIRST = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])

# Slopes of the directions of a sweep in each quadrant: decimal logarithms.
_SLOPES = np.linspace(-2.5, 2.5, 201)

# Points nearer to each other than this share of the set's size are one.
_SAME = 1e-9


def convex_outline(support, *, tol=1e-3, max_calls=400):
    """Vertices of a polygon within a convex set that is all of the set but for `tol`.

    Where the direction normal to an edge finds a point beyond it, that point becomes a
    vertex; where it finds none, the edge is one of the set. So a polygon is found
    exactly, with two calls for each of its vertices, and any other set to `tol`.

    Parameters
    ----------
    support : callable
        Direction d (2,) -> the point (2,) of the set where <d, point> is largest.
    tol : float, default=1e-3
        No point of the set is further than this beyond an edge, as a share of the set's
        larger side, unless `max_calls` was reached.
    max_calls : int, default=400
        Of `support`.

    Returns
    -------
    ndarray of shape (n, 2)
        Counterclockwise; of one or two rows for a point or a segment.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.plotting._hull import convex_outline
    >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> convex_outline(lambda d: corners[np.argmax(corners @ d)])
    array([[2., 0.],
           [0., 1.],
           [0., 0.]])
    """
    points = [np.asarray(support(d), dtype=np.float64) for d in _FIRST]
    n_calls = len(points)
    size = np.ptp(points, axis=0).max()
    points = _without_repeats(points, _SAME * size)
    if len(points) < 2:
        return np.array(points)
    # Whether the edge from a point to the next one may have something beyond it.
    is_open = [True] * len(points)
    while any(is_open) and n_calls < max_calls:
        refined, still_open = [], []
        for p, q, unsure in zip(points, points[1:] + points[:1], is_open, strict=True):
            refined.append(p)
            if unsure and n_calls < max_calls:
                r = _beyond(support, p, q, tol * size)
                n_calls += 1
                unsure = r is not None
                if unsure:
                    refined.append(r)
                    still_open.append(True)
            still_open.append(unsure)
        points, is_open = refined, still_open
    return np.array(points)


def swept_outline(point_of):
    """Vertices of the convex hull of the points that many directions lead to.

    For what is no support function, only nearly so: then a direction may lead to a point
    that is within the hull, and the next one to it beyond.

    Parameters
    ----------
    point_of : callable
        Direction d (2,) -> a point (2,).

    Returns
    -------
    ndarray of shape (n, 2)
        Counterclockwise; of one or two rows for a point or a segment.
    """
    angles = np.arctan(10.0**_SLOPES)
    angles = (np.arange(4)[:, None] * np.pi / 2 + angles).ravel()
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    points = np.array([point_of(d) for d in np.vstack([_FIRST, directions])])
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # all of them on one line
        offsets = points - points[0]
        along = offsets @ offsets[np.abs(offsets).sum(axis=1).argmax()]
        return np.unique(points[[along.argmin(), along.argmax()]], axis=0)


def _beyond(support, p, q, tol):
    """A point of the set that is more than `tol` to the right of p -> q, or None."""
    along = q - p
    outward = np.array([along[1], -along[0]]) / np.hypot(*along)
    r = np.asarray(support(outward), dtype=np.float64)
    return r if outward @ (r - p) > tol else None


def _without_repeats(points, tol):
    """Points in order, without those that are close to one before."""
    kept = []
    for point in points:
        if all(np.abs(point - other).max() > tol for other in kept):
            kept.append(point)
    return kept
