"""The problem that solvers see: sums over cells and groups, and what it passes on."""

import numpy as np
import pytest
from _confusion_problems import FiniteOracle, random_tensors
from _seeds import new_rng

from sklearn_structsvm.confusion import ConfusionMetric
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.registry import get_metric
from sklearn_structsvm.metrics import (
    EqualOpportunity,
    GMean,
    MinMax,
    Quantification,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation


class WorstGroup(ConfusionMetric):
    """The largest error rate of a group, in terms of the groups' matrices."""

    convex = True
    needs_groups = True

    def value(self, C):
        return float(max(1.0 - np.trace(group) / group.sum() for group in C))

    def gradient(self, C):
        rates = [np.trace(group) / group.sum() for group in C]
        worst = int(np.argmin(rates))
        G = np.zeros_like(C)
        G[worst] = -np.eye(C.shape[-1]) / C[worst].sum()
        return G


@pytest.fixture
def cells():
    """Two groups in three cells."""
    return lambda priors: Cells(
        priors, np.arange(2), np.array([0, 1, 1]), ["a", "b"], np.array([0, 0, 1])
    )


def make_problem(metric, cells, constraints=()):
    tensors, priors = random_tensors(new_rng(0), 30, 3, 2)
    cells = cells(priors)
    return ConfusionProblem(
        get_metric(metric, cells.classes), FiniteOracle(tensors), cells, constraints
    )


def test_a_metric_of_all_examples_is_of_the_sum_over_cells(cells):
    problem = make_problem("g_mean", cells)
    C = problem.oracle.tensors[3]
    assert problem.value(C) == GMean().value(C.sum(axis=0))
    gradient = problem.gradient(C)
    assert gradient.shape == (3, 2, 2)
    for cell in gradient:
        np.testing.assert_array_equal(cell, GMean().gradient(C.sum(axis=0)))


def test_a_metric_of_groups_gets_the_sums_over_each_group(cells):
    problem = make_problem(WorstGroup(), cells)
    C = problem.oracle.tensors[3]
    groups = np.array([C[0], C[1] + C[2]])
    assert problem.value(C) == WorstGroup().value(groups)
    gradient = WorstGroup().gradient(groups)
    np.testing.assert_array_equal(problem.gradient(C), gradient[[0, 1, 1]])
    # Forms in closed form are of class priors, and are not asked for.
    assert problem.pieces() is None and problem.ratio() is None


def test_a_metric_of_groups_is_minimized(cells):
    problem = make_problem(WorstGroup(), cells)
    result = run_column_generation(problem, tol=1e-4)
    assert result.status == "converged"
    singles = [problem.value(C) for C in problem.oracle.tensors]
    assert result.objective <= min(singles) + 1e-4


def test_tangents_touch_and_stay_below(cells):
    problem = make_problem("h_mean", cells)
    C = problem.oracle.tensors[3]
    G, h = problem.tangent(C)
    assert np.vdot(G, C) + h == pytest.approx(problem.value(C))
    for other in problem.oracle.tensors:
        assert np.vdot(G, other) + h <= problem.value(other) + 1e-12


def test_pieces_and_ratios_have_the_metrics_value(cells):
    problem = make_problem(MinMax(), cells)
    G, h = problem.pieces()
    for C in problem.oracle.tensors:
        assert (np.tensordot(G, C, axes=3) + h).max() == pytest.approx(problem.value(C))
    problem = make_problem("kappa", cells)
    A, B = problem.ratio()
    for C in problem.oracle.tensors:
        assert np.vdot(A, C) / np.vdot(B, C) == pytest.approx(problem.value(C))
    ((weight, A, B),) = problem.ratio_terms()
    assert weight == 1.0


def test_the_violation_is_the_largest_of_all_constraints(cells):
    constraints = [
        EqualOpportunity(slack=0.1),
        Quantification(0.01),
        SelectionRate(at_most=0.6),
    ]
    problem = make_problem("g_mean", cells, constraints)
    assert problem.constrained
    for C in problem.oracle.tensors:
        single = [c.violation(C, problem.cells) for c in constraints]
        assert problem.violation(C) == pytest.approx(max(single))


def test_without_constraints_nothing_is_violated(cells):
    problem = make_problem("g_mean", cells)
    assert not problem.constrained
    assert problem.violation(problem.uniform) == -np.inf


def test_the_uniform_classifier_is_inside_and_has_the_row_sums(cells):
    problem = make_problem("g_mean", cells)
    np.testing.assert_allclose(problem.uniform.sum(axis=2), problem.priors)
    assert problem.value(problem.uniform) == pytest.approx(0.5)


@pytest.mark.parametrize("constraints", [[], [EqualOpportunity()], [Quantification(0.1)]])
def test_features_determine_the_metric_and_the_constraints(cells, constraints):
    problem = make_problem("g_mean", cells, constraints)
    tensors = problem.oracle.tensors
    features = problem.features(tensors)
    weights = new_rng(1).dirichlet(np.ones(len(tensors)))
    # Another mixture of the same features, if there is one, has the same values.
    _, sizes, V = np.linalg.svd(np.column_stack([features, np.ones(len(tensors))]).T)
    free = V[int((sizes > 1e-10 * sizes[0]).sum()) :]
    assert len(free)
    way = free[0] * 0.5 * weights.min() / np.abs(free[0]).max()
    first, second = (np.tensordot(w, tensors, axes=1) for w in (weights, weights + way))
    assert problem.value(first) == pytest.approx(problem.value(second), abs=1e-12)
    assert problem.violation(first) == pytest.approx(problem.violation(second), abs=1e-9)


class TestFromProbabilities:
    """The problem of a metric, probabilities and no more."""

    @staticmethod
    def sample(k, n=300):
        rng = new_rng(0)
        P = rng.dirichlet(np.arange(1.0, k + 1), size=n)
        y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        return P, y, rng.random(n), np.array(["b", "a"])[rng.integers(2, size=n)]

    @pytest.mark.parametrize("k", [2, 3])
    def test_labels_are_counted_where_they_are_given(self, k):
        P, y, weights, _ = self.sample(k)
        of_model = ConfusionProblem.from_probabilities("g_mean", P, sample_weight=weights)
        of_labels = ConfusionProblem.from_probabilities(
            "g_mean", P, y, sample_weight=weights
        )
        np.testing.assert_allclose(of_model.priors[0], weights @ P / weights.sum())
        np.testing.assert_allclose(
            of_labels.priors[0], np.bincount(y, weights) / weights.sum()
        )
        assert of_model.exact
        # Of two classes the best threshold for the labels is found.
        assert of_labels.exact == (k == 2)

    def test_groups_are_cells(self):
        P, y, _, groups = self.sample(2)
        problem = ConfusionProblem.from_probabilities(
            "g_mean", P, y, constraints=[EqualOpportunity(slack=0.05, pos_label=1)],
            sensitive_features=groups,
        )  # fmt: skip
        assert problem.cells.group_names == ["a", "b"]
        np.testing.assert_allclose(
            problem.priors.sum(axis=1), [np.mean(groups == g) for g in "ab"]
        )
        result = run_column_generation(problem)
        assert result.status == "converged" and result.violation <= 0.0

    def test_what_makes_no_sense_is_refused(self):
        P, y, _, _ = self.sample(2)
        for arguments, words in (
            ({"metric": "nothing"}, "'nothing' is unknown"),
            ({"y": y + 1}, "y must be among 0, ..., 1"),
            ({"probabilities": 2 * P}, "sum to one"),
            (
                {"constraints": [SelectionRate(label=7, at_most=0.5)]},
                "label=7 is not a class",
            ),
            ({"constraints": [EqualOpportunity()]}, "needs sensitive_features"),
        ):
            arguments = {"metric": "g_mean", "probabilities": P} | arguments
            with pytest.raises(ValueError, match=words):
                ConfusionProblem.from_probabilities(**arguments)
