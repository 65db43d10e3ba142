"""Conditional random fields by dual ascent: what to visit next, when to stop."""

from contextlib import nullcontext
from functools import partial

import numpy as np

from sklearn_structsvm.solvers.blocks import bcfw
from sklearn_structsvm.solvers.blocks.acceleration import Acceleration
from sklearn_structsvm.solvers.blocks.forecast import GapForecast, passes_left
from sklearn_structsvm.solvers.blocks.parallel import make_team
from sklearn_structsvm.solvers.loop import History, run_passes

# Passes after which ascent may be found slow, and those that it may then still need. What
# follows takes 20 to 100 passes for most problems, columns of very different sizes
# included, and is seldom better where ascent takes fewer than 40.
FIRST_LOOK = 20
MAX_PASSES_LEFT = 30


def run_crf(
    ascent,
    *,
    sampling="auto",
    acceleration="auto",
    tol=1e-3,
    max_iter=1000,
    max_time=None,
    gap_check_interval=10,
    n_threads=1,
    rng=None,
    successor=None,
    on_pass=None,
    history=None,
):
    """Minimize λ/2 ||w||² - Σ_i p_i log p(y_i | x_i, w) by ascent of its dual.

    Parameters
    ----------
    ascent : MarginalAscent
        Moved in place; at any moment a consistent dual point.
    sampling : {"auto", "gap", "uniform", "permuted"}
        How the blocks of a pass are drawn. "auto": "permuted".
    acceleration : {"auto", True, False}
        "auto": once many passes are foreseen, but not with sampling="gap", whose draws do
        not reach the blocks that a new center changes. True: from the first pass on.
    n_threads : int
        For the gap checks; and with sampling="permuted" for the steps, of an oracle that
        is thread-safe, where a pass has enough of them.
    successor : callable or None
        (row) -> `Successor`, which goes on where ascent is foreseen to take many passes
        more; called at most once, with the last row of the history.
    tol, max_iter, max_time, rng, on_pass, history : as for `run_bcfw`
    gap_check_interval : int
        Passes between two checks of the true gap. One is also made where the gaps as
        last seen let expect that `tol` is reached, and at the end.

    Returns
    -------
    SolverResult
        Oracle calls are sums over the labelings of an example.
    """
    rng = np.random.default_rng(rng)
    forecast = GapForecast(ascent, tol, partial(certify, ascent, n_threads))
    if acceleration == "auto":
        acceleration = sampling != "gap" and "auto"
    accelerator = None
    if acceleration:
        accelerator = Acceleration(ascent, tol, at_once=acceleration is True)
    if sampling == "auto":
        sampling = "permuted"

    history = History() if history is None else history
    next_steps = None

    def is_slow():
        return (
            successor is not None
            and history.n_iter > FIRST_LOOK
            and history.rows[-1]["n_iter"] == history.n_iter - 1
            and passes_left(history.rows, tol) > MAX_PASSES_LEFT
        )

    def move(deadline):
        nonlocal next_steps
        if next_steps is None and is_slow():
            next_steps = successor(history.rows[-1])
        if next_steps is not None:
            return next_steps.move(deadline)
        if team is None:
            bcfw.make_pass(ascent, sampling, rng, deadline)
        else:
            team.make_pass(rng, deadline)
        if accelerator is not None:
            accelerator.after_pass()
        return None

    is_permuted = sampling == "permuted"
    threads = make_team(ascent, n_threads) if is_permuted else nullcontext()
    with threads as team:
        return run_passes(
            move,
            lambda done: (forecast if next_steps is None else next_steps).check(),
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            gap_check_interval=gap_check_interval,
            seems_done=lambda: next_steps is not None or forecast.seems_done(),
            on_pass=on_pass,
            history=history,
        )


def certify(ascent, n_threads=1):
    """As `certify` of `solvers.blocks.bcfw`, the weights of the dual point found anew.

    With the size of the terms that cancel, as well, where a gap is below zero.
    """
    ascent.rebuild_weights()
    row, weights, lowest_gap = bcfw.certify(ascent, n_threads=n_threads)
    is_negative = min(lowest_gap, row["dual_gap"]) < 0.0
    return row, weights, lowest_gap, ascent.size_of_terms() if is_negative else 0.0


class Successor:
    """Steps of another solver, after ascent that was slow.

    Until they are better, its weights are what is returned, and its dual objective bounds
    the optimum still.

    Parameters
    ----------
    steps : LBFGSSteps or NewtonSteps
    row : dict
        Of the history, about the last dual point.
    w : ndarray of shape (d,)
        The weights that the row is about.
    """

    def __init__(self, steps, row, w):
        self.steps = steps
        self.row, self.w = row, w

    def move(self, deadline):
        return None if self.steps.move(deadline) else "stalled"

    def check(self):
        row, before = self.steps.row(), self.row
        is_better = row["objective"] <= before["objective"]
        least = max(row["dual_objective"], before["dual_objective"])
        objective = row["objective"] if is_better else before["objective"]
        gap = max(objective - least, 0.0)
        return {
            "objective": objective,
            "dual_objective": least,
            # A squared gradient has no difference's rounding.
            "dual_gap": min(gap, row["dual_gap"]) if is_better else gap,
            "n_oracle_calls": before["n_oracle_calls"] + row["n_oracle_calls"],
        }, self.steps.weights if is_better else self.w

    @property
    def weights(self):
        return self.check()[1]

    def rebuild_weights(self):
        """There is nothing else than weights."""

    def get_state(self):
        """As of `MarginalAscent`, which starts from weights alone as well."""
        return {"weights": np.array(self.weights)}
