"""Linear functions of confusion tensors, with their values at the columns."""

import numpy as np

# Cuts that no multiplier has needed for so many programs are left out.
IDLE_CUTS = 10

# A multiplier below this share of the mean one does not need its cut.
ACTIVE = 1e-3


class Rows:
    """Linear functions <G[p], C> + h[p], and their values at the columns."""

    def __init__(self, columns, G, h):
        self.columns, self.G, self.h = columns, G, h
        self._values = np.zeros((len(h), 0))

    @property
    def count(self):
        return len(self.h)

    def values(self):
        """Of shape (p, T)."""
        known = self._values.shape[1]
        if known < len(self.columns):
            new = self.G @ self.columns.flat[known:].T + self.h[:, None]
            self._values = np.concatenate([self._values, new], axis=1)
        return self._values

    def note(self, multipliers):
        """Told the multipliers of each program."""

    def keep(self, indices):
        self._values = self.values()[:, indices]


class Cuts(Rows):
    """Tangents of a convex function, of which the idle ones are forgotten."""

    def __init__(self, columns, source, most=None):
        super().__init__(columns, np.zeros((0, columns.flat.shape[1])), np.zeros(0))
        self.source, self.most = source, most
        self.idle = np.zeros(0, dtype=int)
        # The sum of the last multipliers.
        self.pressure = 0.0

    def add(self, C):
        """Add the tangent at C."""
        self.values()
        G, h = self.source.tangent(C)
        G = np.ascontiguousarray(G, dtype=np.float64).reshape(1, -1)
        kept = self.idle <= IDLE_CUTS
        if self.most is not None:
            kept[: max(len(kept) + 1 - self.most, 0)] = False
        self.G = np.concatenate([self.G[kept], G])
        self.h = np.append(self.h[kept], h)
        self.idle = np.append(self.idle[kept], 0)
        new = self.columns.flat @ G[0] + h
        self._values = np.concatenate([self._values[kept], new[None]])

    def note(self, multipliers):
        self.pressure = float(multipliers.sum())
        active = multipliers > ACTIVE * self.pressure / max(len(multipliers), 1)
        self.idle = np.where(active, 0, self.idle + 1)
