"""Sensitive features as groups: columns of any type are encoded as 0 to m - 1."""

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._utils.borders import as_array
from sklearn_structsvm._utils.tables import (
    column_at,
    column_names,
    listed_names,
    places_by_name,
)


class Groups:
    """The groups that sensitive features divide the training examples into.

    With several columns, a group is a combination of values that occurs.

    Parameters
    ----------
    sensitive_features : array-like of shape (n,) or (n, n_columns), or data frame
        Strings, numbers, booleans or other hashable values; none missing.
    n_samples : int

    Attributes
    ----------
    codes : ndarray of shape (n,)
        The group of each example.
    names : list of length m
        Values, or tuples of values for several columns; sorted if possible.
    n_columns : int
    columns : list or None
        Names of the columns of a data frame.
    """

    def __init__(self, sensitive_features, n_samples):
        columns = _columns(sensitive_features, n_samples)
        self.n_columns = len(columns)
        self.columns = column_names(sensitive_features)
        names, codes = _combined(columns)
        order = _sorted_order(names)
        self.names = [names[i] for i in order]
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        self.codes = rank[codes]

    @property
    def array(self):
        """The names as an array of shape (m,), of tuples for several columns."""
        kinds = {type(name) for name in self.names}
        if len(kinds) == 1 and kinds <= {bool, int, float, str}:
            return np.array(self.names)
        result = np.empty(len(self.names), dtype=object)
        for i, name in enumerate(self.names):
            result[i] = name
        return result

    def forget_codes(self):
        """A copy without the training examples, for a fitted estimator to keep."""
        self.codes = None
        return self

    def encode(self, sensitive_features, n_samples):
        """Codes of other examples; ValueError for a group that was not in training.

        Columns of a data frame are known by their names, where training had names.
        """
        places = places_by_name(
            "sensitive_features",
            column_names(sensitive_features),
            self.columns,
            "The columns in fit were",
        )
        columns = _columns(sensitive_features, n_samples)
        if places is not None:
            columns = [columns[j] for j in places]
        if len(columns) != self.n_columns:
            raise ValueError(
                f"sensitive_features has {len(columns)} column(s), but had "
                f"{self.n_columns} in fit."
            )
        names, codes = _combined(columns)
        where = {name: code for code, name in enumerate(self.names)}
        unseen = [name for name in names if name not in where]
        if unseen:
            raise ValueError(
                f"sensitive_features contains {listed_names(unseen)}, which did not "
                f"occur in fit. The groups in fit were {listed_names(self.names)}."
            )
        return np.array([where[name] for name in names], dtype=np.intp)[codes]


def _columns(features, n_samples):
    """A list of arrays of shape (n_samples,)."""
    if sparse.issparse(features):
        raise TypeError("sensitive_features must be dense; got a sparse matrix.")
    if column_names(features) is not None:
        columns = [np.asarray(column_at(features, j)) for j in range(features.shape[1])]
    else:
        features = as_array("sensitive_features", features)
        if features.ndim not in (1, 2):
            raise ValueError(
                "sensitive_features must have one or two dimensions; got shape "
                f"{features.shape}."
            )
        columns = [features] if features.ndim == 1 else list(features.T)
    if not columns:
        raise ValueError("sensitive_features has no columns.")
    found = _num_samples(columns[0])
    if found != n_samples:
        raise ValueError(f"sensitive_features has {found} rows, but X has {n_samples}.")
    return columns


def _combined(columns):
    """Names of the combinations of values that occur, and the code of each row."""
    parts = [_factorized(column) for column in columns]
    if len(parts) == 1:
        return parts[0]
    joint = np.zeros(len(columns[0]), dtype=np.int64)
    for values, codes in parts:
        # Compact after each column, so that many columns do not overflow.
        _, joint = np.unique(joint * len(values) + codes, return_inverse=True)
    _, first, joint = np.unique(joint, return_index=True, return_inverse=True)
    names = [tuple(values[codes[i]] for values, codes in parts) for i in first]
    return names, joint


def _factorized(column):
    """Distinct values as Python scalars, and the code of each entry."""
    if column.dtype == object:
        where = {}
        try:
            codes = np.array([where.setdefault(v, len(where)) for v in column.tolist()])
        except TypeError as error:
            raise ValueError(f"sensitive_features holds no groups: {error}.") from error
        values = list(where)
    else:
        values, codes = np.unique(column, return_inverse=True)
        values = values.tolist()
    if any(is_missing(value) for value in values):
        raise ValueError(
            "sensitive_features has missing values. Assign those examples to a group of "
            "their own, or leave them out."
        )
    return values, codes.astype(np.intp)


def is_missing(value):
    """Whether a value is None, NaN, or the missing value of pandas."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # as pandas.NA says of its truth
        return True


def _sorted_order(names):
    indices = range(len(names))
    try:
        return sorted(indices, key=lambda i: names[i])
    except TypeError:
        return sorted(indices, key=lambda i: (str(type(names[i])), str(names[i])))
