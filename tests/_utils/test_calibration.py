"""Thresholds of conformal prediction, by identities that hold for every set of scores."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm._utils.calibration import (
    Threshold,
    allowed_rank,
    error_level,
    smallest_calibration,
)

LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)


def scores_of(rng, n, ties):
    return rng.integers(4, size=n).astype(float) if ties else rng.standard_normal(n)


def test_levels_are_the_decimal_numbers_that_are_written():
    assert error_level(0.9) == Fraction(1, 10)
    # 0.1 * 10 in floats of 1 - 0.9 is less than 1.
    assert allowed_rank(0.9, 9) == 1
    assert [smallest_calibration(level) for level in LEVELS] == [1, 3, 4, 9, 19]


@pytest.mark.parametrize("level", LEVELS)
def test_the_smallest_number_is_the_first_with_a_finite_threshold(level):
    n = smallest_calibration(level)
    scores = new_rng().standard_normal(n)
    assert Threshold(level, [scores]).value == scores.max()
    assert Threshold(level, [scores[1:]]).value == np.inf


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_of_n_plus_one_scores_as_many_are_missed_as_the_rank_says(level, ties):
    """Whichever is the new one: the average over permutations is this count."""
    rng = new_rng()
    for n in (0, 3, 9, 20, 33):
        scores = scores_of(rng, n + 1, ties)
        missed = 0
        for new in range(n + 1):
            threshold = Threshold(level, [np.delete(scores, new)])
            missed += not threshold.includes([scores[[new]]])[0]
        allowed = floor(error_level(level) * (n + 1))
        assert missed <= allowed
        if not ties:
            assert missed == allowed


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_the_expected_share_of_missed_scores_is_at_most_that_allowed(level, ties):
    rng = new_rng()
    for n in (0, 3, 9, 25):
        examples = [scores_of(rng, rng.integers(5), ties) for _ in range(n + 1)]
        missed = 0.0
        for new, own in enumerate(examples):
            others = [other for i, other in enumerate(examples) if i != new]
            largest = np.array([max(other, default=-np.inf) for other in others])
            threshold = Threshold(level, [largest], others)
            if len(own):
                missed += 1.0 - threshold.includes([own]).mean()
        assert missed <= float(error_level(level) * (n + 1)) + 1e-9


@pytest.mark.parametrize("level", LEVELS)
def test_the_threshold_of_shares_is_the_smallest_that_is_safe(level):
    rng = new_rng()
    examples = [rng.integers(6, size=rng.integers(1, 4)) * 1.0 for _ in range(12)]
    largest = np.array([own.max() for own in examples])
    found = Threshold(level, [largest], examples).value

    def risk(q):
        return sum((own > q).mean() for own in examples) + 1.0

    bound = float(error_level(level) * 13)
    if bound < 1.0:
        assert found == np.inf
        return
    # Where the risk is the bound but for rounding, the threshold may be the next one.
    levels = (-np.inf, *np.arange(6.0))
    least, most = (
        min((q for q in levels if risk(q) <= bound + off), default=np.inf)
        for off in (1e-9, -1e-9)
    )
    assert least <= found <= most


def test_shares_of_one_score_each_are_the_probability():
    scores = new_rng().standard_normal(40)
    whole = Threshold(0.8, [scores])
    assert Threshold(0.8, [scores], list(scores[:, np.newaxis])).value == whole.value


@pytest.mark.parametrize("level", LEVELS)
def test_folds_count_the_larger_scores_of_each(level):
    rng = new_rng()
    folds = [scores_of(rng, n, True) for n in (5, 9, 1)]
    new = [scores_of(rng, 30, True) for _ in folds]
    found = Threshold(level, folds).includes(new)
    for i in range(30):
        n_larger = sum((own >= s[i]).sum() for own, s in zip(folds, new, strict=True))
        assert found[i] == (n_larger + 1 > error_level(level) * 16)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_left_out_one_by_one_fewer_than_twice_as_many_are_missed(level):
    """Theorem 1 of Barber et al. (2021), for any matrix of scores R[i, j].

    R[i, j] is the score of example i by a model that has seen neither i nor j.
    """
    rng = new_rng()
    for n in (4, 9, 30, 41):
        R = rng.standard_normal((n + 1, n + 1))
        missed = 0
        for i in range(n + 1):
            others = np.delete(np.arange(n + 1), i)
            threshold = Threshold(level, [R[[j], i] for j in others])
            missed += not threshold.includes([R[[i], j] for j in others])[0]
        assert missed <= max(2 * allowed_rank(level, n) - 1, 0)
