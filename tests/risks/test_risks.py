"""Values, planes and subgradients of risks, against all lines written out."""

from types import SimpleNamespace

import numpy as np
import pytest
from _risks import KINDS, listed_derivative, listed_losses, make_risk
from _seeds import new_rng
from scipy import sparse
from scipy.sparse import csr_array

from sklearn_structsvm.risks import (
    BinaryHinge,
    Logistic,
    MulticlassHinge,
    MultilabelHinge,
    Multinomial,
    ProximalHinge,
    SquaredHinge,
)


def integers(rng, *shape):
    return rng.integers(-2, 3, shape).astype(float)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 7, 300])
def test_losses_are_those_of_the_definition(kind, n):
    rng = new_rng(n)
    risk = make_risk(kind, rng.standard_normal((n, 3)), rng, rng.random(n), bias=0.5)
    Z = risk.scores(rng.standard_normal(risk.n_weights))
    losses = listed_losses(risk, Z)
    np.testing.assert_allclose(risk.sample_losses(Z), losses, rtol=1e-12)
    assert risk.value(Z) == pytest.approx(risk.weights @ losses, rel=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draw", [integers, lambda rng, *s: rng.standard_normal(s)])
@pytest.mark.parametrize("steepest", [False, True])
def test_planes_touch_the_risk_and_never_exceed_it(kind, draw, steepest):
    rng = new_rng(0)
    for n in (1, 20):
        risk = make_risk(kind, draw(rng, n, 2), rng, rng.random(n), bias=2.0)
        w = draw(rng, risk.n_weights)
        Z = risk.scores(w)
        along = risk.scores(draw(rng, risk.n_weights)) if steepest else None
        B, offset = risk.plane(Z, along)
        g = risk.gradient(B)
        size = 1e-13 * (abs(offset) + abs(g) @ abs(w))
        assert offset + g @ w == pytest.approx(risk.value(Z), abs=size, rel=0)
        for scale in np.geomspace(1e-3, 1e3, 40):
            v = w + scale * rng.standard_normal(len(w))
            size = 1e-13 * (abs(offset) + abs(g) @ abs(v))
            assert risk.value(risk.scores(v)) >= offset + g @ v - size


@pytest.mark.parametrize("kind", KINDS)
def test_the_steepest_plane_gives_the_directional_derivative_at_ties(kind):
    rng = new_rng(1)
    differ = 0
    for _ in range(40):
        risk = make_risk(kind, integers(rng, 16, 2), rng)
        Z = risk.scores(integers(rng, risk.n_weights))
        A = risk.scores(rng.standard_normal(risk.n_weights))
        expected = listed_derivative(risk, Z, A)
        B, _ = risk.plane(Z, A)
        assert np.vdot(B, A) == pytest.approx(expected, rel=1e-12)
        differ += np.vdot(risk.plane(Z)[0], A) < expected - 1e-9
    assert differ > 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("steepest", [False, True])
def test_scores_that_are_not_numbers_write_nowhere_else(kind, value, steepest):
    rng = new_rng(0)
    risk = make_risk(kind, np.zeros((5, 1)), rng)
    Z = np.full((5, risk.n_scores), value)
    around = np.zeros((7, risk.n_scores))
    risk.plane(Z, Z if steepest else None, out=around[1:-1])
    np.testing.assert_array_equal(around[[0, -1]], 0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_ties_hold_within_rounding_at_any_scale(kind, scale):
    rng = new_rng(2)
    k = 2 if kind == "binary" else 4
    costs = scale * rng.integers(1, 3, (k, k))
    if kind == "uniform pairs":
        costs[:] = scale
    np.fill_diagonal(costs, 0.0)
    risk = make_risk(kind, np.zeros((60, 1)), rng, costs=costs)
    # Slack rescaling has a scale of its own: that of 1 + f.
    size = 1.0 if kind == "rescaled" else scale
    Z = size * integers(rng, 60, risk.n_scores)
    A = rng.standard_normal(Z.shape)
    shaken = Z * (1.0 + 1e-15 * rng.standard_normal(Z.shape))
    B, _ = risk.plane(Z, A)
    np.testing.assert_array_equal(risk.plane(shaken, A)[0], B)
    apart = Z * (1.0 + 1e-9 * rng.standard_normal(Z.shape))
    assert (risk.plane(apart, A)[0] != B).any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_form_lists_all_planes(kind):
    rng = new_rng(0)
    risk = make_risk(kind, np.zeros((300, 1)), rng)
    Z = rng.standard_normal((300, risk.n_scores))
    form, arrays = risk.dual_form()
    for i, (z, expected) in enumerate(zip(Z, listed_losses(risk, Z), strict=True)):
        if form == "box":
            values = [0.0, arrays["cost"][i] - arrays["sign"][i] * z[0]]
        elif form == "simplex":
            t = arrays["truth"][i]
            cost = arrays["cost"][t]
            values = cost * (1 + z - z[t]) if arrays["rescaled"] else cost + z - z[t]
        else:
            lines = slice(arrays["starts"][i], arrays["starts"][i + 1])
            rise = z[arrays["gained"][lines]] - z[arrays["lost"][lines]]
            values = arrays["cost"][lines] + rise
        assert len(values) == len(risk.listed[i])
        assert max(values) == pytest.approx(expected, rel=1e-14)


def test_examples_with_all_labels_or_none_have_no_loss():
    risk = MultilabelHinge(np.eye(3), [[1, 1], [0, 0], [1, 0]])
    Z = np.array([[5.0, -5.0]] * 3)
    assert risk.sample_losses(-Z).tolist() == [0.0, 0.0, 11.0]
    B, offset = risk.plane(-Z, Z)
    assert not B[:2].any()
    assert offset == pytest.approx(1 / 3)


@pytest.mark.parametrize("k", [1, 3, 4, 5, 12, 13, 16, 26])
@pytest.mark.parametrize("bias", [0.0, -2.0])
@pytest.mark.parametrize("form", ["dense", "csr", "unsorted csr", "csc", "float32"])
def test_products_are_those_of_numpy(k, bias, form):
    rng = new_rng(k)
    for n, f in [(1, 1), (5, 3), (600, 37)]:
        X = rng.standard_normal((n, f)) * (rng.random((n, f)) < 0.3)
        X = X.astype(np.float32).astype(float)
        full = np.hstack([X, np.full((n, 1), bias)]) if bias else X
        given = X.astype(np.float32) if form == "float32" else X
        if form not in ("dense", "float32"):
            given = sparse.csc_array(X) if form == "csc" else sparse.csr_array(X)
        if form == "unsorted csr":
            given = given[:, ::-1][:, ::-1]
        y = rng.integers(0, max(k, 2), n)
        if k == 1:
            risk = BinaryHinge(given, y, bias=bias)
        else:
            risk = MulticlassHinge(given, y, n_classes=k, bias=bias)
        W, D = rng.standard_normal((full.shape[1], k)), rng.standard_normal((n, k))
        np.testing.assert_allclose(risk.scores(W.ravel()), full @ W, atol=1e-12)
        # Dense, with few entries in each row, with zero rows, and all of zeros.
        for share in (1.0, 0.3, 0.05, 0.0):
            B = D * (rng.random(D.shape) < share)
            got = risk.gradient(B).reshape(-1, k)
            np.testing.assert_allclose(got, full.T @ B, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_number_of_threads_changes_no_bit(kind, form):
    rng = new_rng(0)
    risk = make_risk(kind, form(integers(rng, 3000, 5) / 3), rng, bias=1.0)
    w, d = rng.standard_normal((2, risk.n_weights))
    results = []
    for risk.n_threads in (1, 2, 3):
        Z, A = risk.scores(w), risk.scores(d)
        B, offset = risk.plane(Z, A)
        results.append([Z, B, offset, risk.value(Z), risk.gradient(B), risk.gradient(Z)])
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            np.testing.assert_array_equal(one, other)


def test_results_go_where_they_are_asked_to():
    risk = MulticlassHinge(np.eye(3), [0, 1, 2])
    Z, B, g = np.full((3, 3), 7.0), np.full((3, 3), 7.0), np.full(9, 7.0)
    assert risk.scores(np.zeros(9), Z) is Z
    assert risk.plane(Z, out=B)[0] is B
    assert risk.gradient(B, g) is g
    assert not Z.any()
    np.testing.assert_allclose(g.reshape(3, 3), B)


def test_scores_move_in_place_however_few_the_blas_can_count(monkeypatch):
    monkeypatch.setattr("sklearn_structsvm._contract.risk.BLAS_SIZE", 4)
    risk = MulticlassHinge(np.eye(3), [0, 1, 2])
    Z, along = new_rng(0).standard_normal((2, 3, 3))
    expected, size = risk.moved(Z, along, 0.3), np.abs(Z) + np.abs(along)
    assert risk.moved(Z, along, 0.3, out=Z) is Z
    # Of two terms, which may cancel.
    assert (np.abs(Z - expected) <= 1e-15 * size).all()


def test_read_only_input_is_enough():
    X, w, B = np.eye(2), np.zeros(2), np.ones((2, 1))
    for array in (X, w, B):
        array.flags.writeable = False
    risk = BinaryHinge(X, [0, 1])
    assert risk.value(risk.scores(w)) == 1.0
    assert risk.gradient(B).tolist() == [1.0, 1.0]


def test_weights_may_be_zero_and_huge():
    risk = BinaryHinge(np.eye(3), [0, 1, 1], [0.0, 8e307, 8e307])
    np.testing.assert_allclose(risk.weights, [0.0, 0.5, 0.5])


def smooth_cases(rng):
    X, s = rng.standard_normal((30, 3)), rng.random(30)
    s[3] = 0.0
    y, labels = rng.integers(0, 3, 30), rng.integers(0, 2, (30, 4))
    options = {"bias": 1.0}
    proximal = ProximalHinge(X, y > 0, s, label_costs=[[0, 2], [1, 0]], **options)
    proximal.width, proximal.center = 0.5, rng.random((30, 1))
    return X, s, [
        Logistic(X, y > 0, s, **options),
        Logistic(csr_array(X), labels, s, **options),
        Multinomial(X, y, s, n_classes=3, **options),
        SquaredHinge(X, y > 0, s, **options),
        SquaredHinge(csr_array(X), labels, s, **options),
        SquaredHinge(X, y, s, n_classes=3, **options),
        proximal,
    ]  # fmt: skip


def proximal_losses(risk, margins):
    """The largest of the quadratic's values at both ends and at its vertex."""
    excess = risk.costs - margins
    vertex = np.clip(risk.center + excess / risk.width, 0.0, 1.0)
    return np.max(
        [
            a * excess - 0.5 * risk.width * (a - risk.center) ** 2
            for a in (np.zeros_like(vertex), np.ones_like(vertex), vertex)
        ],
        axis=0,
    )


def smooth_value(risk, Z, s):
    """By the definition."""
    if isinstance(risk, Multinomial):
        losses = np.log(np.exp(Z).sum(axis=1)) - Z[np.arange(30), risk.y]
    elif isinstance(risk, SquaredHinge):
        losses = (np.maximum(0.0, 1.0 - risk.signs * Z) ** 2).sum(axis=1)
    elif isinstance(risk, ProximalHinge):
        losses = proximal_losses(risk, risk.signs * Z)[:, 0]
    else:
        losses = np.log1p(np.exp(-risk.signs * Z)).sum(axis=1)
    return s / s.sum() @ losses


@pytest.mark.parametrize("place", range(7))
def test_smooth_losses_have_their_derivatives_and_their_tangent(place):
    rng = new_rng(0)
    X, s, risks = smooth_cases(rng)
    risk = risks[place]
    full = np.hstack([X, np.ones((30, 1))])

    def value(w):
        return smooth_value(risk, full @ w.reshape(4, -1), s)

    w = rng.standard_normal(risk.n_weights)
    Z = risk.scores(w)
    assert risk.smooth
    assert risk.value(Z) == pytest.approx(value(w), rel=1e-13)
    B, offset = risk.plane(Z)
    g = risk.gradient(B)
    steps = 1e-6 * np.eye(risk.n_weights)
    slopes = [(value(w + h) - value(w - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(g, slopes, rtol=1e-6, atol=1e-8)
    assert offset + g @ w == pytest.approx(value(w), rel=1e-12)
    found, P = risk.respond(Z)
    assert found == pytest.approx(value(w), rel=1e-13)
    np.testing.assert_allclose(risk.coefficients(P), B, rtol=1e-12, atol=1e-15)

    def coefficients(Z):
        return risk.coefficients(risk.respond(Z)[1])

    V = rng.standard_normal(Z.shape)
    slopes = (coefficients(Z + 1e-6 * V) - coefficients(Z - 1e-6 * V)) / 2e-6
    np.testing.assert_allclose(risk.curved(P, V), slopes, rtol=1e-6, atol=1e-9)
    one = np.zeros_like(Z)
    one[:, 0] = 1.0
    np.testing.assert_allclose(risk.curved(P, one)[:, 0], risk.curvatures(P)[:, 0])
    assert np.isfinite(risk.plane(1e4 * Z)[0]).all()
    with pytest.raises(NotImplementedError, match="no exact line search"):
        risk.line_search(Z, Z, 0.0, 1.0, 1.0)
    with pytest.raises(TypeError, match="is not a maximum of planes"):
        risk.dual_form()


def test_the_smoothed_hinge_is_below_the_hinge_and_touches_it_at_its_center():
    rng = new_rng(4)
    X, s, risks = smooth_cases(rng)
    risk = risks[6]
    y = (risk.signs[:, 0] > 0.0).astype(int)
    hinge = BinaryHinge(X, y, s, label_costs=[[0, 2], [1, 0]], bias=1.0)
    Z = rng.standard_normal((30, 1))
    assert risk.hinge(Z) == pytest.approx(hinge.value(Z), rel=1e-14)
    assert risk.value(Z) <= hinge.value(Z) + 1e-15
    risk.center = (risk.costs - risk.signs * Z > 0.0).astype(float)
    assert risk.value(Z) == pytest.approx(hinge.value(Z), rel=1e-14)
    B, offset = hinge.plane(Z)
    assert risk.hinge_dual_value(B) == pytest.approx(offset, rel=1e-14)


@pytest.mark.parametrize("place", [0, 1, 3, 4, 5, 6])
def test_the_dual_value_is_the_least_of_a_linear_function_below_the_loss(place):
    """By definition, over a grid of scores around the minimum of each entry."""
    rng = new_rng(3)
    _, s, risks = smooth_cases(rng)
    risk = risks[place]
    Z, scale = rng.standard_normal((30, risk.n_scores)), 0.7
    B = scale * risk.plane(Z)[0]
    grid = np.linspace(-8.0, 8.0, 4001)
    least = 0.0
    for i, c in np.ndindex(*B.shape):
        if s[i] > 0.0:
            margins = risk.signs[i, c] * grid
            losses = np.log1p(np.exp(-margins))
            if isinstance(risk, SquaredHinge):
                losses = np.maximum(0.0, 1.0 - margins) ** 2
            elif isinstance(risk, ProximalHinge):
                one = SimpleNamespace(
                    costs=risk.costs[i], center=risk.center[i], width=risk.width
                )
                losses = proximal_losses(one, margins)
            least += (risk.weights[i] * losses - B[i, c] * grid).min()
    value = risk.dual_value(B / scale, scale)
    assert value <= least + 1e-12
    # A step of the grid is 0.004, and second derivatives are at most 2.
    assert (risk.curvatures(risk.respond(Z)[1]) <= risk.largest_curvatures()).all()
    assert value == pytest.approx(least, abs=1e-5 * risk.n_scores)
    # At a gradient it is the plane's offset.
    B, offset = risk.plane(Z)
    assert risk.dual_value(B) == pytest.approx(offset, abs=1e-13)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X: BinaryHinge(X, [0, 2]), "0, ..., 1; got 2 for sample 1"),
        (lambda X: BinaryHinge(X, [0]), r"y must have shape \(2,\); got \(1,\)"),
        (lambda X: BinaryHinge(X, [0, 1], [1, -1]), r"sample_weight\[1\] .* got -1.0"),
        (lambda X: BinaryHinge(X, [0, 1], [0, 0]), "sample_weight must not be zero"),
        (lambda X: BinaryHinge(X, [0, 1], [1]), "sample_weight must have shape"),
        (lambda X: MulticlassHinge(X, [0, 1], label_costs=[[0, 1]]), "label_costs"),
        (lambda X: MultilabelHinge(X, [[0, 2], [1, 0]]), "got 2 in row 0, column 1"),
        (lambda X: MultilabelHinge(X, [0, 1]), "indicator of shape"),
        (lambda X: MultilabelHinge(X, [[0, 1]]), "must have 2 rows; got 1"),
        (lambda X: Logistic(X, [[0, 1]]), "must have 2 rows; got 1"),
        (lambda X: Logistic(X, [[0, 1], [0, 2]]), "indicator of 0 and 1; got 2 in row 1"),
        (lambda X: Multinomial(X, [0, 2], n_classes=2), "must be among 0, ..., 1; got 2"),
        (lambda X: SquaredHinge(X, [0, 2]), "0, ..., 1; got 2 for sample 1"),
        (lambda X: SquaredHinge(X, [0, 3], n_classes=3), "0, ..., 2; got 3 for sample 1"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make(np.eye(2))


def test_scores_of_the_wrong_shape_are_refused():
    risk = MulticlassHinge(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="do not fit"):
        risk.gradient(np.zeros((3, 2)))
