"""From the oracle of a task to the fitted attributes, by a solver."""

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.tables import listed_names
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING, rounded_up
from sklearn_structsvm._utils.weights import effective_number
from sklearn_structsvm.confusion.binomial_tests import one_standard_error
from sklearn_structsvm.confusion.function_metric import FunctionMetric, shown
from sklearn_structsvm.confusion.moved import moved, spare_of
from sklearn_structsvm.confusion.tightening import refuse_curved
from sklearn_structsvm.estimators.complex_metric.held_out import CertifiedSearch
from sklearn_structsvm.estimators.complex_metric.label_excess import (
    warn_of_excess,
    warn_of_few,
)
from sklearn_structsvm.estimators.complex_metric.oracles import CommonOracle
from sklearn_structsvm.estimators.complex_metric.single_rule import (
    SingleRule,
    find_single_rule,
    fold_thresholds,
    warn_of_search,
)
from sklearn_structsvm.estimators.complex_metric.task import (
    promise_words,
    warn_of_empty_counts,
)
from sklearn_structsvm.estimators.inner import feature_attributes, learned
from sklearn_structsvm.solvers.confusion.bounds import certified_gap
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)
from sklearn_structsvm.solvers.confusion.named import AUTO, find_solver
from sklearn_structsvm.solvers.confusion.rule_descent import AskedOracle
from sklearn_structsvm.solvers.loop import History, SolverResult

# With fewer examples of one of several classes there is a warning. The default cv then
# has a fold with at most one of them.
FEW_EXAMPLES = 10


@dataclass
class Solved:
    """What is found for a problem.

    `result`, `mixture` (SolverResult): of what is used, and of the best mixture; the
    same unless one rule is wanted.
    """

    result: SolverResult
    mixture: SolverResult
    rule: SingleRule | None = None


@dataclass
class Solution:
    """What a fit has found, by which oracle, and what else `store` needs.

    `asked` (ConfusionProblem): with the constraints that were asked for. `bounds` (list
    of ConfidenceBounds): by which they were tightened for all rules. `n_calls`: in all.
    """

    oracle: Any
    known: dict
    asked: Any
    solved: Solved
    bounds: list
    n_calls: int
    deadline: float
    reporter: Any


def solve(fit, oracle, known, held_out=None):
    """Solve the problem of an oracle within a fit, and report: its `Solution`.

    `oracle` (PluginOracle or ClassifierOracle). `fit`: of a `ComplexMetricClassifier`.
    `known`: the fitted attributes that are known before. `held_out` or None: the rows
    that constraints are to be certified by.
    """
    estimator = fit.estimator
    asked = oracle.task.problem(oracle.lmo)
    name, solver = find_solver(estimator._options.solver, asked.constrained)
    options = {
        "tol": estimator.tol,
        "max_iter": estimator.max_iter,
        **estimator._options_of_solver(),
    }
    known = known | {"solver_": name}
    find = partial(_solve, estimator, oracle, partial(solver.run, **options))
    deadline = _deadline(estimator)
    found, n_calls, bounds, certified = promised(estimator, oracle, known, find, held_out)
    if held_out is not None:
        deadline = _deadline(estimator)
    common = None
    if estimator.constraint_confidence is None:
        common, n_more = common_rule(estimator, oracle, options, _left(deadline))
        n_calls += n_more
    known |= found | {"common_rule_": common is not None}
    if common is not None:
        oracle, find = common
    history = History()
    history.method = name
    reporter = fit.reporter(lambda: known | oracle.attributes(history.solution))
    reporter.begin()
    try:
        solved = find(
            oracle.task.problem(oracle.lmo),
            _left(deadline),
            certified=certified,
            on_pass=reporter,
            history=history,
        )
    except InfeasibleConstraintError as error:
        margin = estimator._options.margin
        if margin is not None:
            error.add_note(f"margin={margin!r} made the constraints stricter.")
        if not bounds:
            raise
        raise infeasible_with_confidence(estimator, bounds, error) from None
    n_calls += solved.result.n_oracle_calls
    return Solution(oracle, known, asked, solved, bounds, n_calls, deadline, reporter)


def _deadline(estimator):
    max_time = estimator._options.max_time
    return np.inf if max_time is None else perf_counter() + max_time


def _left(deadline):
    """The seconds until a deadline, or None."""
    return None if np.isinf(deadline) else max(deadline - perf_counter(), 0.0)


def promised(estimator, oracle, known, find, held_out):
    """Give an oracle the constraints by which those that were asked for hold.

    Returns `known`: fitted attributes about them; `n_calls`: of the oracle, to find
    them; `bounds` (list of ConfidenceBounds): by which they are tightened for all
    rules; `certified` (Solved or None): the rule that held-out rows have certified.
    """
    task, found, n_calls, bounds, certified = oracle.task, {}, 0, [], None
    constraints = task.constraints
    if held_out is not None:
        n_threads = count_threads(estimator.n_jobs)
        search = CertifiedSearch(estimator, oracle, known, find, held_out, n_threads)
        rule = search.run()
        constraints, certified, n_calls = rule.constraints, rule.solved, search.n_calls
        found["calibration_p_values_"] = np.array(search.p_values)
    elif estimator.constraint_confidence is not None:
        bounds = task.bounds(estimator.constraint_confidence)
        constraints = [moved(b.constraint, b.values, of_rates=False) for b in bounds]
        by_group = [b.by_group(task.cells.group_names) for b in bounds]
        found["constraint_bounds_"] = by_group
    elif estimator._options.margin is not None and constraints:
        constraints, n_calls = with_margin(estimator, oracle, find)
    oracle.task = replace(task, constraints=constraints)
    return found, n_calls, bounds, certified


def store(fit, solution):
    """Set the fitted attributes of a `Solution`, end the fit, and warn."""
    estimator, oracle, solved = fit.estimator, solution.oracle, solution.solved
    result, asked = solved.result, solution.asked
    found = solution.known | oracle.attributes(result.solution)
    if solved.rule is not None:
        found |= {"mixture_objective_": float(solved.mixture.objective)}
    if "estimator_" not in found:
        for one in found["classifiers_"]:
            found |= feature_attributes(learned(one, "classifier", one))
    vars(estimator).update(found)
    bound, gap, n_of_bound = oracle.certificate(
        result, estimator.tol, estimator.max_iter, _left(solution.deadline)
    )
    estimator.confusion_ = estimator.cell_confusions_.sum(axis=0)
    estimator.diagnostics_ = oracle.diagnostics(estimator.confusion_)
    C = oracle.in_all_cells(result.solution).confusion
    estimator.certified_confusions_ = C[: asked.cells.n_cells]
    estimator.objective_ = float(result.objective)
    estimator.dual_objective_ = float(bound)
    estimator.dual_gap_ = float(gap)
    estimator.constraint_violation_ = asked.violation(C)
    _note_cv_thresholds(estimator, oracle, solution.deadline)
    estimator.n_iter_ = result.n_iter
    estimator.n_oracle_calls_ = solution.n_calls + n_of_bound
    estimator.history_ = result.history
    fit.commit()
    solution.reporter.end()
    warn(estimator, oracle.task, solution)


def warn(estimator, task, solution):
    """All warnings of a fit that has ended."""
    asked, solved = solution.asked, solution.solved
    warn_of_shortfall(estimator, solved.mixture)
    if solved.rule is not None:
        warn_of_search(estimator, solved.rule)
    kept = [c for c in asked.constraints if not c.empty_counts(asked.cells)]
    is_constant = warn_of_constant(estimator, task.weights, kept, asked.cells)
    if not is_constant and estimator.constraint_confidence is None:
        warn_of_empty_counts(kept, asked.cells, estimator.certified_confusions_)
    warn_of_excess(
        estimator.diagnostics_,
        [repr(label) for label in estimator.classes_.tolist()],
        len(task.y),
        "limit it by a constraint, such as SelectionRate(at_most=...) or "
        "Precision(at_least=...).",
    )
    warn_of_few_predictions(estimator)
    warn_of_few_examples(estimator)
    warn_of_small_groups(estimator, solution.bounds)


def common_rule(estimator, oracle, options, max_time):
    """The rule without constraints, if it is one for all groups and meets them.

    What groups would gain by rules of their own is then mostly the noise of their labels,
    which makes them differ more on new examples.

    `oracle` (PluginOracle or ClassifierOracle): with the constraints to meet.
    `options`: of the solver. Returns (CommonOracle, solve) or None: the oracle to go on
    with, and its solver as for other oracles; `n_calls`: of the oracle.
    """
    task = oracle.task
    is_for_all = not (
        task.metric.needs_groups
        or task.finder.group_blind
        or task.finder.baseline is not None
    )
    has_rules_of_groups = task.constraints and task.cells.n_cells > 1
    if not (estimator._is_plugin and is_for_all and has_rules_of_groups):
        return None, 0
    if task.costs is not None:
        return None, 0
    common = CommonOracle(oracle)
    _, solver = find_solver(estimator._options.solver, False)
    kept = {"tol", "max_iter", *solver.OPTIONS}
    options = {name: value for name, value in options.items() if name in kept}
    solve = partial(_solve, estimator, common, partial(solver.run, **options))
    solved = solve(common.task.problem(common.lmo), max_time)
    C = common.in_all_cells(solved.result.solution).confusion
    complies = task.problem(oracle.lmo).violation(C) <= FEASIBILITY_TOL
    n_calls = solved.result.n_oracle_calls
    return ((common, solve) if complies else None), n_calls


def with_margin(estimator, oracle, solve):
    """The constraints, stricter by the `margin`, and the number of oracle calls.

    "auto" is one standard error of each condition for the rule without a margin.
    """
    constraints, margin, n_calls = oracle.task.constraints, estimator._options.margin, 0
    refuse_curved(constraints, "margin")
    problem = oracle.task.problem(oracle.lmo)
    cells, by, found = problem.cells, margin, []
    if margin == "auto":
        result = solve(problem, estimator._options.max_time).result
        C, n_calls = result.solution.confusion[: cells.n_cells], result.n_oracle_calls
        counts = effective_number(oracle.task.weights) * C
    for constraint in constraints:
        if margin == "auto":
            by = one_standard_error(constraint, cells, counts)
        found.append(moved(constraint, by))
    return found, n_calls


def _solve(estimator, oracle, run_solver, problem, max_time=None, n_searches=1,
           certified=None, **watched):  # fmt: skip
    """A problem's best mixture or, if one is wanted, single rule: `Solved`.

    `n_searches`: of single rules, as of `search_rules`. `certified` (Solved or None):
    what is used, also if this run, which is to be watched, is cut short.
    """
    deadline = np.inf if max_time is None else perf_counter() + max_time
    is_searched = isinstance(problem.metric, FunctionMetric)
    if is_searched:
        # There is no gradient to go by: a start is enough.
        run_solver = partial(run_solver, max_iter=1)
    is_single = is_searched or not estimator.randomized
    if is_single and certified is None:
        problem.oracle = AskedOracle(problem.oracle)
    mixture = run_solver(problem, max_time=max_time, **watched)
    if certified is not None:
        result = replace(certified.result, history=mixture.history)
        return replace(certified, result=result)
    if not is_single:
        return Solved(mixture, mixture)
    if is_searched and mixture.status == "max_iter":
        mixture = replace(mixture, status="stationary")
    known, tol = problem.oracle.found, estimator.tol
    rule = find_single_rule(oracle, problem, mixture, known, tol, deadline, n_searches)
    bound, gap = certified_gap(problem, rule.solution.confusion, mixture.dual_objective)
    result = replace(
        mixture,
        solution=rule.solution,
        objective=rule.objective,
        dual_objective=bound,
        gap=gap,
    )
    return Solved(result, mixture, rule)


def _note_cv_thresholds(estimator, oracle, deadline):
    """Set `cv_thresholds_`, if there are folds and the rule is a threshold."""
    if oracle.folds is None:
        return
    try:
        estimator._single_rule("cv_thresholds_")
    except AttributeError:
        return
    found = fold_thresholds(
        oracle,
        oracle.folds,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        deadline=deadline,
        randomized=estimator.randomized,
    )
    estimator.cv_thresholds_ = found[:, 0] if found.shape[1] == 1 else found


def warn_of_shortfall(estimator, result):
    """ConvergenceWarning if a run ended before it was done."""
    ran_out = result.status in ("max_iter", "max_time")
    is_done = result.status in ("converged", "stationary")
    is_violated = result.violation > FEASIBILITY_TOL
    if result.status == "stopped" or (is_done and not is_violated):
        return
    lacks = []
    if result.gap > estimator.tol and np.isfinite(result.gap):
        lacks.append(
            f"a gap of {result.gap:.3g} > tol={estimator.tol:.3g}: the metric is at most "
            "that far from its optimum"
        )
    if is_violated:
        lacks.append(f"a constraint violated by {estimator.constraint_violation_:.3g}")
    if not lacks and not ran_out:
        return
    if not ran_out:
        end, remedy = "found nothing more to do", "Use a larger tol, or another solver."
    else:
        limit = estimator._settings()[result.status]
        end = f"stopped at {result.status}={limit}"
        remedy = f"Increase {result.status}"
        remedy += "." if estimator.solver_ == AUTO else f", or use solver='{AUTO}'."
    what = " and ".join(lacks) or "no bound on how far it is from its optimum"
    warn_caller(
        f"{estimator.solver_} {end}, with {what}. {remedy}",
        ConvergenceWarning,
    )


def warn_of_constant(estimator, weights, constraints, cells):
    """UserWarning if the mixture predicts one class only; whether it does."""
    predicted = estimator.confusion_.sum(axis=0) > SUM_ROUNDING
    if predicted.sum() != 1:
        return False
    (always,) = estimator.classes_[predicted].tolist()
    never = estimator.classes_[~predicted].tolist()
    by, look_at = "of those that the LMO found", "LMO"
    if estimator._is_plugin:
        by, look_at = "by the class probabilities", "probabilities"
    if np.ptp(weights) > 0.0:
        look_at += " and the sample weights"
    tensor = estimator.certified_confusions_
    empty = [c for c in constraints if c.empty_counts(cells, tensor)]
    of_none = f" {listed_names(empty)} says nothing about labels never predicted."
    warn_caller(
        f"The classifier predicts {always!r} for every training example and never "
        f"{never}: {by} nothing else is better for metric={shown(estimator.metric)} and "
        f"the constraints. Have a look at the {look_at}.{of_none if empty else ''}",
    )
    return True


def warn_of_few_predictions(estimator):
    """UserWarning if the positive label is predicted for few."""
    if estimator.pos_label_ is None:
        return
    labels = estimator.classes_.tolist()
    others = [i for i, label in enumerate(labels) if label != estimator.pos_label_]
    names = [repr(label) for label in labels]
    metric = shown(estimator.metric)
    why = f"nothing else is better for metric={metric} and the constraints"
    if (estimator.confusion_.sum(axis=0) > SUM_ROUNDING).sum() > 1:
        # Otherwise `warn_of_constant` has said so.
        warn_of_few(estimator.diagnostics_, names, why, others)


def warn_of_few_examples(estimator):
    """UserWarning if one of several classes has too few examples for its probability."""
    is_fitted_here = estimator._is_plugin and not estimator._is_fitted_already()
    if not is_fitted_here or estimator.label_factors_ is None:
        return
    n = estimator.diagnostics_["rows"]
    (few,) = np.nonzero((n > SUM_ROUNDING) & (n < FEW_EXAMPLES))
    if not len(few):
        return
    warn_caller(
        f"Fewer than {FEW_EXAMPLES} examples have the label(s) "
        f"{listed_names(estimator.classes_[few].tolist())}: their probability is not "
        "known well. Try lmo='weighted', which fits the classifier to weighted examples "
        "instead, and compare both by cross-validation.",
    )


def infeasible_with_confidence(estimator, bounds, error):
    """The InfeasibleConstraintError of constraints that were tightened."""
    low = error.smallest_violation
    tightened = [
        f"{b.constraint!r} by up to {min(b.values.max(), spare_of(b.constraint)):.3g}"
        for b in bounds
        if len(b.values)
    ]
    slacks = [
        f"slack={rounded_up(b.constraint.slack + low)}"
        for b in bounds
        if b.constraint.slack is not None
    ]
    least = f", as {' or '.join(slacks)} does" if slacks else ""
    return InfeasibleConstraintError(
        f"With {promise_words(estimator)} constraints are "
        f"tightened: {'; '.join(tightened)}. No classifier meets them then. The least "
        f"to ask at this confidence is {rounded_up(low)} looser{least}. ({error})",
        low,
    )


def warn_of_small_groups(estimator, bounds):
    """UserWarning if a group is too small for the slack that was asked."""
    names = estimator.groups_
    for b in bounds:
        small = {}
        for group, value in zip(b.groups, b.values.tolist(), strict=True):
            if value > spare_of(b.constraint):
                small[group] = max(value, small.get(group, 0.0))
        if not small:
            continue
        listed = ", ".join(
            f"{names.tolist()[group]!r} (slack={rounded_up(value)})"
            for group, value in sorted(small.items())
        )
        warn_caller(
            f"Groups are too small for {b.constraint!r} at constraint_confidence="
            f"{estimator.constraint_confidence}. The least that could be promised is: "
            f"{listed}.",
        )
