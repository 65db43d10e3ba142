"""One interface to tables of pandas, polars, Arrow and Dask, and to lists of tokens."""

import sys
from contextlib import contextmanager
from itertools import chain
from numbers import Integral

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.labels import MAX_NAMES
from sklearn_structsvm._utils.pieces import take_rows
from sklearn_structsvm._utils.split_matrix import SplitMatrix


def listed_names(names, show=repr):
    """Names for a message, cut off if there are many."""
    text = ", ".join(map(show, names[:MAX_NAMES]))
    more = len(names) - MAX_NAMES
    return f"{text} and {more} more" if more > 0 else text


def column_names(table):
    """Names of the columns of a table; None for other objects."""
    columns = getattr(table, "column_names", getattr(table, "columns", None))
    return None if columns is None or not hasattr(table, "shape") else list(columns)


def is_of_pandas(thing):
    return type(thing).__module__.partition(".")[0] == "pandas"


@contextmanager
def misreadings_told(X, fitted):
    """Errors within it tell if X is one row, or has columns of `fitted` in disorder."""
    names, remedy = list(fitted.get("feature_names_in_", ())), "[model.feature_names_in_]"
    is_series = is_of_pandas(X) and X.ndim == 1
    place = repr(X.name) if is_series and X.name is not None else "i"
    words = f"X is a Series, not a table: for one row write X.loc[[{place}]]"
    if is_series and names and list(X.index) == names:
        raise ValueError(f"{words}.")
    try:
        yield
    except (TypeError, ValueError) as error:
        if is_series and X.dtype.kind in "biuf" and words not in str(error):
            raise ValueError(f"{words}, for one column X[[{place}]].") from error
        table = X[0] if isinstance(X, list | tuple) and len(X) else X
        is_graph = isinstance(table, tuple) and len(table) > 0
        table = table[0] if is_graph else table
        is_of_names = "feature names should match" in str(error)
        has_all = is_of_names and {*names} <= {*(column_names(table) or ())}
        if has_all and remedy not in str(error):
            each = f"[x{remedy} for x in X]" if table is not X else f"X{remedy}"
            each = f"[(x{remedy}, edges) for x, edges in X]" if is_graph else each
            raise ValueError(f"{error} Write {each}.") from error
        raise


def names_of_items(X, expected=None):
    """The names that the columns of items have, or None; ValueError if they differ."""
    of = "X[0]" if expected is None else "model.feature_names_in_"
    for i, item in enumerate(X if isinstance(X, list | tuple) else ()):
        names = column_names(item[0] if isinstance(item, tuple) and item else item)
        if not names or not isinstance(names[0], str):
            return None
        expected = expected or names
        if places_by_name(f"X[{i}]", names, expected, f"Those of {of} are") is not None:
            words = f"X[{i}] has its columns in another order: write"
            raise ValueError(f"{words} [x[list({of})] for x in X].")
    return expected


def warn_of_other_order(X, beside):
    """UserWarning if what goes with the rows of X has their index in another order."""
    found = [("X", X, name, own) for name, own in beside.items()]
    if isinstance(X, list):  # of items
        labels = beside.get("y") if isinstance(beside.get("y"), list) else ()
        pairs = enumerate(zip(X, labels, strict=False))
        found = [(f"X[{i}]", x, f"y[{i}]", own) for i, (x, own) in pairs]
    for place, x, name, own in found:
        if not (is_of_pandas(x) and is_of_pandas(own)) or len(own) != len(x):
            continue
        is_other = not own.index.equals(x.index) and x.index.is_unique
        if is_other and own.index.isin(x.index).all():
            words = f"{name} has the index of {place} in another order: write "
            words += f"{name}.loc[{place}.index], or {name}.to_numpy() if rows belong "
            warn_caller(f"{words}together by their places.")
            return


def refuse_odd_columns(X, given="X", with_missing=False, windows=False):
    """ValueError for dates and strings in columns of a data frame of features.

    It names all columns that a fit would refuse, and says what makes numbers of them.
    `with_missing`: so are missing values. `windows`: and categories, in rows of items.
    """
    if getattr(getattr(X, "dtype", None), "kind", "f") in "mM":
        raise ValueError(f"{given} holds dates, of type {X.dtype}: pass numbers.")
    strings, dates, ids, numbers = {}, [], [], []
    if column_names(X) is not None and hasattr(X, "dtypes"):
        strings, dates = odd_columns(X)
        kinds = zip(column_names(X), X.dtypes, strict=True) if windows else ()
        numbers = [k for k, own in kinds if own == "category" and k not in strings]
        is_asked = strings or dates or with_missing
        missing = columns_with_missing(X) if is_asked else []
        ids = identifiers(X, strings)
        strings = {name: own for name, own in strings.items() if name not in ids}
    else:
        values = np.asarray(X if with_missing and not sparse.issparse(X) else [])
        columns = values.T if values.ndim == 2 else []
        missing = [j for j, column in enumerate(columns) if n_missing(column)]
    found = []
    for names, what in (
        (list(strings), f"strings, such as {next(iter(strings.values()), '')!r}"),
        (numbers, "numbers of categories, which have no mean"),
        (dates, "dates or times"),
        (missing, "missing values (NaN)"),
        (ids, f"identifiers, a different one in each row: use drop(columns={ids})"),
    ):
        if names:
            column, hold = ("Columns", "hold") if names[1:] else ("Column", "holds")
            listed = ", ".join(map(repr, names))
            found.append(f"{column} {listed} of {given} {hold} {what}.")
    if not found:
        return
    if dates:
        times = [f"{given}[{name!r}]" for name in dates]
        seconds = ", ".join(f"({t} - {t}.min()).dt.total_seconds()" for t in times)
        found.append(f"Make numbers of times, such as seconds: {seconds}.")
    filled = [name for name in missing if name not in (*strings, *numbers, *ids)]
    encoded = [*strings, *numbers]
    steps = [f"(OneHotEncoder(handle_unknown='ignore'), {encoded})"] * bool(encoded)
    steps += [f"(SimpleImputer(), {filled})"] * bool(filled)
    if steps:
        mend = f"make_column_transformer({', '.join(steps)}, remainder='passthrough')"
        mend = mend if given == "X" and not windows else f"SequenceTransformer({mend})"
        found.append(f"Put this in a pipeline: {mend}.")
    raise ValueError(" ".join(found))


def odd_columns(table):
    """Columns of a table that hold strings, each with one, and those with dates."""
    names, strings, dates = column_names(table), {}, []
    dtypes = getattr(table, "dtypes", [None] * len(names))
    for j, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
        kind = getattr(dtype, "kind", "f" if getattr(dtype, "is_numeric", bool)() else "")
        if kind in set("mM") or getattr(dtype, "is_temporal", bool)():
            dates.append(name)
        elif kind not in set("biufc"):
            values = from_column(column_at(table, j))
            value = next((v for v in values if isinstance(v, str)), "0")
            try:
                float(value)
            except ValueError:
                strings[name] = value
    return strings, dates


def identifiers(table, names):
    # Those of the columns that have another string or integer in nearly each row.
    n, where, found = n_rows(table), column_names(table), []
    for name in names:
        column, digits = from_column(column_at(table, where.index(name))), "+-.0123456789"
        # Numbers among which there is a word are not names.
        own = {str(v) for v in column if str(v).strip(digits) or isinstance(v, Integral)}
        found += [name] * (n >= 20 and len(own) > 0.9 * n)
    return found


def columns_with_missing(table):
    """Names of the columns of a table that have missing values."""
    names = enumerate(column_names(table))
    return [name for j, name in names if n_missing(np.asarray(column_at(table, j)))]


def n_missing(values):
    """Number of the missing values of an array."""
    if values.dtype.kind in "fmM":
        return np.count_nonzero(values != values)
    return sum(map(is_missing, values.ravel())) if values.dtype.kind == "O" else 0


def is_missing(value):
    """Whether a value is None, NaN, masked, or the missing value of pandas."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # as pandas.NA says of its truth
        return True


def column_at(table, j):
    """A column of a table by its place, because names need not be unique."""
    if hasattr(table, "iloc"):
        return table.iloc[:, j]
    return table.column(j) if hasattr(table, "column") else table[:, j]


def places_by_name(name, found, expected, of, what="column"):
    """Places of the expected columns in a table, in the expected order.

    Columns that are numbered 0, 1, ... count as unnamed unless numbers are expected.

    `found`, `expected`: names of columns, or None if they have no names. `of`: words
    for the owner of the expected names, and `what` has names, for the message. Returns
    places, or None if columns have no names, so that their places count. ValueError for
    missing, unknown and repeated columns.
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
        f"{fault} {what}{'s' if len(columns) > 1 else ''} {listed_names(columns)}"
        for fault, columns in faults.items()
        if columns
    )
    told = told or f"has {len(found)} {what}s"
    raise ValueError(f"{name} {told}. {of}: {listed_names(expected)}.")


def places_of_labels(name, found, labels, what="column"):
    """`places_by_name` of what labels are the names of."""
    labels = np.asarray(labels).tolist()
    # In polars, Arrow and files, names are strings, whatever the labels are.
    if found is not None and all(isinstance(own, str) for own in found):
        labels = [str(label) for label in labels]
    of = f"Its {what}s must be the labels"
    return places_by_name(name, found, labels, of, what)


def square_by_label(name, table, labels):
    """A table whose rows and columns are labels, with both in the order of `labels`.

    Only data frames have names. Rows without names are in the order of the columns.
    """
    columns = column_names(table)
    if columns is None:
        return table
    rows = list(getattr(table, "index", columns))
    if rows == list(range(len(rows))) and set(rows) != set(np.asarray(labels).tolist()):
        rows = columns
    of_rows = places_of_labels(name, rows, labels, "row")
    of_columns = places_of_labels(name, columns, labels)
    values = np.asarray(table)
    values = values if of_rows is None else values[of_rows]
    return values if of_columns is None else values[:, of_columns]


def from_column(values):
    """A column of Arrow or polars as a list; anything else as it is."""
    library = type(values).__module__.partition(".")[0]
    method = {"pyarrow": "to_pylist", "polars": "to_list"}.get(library)
    if method is None or column_names(values) or not hasattr(values, method):
        return values
    return getattr(values, method)()


def n_rows(table):
    """Number of rows of a table, an array, a matrix or a list."""
    return table.shape[0] if hasattr(table, "shape") else len(table)


def row_type(rows):
    """The kind that rows must share to be stacked: a type, "tokens" or "sparse"."""
    if isinstance(rows, (list, tuple)) or (
        isinstance(rows, np.ndarray) and rows.ndim == 1
    ):
        return "tokens"
    return "sparse" if sparse.issparse(rows) else type(rows)


def concatenated(items):
    """The stacked rows of all items, which have one `row_type`."""
    first = items[0]
    if row_type(first) == "tokens":
        return list(chain.from_iterable(items))
    if sparse.issparse(first):
        return sparse.vstack(items, format="csr")
    if isinstance(first, SplitMatrix):
        columns = zip(*(item.matrices for item in items), strict=True)
        return SplitMatrix(list(map(concatenated, columns)))
    library = type(first).__module__.partition(".")[0]
    if library == "pandas" and first.ndim == 2:
        items = _with_all_categories(items)
    if library in ("pandas", "polars", "pyarrow"):
        name = "concat_tables" if library == "pyarrow" else "concat"
        return getattr(sys.modules[library], name)(items)
    return np.concatenate(items)


def _with_all_categories(frames):
    """pandas frames whose categories are those of all: otherwise they would be lost."""
    from pandas.api.types import union_categoricals

    for name in frames[0].columns[frames[0].dtypes == "category"]:
        columns = [frame[name] for frame in frames if name in frame]
        kinds = {column.dtype for column in columns}
        if len(kinds) > 1 and all(kind == "category" for kind in kinds):
            every = union_categoricals(columns, ignore_order=True).dtype
            frames = [frame.astype({name: every}) for frame in frames]
    return frames


def joined_columns(tables):
    """The columns of all arrays or matrices: CSR if one is sparse, or an array."""
    if any(map(sparse.issparse, tables)):
        return sparse.hstack(tables, format="csr")
    return np.hstack(tables)


def split_rows(rows, lengths):
    """Views of the rows, one per sequence, of these lengths."""
    is_sparse = sparse.issparse(rows)
    if is_sparse and rows.format != "csr":
        rows = rows.tocsr()
    if is_sparse and len(lengths) == 1:
        return [rows]
    ends = np.cumsum(lengths).tolist()
    pairs = zip([0, *ends[:-1]], ends, strict=True)
    if is_sparse:
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


def codes_by_first_row(values):
    """Which of the different values each row has, in the order of their first rows."""
    _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[codes]


def without_column(table, name):
    """A table without one of its columns."""
    if hasattr(table, "iloc"):
        return table.drop(columns=name)
    return (
        table.drop_columns(name) if hasattr(table, "drop_columns") else table.drop(name)
    )
