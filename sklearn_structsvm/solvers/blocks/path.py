"""The ε-approximate regularization path of a structural SVM."""

from dataclasses import dataclass, field, fields
from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.borders import as_floats, check_entries, check_shape
from sklearn_structsvm._utils.damaged import damage_refused
from sklearn_structsvm.solvers.blocks.bcfw import (
    certify,
    make_acceleration,
    make_corrected_pass,
    make_pass,
    mixes_cached,
)
from sklearn_structsvm.solvers.blocks.forecast import GapForecast
from sklearn_structsvm.solvers.blocks.parallel import make_team
from sklearn_structsvm.solvers.blocks.planes import Planes
from sklearn_structsvm.solvers.loop import History

# Steps are accelerated from the first breakpoint on that takes this many passes. Those of
# large λ take less than one.
PLAIN_PASSES = 3


@dataclass
class RegularizationPath:
    r"""Regularization path: weights that are ε-approximate for every λ.

    For :math:`\lambda` in :math:`[\lambda_{j+1}, \lambda_j]` the weights ``coefs[j]`` are
    ε-approximate. Above the first breakpoint, so are :math:`\lambda_0 / \lambda` times
    ``coefs[0]``. (Breakpoints are counted from 0 here and from 1 in the paper.)

    Read more in the :ref:`User Guide <guide-path>`.

    Attributes
    ----------
    lambdas : ndarray of shape (n_breakpoints,)
        Breakpoints, in decreasing order.
    coefs : ndarray of shape (n_breakpoints, d)
        Weight vector at each breakpoint.
    gaps : ndarray of shape (n_breakpoints,)
        Duality gap of each solution at its breakpoint. For a heuristic path, the sum of
        the last known block gaps.
    seconds, n_iter, n_oracle_calls : ndarray of shape (n_breakpoints,)
        Cumulative time, passes over the data, and calls of the max-oracle.
    eps : float
        Maximum suboptimality.
    complete : bool
        Whether the last solution is ε-approximate for all smaller values as well.
    end : float
        The smallest value that the path covers; 0 if it is complete.
    has_hidden : bool
        Whether labels were hidden. Then `gaps` are those of the last convex problem at
        each breakpoint, and nothing is said of other values.
    """

    lambdas: np.ndarray
    coefs: np.ndarray
    gaps: np.ndarray
    seconds: np.ndarray
    n_iter: np.ndarray
    n_oracle_calls: np.ndarray
    eps: float
    complete: bool
    has_hidden: bool = False

    def __setstate__(self, state):
        check_entries(type(self).__name__, state, *(own.name for own in fields(self)))
        vars(self).update(state)

    @property
    def end(self) -> float:
        with damage_refused(self):
            return 0.0 if self.complete else float(self._checked_lambdas()[-1])

    def _checked_lambdas(self):
        """`lambdas`; ValueError if a file has other ones than a path can have."""
        with damage_refused(self):
            lambdas = as_floats("lambdas", self.lambdas, "n_breakpoints")
            check_shape("coefs", self.coefs, max(len(lambdas), 1), "n_weights")
        return lambdas

    def coef(self, lam: float) -> np.ndarray:
        """Return ε-approximate weights for a regularization strength.

        Parameters
        ----------
        lam : float
            Regularization strength, positive and at least `end`.

        Returns
        -------
        ndarray of shape (d,)
            Weight vector.

        Raises
        ------
        ValueError
            If `lam` is not positive, or is below the end of an incomplete path. With
            hidden labels, if it is not one of `lambdas`.
        """
        if not lam > 0:
            raise ValueError(f"lam must be positive; got {lam!r}.")
        lambdas = self._checked_lambdas()
        if self.has_hidden:
            nearest = int(abs(np.log(lambdas / lam)).argmin())
            if not np.isclose(lambdas[nearest], lam, rtol=1e-9, atol=0.0):
                raise ValueError(
                    "With hidden labels a path has solutions only at its `lambdas`; got "
                    f"lam={lam!r}, next to {lambdas[nearest]:.6g}."
                )
            return self.coefs[nearest]
        if lam >= lambdas[0]:
            return lambdas[0] / lam * self.coefs[0]
        if lam < self.end:
            raise ValueError(
                f"The path ends at lambda={self.end:.6g}; got lam={lam!r}. Compute it "
                "with a smaller min_lambda or, if it was cut short, with larger limits."
            )
        # Decreasing, so the breakpoints that are at least `lam` come first.
        return self.coefs[np.count_nonzero(lambdas >= lam) - 1]


@dataclass
class _Steps:
    """How a path continues, and its budget of steps and seconds."""

    iterate: object
    sampling: str
    accelerates: bool
    rng: object
    n_threads: int
    team: object
    history: History
    max_iter: float
    deadline: float
    steps_to_refresh: float
    has_planes: bool
    refreshed: int = 0
    first_step: int = 0
    accelerator: object = None
    planes: object = None

    @property
    def n_passes(self):
        """Passes so far, as a fraction."""
        made = self.iterate.n_steps / len(self.iterate.active_blocks)
        return made if self.planes is None else made + self.planes.n_taken

    def certify(self):
        """Objectives and true gap, as `bcfw.certify` returns them."""
        return self.history.note(*certify(self.iterate, n_threads=self.n_threads))

    def solve(self, target, heuristic):
        """Make steps until the gap is at most `target`.

        Returns the limit that was hit, or None.
        """
        self.accelerator = make_acceleration(self.iterate, target)
        self.planes = self._planes(target)
        self.first_step = self.iterate.n_steps
        while True:
            stopped_by = self._move(target)
            if stopped_by is not None or heuristic:
                return stopped_by
            if self.certify()["dual_gap"] <= target:
                return None

    def _planes(self, target):
        """Planes for the next λ; those of the last λ remain valid."""
        forecast = GapForecast(self.iterate, target, self.certify)
        if self.planes is None:
            args = self.n_threads, self.has_planes, True, mixes_cached(self.iterate)
            return Planes(self.iterate, forecast, self.accelerator, *args)
        self.planes.restart(forecast, self.accelerator)
        return self.planes

    def _move(self, target):
        """Same as `solve`, for the known block gaps."""
        iterate = self.iterate
        n = len(iterate.active_blocks)
        planes, accelerator = self.planes, self.accelerator
        while (planes.gap() if planes.has_turn else iterate.estimated_gap) > target:
            if self.n_passes >= self.max_iter:
                return "max_iter"
            if perf_counter() >= self.deadline:
                return "max_time"
            is_slow = iterate.n_steps - self.first_step >= PLAIN_PASSES * n
            is_plain = iterate.kappa == 0.0 and not planes.has_turn
            if self.accelerates and is_slow and is_plain:
                accelerator.start()
            if planes.has_turn:
                planes.make_pass()
                if not planes.has_turn:
                    # The known gaps of the blocks, which guide the steps, belong to
                    # another w.
                    self.certify()
            elif iterate.kappa > 0.0:
                accelerator.before_pass()
                make_corrected_pass(
                    iterate, "permuted", self.rng, self.deadline, self.team
                )
                accelerator.after_pass()
                planes.after_pass()
            else:
                # Steps between two looks at the sum of the known gaps. Far from the
                # optimum of a small λ, a breakpoint takes several passes, and for a large
                # λ a small part of one.
                part = max(1, n // 10)
                make_pass(iterate, self.sampling, self.rng, self.deadline, part)
            if iterate.n_steps - self.refreshed >= self.steps_to_refresh:
                self.certify()
                self.refreshed = iterate.n_steps
        return None


@dataclass
class _Breakpoints:
    """The record of each breakpoint."""

    rows: list = field(default_factory=list)
    coefs: list = field(default_factory=list)
    started: float = field(default_factory=perf_counter)

    def add(self, iterate, gap, weights, n_passes):
        seconds = perf_counter() - self.started
        self.rows.append((iterate.lam, gap, seconds, n_passes, iterate.n_oracle_calls))
        self.coefs.append(weights)


def regularization_path(
    iterate,
    *,
    eps=0.1,
    kappa=None,
    heuristic=False,
    min_lambda=0.0,
    wanted=None,
    sampling="auto",
    acceleration="auto",
    max_iter=np.inf,
    max_time=None,
    n_threads=1,
    rng=None,
    on_breakpoint=None,
    history=None,
):
    """ε-approximate solutions for all λ (Algorithms 6 and 7 of Osokin et al.).

    The paper is that of `bcfw_path`. Its equation (13) corrects two slips of its
    pseudo-code: the test of line 8 should be "if Δ > τ" (a new breakpoint exists if
    ρ = 1 - τ/Δ > 0), and the loop ends with the λ just solved.

    `iterate` (BlockFrankWolfe): a new iterate, at w = 0. Its λ is overwritten.
    `kappa` (float in (0, 1)): each breakpoint is solved to a gap of `kappa * eps`.
      None: 0.9, or 0.7 for the heuristic path and where steps may be accelerated.
    `heuristic`: trust the known block gaps, which are updated every 10 passes, instead
      of checking the true gap at each breakpoint. This is faster, but has no guarantee.
    `min_lambda`: stop at the first breakpoint that is not above this value.
    `wanted`: the values of λ that need solutions, the smallest of which is
      `min_lambda`. From each breakpoint, the path jumps to the largest one that its
      solution does not cover. None: all values.
    `sampling` ({"auto", "gap", "uniform", "permuted"}): sampling of steps that are not
      accelerated. "auto": "gap".
    `acceleration` ({"auto", True, False}): whether steps are accelerated once a
      breakpoint takes several passes. "auto": yes, unless sampling="gap".
    `max_iter`, `max_time` or None: total numbers of passes and of seconds.
    `on_breakpoint` or None: called with the solved iterate at each breakpoint. Its time
      counts as time of the path.
    Returns `path`; `stopped_by` ("max_iter", "max_time" or None): the limit that ended
      the path before `min_lambda`.
    """
    rng = np.random.default_rng(rng)
    if kappa is None:
        kappa = default_kappa(sampling, acceleration, heuristic)
    points = _Breakpoints()
    history = History() if history is None else history
    n = len(iterate.active_blocks)
    accelerates = _may_accelerate(sampling, acceleration)
    with make_team(iterate, n_threads if accelerates else 1) as team:
        steps = _Steps(
            iterate,
            sampling="gap" if sampling == "auto" else sampling,
            accelerates=accelerates,
            rng=rng,
            n_threads=n_threads,
            team=team,
            history=history,
            max_iter=max_iter,
            deadline=np.inf if max_time is None else points.started + max_time,
            # Passes between two updates of all block gaps on the heuristic path. Gap
            # sampling without updates does not converge (the paper's figure 1).
            steps_to_refresh=10 * n if heuristic else np.inf,
            has_planes=accelerates and acceleration == "auto" and not heuristic,
        )
        bound = _initialize(iterate, kappa * eps, n_threads, history)
        stopped_by, complete = None, False
        while True:
            gap, weights = history.rows[-1]["dual_gap"], history.solution
            if heuristic:
                # The limits of the blocks, which start from these.
                iterate.check_means()
                gap, weights = iterate.estimated_gap, iterate.weights.copy()
            points.add(iterate, gap, weights, steps.n_passes)
            if on_breakpoint is not None:
                on_breakpoint(iterate)
            if bound == 0.0:
                complete = True
                break
            if iterate.lam <= min_lambda:
                break
            # Δ of Proposition 1: the rate at which the gap grows as mass returns to the
            # truth, at any weights; see `_proximal`.
            growth = iterate.dual_objective
            growth -= 0.5 * iterate.lam * weights.dot(weights)
            excess = eps - gap
            if growth <= excess:
                complete = True
                break
            covered = iterate.lam * (1.0 - excess / growth)
            if wanted is not None:
                covered = wanted[wanted < covered].max(initial=min_lambda)
            iterate.rescale(covered)
            history.forget_objectives()
            stopped_by = steps.solve(kappa * eps, heuristic)
            if stopped_by is not None:
                break
    columns = np.array(points.rows).T
    lambdas, gaps, seconds, n_iter, n_oracle_calls = columns
    path = RegularizationPath(
        lambdas=lambdas,
        coefs=np.array(points.coefs),
        gaps=gaps,
        seconds=seconds,
        n_iter=n_iter,
        n_oracle_calls=n_oracle_calls.astype(np.int64),
        eps=eps,
        complete=complete,
    )
    return path, stopped_by


def default_kappa(sampling="auto", acceleration="auto", heuristic=False):
    """The value of kappa=None."""
    is_smaller = heuristic or _may_accelerate(sampling, acceleration)
    # The paper's value (appendix K). Accelerated steps reach small gaps cheaply, and with
    # a smaller one there are fewer breakpoints.
    return 0.7 if is_smaller else 0.9


def _may_accelerate(sampling, acceleration):
    return acceleration is True or (acceleration == "auto" and sampling != "gap")


def first_breakpoint(iterate, eps, kappa=None):
    """The λ above which the path has a closed form. Moves `iterate` there."""
    kappa = default_kappa() if kappa is None else kappa
    _initialize(iterate, kappa * eps, 1, History())
    return iterate.lam


def _initialize(iterate, target, n_threads, history):
    """The largest breakpoint: all dual mass is on the loss's maximizers (Algorithm 6).

    Returns λ times the bound on the gap there. If this is 0, the features of the
    maximizers cancel out, and w = 0 is optimal for every λ, with this dual point.
    """
    iterate.jump_to_oracle()
    iterate.set_lambda(1.0)
    direction = iterate.weights.copy()
    with np.errstate(over="ignore"):
        bound = direction.dot(direction) + iterate.hinge(direction, 0.0, n_threads)
    if not np.isfinite(bound):
        raise ValueError(
            "The features of X are so large that squares of the weights overflow. Scale "
            "them down, for example with sklearn.preprocessing.MaxAbsScaler."
        )
    iterate.set_lambda(bound / target if bound > 0.0 else 1.0)
    history.note(*certify(iterate, n_threads=n_threads))
    return bound
