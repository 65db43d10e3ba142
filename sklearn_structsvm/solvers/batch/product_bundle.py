"""A bundle of planes Xᵀ B, each of which is stored as B if Xᵀ B would be long."""

import numpy as np
from scipy import sparse

from sklearn_structsvm.solvers.qp.bundle import Bundle

# A bundle reads all its planes twice per iteration, for its Gram matrix and for its
# minimizer. With about this many planes, that takes longer than two products with X if
# rows have fewer entries, relative to the number of features, than one in this many.
TYPICAL_PLANES = 50

# From this length on, methods are slower that hold a few dozen vectors of this length or
# that need as many more planes, while the bundle itself is not.
MANY_PLANES = 100

# Shorter planes are no problem.
LONG = 10_000


def make_bundle(risk, lam):
    """An empty bundle for the planes of a risk, of the faster kind."""
    if has_long_planes(risk, TYPICAL_PLANES) and not risk.is_remote:
        return ProductBundle(risk, lam)
    return Bundle(risk.n_weights, lam)


def has_long_planes(risk, typical=MANY_PLANES):
    """Whether reading this many planes takes longer than a product with X."""
    long = risk.n_weights >= LONG
    return long and typical * risk.n_weights > risk.n_entries * risk.n_scores


class ProductBundle(Bundle):
    """A bundle of planes a_j = Xᵀ B_j that stores only the B_j.

    ⟨a_j, a_i⟩ = ⟨X a_j, B_i⟩, and few entries of B_i are nonzero for a hinge. So a
    plane's row of the Gram matrix takes a product with X and these entries, and no plane
    is stored. The same holds for the minimizer, w = -Xᵀ (Σ α_j B_j) / λ.

    `max_idle`, `max_planes`: as for `Bundle`; None for 1000 planes. A plane takes 16
    bytes for each nonzero entry of its B, one or two per example with a loss.
    """

    def __init__(self, risk, lam, **options):
        super().__init__(0, lam, **options)
        self.risk = risk
        self.weights = np.zeros(risk.n_weights)
        # The B of the newest plane, and its image X a.
        self.plane = np.empty(risk.n_weights)
        self.image = np.empty((risk.n_samples, risk.n_scores))
        # Rows of a sparse matrix, one per plane, with room for more entries.
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
        """Do nothing: products with X have no more digits than doubles."""

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
