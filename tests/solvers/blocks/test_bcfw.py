"""Block-coordinate Frank-Wolfe in marginal space against the textbook in w-space."""

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


@pytest.mark.parametrize("variant", ["plain", "weighted", "in a box"])
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_iterates_are_those_of_the_textbook(kind, layout, step, variant):
    """Algorithm 9, where weights are in a box."""
    problem = random_problem(kind, layout)
    p, box = problem.listed.uniform, {}
    blocks = visits(N, passes=15)
    if variant == "weighted":
        p = uneven_weights()
        blocks = blocks[blocks != 2]
    elif variant == "in a box":
        box["lower"], box["upper"] = odd_box(problem.listed.d)
    mine = problem.solver(LAM, p, step=step, **box)
    reference = Textbook(problem.listed, LAM, p, step=step, **box)
    for some in np.array_split(blocks, 5):
        reference.run(some)
        mine.run(reference.visited)
        assert_same_weights(mine.weights, reference.w)
        v, loss = mine.dual_point()
        assert_same_weights(v, reference.v)
        assert loss == pytest.approx(reference.loss_blocks.sum(), rel=1e-12)
    assert np.abs(mine.weights).max() > 0.1


@pytest.mark.parametrize("cache", [(0.25, 0.01), (0.9, 0.0), (0.05, 0.0), (0.0, 0.5)])
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_is_hit_where_algorithm_5_says(kind, step, cache):
    problem, F, nu = random_problem(kind), *cache
    mine, _, _ = start_bcfw(
        problem.make_oracle(),
        problem.listed.uniform,
        LAM,
        step=step,
        cache=True,
        cache_size=10**6,
        cache_factor=F,
        cache_floor=nu,
    )
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


@pytest.mark.parametrize("step", ["pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_the_safeguard_steps_are_algorithms_3_and_4_as_printed(kind, step):
    problem = random_problem(kind)
    for safeguard in (False, True):
        mine, _, _ = start_bcfw(
            problem.make_oracle(),
            problem.listed.uniform,
            LAM,
            step=step,
            cache=False,
            safeguard=safeguard,
        )
        reference = Textbook(problem.listed, LAM, step=step, safeguard=safeguard)
        reference.run(visits(N, passes=15))
        mine.run(reference.visited)
        assert_same_weights(mine.weights, reference.w)


def test_a_large_floor_has_no_hits_and_none_has_them_wherever_there_is_a_gain():
    problem, order = random_problem("chain"), visits(N, passes=20)

    def after_passes(**options):
        solver = problem.solver(0.005, **options)
        solver.check_gaps()
        solver.run(order)
        return solver

    plain = after_passes()
    never = after_passes(cache_size=10**6, cache_floor=1e6)
    assert never.n_cache_hits == 0
    np.testing.assert_array_equal(never.weights, plain.weights)
    free = after_passes(cache_size=10**6, cache_factor=0.0, cache_floor=0.0)
    assert free.n_oracle_calls + free.n_cache_hits == plain.n_oracle_calls
    assert free.n_oracle_calls < 0.5 * plain.n_oracle_calls


@pytest.mark.parametrize("name", ["cache_factor", "cache_floor"])
@pytest.mark.parametrize("value", [-0.1, np.inf, np.nan])
def test_a_criterion_that_cannot_be_is_refused_by_name(name, value):
    problem = random_problem("binary")
    data = problem.make_oracle(), problem.listed.uniform, LAM
    with pytest.raises(ValueError, match=f"{name} must be finite and at least 0; got"):
        start_bcfw(*data, cache=True, **{name: value})


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


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_rounding_does_not_pile_up_in_the_weights(kind, step, cached):
    solver = random_problem(kind).solver(LAM, step=step, cache_size=5 * cached)
    solver.check_gaps()
    solver.run(visits(N, passes=200))
    before, loss = solver.weights.copy(), solver.loss
    solver.rebuild_weights()
    assert_same_weights(solver.weights, before)
    assert solver.loss == pytest.approx(loss, rel=1e-13)


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


def test_gap_sampling_draws_blocks_by_their_share_of_the_estimated_gap():
    problem = random_problem("multiclass")
    ends = np.cumsum(problem_gaps(problem))
    for uniform in np.linspace(0, 1, 37, endpoint=False):
        expected = int(np.searchsorted(ends, uniform * ends[-1], side="right"))
        one, other = problem.solver(LAM), problem.solver(LAM)
        for solver in (one, other):
            solver.check_gaps()
        assert one.run_by_gap(np.array([uniform])) == 1
        other.run(np.array([expected]))
        np.testing.assert_array_equal(one.weights, other.weights)


def problem_gaps(problem):
    solver = problem.solver(LAM)
    solver.check_gaps()
    return solver.block_gaps


def test_gap_sampling_ends_where_no_gap_is_left():
    solver = random_problem("binary").solver(3.0)
    solver.run(np.tile(np.arange(N), 50))
    assert solver.check_gaps()[1] == pytest.approx(0.0, abs=1e-15)
    assert solver.run_by_gap(new_rng(0).random(1000)) < 1000


@pytest.mark.parametrize("algorithm", ["block", "batch"])
@pytest.mark.parametrize("sampling", ["gap", "uniform", "permuted"])
def test_a_block_of_weight_zero_is_never_moved(sampling, algorithm):
    problem, p = random_problem("multiclass"), uneven_weights()
    # At so large a λ scores are at most 0.25, and losses at least 0.5: no truth is ahead.
    large = 4.0 * problem.listed.radius() ** 2
    options = {"sampling": sampling, "algorithm": algorithm, "rng": 0}
    for lam in (LAM, large):
        solver = problem.solver(lam, p)
        run_bcfw(solver, tol=1e-4, max_iter=50, **options)
        moved = solver.get_state()["blocks"].any(axis=1)
        assert not moved[2] and moved.any()
    np.testing.assert_array_equal(moved, p > 0)


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


@pytest.mark.parametrize("sampling", ["gap", "uniform", "permuted"])
def test_one_seed_gives_one_run(sampling):
    problem = random_problem("chain")
    runs = []
    for seed in (5, 5, 6):
        solver = problem.solver(LAM)
        run_bcfw(solver, sampling=sampling, max_iter=15, tol=0.0, rng=seed)
        runs.append(solver.weights.copy())
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_a_run_ends_at_the_tolerance_and_no_earlier():
    result = run_bcfw(random_problem("chain").solver(LAM), tol=1e-2, rng=0)
    assert result.status == "converged"
    assert 0 < result.gap <= 1e-2
    assert (result.history["dual_gap"][:-1] > 1e-2).all()


def test_a_run_ends_after_its_passes():
    solver = random_problem("chain").solver(LAM)
    result = run_bcfw(solver, acceleration=False, tol=0.0, max_iter=25, rng=0)
    assert (result.status, result.n_iter) == ("max_iter", 25)
    checks = result.history["n_iter"]
    assert {0, 10, 20, 25} <= set(checks)
    # Each check and each pass calls the oracle once per block.
    assert result.n_oracle_calls == (len(checks) + 25) * N
    assert result.gap == result.history["dual_gap"][-1]


def test_a_run_ends_after_its_seconds():
    solver = random_problem("chain").solver(LAM)
    options = {"max_iter": 10**9, "max_time": 0.05, "acceleration": False}
    result = run_bcfw(solver, tol=0.0, rng=0, **options)
    assert result.status == "max_time"
    # Where the last check before the end came late, the pass after it ended the run.
    assert 1 <= len(np.flatnonzero(result.history["seconds"] >= 0.05)) <= 2


def test_a_callback_ends_a_run():
    result = run_bcfw(
        random_problem("chain").solver(LAM),
        tol=0.0,
        rng=0,
        on_pass=lambda n_iter, row, done: n_iter == 7,
    )
    assert (result.status, result.n_iter) == ("stopped", 7)
    assert result.history["n_iter"][-1] == 7
