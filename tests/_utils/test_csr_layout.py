"""One scan of the indices of a CSR matrix, and matrices made without SciPy's checks."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_structsvm._utils._csr_layout import (
    are_sound,
    csr_layout,
    csr_layout_of_longs,
)
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.borders import as_canonical, check_sparse
from sklearn_structsvm._utils.pieces import csr_of_parts, take_rows
from tests._seeds import new_rng


def layout_by_definition(indices, indptr, n_entries, n_rows, n_columns):
    n_entries = min(n_entries, len(indices))
    if len(indptr) != n_rows + 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        return False, False
    if indptr[-1] > n_entries:
        return False, False
    used = indices[: indptr[-1]]
    if not ((used >= 0) & (used < n_columns)).all():
        return False, False
    rows = np.split(used, indptr[1:-1])
    return True, all((np.diff(row) > 0).all() for row in rows)


def test_the_layout_is_that_of_the_definition():
    rng = new_rng()
    found = []
    for _ in range(3000):
        n_rows, n_columns = rng.integers(0, 4), rng.integers(1, 5)
        sizes = rng.integers(0, 3, size=n_rows + 1)
        sizes[0] = rng.random() < 0.1
        indptr = np.cumsum(sizes).astype(np.intc)
        if rng.random() < 0.2:
            rng.shuffle(indptr)
        n_rows += rng.random() < 0.1
        size = indptr[-1] + rng.integers(-1, 2)
        indices = rng.integers(-1, n_columns + 1, size=max(size, 0)).astype(np.intc)
        if rng.random() < 0.7:
            np.clip(indices, 0, n_columns - 1, out=indices)
        given = indices, indptr, max(size + rng.integers(-1, 2), 0), n_rows, n_columns
        found.append(layout_by_definition(*given))
        assert csr_layout(*given) == found[-1]
        longs = indices.astype(np.int64), indptr.astype(np.int64), *given[2:]
        assert csr_layout_of_longs(*longs) == found[-1]
    assert set(found) == {(False, False), (True, False), (True, True)}


DAMAGE = {
    "NaN": lambda X: X.data.__setitem__(-1, np.nan),
    "infinity": lambda X: X.data.__setitem__(0, -np.inf),
    "a column beyond": lambda X: X.indices.__setitem__(-1, 4),
    "a negative column": lambda X: X.indices.__setitem__(0, -1),
    "starts that fall": lambda X: X.indptr.__setitem__(1, 9),
    "no last start": lambda X: setattr(X, "indptr", X.indptr[:-1]),
    "lost indices": lambda X: setattr(X, "indices", X.indices[:-1]),
    "lost values": lambda X: setattr(X, "data", X.data[:-1]),
    "values with gaps": lambda X: setattr(X, "data", np.repeat(X.data, 2)[::2]),
    "integers": lambda X: setattr(X, "data", X.data.astype(np.int64)),
    "halves": lambda X: setattr(X, "data", X.data.astype(np.float16)),
    "a list": lambda X: setattr(X, "data", X.data.tolist()),
    "long indices": lambda X: setattr(X, "indices", X.indices.astype(np.int64)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_matrices_are_sound_if_nothing_is_wrong_with_them(kind, dtype):
    rng = new_rng()
    dense = np.where(rng.random((5, 4)) < 0.5, rng.normal(size=(5, 4)), 0.0)
    dense[0, 0] = dense[-1, -1] = 1.0
    largest = np.finfo(dtype).max * np.sign(dense)
    good = [kind(x.astype(dtype)) for x in (dense, largest, 0.0 * dense)]
    assert are_sound(good, 4) and are_sound(good, None)
    assert not are_sound(good, 5) and not are_sound([good[0][:0]], 4)
    assert not are_sound([*good, good[0][:, :3]], None)
    assert not are_sound([kind((3, 0), dtype=dtype)], 0)
    for other in (dense, good[0].tocsc(), good[0].tocoo(), None, dense.tolist()):
        assert not are_sound([*good, other], 4)
        assert not are_sound([other, *good], None)
    for damage in DAMAGE.values():
        bad = good[0].copy()
        damage(bad)
        assert not are_sound([good[0], bad], 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_sound_if_nothing_is_wrong_with_them(dtype):
    rng = new_rng()
    array = rng.normal(size=(40, 3)).astype(dtype)
    largest = np.full_like(array, np.finfo(dtype).max)
    good = [array, largest, -largest[:1], array[7:9]]
    assert are_sound(good, 3) and are_sound(good, None) and not are_sound(good, 2)
    for value in (np.nan, np.inf, -np.inf):
        bad = array.copy()
        bad[rng.integers(40), rng.integers(3)] = value
        assert not are_sound([*good, bad], 3)
    others = [array[:0], array[:, :2], array.T, array[::2], array[0], array[None], None]
    others += [array.astype(t) for t in (np.float16, np.longdouble, int, object, ">f8")]
    others += [array.tolist(), np.asfortranarray(array), np.ma.array(array)]
    for other in others:
        assert not are_sound([*good, other], 3)
        # A first item of one axis has no second length.
        assert not are_sound([other, *good], None)
    # Values of another library are left to others.
    assert not are_sound(["ab", "cd"], None) and not are_sound([3.0], None)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_flag_of_other_indices_is_not_believed(dtype):
    X = sparse.csr_array(np.eye(3, 4))
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    assert X.has_canonical_format and as_canonical(X) is X
    X.indices, X.indptr = np.array([1, 1, 0], dtype), np.array([0, 3, 3, 3], dtype)
    assert X.has_canonical_format and not are_sound([X], 4)
    own = as_canonical(X)
    assert type(own) is type(X) and own.indices.dtype == dtype
    assert (own.indices.tolist(), own.data.tolist()) == ([0, 1], [1.0, 2.0])
    assert (X.indices.tolist(), X.data.tolist()) == ([1, 1, 0], [1.0] * 3)
    # 1 + (1 + 1)^2, as of a column that is there once.
    assert as_features(X).row_norms().tolist() == [5.0, 0.0, 0.0]
    X.indices[0] = 4
    with pytest.raises(ValueError, match=r"X.indices must be integers in \[0, 4\)"):
        check_sparse(X)


def test_room_for_more_entries_is_left_out_of_copies():
    parts = np.ones(5), np.array([2, 0, 2, 9, 9], np.intc), np.array([0, 3], np.intc)
    X = sparse.csr_array((1, 3))
    X.data, X.indices, X.indptr = parts
    assert as_canonical(X).toarray().tolist() == [[1.0, 0.0, 2.0]]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_rows_of_a_matrix_are_those_of_scipy(kind):
    X = kind(new_rng().integers(-1, 2, size=(7, 5)).astype(np.float32))
    rows = take_rows(X, slice(2, 5))
    assert type(rows) is kind and rows.dtype == X.dtype and rows.shape == (3, 5)
    assert rows.nnz == X[2:5].nnz and np.shares_memory(rows.data, X.data)
    np.testing.assert_array_equal(rows.toarray(), X[2:5].toarray())
    np.testing.assert_array_equal((rows + rows).toarray(), 2 * X[2:5].toarray())
    # One does not share its state with the next.
    assert rows.has_canonical_format
    parts = np.ones(2), np.zeros(2, np.intc), np.array([0, 2], np.intc)
    assert not csr_of_parts(kind, (1, 3), *parts).has_canonical_format


@pytest.mark.parametrize("dtype", [np.intc, np.int64])
def test_nothing_is_said_of_indices_and_values_between_the_places_of_numbers(dtype):
    def moved(array):
        room = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype)
        room[...] = array
        return room

    scan = csr_layout if dtype == np.intc else csr_layout_of_longs
    indices, indptr = np.array([0, 1], dtype=dtype), np.array([0, 2], dtype=dtype)
    assert scan(indices, indptr, 2, 1, 2) == (True, True)
    assert scan(moved(indices), indptr, 2, 1, 2) == (False, False)
    assert scan(indices, moved(indptr), 2, 1, 2) == (False, False)
    X = sparse.csr_array((np.ones(2), indices.astype(np.intc), indptr.astype(np.intc)))
    assert are_sound([X], 2)
    for part in ("data", "indices", "indptr"):
        other = X.copy()
        setattr(other, part, moved(getattr(X, part)))
        assert not are_sound([other], 2)
        check_sparse(other)
    assert not are_sound([moved(np.ones(2))[np.newaxis]], 2)
