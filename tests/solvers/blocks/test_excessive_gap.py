"""Pragam over chains and trees: its condition, bounds, steps and certificates."""

import numpy as np
import pytest
from _forests import KINDS, random_forests
from _problems import Problem, optimum
from _seeds import new_rng
from scipy.special import logsumexp

from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.blocks.excessive_gap import (
    EntropicExcessiveGap,
    run_excessive_gap,
)
from sklearn_structsvm.structures import GraphStructure, MulticlassStructure

# Estimates of L are at most twice too large.
ESTIMATE = 2.0


def problem_of(kind, seed=0, **params):
    return Problem(*random_forests(kind, seed, **params))


def lipschitz_constant(listed, lam, p):
    """Σ_i p_i r_i² / (4 λ), r_i the diameter of the features of an example's labelings.

    By Pinsker's inequality a divergence is at least half the squared total variation,
    and V moves by at most p_i r_i / 2 for a unit of that.
    """
    curvatures = listed.curvatures(lam, p)
    held = p > 0.0
    return 0.25 * float(np.sum(curvatures[held] / p[held]))


def soft_objective(listed, w, lam, p, mu):
    """λ/2 ||w||² + R_μ(w) by its definition."""
    value = 0.5 * lam * w @ w
    for i in range(listed.n):
        values = listed.values(i, w)
        value += p[i] * mu * (logsumexp(values / mu) - np.log(len(values)))
    return value


def radius(listed, p):
    return float(p @ [np.log(len(loss)) for loss in listed.loss])


@pytest.mark.parametrize("lam", [0.5, 0.02])
@pytest.mark.parametrize("kind", KINDS)
def test_the_excessive_gap_condition_and_its_bound_hold_at_every_iteration(kind, lam):
    problem = problem_of(kind)
    listed, p = problem.listed, new_rng(2).uniform(size=problem.n)
    p[1] = 0.0
    p /= p.sum()
    L, D = lipschitz_constant(listed, lam, p), radius(listed, p)
    method = EntropicExcessiveGap(problem.make_oracle(), p, lam)
    for k in range(200):
        value = method.dual_value(method.V, method.loss)
        scale = 1e-11 * (1.0 + abs(value))
        assert soft_objective(listed, method.w, lam, p, method.mu) <= value + scale
        primal = listed.primal(method.w, lam, p)
        assert value - scale <= primal <= value + method.mu * D + scale
        bound = 4.0 * ESTIMATE * L * D / ((k + 1) * (k + 2))
        assert method.mu * D <= bound * (1.0 + 1e-9)
        assert method.lipschitz <= ESTIMATE * L * (1.0 + 1e-9)
        assert not method.improve()


def explicit(listed, w, mu):
    """The distributions over all labelings at (w, μ)."""
    values = [listed.values(i, w) / mu for i in range(listed.n)]
    return [np.exp(v - logsumexp(v)) for v in values]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_the_gradient_mapping_over_all_labelings(kind):
    # Algorithm 1 of Saha et al. with the dual variables of Appendix E written out:
    # argmax τ⟨∇D(β), a⟩ - (1 - τ) μ KL(a, α_μ(w)), and the dual point is what they say.
    problem, lam = problem_of(kind, label_costs=True), 0.1
    listed, p = problem.listed, problem.listed.uniform
    method = EntropicExcessiveGap(problem.make_oracle(), p, lam)
    alpha = explicit(listed, method.w, method.mu)
    for _ in range(10):
        before, mu = method.w, method.mu
        sharp = explicit(listed, before, mu)
        method.improve()
        tau = 1.0 - method.mu / mu
        beta = [a + tau * (s - a) for a, s in zip(alpha, sharp, strict=True)]
        w_beta, _ = listed.dual_point(beta, lam)
        np.testing.assert_allclose(
            method.w, (1.0 - tau) * before + tau * w_beta, atol=1e-10
        )
        for i in range(listed.n):
            slopes = tau / ((1.0 - tau) * mu) * listed.values(i, w_beta)
            step = np.log(sharp[i]) + slopes
            step = np.exp(step - logsumexp(step))
            alpha[i] = (1.0 - tau) * alpha[i] + tau * step
        v, loss = listed.dual_point(alpha, lam)
        np.testing.assert_allclose(method.V / -lam, v, atol=1e-9)
        assert method.loss == pytest.approx(loss, abs=1e-9)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_finds_the_optimum_and_its_certificates_hold(kind, layout):
    problem = problem_of(kind, 1, layout=layout, label_costs=True)
    p = new_rng(1).uniform(size=problem.n)
    p[0] = 0.0
    p /= p.sum()
    for lam in (0.3, 0.05):
        best = optimum(problem, lam, p)
        result = run_excessive_gap(problem.make_oracle(), p, lam, tol=1e-3)
        assert result.status == "converged" and 0.0 <= result.gap <= 1e-3
        assert best - 1e-9 <= result.objective <= best + 1e-3
        assert result.objective == pytest.approx(
            problem.listed.primal(result.solution, lam, p), rel=1e-12
        )
        rows = result.history
        assert (rows["objective"] >= best - 1e-9).all()
        assert (rows["dual_objective"] <= best + 1e-9).all()
        assert (np.diff(rows["dual_gap"]) <= 0.0).all()


def test_where_nothing_costs_anything_no_weights_are_the_optimum():
    problem = problem_of("chain", label_costs=np.zeros((3, 3)))
    p = problem.listed.uniform
    result = run_excessive_gap(problem.make_oracle(), p, 0.1, tol=0.0)
    assert (result.status, result.n_iter, result.gap) == ("converged", 0, 0.0)
    assert not result.solution.any()


def test_it_ends_where_the_smoothing_is_lost_in_rounding():
    problem = problem_of("chain", n=2)
    method = EntropicExcessiveGap(problem.make_oracle(), problem.listed.uniform, 1.0)
    method.mu = 1e-17 * method.objective
    assert method.improve()


def test_what_cannot_be_summed_is_refused():
    problem = problem_of("chain")
    X = [1e100 * x for x in problem.X]
    oracle = problem.structure.make_oracle(X, problem.y)
    with np.errstate(over="ignore", invalid="ignore"):
        with pytest.raises(ValueError, match="scale the features down"):
            run_excessive_gap(oracle, problem.listed.uniform, 1e-120)
    X, y = np.eye(3), np.array([0, 1, 2])
    oracle = MulticlassStructure().fit(X, y).make_oracle(X, y)
    with pytest.raises(TypeError, match="MulticlassOracle has no marginals"):
        run_excessive_gap(oracle, np.full(3, 1 / 3), 0.1)
    # Without the refusal, what a graph's oracle inherits from chains reads other memory.
    X, y = [(np.eye(3), [[0, 1], [1, 2]])], [[0, 1, 0]]
    structure = GraphStructure()
    X, y = structure.check_data(X, y)
    oracle = structure.fit(X, y).make_oracle(X, y)
    with pytest.raises(TypeError, match="GraphOracle has no marginals"):
        EmpiricalRisk(oracle, np.ones(1)).soften(np.zeros(oracle.n_weights), 1.0)
