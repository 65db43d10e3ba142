"""Newton's method under an L1 penalty: optima, certificates, limits."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from scipy.optimize import minimize

from sklearn_structsvm.risks import Logistic, ProximalHinge, SquaredHinge
from sklearn_structsvm.solvers.batch import proximal_newton
from sklearn_structsvm.solvers.batch.proximal_newton import run_proximal_newton

KINDS = [Logistic, SquaredHinge, ProximalHinge]


def run_l1_newton(risk, lam, **options):
    return run_proximal_newton(risk, lam, 1.0, **options)


def random_risk(rng, kind):
    """With a λ that is a share of the one from which on all weights are zero."""
    n, d = rng.integers(3, 30), rng.integers(1, 20)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2)
    if rng.random() < 0.5:
        X[rng.random(X.shape) < 0.5] = 0.0
        X[0] = 1.0
        X = sparse.csr_array(X)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    s = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    s[:2] = 0.5, 1.0
    risk = kind(X, y, s, bias=rng.choice([0.0, 2.0]))
    slopes = risk.gradient(risk.plane(risk.scores(np.zeros(risk.n_weights)))[0])
    return risk, np.abs(slopes).max() * 10.0 ** rng.uniform(-2, 0)


def value(risk, lam, w):
    Z = risk.scores(w)
    loss = risk.hinge(Z) if isinstance(risk, ProximalHinge) else risk.value(Z)
    return lam * np.abs(w).sum() + loss


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_is_never_below_the_truth(kind):
    rng = new_rng()
    for _ in range(8):
        risk, lam = random_risk(rng, kind)
        best = run_l1_newton(risk, lam, tol=1e-11)
        result = run_l1_newton(risk, lam, tol=10.0 ** rng.uniform(-6, -1))
        assert result.status == "converged"
        assert result.objective == pytest.approx(value(risk, lam, result.solution))
        history = result.history
        assert (history["dual_objective"] <= best.objective + 1e-12).all()
        assert (history["objective"] >= best.dual_objective - 1e-12).all()
        assert (np.diff(history["objective"]) <= 1e-12).all()


@pytest.mark.parametrize("kind", [Logistic, SquaredHinge])
def test_the_optimum_is_that_of_another_solver(kind):
    rng = new_rng()
    for _ in range(10):
        risk, lam = random_risk(rng, kind)
        d = risk.n_weights

        def halves(u, risk=risk, lam=lam, d=d):
            """Of w = u - v with both not negative, for a solver of smooth problems."""
            B, offset = risk.plane(risk.scores(u[:d] - u[d:]))
            g = risk.gradient(B)
            slope = np.concatenate([g + lam, lam - g])
            return lam * u.sum() + offset + g @ (u[:d] - u[d:]), slope

        other = minimize(
            halves, np.zeros(2 * d), jac=True, bounds=[(0.0, None)] * (2 * d)
        ).fun
        result = run_l1_newton(risk, lam, tol=1e-10)
        assert result.dual_objective <= other + 1e-12
        assert result.objective <= other + 1e-10


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_at_the_optimum_is_at_once_as_good(kind):
    risk, lam = random_risk(new_rng(), kind)
    first = run_l1_newton(risk, lam, tol=1e-8)
    again = run_l1_newton(risk, lam, tol=1e-8, w0=first.solution)
    assert again.history["objective"][0] == pytest.approx(first.objective, rel=1e-12)
    assert again.status == "converged"


@pytest.mark.parametrize("kind", KINDS)
def test_limits_are_kept_and_what_rounding_leaves_is_reported(kind):
    rng = new_rng()
    for _ in range(5):
        risk, lam = random_risk(rng, kind)
        result = run_l1_newton(risk, lam, tol=0.0, max_iter=300)
        assert result.status in ("stalled", "max_iter", "converged")
        assert -1e-12 <= result.gap <= 1e-6 or result.status == "max_iter"
    assert run_l1_newton(risk, 1e-3 * lam, tol=0.0, max_iter=1).n_iter == 1
    late = run_l1_newton(risk, 1e-3 * lam, tol=0.0, max_time=1e-9)
    # One step can be enough, for example with one feature.
    assert late.n_iter == 1
    assert late.status in ("max_time", "stalled") or late.gap <= 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_steps_with_and_without_a_model_lead_to_the_same_optimum(kind, monkeypatch):
    rng = new_rng()
    for _ in range(4):
        risk, lam = random_risk(rng, kind)
        one = run_l1_newton(risk, lam, tol=1e-9)
        monkeypatch.setattr(proximal_newton, "MOST_OF_ALL", -1)
        monkeypatch.setattr(proximal_newton, "MOST_MODELED", -1)
        other = run_l1_newton(risk, lam, tol=1e-9)
        monkeypatch.undo()
        assert one.status == other.status == "converged"
        assert one.objective == pytest.approx(other.objective, abs=1.1e-9)


@pytest.mark.parametrize("kind", [Logistic, SquaredHinge])
def test_a_weight_whose_gain_is_lost_in_rounding_is_freed(kind):
    """Its slope exceeds λ by 3e-9 of it, but its gap counts."""
    rng, lam = new_rng(), 0.1
    for _ in range(20):
        X, y = rng.standard_normal((40, 2)), np.arange(40) % 2
        X[:, 0] += y
        only = kind(X[:, :1], y)
        w = run_l1_newton(only, lam, tol=1e-14).solution
        slopes = kind(X, y).gradient(only.plane(only.scores(w))[0])
        X[:, 1] *= lam * (1.0 + 3e-9) / np.abs(slopes[1])
        result = run_l1_newton(kind(X, y), lam, w0=np.append(w, 0.0), tol=1e-12)
        assert result.gap <= 1e-12
