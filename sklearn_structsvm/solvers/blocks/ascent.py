"""The one driver of block ascent: passes, acceleration, cutting planes, certificates.

Block Frank-Wolfe, exact steps and conditional random fields differ only in their passes:
`FrankWolfePasses`, `ExactPasses` and `MarginalPasses`.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sklearn_structsvm.solvers.blocks.forecast import GapForecast
from sklearn_structsvm.solvers.blocks.parallel import make_team
from sklearn_structsvm.solvers.blocks.planes import Planes
from sklearn_structsvm.solvers.loop import History, certified, run_passes
from sklearn_structsvm.solvers.turns import Turns


@dataclass
class Limits:
    """Limits of block ascent, and the listeners to its passes.

    `max_iter`: passes of as many steps as there are blocks of positive weight.
    `max_time` or None: seconds.
    `gap_check_interval`: passes between two checks of the true gap. The gap is also
      checked at the end, and when the last known block gaps suggest that `tol` is
      reached.
    `n_threads`: for the gap checks, and for passes that threads can share: those in
      random order over enough blocks, if the oracle is thread-safe.
    `on_pass` or None: called after each pass with its number, the last row of the
      history (a dict) and whether the run ends here anyway; a true answer ends it.
    """

    tol: float = 1e-3
    max_iter: int = 1000
    max_time: float | None = None
    gap_check_interval: int = 10
    n_threads: int = 1
    on_pass: Callable[..., bool | None] | None = None
    history: History | None = field(default_factory=History)

    def __post_init__(self):
        if self.history is None:
            self.history = History()


class Passes:
    """Base of the three kinds of passes of block ascent.

    Attributes: `can_be_shared`: whether threads can share a pass. `mixes_cached`:
    whether calls of the oracle cost more than planes over the cached labelings.
    """

    can_be_shared = mixes_cached = False

    def __init__(self, iterate):
        self.iterate = iterate

    def make(self, deadline, team, predicts_convergence):
        """Make one pass, with the team if there is one; it stops at the deadline."""
        raise NotImplementedError

    def certify(self, tol, n_threads):
        """Arguments of `History.note`, for the iterate."""
        raise NotImplementedError

    def is_stalled(self, tol):
        """Whether no step can close the rest of the gap."""
        return False


class Ascent:
    """Ascent of the dual until the gap is within the tolerance: a turn, see `turns`.

    `has_planes`: whether cutting planes may take over from the steps; see `planes`.
    `planes` or None: the planes of earlier runs, which continue. `team`
    (DistributedBlocks or None): makes the passes, not this process.

    Attributes: `then`, `is_over`: another method may follow. By default, there is none.
    `method`: "planes", "accelerated" or "blocks": what made the last pass.
    """

    def __init__(
        self,
        passes,
        limits,
        *,
        accelerator=None,
        has_planes=False,
        planes=None,
        team=None,
    ):
        self.passes, self.limits, self.accelerator = passes, limits, accelerator
        self.iterate, self.team = passes.iterate, team
        # The gaps that remote parts have seen belong to weights of their own.
        self.is_remote = team is not None
        certify = partial(passes.certify, limits.tol, limits.n_threads)
        self.forecast = GapForecast(self.iterate, limits.tol, certify)
        if planes is not None:
            planes.restart(self.forecast, accelerator)
        else:
            planes = Planes(
                self.iterate, self.forecast, accelerator, limits.n_threads, has_planes,
                mixes_cached=passes.mixes_cached,
            )  # fmt: skip
        self.planes, self.method, self.is_final = planes, "blocks", False
        self.then, self.is_over = None, lambda: False

    def run(self):
        """Make passes. Returns a `SolverResult`."""
        limits, iterate, n_threads = self.limits, self.iterate, self.limits.n_threads
        turns = Turns(self, limits.history)
        may_be_worse = not self.is_remote and iterate.weights.any()

        def check(done):
            found = turns.check(done)
            if done and may_be_worse and found[0]["dual_gap"] > limits.tol:
                return _no_worse_than_zero(iterate, *found, n_threads=n_threads)
            return found

        is_shared = self.passes.can_be_shared and not self.is_remote
        workers = make_team(iterate, n_threads) if is_shared else nullcontext(self.team)
        with workers as self.team:
            return run_passes(
                turns.move,
                check,
                tol=limits.tol,
                max_iter=limits.max_iter,
                max_time=limits.max_time,
                gap_check_interval=limits.gap_check_interval,
                predicts_convergence=turns.predicts_convergence,
                on_pass=limits.on_pass,
                history=limits.history,
            )

    def move(self, deadline):
        planes, accelerator = self.planes, self.accelerator
        is_stalled = not planes.has_turn and self.passes.is_stalled(self.limits.tol)
        self.is_final = is_stalled and not planes.begin_at_last()
        if self.is_final:
            # This holds for w, but not for other weights, whose bounds are lower.
            self.iterate.keep_weights(None)
            return "stalled"
        if planes.has_turn:
            self.method = "planes"
            planes.make_pass()
            return None
        self.method = method_of(self.iterate)
        if accelerator is not None:
            accelerator.before_pass()
        self.passes.make(deadline, self.team, self.forecast.predicts_convergence)
        if accelerator is not None:
            accelerator.after_pass()
        planes.after_pass()
        return None

    def check(self, done=False):
        row, *others = self.planes.check()
        return row | {"is_final": self.is_final}, *others

    def predicts_convergence(self):
        return self.planes.predicts_convergence()


def method_of(iterate):
    """The name of passes of block steps."""
    return "accelerated" if iterate.kappa > 0.0 else "blocks"


def _no_worse_than_zero(iterate, row, weights, *others, n_threads=1):
    """Arguments of `History.note` for weights of zero, if these are better."""
    zero = iterate.clipped(np.zeros_like(weights))
    objective = _objective(iterate, zero, iterate.hinge(zero, n_threads=n_threads))
    if objective < row["objective"]:
        error = iterate.rounding.of_values(zero, objective)
        bound, n_calls = row["dual_objective"], row["n_oracle_calls"]
        row, weights = row | certified(objective, bound, error, n_calls), zero
    row["n_oracle_calls"] += len(iterate.active_blocks)
    return row, weights, *others


def certify(iterate, tol=0.0, n_threads=1, average=None):
    """The objectives and the true gap of w, or of better weights if there are any.

    With the dual objective D of the iterate, the gap of any weights is P(weights) - D. If
    the gap of w is at most `tol`, w is returned. Otherwise, the requested average or the
    best weights found with planes are returned.

    `iterate` as for `Passes`. `average` ({"dual", "primal"} or None): "dual": the
    average of the dual points, with its own gap, in place of w. (The average lags
    behind, and is not renewed after the last step.) With v = Aα and its w, and ℓ = Σ_i
    p_i ℓ_i the gap is Σ_i p_i H_i(w) - ℓ + λ ⟨v, w⟩, with or without box constraints
    (appendix H.3 of Osokin et al.). "primal": the average of the weights at the ends of
    sweeps, if it is better than all other candidates. Returns a row and weights.
    """
    rounding, is_sparse = iterate.rounding, iterate.l1_ratio > 0.0
    if is_sparse:
        # The bound is that of the dual point as it is, without errors of the steps.
        iterate.rebuild_weights()
    hinge, gap = iterate.check_gaps(n_threads)
    weights = iterate.weights.copy()
    error = rounding.of_values(weights, hinge, hinge - gap)
    gap += iterate.proximal_gap()
    if average == "dual" and gap > tol:
        v, loss = iterate.average_point()
        weights = iterate.weights_of(v)
        hinge = iterate.hinge(weights, n_threads=n_threads)
        gap = hinge - loss + iterate.lam * v.dot(weights)
        if iterate.minus_a is not None:
            gap -= weights.dot(iterate.minus_a)
        error = rounding.of_values(weights, hinge, loss)
    objective = _objective(iterate, weights, hinge)
    if is_sparse:
        bound = iterate.lower_bound() - rounding.of_values(weights, objective)
        iterate.best_bound = max(iterate.best_bound, bound)
        gap = objective - iterate.best_bound
    best, there = iterate.better_weights(objective, tol - gap, n_threads)
    if best is not None:
        gap -= objective - there
        weights, objective = best.copy(), there
    mean = iterate.average_weights if average == "primal" and gap > tol else None
    if mean is not None:
        there = _objective(iterate, mean, iterate.hinge(mean, n_threads=n_threads))
        if there < objective:
            gap -= objective - there
            weights, objective = mean.copy(), there
    error_there = rounding.of_values(weights, objective)
    if is_sparse:
        bound = iterate.best_bound
    else:
        bound = objective - gap
        # Without a plane that is subtracted, no objective is negative.
        least = 0.0 if bound >= 0.0 and iterate.minus_a is None else -np.inf
        bound = max(bound - error - error_there, least)
    return certified(objective, bound, error_there, iterate.n_oracle_calls), weights


def _objective(iterate, weights, hinge):
    return iterate.penalty(weights) + hinge
