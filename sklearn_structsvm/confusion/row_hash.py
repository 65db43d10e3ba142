"""Numbers that look random but are functions of the rows they belong to."""

import numpy as np
from scipy import sparse

from sklearn_structsvm.confusion._row_hash import hash_dense, hash_sparse


def row_uniforms(X, seed=0):
    """A number for each row of X that looks drawn from [0, 1) but is always the same.

    With it a randomised classifier predicts deterministically: equal rows get equal
    predictions, in whatever batch and order they come, while over many different rows
    each part of the mixture is used as often as its weight says (Cotter, Gupta and
    Narasimhan, 2019).

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, n_features)
        Numbers. Those that are equal as float64 count as equal: 0.0 and -0.0, a float32
        and its float64, dense and sparse zeros. All NaN are the same.
    seed : int
        Another one gives other numbers; not negative.

    Returns
    -------
    ndarray of shape (n,), float64
        A 64-bit hash of the row's values and their columns, as a multiple of 2⁻⁵³.

    Raises
    ------
    TypeError
        If X does not hold numbers.
    ValueError
        If X is not 2-D.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.confusion.row_hash import row_uniforms
    >>> u = row_uniforms([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> bool(u[0] == u[2]), bool(u[0] == u[1])
    (True, False)
    """
    if not sparse.issparse(X):
        X = _as_floats(np.asarray(X))
        if X.ndim != 2:
            raise ValueError(f"X must be 2-D; got an array of shape {X.shape}.")
        out = np.empty(len(X))
        hash_dense(X, seed, out)
        return out
    if X.ndim != 2:
        raise ValueError(f"X must be 2-D; got a sparse array of shape {X.shape}.")
    X = sparse.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    width = np.intc if X.indices.dtype.itemsize <= 4 else np.longlong
    out = np.empty(X.shape[0])
    hash_sparse(
        np.ascontiguousarray(_as_floats(X.data)),
        np.ascontiguousarray(X.indices, dtype=width),
        np.ascontiguousarray(X.indptr, dtype=width),
        seed,
        out,
    )
    return out


def _as_floats(values):
    """float32 as it is, other numbers as float64."""
    if values.dtype.kind not in "fiub":
        raise TypeError(f"X must hold numbers; got {values.dtype}.")
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)
