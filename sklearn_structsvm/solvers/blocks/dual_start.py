"""A start of batch methods: exact steps, accelerated, as long as they are fast."""

from functools import partial

import numpy as np

from sklearn_structsvm.solvers.blocks.acceleration import (
    FIRST_LOOK,
    LARGEST_RATIO_OF_EXACT_STEPS,
    RATIO,
    Acceleration,
)
from sklearn_structsvm.solvers.blocks.exact import certify, make_pass
from sklearn_structsvm.solvers.blocks.forecast import GapForecast

# Accelerated passes that take the place of F foreseen plain ones, as a multiple of √F:
# from .5 to 2.2 where F was 50 to 9,000, on census, letter and satellite data.
ACCELERATED = 2.0

# Of parts elsewhere, the gap after t rounds, t at least this, falls as 1/t or faster: of
# digits, census and text data in 2 to 8 parts, it took a quarter of the rounds that this
# foresees, or more of them.
FIRST_LOOK_AT_ROUNDS = 20

# Rounds that take as long as an iteration of what comes after, which sends as many
# questions.
ROUNDS_PER_PASS = 4

# What the start may take of the passes that it was granted, before it ends all the same.
OVERTIME = 2.0


class DualStart:
    """Passes of exact steps on the dual of single examples, and what they leave.

    Parameters
    ----------
    ascent : ExactAscent, or DistributedBlocks of such ones
        Moved in place.
    tol : float
        The duality gap that is wanted.
    max_passes_left : float
        The start ends if more passes than this would be needed for `tol`.
    n_threads : int
        For the checks of the gap.
    """

    def __init__(self, ascent, tol=0.0, max_passes_left=np.inf, n_threads=1):
        self.ascent, self.tol = ascent, tol
        self.max_passes_left = max_passes_left
        self.is_remote = getattr(ascent, "is_remote", False)
        self.forecast = GapForecast(ascent, tol, partial(certify, ascent, tol, n_threads))
        self.rng = np.random.default_rng(0)
        self.n_made = self.n_at_check = 0
        self.gap = np.inf
        # Rounds of parts need it at once, and do not solve a proximal problem as well.
        largest = RATIO if self.is_remote else LARGEST_RATIO_OF_EXACT_STEPS
        self.acceleration = Acceleration(
            ascent,
            tol,
            largest_ratio=largest,
            on_trial=not self.is_remote,
            at_once=self.is_remote,
        )

    def move(self, deadline):
        """One pass."""
        if self.is_remote:
            self.ascent.make_pass(self.rng, deadline)
        else:
            make_pass(
                self.ascent, "gap", self.rng, deadline, self.forecast.predicts_convergence
            )
        self.n_made += 1
        self.acceleration.after_pass()

    @property
    def is_slow(self):
        """Whether other methods are expected to need less time.

        By the passes that are foreseen, plain or accelerated, whichever are fewer.
        """
        if self.is_remote:
            left = self.n_at_check * (self.gap - self.tol)
            is_known = self.n_at_check >= FIRST_LOOK_AT_ROUNDS
            return is_known and left > ROUNDS_PER_PASS * self.max_passes_left * self.tol
        if self.n_made < FIRST_LOOK or self.ascent.estimated_gap <= self.tol:
            return False
        if self.n_made > OVERTIME * self.max_passes_left:
            return True
        # What was foreseen last, before there was any acceleration.
        foreseen = self.acceleration.foreseen
        return min(foreseen, ACCELERATED * np.sqrt(foreseen)) > self.max_passes_left

    @property
    def n_passes(self):
        """Passes over the examples, those of the checks included."""
        return -(-self.ascent.n_oracle_calls // len(self.ascent.active_blocks))

    def check(self):
        """A row of the history, and the weights: as of `exact.certify`."""
        row, weights = self.forecast.check()
        row["n_oracle_calls"] = self.n_passes
        # That of the methods that follow is just this difference.
        row["dual_gap"] = row["objective"] - row["dual_objective"]
        self.n_at_check, self.gap = self.n_made, row["dual_gap"]
        return row, weights

    def plane(self):
        """The plane below the risk that the dual point is: see `ExactAscent.plane`."""
        return self.ascent.plane()

    def release(self):
        """Let workers forget the dual point."""
        if self.is_remote:
            self.ascent.workers.release()
