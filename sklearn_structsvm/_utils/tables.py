"""What tables of pandas, polars, Arrow and Dask have in common, and lists of tokens."""

from itertools import chain

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.pieces import take_rows

# No message lists more names than this.
MAX_NAMED = 5


def listed_names(names):
    """Names for a message, not too many of them."""
    text = ", ".join(repr(name) for name in names[:MAX_NAMED])
    more = len(names) - MAX_NAMED
    return f"{text} and {more} more" if more > 0 else text


def column_names(table):
    """Names of the columns of a table, or None for what is none."""
    columns = getattr(table, "column_names", getattr(table, "columns", None))
    return None if columns is None or not hasattr(table, "shape") else list(columns)


def column_at(table, j):
    """A column of a table by its place, for names may be there twice."""
    if hasattr(table, "iloc"):
        return table.iloc[:, j]
    return table.column(j) if hasattr(table, "column") else table[:, j]


def places_by_name(name, found, expected, of):
    """Where a table has the columns that are expected: their places, in that order.

    Columns that are only numbered 0, 1, ... have no names, unless these are expected.

    Parameters
    ----------
    name : str
        What the user knows the table as.
    found, expected : list or None
        Names of columns. None where there are none.
    of : str
        Whose names are expected, for the message.

    Returns
    -------
    places : list of int or None
        None where columns are known by their places alone.

    Raises
    ------
    ValueError
        For columns that are missing, unknown, or there twice.
    """
    if found is None or expected is None or found == expected:
        return None
    where = {column: j for j, column in enumerate(found)}
    if len(where) == len(found) and set(where) == set(expected):
        return [where[column] for column in expected]
    if found == list(range(len(found))):
        return None
    faults = {
        "lacks": [column for column in expected if column not in where],
        "has the unknown": [column for column in found if column not in expected],
        "has more than one": sorted({c for c in found if found.count(c) > 1}, key=str),
    }
    told = " and ".join(
        f"{what} column{'s' if len(columns) > 1 else ''} {listed_names(columns)}"
        for what, columns in faults.items()
        if columns
    )
    told = told or f"has {len(found)} columns"
    raise ValueError(f"{name} {told}. {of}: {listed_names(expected)}.")


def n_rows(table):
    """Number of rows of a table, an array, a matrix or a list."""
    return table.shape[0] if hasattr(table, "shape") else len(table)


def row_type(rows):
    """What rows must share to be put below each other: a type, "tokens" or "sparse"."""
    if isinstance(rows, (list, tuple)) or (
        isinstance(rows, np.ndarray) and rows.ndim == 1
    ):
        return "tokens"
    return "sparse" if sparse.issparse(rows) else type(rows)


def concatenated(items):
    """The rows of all items of one `row_type`, below each other."""
    first = items[0]
    if row_type(first) == "tokens":
        return list(chain.from_iterable(items))
    if sparse.issparse(first):
        return sparse.vstack(items, format="csr")
    library = type(first).__module__.partition(".")[0]
    if library == "pandas":
        import pandas

        return pandas.concat(items)
    if library == "polars":
        import polars

        return polars.concat(items)
    if library == "pyarrow":
        import pyarrow

        return pyarrow.concat_tables(items)
    return np.concatenate(items)


def split_rows(rows, lengths):
    """Views of the rows, so many for each sequence."""
    ends = np.cumsum(lengths).tolist()
    pairs = list(zip([0, *ends[:-1]], ends, strict=True))
    if sparse.issparse(rows):
        rows = rows if rows.format == "csr" else rows.tocsr()
        if len(pairs) == 1:
            return [rows]
        return [take_rows(rows, slice(*pair)) for pair in pairs]
    if hasattr(rows, "iloc"):
        return [rows.iloc[start:stop] for start, stop in pairs]
    if hasattr(rows, "column_names"):
        return [rows.slice(start, stop - start) for start, stop in pairs]
    return [rows[start:stop] for start, stop in pairs]


def rows_at(table, places):
    """The rows at these places."""
    if hasattr(table, "iloc"):
        return table.iloc[places]
    if hasattr(table, "column_names"):
        return table.take(places)
    if hasattr(table, "shape"):
        return table[places]
    return [table[place] for place in places.tolist()]


def without_column(table, name):
    """A table without one of its columns."""
    if hasattr(table, "iloc"):
        return table.drop(columns=name)
    return (
        table.drop_columns(name) if hasattr(table, "drop_columns") else table.drop(name)
    )
