"""Sensitive features as groups: columns of any type are encoded as 0 to m - 1."""

from copy import copy

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._utils.borders import (
    as_array,
    as_tuple,
    check_integer,
    check_sequence,
)
from sklearn_structsvm._utils.tables import (
    column_at,
    column_names,
    is_missing,
    listed_names,
    places_by_name,
)

# What groups that are too small are called together.
POOL = "other"


class Groups:
    """The groups that sensitive features divide the training examples into.

    With several columns, a group is a combination of values that occurs.

    `sensitive_features` (n,) or (n, n_columns), or data frame: strings, numbers,
    booleans or other hashable values; none missing.

    Attributes: `codes` (n,): the group of each example. `names` (list of length m):
    values, or tuples of values for several columns; sorted if possible. `columns` or
    None: names of the columns of a data frame. `pooled` (list of (name, size, code)):
    the groups in the data that `pool` merged into others, with their numbers of
    examples and the codes of the groups that they are part of. `pooled_values` (list of
    list): by column, the values that `pool` merged.
    """

    pooled = ()
    pooled_values = ()

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

    def pool(self, min_size, used, kept=(), combined=True):
        """Merge groups of fewer than `min_size` examples into groups named `POOL`.

        First such values are merged in each column. Then such combinations of several
        columns are merged, in all columns but those of `kept`.

        `used` (n,) bool: the examples that count. `kept` (sequence of column names or
        indices): columns whose values are counted by themselves. `combined`: whether
        combinations are counted, too. ValueError if no group is large enough, or if a
        combination has to be merged and all columns are kept.
        """
        sizes = np.bincount(self.codes[used], minlength=len(self.names)).tolist()
        rows = self._rows(self.names)
        values = [_sums(column, sizes) for column in zip(*rows, strict=True)]
        self.pooled_values = [
            [value for value, size in found.items() if size < min_size]
            for found in values
        ]
        for j, (found, small) in enumerate(zip(values, self.pooled_values, strict=True)):
            if len(small) == len(found):
                raise ValueError(self._all_small(min_size, max(found.values()), j))
        rows = self._with_pooled_values(rows)
        if self.n_columns > 1:
            rows = self._with_pooled_rows(rows, sizes, min_size, kept, combined)
        found = list(dict.fromkeys(rows))
        # Last, because its name cannot be compared with numbers.
        rest = [row for row in found if POOL not in row]
        pools = [row for row in found if POOL in row]
        found = [part[i] for part in (rest, pools) for i in _sorted_order(part)]
        where = {row: code for code, row in enumerate(found)}
        places = [where[row] for row in rows]
        before = self._rows(self.names)
        self.pooled = [
            (name, size, code)
            for name, size, code, old in zip(
                self.names, sizes, places, before, strict=True
            )
            if old != found[code]
        ]
        self.names = [row if self.n_columns > 1 else row[0] for row in found]
        self.codes = np.array(places, dtype=np.intp)[self.codes]

    def sizes(self, codes, feature=None):
        """The numbers of rows of the groups that occur, or of the values of a column.

        `codes` (n,). `feature` (str, int or None): a column, by its name or index.
        """
        sizes = np.bincount(codes, minlength=len(self.names)).tolist()
        keys = range(len(sizes))
        if feature is not None and self.n_columns > 1:
            named = feature in (self.columns or ())
            place = self.columns.index(feature) if named else feature
            if place in range(self.n_columns):
                keys = [row[place] for row in self.names]
        return [size for size in _sums(keys, sizes).values() if size]

    def _rows(self, names):
        """The values of groups, one for each column."""
        return list(names) if self.n_columns > 1 else [(name,) for name in names]

    def _with_pooled_values(self, rows):
        small = [set(values) for values in self.pooled_values]
        return [
            tuple(POOL if v in few else v for v, few in zip(row, small, strict=True))
            for row in rows
        ]

    def _with_pooled_rows(self, rows, sizes, min_size, kept, combined):
        """Combinations of values, of which the small ones are merged."""
        total = _sums(rows, sizes)
        is_small = {row: size < min_size for row, size in total.items()}
        columns = self.columns or range(self.n_columns)
        is_kept = [j in kept or column in kept for j, column in enumerate(columns)]
        if all(is_kept):
            if combined and any(is_small.values()):
                raise ValueError(
                    f"Combinations of fewer than min_group_size={min_size} examples, "
                    f"such as {min(total, key=total.get)!r}, cannot be pooled: there are "
                    "constraints on each feature, and others on their combinations. "
                    "Leave out the latter, or pass coarser sensitive_features."
                )
            return rows
        if all(is_small.values()) and not any(is_kept):
            raise ValueError(self._all_small(min_size, max(total.values())))
        return [
            tuple(
                value if keep else POOL for value, keep in zip(row, is_kept, strict=True)
            )
            if is_small[row]
            else row
            for row in rows
        ]

    def _all_small(self, min_size, largest, j=None):
        """The message that nothing is left."""
        of = "sensitive_features"
        if j is not None and self.n_columns > 1:
            of = f"column {(self.columns or range(self.n_columns))[j]!r} of {of}"
        return (
            f"All groups of {of} have fewer than min_group_size={min_size} examples; the "
            f"largest one has {largest}. Use a smaller min_group_size or coarser groups."
        )

    def known(self):
        """(name, code) of each group that other examples may be of."""
        names = [(name, code) for code, name in enumerate(self.names)]
        return names + [(name, code) for name, _, code in self.pooled]

    def of(self, sensitive_features, n_samples):
        """The same groups with the codes of other examples."""
        found = copy(self)
        found.codes = self.encode(sensitive_features, n_samples)
        return found

    def forget_codes(self):
        """A copy without the training examples, for a fitted estimator to keep."""
        self.codes = None
        return self

    def check(self):
        """ValueError if the state was changed after the fit and is inconsistent."""
        check_integer("groups.n_columns", self.n_columns, 1)
        check_sequence("groups.names", self.names, "a list")
        if self.columns is not None:
            as_tuple("groups.columns", self.columns, self.n_columns)
        check_sequence("groups.pooled", self.pooled, "a list")
        for i, own in enumerate(self.pooled):
            as_tuple(f"groups.pooled[{i}]", own, 3)
        if self.pooled:
            as_tuple("groups.pooled_values", self.pooled_values, self.n_columns)
            for j, own in enumerate(self.pooled_values):
                check_sequence(f"groups.pooled_values[{j}]", own, "a list")
        merged = [value for own in self.pooled_values for value in own]
        try:
            hash((*self.names, *merged, *(name for name, _, _ in self.pooled)))
        except TypeError as error:
            raise ValueError(f"groups.names must hold names: {error}.") from error

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
        where = dict(self.known())
        if self.pooled and self.n_columns > 1:
            # A combination may be new where its values, once pooled, are not.
            others, _, places = zip(*self.pooled, strict=True)
            by_values = where | dict(
                zip(self._with_pooled_values(others), places, strict=True)
            )
            for name, pooled in zip(names, self._with_pooled_values(names), strict=True):
                if name not in where and pooled in by_values:
                    where[name] = by_values[pooled]
        unseen = [name for name in names if name not in where]
        if unseen:
            raise ValueError(
                f"sensitive_features contains {listed_names(unseen)}, which did not "
                f"occur in fit. The groups in fit were {listed_names(self.names)}."
            )
        return np.array([where[name] for name in names], dtype=np.intp)[codes]


def _sums(keys, sizes):
    """The sum of the sizes of each key."""
    total = dict.fromkeys(keys, 0)
    for key, size in zip(keys, sizes, strict=True):
        total[key] += size
    return total


def _columns(features, n_samples):
    """A list of arrays of shape (n_samples,)."""
    if isinstance(features, str):
        raise TypeError(
            f"sensitive_features must be the column itself, X[{features!r}], or a list "
            f"of the groups, [{features!r}]."
        )
    if sparse.issparse(features):
        raise TypeError("sensitive_features must be dense; got a sparse matrix.")
    if column_names(features) is not None:
        columns = [
            as_array("sensitive_features", column_at(features, j))
            for j in range(features.shape[1])
        ]
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


def _sorted_order(names):
    indices = range(len(names))
    try:
        return sorted(indices, key=lambda i: names[i])
    except TypeError:
        return sorted(indices, key=lambda i: (str(type(names[i])), str(names[i])))
