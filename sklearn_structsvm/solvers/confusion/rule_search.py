"""The best single rule of two classes: branch and bound over the cells' thresholds."""

import copy
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from time import perf_counter

import numpy as np

from sklearn_structsvm.solvers.confusion.bounds import ratio_form
from sklearn_structsvm.solvers.confusion.column_generation import (
    ColumnGeneration,
    ViolationProblem,
)
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)

# Values that differ by less than this are the same.
SAME_VALUE = 1e-10

# Denominators below this are 0.
NO_MASS = 1e-14

# Boxes of no more rules than this are enumerated.
MAX_ENUMERATED = 300_000

# Rules around each mixture that are tried.
MAX_AROUND = 3000

# Relaxations are solved to this share of the distance to the best rule.
RELAXED_SHARE = 0.1
MAX_RELAXED_CALLS = 100

# Linear functions of each kind that are kept.
MAX_BOUNDS = 30

# Times that the thresholds of all cells are changed to meet the constraints.
MAX_SWEEPS = 50

# Boxes that are divided before a distance of `tol` from the best rule is good enough, and
# before the search gives up.
MAX_EXACT_BOXES, MAX_BOXES = 200, 1000


@dataclass
class FoundRule:
    """What a search has found.

    Attributes
    ----------
    points : tuple of int or None
        The best rule, a point of each cell; None if no rule meets the constraints.
    value : float
        Its ψ.
    bound : float
        No rule has less. Equal to `value` at the end of a complete search, and -inf if
        nothing is known.
    closest : tuple of int
        The best rule, or the one that is nearest to meeting the constraints.
    """

    points: tuple | None
    value: float
    bound: float
    closest: tuple


def search_rules(
    problem,
    points,
    *,
    low=-np.inf,
    tol=0.0,
    starts=(),
    deadline=np.inf,
    enough=-np.inf,
):
    """Minimize ψ over rules of one threshold in each cell.

    A box is a set of points in each cell. The best mixture of its rules, by column
    generation, bounds them all from below, and so does each of the linear functions that
    prove such bounds. Points are dropped if these, or a constraint, rule them out with
    any points of the other cells. Boxes of few rules are enumerated, others are divided
    where the mixture is undecided. All of it is exact for metrics whose mixtures have
    bounds. Of others, if there are too many rules to be enumerated, a grid of them is,
    and the search goes downhill from the best one, one cell at a time.

    Parameters
    ----------
    problem : ConfusionProblem or ViolationProblem
    points : RocPoints
    low : float
        No mixture that meets the constraints has less.
    tol : float
        How much better another rule may be if the search takes long.
    starts : sequence of ndarray of shape (m, 2, 2)
        Confusion tensors whose neighborhoods are tried first.
    deadline : float
        In seconds of `perf_counter`.
    enough : float
        End the search at a value that is no larger.

    Returns
    -------
    FoundRule
    """
    return _Search(problem, points, tol, enough).run(low, starts, deadline)


class _Search:
    def __init__(self, problem, points, tol, enough):
        self.problem, self.points = problem, points
        self.tol, self.enough = tol, enough
        self.best, self.value = None, np.inf
        # Each linear function is a constant, and a part of each cell.
        G, h = problem.linear
        self.rows = [self._function(L, offset) for L, offset in zip(G, h, strict=True)]
        D = getattr(problem, "denominators", np.ones((len(G), *problem.shape)))
        self.denominators = [
            None if (one == 1.0).all() else self._function(one, 0.0) for one in D
        ]
        # Of bounds on ψ: with multipliers of constraints, and without them.
        self.minorants, self.tangents = deque(maxlen=MAX_BOUNDS), deque(maxlen=MAX_BOUNDS)
        pieces, self.ratio = problem.pieces(), ratio_form(problem)
        self.pieces = self.terms = None
        if pieces is not None:
            self.pieces = [self._function(G, h) for G, h in zip(*pieces, strict=True)]
        elif not problem.convex:
            self.terms = [
                (weight, self._function(A, 0.0), self._function(B, 0.0))
                for weight, A, B in problem.ratio_terms() or ()
            ]
        self.is_curved = problem.convex and pieces is None
        self.is_bounded = problem.convex or self.ratio is not None

    def _function(self, L, h):
        constant, parts = self.points.parts(L)
        return constant + float(h), parts

    def run(self, low, starts, deadline):
        box = [np.arange(size) for size in self.points.sizes]
        for C in [*starts, self.problem.uniform]:
            self._try_around(C, box)
            if self.best is None and self.rows:
                self._repair(C)
        if self.best is None and self.problem.constrained:
            near = search_rules(
                ViolationProblem(self.problem),
                self.points,
                starts=starts,
                deadline=deadline,
                enough=FEASIBILITY_TOL,
            )
            self._enumerate([np.array([t]) for t in near.closest])
            if self.best is None:
                is_sure = near.bound > FEASIBILITY_TOL
                bound = np.inf if is_sure else -np.inf
                return FoundRule(None, np.inf, bound, near.closest)
        self._descend()
        bound = self._branch(low, box, deadline)
        return FoundRule(self.best, self.value, bound, self.best)

    def _branch(self, low, box, deadline):
        """Go through all boxes; a lower bound of those that are left."""
        bound, order, n_boxes = np.inf, count(), 0
        boxes = [(low, next(order), box)]
        while boxes and self.value > self.enough:
            low, _, box = heappop(boxes)
            far = max(SAME_VALUE, self.tol if n_boxes >= MAX_EXACT_BOXES else 0.0)
            if low >= self.value - far:
                bound = min(bound, low)
                break
            box = self._shrunk(box)
            if box is None:
                continue
            if _n_rules(box) <= MAX_ENUMERATED or len(box) == 1:
                self._enumerate(box)
            elif not self.is_bounded:
                self._thin(box)
                bound = -np.inf
            elif n_boxes >= MAX_BOXES or perf_counter() > deadline:
                bound = min(bound, low)
            else:
                n_boxes += 1
                for low_of_part, part in self._parts(box, low):
                    heappush(boxes, (low_of_part, next(order), part))
        return min(bound, self.value)

    def _parts(self, box, low):
        """Halves of a box with their bounds; none if it has no better rule."""
        relaxed = self._relax(box, low)
        if relaxed is None:
            return []
        bound, mixture = relaxed
        low = max(low, bound)
        if low >= self.value - SAME_VALUE:
            return []
        self._try_around(mixture.confusion, box)
        box = self._shrunk(box)
        if box is None or _n_rules(box) <= MAX_ENUMERATED:
            return [] if box is None else [(low, box)]
        # By the mass that the mixture spreads over different points.
        handles = np.array(mixture.handles)
        means = mixture.weights @ handles
        spread = [
            mixture.weights @ np.abs(handles[:, a] - means[a]) / size
            if len(kept) > 1
            else -1.0
            for a, (size, kept) in enumerate(zip(self.points.sizes, box, strict=True))
        ]
        a = int(np.argmax(spread))
        if spread[a] <= 0.0:
            a = int(np.argmax([len(kept) for kept in box]))
            means[a] = np.median(box[a])
        at = int(np.clip(np.searchsorted(box[a], means[a], "right"), 1, len(box[a]) - 1))
        return [
            (low, [part if b == a else kept for b, kept in enumerate(box)])
            for part in (box[a][:at], box[a][at:])
        ]

    def _relax(self, box, low):
        """(bound, mixture) of the mixtures of a box; None if there is no better rule."""
        problem, oracle = copy.copy(self.problem), _BoxOracle(self.points, box)
        problem.lmo, problem.exact = oracle, True
        margin = self.value - low if np.isfinite(self.value - low) else 1.0
        tol = max(RELAXED_SHARE * margin, SAME_VALUE)
        solver = ColumnGeneration(problem, tol, MAX_RELAXED_CALLS, {})
        solver.incumbent.on_infeasible = _give_up
        try:
            result = solver.incumbent.run(
                solver.move,
                max_iter=MAX_RELAXED_CALLS,
                max_time=None,
                on_pass=lambda n_iter, row, done: (
                    row["dual_objective"] >= self.value - SAME_VALUE
                ),
                history=None,
            )
        except InfeasibleConstraintError:
            return None
        if solver.bounds.minorant is not None:
            self._note(solver.bounds.minorant)
        return result.dual_objective, result.solution

    def _note(self, minorant):
        if self.ratio is None:
            self.minorants.append((self._function(minorant.L, minorant.h), None))
        else:
            L = self._function(minorant.L, minorant.h)
            below = self._function(self.ratio[1], 0.0)
            self.minorants.append((L, (minorant.level, below)))

    def _tests(self):
        """Linear functions that must be below a number at rules that are any better."""
        if np.isinf(self.value):
            return
        for (constant, parts), ratio in self.minorants:
            if ratio is None:
                yield constant, parts, self.value - SAME_VALUE
            else:
                level, (_, below) = ratio
                more = self.value - level
                parts = [u - more * v for u, v in zip(parts, below, strict=True)]
                yield constant, parts, 0.0

    def _shrunk(self, box):
        """The box without points that no better rule has; None if it has none."""
        tests = [(c, parts, FEASIBILITY_TOL) for c, parts in self.rows]
        tests += list(self._tests())
        while True:
            n_rules = _n_rules(box)
            for constant, parts, cutoff in tests:
                values = [part[kept] for part, kept in zip(parts, box, strict=True)]
                least = [part.min() for part in values]
                room = cutoff - constant - sum(least)
                if room < 0.0:
                    return None
                box = [
                    kept[part - low <= room]
                    for kept, part, low in zip(box, values, least, strict=True)
                ]
            if _n_rules(box) > 0.5 * n_rules:
                return box

    def _try_around(self, C, box):
        """Enumerate the rules of a box whose confusion is nearest to a tensor."""
        n_near = max(1, int(MAX_AROUND ** (1.0 / len(box))))
        near = []
        for a, kept in enumerate(box):
            distance = np.abs(self.points.tensors[a][kept] - C[a]).sum(axis=(1, 2))
            if len(kept) > n_near:
                kept = np.sort(kept[np.argpartition(distance, n_near)[:n_near]])
            near.append(kept)
        self._enumerate(near)

    def _repair(self, C):
        """From the rule nearest to a tensor, lessen the squares of all excesses."""
        rule = [
            int(np.abs(tensors - C[a]).sum(axis=(1, 2)).argmin())
            for a, tensors in enumerate(self.points.tensors)
        ]
        least = np.inf
        for _ in range(MAX_SWEEPS):
            before = least
            for a, size in enumerate(self.points.sizes):
                total = np.zeros(size)
                for constant, parts in self.rows:
                    now = sum(part[t] for part, t in zip(parts, rule, strict=True))
                    change = parts[a] - parts[a][rule[a]]
                    total += np.maximum(constant + now + change, 0.0) ** 2
                rule[a], least = int(total.argmin()), float(total.min())
            if least >= before:
                break
        self._enumerate([np.array([t]) for t in rule])

    def _thin(self, box):
        """Go downhill from the best rule of a grid."""
        most = MAX_ENUMERATED if self.terms else MAX_AROUND
        n_each = max(2, int(most ** (1.0 / len(box))))
        steps = [max(1, -(-len(kept) // n_each)) for kept in box]
        self._enumerate([kept[::step] for kept, step in zip(box, steps, strict=True)])
        self._descend()

    def _descend(self):
        """Improve the best rule one cell at a time, while that helps."""
        before = np.inf
        while self.best is not None and self.value < before - SAME_VALUE:
            before = self.value
            for a, size in enumerate(self.points.sizes):
                box = [np.array([t]) for t in self.best]
                box[a] = np.arange(size)
                self._enumerate(box)

    def _enumerate(self, box):
        """Find the best of all rules of a box."""
        feasible = np.ones(int(_n_rules(box)), dtype=bool)
        for row, below in zip(self.rows, self.denominators, strict=True):
            excess = _outer(row, box)
            if below is None:
                feasible &= excess <= FEASIBILITY_TOL
            else:
                D = _outer(below, box)
                feasible &= (D <= NO_MASS) | (excess <= FEASIBILITY_TOL * D)
        left = np.flatnonzero(feasible)
        low = self._lower(box, left)
        sizes = [len(kept) for kept in box]
        # Without any bounds each rule is looked at, and else the one of the least bound.
        knows = self.is_curved or self.pieces or self.terms
        for i in _least_first(low) if knows else range(len(left)):
            if low[i] >= self.value - SAME_VALUE:
                if knows:
                    return
                continue
            where = np.unravel_index(left[i], sizes)
            rule = tuple(int(kept[t]) for kept, t in zip(box, where, strict=True))
            C = self.points.tensor(rule)
            low[i] = np.inf
            for phi in self.problem.convex_constraints:
                if phi.value(C) > FEASIBILITY_TOL:
                    cut = self._function(*phi.tangent(C))
                    low[_outer(cut, box)[left] > FEASIBILITY_TOL] = np.inf
            value = self.problem.value(C)
            if value < self.value - SAME_VALUE and (
                self.problem.violation(C) <= FEASIBILITY_TOL
            ):
                self.best, self.value = rule, value
            if self.is_curved:
                tangent = self._function(*self.problem.tangent(C))
                self.tangents.append(tangent)
                np.maximum(low, _outer(tangent, box)[left], out=low)

    def _lower(self, box, left):
        """Lower bounds of ψ for rules of a box, which are exact if they can be."""
        low = np.full(len(left), -np.inf)
        for piece in self.pieces or self.tangents:
            np.maximum(low, _outer(piece, box)[left], out=low)
        if self.terms:
            total = np.zeros(len(left))
            for weight, above, below in self.terms:
                A, B = _outer(above, box)[left], _outer(below, box)[left]
                ratio = np.full_like(A, -np.inf)
                np.divide(A, B, where=B > NO_MASS, out=ratio)
                total += weight * ratio
            low = np.maximum(low, total)
        return low


class _BoxOracle:
    """The best rule of a box for a loss tensor."""

    exact = True

    def __init__(self, points, box):
        self.points, self.box = points, box

    def __call__(self, L):
        _, parts = self.points.parts(np.asarray(L))
        rule = [
            int(kept[np.argmin(part[kept])])
            for part, kept in zip(parts, self.box, strict=True)
        ]
        C = self.points.tensor(rule)
        return C, rule, float(np.vdot(L, C))


def _least_first(values):
    """The index of the least of values that may change in between, for ever."""
    while len(values):
        yield int(np.argmin(values))


def _give_up(problem, bound, max_time=None):
    raise InfeasibleConstraintError("No rule of the box meets the constraints.", bound)


def _n_rules(box):
    return float(np.prod([float(len(kept)) for kept in box]))


def _outer(function, box):
    """A linear function at all rules of a box, the last cell varying fastest."""
    total, parts = function
    for part, kept in zip(parts, box, strict=True):
        total = np.add.outer(total, part[kept])
    return np.ravel(total)
