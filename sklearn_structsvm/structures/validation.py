"""Ragged sequences of feature rows: checked item by item, stacked once."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils._csr_layout import are_sound
from sklearn_structsvm._utils.borders import as_csr, is_empty, refuse_masked
from sklearn_structsvm._utils.columns import stored_values
from sklearn_structsvm._utils.labels import (
    IGNORED,
    check_node_weights,
    plain,
    refuse_missing,
    split_weights,
)
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tables import refuse_odd_columns
from sklearn_structsvm.structures.base import as_list


class FeaturesWithScores(NamedTuple):
    """An item, or the rows of a tree or a graph, with scores of another model."""

    features: Any
    scores: Any

    @property
    def shape(self):
        return self.features.shape


def list_of_pairs(X, parts, part="", why=""):
    """X as a list whose items have two parts. ValueError naming one that does not."""
    X = as_list(X, "X")
    for i, x in enumerate(X):
        if not isinstance(x, (tuple, list)) or len(x) != 2:
            size = f" of {len(x)} items" if isinstance(x, (tuple, list)) else ""
            raise ValueError(
                f"X[{i}]{part} must be a pair {parts}{why}; got {type(x).__name__}{size}."
            )
    return X


def check_pairs(X, n_features=None, n_scores=None, *, part="", kind="sequence"):
    """X as a list of `FeaturesWithScores`, checked as in `check_items`.

    ValueError if an item is not a pair, has sparse scores, or different numbers of
    rows. The message names the item.
    """
    X = list_of_pairs(X, "(features, scores)", part, why=" with emission='both'")
    features, scores = zip(*X, strict=True)
    features = check_items(features, n_features, part=f"{part}[0]", kind=kind)
    scores = check_scores(scores, n_scores, part=f"{part}[1]", kind=kind)
    for i, (own, given) in enumerate(zip(features, scores, strict=True)):
        if own.shape[0] != given.shape[0]:
            raise ValueError(
                f"X[{i}]{part} has {own.shape[0]} rows of features and {given.shape[0]} "
                "of scores."
            )
    return list(map(FeaturesWithScores, features, scores))


def check_edge_rows(given, rows, n_features=None):
    """Features of the edges of chains as in `check_items`: T - 1 rows for T positions.

    `given`: those of each chain. `rows`: the checked features of the positions.
    """
    checked = check_items(list(given), n_features, part="[1]")
    for i, (own, item) in enumerate(zip(checked, rows, strict=True)):
        n_edges = max(item.shape[0] - 1, 0)
        if own.shape[0] != n_edges:
            raise ValueError(
                f"X[{i}][1] has {own.shape[0]} rows, but X[{i}][0] has {item.shape[0]} "
                f"positions: {n_edges} rows are needed, one for each but the first."
            )
    if all(map(is_empty, checked)):
        none = np.empty((0, n_features or np.shape(given[0])[-1]))
        return [none] * len(checked)
    return checked


def check_scores(X, n_scores=None, *, part="", kind="sequence"):
    """X as in `check_items`, but dense, with the scores of another model as rows."""
    for i, x in enumerate(as_list(X, "X")):
        if sparse.issparse(x) or isinstance(x, SplitMatrix):
            raise ValueError(
                f"X[{i}]{part} must be dense scores, as `emission` says; got a "
                f"{_layout(x)[0]} matrix: use .toarray()."
            )
    return check_items(X, n_scores, part=part, kind=kind, columns="scores")


def check_items(X, n_features=None, *, part="", kind="sequence", columns="features"):
    """X as a list of 2-D float arrays, CSR matrices or `SplitMatrix`, of equal columns.

    An item without rows may be any empty list or array; it becomes as the others are.

    In errors, `part` follows the name of an item, if items are parts of the examples,
    `kind` says what an example is, and `columns` what is in its columns.

    ValueError naming the item: not 2-D, of another number of features (than
    `n_features`, or than the first), not numeric, with NaN or infinity, or dense among
    sparse ones, or not split as the first.
    """
    if isinstance(X, list) and X and isinstance(n_features, int | None):
        items = list(X)
        if are_sound(items, n_features):
            return items
    refuse_tokens(X)
    if len(getattr(X, "shape", ())) == 2:
        raise ValueError(
            "X must be a sequence of n items of shape (T_i, n_features), one per "
            f"{kind}; got one {type(X).__name__} of shape {tuple(X.shape)}. To pass a "
            f"single {kind}, use [X]; to split a table into sequences, use "
            "split_sequences; for one label per row, structure='auto'."
        )
    items = as_list(X, "X")
    empty = list(map(is_empty, items))
    first = 0 if all(empty) else empty.index(False)
    layout = _layout(items[first])
    origin = f"in X[{first}]{part}" if n_features is None else "in fit"
    result = []
    for i, item in enumerate(items):
        name = f"X[{i}]{part}"
        if empty[i]:
            result.append(item)
            continue
        _check_layout(item, name, layout, f"X[{first}]{part}")
        item = _as_matrix(item, name, columns)
        expected = item.shape[1] if n_features is None else n_features
        if item.shape[1] != expected:
            raise ValueError(
                f"{name} has {item.shape[1]} {columns}, but there were {expected} "
                f"{origin}."
            )
        n_features = expected
        if item.shape[1] == 0:
            raise ValueError(f"{name} has 0 {columns}; at least 1 is needed.")
        _check_values(item, name)
        result.append(item)
    if not any(empty):
        return result
    if all(empty):
        none = np.empty((0, n_features or 0))
    else:
        none = result[first][:0]
    return [none if empty[i] else item for i, item in enumerate(result)]


def _layout(item):
    """The common layout of all items: a word, and the columns of split parts."""
    if isinstance(item, SplitMatrix):
        kinds = [_layout(matrix)[0] for matrix in item.matrices]
        widths = [matrix.shape[1] for matrix in item.matrices]
        return "split", list(zip(kinds, widths, strict=True))
    return ("sparse" if sparse.issparse(item) else "dense"), []


def _check_layout(item, name, layout, origin):
    """Raise ValueError unless an item has the layout of the first one, the `origin`."""
    kind, columns = _layout(item)
    if (kind, columns) == layout:
        return
    if kind != layout[0]:
        raise ValueError(
            f"The items of X must be all dense, all sparse or all split; {origin} is "
            f"{layout[0]} and {name} is not."
        )
    own, expected = (
        ", ".join(f"{width} {kind}" for kind, width in columns)
        for columns in (columns, layout[1])
    )
    raise ValueError(
        f"The items of X must be split in the same way; {origin} has {expected} columns "
        f"and {name} has {own}."
    )


def _as_matrix(item, name, columns):
    """An item as an array, a CSR matrix or a `SplitMatrix`."""
    if isinstance(item, SplitMatrix):
        return SplitMatrix(
            [
                _as_matrix(matrix, f"{name}.matrices[{j}]", columns)
                for j, matrix in enumerate(item.matrices)
            ]
        )
    if sparse.issparse(item):
        item = as_csr(item, name)
    else:
        item = _as_array(item, name, columns)
    if item.dtype == np.longdouble:
        item = item.astype(np.float64, copy=False)
    if item.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D, of shape (T_i, n_{columns}), a row for each label; got "
            f"shape {item.shape}."
        )
    return item


def _check_values(item, name):
    """ValueError unless all entries are finite numbers."""
    for values in stored_values(item):
        if values.dtype.kind not in "fiub":
            raise ValueError(f"{name} must be numeric; got dtype {values.dtype}.")
        if not np.isfinite(values).all():
            bad = values[~np.isfinite(values)].flat[0]
            raise ValueError(
                f"{name} contains NaN or infinity: the value {bad} was found."
            )


def refuse_tokens(X):
    """Raise ValueError if the items of X are not rows of features.

    These are tokens without features (words, dicts), and tuples of graphs and trees.
    """
    if isinstance(X, (str, bytes, Mapping)):
        return  # no list at all, of which others say more
    _refuse_graphs(X)
    token, name = X, "X"
    for _ in range(3):
        if not isinstance(token, (list, tuple)) and (
            not isinstance(token, np.ndarray) or token.ndim != 1
        ):
            break
        if len(token) == 0:
            return
        token, name = token[0], f"{name}[0]"
    if isinstance(token, (str, bytes)):
        try:
            float(token)
        except ValueError:
            pass
        else:
            return
    elif not isinstance(token, Mapping):
        return
    kind = "SequenceTransformer" if isinstance(token, Mapping) else "WordFeatures"
    raise ValueError(
        f"{name} is {plain(token)!r}, not a number or a row of numbers. To turn "
        f"sequences of words or dicts into features, use make_pipeline({kind}(), "
        f"estimator) with sklearn_structsvm.preprocessing.{kind}, and pass X as a list "
        "of sequences."
    )


def _refuse_graphs(X):
    is_list = isinstance(X, (list, tuple)) or (
        isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1
    )
    first = X[0] if is_list and len(X) else None
    if not isinstance(first, (list, tuple)) or len(first) not in (2, 3):
        return
    try:
        is_matrix = sparse.issparse(first[0]) or np.ndim(first[0]) == 2
    except ValueError:
        return  # ragged, of which others say more
    if not is_matrix:
        return
    raise ValueError(
        f"X[0] is a {type(first).__name__} of arrays, as that of a graph or a tree. Use "
        "structure=GraphStructure() for (features, edges) or (features, edges, "
        "edge_features), structure=TreeStructure() for (features, parents), "
        "structure=ChainStructure(edge_features=True) for (features, edge_features), and "
        "emission='both' for (features, scores of another model), with an estimator that "
        "takes structures, such as BCFWClassifier."
    )


def _as_array(given, name, columns):
    refuse_masked(name, given)
    try:
        # Tensors have both methods, or the first one names the obstacle.
        by_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
        item = np.from_dlpack(given) if by_dlpack else np.asarray(given)
        return item.astype(np.float64) if item.dtype == object else item
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        refuse_odd_columns(given, name)
        raise ValueError(
            f"{name} must be an array of numbers of shape (T_i, n_{columns}): {error}"
        ) from error


# The remedy for unknown labels, by their place.
REMEDIES = {
    "position": "Split the sequence there, without these positions, or leave it out. In "
    "memory, CRFClassifier and BCFWClassifier learn from the others if it is MISSING.",
    "node": "Leave out the nodes without a label; they may also have any label with the "
    "weight 0, by y[i] = (labels, weights).",
}


def refuse_single(labels, i, place="row"):
    """ValueError if an item has one label in the place of a list."""
    if isinstance(labels, (str, bytes)):
        raise ValueError(
            f"y[{i}] is one string, {labels!r}, but must be a list of labels, one for "
            f"each {place}. To split it at spaces, use [labels.split() for labels in y]."
        )
    if not np.iterable(labels):
        raise ValueError(
            f"y[{i}] is {plain(labels)!r}, but must be a list of labels, one for each "
            f"{place} of X[{i}]."
        )


def _are_plain(y, X):
    """Whether y has an array of integers or strings for each item, as long as it."""
    for own, x in zip(y, X, strict=True):
        if type(own) is not np.ndarray or own.dtype.kind not in "iuUS":
            return False
        if own.ndim != 1 or not 0 < len(own) == x.shape[0]:
            return False
    numbers = [own for own in y if own.dtype.kind == "i"]
    return not numbers or not (np.concatenate(numbers) == IGNORED).any()


def check_labels(y, X, *, part="", place="position"):
    """y as a list of 1-D label arrays, as long as the items of X, or pairs with weights.

    In errors, `part` is as for `check_items`, and `place` says what has a label.

    ValueError naming the item: another length, not 1-D, floating-point labels, missing
    labels, or lists as labels; weights that are negative or infinite.
    """
    y = as_list(y, "y")
    if len(y) != len(X):
        words = f"X and y must have the same length; got {len(X)} and {len(y)}."
        if not isinstance(y[0], list | tuple) and np.ndim(y[0]) == 0:
            words += f" y[0] is {plain(y[0])!r}, but must be a list of labels for X[0]."
        raise ValueError(words)
    if _are_plain(y, X):
        return list(y)
    result = []
    for i, (given, x) in enumerate(zip(y, X, strict=True)):
        given, weights = split_weights(given)
        refuse_missing(given, f"y[{i}]", place=place, remedy=REMEDIES[place])
        refuse_single(given, i, place)
        try:
            labels = np.asarray(given)
            kind = {"U": str, "S": bytes}.get(labels.dtype.kind)
            is_list = kind is not None and labels is not given
            if is_list and not all(isinstance(label, kind) for label in given):
                # numpy would convert 1 to "1" beside "a".
                labels = np.asarray(given, dtype=object)
        except ValueError as error:
            raise ValueError(f"y[{i}] must be a 1-D array of labels: {error}") from error
        if labels.ndim != 1:
            raise ValueError(
                f"y[{i}] must be a 1-D array of labels; got shape {labels.shape}."
            )
        if len(labels) != x.shape[0]:
            raise ValueError(
                f"y[{i}] has {len(labels)} labels for the {x.shape[0]} {place}s of "
                f"X[{i}]{part}."
            )
        if len(labels) == 0:
            # NumPy treats an empty list as floats.
            labels = np.empty(0, dtype=object)
        if labels.dtype.kind in "fc":
            raise ValueError(
                f"y[{i}] has floating-point labels, such as {plain(labels[0])!r}; labels "
                "are classes: use integers or strings."
            )
        if labels.dtype == object:
            for label in labels:
                if isinstance(label, (float, list, tuple, Mapping, np.ndarray)):
                    raise ValueError(
                        f"y[{i}] has the label {label!r}; labels are classes: use "
                        "integers or strings."
                    )
        weights = check_node_weights(f"y[{i}][1]", weights, len(labels))
        result.append(labels if weights is None else (labels, weights))
    return result


def starts_of(items):
    """The start of each item in the stacked rows, and the end of the last one."""
    lengths = [item.shape[0] for item in items]
    return np.array([0, *accumulate(lengths)], dtype=np.intp)
