"""Bundles of planes whose features are not scaled, by exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.solvers.qp._simplex_qp import (
    SimplexQP,
    wide_combination,
    wide_products,
)
from sklearn_structsvm.solvers.qp.bundle import Bundle

SCALES = {
    "1 to 1e6": [1.0, 1e3, 1e6, 1.0],
    "1 to 1e9": [1.0, 1e3, 1e6, 1e9],
    "alike": [1.0, 1.0, 1.0, 1.0],
}


class RawHinge:
    """The mean hinge loss of two classes, of columns with a scale and an offset each."""

    def __init__(self, scales, offset, n=60):
        rng = new_rng(0)
        Z = rng.standard_normal((n, len(scales)))
        self.y = np.where(Z[:, 0] + Z[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
        self.X = (Z + offset) * scales

    def plane(self, w):
        short = (self.y * (self.X @ w) < 1.0) / len(self.y)
        return -(short * self.y) @ self.X, short.sum()


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def solve_exactly(M, right):
    """Gauss and Jordan."""
    rows = [[*row, value] for row, value in zip(M, right, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def exact_loss(bundle, alpha):
    """By how much D(α) may be below the best dual value, without rounding.

    The best value is at most P(w), of the w that is best over the support. Relative to
    the value, or to a thousandth of the offsets.
    """
    lam, b = Fraction(bundle.lam), [Fraction(v) for v in bundle.offsets]
    A = [[Fraction(v) for v in row] for row in bundle.planes]

    def weights(alpha):
        return [-dot(alpha, column) / lam for column in zip(*A, strict=True)]

    alpha = [a / sum(alpha) for a in alpha]
    w = weights(alpha)
    dual = dot(alpha, b) - lam / 2 * dot(w, w)
    support = [j for j, a in enumerate(alpha) if a]
    M = [[*(dot(A[i], A[j]) / lam for j in support), Fraction(1)] for i in support]
    M.append([Fraction(1)] * len(support) + [Fraction(0)])
    best = solve_exactly(M, [*(b[i] for i in support), Fraction(1)])
    shares = dict(zip(support, best[:-1], strict=True))
    w = weights([shares.get(j, Fraction(0)) for j in range(len(b))])
    primal = lam / 2 * dot(w, w) + max(dot(a, w) + c for a, c in zip(A, b, strict=True))
    size = max(abs(dual), Fraction(1e-3) * max(map(abs, b)))
    assert abs(dual - Fraction(bundle.dual_objective)) <= 1e-9 * size
    return float((primal - dual) / size)


def as_fractions(bundle):
    """α, and what rounding took from it, of which planes as long as 1e12 make a w."""
    return [Fraction(hi) + Fraction(lo) for hi, lo in bundle.qp.shares]


@pytest.mark.parametrize("lam", [1e-4, 1.0])
@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("scales", SCALES)
def test_the_best_point_is_found_whatever_the_scale_of_the_features(scales, offset, lam):
    risk, bundle = RawHinge(SCALES[scales], offset), Bundle(4, lam)
    for _ in range(10):
        bundle.add(*risk.plane(bundle.weights))
        bundle.solve()
        assert exact_loss(bundle, as_fractions(bundle)) <= 1e-9


def test_planes_that_are_nearly_parallel_are_told_apart():
    rng = new_rng(1)
    common = rng.standard_normal(6)
    for share in (1e-4, 1e-7, 1e-10):
        bundle = Bundle(6, 1e-3)
        for _ in range(9):
            size = 10.0 ** rng.uniform(0.0, 12.0)
            other = rng.standard_normal(6)
            bundle.add(size * (common + share * other), rng.uniform(0.0, 1.0))
            bundle.solve()
            assert exact_loss(bundle, as_fractions(bundle)) <= 1e-9


@pytest.mark.parametrize("scales", SCALES)
def test_a_dual_point_among_the_planes_changes_and_is_never_lost(scales):
    """Cutting planes beside a dual point, as block solvers keep them."""
    lam = 0.01
    risk, rng = RawHinge(SCALES[scales], 30.0), new_rng(2)
    bundle = Bundle(4, lam, max_idle=np.inf, max_planes=6)
    bundle.add(np.zeros(4), 0.0)
    w, loss, oldest = np.zeros(4), 0.0, 1
    best = 0.0
    for _ in range(16):
        plane, offset = risk.plane(w)
        if len(bundle.offsets) < 6:
            bundle.add(plane, offset)
        else:
            bundle.replace(oldest, plane, offset)
            oldest = oldest % 5 + 1
        bundle.replace(0, -lam * w, loss)
        bundle.solve()
        # Of products up to 1e22, twice the digits leave about 1e-10 of the gradient.
        assert exact_loss(bundle, as_fractions(bundle)) <= 1e-8
        assert bundle.dual_objective >= best - 1e-12 * abs(best)
        best = bundle.dual_objective
        w, loss = bundle.weights, float(bundle.alpha @ bundle.offsets)
        # And on, to a dual point with another loss and no more of the dual value.
        w, loss = w * rng.uniform(0.999, 1.0), loss * rng.uniform(0.999, 1.0)
        best = min(best, loss - 0.5 * lam * w @ w)
    assert len(bundle.offsets) == 6


def test_wide_products_and_combinations_are_right_to_twice_the_digits():
    rng = new_rng(3)
    rows = rng.standard_normal((5, 300)) * 10.0 ** rng.integers(-6, 6, size=300)
    for (hi, lo), row in zip(wide_products(rows, rows[0], 0.3), rows, strict=True):
        terms = [Fraction(a) * Fraction(b) for a, b in zip(row, rows[0], strict=True)]
        expected = sum(terms) / Fraction(0.3)
        size = sum(map(abs, terms)) / Fraction(0.3)
        assert abs(Fraction(hi) + Fraction(lo) - expected) <= Fraction(2.0**-98) * size
    shares = np.stack([rng.standard_normal(5), 1e-17 * rng.standard_normal(5)], axis=1)
    exact = [
        sum(
            (Fraction(a) + Fraction(b)) * Fraction(x)
            for (a, b), x in zip(shares, column, strict=True)
        )
        for column in rows.T
    ]
    np.testing.assert_array_equal(
        wide_combination(shares, rows), [float(value) for value in exact]
    )


def test_a_row_takes_the_place_of_another():
    rng = new_rng(4)
    A, b = rng.standard_normal((8, 5)), rng.uniform(size=8)
    qp, expected = SimplexQP(), SimplexQP()
    for j in range(8):
        qp.add_row(A[: j + 1] @ A[j], b[j])
    qp.solve()
    A[3], b[3] = rng.standard_normal(5), 0.5
    qp.replace_row(3, A @ A[3], b[3])
    for j in range(8):
        expected.add_row(A[: j + 1] @ A[j], b[j])
    assert qp.solve()[1] == pytest.approx(expected.solve()[1], rel=1e-12)
    with pytest.raises(IndexError, match="j must be from 0 to 7; got 8"):
        qp.replace_row(8, A @ A[3], 0.0)
    with pytest.raises(ValueError, match=r"gram_row must have shape \(8,\)"):
        qp.replace_row(0, A[:7] @ A[3], 0.0)
