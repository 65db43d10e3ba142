"""Statistics of columns of features, dense or CSR, without a copy."""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.pieces import mean_width, row_pieces, take_rows


def n_entries(X):
    """Number of stored entries of a matrix."""
    return X.nnz if sparse.issparse(X) else X.size


def largest_entry(X):
    """The largest absolute value in a matrix; 0.0 without any."""
    values = X.data if sparse.issparse(X) else X
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def sum_of_squares(X):
    """Σ_v x_vj² for each column j, float64."""
    squares = np.zeros(X.shape[1])
    for part in _pieces(X):
        part = part.astype(np.float64, copy=False)
        if sparse.issparse(part):
            squares += np.bincount(part.indices, part.data**2, minlength=X.shape[1])
        else:
            squares += np.einsum("vj,vj->j", part, part)
    return squares


def _pieces(X):
    """The rows of a matrix in pieces."""
    # Adding the result of a piece to the columns must not take longer than the piece.
    pieces = row_pieces(X.shape[0], mean_width(X), least=X.shape[1])
    return (take_rows(X, piece) for piece in pieces)


def describe_columns(matrices):
    """Sizes, means and spreads of the columns of stacked matrices.

    Parameters
    ----------
    matrices : iterable of arrays and CSR matrices
        All have the same columns.

    Returns
    -------
    tuple of three ndarrays of shape (d,), or None
        The root mean squares of the entries that are not zero; means and standard
        deviations of all. None without any matrix.
    """
    n_rows, n_nonzero, totals, squares = 0, 0.0, 0.0, 0.0
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
