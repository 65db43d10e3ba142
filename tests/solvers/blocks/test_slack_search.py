"""The searches for the most violating labeling, against enumeration and the theorems."""

import numpy as np
import pytest
from _planes import Points, inequality, plane
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks.slack_search import (
    check_search,
    find_most_violating,
    served_searches,
)

SEARCHES = ["angular", "bisecting", "binary", "sarawagi"]


def random_points(rng, kind):
    m = rng.integers(1, 30)
    if kind == "integers":  # Ties, points on one ray, h <= 0, g = 0.
        return np.column_stack([rng.integers(-3, 6, m), rng.integers(0, 6, m)])
    if kind == "scales":
        return np.exp(rng.normal(0, 4, (m, 2)))
    if kind == "hyperbola":  # All nearly as good: what is hardest to tell apart.
        h = np.exp(rng.normal(0, 1, m))
        return np.column_stack([h, (1 + 0.01 * rng.random(m)) / h])
    return np.column_stack([1 + rng.normal(0, 1, m), 5 * rng.random(m)])


def largest(points):
    return max(0.0, float((points[:, 0] * points[:, 1]).max()))


def rounding(points):
    """Of products, where h is a sum in a structure of one's own."""
    return 2e-14 * points[:, 1].max()


KINDS = ["normal", "integers", "scales", "hyperbola"]


def n_positive(points, of_h=1e-12):
    """M of Theorem 2, of the labelings that a search can find: with h > 0 and g > 0."""
    return np.count_nonzero((points[:, 0] > -of_h) & (points[:, 1] > 0.0))


@pytest.mark.parametrize("kind", KINDS)
def test_angular_search_always_finds_the_largest_within_2m_plus_1_calls(kind):
    """Theorem 2; a decoder written from its inequality is asked one time more."""
    rng = new_rng(0)
    for _ in range(150):
        points = random_points(rng, kind)
        best, off = largest(points), rounding(points)
        oracle, w = plane(points)
        found = find_most_violating(oracle, 0, w, lam=np.exp(rng.normal(0, 2)))
        assert found.value == pytest.approx(best, rel=1e-10)
        assert found.bound == pytest.approx(best, rel=1e-9, abs=off)
        # M counts the true labeling as well.
        assert found.n_queries <= 2 * (len(points) + 1) + 1
        oracle, w = inequality(points, rng)
        found = find_most_violating(oracle, 0, w)
        assert found.value == pytest.approx(best, rel=1e-9, abs=off)
        assert found.bound == pytest.approx(best, rel=1e-9, abs=off)
        assert found.n_queries <= 2 * n_positive(points) + 2


@pytest.mark.parametrize("scale", [1e3, 1e6])
@pytest.mark.parametrize("kind", KINDS)
def test_where_h_is_rounded_coarsely_a_search_learns_it_in_a_few_calls(kind, scale):
    rng = new_rng(9)
    # What is left of h: some thousand times the rounding of one product.
    of_h = 1e-12 * scale
    n_queries = 0
    for _ in range(80):
        points = random_points(rng, kind)
        oracle, w = inequality(points, rng, scale)
        found = find_most_violating(oracle, 0, w)
        best, slack = largest(points), of_h * points[:, 1].max()
        limit = 2 * n_positive(points, of_h) + 2
        assert found.n_queries <= limit + np.log(scale / 1e-14) / np.log(16)
        assert best - slack <= found.value * (1 + 1e-9) <= best * (1 + 2e-9) + slack
        assert found.bound >= best * (1 - 1e-12) - slack
        n_queries += found.n_queries - limit
    # On the whole what is learned costs nothing.
    assert n_queries < 0


def test_margins_that_are_nothing_but_rounding_end_a_search_in_a_few_calls():
    rng = new_rng(11)
    for _ in range(100):
        m, scale = rng.integers(1, 6), 10.0 ** rng.uniform(0, 8)
        points = np.column_stack([np.zeros(m), rng.integers(0, 4, m)])
        oracle, w = inequality(points, rng, scale)
        found = find_most_violating(oracle, 0, w, trace=True)
        assert found.n_queries <= 15 and np.isfinite(found.trace["lam"]).all()
        assert 0.0 <= found.bound <= 1e-10 * scale


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_keeps_to_its_calls_and_no_labeling_exceeds_its_bound(kind, search):
    rng = new_rng(1)
    for make in (plane, lambda points: inequality(points, rng)):
        for limit in (1, 2, 3, 4, *rng.integers(1, 20, size=40)):
            points = random_points(rng, kind)
            oracle, w = make(points)
            best = largest(points)
            slack = 0.5 * best * rng.random()
            found = find_most_violating(
                oracle, 0, w, search=search, slack=slack, max_queries=int(limit)
            )
            assert found.n_queries <= limit
            off = 1e-12 * (1.0 + best) + rounding(points)
            assert found.value <= best + off and best - off <= found.bound
            if found.value > 0:
                assert found.value == pytest.approx(found.margin * found.loss)
            # All labelings have h <= H and g <= G, and what was asked tells one of them.
            most = np.maximum(points.max(axis=0), [1.0, 0.0])
            if search != "bisecting":
                assert found.bound <= most.prod() * (1 + 1e-9) + slack + off


@pytest.mark.parametrize("rtol", [0.3, 0.01, 1e-4])
def test_rtol_is_kept_and_saves_calls(rtol):
    rng = new_rng(2)
    calls = np.zeros(2)
    for _ in range(80):
        points = random_points(rng, "hyperbola")
        oracle, w = plane(points)
        rough = find_most_violating(oracle, 0, w, rtol=rtol)
        assert rough.value >= (1 - rtol) * largest(points) * (1 - 1e-12)
        assert rough.bound <= rough.value / (1 - rtol) * (1 + 1e-9)
        calls += rough.n_queries, find_most_violating(oracle, 0, w).n_queries
    assert calls[0] < calls[1] if rtol == 0.3 else calls[0] <= calls[1]


@pytest.mark.parametrize("kind", ["normal", "scales", "hyperbola"])
def test_theorem_4_bounds_the_ratio_after_every_call(kind):
    rng = new_rng(3)
    for _ in range(100):
        points = random_points(rng, kind)
        oracle, w = plane(points)
        lam = np.exp(rng.normal(0, 2))
        trace = find_most_violating(oracle, 0, w, lam=lam, trace=True).trace
        if not trace["found"].any():
            continue
        values = np.where(trace["found"], trace["margin"] * trace["loss"], 0.0)
        best_so_far = np.maximum.accumulate(values)
        product = lam * trace["loss"][0] / trace["margin"][0]
        capacity = max(product, 1 / product)
        t = np.arange(1, len(values) + 1)
        allowed = np.log(capacity) * 4 / (t + 1)
        ratio = np.log(largest(points)) - np.log(best_so_far)
        assert (ratio <= allowed + 1e-9).all()


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
def test_theorem_5_bounds_the_calls(epsilon):
    rng = new_rng(4)
    for _ in range(100):
        points = random_points(rng, "scales")
        oracle, w = plane(points)
        found = find_most_violating(oracle, 0, w, rtol=epsilon)
        most_h = max(1.0, points[:, 0].max())
        most_g = points[:, 1].max()
        # The first call, at λ = 0, gives H and the labeling that φ is taken from.
        at_zero = points[np.argmax(points[:, 0])]
        known = at_zero.prod() if at_zero[0] > 1.0 else 0.0
        if known > 0:
            allowed = 4 * np.log(most_g * most_h / known) / epsilon
            assert found.n_queries <= 1 + max(allowed, 1)


@pytest.mark.parametrize("search", ["bisecting", "binary", "sarawagi"])
def test_h_falls_and_g_rises_with_lambda(search):
    rng = new_rng(5)
    for _ in range(100):
        oracle, w = plane(random_points(rng, "normal"))
        trace = find_most_violating(oracle, 0, w, search=search, trace=True).trace
        order = np.argsort(trace["lam"])
        assert (np.diff(trace["margin"][order]) <= 1e-12).all()
        assert (np.diff(trace["loss"][order]) >= -1e-12).all()


def theorem_1(epsilon=1e-3, most_h=2.0, most_g=3.0):
    """The instance of Theorem 1; C is moved below the line AB, which settles the tie."""
    middle = 0.5 * (1 - epsilon) * np.array([most_h, most_g])
    return np.array([[epsilon, most_g], [most_h, epsilon], middle])


def test_theorem_1_only_angular_search_finds_the_middle():
    points = theorem_1()
    oracle, w = plane(points)
    for search in SEARCHES:
        found = find_most_violating(oracle, 0, w, search=search)
        if search == "angular":
            assert found.value == pytest.approx(largest(points))
        else:
            assert 0 < found.value < 0.01 * largest(points)
        # None pretends to have found it.
        assert found.bound >= largest(points) * (1 - 1e-12)


@pytest.mark.parametrize("search", ["bisecting", "binary"])
def test_searches_that_end_on_the_hull_find_its_best_corner(search):
    """On convex position points their answer is within a factor of 2 of the best."""
    rng = new_rng(6)
    for _ in range(80):
        angle = np.sort(rng.random(12)) * np.pi / 2
        points = np.column_stack([np.cos(angle), np.sin(angle)]) * [3.0, 2.0]
        oracle, w = plane(points)
        found = find_most_violating(oracle, 0, w, search=search)
        assert found.value >= 0.5 * largest(points)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    "points",
    [[[-1.0, 2.0]], [[1.0, 0.0]], [[0.0, 5.0]], [[-2.0, 1.0], [-1.0, 0.0]]],
    ids=["h<0", "g=0", "h=0", "two"],
)
def test_without_a_violation_the_true_labeling_is_the_answer(points, search):
    oracle, w = plane(points)
    found = find_most_violating(oracle, 0, w, search=search)
    assert (found.labels, found.value) == (0, 0.0)
    if search == "angular":
        assert found.bound == 0.0


def test_another_constant_in_h_is_a_scale_of_the_weights():
    rng = new_rng(7)
    for _ in range(100):
        points = random_points(rng, "normal")
        oracle, w = plane(points)
        one = np.exp(rng.normal())
        found = find_most_violating(oracle, 0, one * w, one=one)
        assert found.value == pytest.approx(one * largest(points))


def test_what_a_structure_cannot_serve_is_said():
    structure = Points(constrained=False).fit([np.ones((2, 2))], [0])
    table = np.array([[1.0, 0.0], [2.0, 1.0]])
    oracle = structure.fit([table], [0]).make_oracle([table], [0])
    assert served_searches(oracle) == ["bisecting", "binary", "sarawagi"]
    with pytest.raises(ValueError, match="constrained_decode.*'bisecting', 'binary'"):
        check_search(oracle, "angular", "Points")
    with pytest.raises(ValueError, match="'exact' needs a structure with slack"):
        find_most_violating(oracle, 0, np.ones(1), search="exact")
