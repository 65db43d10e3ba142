"""The best single rule, against enumeration of all thresholds of all groups."""

from itertools import product

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.roc_points import RocPoints, short_number
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    MetricBound,
    Precision,
    Quantification,
    Recall,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion import rule_search
from sklearn_structsvm.solvers.confusion.rule_search import search_rules

# With bounds, and without.
BOUNDED = ["g_mean", "h_mean", "q_mean", "min_max", "zero_one", "f1", "kappa", "recall"]
METRICS = [*BOUNDED, "precision", "macro_f1", "mcc"]

CONSTRAINTS = {
    "none": (),
    "opportunity": EqualOpportunity(slack=0.05),
    "parity": DemographicParity(slack=0.03, reference="groups"),
    "four fifths": DemographicParity(bound="ratio"),
    "odds": EqualizedOdds(slack=0.1),
    "precision": Precision(at_least=0.7, per_group=True),
    "rates": [Recall(at_least=0.6, per_group=True), SelectionRate(label=1, at_most=0.5)],
    "shares": Quantification(at_most=0.01),
    "curved": MetricBound("g_mean", at_least=0.6, per_group=True),
}


def problem_of(rng, n_groups, metric, constraints, n=None):
    """A problem, and the points of its ROC curves: with ties and weights, or without."""
    n = int(rng.integers(12, {1: 60, 2: 34, 3: 22}[n_groups])) if n is None else n
    p = rng.uniform(size=n)
    weights = np.ones(n)
    if rng.uniform() < 0.5:
        p, weights = np.round(p, 1), rng.integers(1, 4, size=n).astype(float)
    groups = np.append(np.arange(n_groups), rng.integers(0, n_groups, n - n_groups))
    y = (rng.uniform(size=n) < np.clip(p + 0.3 * (groups == 1) - 0.1, 0, 1)).astype(int)
    y[:2] = 0, 1
    problem = ConfusionProblem.from_probabilities(
        metric,
        np.column_stack([1.0 - p, p]),
        y,
        constraints=[constraints] if not isinstance(constraints, (list, tuple))
        else constraints,
        sample_weight=weights,
        sensitive_features=groups,
    )  # fmt: skip
    return problem, RocPoints(p, y.astype(float), weights, groups, n_groups)


def by_enumeration(problem, points):
    """The least ψ of the rules that meet the constraints, and the least violation."""
    tensors = [points.tensor(rule) for rule in product(*map(range, points.sizes))]
    violations = [problem.violation(C) for C in tensors]
    values = [
        problem.value(C)
        for C, violation in zip(tensors, violations, strict=True)
        if violation <= 1e-9
    ]
    return min(values, default=np.inf), min(problem.excess(C) for C in tensors)


@pytest.mark.parametrize("constraints", CONSTRAINTS.values(), ids=CONSTRAINTS)
@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_no_thresholds_are_better(n_groups, constraints, monkeypatch):
    rng = new_rng(n_groups, len(repr(constraints)))
    for i in range(4):
        # All rules at once, or boxes that are divided until they are small.
        if i >= 2:
            monkeypatch.setattr(rule_search, "MAX_ENUMERATED", 30)
            monkeypatch.setattr(rule_search, "MAX_AROUND", 8)
        metric = str(rng.choice(METRICS if i < 2 else BOUNDED))
        problem, points = problem_of(rng, n_groups, metric, constraints)
        found = search_rules(problem, points)
        best, least = by_enumeration(problem, points)
        if np.isinf(best):
            assert found.points is None
            assert np.isposinf(found.bound)
            closest = problem.excess(points.tensor(found.closest))
            assert closest == pytest.approx(least, abs=1e-9)
            continue
        assert found.value == pytest.approx(best, abs=1e-9), metric
        assert found.bound == pytest.approx(best, abs=1e-9)
        C = points.tensor(found.points)
        assert problem.value(C) == found.value
        assert problem.violation(C) <= 1e-9


def test_a_search_that_ends_early_still_has_a_bound(monkeypatch):
    rng = new_rng(8)
    problem, points = problem_of(rng, 3, "h_mean", EqualOpportunity(slack=0.02), n=90)
    exact = search_rules(problem, points)
    monkeypatch.setattr(rule_search, "MAX_ENUMERATED", 4)
    monkeypatch.setattr(rule_search, "MAX_AROUND", 8)
    for max_boxes in (0, 1, 3):
        most = max_boxes * len(points.sizes)
        monkeypatch.setattr(rule_search, "MAX_BOXES_OF_CELLS", most)
        found = search_rules(problem, points)
        if exact.points is None:
            assert found.points is None
            continue
        assert found.bound <= exact.value + 1e-9
        if found.points is not None:
            assert found.value >= exact.value - 1e-9
    monkeypatch.setattr(rule_search, "MAX_BOXES_OF_CELLS", 4000)
    monkeypatch.setattr(rule_search, "MAX_EXACT_BOXES", 0)
    near = search_rules(problem, points, tol=0.05)
    if near.points is not None:
        assert near.value - 0.05 <= near.bound <= exact.value + 1e-9


def test_many_groups_get_thresholds_of_nearly_one_rate(monkeypatch):
    rng = new_rng(11)
    n, groups = 1200, np.repeat(np.arange(12), 100)
    p = rng.uniform(size=n)
    y = (rng.uniform(size=n) < p).astype(int)
    problem = ConfusionProblem.from_probabilities(
        "zero_one", np.column_stack([1.0 - p, p]), y,
        constraints=[DemographicParity(slack=0.015)], sensitive_features=groups,
    )  # fmt: skip
    points = RocPoints(p, y.astype(float), np.ones(n), groups, 12)
    monkeypatch.setattr(rule_search, "MAX_EXACT_BOXES", 0)
    # Each number of a group's hundred rows can be predicted, so that all can be alike.
    found = search_rules(problem, points, tol=1.0)
    assert problem.violation(points.tensor(found.points)) <= 1e-9


def test_points_count_what_lies_above_each_threshold():
    rng = new_rng(9)
    n = 60
    scores = np.round(rng.uniform(size=n), 1)
    share, weights = rng.uniform(size=n), rng.integers(0, 3, size=n).astype(float)
    weights[:2] = 1.0
    cells, costs = rng.integers(0, 3, size=n) * 2, rng.uniform(size=(n, 2))
    points = RocPoints(scores, share, weights, cells, 6, costs, (0.1, 0.9))
    # Cells 1, 3 and 5 have no examples.
    assert [points.sizes[a] for a in (1, 3, 5)] == [1, 1, 1]
    L = rng.standard_normal(points.shape)
    fallback = rng.standard_normal((6, 2, 2))
    for _ in range(5):
        rule = [int(rng.integers(size)) for size in points.sizes]
        cuts = np.array([points.threshold(a, t) for a, t in enumerate(rule)])
        guess = (scores > cuts[cells]).astype(int)
        C = points.tensor(rule)
        for a in range(6):
            for i, of_label in enumerate((1.0 - share, share)):
                for j in (0, 1):
                    rows = (cells == a) & (guess == j)
                    mass = (of_label * weights)[rows].sum() / weights.sum()
                    assert C[a, i, j] == pytest.approx(mass)
        mean = np.average(costs[np.arange(n), guess], weights=weights)
        assert C[-1, 0, 0] == pytest.approx((mean - 0.1) / 0.8)
        assert C[-1].sum() == pytest.approx(1.0)
        constant, parts = points.parts(L)
        total = constant + sum(part[t] for part, t in zip(parts, rule, strict=True))
        assert total == pytest.approx(np.vdot(L, C))
        losses = points.losses(rule, fallback)
        np.testing.assert_array_equal(losses[[1, 3, 5]], fallback[[1, 3, 5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thresholds_are_short_and_lie_between_the_scores(dtype):
    assert short_number(dtype(0.3087), dtype(0.3122)) == 0.31
    assert short_number(dtype(0.1), dtype(0.9)) == 0.5
    # Without a number between them, it is the lower one.
    low = dtype(0.3)
    high = np.nextafter(low, dtype(1.0))
    assert dtype(short_number(low, high)) == low
    for low, high in np.sort(new_rng(10).uniform(size=(50, 2)).astype(dtype), axis=1):
        if low < high:
            assert low <= dtype(short_number(low, high)) < high
