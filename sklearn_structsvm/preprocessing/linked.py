"""Tables whose rows are linked, as graphs."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from sklearn_structsvm._utils.borders import as_array, as_floats, check_integer
from sklearn_structsvm._utils.caller import warn_caller
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
    table: Any,
    pairs: Any,
    *,
    id: str,
    y: str | None = None,
    group: str | None = None,
    max_rows: int | None = None,
) -> tuple[list[Any], list[Any] | None, np.ndarray]:
    """Split a table with linked rows, such as accounts or people, into graphs.

    Read more in the :ref:`User Guide <guide-linked>`.

    Parameters
    ----------
    table : data frame (pandas or polars) or Arrow table
        One row for each node: features, and the columns named below.
    pairs : data frame, Arrow table or array-like of shape (n_pairs, 2)
        The links: two columns of identifiers. Two rows have one link, however often and
        in whichever direction it is listed. Further columns are features of the links;
        then each pair is a link.
    id : str
        The column of identifiers of `table`, each of which occurs once.
    y : str or None, default=None
        The column of labels. Missing ones become
        :data:`~sklearn_structsvm.structures.MISSING`.
    group : str or None, default=None
        The column that says which rows belong to one item, such as a household. Pairs
        must be within it. None makes an item of each connected component.
    max_rows : int or None, default=None
        Larger items are cut into connected parts of at most so many rows, each an item,
        and links between parts are left out: see the notes.

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

    Notes
    -----
    Folds are of items, so one large component is best cut, for a fit: the model predicts
    whole components, too. A graph of 2,485 papers keeps 73% of its links with parts of at
    most 100. To halve a component, its rows are ordered by 100 steps of averaging over
    neighbors, from distances to a remote row, and cut in their middle half where the
    fewest links cross. Equal tables have equal parts.

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
        if column is not None and np.ndim(column) > 0:
            kind = type(column).__name__
            raise TypeError(f"{name} is the name of a column; got a {kind}.")
        if column not in names and (column is not None or name == "id"):
            raise ValueError(
                f"{name}={column!r} is not a column of the table. Its columns are "
                f"{listed_names(names)}."
            )
    places, n = _places_of(_column(table, id)), n_rows(table)
    ends, edge_features = _read_pairs(pairs, places)
    kept = np.arange(len(ends))
    if edge_features is None:
        # The same link twice would be a cycle.
        lower, upper = np.sort(ends, axis=1).T
        kept = np.sort(np.unique(lower * n + upper, return_index=True)[1])
    links = sparse.csr_array((np.ones(len(kept)), ends[kept].T), shape=(n, n))
    if group is None:
        codes = codes_by_first_row(connected_components(links, directed=False)[1])
    else:
        groups = _column(table, group)
        codes = codes_by_first_row(groups)
        _check_within(codes, ends, groups, group)
    if max_rows is not None:
        check_integer("max_rows", max_rows, 1)
        codes, n_all = _cut(codes, links, max_rows), len(kept)
        kept = kept[codes[ends[kept, 0]] == codes[ends[kept, 1]]]
        if len(kept) < n_all:
            warn_caller(
                f"max_rows={max_rows} leaves out {n_all - len(kept)} of {n_all} links, "
                "between the parts of items that are cut.",
            )
    order = np.argsort(codes, kind="stable")
    lengths = np.bincount(codes)
    labels = None if y is None else split_rows(_labels(table, y)[order], lengths)
    for column in {id, y, group} - {None}:
        table = without_column(table, column)
    places = np.empty_like(order)
    places[order] = np.concatenate(list(map(np.arange, lengths)))
    by_item = kept[np.argsort(codes[ends[kept, 0]], kind="stable")]
    n_edges = np.bincount(codes[ends[kept, 0]], minlength=len(lengths))
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
        if places.setdefault(own, row) != row:
            raise ValueError(
                f"The identifier {own!r} occurs in rows {places[own]} and {row} of the "
                "table: each row needs one of its own."
            )
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
    ids = [own.tolist() for own in columns[:2]]
    ends = [[places.get(own, -1) for own in side] for side in ids]
    ends = np.array(ends, dtype=np.intp).T
    for what, is_bad in (
        ("have an identifier that no row of the table has", ends.min(axis=1) < 0),
        ("link a row to itself", ends[:, 0] == ends[:, 1]),
    ):
        bad = np.flatnonzero(is_bad).tolist()
        if bad:
            names = dict.fromkeys(ids[ids[0][row] in places][row] for row in bad)
            raise ValueError(
                f"{len(bad)} of {len(ends)} pairs {what}: {listed_names(list(names))}, "
                f"first in row {bad[0]}. Leave them out."
            )
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


def _cut(codes, links, max_rows):
    """Codes of items whose larger ones are cut into connected parts."""
    codes, around = codes.copy(), links + links.T
    left = split_rows(np.argsort(codes, kind="stable"), np.bincount(codes))
    left = [rows for rows in left if len(rows) > max_rows]
    while left:
        rows = left.pop()
        own = around[rows][:, rows]
        n, part = connected_components(own, directed=False)
        if n > 1 or len(rows) > max_rows:
            part = part if n > 1 else _halves(own)
            left += split_rows(rows[np.argsort(part, kind="stable")], np.bincount(part))
        else:
            codes[rows] = len(codes) + rows[0]
    return codes_by_first_row(codes)


def _halves(around):
    """0 or 1 for each node of a connected graph: sides with few links between them."""
    n, degrees, order = around.shape[0], around.sum(axis=0), [0]
    for _ in range(2):  # The second time from the node farthest from the first.
        order = breadth_first_order(around, order[-1], False, return_predecessors=False)
    x = np.argsort(order).astype(np.float64)
    for _ in range(100):
        x -= degrees @ x / degrees.sum()
        x = 0.5 * (x + around @ x / degrees)
    places = np.argsort(np.argsort(x, kind="stable"))
    first, last = np.sort(places[np.array(sparse.triu(around).nonzero())], axis=0)
    changes = np.bincount(first, minlength=n) - np.bincount(last, minlength=n)
    least = max(n // 4, 1)
    size = least + np.argmin(np.cumsum(changes)[least - 1 : n - least])
    return (places >= size).astype(np.intp)
