"""Slack rescaling through the foundation's solver, against problems written out."""

from dataclasses import replace

import numpy as np
import pytest
from _problems import KINDS, LAYOUTS, explicit_alpha, random_problem, uneven_weights
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import certify, run_bcfw, start_bcfw

LAM = 0.1
BUILT_IN = [kind for kind in KINDS if kind != "custom"]
EXACT = [(kind, search) for kind in BUILT_IN for search in ("angular", "exact")]
INEXACT = [(kind, search) for kind in KINDS for search in ("bisecting", "binary")]
VARIANTS = [(step, size) for step in ("fw", "pairwise", "away") for size in (0, 3)]


def scaled(listed):
    """The same labelings, each one's features and loss scaled by its loss."""
    phi = [loss[:, np.newaxis] * listed.delta(i) for i, loss in enumerate(listed.loss)]
    return replace(listed, phi=phi)


def slack_problem(kind, search, layout="dense", n=8, **options):
    problem = random_problem(kind, layout, n=n, **options)
    oracle = SlackOracle(problem.make_oracle(), search)
    return problem, scaled(problem.listed), oracle


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind, search", EXACT)
def test_the_oracle_finds_the_largest_product(kind, search, layout):
    problem, listed, oracle = slack_problem(kind, search, layout)
    rng = new_rng(0)
    p = listed.uniform
    for scale in (0.0, 0.3, 3.0):
        w = scale * rng.standard_normal(listed.d)
        solver = BlockFrankWolfe(oracle, p, LAM)
        for lam in (1.0, 0.2):
            assert solver.hinge(w, lam) == pytest.approx(listed.hinge(w, lam=lam))


@pytest.mark.parametrize("step, cache_size", VARIANTS)
@pytest.mark.parametrize("kind, search", EXACT)
def test_the_gap_is_primal_minus_dual_whatever_the_steps(kind, search, step, cache_size):
    problem, listed, oracle = slack_problem(kind, search)
    p = uneven_weights(problem.n, ())
    solver = BlockFrankWolfe(oracle, p, LAM, step=step, cache_size=cache_size)
    rng = new_rng(0)
    duals = []
    for _ in range(6):
        hinge, gap = solver.check_gaps()
        w = solver.weights
        assert hinge == pytest.approx(listed.hinge(w, p))
        primal = listed.primal(w, LAM, p)
        if step == "fw":
            dual = solver.loss - 0.5 * LAM * w @ w
        else:
            alpha = explicit_alpha(problem, solver)
            for mass in alpha:
                assert mass.sum() == pytest.approx(1.0)
            v, _ = listed.dual_point(alpha, LAM, p)
            np.testing.assert_allclose(w, v, rtol=0, atol=1e-12)
            dual = listed.dual(alpha, LAM, p)
        assert gap == pytest.approx(primal - dual, rel=1e-10, abs=1e-12)
        duals.append(dual)
        for _ in range(4):
            solver.run(rng.permutation(problem.n))
    assert (np.diff(duals) >= -1e-14).all() and duals[1] > duals[0]


@pytest.mark.parametrize("kind, search", INEXACT)
def test_an_inexact_search_reports_a_gap_that_holds(kind, search):
    problem, listed, oracle = slack_problem(kind, search)
    exact_kind = "exact" if kind != "custom" else None
    iterate, _, _ = start_bcfw(oracle, listed.uniform, LAM, step="pairwise", cache=True)
    for _ in range(5):
        run_bcfw(iterate, tol=0.0, max_iter=5, rng=0)
        row, w, _ = certify(iterate)
        # At least the true objective and gap, so that the bounds hold.
        assert row["objective"] >= listed.primal(w, LAM) - 1e-12
        assert row["dual_gap"] >= listed.primal(w, LAM) - row["dual_objective"] - 1e-12
    if exact_kind is not None:
        best = SlackOracle(random_problem(kind).make_oracle(), "exact")
        least, _, _ = start_bcfw(best, listed.uniform, LAM, step="pairwise", cache=False)
        optimum = run_bcfw(least, tol=1e-8, max_iter=5000, rng=0)
        assert row["dual_objective"] <= optimum.objective + 1e-12
        assert row["objective"] >= optimum.dual_objective


def test_losses_of_0_and_1_make_slack_and_margin_rescaling_one():
    rng = new_rng(0)
    problem = random_problem("multiclass", n=12)
    structure = problem.structure.set_params(label_costs=None)
    structure.fit(problem.X, problem.y, bias=1.0)
    objectives = []
    for wrap in (lambda o: o, lambda o: SlackOracle(o, "angular")):
        oracle = wrap(structure.make_oracle(problem.X, problem.y))
        iterate, _, _ = start_bcfw(
            oracle, problem.listed.uniform, LAM, step="pairwise", cache=False
        )
        objectives.append(run_bcfw(iterate, tol=1e-11, max_iter=9999, rng=rng).objective)
    assert objectives[0] == pytest.approx(objectives[1], abs=1e-10)


@pytest.mark.parametrize("search", ["angular", "exact"])
@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_dual_point_is_restored_at_another_lambda(kind, search):
    problem, listed, oracle = slack_problem(kind, search)
    first, _, _ = start_bcfw(oracle, listed.uniform, LAM, step="pairwise", cache=False)
    run_bcfw(first, acceleration=False, tol=1e-3, max_iter=500, rng=0)
    state = first.get_state()
    again = SlackOracle(problem.make_oracle(), search)
    second = BlockFrankWolfe(again, listed.uniform, 2 * LAM, step="pairwise")
    second.set_state(state)
    np.testing.assert_allclose(second.weights, 0.5 * first.weights, atol=1e-12)
    first.set_lambda(2 * LAM)
    assert second.check_gaps() == pytest.approx(first.check_gaps())


def test_the_label_cache_of_a_structure_in_python_holds_what_it_should():
    """Labelings are slots there: none in use is let go, and few others are kept."""
    problem, listed, oracle = slack_problem("custom", "binary", n=6)
    for step, cache_size in VARIANTS:
        oracle = SlackOracle(problem.make_oracle(), "binary", cache_size=1)
        solver = BlockFrankWolfe(
            oracle, listed.uniform, LAM, step=step, cache_size=cache_size
        )
        rng = new_rng(0)
        for _ in range(30):
            solver.run(rng.permutation(problem.n))
            solver.check_gaps()
        if step != "fw":
            v, _ = listed.dual_point(explicit_alpha(problem, solver), LAM)
            np.testing.assert_allclose(solver.weights, v, atol=1e-12)
