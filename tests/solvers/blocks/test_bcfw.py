"""Block-coordinate Frank-Wolfe in marginal space against the textbook in w-space."""

from itertools import product

import numpy as np
import pytest
from _problems import (
    KINDS,
    PRESENTED,
    assert_same_weights,
    odd_box,
    random_problem,
    uneven_weights,
)
from _references import CHAIN_PARTS, Textbook, list_chains, random_chains, visits
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw, start_bcfw

LAM = 0.05
N = 8


@pytest.mark.parametrize("variant", ["plain", "weighted", "in a box", "as printed"])
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_iterates_are_those_of_the_textbook(kind, layout, step, variant):
    """Algorithm 9, where weights are in a box; without the safeguard, 3 and 4."""
    problem = random_problem(kind, layout)
    p, options = problem.listed.uniform, {}
    blocks = visits(N, passes=15)
    if variant == "weighted":
        p = uneven_weights()
        blocks = blocks[blocks != 2]
    elif variant == "in a box":
        options["lower"], options["upper"] = odd_box(problem.listed.d)
    elif variant == "as printed":
        options["safeguard"] = False
    mine = problem.solver(LAM, p, step=step, **options)
    reference = Textbook(problem.listed, LAM, p, step=step, **options)
    for some in np.array_split(blocks, 5):
        reference.run(some)
        mine.run(reference.visited)
        assert_same_weights(mine.weights, reference.w)
        v, loss = mine.dual_point()
        assert_same_weights(v, reference.v)
        assert loss == pytest.approx(reference.loss_blocks.sum(), rel=1e-12)
    assert np.abs(mine.weights).max() > 0.1


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(
    "options",
    [
        {"normalize_loss": False},
        {"emission": False},
        {"transition": False},
        {"bias": False, "first_bias": False, "last_bias": False},
        # Chains that are longer than their rows are wide, and such that are not.
        {"n_features": 2},
        {"n_features": 1},
    ],
    ids=str,
)
def test_iterates_of_other_chains_are_those_of_the_textbook(options, layout):
    problem = random_problem("chain", layout, **options)
    X, y, costs = random_chains(N, n_features=options.get("n_features", 3))
    parts = [part for part in CHAIN_PARTS if options.get(part, True)]
    listed = list_chains(X, y, 3, costs, options.get("normalize_loss", True), parts)
    mine, reference = problem.solver(LAM), Textbook(listed, LAM)
    reference.run(visits(N, passes=15))
    mine.run(reference.visited)
    assert_same_weights(mine.weights, reference.w)


@pytest.mark.parametrize("cache", [(0.25, 0.01), (0.9, 0.0), (0.05, 0.0), (0.0, 0.5)])
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_is_hit_where_algorithm_5_says(kind, step, cache):
    problem, F, nu = random_problem(kind), *cache
    mine, _, _ = start_bcfw(
        problem.make_oracle(), problem.listed.uniform, LAM, step=step, cache=True,
        cache_size=10**6, cache_factor=F, cache_floor=nu,
    )  # fmt: skip
    reference = Textbook(problem.listed, LAM, step=step, cache=cache)
    for n_checks, blocks in enumerate(np.split(visits(N, passes=15), 5), start=1):
        mine.check_gaps()
        reference.check_gaps()
        reference.run(blocks)
        mine.run(reference.visited)
        assert_same_weights(mine.weights, reference.w)
        assert mine.n_cache_hits == reference.n_hits
        assert mine.n_oracle_calls == reference.n_calls + N * n_checks
    assert reference.n_hits > 0 and reference.n_calls > 0
    for name, value in product(("cache_factor", "cache_floor"), (-0.1, np.inf, np.nan)):
        with pytest.raises(
            ValueError, match=f"{name} must be finite and at least 0; got"
        ):
            start_bcfw(mine.oracle, problem.listed.uniform, LAM, **{name: value})


@pytest.mark.parametrize("has_box", [False, True])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_batch_steps_are_those_of_the_textbook(kind, layout, has_box):
    """Algorithm 8, where weights are in a box."""
    problem, p = random_problem(kind, layout), uneven_weights()
    listed = problem.listed
    free = np.full(listed.d, np.inf)
    lower, upper = odd_box(listed.d) if has_box else (-free, free)
    box = {"lower": lower, "upper": upper} if has_box else {}
    mine = problem.solver(LAM, p, **box)
    v, loss = np.zeros(listed.d), 0.0
    for _ in range(12):
        w = np.clip(v, lower, upper)
        corners = [listed.values(i, w).argmax() for i in range(N)]
        alpha = [np.eye(len(listed.loss[i]))[c] for i, c in enumerate(corners)]
        v_s, loss_s = listed.dual_point(alpha, LAM, p)
        gap = LAM * (v - v_s) @ w - loss + loss_s
        gamma = np.clip(gap / (LAM * (v - v_s) @ (v - v_s)), 0.0, 1.0) if gap > 0 else 0.0
        v, loss = v + gamma * (v_s - v), loss + gamma * (loss_s - loss)
        assert mine.run_batch() == pytest.approx(gap, rel=1e-12, abs=1e-14)
        assert_same_weights(mine.dual_point()[0], v)
        assert mine.loss == pytest.approx(loss, rel=1e-12)


def test_a_permuted_pass_visits_each_block_once():
    problem, asked = random_problem("custom"), []

    def decode(x, y_true, w, lam=1.0):
        asked.append(x)
        return int(problem.listed.values(x, w, lam).argmax())

    problem.structure.loss_augmented_decode = decode
    solver = problem.solver(LAM)
    run_bcfw(solver, sampling="permuted", max_iter=3, tol=0.0, gap_check_interval=100)
    passes = np.reshape(asked, (-1, N))
    # The check at the start, three passes, the check at the end.
    assert len(passes) == 5
    np.testing.assert_array_equal(np.sort(passes, axis=1), [range(N)] * 5)
    assert not (np.diff(passes[1:4], axis=1) == 1).all()


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "chain"])
def test_the_number_of_threads_changes_no_bit(kind, n_threads):
    problem = random_problem(kind, n=13)
    one, many = problem.solver(LAM), problem.solver(LAM)
    for solver in (one, many):
        solver.run(visits(13, passes=5))
    assert one.check_gaps(1) == many.check_gaps(n_threads)
    np.testing.assert_array_equal(one.block_gaps, many.block_gaps)
    w = new_rng(0).standard_normal(problem.listed.d)
    assert one.hinge(w) == many.hinge(w, n_threads=n_threads)
    oracle = problem.make_oracle()
    np.testing.assert_array_equal(oracle.decode(w, 1.0), oracle.decode(w, 1.0, n_threads))


def test_gap_sampling_draws_blocks_by_their_share_of_the_estimated_gap():
    problem = random_problem("multiclass")
    for uniform in np.linspace(0, 1, 37, endpoint=False):
        one, other = problem.solver(LAM), problem.solver(LAM)
        for solver in (one, other):
            solver.check_gaps()
        ends = np.cumsum(one.block_gaps)
        expected = int(np.searchsorted(ends, uniform * ends[-1], side="right"))
        assert one.run_by_gap(np.array([uniform])) == 1
        other.run(np.array([expected]))
        np.testing.assert_array_equal(one.weights, other.weights)
    # It ends where no gap is left.
    solver = random_problem("binary").solver(3.0)
    solver.run(np.tile(np.arange(N), 50))
    assert solver.check_gaps()[1] == pytest.approx(0.0, abs=1e-15)
    assert solver.run_by_gap(new_rng(0).random(1000)) < 1000
