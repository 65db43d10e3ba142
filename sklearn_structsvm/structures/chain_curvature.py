"""Second derivatives of the log-losses of chains."""

import numpy as np

from sklearn_structsvm.structures import transitions as tables
from sklearn_structsvm.structures._chain_curvature import carry, step_probabilities

# Positions are processed together as long as they hold this many numbers: so many stay in
# the processor's cache.
MOST_NUMBERS = 2**18


class ChainCurvature:
    r"""Second derivatives of Σ_i p_i log Σ_y exp ⟨w, φ(x_i, y)⟩ by all weights.

    They are the covariance of φ = Σ_t f_t under the distribution of labelings, where f_t
    has the features at position t and the transition to it. With f~ for f - E f and
    A_t = Σ_{s <= t} f~_s,

        Cov φ = Σ_t (Cov f_t + E[A_{t-1} f~_tᵀ] + E[f~_t A_{t-1}ᵀ]),

    and as labels form a Markov chain, C_t[k] = E[A_t 1(y_t = k)] is known from C_{t-1}:

        C_t[k] = Σ_j p(y_t = k | y_{t-1} = j) C_{t-1}[j] + E[f~_t 1(y_t = k)].

    With d weights, this takes O(d²) operations for each position. Messages are scaled,
    and probabilities sum to 1, so that rounding errors do not add up in a long sequence.

    `structure`: fitted; its features have weights (or there are none). `X` (list of
    {ndarray, sparse array}): as checked. `weights` (n_examples,): p_i. `labels`
    (AllowedLabels or None): those that positions may have, if not all. `added`
    (n_positions, n_classes) or None: numbers that are added to the scores. `centers`
    (n_features,) or None: what is subtracted from the features in φ, but not in the
    scores.
    """

    def __init__(self, structure, X, weights, labels=None, added=None, centers=None):
        self.structure, self.labels, self.centers = structure, labels, centers
        lengths = np.array(structure._lengths(X))
        self.chosen = np.flatnonzero((lengths > 0) & (weights > 0.0))
        self.lengths, self.X, self.weights = lengths, X, weights
        self.added = None
        if added is not None:
            self.added = np.split(added, np.cumsum(lengths)[:-1])
        self.k = len(structure.classes_)

    def at(self, w):
        """The matrix of shape (n_weights, n_weights) at weights w."""
        n = self.structure.n_weights_
        half = np.zeros((n, n))
        ends = np.cumsum(self.lengths[self.chosen])
        pieces = ends * self.k**2 // MOST_NUMBERS
        for own in np.split(self.chosen, np.flatnonzero(np.diff(pieces)) + 1):
            self._add(w, own, half)
        return half + half.T

    def _add(self, w, chosen, half):
        """Add half of the matrix of some sequences, without its transpose."""
        k, n = self.k, len(half)
        starts = np.concatenate([[0], np.cumsum(self.lengths[chosen])])
        rows = node_rows(self.structure, [self.X[i] for i in chosen])
        nodes, onward = self._marginals(w, rows, starts, chosen)
        if self.centers is not None:
            rows[:, : len(self.centers)] -= self.centers
        before = np.concatenate([np.zeros((1, k)), nodes[:-1]])
        share = np.repeat(self.weights[chosen], np.diff(starts))
        # C_{t-1} of the next position; it is zero before a sequence, as `onward` is.
        passed = np.zeros((k, n))
        size = MOST_NUMBERS // (k * n) + 1
        for first in range(0, starts[-1], size):
            here = slice(first, first + size)
            pair = before[here, :, np.newaxis] * onward[here]
            self._add_positions(
                rows[here], nodes[here], pair, onward[here], share[here], passed, half
            )

    def _add_positions(self, x, mu, pair, go, share, passed, half):
        """The same for successive positions, after those whose C is in `passed`."""
        k, n, m, size = self.k, len(half), x.shape[1], len(x)
        spread = mu[:, :, np.newaxis] * (np.eye(k) - mu[:, np.newaxis])
        now = np.zeros((size, k, n))
        now[:, :, : m * k] = np.reshape(
            x[:, np.newaxis, :, np.newaxis] * spread[:, :, np.newaxis], (size, k, -1)
        )
        if self.structure.transition:
            ends = np.eye(k)[:, np.newaxis, :] - mu[:, :, np.newaxis, np.newaxis]
            now[:, :, m * k :] = np.reshape(pair[:, np.newaxis] * ends, (size, k, -1))
        held = np.empty_like(now)
        carry(go, now, passed, held)
        # E[A_{t-1} 1(y_t = k)], and half of the position's own.
        together = np.matmul(go.transpose(0, 2, 1), held)
        together += 0.5 * now
        weighted = share[:, np.newaxis] * x
        own, of_pairs = half[: m * k].reshape(m, k, n), half[m * k :].reshape(-1, k, n)
        own += (weighted.T @ together.reshape(size, -1)).reshape(m, k, n)
        if self.structure.transition:
            flow = (share[:, np.newaxis, np.newaxis] * go).transpose(1, 2, 0)
            of_pairs += flow @ held.transpose(1, 0, 2)
            self._add_pairs(half, m, weighted, share, mu, pair)

    def _add_pairs(self, half, m, weighted, share, mu, pair):
        """Half the covariance of one position's transitions with its features."""
        k, live = self.k, len(pair)
        flat = pair.reshape(live, -1)
        rows = half[m * k :]
        both = (weighted[:, :, np.newaxis] * mu[:, np.newaxis]).reshape(live, -1)
        rows[:, : m * k] -= 0.5 * (flat.T @ both)
        ends = (0.5 * (flat.T @ weighted)).reshape(k, k, m)
        block = rows[:, : m * k].reshape(k, k, m, k)
        for b in range(k):
            block[:, b, :, b] += ends[:, b]
        flows = share[:, np.newaxis] * flat
        rows[:, m * k :] -= 0.5 * (flat.T @ flows)
        places = np.arange(k * k)
        rows[places, m * k + places] += 0.5 * flows.sum(axis=0)

    def _marginals(self, w, rows, starts, chosen):
        """p(y_t) and p(y_t | y_{t-1}) for all t."""
        m, k, allowed = rows.shape[1], self.k, self.structure.allowed_
        theta = rows @ w[: m * k].reshape(m, k)
        if self.added is not None:
            theta += np.concatenate([self.added[i] for i in chosen])
        if self.labels is not None:
            masks = list(self.labels.take(chosen))
            theta[~np.concatenate(masks)] = -np.inf
        transition = np.zeros((k, k))
        if self.structure.transition:
            transition = np.array(w[m * k :]).reshape(k, k)
        if allowed is not None:
            for start, stop in zip(starts[:-1], starts[1:], strict=True):
                own, barred = tables.barred(allowed, theta[start:stop], transition)
                theta[start:stop] = own
            transition = barred
        return step_probabilities(theta, np.ascontiguousarray(transition), starts)


def node_rows(structure, X):
    """Features of all nodes, with a column of each bias."""
    names = [name for name in structure._biases if getattr(structure, name)]
    n_features = structure.n_features_in_ if structure.emission else 0
    starts = structure._starts(X)
    rows = np.zeros((starts[-1], n_features + len(names)))
    for x, start, stop in zip(X, starts[:-1], starts[1:], strict=True):
        own, part = rows[start:stop], structure._features(x)
        if n_features:
            own[:, :n_features] = part if isinstance(part, np.ndarray) else part.toarray()
        at = structure._bias_nodes(x)
        for column, name in enumerate(names, n_features):
            own[at[name], column] = 1.0
    return rows
