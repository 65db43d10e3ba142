"""Quasi-Newton methods for nonsmooth convex objectives: subBFGS and subLBFGS."""

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.blas import daxpy

from sklearn_structsvm.solvers._lbfgs import LimitedMemory
from sklearn_structsvm.solvers.bcfw import History, run_passes
from sklearn_structsvm.solvers.bundle import MAX_PLANES
from sklearn_structsvm.solvers.stabilized import StabilizedBundle, StabilizedSteps

# The paper's settings: pairs kept, and the accuracy of direction finding. It names no
# k_max. One or two directions do as a rule; at a start where all labels are tied, ones of
# descent appear after about as many as there are labels, and 100 of them made the steps
# after it no better than 20.
BUFFER = 15
DIRECTION_TOL = 1e-5
MAX_DIRECTIONS = 20

# So many times k_max are tried before none of descent is taken to exist.
PATIENCE = 10

# ⟨s, y⟩ / ⟨y, y⟩ of a pair is at least this, so that B stays positive definite.
MIN_CURVATURE = 1e-8

# Constants of the inexact line search: those of the paper's toy example.
SUFFICIENT_DECREASE = 1e-3
CURVATURE = 0.8
MAX_TRIALS = 100

# The hybrid goes over to bundle steps where the objective has fallen by less than this
# share of itself per iteration over the last ones. Whether it fell by more tells fast
# early progress (letter: 40 iterations) from none (a9a: 10 iterations).
HANDOVER_DECREASE = 1e-3
HANDOVER_WINDOW = 5

# Iterations between two solutions of the bundle's program while its planes serve the
# certificate alone.
GAP_CHECK_INTERVAL = 10

# Scores are updated with each step; they are formed anew after so many.
REFRESH_SCORES = 50

# Planes may take this many bytes.
PLANE_MEMORY = 2**29

# Bundle steps in a row that change neither objective: what is left is rounding.
MAX_UNCHANGED = 20


class Objective(ABC):
    """A convex function J at a point w that moves, as subBFGS sees it.

    Attributes
    ----------
    weights : ndarray of shape (d,)
        w.
    value : float
    gradient : ndarray of shape (d,)
        A subgradient at w.
    """

    @abstractmethod
    def slope(self, direction):
        """sup ⟨g, p⟩ over the subgradients g at w, for p = `direction`."""

    @abstractmethod
    def steepest(self, direction):
        """A subgradient at w that attains `slope`."""

    @abstractmethod
    def exact_step(self, direction):
        """argmin J(w + η p) over η >= 0."""

    @abstractmethod
    def probe(self, direction, step):
        """J(w + η p), and sup ⟨g, p⟩ over the subgradients g there."""

    @abstractmethod
    def move(self, direction, step):
        """Go to w + η p and take the subgradient that is steepest along p there.

        Any other could equal the last one, as in the paper's toy example, and then
        nothing is learnt of the curvature: ⟨s, y⟩ would be zero.
        """


class RegularizedRisk(Objective):
    """J(w) = λ/2 ||w||² + R(w).

    Parameters
    ----------
    risk : Risk
    lam : float
        λ > 0.
    w0 : ndarray of shape (d,) or None
        Zero by default.

    Attributes
    ----------
    plane : ndarray of shape (d,)
    offset : float
        The plane below R whose subgradient of J is `gradient`.
    n_planes : int
        Planes asked for at points of their own.
    """

    def __init__(self, risk, lam, w0=None):
        self.risk, self.lam = risk, lam
        self.weights = np.zeros(risk.n_weights) if w0 is None else np.array(w0, float)
        self.scores = risk.scores(self.weights)
        self.along = np.empty_like(self.scores)
        self.direction = None
        self.n_planes = self.n_sums = 0
        # Where all labels are tied, as many are at zero, one at random for each example is
        # near the mean of the subgradients, and the first of all labels far from it.
        rng = np.random.default_rng(0)
        self._touch(rng.random(self.scores.shape))

    def _touch(self, along):
        self.coef, self.offset = self.risk.plane(self.scores, along)
        self.plane = self.risk.gradient(self.coef)
        self.n_planes += 1
        w = self.weights
        self.gradient = self.lam * w + self.plane
        # The plane touches R here: its height is R(w).
        self.value = float(
            0.5 * self.lam * w @ w + self.plane @ w + self.offset
        )

    def _look(self, direction):
        """Scores of the direction, and of its products with itself and with w."""
        if direction is not self.direction:
            self.risk.scores(direction, out=self.along)
            self.direction = direction
            self.wp = float(self.weights @ direction)
            self.pp = float(direction @ direction)

    def slope(self, direction):
        self._look(direction)
        self.tied, _ = self.risk.plane(self.scores, self.along)
        return self.lam * self.wp + float(np.vdot(self.tied, self.along))

    def steepest(self, direction):
        self.slope(direction)
        # Few examples are tied, and rows of zeros are skipped.
        return self.gradient + self.risk.gradient(self.tied - self.coef)

    def exact_step(self, direction):
        self._look(direction)
        return self.risk.line_search(
            self.scores, self.along, self.wp, self.pp, self.lam
        )

    def probe(self, direction, step):
        self._look(direction)
        scores = self.scores + step * self.along
        coef, offset = self.risk.plane(scores, self.along)
        w = self.weights
        square = w @ w + step * (2.0 * self.wp + step * self.pp)
        value = 0.5 * self.lam * square + offset + float(np.vdot(coef, scores))
        slope = self.lam * (self.wp + step * self.pp) + float(
            np.vdot(coef, self.along)
        )
        return float(value), float(slope)

    def move(self, direction, step):
        self._look(direction)
        self._step(step)
        self._touch(self.along)

    def _step(self, step):
        # A new array: what the history holds stays as it was.
        self.weights = self.weights + step * self.direction
        self.direction = None
        self.n_sums += 1
        if self.n_sums >= REFRESH_SCORES:
            self.refresh()
        else:
            daxpy(self.along.ravel(), self.scores.ravel(), a=step)

    def refresh(self):
        """Form the scores anew from w."""
        self.risk.scores(self.weights, out=self.scores)
        self.n_sums = 0

    def move_towards(self, target):
        """Minimise over the line to the target; returns the step, 1 at the target.

        Only the value is renewed: `plane` and `gradient` stay those of before.
        """
        direction = target - self.weights
        self._look(direction)
        step = self.exact_step(direction)
        self._step(step)
        w = self.weights
        self.value = float(0.5 * self.lam * w @ w) + self.risk.value(self.scores)
        return step

    def cut(self, step):
        """The plane a further `step` along the last direction."""
        self.n_planes += 1
        B, offset = self.risk.plane(self.scores + step * self.along)
        return self.risk.gradient(B), offset


class FullMatrix:
    """B of BFGS, written out; B₀ = I, scaled at the first update.

    Parameters
    ----------
    n_weights : int
    rescale : bool
        False leaves B₀ = I.
    """

    def __init__(self, n_weights, rescale=True):
        self.n_weights, self.rescale = n_weights, rescale
        self.reset()

    def reset(self):
        """Forget all updates."""
        self.matrix = np.eye(self.n_weights)
        self.count = 0

    def update(self, step, change):
        """Take in a pair (s, y) with ⟨s, y⟩ > 0, by (6)."""
        product = step @ change
        if self.rescale and self.count == 0:
            self.matrix *= product / (change @ change)
        mapped = self.matrix @ change
        share = (1.0 + change @ mapped / product) / product
        self.matrix += share * np.outer(step, step)
        cross = np.outer(mapped / product, step)
        self.matrix -= cross + cross.T
        self.count += 1

    def multiply(self, vector):
        """B v."""
        return self.matrix @ vector


def descent_direction(objective, multiply, *, tol=DIRECTION_TOL, max_directions):
    """Minimise the model ½ pᵀ B⁻¹ p + sup ⟨g, p⟩ over directions p, approximately.

    Algorithm 2: each round takes in the subgradient that is steepest along p, and moves
    to the best convex combination of p and -B times that subgradient.

    Parameters
    ----------
    objective : Objective
    multiply : callable
        v -> B v.
    tol : float
        Accuracy in the model's value.
    max_directions : int
        k_max; ten times as many where none of descent was among them.

    Returns
    -------
    direction : ndarray of shape (d,)
        Where the model is least.
    slope : float
        sup ⟨g, p⟩; not negative where no descent direction was found.
    n_directions : int
        Directions tried, at least 1.
    gap : float
        ε: how far the model is from its minimum, at most.
    """
    mean = objective.gradient
    p = -multiply(mean)
    slope, square = objective.slope(p), -float(p @ mean)
    best = p, slope, slope + 0.5 * square
    gap = slope + square
    n = 1
    # With (10) strict: at a slope of zero no step is possible either.
    while (best[1] >= 0.0 and n < PATIENCE * max_directions) or (
        (slope >= 0.0 or gap > tol) and n < max_directions
    ):
        g = objective.steepest(p)
        mapped = multiply(g)
        rise = slope + square
        curvature = float(g @ mapped) + 2.0 * slope + square
        if not rise > 0.0:
            # g adds nothing: p is the model's minimiser.
            break
        share = min(1.0, rise / curvature) if curvature > 0.0 else 1.0
        mean = (1.0 - share) * mean + share * g
        p = (1.0 - share) * p - share * mapped
        slope, square = objective.slope(p), -float(p @ mean)
        if slope + 0.5 * square < best[2]:
            best = p, slope, slope + 0.5 * square
        gap = best[2] + 0.5 * square
        n += 1
    # The paper gives up where the last direction is not one of descent; the best one
    # may be.
    return best[0], best[1], n, gap


def wolfe_step(objective, direction, slope, *, first=1.0):
    """A step that meets the subgradient Wolfe conditions (16), by bisection.

    Parameters
    ----------
    objective : Objective
    direction : ndarray of shape (d,)
    slope : float
        sup ⟨g, p⟩ at w, negative.
    first : float
        Tried first.

    Returns
    -------
    float
        Zero where none was found among 100, which is for rounding alone (Theorem 8).
    """
    low, high, step = 0.0, np.inf, first
    start = objective.value
    for _ in range(MAX_TRIALS):
        value, slope_there = objective.probe(direction, step)
        if value > start + SUFFICIENT_DECREASE * step * slope:
            high = step
        elif slope_there < CURVATURE * slope:
            low = step
        else:
            return step
        step = 2.0 * step if high == np.inf else 0.5 * (low + high)
    return 0.0


class QuasiNewtonSteps:
    """Algorithm 1, one iteration at a time.

    Parameters
    ----------
    objective : Objective
        Moved in place.
    buffer : int
        Pairs kept; not used with `full_matrix`.
    line_search : {"exact", "wolfe"}
    direction_tol : float
    max_directions : int
    full_matrix : bool

    Attributes
    ----------
    n_directions : int
        Rounds of direction finding beyond the first, over all iterations.
    """

    def __init__(
        self,
        objective,
        *,
        buffer=BUFFER,
        line_search="exact",
        direction_tol=DIRECTION_TOL,
        max_directions=MAX_DIRECTIONS,
        full_matrix=False,
    ):
        self.objective = objective
        self.line_search = line_search
        self.direction_tol, self.max_directions = direction_tol, max_directions
        n_weights = len(objective.weights)
        self.inverse = (
            FullMatrix(n_weights) if full_matrix else LimitedMemory(n_weights, buffer)
        )
        self.n_directions = 0

    def move(self):
        """One iteration; whether no descent direction was found."""
        if self._attempt():
            return False
        # A bad estimate of the Hessian is one reason; without it, a minimum is another.
        if self.inverse.count == 0:
            return True
        self.inverse.reset()
        return not self._attempt()

    def _attempt(self):
        objective, inverse = self.objective, self.inverse
        direction, slope, n, _ = descent_direction(
            objective,
            inverse.multiply,
            tol=self.direction_tol,
            max_directions=self.max_directions,
        )
        self.n_directions += n - 1
        if not slope < 0.0:
            return False
        if self.line_search == "exact":
            step = objective.exact_step(direction)
        else:
            step = wolfe_step(objective, direction, slope)
        if step == 0.0:
            return False
        gradient = objective.gradient
        objective.move(direction, step)
        self._learn(step * direction, objective.gradient - gradient)
        return True

    def _learn(self, step, change):
        square, product = float(change @ change), float(step @ change)
        if square == 0.0:
            return
        lack = MIN_CURVATURE - product / square
        if lack > 0.0:
            step = step + lack * change
        self.inverse.update(step, change)


def run_sublbfgs(
    risk,
    lam,
    *,
    tol=1e-3,
    max_iter=1000,
    max_time=None,
    buffer=BUFFER,
    line_search="exact",
    direction_tol=DIRECTION_TOL,
    max_directions=MAX_DIRECTIONS,
    full_matrix=False,
    hybrid=False,
    w0=None,
    on_pass=None,
    history=None,
):
    """Minimise λ/2 ||w||² + R(w) with a certificate.

    Algorithms 1 and 2 of [1]_. Each iteration's subgradient is a plane below R, and the
    best lower bound by all of them is the certificate. With `hybrid`, the method goes
    over to line-search bundle steps where it slows down; they start from its planes.

    Parameters
    ----------
    risk : Risk
        Its losses are not negative.
    lam : float
        λ > 0.
    tol : float
        Stop where the duality gap is at most this.
    max_iter : int
    max_time : float or None
        Seconds.
    buffer : int
        Pairs that the estimate of the inverse Hessian is made of.
    line_search : {"exact", "wolfe"}
        "wolfe" is for conditions (16) by bisection, and for smooth risks.
    direction_tol : float
        ε of direction finding.
    max_directions : int
        k_max, its rounds at most.
    full_matrix : bool
        Keep the whole estimate, O(d²), instead of the last pairs.
    hybrid : bool
    w0 : ndarray of shape (d,) or None
        Zero by default.
    on_pass : callable or None
        Called after each iteration, as for `run_bcfw`.
    history : History or None
        To be filled. "n_oracle_calls" counts evaluations of R with a subgradient.

    Returns
    -------
    SolverResult
        "stalled" is where no descent direction is left but for rounding.

    References
    ----------
    .. [1] Yu, Vishwanathan, Günter, Schraudolph, "A quasi-Newton approach to nonsmooth
       convex optimization problems in machine learning", JMLR 11, 2010.
    """
    history = History() if history is None else history
    objective = RegularizedRisk(risk, lam, w0)
    steps = QuasiNewtonSteps(
        objective,
        buffer=buffer,
        line_search=line_search,
        direction_tol=direction_tol,
        max_directions=max_directions,
        full_matrix=full_matrix,
    )
    method = _Certified(objective, steps, hybrid)
    return run_passes(
        lambda deadline: method.move(),
        lambda: history.note(method.row(tol), objective.weights),
        history,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        gap_check_interval=GAP_CHECK_INTERVAL,
        seems_done=lambda: method.bundle_steps is not None,
        on_pass=on_pass,
    )


class _Certified:
    """subLBFGS, and bundle steps after it, with the planes of both."""

    def __init__(self, objective, steps, hybrid):
        self.objective, self.steps = objective, steps
        self.hybrid = hybrid
        self.bundle_steps = None
        n_weights = len(objective.weights)
        room = max(PLANE_MEMORY // (8 * n_weights), 2 * BUFFER)
        self.bundle = StabilizedBundle(
            n_weights, objective.lam, max_planes=min(MAX_PLANES, room)
        )
        # Losses are not negative.
        self.bundle.add(np.zeros(n_weights), 0.0)
        self.bundle.add(objective.plane, objective.offset)
        self.values = [objective.value]
        self.dual_objective = -np.inf
        self.n_unchanged = 0

    def move(self):
        if self.bundle_steps is not None:
            return self._bundle_move()
        failed = self.steps.move()
        if not failed:
            self.bundle.add(self.objective.plane, self.objective.offset)
            self.values.append(self.objective.value)
        if self.hybrid and (failed or self._slow()):
            self.bundle.solve()
            self.bundle_steps = StabilizedSteps(self.objective, self.bundle)
            return False
        return failed

    def _slow(self):
        if len(self.values) <= HANDOVER_WINDOW:
            return False
        before, now = self.values[-1 - HANDOVER_WINDOW], self.values[-1]
        return before - now < HANDOVER_WINDOW * HANDOVER_DECREASE * now

    def _bundle_move(self):
        before = self.objective.value, self.dual_objective
        self.bundle_steps.move()
        self._bound()
        unchanged = before == (self.objective.value, self.dual_objective)
        self.n_unchanged = self.n_unchanged + 1 if unchanged else 0
        return self.n_unchanged >= MAX_UNCHANGED

    def _bound(self):
        self.dual_objective = max(self.dual_objective, self.bundle.dual_objective)

    def row(self, tol):
        if self.bundle_steps is None:
            self.bundle.solve()
        self._bound()
        return {
            "objective": self.objective.value,
            "dual_objective": self.dual_objective,
            "dual_gap": self.objective.value - self.dual_objective,
            "n_oracle_calls": self.objective.n_planes,
        }
