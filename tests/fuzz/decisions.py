"""Random decision problems, whose optima are those of linear programs.

A mixture of classifiers is a sum of parts, each of which is mixed on its own: the
predictions of each row, the thresholds of each group, or whole classifiers of a list. The
program of all parts is HiGHS's, and enumeration finds the best single rule.
"""

from itertools import product

import numpy as np
from _random_confusion import (
    OF_CONFUSION,
    Programs,
    check_solver,
    jumps_upwards,
    random_constraint,
    random_metric,
    random_problem,
)
from calls import Broken

from sklearn_structsvm._utils.groups import Groups
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.roc_points import RocPoints
from sklearn_structsvm.metrics import GMean
from sklearn_structsvm.solvers.confusion.bounds import denominator_range
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL
from sklearn_structsvm.solvers.confusion.rule_search import search_rules

MAX_ITER = 1000
# The number of single rules that are tried, and what a bound of them may lose.
MAX_RULES, ACCURACY = 1000, 1e-9


def some_sample(rng):
    """Probabilities, labels, weights and groups of a few rows."""
    k, m = int(rng.integers(2, 7)), int(rng.integers(1, 7))
    n = int(rng.integers(2, 60))
    P = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 3.0])), size=n)
    if rng.random() < 0.4:
        P = np.round(P * 8.0) / 8.0
        P[:, -1] = 1.0 - P[:, :-1].sum(axis=1)
        P = np.abs(P) / np.abs(P).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(k, p=row) for row in P])
    weights = rng.choice([None, "random"], p=[0.6, 0.4])
    weights = None if weights is None else rng.integers(0, 4, n) / 2.0
    if weights is not None and not weights.any():
        weights[0] = 1.0
    groups = rng.integers(m, size=n) if m > 1 else None
    return P, y, weights, groups


def of_rows(rng):
    """(problem, its program): each row has its own mixture of predictions."""
    P, _, weights, groups = some_sample(rng)
    problem = with_constraints(rng, P, None, weights, groups)
    k, cells = problem.shape[-1], problem.oracle.examples()[0]
    weights = np.ones(len(P)) if weights is None else weights
    masses = P * (weights / (weights @ P.sum(axis=1)))[:, np.newaxis]
    tensors = np.zeros((len(P), k, *problem.shape))
    for i, j in product(range(len(P)), range(k)):
        tensors[i, j, cells[i], :, j] = masses[i]
    return problem, Programs(
        problem, tensors.reshape(-1, *problem.shape), np.repeat(np.arange(len(P)), k)
    )


def of_thresholds(rng):
    """(problem, its program): each group mixes the thresholds of its scores."""
    while True:
        P, y, weights, groups = some_sample(rng)
        if P.shape[1] == 2 and len({*y}) == 2:
            break
    problem = with_constraints(rng, P, y, weights, groups)
    codes = np.zeros(len(y), dtype=int)
    if groups is not None:
        codes = Groups(groups, len(y)).codes
    shares = np.ones(len(y)) if weights is None else weights
    problem.points = RocPoints(P[:, 1], y, shares, codes, problem.shape[0])
    shares = shares / shares.sum()
    tensors, units = [], []
    for a in range(problem.shape[0]):
        for at, above in product([-1.0, *P[codes == a, 1]], [True, False]):
            C = np.zeros(problem.shape)
            of_a = (codes == a).nonzero()[0]
            given = ((P[of_a, 1] > at) == above).astype(int)
            np.add.at(C[a], (y[of_a], given), shares[of_a])
            tensors.append(C)
            units.append(a)
    return problem, Programs(problem, np.array(tensors), np.array(units))


def with_constraints(rng, P, y, weights, groups):
    """The problem of some rows, with a metric and constraints that something meets."""
    options = {"sample_weight": weights, "sensitive_features": groups}
    free = ConfusionProblem.from_probabilities("zero_one", P, y, **options)
    losses = rng.exponential(size=(4, *free.shape))
    C = np.tensordot(rng.dirichlet(np.ones(4)), [free.lmo(L)[0] for L in losses], axes=1)
    n = int(rng.integers(0, 4))
    constraints = [random_constraint(rng, C, free.cells) for _ in range(n)]
    metric = random_metric(rng, free.shape[-1], rng.choice([*OF_CONFUSION, "linear"]))
    return ConfusionProblem.from_probabilities(
        metric, P, y, constraints=constraints, **options
    )


def of_a_list(rng):
    """(problem, its program): mixtures of whole classifiers."""
    kind = rng.choice(["any", "any", "free", "never", "absent"])
    problem = random_problem(rng, kind=str(kind))
    return problem, Programs(problem)


KINDS = {"rows": of_rows, "thresholds": of_thresholds, "list": of_a_list}


def check_decision(rng, kind):
    """Solve a random problem of a kind, and compare the answer with the program's.

    Raises
    ------
    Broken
        With what is wrong.
    """
    problem, programs = KINDS[kind](rng)
    tol = 10.0 ** -int(rng.integers(2, 7))
    try:
        result = check_solver("column_generation", problem, MAX_ITER, tol, programs)
    except AssertionError as error:
        raise Broken(f"{problem.metric!r} {problem.constraints!r}: {error}") from error
    if result is not None:
        judge_end(rng, problem, result, tol)
    if kind == "thresholds" and problem.shape[0] <= 2:
        check_single(problem, result, tol)


def judge_end(rng, problem, result, tol):
    """Whether a run may end as it did."""
    if result.status == "converged" or result.status == "stationary" != problem.convex:
        return
    ratio = problem.ratio()
    # Nothing keeps a denominator from 0, nor then a bound from -inf.
    if ratio is not None and denominator_range(problem, ratio[1])[0] == 0.0:
        return
    # A recall of 0 is known up to its rounding, near which the G-mean is steep.
    rounded = SUM_ROUNDING ** (1.0 / problem.shape[-1])
    if isinstance(problem.metric, GMean) and result.objective == 1.0:
        if result.gap <= rounded:
            return
    losses = rng.standard_normal((30, *problem.shape))
    tensors = [problem.lmo(L)[0] for L in losses]
    if not problem.convex and jumps_upwards(problem, result.solution.confusion, tensors):
        return
    raise Broken(
        f"{problem.metric!r} {problem.constraints!r}: {result.status} with a gap of "
        f"{result.gap} > {tol} after {result.n_iter} iterations"
    )


def check_single(problem, result, tol):
    """Compare the best single rule with that of all."""
    points = problem.points
    sizes = [len(own) for own in points.tensors]
    if np.prod(sizes) > MAX_RULES or result is None:
        return
    best = np.inf
    for rule in product(*map(range, sizes)):
        C = points.tensor(rule)
        if problem.violation(C) <= FEASIBILITY_TOL:
            best = min(best, problem.value(C))
    found = search_rules(problem, points, low=result.dual_objective, tol=tol)
    words = f"{problem.metric!r} {problem.constraints!r}: {found} for {best}"
    if (found.points is None) != np.isinf(best) or found.bound > best + ACCURACY:
        raise Broken(words)
    if found.points is not None and problem.violation(points.tensor(found.points)) > (
        FEASIBILITY_TOL
    ):
        raise Broken(words)
    is_bounded = problem.convex or problem.ratio() is not None
    if is_bounded and found.value > best + tol + ACCURACY:
        raise Broken(words)
