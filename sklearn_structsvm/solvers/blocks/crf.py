"""Conditional random fields by dual ascent: what to visit next, when to stop."""

import numpy as np

from sklearn_structsvm.solvers.blocks import bcfw
from sklearn_structsvm.solvers.blocks.acceleration import (
    MarginalAcceleration,
    SparseAcceleration,
)
from sklearn_structsvm.solvers.blocks.ascent import Ascent, Limits, Passes
from sklearn_structsvm.solvers.blocks.feasible_shares import FeasibleShares
from sklearn_structsvm.solvers.blocks.forecast import FIRST_FORECAST, passes_left
from sklearn_structsvm.solvers.loop import certified

# Ascent is slow if it is then expected to need this many further passes. Its successor
# takes 20 to 100 passes for most problems, even with columns of very different scales,
# and is seldom better if ascent needs fewer than 40.
SLOW_IF_LEFT = 30

# After so many passes, the successor is slow by the same rule: what follows it takes
# longer, but not many passes.
STUCK_AFTER = 200


def run_crf(
    ascent,
    *,
    sampling="auto",
    acceleration="auto",
    rng=None,
    successor=None,
    least_left=0.0,
    take_back=None,
    **limits,
):
    """Minimize Ω(w) - Σ_i p_i log p(y_i | x_i, w) by ascent of its dual.

    Ω(w) is λ/2 ||w||², or the penalty of the elastic net; see `_proximal`.

    `sampling` ({"auto", "gap", "uniform", "permuted"}): how the blocks of a pass are
      drawn. "auto": "permuted".
    `acceleration` ({"auto", True, False}): "auto": once many passes are foreseen, but
      not with sampling="gap", whose draws miss the blocks that a new center changes.
      True: from the first pass on, as always with an L1 penalty. A pure L1 penalty does
      not allow False.
    `successor` or None: (row, w) -> `Turn`, which takes over if ascent is expected to
      take many more passes. Called at most once, with a row of the history and its
      weights.
    `least_left`: it does not take over if ascent is expected to need fewer passes than
      this.
    `take_back`: () -> None, called when ascent goes on because the successor makes no
      progress. None: it never does.
    `**limits` as for `Limits`.
    Returns a `SolverResult`. An oracle call sums over the labelings of an example.
    """
    limits = Limits(**limits)
    if acceleration == "auto":
        acceleration = (sampling != "gap" or ascent.l1_ratio == 1.0) and "auto"
    accelerator = None
    if acceleration and ascent.l1_ratio > 0.0:
        accelerator = SparseAcceleration(ascent)
    elif ascent.l1_ratio > 0.0:
        ascent.set_kappa(0.0)
    elif acceleration:
        at_once = acceleration is True
        accelerator = MarginalAcceleration(ascent, limits.tol, at_once=at_once)
    passes = MarginalPasses(ascent, "permuted" if sampling == "auto" else sampling, rng)
    turn = Ascent(passes, limits, accelerator=accelerator)
    if successor is None:
        return turn.run()
    slow = Slow(limits, FIRST_FORECAST, max(SLOW_IF_LEFT, least_left))

    def go_on(row, w):
        ascent.take_result(row, w.copy())
        turn.then, turn.is_over = None, lambda: False
        take_back()
        return turn

    def hand_over(row, w):
        follower = successor(row, w)
        if follower.then is not None:
            follower.is_over = Slow(limits, STUCK_AFTER, SLOW_IF_LEFT).ends_ascent
        elif take_back is not None:
            follower.then, follower.is_over = go_on, slow.ends_others
        return follower

    turn.then, turn.is_over = hand_over, slow.ends_ascent
    return turn.run()


class MarginalPasses(Passes):
    """Steps on the marginals of one example each.

    `sampling` and `rng` as for `run_crf`.
    """

    def __init__(self, iterate, sampling, rng=None):
        super().__init__(iterate)
        self.sampling, self.rng = sampling, np.random.default_rng(rng)
        self.shares = FeasibleShares(iterate)
        self.can_be_shared = sampling == "permuted"

    def make(self, deadline, team, predicts_convergence):
        if team is None:
            bcfw.make_pass(self.iterate, self.sampling, self.rng, deadline)
        else:
            team.make_pass(self.rng, deadline)

    def certify(self, tol, n_threads):
        return certify(self.iterate, n_threads, tol, self.shares)


class Slow:
    """Rules by which another method takes over from ascent, and ascent from it again.

    `after`, `if_left`: passes after which it may count as slow, and the number of further
    ones that it must then be expected to need.
    """

    def __init__(self, limits, after, if_left):
        self.history, self.tol = limits.history, limits.tol
        self.after, self.if_left = after, if_left

    def ends_ascent(self):
        """Whether many more passes of ascent are expected, by a check just made."""
        history = self.history
        if not (
            history.n_iter > self.after
            and history.rows[-1]["n_iter"] == history.n_iter - 1
            and passes_left(history.rows, self.tol) > self.if_left
        ):
            return False
        self.begun_at, self.gap = history.n_iter, history.rows[-1]["dual_gap"]
        return True

    def ends_others(self):
        """Whether as many passes as those of ascent have not even halved the gap."""
        made = self.history.n_iter - self.begun_at
        return (
            made >= self.begun_at and self.history.rows[-1]["dual_gap"] > 0.5 * self.gap
        )


def certify(ascent, n_threads=1, tol=0.0, shares=None):
    """Same as `bcfw.certify`, after the weights of the dual point are rebuilt.

    The size of the terms that cancel is returned as well. With an L1 penalty, dual points
    may be far from feasible, so both objectives are the best so far. With `shares`, one
    near the dual point may give a better bound; see `feasible_shares`.
    """
    ascent.rebuild_weights()
    row, weights, least = bcfw.certify(ascent, n_threads=n_threads)
    if ascent.l1_ratio > 0.0:
        ascent.keep_weights(weights.copy(), row["objective"])
        objective, error = row["objective"], row["rounding"]
        if shares is not None and objective - ascent.best_bound > tol:
            bound = shares.bound(objective, tol) - error
            ascent.best_bound = max(ascent.best_bound, bound)
        row = certified(objective, ascent.best_bound, error, row["n_oracle_calls"])
    return row, weights, least, ascent.size_of_terms
