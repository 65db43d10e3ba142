"""Corrective steps: Gram matrices, block programs, labelings that go."""

import numpy as np
import pytest
from _problems import KINDS, PRESENTED, explicit_alpha, random_problem
from _references import visits
from _seeds import new_rng, new_seed
from sklearn.datasets import make_multilabel_classification

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw, start_bcfw
from sklearn_structsvm.structures import (
    ChainStructure,
    PairwiseMultilabelStructure,
    TreeStructure,
)

LAM, N = 0.05, 8


def corrected(kind, layout, rescaling, n_passes):
    """(problem, a solver after this many passes)."""
    problem = random_problem(kind, layout)
    oracle = problem.make_oracle()
    if rescaling == "slack":
        if not oracle.has_candidates:
            pytest.skip("without candidates there is no exact search")
        oracle = SlackOracle(oracle)
    solver = BlockFrankWolfe(oracle, problem.listed.uniform, LAM, step="corrective")
    solver.run(visits(N, passes=n_passes))
    return problem, solver


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_gram_matrices_are_those_of_the_joint_features(kind, layout, rescaling):
    problem, solver = corrected(kind, layout, rescaling, 6)
    atoms = solver.get_state()["atoms"]
    assert max(map(len, atoms)) > (kind != "binary") + 1
    for i, block in enumerate(atoms):
        features = []
        for labeling, _, loss in block:
            labels = np.atleast_1d(labeling).tolist()
            is_list = isinstance(problem.listed.labelings[i][0], tuple)
            key = tuple(labels) if is_list else labels[0]
            place = problem.listed.labelings[i].index(key)
            scale = loss if rescaling == "slack" else 1.0
            features.append(scale * problem.listed.delta(i)[place])
        expected = np.array(features) @ np.array(features).T
        atol = 1e-12 * (1.0 + np.abs(expected).max())
        np.testing.assert_allclose(solver.gram(i), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_blocks_that_lag_behind_their_masses_have_the_same_certificate(
    kind, layout, rescaling
):
    """The gap and the means by the masses, then by the blocks computed from them."""
    _, solver = corrected(kind, layout, rescaling, 4)
    solver.run_cached(visits(N, passes=2))
    found = []
    for _ in range(2):
        hinge, gap = solver.check_gaps()
        found.append([hinge, gap, solver.check_means(), *solver.block_means])
        solver.catch_up_all()
    atol = 1e-12 * (1.0 + np.abs(found[0]).max())
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=atol)
    # The weights that the blocks give are those that the visits have left.
    before = solver.weights.copy()
    solver.rebuild_weights()
    scale = 1.0 + np.abs(before).max()
    np.testing.assert_allclose(solver.weights, before, rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("density", [0.1, 1.0])
@pytest.mark.parametrize("case", ["chain", "tree", "pairs", "relaxed pairs"])
def test_gram_matrices_of_larger_structures_follow_moves(case, density, is_long):
    """w of the dual point, whose norm the Gram matrices know: of dense and sparse rows,
    of more and of fewer positions than features."""
    rng = new_rng(0)
    n, n_features = 6, 4 if is_long else 60
    if "pairs" in case:
        X, y = make_multilabel_classification(
            n, n_features, n_classes=4, random_state=new_seed(0)
        )
        inference = "lp" if case.startswith("relaxed") else "enumerate"
        structure = PairwiseMultilabelStructure(inference=inference)
        X = X * (rng.random(X.shape) < density)
        structure.fit(X, y, bias=1.0)
    else:
        y = [rng.integers(9, size=T) for T in rng.integers(5, 10, size=n)]
        shapes = [(len(labels), n_features) for labels in y]
        X = [rng.standard_normal(s) * (rng.random(s) < density) for s in shapes]
        if case == "tree":
            X = [
                (x, np.array([-1, *(rng.integers(t) for t in range(1, len(x)))]))
                for x in X
            ]
        structure = ChainStructure() if case == "chain" else TreeStructure()
        X, y = structure.check_data(X, y)
        structure.fit(X, y)
    p = np.full(n, 1.0 / n)
    solver = BlockFrankWolfe(structure.make_oracle(X, y), p, 0.01, step="corrective")
    for _ in range(5):
        solver.run(rng.permutation(n))
    masses = [[mass for _, mass, _ in block] for block in solver.get_state()["atoms"]]
    assert max(map(len, masses)) > 2
    for i in range(n):
        # The weights that this example alone is worth.
        alone = np.zeros(n)
        alone[i] = 1.0
        state = solver.get_state()
        oracle = structure.make_oracle(X, y)
        other = BlockFrankWolfe(oracle, alone, 1.0, step="corrective")
        other.set_state(state)
        w = other.weights
        alpha = np.array(masses[i])
        expected = alpha @ solver.gram(i) @ alpha
        assert w @ w == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_correction_solves_the_program_of_its_block(kind):
    """Visited again and again, one block ends where its best value has all mass."""
    problem = random_problem(kind)
    solver = problem.solver(LAM, step="corrective")
    solver.run(visits(N, passes=2))
    i = 3
    for _ in range(200):
        solver.run(np.array([i]))
    values = problem.listed.values(i, solver.weights)
    alpha = explicit_alpha(problem, solver)[i]
    assert values.max() - values[alpha > 0].min() <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_no_correction_decreases_the_dual(kind):
    problem = random_problem(kind)
    solver, dual = problem.solver(LAM, step="corrective"), 0.0
    for k, i in enumerate(visits(N, passes=12)):
        if k % 3:
            solver.run_cached(np.array([i]))
        else:
            solver.run(np.array([i]))
        assert solver.dual_objective >= dual - 1e-14
        dual = solver.dual_objective


def test_labelings_without_mass_go():
    solver = random_problem("chain").solver(1e-3, step="corrective")
    for _ in range(10):
        solver.run(np.arange(N))
    assert max(len(block) for block in solver.get_state()["atoms"]) > 2
    # For a large λ the whole mass of a block is on one labeling, though others may have
    # nearly its loss.
    solver.set_lambda(1e6)
    for _ in range(60):
        solver.run(np.arange(N))
    assert max(len(block) for block in solver.get_state()["atoms"]) == 1
    assert solver.check_gaps()[1] == pytest.approx(0.0, abs=1e-12)


def test_cached_passes_ask_no_oracle_and_count_as_none():
    solver = random_problem("chain").solver(1e-3, step="corrective")
    solver.run(visits(N, passes=3))
    calls, steps = solver.n_oracle_calls, solver.n_steps
    before = solver.dual_objective
    solver.run_cached(np.arange(N))
    assert (solver.n_oracle_calls, solver.n_steps) == (calls, steps)
    assert solver.dual_objective >= before - 1e-15


def test_corrective_steps_need_fewer_calls_than_pairwise_ones():
    X, y = make_chains(n_samples=60, random_state=new_seed(0))
    calls = [
        BCFWClassifier(
            step=step,
            C=1.0,
            tol=1e-3,
            solver_options={"acceleration": False},
            random_state=0,
        )
        .set_params(max_iter=10**4)
        .fit(X, y)
        .n_oracle_calls_
        for step in ("corrective", "pairwise")
    ]
    assert calls[0] < 0.7 * calls[1]


def test_steps_are_settled_by_the_cost_of_the_oracle():
    chain, flat = (random_problem(kind) for kind in ("custom", "binary"))
    settled = {
        (name, cache, average): start_bcfw(
            problem.make_oracle(),
            problem.listed.uniform,
            LAM,
            cache=cache,
            average=average,
        )[1:]
        for name, problem in (("costly", chain), ("cheap", flat))
        for cache in ("auto", True, False)
        for average in (False, True)
    }
    assert settled["costly", "auto", False] == ("corrective", False)
    assert settled["costly", False, False] == ("corrective", False)
    assert settled["costly", True, False] == ("pairwise", True)
    assert settled["costly", "auto", True] == ("pairwise", True)
    assert settled["costly", False, True] == ("pairwise", False)
    assert {settled["cheap", "auto", average] for average in (False, True)} == {
        ("fw", False)
    }
    with pytest.raises(ValueError, match="step='corrective' keeps the labelings"):
        start_bcfw(
            flat.make_oracle(), flat.listed.uniform, LAM, step="corrective", cache=True
        )


@pytest.mark.parametrize("estimator", [BCFWClassifier, SlackRescaledSSVM])
def test_equal_fits_have_equal_bits(estimator):
    X, y = make_chains(n_samples=30, random_state=new_seed(0))
    models = [
        estimator(step="corrective", C=1.0, n_jobs=n_jobs, random_state=0).fit(X, y)
        for n_jobs in (None, 2)
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[0].n_iter_ == models[1].n_iter_


def test_an_average_of_corrective_steps_has_a_true_gap():
    problem = random_problem("chain")
    solver = problem.solver(LAM, step="corrective", average=True)
    run_bcfw(solver, average=True, acceleration=True, tol=0.0, max_iter=7, rng=0)
    v, loss = solver.average_point()
    assert loss - 0.5 * LAM * v @ v <= problem.listed.primal(v, LAM) + 1e-12
