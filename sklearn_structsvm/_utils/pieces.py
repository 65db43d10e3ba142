"""Large data in pieces, so that intermediate results take little memory."""

from scipy import sparse

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
    first, last = X.indptr[[start, stop]]
    # The constructor would check the arrays, and copy some of them.
    result = type(X)((stop - start, X.shape[1]), dtype=X.dtype)
    result.data, result.indices = X.data[first:last], X.indices[first:last]
    result.indptr = X.indptr[start : stop + 1] - first
    return result
