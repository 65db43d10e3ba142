"""A bundle that keeps the coefficients of its planes is the bundle of these planes."""

import numpy as np
import pytest
from _seeds import cache_by_seed, new_rng
from scipy import sparse

from sklearn_structsvm.risks import BinaryHinge, MulticlassHinge
from sklearn_structsvm.solvers.batch import product_bundle
from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.batch.product_bundle import ProductBundle, make_bundle
from sklearn_structsvm.solvers.batch.sublbfgs import run_sublbfgs
from sklearn_structsvm.solvers.qp.bundle import Bundle

pytestmark = pytest.mark.slow

LAM = 1e-3


def text_risk(n_classes, n=40, d=400):
    """Many features of which few are in a row."""
    rng = new_rng(n_classes)
    X = sparse.csr_array(rng.random((n, d)) * (rng.random((n, d)) < 0.02))
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    kind = BinaryHinge if n_classes == 2 else MulticlassHinge
    return kind(X, y, rng.random(n), bias=1.0)


@cache_by_seed
def optimum(n_classes):
    """By planes that are kept as vectors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product_bundle, "MANY_PLANES", 0)
        return run_bmrm(text_risk(n_classes), LAM, tol=1e-10).objective


def random_planes(risk, count):
    rng = new_rng(0)
    for _ in range(count):
        yield risk.plane(risk.scores(rng.standard_normal(risk.n_weights)))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("options", [{}, {"max_planes": 4}, {"max_idle": 2}])
def test_it_proposes_the_same_points(n_classes, options):
    risk = text_risk(n_classes)
    ours = ProductBundle(risk, LAM, **options)
    other = Bundle(risk.n_weights, LAM, **options)
    for B, offset in random_planes(risk, 12):
        for bundle in (ours, other):
            bundle.cut(risk, B, offset)
            bundle.solve()
        np.testing.assert_allclose(ours.weights, other.weights, rtol=1e-9, atol=1e-11)
        assert ours.dual_objective == pytest.approx(other.dual_objective, rel=1e-12)
        np.testing.assert_allclose(ours.planes, other.planes, atol=1e-14)
        assert ours.slack == pytest.approx(other.slack, rel=1e-8)


def test_the_same_planes_serve_another_regularization():
    risk = text_risk(3)
    ours, other = ProductBundle(risk, LAM), Bundle(risk.n_weights, LAM)
    assert ours.at(1.0).dual_objective == -np.inf
    for B, offset in random_planes(risk, 5):
        ours.cut(risk, B, offset)
        other.cut(risk, B, offset)
    moved, expected = ours.at(10 * LAM), other.at(10 * LAM)
    np.testing.assert_allclose(moved.weights, expected.weights, rtol=1e-10, atol=1e-13)
    assert moved.dual_objective == pytest.approx(expected.dual_objective, rel=1e-12)


def test_a_plane_without_coefficients_is_refused():
    risk = text_risk(2)
    with pytest.raises(TypeError, match="use `cut`"):
        ProductBundle(risk, LAM).add(np.zeros(risk.n_weights), 0.0)


def test_long_planes_of_sparse_rows_are_kept_as_coefficients(monkeypatch):
    risk = text_risk(3)
    assert type(make_bundle(risk, LAM)) is Bundle
    monkeypatch.setattr(product_bundle, "LONG", 100)
    assert type(make_bundle(risk, LAM)) is ProductBundle
    dense = MulticlassHinge(np.ones((60, 3)), np.arange(60) % 3, np.ones(60))
    monkeypatch.setattr(product_bundle, "LONG", 1)
    monkeypatch.setattr(product_bundle, "TYPICAL_PLANES", 5)
    assert type(make_bundle(dense, LAM)) is Bundle


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    ("run", "options"),
    [
        (run_bmrm, {}),
        (run_bmrm, {"line_search": False}),
        (run_sublbfgs, {"hybrid": True}),
    ],
)
def test_solvers_reach_the_same_optimum_with_it(monkeypatch, n_classes, run, options):
    risk = text_risk(n_classes)
    expected = optimum(n_classes)
    monkeypatch.setattr(product_bundle, "LONG", 100)
    result = run(risk, LAM, tol=1e-8, max_iter=20_000, **options)
    assert result.status == "converged"
    assert result.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_quasi_newton_steps_are_bounded_by_it(monkeypatch, n_classes):
    risk = text_risk(n_classes)
    expected = optimum(n_classes)
    monkeypatch.setattr(product_bundle, "LONG", 100)
    result = run_sublbfgs(risk, LAM, max_iter=30)
    assert result.dual_objective <= expected <= result.objective
