"""Nesterov's excessive gap technique for hinge losses: Pragam, with or without a bias."""

from copy import copy
from dataclasses import replace

import numpy as np

from sklearn_structsvm._utils.tolerances import SAME, SUM_ROUNDING
from sklearn_structsvm.solvers.batch.ocas import CuttingPlaneSteps, OcasSteps
from sklearn_structsvm.solvers.batch.product_bundle import make_bundle
from sklearn_structsvm.solvers.loop import History, certified, rounding_of
from sklearn_structsvm.solvers.qp._projection import project_box, weighted_quantile
from sklearn_structsvm.solvers.qp._simplices import (
    combine_classes,
    combine_pairs,
    squared_distance,
    step_classes,
    step_pairs,
)
from sklearn_structsvm.solvers.turns import Turn, run_turns

# Scores are computed from w again where their error is this many times that of a product.
MOST_DRIFT = 100.0

# If an estimate of the Lipschitz constant proves too small, it is replaced by the
# observed curvature times this factor.
LIPSCHITZ_GROWTH = 1.1

# The next iteration tries this share of the estimate, if the last curvature allows it.
LIPSCHITZ_DECAY = 0.95

# A step whose squared length is below this share of a distribution's is rounding, and so
# is the curvature along it.
NO_STEP = SUM_ROUNDING**2


def run_pragam(
    risk,
    lam,
    *,
    fit_intercept=False,
    lipschitz=None,
    planes_after=np.inf,
    tol=1e-3,
    max_iter=10_000,
    **limits,
):
    """Minimize λ/2 ||w||² + Σ_i p_i max_y Δ_iy + ⟨β_iy, Wᵀx_i⟩ with its dual.

    The primal-adjoint method of [1]_: a smoothed primal value stays below the dual one
    while the smoothing μ_k D falls as 4 L D / ((k + 1) (k + 2)), which bounds the gap of
    the iterates (equation 26). L is the Lipschitz constant of the dual's gradient, and
    D half the squared radius of its domain. Each iteration costs one and a half times
    X W and Xᵀ B, and half as much more for each estimate of L that was too small.

    The dual point is a distribution α_i over the planes of each example's loss. Lengths
    are measured as Σ_i p_i ||α_i||², so that weight two is two examples.

    `risk`: whose `dual_form` lists its planes. `fit_intercept`: add an intercept b to
    the scores that is not regularized (Pragam-b); for binary losses, whose dual has Σ_i
    p_i y_i α_i = 0 then. `lipschitz`: L. None estimates it during the run (Nesterov's
    adaptive scheme [2]_). A value that proves too small is replaced by an estimate.
    `planes_after`: iterations until cutting planes go on. `**limits`: as for
    `run_passes`. "n_oracle_calls" counts products Xᵀ B. Returns the `SolverResult` for
    the best weights seen. With `fit_intercept`, the last one is b. TypeError if the
    risk's losses are not maxima of a few planes. ValueError if an intercept is asked for
    with more than one score per example.

    .. [1] Saha, Zhang, Vishwanathan, "Lower bounds for BMRM and faster rates for training
       SVMs", 2009, Algorithm 1.
    .. [2] Nesterov, "Gradient methods for minimizing composite objective function", CORE
       discussion paper 76, 2007.
    """
    dual = make_dual(risk, fit_intercept)
    method = EuclideanExcessiveGap(risk, lam, dual, lipschitz)
    history = limits.pop("history", None) or History()

    def go_on(row, w):
        kind, own = OcasSteps, copy(risk)
        if fit_intercept:
            kind, own.value, own.plane = CuttingPlaneSteps, dual.value, dual.plane
        w = w[: risk.n_weights]
        steps = kind(own, lam, make_bundle(own, lam), w, tol=tol)
        steps.cut(steps.scores)
        return Turn(steps, row, w)

    turn = Turn(method, then=go_on, is_over=lambda: history.n_iter > planes_after)
    found = run_turns(turn, history, tol=tol, max_iter=max_iter, **limits)
    if fit_intercept and len(found.solution) == risk.n_weights:
        b = dual.primal(risk.scores(found.solution))[1]
        found = replace(found, solution=np.append(found.solution, b))
    return found


def make_dual(risk, fit_intercept=False):
    """The domain of the dual that `risk.dual_form` describes."""
    kind, arrays = risk.dual_form()
    if fit_intercept and kind != "box":
        raise ValueError(
            "An intercept that is not regularized needs a binary loss, with one score "
            f"per example; this risk has {risk.n_scores}. A constant feature serves all."
        )
    return {"box": Box, "simplex": Classes, "pairs": Pairs}[kind](
        risk, fit_intercept, **arrays
    )


class Box:
    """α_i in [0, 1] for max(0, cost_i - sign_i z_i); with an intercept, Σ p y α = 0."""

    def __init__(self, risk, fit_intercept, sign, cost):
        self.risk, self.weights = risk, risk.weights
        self.fit_intercept = fit_intercept
        self.sign, self.cost = np.asarray(sign), np.asarray(cost)
        n = len(self.sign)
        self.center = np.zeros(n)
        self.radius = 0.5
        self.bounds = np.zeros(n), np.ones(n)
        self.balance = self.weights * self.sign
        self.curvature = np.where(self.weights > 0.0, self.weights, 1.0)

    def step(self, alpha, scores, length, out):
        """The projection of α + length · (slope of each plane) into `out`."""
        np.multiply(self.sign, scores[:, 0], out=out)
        np.subtract(self.cost, out, out=out)
        out *= length
        out += alpha
        if self.fit_intercept:
            out[:] = project_box(out, *self.bounds, self.balance, 0.0, self.curvature)[0]
        else:
            np.clip(out, 0.0, 1.0, out=out)

    def combine(self, alpha, out):
        """Σ_y α_iy β_iy p_i into `out`; returns Σ p α Δ."""
        np.multiply(self.balance, alpha, out=out[:, 0])
        np.negative(out, out=out)
        return float(self.weights @ (self.cost * alpha))

    def squared_distance(self, a, b):
        step = a - b
        step *= step
        return float(self.weights @ step)

    def excess(self, alpha, intercept):
        """The most by which the dual value is too large, as Σ p y α is not quite 0.

        The dual value minus this is below the primal value of every W with the intercept.
        If Σ p y α is off by more than rounding, there is no bound.
        """
        if not self.fit_intercept:
            return 0.0
        missing = abs(float(self.balance @ alpha))
        return abs(intercept) * missing if missing <= SAME else np.inf

    def primal(self, scores):
        """R at the scores, and the intercept that minimizes it."""
        if not self.fit_intercept:
            return self.risk.value(scores), None
        # The slope in b starts at -(weight of the positive examples) and rises at each
        # margin.
        ends = self.sign * self.cost - scores[:, 0]
        b = weighted_quantile(ends, self.weights, self.weights[self.sign > 0.0].sum())
        return self.risk.value(scores + b), b

    def value(self, scores):
        return self.primal(scores)[0]

    def plane(self, scores, out):
        """A plane below `value` at any intercept: its coefficients and height."""
        b = self.primal(scores)[1]
        z = scores[:, 0] + b
        gain = self.cost - self.sign * z
        tied = np.abs(gain) <= SAME * (np.abs(self.cost) + np.abs(z) + abs(b))
        low, high = 1.0 * (~tied & (gain > 0.0)), 1.0 * (tied | (gain > 0.0))
        ends = low, high, self.balance, 0.0, self.curvature
        alpha = project_box(0.5 * (low + high), *ends)[0]
        return out, self.combine(alpha, out) - self.excess(alpha, b)


class _Simplices:
    """A distribution for each example."""

    def __init__(self, risk):
        self.risk, self.weights = risk, risk.weights

    def squared_distance(self, a, b):
        return squared_distance(a.ravel(), b.ravel(), self.starts, self.weights)

    def excess(self, alpha, intercept):
        """None: projections end with a division by the sum."""
        return 0.0

    def primal(self, scores):
        return self.risk.value(scores), None


class Classes(_Simplices):
    """α_i over k classes, for max_y c_y + z_y - z_truth, or its rescaled form."""

    def __init__(self, risk, fit_intercept, truth, cost, rescaled):
        super().__init__(risk)
        n, k = risk.n_samples, risk.n_scores
        self.truth, self.cost, self.rescaled = truth, cost, rescaled
        self.starts = np.arange(0, n * k + 1, k)
        self.center = np.full((n, k), 1.0 / k)
        self.radius = 0.5 * (1.0 - 1.0 / k)

    def step(self, alpha, scores, length, out):
        own = self.cost, self.truth, self.rescaled
        step_classes(alpha, scores, *own, length, out, self.risk.n_threads)

    def combine(self, alpha, out):
        own = self.cost, self.truth, self.rescaled
        return combine_classes(alpha, *own, self.weights, out)


class Pairs(_Simplices):
    """α_i over listed pairs, for max_j c_j + z_gained(j) - z_lost(j)."""

    def __init__(self, risk, fit_intercept, starts, gained, lost, cost):
        super().__init__(risk)
        self.starts, self.gained, self.lost, self.cost = starts, gained, lost, cost
        sizes = np.diff(starts)
        self.center = np.repeat(1.0 / sizes, sizes)
        self.radius = 0.5 * float(self.weights @ (1.0 - 1.0 / sizes))

    def step(self, alpha, scores, length, out):
        own = self.starts, self.gained, self.lost, self.cost
        step_pairs(alpha, scores, *own, length, out, self.risk.n_threads)

    def combine(self, alpha, out):
        own = self.starts, self.gained, self.lost, self.cost
        return combine_pairs(alpha, *own, self.weights, out)


class EuclideanExcessiveGap:
    """w_k and α_k with λ/2 ||w_k||² + R_μ(w_k) <= D(α_k).

    R_μ is the risk with μ/2 Σ_i p_i ||α_i - center_i||² subtracted in its dual. This is
    at most μ D, and therefore so is the gap. With V(α) = Xᵀ B(α), the dual is D(α) = Σ p
    α Δ - ||V||² / (2 λ), its curvature between two points known from their V, and w(α) =
    -V / λ.

    `weights`: the best w_k, with its intercept if there is one. `objective`,
    `dual_objective`: the best seen.
    """

    method = "excessive_gap"

    def __init__(self, risk, lam, dual, lipschitz):
        self.risk, self.lam, self.dual = risk, lam, dual
        self.rounding = rounding_of(risk)
        self.n_products = 0
        self.objective, self.dual_objective = np.inf, -np.inf
        shape = risk.n_samples, risk.n_scores
        self.B, self.beta_scores = np.empty(shape), np.empty(shape)
        self.scores = np.empty(shape)
        # α, α_μ(w), β and the step from β.
        self.alpha, self.sharp = dual.center.copy(), np.empty_like(dual.center)
        self.beta, self.next = np.empty_like(self.sharp), np.empty_like(self.sharp)
        # By how much rounding may have moved the scores since they were computed from w.
        self.drift = 0.0
        V, _ = self.combine(dual.center)
        self.scores[:] = 0.0
        self.keep(np.zeros_like(V))
        self.w = V / -lam
        risk.scores(self.w, self.scores)
        self.lipschitz = lipschitz
        if lipschitz is None:
            dual.step(dual.center, self.scores, 1.0, self.next)
            V_next, _ = self.combine(self.next)
            self.lipschitz = self.curvature(V_next, V, dual.center, 1.0)
        # If the dual has no curvature, L is this value, because steps divide by it.
        self.lipschitz = max(self.lipschitz, 1e-200)
        while not self.try_step(dual.center, V, self.scores):
            pass
        self.mu = self.lipschitz
        self.accept()

    def combine(self, alpha):
        """V(α) and Σ p α Δ."""
        loss = self.dual.combine(alpha, self.B)
        self.n_products += 1
        return self.risk.gradient(self.B), loss

    def curvature(self, V, V_from, alpha_from, unknown):
        """Record the curvature of the dual between `next` and another point."""
        length = self.dual.squared_distance(self.next, alpha_from)
        change = V - V_from
        if length <= NO_STEP:
            return unknown
        return float(change @ change) / (self.lam * length)

    def try_step(self, alpha, V, scores):
        """Make the projected gradient step from α. Returns whether L was large enough."""
        self.dual.step(alpha, scores, 1.0 / self.lipschitz, self.next)
        self.V_next, self.loss_next = self.combine(self.next)
        self.met = self.curvature(self.V_next, V, alpha, self.lipschitz)
        if not np.isfinite(self.met):
            raise ValueError(
                "The squared length of a gradient overflows: scale the features down, or "
                "try a smaller C."
            )
        if self.met <= self.lipschitz * (1.0 + SAME):
            return True
        self.lipschitz = LIPSCHITZ_GROWTH * self.met
        return False

    def accept(self):
        """Move α, and compute both objectives."""
        self.alpha, self.next = self.next, self.alpha
        self.V = self.V_next
        self.loss = self.loss_next
        intercept = self.keep(self.w)
        value = self.loss - 0.5 * float(self.V @ self.V) / self.lam
        value -= self.dual.excess(self.alpha, intercept)
        # The dual point's weights, whose scores its loss is compared with.
        v = self.V / -self.lam
        value -= self.rounding.of_values(v, self.loss, self.loss - value)
        self.dual_objective = max(self.dual_objective, value - self.error)

    def keep(self, w):
        """Keep w if it is the best; returns the best intercept."""
        risk, intercept = self.dual.primal(self.scores)
        objective = float(0.5 * self.lam * w @ w + risk)
        if objective < self.objective:
            self.objective = objective
            self.error = self.rounding.of_values(w, objective, intercept or 0.0)
            self.error += self.drift
            self.weights = w if intercept is None else np.append(w, intercept)
        return intercept

    def move(self, deadline=np.inf):
        self.improve()
        return True

    def improve(self):
        dual = self.dual
        dual.step(dual.center, self.scores, 1.0 / self.mu, self.sharp)
        V_sharp, _ = self.combine(self.sharp)
        while True:
            # The largest τ with τ² L <= (1 - τ) μ.
            tau = 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * self.lipschitz / self.mu))
            np.subtract(self.sharp, self.alpha, out=self.beta)
            self.beta *= tau
            self.beta += self.alpha
            V = self.V + tau * (V_sharp - self.V)
            w = V / -self.lam
            self.risk.scores(w, self.beta_scores)
            if self.try_step(self.beta, V, self.beta_scores):
                break
        self.w = self.w + tau * (w - self.w)
        self.beta_scores -= self.scores
        self.beta_scores *= tau
        self.scores += self.beta_scores
        self.drift = (1.0 - tau) * self.drift + self.rounding.of_values(w)
        if self.drift > MOST_DRIFT * self.rounding.of_values(self.w):
            # The first w are far longer than the last ones.
            self.risk.scores(self.w, self.scores)
            self.drift = 0.0
        self.mu *= 1.0 - tau
        self.accept()
        lowered = LIPSCHITZ_DECAY * self.lipschitz
        self.lipschitz = max(lowered, min(self.met, self.lipschitz))

    def row(self):
        bound = self.dual_objective
        return certified(self.objective, bound, self.error, self.n_products)
