"""Outlines of convex sets in the plane, computed from their support function."""

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from sklearn_structsvm._utils.tolerances import SAME

# First directions: those of the axes, counterclockwise.
_AXES = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])

# A sweep has these directions in each quadrant: decimal logarithms of their slopes.
_SLOPES = np.linspace(-2.5, 2.5, 201)


def convex_outline(support, *, tol=1e-3, max_calls=400):
    """Vertices of a polygon inside a convex set that covers the set up to `tol`.

    Each edge is tested in the direction of its normal. If the set has a point beyond the
    edge, that point becomes a vertex; if not, the edge is final. A polygon is thus found
    exactly, with two calls per vertex, and any other set up to `tol`.

    `support`: maps a direction d (2,) to the point (2,) of the set with the largest <d,
    point>. `tol`: largest distance of a point of the set from the polygon, as a share
    of the set's larger side. It is not guaranteed if `max_calls` is reached. Returns
    (n, 2), counterclockwise; of one or two rows for a point or a segment.
    """
    points = [np.asarray(support(d), dtype=np.float64) for d in _AXES]
    n_calls = len(points)
    size = np.ptp(points, axis=0).max()
    points = _without_repeats(points, SAME * size)
    if len(points) < 2:
        return np.array(points)
    # Whether the set may have a point beyond the edge from each vertex to the next.
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
    """Vertices of the convex hull of the points found in many directions.

    For a function that is only approximately a support function: the point found in one
    direction may be inside the hull of those found in neighboring directions.

    `point_of`: maps a direction d (2,) to a point (2,). Returns (n, 2),
    counterclockwise; of one or two rows for a point or a segment.
    """
    angles = np.arctan(10.0**_SLOPES)
    angles = (np.arange(4)[:, None] * np.pi / 2 + angles).ravel()
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    points = np.array([point_of(d) for d in np.vstack([_AXES, directions])])
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # all of them on one line
        offsets = points - points[0]
        along = offsets @ offsets[np.abs(offsets).sum(axis=1).argmax()]
        return np.unique(points[[along.argmin(), along.argmax()]], axis=0)


def _beyond(support, p, q, tol):
    """A point of the set more than `tol` to the right of the edge p -> q, or None."""
    along = q - p
    outward = np.array([along[1], -along[0]]) / np.hypot(*along)
    r = np.asarray(support(outward), dtype=np.float64)
    return r if outward @ (r - p) > tol else None


def _without_repeats(points, tol):
    """Points in order, without those closer than `tol` to an earlier one."""
    kept = []
    for point in points:
        if all(np.abs(point - other).max() > tol for other in kept):
            kept.append(point)
    return kept
