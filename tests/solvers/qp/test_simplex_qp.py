"""The quadratic program over the simplex by its definition, and bundles of planes."""

from itertools import combinations

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st

from sklearn_structsvm.solvers.qp._simplex_qp import SimplexQP
from sklearn_structsvm.solvers.qp.bundle import Bundle

KINDS = (
    "general", "low rank", "duplicates", "nearly duplicates", "ties", "scales", "zero",
    "far from the origin", "ill-conditioned",
)  # fmt: skip


def random_rows(kind, m, d, seed):
    """Rows of A, and b."""
    rng = new_rng(seed)
    A, b = rng.standard_normal((m, d)), 0.1 * rng.standard_normal(m)
    if kind == "low rank":
        A = A[:, :2] @ rng.standard_normal((min(d, 2), d))
    elif kind == "duplicates":
        A = A[rng.integers(m, size=m)]
        b = b.round(1)
    elif kind == "nearly duplicates":
        A = A[:1] + 10.0 ** -rng.integers(3, 16, size=(m, 1)) * A
        b *= 1e-6
    elif kind == "ties":
        A, b = rng.integers(-1, 2, size=(m, d)).astype(float), b.round(1)
    elif kind == "scales":
        A *= 10.0 ** rng.integers(-8, 8, size=(m, 1))
    elif kind == "zero":
        A *= 0.0
    elif kind == "far from the origin":
        A = 1e3 + 1e-2 * A
    elif kind == "ill-conditioned":
        A *= 10.0 ** -np.arange(0.0, d / 2, 0.5)
        b *= 1e-6
    return A, b


def grow(qp, A, b, solved=True):
    """Add all rows, solving after each of them or at the end."""
    for j in range(len(A)):
        qp.add_row(A[: j + 1] @ A[j], b[j])
        if solved:
            qp.solve()
    return qp.solve()


def assert_optimal(A, b, solution, rtol):
    """KKT: q = Gα - b is nowhere below αᵀq, relative to the sizes of its terms."""
    alpha, value, residual = solution
    assert alpha.min() >= 0.0
    assert alpha.sum() == pytest.approx(1.0, rel=1e-13)
    v = A.T @ alpha
    q = A @ v - b
    norms = np.linalg.norm(A, axis=1)
    size = alpha @ (norms * (alpha @ norms) + np.abs(b)) + 1e-300
    terms = size + norms * (alpha @ norms) + np.abs(b)
    assert (q - alpha @ q >= -rtol * terms).all()
    assert abs(value - (0.5 * v @ v - alpha @ b)) <= 1e-14 * size
    assert 0.0 <= residual <= rtol * terms.max()


def best_over_supports(A, b):
    """The least value, by the optimality conditions on each support."""
    G, best = A @ A.T, np.inf
    for size in range(1, len(b) + 1):
        for support in map(list, combinations(range(len(b)), size)):
            ones = np.ones((size, 1))
            system = np.block([[G[np.ix_(support, support)], ones], [ones.T, 0.0]])
            right = np.append(b[support], 1.0)
            alpha = np.linalg.lstsq(system, right, rcond=None)[0][:-1]
            if alpha.min() >= -1e-12 and abs(alpha.sum() - 1.0) < 1e-9:
                v = alpha @ A[support]
                best = min(best, 0.5 * v @ v - alpha @ b[support])
    return best


@given(
    st.sampled_from(["general", "low rank", "duplicates", "ties", "zero"]),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 10**6),
)
def test_the_value_is_the_least_over_all_supports(kind, m, d, seed):
    A, b = random_rows(kind, m, d, seed)
    solution = grow(SimplexQP(), A, b)
    assert_optimal(A, b, solution, 1e-14)
    assert solution[1] == pytest.approx(best_over_supports(A, b), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("solved", [True, False])
@pytest.mark.parametrize(("m", "d"), [(30, 3), (60, 40), (200, 10), (200, 150)])
@pytest.mark.parametrize("kind", KINDS)
def test_large_programs_are_solved_to_rounding(kind, m, d, solved):
    A, b = random_rows(kind, m, d, 0)
    for scaled in (b, 0.0 * b, 100.0 * b):
        qp = SimplexQP(capacity=2)
        assert_optimal(A, scaled, grow(qp, A, scaled, solved), 1e-14)
        assert qp.n_moves <= 10 * m


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_after_rows_were_removed(kind):
    rng = new_rng(0)
    A, b = random_rows(kind, 80, 12, 0)
    qp, at_hand = SimplexQP(), []
    for j in range(len(A)):
        at_hand.append(j)
        qp.add_row(A[at_hand] @ A[j], b[j])
        assert_optimal(A[at_hand], b[at_hand], qp.solve(), 1e-14)
        if j % 7 == 6:
            # With mass or without.
            out = rng.choice(len(at_hand), size=4, replace=False)
            qp.remove(out)
            at_hand = [k for place, k in enumerate(at_hand) if place not in out]
            assert qp.size == len(at_hand)


def test_the_last_solution_is_where_the_next_one_starts():
    A, b = random_rows("general", 200, 150, 0)
    qp = SimplexQP()
    alpha, value, _ = grow(qp, A, b)
    moves = qp.n_moves
    again = qp.solve()
    assert qp.n_moves == moves
    np.testing.assert_allclose(again[0], alpha, rtol=0, atol=1e-14)
    qp.add_row(np.append(A @ A[0], A[0] @ A[0]), b[0] - 1.0)
    assert qp.solve()[1] == pytest.approx(value, rel=1e-13)
    assert qp.n_moves == moves


def test_idle_counts_the_solutions_without_mass():
    qp = SimplexQP()
    for row, b in [([0.0], 1.0), ([0.0, 0.0], 0.0), ([0.0, 0.0, 0.0], 0.5)]:
        qp.add_row(row, b)
        qp.solve()
    np.testing.assert_array_equal(qp.idle, [0, 2, 1])
    qp.remove([0])
    np.testing.assert_array_equal(qp.solve()[0], [0.0, 1.0])
    np.testing.assert_array_equal(qp.idle, [3, 0])


def test_an_empty_program_and_bad_rows_are_refused():
    qp = SimplexQP()
    with pytest.raises(ValueError, match="empty: add_row comes before solve"):
        qp.solve()
    with pytest.raises(ValueError, match=r"gram_row must have shape \(1,\).*got \(2,\)"):
        qp.add_row([1.0, 2.0], 0.0)
    for row, b in [([np.nan], 0.0), ([1.0], np.inf)]:
        with pytest.raises(ValueError, match="gram_row and b must be finite"):
            qp.add_row(row, b)
    assert qp.size == 0


class Risk:
    """R(w) = mean |X w - y|, and the plane that touches it at w."""

    def __init__(self, n=30, d=4, seed=0):
        rng = new_rng(seed)
        self.X, self.y = rng.standard_normal((n, d)), rng.standard_normal(n)

    def __call__(self, w):
        return np.abs(self.X @ w - self.y).mean()

    def plane(self, w):
        sign = np.sign(self.X @ w - self.y) / len(self.y)
        return sign @ self.X, -sign @ self.y


def bundle_method(risk, lam, n_rounds, **options):
    """The bundle, and the dual and primal objective of each round."""
    bundle, values = Bundle(risk.X.shape[1], lam, **options), []
    for _ in range(n_rounds):
        w = bundle.weights
        primal = 0.5 * lam * w @ w + risk(w)
        values.append((bundle.dual_objective, primal))
        bundle.add(*risk.plane(w))
        bundle.solve()
    return bundle, np.array(values)


@pytest.mark.parametrize(
    ("lam", "n_rounds", "options", "most"),
    [(lam, 150, {}, np.inf) for lam in (1e-3, 0.1, 10.0)]
    + [(0.01, 600, {"max_idle": 5}, 20), (0.01, 600, {"max_planes": 8}, 8)],
)
def test_a_bundle_closes_the_gap_of_a_regularized_risk(lam, n_rounds, options, most):
    bundle, values = bundle_method(Risk(), lam, n_rounds, **options)
    w = bundle.weights
    assert len(bundle.offsets) <= most
    tol = 1e-10 if options else 1e-12
    assert values[:, 1].min() - bundle.dual_objective <= tol
    np.testing.assert_array_less(values[:-1, 0] - 1e-14, values[1:, 0])
    model = bundle.planes @ w + bundle.offsets
    assert bundle.slack == model.max()
    assert bundle.dual_objective == pytest.approx(
        0.5 * lam * w @ w + bundle.slack, rel=1e-12
    )
    combined = -bundle.alpha @ bundle.planes / lam
    np.testing.assert_allclose(w, combined, rtol=0.0, atol=1e-12 * abs(w).max())


@pytest.mark.parametrize(
    ("n_weights", "n"), [(0, 1000), (67_000, 1000), (2**18, 256), (10**7, 100)]
)
def test_a_bundle_has_room_for_as_many_planes_as_their_length_allows(n_weights, n):
    assert Bundle(n_weights, 1.0).max_planes == n


def test_merged_planes_lie_below_the_risk():
    risk = Risk(d=10)
    bundle, values = bundle_method(risk, 1e-4, 200, max_planes=2)
    np.testing.assert_array_less(values[:-1, 0] - 1e-14, values[1:, 0])
    for w in 10.0 * new_rng(1).standard_normal((50, 10)):
        assert (bundle.planes @ w + bundle.offsets).max() <= risk(w)


def test_a_bundle_that_was_not_solved_yet_makes_room():
    """Planes that came in after the last solution have no mass to be merged by."""
    rng = new_rng(2)
    bundle = Bundle(4, 0.1, max_planes=3)
    for plane, offset in zip(rng.normal(size=(8, 4)), rng.random(8), strict=True):
        bundle.add(plane, offset)
    bundle.solve()
    assert len(bundle.offsets) == 3
    assert np.isfinite(bundle.dual_objective)
