"""Cutting planes that take over from block steps: training does not stall on raw data.

Block steps hinder each other if there are few weights, if features are not centered or
have different scales, or if C is large, because all examples then change the same few
numbers. Passes that add one plane each do not have this problem (see `mixture`). Once
planes find nothing more, block steps go on. Counts of passes decide this, never a clock.
"""

import numpy as np

from sklearn_structsvm.solvers.accuracy import SHARE_LEFT
from sklearn_structsvm.solvers.blocks.forecast import passes_at_pace
from sklearn_structsvm.solvers.blocks.mixture import (
    IDLE,
    KEPT_MEMORY,
    MAX_INNER,
    MOST_KEPT,
    PlaneMixture,
    passes_needed,
)
from sklearn_structsvm.solvers.loop import certified

# More weights than this are not mixed: the planes would not fit.
MOST_WEIGHTS = KEPT_MEMORY // (8 * MOST_KEPT)

# With an L1 penalty each mixture takes several programs, and the products of all planes
# for each.
MOST_WEIGHTS_OF_L1 = 2**11

# After a few passes, the number of accelerated block steps still needed is estimated. If
# it is SURELY times what planes need, planes begin: at once if there are few weights, and
# otherwise only if the gap has not fallen since the start, because such forecasts are too
# high for separable data. Forecasts for plain steps are far too high (ten times on scaled
# rows at C=10) and are not used.
FEW_WEIGHTS = 64
SURELY = 2.0

# Otherwise, the pace of block steps is first examined after this many passes, or twice as
# many on a path, and then each time the number of passes has doubled. Planes begin if
# block steps are expected to need SURELY times as many passes as planes; below that,
# neither is far behind the other. With more than FEW_WEIGHTS, they must also be expected
# to need twice the passes already made. On a path, planes serve several values of λ: they
# begin if the forecast is twice the passes made.
SECOND_LOOK = 8


class Planes:
    """Alternates between block steps and planes, and makes the moves of planes.

    `accelerator` (Acceleration or None): accelerates the block steps. It pauses while
      planes have their turn.
    `is_possible`: if False, it is always the turn of block steps.
    `is_path`: whether more values of λ will follow, so that planes serve several.
    `mixes_cached`: whether up to `MAX_INNER` planes over the cached labelings follow each
      plane.
    `last_tol`: the tolerance of the last of several runs, to which all of them lead: it
      decides whether planes pay, even in runs with a larger one. None: that of each run.

    Attributes: `has_turn`: whether `make_pass` is to make the next pass.
    """

    def __init__(
        self, iterate, forecast, accelerator=None, n_threads=1, is_possible=True,
        is_path=False, mixes_cached=False, last_tol=None,
    ):  # fmt: skip
        self.iterate, self.n_threads = iterate, n_threads
        self.n_weights = len(iterate.weights)
        self.mixes_cached, self.last_tol = mixes_cached, last_tol
        most = MOST_WEIGHTS if iterate.l1_ratio == 0.0 else MOST_WEIGHTS_OF_L1
        self.is_possible = is_possible and self.n_weights <= most
        self.need = passes_needed(self.n_weights)
        self.is_path = is_path
        self.second_look = 2 * SECOND_LOOK if is_path else SECOND_LOOK
        self.mixture, self.has_turn, self.n_taken = None, False, 0
        self.certified = self.first_gap = np.inf
        self.restart(forecast, accelerator)

    def restart(self, forecast, accelerator):
        """Continue with the same planes, which begin where they ended.

        λ, or the plane that is subtracted from the objective, has changed.
        """
        goes_on = self.has_turn
        self.forecast, self.accelerator = forecast, accelerator
        tol = forecast.tol if self.last_tol is None else self.last_tol
        # A gap of 0 is never predicted.
        self.tol = max(tol, 1e-10)
        self.has_turn = self.is_back = self.was_last = False
        self.due = SURELY * self.need
        self.n_passes, self.next_look = 0, self.second_look
        self._forget_pace()
        if goes_on:
            self.begin()

    # ------------------------------------------------------------ whose turn it is

    def after_pass(self):
        """Call this after each pass of block steps and of the accelerator."""
        if not self.is_possible:
            return
        self.n_passes += 1
        gap = self.forecast.ratio * self.iterate.estimated_gap
        if self.n_taken and np.isfinite(self.certified):
            # The gaps of the blocks belong to another w than the best one.
            gap = self.certified
        elif gap <= self.tol:
            # If that is true, a check ends the run at once. It may be of a few blocks.
            gap = self.first_gap
        self.least_gap = min(self.least_gap, gap)
        if self.n_passes == self.next_look // 2 or self.gap_before == np.inf:
            self.gap_before, self.since = self.least_gap, self.n_passes
        is_due = self._foreseen_at_first() >= self.due
        if self.n_passes >= self.next_look:
            is_due = self._is_slow() or is_due
        if is_due:
            self.begin()

    def begin_at_last(self):
        """Begin because blocks have nothing left to do.

        Returns False if that was tried before.
        """
        if not self.is_possible or self.was_last:
            return False
        self.was_last = True
        self.begin()
        return True

    def _foreseen_at_first(self):
        """The forecast of accelerated passes after the first few."""
        accelerator, iterate = self.accelerator, self.iterate
        is_known = accelerator is not None and accelerator.foreseen is not None
        if self.due == np.inf or not is_known or iterate.kappa == 0.0:
            return 0.0
        if self.n_weights > FEW_WEIGHTS and iterate.estimated_gap < self.first_gap:
            self.due = np.inf
            return 0.0
        foreseen = accelerator.foreseen
        ratio = 1.0 + iterate.kappa / iterate.lam
        return foreseen / np.sqrt(ratio) if np.isfinite(foreseen) else 0.0

    def _is_slow(self):
        """Whether blocks need too many passes at their last pace."""
        made = self.n_passes - self.since
        left = passes_at_pace(made, self.gap_before, self.least_gap, self.tol)
        self.gap_before, self.since = self.least_gap, self.n_passes
        self.next_look = 2 * self.n_passes
        return left >= self._worth_it()

    def _worth_it(self):
        """The number of foreseen block passes above which planes pay."""
        twice = 2.0 * self.n_passes
        if self.is_path:
            return twice
        least = SURELY * self.need
        return least if self.n_weights <= FEW_WEIGHTS else max(least, twice)

    def _forget_pace(self):
        """Forget the pace of block steps, which differs after planes."""
        self.least_gap = self.gap_before = np.inf
        self.since = self.n_passes

    def begin(self):
        """Take the turn from block steps, until planes have nothing left to do."""
        self.has_turn = True
        self.was_accelerated = self.iterate.kappa > 0.0
        first = self.iterate.best_weights
        first = self.iterate.weights.copy() if first is None else first
        if self.was_accelerated:
            self.iterate.set_kappa(0.0)
        # Steps have left rounding errors in w, which planes would reveal.
        self.iterate.rebuild_weights()
        if self.mixture is None:
            self.mixture = PlaneMixture(self.iterate, self.n_threads)
        self.mixture.start(first)
        self.n_planes = self.n_idle = 0

    def end(self):
        self.has_turn, self.is_back = False, True
        self.due, self.next_look = np.inf, 2 * self.n_passes
        self._forget_pace()
        if self.was_accelerated:
            self.accelerator.resume()

    # ----------------------------------------------------------------------- moves

    def make_pass(self):
        """Add a plane, and move to the best mixture."""
        self.n_idle = 0 if self.mixture.take() else self.n_idle + 1
        for _ in range(MAX_INNER if self.mixes_cached else 0):
            if self.mixture.take_cached() <= SHARE_LEFT * self.gap():
                break
        self.iterate.keep_weights(self.mixture.best, self.mixture.objective)
        self.n_planes += 1
        self.n_taken += 1
        if self.n_idle >= IDLE:
            self.end()

    def gap(self):
        """The gap between the best weights and the dual point, after a plane."""
        return self.mixture.gap()

    # ---------------------------------------------------------------- certificates

    def check(self):
        """The check of `run_passes`, both for block steps and for planes."""
        self.is_back = False
        if not self.has_turn or self.n_planes == 0:
            row, *others = self.forecast.check()
            self.certified = row["dual_gap"]
            self.first_gap = min(self.first_gap, self.certified)
            if self.iterate.l1_ratio > 0.0:
                # This is the best so far, and block gaps are of other weights. After a
                # warm start they may all but close while this does not.
                self.least_gap = max(self.least_gap, self.certified)
            return row, *others
        gap = self.certified = self.gap()
        iterate, objective, best = self.iterate, self.mixture.objective, self.mixture.best
        rounding = iterate.rounding
        error = rounding.of_values(best, objective)
        bound = objective - gap - error
        if iterate.l1_ratio == 0.0:
            # With an L1 penalty, it is lowered already.
            bound -= rounding.of_values(iterate.weights, bound, iterate.loss)
        row = certified(objective, bound, error, iterate.n_oracle_calls)
        return row, best.copy()

    def predicts_convergence(self):
        """Whether a check is due, as the block gaps are out of date after planes."""
        if self.has_turn:
            return self.n_planes > 0 and self.gap() <= self.forecast.tol
        return self.is_back or self.forecast.predicts_convergence()
