"""Pragam: the excessive gap condition, its bounds, and agreement with other solvers."""

import numpy as np
import pytest
from _batch_problems import KINDS, random_batch
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.batch.pragam import (
    LIPSCHITZ_DECAY,
    LIPSCHITZ_GROWTH,
    Box,
    EuclideanExcessiveGap,
    make_dual,
    run_pragam,
)

SETTINGS = [(kind, False) for kind in KINDS] + [("binary", True), ("binary costs", True)]


def linear_map(problem, fit_intercept):
    """The matrix of √p_i α_iy -> V, on directions that stay in the domain."""
    risk, columns = problem.risk, []
    X = np.asarray(problem.X)
    for i, (B, _) in enumerate(problem.planes):
        # The first plane of a binary loss is no variable of the box.
        slopes = B[1:] if risk.n_scores == 1 else B - B.mean(axis=0)
        for beta in slopes:
            columns.append(np.sqrt(risk.weights[i]) * np.outer(X[i], beta).ravel())
    return np.array(columns)


def lipschitz_constant(problem, lam):
    return np.linalg.norm(linear_map(problem, False), 2) ** 2 / lam


def smoothed(method):
    """J_μ(w_k) by its definition."""
    dual, lam = method.dual, method.lam
    sharp, B = np.empty_like(dual.center), np.empty(method.scores.shape)
    dual.step(dual.center, method.scores, 1.0 / method.mu, sharp)
    loss = dual.combine(sharp, B)
    value = loss + (B * method.scores).sum()
    prox = 0.5 * method.mu * dual.squared_distance(sharp, dual.center)
    return 0.5 * lam * method.w @ method.w + value - prox


def dual_value(method):
    B = np.empty(method.scores.shape)
    loss = method.dual.combine(method.alpha, B)
    V = method.risk.gradient(B)
    return loss - 0.5 * V @ V / method.lam


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(("kind", "fit_intercept"), SETTINGS)
def test_the_excessive_gap_condition_and_bound_26_hold_at_every_iteration(
    kind, fit_intercept, fixed
):
    problem, lam = random_batch(kind), 0.01
    L = lipschitz_constant(problem, lam)
    risk = problem.risk
    dual = make_dual(risk, fit_intercept)
    method = EuclideanExcessiveGap(risk, lam, dual, L if fixed else None)
    for k in range(300):
        value = dual_value(method)
        scale = 1e-12 * (1.0 + abs(value))
        assert smoothed(method) <= value + scale
        primal = 0.5 * lam * method.w @ method.w + dual.primal(method.scores)[0]
        assert value - scale <= primal <= value + method.mu * dual.radius + scale
        bound = 4.0 * L * dual.radius / ((k + 1) * (k + 2))
        assert method.mu * dual.radius <= (1.0 if fixed else LIPSCHITZ_GROWTH) * bound * (
            1 + 1e-9
        )
        assert primal - value <= bound + scale
        method.improve()
    assert method.lipschitz <= (1.0 if fixed else LIPSCHITZ_GROWTH) * L * (1.0 + 1e-9)


@pytest.mark.parametrize(("layout", "lam"), [("dense", 0.01), ("csr", 0.1)])
@pytest.mark.parametrize("planes_after", [np.inf, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_it_finds_the_optimum_and_its_certificates_hold(kind, planes_after, layout, lam):
    weights = new_rng(1).uniform(0.0, 2.0, 40)
    weights[::7] = 0.0
    problem = random_batch(kind, layout=layout, weights=weights, ties=True)
    best = run_bmrm(problem.risk, lam, tol=1e-10, max_iter=20_000).objective
    result = run_pragam(problem.risk, lam, planes_after=planes_after, tol=1e-5)
    assert result.status == "converged"
    last = "excessive_gap" if planes_after > result.n_iter else "planes"
    assert result.history["method"][-1] == last
    assert result.objective == pytest.approx(best, abs=1e-5)
    assert result.objective == pytest.approx(
        problem.objective(result.solution, lam), rel=1e-12
    )
    rows = result.history
    assert (rows["objective"] >= best - 1e-10).all()
    assert (rows["dual_objective"] <= best + 1e-10).all()
    assert (np.diff(rows["dual_gap"]) <= 0.0).all()


@pytest.mark.parametrize("planes_after", [np.inf, 3])
@pytest.mark.parametrize("lam", [0.1, 0.03])
def test_the_intercept_is_that_of_a_support_vector_machine_with_a_bias(lam, planes_after):
    problem = random_batch("binary")
    # Far from balanced, and far from the origin.
    problem.X[:] += 2.0
    own = {"fit_intercept": True, "planes_after": planes_after}
    result = run_pragam(problem.risk, lam, tol=1e-8, **own)
    model = SVC(C=1.0 / (lam * 40), kernel="linear", tol=1e-10)
    model.fit(problem.X, problem.y)
    # Its own intercept is a mean over support vectors; the best one meets a margin.
    margins = 2.0 * problem.y - 1.0 - problem.X @ model.coef_[0]
    best = min(problem.objective(model.coef_[0], lam, b) for b in margins)
    w, b = result.solution[:-1], result.solution[-1]
    assert result.objective == pytest.approx(problem.objective(w, lam, b), rel=1e-12)
    # libsvm stops by a rule of its own.
    assert best * (1.0 - 1e-4) <= result.objective <= best + 1e-8
    assert result.dual_objective <= best + 1e-9
    without = run_pragam(problem.risk, lam, tol=1e-3)
    assert result.objective < without.dual_objective - 1e-7


def test_an_estimate_that_is_too_small_is_replaced():
    problem, lam = random_batch("multiclass"), 0.05
    risk = problem.risk
    L = lipschitz_constant(problem, lam)
    method = EuclideanExcessiveGap(risk, lam, make_dual(risk), 1e-9 * L)
    assert 1e-3 * L <= method.mu <= LIPSCHITZ_GROWTH * L
    tried = []
    for _ in range(50):
        before = method.lipschitz
        method.improve()
        tried.append(method.lipschitz / before)
    assert LIPSCHITZ_DECAY - 1e-12 <= min(tried) < 1.0 < max(tried)
    with pytest.raises(ValueError, match=r"needs a binary loss.*this risk has 4"):
        run_pragam(risk, lam, fit_intercept=True)


@pytest.mark.parametrize(("kind", "fit_intercept"), SETTINGS)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_dual_point_is_feasible_and_its_value_no_higher_at_any_scale(
    kind, fit_intercept, seed
):
    rng = new_rng(seed)
    weights = 10.0 ** (rng.choice([0.0, -3.0, -100.0]) * rng.random(12))
    weights[2 + rng.integers(10, size=rng.integers(3))] = 0.0
    problem = random_batch(kind, n=12, d=4, weights=weights, ties=True, seed=seed)
    problem.X *= rng.choice([0.0, 10.0 ** rng.uniform(-200, 50)])
    lam = 10.0 ** rng.uniform(-20, 200)
    dual = make_dual(problem.risk, fit_intercept)
    method = EuclideanExcessiveGap(problem.risk, lam, dual, None)
    best = -np.inf
    for _ in range(4):
        alpha = method.alpha
        value, sums = problem.dual_value(alpha, lam)
        best = max(best, value)
        assert (alpha >= 0.0).all()
        assert (alpha <= 1.0).all()
        if problem.risk.n_scores > 1:
            totals = np.add.reduceat(alpha.ravel(), dual.starts[:-1])
            np.testing.assert_allclose(totals, 1.0, rtol=1e-14)
        elif fit_intercept:
            assert abs(sums[0]) <= 1e-14
        intercept = method.weights[-1] if fit_intercept else 0.0
        w = method.weights[:-1] if fit_intercept else method.weights
        # Large scores cancel against the intercept.
        rounding = 1e-15 * np.abs(problem.X).max() * np.abs(w).sum()
        assert method.objective == pytest.approx(
            problem.objective(w, lam, intercept), rel=1e-9, abs=rounding
        )
        assert method.dual_objective <= best + 1e-13 * (1.0 + abs(best))
        assert method.dual_objective <= method.objective * (1.0 + 1e-13)
        method.improve()


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1e-9, 1e-5])
@pytest.mark.parametrize("weights", [None, np.geomspace(1e-6, 1.0, 40)])
@pytest.mark.parametrize(("kind", "fit_intercept"), SETTINGS)
def test_features_of_no_size_are_solved_at_once(kind, fit_intercept, weights, scale):
    problem = random_batch(kind, weights=weights)
    problem.X *= scale
    result = run_pragam(problem.risk, 0.01, fit_intercept=fit_intercept, tol=1e-7)
    assert (result.status, result.n_iter) == ("converged", 0)
    assert result.gap >= -1e-14
    expected = [costs.max() for _, costs in problem.planes]
    best = problem.risk.weights @ expected
    if fit_intercept:
        # The lighter class is on the wrong side, by as much as one margin costs more.
        y, p = problem.y, problem.risk.weights
        first, other = expected[0 if y[0] == 1 else 1], expected[0 if y[0] == 0 else 1]
        best = min(p[y == 1].sum(), p[y == 0].sum()) * (first + other)
    assert result.objective == pytest.approx(best, rel=1e-5)


def test_a_dual_point_out_of_balance_is_no_certificate(monkeypatch):
    # Classes of equal weight, all at their bounds, would be in balance all the same.
    problem = random_batch("binary", weights=np.linspace(1.0, 2.0, 40))
    step = Box.step

    def unbalanced(self, *args):
        self.fit_intercept = False
        step(self, *args)
        self.fit_intercept = True

    monkeypatch.setattr(Box, "step", unbalanced)
    result = run_pragam(problem.risk, 0.1, fit_intercept=True, max_iter=5)
    assert (result.status, result.dual_objective) == ("max_iter", -np.inf)


def test_many_iterations_leave_the_estimate_below_the_constant():
    # Curvatures met by steps of rounding's size once drove the estimate up without end.
    weights = new_rng(1).uniform(0.0, 2.0, 40)
    weights[::7] = 0.0
    problem, lam = random_batch("binary", weights=weights, ties=True), 0.01
    method = EuclideanExcessiveGap(problem.risk, lam, make_dual(problem.risk), None)
    L = lipschitz_constant(problem, lam)
    for _ in range(3000):
        method.improve()
        assert method.lipschitz <= LIPSCHITZ_GROWTH * L
    assert method.objective - method.dual_objective <= method.mu * method.dual.radius
