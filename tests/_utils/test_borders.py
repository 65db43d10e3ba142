"""What enters a kernel is refused where it does not fit, by its name."""

import re

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm._utils._matrix._products import as_products
from sklearn_structsvm._utils._matrix._rows import Rows
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.borders import (
    as_array,
    as_floats,
    check_choice,
    check_floats,
    check_indices,
    check_integer,
    check_sequence,
    check_shape,
    check_sparse,
    check_starts,
    refuse_masked,
)
from sklearn_structsvm._utils.split_matrix import SplitMatrix

FORMATS = ("csr", "csc", "coo", "bsr")


def some_matrix(layout="csr"):
    return sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])).asformat(layout)


def beyond_the_columns(layout, index):
    X = some_matrix(layout)
    if layout == "coo":
        X.col[-1] = index
    else:
        X.indices[-1] = index
    return X


@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1])
@pytest.mark.parametrize("layout", FORMATS)
def test_indices_beyond_the_columns_are_named(layout, index):
    for sound in (*FORMATS, "lil", "dok", "dia"):
        check_sparse(some_matrix(sound))
    message = rf"^Q\.(indices|coords\[1\]) must .* got {index}"
    with pytest.raises(ValueError, match=message):
        check_sparse(beyond_the_columns(layout, index), "Q")


@pytest.mark.parametrize(
    "indptr", [[0, 2, 4], [0, 3, 2], [1, 2, 3], [-1, 2, 3], [0, 3], [0, 1, 2, 3]], ids=str
)
@pytest.mark.parametrize("layout", ["csr", "bsr"])
def test_rows_that_begin_beyond_the_entries_are_refused(layout, indptr):
    X = some_matrix(layout)
    X.indptr = np.array(indptr)
    with pytest.raises(ValueError, match=r"^X\.indptr must"):
        check_sparse(X)


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_a_sparse_array_of_one_dimension_is_refused(layout):
    row = sparse.coo_array(np.ones(3)).asformat(layout)
    with pytest.raises(ValueError, match=r"^y must have shape \(n_rows, n_columns\)"):
        check_sparse(row, "y")


@pytest.mark.parametrize("value", [7, None, [1.0, 2.0]])
@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
def test_what_is_no_array_of_a_matrix_is_refused(layout, part, value):
    X = some_matrix(layout)
    setattr(X, part, value)
    words = f"^A.{part} must be an array; got {type(value).__name__}"
    with pytest.raises(ValueError, match=words):
        check_sparse(X, "A")


@pytest.mark.parametrize("wrap", [as_features, as_products, Rows])
def test_every_reader_of_sparse_rows_looks_first(wrap):
    X = some_matrix()
    X.data = X.data[:-1]
    with pytest.raises(ValueError, match=r"^X\.indptr must end at 2"):
        wrap(X)
    with pytest.raises(ValueError, match=r"X\.indices must be integers in \[0, 3\)"):
        wrap(beyond_the_columns("csr", 3))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, 2.0, 3.0], r"must have shape \(2,\); got \(3,\)"),
        ([[1.0, 2.0]], r"must have shape \(2,\); got \(1, 2\)"),
        ([1.0, np.nan], "must be finite; got nan"),
        (["1", "2"], "must hold numbers; got dtype <U1"),
        ([1j, 2.0], "must hold numbers; got dtype complex128"),
        (None, r"must have shape \(2,\)"),
        ([[1.0], [2.0, 3.0]], r"must be an array: coef_\[0\] is \[1.0\], and coef_\[1\]"),
        (np.array([{}, 1.0]), "must hold numbers: .*dict"),
        (np.array([10**400, 1.0]), "must hold numbers: int too large"),
        (np.array([None, 1.0]), "must be finite; got nan"),
    ],
)
def test_what_are_no_such_numbers_is_refused(values, words):
    with pytest.raises(ValueError, match=f"^coef_ {words}"):
        as_floats("coef_", values, 2)


def test_numbers_of_other_types_are_converted_and_attributes_are_not():
    for numbers in ([1, 2], np.array([1, 2.0], dtype=object)):
        assert as_floats("w", numbers, 2).dtype == np.float64
    check_floats("w", np.ones(2), 2)
    for attribute in (np.ones(2, dtype=np.float32), np.ones(4)[::2], [1.0, 2.0]):
        with pytest.raises(ValueError, match="w must be a C-contiguous array of float64"):
            check_floats("w", attribute, 2)


def test_integers_shapes_and_lengths_have_names_and_bounds():
    array = np.array([1.0, np.nan])
    assert as_floats("w", array, 2, finite=False) is array
    with pytest.raises(ValueError, match="shape"):
        as_floats("w", array, 3, finite=False)
    check_shape("w", np.ones((5, 2)), "n", 2)
    for other in (np.ones((5, 3)), np.ones(5), 1.0):
        with pytest.raises(ValueError, match=r"^w must have shape \(n, 2\); got \("):
            check_shape("w", other, "n", 2)
    for value in (True, 1.0, np.nan, "1", None, [1]):
        with pytest.raises(TypeError, match="^k must be an integer; got"):
            check_integer("k", value, 0)
    check_integer("k", np.int64(2), 2, 2)
    with pytest.raises(ValueError, match="^k must be at least 1; got 0"):
        check_integer("k", 0, 1)
    with pytest.raises(ValueError, match="^k must be from 1 to 3; got 4"):
        check_integer("k", 4, 1, 3)


@pytest.mark.parametrize("value", ["c", None, 1, np.array(["a", "b"]), np.ones(0), []])
def test_what_is_none_of_the_choices_is_named_with_them(value):
    with pytest.raises(ValueError, match="^method must be one of 'a', 'b'; got"):
        check_choice("method", value, ("a", "b"))


def test_indices_and_starts_are_checked_at_both_ends():
    check_indices("y", np.array([0, 4]), 5)
    check_indices("y", np.array([], dtype=np.intp), 0)
    for bad in ([0, 5], [-1, 0]):
        with pytest.raises(ValueError, match=r"y must be integers in \[0, 5\); got"):
            check_indices("y", np.array(bad), 5)
    with pytest.raises(ValueError, match="y must be integers; got dtype float64"):
        check_indices("y", np.array([0.5]), 5)
    check_starts("starts", np.array([0, 2, 2, 3]), 3, 3)
    for bad in ([0, 2, 1, 3], [1, 2, 2, 3], [0, 2, 2, 4]):
        with pytest.raises(ValueError, match="starts must rise from 0 to 3"):
            check_starts("starts", np.array(bad), 3, 3)
    with pytest.raises(ValueError, match="starts must be integers; got dtype float"):
        check_starts("starts", np.array([0.0, 2.0, 2.0, 3.0]), 3, 3)


@pytest.mark.parametrize(
    "bad",
    [
        3,
        "ab",
        b"ab",
        {"a": 1},
        {"a"},
        np.array(1.0),
        None,
        iter([]),
        some_matrix(),
        some_matrix("coo"),
        SplitMatrix([np.eye(2)]),
    ],
)
def test_what_is_no_list_is_no_sequence(bad):
    for good in ([], (), [1], np.zeros((0, 2)), np.array(["a"])):
        check_sequence("X", good, "a list of names")
    words = "^X must be a list of names; got "
    with pytest.raises(ValueError, match=words):
        check_sequence("X", bad, "a list of names")
    with pytest.raises(TypeError, match=words):
        check_sequence("X", bad, "a list of names", TypeError)


def test_an_entry_that_is_masked_is_named_and_no_other():
    rng = new_rng(0)
    values = np.ma.masked_array(rng.standard_normal((4, 3)), mask=np.zeros((4, 3)))
    assert as_array("w", values).shape == (4, 3)
    at = tuple(int(rng.integers(n)) for n in values.shape)
    values[at] = np.ma.masked
    words = f"is a masked array, and its entry {re.escape(str(list(at)))} is masked"
    for ask in (as_array, refuse_masked, lambda *args: as_floats(*args, 4, 3)):
        with pytest.raises(ValueError, match=f"^w {words}"):
            ask("w", values)
    with pytest.raises(ValueError, match=rf"^w\[1\] {words}"):
        as_array("w", [values.data, values])


def test_numbers_are_where_a_processor_reads_them_at_once():
    values = np.zeros(17, dtype=np.uint8)[1:].view(np.float64)
    assert not values.flags.aligned
    for finite in (False, True):
        assert as_floats("w", values, 2, finite=finite).flags.aligned
