"""Orthant-wise quasi-Newton methods for smooth losses with an L1 penalty."""

import numpy as np

from sklearn_structsvm.solvers.batch._lbfgs import LimitedMemory
from sklearn_structsvm.solvers.batch.composite import SparseComposite
from sklearn_structsvm.solvers.batch.quasi_newton import (
    BUFFER,
    DIRECTION_TOL,
    MAX_DIRECTIONS,
    RestartedSteps,
    descent_direction,
    update_pair,
)
from sklearn_structsvm.solvers.loop import rounding_of, run_steps

# Shares of a new gradient in the mean of gradients that gives the certificate. Gradients
# oscillate around those of the optimum, and so does their largest entry.
SHARES = np.array([0.05, 0.1, 0.2, 0.35, 0.6, 1.0])


def run_owlqn(
    risk,
    lam,
    *,
    direction="owlqn",
    buffer=BUFFER,
    direction_tol=DIRECTION_TOL,
    max_directions=MAX_DIRECTIONS,
    w0=None,
    rng=None,
    **limits,
):
    """Minimize λ ||w||₁ + R(w) for a smooth risk, with a certificate.

    Each step of L-BFGS stays in one orthant, where ||w||₁ is linear: OWL-QN of Andrew and
    Gao, see `CRFClassifier`, or OWL-QN* of Yu et al., section 7.3, see
    `SubLBFGSClassifier`.

    `lam` > 0: λ.
    `direction` ({"owlqn", "sub"}): how directions are found: from the subgradient of
      least size and projected on its orthant (OWL-QN), or by Algorithm 2 (OWL-QN*).
    `buffer`: the number of pairs from which R's inverse Hessian is estimated.
    `direction_tol`, `max_directions`: ε and k_max of Algorithm 2.
    `w0` (d,) or None: zero by default.
    `rng` (Generator or None): draws the subgradient with which direction finding
      starts. None takes the smallest one, which OWL-QN requires: with others it soon
      finds no direction of descent, while Algorithm 2 still does (OWL-QNr, OWL-QN*r).
    `**limits`: as for `run_steps`.
    Returns a `SolverResult`: "stalled" if steps decrease nothing beyond rounding.
    """
    if direction not in ("owlqn", "sub"):
        raise ValueError(f"direction must be 'owlqn' or 'sub'; got {direction!r}.")
    steps = OrthantSteps(
        L1Risk(risk, lam, w0, rng),
        direction=direction,
        buffer=buffer,
        direction_tol=direction_tol,
        max_directions=max_directions,
    )
    return run_steps(steps, **limits)


class L1Risk(SparseComposite):
    """λ ||w||₁ + κ/2 ||w||² + R(w) for a risk R. Dual points are coefficients B.

    `lam`: λ > 0. `w0` (d,) or None: zero by default. `rng` (Generator or None): draws
    `gradient` among the subgradients. `ridge`: κ >= 0.

    Attributes: `fitted` (ndarray, float) or None: coefficients at w that were moved
    until a scale of almost 1 makes them feasible. `n_planes`: gradients of R.
    """

    def __init__(self, risk, lam, w0=None, rng=None, ridge=0.0):
        super().__init__(risk.n_weights, rounding_of(risk), lam, ridge, w0)
        self.risk, self.rng = risk, rng
        self.n_planes = 0
        self.scores = risk.scores(self.weights)
        self.renew()

    def n_calls(self):
        return self.n_planes

    def renew(self):
        """Evaluate the same point again after the risk has changed."""
        self.mean, self.dual_objective = None, -np.inf
        w, scores = self.weights, self.scores
        self.go_to(w, scores, self.evaluate(w, scores))

    def look(self, w):
        return self.risk.scores(w)

    def between(self, w, found, step):
        return self.scores + step * (found - self.scores)

    def evaluate(self, w, scores):
        return self.penalized(w, self.risk.value(scores))

    def go_to(self, w, scores, value):
        self.take(w, value)
        self.scores = self.found = scores
        self.fitted = None
        self.coef, _ = self.risk.plane(scores)
        self.image = self.risk.gradient(self.coef)
        self.n_planes += 1
        self.take_gradient(self.image)
        self._average()
        pairs = (self.coef, self.image), self.mean
        if self._note_bounds((coef, self.sizes(u)) for coef, u in pairs) == -np.inf:
            # The mean was lost together with a worker.
            self.mean = None

    def _note_bounds(self, pairs):
        """Use the best bounds of coefficients and sizes of images; returns the last."""
        points = [
            (coef, share, self.conjugate(share * sizes))
            for coef, sizes in pairs
            for share in self.scales(sizes)
        ]
        bounds = self.risk.dual_values([point[:2] for point in points])
        bounds = [
            bound - point[2] - self.rounding.of_values(0.0, bound, point[2])
            for bound, point in zip(bounds, points, strict=True)
        ]
        self.note(max(bounds))
        return bounds[-1]

    def at_zero(self, g):
        if self.rng is None:
            return super().at_zero(g)
        return g + self.lam * self.rng.uniform(-1.0, 1.0, size=len(g))

    def raise_bound(self, B, sizes):
        """Use coefficients whose image is no larger. Returns whether the gap halves."""
        gap = self.value - self.dual_objective
        self.fitted = B, self.scale(sizes)
        self._note_bounds([(B, sizes)])
        return self.value - self.dual_objective < 0.5 * gap

    def _average(self):
        """Mix the gradient into the mean of earlier ones, for the smallest ||XᵀB||∞."""
        if self.mean is None:
            coef = self.risk.mixed(self.coef, self.coef, 0.0)
            self.mean = coef, self.image.copy()
            return
        coef, g = self.mean
        mixed = g + SHARES[:, np.newaxis] * (self.image - g)
        share = SHARES[np.abs(mixed).max(axis=1).argmin()]
        coef = self.risk.mixed(coef, self.coef, share, out=coef)
        self.mean = coef, g + share * (self.image - g)


class OrthantSteps(RestartedSteps):
    """Iterations of OWL-QN or OWL-QN*, one at a time.

    `objective` (SparseComposite): moved in place. `direction`, `buffer`,
    `direction_tol`, `max_directions`: as for `run_owlqn`. `scales` (d,) or None: "owlqn"
    computes its directions in w / scales, in which second derivatives should have
    similar sizes. None means ones.

    Attributes: `n_directions`: same as in `QuasiNewtonSteps`.
    """

    method = "owlqn"

    def __init__(
        self,
        objective,
        *,
        direction="owlqn",
        buffer=BUFFER,
        direction_tol=DIRECTION_TOL,
        max_directions=MAX_DIRECTIONS,
        scales=None,
    ):
        self.objective, self.direction = objective, direction
        self.scales = np.ones(len(objective.weights)) if scales is None else scales
        self.inverse = LimitedMemory(len(objective.weights), buffer)
        self.options = {"tol": direction_tol, "max_directions": max_directions}
        self.n_directions = 0

    def _attempt(self):
        objective, inverse, scales = self.objective, self.inverse, self.scales
        if self.direction == "owlqn":
            direction = -scales * inverse.multiply(scales * objective.gradient)
            direction[direction * objective.gradient >= 0.0] = 0.0
        else:
            direction, _, n, _ = descent_direction(
                objective, inverse.multiply, **self.options
            )
            self.n_directions += n - 1
        if not objective.slope(direction) < 0.0:
            return False
        # Without an estimate of the Hessian, the length of the step means nothing.
        first = 1.0 if inverse.count else 1.0 / np.sqrt(direction @ direction)
        w, gradient = objective.weights, objective.smooth_gradient
        if not orthant_step(objective, direction, first):
            return False
        step, change = objective.weights - w, objective.smooth_gradient - gradient
        update_pair(inverse, step / scales, scales * change)
        return True


def orthant_step(objective, direction, step):
    """Shorten the step until it pays; weights stop where they leave the orthant.

    `objective` (SparseComposite): moved in place. `direction` (d,). `step`: the first one
    to try. Returns whether a step was found.
    """
    w, slopes = objective.weights, objective.steepest(direction)
    signs = np.where(w == 0.0, np.sign(direction), np.sign(w))

    def target_of(step):
        target = w + step * direction
        target[target * signs <= 0.0] = 0.0
        return target, objective.look(target), float(slopes @ (target - w))

    return objective.search(target_of, step) > 0.0
