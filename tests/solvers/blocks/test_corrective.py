"""Corrective steps: Gram matrices, block programs, labelings that go."""

import numpy as np
import pytest
from _problems import KINDS, explicit_alpha, random_problem
from _references import visits
from _seeds import new_rng, new_seed
from sklearn.datasets import make_multilabel_classification

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.structures import (
    ChainStructure,
    PairwiseMultilabelStructure,
    TreeStructure,
)

LAM, N = 0.05, 8


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
