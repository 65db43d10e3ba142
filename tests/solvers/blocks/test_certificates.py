"""Duality gaps against independent ones, computed from all labelings."""

import numpy as np
import pytest
from _cases import binary_cases, chain_cases, multiclass_cases, multilabel_cases
from _problems import (
    KINDS,
    PRESENTED,
    Problem,
    explicit_alpha,
    explicit_distributions,
    optimum,
    random_problem,
    uneven_weights,
)
from _references import Textbook, visits
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks.bcfw import certify

LAM, N = 0.05, 8
VARIANTS = [(step, size) for step in ("fw", "pairwise", "away") for size in (0, 3)]
VARIANTS += [("corrective", 0)]


def dual_point_of_blocks(problem, state, lam, p):
    """(Aα, b'α) from the marginals that the blocks hold, by the definition of φ."""
    v, at = np.zeros(problem.listed.d), 0
    for i in range(problem.n):
        x = problem.X[i : i + 1]
        if problem.structure.flat:
            x = x.toarray() if sparse.issparse(x) else x
            x = np.append(x, problem.structure.bias_)
            feature = np.outer(x, state["blocks"][i]).ravel()
        elif isinstance(state["blocks"], tuple):
            nodes, edges = state["blocks"]
            edges = sparse.csr_array(edges, shape=(problem.n, nodes.shape[1] ** 2))
            (x,) = x
            x = x.toarray() if sparse.issparse(x) else x
            mu = nodes[at : at + len(x)]
            at += len(x)
            parts = [x.T @ mu, mu.sum(axis=0), mu[0], mu[-1], edges[[i]].toarray()]
            feature = np.concatenate([part.ravel() for part in parts])
        else:
            feature = np.zeros(problem.listed.d)
            indices, values = state["blocks"][i]
            feature[indices] = values
        v -= p[i] / lam * feature
    return v, p @ state["loss"]


@given(
    multiclass_cases() | binary_cases() | multilabel_cases() | chain_cases(),
    st.sampled_from([1e-9, 1e-2, 1.0, 1e9]),
    st.sampled_from(["pairwise", "away", "corrective"]),
    st.sampled_from([0, 2]),
)
def test_the_gap_is_true_for_ties_zeros_duplicates_and_any_lambda(
    case, lam, step, cache_size
):
    problem = Problem(case.structure, case.X, case.y, case.listed)
    solver = problem.solver(lam, step=step, cache_size=cache_size)
    for k in range(4):
        gap = solver.check_gaps()[1]
        alpha, w = explicit_alpha(problem, solver), solver.weights
        v, loss = case.listed.dual_point(alpha, lam)
        # Rounding is relative to the largest terms of the two objectives, and to the
        # longest w there may have been on the way.
        radius = case.listed.radius()
        size = 1.0 + lam * w @ w + radius**2 / lam
        size += max(np.abs(case.listed.values(i, w)).max() for i in range(problem.n))
        atol = 1e-14 * max(1.0, radius / lam)
        np.testing.assert_allclose(w, v, rtol=0, atol=atol)
        difference = case.listed.primal(w, lam) - case.listed.dual(alpha, lam)
        assert abs(gap - difference) <= 1e-14 * size
        assert solver.block_gaps.min() >= -1e-14 * size
        solver.run(new_rng(k).integers(problem.n, size=3 * problem.n))


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "chain"])
def test_training_needs_no_write_access_to_the_data(kind):
    """joblib hands out read-only memory maps."""
    problem, reference = random_problem(kind), random_problem(kind)
    for items in (problem.X, problem.y):
        for item in [items] if isinstance(items, np.ndarray) else items:
            item.flags.writeable = False
    solvers = [p.solver(LAM, step="pairwise") for p in (problem, reference)]
    for solver in solvers:
        solver.run(visits(N, passes=5))
    np.testing.assert_array_equal(solvers[0].weights, solvers[1].weights)


@pytest.mark.parametrize("cache_size", [0, 3])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_the_gap_of_plain_steps_is_primal_minus_dual(kind, layout, cache_size):
    problem, p = random_problem(kind, layout), uneven_weights(empty=())
    solver = problem.solver(LAM, p, cache_size=cache_size)
    reference = Textbook(problem.listed, LAM, p)
    for blocks in np.split(visits(N, passes=24), 6):
        hinge, gap = solver.check_gaps()
        primal = problem.listed.primal(solver.weights, LAM, p)
        v, loss = dual_point_of_blocks(problem, solver.get_state(), LAM, p)
        dual = loss - 0.5 * LAM * v @ v
        assert hinge == pytest.approx(problem.listed.hinge(solver.weights, p), rel=1e-12)
        np.testing.assert_allclose(solver.weights, v, rtol=0, atol=1e-12)
        assert gap == pytest.approx(primal - dual, rel=1e-11)
        assert gap == solver.gap == solver.block_gaps.sum()
        if cache_size == 0:
            # The same from dual variables that sum to one and are not negative.
            expected = problem.listed.dual(reference.alpha, LAM, p)
            assert dual == pytest.approx(expected, rel=1e-12, abs=1e-15)
            reference.run(blocks)
            blocks = reference.visited
        solver.run(blocks)
    assert (solver.n_cache_hits > 0) == (cache_size > 0)


@pytest.mark.parametrize(("step", "cache_size"), VARIANTS[2:])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_with_active_sets_is_primal_minus_dual(kind, step, cache_size):
    problem, p = random_problem(kind), uneven_weights(empty=())
    solver = problem.solver(LAM, p, step=step, cache_size=cache_size)
    for blocks in np.split(visits(N, passes=24), 6):
        gap = solver.check_gaps()[1]
        alpha = explicit_distributions(problem, solver)
        v, loss = problem.listed.dual_point(alpha, LAM, p)
        np.testing.assert_allclose(solver.weights, v, rtol=0, atol=1e-12)
        assert solver.loss == pytest.approx(loss, rel=1e-12)
        primal = problem.listed.primal(solver.weights, LAM, p)
        dual = problem.listed.dual(alpha, LAM, p)
        assert gap == pytest.approx(primal - dual, rel=1e-10)
        solver.run(blocks)


@pytest.mark.parametrize("kind", KINDS)
def test_each_block_gap_is_that_of_equation_7(kind):
    problem, p = random_problem(kind), uneven_weights(empty=())
    solver = problem.solver(LAM, p, step="pairwise")
    solver.run(visits(N, passes=3))
    solver.check_gaps()
    w, alpha = solver.weights, explicit_alpha(problem, solver)
    values = [problem.listed.values(i, w) for i in range(N)]
    means = np.array([p[i] * alpha[i] @ values[i] for i in range(N)])
    maxima = np.array([p[i] * values[i].max() for i in range(N)])
    np.testing.assert_allclose(solver.block_gaps, maxima - means, rtol=0, atol=1e-14)
    np.testing.assert_allclose(solver.block_means, means, rtol=0, atol=1e-14)
    assert solver.check_means() == pytest.approx(means.sum(), rel=1e-12)


@pytest.mark.parametrize("lam", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_bounds_the_distance_to_the_optimum(kind, lam):
    problem = random_problem(kind)
    best = optimum(problem, lam)
    solver = problem.solver(lam)
    for blocks in np.split(visits(N, passes=20), 10):
        gap = solver.check_gaps()[1]
        distance = problem.listed.primal(solver.weights, lam) - best
        assert -2e-10 <= distance <= gap + 1e-14
        solver.run(blocks)


@pytest.mark.parametrize(("step", "cache_size"), VARIANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_step_decreases_the_dual_and_no_gap_is_negative(kind, step, cache_size):
    solver = random_problem(kind).solver(LAM, step=step, cache_size=cache_size)
    solver.check_gaps()
    last = 0.0
    for k, i in enumerate(visits(N, passes=40)):
        solver.run(np.array([i]))
        w = solver.weights
        dual = solver.loss - 0.5 * LAM * w @ w
        # One unit in the last place of each of two sums of this size.
        assert dual >= last - 1e-15
        last = dual
        if k % N == 0:
            solver.check_gaps()
            assert solver.block_gaps.min() >= -1e-15


@pytest.mark.parametrize("kind", KINDS)
def test_batch_steps_increase_the_dual(kind):
    problem, last = random_problem(kind), 0.0
    solver = problem.solver(LAM)
    for _ in range(100):
        expected = solver.check_gaps()[1]
        assert solver.run_batch() == pytest.approx(expected, rel=1e-11)
        dual = solver.loss - 0.5 * LAM * solver.weights @ solver.weights
        # Near the optimum steps gain less than rounding.
        assert dual > last or (expected <= 1e-6 and dual >= last - 1e-14)
        last = dual


def test_certify_reports_the_objectives_and_the_gap():
    problem = random_problem("chain")
    solver = problem.solver(LAM)
    solver.run(visits(N, passes=3))
    row, weights, _ = certify(solver)
    primal = problem.listed.primal(solver.weights, LAM)
    assert row["objective"] == pytest.approx(primal, rel=1e-13)
    bound = row["objective"] - row["dual_gap"]
    assert row["dual_objective"] == pytest.approx(bound, rel=1e-14)
    assert row["n_oracle_calls"] == 4 * N
    np.testing.assert_array_equal(weights, solver.weights)
    assert weights.base is not solver.weights.base


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED[:-1])
def test_the_classifier_reports_its_objective_and_a_true_gap(kind, layout, weighted):
    problem = random_problem(kind, layout)
    s = new_rng(0).uniform(0.5, 2.0, size=N) if weighted else np.ones(N)
    model = BCFWClassifier(
        clone(problem.structure),
        C=2.0,
        solver_options={"intercept_scaling": 1.5},
        tol=1e-2,
        random_state=0,
    ).fit(problem.X, problem.y, sample_weight=s if weighted else None)
    lam, p = 1 / (2.0 * s.sum()), s / s.sum()
    w = model.structure_.join_weights(model.coef_, getattr(model, "intercept_", None))
    primal = problem.listed.primal(w, lam, p)
    assert model.objective_ == pytest.approx(primal, rel=1e-12)
    assert model.dual_objective_ == model.objective_ - model.dual_gap_
    assert model.dual_gap_ <= 1e-2
    assert -1e-10 <= primal - optimum(problem, lam, p) <= model.dual_gap_ + 1e-12
    assert (model.history_["dual_objective"] <= model.objective_ + 1e-15).all()


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "chain"])
def test_a_sample_weight_of_two_is_a_row_given_twice(kind):
    problem = random_problem(kind)
    s = np.array([1, 2, 1, 0, 3, 1, 1, 0])
    rows = np.repeat(np.arange(N), s)
    model = BCFWClassifier(clone(problem.structure), tol=1e-8, step="pairwise")
    model.set_params(random_state=0, max_iter=10**4)
    weighted = clone(model).fit(problem.X, problem.y, sample_weight=s)
    X, y = problem.X, problem.y
    if kind == "chain":
        repeated = model.fit([X[i] for i in rows], [y[i] for i in rows])
    else:
        repeated = model.fit(X[rows], y[rows])
    assert max(weighted.dual_gap_, repeated.dual_gap_) <= 1e-8
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-8)
    # λ/2 ||w - w*||² is at most the gap.
    lam = 1.0 / s.sum()
    assert np.linalg.norm(weighted.coef_ - repeated.coef_) <= 2 * np.sqrt(2 * 1e-8 / lam)
