"""Tables whose rows are linked, as graphs."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sklearn_structsvm._utils.borders import as_array, as_floats
from sklearn_structsvm._utils.labels import MISSING
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.tables import (
    codes_by_first_row,
    column_at,
    column_names,
    is_missing,
    listed_names,
    n_rows,
    rows_at,
    split_rows,
    without_column,
)

__all__ = ["linked_items"]


@with_plain_calls
def linked_items(
    table: Any, pairs: Any, *, id: str, y: str | None = None, group: str | None = None
) -> tuple[list[Any], list[Any] | None, np.ndarray]:
    """Split a table with linked rows, such as accounts or people, into graphs.

    Read more in the :ref:`User Guide <guide-linked>`.

    Parameters
    ----------
    table : data frame (pandas or polars) or Arrow table
        One row for each node: features, and the columns named below.
    pairs : data frame, Arrow table or array-like of shape (n_pairs, 2)
        The links: two columns of identifiers. Further columns are features of the links.
        A pair that is listed twice counts twice.
    id : str
        The column of identifiers of `table`, each of which occurs once.
    y : str or None, default=None
        The column of labels. Missing ones become
        :data:`~sklearn_structsvm.structures.MISSING`.
    group : str or None, default=None
        The column that says which rows belong to one item, such as a household. Pairs
        must be within it. None makes an item of each connected component.

    Returns
    -------
    X : list of n tuples
        (features, edges), or (features, edges, edge_features): the other columns of the
        rows of each item, of the type of `table`, and the links as pairs of their places,
        for :class:`~sklearn_structsvm.structures.GraphStructure`. Items are in the order
        of their first rows, and rows in that of the table.
    y : list of n arrays of labels, or None
        The labels of the rows of each item.
    order : ndarray of shape (n_rows,)
        The row of `table` of each row of X: ``result[order] = np.concatenate(predicted)``
        puts predictions in the order of the table.

    Raises
    ------
    ValueError
        If a column does not exist, an identifier is missing or occurs twice, or a pair
        has an unknown identifier, links a row to itself or leaves its group.

    See Also
    --------
    split_sequences : The same for tables of sequences.
    sklearn_structsvm.StackedStructureClassifier : Graphs over any classifier of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_structsvm.preprocessing import linked_items
    >>> people = pd.DataFrame(
    ...     {"id": ["a", "b", "c"], "age": [41, 9, 33], "ill": ["no", "yes", "no"]}
    ... )
    >>> X, y, order = linked_items(people, [("b", "a")], id="id", y="ill")
    >>> [(frame["age"].tolist(), edges.tolist()) for frame, edges in X]
    [([41, 9], [[1, 0]]), ([33], [])]
    >>> [labels.tolist() for labels in y]
    [['no', 'yes'], ['no']]
    """
    names = column_names(table)
    if names is None:
        raise TypeError(
            "table must be a data frame or an Arrow table, with a column of "
            f"identifiers; got {type(table).__name__}."
        )
    for name, column in (("id", id), ("y", y), ("group", group)):
        if column not in names and (column is not None or name == "id"):
            raise ValueError(
                f"{name}={column!r} is not a column of the table. Its columns are "
                f"{listed_names(names)}."
            )
    places = _places_of(_column(table, id))
    ends, edge_features = _read_pairs(pairs, places)
    if group is None:
        links = sparse.csr_array((np.ones(len(ends)), ends.T), shape=2 * (n_rows(table),))
        codes = codes_by_first_row(connected_components(links, directed=False)[1])
    else:
        groups = _column(table, group)
        codes = codes_by_first_row(groups)
        _check_within(codes, ends, groups, group)
    order = np.argsort(codes, kind="stable")
    lengths = np.bincount(codes)
    labels = None if y is None else split_rows(_labels(table, y)[order], lengths)
    for column in {id, y, group} - {None}:
        table = without_column(table, column)
    places = np.empty_like(order)
    places[order] = np.concatenate(list(map(np.arange, lengths)))
    by_item = np.argsort(codes[ends[:, 0]], kind="stable")
    n_edges = np.bincount(codes[ends[:, 0]], minlength=len(lengths))
    parts = [split_rows(rows_at(table, order), lengths)]
    parts.append(split_rows(places[ends[by_item]], n_edges))
    if edge_features is not None:
        parts.append(split_rows(edge_features[by_item], n_edges))
    return list(zip(*parts, strict=True)), labels, order


def _column(table, name):
    """A column without missing values."""
    column = as_array(f"table[{name!r}]", table[name])
    if not len(column):
        raise ValueError("The table is empty: at least one row is needed.")
    for row, own in enumerate(column.tolist()):
        if is_missing(own):
            raise ValueError(f"Row {row} of the table has no {name!r}: it is {own!r}.")
    return column


def _labels(table, name):
    """The column of labels, with `MISSING` in the place of those that are missing."""
    labels = as_array(f"table[{name!r}]", table[name])
    missing = np.array(list(map(is_missing, labels.tolist())))
    if missing.any():
        labels = labels.astype(object)
        labels[missing] = MISSING
    return labels


def _places_of(ids):
    """The row of each identifier."""
    places = {}
    for row, own in enumerate(ids.tolist()):
        if own in places:
            raise ValueError(
                f"The identifier {own!r} occurs in rows {places[own]} and {row} of the "
                "table: each row needs one of its own."
            )
        places[own] = row
    return places


def _read_pairs(pairs, places):
    """The rows that are linked, shape (m, 2), and the features of links, or None."""
    if column_names(pairs) is None:
        pairs = as_array("pairs", pairs)
        pairs = pairs.reshape(0, 2) if pairs.size == 0 else pairs
    if len(pairs.shape) != 2 or pairs.shape[1] < 2:
        raise ValueError(
            "pairs must have two columns, the identifiers of both rows; got shape "
            f"{tuple(pairs.shape)}."
        )
    columns = [as_array("pairs", column_at(pairs, j)) for j in range(pairs.shape[1])]
    ends = np.empty((len(columns[0]), 2), dtype=np.intp)
    for row, both in enumerate(zip(*(own.tolist() for own in columns[:2]), strict=True)):
        unknown = [own for own in both if own not in places]
        if unknown:
            raise ValueError(
                f"Row {row} of pairs has {unknown[0]!r}, which no row of the table has "
                "as its identifier."
            )
        if both[0] == both[1]:
            raise ValueError(
                f"Row {row} of pairs links {both[0]!r} to itself: leave it out."
            )
        ends[row] = [places[own] for own in both]
    if len(columns) == 2:
        return ends, None
    others = enumerate(columns[2:], 2)
    return ends, np.column_stack(
        [as_floats(f"Column {j} of pairs", own, len(ends)) for j, own in others]
    )


def _check_within(codes, ends, groups, name):
    """ValueError if a pair links rows of different groups."""
    apart = np.flatnonzero(codes[ends[:, 0]] != codes[ends[:, 1]])
    if len(apart):
        first, second = groups[ends[apart[0]]].tolist()
        raise ValueError(
            f"Row {apart[0]} of pairs links rows of different groups: {name!r} is "
            f"{first!r} and {second!r}. Leave the pair out, or pass group=None."
        )
