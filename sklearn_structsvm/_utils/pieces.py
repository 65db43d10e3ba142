"""Large data in pieces, so that intermediate results take little memory."""

from functools import cache

import numpy as np
from scipy import sparse

# The largest index that CSR matrices store in 32 bits.
LARGEST_INDEX = np.iinfo(np.intc).max

# Number of entries of a piece, which may be converted to float64: this share of all
# entries, but from MIN_PIECE to MAX_PIECE. In smaller pieces the overhead of calls would
# dominate.
PIECE_SHARE = 1 / 40
MIN_PIECE, MAX_PIECE = 2**15, 2**19


def row_pieces(n_rows, width, least=0):
    """Slices of rows, each of which has about `width` entries.

    Only the last may have fewer than `least` entries.
    """
    room = max(least, min(max(PIECE_SHARE * n_rows * width, MIN_PIECE), MAX_PIECE))
    size = max(1, int(room // max(width, 1)))
    return [slice(start, start + size) for start in range(0, n_rows, size)]


def item_pieces(sizes, n_threads=1):
    """Slices of items with these numbers of entries; each has some for every thread."""
    # Threads wait for one another at the end of a piece.
    least = MIN_PIECE if n_threads == 1 else MAX_PIECE
    room = min(max(PIECE_SHARE * sum(sizes), least), MAX_PIECE) * n_threads
    ends, held = [0], 0
    for i, size in enumerate(sizes):
        if held + size > room and i - ends[-1] >= n_threads:
            ends.append(i)
            held = 0
        held += size
    ends.append(len(sizes))
    return [slice(*pair) for pair in zip(ends[:-1], ends[1:], strict=True)]


def mean_width(X):
    """Entries of a row of a matrix, dense or CSR."""
    n_rows, n_columns = X.shape
    return X.nnz / max(n_rows, 1) if sparse.issparse(X) else n_columns


def take_rows(X, piece):
    """Rows of a matrix, dense or CSR, as views: do not write to them."""
    if not sparse.issparse(X):
        return X[piece]
    start, stop, _ = piece.indices(X.shape[0])
    first, last = X.indptr[start], X.indptr[stop]
    return csr_of_parts(
        type(X),
        (stop - start, X.shape[1]),
        X.data[first:last],
        X.indices[first:last],
        X.indptr[start : stop + 1] - first,
    )


def csr_of_parts(kind, shape, data, indices, indptr, is_canonical=False):
    """A CSR matrix or array of these arrays, neither checked nor copied.

    SciPy's constructor does both, which for one short sequence takes as long as to
    label it. `is_canonical` says that the columns of each row are known to be sorted and
    without duplicates; otherwise SciPy looks when it needs to know.
    """
    result = kind.__new__(kind)
    parts = {"data": data, "indices": indices, "indptr": indptr}
    if is_canonical:
        parts |= {"_has_canonical_format": True, "_has_sorted_indices": True}
    vars(result).update(_blank(kind), _shape=shape, **parts)
    if result.shape != shape:
        # Another version of SciPy has its shape elsewhere.
        result = kind(shape, dtype=data.dtype)
        vars(result).update(parts)
    return result


@cache
def _blank(kind):
    return vars(kind((1, 1)))
