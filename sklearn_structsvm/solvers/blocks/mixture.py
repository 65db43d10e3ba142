"""Cutting planes and the dual point: the best point that they span.

A cutting plane consists of one labeling per example, the most violating one at some
weights. It is the dual point that has all mass of each example on this labeling. The last
planes and the current dual point span a simplex of dual points. The best of them is found
by a small quadratic program, and the iterate moves there: α becomes a convex combination
of feasible points, so certificates stay valid and the dual never falls. Corrective steps
do the same with the cached labelings of one example; this module does it for all examples
at once.

If a plane is subtracted from the objective (see `_proximal`), the bundle holds each
cutting plane less that plane.

A plane is taken between the best weights W so far and the w of the dual point. For rows,
W moves to the minimum of the objective on the segment, without further products with the
features (OCAS: Franc and Sonnenburg, "Optimized cutting plane algorithm for large-scale
risk minimization", JMLR 10, 2009). For structures, a line search would decode all
examples anew at each point. So the plane is taken after a step s on the way from W to w;
s is doubled if that improved W, and halved otherwise. Each plane also checks the gap.
"""

from functools import partial

import numpy as np

from sklearn_structsvm._utils.backtracking import MAX_HALVINGS
from sklearn_structsvm._utils.tolerances import VALUE_ROUNDING
from sklearn_structsvm.solvers.qp.bundle import Bundle
from sklearn_structsvm.solvers.qp.center import AHEAD, Center

# With d weights, planes need at most about 20 + 1.5 d passes. As many are kept beside the
# dual point, which absorbs those that are dropped; but at most this many, and no more
# than fit into this many bytes if there are more than 20. With fewer planes than weights,
# page blocks with raw columns take a thousand planes instead of a hundred.
PASSES = 20.0
PASSES_PER_WEIGHT = 1.5
MOST_KEPT = 250
KEPT_MEMORY = 256 * 2**20

# The relative accuracy of the end of a search on a segment. With 1e-4, passes take half
# as long again, and their number stays the same.
SEARCH_RTOL = 1e-2

# The largest number of planes, or passes, over the cached labelings between two calls of
# the oracle, and of patterns of clipped weights for the best mixture in a box. A program
# that needs more continues later, with labelings that matter more.
MAX_INNER = 30

# If this many planes in a row, all but the first of them at w, have not raised the dual,
# there is nothing to gain.
IDLE = 5


class PlanesLost(Exception):
    """Raised if the remote parts of an iterate have lost their planes."""


class PlaneMixture:
    """The last planes and the dual point of an iterate.

    `cached`: whether planes are of cached labelings only, without the oracle.

    Attributes: `best` (d,): W. `objective`: that at W, inf before a plane.
    """

    def __init__(self, iterate, n_threads=1, cached=False):
        self.iterate = iterate
        kind = _SearchedCuts if iterate.is_rows else _DampedCuts
        self.cuts = kind(iterate, n_threads, cached)
        self.forget()

    def forget(self):
        """Drop all planes."""
        self.bundle, self.n_cuts = None, 0
        self.minus_a = self.iterate.minus_a

    def start(self, weights):
        """Take these weights for the best ones so far.

        λ and the plane that is subtracted may have changed.
        """
        bundle, minus_a = self.bundle, self.iterate.minus_a
        if bundle is not None and self.minus_a is not minus_a:
            before = 0.0 if self.minus_a is None else self.minus_a
            shift = before - (0.0 if minus_a is None else minus_a)
            bundle = bundle.at(self.iterate.lam, shift)
        elif bundle is not None and bundle.lam != self.iterate.lam:
            bundle = bundle.at(self.iterate.lam)
        self.bundle, self.minus_a = bundle, minus_a
        self.cuts.start(weights)

    @property
    def best(self):
        return self.cuts.best

    @property
    def objective(self):
        return self.cuts.objective

    def gap(self):
        """The gap between the best weights and the dual point, after a plane."""
        iterate = self.iterate
        if iterate.l1_ratio > 0.0:
            iterate.best_bound = max(iterate.best_bound, iterate.lower_bound())
            return self.objective - iterate.best_bound
        return self.objective - iterate.dual_objective

    def take(self):
        """Add a plane, and move to the best mixture. Returns False if the dual stays."""
        is_moved = self._move(partial(self.cuts.take, self.iterate.weights))
        if not is_moved:
            # The plane does not cut off w; a plane taken at w itself will.
            self.cuts.step = 1.0
        return is_moved

    def take_cached(self):
        """Add planes of the cached labelings at w. Returns the most they could gain."""
        iterate = self.iterate
        w, before = iterate.weights.copy(), iterate.dual_objective
        values = []

        def cut(place):
            hinge, *plane = iterate.take_plane(w, place, self.cuts.kept, cached=True)
            values.append(iterate.penalty(w) + hinge)
            return plane

        return values[0] - before if self._move(cut) else 0.0

    def _move(self, cut):
        """Move to the best mixture after adding the plane of `cut`(its place)."""
        place = self.n_cuts % self.cuts.kept
        try:
            self._add(place, *cut(place))
            self.n_cuts += 1
            return self._mix()
        except PlanesLost:
            self.forget()
            return False

    def _add(self, place, plane, offset):
        bundle = self.bundle
        if self.minus_a is not None:
            plane = plane - self.minus_a
        if bundle is None:
            bundle = Bundle(
                len(plane),
                self.iterate.lam,
                max_idle=np.inf,
                max_planes=self.cuts.kept + 1,
            )
            self.bundle = bundle
            bundle.add(*self._point())
        if len(bundle.offsets) <= self.cuts.kept:
            bundle.add(plane, offset)
        else:
            bundle.replace(1 + place, plane, offset)

    def _point(self):
        """The dual point as a plane."""
        iterate = self.iterate
        return -iterate.lam * iterate.dual_image(), iterate.loss

    def _mix(self):
        """Move to the best mixture. Returns False if there is nothing to gain."""
        iterate, bundle = self.iterate, self.bundle
        before = iterate.dual_objective
        bundle.replace(0, *self._point())
        bundle.solve()
        shares, u = bundle.alpha, bundle.weights
        if iterate.is_mapped:
            shares, u = self._mixture_by_patterns()
        losses = bundle.offsets
        value = iterate.dual_value_of(u, float(shares @ losses)) - iterate.minus_b
        if not value > before and not self._is_nearer(u, value, before):
            return False
        iterate.mix(np.ascontiguousarray(shares), u)
        return True

    def _mixture_by_patterns(self):
        """The best mixture if w is clipped or thresholded: a program for each pattern.

        If the pattern is given, the dual value is that of other planes without it; see
        `_of_pattern`. If the maximizer has another pattern, the next point is the best
        one on the way to it.
        """
        iterate = self.iterate
        images, losses = self.bundle.planes / -iterate.lam, self.bundle.offsets
        shares = np.eye(len(losses))[0]
        u = shares @ images
        mapping = _Mapping(iterate, len(u))
        sides = mapping.sides(u)
        for _ in range(MAX_INNER):
            local = Bundle.of(*mapping.planes(images, losses, sides))
            local.solve()
            target = mapping.target(local, images, sides)
            change = local.alpha - shares
            along, gain = target - u, change @ losses
            step, sides = mapping.search(u, along, float(gain))
            if step == 0.0:
                # Next to large columns, w changes by what is rounding in the dual value.
                if self._is_as_good(local.alpha, target, shares, u):
                    return local.alpha, target
                break
            shares, u = shares + step * change, u + step * along
        return np.maximum(shares, 0.0) / np.maximum(shares, 0.0).sum(), u

    def _is_as_good(self, shares, u, other_shares, other):
        """Whether the dual value at u is at least that of another, up to rounding."""
        losses, value = self.bundle.offsets, self.iterate.dual_value_of
        least = value(other, float(other_shares @ losses))
        return value(u, float(shares @ losses)) >= least - VALUE_ROUNDING * abs(least)

    def _is_nearer(self, u, value, before):
        """Whether w is nearer to that minimum, while the dual value stays as it is.

        With next to no penalty, planes cut off many minima before they raise the least.
        """
        iterate = self.iterate
        if not value >= before - VALUE_ROUNDING * abs(before):
            return False
        there = self._value_there(iterate.weights_of(u))
        return there < self._value_there(iterate.weights)

    def _value_there(self, w):
        """The minimized function of the planes at w."""
        planes = float((self.bundle.planes @ w + self.bundle.offsets).max())
        if self.minus_a is None:
            return planes + self.iterate.penalty(w)
        # The planes are less the one that is subtracted, but for its constant.
        return planes + self.iterate.penalty(w) + float(w @ self.minus_a)


class _Mapping:
    """How w depends on u: clipped to a box, or by a soft threshold.

    The pattern is given by a side for each weight: whether u is below (-1), above (1) or
    within (0) its bounds, those of the box or -ρ and ρ.
    """

    def __init__(self, iterate, n_weights):
        self.lam, self.ratio = iterate.lam, iterate.l1_ratio
        self.is_sparse = self.ratio > 0.0
        ends = (-self.ratio, self.ratio) if self.is_sparse else (-np.inf, np.inf)
        self.lower, self.upper = (np.full(n_weights, end) for end in ends)
        if not self.is_sparse:
            self.lower, self.upper = map(iterate.clipped, (self.lower, self.upper))

    def sides(self, u):
        return np.where(u > self.upper, 1, np.where(u < self.lower, -1, 0))

    def planes(self, images, losses, sides):
        """Planes, offsets and λ of an L2 problem with the same dual value near u.

        It has only the weights that are neither clipped nor zero; see `_varies`. Clipped
        weights are constants. With an L1 penalty the dual value is

            Σ_j α_j ℓ_j - λ / (2 - 2ρ) Σ_k (u_k - ρ sign u_k)² over |u_k| > ρ,

        and as the shares α_j sum to 1, ρ sign u_k may be subtracted from every image.
        """
        lam, varies = self.lam, self._varies(sides)
        # In the order of C, which indexing does not keep.
        own = images.compress(varies, axis=1)
        if self.is_sparse:
            lam = lam / (1.0 - self.ratio)
            return -lam * (own - self.ratio * sides[varies]), losses, lam
        fixed = self._ends(sides)
        offsets = [
            loss - lam * image @ fixed for image, loss in zip(images, losses, strict=True)
        ]
        return -lam * own, offsets, lam

    def _varies(self, sides):
        return (sides != 0) == self.is_sparse

    def target(self, local, images, sides):
        """u at the solution of such a problem.

        Where it determines u, it does so to all digits. The mean of images, which may be
        1e9 times as large, has too few of them for w.
        """
        u, varies = local.alpha @ images, self._varies(sides)
        u[varies] = local.weights
        if self.is_sparse:
            u += self.ratio * sides
        return u

    def _ends(self, sides):
        """The bounds at which u is clipped, or 0."""
        return np.where(sides > 0, self.upper, np.where(sides < 0, self.lower, 0.0))

    def search(self, u, along, gain):
        """The best step in [0, 1] along a line, and the sides there.

        The slope is linear between the steps at which weights reach their bounds. Where
        it jumps from one sign to the other up to rounding, because a column is far larger
        than others, the sides are those behind the jump: with those before it, the next
        program would lead across it again.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            at_lower, at_upper = ((end - u) / along for end in (self.lower, self.upper))
        forward, stays = along > 0.0, along == 0.0
        at_once = self.sides(u)

        def sides_at(step):
            above = np.where(forward, step > at_upper, step < at_upper)
            below = np.where(forward, step < at_lower, step > at_lower)
            return np.where(stays, at_once, above * 1 - below * 1)

        def slope(step, sides):
            w = u + step * along
            if self.is_sparse:
                w = (w - self.ratio * sides) * (sides != 0) / (1.0 - self.ratio)
            else:
                w = np.where(sides == 0, w, self._ends(sides))
            return float(self.lam * w @ along - gain)

        steps = np.concatenate([at_lower[~stays], at_upper[~stays]])
        steps = np.unique(steps[(steps > 0.0) & (steps < 1.0)])
        steps = np.concatenate([[0.0], steps, [1.0]])
        # The first piece at whose end the function rises.
        first, last = 0, len(steps) - 2
        while first < last:
            middle = (first + last) // 2
            sides = sides_at(0.5 * (steps[middle] + steps[middle + 1]))
            if slope(steps[middle + 1], sides) >= 0.0:
                last = middle
            else:
                first = middle + 1
        start, end = steps[first], steps[first + 1]
        sides = sides_at(0.5 * (start + end))
        at_start, at_end = slope(start, sides), slope(end, sides)
        if at_start >= 0.0:
            return float(start), sides
        if at_end <= 0.0:
            return float(end), sides
        step = start - at_start * (end - start) / (at_end - at_start)
        return float(min(max(step, start), end)), sides


def how_many(iterate, n_bytes):
    """The number of planes kept, for this many bytes per labeling of an example."""
    n_weights = len(iterate.weights)
    of_one = n_bytes * len(iterate.active_blocks) + 8 * n_weights
    most = min(passes_needed(n_weights), MOST_KEPT, KEPT_MEMORY // of_one)
    return int(max(most, PASSES))


def passes_needed(n_weights):
    """At most about as many passes of planes lead to the best weights."""
    return PASSES + PASSES_PER_WEIGHT * n_weights


class _SearchedCuts(Center):
    """Planes of rows, taken close to the best point of a line search."""

    def __init__(self, ascent, n_threads, cached=False):
        self.ascent, self.n_threads = ascent, n_threads
        self.kept = how_many(ascent, ascent.n_held_bytes)

    def start(self, weights):
        super().start(weights, AHEAD)
        self.at_best = self.ascent.scores(weights, self.n_threads)

    def take(self, w, place):
        """Search from W toward w, and store the plane at this place."""
        ascent, lam = self.ascent, self.ascent.lam
        change = w - self.best
        scores = self.at_best
        if change.any():
            scores = ascent.scores(w, self.n_threads)
        along = scores - self.at_best
        product, norm = lam * self.best.dot(change), lam * change.dot(change)

        def slope(t):
            return ascent.hinge_along(self.at_best, along, t)[1] + product + t * norm

        step = minimize_on_segment(slope)
        self.best = self.best + step * change
        self.at_best += step * along
        hinge, _ = ascent.hinge_along(self.at_best, along, 0.0)
        self.objective = 0.5 * lam * self.best.dot(self.best) + hinge
        scores = self.at_best + self.step * (1.0 - step) * along
        self.step = AHEAD
        return ascent.cut(scores, place, self.kept)


class _DampedCuts(Center):
    """Planes of structures, and of remote rows, a step away from the best point."""

    def __init__(self, iterate, n_threads, cached=False):
        self.iterate = iterate
        self.kept = how_many(iterate, 1)
        self.options = {"n_threads": n_threads, "cached": cached}

    def take(self, w, place):
        """Call the oracle between W and w, or at W itself the first time."""
        is_first = self.objective == np.inf
        # Rounding may lead out of a box that contains both ends.
        point = self.iterate.clipped(self.best if is_first else self.toward(w))
        hinge, plane, offset = self.iterate.take_plane(
            point, place, self.kept, **self.options
        )
        self.note(point, self.iterate.penalty(point) + hinge)
        return plane, offset


def minimize_on_segment(slope):
    """The minimizer of a convex function on [0, 1], or a point a little before it.

    `slope`: (step) -> its slope, or one of its slopes at a kink. Returns a step; the
    value there is not larger than at 0.
    """
    low, high = 0.0, 1.0
    at_low, at_high = slope(low), slope(high)
    if at_high <= 0.0:
        return 1.0
    if at_low >= 0.0:
        return 0.0
    for k in range(MAX_HALVINGS):
        step = middle = 0.5 * (low + high)
        if k % 2 == 0:
            step = low - at_low * (high - low) / (at_high - at_low)
        if not low < step < high:
            # If the slope is 0 up to rounding, this point becomes an end of the interval.
            step = middle
        if not low < step < high:
            break
        here = slope(step)
        if here == 0.0:
            return step
        if here < 0.0:
            low, at_low = step, here
        else:
            high, at_high = step, here
        if high - low <= SEARCH_RTOL * high:
            break
    return low
