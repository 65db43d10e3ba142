"""The best mixture if each cell mixes its own parts of the classifiers found."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.solvers.confusion.bounds import Minorant, ratio_form
from sklearn_structsvm.solvers.confusion.master import (
    CONSTRAINT_MARGIN,
    FINEST_PROGRAM,
    FIRST_PRICE,
    MAX_PRICE,
    PRICE_RATIO,
)
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL, key_of_tensor
from sklearn_structsvm.solvers.qp.epigraph import balanced

# With this many cells, tangents of a curved ψ take less time than its curvature does.
MANY_CELLS = 30


def mixes_parts(problem):
    """Whether `PartsMaster` is for a problem."""
    return (
        problem.exact
        and problem.constrained
        and not problem.convex_constraints
        and problem.separable
        and (
            problem.pieces() is not None
            or ratio_form(problem) is not None
            or (problem.convex and problem.shape[0] >= MANY_CELLS)
        )
    )


class PartsMaster:
    """min ψ(C) + price · (excess of C)⁺, where each cell has weights of its own.

    If the rule of one cell can be combined with any of the others, T classifiers of m
    cells are T^m ones. The best mixture of all of them is a sparse linear program in T m
    weights, if ψ is a maximum of linear functions. For a ratio it is a step of
    Dinkelbach's method, and the tangents of any other ψ are added as they are needed.
    HiGHS solves it exactly.

    `problem`: for which `mixes_parts` holds.

    Attributes: `C` (m, k, k): the tensor of the best mixture. `merit`: its ψ and the
    price of its excess. `value`: the value of the last program.
    """

    def __init__(self, problem):
        self.problem, self.price = problem, FIRST_PRICE
        m, k, _ = problem.shape
        G, self.h, _, self.halves = problem.conditions
        self.G = G.reshape(len(G), m, k * k)
        self.rows = [np.flatnonzero(self.G[:, a].any(axis=1)) for a in range(m)]
        self.own_G = [self.G[rows, a] for a, rows in enumerate(self.rows)]
        # Of all parts: the cell, those with which its weight sums to 1 (a unit, here the
        # cell), tensor, loss, and the values of the conditions of its cell.
        self.cells, self.units, self.tensors, self.losses = [], [], [], []
        self.values = []
        self.known = set()
        self.ratio, pieces = ratio_form(problem), problem.pieces()
        self.is_linear = pieces is not None
        if pieces is None:
            pieces = np.zeros((0, *problem.shape)), np.zeros(0)
        self.pieces, self.ends = list(pieces[0]), list(pieces[1])
        self.C, self.merit, self.value = problem.uniform, np.inf, np.inf

    def add(self, C, handle):
        """Add the parts of a classifier."""
        for a, part in enumerate(C.reshape(len(C), -1)):
            key = a, key_of_tensor(part)
            if key in self.known:
                continue
            self.known.add(key)
            self._add(a, a, part, handle[a])

    def add_examples(self, cells, masses):
        """Make each example a unit, whose parts are the predictions.

        `cells` (n,). `masses` (n, k): of its labels.
        """
        k = self.problem.shape[-1]
        for unit, (a, mass) in enumerate(zip(cells.tolist(), masses, strict=True)):
            for j in range(k):
                part = np.zeros((k, k))
                part[:, j] = mass
                self._add(a, unit, part.ravel(), None)

    def _add(self, a, unit, part, loss):
        self.cells.append(a)
        self.units.append(unit)
        self.tensors.append(part)
        self.losses.append(loss)
        self.values.append(self.own_G[a] @ part)

    def solve(self):
        """Solve the program.

        Returns the `Minorant` of its multipliers, or None if HiGHS failed.
        """
        if self.ratio is not None:
            A, B = self.ratio
            level = self.problem.value(self.C)
            pieces, ends = np.array([A - level * B]), np.zeros(1)
        else:
            if not self.is_linear:
                G, h = self.problem.tangent(self.C)
                self.pieces.append(G)
                self.ends.append(h)
            level, pieces, ends = 0.0, np.array(self.pieces), np.array(self.ends)
        found = self._program(pieces, ends)
        if found.status != 0:
            return None
        n, n_pieces, self.value = len(self.cells), len(ends), float(found.fun)
        self.weights = np.maximum(found.x[:n], 0.0)
        self.weights /= np.bincount(self.units, self.weights)[self.units]
        self.C = np.zeros((len(self.rows), self.G.shape[2]))
        np.add.at(self.C, self.cells, self.weights[:, None] * np.array(self.tensors))
        self.C = self.C.reshape(self.problem.shape)
        excess = self.problem.excess(self.C)
        self.merit = self.problem.value(self.C) + self.price * max(excess, 0.0)
        y = np.maximum(-found.ineqlin.marginals, 0.0)
        if excess > FEASIBILITY_TOL:
            self.price = min(PRICE_RATIO * self.price, MAX_PRICE)
        y_pieces = y[:n_pieces] / y[:n_pieces].sum()
        mu = balanced(y[n_pieces:], self.halves)
        L = np.tensordot(y_pieces, pieces, axes=1)
        h = float(y_pieces @ ends)
        rest = np.tensordot(mu, self.G, axes=1).reshape(L.shape)
        price = float(mu[self.halves >= 0].sum())
        return Minorant(L + rest, h + float(mu @ self.h), level, L, h, price)

    def _program(self, pieces, ends):
        """The result of `linprog` in (α, v, w, t): v >= pieces, w >= violations."""
        m, n, n_pieces, p = len(self.rows), len(self.cells), len(ends), len(self.h)
        cells, tensors = np.array(self.cells), np.array(self.tensors)
        blocks = pieces.reshape(n_pieces, m, -1)
        of_pieces = np.array([(block[cells] * tensors).sum(axis=1) for block in blocks])
        counts = [len(value) for value in self.values]
        of_conditions = sparse.csc_array(
            (
                np.concatenate(self.values),
                np.concatenate([self.rows[a] for a in self.cells]),
                np.concatenate([[0], np.cumsum(counts)]),
            ),
            shape=(p, n),
        )
        q, upper = int(self.halves.max(initial=0)), self.halves >= 0
        is_half = np.flatnonzero(self.halves)
        levels = sparse.csc_array(
            (-np.sign(self.halves[is_half]), (is_half, np.abs(self.halves[is_half]) - 1)),
            shape=(p, q),
        )
        A = sparse.block_array(
            [
                [of_pieces, -np.ones((n_pieces, 1)), None, None],
                [of_conditions, None, -1.0 * upper[:, None], levels if q else None],
            ],
            format="csc",
        )
        n_units = max(self.units) + 1
        unit = sparse.csc_array(
            (np.ones(n), (self.units, np.arange(n))), shape=(n_units, n + 2 + q)
        )
        cost = np.concatenate([np.zeros(n), [1.0, self.price], np.zeros(q)])
        return linprog(
            cost,
            A_ub=A,
            b_ub=np.append(-ends, -self.h - CONSTRAINT_MARGIN * upper),
            A_eq=unit,
            b_eq=np.ones(n_units),
            bounds=[(0.0, None)] * n + [(None, None), (0.0, None)] + [(None, None)] * q,
            method="highs",
            options={
                "primal_feasibility_tolerance": FINEST_PROGRAM,
                "dual_feasibility_tolerance": FINEST_PROGRAM,
            },
        )

    def classifiers(self):
        """The mixture as one of classifiers of all cells.

        On a line of length 1, each cell has a segment for each of its parts. Wherever no
        segment ends, the parts are those of one classifier.

        Yields weight, C and handle, both (m, k, k).
        """
        heavy = np.flatnonzero(self.weights > SUM_ROUNDING)
        heavy = heavy[np.argsort(np.array(self.cells)[heavy], kind="stable")]
        counts = np.bincount(np.array(self.cells)[heavy], minlength=len(self.rows))
        own = np.split(heavy, np.cumsum(counts)[:-1])
        ends = [np.cumsum(self.weights[parts])[:-1] for parts in own]
        cuts = np.unique(np.concatenate([[0.0], *ends, [1.0]]))
        middles, sizes = 0.5 * (cuts[:-1] + cuts[1:]), np.diff(cuts)
        middles, sizes = middles[sizes > SUM_ROUNDING], sizes[sizes > SUM_ROUNDING]
        places = np.stack(
            [
                parts[np.searchsorted(end, middles)]
                for parts, end in zip(own, ends, strict=True)
            ],
            axis=1,
        )
        for size, parts in zip(sizes, places.tolist(), strict=True):
            C = np.array([self.tensors[i] for i in parts]).reshape(self.problem.shape)
            yield size, C, np.array([self.losses[i] for i in parts])
