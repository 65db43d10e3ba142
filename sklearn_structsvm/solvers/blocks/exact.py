"""Exact steps for SVMs with one feature vector per example: what next, when to stop."""

from time import perf_counter

import numpy as np

from sklearn_structsvm.solvers.blocks import ascent as block_ascent
from sklearn_structsvm.solvers.blocks.acceleration import (
    LARGEST_RATIO_OF_EXACT_STEPS,
    Acceleration,
)
from sklearn_structsvm.solvers.blocks.ascent import Ascent, Limits, Passes
from sklearn_structsvm.solvers.loop import STEPS_PER_LOOK


def run_exact(ascent, *, sampling="gap", acceleration="auto", rng=None, **limits):
    """Minimize the objective of `run_bcfw` with steps that are optimal for their example.

    The dual coordinate descent of Hsieh et al. and, for several classes, of Keerthi et
    al.; `BCFWClassifier` lists the papers.

    `sampling` ({"gap", "uniform", "permuted"}): "gap": sweeps over the examples in
    random order. Examples with a small gap are skipped, for more sweeps the longer
    their gap has been small. `acceleration` ({"auto", True, False}): "auto": once many
    passes are foreseen. If too many are foreseen even then, planes take over; see
    `planes`. True: from the first pass on. `**limits` as for `Limits`. Returns a
    `SolverResult` with the better weights of two: those of the dual point, and their
    average over the sweeps, in which the last sweeps have the largest shares.
    """
    limits = Limits(**limits)
    accelerator = None
    if acceleration:
        accelerator = Acceleration(
            ascent,
            limits.tol,
            largest_ratio=LARGEST_RATIO_OF_EXACT_STEPS,
            at_once=acceleration is True,
        )
    passes = ExactPasses(ascent, sampling, rng)
    has_planes = acceleration == "auto"
    return Ascent(passes, limits, accelerator=accelerator, has_planes=has_planes).run()


class ExactPasses(Passes):
    """Exact steps.

    `sampling`, `rng` as for `run_exact`.
    """

    def __init__(self, iterate, sampling, rng=None):
        super().__init__(iterate)
        self.sampling, self.rng = sampling, np.random.default_rng(rng)

    def make(self, deadline, team, predicts_convergence):
        make_pass(self.iterate, self.sampling, self.rng, deadline, predicts_convergence)

    def certify(self, tol, n_threads):
        return certify(self.iterate, tol, n_threads)


def make_pass(ascent, sampling, rng, deadline=np.inf, predicts_convergence=lambda: False):
    """Make about as many steps as there are examples."""
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
        # The question after each sweep must be cheap to answer, and is not with a
        # proximal term.
        while ascent.n_steps < end and (ascent.kappa > 0.0 or not predicts_convergence()):
            sweep = ascent.draw_sweep(rng)
            if not _run(ascent, sweep, deadline):
                break
            ascent.end_sweep(sweep)
            ascent.update_average()


def _run(ascent, blocks, deadline):
    """Make steps on the blocks in their order. Returns False if the deadline passed."""
    for start in range(0, len(blocks), STEPS_PER_LOOK):
        ascent.run(blocks[start : start + STEPS_PER_LOOK])
        if perf_counter() >= deadline:
            return False
    return True


def certify(ascent, tol=0.0, n_threads=1):
    """Same as `ascent.certify`, with the average of w over the sweeps."""
    return block_ascent.certify(ascent, tol, n_threads, "primal")
