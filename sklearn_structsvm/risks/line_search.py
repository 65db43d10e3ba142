"""The exact line search of the paper: sort all breakpoints, then walk over them."""

from math import fsum

import numpy as np

# A sum of slopes is zero within this many rounding errors of the sum of their sizes.
ROUNDING = 8 * np.finfo(np.float64).eps


def sort_and_walk(hinge, Z, along, slope, curvature, largest=np.inf, n_threads=1):
    """argmin over 0 <= η <= largest of slope η + curvature η²/2 + R(Z + η along).

    The reference that the search of `_step` is tested against: O(m log m) for m
    breakpoints, all of which it stores.

    Parameters
    ----------
    hinge : Hinge
    Z, along : ndarray of shape (n, k)
    slope, curvature : float
        λ ⟨w, p⟩ and λ ||p||².
    largest : float
    n_threads : int

    Returns
    -------
    float

    References
    ----------
    Yu, Vishwanathan, Günter, Schraudolph: A quasi-Newton approach to nonsmooth convex
    optimization problems in machine learning. JMLR 11, 2010, Algorithms 3 and 5.
    """
    if largest == 0.0:
        return 0.0
    starts, etas, slopes = hinge.segment(Z, along, 0.0, largest, n_threads=n_threads)
    # Nothing is known of a segment's predecessor where an example begins.
    p = np.repeat(hinge.weights, np.diff(starts))
    first = np.zeros(len(etas), dtype=bool)
    first[starts[:-1]] = True
    size = np.sum(p * np.abs(slopes), where=first)
    start = [slope, *(p * slopes)[first]]
    rise = fsum(start)
    jumps = (p[1:] * np.diff(slopes))[~first[1:]]
    etas = etas[~first]
    order = np.argsort(etas, kind="stable")
    etas, rises = etas[order], rise + np.concatenate([[0.0], np.cumsum(jumps[order])])
    # The derivative to the right of zero and of each breakpoint, once all jumps there
    # are made.
    points = np.concatenate([[0.0], etas])
    complete = np.append(points[1:] > points[:-1], True)
    derivative = rises + curvature * points
    tol = ROUNDING * (abs(slope) + size + curvature * points)
    reached = np.flatnonzero(complete & (derivative >= -tol))
    if len(reached) == 0:
        end, passed = largest, len(order)
    else:
        # Jumps at the same breakpoint come together: the piece before it is what the
        # breakpoints before it have made.
        end = points[reached[0]]
        if end == 0.0:
            return 0.0
        passed = np.searchsorted(points, end) - 1
    if curvature > 0.0:
        # A long walk's rounding errors add up; not so this sum's.
        rise = fsum([*start, *jumps[order[:passed]]])
        end = min(end, max(-rise / curvature, 0.0))
    return float(end)
