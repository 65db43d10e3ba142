"""Sets of labels as matrices with a column for each label."""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import as_array, as_csr, as_floats
from sklearn_structsvm._utils.labels import plain, refuse_missing


def as_indicator(y):
    """CSR of the labels of each row, of shape (n, L), and whether y was sparse.

    ValueError for another shape, and what is not 0 or 1.
    """
    if sparse.issparse(y):
        matrix = as_csr(y, "y")
        values = matrix.data
        refuse_missing(y, "y")
    else:
        refuse_lists(y)
        refuse_missing(y, "y")
        values = as_array("y", y)
        if values.ndim != 2:
            raise ValueError(
                "Unknown label type: y must be an indicator of shape (n_samples, "
                "n_labels), a column of 0 and 1 for each label; got shape "
                f"{values.shape}. For one label of each sample see "
                "ComplexMetricClassifier, for lists of labels scikit-learn's "
                "MultiLabelBinarizer."
            )
        if values.shape[1] == 0:
            raise ValueError("y must have one column per label; it has none.")
        if values.dtype.kind == "O":
            values = as_floats("y", values, *values.shape, finite=False)
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        raise ValueError("y must not contain NaN or infinity.")
    wrong = np.flatnonzero(~((values == 0) | (values == 1)).ravel())
    if len(wrong):
        raise ValueError(
            "Unknown label type: y must hold 0 and 1 only; got "
            f"{plain(values.ravel()[wrong[0]])!r}."
        )
    if not sparse.issparse(y):
        matrix = sparse.csr_array(values.astype(np.float64))
    matrix = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    matrix.eliminate_zeros()
    return matrix, sparse.issparse(y)


def refuse_lists(y):
    """ValueError if y holds lists or sets of the labels' names."""
    rows = y if isinstance(y, (list, tuple)) else ()
    kinds = set(map(type, rows))
    if not kinds.intersection((list, tuple, set, frozenset)):
        return
    are_names = kinds.intersection((set, frozenset)) or any(
        isinstance(label, str) for row in rows if isinstance(row, list) for label in row
    )
    if are_names or len({len(row) for row in rows if hasattr(row, "__len__")}) > 1:
        raise ValueError(
            f"y holds lists of labels, such as {rows[0]!r}. Make it an indicator, by "
            "sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)."
        )


def largest_of_rows(scores, k):
    """CSR of the k largest entries of each row, in falling order; ties by column.

    Of a sparse matrix only stored entries count, so that a row may have fewer.
    """
    if sparse.issparse(scores):
        matrix = as_csr(scores)
        columns, values = matrix.indices, matrix.data
        lengths = np.diff(matrix.indptr)
    else:
        n, n_columns = scores.shape
        if k < n_columns:
            # Of several that are tied with the k-th, which the partition leaves open.
            least = np.partition(scores, n_columns - k, axis=1)[:, n_columns - k]
            kept = ~(scores < least[:, None])
        else:
            kept = np.ones(scores.shape, dtype=bool)
        lengths = kept.sum(axis=1)
        columns, values = np.nonzero(kept)[1], scores[kept]
    rows = np.repeat(np.arange(len(lengths)), lengths)
    # NaN comes first, for others to find.
    order = np.lexsort((columns, np.where(np.isnan(values), -np.inf, -values), rows))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    # Entries stay in their rows, so places in `order` are places in the rows.
    order = order[np.arange(len(order)) - starts[rows] < k]
    starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, k))])
    shape = scores.shape
    return sparse.csr_array((values[order], columns[order], starts), shape=shape)
