"""Bundle methods for regularized risk minimization, with or without a line search."""

import numpy as np

from sklearn_structsvm.solvers.batch.ocas import CuttingPlaneSteps, OcasSteps
from sklearn_structsvm.solvers.batch.product_bundle import make_bundle
from sklearn_structsvm.solvers.loop import run_steps


def run_bmrm(
    risk,
    lam,
    *,
    line_search=True,
    subproblem="qp",
    cut_at=None,
    w0=None,
    bundle=None,
    tol=1e-3,
    **limits,
):
    """Minimize λ/2 ||w||² + R(w), R a convex risk that gives planes below itself.

    An iteration makes one product X W, one Xᵀ B and one column of the bundle's Gram
    matrix. With `line_search`, the best point moves to the minimum of the objective on
    the line to the bundle's minimizer (as in OCAS, but for any risk with a line search),
    and the plane is taken a little beyond it. For structures, which have only a
    max-oracle, use `run_cutting_plane`. `BMRMClassifier` lists the papers.

    `line_search`: False takes the planes at the bundle's minimizers, which is the
      method of Teo et al.
    `subproblem` ({"qp", "line"}): the bundle is minimized exactly, or only between its
      last solution and the new plane: a single step in one variable. The analysis needs
      no more (Theorem 5 of Saha et al., "Lower bounds for BMRM"), and no planes are kept.
    `cut_at`: in (0, 1]: with `line_search`, the plane is taken at (1 - cut_at) times
      the best point plus cut_at times the bundle's minimizer. 0.1 makes the method
      OCAS. None: 0.1 if there are many features but few per row, and 0.01 otherwise.
    `w0` (risk.n_weights,) or None: the start. By default it is the bundle's minimizer,
      or zero if the bundle is empty.
    `bundle` or None: planes below the risk that are already known, for the same λ. The
      method adds more.
    `tol`, `**limits`: as for `run_passes`. "n_oracle_calls" counts planes.
    Returns the `SolverResult` for the best weights seen. "stalled" if only rounding is
      left of the gap.
    """
    if bundle is None:
        bundle = make_bundle(risk, lam) if subproblem == "qp" else AggregatePlane(lam)
    elif bundle.lam != lam:
        raise ValueError(
            f"The bundle was made for λ = {bundle.lam}, and not for {lam}: "
            f"bundle.at({lam}) has its planes for that λ."
        )
    if w0 is None:
        w0 = bundle.weights if len(bundle.offsets) else np.zeros(risk.n_weights)
    if line_search:
        steps = OcasSteps(risk, lam, bundle, w0, cut_at, tol=tol)
    else:
        steps = CuttingPlaneSteps(risk, lam, bundle, w0)
    steps.cut(steps.scores)
    return run_steps(steps, tol=tol, **limits)


class AggregatePlane:
    """A bundle with one plane, the weighted mean of all that were added.

    The weight of each new one maximizes the dual, λ min_w ½ ||w||² + ⟨a, w⟩ + b, on the
    segment between the two, in closed form: coordinate ascent on the bundle's dual with
    the coordinate of the steepest slope.

    `weights` (d,): -a / λ. `offsets`: b, where there is a plane.
    """

    def __init__(self, lam):
        self.lam = lam
        self.offsets = []
        self.dual_objective = -np.inf

    def add(self, plane, offset):
        if not self.offsets:
            self.plane, self.offsets = plane.copy(), [offset]
            return
        step = plane - self.plane
        rise = self.lam * (offset - self.offsets[0]) - self.plane @ step
        square = step @ step
        # If planes are parallel, keep the higher one.
        share = min(max(rise / square, 0.0), 1.0) if square > 0.0 else float(rise > 0.0)
        self.plane += share * step
        self.offsets[0] += share * (offset - self.offsets[0])

    def cut(self, risk, B, offset):
        self.add(risk.gradient(B), offset)

    def solve(self):
        self.weights = self.plane / -self.lam
        self.dual_objective = float(
            self.offsets[0] - 0.5 * self.lam * self.weights @ self.weights
        )
