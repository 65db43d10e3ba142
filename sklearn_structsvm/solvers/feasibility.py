"""How nearly constraints can be met, where they cannot."""

import numpy as np

from sklearn_structsvm.solvers.mixture import MET, InfeasibleConstraintError

# The smallest violation is found to this share of it, in at most so many calls.
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


def least_violated(problem, bound, max_time=None):
    """The mixture of least violation; InfeasibleConstraintError if that is positive.

    Parameters
    ----------
    problem : ConfusionProblem
    bound : float
        The violation is at least this, > 0: proven, if the oracle is exact, so that the
        error is sure and all that is looked for is how small it can be. Another oracle
        may find later what it missed.
    max_time : float or None
        Seconds.

    Returns
    -------
    MixtureResult
        Of an oracle that is not exact: it meets the constraints, or so nearly that it
        shows nothing, or there was no time to find out.
    """
    # Its runs look for violations themselves.
    from sklearn_structsvm.solvers.column_generation import run_column_generation

    tol = PRECISION * bound
    found = run_column_generation(
        ViolationProblem(problem),
        tol=tol,
        max_iter=MAX_CALLS,
        max_time=max_time,
        on_iteration=lambda n_iter, row, done: row["objective"] <= 0.0,
    )
    if problem.exact:
        bound = max(bound, found.bound)
        raise InfeasibleConstraintError(
            "No classifier meets the constraints on these examples: the largest "
            f"violation is at least {bound:.3g}, and can be made as small as "
            f"{found.value:.3g}.",
            bound,
        )
    if found.value > max(tol, MET) and found.status != "max_time":
        raise InfeasibleConstraintError(
            "None of the classifiers that were found meets the constraints on these "
            "examples, nor does a mixture of them: the largest violation can be made as "
            f"small as {found.value:.3g}.",
            found.value,
        )
    return found
