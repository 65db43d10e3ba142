"""One flat array or CSR matrix, cut into one item per sequence."""

import numpy as np
from scipy import sparse


def split_rows(rows, lengths):
    """List of the consecutive blocks of ``lengths[i]`` rows (or labels) of ``rows``.

    Blocks of an array are views. Blocks of a CSR matrix are built from its arrays,
    which costs a fraction of slicing the matrix.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    if not sparse.issparse(rows):
        return [rows[start:stop] for start, stop in bounds]
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    blocks = []
    for start, stop in bounds:
        low, high = indptr[start], indptr[stop]
        block = sparse.csr_matrix(
            (data[low:high], indices[low:high], indptr[start : stop + 1] - low),
            shape=(stop - start, rows.shape[1]),
        )
        block.has_canonical_format = True  # as the callers' rows are: spares a scan
        blocks.append(block)
    return blocks
