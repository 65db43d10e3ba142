"""Sorted lists in shards: summaries of each shard, and searches over their sum.

A shard summarizes its list as buckets of neighbors: the first and the last value, and the
sums of the masses. The buckets of all shards give bounds of the sum, and these the few
intervals that need a closer look. The search is exact once every remaining bucket is a
single value.
"""

from dataclasses import dataclass
from math import fsum

import numpy as np

from sklearn_structsvm._utils.tolerances import SLOPE_ROUNDING, SUM_ROUNDING

# The number of buckets in a shard's first answer, and the factor by which it grows as
# long as they are too coarse. A million values take two rounds, and every list ends.
RESOLUTION = 1024
RESOLUTION_GROWTH = 8


@dataclass
class RiskReply:
    """The reply of a shard: numbers to add, lists to concatenate, and a range."""

    sums: tuple = ()
    lists: tuple = ()
    span: tuple = (np.inf, -np.inf)


def merge(replies):
    """Merge replies. None if one of them is None."""
    if any(reply is None for reply in replies):
        return None
    lows, highs = zip(*(reply.span for reply in replies), strict=True)
    return RiskReply(
        tuple(sum(terms) for terms in zip(*(r.sums for r in replies), strict=True)),
        tuple(
            np.concatenate(lists)
            for lists in zip(*(r.lists for r in replies), strict=True)
        ),
        (min(lows), max(highs)),
    )


def merge_equal(values, masses):
    """The sorted list, with equal values merged and their masses summed."""
    if len(values) == 0:
        return values, masses
    order = np.argsort(values, kind="stable")
    values = values[order]
    starts = np.flatnonzero(np.append(True, values[1:] > values[:-1]))
    return values[starts], np.add.reduceat(masses[order], starts, axis=0)


def make_buckets(values, masses, size):
    """First and last values, and masses, of buckets of `size` values each."""
    starts = np.arange(0, len(values), size)
    if len(starts) == 0:
        return values, values, masses
    last = values[np.minimum(starts + size, len(values)) - 1]
    return values[starts], last, np.add.reduceat(masses, starts, axis=0)


def _running(values, masses, points):
    """The sum of the masses with values up to each point."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(masses[order], axis=0)
    sums = np.concatenate([np.zeros_like(sums[:1]), sums])
    return sums[np.searchsorted(values[order], points, side="right")]


def search_line(pieces, slope, curvature, lower, upper):
    """argmin over [lower, upper] of slope η + curvature η²/2 + a sum of maxima of lines.

    `pieces`: (lower, upper, resolution) -> rise, size, first, last, jump: derivative of
    the sum to the right of `lower`, Σ of its terms' sizes, and buckets of the
    breakpoints in (lower, upper]. `lower`, `upper`: the smallest minimizer is known to
    lie between them. Returns the smallest point where a subgradient nearly vanishes.
    """
    resolution = RESOLUTION
    while lower < upper:
        rise, size, first, last, jump = pieces(lower, upper, resolution)
        size = SLOPE_ROUNDING * (abs(slope) + size)
        rise += slope
        if rise + curvature * lower >= -size - SLOPE_ROUNDING * curvature * lower:
            return lower
        if np.array_equal(first, last):
            return _walk(rise, curvature, lower, upper, size, first, jump)
        points = np.unique(np.concatenate([first, last]))
        line = rise + curvature * points
        tol = size + SLOPE_ROUNDING * curvature * points
        below = line + _running(first, jump, points) < -tol
        reached = line + _running(last, jump, points) >= 0.0
        lower = points[below].max(initial=lower)
        upper = points[reached].min(initial=upper)
        resolution *= RESOLUTION_GROWTH
    return upper


def _walk(slope, curvature, lower, upper, size, points, jumps):
    """Zero of slope + curvature η + Σ of the jumps at points <= η, negative at lower."""
    points, jumps = merge_equal(points, jumps)
    derivative = slope + np.cumsum(jumps) + curvature * points
    reached = np.flatnonzero(derivative >= -size - SLOPE_ROUNDING * curvature * points)
    passed = reached[0] if len(reached) else len(points)
    end = points[passed] if len(reached) else upper
    if curvature > 0.0:
        zero = -fsum([slope, *jumps[:passed]]) / curvature
        end = min(end, max(zero, lower))
    return float(end)


def search_cut(entries):
    """The threshold with the smallest weight of (score > threshold) != present.

    Among equally good thresholds, the middle of the widest gap between scores.

    `entries`: (intervals, resolution) -> below, owner, first, last, masses: for each of
    the closed intervals, of shape (m, 2), the weights of present and of absent labels
    with scores below it, of shape (m, 2); and buckets of the scores inside, with the
    interval that each belongs to.
    """
    intervals = np.array([[-np.inf, np.inf]])
    resolution, ends = RESOLUTION, None
    while True:
        below, owner, first, last, masses = entries(intervals, resolution)
        if ends is None:
            weights = masses.sum(axis=0)
            ends = [(0.0, first.min() - 1.0)]
            ends.append((weights[0] - weights[1], last.max() + 1.0))
        low, high, left, right = _gaps(below, owner, first, last, masses)
        least = min(high.min(initial=np.inf), ends[0][0], ends[1][0])
        least += SUM_ROUNDING * weights.sum()
        kept = low <= least
        if not (low < high)[kept].any():
            break
        intervals = _joined(left[kept], right[kept])
        resolution *= RESOLUTION_GROWTH
    if not kept.any():
        return float(min(ends, key=lambda end: end[0] > least)[1])
    widest = np.argmax(np.where(kept, right - left, 0.0))
    left, right = left[widest], right[widest]
    middle = left + 0.5 * (right - left)
    return float(middle if middle < right else left)


def _gaps(below, owner, first, last, masses):
    """Cuts between neighboring values, with bounds of the wrong weight."""
    found = [np.empty((4, 0))]
    for j, start in enumerate(below):
        inside = owner == j
        begin, end, mass = first[inside], last[inside], masses[inside]
        points = np.unique(np.concatenate([begin, end]))
        complete = start + _running(end, mass, points)
        begun = start + _running(begin, mass, points)
        # Below the cut, present labels are wrong and absent ones right. In a bucket that
        # is cut in two, this holds for an unknown part of each.
        low, high = complete[:, 0] - begun[:, 1], begun[:, 0] - complete[:, 1]
        found.append(np.stack([low[:-1], high[:-1], points[:-1], points[1:]]))
    return np.concatenate(found, axis=1)


def _joined(left, right):
    """The union of intervals with ascending ends, as few closed intervals."""
    starts = np.append(True, left[1:] > right[:-1])
    stops = np.append(starts[1:], True)
    return np.stack([left[starts], right[stops]], axis=1)
