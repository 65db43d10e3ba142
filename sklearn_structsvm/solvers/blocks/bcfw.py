"""Block-coordinate Frank-Wolfe for structural SVMs: what to sample, when to stop."""

from functools import partial
from time import perf_counter

import numpy as np

from sklearn_structsvm.solvers.accuracy import INNER_SHARE
from sklearn_structsvm.solvers.blocks import ascent
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks.acceleration import Acceleration, SparseAcceleration
from sklearn_structsvm.solvers.blocks.ascent import Ascent, Limits, Passes
from sklearn_structsvm.solvers.blocks.forecast import GapForecast
from sklearn_structsvm.solvers.blocks.mixture import MAX_INNER
from sklearn_structsvm.solvers.blocks.planes import Planes
from sklearn_structsvm.solvers.blocks.steps import STEPS
from sklearn_structsvm.solvers.loop import STEPS_PER_LOOK

# The criterion for a cache hit, max(F g_i, ν/n g), with the paper's values (section 3.3).
# The paper found the method insensitive to them.
CACHE_FACTOR = 0.25
CACHE_FLOOR = 0.01

# Labelings kept per block if there is a cache. Scoring one costs O(T). The paper keeps
# all of them, without a limit.
CACHE_SIZE = 50

# The oracle counts as expensive if it declares this many times the operations of scoring
# a cached labeling. An active set has a few labelings and a cache up to CACHE_SIZE; each
# pays beyond its threshold (section 5.1, "Recommendation").
EXPENSIVE_FOR_STEPS = 4.0
EXPENSIVE_FOR_CACHE = 2 * CACHE_SIZE

# A visit without the oracle does more than scoring, so that a call that declares 170
# times its operations takes eight times as long. Corrections that spare calls pay beyond
# this: chains of 60 and 100 labels, grids of four, and slack rescaling of OCR words (150
# to 470) take two to six times as long with them.
EXPENSIVE_FOR_CORRECTIONS = 1000.0

# Passes over the cached labelings between two passes that ask the oracle, for
# corrections. More passes would solve the wrong problem. If the oracle counts as
# expensive for corrections, up to `MAX_INNER` go on until the remaining gain is at most a
# share of the last known gap, after each of STAGES parts of a pass: with 30 to 300
# matchings this takes a third to a half of the calls that corrections after the pass
# alone need.
CACHED_PASSES = 2
STAGES = 10

# After this many passes the steps of different blocks hinder each other, and calls are
# spared whatever they cost. Slack rescaling of six labels with 20 raw counts then takes
# 310 passes instead of 1,660, and less time.
PATIENCE = 100


def start_bcfw(
    oracle,
    weights,
    lam,
    *,
    step="auto",
    cache="auto",
    cache_size=CACHE_SIZE,
    cache_factor=CACHE_FACTOR,
    cache_floor=CACHE_FLOOR,
    safeguard=True,
    average=False,
    bounds=None,
    l1_ratio=0.0,
    state=None,
):
    """The iterate that `run_bcfw` moves.

    `bounds` (lower, upper), each (d,), or None.
    `weights` (n_blocks,): non-negative block weights that sum to 1.
    `lam`: λ > 0.
    `step` ({"auto", "fw", "pairwise", "away", "corrective"}), `cache` ({"auto", True,
      False}): "auto" takes corrective steps where a call of the oracle is expensive by
      its `relative_cost`, or with an L1 penalty, and plain steps otherwise. With
      cache=True or an average, pairwise steps replace corrective ones, as in the paper,
      because corrective steps do not use a cache.
    `cache_size`: labelings kept for each block, besides those with dual mass.
    `cache_factor`, `cache_floor`: F and ν of the paper's cache-hit criterion: the best
      cached labeling is used if its gain is at least max(F g_i, ν/n g), where g_i is
      the block's gap at its last oracle call and g the total gap at the last check.
      With a large ν the oracle is called each time, and with F = ν = 0 hardly ever.
    `safeguard`: whether a plain step replaces a pairwise or away step if it increases
      the dual more. The method then inherits the convergence of plain steps (appendix G
      of the paper). False: Algorithms 3 and 4 as printed.
    `l1_ratio`: ρ of the elastic net, from 0 to below 1; see `_proximal`.
    `state` or None: what `BlockFrankWolfe.get_state` returned for the same examples.
      step="auto" then chooses only steps that the state allows, so that no dual mass is
      lost.
    ValueError if step="exact" (only `run_exact` has it), if step="corrective" has a
      cache, or if F or ν is negative or not finite.
    Returns the iterate, and the `step` and `cache` that "auto" was resolved to.
    """
    if step == "exact":
        raise ValueError(
            "step='exact' is for single fits by BCFWClassifier. For a regularization "
            "path, or to choose C along one, use step='auto'."
        )
    for name, value in (("cache_factor", cache_factor), ("cache_floor", cache_floor)):
        if not 0.0 <= value < np.inf:
            raise ValueError(f"{name} must be finite and at least 0; got {value!r}.")
    if step == "auto":
        # With an L1 penalty plain steps creep if labels compete and weights outnumber
        # examples: three classes take 55 passes in place of more than 1,000.
        expensive = l1_ratio > 0.0 or oracle.relative_cost >= EXPENSIVE_FOR_STEPS
        if state is not None:
            expensive = "atoms" in state
        expensive_step = "pairwise" if cache is True or average else "corrective"
        step = expensive_step if expensive else "fw"
    if cache == "auto":
        is_expensive = oracle.relative_cost >= EXPENSIVE_FOR_CACHE
        cache = STEPS[step].takes_cache and is_expensive
    if cache and not STEPS[step].takes_cache:
        raise ValueError(
            f"step={step!r} keeps the labelings it needs, and has no use for a cache: "
            "use cache='auto'."
        )
    lower, upper = (None, None) if bounds is None else bounds
    iterate = BlockFrankWolfe(
        oracle,
        weights,
        lam,
        step=step,
        cache_size=cache_size if cache else 0,
        cache_factor=cache_factor,
        cache_floor=cache_floor,
        safeguard=safeguard,
        average=average,
        l1_ratio=l1_ratio,
        lower=lower,
        upper=upper,
    )
    if state is not None:
        iterate.set_state(state)
    return iterate, step, cache


def run_bcfw(
    iterate,
    *,
    sampling="auto",
    acceleration="auto",
    at_once=False,
    algorithm="block",
    average=False,
    planes=None,
    team=None,
    rng=None,
    **limits,
):
    """Minimize λ/2 ||w||² + Σ_i p_i max_y [L_i(y) - ⟨w, φ(x_i, y_i) - φ(x_i, y)⟩].

    Algorithms 1 to 5, 8 and 9 of Osokin et al., in any combination, accelerated as by Lin
    et al.; `BCFWClassifier` lists the papers.

    `sampling` ({"auto", "gap", "uniform", "permuted"}): how the blocks of a pass are
      drawn. "auto": "permuted" if steps are or may become accelerated, and "gap"
      otherwise.
    `acceleration` ({"auto", True, False}): whether steps are accelerated. "auto": once
      many passes are foreseen. Not with sampling="gap", whose draws miss the blocks
      that a new center changes, with algorithm="batch", or with an average. If too many
      passes are foreseen even then, planes take over; see `planes`.
    `at_once`: whether "auto" accelerates from the first pass on.
    `algorithm` ({"block", "batch"}): "batch" makes one step on all blocks at once per
      pass.
    `average`: return the weighted average of the iterates (`iterate` must keep it),
      unless the iterate itself gets within `tol`.
    `planes` or None: the planes of earlier runs with the same iterate; see
      `make_planes`.
    `team` (DistributedBlocks or None): makes the passes, instead of this process or its
      threads.
    `**limits` as for `Limits`. The gap is also checked when the known block gaps sum to
      a tenth of the last true gap.
    Returns a `SolverResult`: "stalled" if no labeling that the oracle finds is violated
      by more than `tol`, but the oracle's upper bounds leave a larger gap.
    """
    limits = Limits(**limits)
    is_plain = algorithm == "block" and not average
    is_sparse = iterate.l1_ratio > 0.0
    has_planes = takes_planes(iterate, acceleration, algorithm, average)
    if acceleration == "auto":
        acceleration = sampling != "gap" and is_plain
    else:
        at_once = True
    accelerator = None
    if is_sparse and acceleration:
        accelerator = SparseAcceleration(iterate, looks_at_steps=False)
    elif is_sparse:
        iterate.set_kappa(0.0)
    elif acceleration:
        accelerator = make_acceleration(iterate, limits.tol, at_once)
    if sampling == "auto":
        sampling = "gap" if accelerator is None else "permuted"
    passes = FrankWolfePasses(iterate, sampling, rng, algorithm, average)
    return Ascent(
        passes,
        limits,
        accelerator=accelerator,
        has_planes=has_planes,
        planes=planes,
        team=team,
    ).run()


def takes_planes(iterate, acceleration="auto", algorithm="block", average=False):
    """Whether `run_bcfw` with these options may take cutting planes."""
    is_plain = algorithm == "block" and not average
    return acceleration == "auto" and is_plain


def make_planes(iterate, last_tol, n_threads=1, **options):
    """Planes for several runs of `run_bcfw` with the same options.

    The runs may differ in the plane that is subtracted from the objective, and in their
    tolerances, of which `last_tol` is the last.
    """
    forecast = GapForecast(iterate, 0.0, None)
    return Planes(
        iterate,
        forecast,
        n_threads=n_threads,
        is_possible=takes_planes(iterate, **options),
        mixes_cached=mixes_cached(iterate),
        last_tol=last_tol,
    )


class FrankWolfePasses(Passes):
    """Steps of block Frank-Wolfe, or one step of batch Frank-Wolfe.

    `rng`, `algorithm`, `average` as for `run_bcfw`.
    """

    def __init__(self, iterate, sampling, rng=None, algorithm="block", average=False):
        super().__init__(iterate)
        self.sampling, self.average = sampling, average
        self.rng = np.random.default_rng(rng)
        self.is_batch = algorithm == "batch"
        self.can_be_shared = sampling == "permuted" and not self.is_batch
        self.mixes_cached = mixes_cached(iterate)
        self.n_made = 0

    def make(self, deadline, team, predicts_convergence):
        if self.is_batch:
            self.iterate.run_batch()
            return
        self.n_made += 1
        spares_calls = self.n_made > PATIENCE or is_costly(self.iterate)
        make_corrected_pass(
            self.iterate, self.sampling, self.rng, deadline, team, spares_calls
        )

    def certify(self, tol, n_threads):
        return certify(self.iterate, self.average, tol, n_threads)

    def is_stalled(self, tol):
        """Whether the rest of the gap is due to the oracle's upper bounds."""
        excess = self.iterate.bound_excess
        if not excess > 0.0:
            return False
        gap = self.iterate.gap + self.iterate.proximal_gap()
        return gap - excess <= tol < gap


def make_pass(iterate, sampling, rng, deadline=np.inf, n_steps=None):
    """Make one pass, or `n_steps` steps; it stops at the deadline."""
    _make_steps(iterate, sampling, _draw(iterate, sampling, rng, n_steps), deadline)


def _draw(iterate, sampling, rng, n_steps=None):
    """Draw the blocks of a pass."""
    blocks = iterate.active_blocks
    n_steps = len(blocks) if n_steps is None else n_steps
    if sampling == "gap":
        return rng.random(n_steps)
    if sampling == "uniform":
        return blocks[rng.integers(len(blocks), size=n_steps)]
    return rng.permutation(blocks)[:n_steps]


def _make_steps(iterate, sampling, draws, deadline):
    run = iterate.run_by_gap if sampling == "gap" else iterate.run
    chunk = STEPS_PER_LOOK if iterate.oracle.thread_safe else 1
    for start in range(0, len(draws), chunk):
        run(draws[start : start + chunk])
        if perf_counter() >= deadline:
            return


def make_corrected_pass(
    iterate, sampling, rng, deadline=np.inf, team=None, spares_calls=None
):
    """One pass, and if steps are corrective, passes over the cached labelings.

    These follow the pass; if they are to spare calls of the oracle (by default if it is
    expensive), some also happen during it.
    """
    if spares_calls is None:
        spares_calls = is_costly(iterate)
    if team is not None:
        team.make_pass(rng, deadline)
        make_cached_passes(iterate, rng, deadline, team, spares_calls)
        return
    draws = _draw(iterate, sampling, rng)
    is_split = spares_calls and iterate.is_corrective
    n_parts = STAGES if is_split else 1
    for part in np.array_split(draws, n_parts):
        _make_steps(iterate, sampling, part, deadline)
        make_cached_passes(iterate, rng, deadline, None, spares_calls)
        if perf_counter() >= deadline:
            return


def is_costly(iterate):
    """Whether calls of the oracle dominate the cost."""
    if not iterate.is_corrective:
        return False
    return iterate.oracle.relative_cost >= EXPENSIVE_FOR_CORRECTIONS


def mixes_cached(iterate):
    """Whether planes over the cached labelings pay.

    They do if the oracle declares no cost, such as one in Python: each plane solves a
    program over up to 250 planes. On 20 grids of 8 labels (2,000 evaluations a call), 57
    passes with them take as long as 364 without. And they do not in a box, where each
    plane is solved for several patterns of clipping.
    """
    if not iterate.is_corrective or iterate.is_mapped:
        return False
    return iterate.oracle.relative_cost == np.inf


def make_acceleration(iterate, tol, at_once=False):
    """The acceleration that suits the iterate's steps."""
    # If cached passes follow each pass, one pass solves the proximal problem well.
    passes_per_step = 1 if iterate.is_corrective else 2
    return Acceleration(iterate, tol, passes_per_step=passes_per_step, at_once=at_once)


def make_cached_passes(iterate, rng, deadline=np.inf, team=None, spares_calls=False):
    """Correct over the cached labelings, if the iterate makes such corrections."""
    if not iterate.is_corrective:
        return
    n_passes, enough = CACHED_PASSES, 0.0
    if spares_calls:
        n_passes = MAX_INNER
        enough = INNER_SHARE * (iterate.estimated_gap - iterate.proximal_gap())
    make = partial(_make_cached_pass, iterate, iterate.movable_blocks)
    if team is not None:
        make = team.make_cached_pass
    for _ in range(n_passes):
        gap = make(rng, deadline)
        if perf_counter() >= deadline:
            return
        if gap <= enough:
            break


def _make_cached_pass(iterate, blocks, rng, deadline):
    # Steps over the cached labelings never call a structure in Python.
    order, gap = rng.permutation(blocks), 0.0
    for start in range(0, len(order), STEPS_PER_LOOK):
        gap += iterate.run_cached(order[start : start + STEPS_PER_LOOK])
        if perf_counter() >= deadline:
            break
    return gap


def certify(iterate, average=False, tol=0.0, n_threads=1):
    """Same as `ascent.certify`, and the most negative gap of an example at w.

    `average`: return the average of the dual points, unless w is within `tol`.
    """
    kind = "dual" if average else None
    row, weights = ascent.certify(iterate, tol, n_threads, kind)
    return row, weights, iterate.block_gaps.min()
