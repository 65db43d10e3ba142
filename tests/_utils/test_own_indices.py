"""What a fit reads as indices, nobody else can change; values are not copied."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm._utils.own_indices import is_writable, with_own_indices
from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.structures.validation import FeaturesWithScores


def matrix(kind=sparse.csr_array, index=np.int32):
    X = kind(np.where(new_rng(0).random((6, 5)) < 0.5, 1.5, 0.0))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_indices_are_copied_and_values_are_not(kind, index):
    X = matrix(kind, index)
    dense, own = X.toarray(), with_own_indices(X)
    assert type(own) is kind and own.has_canonical_format
    assert np.shares_memory(own.data, X.data)
    assert not (is_writable(own.indices) or is_writable(own.indptr))
    X.indices[:], X.indptr[1:] = 2**30, 2**30
    np.testing.assert_array_equal(own.toarray(), dense)
    with pytest.raises(ValueError, match="read-only"):
        own.indices[0] = 1
    assert with_own_indices(own).indices is own.indices


@pytest.mark.parametrize("change", ["unsorted", "twice"])
def test_what_others_might_tidy_up_in_place_is_copied_as_a_whole(change):
    X = sparse.csr_array(([1.0, 2.0, 4.0], [3, 0, 3], [0, 3]), shape=(1, 4))
    if change == "unsorted":
        X = sparse.csr_array(([1.0, 2.0], [3, 0], [0, 2]), shape=(1, 4))
    dense, own = X.toarray(), with_own_indices(X)
    assert not np.shares_memory(own.data, X.data)
    X.sum_duplicates()
    X.data[:] = 0.0
    np.testing.assert_array_equal(own.toarray(), dense)
    assert own.has_canonical_format and with_own_indices(own).data is own.data
    # Room for more entries is left out, and indices that are damaged are refused.
    X = sparse.csr_array(([1.0, 2.0, 7.0], [0, 3, 99], [0, 2]), shape=(1, 4))
    own = with_own_indices(X)
    assert own.nnz == len(own.data) == len(own.indices) == 2
    assert own.toarray().tolist() == [[1.0, 0.0, 0.0, 2.0]]
    X.indices[1] = 5
    with pytest.raises(ValueError, match=r"X.indices must .* in \[0, 4\); got 5"):
        with_own_indices(X)


def test_what_can_only_be_read_is_not_copied(tmp_path):
    X = matrix()
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / name, getattr(X, name))
    for mode in ("r", "c", "r+"):
        for name in ("data", "indices", "indptr"):
            setattr(X, name, np.load(tmp_path / f"{name}.npy", mmap_mode=mode))
        own = with_own_indices(X)
        assert np.shares_memory(own.indices, X.indices) == (mode == "r")
        assert np.shares_memory(own.indptr, X.indptr) == (mode == "r")
        assert np.shares_memory(own.data, X.data)


def test_views_are_as_writable_as_what_they_show():
    base = np.arange(4)
    view = base[1:]
    view.flags.writeable = False
    assert is_writable(base) and is_writable(view)
    base.flags.writeable = False
    assert not is_writable(view)
    assert not is_writable(np.frombuffer(bytes(8), dtype=np.int32))
    assert is_writable(np.frombuffer(bytearray(8), dtype=np.int32))
    closed = np.frombuffer(bytearray(8), dtype=np.int32)
    closed.flags.writeable = False
    assert is_writable(closed)


def test_parts_of_items_are_those_of_the_item():
    X, dense, edges = matrix(), np.ones((6, 2)), np.zeros((1, 2), dtype=int)
    split = with_own_indices(SplitMatrix([dense, X]))
    assert split.matrices[0] is dense and not is_writable(split.matrices[1].indices)
    features, kept, of_edges = with_own_indices((X, edges, X))
    assert kept is edges
    assert not (is_writable(features.indices) or is_writable(of_edges.indices))
    both = with_own_indices(FeaturesWithScores(X, dense))
    assert type(both) is FeaturesWithScores and both.scores is dense
    assert not is_writable(both.features.indices)
    for other in (dense, None, "text", {"a": 1}, [X]):
        assert with_own_indices(other) is other
