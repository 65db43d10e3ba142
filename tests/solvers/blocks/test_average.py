"""The weighted average of the iterates, kept without a pass over w."""

import numpy as np
import pytest
from _problems import KINDS, assert_same_weights, explicit_alpha, optimum, random_problem
from _references import visits
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks.bcfw import certify, run_bcfw

LAM, N = 0.05, 8


def average_of(values):
    """2 / (k (k + 1)) Σ_t t · value_t."""
    t = np.arange(1, len(values) + 1)
    return 2.0 / (len(t) * (len(t) + 1)) * np.tensordot(t, values, axes=1)


def moved(kind, batch=False, **options):
    """A solver after some steps, and the weights, loss and α after each of them."""
    problem = random_problem(kind)
    solver = problem.solver(LAM, average=True, **options)
    solver.check_gaps()
    record = []
    for i in visits(N, passes=2 if batch else 8):
        if batch:
            solver.run_batch()
        else:
            solver.run(np.array([i]))
        record.append((*solver.dual_point(), solver))
        if "atoms" in solver.get_state():
            record[-1] = (*record[-1][:2], explicit_alpha(problem, solver))
    return problem, solver, record


@pytest.mark.parametrize("step", ["fw", "pairwise", "away", "batch"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_average_of_the_recorded_iterates(kind, step):
    is_batch = step == "batch"
    _, solver, record = moved(kind, is_batch, **({} if is_batch else {"step": step}))
    v, loss = solver.average_point()
    assert_same_weights(v, average_of([v for v, _, _ in record]))
    assert loss == pytest.approx(average_of([loss for _, loss, _ in record]), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_its_certificate_is_that_of_the_averaged_dual_variables(kind):
    problem, solver, record = moved(kind, step="pairwise")
    alpha = [average_of([alpha[i] for _, _, alpha in record]) for i in range(N)]
    row, weights, _ = certify(solver, average=True)
    listed = problem.listed
    primal, dual = listed.primal(weights, LAM), listed.dual(alpha, LAM)
    assert row["objective"] == pytest.approx(primal, rel=1e-12)
    assert row["dual_objective"] == pytest.approx(dual, rel=1e-12)
    assert row["dual_gap"] == pytest.approx(primal - dual, rel=1e-10)
    assert row["dual_gap"] >= primal - optimum(problem, LAM)


def test_before_the_first_step_it_is_the_start():
    v, loss = random_problem("chain").solver(LAM, average=True).average_point()
    assert loss == 0.0
    assert not v.any()


def test_it_starts_anew_from_a_restored_state():
    problem, old, _ = moved("chain")
    solver = problem.solver(LAM, average=True)
    solver.set_state(old.get_state())
    iterates = []
    for i in visits(N, passes=3, seed=9):
        solver.run(np.array([i]))
        iterates.append(solver.weights.copy())
    np.testing.assert_allclose(
        solver.average_point()[0], average_of(iterates), rtol=0, atol=1e-12
    )


def test_a_run_returns_and_certifies_the_average():
    problem = random_problem("multiclass")
    solver = problem.solver(LAM, average=True)
    result = run_bcfw(solver, average=True, tol=0.0, max_iter=20, rng=0)
    assert result.status == "max_iter"
    # The best average seen, which need not be the last one.
    last = problem.listed.primal(solver.average_point()[0], LAM)
    assert result.objective <= last * (1 + 1e-12)
    assert result.objective == result.history["objective"].min()
    primal = problem.listed.primal(result.solution, LAM)
    assert result.objective == pytest.approx(primal, rel=1e-12)
    assert 0 <= primal - optimum(problem, LAM) <= result.gap


def test_an_iterate_within_the_tolerance_is_returned_rather_than_the_average():
    solver = random_problem("multiclass").solver(LAM, average=True)
    run_bcfw(solver, average=True, tol=0.0, max_iter=200, rng=0)
    for tol, kind in ((solver.check_gaps()[1], "weights"), (0.0, "average")):
        row, w, _ = certify(solver, average=True, tol=tol)
        average = solver.average_point()[0]
        expected = {"weights": solver.weights, "average": average}[kind]
        np.testing.assert_array_equal(w, expected)
        assert row["objective"] == pytest.approx(solver.penalty(w) + solver.hinge(w))


def test_the_classifier_returns_it():
    problem = random_problem("chain")
    model = BCFWClassifier(
        clone(problem.structure),
        C=1 / (LAM * N),
        solver_options={"average": True},
        max_iter=10**4,
    )
    model.set_params(random_state=0).fit(problem.X, problem.y)
    primal = problem.listed.primal(model.coef_, LAM)
    assert model.objective_ == pytest.approx(primal, rel=1e-12)
    assert 0 <= primal - optimum(problem, LAM) <= model.dual_gap_ <= 1e-3
