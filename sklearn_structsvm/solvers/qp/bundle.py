"""A bundle of planes below a convex risk, and the point that it proposes."""

import numpy as np

from sklearn_structsvm.solvers.accuracy import MAX_IDLE
from sklearn_structsvm.solvers.qp._simplex_qp import (
    SimplexQP,
    wide_combination,
    wide_products,
)

# The number of planes kept, each as long as w: this many, or as many as fit into this
# many bytes, but at least MIN_PLANES. A full bundle drops the plane that was idle for
# longest, or else merges the two with the least mass. Both leave the dual value
# unchanged.
MAX_PLANES = 1000
PLANE_MEMORY = 2**29
MIN_PLANES = 100


class Bundle:
    """min_w λ/2 ||w||² + max_j ⟨a_j, w⟩ + b_j, solved exactly through its dual.

    With planes (a_j, b_j) that nowhere exceed a convex risk, the minimum is a lower bound
    of the regularized risk's. The dual is a `SimplexQP` with G = A Aᵀ / λ, and w = -Aᵀα /
    λ. If the features are not scaled and doubles are too inaccurate, both are computed
    with twice the digits from then on.

    `n_weights`: length d of w. `lam`: λ > 0. `max_idle`, `max_planes`: when planes are
    dropped; `max_planes` is at least 2, and None what 512 MB hold, but from 100 to 1000.

    Attributes: `planes` (m, d), `offsets` (m,). `alpha` (m,): dual variables, of the
    last call of `solve`. `weights` (d,): its minimizer, zero before the first one.
    `dual_objective`: its minimum, computed from α by the definition of the dual. So it
    is a lower bound, whatever the accuracy of the quadratic program. `slack`: max_j
    ⟨a_j, w⟩ + b_j at the minimizer, computed on demand.
    """

    def __init__(self, n_weights, lam, *, max_idle=MAX_IDLE, max_planes=None):
        if max_planes is None:
            room = PLANE_MEMORY // max(8 * n_weights, 1)
            max_planes = min(max(room, MIN_PLANES), MAX_PLANES)
        self.lam = lam
        self.max_idle = max_idle
        self.max_planes = max_planes
        self.qp = SimplexQP()
        self.rows = np.empty((0, n_weights))
        self.offsets = np.empty(0)
        self.alpha = np.empty(0)
        self.weights = np.zeros(n_weights)
        self.dual_objective = -np.inf

    @classmethod
    def of(cls, planes, offsets, lam):
        """A bundle of given planes, as if they were added; `solve` drops none."""
        bundle = cls(planes.shape[1], lam, max_idle=np.inf, max_planes=len(planes) + 1)
        bundle.rows, bundle.offsets = planes, np.array(offsets)
        bundle.alpha = np.zeros(len(planes))
        with np.errstate(over="ignore", invalid="ignore"):
            gram = planes @ planes.T / lam
        _refuse_overflow(gram)
        for j, offset in enumerate(bundle.offsets):
            bundle.qp.add_row(gram[j, : j + 1].copy(), offset)
        return bundle

    @property
    def planes(self):
        return self.rows[: len(self.offsets)]

    @property
    def slack(self):
        return float((self.planes @ self.weights + self.offsets).max(initial=-np.inf))

    def at(self, lam, shift=0.0):
        """A bundle of the same planes, which are copied, for another λ.

        `shift` is added to each of them.
        """
        bundle = Bundle(
            self.rows.shape[1], lam, max_idle=self.max_idle, max_planes=self.max_planes
        )
        for plane, offset in zip(self.planes, self.offsets, strict=True):
            bundle.add(plane + shift, offset)
        if len(self.offsets):
            bundle.solve()
        return bundle

    def add(self, plane, offset):
        """Add a plane, which is copied.

        `plane` (d,).
        """
        if len(self.offsets) >= self.max_planes:
            self._make_room()
        m = len(self.offsets)
        if m == len(self.rows):
            grown = np.empty((max(4, 2 * m), self.rows.shape[1]))
            grown[:m] = self.rows
            self.rows = grown
        self.rows[m] = plane
        self.offsets = np.append(self.offsets, offset)
        self.alpha = np.append(self.alpha, 0.0)
        self.qp.add_row(self._products(m), offset)

    def replace(self, j, plane, offset):
        """Replace a plane by another one, which is copied.

        The next `solve` begins at the best of all planes. If one of them is a dual point
        (-λ w for weights w, with its loss as the offset), the solution is not worse.

        `plane` (d,). `j`: its index, in the order of `add` unless planes were dropped.
        With ``max_idle=np.inf`` and at most `max_planes` of them, none is dropped.
        """
        self.planes[j] = plane
        self.offsets[j] = offset
        self.alpha[:] = 0.0
        self.qp.replace_row(j, self._products(j), offset)

    def _products(self, j):
        """A plane's row of the Gram matrix."""
        planes = self.planes
        if self.qp.is_wide:
            products = wide_products(planes, planes[j], self.lam)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                products = planes @ planes[j] / self.lam
        _refuse_overflow(products[j])
        return products

    def cut(self, risk, B, offset, plane=None):
        """Add the plane Xᵀ B of a risk.

        `B` (n_samples, n_scores). `plane` (d,) or None: Xᵀ B, where it is known.
        """
        self.add(risk.gradient(B) if plane is None else plane, offset)

    def solve(self):
        """Move to the minimizer, and drop planes that were idle for long."""
        self.alpha, _, _ = self.qp.solve()
        if self.qp.is_rough:
            self._refine()
        self._drop(np.flatnonzero(self.qp.idle >= self.max_idle))
        self.weights = self._sum(self.qp.shares) / -self.lam
        self.dual_objective = float(
            self.alpha @ self.offsets - 0.5 * self.lam * self.weights @ self.weights
        )

    def _refine(self):
        """Solve with twice the digits from now on."""
        rows = [wide_products(self.planes, plane, self.lam) for plane in self.planes]
        self.qp.widen(np.array(rows))
        self.alpha, _, _ = self.qp.solve()

    def _sum(self, shares):
        """Σ share_j a_j, for shares with their rounding errors."""
        if self.qp.is_wide:
            return wide_combination(shares, self.planes)
        # Planes with a share of 0 are read too: copying the others would take longer.
        return shares[:, 0] @ self.planes

    def _drop(self, indices):
        if len(indices) == 0:
            return
        keep = np.setdiff1d(np.arange(len(self.offsets)), indices)
        self._keep(keep)
        self.offsets, self.alpha = self.offsets[keep], self.alpha[keep]
        self.qp.remove(indices)

    def _keep(self, indices):
        self.rows[: len(indices)] = self.rows[indices]

    def _make_room(self):
        idle = self.qp.idle
        if idle.any():
            self._drop([int(idle.argmax())])
            return
        pair = np.argsort(self.alpha, kind="stable")[:2]
        mass = self.alpha[pair]
        if mass[0] == 0.0:
            # It was added after the last `solve`, so it was never idle.
            self._drop(pair[:1])
            return
        mass /= mass.sum()
        plane, offset = self._merged(pair, mass), mass @ self.offsets[pair]
        self._drop(pair)
        self._add_merged(plane, offset)

    def _merged(self, pair, mass):
        return mass @ self.planes[pair]

    def _add_merged(self, plane, offset):
        self.add(plane, offset)


def _refuse_overflow(products):
    if not np.isfinite(products).all():
        raise ValueError(
            "The squared length of a subgradient overflows: scale the features down, or "
            "try a smaller C."
        )
