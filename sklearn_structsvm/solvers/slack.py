"""Slack variables that take the confusion tensor's place in metrics and constraints."""

import numpy as np

from sklearn_structsvm.solvers.coordinates import Coordinates
from sklearn_structsvm.solvers.interior_point import solve_qp

# How far a minimum over the slack variables may be from what it is, relative to `tol`.
ACCURACY = 1e-2

# Programs for one minimum, and halvings of a step.
MAX_PROGRAMS = 30
MAX_HALVINGS = 20

# Share of the way to the uniform point at which curvature is taken, and the step of its
# differences.
INSIDE = 1e-4
DIFFERENCE = 1e-5

# Tangents of a metric without a gradient everywhere that are kept.
MAX_CUTS = 200


def check_convex(problem, name):
    """ValueError where a Lagrange dual would not have the same value as the problem."""
    if not problem.convex:
        raise ValueError(
            f"solver {name!r} is for convex metrics, and "
            f"{getattr(problem, 'metric', problem)!r} is not: use 'column_generation'"
            + (", or 'bisection'." if problem.ratio() is not None else ".")
        )


class SlackLagrangian:
    """ψ(ξ) + Σ_k μ_k φ_k(ξ) as a function of the coordinates of ξ.

    Attributes
    ----------
    coordinates : Coordinates
    n_multipliers : int
        K: the linear constraints, then the convex ones.
    """

    def __init__(self, problem):
        self.problem = problem
        self.coordinates = z = Coordinates(problem)
        G, h = problem.linear
        self.rows = np.array([z.slopes(row) for row in G]).reshape(len(h), z.n)
        self.ends = h + np.array([z.constant(row) for row in G])
        self.n_multipliers = len(h) + len(problem.convex_constraints)

    def constraints(self, xi):
        """φ(ξ), of shape (K,)."""
        values = self.rows @ xi + self.ends
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


class SlackMinimiser:
    """min over ξ in Z of ψ(ξ) - <λ, ξ> + Σ_k μ_k φ_k(ξ), the second half of the dual.

    By quadratic programs with the curvature at hand where ψ is smooth, by linear ones
    where it is a maximum of linear functions, or is made one by its tangents.

    Parameters
    ----------
    lagrangian : SlackLagrangian
    tol : float
        Of the minimum.
    """

    def __init__(self, lagrangian, tol):
        self.lagrangian, self.tol = lagrangian, tol
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
        self.slopes = np.vstack([self.slopes, slopes])[-MAX_CUTS:]
        self.offsets = np.append(self.offsets, offset)[-MAX_CUTS:]

    def minimise(self, multipliers, mu, xi):
        """From ξ: the minimiser, the value there, and a lower bound of the minimum."""
        low, best = -np.inf, (np.inf, xi)
        for _ in range(MAX_PROGRAMS):
            value = self.lagrangian.value(xi, mu) - float(multipliers @ xi)
            best = min(best, (value, xi), key=lambda pair: pair[0])
            slopes, offset = self.lagrangian.tangent(xi, mu)
            low = max(low, offset + self.z.least(slopes - multipliers))
            if best[0] - low <= self.tol:
                break
            xi, bound = self._step(multipliers, mu, best[1], xi, slopes)
            low = max(low, bound)
        return best[1], best[0], low

    def _step(self, multipliers, mu, xi, tried, slopes):
        """The next point, and a lower bound where a linear program gives one."""
        n, p = self.z.n, len(self.lagrangian.ends)
        bends = self.smooth or bool(mu[p:].any())
        Q = self._curvature(xi, mu) if bends else None
        c = slopes - multipliers
        if not self.smooth:
            if not self.exact_pieces:
                self._add(*self._metric_tangent(tried))
            c = c - self._metric_tangent(xi)[0]
        if Q is not None:
            c = c - Q @ xi
        target, y = self._program(c, Q, xi)
        if Q is None:
            y = y / y.sum()
            mixed = y @ self.slopes - multipliers + mu @ self.lagrangian.rows
            ends = y @ self.offsets + mu @ self.lagrangian.ends
            return target, float(ends) + self.z.least(mixed)
        before = self.lagrangian.value(xi, mu) - multipliers @ xi
        for k in range(MAX_HALVINGS):
            point = xi + 0.5**k * (target - xi)
            if self.lagrangian.value(point, mu) - multipliers @ point < before:
                break
        return point, -np.inf

    def _metric_tangent(self, xi):
        """The tangent of ψ alone."""
        return self.lagrangian.tangent(xi, np.zeros(self.lagrangian.n_multipliers))

    def _curvature(self, xi, mu):
        n = self.z.n
        xi = (1.0 - INSIDE) * xi + INSIDE * self.inside
        if not self.smooth:
            metric = self._metric_tangent
        def slopes(point):
            both = self.lagrangian.tangent(point, mu)[0]
            return both if self.smooth else both - metric(point)[0]
        base = slopes(xi)
        steps = DIFFERENCE * np.where(xi < 0.5, 1.0, -1.0)
        Q = np.array([(slopes(xi + d) - base) for d in np.diag(steps)]) / steps[:, None]
        Q = 0.5 * (Q + Q.T)
        Q[np.diag_indices(n)] += 1e-10 * (1.0 + np.abs(Q).max())
        return Q

    def _program(self, c, Q, xi):
        """The program in (ξ, 1, v), v at least all pieces; its multipliers of these."""
        n, has_v = self.z.n, int(not self.smooth)
        size, groups = n + 1 + has_v, self.z.groups
        D = np.zeros((len(groups) + has_v * len(self.offsets), size))
        D[: len(groups), :n] = groups
        b = np.ones(len(D))
        cost = np.concatenate([c, np.zeros(1), np.ones(has_v)])
        start = np.concatenate([0.9 * self.inside + 0.1 * xi, np.ones(1 + has_v)])
        if has_v:
            values = self.slopes @ start[:n] + self.offsets
            low = float((self.slopes.clip(max=0.0).sum(axis=1) + self.offsets).min()) - 1.0
            D[len(groups) :, :n] = self.slopes
            D[len(groups) :, -1] = -1.0
            b[len(groups) :] = low - self.offsets
            start[-1] = float(values.max()) - low + 1.0
        if Q is not None:
            wide = np.zeros((size, size))
            wide[:n, :n] = Q
            Q = wide
        a = np.zeros(size)
        a[n] = 1.0
        found = solve_qp(cost, a, D, b, start, Q=Q, tol=0.1 * self.tol)
        return self.z.project(found.x[:n]), found.y[len(groups) :]
