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


def make_problem(metric, constraints=()):
    """Of two groups in three cells."""
    tensors, priors = random_tensors(new_rng(0), 30, 3, 2)
    cells = Cells(
        priors, np.arange(2), np.array([0, 1, 1]), ["a", "b"], np.array([0, 0, 1])
    )
    return ConfusionProblem(
        get_metric(metric, cells.classes), FiniteOracle(tensors), cells, constraints
    )


def test_a_metric_of_all_examples_is_of_the_sum_over_cells():
    problem = make_problem("g_mean")
    C = problem.oracle.tensors[3]
    assert problem.value(C) == GMean().value(C.sum(axis=0))
    gradient = problem.gradient(C)
    assert gradient.shape == (3, 2, 2)
    for cell in gradient:
        np.testing.assert_array_equal(cell, GMean().gradient(C.sum(axis=0)))
    assert not problem.constrained
    assert problem.violation(problem.uniform) == -np.inf
    np.testing.assert_allclose(problem.uniform.sum(axis=2), problem.priors)
    assert problem.value(problem.uniform) == pytest.approx(0.5)


def test_a_metric_of_groups_gets_the_sums_over_each_group():
    problem = make_problem(WorstGroup())
    C = problem.oracle.tensors[3]
    groups = np.array([C[0], C[1] + C[2]])
    assert problem.value(C) == WorstGroup().value(groups)
    gradient = WorstGroup().gradient(groups)
    np.testing.assert_array_equal(problem.gradient(C), gradient[[0, 1, 1]])
    # Forms in closed form are of class priors, and are not asked for.
    assert problem.pieces() is None and problem.ratio() is None
    result = run_column_generation(problem, tol=1e-4)
    assert result.status == "converged"
    singles = [problem.value(C) for C in problem.oracle.tensors]
    assert result.objective <= min(singles) + 1e-4


@pytest.mark.parametrize("constraints", [[], [EqualOpportunity()], [Quantification(0.1)]])
def test_features_determine_the_metric_and_the_constraints(constraints):
    problem = make_problem("g_mean", constraints)
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
