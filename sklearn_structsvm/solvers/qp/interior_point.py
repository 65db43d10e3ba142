"""Small dense convex quadratic programs, by a primal-dual interior point method."""

from dataclasses import dataclass

import numpy as np

from sklearn_structsvm._utils.threads import one_blas_thread
from sklearn_structsvm.solvers.qp._interior_point import InteriorPoint

# Slacks, variables and multipliers start at least this far from the border, in units of
# the program (weights sum to 1, losses and rates are of the order of 1).
INTERIOR = 1e-2


@dataclass
class QPSolution:
    """The result of the interior point method.

    `x` (n,): positive. `y` (p,): positive multipliers of the rows of D x <= b. `gap`:
    complementarity x·z + s·y, which bounds the suboptimality of the objective up to the
    residuals. `residual`: largest violation of the linear optimality conditions.
    """

    x: np.ndarray
    y: np.ndarray
    gap: float
    residual: float
    n_steps: int


def solve_qp(c, a, D, b, x, *, Q=None, tol=1e-9):
    """Minimize ½ xᵀQx + cᵀx over x >= 0 with aᵀx = 1 and D x <= b.

    Mehrotra's predictor-corrector method [1]_ with a centrality corrector [3]_, from any
    point. If `tol` is large, it stops in the middle of the central path. The multipliers
    are then far from the corners of their optimal set, as column generation prefers [2]_.

    `c`, `a` (n,), `D` (p, n), `b` (p,). `x` (n,): the start, preferably with D x < b.
    `Q` (n, n): positive semidefinite; None is zero, a linear program. `tol`: stop if
    the complementarity and the residuals are at most this. Returns a `QPSolution`.

    .. [1] Nocedal, Wright, "Numerical optimization", 2006, Algorithms 14.3 and 16.4.
    .. [2] Gondzio, Gonzalez-Brevis, Munari, "New developments in the primal-dual column
       generation technique", European Journal of Operational Research 224, 2013.
    .. [3] Gondzio, "Multiple centrality corrections in a primal-dual method for linear
       programming", Computational Optimization and Applications 6, 1996.
    """
    x = np.maximum(x, INTERIOR / len(c))
    s = np.maximum(b - D @ x, INTERIOR)
    scale = max(float(np.abs(c).max(initial=0.0)), INTERIOR)
    z = 0.1 * scale / np.maximum(x, INTERIOR)
    y = 0.1 * scale / np.maximum(s, INTERIOR)
    point = InteriorPoint(c, a, D, b, Q, x, s, y, z)
    with one_blas_thread():
        point.run(tol)
    return QPSolution(point.x, point.y, point.gap, point.residual, point.n_steps)
