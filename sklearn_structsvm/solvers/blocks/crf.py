"""Conditional random fields by dual ascent: what to visit next, when to stop."""

import numpy as np

from sklearn_structsvm.solvers.blocks import bcfw
from sklearn_structsvm.solvers.blocks.acceleration import (
    MarginalAcceleration,
    SparseAcceleration,
)
from sklearn_structsvm.solvers.blocks.ascent import Limits, Passes, run_ascent
from sklearn_structsvm.solvers.blocks.feasible_shares import FeasibleShares
from sklearn_structsvm.solvers.blocks.forecast import passes_left
from sklearn_structsvm.solvers.loop import certified

# Passes after which ascent may count as slow, and the number of further passes that it
# must then be expected to need. Its successor takes 20 to 100 passes for most problems,
# even with columns of very different scales, and is seldom better if ascent needs fewer
# than 40.
SLOW_AFTER = 20
SLOW_IF_LEFT = 30

# The same if the successor is OWL-QN, which takes hundreds of passes itself and is better
# only if ascent makes next to no progress.
STUCK_AFTER = 200
STUCK_IF_LEFT = 1000


def run_crf(
    ascent,
    *,
    sampling="auto",
    acceleration="auto",
    rng=None,
    successor=None,
    is_last_resort=False,
    least_left=0.0,
    take_back=None,
    **limits,
):
    """Minimize Ω(w) - Σ_i p_i log p(y_i | x_i, w) by ascent of its dual.

    Ω(w) is λ/2 ||w||², or the penalty of the elastic net; see `_proximal`.

    Parameters
    ----------
    ascent : MarginalAscent
        Modified in place. It is a consistent dual point at any moment.
    sampling : {"auto", "gap", "uniform", "permuted"}
        How the blocks of a pass are drawn. "auto": "permuted".
    acceleration : {"auto", True, False}
        "auto": once many passes are foreseen, but not with sampling="gap", whose draws
        miss the blocks that a new center changes. True: from the first pass on, as always
        with an L1 penalty. A pure L1 penalty does not allow False.
    rng : numpy.random.Generator
    successor : callable or None
        (row) -> `Successor`, which takes over if ascent is expected to take many more
        passes. Called at most once, with the last row of the history.
    is_last_resort : bool
        Whether it takes over only if ascent makes next to no progress.
    least_left : float
        It does not take over if ascent is expected to need fewer passes than this.
    take_back : callable or None
        (`Successor`) -> None, if ascent goes on once the successor makes no progress.
    **limits : as for `Limits`

    Returns
    -------
    SolverResult
        Each oracle call is a sum over the labelings of an example.
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
    later = None
    if successor is not None:
        later = LaterSteps(successor, is_last_resort, least_left, take_back)
    return run_ascent(passes, limits, accelerator=accelerator, successor=later)


class MarginalPasses(Passes):
    """Steps on the marginals of one example each.

    Parameters
    ----------
    iterate : MarginalAscent
    sampling : {"gap", "uniform", "permuted"}
    rng : as for `run_crf`
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


class LaterSteps:
    """A solver that takes over once ascent counts as slow.

    Parameters
    ----------
    make : callable
        (row) -> `Successor`.
    is_last_resort, least_left, take_back : as for `run_crf`
    """

    def __init__(self, make, is_last_resort=False, least_left=0.0, take_back=None):
        self.make, self.take_back = make, take_back
        self.steps, self.is_over = None, False
        self.after, self.if_left = SLOW_AFTER, SLOW_IF_LEFT
        if is_last_resort:
            self.after, self.if_left = STUCK_AFTER, STUCK_IF_LEFT
        self.if_left = max(self.if_left, least_left)

    @property
    def has_begun(self):
        return self.steps is not None

    def has_turn(self, history, tol):
        """Whether it makes the next pass; it begins if ascent is slow."""
        if self.has_begun:
            self._end_if_idle(history)
        elif not self.is_over and self._is_slow(history, tol):
            self.begun_at, self.gap = history.n_iter, history.rows[-1]["dual_gap"]
            self.steps = self.make(history.rows[-1])
        return self.has_begun

    def _end_if_idle(self, history):
        """End if as many passes as those of ascent have not even halved the gap."""
        made = history.n_iter - self.begun_at
        if made >= self.begun_at and history.rows[-1]["dual_gap"] > 0.5 * self.gap:
            self._end()

    def _end(self):
        """Let ascent go on. Returns whether it does."""
        if self.take_back is None:
            return False
        self.take_back(self.steps)
        self.steps, self.is_over = None, True
        return True

    def _is_slow(self, history, tol):
        return (
            history.n_iter > self.after
            and history.rows[-1]["n_iter"] == history.n_iter - 1
            and passes_left(history.rows, tol) > self.if_left
        )

    def move(self, deadline):
        status = self.steps.move(deadline)
        return None if status == "stalled" and self._end() else status

    def check(self):
        return self.steps.check()


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


class Successor:
    """Steps of another solver, after ascent that was slow.

    Until they find better weights, those of ascent are returned, and its dual objective
    remains the bound on the optimum.

    Parameters
    ----------
    steps : LBFGSSteps or NewtonSteps
    row : dict
        The row of the history that describes the last dual point.
    w : ndarray of shape (d,)
        The weights that the row describes.
    then : callable or None
        (w) -> the steps that go on from there once these make no progress.
    """

    # No weights are better than `weights`.
    best_weights = None

    def __init__(self, steps, row, w, then=None):
        self.steps, self.then = steps, then
        self.row, self.w = row, w

    def move(self, deadline):
        if self.steps.move(deadline):
            return None
        if self.then is None:
            return "stalled"
        self.row, self.w = self.check()
        self.steps, self.then = self.then(self.w), None
        return self.move(deadline)

    def check(self):
        row, before = self.steps.row(), self.row
        is_better = row["objective"] <= before["objective"]
        least = max(row["dual_objective"], before["dual_objective"])
        objective = row["objective"] if is_better else before["objective"]
        # That of the other weights is known to the history.
        error = row["rounding"] if is_better else 0.0
        n_calls = before["n_oracle_calls"] + row["n_oracle_calls"]
        row = certified(objective, least, error, n_calls)
        return row, self.steps.weights if is_better else self.w

    @property
    def weights(self):
        return self.check()[1]

    def rebuild_weights(self):
        """Do nothing: this method has only weights."""

    def get_state(self):
        """Same as for `MarginalAscent`, which also starts from weights alone."""
        return {"weights": np.array(self.weights)}
