"""Every way of searching a line ends at the same, exact minimum."""

import numpy as np
import pytest
from _risks import KINDS, by_sorting, exact_step, listed_losses, make_risk
from _seeds import new_rng

from sklearn_structsvm.risks import BinaryHinge, MulticlassHinge


def by_selection(risk, *search, **options):
    return risk.line_search(*search, **options)


METHODS = (by_selection, by_sorting)


def descent(risk, w, lam):
    """Scores of w and of a steepest descent direction, ⟨w, p⟩ and ⟨p, p⟩."""
    B, _ = risk.plane(risk.scores(w))
    p = -(lam * w + risk.gradient(B))
    return risk.scores(w), risk.scores(p), w @ p, p @ p


def line(risk, Z, A, wp, pp, lam):
    """Φ of the definition."""

    def value(eta):
        losses = listed_losses(risk, Z + eta * A)
        return lam * (wp * eta + pp * eta**2 / 2) + risk.weights @ losses

    return value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lam", [0.0625, 4.0])
@pytest.mark.parametrize("largest", [0.5, np.inf])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_integer_data_with_many_ties_give_the_exact_minimum(kind, lam, largest, n):
    rng = new_rng(n)
    for _ in range(20):
        risk = make_risk(kind, rng.integers(-2, 3, (n, 2)).astype(float), rng)
        w, p = rng.integers(-2, 3, (2, risk.n_weights)).astype(float)
        Z, A = risk.scores(w), risk.scores(p)
        expected = exact_step(risk, Z, A, lam * (w @ p), lam * (p @ p), largest)
        for method in METHODS:
            step = method(risk, Z, A, w @ p, p @ p, lam, largest)
            assert step == pytest.approx(float(expected), rel=1e-14, abs=0)


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_of_a_dense_grid_is_better(kind):
    rng = new_rng(0)
    for lam in (1e-4, 0.1, 10.0):
        risk = make_risk(kind, rng.standard_normal((12, 3)), rng, rng.random(12))
        search = descent(risk, rng.standard_normal(risk.n_weights), lam)
        value = line(risk, *search, lam)
        steps = [method(risk, *search, lam) for method in METHODS]
        assert steps[0] == pytest.approx(steps[1], rel=1e-10)
        grid = np.append(np.linspace(0, 3, 400), 1 + np.geomspace(1e-8, 1, 50))
        best = min(value(eta) for eta in grid * steps[0])
        assert value(steps[0]) <= best + 1e-13 * abs(best)
        assert steps[0] > 0


@pytest.mark.parametrize("kind", ["binary", "multiclass", "uniform pairs"])
@pytest.mark.parametrize(("n", "start"), [(700, 1e-3), (700, 1e3), (9000, 1.0)])
def test_selection_equals_sorting_on_many_examples(kind, start, n):
    rng = new_rng(n)
    X = rng.standard_normal((n, 3))
    for lam, w_scale in [(1e-5, 0.1), (1e-2, 3.0)]:
        risk = make_risk(kind, X, rng, rng.integers(0, 3, n))
        search = descent(risk, w_scale * rng.standard_normal(risk.n_weights), lam)
        expected = by_sorting(risk, *search, lam)
        step = risk.line_search(*search, lam, start=start)
        assert step == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_selection_equals_sorting_where_all_examples_are_tied(kind):
    rng = new_rng(3)
    for _ in range(20):
        risk = make_risk(kind, rng.integers(-1, 2, (600, 2)).astype(float), rng)
        w, p = rng.integers(-2, 3, (2, risk.n_weights)).astype(float)
        search = risk.scores(w), risk.scores(p), w @ p, p @ p
        for lam in (1e-3, 0.25):
            expected = by_sorting(risk, *search, lam)
            step = risk.line_search(*search, lam)
            assert step == pytest.approx(expected, rel=1e-11, abs=1e-14)


def test_a_sample_that_misleads_changes_nothing():
    # The examples that the first guess is made from are unlike all others.
    n = 16 * 2048
    X = np.full((n, 1), 1e-3)
    X[::16] = 50.0
    risk = BinaryHinge(X, np.ones(n, dtype=int))
    Z, A = np.zeros((n, 1)), risk.scores(np.ones(1))
    for lam in (1e-8, 1e-3, 1.0):
        expected = by_sorting(risk, Z, A, 0.0, 1.0, lam)
        assert risk.line_search(Z, A, 0.0, 1.0, lam) == pytest.approx(expected, rel=1e-11)


def two(X, y, at, along):
    """A risk of two classes, and scores at a point and along a direction."""
    risk = BinaryHinge(np.array(X, dtype=float)[:, np.newaxis], y)
    return risk, risk.scores(np.array([at])), risk.scores(np.array([along]))


FLAT = np.zeros((2, 2))
SPECIAL = {
    "all breakpoints equal": (two([3] * 99, [1] * 99, 0.0, 1.0), (0, 1, 1e-3), 1 / 3),
    "the hinge is hit": (two([1, 7], [1, 1], 0.0, 1.0), (0, 1, 0.01), 1.0),
    "the first hinge is hit": (two([1, 7], [1, 1], 0.0, 1.0), (0, 1, 3.6), 1 / 7),
    # Φ falls until the first hinge at η = 3, is flat until the second at η = 5.
    "a flat optimum has its infimum": (two([1, 1], [1, 0], -4.0, 1.0), (0, 0, 1), 3.0),
    "an ascent direction gives no step": (two([1], [1], 0.0, -1.0), (0, 1, 1), 0.0),
    "a zero direction gives no step": (two([1], [1], 0.0, 0.0), (0, 0, 1), 0.0),
    "without curvature": (
        (MulticlassHinge(np.eye(2), [0, 1]), FLAT, FLAT), (-1, 0, 1), np.inf
    ),
    "up to a largest step": (
        (MulticlassHinge(np.eye(2), [0, 1]), FLAT, FLAT), (-1, 0, 1, 7.0), 7.0
    ),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("start", "search", "expected"), SPECIAL.values(), ids=SPECIAL)
def test_special_lines_have_the_step_that_is_known(start, search, expected, method):
    wp, pp, lam, *largest = map(float, search)
    assert method(*start, wp, pp, lam, *largest) == expected


@pytest.mark.parametrize("method", METHODS)
def test_neither_scales_nor_examples_of_weight_zero_change_the_step(method):
    rng = new_rng(0)
    X, y = rng.standard_normal((300, 3)), np.arange(300) % 3
    weights = np.r_[np.ones(150), np.zeros(150)]
    whole, half = MulticlassHinge(X, y, weights), MulticlassHinge(X[:150], y[:150])
    Z, A, wp, pp = descent(whole, rng.standard_normal(9), 0.1)
    step = method(whole, Z, A, wp, pp, 0.1)
    other = method(half, Z[:150], A[:150], wp, pp, 0.1)
    assert other == pytest.approx(step, rel=1e-12)
    for scale in (2.0**-60, 2.0**-20, 2.0**20, 2.0**60):
        scaled = method(whole, Z, scale * A, scale * wp, scale**2 * pp, 0.1)
        assert scaled * scale == pytest.approx(step, rel=1e-12)
    steps = []
    for scale in (2.0**-40, 1.0, 2.0**40):
        risk = MulticlassHinge(X, y, label_costs=scale * (1 - np.eye(3)))
        Z, A, wp, pp = descent(risk, scale * np.ones(9), 1 / scale)
        steps.append(method(risk, Z, A, wp, pp, 1 / scale) / scale)
    assert steps == pytest.approx([steps[1]] * 3, rel=1e-12)


def test_the_number_of_threads_changes_no_bit():
    rng = new_rng(0)
    X = rng.standard_normal((9000, 3))
    for kind in ("binary", "rescaled", "pairs"):
        risk = make_risk(kind, X, rng)
        search = descent(risk, rng.standard_normal(risk.n_weights), 1e-3)
        one = [method(risk, *search, 1e-3) for method in METHODS]
        risk.n_threads = 2
        assert [method(risk, *search, 1e-3) for method in METHODS] == one


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"largest": -1.0}, "largest must be >= 0; got -1.0"),
        ({"start": 0.0}, "start must be positive and finite; got 0.0"),
    ],
)
def test_bad_options_are_named(options, words):
    risk = BinaryHinge(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match=words):
        risk.line_search(np.zeros((2, 1)), np.ones((2, 1)), 0.0, 1.0, 1.0, **options)
