"""Slack rescaling through the foundation's solver, against problems written out."""

import numpy as np
import pytest
from _problems import KINDS, LAYOUTS, explicit_alpha, random_problem, solve_listed
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw, start_bcfw
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane
from sklearn_structsvm.solvers.blocks.sgd import run_sgd

LAM = 0.1
BUILT_IN = [kind for kind in KINDS if kind != "custom"]
EXACT = [(kind, search) for kind in BUILT_IN for search in ("angular", "exact")]
INEXACT = [(kind, search) for kind in KINDS for search in ("bisecting", "binary")]
VARIANTS = [(step, size) for step in ("fw", "pairwise", "away") for size in (0, 3)]


def slack_problem(kind, search, layout="dense", n=8, **options):
    problem = random_problem(kind, layout, n=n, **options)
    oracle = SlackOracle(problem.make_oracle(), search)
    return problem, problem.listed.slack_rescaled(), oracle


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


@pytest.mark.parametrize("kind", BUILT_IN)
def test_all_methods_reach_the_optimum_of_slack_rescaling(kind):
    problem, listed, _ = slack_problem(kind, "exact")
    p, best = listed.uniform, solve_listed(listed, LAM, tol=1e-8)[0]

    def oracle():
        return SlackOracle(problem.make_oracle(), "exact")

    results = [
        run_cutting_plane(oracle(), p, LAM, form=form, cache_size=size, tol=1e-7)
        for form in ("n-slack", "one-slack")
        for size in (None, 2)
    ]
    results += [
        run_bcfw(
            BlockFrankWolfe(oracle(), p, LAM, step=step),
            acceleration=acceleration, tol=1e-6, max_iter=10**5, rng=0,
        )
        for step in ("pairwise", "corrective")
        for acceleration in ("auto", True, False)
    ]  # fmt: skip
    assert {result.status for result in results} == {"converged"}
    results.append(run_sgd(oracle(), p, LAM, tol=0.0, max_iter=500, rng=0))
    bound = listed.subgradient_bound(LAM, 500 * listed.n)
    assert results[-1].objective - best <= min(results[-1].gap, bound) + 1e-8
    for result in results:
        primal = listed.primal(result.solution, LAM)
        assert result.objective == pytest.approx(primal, rel=1e-11)
        assert result.dual_objective - 1e-8 <= best <= result.objective + 1e-8


@pytest.mark.parametrize("kind, search", INEXACT)
def test_an_inexact_search_reports_a_gap_that_holds(kind, search):
    problem, listed, oracle = slack_problem(kind, search)
    p, best = listed.uniform, solve_listed(listed, LAM, tol=1e-8)[0]
    iterate, _, _ = start_bcfw(oracle, p, LAM, step="pairwise", cache=True)
    results = [run_bcfw(iterate, tol=0.0, max_iter=5, rng=0) for _ in range(5)]
    for form in ("n-slack", "one-slack"):
        own = SlackOracle(problem.make_oracle(), search)
        results.append(run_cutting_plane(own, p, LAM, form=form, tol=1e-6, max_iter=500))
        if (kind, search) == ("multiclass", "bisecting"):
            # It ends where it finds nothing more.
            assert results[-1].status == "stalled" and results[-1].gap > 1e-6
    for result in results:
        # At least the true objective, and the bound is one of the optimum.
        assert result.objective >= listed.primal(result.solution, LAM) - 1e-12
        assert result.dual_objective <= best + 1e-8


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
