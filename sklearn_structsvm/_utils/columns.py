"""Statistics of columns of features, dense, CSR or split, without a copy."""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils._sizes import add_sizes, largest_size
from sklearn_structsvm._utils.pieces import mean_width, row_pieces, take_rows
from sklearn_structsvm._utils.split_matrix import SplitMatrix


def n_entries(X):
    """Number of stored entries of a matrix."""
    if isinstance(X, SplitMatrix):
        return sum(map(n_entries, X.matrices))
    return X.nnz if sparse.issparse(X) else X.size


def stored_values(X):
    """The stored entries of a matrix, as a list of arrays."""
    if isinstance(X, SplitMatrix):
        return [values for matrix in X.matrices for values in stored_values(matrix)]
    return [X.data if sparse.issparse(X) else X]


def largest_entry(*matrices):
    """The largest absolute value in matrices; 0.0 without any, NaN if there is one."""
    return largest_size([own for X in matrices for own in stored_values(X)])


def sum_of_squares(X):
    """Σ_v x_vj² for each column j, float64."""
    if isinstance(X, SplitMatrix):
        return np.concatenate(list(map(sum_of_squares, X.matrices)))
    squares = np.zeros(X.shape[1])
    for part in _pieces(X):
        part = part.astype(np.float64, copy=False)
        if sparse.issparse(part):
            squares += np.bincount(part.indices, part.data**2, minlength=X.shape[1])
        else:
            squares += np.einsum("vj,vj->j", part, part)
    return squares


def mean_sizes(matrices, weights):
    """Σ_i p_i Σ_v |x_ivj| for each column j of several matrices x_i, float64."""
    first = matrices[0]
    if isinstance(first, SplitMatrix):
        parts = zip(*(X.matrices for X in matrices), strict=True)
        return np.concatenate([mean_sizes(part, weights) for part in parts])
    sizes = np.zeros(first.shape[1])
    if not sparse.issparse(first):
        return add_sizes(list(matrices), np.asarray(weights, float), sizes)
    # Adding to all columns must not take longer than the entries that are added.
    places, values, n_waiting = [], [], 0
    for X, weight in zip(matrices, weights, strict=True):
        places.append(X.indices[: X.nnz])
        # NumPy 1 would leave the product with a number in float32.
        values.append(np.multiply(weight, np.abs(X.data[: X.nnz]), dtype=np.float64))
        n_waiting += X.nnz
        if n_waiting > len(sizes):
            _add_entries(places, values, sizes)
            places, values, n_waiting = [], [], 0
    if places:
        _add_entries(places, values, sizes)
    return sizes


def mean_sizes_of_rows(X, weights):
    """Σ_i p_i |x_ij| for each column j of a matrix, float64."""
    sizes = np.zeros(X.shape[1])
    for piece in row_pieces(X.shape[0], mean_width(X), least=X.shape[1]):
        part, p = take_rows(X, piece), weights[piece]
        if sparse.issparse(part):
            values = np.repeat(p, np.diff(part.indptr)) * np.abs(part.data)
            _add_entries([part.indices], [values], sizes)
        else:
            sizes += p @ np.abs(part)
    return sizes


def _add_entries(places, values, sums):
    places, values = np.concatenate(places), np.concatenate(values)
    sums += np.bincount(places, values, minlength=len(sums))


def transposed_product(X, B):
    """X' B."""
    if isinstance(X, SplitMatrix):
        return np.concatenate([transposed_product(part, B) for part in X.matrices])
    return X.T @ B


def _pieces(X):
    """The rows of a matrix in pieces."""
    # Adding the result of a piece to the columns must not take longer than the piece.
    pieces = row_pieces(X.shape[0], mean_width(X), least=X.shape[1])
    return (take_rows(X, piece) for piece in pieces)


def describe_columns(matrices):
    """Sizes, means and spreads of the columns of stacked matrices.

    `matrices` (iterable of arrays, CSR matrices and `SplitMatrix`): all have the same
    columns. Split ones are split in the same way. Returns three (d,), or None without
    any matrix: the root mean squares of the entries that are not zero; means and
    standard deviations of all.
    """
    n_rows, n_nonzero, totals, squares = 0, 0.0, 0.0, 0.0
    matrices = list(matrices)
    if matrices and isinstance(matrices[0], SplitMatrix):
        parts = zip(*(X.matrices for X in matrices), strict=True)
        described = zip(*map(describe_columns, parts), strict=True)
        return tuple(map(np.concatenate, described))
    for X in matrices:
        n_rows += X.shape[0]
        squares = squares + sum_of_squares(X)
        for part in _pieces(X):
            if sparse.issparse(part):
                n_nonzero = n_nonzero + np.bincount(part.indices, minlength=X.shape[1])
                sums = np.bincount(part.indices, part.data, minlength=X.shape[1])
            else:
                n_nonzero = n_nonzero + np.count_nonzero(part, axis=0)
                sums = part.sum(axis=0, dtype=np.float64)
            totals = totals + sums
    if n_rows == 0:
        return None
    means = totals / n_rows
    spreads = np.sqrt(np.maximum(squares / n_rows - means**2, 0.0))
    return np.sqrt(squares / np.maximum(n_nonzero, 1)), means, spreads
