"""Exact steps for SVMs with one feature vector per example: what next, when to stop."""

from functools import partial
from time import perf_counter

import numpy as np

from sklearn_structsvm.solvers.blocks.acceleration import (
    LARGEST_RATIO_OF_EXACT_STEPS,
    Acceleration,
)
from sklearn_structsvm.solvers.blocks.forecast import GapForecast
from sklearn_structsvm.solvers.blocks.planes import Planes
from sklearn_structsvm.solvers.loop import CHUNK, run_passes


def run_exact(
    ascent,
    *,
    sampling="gap",
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
    """Minimize what `run_bcfw` does, each step being the best for its example.

    The dual coordinate descent of [1]_ and, for several classes, of [2]_.

    Parameters
    ----------
    ascent : ExactAscent
        Moved in place; at any moment a consistent dual point.
    sampling : {"gap", "uniform", "permuted"}
        "gap": sweeps over the examples in random order, which leave out those whose gap
        has been small, the more sweeps the longer it has.
    acceleration : {"auto", True, False}
        "auto": once many passes are foreseen, for as long as that brings more than plain
        steps; where still too many are, planes have turns, see `planes`. True: from the
        first pass on.
    tol, max_iter, max_time, n_threads, rng, on_pass, history : as for `run_bcfw`
    gap_check_interval : int
        Passes between two checks of the true gap. One is also made where the gaps as
        last seen let expect that `tol` is reached, and at the end.

    Returns
    -------
    SolverResult
        With the weights of the better objective of two: those of the dual point, and
        their average over the sweeps, most of it over the last ones.

    References
    ----------
    .. [1] Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method
       for large-scale linear SVM", ICML 2008.
    .. [2] Keerthi, Sundararajan, Chang, Hsieh, Lin, "A sequential dual method for large
       scale multi-class linear SVMs", KDD 2008.
    """
    rng = np.random.default_rng(rng)
    forecast = GapForecast(ascent, tol, partial(certify, ascent, tol, n_threads))
    accelerator = None
    if acceleration:
        accelerator = Acceleration(
            ascent,
            tol,
            largest_ratio=LARGEST_RATIO_OF_EXACT_STEPS,
            on_trial=True,
            at_once=acceleration is True,
        )

    has_planes = acceleration == "auto"
    planes = Planes(ascent, forecast, accelerator, n_threads, has_planes)

    def move(deadline):
        if planes.has_turn:
            planes.make_pass()
            return
        make_pass(ascent, sampling, rng, deadline, forecast.seems_done)
        if accelerator is not None:
            accelerator.after_pass()
        planes.after_pass()

    return run_passes(
        move,
        lambda done: planes.check(),
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        gap_check_interval=gap_check_interval,
        seems_done=planes.seems_done,
        on_pass=on_pass,
        history=history,
    )


def make_pass(ascent, sampling, rng, deadline=np.inf, seems_done=lambda: False):
    """As many steps as there are examples, or a few more."""
    blocks = ascent.active_blocks
    n = len(blocks)
    if sampling == "uniform":
        _run(ascent, blocks[rng.integers(n, size=n)], deadline)
        ascent.update_average()
    elif sampling == "permuted":
        _run(ascent, rng.permutation(blocks), deadline)
        ascent.update_average()
    else:
        end = ascent.n_steps + n
        # What is asked after each sweep is to be cheap, and is not with a proximal term.
        while ascent.n_steps < end and (ascent.kappa > 0.0 or not seems_done()):
            sweep = ascent.draw_sweep(rng)
            if not _run(ascent, sweep, deadline):
                break
            ascent.end_sweep(sweep)
            ascent.update_average()


def _run(ascent, blocks, deadline):
    """Steps on the blocks in their order; False where the deadline cut them short."""
    for start in range(0, len(blocks), CHUNK):
        ascent.run(blocks[start : start + CHUNK])
        if perf_counter() >= deadline:
            return False
    return True


def certify(ascent, tol=0.0, n_threads=1):
    """Objectives and true gap of w, or of other weights that are better.

    These are its average, and the best weights that planes have led to.

    With the dual objective D of the iterate, the gap of any weights is P(weights) - D.
    Where that of w is at most `tol`, w is the answer.

    Returns
    -------
    row : dict
        As of `solvers.blocks.bcfw.certify`.
    weights : ndarray of shape (d,)
    """
    hinge, gap = ascent.check_gaps(n_threads)
    gap += ascent.proximal_gap()
    weights = ascent.weights
    objective = _objective(ascent, weights, hinge)
    average = ascent.average_weights
    best, there = ascent.better_weights(objective, tol - gap, n_threads)
    if best is not None:
        gap -= objective - there
        weights, objective = best, there
    if gap > tol and average is not None:
        there = _objective(ascent, average, ascent.hinge(average, n_threads))
        if there < objective:
            gap -= objective - there
            weights, objective = average, there
    row = {
        "objective": objective,
        "dual_objective": objective - gap,
        "dual_gap": gap,
        "n_oracle_calls": ascent.n_oracle_calls,
    }
    return row, weights.copy()


def _objective(ascent, weights, hinge):
    return 0.5 * ascent.lam * weights.dot(weights) + hinge
