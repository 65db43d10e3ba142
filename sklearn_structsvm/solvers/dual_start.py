"""A start of batch methods: passes of dual coordinate ascent, as long as they are fast."""

import numpy as np

from sklearn_structsvm.solvers.flat_ascent import Outlook, make_pass

# After so many passes, and after 2, 4, ... times as many, it is judged whether to go on:
# at first only whether there is any hope.
FIRST_LOOK = 2
HOPE = 20

# Passes that may be left. Where planes are not long, a bundle takes 30 to 130 steps of
# about the time of a pass.
MAX_PASSES_LEFT = 60


class DualStart:
    """Passes of exact steps on the dual of single examples, and what they leave.

    Parameters
    ----------
    ascent : FlatAscent
        Moved in place.
    tol : float
        The duality gap that is wanted.
    max_passes_left : float
        The start ends where more passes than this would be needed for `tol`.
    n_threads : int
        For the checks of the gap.
    """

    def __init__(self, ascent, tol, max_passes_left=MAX_PASSES_LEFT, n_threads=1):
        self.ascent, self.tol = ascent, tol
        self.max_passes_left, self.n_threads = max_passes_left, n_threads
        self.outlook = Outlook(ascent, tol)
        self.rng = np.random.default_rng(0)
        self.gaps = []

    def move(self, deadline):
        """One pass."""
        make_pass(self.ascent, "gap", self.rng, deadline, self.outlook)
        self.gaps.append(self.outlook.expected_gap)

    @property
    def is_slow(self):
        """Whether other methods are expected to need less time.

        Foreseen from the gaps, as if they went on to fall with the power of the number of
        passes with which they fell since half of them. At the end they fall faster.
        """
        n = len(self.gaps)
        # A power of two.
        if n < FIRST_LOOK or n & (n - 1):
            return False
        before, now = self.gaps[n // 2 - 1], self.gaps[n - 1]
        if not 0.0 < now < before or self.tol <= 0.0:
            return now > 0.0
        power = np.log2(before / now)
        left = n * ((now / self.tol) ** (1.0 / power) - 1.0)
        return left > self.max_passes_left * (HOPE if n == FIRST_LOOK else 1)

    @property
    def n_passes(self):
        """Passes over the examples, those of the checks included."""
        return -(-self.ascent.n_oracle_calls // len(self.ascent.active_blocks))

    def check(self):
        """A row of the history, and the weights: as of `flat_ascent.certify`."""
        row, weights = self.outlook.check(self.n_threads)
        return row | {"n_oracle_calls": self.n_passes}, weights

    def plane(self):
        """B, offset and Xᵀ B of the plane below the risk that the dual point is.

        Σ_i p_i Σ_y α_i(y) H_i(y), which is at most R(w) = Σ_i p_i max_y H_i(y), and
        whose minimum with the regulariser is the dual objective.
        """
        ascent = self.ascent
        state, p = ascent.get_state(), ascent.block_weights
        B = p[:, np.newaxis] * state["blocks"]
        return B, float(p @ state["loss"]), -ascent.lam * ascent.weights
