"""What tables of pandas, polars, Arrow and Dask have in common."""

# No message lists more names than this.
MAX_NAMED = 5


def listed(names):
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
        f"{what} column{'s' if len(columns) > 1 else ''} {listed(columns)}"
        for what, columns in faults.items()
        if columns
    )
    told = told or f"has {len(found)} columns"
    raise ValueError(f"{name} {told}. {of}: {listed(expected)}.")
