"""A matrix whose columns are split into arrays and CSR matrices."""

from collections.abc import Sequence
from typing import Any, NoReturn, Self

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import as_array, as_csr, as_floats, check_sequence
from sklearn_structsvm._utils.pieces import take_rows


class SplitMatrix:
    """Arrays and CSR matrices beside one another, without copying them.

    It is the item :math:`X = [X_1, ..., X_m]` of shape
    :math:`(T, d_1 + ... + d_m)`, for dense columns, such as embeddings, beside sparse
    ones, such as attributes of words. As one CSR matrix the dense columns take twice the
    memory of float32, and more than twice the time.

    Read more in the :ref:`User Guide <guide-split-items>`.

    Parameters
    ----------
    matrices : sequence of arrays and sparse matrices of shape (T, d_j)
        The columns, from left to right. They may have different types, and d_j may be 0.
        They are stored as they are, except that a `SplitMatrix` among them is replaced by
        its matrices, sparse matrices that are not CSR with rising columns in each row
        are converted, and all else becomes arrays.

    Attributes
    ----------
    matrices : tuple of ndarrays and CSR matrices
        The columns, from left to right.
    shape : tuple (T, d)
        Numbers of rows and columns.
    dtype : dtype
        The type of the numbers, as one matrix would have it.

    Raises
    ------
    ValueError
        If there are no matrices, one is not 2-D, or their numbers of rows differ.

    See Also
    --------
    SequenceTransformer : Makes such items of tokens that have vectors.

    Notes
    -----
    Structures with features of nodes take these items: chains, trees and graphs. In one
    X, all items must be split in the same way. In `predict` this need not be the way of
    `fit`. The weights of the columns are in the order of the columns. A result is that of
    one matrix, up to rounding.

    ``X[start:stop]`` is a view of some rows, and ``X[places]`` a copy of rows at some
    places. ``X @ W`` is an array. Everything else needs `toarray` or `tocsr`.

    References
    ----------
    The name and the idea are those of the package ``tabmat``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.preprocessing import SplitMatrix
    >>> rng = np.random.default_rng(0)
    >>> y = [rng.integers(3, size=6) for _ in range(20)]
    >>> X = [
    ...     SplitMatrix([
    ...         rng.normal(size=(6, 8)).astype(np.float32),
    ...         sparse.csr_array((np.ones(6), labels, np.arange(7)), shape=(6, 1000)),
    ...     ])
    ...     for labels in y
    ... ]
    >>> X[0].shape
    (6, 1008)
    >>> CRFClassifier("chain", C=10.0, random_state=0).fit(X, y).score(X, y)
    1.0
    """

    ndim = 2
    # NumPy would take rows for items of a list, and leave products to its arrays.
    __iter__ = None
    __array_ufunc__ = None

    matrices: tuple[Any, ...]

    def __init__(self, matrices: Sequence[Any]) -> None:
        check_sequence("matrices", matrices, "a list of matrices", TypeError)
        found: list[Any] = []
        for j, matrix in enumerate(matrices):
            if isinstance(matrix, SplitMatrix):
                found += matrix.matrices
                continue
            if not sparse.issparse(matrix):
                matrix = as_array(f"matrices[{j}]", matrix)
                if matrix.dtype.kind not in "fiub":
                    matrix = as_floats(f"matrices[{j}]", matrix, *matrix.shape)
            if matrix.ndim != 2:
                raise ValueError(
                    f"matrices[{j}] must be 2-D; got shape {tuple(matrix.shape)}."
                )
            if sparse.issparse(matrix):
                matrix = as_csr(matrix, f"matrices[{j}]")
            found.append(matrix)
        if not found:
            raise ValueError("matrices is empty: at least one matrix is needed.")
        lengths = [matrix.shape[0] for matrix in found]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"matrices must have the same number of rows; got {lengths}."
            )
        self.matrices = tuple(found)

    @property
    def shape(self) -> tuple[int, int]:
        n_columns = sum(matrix.shape[1] for matrix in self.matrices)
        return self.matrices[0].shape[0], n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*(matrix.dtype for matrix in self.matrices))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Self:
        if isinstance(rows, slice) and rows.step in (None, 1):
            return type(self)([take_rows(matrix, rows) for matrix in self.matrices])
        if isinstance(rows, tuple) or (np.ndim(rows) != 1 and type(rows) is not slice):
            raise TypeError(
                "A SplitMatrix has rows by slices and by 1-D arrays only; for others use "
                ".tocsr() or .toarray()."
            )
        return type(self)([matrix[rows] for matrix in self.matrices])

    def __matmul__(self, W: Any) -> Any:
        ends = np.cumsum([matrix.shape[1] for matrix in self.matrices])
        parts = np.split(W, ends[:-1])
        return sum(X @ own for X, own in zip(self.matrices, parts, strict=True))

    def __mul__(self, factor: float) -> Self:
        return type(self)([matrix * factor for matrix in self.matrices])

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            "A SplitMatrix is not one array. For an array of all its columns, use "
            ".toarray(); as an item of X it is for chains, trees and graphs."
        )

    def __repr__(self) -> str:
        kinds = (
            f"{'CSR' if sparse.issparse(X) else 'array'} of {X.shape[1]} columns"
            for X in self.matrices
        )
        return f"<SplitMatrix of {len(self)} rows: {', '.join(kinds)}>"

    def toarray(self) -> np.ndarray:
        """All columns as one array, a copy."""
        return np.hstack(
            [X.toarray() if sparse.issparse(X) else X for X in self.matrices]
        )

    def tocsr(self) -> Any:
        """All columns as one CSR matrix, a copy."""
        return sparse.hstack([sparse.csr_array(X) for X in self.matrices], format="csr")
