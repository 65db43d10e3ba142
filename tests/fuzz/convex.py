"""Objectives in long double, and their minima by solvers that the package does not use.

These are Clarabel's interior points where it is installed, and otherwise steps of SciPy's
L-BFGS-B on smoothed losses, which are less exact. All give an upper bound of the minimum.

Nothing here calls the package. An objective is a penalty of the weights plus the weighted
sum of a loss of groups of rows: of a group's largest row, of the logarithm of the sum of
their exponentials, or of the squares of what is positive.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

try:
    import clarabel
except ImportError:
    clarabel = None

LONG = np.longdouble
# What an evaluation in double precision may lose, as a share of the sizes of its terms.
ROUNDING = 1e-12


@dataclass
class Convex:
    """min_w l2/2 w² + l1 |w| + Σ_i p_i loss(A_i w + b_i).

    Attributes
    ----------
    loss : {"max", "log", "squares"}
    A : ndarray of shape (m, d)
    b : ndarray of shape (m,)
    starts : ndarray of shape (n,)
        The first row of each group.
    p : ndarray of shape (n,)
    l2, l1 : ndarray of shape (d,)
    """

    loss: str
    A: np.ndarray
    b: np.ndarray
    starts: np.ndarray
    p: np.ndarray
    l2: np.ndarray
    l1: np.ndarray

    def value(self, w):
        """The objective at w."""
        w = np.asarray(w, LONG)
        losses = self._losses(self.A @ w + self.b)
        return (self.l2 * w * w / 2 + self.l1 * abs(w)).sum() + self.p @ losses

    def size(self, w):
        """The size of the terms of this sum, which may cancel."""
        w = np.asarray(w, LONG)
        terms = np.maximum.reduceat(abs(self.A) @ abs(w) + abs(self.b), self.starts)
        if self.loss == "squares":
            terms = self._losses(abs(self.A) @ abs(w) + abs(self.b))
        return (self.l2 * w * w / 2 + self.l1 * abs(w)).sum() + self.p @ terms

    def _losses(self, scores):
        if self.loss == "squares":
            return np.add.reduceat(np.maximum(scores, 0) ** 2, self.starts)
        top = np.maximum.reduceat(scores, self.starts)
        if self.loss == "max":
            return top
        sizes = np.diff(self.starts, append=len(scores))
        rest = np.exp(scores - np.repeat(top, sizes))
        return top + np.log(np.add.reduceat(rest, self.starts))

    def minimum(self):
        """(value, weights): the best that a solver finds, or zero weights."""
        size = abs(self.A).max(axis=0)
        # What a column can gain is at most its square over this penalty.
        used = np.flatnonzero(size**2 > 1e-13 * self.l2)
        unit = np.sqrt(size**2 + self.l2)
        points = [np.zeros(len(unit), LONG)]
        if len(used):
            scaled = Convex(
                self.loss, (self.A[:, used] / unit[used]).astype(float),
                self.b.astype(float), self.starts, self.p.astype(float),
                (self.l2[used] / unit[used] ** 2).astype(float),
                (self.l1[used] / unit[used]).astype(float),
            )  # fmt: skip
            found = np.zeros(len(unit), LONG)
            found[used] = _smoothed(scaled) if clarabel is None else _conic(scaled)
            points.append(found / np.where(size > 0, unit, 1))
        found = [(self.value(w), w) for w in points if np.isfinite(w).all()]
        return min(found, key=lambda pair: pair[0])

    @property
    def owner(self):
        """The group of each row."""
        sizes = np.diff(self.starts, append=len(self.b))
        return np.repeat(np.arange(len(self.starts)), sizes)


def _conic(problem):
    """Weights by Clarabel."""
    A, b, owner = sparse.csr_array(problem.A), problem.b, problem.owner
    m, d, n = *A.shape, len(problem.p)
    rows, eye = np.arange(m), sparse.eye_array(m)
    own = sparse.csr_array((np.ones(m), (rows, owner)), shape=(m, n))
    nonnegative = clarabel.NonnegativeConeT
    # Blocks of the weights and of other variables, with what they must not exceed.
    if problem.loss == "squares":
        # What of each row is positive.
        quadratic, linear = 2.0 * problem.p[owner], np.zeros(m)
        blocks = [(A, -eye, -b), (0.0 * A, -eye, np.zeros(m))]
        cones = [nonnegative(2 * m)]
    elif problem.loss == "max":
        quadratic, linear = np.zeros(n), problem.p
        blocks, cones = [(A, -own, -b)], [nonnegative(m)]
    else:
        # (row - loss, 1, z) is in the exponential cone. A group's z sum to 1 at most.
        quadratic, linear = np.zeros(n + m), np.append(problem.p, np.zeros(m))
        first, third = (
            sparse.csr_array((np.ones(m), (3 * rows + at, rows)), shape=(3 * m, m))
            for at in (0, 2)
        )
        sums = sparse.hstack([sparse.csr_array((n, n)), own.T])
        cone = sparse.hstack([first @ own, -third])
        blocks = [(sparse.csr_array((n, d)), sums, np.ones(n))]
        blocks.append((-first @ A, cone, first @ b + np.tile([0.0, 1.0, 0.0], m)))
        cones = [nonnegative(n), *[clarabel.ExponentialConeT()] * m]
    # The sizes of the weights.
    width, eye = len(linear), sparse.eye_array(d)
    table = [[left, right, None] for left, right, _ in blocks]
    table += [[eye, sparse.csr_array((d, width)), -eye], [-eye, None, -eye]]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sparse.diags_array(np.concatenate([problem.l2, quadratic, np.zeros(d)])).tocsc(),
        np.concatenate([np.zeros(d), linear, problem.l1]),
        sparse.block_array(table).tocsc(),
        np.concatenate([*(limit for *_, limit in blocks), np.zeros(2 * d)]),
        [*cones, nonnegative(2 * d)],
        settings,
    )
    return np.asarray(solver.solve().x)[:d]


def _smoothed(problem):
    """Weights by L-BFGS-B; a maximum is smoothed less and less."""
    d = len(problem.l2)
    temperatures = (1e-2, 1e-5) if problem.loss == "max" else (1.0,)
    parts, owner = np.zeros(2 * d), problem.owner

    def value(parts, temperature):
        w = parts[:d] - parts[d:]
        scores = problem.A @ w + problem.b
        if problem.loss == "squares":
            active = np.maximum(scores, 0.0)
            loss, slope = problem.p[owner] @ active**2, 2.0 * active
        else:
            top = np.maximum.reduceat(scores, problem.starts)
            shares = np.exp((scores - top[owner]) / temperature)
            sums = np.add.reduceat(shares, problem.starts)
            loss = problem.p @ (top + temperature * np.log(sums))
            slope = shares / sums[owner]
        gradient = problem.l2 * w + (problem.p[owner] * slope) @ problem.A
        total = (
            problem.l2 @ w**2 / 2 + problem.l1 @ parts.reshape(2, d).sum(axis=0) + loss
        )
        return total, np.concatenate([gradient, -gradient]) + np.tile(problem.l1, 2)

    for temperature in temperatures:
        parts = minimize(
            value, parts, args=(temperature,), jac=True, method="L-BFGS-B",
            bounds=[(0.0, None)] * (2 * d), options={"maxiter": 200, "ftol": 1e-14},
        ).x  # fmt: skip
    return parts[:d] - parts[d:]
