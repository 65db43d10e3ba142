"""Frank-Wolfe for smooth confusion metrics under convex constraints, by splitting."""

import numpy as np
from scipy.optimize import linprog

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.options import POSITIVE, Option
from sklearn_structsvm._utils.tolerances import UNNOTICED
from sklearn_structsvm.solvers.accuracy import MAX_PROGRAMS
from sklearn_structsvm.solvers.confusion.bounds import tangent_minorant
from sklearn_structsvm.solvers.confusion.column_generation import least_violated
from sklearn_structsvm.solvers.confusion.frank_wolfe import best_step
from sklearn_structsvm.solvers.confusion.incumbent import Incumbent
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL
from sklearn_structsvm.solvers.confusion.slack_variables import (
    Coordinates,
    sides_of_levels,
)
from sklearn_structsvm.solvers.confusion.solver import (
    RECOMBINE_INTERVAL,
    ConfusionSolver,
    PositiveNumbers,
)


class SplitFrankWolfe(ConfusionSolver):
    """Minimize a smooth metric ψ under convex constraints, by splitting.

    Algorithm 5 of the paper (SplitFW): min ψ(C) + ψ(F) with C = F, C achievable and F in
    the set ℱ of tensors that meet the constraints, by Frank-Wolfe steps in both for the
    augmented Lagrangian and gradient steps in the multipliers λ of C = F. The result is
    the best feasible mixture of the found classifiers (the pruning of section 8.2).

    With a = ∇ψ(C) + λ + ζ (C - F) and b = ∇ψ(F) - λ - ζ (C - F), the two linear programs
    of an iteration, over 𝒞 and over ℱ, bound ψ: for any C' in both, 2 ψ(C') >= <∇ψ(C) +
    ∇ψ(F), C'> + h_C + h_F = <a, C'> + <b, C'> + h_C + h_F, the tangents being below ψ.

    ℱ consists of C >= 0 with the problem's row sums instead of the paper's simplex: it is
    smaller, and ψ is convex on it. C and F are in rates of their rows.

    `step` ({"line_search", "paper"}): "line_search" is line 7 of the algorithm, "paper"
    is 2 / (t + 2), as in its experiments. `penalty`: ζ. `dual_steps`: η in each part of
    the `max_iter` iterations. It is divided by the iteration. `recombine_interval`:
    iterations between two prunings at first; there are fewer later.
    """

    CALLED = "solver='frank_wolfe' with constraints"
    OPTIONS = {
        "step": Option("line_search", [StrOptions({"line_search", "paper"})]),
        # The values of the paper's experiments (appendix B.1).
        "penalty": Option(10.0, POSITIVE),
        "dual_steps": Option((0.5, 0.1, 0.001), [PositiveNumbers()]),
        "recombine_interval": RECOMBINE_INTERVAL,
    }

    def __init__(self, problem, tol, max_iter, options):
        super().__init__(problem, tol, max_iter, options)
        self.incumbent = Incumbent(problem, tol, least_violated, recombines=True)
        self.feasible = FeasibleRows(problem, self.incumbent.check_feasible)
        self.coordinates = self.feasible.coordinates
        self.t = 0

    def start(self):
        minorant = tangent_minorant(self.problem, self.problem.uniform, 1.0)
        C, *_ = self.incumbent.certify(minorant)
        self.c = self.coordinates.of(C)
        self.f, _ = self.feasible.minimize(np.zeros(self.coordinates.n))
        self.multipliers = np.zeros(self.coordinates.n)

    def move(self):
        if self.t == 0:
            self.start()
        self.t += 1
        to_c, to_f = self.targets()
        share = 2.0 / (self.t + 2.0)
        if self.step == "line_search":
            share = self.line_search(to_c - self.c, to_f - self.f)
        self.c = self.c + share * (to_c - self.c)
        self.f = self.f + share * (to_f - self.f)
        part = len(self.dual_steps) * (self.t - 1) // self.max_iter
        eta = self.dual_steps[min(part, len(self.dual_steps) - 1)]
        self.multipliers = self.multipliers + eta / self.t * (self.c - self.f)
        if self.incumbent.is_due(self.t, self.recombine_interval):
            self.incumbent.recombine()

    def targets(self):
        """The answers of the two linear programs, and the bound from them."""
        problem, z = self.problem, self.coordinates
        pull = self.multipliers + self.penalty * (self.c - self.f)
        slopes, constants = [], 0.0
        for point in (self.c, self.f):
            G, h = problem.tangent(z.tensor(point))
            slopes.append(z.slopes(G))
            constants += h + z.constant(G)
        a, b = slopes[0] + pull, slopes[1] - pull
        C, _, _, least = self.incumbent.ask(z.loss(a))
        to_f, least_f = self.feasible.minimize(b)
        if problem.convex:
            terms = np.abs(a).sum(), np.abs(b).sum(), least, least_f, constants
            self.incumbent.note_dual(0.5 * (least + least_f + constants), *terms)
        return z.of(C), to_f

    def line_search(self, along_c, along_f):
        """Line 7: the step in [0, 1] that minimizes the augmented Lagrangian."""
        z, apart, along = self.coordinates, self.c - self.f, along_c - along_f

        def lagrangian(share):
            off = apart + share * along
            return (
                self.problem.value(z.tensor(self.c + share * along_c))
                + self.problem.value(z.tensor(self.f + share * along_f))
                + self.multipliers @ off
                + 0.5 * self.penalty * (off @ off)
            )

        return best_step(lagrangian)


# The status of scipy's `linprog` if the constraints are infeasible.
NO_POINT = 2


class FeasibleRows:
    """ℱ: the z in Z (see `Coordinates`) that satisfy a problem's constraints.

    Convex constraints that are not linear are represented by tangents, which are kept. So
    the minimum is taken over a polyhedron that encloses ℱ ever more tightly, and is never
    above the minimum over ℱ.

    `check_feasible`: raises the error for constraints violated by a given amount.
    """

    def __init__(self, problem, check_feasible):
        self.problem, self.check_feasible = problem, check_feasible
        self.coordinates = z = Coordinates(problem)
        G, h, _, halves = problem.conditions
        self.sides = sides_of_levels(halves)
        self.rows = [z.slopes(row) for row in G]
        self.ends = [-float(end) - z.constant(row) for row, end in zip(G, h, strict=True)]

    def minimize(self, slopes):
        """The point of ℱ that minimizes slopes · z, and a lower bound of the minimum.

        The bound is that of the multipliers, which need not be exact: without the rows,
        each times its own, the minimum is that over Z.

        InfeasibleConstraintError if ℱ is empty.
        """
        curved = self.problem.convex_constraints
        for _ in range(MAX_PROGRAMS):
            found, multipliers = self._program(slopes)
            tensor = self.coordinates.tensor(found)
            worst = max(curved, key=lambda phi: phi.value(tensor), default=None)
            if worst is None or worst.value(tensor) <= UNNOTICED:
                break
            G, h = worst.tangent(tensor)
            self.rows.append(self.coordinates.slopes(G))
            self.ends.append(-h - self.coordinates.constant(G))
        n = len(multipliers)
        rest = slopes + multipliers @ np.reshape(self.rows[:n], (n, len(slopes)))
        bound = self.coordinates.least(rest) - float(multipliers @ self.ends[:n])
        return found, bound

    def _program(self, slopes):
        groups = self.coordinates.groups
        rows = np.vstack([*self.rows, groups])
        # The levels of halves of conditions are further variables.
        sides = np.zeros((len(rows), self.sides.shape[1]))
        sides[: len(self.sides)] = self.sides
        result = linprog(
            np.append(slopes, np.zeros(sides.shape[1])),
            A_ub=np.hstack([rows, sides]),
            b_ub=np.concatenate([self.ends, np.ones(len(groups))]),
            bounds=[(0.0, None)] * len(slopes) + [(None, None)] * sides.shape[1],
        )
        if result.status == NO_POINT:
            self.check_feasible(FEASIBILITY_TOL)
        if result.status != 0:
            raise RuntimeError(
                f"The linear program of the constraints failed: {result.message}"
            )
        y = np.maximum(-result.ineqlin.marginals[: len(self.rows)], 0.0)
        return result.x[: len(slopes)], self._balanced(y)

    def _balanced(self, multipliers):
        """The multipliers with sums of 0 for each level, which has no bounds."""
        for side in self.sides.T:
            upper, lower = np.flatnonzero(side < 0.0), np.flatnonzero(side > 0.0)
            sums = multipliers[upper].sum(), multipliers[lower].sum()
            least = min(sums)
            for own, total in zip((upper, lower), sums, strict=True):
                multipliers[own] *= least / total if total > 0.0 else 0.0
        return multipliers


run_split_fw = SplitFrankWolfe.run
