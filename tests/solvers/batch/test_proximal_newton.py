"""Newton's method under an elastic net: models, certificates, raw columns."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm.risks import Logistic, Multinomial
from sklearn_structsvm.solvers.batch import proximal_newton
from sklearn_structsvm.solvers.batch.feasible_image import second_derivatives
from sklearn_structsvm.solvers.batch.proximal_newton import (
    run_proximal_newton,
)

KINDS = ("binary", "multilabel", "multinomial")


def raw_columns(rng, n, d):
    """Sizes from 1e-4 to 1e4, and offsets of up to a hundred times the spread."""
    X = rng.normal(size=(n, d)) + rng.normal(size=d) * 10.0 ** rng.uniform(-1, 2, d)
    return X * 10.0 ** rng.uniform(-4, 4, d)


def make_risk(kind, X, rng, **options):
    n = X.shape[0]
    options = {"bias": 1.0, "sample_weight": rng.uniform(0.0, 2.0, n)} | options
    if kind == "binary":
        return Logistic(X, rng.integers(2, size=n), **options)
    if kind == "multilabel":
        return Logistic(X, rng.integers(2, size=(n, 3)), **options)
    return Multinomial(X, rng.integers(3, size=n), n_classes=3, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
def test_the_model_has_the_second_derivatives_of_the_risk(kind, form):
    rng = new_rng()
    X = rng.normal(size=(15, 4)).round(1)
    of_form = {"dense": X, "sparse": sparse.csr_array(X), "float32": np.float32(X)}
    X = np.asarray(of_form[form], dtype=np.float64) if form == "float32" else X
    risk = make_risk(kind, of_form[form], rng)
    w = rng.normal(size=risk.n_weights)
    own = np.flatnonzero(rng.random(risk.n_weights) < 0.7)
    _, response = risk.respond(risk.scores(w))
    H = second_derivatives(risk, response, risk.curvatures(response), own)
    for k, j in enumerate(own):
        unit = np.zeros(risk.n_weights)
        unit[j] = 1.0
        column = risk.gradient(risk.curved(response, risk.scores(unit)))
        np.testing.assert_allclose(H[:, k], column[own], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_raw_columns_are_solved_in_few_steps(kind, l1_ratio):
    rng = new_rng(KINDS.index(kind))
    risk = make_risk(kind, raw_columns(rng, 80, 6), rng)
    result = run_proximal_newton(risk, 1e-3, l1_ratio, tol=1e-6, max_iter=200)
    assert result.status == "converged"
    assert result.gap <= 1e-6
    w = result.solution
    penalty = (1.0 - l1_ratio) / 2.0 * w @ w + l1_ratio * np.abs(w).sum()
    value = risk.value(risk.scores(w)) + 1e-3 * penalty
    assert result.objective == pytest.approx(value, rel=1e-12)
    # No other weights are below the certificate.
    for size in (1e-6, 1e-3, 1e-1):
        other = w * (1.0 + size * rng.normal(size=len(w)))
        penalty = (1.0 - l1_ratio) / 2.0 * other @ other
        penalty += l1_ratio * np.abs(other).sum()
        value = risk.value(risk.scores(other)) + 1e-3 * penalty
        assert value >= result.dual_objective - 1e-12
    # From there, no step is needed.
    assert run_proximal_newton(risk, 1e-3, l1_ratio, tol=1e-6, w0=w).n_iter <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_the_weights_and_other_steps_reach_the_same_optimum(kind, monkeypatch):
    rng = new_rng(KINDS.index(kind))
    risk = make_risk(kind, rng.normal(size=(60, 25)), rng)
    found = [run_proximal_newton(risk, 0.02, 0.8, tol=1e-7)]
    monkeypatch.setattr(proximal_newton, "MOST_OF_ALL", 0)
    monkeypatch.setattr(proximal_newton, "LEAST_OTHERS", 2)
    found.append(run_proximal_newton(risk, 0.02, 0.8, tol=1e-7))
    monkeypatch.setattr(proximal_newton, "MOST_MODELED", 0)
    found.append(run_proximal_newton(risk, 0.02, 0.8, tol=1e-7))
    assert [one.status for one in found] == ["converged"] * 3
    values = [one.objective for one in found]
    assert max(values) - min(values) <= 1e-7
    assert max(one.dual_objective for one in found) <= min(values) + 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_other_steps_end_where_only_rounding_is_left(kind, monkeypatch):
    monkeypatch.setattr(proximal_newton, "MOST_OF_ALL", 0)
    monkeypatch.setattr(proximal_newton, "MOST_MODELED", 0)
    rng = new_rng(KINDS.index(kind))
    for _ in range(5):
        risk = make_risk(kind, rng.normal(size=(60, 5)), rng)
        result = run_proximal_newton(risk, 0.05, 0.5, tol=1e-18)
        assert result.status in ("converged", "stalled")
        assert result.gap <= 1e-13


def test_a_penalty_above_all_gradients_leaves_nothing():
    rng = new_rng()
    risk = make_risk("multinomial", rng.normal(size=(20, 3)), rng)
    result = run_proximal_newton(risk, 100.0, 1.0)
    assert result.status == "converged"
    assert result.n_iter == 0 or not result.solution.any()


def test_squares_that_overflow_stall_instead_of_failing():
    rng = new_rng()
    risk = make_risk("binary", rng.normal(size=(10, 2)) * 1e200, rng)
    result = run_proximal_newton(risk, 0.1, 0.5, max_iter=5)
    assert result.status in ("stalled", "max_iter", "converged")
