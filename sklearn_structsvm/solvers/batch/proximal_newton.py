"""Newton's method under an L1 penalty, with a certificate: smooth risks and the hinge."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sklearn_structsvm._utils.backtracking import MAX_HALVINGS
from sklearn_structsvm._utils.tolerances import VALUE_ROUNDING
from sklearn_structsvm.solvers.accuracy import INNER_SHARE
from sklearn_structsvm.solvers.batch.feasible_image import (
    MAX_STEPS,
    feasible_point,
    least_penalized,
    second_derivatives,
)
from sklearn_structsvm.solvers.batch.l1_newton import L1NewtonSteps
from sklearn_structsvm.solvers.batch.newton import LEAST_DAMPING, MAX_PRODUCTS
from sklearn_structsvm.solvers.loop import certified, run_steps
from sklearn_structsvm.solvers.qp.sparse_quadratic import minimize_sparse_quadratic

# A model has all weights if there are at most this many. Otherwise it has the nonzero
# weights, those that would not stay zero, and an equal number of the next candidates.
MOST_OF_ALL = 256
LEAST_OTHERS = 64

# A model has at most this many weights, because its Hessian is written out.
MOST_MODELED = 2048

# The ridge that is added to the Hessian begins at the least one of `l1_newton`. After a
# model toward which no step pays, it grows by this factor. After a full step it shrinks
# again.
DAMPED = 10.0

# The last width of the smoothed hinge. It begins with 1, and is halved.
LEAST_WIDTH = 1e-12


def run_proximal_newton(risk, lam, l1_ratio, *, w0=None, **limits):
    """Minimize λ ((1 - ρ)/2 ||w||² + ρ ||w||₁) + R(w) for a smooth risk R, or the hinge.

    A step goes toward the minimum of the penalty plus the quadratic model of R [1]_. This
    minimum is found exactly, so neither the offsets nor the scales of columns matter.
    The gradient, scaled down where the penalty is the L1 norm alone, is that of a dual
    point, and the certificate the best of these.

    The hinge is minimized by the method of multipliers [2]_: it is smoothed around a dual
    point, which then moves to that of the smoothed solution; the smoothing narrows.

    `risk`: for a `ProximalHinge`, the hinge itself is minimized, with ρ = 1. `lam`: λ >
    0. `l1_ratio`: ρ, above 0 and at most 1. `w0` (n_weights,) or None: zero by default.
    `**limits`: as for `run_passes`. A pass is a step. Returns the `SolverResult` for
    the best weights seen. "stalled" if no step decreases the objective beyond rounding.
    Oracle calls are passes over an example, also to write out the Hessian.

    .. [1] Lee, Sun, Saunders, "Proximal Newton-type methods for minimizing composite
       functions", SIAM Journal on Optimization 24, 2014.
    .. [2] Rockafellar, "Augmented Lagrangians and applications of the proximal point
       algorithm in convex programming", Mathematics of Operations Research 1, 1976.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if risk.smooths_hinge:
            steps = MultiplierSteps(risk, lam, w0)
        else:
            steps = ProximalNewtonSteps(risk, lam, l1_ratio, w0)
    return run_steps(steps, **limits)


class ModelSteps:
    """Steps toward the minimum of the penalty and a quadratic model.

    A subclass has an `objective`, whose loss is modeled, and moves by `_step_to`.
    `coupled`: the number of first weights, of features for scores of which only
    differences count, and the number of these scores.
    """

    method, damping, coupled = "newton", LEAST_DAMPING, (0, 1)
    n_last = 0

    def _minimize_model(self, H, own, diagonal, most_damping=1.0):
        """Make a step, with more and more damping. Returns whether there was one.

        `own` (m,). `H` (m, m): second derivatives of the loss by the weights `own`. It
        is overwritten. `diagonal` (n_weights,): the scale of H and the ridge, positive.
        """
        objective = self.objective
        w = objective.weights
        scales = 1.0 / np.sqrt(diagonal[own])
        H *= scales
        H *= scales[:, np.newaxis]
        places = np.diag_indices(len(own))
        H[places] += objective.ridge * scales**2
        start = w[own] / scales
        gradient = scales * self._slopes()[own]
        while True:
            damped = H.copy()
            damped[places] += self.damping
            step = self._damped_step(damped, gradient, scales, start, own)
            if step == 1.0:
                self.damping = max(self.damping / DAMPED, LEAST_DAMPING)
            if step > 0.0:
                return True
            if self.damping >= most_damping or step < 0.0:
                return False
            self.damping *= DAMPED

    def _damped_step(self, H, gradient, scales, start, own):
        """`_step_to` the minimum of one model, 0 if rounding has made H indefinite."""
        objective, lam = self.objective, self.objective.lam
        with np.errstate(over="ignore"):
            # With a λ beyond all gradients, no weight moves; penalties are multiplied.
            largest = 0.5 * np.finfo(np.float64).max
            penalties = np.minimum(lam * scales, largest)
        try:
            if lam > 0.0:
                b = gradient - H @ start
                target = objective.weights.copy()
                x = minimize_sparse_quadratic(H, b, penalties, start)
                is_rough = self._is_rough()
                if is_rough and self.damping == LEAST_DAMPING:
                    x = _refined(H, gradient + penalties * np.sign(x), start, x)
                target[own] = scales * x
                if is_rough:
                    target = least_penalized(target, self.coupled, lam, objective.ridge)
            else:
                # The change may be far smaller than rounding errors of H times weights.
                factor = cho_factor(H, check_finite=False)
                change = -scales * cho_solve(factor, gradient, check_finite=False)
                target = self._moved(own, change)
        except np.linalg.LinAlgError:
            return 0.0
        return self._step_to(target)

    def _slopes(self):
        """The gradient of the model, without the L1 penalty."""
        return self.objective.smooth_gradient

    def _moved(self, own, change):
        """The weights after a change of the model's."""
        target = self.objective.weights.copy()
        target[own] += change
        return target

    def _step_to(self, target):
        """Move toward a target.

        Returns the share of the way, or -1 if only rounding is left.
        """
        objective, w = self.objective, self.objective.weights
        change = target - w
        slope = float(objective.smooth_gradient @ change)
        slope += objective.lam * float((np.abs(target) - np.abs(w)).sum())
        # Of the scores of columns as large as Unix time, more is lost than of values.
        least = max(VALUE_ROUNDING * abs(objective.value), objective.error)
        if not slope < (least if self._is_rough() else 0.0):
            return -1.0
        if slope >= -least:
            return self._last_step(target, least)

        there = objective.look(target)

        def target_of(step):
            if step == 1.0:
                return target, there, slope
            point = w + step * change
            return point, objective.between(point, there, step), step * slope

        return objective.search(target_of)

    def _is_rough(self):
        objective = self.objective
        return objective.rounding.are_rough(objective.weights, objective.lam).any()

    def _last_step(self, target, least):
        """If the objective can no longer decide, the dual or the gradient does."""
        objective = self.objective
        before = objective.weights, objective.found, objective.value
        size = self._size()
        found = objective.look(target)
        objective.go_to(target, found, objective.evaluate(target, found))
        # Where these are noise as well, a few steps settle what is left.
        self.n_last += 1
        is_near = abs(objective.value - before[2]) <= least and self.n_last <= MAX_STEPS
        if self._size() < 0.5 * size or (is_near and self._is_rough()):
            return 1.0
        objective.go_to(*before)
        return -1.0

    def _size(self):
        """The gap times the largest slope, for one of them may stand still."""
        gap = self.objective.value - self.objective.dual_objective
        return gap * float(np.abs(self.objective.gradient).max())


def _refined(H, slopes, start, x):
    """The minimizer x for its signs again, from its change alone, and less damped.

    The least damping and the rounding errors of H times weights are more than what the
    loss says of several columns that all are as large as Unix time. `slopes`: those of
    the model at `start` for the signs.
    """
    used = np.flatnonzero(x)
    factor = cho_factor(H[np.ix_(used, used)], check_finite=False)
    for _ in range(MAX_HALVINGS):
        residual = slopes + H @ (x - start) - LEAST_DAMPING * (x - start)
        moved = x.copy()
        moved[used] -= cho_solve(factor, residual[used], check_finite=False)
        if (moved * x < 0.0).any():
            break
        x = moved
    return x


class ProximalNewtonSteps(ModelSteps, L1NewtonSteps):
    """The steps, one at a time; parameters of the above.

    If too many weights are nonzero, or would not stay zero, for a model with all of them,
    it makes the steps of `L1NewtonSteps`.
    """

    def __init__(self, risk, lam, l1_ratio, w0=None, most_modeled=None):
        super().__init__(risk, l1_ratio * lam, w0, (1.0 - l1_ratio) * lam)
        self.most_modeled = MOST_MODELED if most_modeled is None else most_modeled
        self.coupled = risk.is_coupled * risk.n_weights, risk.n_scores

    def move(self, deadline=np.inf):
        """Make one step. Returns whether there was one."""
        objective, risk = self.objective, self.objective.risk
        _, response = risk.respond(objective.scores)
        curvatures = risk.curvatures(response)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self._scales(response)
        if not np.isfinite(diagonal).all():
            # Squares of huge features overflow.
            return False
        own = self._modeled(diagonal)
        if own is None:
            return super().move(deadline)
        self.n_products += 1
        H = second_derivatives(risk, response, curvatures, own)
        return self._minimize_model(H, own, diagonal) or self._fit_bounds(response)

    def _fit_bounds(self, response):
        """Bring the dual point within its bounds. Returns whether the gap halves."""
        objective, risk = self.objective, self.objective.risk
        if risk.is_remote:
            return False
        at = objective.coef, objective.weights, objective.lam, objective.ridge
        point = feasible_point(risk, response, *at)
        return point is not None and objective.raise_bound(*point)

    def _modeled(self, diagonal):
        """The weights that a model has, or None if there are too many."""
        objective = self.objective
        w, g = objective.weights, objective.smooth_gradient
        if len(w) <= MOST_OF_ALL:
            return np.arange(len(w))
        used = w != 0.0
        beyond = (np.abs(g) - objective.lam) / np.sqrt(diagonal)
        n_first = np.count_nonzero(used | (beyond > 0.0))
        if n_first > self.most_modeled:
            return None
        most = min(2 * n_first + LEAST_OTHERS, self.most_modeled)
        beyond[used] = np.inf
        return np.sort(np.argsort(-beyond, kind="stable")[:most])


class MultiplierSteps:
    """Steps on the smoothed hinge, and the best weights for the hinge itself.

    `w0` (n_weights,) or None. `risk` (ProximalHinge): its center and width are set here.

    Attributes: `weights` (n_weights,): the best so far. `value`, `dual_objective`: the
    best values so far for the problem with the hinge.
    """

    method = "newton"

    def __init__(self, risk, lam, w0=None):
        self.risk, self.lam = risk, lam
        risk.width, risk.center = 1.0, np.zeros_like(risk.center)
        # The Hessian of each width is written out anew, which must not take longer than
        # the products of a direction by conjugate gradients.
        width = risk.n_entries / risk.n_samples
        most = min(int(np.sqrt(2 * MAX_PRODUCTS * width)), MOST_MODELED)
        self.steps = ProximalNewtonSteps(risk, lam, 1.0, w0, most)
        self.value, self.dual_objective = np.inf, -np.inf
        self._note()

    def _note(self):
        """Use the point of the smoothed problem and its dual points."""
        point, risk = self.steps.objective, self.risk
        value = self.lam * float(np.abs(point.weights).sum()) + risk.hinge(point.scores)
        if value < self.value:
            self.value, self.weights = value, point.weights
            self.error = point.rounding.of_values(self.weights, value)
        gradients = (point.coef, point.smooth_gradient), point.mean
        points = [(coef, point.scale(point.sizes(u))) for coef, u in gradients]
        if point.fitted is not None:
            points.append(point.fitted)
        bounds = [risk.hinge_dual_value(*each) for each in points]
        bound = max(bounds) - self.error - point.rounding.of_values(0.0, max(bounds))
        self.dual_objective = max(self.dual_objective, bound)

    def row(self):
        n_calls = self.steps.n_calls()
        return certified(self.value, self.dual_objective, self.error, n_calls)

    def move(self, deadline=np.inf):
        """Make one step. Returns whether there was one."""
        point, risk = self.steps.objective, self.risk
        moved = self.steps.move(deadline)
        self._note()
        gap = self.value - self.dual_objective
        if moved and point.value - point.dual_objective > INNER_SHARE * gap:
            return True
        _, center = risk.respond(point.scores)
        moved = moved or bool((center != risk.center).any())
        risk.center = center
        risk.width = max(0.5 * risk.width, LEAST_WIDTH)
        self.steps.renew()
        return moved
