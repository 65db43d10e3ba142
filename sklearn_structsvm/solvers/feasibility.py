"""How nearly constraints can be met, where they cannot."""

import numpy as np

from sklearn_structsvm.solvers.mixture import InfeasibleConstraintError

# The smallest violation is found to this share of it, in at most so many calls: it is
# for a message.
PRECISION = 1e-2
MAX_CALLS = 200


class ViolationProblem:
    """Minimise the largest violation of a problem's constraints, a convex function."""

    convex, smooth, constrained, convex_constraints = True, False, False, ()

    def __init__(self, problem):
        self.problem = problem
        self.shape, self.priors, self.exact = problem.shape, problem.priors, problem.exact
        self.uniform, self.lmo = problem.uniform, problem.lmo
        self.linear = np.zeros((0, *problem.shape)), np.zeros(0)

    def value(self, C):
        return self.problem.violation(C)

    def violation(self, C):
        return -np.inf

    def tangent(self, C):
        """Of the constraint that is violated most."""
        G, h = self.problem.linear
        values = np.tensordot(G, C, axes=3) + h
        worst = max(self.problem.convex_constraints, key=lambda phi: phi.value(C))
        if len(h) and values.max() >= worst.value(C):
            p = int(values.argmax())
            return G[p], float(h[p])
        return worst.tangent(C)

    def pieces(self):
        return None if self.problem.convex_constraints else self.problem.linear

    def ratio(self):
        return None

    def features(self, tensors):
        return tensors.reshape(len(tensors), -1)


def infeasible(problem, bound):
    """The error of constraints whose violation is at least `bound` > 0.

    The smallest violation that there is is found first, for the message.
    """
    # Its runs raise this error, and are what finds that violation.
    from sklearn_structsvm.solvers.column_generation import run_column_generation

    result = run_column_generation(
        ViolationProblem(problem), tol=PRECISION * bound, max_iter=MAX_CALLS
    )
    bound = max(bound, result.bound)
    found = "No classifier" if problem.exact else "None of the classifiers found"
    return InfeasibleConstraintError(
        f"{found} meets the constraints on these examples: the largest violation is at "
        f"least {bound:.3g}, and can be made as small as {result.value:.3g}.",
        bound,
    )
