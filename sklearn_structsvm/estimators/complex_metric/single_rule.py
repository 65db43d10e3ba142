"""A single rule instead of a mixture: the best one that satisfies the constraints."""

from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
    Mixture,
)
from sklearn_structsvm.solvers.confusion.rule_descent import best_found, descend_rules
from sklearn_structsvm.solvers.confusion.rule_search import search_rules


@dataclass
class SingleRule:
    """The best rule found.

    Attributes
    ----------
    solution : Mixture
        The mixture with this rule alone.
    objective : float
    bound : float
        A lower bound of ψ for all rules: `objective` after a complete search, and -inf if
        nothing is known.
    """

    solution: Mixture
    objective: float
    bound: float


def find_single_rule(oracle, problem, result, found, tol, deadline=np.inf):
    """The best single rule of an oracle.

    Parameters
    ----------
    oracle : PluginOracle or ClassifierOracle
    problem : ConfusionProblem
        Of this oracle.
    result : SolverResult
        The result for the best mixture.
    found : list of (C, handle)
        Other classifiers that the oracle has found.
    tol : float
        As of `search_rules`.
    deadline : float
        In seconds of `perf_counter`.

    Returns
    -------
    SingleRule

    Raises
    ------
    InfeasibleConstraintError
        If no rule that satisfies the constraints is found.
    """
    points, mixture = oracle.roc_points(), result.solution
    bound = -np.inf
    if points is not None:
        starts = [C[: oracle.n_cells] for C in [mixture.confusion, *mixture.confusions]]
        best = search_rules(
            problem,
            points,
            low=result.dual_objective,
            tol=tol,
            starts=starts,
            deadline=deadline,
        )
        C, bound = points.tensor(best.closest), best.bound
        heaviest = mixture.handles[int(np.argmax(mixture.weights))]
        handle = np.zeros(problem.shape)
        handle[: oracle.n_cells] = points.losses(best.closest, heaviest[: oracle.n_cells])
    elif oracle.rules_are_losses:
        C, handle = descend_rules(problem, mixture, found)
    else:
        known = [*zip(mixture.confusions, mixture.handles, strict=True), *found]
        C, handle = known[best_found(problem, known)]
    violation = problem.violation(C)
    if violation > FEASIBILITY_TOL:
        verb = "satisfies" if np.isposinf(bound) else "was found that satisfies"
        remedy = "Loosen the constraints."
        if result.violation <= FEASIBILITY_TOL:
            remedy = (
                "A mixture of rules satisfies them: use randomized=True, or loosen the "
                "constraints."
            )
        raise InfeasibleConstraintError(
            f"No single rule {verb} the constraints on these examples: the closest one "
            f"violates them by {violation:.3g}. {remedy}",
            violation,
        )
    solution = Mixture(np.ones(1), [handle], np.asarray(C)[None])
    return SingleRule(solution, problem.value(C), bound)


def warn_of_search(estimator, rule):
    """ConvergenceWarning if a search ended before it was complete."""
    rest = rule.objective - rule.bound
    if np.isfinite(rest) and rest > estimator.tol:
        warn_caller(
            "The search for the best single rule ended early: another rule may be "
            f"better, by at most {rest:.3g} > tol={estimator.tol:.3g}. Increase tol or, "
            "if it is set, max_time.",
            ConvergenceWarning,
        )
