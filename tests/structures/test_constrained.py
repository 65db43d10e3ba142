"""The constrained λ-oracle, against enumeration."""

from itertools import product

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_structsvm.structures._constrained import coordinate_path
from sklearn_structsvm.structures.constrained import constrained_argmax, in_angle


def point(theta, transition, costs, truth, y, parents=None):
    """h and g, by the routine that the oracle itself goes by."""
    y = np.asarray(y, dtype=np.intc)
    tree = () if parents is None else (np.asarray(parents),)
    margin, loss = coordinate_path(theta, transition, costs, truth, y, *tree)[
        :, -1
    ].tolist()
    return 1.0 + margin, loss


@st.composite
def problems(draw):
    """theta, transition, costs, truth: small integers with many ties, or reals."""
    T, K = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = new_rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        size = draw(st.integers(0, 3))
        theta = rng.integers(-size, size + 1, size=(T, K)).astype(float)
        transition = rng.integers(-size, size + 1, size=(K, K)).astype(float)
        costs = rng.integers(0, 3, size=(T, K)).astype(float)
    else:
        scale = 10.0 ** draw(st.integers(-3, 3))
        theta = scale * rng.normal(size=(T, K))
        transition = scale * rng.normal(size=(K, K))
        costs = rng.random((T, K))
    if draw(st.booleans()):
        costs = np.full((T, K), 1.0 / T)
    truth = rng.integers(K, size=T).astype(np.intc)
    costs[np.arange(T), truth] = 0.0
    return theta, draw(st.sampled_from([None, transition])), costs, truth


@st.composite
def forests(draw, T):
    """Parents before their children: any, stars, or paths."""
    kind = draw(st.sampled_from(["any", "star", "path"]))
    if kind == "any":
        parents = [draw(st.integers(-1, t - 1)) for t in range(T)]
    else:
        parents = [min(t - 1, 0) if kind == "star" else t - 1 for t in range(T)]
    return np.array(parents, dtype=np.intp)


@settings(max_examples=150)
@given(
    problems(), st.sampled_from([0.0, 1.0, 2.0, 0.37, 80.0]), st.booleans(),
    st.booleans(), st.data(),
)  # fmt: skip
def test_the_oracle_finds_what_enumeration_finds(
    problem, lam, strict_alpha, strict_beta, data
):
    theta, transition, costs, truth = problem
    T, K = theta.shape
    parents = data.draw(st.none() | forests(T), label="parents")
    above = np.arange(T) - 1 if parents is None else parents
    edges = np.zeros((K, K)) if transition is None else transition
    size = 1.0 + np.abs(theta).sum() + T * np.abs(edges).max()
    points = {}
    for y in product(range(K), repeat=T):
        h, g = points[y] = point(*problem, y, parents)
        margin = 1.0
        for t, p in enumerate(above):
            margin += theta[t, y[t]] - theta[t, truth[t]]
            margin += edges[y[p], y[t]] - edges[truth[p], truth[t]] if p >= 0 else 0.0
        assert abs(h - margin) <= 1e-14 * size
        assert g == pytest.approx(costs[range(T), y].sum(), rel=1e-14)
    # Rays through labelings, where strictness matters, and others.
    slopes = sorted({g / h for h, g in points.values() if h > 0})
    rays = st.sampled_from([*slopes, 0.0, 0.01, 0.3, 1.0, 7.0])
    beta, alpha = sorted([data.draw(rays), data.draw(rays | st.just(np.inf))])
    if beta == np.inf:
        beta = 0.0
    angle = (alpha, beta, strict_alpha, strict_beta)
    values = {y: h + lam * g for y, (h, g) in points.items() if in_angle(h, g, *angle)}
    found = constrained_argmax(*problem, lam, *angle, parents=parents)
    if not values:
        assert found is None
        return
    assert found.dtype == np.intc
    size = max(abs(h) + lam * g for h, g in points.values())
    assert values[tuple(found.tolist())] >= max(values.values()) - 1e-13 * size


@pytest.mark.parametrize(
    ("h", "g", "alpha", "beta", "strict_alpha", "strict_beta", "expected"),
    [
        # On the upper ray; 49 * (1 / 49) is not 1 in floating point.
        (49.0, 1.0, 1.0 / 49.0, 0.0, False, True, True),
        (49.0, 1.0, 1.0 / 49.0, 0.0, True, True, False),
        # On the lower ray.
        (49.0, 1.0, 1.0, 1.0 / 49.0, False, True, False),
        (49.0, 1.0, 1.0, 1.0 / 49.0, False, False, True),
        # On the g-axis, the ray of infinite slope, and behind it.
        (0.0, 1.0, np.inf, 0.0, False, True, True),
        (0.0, 1.0, np.inf, 0.0, True, True, False),
        (0.0, 1.0, 1e300, 0.0, False, True, False),
        (-1e-300, 1.0, np.inf, 0.0, False, True, False),
        (-1.0, 1.0, 3.0, 0.0, False, True, False),
        # On the h-axis, where the truth is.
        (1.0, 0.0, np.inf, 0.0, False, True, False),
        (1.0, 0.0, np.inf, 0.0, False, False, True),
        # The origin is on every ray.
        (0.0, 0.0, 2.0, 1.0, False, False, True),
        (0.0, 0.0, 2.0, 1.0, True, False, False),
        (0.0, 0.0, 2.0, 1.0, False, True, False),
    ],
)
def test_rays_belong_to_the_angle_unless_strict(
    h, g, alpha, beta, strict_alpha, strict_beta, expected
):
    assert in_angle(h, g, alpha, beta, strict_alpha, strict_beta) is expected


def full_binary_tree(depth, root=0, parent=-1):
    """Parents, all that is below a position right after it."""
    if depth == 0:
        return []
    left = full_binary_tree(depth - 1, root + 1, root)
    return [parent, *left, *full_binary_tree(depth - 1, root + 1 + len(left), root)]


@pytest.mark.parametrize(
    ("parents", "k"),
    [
        (None, 4),
        # The root's label still matters when its first tree is done, and others' do not.
        ([-1, 0, 1, 1, 0, 4, 4], 3),
    ],
    ids=["chain", "tree"],
)
def test_parts_that_are_merged_have_the_same_labelings_left(parents, k):
    # Small integers: prefixes often tie in both coordinates, with other labels.
    above = np.arange(5) if parents is None else np.array(parents[1:])
    T = len(above) + 1
    ys = np.array(list(product(range(k), repeat=T)))
    steps = np.arange(T)
    tree = {} if parents is None else {"parents": np.array(parents)}
    for seed in range(60):
        rng = new_rng(seed)
        theta = rng.integers(-2, 3, size=(T, k)).astype(float)
        transition = rng.integers(-2, 3, size=(k, k)).astype(float)
        truth = rng.integers(k, size=T)
        costs = np.ones((T, k))
        costs[steps, truth] = 0.0
        beta, alpha = np.sort(rng.uniform(0.2, 2.0, size=2))
        f = theta[steps, ys].sum(axis=1) + transition[ys[:, above], ys[:, 1:]].sum(axis=1)
        h = 1.0 + f - f[(ys == truth).all(axis=1)]
        g = costs[steps, ys].sum(axis=1)
        values = np.where((beta * h < g) & (g <= alpha * h), h + g, -np.inf)
        y = constrained_argmax(theta, transition, costs, truth, 1.0, alpha, beta, **tree)
        found = -np.inf if y is None else values[(ys == y).all(axis=1)].item()
        assert found == values.max()


# All of the labelings, 2**31 or 2**40, have h = 1, and T + 1 values of g.
@pytest.mark.parametrize(
    ("parents", "transition", "ray", "max_parts", "ones"),
    [
        (full_binary_tree(5), None, 0.5, 2000, 15),
        (full_binary_tree(5), np.zeros((2, 2)), 0.5, 2000, 15),
        (None, None, 0.46, 40**2, 18),
    ],
    ids=["tree without edges", "tree", "chain"],
)
def test_a_model_of_zeros_is_searched_in_few_parts(
    parents, transition, ray, max_parts, ones
):
    T = 40 if parents is None else 31
    costs = np.full((T, 2), 1.0 / T)
    costs[:, 0] = 0.0
    problem = (np.zeros((T, 2)), transition, costs, np.zeros(T, dtype=np.intc))
    options = {"parents": parents, "max_parts": max_parts}
    assert constrained_argmax(*problem, 1.0, ray, 0.1, **options).sum() == ones


@pytest.mark.parametrize(
    ("parents", "T", "k"),
    [(full_binary_tree(4), 15, 5), (None, 12, 6)],
    ids=["tree", "chain"],
)
def test_a_ray_between_real_valued_labelings_costs_few_parts(parents, T, k):
    # Some 10,000 and more of a chain without the multiplier. Of 12 questions 3 may stay
    # open after 400 parts: they are NP-hard.
    answers = 0
    for seed in range(6):
        rng = new_rng(seed)
        costs = rng.random((T, k))
        costs[:, 0] = 0.0
        theta, transition = rng.normal(size=(T, k)), rng.normal(size=(k, k))
        # The truth scores least, so that all others violate.
        theta[:, 0], transition[0, 0] = theta.min(axis=1), transition.min()
        problem = (theta, transition, costs, np.zeros(T, dtype=np.intc))
        top = constrained_argmax(*problem, 1.0, np.inf, 0.0, parents=parents)
        h, g = point(*problem, top, parents)
        for angle in [(4 * g / h, 2 * g / h), (g / h / 2, g / h / 4)]:
            try:
                y = constrained_argmax(
                    *problem, 1.0, *angle, parents=parents, max_parts=400
                )
            except RuntimeError:
                continue
            answers += 1
            assert y is None or in_angle(*point(*problem, y, parents), *angle)
    assert answers >= 9


def test_an_empty_set_is_found_without_listing_the_labelings():
    # Losses are whole numbers and h is 1: none lies between 0.2 and 0.8.
    T, K = 60, 5
    costs = np.ones((T, K))
    costs[:, 0] = 0.0
    chain = (np.zeros((T, K)), np.zeros((K, K)), costs, np.zeros(T, dtype=np.intc))
    assert constrained_argmax(*chain, 1.0, 0.8, 0.2, max_parts=5 * T * K) is None


def random_chain(T, K, scale):
    rng = new_rng(0)
    costs = np.full((T, K), 1.0 / T)
    costs[:, 0] = 0.0
    theta, transition = scale * rng.normal(size=(T, K)), rng.normal(size=(K, K))
    return theta, transition, costs, np.zeros(T, dtype=np.intc)


def test_rounding_loses_no_labeling_on_a_ray_that_has_no_other():
    chain = random_chain(8, 3, scale=1e3)
    rng = new_rng(1)
    searched = 0
    while searched < 20:
        y = rng.integers(3, size=8)
        h, g = point(*chain, y)
        if h > 0 and g > 0:
            angle = (g / h, g / h, False, False)
            assert constrained_argmax(*chain, 1.0, *angle).tolist() == y.tolist()
            searched += 1


def test_the_oracle_gives_up_where_it_is_told_to():
    # Which of the many labelings below a ray is the nearest is hard to tell.
    chain = random_chain(8, 26, scale=1.0)
    h, g = point(*chain, constrained_argmax(*chain, 1.0, np.inf, 0.0))
    with pytest.raises(RuntimeError, match=r"gave up .*max_parts=1\)"):
        constrained_argmax(*chain, 1.0, 3 * g / h, 2 * g / h, max_parts=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": -1.0}, "lam must be .* got -1.0"),
        ({"lam": np.inf}, "lam must be .* got inf"),
        ({"alpha": -0.5}, "alpha must be .* got -0.5"),
        ({"alpha": np.nan}, "alpha must be .* got nan"),
        ({"beta": np.inf}, "beta must be .* got inf"),
        ({"beta": -1.0}, "beta must be .* got -1.0"),
        ({"theta": np.zeros((2, 0))}, "theta must have shape"),
        ({"transition": np.zeros((2, 2))}, "transition must have shape"),
        ({"costs": np.zeros((3, 2))}, r"costs must have shape \(2, 3\); got \(3, 2\)"),
        ({"costs": np.full((2, 3), -1.0)}, "costs must be finite and not negative"),
        ({"costs": np.full((2, 3), np.nan)}, "costs must be finite and not negative"),
        ({"costs": np.ones((2, 3))}, "costs must be zero at the true labels"),
        ({"truth": [0]}, r"truth must have shape \(2,\); got \(1,\)"),
        ({"truth": [0, 3]}, r"truth must hold indices in \[0, 3\)"),
        ({"truth": [-1, 0]}, r"truth must hold indices in \[0, 3\)"),
        ({"parents": [-1]}, r"parents must be 2 integers; got int64 of shape \(1,\)"),
        ({"parents": [-1.0, 0.0]}, "parents must be 2 integers; got float64"),
        ({"parents": [-1, 1]}, "got the parent 1 for position 1"),
        ({"parents": [-2, 0]}, "got the parent -2 for position 0"),
    ],
)
def test_arguments_without_a_meaning_are_refused(change, message):
    arguments = {
        "theta": np.zeros((2, 3)), "transition": None, "costs": np.zeros((2, 3)),
        "truth": [0, 1], "lam": 1.0, "alpha": 2.0, "beta": 0.5,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        constrained_argmax(**(arguments | change))
