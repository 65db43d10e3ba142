"""The labels that nodes of single examples may have, for the argument `allowed`.

Checked, it is `AllowedLabels`, a mask of shape (T_i, k) for each example. The scores of
all other labels are lowered by BARRED, which exceeds any sum of scores. So a labeling
with such a label is the best only if there is no other.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sklearn_structsvm._utils.borders import check_sequence, refuse_masked
from sklearn_structsvm._utils.labels import listed, plain
from sklearn_structsvm.structures._allowed_labels import read_allowed

BARRED = 1e100


class NoAllowedLabeling(ValueError):
    """No labeling of an item of X satisfies both `allowed` and `transitions`."""

    def __init__(self, item, place):
        super().__init__(item, place)
        self.item, self.place = item, place

    def __str__(self):
        return self.of(self.item)

    def of(self, i, name="allowed"):
        """The message for item i of X, if this argument bars labels."""
        return (
            f"{name}[{i}] and `transitions` leave X[{i}] no labeling: no label of "
            f"{self.place} fits those after it, or below."
        )


class NoLongRuns(NoAllowedLabeling):
    """No labeling of an item of X has runs that are long enough."""

    def __init__(self, item):
        super().__init__(item, None)

    def of(self, i, name="allowed"):
        """The message for item i of X."""
        return (
            f"min_length leaves X[{i}] no labeling, with its length, its `{name}` and "
            "`transitions`."
        )


class AllowedLabels(Sequence):
    """Masks of the labels that nodes may have, of several examples.

    As a sequence it has a mask of shape (T_i, k) for each example. It stores only the
    nodes at which labels are barred.

    `bounds` (n + 1,) intp: example i has the nodes bounds[i]:bounds[i + 1]. `nodes`
    (m,) intp: the nodes at which labels are barred, in increasing order. `masks` (m, k)
    bool: the labels that these nodes may have.
    """

    def __init__(self, bounds, nodes, masks):
        self.bounds, self.nodes, self.masks = bounds, nodes, masks

    def __len__(self):
        return len(self.bounds) - 1

    def __getitem__(self, i):
        (own,) = self.take([i])
        return own

    def __iter__(self):
        rows = np.ones((self.bounds[-1], self.masks.shape[1]), dtype=bool)
        rows[self.nodes] = self.masks
        bounds = self.bounds.tolist()
        return iter([rows[start:end] for start, end in pairwise(bounds)])

    def take(self, places):
        """Those of some of the examples, in increasing order."""
        first, stop = places[0], places[-1] + 1
        bounds = self.bounds[first : stop + 1]
        low, high = np.searchsorted(self.nodes, bounds[[0, -1]])
        nodes, masks = self.nodes[low:high] - bounds[0], self.masks[low:high]
        every = AllowedLabels(bounds - bounds[0], nodes, masks)
        return every if len(places) == stop - first else every._some(places, first)

    def _some(self, places, first):
        """Those of places - first."""
        places = np.subtract(places, first)
        starts, lengths = self.bounds[places], np.diff(self.bounds)[places]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        items = np.searchsorted(starts, self.nodes, side="right") - 1
        own = self.nodes < (starts + lengths)[items]
        nodes = self.nodes + (bounds[:-1] - starts)[items]
        return AllowedLabels(bounds, nodes[own], self.masks[own])

    def in_order(self, order):
        """The same with node order[v] at place v, without division into examples."""
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        places = places[self.nodes]
        by_place = np.argsort(places)
        bounds = self.bounds[[0, -1]]
        return AllowedLabels(bounds, places[by_place], self.masks[by_place])

    def any_of_each(self, is_so):
        """Whether this holds at any of `nodes`, for each example."""
        items = np.searchsorted(self.bounds, self.nodes[is_so], side="right") - 1
        return np.bincount(items, minlength=len(self)) > 0

    def violates(self, labels):
        """Whether each example has an encoded label that is not allowed.

        The labels are those of all nodes, one example after another.
        """
        at = np.arange(len(self.nodes))
        return self.any_of_each(~self.masks[at, labels[self.nodes]])


def as_allowed_labels(masks):
    """`AllowedLabels` of a mask for each example."""
    if isinstance(masks, AllowedLabels):
        return masks
    bounds = np.cumsum([0, *map(len, masks)], dtype=np.intp)
    rows = np.concatenate(masks)
    nodes = np.flatnonzero(~rows.all(axis=1))
    return AllowedLabels(bounds, nodes, rows[nodes])


def check_allowed_labels(allowed, bounds, classes, place, name="allowed"):
    """Read the argument as users pass it.

    `classes` (k,). `allowed`: for each example None, a boolean array of shape (T_i, k),
    or a sequence of T_i labels, sets of labels, and None or `MISSING` for any label.
    `bounds` as of `AllowedLabels`. `place`: the word for a node. Returns `AllowedLabels`.
    ValueError if the numbers of examples or nodes do not match, if a label is unknown, or
    if a node has no label. The message names the example and the node.
    """
    words = "None or a sequence with an entry for each item of X"
    check_sequence(name, allowed, words)
    if len(allowed) != len(bounds) - 1:
        raise ValueError(
            f"{name} has {len(allowed)} entries, but X has {len(bounds) - 1} items."
        )
    if isinstance(allowed, AllowedLabels):
        return allowed
    for i, own in enumerate(allowed):
        refuse_masked(f"{name}[{i}]", own)
    codes = {label: c for c, label in enumerate(classes.tolist())}

    def regular(i, own):
        length, k = int(bounds[i + 1] - bounds[i]), len(classes)
        if hasattr(own, "columns"):
            # Iteration would take the names of its columns for entries.
            raise ValueError(
                f"{name}[{i}] is a {type(own).__name__}. Pass a boolean array, with the "
                f"columns in the order of the classes {listed(classes)}."
            )
        if isinstance(own, np.ndarray) and own.dtype.kind == "b" and own.ndim == 2:
            if own.shape != (length, k):
                raise ValueError(
                    f"{name}[{i}] must be a mask of shape ({length}, {k}), for "
                    f"{length} {place}s and {k} classes; got shape {own.shape}."
                )
            return np.ascontiguousarray(own)
        words = f"None, a mask, or a sequence with an entry for each {place}"
        check_sequence(f"{name}[{i}]", own, words)
        if len(own) != length:
            raise ValueError(f"{name}[{i}] has {len(own)} entries for {length} {place}s.")
        return list(own)

    def code_of(i, t, label):
        try:
            return codes[plain(label)]
        except (KeyError, TypeError):
            raise ValueError(
                f"{name}[{i}][{t}] has {plain(label)!r}, which is not one of the classes "
                f"{listed(classes)}. None or MISSING stands for any label."
            ) from None

    found = read_allowed(list(allowed), bounds, len(classes), codes, regular, code_of)
    found = AllowedLabels(bounds, *found)
    has_some = found.masks.any(axis=1)
    if not has_some.all():
        at = found.nodes[has_some.argmin()]
        i = int(np.searchsorted(bounds, at, side="right")) - 1
        raise ValueError(f"{name}[{i}] leaves {place} {at - bounds[i]} no label.")
    return found


def lowered(theta, allowed, transition=None):
    """Scores of one example's labels, with barred labels below all others.

    They are lower by just more than labelings differ: more would cost digits.
    """
    spread = np.ptp(theta, axis=1).sum()
    if transition is not None and transition.size:
        n_pairs = len(theta) if transition.ndim == 2 else len(transition)
        spread += n_pairs * np.ptp(transition)
    return np.where(allowed, theta, theta - (1.0 + 2.0 * spread))
