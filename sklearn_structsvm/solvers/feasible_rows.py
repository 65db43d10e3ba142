"""Tensors of given row sums that meet the constraints, achievable or not."""

import numpy as np
from scipy.optimize import linprog

from sklearn_structsvm.solvers.coordinates import Coordinates
from sklearn_structsvm.solvers.mixture import MET

# A convex constraint is violated by at most this where its tangents are enough of them.
BENT = 1e-6

# Linear programs for one answer. Each adds a tangent to those of all answers before, so
# that later ones need but one or two.
MAX_PROGRAMS = 50

# What scipy's `linprog` says where nothing meets the constraints.
NO_POINT = 2


class FeasibleRows:
    """ℱ: the z in Z (see `Coordinates`) that meet a problem's constraints.

    Convex constraints that are not linear are given by tangents, which are kept: what is
    minimised over is a polyhedron around ℱ that closes in on it, so that the minimum is
    never above that over ℱ.

    Parameters
    ----------
    problem : ConfusionProblem
    check_feasible : callable
        Raises the error of constraints that are violated by a number at least.
    """

    def __init__(self, problem, check_feasible):
        self.problem, self.check_feasible = problem, check_feasible
        self.coordinates = z = Coordinates(problem)
        G, h = problem.linear
        self.rows = [z.slopes(row) for row in G]
        self.ends = [-float(end) - z.constant(row) for row, end in zip(G, h, strict=True)]

    def minimise(self, slopes):
        """The point of ℱ where slopes · z is least, and that minimum.

        Raises
        ------
        InfeasibleConstraintError
            If ℱ is empty.
        """
        for _ in range(MAX_PROGRAMS):
            found = self._program(slopes)
            tensor = self.coordinates.tensor(found)
            worst = max(
                self.problem.convex_constraints,
                key=lambda phi: phi.value(tensor),
                default=None,
            )
            if worst is None or worst.value(tensor) <= BENT:
                break
            G, h = worst.tangent(tensor)
            self.rows.append(self.coordinates.slopes(G))
            self.ends.append(-h - self.coordinates.constant(G))
        return found, float(slopes @ found)

    def _program(self, slopes):
        groups = self.coordinates.groups
        result = linprog(
            slopes,
            A_ub=np.vstack([*self.rows, groups]),
            b_ub=np.concatenate([self.ends, np.ones(len(groups))]),
            bounds=(0.0, None),
        )
        if result.status == NO_POINT:
            self.check_feasible(MET)
        if result.status != 0:
            raise RuntimeError(
                f"The linear program of the constraints failed: {result.message}"
            )
        return result.x
