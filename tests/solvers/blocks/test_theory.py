"""What the papers prove of block-coordinate Frank-Wolfe, run."""

import numpy as np
import pytest
from _problems import KINDS, list_structure, optimum, random_problem
from _references import Listed, visits
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks.bcfw import CACHE_FACTOR, CACHE_FLOOR

LAM, N = 0.05, 8


def hard_and_easy(n, K):
    """Appendix C: object 0 needs all of K labels, the others share one feature."""
    hard, easy = np.zeros((K + 1, K + 1)), np.zeros((K + 1, K + 1))
    hard[1:, :K] = -np.eye(K) / np.sqrt(2)
    easy[1:, K] = -1.0
    loss = np.r_[0.0, np.ones(K)]
    return list_structure(
        Listed([list(range(K + 1))] * n, [0] * n, [hard] + [easy] * (n - 1), [loss] * n)
    )


def dual_of(solver):
    return solver.loss - 0.5 * solver.lam * solver.weights @ solver.weights


def steps_until(n, K, t, sampling, seed):
    """Steps until the suboptimality is what t visits of the hard object leave.

    Also how often each object was visited, and the suboptimality after each visit of
    the hard one.
    """
    problem, rng = hard_and_easy(n, K), new_rng(seed)
    solver = problem.solver(1.0 / n)
    solver.check_gaps()
    counts, record, decode = np.zeros(n, int), [], problem.listed.values
    problem.structure.loss_augmented_decode = lambda x, y, w, lam=1.0: (
        counts.__setitem__(x, counts[x] + 1) or int(decode(x, w, lam).argmax())
    )
    best = (1.0 - 0.25 / K) / n + 0.5 / n
    target = (1.0 / t - 1.0 / K) / (4 * n)
    while best - dual_of(solver) > target + 1e-14:
        if sampling == "gap":
            solver.run_by_gap(rng.random(1))
        else:
            solver.run(rng.integers(n, size=1))
        if counts[1:].any():
            record.append((counts[0], best - dual_of(solver)))
    return solver.n_steps, counts, record


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "K", "t"), [(60, 50, 30), (30, 80, 60), (120, 25, 20)])
def test_gap_sampling_needs_n_plus_t_steps_where_uniform_needs_n_times_t(n, K, t, seed):
    steps, counts, record = steps_until(n, K, t, "gap", seed)
    # The first easy object that is seen ends the gaps of all, so that each of them is
    # seen once more at most, which tells so; and the hard one t times.
    assert list(np.sort(counts[1:])[-2:]) in ([1, 1], [1, 2])
    assert counts[0] == t
    assert steps <= n + t
    for visited, left in record:
        if visited:
            # After k visits no dual point is better than 1/k on k labels.
            expected = (1.0 / visited - 1.0 / K) / (4 * n)
            assert left == pytest.approx(expected, abs=1e-14)
    # Uniform: t successes of probability 1/n. Half the mean is 4 deviations below it.
    uniform_steps, uniform_counts, _ = steps_until(n, K, t, "uniform", seed)
    assert uniform_counts[0] == t
    assert uniform_steps >= 0.5 * n * t
    assert uniform_steps / steps >= 0.25 * min(n, t)


def test_the_hard_and_the_easy_objects_have_the_same_curvature():
    """So that no sampling by Lipschitz constants could tell them apart (19, 20)."""
    listed = hard_and_easy(7, 5).listed
    np.testing.assert_allclose(listed.curvatures(1 / 7), 1 / 7, rtol=1e-14)


@pytest.mark.parametrize("sampling", ["uniform", "exact gaps"])
@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "chain", "appendix C"])
def test_the_dual_converges_as_theorem_1_promises(kind, sampling):
    """E f(α_k) - f* <= 2n / (k + 2n) (C⊗ + h_0), over 30 seeds.

    For gap sampling with exact gaps, theorem 2 has C⊗ χ⊗ in place of C⊗, where χ⊗ is at
    most the non-uniformity of the curvatures: 1 in appendix C, whose blocks are alike.
    """
    if kind == "appendix C":
        problem, lam = hard_and_easy(N, 12), 1 / N
        best = (1.0 - 0.25 / 12 + 0.5) / N
    else:
        problem, lam = random_problem(kind), LAM
        best = optimum(problem, lam)
    curvature = problem.listed.curvatures(lam)
    factor = 1.0
    if sampling == "exact gaps":
        p = curvature / curvature.sum()
        factor = np.sqrt(1 + N**2 * p.var())
    # Lacoste-Julien et al. (2013), appendix A.
    assert curvature.sum() <= 4 * problem.listed.radius() ** 2 / (lam * N) + 1e-14
    n_steps, left = 10 * N, []
    for seed in range(30):
        rng, solver, mine = new_rng(seed), problem.solver(lam), [best]
        for _ in range(n_steps):
            if sampling == "uniform":
                solver.run(rng.integers(N, size=1))
            else:
                solver.check_gaps()
                solver.run_by_gap(rng.random(1))
            mine.append(best - dual_of(solver))
        left.append(mine)
    k = np.arange(n_steps + 1)
    allowed = 2 * N / (k + 2 * N) * (factor * curvature.sum() + best)
    assert (np.mean(left, axis=0) <= allowed).all()


def least_progress(gain, curvature):
    """max over γ in [0, 1] of γ gain - γ² curvature / 2."""
    gamma = min(1.0, gain / curvature)
    return gamma * gain - 0.5 * gamma**2 * curvature


@pytest.mark.parametrize("cache_size", [0, 5])
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_step_makes_the_progress_of_the_descent_lemma(kind, step, cache_size):
    """Lemma 3; a cache hit has a gain of at least max(F g_i, ν/n g) (section 3.3)."""
    problem = random_problem(kind)
    listed, p = problem.listed, problem.listed.uniform
    curvature = listed.curvatures(LAM)
    solver = problem.solver(LAM, step=step, cache_size=cache_size)
    solver.check_gaps()
    for k, i in enumerate(visits(N, passes=15)):
        if k % (3 * N) == 0:
            solver.check_gaps()
        solver.check_means()
        true_gap = p[i] * listed.values(i, solver.weights).max() - solver.block_means[i]
        gain, before, hits = true_gap, dual_of(solver), solver.n_cache_hits
        threshold = max(CACHE_FACTOR * solver.block_gaps[i], CACHE_FLOOR / N * solver.gap)
        solver.run(np.array([i]))
        if solver.n_cache_hits > hits:
            gain = min(gain, threshold)
        progress = dual_of(solver) - before
        assert progress >= least_progress(gain, curvature[i]) - 1e-15
    assert (solver.n_cache_hits > 0) == (cache_size > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_is_enough_for_a_problem_of_one_block_and_two_labels(kind):
    """The exact line search then ends at the optimum."""
    listed = random_problem(kind).listed
    worst = [int(np.argmax(loss)) for loss in listed.loss]
    pair = Listed(
        [[0, 1]],
        [0],
        [listed.phi[0][[listed.truth[0], worst[0]]]],
        [listed.loss[0][[listed.truth[0], worst[0]]]],
    )
    for lam in (1e-3, 0.3, 100.0):
        solver = list_structure(pair).solver(lam)
        solver.run(np.array([0]))
        assert solver.check_gaps()[1] == pytest.approx(0.0, abs=1e-14)
