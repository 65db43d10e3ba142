"""Listed risks with every line of every loss, and slow line searches."""

from fractions import Fraction
from math import fsum

import numpy as np
from _batch_problems import binary_planes, class_planes, pair_planes

from sklearn_structsvm.risks import BinaryHinge, MulticlassHinge, MultilabelHinge

KINDS = ("binary", "multiclass", "rescaled", "uniform pairs", "pairs")

# A sum of slopes is zero within this many rounding errors of the sum of their sizes.
ROUNDING = 8 * np.finfo(np.float64).eps


def make_risk(kind, X, rng, weights=None, k=4, costs=None, **kwargs):
    """A risk of this kind with random labels; `listed` has its lines.

    `listed[i]` holds a pair (Δ, β) for each line of the loss of example i.
    """
    n = X.shape[0]
    if kind == "binary":
        y = rng.integers(0, 2, n)
        costs = np.array([[0.0, 2.0], [0.5, 0.0]]) if costs is None else costs
        risk = BinaryHinge(X, y, weights, label_costs=costs, **kwargs)
        planes = [binary_planes(label, costs) for label in y]
    else:
        if costs is None and kind == "uniform pairs":
            costs = np.full((k, k), 1.5)
        elif costs is None:
            costs = rng.integers(0, 4, (k, k)) / 2.0
        costs = np.array(costs)
        np.fill_diagonal(costs, 0.0)
        if kind in ("multiclass", "rescaled"):
            y, rescaled = rng.integers(0, k, n), kind == "rescaled"
            risk = MulticlassHinge(
                X, y, weights, label_costs=costs, rescaled=rescaled, **kwargs
            )
            planes = [class_planes(label, costs, rescaled) for label in y]
        else:
            Y = rng.integers(0, 2, (n, k))
            risk = MultilabelHinge(X, Y, weights, label_costs=costs, **kwargs)
            planes = [pair_planes(labels, costs) for labels in Y]
    risk.listed = [list(zip(*own[::-1], strict=True)) for own in planes]
    return risk


def listed_losses(risk, Z):
    return np.array(
        [
            max(delta + beta @ z for delta, beta in lines)
            for lines, z in zip(risk.listed, Z, strict=True)
        ]
    )


def listed_derivative(risk, Z, A, rtol=1e-9):
    """sup ⟨g, d⟩ over the subdifferential at Z, for a direction with scores A."""
    total = 0.0
    for lines, z, a, p in zip(risk.listed, Z, A, risk.weights, strict=True):
        top = max(delta + beta @ z for delta, beta in lines)
        total += p * max(
            beta @ a for delta, beta in lines if delta + beta @ z >= top - rtol
        )
    return total


def exact_segments(slopes, offsets, lower, upper):
    """Breakpoints in (lower, upper] of a maximum of lines, and the slopes between them.

    Starting with the largest line at ``lower``, the next line is the first one to cross
    (the steepest, if several do), computed in fractions.
    """
    lines = [(Fraction(a), Fraction(b)) for a, b in zip(slopes, offsets, strict=True)]
    eta = Fraction(lower)
    _, a, b = max((b + eta * a, a, b) for a, b in lines)
    found = [(eta, a)]
    while steeper := [((b - d) / (c - a), -c, d) for c, d in lines if c > a]:
        eta, c, d = min(steeper)
        if eta > upper:
            break
        a, b = -c, d
        found.append((eta, a))
    return [eta for eta, _ in found], [slope for _, slope in found]


def exact_step(risk, Z, A, slope, curvature, largest=np.inf):
    """The smallest minimizer along a line, in fractions; inf if there is none."""
    jumps, rise = {}, Fraction(slope)
    for lines, z, a, p in zip(risk.listed, Z, A, risk.weights, strict=True):
        z, a = [Fraction(v) for v in z], [Fraction(v) for v in a]
        rises, starts = [], []
        for delta, beta in lines:
            beta = [Fraction(v) for v in beta]
            rises.append(sum(u * v for u, v in zip(beta, a, strict=True)))
            start = sum(u * v for u, v in zip(beta, z, strict=True))
            starts.append(Fraction(delta) + start)
        etas, slopes = exact_segments(rises, starts, 0, np.inf)
        rise += Fraction(p) * slopes[0]
        for j in range(1, len(etas)):
            jump = Fraction(p) * (slopes[j] - slopes[j - 1])
            jumps[etas[j]] = jumps.get(etas[j], 0) + jump
    curvature = Fraction(curvature)
    end = Fraction(largest) if largest < np.inf else None
    if rise >= 0:
        return Fraction(0)
    for eta in [*sorted(jumps), None]:
        if curvature > 0 and (eta is None or rise + curvature * eta >= 0):
            zero = -rise / curvature
            return zero if end is None else min(zero, end)
        if eta is None:
            return np.inf if end is None else end
        if end is not None and eta >= end:
            return end
        rise += jumps[eta]
        if rise + curvature * eta >= 0:
            return eta
    raise AssertionError("unreachable")


def sort_and_walk(hinge, Z, along, slope, curvature, largest=np.inf, n_threads=1):
    """argmin over 0 <= η <= largest of slope η + curvature η²/2 + R(Z + η along).

    This is the paper's search, in O(m log m) for m breakpoints, which it stores.

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
    # At the start of an example, a segment has no predecessor.
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
    # The derivative to the right of zero and of each breakpoint, after all jumps there.
    points = np.concatenate([[0.0], etas])
    complete = np.append(points[1:] > points[:-1], True)
    derivative = rises + curvature * points
    tol = ROUNDING * (abs(slope) + size + curvature * points)
    reached = np.flatnonzero(complete & (derivative >= -tol))
    if len(reached) == 0:
        end, passed = largest, len(order)
    else:
        # Jumps at the same breakpoint belong together: the previous piece includes only
        # the breakpoints before it.
        end = points[reached[0]]
        if end == 0.0:
            return 0.0
        passed = np.searchsorted(points, end) - 1
    if curvature > 0.0:
        # The rounding errors of a long walk add up, but not those of this sum.
        rise = fsum([*start, *jumps[order[:passed]]])
        end = min(end, max(-rise / curvature, 0.0))
    return float(end)


def by_sorting(risk, Z, along, wp, pp, lam, largest=np.inf):
    """`risk.line_search` by `sort_and_walk`."""
    return sort_and_walk(
        risk.hinge, Z, along, lam * wp, lam * pp, largest, risk.n_threads
    )
