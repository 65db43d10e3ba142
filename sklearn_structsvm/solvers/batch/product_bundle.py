"""A bundle whose planes are products Xᵀ B, kept as B if they would be long."""

import numpy as np
from scipy import sparse

from sklearn_structsvm.solvers.qp.bundle import Bundle

# A bundle reads every plane it has twice an iteration, for its Gram matrix and for its
# minimizer. With about this many of them that takes longer than two products with X where
# rows have fewer entries, relative to the number of features, than one in as many.
TYPICAL_PLANES = 50

# Methods that hold a few dozen vectors of that length, or need as many more planes, are
# slower from here on, where the bundle itself is not.
MANY_PLANES = 100

# Shorter ones are no burden.
LONG = 10_000


def make_bundle(risk, lam):
    """An empty bundle for the planes of a risk, of the kind that takes less time.

    Parameters
    ----------
    risk : Risk
    lam : float
        λ > 0.

    Returns
    -------
    Bundle
    """
    is_remote = getattr(risk, "is_remote", False)
    if has_long_planes(risk, TYPICAL_PLANES) and not is_remote:
        return ProductBundle(risk, lam)
    return Bundle(risk.n_weights, lam)


def has_long_planes(risk, typical=MANY_PLANES):
    """Whether to read this many planes takes longer than a product with X."""
    n_entries = getattr(risk, "n_entries", np.inf)
    long = risk.n_weights >= LONG
    return long and typical * risk.n_weights > n_entries * risk.n_scores


class ProductBundle(Bundle):
    """The bundle of planes a_j = Xᵀ B_j that is made of the B_j alone.

    ⟨a_j, a_i⟩ = ⟨X a_j, B_i⟩, and of the entries of B_i, those of a hinge, few are not
    zero: a plane's row of the Gram matrix takes a product with X and these entries, and
    no plane is stored. So does the minimizer: w = -Xᵀ (Σ α_j B_j) / λ.

    Parameters
    ----------
    risk : Risk
    lam : float
        λ > 0.
    max_idle : int
    max_planes : int or None
        As for `Bundle`; None for 1000. A plane takes 16 bytes for each entry of its B
        that is not zero, of which an example with a loss has one or two.
    """

    def __init__(self, risk, lam, **options):
        super().__init__(0, lam, **options)
        self.risk = risk
        self.weights = np.zeros(risk.n_weights)
        # Of the newest plane, and its image X a.
        self.plane = np.empty(risk.n_weights)
        self.image = np.empty((risk.n_samples, risk.n_scores))
        # Rows of a sparse matrix, one a plane, with room for more entries.
        self.starts = [0]
        self.where, self.values = np.empty(0, dtype=np.intp), np.empty(0)

    @property
    def planes(self):
        return np.array([self._plane(row) for row in np.eye(len(self.offsets))])

    def at(self, lam):
        bundle = ProductBundle(
            self.risk, lam, max_idle=self.max_idle, max_planes=self.max_planes
        )
        for j, offset in enumerate(self.offsets):
            bundle._append(*self._entries(j), offset)
        if len(self.offsets):
            bundle.solve()
        return bundle

    def add(self, plane, offset):
        raise TypeError("This bundle takes planes as products: use `cut`.")

    def cut(self, risk, B, offset, plane=None):
        if len(self.offsets) >= self.max_planes:
            self._make_room()
        flat = B.ravel()
        where = np.flatnonzero(flat)
        self._append(where, flat[where], offset, plane)

    def _append(self, where, values, offset, plane=None):
        self._store(where, values)
        self.offsets = np.append(self.offsets, offset)
        self.alpha = np.append(self.alpha, 0.0)
        if plane is None:
            shares = np.zeros(len(self.offsets))
            shares[-1] = 1.0
            plane = self._plane(shares, out=self.plane)
        image = self.risk.scores(plane, out=self.image).ravel()
        self.qp.add_row(self._matrix() @ image / self.lam, offset)

    def _store(self, where, values):
        start, stop = self.starts[-1], self.starts[-1] + len(where)
        if stop > len(self.where):
            room = max(stop, 2 * len(self.where))
            self.where, self.values = (
                np.concatenate([kept[:start], np.empty(room - start, kept.dtype)])
                for kept in (self.where, self.values)
            )
        self.where[start:stop], self.values[start:stop] = where, values
        self.starts.append(stop)

    def _entries(self, j):
        part = slice(self.starts[j], self.starts[j + 1])
        return self.where[part], self.values[part]

    def _matrix(self):
        """The B_j, flat, as rows of a sparse matrix that shares their entries."""
        stop = self.starts[-1]
        return sparse.csr_array(
            (self.values[:stop], self.where[:stop], np.array(self.starts)),
            shape=(len(self.starts) - 1, self.image.size),
        )

    def _sum(self, shares):
        return self._plane(shares[:, 0])

    def _refine(self):
        """Products with X are those of doubles, and there is no more to know."""

    def _plane(self, shares, out=None):
        flat = shares @ self._matrix()
        return self.risk.gradient(flat.reshape(self.image.shape), out=out)

    def _keep(self, indices):
        entries = [self._entries(j) for j in indices]
        starts = np.cumsum([0, *(len(where) for where, _ in entries)])
        if entries:
            self.where = np.concatenate([where for where, _ in entries])
            self.values = np.concatenate([values for _, values in entries])
        self.starts = starts.tolist()

    def _merged(self, pair, mass):
        flat = mass @ self._matrix()[pair]
        where = np.flatnonzero(flat)
        return where, flat[where]

    def _add_merged(self, plane, offset):
        self._append(*plane, offset)
