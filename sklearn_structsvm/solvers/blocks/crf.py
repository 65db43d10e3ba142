"""Conditional random fields by dual ascent: what to visit next, when to stop."""

from contextlib import nullcontext
from functools import partial

import numpy as np

from sklearn_structsvm.solvers.blocks import bcfw
from sklearn_structsvm.solvers.blocks.acceleration import Acceleration
from sklearn_structsvm.solvers.blocks.forecast import GapForecast
from sklearn_structsvm.solvers.blocks.parallel import make_team
from sklearn_structsvm.solvers.loop import run_passes


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
    on_pass=None,
    history=None,
):
    """Minimise λ/2 ||w||² - Σ_i p_i log p(y_i | x_i, w) by ascent of its dual.

    Parameters
    ----------
    ascent : MarginalAscent
        Moved in place; at any moment a consistent dual point.
    sampling : {"auto", "gap", "uniform", "permuted"}
        How the blocks of a pass are drawn. "auto": "permuted".
    acceleration : {"auto", True, False}
        "auto": once many passes are foreseen, but not with sampling="gap", whose draws do
        not reach the blocks that a new centre changes. True: from the first pass on.
    n_threads : int
        For the gap checks; and with sampling="permuted" for the steps, of an oracle that
        is thread-safe, where a pass has enough of them.
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

    def move(deadline):
        if team is None:
            bcfw.make_pass(ascent, sampling, rng, deadline)
        else:
            team.make_pass(rng, deadline)
        if accelerator is not None:
            accelerator.after_pass()

    is_permuted = sampling == "permuted"
    threads = make_team(ascent, n_threads) if is_permuted else nullcontext()
    with threads as team:
        return run_passes(
            move,
            lambda done: forecast.check(),
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            gap_check_interval=gap_check_interval,
            seems_done=forecast.seems_done,
            on_pass=on_pass,
            history=history,
        )


def certify(ascent, n_threads=1):
    """As `certify` of `solvers.blocks.bcfw`, the weights of the dual point found anew."""
    ascent.rebuild_weights()
    return bcfw.certify(ascent, n_threads=n_threads)
