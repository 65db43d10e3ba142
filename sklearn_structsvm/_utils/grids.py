"""Pixels and their neighbors."""

from typing import Literal

import numpy as np

from sklearn_structsvm._utils.borders import check_integer, check_sequence
from sklearn_structsvm._utils.mistakes import with_plain_calls


@with_plain_calls
def grid_edges(shape: tuple[int, int], connectivity: Literal[4, 8] = 4) -> np.ndarray:
    """Edges of a grid of pixels, numbered row by row.

    Read more in the :ref:`User Guide <guide-graphs>`.

    Parameters
    ----------
    shape : tuple of two ints
        Number of rows and columns.
    connectivity : {4, 8}, default=4
        Number of neighbors of a pixel. 8 includes diagonal neighbors.

    Returns
    -------
    ndarray of shape (n_edges, 2), dtype intp
        Edges from left to right and from top to bottom: first those within rows, then
        those within columns, then both diagonals.

    Examples
    --------
    >>> from sklearn_structsvm.structures import grid_edges
    >>> grid_edges((2, 2)).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    if connectivity not in (4, 8):
        raise ValueError(f"connectivity must be 4 or 8; got {connectivity!r}.")
    n_rows, n_columns = check_grid(shape)
    at = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    ends = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    if connectivity == 8:
        ends += [(at[:-1, :-1], at[1:, 1:]), (at[:-1, 1:], at[1:, :-1])]
    return np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in ends])


def check_grid(shape):
    """(rows, columns) of a grid; ValueError or TypeError if it has no pixels."""
    check_sequence("shape", shape, "(rows, columns)")
    if len(shape) != 2:
        raise ValueError(f"shape must be (rows, columns); got {shape!r}.")
    for name, size in zip(("rows", "columns"), shape, strict=True):
        check_integer(f"The number of {name} of shape", size, 1)
    return tuple(int(size) for size in shape)
