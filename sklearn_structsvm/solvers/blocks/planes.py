"""Cutting planes in turns with block steps: training that does not stall on raw data.

A cutting plane is one labeling per example, the most violating ones at some weights; it
is the dual point that has all mass of each example on its labeling. The last planes and
the current dual point span a simplex of dual points. The best of them is found by a small
quadratic program, and the iterate moves there: α becomes a convex combination of feasible
points, so that certificates stay true and the dual never falls. Corrective steps do the
same over the labelings at hand of one example; this does it for all examples at once.

A plane is taken between the best weights W so far and the w of the dual point. For rows,
W moves to the minimum of the objective on the segment, which needs no further product
with the features (OCAS: Franc and Sonnenburg, "Optimized cutting plane algorithm for
large-scale risk minimization", JMLR 10, 2009). For structures a line search would decode
all examples anew for each trial: the plane is taken a step s of the way from W to w, and
s is doubled where that improved W and halved where not. So each plane is a check of the
true gap, too.

Planes pay where weights are few, or where blocks get in each other's way: features that
are not centered or of unlike sizes, or a large C. Counts of passes decide, and no clock.
"""

import numpy as np

from sklearn_structsvm.solvers.blocks._joint_oracle import JointOracle
from sklearn_structsvm.solvers.blocks.acceleration import FIRST_LOOK
from sklearn_structsvm.solvers.blocks.forecast import passes_at_pace
from sklearn_structsvm.solvers.qp.bundle import Bundle

# Planes kept beside the dual point, which sums up those that were dropped: two for each
# weight, but from 30 to 250, and above 30 no more than this memory holds, in bytes. With
# fewer than weights, page blocks of raw columns take a thousand planes for a hundred.
FEWEST_KEPT = 30
MOST_KEPT = 250
KEPT_PER_WEIGHT = 2
KEPT_MEMORY = 2**28

# More weights than this are not mixed: the planes would take a quarter of a GB.
MOST_WEIGHTS = 2**17

# Of d weights, planes need about 20 + 1.5 d passes, and on most data far fewer than a
# thousand where d is large. Where d is small, and block steps are foreseen to need SURELY
# times as many after a few passes, planes begin at once.
PASSES = 20.0
PASSES_PER_WEIGHT = 1.5
MOST_PASSES = 1000.0
FEW = 64
SURELY = 3.0

# Otherwise the pace of block steps is looked at after so many passes, then after twice as
# many and so on. Planes begin where more are foreseen than planes need, at least MANY,
# and twice those made; and they end where they would need as many.
SECOND_LOOK = 16
MANY = 100.0

# The pace of planes is looked at after each PACE of them, but not before there are as
# many more than weights: until then they have hardly begun to describe the risk. A turn
# is at most twice as long as is needed, and the next one twice that.
PACE = 30
LONGEST_TURN = 2.0

# Without a gain of the dual from so many planes in a row, all but the first of them at w,
# blocks have their turn.
IDLE = 5

# A gap of nothing is never foreseen.
LEAST_TOL = 1e-10

# Where the plane of rows is taken, between the best weights and the dual point's.
CUT_AT = 0.1

# The least share of that way for structures.
SHORTEST_STEP = 0.1

# Of the search on a segment: how well its end is known, as a share, and trials.
SEARCH_RTOL = 1e-4
MOST_TRIALS = 40

# Patterns of clipped weights that are tried for the best mixture in a box.
MOST_PATTERNS = 20


class Planes:
    """Whose turn it is, and the moves of planes.

    Parameters
    ----------
    iterate : ExactAscent or BlockFrankWolfe
        Moved in place; at any moment a consistent dual point.
    forecast : GapForecast
        Of its block steps.
    accelerator : Acceleration or None
        Of its block steps; it rests while planes have their turn.
    n_threads : int
        For the oracle.
    is_possible : bool
        False: block steps have every turn.
    is_path : bool
        Whether there will be another λ, and another, so that planes pay for several.

    Attributes
    ----------
    has_turn : bool
        Whether the next pass is to be `make_pass`.
    """

    def __init__(
        self, iterate, forecast, accelerator=None, n_threads=1, is_possible=True,
        is_path=False,
    ):  # fmt: skip
        self.iterate, self.n_threads = iterate, n_threads
        self.n_weights = len(iterate.weights)
        self.is_possible = is_possible and self.n_weights <= MOST_WEIGHTS
        self.need = min(PASSES + PASSES_PER_WEIGHT * self.n_weights, MOST_PASSES)
        self.turn = LONGEST_TURN * max(self.need, MANY)
        self.least = 0.0 if is_path else max(self.need, MANY)
        self.cuts = self.bundle = None
        self.n_cuts, self.has_turn = 0, False
        self.restart(forecast, accelerator)

    def restart(self, forecast, accelerator):
        """Go on at another λ, with the same planes; they begin where they ended."""
        goes_on = self.n_cuts > 0 and self.has_turn
        self.forecast, self.accelerator = forecast, accelerator
        self.tol = max(forecast.tol, LEAST_TOL)
        self.has_turn = self.is_back = self.was_last = False
        self.due = SURELY * self.need if self.n_weights <= FEW else np.inf
        self.n_passes, self.next_look = 0, SECOND_LOOK
        self._forget_pace()
        if self.bundle is not None:
            self.bundle = self.bundle.at(self.iterate.lam)
        if goes_on:
            self.begin(np.inf)

    # ------------------------------------------------------------ whose turn it is

    def after_pass(self):
        """To be called after each pass of block steps, and of the accelerator."""
        if not self.is_possible:
            return
        self.n_passes += 1
        gap = self.forecast.ratio * self.iterate.known_gap
        self.least_gap = min(self.least_gap, gap)
        if self.n_passes == self.next_look // 2 or self.gap_before == np.inf:
            self.gap_before, self.since = self.least_gap, self.n_passes
        left = self._foreseen_at_first()
        if left < self.due:
            left = 0.0
        if self.n_passes >= self.next_look:
            left = max(left, self._foreseen())
        if left > 0.0:
            self.begin(left)

    def begin_at_last(self):
        """Begin because blocks have nothing left to do; False where that was tried."""
        if not self.is_possible or self.was_last:
            return False
        self.was_last = True
        self.begin(np.inf)
        return True

    def _foreseen_at_first(self):
        """Passes that accelerated block steps are expected to take, after a few."""
        if self.accelerator is None or self.n_passes < FIRST_LOOK:
            return 0.0
        foreseen = self.accelerator.foreseen
        ratio = 1.0 + self.iterate.kappa / self.iterate.lam
        return foreseen / np.sqrt(ratio) if np.isfinite(foreseen) else 0.0

    def _foreseen(self):
        """The same by their pace since the last look; 0 where that will do."""
        made = self.n_passes - self.since
        left = passes_at_pace(made, self.gap_before, self.least_gap, self.tol)
        self.gap_before, self.since = self.least_gap, self.n_passes
        self.next_look = 2 * self.n_passes
        return left if left >= max(self.least, 2.0 * self.n_passes) else 0.0

    def _forget_pace(self):
        """What blocks bring must show anew."""
        self.least_gap = self.gap_before = np.inf
        self.since = self.n_passes

    def begin(self, left):
        """Take the turn from block steps that would need `left` passes more."""
        self.has_turn = True
        self.left_of_blocks = left
        self.was_accelerated = self.iterate.kappa > 0.0
        first = self.iterate.best_weights
        first = self.iterate.weights.copy() if first is None else first
        if self.was_accelerated:
            self.iterate.set_kappa(0.0)
        # Steps have left their rounding in w, which planes would bring to light.
        self.iterate.rebuild_weights()
        if self.cuts is None:
            self.cuts = _cuts_of(self.iterate, self.n_threads)
        self.cuts.start(first)
        self.n_planes = self.n_idle = 0
        self.half_gap = np.inf

    def end(self):
        self.has_turn, self.is_back = False, True
        self.due, self.next_look = np.inf, 2 * self.n_passes
        self._forget_pace()
        if self.was_accelerated:
            self.accelerator.resume()

    # ----------------------------------------------------------------------- moves

    def make_pass(self):
        """Take a plane, and move to the best mixture."""
        iterate = self.iterate
        self.cuts.look(iterate.weights)
        iterate.best_weights = self.cuts.best
        place = self.n_cuts % self.cuts.kept
        self._add(place, *self.cuts.plane(place))
        self.n_cuts += 1
        if self._mix():
            self.n_idle = 0
        else:
            self.n_idle += 1
            # The plane does not cut w off, from which one at w itself will.
            self.cuts.step = 1.0
        self.n_planes += 1
        if self.n_idle >= IDLE or self._loses():
            self.end()

    def _loses(self):
        """Whether blocks would need fewer passes than planes at their pace."""
        if self.n_planes % PACE:
            return False
        before, self.half_gap = self.half_gap, self.gap()
        if self.n_planes >= self.turn:
            self.turn *= 2.0
            return True
        left = passes_at_pace(PACE, before, self.half_gap, self.tol)
        is_known = self.n_planes >= PACE + min(self.n_weights, MOST_KEPT)
        return is_known and np.isfinite(before) and left > self.left_of_blocks

    def gap(self):
        """Of the best weights and the dual point, after a plane."""
        return self.cuts.objective - self.iterate.dual_objective

    def _add(self, place, plane, offset):
        bundle = self.bundle
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
        return -iterate.lam * iterate.image_of_dual(), iterate.loss

    def _mix(self):
        """Move to the best mixture; False where there is nothing to gain."""
        iterate, bundle = self.iterate, self.bundle
        before = iterate.dual_objective
        bundle.replace(0, *self._point())
        bundle.solve()
        shares, u = bundle.alpha, bundle.weights
        if iterate.has_box:
            shares, u = self._mixture_in_box()
        losses = bundle.offsets
        value = iterate.dual_value_of(u, float(shares @ losses))
        if not value > before:
            return False
        self.cuts.mix(shares, u)
        return True

    def _mixture_in_box(self):
        """The same where w is clipped: the program anew for each pattern of clipping.

        For given weights that are clipped, the dual value is that of planes without
        them. Where its maximum has another pattern, the best point on the way to it is
        the next one.
        """
        iterate, lam = self.iterate, self.iterate.lam
        images, losses = self.bundle.planes / -lam, self.bundle.offsets
        shares = np.eye(len(losses))[0]
        for _ in range(MOST_PATTERNS):
            u = shares @ images
            clipped = iterate.clipped(u)
            is_free = clipped == u
            local = Bundle(len(u), lam, max_idle=np.inf, max_planes=self.cuts.kept + 1)
            fixed = np.where(is_free, 0.0, clipped)
            for image, loss in zip(images, losses, strict=True):
                local.add(-lam * image * is_free, loss - lam * image @ fixed)
            local.solve()
            change = local.alpha - shares
            along, gain = change @ images, change @ losses

            def slope(t, u=u, along=along, gain=gain):
                return lam * iterate.clipped(u + t * along) @ along - gain

            step = minimize_on_segment(slope)
            if step == 0.0:
                break
            shares = shares + step * change
        shares = np.maximum(shares, 0.0) / np.maximum(shares, 0.0).sum()
        return shares, shares @ images

    # ---------------------------------------------------------------- certificates

    def check(self):
        """What a check of `run_passes` returns, whoever has the turn."""
        self.is_back = False
        if not self.has_turn or self.n_planes == 0:
            return self.forecast.check()
        gap = self.gap()
        row = {
            "objective": self.cuts.objective,
            "dual_objective": self.cuts.objective - gap,
            "dual_gap": gap,
            "n_oracle_calls": self.iterate.n_oracle_calls,
        }
        return row, self.cuts.best.copy()

    def seems_done(self):
        """Whether a check is due: the gaps of blocks are stale after planes."""
        if self.has_turn:
            return self.n_planes > 0 and self.gap() <= self.forecast.tol
        return self.is_back or self.forecast.seems_done()


def how_many(iterate, n_bytes):
    """Planes that are kept, of so many bytes for the labeling of an example."""
    n_weights = len(iterate.weights)
    of_one = n_bytes * len(iterate.active_blocks) + 8 * n_weights
    most = min(KEPT_PER_WEIGHT * n_weights, MOST_KEPT, KEPT_MEMORY // of_one)
    return max(most, FEWEST_KEPT)


def _cuts_of(iterate, n_threads):
    kind = _SearchedCuts if hasattr(iterate, "hinge_along") else _DampedCuts
    return kind(iterate, n_threads)


class _SearchedCuts:
    """Planes of rows, beside the best point of a line search.

    Attributes
    ----------
    best : ndarray of shape (d,)
        W.
    objective : float
        There.
    """

    def __init__(self, ascent, n_threads):
        self.ascent, self.n_threads = ascent, n_threads
        self.kept = how_many(ascent, ascent.n_held_bytes)

    def start(self, weights):
        self.best, self.objective, self.step = weights.copy(), np.inf, CUT_AT
        self.at_best = self.ascent.scores(weights, self.n_threads)

    def look(self, w):
        """Search from W towards w."""
        ascent, lam = self.ascent, self.ascent.lam
        scores = ascent.scores(w, self.n_threads)
        change, along = w - self.best, scores - self.at_best
        product, norm = lam * self.best.dot(change), lam * change.dot(change)

        def slope(t):
            return ascent.hinge_along(self.at_best, along, t)[1] + product + t * norm

        step = minimize_on_segment(slope)
        self.best = self.best + step * change
        self.at_best += step * along
        hinge, _ = ascent.hinge_along(self.at_best, along, 0.0)
        self.objective = 0.5 * lam * self.best.dot(self.best) + hinge
        self.scores = self.at_best + self.step * (1.0 - step) * along
        self.step = CUT_AT

    def plane(self, j):
        """The plane there, held as number j."""
        return self.ascent.cut(self.scores, j, self.kept)

    def mix(self, shares, u):
        self.ascent.mix(np.ascontiguousarray(shares), u)


class _DampedCuts:
    """The same of structures, a step from the best point."""

    def __init__(self, iterate, n_threads):
        self.iterate, self.n_threads = iterate, n_threads
        self.kept = how_many(iterate, 1)
        self.joint = JointOracle(iterate.oracle, iterate.block_weights)

    def start(self, weights):
        self.best, self.objective, self.step = weights.copy(), np.inf, 1.0
        self.is_first = True

    def look(self, w):
        """Ask the oracle between W and w, and at W itself at first."""
        step = 0.0 if self.is_first else self.step
        self.is_first = False
        point = self.best + step * (w - self.best)
        hinge = self.joint.ask(point, self.n_threads)
        self.iterate.n_oracle_calls += len(self.iterate.active_blocks)
        objective = 0.5 * self.iterate.lam * point.dot(point) + hinge
        if objective < self.objective:
            self.best, self.objective = point, objective
            self.step = min(1.0, 2.0 * self.step)
        else:
            self.step = max(SHORTEST_STEP, 0.5 * self.step)

    def plane(self, j):
        self.iterate.hold_plane(j, *self.joint.answers, self.kept)
        return self.joint.plane()

    def mix(self, shares, u):
        self.iterate.mix(np.ascontiguousarray(shares), u)


def minimize_on_segment(slope):
    """Where a convex function on [0, 1] is least, or a little before.

    Parameters
    ----------
    slope : callable
        (step) -> its slope, or one of its slopes at a kink.

    Returns
    -------
    float
        The function is there no larger than at 0.

    Examples
    --------
    >>> from sklearn_structsvm.solvers.blocks.planes import minimize_on_segment
    >>> round(minimize_on_segment(lambda t: t - 0.25), 3)
    0.25
    """
    low, high = 0.0, 1.0
    at_low, at_high = slope(low), slope(high)
    if at_high <= 0.0:
        return 1.0
    if at_low >= 0.0:
        return 0.0
    for k in range(MOST_TRIALS):
        step = 0.5 * (low + high)
        if k % 2 == 0:
            step = low - at_low * (high - low) / (at_high - at_low)
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
