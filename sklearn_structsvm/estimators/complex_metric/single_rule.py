"""A single rule instead of a mixture: the best one that satisfies the constraints."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
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

    `solution` (Mixture): the mixture with this rule alone. `bound`: a lower bound of ψ
    for all rules: `objective` after a complete search, and -inf if nothing is known.
    """

    solution: Mixture
    objective: float
    bound: float


def find_single_rule(oracle, problem, result, found, tol, deadline=np.inf, n_searches=1):
    """The best single rule of an oracle.

    `result`: of the best mixture. `found`: (C, handle) of other classifiers that the
    oracle has found. `tol`, `n_searches` as of `search_rules`. `deadline`: in seconds
    of `perf_counter`. InfeasibleConstraintError if no feasible rule is found.
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
            n_searches=n_searches,
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


def fold_thresholds(oracle, folds, *, tol, max_iter, deadline=np.inf, randomized=True):
    """The thresholds chosen on the held-out part of each fold alone.

    `oracle`: of all folds. `folds` (list of slice): its rows. `tol`, `max_iter` as of
    the estimator. `deadline`: in seconds of `perf_counter`; each fold makes an
    iteration beyond it. `randomized`: whether a mixture may be chosen. Returns
    (n_folds, m): means over the mixture; nan if no rule satisfies the constraints, or
    if rules that always and never predict a class are mixed.
    """
    found = np.full((len(folds), oracle.n_cells), np.nan)
    for row, fold in zip(found, folds, strict=True):
        left = None if np.isinf(deadline) else max(deadline - perf_counter(), 0.0)
        try:
            part = oracle.take(fold)
            problem = part.task.problem(part.lmo)
            result = run_column_generation(
                problem, tol=tol, max_iter=max_iter, max_time=left
            )
            if not randomized:
                result = find_single_rule(
                    part, problem, result, [], tol, deadline, n_searches=len(folds)
                )
        except (ValueError, InfeasibleConstraintError):
            # A part may lack weights, a class or a group that a constraint names.
            continue
        mixture = part.attributes(result.solution)["mixture_"]
        # A mixture of "always" and "never" has no mean.
        with np.errstate(invalid="ignore"):
            row[:] = [mixture.weights @ column for column in mixture.cuts().told.T]
    return found


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
