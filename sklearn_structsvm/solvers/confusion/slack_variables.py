"""Slack variables that replace the confusion tensor in metrics and constraints."""

import numpy as np

from sklearn_structsvm._utils.backtracking import MAX_HALVINGS
from sklearn_structsvm.solvers.accuracy import FINAL_SHARE, INNER_SHARE, MAX_PROGRAMS
from sklearn_structsvm.solvers.confusion.master import DIFFERENCE_SHARE
from sklearn_structsvm.solvers.qp._simplices import project_simplices
from sklearn_structsvm.solvers.qp.epigraph import Epigraph, minimize


class Coordinates:
    """The entries that a problem depends on, each divided by its row sum.

    z[c] = C[a, i, j] / π[a, i] for the entries (a, i, j) on which the metric or a
    constraint depends. In a row where these are all entries, one is omitted, since it is
    1 minus the others. The G-mean of k classes has k coordinates, the recalls; with a
    constraint on two classes and m groups there are 2 m of them, those of section 8.2.

    All C >= 0 with these row sums are in the set Z = {z >= 0, sum over each row <= 1}. It
    replaces the simplex of the paper's slack variables: it is smaller, and metrics are
    convex for these row sums.

    Attributes: `groups` (n_rows, n): the coordinates of each row, as 0 and 1.
    """

    def __init__(self, problem):
        self.shape = problem.shape
        k = self.shape[-1]
        used = problem.entries().reshape(-1, k)
        priors = problem.priors.ravel()
        index, rest, row = [], [], []
        self.rest_of_rows = np.zeros(len(priors), dtype=int)
        for r in np.flatnonzero(priors > 0.0):
            columns = np.flatnonzero(used[r])
            if len(columns) == k:
                # Any entry but the diagonal one may be omitted.
                left_out = 1 if r % k == 0 else 0
                columns = np.delete(columns, left_out)
            else:
                left_out = int(np.flatnonzero(~used[r])[0])
            self.rest_of_rows[r] = left_out
            index.extend(r * k + columns)
            rest.extend([r * k + left_out] * len(columns))
            row.extend([r] * len(columns))
        self.index, self.rest = np.array(index, dtype=int), np.array(rest, dtype=int)
        self.priors = priors
        self.scale = priors[np.array(row, dtype=int)]
        rows, self.row = np.unique(np.array(row, dtype=int), return_inverse=True)
        self.n = len(self.index)
        self.groups = np.zeros((len(rows), self.n))
        self.groups[self.row, np.arange(self.n)] = 1.0
        self.members = [np.flatnonzero(group) for group in self.groups]
        # Is Z a box?
        self.single = len(rows) == self.n

    def of(self, C):
        """The coordinates of a tensor."""
        return np.reshape(C, -1)[self.index] / self.scale

    def tensor(self, z):
        """A tensor with these coordinates and the problem's row sums."""
        k = self.shape[-1]
        C = np.zeros((len(self.priors), k))
        C.reshape(-1)[self.index] = z * self.scale
        C[np.arange(len(C)), self.rest_of_rows] += self.priors - C.sum(axis=1)
        return C.reshape(self.shape)

    def slopes(self, G):
        """The gradient in coordinates of a function whose gradient in C is G."""
        flat = np.reshape(G, -1)
        return self.scale * (flat[self.index] - flat[self.rest])

    def constant(self, G):
        """<G, C> minus the slopes times the coordinates."""
        rest = np.reshape(G, (len(self.priors), -1))
        return float(self.priors @ rest[np.arange(len(rest)), self.rest_of_rows])

    def loss(self, multipliers):
        """L with <L, C> = multipliers times the coordinates."""
        L = np.zeros(len(self.priors) * self.shape[-1])
        L[self.index] = multipliers / self.scale
        return L.reshape(self.shape)

    def lowest(self, slopes):
        """The point of Z that minimizes slopes · z."""
        if self.single:
            return (slopes < 0.0).astype(np.float64)
        z = np.zeros(self.n)
        for members in self.members:
            best = members[np.argmin(slopes[members])]
            z[best] = float(slopes[best] < 0.0)
        return z

    def least(self, slopes):
        """The minimum of slopes · z over Z."""
        return float(slopes @ self.lowest(slopes))

    def project(self, z):
        """The nearest point of Z."""
        z = np.maximum(z, 0.0)
        if self.single:
            return np.minimum(z, 1.0)
        for members in self.members:
            z[members] = project_solid_simplex(z[members], 1.0)
        return z


def project_solid_simplex(x, size):
    """The nearest point of {x >= 0, Σ x <= size}."""
    x = np.maximum(x, 0.0)
    if x.sum() <= size:
        return x
    return size * project_simplices(x / size, np.array([0, len(x)]))


# Curvature is taken at this share of the way to the uniform point.
TOWARD_UNIFORM = 1e-4

# The number of programs with the curvature of a smooth metric, before tangents are used.
CURVED_PROGRAMS = 4

# The number of tangents kept of a metric that is not smooth everywhere.
MAX_CUTS = 200


def check_convex(problem, name):
    """Raise ValueError if a Lagrange dual could have another value than the problem."""
    if not problem.convex:
        raise ValueError(
            f"solver {name!r} is for convex metrics, and "
            f"{problem.metric!r} is not: use 'column_generation'"
            + (", or 'bisection'." if problem.ratio() is not None else ".")
        )


def sides_of_levels(halves):
    """Slopes of conditions along their levels: -1 for an upper half, 1 for a lower one.

    `halves` (p,) int: as of `Conditions`. Returns (p, n_levels).
    """
    levels = np.arange(1, halves.max(initial=0) + 1)
    return -np.sign(halves)[:, None] * (np.abs(halves)[:, None] == levels)


class MetricLagrangian:
    """ψ(ξ) + Σ_k μ_k φ_k(ξ) as a function of the coordinates of ξ.

    The halves of a condition (see `Conditions`) are on both sides of a slack variable of
    their own, the level: upper half - level <= 0 and lower half + level <= 0. So g groups
    have 2 g multipliers and not g (g - 1).

    `n_multipliers`: K: the linear constraints, then the convex ones. `sides` (p,
    n_levels): the slopes of the linear constraints along the levels. `low`, `high`
    (n_levels,): the range of the largest upper half of each level, for all ξ.
    """

    def __init__(self, problem):
        self.problem = problem
        self.coordinates = z = Coordinates(problem)
        G, h, _, halves = problem.conditions
        self.rows = np.array([z.slopes(row) for row in G]).reshape(len(h), z.n)
        self.ends = h + np.array([z.constant(row) for row in G])
        self.n_multipliers = len(h) + len(problem.convex_constraints)
        self.sides = sides_of_levels(halves)
        uppers = [np.flatnonzero(side < 0.0) for side in self.sides.T]
        least = np.array([z.least(row) for row in self.rows]) + self.ends
        most = self.ends - np.array([z.least(-row) for row in self.rows])
        self.low = np.array([least[upper].max() for upper in uppers])
        self.high = np.array([most[upper].max() for upper in uppers])

    def levels(self, mu):
        """The levels that minimize the Lagrangian, and their part of it."""
        slopes = mu[: len(self.ends)] @ self.sides
        levels = np.where(slopes > 0.0, self.low, self.high)
        return levels, float(slopes @ levels)

    def constraints(self, xi, levels=None):
        """φ(ξ), of shape (K,); without levels, as if they were 0."""
        values = self.rows @ xi + self.ends
        if levels is not None:
            values = values + self.sides @ levels
        if self.problem.convex_constraints:
            C = self.coordinates.tensor(xi)
            bent = [phi.value(C) for phi in self.problem.convex_constraints]
            values = np.concatenate([values, bent])
        return values

    def tangent(self, xi, mu):
        """Slopes and offset of the tangent at ξ, in coordinates."""
        z, C, p = self.coordinates, self.coordinates.tensor(xi), len(self.ends)
        G, h = self.problem.tangent(C)
        slopes, offset = z.slopes(G), h + z.constant(G)
        for weight, phi in zip(mu[p:], self.problem.convex_constraints, strict=True):
            G, h = phi.tangent(C)
            slopes = slopes + weight * z.slopes(G)
            offset += weight * (h + z.constant(G))
        return slopes + mu[:p] @ self.rows, offset + float(mu[:p] @ self.ends)

    def value(self, xi, mu):
        """ψ(ξ) + Σ_k μ_k φ_k(ξ)."""
        value = self.problem.value(self.coordinates.tensor(xi))
        return value + float(mu @ self.constraints(xi))


class MetricMinimizer:
    """min over ξ in Z of ψ(ξ) - <λ, ξ> + Σ_k μ_k φ_k(ξ), the second half of the dual.

    It is found by linear programs if ψ is a maximum of linear functions. If ψ is not
    smooth, the largest of its tangents replaces it. If it is smooth, quadratic programs
    with its curvature come first (at rates of 0 even smooth metrics have kinks).

    `tol`: the tolerance of the run. Minima are accurate to a share of it.
    """

    def __init__(self, lagrangian, tol):
        self.lagrangian, self.tol = lagrangian, max(FINAL_SHARE * tol, 1e-8)
        self.problem, self.z = lagrangian.problem, lagrangian.coordinates
        self.inside = self.z.of(self.problem.uniform)
        pieces = self.problem.pieces()
        self.exact_pieces = pieces is not None
        self.smooth = pieces is None and self.problem.smooth
        self.slopes, self.offsets = np.zeros((0, self.z.n)), np.zeros(0)
        if pieces is not None:
            for G, h in zip(*pieces, strict=True):
                self._add(self.z.slopes(G), h + self.z.constant(G))

    def _add(self, slopes, offset):
        self.slopes = np.vstack([self.slopes, slopes])
        self.offsets = np.append(self.offsets, offset)
        if not self.exact_pieces:
            self.slopes, self.offsets = self.slopes[-MAX_CUTS:], self.offsets[-MAX_CUTS:]

    def minimize(self, multipliers, mu, xi, enough=-np.inf):
        """Starting from ξ: the minimizer, its value, and a lower bound of the minimum.

        If the value is far below `enough`, no more accuracy is needed.
        """
        low, best = -np.inf, (np.inf, xi)
        for n_programs in range(MAX_PROGRAMS):
            value = self.lagrangian.value(xi, mu) - float(multipliers @ xi)
            best = min(best, (value, xi), key=lambda pair: pair[0])
            slopes, offset = self.lagrangian.tangent(xi, mu)
            low = max(low, offset + self.z.least(slopes - multipliers))
            if best[0] - low <= max(self.tol, INNER_SHARE * (enough - best[0])):
                break
            if self.smooth and n_programs < CURVED_PROGRAMS:
                xi = self._curved_step(multipliers, mu, best[1], slopes)
            else:
                if not self.exact_pieces:
                    self._add(*self._metric_tangent(xi))
                xi, bound = self._piecewise_step(multipliers, mu, best[1])
                low = max(low, bound)
                if xi is best[1]:  # The same program would come again.
                    break
        return best[1], best[0], low

    def _curved_step(self, multipliers, mu, xi, slopes):
        """Move toward the minimizer of the quadratic model, as far as the value falls."""
        Q = self._curvature(xi, mu, whole=True)
        target, _ = self._program(slopes - multipliers - Q @ xi, Q, xi, pieces=False)
        return self._fall(multipliers, mu, xi, target)

    def _piecewise_step(self, multipliers, mu, xi):
        """The minimizer for ψ as its tangents; a lower bound if all else is linear."""
        rows, p = self.lagrangian.rows, len(self.lagrangian.ends)
        c, Q = mu[:p] @ rows - multipliers, None
        if mu[p:].any():
            slopes = self.lagrangian.tangent(xi, mu)[0]
            Q = self._curvature(xi, mu, whole=False)
            c = slopes - self._metric_tangent(xi)[0] - multipliers - Q @ xi
        target, y = self._program(c, Q, xi, pieces=True)
        if Q is not None:
            return self._fall(multipliers, mu, xi, target), -np.inf
        y = y / y.sum()
        bound = (
            y @ self.offsets
            + mu[:p] @ self.lagrangian.ends
            + self.z.least(y @ self.slopes + c)
        )
        return target, float(bound)

    def _fall(self, multipliers, mu, xi, target):
        """The first of successively halved steps to the target that falls, or ξ."""
        before = self.lagrangian.value(xi, mu) - multipliers @ xi
        for k in range(MAX_HALVINGS):
            point = xi + 0.5**k * (target - xi)
            if self.lagrangian.value(point, mu) - multipliers @ point < before:
                return point
        return xi

    def _metric_tangent(self, xi):
        """The tangent of ψ alone."""
        return self.lagrangian.tangent(xi, np.zeros(self.lagrangian.n_multipliers))

    def _curvature(self, xi, mu, whole):
        """Second derivatives; those of the constraints alone unless `whole`."""
        n = self.z.n
        xi = (1.0 - TOWARD_UNIFORM) * xi + TOWARD_UNIFORM * self.inside

        def slopes(point):
            both = self.lagrangian.tangent(point, mu)[0]
            return both if whole else both - self._metric_tangent(point)[0]

        base = slopes(xi)
        steps = DIFFERENCE_SHARE * np.where(xi < 0.5, 1.0, -1.0)
        Q = np.array([(slopes(xi + d) - base) for d in np.diag(steps)]) / steps[:, None]
        Q = 0.5 * (Q + Q.T)
        Q[np.diag_indices(n)] += 1e-10 * (1.0 + np.abs(Q).max())
        return Q

    def _program(self, c, Q, xi, pieces):
        """Solve the program in (ξ, 1, v), with v above all pieces.

        Returns their multipliers.
        """
        start = np.append(0.9 * self.inside + 0.1 * xi, 1.0)
        epigraphs = []
        if pieces:
            least = self.slopes.clip(max=0.0).sum(axis=1) + self.offsets
            whole, low = np.zeros(len(least), dtype=int), float(least.min()) - 1.0
            epigraphs.append(
                Epigraph(1.0, self.slopes, whole, low, start, offsets=self.offsets)
            )
        x, y = minimize(
            np.append(c, 0.0), np.eye(1, len(start), self.z.n)[0], start, epigraphs,
            rows=self.z.groups, Q=Q, tol=0.1 * self.tol,
        )  # fmt: skip
        return self.z.project(x[:-1]), y[0] if pieces else None
