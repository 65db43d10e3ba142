"""Objectives in long double where labelings are too many to list: zero weights are known.

Nothing here calls the package.
"""

from dataclasses import dataclass, field

import numpy as np
from convex import LONG


@dataclass
class Large:
    """λ times a penalty, plus the mean of the examples' losses.

    Attributes
    ----------
    loss : {"max", "log"}
    X : list of ndarrays of shape (T, n_features)
    y : list of ndarrays of shape (T,)
    k : int
    lam, l1_ratio : float
    points : list of ndarrays
        Weights of other fits.
    known : dict
        Values that were computed.
    """

    loss: str
    X: list
    y: list
    k: int
    lam: float
    l1_ratio: float
    points: list = field(default_factory=list)
    known: dict = field(default_factory=dict)

    def value(self, w):
        if not w.any():
            return self.at_zero()
        key = w.astype(float).tobytes()
        if key not in self.known:
            self.known[key] = self._value(np.asarray(w, LONG))
        return self.known[key]

    def _value(self, w):
        ratio = LONG(self.l1_ratio)
        penalty = (1 - ratio) / 2 * (w @ w) + ratio * abs(w).sum()
        losses = [self._loss(x, y, w) for x, y in zip(self.X, self.y, strict=True)]
        return self.lam * penalty + np.mean(losses)

    def size(self, w):
        """The size of the terms of this sum, which may cancel."""
        w = abs(np.asarray(w, LONG))
        terms = [2 * self._largest_score(abs(x), w) for x in self.X]
        return self.lam * (w @ w / 2 + w.sum()) + np.mean(terms) + self.at_zero()

    def minimum(self):
        d = self.n_weights
        points = [np.zeros(d), *self.points]
        return min(((self.value(w), w) for w in points), key=lambda pair: pair[0])


class ManyClasses(Large):
    """Rows; the weights are those of features times classes."""

    @property
    def n_weights(self):
        return self.X[0].shape[1] * self.k

    def at_zero(self):
        return LONG(1) if self.loss == "max" else np.log(LONG(self.k))

    def _loss(self, x, y, w):
        scores = (x @ w.reshape(-1, self.k))[0]
        scores = scores - scores[y[0]]
        if self.loss == "max":
            return (scores + (np.arange(self.k) != y[0])).max()
        top = scores.max()
        return top + np.log(np.exp(scores - top).sum())

    def _largest_score(self, x, w):
        return (x @ w.reshape(-1, self.k)).max()


class LongChains(Large):
    """Sequences with all parts of a `ChainStructure`, and its normalized loss."""

    @property
    def n_weights(self):
        return (self.X[0].shape[1] + 3 + self.k) * self.k

    def at_zero(self):
        if self.loss == "max":
            return LONG(1)
        return np.mean([LONG(len(y)) for y in self.y]) * np.log(LONG(self.k))

    def _scores(self, x, w):
        f, k = x.shape[1], self.k
        sizes = np.cumsum([f * k, k, k, k])
        emission, bias, first, last, transition = np.split(w, sizes)
        nodes = x @ emission.reshape(f, k) + bias
        nodes[0] += first
        nodes[-1] += last
        return nodes, transition.reshape(k, k)

    def _loss(self, x, y, w):
        nodes, pairs = self._scores(x, w)
        T = len(y)
        true = nodes[np.arange(T), y].sum() + pairs[y[:-1], y[1:]].sum()
        if self.loss == "max":
            nodes = nodes + (np.arange(self.k) != y[:, np.newaxis]) / LONG(T)
        ahead = nodes[0]
        if self.loss == "max":
            for node in nodes[1:]:
                ahead = (ahead[:, np.newaxis] + pairs).max(axis=0) + node
            return ahead.max() - true
        # The largest entries are carried outside of the exponentials.
        carried = LONG(0)
        top_of_pairs = pairs.max()
        factors = np.exp(pairs - top_of_pairs)
        for node in nodes[1:]:
            top = ahead.max()
            carried += top + top_of_pairs
            ahead = np.log(np.exp(ahead - top) @ factors) + node
        top = ahead.max()
        return carried + top + np.log(np.exp(ahead - top).sum()) - true

    def _largest_score(self, x, w):
        nodes, pairs = self._scores(x, w)
        return nodes.max(axis=1).sum() + len(x) * pairs.max()
