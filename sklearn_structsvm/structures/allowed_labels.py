"""Labels that nodes of single examples may have: the argument `allowed` of predictions.

Checked, it is a list with a mask of shape (T_i, k) for each example. Scores of the other
labels are lowered by BARRED, which no sum of scores makes up for: a labeling that has one
is the best only if there is no other.
"""

from itertools import pairwise

import numpy as np

from sklearn_structsvm._utils.borders import check_sequence
from sklearn_structsvm._utils.labels import listed, plain

BARRED = 1e100


class NoAllowedLabeling(ValueError):
    """No labeling of an item of X keeps to `allowed` and `transitions`."""

    def __init__(self, item, place):
        super().__init__(item, place)
        self.item, self.place = item, place

    def __str__(self):
        return self.of(self.item)

    def of(self, i, name="allowed"):
        """The message, for item i of X, if labels are barred by this argument."""
        return (
            f"{name}[{i}] and `transitions` leave X[{i}] no labeling: no label of "
            f"{self.place} goes with those after it, or below."
        )


# What holds several labels; a string is one.
SETS = (set, frozenset, list, tuple)


def check_allowed_labels(allowed, lengths, classes, place, name="allowed"):
    """Masks of what users pass.

    Parameters
    ----------
    allowed : sequence
        For each example None, a boolean array of shape (T_i, k), or a sequence of T_i
        labels, sets of labels, and None for any label.
    lengths : sequence of int
        Nodes of each example.
    classes : ndarray of shape (k,)
    place : str
        The word for a node.
    name : str
        Name of the argument, for errors.

    Returns
    -------
    list of ndarray of shape (T_i, k), dtype bool

    Raises
    ------
    ValueError
        Naming the example and the node, if there are more or fewer of them, if a label is
        unknown, or if a node has none.
    """
    words = "None or a sequence with an entry for each item of X"
    check_sequence(name, allowed, words)
    if len(allowed) != len(lengths):
        raise ValueError(
            f"{name} has {len(allowed)} entries, but X has {len(lengths)} items."
        )
    bounds, k = [0, *np.cumsum(lengths).tolist()], len(classes)
    rows = np.ones((bounds[-1], k), dtype=bool)
    masks = [rows[start:end] for start, end in pairwise(bounds)]
    codes = {label: c for c, label in enumerate(classes.tolist())}
    # Nodes with entries, and pairs of a node and a label, of all examples: arrays are
    # written to once, as each time takes as long as many labels.
    known, nodes, columns = [], [], []
    for i, own in enumerate(allowed):
        if own is None:
            continue
        length = lengths[i]
        if isinstance(own, np.ndarray) and own.dtype.kind == "b" and own.ndim == 2:
            if own.shape != (length, k):
                raise ValueError(
                    f"{name}[{i}] must be a mask of shape ({length}, {k}), for "
                    f"{length} {place}s and {k} classes; got shape {own.shape}."
                )
            masks[i] = own
            continue
        words = f"None, a mask, or a sequence with an entry for each {place}"
        check_sequence(f"{name}[{i}]", own, words)
        if len(own) != length:
            raise ValueError(
                f"{name}[{i}] has {len(own)} entries for {length} {place}s."
            )
        for v, entry in enumerate(own, bounds[i]):
            if entry is None:
                continue
            labels = entry if isinstance(entry, SETS) else (entry,)
            try:
                found = [codes[plain(label)] for label in labels]
            except (KeyError, TypeError):
                at = f"{name}[{i}][{v - bounds[i]}]"
                _refuse_unknown(labels, codes, at, classes)
            known.append(v)
            nodes += [v] * len(found)
            columns += found
    rows[known] = False
    rows[nodes, columns] = True
    _refuse_empty(masks, bounds, place, name)
    return masks


def _refuse_unknown(labels, codes, name, classes):
    for label in map(plain, labels):
        try:
            is_known = label in codes
        except TypeError:
            is_known = False
        if not is_known:
            raise ValueError(
                f"{name} has {label!r}, which is not one of the classes "
                f"{listed(classes)}. None stands for any label."
            ) from None


def _refuse_empty(masks, bounds, place, name):
    is_empty = ~np.concatenate(masks).any(axis=1) if masks else np.zeros(0, dtype=bool)
    if is_empty.any():
        at = int(is_empty.argmax())
        i = int(np.searchsorted(bounds, at, side="right")) - 1
        raise ValueError(f"{name}[{i}] leaves {place} {at - bounds[i]} no label.")


def lowered(theta, allowed, transition=None):
    """Scores of one example's labels, of which those not allowed are below all others.

    By more than labelings differ, and no more than that, which would take digits from
    the others.
    """
    spread = np.ptp(theta, axis=1).sum()
    if transition is not None and transition.size:
        n_pairs = len(theta) if transition.ndim == 2 else len(transition)
        spread += n_pairs * np.ptp(transition)
    return np.where(allowed, theta, theta - (1.0 + 2.0 * spread))


def violates(allowed, labels):
    """Whether each example has an encoded label that is not allowed."""
    rows, codes = np.concatenate(allowed), np.concatenate(labels)
    return any_of_each(allowed, ~rows[np.arange(len(codes)), codes])


def any_of_each(items, is_so):
    """Whether it is so for any of the rows of each item; no item is empty."""
    starts = np.cumsum([0, *map(len, items[:-1])])
    return np.logical_or.reduceat(is_so, starts)
