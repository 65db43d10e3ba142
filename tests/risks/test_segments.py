"""Maxima of lines are cut where they should be."""

import numpy as np
import pytest
from _risks import KINDS, exact_segments, make_risk
from _seeds import new_rng

from sklearn_structsvm.risks._segments import segment_lines


def check(a, b, lower, upper):
    starts, etas, active = segment_lines(a, b, lower, upper)
    assert starts[0] == 0
    assert starts[-1] == len(etas) == len(active)
    for i in range(len(a)):
        part = slice(starts[i], starts[i + 1])
        expected, slopes = exact_segments(a[i], b[i], lower, upper)
        np.testing.assert_allclose(etas[part], [float(e) for e in expected], rtol=1e-12)
        assert a[i][active[part]].tolist() == [float(s) for s in slopes]


@pytest.mark.parametrize("upper", [2.5, 6.0, np.inf])
@pytest.mark.parametrize("lower", [0.0, 0.75])
@pytest.mark.parametrize("r", [1, 2, 5, 30, 60, 200])
def test_random_lines(r, lower, upper):
    rng = new_rng(r)
    n = 60 if r < 10 else 300 // r
    check(rng.standard_normal((n, r)), rng.standard_normal((n, r)), lower, upper)


@pytest.mark.parametrize("upper", [2.5, np.inf])
@pytest.mark.parametrize("r", [5, 200])
def test_lines_whose_heights_are_no_numbers_leave_the_others_as_they_are(r, upper):
    a, b = new_rng(r).standard_normal((2, 4, r))
    starts, etas, active = segment_lines(a, b, 0.5, upper)
    mixed = np.stack([b, np.full((4, r), np.nan)], axis=2).reshape(4, -1)
    found = segment_lines(np.repeat(a, 2, axis=1), mixed, 0.5, upper)
    np.testing.assert_array_equal(found[0], starts)
    np.testing.assert_array_equal(found[1], etas)
    np.testing.assert_array_equal(found[2], 2 * active)


@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 1), (0, 3), (0, np.inf), (1, 3), (1, np.inf)]
)
@pytest.mark.parametrize("r", [2, 4, 8, 40, 200])
def test_integer_lines_with_ties_parallels_and_duplicates(r, lower, upper):
    rng = new_rng(r)
    n = 300 if r < 10 else 400 // r
    a = rng.integers(-3, 4, (n, r)).astype(float)
    check(a, rng.integers(-3, 4, (n, r)).astype(float), lower, upper)


def test_tangents_of_a_parabola_are_all_active():
    at = np.arange(40.0)
    starts, etas, active = segment_lines([2 * at], [-(at**2)])
    assert etas.tolist() == [0.0, *(at[1:] - 0.5)]
    assert active.tolist() == list(range(40))


def test_many_lines_through_one_point_leave_two():
    slopes = np.arange(-5.0, 6.0)
    starts, etas, active = segment_lines([slopes], [1.0 - 2.0 * slopes])
    assert etas.tolist() == [0.0, 2.0]
    assert slopes[active].tolist() == [-5.0, 5.0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("upper", [1.5, np.inf])
def test_losses_are_cut_where_their_lines_cross(kind, upper):
    rng = new_rng(0)
    risk = make_risk(kind, np.zeros((80, 1)), rng)
    for Z, A in [
        rng.standard_normal((2, 80, risk.n_scores)),
        rng.integers(-2, 3, (2, 80, risk.n_scores)).astype(float),
    ]:
        starts, etas, slopes = risk.hinge.segment(Z, A, 0.25, upper)
        for i, lines in enumerate(risk.listed):
            part = slice(starts[i], starts[i + 1])
            expected = exact_segments(
                [beta @ A[i] for _, beta in lines],
                [delta + beta @ Z[i] for delta, beta in lines],
                0.25,
                upper,
            )
            got = np.array([etas[part], slopes[part]])
            # Fractions see crossings of lines that differ by rounding only.
            keep = np.append(True, np.diff([float(s) for s in expected[1]]) > 1e-12)
            wanted = np.array(expected, dtype=float)[:, keep]
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_the_number_of_threads_changes_no_bit():
    a, b = new_rng(0).standard_normal((2, 500, 7))
    for one, two in zip(
        segment_lines(a, b), segment_lines(a, b, n_threads=2), strict=True
    ):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("a", "b", "bounds", "words"),
    [
        ([[1.0]], [[1.0, 2.0]], (0, 1), "same shape"),
        ([[1.0]], [[1.0]], (1, 1), "lower=1 and upper=1"),
        ([[]], [[]], (0, 1), "0 lines"),
    ],
)
def test_bad_input_is_named(a, b, bounds, words):
    with pytest.raises(ValueError, match=words):
        segment_lines(a, b, *bounds)
