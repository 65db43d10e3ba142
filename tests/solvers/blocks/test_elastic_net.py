"""Dual ascent with an L1 penalty: its certificate, its optimum and its zeros."""

import numpy as np
import pytest
from _listed_crf import KINDS, Listed
from _seeds import new_rng
from scipy.special import logsumexp

from sklearn_structsvm.solvers.blocks.crf import run_crf

RATIOS = (0.2, 0.9, 1.0)


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def solved(problem, **options):
    options = {"tol": 1e-9, "max_iter": 2000, "rng": 0} | options
    return run_crf(problem.ascent(), **options)


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_proximal_gradient_step_moves_the_weights_by_no_more_than_the_gap(
    kind, l1_ratio
):
    problem = Listed(kind, 3, l1_ratio=l1_ratio)
    result = solved(problem, tol=1e-7)
    w, L = result.solution, problem.smoothness()
    threshold = l1_ratio * problem.lam / L
    moved = soft(w - problem.gradient(w) / L, threshold)
    # The step lowers P by L/2 times the square of its length, at least.
    assert 0.5 * L * np.square(moved - w).sum() <= result.gap + 1e-12


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_objective_is_the_best_of_mixtures_with_the_truth(kind, l1_ratio):
    problem = Listed(kind, 4, l1_ratio=l1_ratio)
    l1, ridge = l1_ratio * problem.lam, (1.0 - l1_ratio) * problem.lam
    w = new_rng(KINDS.index(kind)).normal(size=problem.structure.n_weights_)
    ascent = problem.ascent()
    ascent.go_to(w)
    alphas = [np.exp(phi @ w - logsumexp(phi @ w)) for phi in problem.phi]
    g = -sum(
        p * alpha @ phi
        for p, alpha, phi in zip(problem.p, alphas, problem.phi, strict=True)
    )
    assert ascent.dual_image() == pytest.approx(g / problem.lam, rel=1e-9, abs=1e-12)

    def dual(share):
        total = 0.0
        for p, alpha, phi in zip(problem.p, alphas, problem.phi, strict=True):
            mixed = share * alpha
            mixed[np.flatnonzero(~phi.any(axis=1))[0]] += 1.0 - share
            total -= p * np.sum(mixed * np.log(np.maximum(mixed, 1e-300)))
        beyond = soft(share * g, l1)
        if l1_ratio == 1.0:
            assert np.abs(beyond).max() <= 1e-12
            return total
        return total - 0.5 * beyond @ beyond / ridge

    feasible = min(1.0, l1 / np.abs(g).max())
    values = [dual(feasible)]
    if l1_ratio < 1.0:
        away = 1.0 - feasible
        values += [dual(1.0 - away * 0.25**j) for j in range(1, 7)] + [dual(1.0)]
    assert ascent.dual_objective == pytest.approx(max(values), rel=1e-9, abs=1e-12)
    assert ascent.dual_objective <= problem.sparse_optimum() + 1e-9


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_weight_is_left_where_the_penalty_outweighs_every_gradient(kind, l1_ratio):
    problem = Listed(kind, 5, l1_ratio=l1_ratio)
    zero = np.zeros(problem.structure.n_weights_)
    problem.lam = 1.5 * np.abs(problem.gradient(zero)).max() / l1_ratio
    result = solved(problem, tol=1e-10)
    assert (result.solution == 0.0).all()
    assert result.objective == pytest.approx(problem.loss(zero), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_without_squares_each_weight_has_a_momentum_of_its_own(kind):
    problem = Listed(kind, 10, l1_ratio=1.0)
    ascent, lam = problem.ascent(), problem.lam
    n = problem.structure.n_weights_
    t, before, z = np.ones(n), np.zeros(n), np.zeros(n)
    found = t.copy()
    ascent.set_kappa(2.0 * lam)
    for _ in range(12):
        ascent.run(np.arange(len(problem.p)))
        u, w = ascent.dual_image(), ascent.weights.copy()
        ascent.extrapolate_each(found)
        for j in np.flatnonzero((w != 0.0) | (z != 0.0)):
            old = t[j] if (w[j] - z[j]) * (w[j] - before[j]) >= 0.0 else 1.0
            t[j] = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * old**2))
            z[j] = w[j] + (old - 1.0) / t[j] * (w[j] - before[j])
        before = w
        assert found == pytest.approx(t, rel=1e-12)
        # The dual point stays, and the weights are those of the new center.
        assert ascent.dual_image() == pytest.approx(u, rel=1e-9, abs=1e-9)
        assert ascent.weights == pytest.approx(soft(0.5 * u + z, 0.5), abs=1e-9)
