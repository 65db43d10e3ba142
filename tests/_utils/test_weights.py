"""One check of the weights of examples."""

import numpy as np
import pytest

from sklearn_structsvm._utils.weights import check_weights, total_weight


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        (None, [1.0, 1.0]),
        (0.5, [0.5, 0.5]),
        ([1, 0], [1.0, 0.0]),
        (np.array([True, False]), [1.0, 0.0]),
        (np.array([2, 3], dtype=object), [2.0, 3.0]),
    ],
)
def test_weights_are_numbers_none_or_one_for_all(given, weights):
    checked = check_weights(given, 2)
    assert (checked.dtype, checked.tolist()) == (np.float64, weights)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], r"must have shape \(2,\), one weight for each row; got \(1,\)"),
        (np.ones((2, 1)), r"got \(2, 1\)"),
        ([1.0, -1e-300], r"sample_weight\[1\] must be finite and >= 0; got -1e-300"),
        ([np.nan, 1.0], r"sample_weight\[0\] .* got nan"),
        (np.inf, r"sample_weight\[0\] .* got inf"),
        (["a", 1.0], "sample_weight must hold numbers: .*'a'"),
        ([1j, 1.0], "sample_weight must hold numbers: they are complex"),
        ([[1.0, 2.0], [3.0]], r"sample_weight\[0\] has the shape \(2,\)"),
        ([0, 0], "sample_weight must not be zero for every row"),
        ([1e308, 1e308], "The sum of sample_weight is too large"),
    ],
)
def test_what_are_no_weights_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        check_weights(given, 2, item="row")


def test_weights_of_a_part_may_all_be_zero():
    assert check_weights([0.0, 0.0], 2, may_vanish=True).tolist() == [0.0, 0.0]
    assert len(check_weights(None, 0, may_vanish=True)) == 0
    with pytest.raises(ValueError, match="There must be a sample"):
        check_weights(None, 0)


def test_a_total_is_positive_and_finite():
    assert total_weight(np.array([5e-324, 0.0])) == 5e-324
    with pytest.raises(ValueError, match="The sum of both is too large"):
        total_weight(np.array([np.inf]), "both")
