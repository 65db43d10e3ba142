"""All labelings whose score is near the best one, as a lattice.

In a forest, the score of a labeling is the best score minus its regrets. The regret of a
node is the loss from its label, given its parent's label and the best labels below.
Regrets are at least zero, so partial sums exclude labelings early.
"""

from collections.abc import Iterator

import numpy as np

from sklearn_structsvm._utils.labels import encode
from sklearn_structsvm.structures.transitions import below

# The number of units into which the slack is divided for counting.
N_UNITS = 256

# At most this many labelings are counted one by one.
MAX_COUNTED = 4096


class LabelingLattice:
    r"""The labelings y of one example with :math:`\max_z s(z) - s(y) \le` `slack`.

    For a conditional random field these are the labelings that are at most
    :math:`e^{slack}` times less probable than the best one. They are described by the
    pairs of labels that occur in any of them, counted, and listed only on request.

    Read more in the :ref:`User Guide <guide-conformal-likelihood>`.

    Attributes
    ----------
    slack : float
        The largest difference from the score of the best labeling.
    classes : ndarray of shape (n_classes,)
        The labels.
    nodes : ndarray of shape (T, n_classes), dtype bool
        The labels that each position (or node) has in any of the labelings.
    parents : ndarray of shape (T,)
        The previous position, or the parent, of each; -1 for none.
    edges : ndarray of shape (T, n_classes, n_classes), dtype bool
        The pairs (label of the parent, own label) that occur. A node without a parent has
        the same row for each label.
    """

    def __init__(self, order, parents, regrets, slack, classes):
        self.slack, self.classes = float(slack), classes
        # Forbidden labels are infinitely far.
        self._limit = min(self.slack, np.finfo(np.float64).max)
        self._order, self._parents, self._regrets = order, parents, regrets
        T, k = regrets.shape[:2]
        least = np.zeros((T, k))
        edges = np.zeros((T, k, k), dtype=bool)
        for t, parent in enumerate(parents):
            through = regrets[t]
            if parent >= 0:
                through = least[parent][:, np.newaxis] + through
            least[t] = through.min(axis=0, initial=np.inf)
            edges[t] = through <= self._limit
        places = np.empty(T, dtype=np.intp)
        places[order] = np.arange(T)
        self._places = places
        self.nodes, self.edges = (least <= self._limit)[places], edges[places]
        above = np.where(parents >= 0, order[parents], -1) if T else parents
        self.parents = above[places]

    def __repr__(self):
        low, high = self.count()
        number = f"{low:.6g}" if low == high else f"{low:.3g} to {high:.3g}"
        return f"<LabelingLattice: {number} labelings of {len(self.nodes)} nodes>"

    def __contains__(self, y):
        codes = self._codes(y)
        return (
            codes is not None
            and _sum_regrets(codes, self._parents, self._regrets) <= self._limit
        )

    def count(self) -> tuple[float, float]:
        """Bounds of the number of labelings, which are equal if they are exact.

        A few thousand labelings are counted one by one. Of more, the slack is divided
        into 256 units, and regrets are rounded up and down to whole units. This costs
        about as much as 256 decodings.

        Returns
        -------
        lower, upper : float
        """
        if not len(self.nodes):
            return 1.0, 1.0
        finite = self._regrets[np.isfinite(self._regrets)]
        if not np.isfinite(self.slack) or self.slack >= finite.sum():
            # Only forbidden labelings are too far.
            exact = self._count(np.where(np.isfinite(self._regrets), 0, 1), 0)
            return exact, exact
        if self.slack <= 0.0:
            if self.slack < 0.0:
                return 0.0, 0.0
            exact = self._count((self._regrets > 0.0).astype(np.intp), 0)
            return exact, exact
        with np.errstate(over="ignore"):
            units = np.minimum(self._regrets / (self.slack / N_UNITS), N_UNITS + 1)
        # Rounding, here and in sums, must not make the bounds invalid.
        eps = (len(self.nodes) + 4) * np.finfo(np.float64).eps
        costly = np.ceil(units * (1.0 + eps)).astype(np.intp)
        cheap = np.floor(units * (1.0 - eps)).astype(np.intp)
        upper = self._count(cheap, N_UNITS)
        if upper <= MAX_COUNTED:
            exact = float(sum(1 for _ in self.labelings()))
            return exact, exact
        return self._count(costly, N_UNITS), upper

    def _count(self, costs, budget):
        """Number of labelings whose costs, integers, sum to at most the budget."""
        T, k = costs.shape[:2]
        ways = np.zeros((T, k, budget + 1))
        ways[:, :, 0] = 1.0
        total = np.zeros(budget + 1)
        total[0] = 1.0
        for t in reversed(range(T)):
            parent, own = self._parents[t], ways[t]
            # A root has no parent, so its costs do not depend on a parent's label.
            rows = range(k) if parent >= 0 else range(1)
            sums = np.zeros((len(rows), budget + 1))
            for p in rows:
                for c in np.flatnonzero(costs[t, p] <= budget):
                    cost = costs[t, p, c]
                    sums[p, cost:] += own[c, : budget + 1 - cost]
            if parent >= 0:
                for p in rows:
                    ways[parent, p] = _joined(ways[parent, p], sums[p])
            else:
                total = _joined(total, sums[0])
        return float(total.sum())

    def labelings(self) -> Iterator[np.ndarray]:
        """Iterate over the labelings, without repetition, in no particular order.

        The time is proportional to their number: see `count` before you list them.

        Yields
        ------
        ndarray of shape (T,)
        """
        T = len(self._order)
        if self.slack < 0.0:
            return
        codes = np.zeros(T, dtype=np.intp)
        # Positions, labels and sums of regrets with which to continue.
        waiting: list[tuple[int, int, float]] = [(-1, -1, 0.0)]
        while waiting:
            t, code, total = waiting.pop()
            if t >= 0:
                codes[t] = code
            if t + 1 == T:
                yield self.classes[codes[self._places]]
                continue
            parent = self._parents[t + 1]
            row = self._regrets[t + 1, codes[parent] if parent >= 0 else 0]
            for c in np.flatnonzero(total + row <= self._limit)[::-1].tolist():
                waiting.append((t + 1, c, total + row[c]))

    def _codes(self, y):
        """The places of labels in `classes`, parents first; None if one is none."""
        try:
            codes = encode(y, self.classes)
        except ValueError:
            return None
        return codes[self._order] if len(codes) == len(self._order) else None


def make_lattice(structure, x, w, slack):
    """The `LabelingLattice` of one example of a structure over a forest."""
    return LabelingLattice(*_regrets_of(structure, x, w), slack, structure.classes_)


def score_gaps(structure, X, y, w):
    """The distance of each labeling's score from the best; inf for impossible ones.

    y holds arrays of labels, of which some may be unknown.
    """
    gaps = np.zeros(len(X))
    known = {label: c for c, label in enumerate(structure.classes_.tolist())}
    for i, (x, labels) in enumerate(zip(X, y, strict=True)):
        codes = np.array([known.get(c, -1) for c in np.asarray(labels).tolist()], int)
        if (codes < 0).any() or (len(codes) and structure._impossible([x], codes)[0]):
            gaps[i] = np.inf
        elif len(codes):
            order, parents, regrets = _regrets_of(structure, x, w)
            gaps[i] = _sum_regrets(codes[order], parents, regrets)
    return gaps


def _regrets_of(structure, x, w):
    """Order of the nodes, parents first; their parents in it; regrets (T, k, k)."""
    k = len(structure.classes_)
    if structure._is_empty(x):
        return np.empty(0, np.intp), np.empty(0, np.intp), np.empty((0, k, k))
    order, theta, transition, parents = structure._topological_potentials(x, w)
    T = len(theta)
    order = np.arange(T)[order]
    parents = np.arange(T) - 1 if parents is None else np.asarray(parents)
    best = theta.copy()
    regrets = np.empty((T, k, k))
    for t in reversed(range(T)):
        scores = np.repeat(best[t][np.newaxis], k, axis=0)
        if parents[t] >= 0 and transition is not None:
            scores += transition if np.ndim(transition) == 2 else transition[t]
        highest = scores.max(axis=1)
        regrets[t] = highest[:, np.newaxis] - scores
        if parents[t] >= 0:
            best[parents[t]] += highest
    regrets[_forbidden(structure, parents, regrets.shape)] = np.inf
    return order, parents, regrets


def _forbidden(structure, parents, shape):
    """The pairs of labels that the structure's `transitions` rule out."""
    allowed = getattr(structure, "allowed_", None)
    if allowed is None:
        return np.zeros(shape, dtype=bool)
    k = shape[1]
    possible = below(allowed, parents)
    possible[parents < 0] &= allowed[k, :k]
    pairs = np.where((parents < 0)[:, np.newaxis, np.newaxis], True, allowed[:k, :k])
    return ~(pairs & possible[:, np.newaxis])


def _sum_regrets(codes, parents, regrets):
    """Sum over the nodes, in the order used by `LabelingLattice`."""
    total = 0.0
    for t, (code, parent) in enumerate(zip(codes, parents, strict=True)):
        total = total + regrets[t, codes[parent] if parent >= 0 else 0, code]
    return total


def _joined(a, b):
    """Numbers of pairs by the sum of their costs."""
    is_one = np.count_nonzero(a) == 1 and a[0] == 1.0
    return b if is_one else np.convolve(a, b)[: len(a)]
