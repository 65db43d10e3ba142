"""A start of batch methods: passes of exact steps, as long as they are fast."""

from functools import partial

import numpy as np

from sklearn_structsvm.solvers.blocks.exact import certify, make_pass
from sklearn_structsvm.solvers.blocks.forecast import GapForecast

# It is judged after this many passes, and after each later one, whether to go on.
FIRST_LOOK = 2


class DualStart:
    """Passes of exact steps on the dual of single examples, and what they leave.

    Parameters
    ----------
    ascent : ExactAscent
        Moved in place.
    tol : float
        The duality gap that is wanted.
    max_passes_left : float
        The start ends where more passes than this would be needed for `tol`.
    n_threads : int
        For the checks of the gap.
    """

    def __init__(self, ascent, tol=0.0, max_passes_left=np.inf, n_threads=1):
        self.ascent, self.tol = ascent, tol
        self.max_passes_left = max_passes_left
        self.forecast = GapForecast(ascent, tol, partial(certify, ascent, tol, n_threads))
        self.rng = np.random.default_rng(0)
        self.n_made = 0

    def move(self, deadline):
        """One pass."""
        make_pass(self.ascent, "gap", self.rng, deadline, self.forecast)
        self.n_made += 1

    @property
    def is_slow(self):
        """Whether other methods are expected to need less time.

        The dual objective first grows steadily, and what it lacks then falls by a factor
        in as many passes as it would have taken to arrive at that pace. After two or
        three passes over the data of the benchmarks, at eight pairs of a set and λ that
        were looked at, this was within a factor of three of the passes then needed.
        """
        ascent, gap = self.ascent, self.ascent.known_gap
        if self.n_made < FIRST_LOOK or gap <= self.tol:
            return False
        dual = ascent.dual_objective
        if dual <= 0.0 or self.tol <= 0.0:
            return True
        pace = self.n_made * (dual + gap) / dual
        return 0.5 * pace * np.log(gap / self.tol) > self.max_passes_left

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
        return row, weights

    def plane(self):
        """B, offset and Xᵀ B of the plane below the risk that the dual point is.

        Σ_i p_i Σ_y α_i(y) H_i(y), which is at most R(w) = Σ_i p_i max_y H_i(y), and
        whose minimum with the regulariser is the dual objective.
        """
        ascent = self.ascent
        state, p = ascent.get_state(), ascent.block_weights
        B = p[:, np.newaxis] * state["blocks"]
        return B, float(p @ state["loss"]), -ascent.lam * ascent.weights
