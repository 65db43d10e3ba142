"""The best single rule of two classes: branch and bound over the cells' thresholds."""

import copy
from collections import deque
from dataclasses import dataclass

import numpy as np

from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO, SAME
from sklearn_structsvm.solvers.accuracy import INNER_SHARE
from sklearn_structsvm.solvers.confusion.best_first import BestFirst
from sklearn_structsvm.solvers.confusion.bounds import ratio_form
from sklearn_structsvm.solvers.confusion.column_generation import (
    MAX_INNER_CALLS,
    ColumnGeneration,
    ViolationProblem,
)
from sklearn_structsvm.solvers.confusion.level_search import (
    BoxSolution,
    LevelSearch,
)
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)

# Boxes with at most this many rules are enumerated.
MAX_ENUMERATED = 300_000

# The number of rules that are tried around each mixture.
MAX_AROUND = 3000

# The number of linear functions of each kind that are kept.
MAX_BOUNDS = 30

# Candidates have levels that differ by less than this from one at which a box is divided.
LEVEL_WIDTH = 0.005

# The number of divided boxes after which a distance of `tol` from the best rule suffices,
# and the number of cells times boxes after which the search gives up, since a box of more
# cells takes longer: seconds in all for any number of cells. The searches of all folds
# share the number.
MAX_EXACT_BOXES, MAX_BOXES_OF_CELLS = 200, 4000


@dataclass
class FoundRule:
    """The result of a search.

    `points`: the best rule, as a point of each cell; None if no rule satisfies the
    constraints. `value`: its ψ. `bound`: a lower bound for all rules. It equals `value`
    after a complete search, and is -inf if nothing is known. `closest`: the best rule,
    or the one that comes closest to satisfying the constraints.
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
    n_searches=1,
):
    """Minimize ψ over rules with one threshold in each cell.

    A box is a set of points in each cell. The best mixture of its rules, found by column
    generation, bounds all of them from below. So does each linear function that proves
    such a bound. A point is dropped if these functions or a constraint exclude it
    together with all points of the other cells. Boxes with few rules are enumerated;
    others are divided where the mixture is undecided. This is exact for metrics whose
    mixtures have bounds. For other metrics with too many rules, the search enumerates a
    grid of them and descends from the best one, one cell at a time.

    `problem` (ConfusionProblem or ViolationProblem).
    `low`: a lower bound for all mixtures that satisfy the constraints.
    `tol`: the accepted distance from the best rule if the search takes long.
    `starts` (sequence of (m, 2, 2)): confusion tensors around which the search begins.
    `deadline`: in seconds of `perf_counter`.
    `enough`: the search ends at a value that is not larger than this.
    `n_searches`: this many searches, of which this is one, share the number of boxes. If
      there are others, `tol` is accepted at once.
    Returns a `FoundRule`.
    """
    if problem.leveled:
        return _search_levels(problem, points, low, tol, starts, deadline, n_searches)
    return _Search(problem, points, low, n_searches).find(starts, tol, enough, deadline)


def _search_levels(problem, points, low, tol, starts, deadline, n_searches):
    """`search_rules` with constraints that are linear at given levels only."""

    def solve(problem, _):
        found = search_rules(
            problem,
            points,
            low=low,
            tol=tol,
            starts=starts,
            deadline=deadline,
            n_searches=n_searches,
        )
        if np.isposinf(found.bound):
            raise InfeasibleConstraintError("No rule has such levels.", 0.0)
        return BoxSolution(found.closest, points.tensor(found.closest), found.bound)

    search, n = LevelSearch(problem, solve, low, LEVEL_WIDTH), problem.n_levels
    try:
        search.run(tol, MAX_EXACT_BOXES // 2, MAX_EXACT_BOXES, deadline)
    except InfeasibleConstraintError:
        # Of the constraints that have no levels.
        everything = problem.between(np.zeros(n), np.ones(n))
        return search_rules(everything, points, starts=starts, deadline=deadline)
    best = search.best.solution
    if not search.is_met:
        return FoundRule(None, np.inf, search.bound, best)
    return FoundRule(best, search.value, search.bound, best)


class _Search(BestFirst):
    """Boxes are kept points of each cell, with what `_relax` starts from."""

    def __init__(self, problem, points, low, n_searches):
        self.all_points = [np.arange(size) for size in points.sizes]
        super().__init__(low, (self.all_points, None))
        self.problem, self.points, self.n_searches = problem, points, n_searches
        self.best, self.value = None, np.inf
        # Each linear function is a constant plus a part for each cell.
        G, h, D, halves = problem.conditions
        whole = halves == 0
        self.rows = [self._function(*row) for row in zip(G[whole], h[whole], strict=True)]
        self.denominators = [
            None if (one == 1.0).all() else self._function(one, 0.0) for one in D[whole]
        ]
        # The sums of two halves may exceed 0 by the tolerance times the denominator.
        G, h = G[~whole] - FEASIBILITY_TOL * D[~whole], h[~whole]
        self.half_rows = [self._function(*row) for row in zip(G, h, strict=True)]
        self.halves = halves[~whole]
        # Functions for bounds on ψ, with multipliers of constraints and without.
        self.minorants, self.tangents = deque(maxlen=MAX_BOUNDS), deque(maxlen=MAX_BOUNDS)
        pieces, self.ratio = problem.pieces(), ratio_form(problem)
        self.pieces = self.piece_halves = self.terms = None
        if pieces is not None:
            self.pieces = [self._function(G, h) for G, h in zip(*pieces, strict=True)]
            self.piece_halves = problem.piece_halves
            if self.piece_halves is None:
                self.piece_halves = np.zeros(len(self.pieces), dtype=int)
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

    def find(self, starts, tol, enough, deadline):
        """The `FoundRule`."""
        for C in [*starts, self.problem.uniform]:
            self._try_around(C, self.all_points)
            if self.best is None and (self.rows or self.half_rows):
                self._repair(C)
        if self.best is None and self.problem.constrained:
            near = search_rules(
                ViolationProblem(self.problem),
                self.points,
                starts=starts,
                deadline=deadline,
                enough=FEASIBILITY_TOL,
                n_searches=self.n_searches,
            )
            self._enumerate([np.array([t]) for t in near.closest])
            if self.best is None:
                is_sure = near.bound > FEASIBILITY_TOL
                bound = np.inf if is_sure else -np.inf
                return FoundRule(None, np.inf, bound, near.closest)
        self._descend()
        most = MAX_BOXES_OF_CELLS // len(self.all_points)
        exact = MAX_EXACT_BOXES if self.n_searches == 1 else 0
        self.run(tol, exact, most // self.n_searches, deadline, enough)
        return FoundRule(self.best, self.value, self.bound, self.best)

    def _divide(self, low, box, deadline):
        kept, start = box
        kept = self._shrunk(kept)
        if kept is None:
            return np.inf, []
        if _n_rules(kept) <= MAX_ENUMERATED or len(kept) == 1:
            self._enumerate(kept)
            return np.inf, []
        if not self.is_bounded:
            self._thin(kept)
            return -np.inf, []
        if self.is_late:
            return low, []
        self.n_boxes += 1
        return np.inf, self._parts(kept, low, start)

    def _parts(self, box, low, start):
        """The halves of a box, or none if it has no better rule.

        Each with its bound and what `_relax` starts from: the minorant and the rules of
        the mixture of the box that it is part of, or None.
        """
        relaxed = self._relax(box, low, start)
        if relaxed is None:
            return []
        bound, mixture, minorant = relaxed
        low, start = max(low, bound), (minorant, mixture.handles)
        if low >= self.value - SAME:
            return []
        self._try_around(mixture.confusion, box)
        box = self._shrunk(box)
        if box is None or _n_rules(box) <= MAX_ENUMERATED:
            return [] if box is None else [(low, (box, start))]
        # The box is divided by the mass that the mixture spreads over different points.
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
            (low, ([part if b == a else kept for b, kept in enumerate(box)], start))
            for part in (box[a][:at], box[a][at:])
        ]

    def _relax(self, box, low, start):
        """(bound, mixture, minorant) for a box, or None if it has no better rule."""
        problem, oracle = copy.copy(self.problem), _BoxOracle(self.points, box)
        problem.lmo, problem.exact = oracle, True
        margin = self.value - low if np.isfinite(self.value - low) else 1.0
        tol = max(INNER_SHARE * margin, SAME)
        solver = ColumnGeneration(problem, tol, MAX_INNER_CALLS, {})
        solver.incumbent.on_infeasible = _give_up
        if start is not None:
            minorant, rules = start
            solver.minorants.insert(0, minorant)
            for rule in rules:
                rule = [_nearest(kept, t) for kept, t in zip(box, rule, strict=True)]
                solver.columns.add(self.points.tensor(rule), rule)
        try:
            result = solver.incumbent.run(
                solver.move,
                max_iter=MAX_INNER_CALLS,
                max_time=None,
                on_pass=lambda n_iter, row, done: (
                    row["dual_objective"] >= self.value - SAME
                ),
                history=None,
            )
        except InfeasibleConstraintError:
            return None
        self._note(solver.bounds.minorant)
        return result.dual_objective, result.solution, solver.bounds.minorant

    def _note(self, minorant):
        if self.ratio is None:
            self.minorants.append((self._function(minorant.L, minorant.h), None))
        else:
            L = self._function(minorant.L, minorant.h)
            below = self._function(self.ratio[1], 0.0)
            self.minorants.append((L, (minorant.level, below)))

    def _tests(self):
        """Linear functions that are below a number at every better rule."""
        if np.isinf(self.value):
            return
        for (constant, parts), ratio in self.minorants:
            if ratio is None:
                yield constant, parts, self.value - SAME
            else:
                level, (_, below) = ratio
                more = self.value - level
                parts = [u - more * v for u, v in zip(parts, below, strict=True)]
                yield constant, parts, 0.0

    def _shrunk(self, box):
        """The box without points that no better rule has; None if nothing is left."""
        tests = [*self._tests(), *((*limit, FEASIBILITY_TOL) for limit in self.rows)]
        functions = [(constant, parts) for constant, parts, _ in tests] + self.half_rows
        if not functions:
            return box
        box = list(box)
        cutoffs = np.array([cutoff for _, _, cutoff in tests])
        constants, parts = _stacked(functions)
        values = [own[:, kept] for own, kept in zip(parts, box, strict=True)]
        while True:
            n_rules = _n_rules(box)
            least = [own.min(axis=1) for own in values]
            total = constants + sum(least)
            # Each half has the room that the other half leaves at least.
            halves = total[len(tests) :]
            ends = [-halves[self.halves == -e].max() for e in self.halves]
            room = np.append(cutoffs, ends) - total
            if (room < 0.0).any():
                return None
            for a, (own, low) in enumerate(zip(values, least, strict=True)):
                within = (own - low[:, None] <= room[:, None]).all(axis=0)
                box[a], values[a] = box[a][within], own[:, within]
            if not _n_rules(box):
                return None
            if _n_rules(box) > 0.5 * n_rules:
                return box

    def _try_around(self, C, box):
        """Enumerate the rules whose confusion tensors are nearest to a given one."""
        n_near = max(1, int(MAX_AROUND ** (1.0 / len(box))))
        near = []
        for a, kept in enumerate(box):
            distance = np.abs(self.points.tensors[a][kept] - C[a]).sum(axis=(1, 2))
            if len(kept) > n_near:
                kept = np.sort(kept[np.argpartition(distance, n_near)[:n_near]])
            near.append(kept)
        self._enumerate(near)

    def _repair(self, C):
        """Reduce the squared excesses, starting from the rule nearest to a tensor.

        Of two halves, the excess of each with the largest other one counts.
        """
        rule = [
            int(np.abs(tensors - C[a]).sum(axis=(1, 2)).argmin())
            for a, tensors in enumerate(self.points.tensors)
        ]
        functions = [*self.rows, *self.half_rows]
        halves = np.append(np.zeros(len(self.rows), dtype=int), self.halves)
        now, parts = _stacked(functions)
        now = now + sum(own[:, t] for own, t in zip(parts, rule, strict=True))
        least = np.inf
        for _ in range(50):
            before = least
            for a, own in enumerate(parts):
                values = (now - own[:, rule[a]])[:, None] + own
                excess = values.copy()
                for e in {*self.halves}:
                    excess[halves == e] += values[halves == -e].max(axis=0)
                total = (np.maximum(excess, 0.0) ** 2).sum(axis=0)
                rule[a], least = int(total.argmin()), float(total.min())
                now = values[:, rule[a]]
            if least >= before:
                break
        self._enumerate([np.array([t]) for t in rule])

    def _thin(self, box):
        """Descend from the best rule of a grid."""
        most = MAX_ENUMERATED if self.terms else MAX_AROUND
        n_each = max(2, int(most ** (1.0 / len(box))))
        steps = [max(1, -(-len(kept) // n_each)) for kept in box]
        self._enumerate([kept[::step] for kept, step in zip(box, steps, strict=True)])
        self._descend()

    def _descend(self):
        """Improve the best rule one cell at a time, while that helps."""
        before = np.inf
        while self.best is not None and self.value < before - SAME:
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
                feasible &= (D <= ROUNDED_ZERO) | (excess <= FEASIBILITY_TOL * D)
        feasible &= self._largest(self.half_rows, self.halves, box) <= 0.0
        left = np.flatnonzero(feasible)
        low = self._lower(box, left)
        sizes = [len(kept) for kept in box]
        # Without bounds, every rule is evaluated; with bounds, the one with the smallest
        # bound.
        knows = self.is_curved or self.pieces or self.terms
        for i in _least_first(low) if knows else range(len(left)):
            if low[i] >= self.value - SAME:
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
            if value < self.value - SAME and (
                self.problem.violation(C) <= FEASIBILITY_TOL
            ):
                self.best, self.value = rule, value
            if self.is_curved:
                tangent = self._function(*self.problem.tangent(C))
                self.tangents.append(tangent)
                np.maximum(low, _outer(tangent, box)[left], out=low)

    def _largest(self, functions, halves, box):
        """The largest function, or sum of two halves, at all rules of a box."""
        largest, found = {}, np.full(int(_n_rules(box)), -np.inf)
        # Many functions of few rules, or few of many.
        n = max(1, MAX_ENUMERATED // len(found))
        for i in range(0, len(functions), n):
            at_rules = _outer(_stacked(functions[i : i + n]), box)
            for e, values in zip(halves[i : i + n], at_rules, strict=True):
                largest[e] = np.maximum(largest[e], values) if e in largest else values
        for e, values in largest.items():
            if e >= 0:
                np.maximum(found, values + (largest[-e] if e else 0.0), out=found)
        return found

    def _lower(self, box, left):
        """Lower bounds of ψ for the rules of a box, exact where possible."""
        functions, halves = self.pieces, self.piece_halves
        if not functions:
            functions, halves = list(self.tangents), np.zeros(len(self.tangents), int)
        low = self._largest(functions, halves, box)[left]
        if self.terms:
            total = np.zeros(len(left))
            for weight, above, below in self.terms:
                A, B = _outer(above, box)[left], _outer(below, box)[left]
                ratio = np.full_like(A, -np.inf)
                np.divide(A, B, where=B > ROUNDED_ZERO, out=ratio)
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


def _nearest(kept, t):
    """The point of those kept, which ascend, that is nearest to another."""
    i = int(np.searchsorted(kept, t))
    near = kept[max(i - 1, 0) : i + 1]
    return int(near[np.abs(near - t).argmin()])


def _least_first(values):
    """Yield, without end, the index of the smallest value; values may change."""
    while len(values):
        yield int(np.argmin(values))


def _give_up(problem, bound, max_time=None):
    raise InfeasibleConstraintError("No rule of the box meets the constraints.", bound)


def _n_rules(box):
    return float(np.prod([float(len(kept)) for kept in box]))


def _stacked(functions):
    """Several linear functions as one of arrays, of which the last axis is of points."""
    constants, parts = zip(*functions, strict=True)
    return np.array(constants), [np.array(own) for own in zip(*parts, strict=True)]


def _outer(function, box):
    """A linear function at all rules of a box; the last cell varies fastest."""
    total, parts = np.asarray(function[0])[..., None], function[1]
    for part, kept in zip(parts, box, strict=True):
        total = total[..., None] + part[..., None, kept]
        total = total.reshape(*part.shape[:-1], -1)
    return total
