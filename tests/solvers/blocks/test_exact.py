"""Exact block ascent: the optimum over all labelings, its certificate, and who rests."""

from types import SimpleNamespace

import numpy as np
import pytest
from _problems import LAYOUTS, Problem, alpha_of_moves, optimum, random_problem
from _references import list_multiclass, messy_csr, random_costs
from _seeds import new_rng, new_seed
from scipy.sparse import csr_array
from sklearn.datasets import make_classification

from sklearn_structsvm.estimators.steps import make_ascent
from sklearn_structsvm.solvers.blocks.exact import certify, run_exact
from sklearn_structsvm.structures import MulticlassStructure

KINDS = ("binary", "multiclass", "multilabel")
SAMPLINGS = ("gap", "uniform", "permuted")
LAM = 0.05


def explicit_alpha(problem, ascent):
    return alpha_of_moves(problem, ascent.get_state()["blocks"])


def dual(problem, ascent, lam=LAM, p=None):
    return problem.listed.dual(explicit_alpha(problem, ascent), lam, p)


# ----------------------------------------------------------------- the optimum


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("lam", "intercept"), [(0.003, 0.0), (0.1, 1.5), (3.0, 1.5)])
def test_exact_steps_reach_the_optimum_over_all_labelings(
    kind, layout, sampling, lam, intercept
):
    problem = random_problem(kind, layout, intercept=intercept)
    p = np.array([0.3, 0.0, 0.1, 0.25, 0.0, 0.2, 0.1, 0.05])
    ascent = problem.ascent(lam, p)
    result = run_exact(ascent, sampling=sampling, tol=1e-9, max_iter=10**5, rng=0)
    assert result.status == "converged"
    assert abs(result.objective - optimum(problem, lam, p)) <= 2e-9
    # What is claimed is so: the objective, the dual one and the gap between them.
    primal = problem.listed.primal(result.solution, lam, p)
    assert result.objective == pytest.approx(primal, rel=1e-12)
    certified = dual(problem, ascent, lam, p)
    assert result.dual_objective == pytest.approx(certified, abs=1e-12)
    assert result.gap == pytest.approx(result.objective - certified, abs=1e-12)
    assert not ascent.get_state()["blocks"][p == 0.0].any()
    np.testing.assert_array_equal(ascent.active_blocks, np.flatnonzero(p))


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_leaves_its_example_without_a_gap_and_never_lowers_the_dual(kind):
    problem = random_problem(kind)
    ascent = problem.ascent(LAM)
    rng = new_rng(0)
    before = dual(problem, ascent)
    for i in rng.integers(problem.n, size=60):
        ascent.run(np.array([i]))
        after = dual(problem, ascent)
        assert after >= before - 1e-15
        before = after
        # Of the block's labelings, those with mass all have the largest value.
        values = problem.listed.values(i, ascent.weights)
        assert explicit_alpha(problem, ascent)[i] @ (values.max() - values) <= 1e-13


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("k", [2, 3, 7, 8, 9, 15, 16, 17, 26, 33])
def test_any_number_of_classes_and_features_is_scored_and_updated_right(k, layout):
    """Vectors of eight, their overlaps and what is left over: each has its own code."""
    for n_features in (1, 2, 5):
        problem = random_multiclass(k, n_features, layout)
        ascent = problem.ascent(1e-3)
        for _ in range(4):
            ascent.run(new_rng(0).permutation(problem.n))
        w = ascent.weights.copy()
        assert ascent.hinge(w) == pytest.approx(problem.listed.hinge(w), rel=1e-12)
        ascent.rebuild_weights()
        np.testing.assert_allclose(ascent.weights, w, rtol=0, atol=1e-11)
        v, _ = problem.listed.dual_point(explicit_alpha(problem, ascent), 1e-3)
        np.testing.assert_allclose(w, v, rtol=0, atol=1e-11)


def random_multiclass(k, n_features, layout, n=40):
    rng = new_rng(0)
    X, y = rng.standard_normal((n, n_features)), np.arange(n) % k
    costs = random_costs(k, rng)
    structure = MulticlassStructure(costs)
    listed = list_multiclass(X, y, k, costs, 1.5)
    X = X if layout == "dense" else messy_csr(X, 0)
    return Problem(structure.fit(X, y, bias=1.5), X, y, listed)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.29, 0.31, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_dense_rows_with_few_entries_are_read_like_sparse_ones(kind, share):
    rng = new_rng(0)
    problem = random_problem(kind, n=60)
    X = rng.standard_normal((problem.n, 100)) * (
        rng.permuted(np.tile(np.arange(100) < 100 * share, (problem.n, 1)), axis=1)
    )
    y, weights = problem.y, problem.listed.uniform
    structure = type(problem.structure)().fit(X, y, bias=0.5)
    runs = []
    for rows in (X, csr_array(X), np.asfortranarray(X), X.astype(np.float32)):
        bound = SimpleNamespace(structure=structure, X=rows, y=y, weights=weights)
        ascent = make_ascent(bound, LAM)
        for _ in range(3):
            ascent.run(ascent.active_blocks)
        runs.append(ascent.weights.copy())
    dense, sparse, columns, single = runs
    np.testing.assert_array_equal(dense, columns)
    np.testing.assert_allclose(dense, sparse, atol=1e-12)
    np.testing.assert_allclose(dense, single, atol=1e-5)
    if share < 0.3:
        np.testing.assert_array_equal(dense, sparse)


# ---------------------------------------------------------------- who rests


def test_no_example_rests_for_more_than_31_sweeps():
    problem = random_problem("multiclass", n=40)
    ascent = problem.ascent(3.0)
    rng = new_rng(0)
    last_seen, longest = np.zeros(problem.n, dtype=int), 0
    for sweep in range(1, 200):
        blocks = ascent.draw_sweep(rng).copy()
        assert len(np.unique(blocks)) == len(blocks)
        if len(blocks):
            longest = max(longest, (sweep - last_seen[blocks]).max())
        last_seen[blocks] = sweep
        ascent.run(blocks)
        ascent.end_sweep(blocks)
    assert longest == 32
    assert (last_seen > 200 - 33).all()


def test_a_check_wakes_the_examples_whose_gaps_have_grown():
    problem = random_problem("binary", n=40)
    ascent = problem.ascent(LAM)
    rng = new_rng(0)
    for _ in range(30):
        blocks = ascent.draw_sweep(rng).copy()
        ascent.run(blocks)
        ascent.end_sweep(blocks)
    assert len(ascent.draw_sweep(rng)) < problem.n
    # With other weights, other examples have gaps.
    ascent.weights[:] = -ascent.weights
    ascent.check_gaps()
    alpha, gaps = explicit_alpha(problem, ascent), []
    for i in range(problem.n):
        values = problem.listed.values(i, ascent.weights)
        gaps.append(alpha[i] @ (values.max() - values))
    violated = np.flatnonzero(np.array(gaps) > 1.0)
    assert len(violated) and set(violated) <= set(ascent.draw_sweep(rng))


# ----------------------------------------------------------------- extremes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lam", [1e-10, 1e-6, 1e6, 1e12])
def test_huge_and_tiny_regularization_is_certified(kind, lam):
    problem = random_problem(kind)
    ascent = problem.ascent(lam)
    duals, listed = [], problem.listed
    for _ in range(20):
        ascent.run(np.arange(problem.n))
        row, weights = certify(ascent)
        primal = listed.primal(weights, lam)
        assert row["objective"] == pytest.approx(primal, rel=1e-9)
        duals.append(dual(problem, ascent, lam))
        scale = 1.0 + abs(primal)
        assert row["dual_objective"] == pytest.approx(duals[-1], abs=1e-9 * scale)
        assert row["dual_gap"] >= -1e-12 * scale
    assert (np.diff(duals) >= -1e-9 * np.abs(duals[1:])).all()
    if lam >= 1e6:
        assert row["dual_gap"] <= 1e-6


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_features_of_zero_leave_the_largest_cost_as_the_hinge(kind, layout):
    problem = random_problem(kind, layout, intercept=0.0)
    problem.X = problem.X * 0.0
    result = run_exact(problem.ascent(LAM), tol=1e-14, max_iter=2, rng=0)
    assert result.status == "converged" and not result.solution.any()
    largest = [loss.max() for loss in problem.listed.loss]
    assert result.objective == pytest.approx(np.mean(largest), rel=1e-15)
    # Only the rounding of the sum of the losses is left.
    assert 0.0 < result.gap <= 1e-14


# -------------------------------------------------------------- what is returned


# Where λ is small the last weights oscillate, where it is large the average lags behind.
@pytest.mark.parametrize(("lam", "max_iter"), [(1e-5, 20), (0.1, 50)])
def test_the_better_of_the_last_weights_and_their_average_is_returned(lam, max_iter):
    X, y = make_classification(
        300, 8, n_informative=6, n_classes=3, flip_y=0.1, random_state=new_seed(0)
    )
    problem = SimpleNamespace(
        structure=MulticlassStructure().fit(X, y), X=X, y=y, weights=np.full(300, 1 / 300)
    )
    ascent = make_ascent(problem, lam)
    result = run_exact(ascent, acceleration=False, tol=0.0, max_iter=max_iter, rng=0)
    candidates = ascent.weights, ascent.average_weights
    candidates = result.solution, *candidates
    found, *objectives = [0.5 * lam * w @ w + ascent.hinge(w) for w in candidates]
    assert result.objective == pytest.approx(found, rel=1e-12)
    # Or one that was seen before.
    assert found <= min(objectives) * (1 + 1e-12)
