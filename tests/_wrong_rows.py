"""Sparse rows as a hand may make them wrongly, such as with an index out of range."""

import numpy as np
from scipy import sparse

# Indices that a row of length d does not have, as functions of d.
NO_INDICES = {
    "one too many": lambda d: d,
    "the last one, from the end": lambda d: -1,
    "far before": lambda d: -5,
    "far behind": lambda d: 10**7,
    "the largest": lambda d: 2**31 - 1,
}


def row_of(d, indices, values=None):
    """A CSR row with these indices, none of which SciPy checks."""
    values = np.ones(len(indices)) if values is None else np.asarray(values)
    places = np.asarray(indices, dtype=np.int32)
    return sparse.csr_array((values, places, [0, len(places)]), shape=(1, d))


def with_index(layout, d, index):
    """A row or a column of length d, in a layout of SciPy, with one index changed."""
    of_column = layout.endswith("column")
    shape = (d, 1) if of_column else (1, d)
    matrix = sparse.csr_array(np.ones(shape)).asformat(layout.partition(" ")[0])
    name = "indices"
    if matrix.format == "coo":
        name = "row" if of_column else "col"
    getattr(matrix, name)[-1] = index
    return matrix


# Layouts in which one index is a place in the vector.
LAYOUTS = ("csr", "coo", "bsr", "csc column", "coo column")
