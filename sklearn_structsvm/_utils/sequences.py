"""The rows of all items of X in one table, and items made of rows again."""

from collections.abc import Iterator, Mapping, Set

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import (
    as_array,
    as_canonical,
    check_sequence,
    is_empty,
    refuse_masked,
)
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tables import concatenated, from_column, n_rows, row_type


def rows_of(X):
    """The rows of each item, and what stands beside them, for `put_back`."""
    X = check_sequences(X)
    return zip(*map(_split_item, X), strict=True) if len(X) else ([], [])


def _split_item(item):
    if not _has_rest(item):
        return item, None
    rows, inner = _split_item(item[0])
    return rows, (inner, item[1:])


def _has_rest(item):
    """Whether it is (features, edges), (features, scores) or like these.

    Features may be tokens, if a matrix or an array of integers follows them.
    """
    if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
        return False
    first, second = item[:2]
    if len(getattr(first, "shape", ())) == 2 or _has_rest(first):
        return True
    if not (isinstance(item, tuple) and isinstance(first, list)):
        return False
    is_array = isinstance(second, np.ndarray) and second.dtype.kind in "iu"
    return is_array or len(getattr(second, "shape", ())) == 2


def put_back(rows, rest):
    """An item with these rows."""
    return rows if rest is None else (put_back(rows, rest[0]), *rest[1])


def kind_of_items(rests):
    """ "chain", "tree" or "graph", by what stands beside the rows of items."""
    besides = [rest[1][0] for rest in rests if rest is not None]
    if not besides:
        return "chain"
    # A graph may have no edges, but each node of a tree has an entry.
    beside = next((own for own in besides if not is_empty(own)), None)
    return "tree" if beside is not None and np.ndim(beside) == 1 else "graph"


def one_table(X):
    """The stacked rows of all sequences for a transformer, the lengths, and the rests."""
    items, rests = rows_of(X)
    return *stacked(items), rests


def stacked(items):
    """The rows of all items in one table, and their numbers."""
    items, lengths = used_items(items)
    rows = concatenated(items)
    return rows.tocsr() if isinstance(rows, SplitMatrix) else rows, lengths


def nothing():
    return ValueError("X is empty: at least one sequence with a token is needed.")


def used_items(X):
    """The sequences that are not empty, and the lengths of all.

    Returns `items`: all have one `row_type`; `lengths` (n,). TypeError, ValueError if X
    is one sequence, or holds items of several types, or nothing but empty ones.
    """
    items = list(map(from_column, X))
    if set(map(type, items)) == {list} and any(items):
        return list(filter(None, items)), np.array(list(map(len, items)))
    used = [i for i, item in enumerate(items) if not is_empty(item)]
    if not used:
        raise nothing()
    first = items[used[0]]
    for i in used:
        item = items[i]
        check_item(item, i)
        if row_type(item) != row_type(first):
            raise TypeError(
                f"X[{i}] has type {type(item).__name__}, but X[{used[0]}] has type "
                f"{type(first).__name__}. All sequences must have the same type."
            )
        if isinstance(item, SplitMatrix):
            items[i] = SplitMatrix(item.matrices)
        else:
            items[i] = as_canonical(item, f"X[{i}]")
        shape, expected = (tuple(getattr(own, "shape", ())) for own in (item, first))
        if len(shape) > 2 or shape[1:] != expected[1:]:
            raise ValueError(
                f"X[{i}] has shape {shape}, but X[{used[0]}] has shape {expected}. All "
                "sequences must have the same columns."
            )
        refuse_masked(f"X[{i}]", item)
    lengths = np.array([0 if is_empty(item) else n_rows(item) for item in items])
    return [items[i] for i in used], lengths


def check_item(item, i):
    """TypeError if a sequence is one token, or can be read only once."""
    has_length = hasattr(item, "__len__") and getattr(item, "ndim", 1) > 0
    has_length = has_length and hasattr(item, "__getitem__")  # Not so a token of spaCy.
    is_other = isinstance(item, (str, bytes, Mapping, Set)) or not has_length
    if not is_other or sparse.issparse(item):
        return
    if isinstance(item, Iterator):
        raise TypeError(
            f"X[{i}] is a {type(item).__name__}, which can be read only once. Each "
            "sequence must be a list of tokens: use list(sequence)."
        )
    if isinstance(item, str) and len(item.split()) > 1:
        raise TypeError(
            f"X[{i}] is one string, {item!r}, but must be a list of tokens. To split "
            "sentences at spaces, use [x.split() for x in X]."
        )
    raise TypeError(
        f"X[{i}] is {item!r}, a single token. X must be a list of sequences, each a list "
        "of tokens. To pass a single sequence, use [sequence]."
    )


def check_sequences(X):
    """X as a list, or like one; TypeError if it is one sequence, or no list."""
    if isinstance(X, Iterator):
        return list(X)
    X = from_column(X)
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2:
        raise TypeError(
            f"X is one {type(X).__name__} of shape {tuple(shape)}, but must be a list of "
            "sequences. To pass a single sequence, use [X]; to split a table into "
            "sequences, use split_sequences."
        )
    check_sequence("X", X, "a list of sequences", TypeError)
    return X


def row_labels(y, lengths):
    """Arguments for `fit`: the labels of all rows, if y has a label per row."""
    if y is None:
        return ()
    check_sequence("y", y, "None or a sequence of the labels of each sequence")
    shapes = [np.shape(as_array(f"y[{i}]", own)) for i, own in enumerate(y)]
    if shapes != [(n,) for n in lengths.tolist()]:
        return ()
    return (np.concatenate([np.asarray(own) for own in y if len(own)]),)
