"""What columns of features are like, dense or CSR, without a copy."""

import numpy as np
from scipy import sparse


def largest_entry(X):
    """The largest absolute value in a matrix; 0.0 without any."""
    values = X.data if sparse.issparse(X) else X
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def sum_of_squares(X, weights=None):
    """Σ_v p_v x_vj² for each column j, with p_v = 1 by default."""
    n_rows, n_columns = X.shape
    if weights is None:
        weights = np.ones(n_rows)
    if not sparse.issparse(X):
        return np.einsum("vj,vj,v->j", X, X, weights)
    shares = np.repeat(weights, np.diff(X.indptr))
    return np.bincount(X.indices, shares * X.data**2, minlength=n_columns)
