"""Unknown labels of training data: `MISSING` and sets of labels.

After the check, y has some allowed labeling in place of each unknown one, together with
masks of the labels that the nodes may have, as for the argument `allowed` of predictions.
"""

from operator import is_not

import numpy as np

from sklearn_structsvm._utils.labels import MISSING, Missing
from sklearn_structsvm._utils.tables import is_missing

__all__ = ["MISSING"]

# Types of sets of labels. Lists and tuples may be labelings.
SETS = (set, frozenset)
KNOWN_TYPES = str, bytes, int, np.integer, np.bool_

NOTHING_KNOWN = (
    "y has no known label: each of them is MISSING, or a set of all labels, so that "
    "there is nothing to learn."
)


def is_hidden(entry):
    """Whether an entry of a labeling is hidden."""
    return entry is None or entry is MISSING or isinstance(entry, SETS)


def known_places(entries):
    """A mask of the entries of a labeling that are labels."""
    return np.array([t for t, entry in enumerate(entries) if not is_hidden(entry)], int)


def as_entries(labels):
    """The entries of a labeling as a list; None if it has no hidden ones."""
    if isinstance(labels, np.ndarray):
        if labels.ndim != 1 or labels.dtype.kind not in "Of":
            return None
        if labels.dtype != object and not np.isnan(labels).any():
            return None
        labels = labels.tolist()
    elif isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        return None
    entries = list(labels)
    # Of most labels the type says that they are known.
    if all(issubclass(kind, KNOWN_TYPES) for kind in set(map(type, entries))):
        return None
    plain = list(map(_plainer, entries))
    is_known = not any(map(is_not, plain, entries)) and not any(map(is_hidden, plain))
    return None if is_known else _whole(plain)


def _listed(labels):
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def _whole(entries):
    """The entries with whole numbers as integers, which NaN beside them makes floats."""
    return [
        int(entry) if isinstance(entry, float) and entry.is_integer() else entry
        for entry in entries
    ]


def _plainer(entry):
    """None for what is not known, and the label for a set with one label."""
    if isinstance(entry, SETS):
        return next(iter(entry)) if len(entry) == 1 else entry
    return None if entry is MISSING or _is_unnamed(entry) else entry


def _is_unnamed(entry):
    """Whether an entry is None, NaN or the missing value of pandas."""
    is_other = isinstance(entry, (Missing, np.ndarray, list, tuple, *SETS))
    return not is_other and is_missing(entry)


def find_unnamed(y, parts_of):
    """The places of labels that are None or NaN, which may be an accident."""
    return [
        (i, t)
        for i, item in enumerate(y)
        if as_entries(parts_of(item)) is not None
        for t, entry in enumerate(parts_of(item))
        if _is_unnamed(entry)
    ]


def split_hidden(y, parts_of, join):
    """Split y into a completely known y and its hidden entries.

    `y`: the labels as users pass them. `parts_of`: from an item of y to its labels.
    `join`: (item, labels) -> an item with other labels. Returns `y`: the same with
    arbitrary labels in place of hidden ones; `entries` (list of lists): labels, sets of
    labels, and None for any label, of each item; None if no label of any item is hidden.
    """
    has_items = hasattr(y, "__len__") and getattr(y, "ndim", 1) > 0
    if isinstance(y, (str, bytes)) or not has_items:
        return y, None
    items = list(y)
    found = [as_entries(parts_of(item)) for item in items]
    if all(own is None for own in found):
        return y, None
    entries = [
        _whole(_listed(parts_of(item))) if own is None else own
        for item, own in zip(items, found, strict=True)
    ]
    label = next(_labels_in(entries), None)
    if label is None:
        raise ValueError(NOTHING_KNOWN)
    for i, own in enumerate(entries):
        given = _listed(parts_of(items[i]))
        if found[i] is not None or any(isinstance(entry, float) for entry in given):
            some = [next(_labels_in([[entry]]), label) for entry in own]
            items[i] = join(items[i], some)
    if not any(is_hidden(entry) for own in entries for entry in own):
        return items, None
    return items, entries


def _labels_in(entries):
    for own in entries:
        for entry in own:
            if isinstance(entry, SETS):
                yield from entry
            elif entry is not None:
                yield entry


def members_of(entries):
    """The labels that sets hold."""
    return {
        label
        for own in entries
        for entry in own
        if isinstance(entry, SETS)
        for label in entry
    }


def first_hidden(entries):
    """The item and the position of the first hidden label."""
    return next(
        (i, t)
        for i, own in enumerate(entries)
        for t, entry in enumerate(own)
        if is_hidden(entry)
    )
