"""Weights of mixtures: the best ones, as few as may be."""

import numpy as np
import pytest
from _confusion_problems import FiniteOracle, finite_problem, linear_optimum
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from sklearn_structsvm._utils.tolerances import UNNOTICED
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.registry import get_metric
from sklearn_structsvm.metrics import Recall, SelectionRate
from sklearn_structsvm.solvers.confusion.mixture import Columns, Mixture
from sklearn_structsvm.solvers.confusion.pruning import (
    best_weights,
    reduce_support,
    sparsify,
)


def columns_of(problem):
    columns = Columns(problem.shape)
    for t, C in enumerate(problem.oracle.tensors):
        columns.add(C, t)
    return columns


def linear_weights(problem, columns):
    """The weights of section 8.2 as it is: a linear program.

    min Σ_t α_t ψ(C_t) with Σ_t α_t φ(C_t) <= 0 for all constraints φ. For convex ψ and φ
    both are upper bounds of what they are for the mixture: it meets the constraints, but
    a better one may.

    Returns
    -------
    weights : ndarray of shape (T,), or None where no mixture meets the constraints so
    """
    tensors = columns.tensors
    cost = [problem.value(C) for C in tensors]
    G, h = problem.linear
    rows = G.reshape(len(h), -1) @ columns.flat.T + h[:, None]
    bent = [[phi.value(C) for C in tensors] for phi in problem.convex_constraints]
    A = np.concatenate([rows, np.reshape(bent, (-1, len(tensors)))])
    found = linprog(
        cost, A_ub=A, b_ub=np.zeros(len(A)), A_eq=np.ones((1, len(cost))), b_eq=[1.0]
    )
    return np.maximum(found.x, 0.0) if found.status == 0 else None


@given(st.integers(1, 400), st.integers(1, 8), st.integers(0, 1000))
def test_no_more_points_are_left_than_dimensions_and_one(n, dim, seed):
    rng = new_rng(seed)
    points, weights = rng.normal(size=(n, dim)), rng.dirichlet(np.ones(n))
    fewer = reduce_support(weights, points)
    assert (fewer >= 0.0).all()
    assert fewer.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.count_nonzero(fewer) <= dim + 1
    np.testing.assert_allclose(fewer @ points, weights @ points, atol=1e-10)


@pytest.mark.parametrize("seed", [8962, 11797, 12647, 13202])
def test_what_was_emptied_stays_empty(seed):
    """A change that leaves a point as it is has an entry there that is zero, not dust.

    One problem in a thousand showed it: these did.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    n, dim = rng.integers(1, 400), rng.integers(1, 9)
    points, weights = rng.normal(size=(n, dim)), rng.dirichlet(np.ones(n))
    assert np.count_nonzero(reduce_support(weights, points)) <= dim + 1


def test_points_that_coincide_become_one():
    assert np.count_nonzero(reduce_support(np.full(5, 0.2), np.ones((5, 3)))) == 1


@pytest.mark.parametrize("metric", ["min_max", "balanced", "ordinal"])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_weights_are_those_of_the_linear_program(metric, seed):
    problem = finite_problem(new_rng(seed), metric, [SelectionRate(at_most=0.5)])
    columns = columns_of(problem)
    best = linear_optimum(problem, *problem.pieces())
    weights, minorant = best_weights(problem, columns, tol=1e-8)
    assert problem.value(columns.mix(weights)) == pytest.approx(best, abs=2e-8)
    assert problem.violation(columns.mix(weights)) <= 0.0
    within = (columns.flat @ minorant.L.ravel()).min() + minorant.h
    assert best - 2e-8 <= within <= best + 1e-9


def test_the_papers_linear_program_meets_the_constraints_but_need_not_be_best():
    problem = finite_problem(new_rng(1), "g_mean", [Recall(at_least=0.3)])
    columns = columns_of(problem)
    simple = columns.mix(linear_weights(problem, columns))
    best = columns.mix(best_weights(problem, columns, tol=1e-6)[0])
    assert problem.violation(simple) <= 1e-9
    assert problem.value(best) <= problem.value(simple) + 1e-6


def test_settling_drops_classifiers_of_next_to_no_weight():
    problem = finite_problem(new_rng(0), "h_mean")
    weights = np.full(20, 1e-9)
    weights[:2] = 0.5
    weights /= weights.sum()
    mixture = Mixture(weights, list(range(20)), problem.oracle.tensors)
    settled = sparsify(problem, mixture, tol=1e-3)
    assert (settled.weights >= UNNOTICED).all()
    assert problem.value(settled.confusion) <= problem.value(mixture.confusion) + 1e-5


def test_one_of_several_equally_good_classifiers_is_enough():
    """Which is what thresholds need; rounding may favor a mixture of two."""
    tensors = np.array([[[[62, 39], [5, 44]]], [[[90, 11], [19, 30]]]]) / 150
    oracle = FiniteOracle(tensors)
    cells = Cells(tensors[0].sum(axis=-1), np.arange(2))
    problem = ConfusionProblem(get_metric("f1", [0, 1]), oracle, cells)
    mixture = Mixture(np.array([0.95, 0.05]), [0, 1], tensors)
    settled = sparsify(problem, mixture, tol=1e-3)
    assert settled.weights.tolist() == [1.0]
    assert problem.value(settled.confusion) == pytest.approx(1 / 3, rel=1e-15)


def test_a_constraint_met_but_for_rounding_takes_no_worse_mixture():
    """One that is hardly inside of it itself would have nearly all the weight."""
    priors = np.array([[0.5, 0.5]])
    oracle = FiniteOracle(
        [[[[0.5 - 5e-10, 5e-10], [0.0, 0.5]]], [[[0.0, 0.5], [0.5, 0.0]]]]
    )
    oracle.tensors[1, 0] += [[2e-9, -2e-9], [0.0, 0.0]]
    problem = ConfusionProblem(
        get_metric("zero_one", [0, 1]), oracle, Cells(priors, np.arange(2)),
        [SelectionRate(label=1, at_most=0.5)],
    )  # fmt: skip
    mixture = Mixture(np.array([0.999, 0.001]), [0, 1], oracle.tensors)
    assert 0.0 < problem.violation(mixture.confusion) <= 1e-9
    settled = sparsify(problem, mixture, tol=1e-3)
    assert problem.value(settled.confusion) <= problem.value(mixture.confusion) + 1e-4


def test_settling_leaves_constraints_met():
    problem = finite_problem(
        new_rng(5), "h_mean", [SelectionRate(at_most=0.4)], n_classes=4
    )
    columns = columns_of(problem)
    mixture = columns.mixture(best_weights(problem, columns, tol=1e-3)[0])
    settled = sparsify(problem, mixture, tol=1e-3)
    assert problem.violation(mixture.confusion) <= 0.0
    assert problem.violation(settled.confusion) <= 0.0
    assert len(settled.weights) <= 4 + 4 + 1
