"""The same problem by other ways: as a structure in Python, and as parts in Dask."""

from itertools import pairwise

import numpy as np
from scipy import sparse

from sklearn_structsvm.structures import Structure

try:
    import dask
    import dask.array as da
    import dask.bag as db
except ImportError:
    dask = da = None

# The largest number of labelings of an example in a list.
MAX_LISTED = 300


class Table(Structure):
    """Examples are numbers, and outputs pairs of a number and a place in a list.

    Parameters
    ----------
    features : list of ndarrays of shape (number of labelings, n_weights)
    losses : list of ndarrays of shape (number of labelings,)
        From the true labeling.
    """

    def __init__(self, features=(), losses=()):
        self.features, self.losses = features, losses

    def joint_feature(self, x, y):
        return self.features[x][y[1]]

    def loss(self, y_true, y):
        return float(self.losses[y_true[0]][y[1]])

    def decode(self, x, w):
        return x, int((self.features[x] @ w).argmax())

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return x, int((self.features[x] @ w + lam * self.losses[x]).argmax())


def as_table(structure, X, y):
    """(structure, X, y): the same problem as a `Table`, or None if it is too large."""
    X, y = structure.check_data(X, y)
    features, losses, outputs = [], [], []
    for i, (x, truth) in enumerate(zip(X, y, strict=True)):
        found = list(structure.labelings(x))
        if len(found) > MAX_LISTED:
            return None
        features.append(np.array([structure.joint_feature(x, own) for own in found]))
        losses.append(np.array([structure.loss(truth, own) for own in found]))
        same = [np.array_equal(own, truth) for own in found]
        outputs.append((i, same.index(True)))
    return Table(features, losses), list(range(len(X))), outputs


def in_parts(rng, X, y, options):
    """Dask collections of the same data: arrays of rows, or bags of other examples."""
    n = len(y) if isinstance(y, list) else y.shape[0]
    cuts = np.sort(rng.integers(0, n + 1, size=int(rng.integers(0, 3))))
    ends = [0, *cuts.tolist(), n]
    if isinstance(X, np.ndarray):
        sizes = tuple(b - a for a, b in pairwise(ends))
        options = {name: _array(own, sizes) for name, own in options.items()}
        rows = _array(X, sizes)
        if rng.random() < 0.3:
            rows = rows.map_blocks(sparse.csr_array)
        return rows, _array(y, sizes), options
    # Parts of bags are not empty.
    ends = sorted({*ends})

    def bag(data):
        parts = [dask.delayed(list)(data[a:b]) for a, b in pairwise(ends)]
        return db.from_delayed(parts)

    options = {name: bag(own.tolist()) for name, own in options.items()}
    return bag(X), bag(y), options


def _array(values, sizes):
    return da.from_array(np.asarray(values), chunks=(sizes, *values.shape[1:]))


def computed(found):
    return found.compute() if hasattr(found, "compute") else found
