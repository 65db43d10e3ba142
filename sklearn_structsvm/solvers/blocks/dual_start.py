"""A start for batch methods: exact, accelerated steps, as long as they are fast."""

from functools import partial

import numpy as np

from sklearn_structsvm.solvers.blocks.acceleration import (
    FIRST_LOOK,
    LARGEST_RATIO_OF_EXACT_STEPS,
    RATIO,
    Acceleration,
)
from sklearn_structsvm.solvers.blocks.ascent import method_of
from sklearn_structsvm.solvers.blocks.exact import certify, make_pass
from sklearn_structsvm.solvers.blocks.forecast import FIRST_FORECAST, GapForecast

# The number of accelerated passes that replace F foreseen plain ones, as a multiple of
# √F. It was .5 to 2.2 for F from 50 to 9,000 on census, letter and satellite data.
ACCELERATED = 2.0

# The number of rounds that take as long as one iteration of the method that follows,
# which sends as many requests.
ROUNDS_PER_PASS = 4


class DualStart:
    """Passes of exact steps on the dual of single examples, and their result.

    `ascent` (ExactAscent, or DistributedBlocks of such ones): modified in place. `tol`:
    the desired duality gap. `max_passes_left`: the start ends if more passes than this
    would be needed for `tol`. `n_threads`: for the checks of the gap.

    Attributes: `then` or None: what follows it; see `turns`.
    """

    then = None

    def __init__(self, ascent, tol=0.0, max_passes_left=np.inf, n_threads=1):
        self.ascent, self.tol = ascent, tol
        self.max_passes_left = max_passes_left
        self.is_remote = ascent.is_remote
        self.forecast = GapForecast(ascent, tol, partial(certify, ascent, tol, n_threads))
        self.rng = np.random.default_rng(0)
        self.n_made = self.n_at_check = 0
        self.gap = np.inf
        # Rounds of remote parts need it from the start, and do not solve a proximal
        # problem as well.
        largest = RATIO if self.is_remote else LARGEST_RATIO_OF_EXACT_STEPS
        self.acceleration = Acceleration(
            ascent,
            tol,
            largest_ratio=largest,
            at_once=self.is_remote,
        )

    def is_over(self):
        """Whether it ends before a pass: never, but it may stall after one."""
        return False

    def predicts_convergence(self):
        return self.forecast.predicts_convergence()

    def move(self, deadline):
        """One pass. Returns "stalled" if another method is expected to be faster."""
        self.method = method_of(self.ascent)
        self.acceleration.before_pass()
        if self.is_remote:
            self.ascent.make_pass(self.rng, deadline)
        else:
            make_pass(
                self.ascent, "gap", self.rng, deadline, self.forecast.predicts_convergence
            )
        self.n_made += 1
        self.acceleration.after_pass()
        return "stalled" if self.is_slow else None

    @property
    def is_slow(self):
        """Whether another method is expected to need less time.

        This depends on the passes foreseen, plain or accelerated, whichever is less.
        """
        if self.is_remote:
            left = self.n_at_check * (self.gap - self.tol)
            is_known = self.n_at_check >= FIRST_FORECAST
            return is_known and left > ROUNDS_PER_PASS * self.max_passes_left * self.tol
        if self.n_made < FIRST_LOOK or self.ascent.estimated_gap <= self.tol:
            return False
        # The start ends in any case once it has taken this share of the passes it was
        # granted.
        if self.n_made > 2.0 * self.max_passes_left:
            return True
        # The last forecast from before the acceleration.
        foreseen = self.acceleration.foreseen
        return min(foreseen, ACCELERATED * np.sqrt(foreseen)) > self.max_passes_left

    @property
    def n_passes(self):
        """Passes over the examples, including those of the checks."""
        return -(-self.ascent.n_oracle_calls // len(self.ascent.active_blocks))

    def check(self, done=False):
        """A row of the history and the weights, as `exact.certify` returns them."""
        row, weights = self.forecast.check()
        row["n_oracle_calls"] = self.n_passes
        self.n_at_check, self.gap = self.n_made, row["dual_gap"]
        return row, weights

    def plane(self):
        """The plane below the risk that the dual point gives; see `ExactAscent.plane`."""
        return self.ascent.plane()

    def release(self):
        """Allow the workers to forget the dual point."""
        if self.is_remote:
            self.ascent.workers.release()
