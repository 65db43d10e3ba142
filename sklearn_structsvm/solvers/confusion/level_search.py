r"""Constraints that are linear at given levels only: branch and bound over the levels.

Predictive parity says that there is a level q such that the precision of each group is
from q to q + ε. At levels from a to b, a precision from a to b + ε is necessary, and
linear. So the optimum under these conditions bounds all levels of a box from below. If it
meets the constraint, the box is done. If it does not, no level allows its precisions: the
largest one needs a level above some number, the smallest one below a lesser number.
Dividing the box between the two excludes this optimum from both parts. The problem at the
single level there gives a candidate for the best solution.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm.solvers.accuracy import INNER_SHARE_OF_TOL
from sklearn_structsvm.solvers.confusion.bounds import certified_mixture, rounding_of
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)
from sklearn_structsvm.solvers.loop import run_passes


@dataclass
class BoxSolution:
    """What is found for a problem with linear conditions.

    `solution` (Mixture or other), `C` (m, k, k). `bound`: no solution of this problem
    has a lower ψ.
    """

    solution: object
    C: np.ndarray
    bound: float
    n_calls: int = 0


class LevelSearch:
    """Minimizes ψ under conditions at any levels.

    `problem`: with `leveled` constraints. `solve`: (problem at levels of a box, seconds
    left) -> BoxSolution. InfeasibleConstraintError if it has none. `low`: no solution
    has less. `width`: of levels that candidates are made for, around each cut.

    Attributes: `best` (BoxSolution or None): the one of least ψ or, if none meets the
    constraints, of least violation. `value`, `violation`: its ψ, and its largest
    violation.
    """

    def __init__(self, problem, solve, low=-np.inf, width=0.0):
        self.problem, self.solve, self.width = problem, solve, width
        self.best, self.value, self.violation = None, np.inf, np.inf
        self.rounding = rounding_of(problem)
        n = problem.n_levels
        self._order = count()
        self._boxes = [(low, next(self._order), np.zeros(n), np.ones(n))]
        # Of boxes that are done: the least bound, and the least violation if there is
        # no solution.
        self._done, self._least_violation = np.inf, np.inf
        self.n_calls = 0

    @property
    def is_open(self):
        """Whether boxes are left."""
        return bool(self._boxes)

    @property
    def bound(self):
        """No solution that meets the constraints has less."""
        left = self._boxes[0][0] if self._boxes else np.inf
        return min(left, self._done, self.value if self._is_met else np.inf)

    @property
    def gap(self):
        """Of the best solution; inf if it violates a constraint."""
        return self.value - self.bound if self._is_met else np.inf

    @property
    def _is_met(self):
        return self.violation <= FEASIBILITY_TOL

    def move(self, deadline):
        """Solve for the box of the least bound; None, or the status of the end.

        InfeasibleConstraintError if no level has a solution.
        """
        if not self._boxes:
            if self._is_met or np.isfinite(self._done):
                return "stalled"
            raise InfeasibleConstraintError(
                "No classifier satisfies the constraints at any level: each violates "
                f"one by at least {self._least_violation:.3g}. Loosen them.",
                self._least_violation,
            )
        low_of_box, _, low, high = heappop(self._boxes)
        found = self._solve(low, high, False, deadline)
        if found is None:
            return None
        bound = max(low_of_box, found.bound)
        least, most = self.problem.levels(found.C)
        cuts = np.clip(_between(least, most, low, high), low, high)
        p = int(np.argmax(least - most))
        is_cut = least[p] > most[p] and high[p] - low[p] > SAME
        if not is_cut or self.problem.violation(found.C) <= FEASIBILITY_TOL:
            self._done = min(self._done, bound)
            return None
        self._try_around(cuts, low, high, deadline)
        if not self._is_met:
            # It is easier to lower precisions than to raise them.
            self._try_around(np.where(np.isfinite(most), most, cuts), low, high, deadline)
        for part in (0, 1):
            ends = low.copy(), high.copy()
            ends[1 - part][p] = cuts[p]
            heappush(self._boxes, (bound, next(self._order), *ends))
        return None

    def _try_around(self, levels, low, high, deadline):
        """Look for a better solution at levels, or so near that `width` allows."""
        ends = np.clip([levels - self.width, levels + self.width], low, high)
        self._solve(*ends, True, deadline)

    def _solve(self, low, high, strict, deadline):
        """The solution for a box, noted; None if there is none."""
        left = None if np.isinf(deadline) else max(deadline - perf_counter(), 0.0)
        try:
            found = self.solve(self.problem.between(low, high, strict), left)
        except InfeasibleConstraintError as error:
            if self.best is None:
                # The first box is that of all levels.
                raise
            if not strict:
                least = min(self._least_violation, error.smallest_violation)
                self._least_violation = least
            return None
        self.n_calls += found.n_calls
        value, violation = self.problem.value(found.C), self.problem.violation(found.C)
        key = max(violation, FEASIBILITY_TOL), value
        if key < (max(self.violation, FEASIBILITY_TOL), self.value):
            self.best, self.value, self.violation = found, value, violation
        return found

    def check(self, done=False):
        """A row of the history and the best solution; None before there is one."""
        if self.best is None:
            return None
        row = certified_mixture(
            self.problem, self.rounding, self.best.C, self.bound, self.violation,
            self.n_calls,
        )  # fmt: skip
        return row, self.best.solution


def _between(least, most, low, high):
    """Numbers between two that may be infinite, or the middle of a box."""
    middle = 0.5 * (low + high)
    is_finite = np.isfinite(least) & np.isfinite(most)
    with np.errstate(invalid="ignore"):
        return np.where(is_finite, 0.5 * (least + most), middle)


def run_over_levels(
    run, problem, *, tol, max_iter, max_time=None, on_pass=None, history=None, **options
):
    """Solve a problem with levels by a solver of problems without them.

    `run`: `run` of a `ConfusionSolver`. `max_iter`: boxes, and iterations in each.
    `tol`, `max_time`, `on_pass`, `history`, `**options` as for `run`. Returns a
    `SolverResult` whose iterations are boxes.
    """

    def solve(problem, seconds):
        result = run(
            problem,
            tol=INNER_SHARE_OF_TOL * tol,
            max_iter=max_iter,
            max_time=seconds,
            **options,
        )
        C = result.solution.confusion
        return BoxSolution(
            result.solution, C, result.dual_objective, result.n_oracle_calls
        )

    search = LevelSearch(problem, solve)
    return run_passes(
        search.move,
        search.check,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        on_pass=on_pass,
        history=history,
    )
