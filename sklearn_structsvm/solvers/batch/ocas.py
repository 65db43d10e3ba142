"""Cutting planes of a risk over rows, with or without the line search of OCAS.

BMRM makes all of its iterations with them, and subLBFGS those after quasi-Newton steps.
"""

import numpy as np

from sklearn_structsvm.solvers.batch._segment import direction_to, moved
from sklearn_structsvm.solvers.batch.product_bundle import has_long_planes
from sklearn_structsvm.solvers.loop import certified, rounding_of
from sklearn_structsvm.solvers.qp.center import AHEAD

# The share of the way to the bundle's minimizer at which planes are taken that are not
# long. On a9a and letter with λ from 1e-3 to 1e-5, this takes 0.5 to 0.8 times as many
# iterations to a gap of 1e-3 as `AHEAD`. Half or twice this value is not better. Long
# planes, such as those of text, need twice as many as with `AHEAD`.
AHEAD_OF_SHORT = 0.01

# The scores of a point are sums of known scores. They are computed anew after this many
# sums, and before a run converges. If a run is cut short, its results contain the
# rounding errors of these sums.
REFRESH_SCORES = 50

# After this many iterations in a row that change neither the best objective nor the dual
# one, only rounding is left of the gap.
MAX_UNCHANGED = 20


def bundle_bound(bundle, rounding):
    """The lower bound of a solved bundle, less its rounding error.

    Its planes are means over the examples, and so have errors that w multiplies.
    """
    bound, w = bundle.dual_objective, bundle.weights
    return bound - rounding.of_values(w, bound, bundle.lam * float(w @ w))


class CuttingPlaneSteps:
    """Planes at the minimizers of a bundle, and the best of these points.

    `bundle`: it must be solved, unless `cut` is called before the first step. `weights`
    (d,): the best point so far. `scores` (n_samples, n_scores) or None: the scores of
    `weights`, if they are known. They are overwritten. `dual_objective`: a lower bound
    that is already known. `tol`: the desired duality gap.

    Attributes: `objective`: at `weights`. `n_planes`: planes added.
    """

    method = "planes"

    def __init__(
        self, risk, lam, bundle, weights, scores=None, dual_objective=-np.inf, tol=0.0
    ):
        self.risk, self.lam, self.bundle, self.tol = risk, lam, bundle, tol
        self.rounding = rounding_of(risk)
        self.dual_objective = dual_objective
        self.n_planes = self.n_unchanged = 0
        # Allocating n k numbers is slow, so arrays are reused.
        self.B, room = risk.empty(), risk.empty()
        self.weights = np.array(weights, dtype=np.float64)
        self.scores = risk.scores(self.weights, room) if scores is None else scores
        self.objective = self.evaluate(self.weights @ self.weights, self.scores)

    def evaluate(self, square, scores):
        """λ/2 ||w||² + R(w)."""
        return float(0.5 * self.lam * square + self.risk.value(scores))

    @property
    def error(self):
        """The rounding error of the objective."""
        return self.rounding.of_values(self.weights, self.objective)

    def cut(self, scores):
        """Add the plane at a point, and move the bundle's minimizer."""
        B, offset = self.risk.plane(scores, out=self.B)
        self.bundle.cut(self.risk, B, offset)
        self.bundle.solve()
        self.n_planes += 1
        bound = bundle_bound(self.bundle, self.rounding) - self.error
        self.dual_objective = max(self.dual_objective, bound)

    def move(self, deadline=np.inf):
        """Make one iteration. Returns whether anything still changes."""
        before = self.objective, self.dual_objective
        self.cut(self.go_toward(self.bundle.weights))
        unchanged = before == (self.objective, self.dual_objective)
        self.n_unchanged = self.n_unchanged + 1 if unchanged else 0
        return self.n_unchanged < MAX_UNCHANGED

    def go_toward(self, target):
        """Update the best point. Returns the scores of the point at which to cut."""
        self.scores = self.risk.scores(target, self.scores)
        objective = self.evaluate(target @ target, self.scores)
        if objective < self.objective:
            self.weights, self.objective = target, objective
        return self.scores

    def row(self):
        """Objectives, gap and number of planes, for the history."""
        bound = self.dual_objective
        return certified(self.objective, bound, self.error, self.n_planes)


class OcasSteps(CuttingPlaneSteps):
    """The best point on the line to each minimizer, with planes taken a little beyond it.

    `cut_at`: the plane is taken at (1 - cut_at) times the best point plus cut_at times
    the minimizer. None: the best share for the length of planes. `**known` as for
    `CuttingPlaneSteps`. `scores` are those of the best point at any time.
    """

    def __init__(self, risk, lam, bundle, weights, cut_at=None, **known):
        super().__init__(risk, lam, bundle, weights, **known)
        if cut_at is None:
            cut_at = AHEAD if has_long_planes(risk) else AHEAD_OF_SHORT
        self.cut_at = cut_at
        self.direction = np.empty(risk.n_weights)
        self.along, self.beyond = risk.empty(), risk.empty()
        self.n_sums = 0

    def go_toward(self, target):
        risk, direction = self.risk, self.direction
        wp, pp = direction_to(target, self.weights, direction)
        self.along = risk.scores(direction, out=self.along)
        step = risk.line_search(self.scores, self.along, wp, pp, self.lam)
        # This is a new array, so that the arrays in the history do not change.
        self.weights, square = moved(self.weights, direction, step)
        self.n_sums += 1
        if self.n_sums >= REFRESH_SCORES:
            self.refresh()
        else:
            self.scores = risk.moved(self.scores, self.along, step, out=self.scores)
        self.objective = self.evaluate(square, self.scores)
        ahead = self.cut_at * (1.0 - step)
        self.beyond = risk.moved(self.scores, self.along, ahead, out=self.beyond)
        return self.beyond

    def refresh(self):
        """Compute the scores anew from w."""
        self.scores = self.risk.scores(self.weights, self.scores)
        self.n_sums = 0

    def row(self):
        if self.n_sums > 0 and self.objective - self.dual_objective <= self.tol:
            self.refresh()
            self.objective = self.evaluate(self.weights @ self.weights, self.scores)
        return super().row()
