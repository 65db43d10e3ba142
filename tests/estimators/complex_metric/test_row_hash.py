"""Numbers hashed from rows: functions of the row alone, and as good as drawn."""

import numpy as np
import pandas as pd
import pytest
from _references import messy_csr
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from sklearn_structsvm.estimators.complex_metric.row_hash import (
    RowHash,
    row_numbers,
    row_uniforms,
)

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def hash_by_loops(row, seed=0):
    total = 0
    with np.errstate(over="ignore"):
        row = np.asarray(row, dtype=np.float64).astype(np.float32)
    for j, value in enumerate(row):
        if value != 0.0:
            bits = int(np.array(value).view(np.uint32))
            total += mix(bits ^ mix((j + 1) * STEP & MASK))
    return (mix(total + (seed + 1) * STEP & MASK) >> 11) / 2**53


@given(st.lists(st.floats(allow_nan=False), max_size=8), st.integers(0, 2**64 - 1))
def test_it_is_what_integers_of_any_length_give(row, seed):
    X = np.array([row], dtype=np.float64).reshape(1, -1)
    assert row_uniforms(X, seed).tolist() == [hash_by_loops(row, seed)]


def some_rows(n=200, f=6):
    rng = new_rng(0)
    X = rng.standard_normal((n, f)).astype(np.float32)
    X[rng.random((n, f)) < 0.5] = 0.0
    return X


@pytest.mark.parametrize("form", [messy_csr, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_are_hashed_like_dense_ones_and_stay_as_they_are(form, dtype):
    X = some_rows().astype(dtype)
    given = form(X)
    before = given.data.copy(), given.indices.copy()
    np.testing.assert_array_equal(row_uniforms(given), row_uniforms(X))
    np.testing.assert_array_equal(before[0], given.data)
    np.testing.assert_array_equal(before[1], given.indices)


def test_values_belong_to_their_columns_of_which_no_int_may_know_the_number():
    wide = sparse.csr_array(([2.0], ([0], [2])), shape=(1, 2**33))
    assert wide.indices.dtype == np.int64
    assert row_uniforms(wide) == row_uniforms([[0.0, 0.0, 2.0]])
    far = sparse.csr_array(([2.0], ([0], [2**32 + 2])), shape=(1, 2**33))
    assert row_uniforms(far) != row_uniforms(wide)
    u = row_uniforms([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [2.0, 2.0], [0.0, 1.0], [1, 0]])
    assert len(np.unique(u)) == 6


def test_equal_numbers_are_hashed_alike_whatever_their_type():
    X = some_rows()
    np.testing.assert_array_equal(row_uniforms(X), row_uniforms(X.astype(np.float64)))
    whole = np.array([[0, 1, -3], [1, 0, 0]])
    expected = row_uniforms(whole.astype(np.float64))
    for other in (whole, whole.astype(np.int8), whole.tolist(), np.asfortranarray(whole)):
        np.testing.assert_array_equal(row_uniforms(other), expected)
    assert row_uniforms([[True, False]]) == row_uniforms([[1.0, 0.0]])
    assert row_uniforms([[-0.0, 1.0]]) == row_uniforms([[0.0, 1.0]])
    double = new_rng(5).standard_normal((50, 4)) * 10.0 ** np.arange(-40, 41, 25)[:4]
    with np.errstate(over="ignore"):
        single = double.astype(np.float32)
    np.testing.assert_array_equal(row_uniforms(double), row_uniforms(single))
    other_nan = np.array([[0x7FF8000000000001]], dtype=np.uint64).view(np.float64)
    assert row_uniforms(other_nan) == row_uniforms([[-np.nan]])


def grids():
    whole = np.indices((60, 60)).reshape(2, -1).T.astype(float)
    near = 1.0 + np.arange(4000)[:, None] * 2.0**-23
    return {
        "whole": whole,
        "one-hot": np.eye(2000),
        "near": near,
        "normal": new_rng(0).standard_normal((4000, 3)),
        "multiples": np.arange(4000)[:, None] * np.ones((1, 5)),
    }


@pytest.mark.parametrize("kind", grids())
def test_they_look_uniform_and_unrelated(kind):
    X = grids()[kind]
    for seed in (0, 1):
        u = row_uniforms(X, seed)
        assert ((u >= 0.0) & (u < 1.0)).all()
        assert len(np.unique(u)) == len(u)
        assert stats.kstest(u, "uniform").pvalue > 1e-3
        assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / np.sqrt(len(u))
    other = np.corrcoef(row_uniforms(X, 0), row_uniforms(X, 1))[0, 1]
    assert abs(other) < 4 / np.sqrt(len(X))


def test_each_bit_of_a_value_changes_each_bit_half_of_the_time():
    rng = new_rng(0)
    X = rng.random((500, 3)).astype(np.float32)
    before = (row_uniforms(X) * 2**53).astype(np.uint64)
    for bit in range(32):
        changed = X.copy()
        changed.view(np.uint32)[:, 1] ^= np.uint32(1 << bit)
        with np.errstate(invalid="ignore"):
            different = np.not_equal(changed[:, 1], X[:, 1]) & ~np.isnan(changed[:, 1])
        after = (row_uniforms(changed) * 2**53).astype(np.uint64)
        flips = (before ^ after)[different]
        shares = [((flips >> np.uint64(b)) & np.uint64(1)).mean() for b in range(53)]
        # Six standard deviations of a share of 500 fair flips.
        assert np.abs(np.array(shares) - 0.5).max() < 6 * 0.5 / np.sqrt(len(flips))


def test_rows_without_values_are_all_the_same():
    assert len(np.unique(row_uniforms(np.zeros((3, 4))))) == 1
    assert row_uniforms(np.empty((0, 4))).shape == (0,)
    assert (
        row_uniforms(np.empty((2, 0))).tolist() == row_uniforms(np.zeros((2, 4))).tolist()
    )


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        ([["a"]], TypeError, "must hold numbers"),
        (np.array([[1.0 + 1j]]), TypeError, "must hold numbers"),
        (np.array([[None]]), TypeError, "must hold numbers"),
        ([1.0, 2.0], ValueError, "2-D"),
        (np.ones((1, 1, 1)), ValueError, "2-D"),
    ],
)
def test_what_holds_no_rows_of_numbers_is_refused(X, error, words):
    with pytest.raises(error, match=words):
        row_uniforms(X)


def hashed(X, of_fit=None):
    return RowHash(X if of_fit is None else of_fit, 0).choices(X, len(X))


class TestRowsOfAnyKind:
    def test_strings_get_the_same_number_in_every_process(self):
        assert row_numbers(["a", "b"]).ravel().tolist() == [
            1662791411250143.0,
            4127500778895438.0,
        ]

    def test_numbers_among_other_values_stay_themselves(self):
        rows = [["a", 1], ["b", 2.5]]
        frame = row_numbers(pd.DataFrame(rows))
        assert frame[:, 1].tolist() == [1.0, 2.5]
        assert len({*frame[:, 0]}) == 2
        np.testing.assert_array_equal(row_numbers(rows), frame)
        np.testing.assert_array_equal(row_numbers(np.array(rows, dtype=object)), frame)

    def test_frames_and_arrays_of_the_same_values_agree(self):
        values = {"x": [1, 2, 3], "y": [0.5, 1.5, 2.5]}
        frame = pd.DataFrame(values)
        np.testing.assert_array_equal(hashed(frame), hashed(frame.to_numpy()))
        mixed = frame.assign(z=pd.Categorical(["a", "b", "a"]))
        expected = hashed(mixed)
        np.testing.assert_array_equal(hashed(mixed.to_numpy(dtype=object)), expected)
        np.testing.assert_array_equal(hashed(mixed.iloc[[2, 0]]), expected[[2, 0]])

    def test_sequences_and_dictionaries_have_numbers_too(self):
        ragged = [np.ones((2, 3)), np.ones((1, 3)), np.ones((2, 3))]
        first, second, third = hashed(ragged)
        assert first == third != second
        first, second = hashed([{"a": 1}, {"a": 2}])
        assert first != second

    def test_all_that_stands_for_a_missing_value_is_the_same(self):
        columns = [[None, 1], [np.nan, 1], [pd.NA, 1], [pd.NaT, 1]]
        found = [hashed(np.array([column], dtype=object))[0] for column in columns]
        assert len({*found}) == 1
        assert found[0] == row_uniforms([[np.nan, 1.0]])[0]


class TestColumnsOfFit:
    """A data frame's columns are those that `fit` saw, by name."""

    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [3.0, 3, 1], "c": ["x", "y", "x"]})

    def test_they_are_known_by_name_and_without_names_by_place(self):
        expected = hashed(self.frame)
        for same in (self.frame[list("cba")], self.frame.assign(d=9, e="z")):
            np.testing.assert_array_equal(hashed(same, self.frame), expected)
        assert (hashed(self.frame[list("bac")]) != expected).any()
        numbers = self.frame[["a", "b"]]
        renamed = numbers.rename(columns={"a": "z"})
        twice = numbers.set_axis(["a", "a"], axis=1)
        for X, of_fit in (
            (renamed, numbers), (twice, twice), (numbers, twice),
            (numbers.to_numpy(), numbers), (numbers, numbers.to_numpy()),
        ):  # fmt: skip
            np.testing.assert_array_equal(hashed(X, of_fit), hashed(numbers))
