"""Newton's method: its certificate on many problems, its directions, its limits."""

from functools import partial

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from scipy.optimize import minimize

from sklearn_structsvm.risks import Logistic, Multinomial, SquaredHinge
from sklearn_structsvm.solvers.batch import newton
from sklearn_structsvm.solvers.batch.newton import NewtonSteps, run_newton


def random_risk(rng):
    """Of any kind and shape, with a λ."""
    n, f, k = rng.integers(2, 30), rng.integers(1, 8), rng.integers(2, 5)
    X = rng.standard_normal((n, f)) * 10.0 ** rng.uniform(-2, 2)
    if rng.random() < 0.5:
        X[rng.random(X.shape) < 0.5] = 0.0
        X = sparse.csr_array(X)
    s = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    s[0] = 1.0
    options = {"bias": rng.choice([0.0, 2.0])}
    kind = rng.integers(5)
    if kind == 0:
        risk = Logistic(X, rng.integers(0, 2, n), s, **options)
    elif kind == 1:
        risk = Logistic(X, rng.integers(0, 2, (n, k)), s, **options)
    elif kind == 2:
        risk = Multinomial(X, rng.integers(0, k, n), s, n_classes=k, **options)
    elif kind == 3:
        risk = SquaredHinge(X, rng.integers(0, 2, n), s, **options)
    else:
        risk = SquaredHinge(X, rng.integers(0, k, n), s, n_classes=k, **options)
    return risk, 10.0 ** rng.uniform(-4, 0)


def objective(risk, lam, w):
    """P and its gradient, from the definition."""
    B, offset = risk.plane(risk.scores(w))
    g = risk.gradient(B)
    return 0.5 * lam * w @ w + offset + g @ w, g + lam * w


def test_the_gap_is_never_below_the_truth():
    rng = new_rng()
    for _ in range(300):
        risk, lam = random_risk(rng)
        optimum = run_newton(risk, lam, tol=1e-13 * lam).objective
        result = run_newton(risk, lam, tol=10.0 ** rng.uniform(-6, 0))
        value, gradient = objective(risk, lam, result.solution)
        assert result.objective == pytest.approx(value, rel=1e-12)
        # The minimum is not negative.
        gap = min(0.5 * gradient @ gradient / lam, value)
        assert result.gap == pytest.approx(gap, rel=1e-4)
        history = result.history
        excess = history["objective"] - optimum
        assert (history["dual_gap"] >= excess - 1e-12 * abs(optimum)).all()
        assert (np.diff(history["objective"]) <= 1e-12 * abs(optimum)).all()
        assert result.status == "converged"


def test_the_optimum_is_that_of_another_solver():
    rng = new_rng()
    for _ in range(10):
        risk, lam = random_risk(rng)
        w = run_newton(risk, lam, tol=1e-12).solution
        other = minimize(
            partial(objective, risk, lam), np.zeros_like(w), jac=True, tol=1e-12
        )
        assert objective(risk, lam, w)[0] <= other.fun * (1.0 + 1e-9) + 1e-12


def test_both_preconditioners_lead_to_the_same_weights(monkeypatch):
    rng = new_rng()
    for _ in range(20):
        risk, lam = random_risk(rng)
        one = run_newton(risk, lam, tol=1e-14 * lam)
        monkeypatch.setattr(newton, "MAX_DENSE", 0)
        other = run_newton(risk, lam, tol=1e-14 * lam)
        monkeypatch.undo()
        # λ/2 ‖w - w*‖² <= gap.
        np.testing.assert_allclose(one.solution, other.solution, rtol=0, atol=1e-6)


def test_blocks_are_the_whole_hessian_of_two_classes():
    """So that the first direction needs one product."""
    rng = new_rng()
    X = rng.standard_normal((40, 5)) @ np.diag(10.0 ** np.arange(5))
    steps = NewtonSteps(Logistic(X, rng.integers(0, 2, 40), bias=1.0), 1e-3, 1e-9)
    before = steps.n_passes
    assert steps.move()
    assert steps.n_passes - before <= 3


def test_a_start_at_the_optimum_ends_there():
    risk, lam = random_risk(new_rng())
    first = run_newton(risk, lam, tol=1e-10)
    again = run_newton(risk, lam, tol=2e-10, w0=first.solution)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.solution, first.solution)


def test_more_than_rounding_allows_ends_as_stalled():
    rng = new_rng()
    for _ in range(20):
        risk, lam = random_risk(rng)
        result = run_newton(risk, lam, tol=0.0)
        assert result.status == "stalled"
        # What is left is the rounding error of the objective.
        assert 0.0 < result.gap <= 1e-13
        assert result.n_iter < 100


def test_limits_are_kept():
    risk, lam = random_risk(new_rng())
    assert run_newton(risk, lam, tol=0.0, max_iter=1).status == "max_iter"
    late = run_newton(risk, lam, tol=0.0, max_time=1e-9)
    assert late.status in ("max_time", "stalled") and late.n_iter == 1


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1e150, 1e160, 1e300])
def test_features_whose_squares_overflow_have_no_certificate_but_weights(scale, form):
    rng = new_rng()
    X = form(scale * rng.standard_normal((40, 4)))
    risk = Multinomial(X, rng.integers(0, 3, 40), n_classes=3)
    result = run_newton(risk, 0.1, max_iter=50)
    assert result.status in ("stalled", "max_iter") and result.gap > 1.0
    assert np.isfinite(result.solution).all()


def test_an_objective_below_the_tolerance_is_its_own_certificate():
    """Of rows that are separable, the gradient by a column of 1e3 bounds nothing."""
    rng = new_rng()
    X = rng.standard_normal((60, 90)) * np.logspace(-2, 3, 90)
    risk = SquaredHinge(X, rng.integers(3, size=60), n_classes=3, bias=1.0)
    result = run_newton(risk, 1e-8, tol=1e-3, max_iter=50)
    assert result.status == "converged"
    assert (result.history["dual_objective"] >= 0.0).all()
    assert result.gap <= result.objective <= 1e-3
