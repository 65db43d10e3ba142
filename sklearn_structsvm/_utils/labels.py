"""Encoding of labels of any kind as 0 ... n_classes - 1, and their costs."""

from collections.abc import Set
from numbers import Number

import numpy as np
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight

from sklearn_structsvm._utils.borders import as_array, as_floats, check_shape
from sklearn_structsvm._utils.mistakes import meant

# Maximum number of labels, names or places in a message.
MAX_NAMES = 8

# "No label" in PyTorch's losses and in libraries built on them.
IGNORED = -100


class Missing:
    """The type of `MISSING`, of which there is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


# A label that is not known.
MISSING = Missing()


def learn_classes(labels, classes=None):
    """The sorted distinct labels, or `classes`, which must contain all of them."""
    seen = unique(labels, "y")
    if classes is None:
        result = seen
    else:
        given = as_classes(classes)
        result = unique(given, "classes")
        if len(result) != len(given):
            raise ValueError("classes holds a label twice.")
        unknown = seen[~np.isin(seen, result)]
        if len(unknown):
            raise ValueError(
                f"y has the label {plain(unknown[0])!r}, which is not among `classes`."
            )
    if len(result) == 0:
        raise ValueError("y has no labels: every example is empty.")
    if len(result) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data "
            f"contains only one class: {plain(result[0])!r}. If there are others, pass "
            "them as `classes`."
        )
    return result


def refuse_missing(
    labels, name="y", *, place="row", remedy="Leave out the rows without a label."
):
    """ValueError if a label is masked, None, NaN, NaT, -100 or a set.

    NumPy drops masks, so this comes before `np.asarray`.

    `place`, `remedy`: words for an item that has a label, and for what to do otherwise.
    """
    found = None if labels is None else _first_missing(labels)
    if found is None:
        return
    label, at = found
    what = "a masked label" if label is np.ma.masked else f"the label {plain(label)!r}"
    where = f" ({place} {', column '.join(map(str, at))})" if at else ""
    if isinstance(label, (set, frozenset)):
        raise ValueError(
            f"{name} has the set {label!r}{where} in the place of a label, which only "
            "positions of sequences and nodes of trees and graphs may have, in "
            "CRFClassifier and BCFWClassifier. For rows, use chains of one position: "
            "structure='chain', X[:, np.newaxis] and [[label] for label in y]."
        )
    rename = ""
    if isinstance(label, Number) and label == IGNORED:
        rename = " If -100 is a class, give it another name, such as the string '-100'."
        if place in ("position", "node"):
            rename = f" Put MISSING in the place of labels that are not known.{rename}"
    raise ValueError(
        f"{name} has {what}{where}. None, NaN, -100 and masked entries stand for unknown "
        f"labels, which are never learned as a class. {remedy}{rename}"
    )


def _first_missing(labels):
    """The first missing label and its place; None if no label is missing."""
    if sparse.issparse(labels):
        found = _first_missing(labels.tocoo().data) if labels.nnz else None
        return found and (found[0], ())
    if np.ma.isMaskedArray(labels) and np.ma.getmaskarray(labels).any():
        return np.ma.masked, tuple(np.argwhere(labels.mask)[0])
    if isinstance(labels, (list, tuple)):
        types = set(map(type, labels))
        if len(types) > 1 or any(issubclass(t, (list, tuple, np.ndarray)) for t in types):
            # One by one: NumPy converts all of them to strings if one is a string.
            return _first_missing_item(labels)
    try:
        values = np.asarray(labels)
    except ValueError:
        return None  # ragged, of which others say more
    if values.dtype.kind == "O":
        missing = np.reshape(
            [_is_unlabeled(value) for value in values.flat], values.shape
        )
    elif values.dtype.kind in "mM":
        missing = np.isnat(values)
    elif values.dtype.kind in "if":
        missing = (values == IGNORED) | (values != values)
    else:
        return None
    if not missing.any():
        return None
    at = tuple(np.argwhere(missing)[0])
    return values[at], at


def _first_missing_item(items):
    for i, item in enumerate(items):
        if isinstance(item, (list, tuple, np.ndarray)):
            found = _first_missing(item)
            if found is not None:
                return found[0], (i, *found[1])
        elif _is_unlabeled(item):
            return item, (i,)
    return None


def _is_unlabeled(label):
    if label is None or label is MISSING or isinstance(label, (set, frozenset)):
        return True
    if isinstance(label, Number) and label == IGNORED:
        return True
    try:
        return bool(label != label)
    except TypeError:
        return True  # pandas.NA is neither
    except ValueError:
        return False  # an array, of which others say more


def as_classes(classes, name="classes"):
    """All classes in the user's order; ValueError if `classes` is not a list."""
    if isinstance(classes, Set):
        raise ValueError(
            f"{name} must be a list of labels, whose order counts; got {classes!r}, "
            "which has none."
        )
    refuse_missing(classes, name, place="item", remedy="Leave it out.")
    array = as_array(name, classes)
    if array.dtype.kind in "US" and not all(isinstance(c, (str, bytes)) for c in classes):
        # NumPy would convert 1 to "1" beside "a".
        array = np.array(list(classes), dtype=object)
    check_shape(name, array, "n_classes")
    if not len(array):
        raise ValueError(f"{name} is empty.")
    return array


def split_weights(y):
    """The labels of an item, and the weights of its nodes: None if it has none.

    An item with weights is a pair of two sequences.
    """
    if isinstance(y, (tuple, list)) and len(y) == 2 and np.ndim(y[0]) == 1:
        return y[0], y[1]
    return y, None


def check_node_weights(name, weights, n):
    """The weights of n nodes in float64, or None as it is. ValueError if one is < 0."""
    if weights is None:
        return None
    weights = as_floats(name, weights, n)
    if (weights < 0.0).any():
        raise ValueError(f"{name} has the weight {weights.min()}; weights are >= 0.")
    return weights


def plain(label):
    """A label as its user wrote it: NumPy scalars become Python scalars."""
    return label.item() if isinstance(label, np.generic) else label


def listed(labels):
    """Labels for a message, cut off if there are many."""
    labels = [repr(plain(label)) for label in labels]
    if len(labels) > MAX_NAMES:
        labels[MAX_NAMES - 1 :] = ["..."]
    return ", ".join(labels)


def unseen(labels, classes):
    """The distinct labels that are not among `classes`, in order of appearance.

    They are compared as in Python, so that 1 is not "1".
    """
    known = set(classes.tolist())
    try:
        return list(dict.fromkeys(label for label in labels if label not in known))
    except TypeError as error:
        words = "y contains what cannot be a label; use strings, integers or booleans."
        raise ValueError(f"{words} ({error})") from error


def unseen_words(labels, classes):
    """Warning of a score about the labels that `unseen` found."""
    return (
        f"y has labels that were not seen in fit: {listed(labels)}."
        f"{meant(labels[0], classes.tolist())} They count as wrong."
    )


def encode(labels, classes, name="y", *, where=None):
    """Places of labels in `classes`.

    `labels` (n,). `classes` (k,): in any order. `where` or None: maps a place in
    `labels` to words that name the item, for the error. Returns (n,) intc. ValueError
    for a label that is not a class, and for labels of another shape.
    """
    labels, classes = as_array(name, labels), np.asarray(classes)
    check_shape(name, labels, "n")
    try:
        order = np.argsort(classes)
        places = np.searchsorted(classes, labels, sorter=order)
        places = order[np.minimum(places, len(classes) - 1)]
    except TypeError:
        # The labels and `classes` cannot be compared, so no label is known.
        places = np.zeros(len(labels), dtype=np.intp)
    unknown = np.flatnonzero(classes[places] != labels)
    if len(unknown):
        at = unknown[0]
        item = where(at) if where is not None else f"item {at}"
        raise ValueError(
            f"{name} has the label {plain(labels[at])!r} ({item}), which is not one "
            f"of the classes: {listed(classes)}."
            f"{meant(plain(labels[at]), classes.tolist())}"
        )
    return places.astype(np.intc)


def check_codes(codes, n, size, name="y"):
    """Labels that are already encoded: n integers in [0, size), of any dtype.

    Returns (n,) intp. ValueError for another shape, and for other values.
    """
    codes = as_array(name, codes)
    if codes.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},); got {codes.shape}.")
    if n and codes.dtype.kind not in "iubf":
        raise ValueError(f"{name} must hold integers; got {codes.dtype}.")
    bad = np.flatnonzero(~((codes >= 0) & (codes < size) & (codes % 1 == 0)))
    if len(bad):
        raise ValueError(
            f"{name} must be among 0, ..., {size - 1}; "
            f"got {codes[bad[0]]} for sample {bad[0]}."
        )
    return codes.astype(np.intp)


def check_indicator(Y, n):
    """An indicator of 0 and 1 with n rows, in int8.

    ValueError for another number of rows, and for other entries.
    """
    if len(Y) != n:
        raise ValueError(f"Y must have {n} rows; got {len(Y)}.")
    bad = np.argwhere(~np.isin(Y, (0, 1)))
    if len(bad):
        i, c = bad[0]
        raise ValueError(
            f"Y must be a label indicator of 0 and 1; got {plain(Y[i, c])!r} in row {i}, "
            f"column {c}."
        )
    return np.require(Y, np.int8, "CA")


def unique(labels, name, **options):
    """np.unique of the argument `name`."""
    try:
        return np.unique(labels, **options)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} mixes labels that cannot be sorted: {error}. Make all of them "
            "strings, or all of them integers."
        ) from error


def unique_of(**arrays):
    """The sorted labels of all these arguments."""
    found = [unique(as_array(name, own), name) for name, own in arrays.items()]
    return unique(np.concatenate(found), " or ".join(arrays))


def label_cost_matrix(label_costs, n_classes, class_weight=None):
    """costs[truth, label] as float64, checked; None means 0/1."""
    if label_costs is None:
        costs = 1.0 - np.eye(n_classes)
    else:
        costs = as_costs(label_costs, n_classes, n_classes)
        if np.diagonal(costs).any():
            at = int(np.flatnonzero(np.diagonal(costs))[0])
            raise ValueError(
                "label_costs must be zero on the diagonal; "
                f"got {costs[at, at]} for class {at}."
            )
    if class_weight is not None:
        costs = class_weight[:, np.newaxis] * costs
    return costs


def as_costs(label_costs, *shape):
    """A copy of the costs; ValueError if one is negative or not finite."""
    costs = as_floats("label_costs", label_costs, *shape).copy()
    if (costs < 0).any():
        raise ValueError(f"label_costs must be >= 0; got {costs[costs < 0][0]}.")
    return costs


def class_weight_vector(class_weight, classes, labels):
    """One weight per class from scikit-learn's `class_weight`; None for None."""
    if class_weight is None:
        return None
    weights = np.ones(len(classes))
    present = np.ones(len(classes), dtype=bool)
    if isinstance(class_weight, str):
        present = np.isin(classes, labels)
    elif not set(np.asarray(classes).tolist()) <= set(class_weight):
        encode(list(class_weight), classes, "class_weight")
    weights[present] = compute_class_weight(
        class_weight, classes=classes[present], y=np.asarray(labels)
    )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0.0))
    if len(bad):
        raise ValueError(
            "class_weight must be finite and >= 0; "
            f"got {weights[bad[0]]} for class {plain(classes[bad[0]])!r}."
        )
    return weights
