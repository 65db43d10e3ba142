"""Small dense convex quadratic programs, by a primal-dual interior point method."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

# Share of the way to the nearest border that a step goes at most.
TO_THE_BORDER = 0.99

# Slacks, variables and multipliers start no nearer to the border than this, in units of
# the program (weights sum to 1, losses and rates are of the order of 1).
INTERIOR = 1e-2

# A step shorter than this is worth a second one that balances the pairs, whose products
# are to be within this factor of their target.
SHORT = 0.9
BALANCE = 10.0

# No step aims at a gap below this share of the tolerance.
BELOW_TOL = 0.1

# A program of this size is solved in about 12 steps, or 25 to the last digits; more are
# the work of rounding.
MAX_STEPS = 60

# What is added to the diagonal, relative to its mean, where rounding has left the matrix
# of the Newton step indefinite.
RIDGE = 1e-12


@dataclass
class QPSolution:
    """Where the interior point method ended.

    Attributes
    ----------
    x : ndarray of shape (n,)
        Positive.
    y : ndarray of shape (p,)
        Positive multipliers of the rows of D x <= b.
    gap : float
        Complementarity x·z + s·y: how much too large the objective may be, but for the
        residuals.
    residual : float
        Largest violation of the optimality conditions that are linear.
    n_steps : int
    """

    x: np.ndarray
    y: np.ndarray
    gap: float
    residual: float
    n_steps: int


def solve_qp(c, a, D, b, x, *, Q=None, tol=1e-9):
    """Minimise ½ xᵀQx + cᵀx over x >= 0 with aᵀx = 1 and D x <= b.

    Mehrotra's predictor-corrector method [1]_ with a centrality corrector [3]_, from any
    point. It stops in the middle of the central path where `tol` is large: the
    multipliers are then far from the corners of their optimal set, which is what column
    generation wants of them [2]_.

    Parameters
    ----------
    c, a : ndarray of shape (n,)
    D : ndarray of shape (p, n)
    b : ndarray of shape (p,)
    x : ndarray of shape (n,)
        Start. Best such that D x < b.
    Q : ndarray of shape (n, n) or None
        Positive semidefinite; None is zero, a linear program.
    tol : float
        Stop where the complementarity and the residuals are at most this.

    Returns
    -------
    QPSolution

    References
    ----------
    .. [1] Nocedal, Wright, "Numerical optimization", 2006, Algorithms 14.3 and 16.4.
    .. [2] Gondzio, Gonzalez-Brevis, Munari, "New developments in the primal-dual column
       generation technique", European Journal of Operational Research 224, 2013.
    .. [3] Gondzio, "Multiple centrality corrections in a primal-dual method for linear
       programming", Computational Optimization and Applications 6, 1996.

    Examples
    --------
    The point of the segment from (0, 0) to (2, 0) that is nearest to (1, 1) and has its
    first coordinate at most 0.5:

    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.interior_point import solve_qp
    >>> ends = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> solution = solve_qp(
    ...     -ends @ [1.0, 1.0], np.ones(2), ends[:, :1].T, np.array([0.5]),
    ...     np.array([0.9, 0.1]), Q=ends @ ends.T)
    >>> solution.x.round(6).tolist(), solution.y.round(6).tolist()
    ([0.75, 0.25], [0.5])
    """
    n_pairs = len(c) + len(b)
    x = np.maximum(x, INTERIOR / len(c))
    s = np.maximum(b - D @ x, INTERIOR)
    scale = max(float(np.abs(c).max(initial=0.0)), INTERIOR)
    z = 0.1 * scale / np.maximum(x, INTERIOR)
    y = 0.1 * scale / np.maximum(s, INTERIOR)
    level, last = 0.0, np.inf
    for n_steps in range(MAX_STEPS + 1):
        dual = c + D.T @ y - level * a - z
        if Q is not None:
            dual += Q @ x
        primal, total = D @ x + s - b, float(a @ x) - 1.0
        gap = float(x @ z + s @ y)
        residual = max(
            float(np.abs(dual).max()), float(np.abs(primal).max(initial=0.0)), abs(total)
        )
        # Residuals that no longer fall are rounding, which a smaller gap makes worse.
        if gap <= tol and (residual <= tol or residual > 0.5 * last):
            break
        if n_steps == MAX_STEPS:
            break
        last = residual
        newton = _Newton(x, s, y, z, a, D, Q, (dual, primal, total))
        if not newton.solvable:
            break
        floor = BELOW_TOL * tol / n_pairs
        steps, near, far = _way(newton, (x, s, y, z), gap, floor, joint=Q is not None)
        dx, ds, dlevel, dy, dz = steps
        x, s = x + near * dx, s + near * ds
        y, z, level = y + far * dy, z + far * dz, level + far * dlevel
    return QPSolution(x, y, gap, residual, n_steps)


def _way(newton, point, gap, floor, *, joint):
    """Where to go from a point, and how far in its primal and its dual variables."""
    x, s, y, z = point
    # Predict how far the gap falls if it alone counts, then aim there.
    steps = newton.direction(-x * z, -s * y)
    near, far = _lengths(point, steps, joint=joint, share=1.0)
    dx, ds, _, dy, dz = steps
    ahead = (x + near * dx) @ (z + far * dz) + (s + near * ds) @ (y + far * dy)
    target = max((ahead / gap) ** 3 * gap / (len(x) + len(s)), floor)
    # A prediction that ends early says little of what second-order terms it leaves, and
    # all of them would point far beyond the border, back and forth.
    believed = near * far
    for_x = target - x * z - believed * dx * dz
    for_s = target - s * y - believed * ds * dy
    steps = newton.direction(for_x, for_s)
    near, far = _lengths(point, steps, joint=joint, share=TO_THE_BORDER)
    if min(near, far) >= SHORT:
        return steps, near, far
    # Pairs that are far too small or too large at the end of the step block the way: aim
    # at a better balance of them.
    dx, ds, _, dy, dz = steps
    for_x += _balance((x + near * dx) * (z + far * dz), target)
    for_s += _balance((s + near * ds) * (y + far * dy), target)
    others = newton.direction(for_x, for_s)
    longer = _lengths(point, others, joint=joint, share=TO_THE_BORDER)
    if min(longer) > min(near, far):
        return others, *longer
    return steps, near, far


class _Newton:
    """Newton steps at one point: two right-hand sides share a factorisation."""

    def __init__(self, x, s, y, z, a, D, Q, residuals):
        self.point = x, s, y, z, a, D, Q
        self.residuals = residuals
        M = (D.T * (y / s)) @ D
        if Q is not None:
            M += Q
        diagonal = M.reshape(-1)[:: len(M) + 1]
        diagonal += z / x
        self.factor, info = dpotrf(M, lower=1, clean=0)
        if info:
            diagonal += RIDGE * diagonal.mean()
            self.factor, info = dpotrf(M, lower=1, clean=0)
        self.solvable = info == 0
        if self.solvable:
            self.along = dpotrs(self.factor, a, lower=1)[0]

    def direction(self, for_x, for_s):
        """Steps of x, s, the level, y and z with z dx + x dz = for_x and so for s, y."""
        x, s, y, z, a, D, Q = self.point
        dual, primal, total = self.residuals
        rhs = for_x / x - dual - D.T @ ((for_s + y * primal) / s)
        dx = dpotrs(self.factor, rhs, lower=1)[0]
        dlevel = -(total + a @ dx) / (a @ self.along)
        dx += dlevel * self.along
        ds = -primal - D @ dx
        dy = (for_s - y * ds) / s
        # Not (for_x - z dx) / x, which is the same but for rounding, and that large.
        dz = dual + D.T @ dy - dlevel * a
        if Q is not None:
            dz += Q @ dx
        return dx, ds, dlevel, dy, dz


def _balance(products, target):
    """What complementary products lack, or have too much, to be near the target."""
    wanted = np.clip(products, target / BALANCE, target * BALANCE)
    return np.maximum(wanted - products, -BALANCE * target)


def _lengths(point, steps, *, joint, share):
    """How far to go in the primal variables and in the dual ones, at most 1."""
    x, s, y, z = point
    dx, ds, _, dy, dz = steps
    near = min(1.0, share * min(_reach(x, dx), _reach(s, ds)))
    far = min(1.0, share * min(_reach(y, dy), _reach(z, dz)))
    return (min(near, far),) * 2 if joint else (near, far)


def _reach(v, dv):
    """The step at which the first entry of a positive vector is zero."""
    if not len(v):
        return np.inf
    fastest = float((dv / v).min())
    return -1.0 / fastest if fastest < 0.0 else np.inf
