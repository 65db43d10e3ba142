"""Parity of many groups: conditions in halves, and weights of each cell's own."""

import numpy as np
import pytest
from _confusion_problems import check_result
from _seeds import new_rng
from scipy.optimize import linprog

from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.roc_points import RocPoints
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FBeta,
    LinearLoss,
    Recall,
)
from sklearn_structsvm.solvers.confusion import rule_search
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL
from sklearn_structsvm.solvers.confusion.pruning import reduce_support

TOL = 1e-3


def grouped_problem(rng, metric, constraints, n, n_groups, n_classes=2, labels=True):
    """Two classes by thresholds, or any number by the rules of probabilities."""
    P = rng.dirichlet(np.ones(n_classes), size=n)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1) if labels else None
    groups = np.append(np.arange(n_groups), rng.integers(n_groups, size=n - n_groups))
    return ConfusionProblem.from_probabilities(
        metric, P, y, constraints=constraints, sensitive_features=groups
    )


def optimum_of_all_rules(problem):
    """The minimum of a linear metric over all assignments of classes to examples."""
    cells, masses = problem.oracle.examples()
    n, k = masses.shape
    tensors = np.zeros((n, k, *problem.shape))
    for j in range(k):
        tensors[np.arange(n), j, cells, :, j] = masses
    tensors = tensors.reshape(n * k, -1)
    (G, h), (pieces, ends) = problem.linear, problem.pieces()
    found = linprog(
        tensors @ pieces[0].ravel(), A_ub=G.reshape(len(h), -1) @ tensors.T, b_ub=-h,
        A_eq=np.kron(np.eye(n), np.ones(k)), b_eq=np.ones(n),
    )  # fmt: skip
    return found.fun + ends[0]


@pytest.mark.parametrize("bound", ["difference", "ratio"])
@pytest.mark.parametrize("parity", [DemographicParity, EqualOpportunity, EqualizedOdds])
def test_halves_say_what_pairs_say(parity, bound):
    rng = new_rng()
    constraint = parity(slack=0.1, ratio=0.7, bound=bound, pos_label=1)
    others = (Recall(at_least=0.3, label=0), constraint)
    problem = grouped_problem(rng, "zero_one", others, 90, 5, n_classes=3)
    G, h = problem.linear
    for _ in range(20):
        rates = rng.dirichlet(np.full(3, 0.5), size=problem.shape[:2])
        C = rates * problem.priors[:, :, None]
        assert problem.excess(C) == pytest.approx(
            (np.tensordot(G, C, axes=3) + h).max(), abs=1e-12
        )
        values = [one.violation(C, problem.cells) for one in others]
        assert problem.violation(C) == pytest.approx(max(values), abs=1e-12)
        shortfall = constraint.disparity(C, problem.cells) - 0.1
        if bound == "ratio":
            shortfall = 0.7 - constraint.disparity(C, problem.cells)
        assert values[1] == pytest.approx(shortfall, abs=1e-12)


def test_the_conditions_are_two_for_each_group():
    constraint = EqualOpportunity(slack=0.05)
    problem = grouped_problem(new_rng(), "balanced", [constraint], 2000, 40)
    assert len(problem.conditions.h) == 2 * 40
    assert len(problem.linear[1]) == 40 * 39


def check_rules(problem, result):
    """The rules have the tensors of the mixture."""
    mixture = result.solution
    for C, handle in zip(mixture.confusions, mixture.handles, strict=True):
        np.testing.assert_allclose(problem.oracle.confusion(handle), C, atol=1e-12)


@pytest.mark.parametrize("metric", ["balanced", "f1", "g_mean"])
def test_eighty_groups_end_at_tol(metric):
    constraint = EqualOpportunity(slack=0.05)
    problem = grouped_problem(new_rng(), metric, [constraint], 1600, 80)
    result = run_column_generation(problem, tol=TOL)
    check_result(result, problem, TOL)
    assert result.status == "converged"
    assert result.violation <= FEASIBILITY_TOL
    check_rules(problem, result)


def test_five_hundred_groups_of_a_hundred_thousand_rows_take_few_calls():
    # Seconds and memory: benchmarks/bench_decision_sizes.py.
    constraint = EqualOpportunity(slack=0.05)
    problem = grouped_problem(new_rng(), "balanced", [constraint], 100_000, 500)
    assert len(problem.conditions.h) == 2 * 500
    result = run_column_generation(problem, tol=TOL)
    check_result(result, problem, TOL)
    assert result.status == "converged"
    assert result.violation <= FEASIBILITY_TOL
    assert result.n_oracle_calls <= 60


@pytest.mark.parametrize("slack", [0.0, 0.02])
@pytest.mark.parametrize("parity", [DemographicParity, EqualOpportunity, EqualizedOdds])
def test_small_linear_programs_end_at_their_optimum(parity, slack):
    rng = new_rng()
    metric = LinearLoss(rng.random((6, 6)))
    problem = grouped_problem(rng, metric, [parity(slack=slack)], 40, 5, 6, labels=False)
    result = run_column_generation(problem, tol=TOL)
    assert result.status == "converged"
    assert result.gap <= TOL
    assert result.violation <= FEASIBILITY_TOL
    best = optimum_of_all_rules(problem)
    assert best - 1e-6 <= result.objective <= best + TOL + 1e-6
    assert result.dual_objective <= best + 1e-6
    check_rules(problem, result)


def test_points_of_many_features_take_no_square_of_them():
    # A square of the features would take 80 GB.
    points = new_rng().normal(size=(6, 100_000))
    points = np.concatenate([points, points[:3]])
    weights = reduce_support(np.full(9, 1.0 / 9.0), points)
    assert (weights > 0.0).sum() <= 6
    np.testing.assert_allclose(weights @ points, points.mean(axis=0), atol=1e-10)


@pytest.mark.parametrize("n_searches", [1, 5])
def test_a_search_of_many_cells_divides_fewer_boxes(monkeypatch, n_searches):
    divided = []
    parts = rule_search._Search._parts

    def counted(search, box, *args):
        divided.append(len(box))
        return parts(search, box, *args)

    monkeypatch.setattr(rule_search._Search, "_parts", counted)
    monkeypatch.setattr(rule_search, "MAX_BOXES_OF_CELLS", 60)
    rng = new_rng()
    P = rng.dirichlet(np.ones(2), size=600)
    y = (P[:, 1] > rng.random(600)).astype(int)
    codes = np.append(np.arange(12), rng.integers(12, size=588))
    problem = ConfusionProblem.from_probabilities(
        "balanced", P, y, constraints=[EqualOpportunity(slack=0.02)],
        sensitive_features=codes,
    )  # fmt: skip
    points = RocPoints(P[:, 1], y.astype(float), np.ones(600), codes, 12)
    mixture = run_column_generation(problem, tol=TOL)
    found = rule_search.search_rules(
        problem, points, tol=TOL, n_searches=n_searches, low=mixture.dual_objective,
        starts=mixture.solution.confusions,
    )  # fmt: skip
    # One search for a rule that meets the constraint, and one for the best.
    assert 0 < len(divided) <= 2 * 5 // n_searches
    assert found.bound <= found.value < 1.0
    assert problem.violation(points.tensor(found.points)) <= FEASIBILITY_TOL


def test_a_new_level_of_a_ratio_is_priced_before_a_run_stalls():
    # All rates of the constraint are 0 at the optimum, which is one classifier.
    rng = new_rng()
    constraints = [
        EqualizedOdds(bound="ratio", ratio=0.99, reference="overall", pos_label=1),
        Recall(at_least=0.25, label=0),
    ]
    for _ in range(10):
        problem = grouped_problem(rng, FBeta(1.0, pos_label=0), constraints, 46, 6)
        result = run_column_generation(problem, tol=TOL)
        assert result.status == "converged"
        assert result.gap <= TOL
