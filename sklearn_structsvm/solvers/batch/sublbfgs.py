"""subLBFGS on regularized risks, with a certificate, and its hybrids."""

from functools import partial

import numpy as np

from sklearn_structsvm.solvers.batch._segment import moved
from sklearn_structsvm.solvers.batch.ocas import REFRESH_SCORES, OcasSteps, bundle_bound
from sklearn_structsvm.solvers.batch.product_bundle import has_long_planes, make_bundle
from sklearn_structsvm.solvers.batch.quasi_newton import (
    BUFFER,
    DIRECTION_PATIENCE,
    DIRECTION_TOL,
    MAX_DIRECTIONS,
    Objective,
    QuasiNewtonSteps,
)
from sklearn_structsvm.solvers.loop import History, certified, rounding_of, run_passes
from sklearn_structsvm.solvers.turns import Turn, Turns

# The hybrid switches to bundle steps if the objective has fallen, per iteration over the
# last ones, by less than this share of itself. A larger decrease distinguishes fast early
# progress (letter: 40 iterations) from none (a9a: 10 iterations).
HANDOVER_DECREASE = 5e-3
HANDOVER_WINDOW = 5

# The number of passes that a start may still need. If planes are not long, a bundle takes
# 30 to 200 steps, each about as long as a pass.
MAX_PASSES_LEFT = 100

# If planes are long, a bundle step takes as long as several passes of dual ascent, and
# hundreds of steps are needed.
MAX_PASSES_BEFORE_LONG_PLANES = 10 * MAX_PASSES_LEFT

# Iterations between two solutions of the bundle's program while its planes only serve the
# certificate.
GAP_CHECK_INTERVAL = 10


class RegularizedRisk(Objective):
    """J(w) = λ/2 ||w||² + R(w).

    `w0` (d,) or None: zero by default.

    Attributes: `plane` (d,), `offset`: the plane below R whose subgradient of J is
    `gradient`. `n_planes`: planes computed at other points than the iterates.
    """

    def __init__(self, risk, lam, w0=None):
        self.risk, self.lam = risk, lam
        self.weights = np.zeros(risk.n_weights) if w0 is None else np.array(w0, float)
        self.scores = risk.scores(self.weights)
        self.along = risk.empty()
        self.direction = None
        self.n_planes = self.n_sums = 0
        # Ties (at zero all labels but the true one are tied) are broken at random for
        # each example. This gives a point near the mean of the subgradients instead of an
        # extreme one.
        self._relinearize(risk.random_scores())

    def _relinearize(self, along):
        self.coef, self.offset = self.risk.plane(self.scores, along)
        self.plane = self.risk.gradient(self.coef)
        self.n_planes += 1
        w = self.weights
        self.gradient = self.lam * w + self.plane
        # The plane touches R here: its height is R(w).
        self.value = float(0.5 * self.lam * w @ w + self.plane @ w + self.offset)

    def _set_direction(self, direction):
        """Scores of the direction, and its products with itself and with w."""
        if direction is not self.direction:
            self.tied = None
            self.along = self.risk.scores(direction, out=self.along)
            self.direction = direction
            self.wp = float(self.weights @ direction)
            self.pp = float(direction @ direction)

    def _steepest_coef(self, direction):
        """Coefficients of the steepest subgradient, known after a call of `slope`."""
        self._set_direction(direction)
        if self.tied is None:
            self.tied, _ = self.risk.plane(self.scores, self.along)
        return self.tied

    def slope(self, direction):
        tied = self._steepest_coef(direction)
        return self.lam * self.wp + self.risk.dot(tied, self.along)

    def steepest(self, direction):
        # Few examples are tied, and rows of zeros are skipped.
        change = self._steepest_coef(direction) - self.coef
        return self.gradient + self.risk.gradient(change)

    def exact_step(self, direction):
        self._set_direction(direction)
        return self.risk.line_search(self.scores, self.along, self.wp, self.pp, self.lam)

    def probe(self, direction, step):
        self._set_direction(direction)
        scores = self.risk.moved(self.scores, self.along, step)
        coef, offset = self.risk.plane(scores, self.along)
        w = self.weights
        square = w @ w + step * (2.0 * self.wp + step * self.pp)
        value = 0.5 * self.lam * square + offset + self.risk.dot(coef, scores)
        slope = self.lam * (self.wp + step * self.pp) + self.risk.dot(coef, self.along)
        return float(value), float(slope)

    def move(self, direction, step):
        self._set_direction(direction)
        # This is a new array, so that the arrays in the history do not change.
        self.weights, _ = moved(self.weights, self.direction, step)
        self.direction = None
        self.n_sums += 1
        if self.n_sums >= REFRESH_SCORES:
            self.refresh()
        else:
            self.scores = self.risk.moved(self.scores, self.along, step, out=self.scores)
        self._relinearize(self.along)

    def refresh(self):
        # Scores that are sums have the errors of all steps.
        self.scores = self.risk.scores(self.weights, out=self.scores)
        self.n_sums = 0


def run_sublbfgs(
    risk,
    lam,
    *,
    tol=1e-3,
    buffer=BUFFER,
    line_search="exact",
    direction_tol=DIRECTION_TOL,
    max_directions=MAX_DIRECTIONS,
    full_matrix=False,
    hybrid=False,
    make_start=None,
    n_threads=1,
    w0=None,
    **limits,
):
    """Minimize λ/2 ||w||² + R(w) with a certificate.

    Algorithms 1 and 2 of Yu et al., see `SubLBFGSClassifier`. Each iteration's
    subgradient is a plane below R, and the best lower bound from all planes is the
    certificate. With `hybrid`, bundle steps with a line search go on from these planes
    once the method slows down.

    `risk`: a risk whose losses are not negative.
    `buffer`: pairs that the estimate of the inverse Hessian is made of.
    `line_search` ({"exact", "wolfe"}): "wolfe" uses conditions (16) by bisection.
      Smooth risks need it.
    `direction_tol`: ε of direction finding.
    `max_directions`: k_max, its rounds at most.
    `full_matrix`: keep the whole estimate, O(d²), instead of the last pairs.
    `make_start` or None: (tol, max_passes_left, n_threads) -> a `DualStart` for the
      same risk. The method starts with passes of exact steps on its dual, as long as
      these are fast, and keeps their dual point as a plane.
    `n_threads`: threads for the checks of that start.
    `w0` (d,) or None: zero by default. If it is given, there are no dual passes.
    `tol`, `**limits`: as for `run_passes`. "n_oracle_calls" counts evaluations of R
      with a subgradient.
    Returns a `SolverResult`: "stalled" if no direction descends beyond rounding.
    """

    history = limits["history"] = limits.get("history") or History()

    def begin(row=None, w=w0, dual_plane=None):
        objective = RegularizedRisk(risk, lam, w)
        steps = QuasiNewtonSteps(
            objective,
            buffer=buffer,
            line_search=line_search,
            direction_tol=direction_tol,
            max_directions=max_directions,
            full_matrix=full_matrix,
            # Bundle steps take over if no direction of descent is found.
            patience=1 if hybrid else DIRECTION_PATIENCE,
        )
        steps = _Certified(objective, steps, hybrid, dual_plane)
        turn = Turn(steps, row, w, is_cheap=False)
        if hybrid:
            turn.then = lambda row, w: Turn(steps.bundle_steps(row, tol), row, w)
        # If planes are long, so are the pairs of quasi-Newton steps.
        return turn.then(*turn.check()) if hybrid and has_long_planes(risk) else turn

    def begin_after(start, row, w):
        turn = begin(row, w, start.plane())
        # Its dual point takes as much memory as the scores, and goes at once.
        start.release()
        start.then = None
        return turn

    if make_start is None or w0 is not None:
        turn = begin()
    else:
        left = MAX_PASSES_LEFT
        if has_long_planes(risk):
            left = MAX_PASSES_BEFORE_LONG_PLANES
        turn = make_start(tol, left, n_threads)
        turn.then = partial(begin_after, turn)
    turns = Turns(turn, history)
    # What a method keeps goes with its turn.
    del turn
    return run_passes(
        turns.move,
        turns.check,
        tol=tol,
        gap_check_interval=GAP_CHECK_INTERVAL,
        predicts_convergence=turns.predicts_convergence,
        **limits,
    )


class _Certified:
    """The steps of subLBFGS with the bundle of their planes, which certifies them.

    With `hybrid` they end once they are slow, and leave their planes to `bundle_steps`.
    """

    method = QuasiNewtonSteps.method

    def __init__(self, objective, steps, hybrid, dual_plane=None):
        self.objective, self.steps = objective, steps
        self.hybrid = hybrid
        self.dual_objective = -np.inf
        self.bundle = make_bundle(objective.risk, objective.lam)
        self.rounding = rounding_of(objective.risk)
        # Losses are not negative.
        self.bundle.cut(
            objective.risk,
            np.zeros_like(objective.coef),
            0.0,
            np.zeros_like(objective.plane),
        )
        if dual_plane is not None:
            self.bundle.cut(objective.risk, *dual_plane)
        self._take_plane()
        self.values = [objective.value]

    @property
    def weights(self):
        return self.objective.weights

    def move(self, deadline=np.inf):
        """Make one step. Returns whether there was one, and the next may be as good."""
        moved = self.steps.move()
        if moved:
            self._take_plane()
            self.values.append(self.objective.value)
        return moved and not (self.hybrid and self._slow())

    def _take_plane(self):
        now = self.objective
        self.bundle.cut(now.risk, now.coef, now.offset, now.plane)

    def _slow(self):
        if len(self.values) <= HANDOVER_WINDOW:
            return False
        before, now = self.values[-1 - HANDOVER_WINDOW], self.values[-1]
        return before - now < HANDOVER_WINDOW * HANDOVER_DECREASE * now

    def bundle_steps(self, row, tol):
        """Steps from the last point and all planes, of which `row` was the result."""
        now, bound = self.objective, row["dual_objective"]
        known = {"scores": now.scores, "dual_objective": bound, "tol": tol}
        return OcasSteps(now.risk, now.lam, self.bundle, now.weights, **known)

    def row(self):
        self.bundle.solve()
        now = self.objective
        if now.n_sums > 0:
            now.refresh()
        error = self.rounding.of_values(now.weights, now.value)
        bound = bundle_bound(self.bundle, self.rounding) - error
        self.dual_objective = max(self.dual_objective, bound)
        # The height of a plane is less than the risk by as much as ties are told apart.
        value = 0.5 * now.lam * now.weights.dot(now.weights) + now.risk.value(now.scores)
        return certified(float(value), self.dual_objective, error, now.n_planes)
