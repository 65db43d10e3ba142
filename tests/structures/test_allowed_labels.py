"""`allowed` as it is read: beside a reading of each entry on its own."""

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.structures import MISSING
from sklearn_structsvm.structures.allowed_labels import (
    AllowedLabels,
    as_allowed_labels,
    check_allowed_labels,
)

CLASSES = {
    "strings": np.array(["a", "bb", "c", "d"]),
    "integers": np.array([-3, 0, 1, 7]),
    "objects": np.array(["a", "bb", "c", "d"], dtype=object),
    "days": np.array(["2020-01-0" + c for c in "1234"], dtype="datetime64[D]"),
}


def as_mask(own, T, classes):
    """The mask that an entry of `allowed` stands for."""
    if own is None:
        return np.ones((T, len(classes)), dtype=bool)
    if isinstance(own, np.ndarray) and own.dtype == bool:
        return np.array(own)
    mask = np.zeros((T, len(classes)), dtype=bool)
    for t, entry in enumerate(own):
        some = entry if isinstance(entry, (set, frozenset, list, tuple)) else [entry]
        for c, label in enumerate(classes):
            is_any = entry is None or entry is MISSING
            mask[t, c] = is_any or any(label == one for one in some)
    return mask


def draw_entry(rng, classes):
    """A label, a collection of labels, or None, as users may have them."""
    label = classes[rng.integers(len(classes))]
    if rng.random() < 0.5:
        label = label.item() if hasattr(label, "item") else label
    others = rng.choice(classes.tolist(), 2).tolist()
    own = [None, label, {label, *others}, frozenset([label]), [label, *others], (label,)]
    own += [MISSING]
    return own[rng.integers(len(own))]


def draw_allowed(rng, classes):
    """What there is for an example, and its length."""
    T, kind = int(rng.integers(0, 5)), rng.integers(6)
    mask = rng.random((T, len(classes))) < 0.7
    mask[np.arange(T), rng.integers(len(classes), size=T)] = True
    if kind == 0:
        return None, T
    if kind == 1:
        return mask, T
    if kind == 2:
        # Not as it is stored, or of more memory than it shows.
        return [np.asfortranarray(mask), np.repeat(mask, 2, axis=1)[:, ::2]][T % 2], T
    own = [draw_entry(rng, classes) for _ in range(T)]
    if kind == 3:
        return tuple(own), T
    if kind == 4:
        return classes[rng.integers(len(classes), size=T)], T
    return own, T


def read(allowed, lengths, classes, **options):
    bounds = np.cumsum([0, *lengths], dtype=np.intp)
    return check_allowed_labels(allowed, bounds, classes, "position", **options)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("repeat", range(5))
def test_every_form_is_read_as_each_of_its_entries_in_any_order(name, repeat):
    rng, classes = new_rng(repeat, len(name)), CLASSES[name]
    drawn = [draw_allowed(rng, classes) for _ in range(12)]
    allowed, lengths = zip(*drawn, strict=True)
    expected = [as_mask(own, T, classes) for own, T in drawn]
    found = read(list(allowed), lengths, classes)
    assert len(found) == 12
    for i, (mask, own) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(mask, own)
        np.testing.assert_array_equal(found[i], own)
    # What stands beside nodes that may have any label takes no room.
    rows = np.concatenate(expected)
    np.testing.assert_array_equal(found.nodes, np.flatnonzero(~rows.all(axis=1)))
    np.testing.assert_array_equal(found.masks, rows[found.nodes])
    again = as_allowed_labels(expected)
    np.testing.assert_array_equal(again.nodes, found.nodes)
    np.testing.assert_array_equal(again.masks, found.masks)
    assert as_allowed_labels(found) is found
    assert read(found, lengths, classes) is found
    # In the order of some examples, or of all nodes.
    full = np.flatnonzero(lengths).tolist()
    for places in (full, list(range(3, 9)), np.sort(rng.permutation(12)[:5]).tolist()):
        some = found.take(places)
        assert isinstance(some, AllowedLabels)
        for mask, i in zip(some, places, strict=True):
            np.testing.assert_array_equal(mask, expected[i])
    order = rng.permutation(len(rows))
    (mask,) = found.in_order(order)
    np.testing.assert_array_equal(mask, rows[order])
    # Examples with a label that is barred.
    labels = [rng.integers(4, size=T) for T in lengths]
    barred = [
        not own[np.arange(len(codes)), codes].all()
        for own, codes in zip(expected, labels, strict=True)
    ]
    assert found.violates(np.concatenate(labels)).tolist() == barred


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (["a", "e"], r"allowed\[1\]\[1\] has 'e', which is not one of the classes 'a',"),
        (["a", {"bb", "e"}], r"allowed\[1\]\[1\] has 'e', which is not one of"),
        (["a", {"x": 1}], r"allowed\[1\]\[1\] has {'x': 1}, which is not one of"),
        ([np.str_("e"), "a"], r"allowed\[1\]\[0\] has 'e', which is not one of"),
        (["a", [["a"]]], r"allowed\[1\]\[1\] has \['a'\], which is not one of"),
        (["a"], r"allowed\[1\] has 1 entries for 2 positions\."),
        (np.array(["a"]), r"allowed\[1\] has 1 entries for 2 positions\."),
        ("ab", r"allowed\[1\] must be None, a mask, or a sequence .*; got str"),
        (3, r"allowed\[1\] must be None, a mask, or a sequence .*; got int"),
        (np.ones((2, 3), bool), r"allowed\[1\] must be a mask of shape \(2, 4\), for 2"),
        (np.ones((4, 2), bool).T, None),
        (["a", set()], r"allowed\[1\] leaves position 1 no label\."),
        (np.zeros((2, 4), bool), r"allowed\[1\] leaves position 0 no label\."),
    ],
)
def test_what_is_none_of_it_is_refused_by_its_place(own, message):
    if message is None:
        assert read([None, own], [3, 2], CLASSES["strings"]).nodes.size == 0
        return
    with pytest.raises(ValueError, match=message):
        read([None, own], [3, 2], CLASSES["strings"])
