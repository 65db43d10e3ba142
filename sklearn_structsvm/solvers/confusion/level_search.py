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
from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm.solvers.accuracy import ROUGH_SHARE
from sklearn_structsvm.solvers.confusion.best_first import BestFirst
from sklearn_structsvm.solvers.confusion.bounds import certified_mixture, rounding_of
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)
from sklearn_structsvm.solvers.loop import run_passes


@dataclass
class BoxSolution:
    """What is found for a problem with linear conditions.

    `solution` (Mixture or other), `C` (m, k, k). `bound`: below all ψ.
    """

    solution: object
    C: np.ndarray
    bound: float
    n_calls: int = 0


class LevelSearch(BestFirst):
    """Minimizes ψ under conditions at any levels. Boxes are the ends of levels.

    `problem`: with `leveled` constraints. `solve`: (problem at levels of a box, seconds
    left) -> BoxSolution. InfeasibleConstraintError if it has none. `low`: no solution
    has less. `width`: of levels that candidates are made for, around each cut.

    Attributes: `best` (BoxSolution or None): the one of least ψ or, if none meets the
    constraints, of least violation. `violation`: its largest one.
    """

    def __init__(self, problem, solve, low=-np.inf, width=0.0):
        n = problem.n_levels
        super().__init__(low, (np.zeros(n), np.ones(n)))
        self.problem, self.solve, self.width = problem, solve, width
        self.best, self._value, self.violation = None, np.inf, np.inf
        self.rounding = rounding_of(problem)
        # Of boxes that are done, if there is no solution.
        self._least_violation = np.inf
        self.n_calls = 0

    @property
    def is_met(self):
        """Whether the best solution meets the constraints."""
        return self.violation <= FEASIBILITY_TOL

    @property
    def value(self):
        """ψ of the best solution; inf if it violates a constraint."""
        return self._value if self.is_met else np.inf

    def move(self, deadline=np.inf):
        """As always. InfeasibleConstraintError if no level has a solution."""
        status = super().move(deadline)
        if status is not None and not self.is_met and np.isinf(self._done):
            raise InfeasibleConstraintError(
                "No classifier satisfies the constraints at any level: each violates "
                f"one by at least {self._least_violation:.3g}. Loosen them.",
                self._least_violation,
            )
        return status

    def _divide(self, low_of_box, box, deadline):
        # The first box has a solution, even if the time is over.
        if self.is_late and self.n_boxes:
            return low_of_box, []
        self.n_boxes += 1
        low, high = box
        found = self._solve(low, high, False, deadline)
        if found is None:
            return np.inf, []
        bound = max(low_of_box, found.bound)
        least, most = self.problem.levels(found.C)
        cuts = np.clip(_between(least, most, low, high), low, high)
        p = int(np.argmax(least - most))
        is_cut = least[p] > most[p] and high[p] - low[p] > SAME
        if not is_cut or self.problem.violation(found.C) <= FEASIBILITY_TOL:
            return bound, []
        self._try_around(cuts, low, high, deadline)
        if not self.is_met:
            # It is easier to lower precisions than to raise them.
            self._try_around(np.where(np.isfinite(most), most, cuts), low, high, deadline)
        under, over = high.copy(), low.copy()
        under[p] = over[p] = cuts[p]
        return np.inf, [(bound, (low, under)), (bound, (over, high))]

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
        if key < (max(self.violation, FEASIBILITY_TOL), self._value):
            self.best, self._value, self.violation = found, value, violation
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
            tol=ROUGH_SHARE * tol,
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
