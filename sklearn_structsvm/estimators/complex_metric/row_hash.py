"""Numbers that look random, but are functions of their rows."""

import hashlib
from numbers import Real

import joblib
import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from sklearn_structsvm._utils.borders import as_csr, check_integer
from sklearn_structsvm._utils.tables import column_at, column_names, is_missing
from sklearn_structsvm.estimators.complex_metric._row_hash import hash_dense, hash_sparse


class RowHash:
    """Chooses a number in [0, 1) for each row from its values in the columns of `fit`.

    It is a function of the data in the row, not of their storage. Columns of a data frame
    are identified by name, so their order does not matter, nor do columns that `fit` did
    not see; numbers count as float32. Computed values are not used: probabilities depend
    on the precision and on the order of sums, and all rows in one leaf of a tree have the
    same ones and would get the same decision.

    `X` ({array-like, sparse matrix}): the X of `fit`, for the names of its columns.
    `seed`: not negative.
    """

    def __init__(self, X, seed):
        names = column_names(X)
        # Duplicate names do not distinguish columns.
        is_unique = names is not None and len(set(names)) == len(names)
        self.names = names if is_unique else None
        self.seed = seed

    def choices(self, X, n_samples, random_state=None):
        """The numbers of the rows of X, drawn from `random_state` if it is given."""
        if random_state is not None:
            return check_random_state(random_state).random_sample(n_samples)
        return row_uniforms(row_numbers(X, self.names), self.seed)


def row_uniforms(X, seed=0):
    """A number for each row of X that looks drawn from [0, 1) but is always the same.

    It makes a randomized classifier deterministic: equal rows get equal predictions in
    every batch and order, while over many different rows each part of the mixture is used
    in proportion to its weight (Cotter, Gupta and Narasimhan, 2019).

    `X` (n, n_features), also sparse: numbers. Numbers that are equal as float32 count
    as equal: a float64 and its float32 rounding, 0.0 and -0.0, dense and sparse zeros.
    All NaN are equal. `seed`: a non-negative seed. Different seeds give different
    numbers. Returns (n,), float64: a 64-bit hash of the row's values and their columns,
    as a multiple of 2⁻⁵³. TypeError if X does not hold numbers. ValueError if not 2-D.
    """
    check_integer("seed", seed, 0)
    if not sparse.issparse(X):
        X = np.require(_as_floats(np.asarray(X)), requirements="A")
        if X.ndim != 2:
            raise ValueError(f"X must be 2-D; got an array of shape {X.shape}.")
        out = np.empty(len(X))
        hash_dense(X, seed, out)
        return out
    if X.ndim != 2:
        raise ValueError(f"X must be 2-D; got a sparse array of shape {X.shape}.")
    X = as_csr(X)
    width = np.intc if X.indices.dtype.itemsize <= 4 else np.longlong
    out = np.empty(X.shape[0])
    hash_sparse(
        np.require(_as_floats(X.data), requirements="CA"),
        np.require(X.indices, width, "CA"),
        np.require(X.indptr, width, "CA"),
        seed,
        out,
    )
    return out


def row_numbers(X, names=None):
    """X as numbers that distinguish its rows, for the hash.

    Numbers do not change. Other values, such as strings, become numbers that are the same
    in every process. All missing values become NaN.

    `X` (data frame, array-like or sparse matrix). `names`: columns of a data frame, in
    the order to use. If it is None or lacks a name, all are used as they are.
    """
    if sparse.issparse(X):
        return X.tocsr()
    if column_names(X) is not None:
        return _numbers_of_frame(X, names)
    X = _as_table(X)
    if not _is_numeric(X):
        X = _numbers(X.ravel()).reshape(X.shape)
    return X.reshape(len(X), -1)


def _numbers_of_frame(X, names):
    where = {name: j for j, name in enumerate(column_names(X))}
    if names is not None and all(name in where for name in names):
        places = [where[name] for name in names]
    else:
        places = list(range(X.shape[1]))
    values = np.asarray(X)
    if _is_numeric(values):
        return values[:, places]
    return np.column_stack([_numbers(np.asarray(column_at(X, j))) for j in places])


def _as_table(X):
    try:
        array = np.asarray(X)
        if array.dtype.kind in "SU" and not hasattr(X, "dtype"):
            # In a list, numbers beside strings must stay numbers.
            array = np.asarray(X, dtype=object)
        return array
    except ValueError:  # rows of different lengths
        result = np.empty(len(X), dtype=object)
        for i, row in enumerate(X):
            result[i] = row
        return result


def _is_numeric(array):
    return array.dtype.kind in "fiub"


def _numbers(column):
    if _is_numeric(column):
        return column.astype(np.float64)
    return np.array([_number(value) for value in column.tolist()], dtype=np.float64)


def _number(value):
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, str):
        digest = hashlib.blake2b(value.encode(), digest_size=8).digest()
    elif np.ndim(value) == 0 and is_missing(value):
        return np.nan
    else:
        digest = bytes.fromhex(joblib.hash(value))[:8]
    # The 53 bits that a float holds exactly.
    return float(int.from_bytes(digest, "little") >> 11)


def _as_floats(values):
    """float32 as it is, other numbers as float64."""
    if values.dtype.kind not in "fiub":
        raise TypeError(f"X must hold numbers; got {values.dtype}.")
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)
