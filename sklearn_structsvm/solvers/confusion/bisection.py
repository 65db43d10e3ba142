"""Bisection and Dinkelbach's method for ratios of linear functions."""

import numpy as np

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.options import COUNT, Option
from sklearn_structsvm.solvers.accuracy import FINAL_SHARE, ROUGH_SHARE
from sklearn_structsvm.solvers.confusion.bounds import (
    denominator_range,
    linear_range,
    ratio_bound,
)
from sklearn_structsvm.solvers.confusion.column_generation import (
    least_violated,
    run_column_generation,
)
from sklearn_structsvm.solvers.confusion.gda import run_gda
from sklearn_structsvm.solvers.confusion.incumbent import Incumbent
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL
from sklearn_structsvm.solvers.confusion.solver import ConfusionSolver

# Solvers of the linear problem of each iteration with constraints.
INNER = {"column_generation": run_column_generation, "gda": run_gda}


class Bisection(ConfusionSolver):
    """Minimize ψ(C) = <A, C> / <B, C> over the achievable confusion tensors.

    Algorithms 4 and 8 of the paper (Bisection and ConBisection): ψ(C) < γ for some C that
    meets the constraints if and only if the least <A - γ B, C> over these C is negative,
    which without constraints is one call of the oracle, and a linear problem with them.

    Lines 7 and 8 of Algorithm 8 swap the classifiers. By its proof (Lemma 47), the new
    classifier is kept if ψ(C) <= γ, and γ becomes the upper end; if ψ(C) > γ, the old one
    stays and γ becomes the lower end. The ends do not start at 0 and 1 but at the
    smallest and largest ratio that the row sums allow, so any range of ψ is covered.

    `step` ({"bisection", "dinkelbach"}): γ halves the interval that contains the
    minimum, or is the smallest ratio so far, which converges in a few calls. `inner`
    ({"column_generation", "gda"}): the solver of the problems with constraints. The
    paper uses "gda" (ConGDA). `inner_max_iter`: iterations of each of these.
    """

    CALLED = "solver='bisection'"
    MAX_ITER = 100
    OPTIONS = {
        "step": Option("bisection", [StrOptions({"bisection", "dinkelbach"})]),
        "inner": Option("column_generation", [StrOptions({*INNER})]),
        "inner_max_iter": Option(1000, COUNT),
    }

    def __init__(self, problem, tol, max_iter, options):
        super().__init__(problem, tol, max_iter, options)
        if problem.ratio() is None:
            raise ValueError(
                f"{self.CALLED} requires a ratio of linear functions, and "
                f"{problem.metric!r} is not one. Use 'column_generation'."
            )
        self.incumbent = Incumbent(problem, tol, least_violated)
        self.A, self.B = problem.ratio()
        self.below = denominator_range(problem, self.B)
        self.low, self.high = self.ends()

    def ends(self):
        """Bounds of ψ for all tensors of the row sums."""
        least, most = linear_range(self.problem, self.A)
        low, high = self.below
        if not low > 0.0:
            return min(least, 0.0), max(most, 1.0)
        lower = least / (low if least < 0.0 else high)
        return lower, most / (high if most < 0.0 else low)

    def move(self):
        incumbent = self.incumbent
        before = self.high - self.low
        level = self.high if self.step == "dinkelbach" else 0.5 * (self.low + self.high)
        weights, least, is_answer = self.solve(self.A - level * self.B)
        incumbent.take(weights)
        if incumbent.violation <= FEASIBILITY_TOL:
            self.high = min(self.high, incumbent.value)
        sizes = np.abs(self.A) + abs(level) * self.B
        least -= incumbent.bounds.rounding.of_values(sizes.max(axis=-1), level)
        bound = ratio_bound(level, least, self.below)
        if np.isfinite(bound):
            incumbent.note_dual(bound)
            self.low = max(self.low, bound)
        if is_answer and self.high > level:
            # As far as the inner solver can tell, no C has a ratio below the level.
            self.low = max(self.low, level)
        if not is_answer and least < 0.0 and self.high >= level:
            # The inner solver was cut short before it could decide.
            self.inner_max_iter *= 2
            return None
        # If no level is left that tol would tell from others, only the inner solver's
        # accuracy is left.
        after = self.high - self.low
        return "stalled" if after == before or after <= FINAL_SHARE * self.tol else None

    def solve(self, L):
        """The best mixture for the linear loss L, a bound, and whether it is final.

        Returns `weights` (T,) of a mixture; `least`: a lower bound of <L, C> for all C
        that meet the constraints; `is_answer`: whether that is all.
        """
        incumbent = self.incumbent
        if not self.problem.constrained:
            _, index, _, least = incumbent.ask(L)
            return np.eye(1, len(incumbent.columns), index)[0], least, True
        tol = ROUGH_SHARE * self.tol * max(self.below[0], self.tol)
        found, weights = incumbent.solve_linear(
            INNER[self.inner], L, tol, self.inner_max_iter
        )
        return weights, found.dual_objective, found.status != "max_iter"


run_bisection = Bisection.run
