"""Quadratic programs in which some variables are above all of many linear functions."""

import numpy as np

from sklearn_structsvm.solvers.qp.interior_point import solve_qp


def minimize(c, a, x, epigraphs, *, rows=None, Q=None, tol):
    """The program min c·x + xᵀQx / 2 + Σ price · v, with aᵀx = 1 and x >= 0.

    `c`, `a`, `x` (n,): the last one is the point to start from. `epigraphs` (list of
    Epigraph): each with its v, and variables of its levels. `rows` (m, k) or None:
    other conditions on the first k variables, rows @ x <= 1. `Q` (k, k) or None: the
    curvature in the first k variables. `tol`: as of `solve_qp`. Returns `x` (n,);
    `multipliers` (list of (p,)): of the conditions of each epigraph.
    """
    n = len(c)
    rows = np.zeros((0, n)) if rows is None else rows
    size = n + sum(len(e.start) for e in epigraphs)
    ends = np.cumsum([len(rows), *(len(e.ends) for e in epigraphs)])
    D, column = np.zeros((ends[-1], size)), n
    D[: len(rows), : rows.shape[1]] = rows
    for e, start, end in zip(epigraphs, ends, ends[1:], strict=False):
        block = D[start:end]
        block[:, : e.values.shape[1]] = e.values
        block[:, column : column + len(e.start)] = e.own
        column += len(e.start)
    if Q is not None and size > len(Q):
        wide = np.zeros((size, size))
        wide[: len(Q), : len(Q)] = Q
        Q = wide
    found = solve_qp(
        np.concatenate([c, *(e.cost for e in epigraphs)]),
        np.append(a, np.zeros(size - n)),
        D,
        np.concatenate([np.ones(len(rows)), *(e.ends for e in epigraphs)]),
        np.concatenate([x, *(e.start for e in epigraphs)]),
        Q=Q,
        tol=tol,
    )
    return found.x[:n], np.split(found.y, ends)[1:-1]


class Epigraph:
    """The rows of a program for v >= all of some conditions.

    Upper and lower halves of level e are on both sides of a variable t: upper - t <= v
    and lower + t <= 0.

    `price`: of v. `values` (p, k): the conditions' slopes along the first k variables.
    `low`: v is measured from here. `x` (n,): the point to start from, where v is above
    `least`. `offsets`: of the conditions, where the equation of the program does not
    imply them.

    Attributes: `ends` (p,), `cost`, `start` (1 + q,). `own` (p, 1 + q): coefficients of
    v and of the levels' variables.
    """

    def __init__(self, price, values, halves, low, x, least=-np.inf, offsets=0.0):
        self.values = values
        levels = np.unique(halves[halves > 0])
        self.own = np.zeros((len(halves), 1 + len(levels)))
        self.own[:, 0] = np.where(halves >= 0, -1.0, 0.0)
        self.ends = np.where(halves >= 0, low, 0.0) - offsets
        self.cost, self.start = np.zeros((2, 1 + len(levels)))
        self.cost[0] = price
        now = values @ x[: values.shape[1]] + offsets
        for j, e in enumerate(levels, start=1):
            upper, lower = halves == e, halves == -e
            # t is measured from below all lower halves, so it is positive.
            bottom = -float(values[lower].max()) - 1.0
            self.own[upper, j], self.own[lower, j] = -1.0, 1.0
            self.ends[upper] += bottom
            self.ends[lower] -= bottom
            t = -float(now[lower].max()) - 0.5
            self.start[j] = t - bottom
            now[upper] -= t
        self.start[0] = float(now[halves >= 0].max(initial=least)) - low + 1.0


def balanced(multipliers, halves):
    """Multipliers with equal sums over the two halves of each level.

    Such multipliers are sums of those of pairs. A program's are so up to its accuracy.
    """
    multipliers = np.array(multipliers)
    for e in range(1, halves.max(initial=0) + 1):
        upper, lower = multipliers[halves == e].sum(), multipliers[halves == -e].sum()
        if lower > 0.0:
            multipliers[halves == -e] *= upper / lower
    return multipliers
