"""Ragged sequences of rows: checked item by item."""

import numpy as np
import pytest
from _references import messy_csr
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sklearn_structsvm._utils._matrix.features import stack_csr
from sklearn_structsvm.structures.validation import check_items, check_labels, starts_of

ITEMS = [np.ones((2, 3)), np.zeros((1, 3))]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 3))
def test_stacked_rows_are_those_of_the_items(lengths, n_features):
    rng = new_rng(sum(lengths))
    items = [rng.integers(-3, 3, size=(T, n_features)).astype(float) for T in lengths]
    rows = stack_csr([messy_csr(x, T) for x, T in zip(items, lengths, strict=True)])
    np.testing.assert_array_equal(starts_of(items), np.cumsum([0, *lengths]))
    np.testing.assert_array_equal(rows.toarray(), np.vstack(items))


def test_entries_beyond_the_last_row_are_none():
    items = [sparse.csr_array([[1.0, 0.0], [0.0, 2.0]]), sparse.csr_array([[3.0, 0.0]])]
    for item in items:
        item.data = np.append(item.data, [7.0, 7.0])
        item.indices = np.append(item.indices, [0, 0])
    expected = [[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]
    np.testing.assert_array_equal(stack_csr(items).toarray(), expected)


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        lambda x: x.tolist(),
        lambda x: x.astype(np.float32),
        lambda x: x.astype(int),
        lambda x: x.astype(object),
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=0)[::2],
        sparse.csr_matrix,
        sparse.coo_array,
        lambda x: sparse.csc_array(x).astype(np.float32),
    ],
)
def test_items_of_many_kinds_are_read_alike(convert):
    X = [np.array([[1.0, 0.0], [2.0, -3.0]]), np.array([[0.0, 4.0]])]
    items = check_items([convert(x) for x in X])
    rows = [x.toarray() if sparse.issparse(x) else x for x in items]
    np.testing.assert_array_equal(np.vstack(rows), np.vstack(X))


class Tensor:
    """An array of another library, as far as items are read."""

    def __init__(self, array, error=None):
        self.array, self.error = array, error
        self.shape, self.ndim = array.shape, array.ndim

    def __len__(self):
        return len(self.array)


class Converted(Tensor):
    def __array__(self, dtype=None, copy=None):
        if self.error is not None:
            raise self.error
        return self.array


class Exchanged(Tensor):
    def __dlpack__(self, **options):
        if self.error is not None:
            raise self.error
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", [Converted, Exchanged])
def test_tensors_are_read_where_they_lie(kind):
    X = [np.ones((2, 3), dtype=np.float32), np.zeros((1, 3), dtype=np.float32)]
    for item, array in zip(check_items([kind(x) for x in X]), X, strict=True):
        assert item.dtype == np.float32 and np.shares_memory(item, array)


@pytest.mark.parametrize("kind", [Converted, Exchanged])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Use tensor.detach().numpy() instead."),
        TypeError("Use Tensor.cpu() to copy the tensor to host memory first."),
        BufferError("Cannot export a buffer of this device."),
    ],
)
def test_tensors_that_cannot_be_read_are_refused_with_the_reason(kind, error):
    X = [np.ones((2, 3)), kind(np.ones((2, 3)), error)]
    with pytest.raises(ValueError, match=r"^X\[1\] must be an array.*" + str(error)[:10]):
        check_items(X)


def bad_item(value):
    return [*ITEMS, value]


@pytest.mark.parametrize(
    ("X", "message"),
    [([], "X is empty"),
     (7, "X must be a sequence.*int"),
     ("words", "X must be a sequence.*str"),
     (np.ones((4, 3)), r"got one \w+ of shape \(4, 3\)"),
     (sparse.csr_array(np.ones((4, 3))), r"got one \w+ of shape \(4, 3\)"),
     (bad_item(np.ones(3)), r"X\[2\] must be 2-D.*\(3,\)"),
     (bad_item(np.ones((1, 1, 3))), r"X\[2\] must be 2-D.*\(1, 1, 3\)"),
     (bad_item(np.ones((2, 4))), r"X\[2\] has 4 features.* 3 in X\[0\]"),
     (bad_item(np.array([[0, np.nan, 1]])), r"X\[2\] contains NaN.* nan"),
     (bad_item(np.array([[0, -np.inf, 1]])), r"X\[2\] contains NaN.* -inf"),
     (bad_item([[1, 2, "x"]]), r"X\[2\] must be"),
     (bad_item([[1, 2, 3], [1, 2]]), r"X\[2\] must be"),
     (bad_item([[1, 2, 3j]]), r"X\[2\] must be numeric.*complex"),
     (bad_item(sparse.csr_array((1, 3))), r"X\[0\] is dense and X\[2\] is not"),
     ([np.ones((2, 0))], r"X\[0\] has 0 features"),
     ([sparse.csr_array([[1.0, np.nan]])],
      r"X\[0\] contains NaN or infinity: the value nan")],
)  # fmt: skip
def test_an_item_that_cannot_be_used_is_named(X, message):
    with pytest.raises(ValueError, match=message):
        check_items(X)


def test_later_items_must_have_the_features_of_fit():
    with pytest.raises(ValueError, match=r"X\[0\] has 3 features.* 5 in fit"):
        check_items(ITEMS, n_features=5)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 1]], "same length; got 2 and 1"),
        ([[0, 1], [0, 1]], r"y\[1\] has 2 labels for the 1 positions of X\[1\]"),
        ([[0, 1], [[0]]], r"y\[1\] must be a 1-D.*\(1, 1\)"),
        ([[0, 1], 3], r"y\[1\] is 3, but must be a list of labels"),
        ([[0, 1], [0.5]], r"y\[1\] has floating-point labels, such as .*0.5"),
        ([[0, [1]], [0]], r"y\[0\] must be a 1-D"),
        ([np.array([0, None], dtype=object), [0]], r"y\[0\] has the label None"),
        ([np.array([0, 0.5], dtype=object), [0]], r"y\[0\] has the label 0.5"),
        (None, "y must be a sequence"),
    ],
)
def test_labels_that_do_not_fit_their_items_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        check_labels(y, ITEMS)


def test_labels_of_one_sequence_may_be_lists_arrays_or_tuples():
    labels = check_labels([("a", "b"), np.array(["c"], dtype=object)], ITEMS)
    np.testing.assert_array_equal(labels[0], ["a", "b"])
    np.testing.assert_array_equal(labels[1], ["c"])
