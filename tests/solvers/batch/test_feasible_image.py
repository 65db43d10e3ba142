"""Dual points under an L1 norm on columns of which its λ is a rounding error."""

from fractions import Fraction

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm.risks import Logistic, Multinomial, SquaredHinge
from sklearn_structsvm.risks.proximal_hinge import ProximalHinge
from sklearn_structsvm.solvers.batch import feasible_image
from sklearn_structsvm.solvers.batch.feasible_image import feasible_point
from sklearn_structsvm.solvers.batch.proximal_newton import run_proximal_newton

KINDS = ("binary", "multilabel", "multinomial", "squares", "squares of 3", "hinge")


def make_risk(kind, X, score, **options):
    y = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    if kind in ("multinomial", "squares of 3"):
        loss = Multinomial if kind == "multinomial" else SquaredHinge
        return loss(X, y, n_classes=3, bias=1.0, **options)
    if kind == "multilabel":
        return Logistic(X, y[:, np.newaxis] >= [1, 2], bias=1.0, **options)
    losses = {"binary": Logistic, "squares": SquaredHinge, "hinge": ProximalHinge}
    return losses[kind](X, y > 1, bias=1.0, **options)


def huge_columns(rng, columns, n=120):
    """Columns of seconds since 1970 beside small ones, or of about 1e8."""
    Z = rng.normal(size=(n, 4))
    score = Z[:, 0] - Z[:, 1] + rng.logistic(size=n)
    if columns == "all about 1e8":
        return 1e8 * (Z + 3.0), score
    return np.column_stack([1.7e9 + 3e7 * rng.random(n), Z]), score


@pytest.mark.parametrize(
    ("kind", "l1"), [*((kind, 1.0) for kind in KINDS), *((k, 0.5) for k in KINDS[:-1])]
)
@pytest.mark.parametrize("columns", ["Unix time", "all about 1e8"])
def test_huge_columns_do_not_hide_the_optimum(kind, l1, columns):
    X, score = huge_columns(new_rng(KINDS.index(kind)), columns)
    risk = make_risk(kind, X, score)
    lam = 1e-3 / len(X)
    result = run_proximal_newton(risk, lam, l1, tol=1e-4, max_iter=300)
    assert result.status == "converged"
    assert result.n_iter <= 60
    w = result.solution
    value = risk.hinge if kind == "hinge" else risk.value
    assert result.objective == pytest.approx(
        lam * (l1 * np.abs(w).sum() + 0.5 * (1.0 - l1) * w @ w) + value(risk.scores(w)),
        rel=1e-9,
    )


@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_rough_entries_of_an_image_have_twice_the_digits(form, bias, monkeypatch):
    rng = new_rng()
    X = np.column_stack([1e9 + rng.normal(size=60), rng.normal(size=(60, 2))])
    X[:, 1] *= rng.random(60) < 0.5
    X = {"dense": X, "sparse": sparse.csr_array(X), "float32": np.float32(X)}[form]
    risk = Multinomial(X, rng.integers(3, size=60), n_classes=3, bias=bias)
    # Rows come in several pieces.
    monkeypatch.setattr("sklearn_structsvm._utils.pieces.MIN_PIECE", 24)
    image = feasible_image._Image(risk, np.zeros(risk.n_weights), 1e-2)
    assert image.rough.tolist() == [0]
    high = rng.uniform(-1.0, 1.0, size=(60, 3)) / 60.0
    low = 1e-19 * rng.normal(size=(60, 3))
    found, errors = image.of(high, low)
    rows = X.toarray() if form == "sparse" else X
    if bias:
        rows = np.column_stack([rows, np.ones(60)])
    exact = [
        sum(
            Fraction(float(x)) * (Fraction(float(a)) + Fraction(float(b)))
            for x, a, b in zip(column, high[:, c], low[:, c], strict=True)
        )
        for column in rows.T
        for c in range(3)
    ]
    away = [abs(Fraction(float(u)) - e) for u, e in zip(found, exact, strict=True)]
    assert all(a <= Fraction(float(e)) for a, e in zip(away, errors, strict=True))
    assert (errors[:3] <= 1.2e-16 * np.abs(found[:3])).all()


def test_coefficients_of_classes_sum_to_zero_in_all_their_digits():
    rng = new_rng()
    risk = Multinomial(rng.normal(size=(40, 2)), rng.integers(4, size=40), n_classes=4)
    _, P = risk.respond(5.0 * rng.normal(size=(40, 4)))
    B = risk.coefficients(P)
    high, low = risk.as_dual(B, 1e-20 * rng.normal(size=B.shape))
    np.testing.assert_allclose(high, B, rtol=1e-12, atol=1e-17)
    sums = [sum(map(Fraction, [*a, *b])) for a, b in zip(high, low, strict=True)]
    assert max(abs(total) for total in sums) <= 1e-33


def test_coefficients_stay_those_of_a_dual_point():
    rng = new_rng()
    X, score = huge_columns(rng, "Unix time")
    for kind in KINDS:
        risk = make_risk(kind, X, score)
        w = rng.normal(size=risk.n_weights)
        w[: risk.n_scores] *= 1e-9
        _, response = risk.respond(risk.scores(w))
        B = risk.coefficients(response)
        changed, sizes = feasible_point(risk, response, B, w, 1e-6)
        assert np.sign(changed).tolist() == np.sign(B).tolist()
        if risk.is_bounded:
            assert (np.abs(changed) <= risk.weights[:, np.newaxis]).all()
        assert sizes.max() <= (1.0 + 1e-6) * np.abs(risk.gradient(B)).max()


def test_nothing_is_done_where_no_entry_is_rough():
    rng = new_rng()
    risk = make_risk("binary", rng.normal(size=(30, 2)), rng.normal(size=30))
    response = risk.respond(risk.scores(np.zeros(3)))[1]
    B = risk.coefficients(response)
    assert feasible_point(risk, response, B, np.zeros(3), 0.1) is None
