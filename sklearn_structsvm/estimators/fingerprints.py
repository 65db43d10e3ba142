"""Fingerprints that distinguish examples, and find examples of a previous fit."""

from hashlib import blake2b
from itertools import pairwise

import joblib
import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.split_matrix import SplitMatrix

# Bytes of a fingerprint: two of a million examples have the same one with probability
# 3e-8.
SIZE = 8


def fingerprints(X, y):
    """Two fingerprints for each example: of its labels, and of all its data.

    `X`, `y` as checked. Rows or items, and labels of each. Returns (n, 2), uint64.
    """
    labels = list(map(_number, _parts(y)))
    both = [
        _number(label.to_bytes(SIZE, "little") + x)
        for label, x in zip(labels, _parts(X), strict=True)
    ]
    return np.array([labels, both], dtype=np.uint64).T


def places_before(before, now, by_labels=True):
    """The previous example that each example replaces.

    This is the same example, anywhere, or else one with the same labels and place.

    `before`, `now` (n, 2) and (m, 2): of `fingerprints`. `by_labels`: whether features
    may differ. Returns (m,) intp: -1 for a new example. All other numbers are unique.
    """
    waiting = {}
    for i, number in enumerate(before[:, 1].tolist()):
        waiting.setdefault(number, []).append(i)
    for found in waiting.values():
        # The first match is used first.
        found.reverse()
    places = np.full(len(now), -1, dtype=np.intp)
    for i, number in enumerate(now[:, 1].tolist()):
        if waiting.get(number):
            places[i] = waiting[number].pop()
    if not by_labels:
        return places
    is_free = np.ones(len(before), dtype=bool)
    is_free[places[places >= 0]] = False
    n = min(len(before), len(now))
    stays = is_free[:n] & (places[:n] < 0) & (before[:n, 0] == now[:n, 0])
    places[:n][stays] = np.flatnonzero(stays)
    return places


def _number(data):
    return int.from_bytes(blake2b(data, digest_size=SIZE).digest(), "little")


def _parts(data):
    """The bytes of each row or item."""
    if sparse.issparse(data):
        data = sparse.csr_array(data)
        for start, stop in pairwise(data.indptr.tolist()):
            places, values = data.indices[start:stop], data.data[start:stop]
            yield places.tobytes() + values.tobytes()
    elif isinstance(data, np.ndarray) and data.dtype != object:
        for row in data:
            yield row.tobytes()
    else:
        yield from map(_bytes, data)


def _bytes(thing):
    if isinstance(thing, (int, np.generic)):
        thing = np.asarray(thing)
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return f"{thing.dtype.str}{thing.shape}".encode() + thing.tobytes()
    if sparse.issparse(thing):
        thing = sparse.csr_array(thing)
        parts = thing.indptr - thing.indptr[0], thing.indices, thing.data
        return b"".join(map(_bytes, parts))
    if isinstance(thing, SplitMatrix):
        thing = thing.matrices
    if isinstance(thing, (list, tuple)):
        return b"(" + b",".join(map(_bytes, thing)) + b")"
    return joblib.hash(thing).encode()
