"""The weighted average of the iterates, kept without a pass over w."""

import numpy as np
import pytest
from _problems import (
    KINDS,
    assert_same_weights,
    dual_of_box,
    explicit_alpha,
    optimum,
    random_box,
    random_problem,
)
from _references import visits
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks.bcfw import certify, run_bcfw

LAM, N = 0.05, 8


def average_of(values):
    """2 / (k (k + 1)) Σ_t t · value_t."""
    t = np.arange(1, len(values) + 1)
    return 2.0 / (len(t) * (len(t) + 1)) * np.tensordot(t, values, axes=1)


@pytest.mark.parametrize("has_box", [False, True])
@pytest.mark.parametrize("step", ["fw", "pairwise", "away", "batch"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_average_of_all_iterates_with_their_certificate(kind, step, has_box):
    problem = random_problem(kind)
    lower, upper, box = random_box(new_rng(1), problem.listed.d, 0.4, has_box)
    own = {} if step == "batch" else {"step": step}
    solver = problem.solver(LAM, average=True, **own, **box)
    v, loss = solver.average_point()
    assert loss == 0.0 and not v.any()
    solver.check_gaps()
    record, alphas = [], []
    for i in visits(N, passes=2 if step == "batch" else 8):
        if step == "batch":
            solver.run_batch()
        else:
            solver.run(np.array([i]))
        record.append(solver.dual_point())
        if step in ("pairwise", "away"):
            alphas.append(explicit_alpha(problem, solver))
    v, loss = solver.average_point()
    assert_same_weights(v, average_of([v for v, _ in record]))
    assert loss == pytest.approx(average_of([loss for _, loss in record]), rel=1e-12)
    # Without a gap to begin with w would be the answer, in place of the average.
    row, weights, _ = certify(solver, average=True, tol=-np.inf)
    np.testing.assert_allclose(weights, np.clip(v, lower, upper), rtol=0, atol=1e-12)
    primal, dual = (
        problem.listed.primal(weights, LAM),
        dual_of_box(v, loss, LAM, lower, upper),
    )
    assert row["objective"] == pytest.approx(primal, rel=1e-12)
    assert row["dual_gap"] == pytest.approx(primal - dual, rel=1e-10)
    if alphas:
        alpha = [average_of([own[i] for own in alphas]) for i in range(N)]
        u, loss = problem.listed.dual_point(alpha, LAM)
        assert dual_of_box(u, loss, LAM, lower, upper) == pytest.approx(dual, rel=1e-12)
    # It begins anew at a state.
    again = problem.solver(LAM, average=True, **own, **box)
    again.set_state(solver.get_state())
    again.run(np.array([0, 1]))
    two = [again.average_point()[0]]
    again.set_state(solver.get_state())
    for i in (0, 1):
        again.run(np.array([i]))
        two.append(again.dual_point()[0])
    assert_same_weights(two[0], average_of(two[1:]), 1e-11)


def test_a_run_returns_the_best_average_unless_an_iterate_is_within_the_tolerance():
    problem = random_problem("multiclass")
    solver = problem.solver(LAM, average=True)
    result = run_bcfw(solver, average=True, tol=0.0, max_iter=200, rng=0)
    assert result.status == "max_iter"
    assert result.objective == result.history["objective"].min()
    primal = problem.listed.primal(result.solution, LAM)
    assert result.objective == pytest.approx(primal, rel=1e-12)
    assert 0 <= primal - optimum(problem, LAM) <= result.gap
    average = solver.average_point()[0]
    assert result.objective <= problem.listed.primal(average, LAM) * (1 + 1e-12)
    for tol, expected in ((solver.check_gaps()[1], solver.weights), (0.0, average)):
        row, w, _ = certify(solver, average=True, tol=tol)
        np.testing.assert_array_equal(w, expected)
        assert row["objective"] == pytest.approx(problem.listed.primal(w, LAM))
