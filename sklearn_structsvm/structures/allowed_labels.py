"""Labels that nodes of single examples may have: the argument `allowed` of predictions.

Checked, it is a list with a mask of shape (T_i, k) for each example. Scores of the other
labels are lowered by BARRED, which no sum of scores makes up for: a labeling that has one
is the best only if there is no other.
"""

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

    def of(self, i):
        """The message, for item i of X."""
        return (
            f"allowed[{i}] and `transitions` leave X[{i}] no labeling: no label of "
            f"{self.place} goes with those after it, or below."
        )


# What holds several labels; a string is one.
SETS = (set, frozenset, list, tuple)


def check_allowed_labels(allowed, lengths, classes, place):
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
    check_sequence("allowed", allowed, words)
    if len(allowed) != len(lengths):
        raise ValueError(
            f"allowed has {len(allowed)} entries, but X has {len(lengths)} items."
        )
    codes = {label: c for c, label in enumerate(classes.tolist())}
    masks = [
        _mask(own, i, length, codes, classes, place)
        for i, (own, length) in enumerate(zip(allowed, lengths, strict=True))
    ]
    if masks and not np.concatenate(masks).any(axis=1).all():
        i, t = next(
            (i, int(np.argmin(mask.any(axis=1))))
            for i, mask in enumerate(masks)
            if not mask.any(axis=1).all()
        )
        raise ValueError(f"allowed[{i}] leaves {place} {t} no label.")
    return masks


def _mask(own, i, length, codes, classes, place):
    if own is None:
        return np.ones((length, len(codes)), dtype=bool)
    if isinstance(own, np.ndarray) and own.dtype == bool and own.ndim == 2:
        if own.shape != (length, len(codes)):
            raise ValueError(
                f"allowed[{i}] must be a mask of shape ({length}, {len(codes)}), for "
                f"{length} {place}s and {len(codes)} classes; got shape {own.shape}."
            )
        return own
    words = f"None, a mask, or a sequence with an entry for each {place}"
    check_sequence(f"allowed[{i}]", own, words)
    if len(own) != length:
        raise ValueError(f"allowed[{i}] has {len(own)} entries for {length} {place}s.")
    mask = np.zeros((length, len(codes)), dtype=bool)
    for t, entry in enumerate(own):
        if entry is None:
            mask[t] = True
            continue
        for label in entry if isinstance(entry, SETS) else (entry,):
            mask[t, _code(plain(label), codes, f"allowed[{i}][{t}]", classes)] = True
    return mask


def _code(label, codes, name, classes):
    try:
        return codes[label]
    except (KeyError, TypeError):
        raise ValueError(
            f"{name} has {label!r}, which is not one of the classes {listed(classes)}. "
            "None stands for any label."
        ) from None


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
