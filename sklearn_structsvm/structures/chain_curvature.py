"""Second derivatives of the log-losses of chains."""

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax

from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm.structures import transitions as tables

# Sequences are processed together as long as they hold this many numbers.
MOST_NUMBERS = 2**21


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

    Parameters
    ----------
    structure : ChainStructure
        Fitted; its features have weights (or there are none).
    X : list of {ndarray, sparse array}
        As checked.
    weights : ndarray of shape (n_examples,)
        p_i.
    """

    def __init__(self, structure, X, weights):
        self.structure = structure
        lengths = np.array(structure._lengths(X))
        # Long sequences first, so that those that have not ended come first.
        order = np.argsort(-lengths, kind="stable")
        self.order = order[(lengths[order] > 0) & (weights[order] > 0.0)]
        self.lengths, self.X, self.weights = lengths, X, weights
        self.k, self.n_weights = len(structure.classes_), structure.n_weights_
        self.n_positions = int(lengths[self.order].sum())

    def _batches(self):
        """Sequences that are processed together, and the number of their steps."""
        k, n, start = self.k, self.n_weights, 0
        while start < len(self.order):
            longest = self.lengths[self.order[start]]
            size = max(1, MOST_NUMBERS // (k * n + longest * k * k))
            yield self.order[start : start + size], longest
            start += size

    def n_steps(self):
        """The number of steps from one position to the next, of all batches."""
        return sum(int(longest) for _, longest in self._batches())

    def at(self, w):
        """The matrix of shape (n_weights, n_weights) at weights w."""
        n = self.n_weights
        half = np.zeros((n, n))
        for batch, _ in self._batches():
            self._add(w, batch, half)
        return half + half.T

    def _add(self, w, batch, half):
        """Add half of the matrix of some sequences, without its transpose."""
        k, n, p = self.k, self.n_weights, self.weights[batch]
        lengths = self.lengths[batch]
        has_pairs = bool(self.structure.transition)
        rows = self._rows(batch)
        nodes, onward = self._marginals(w, rows, batch)
        m = rows.shape[2]
        own, of_pairs = half[: m * k].reshape(m, k, n), half[m * k :].reshape(-1, k, n)
        # C_{t-1}, and E[A_{t-1} 1(y_t = k)].
        passed = np.zeros((len(batch), k, n))
        for t in range(lengths[0]):
            live = int(np.count_nonzero(lengths > t))
            x, mu, share = rows[:live, t], nodes[:live, t], p[:live]
            passed = passed[:live]
            before = np.zeros_like(passed)
            if t > 0:
                go = onward[:live, t]
                np.matmul(go.transpose(0, 2, 1), passed, out=before)
            spread = mu[:, :, np.newaxis] * (np.eye(k) - mu[:, np.newaxis])
            now = np.zeros((live, k, n))
            now[:, :, : m * k] = np.reshape(
                x[:, np.newaxis, :, np.newaxis] * spread[:, :, np.newaxis], (live, k, -1)
            )
            if has_pairs and t > 0:
                pair = nodes[:live, t - 1, :, np.newaxis] * go
                ends = np.eye(k)[:, np.newaxis, :] - mu[:, :, np.newaxis, np.newaxis]
                now[:, :, m * k :] = np.reshape(pair[:, np.newaxis] * ends, (live, k, -1))
            weighted = share[:, np.newaxis] * x
            together = before + 0.5 * now
            own += (weighted.T @ together.reshape(live, -1)).reshape(m, k, n)
            if has_pairs and t > 0:
                flow = (share[:, np.newaxis, np.newaxis] * go).transpose(1, 2, 0)
                of_pairs += flow @ passed.transpose(1, 0, 2)
                self._add_pairs(half, m, weighted, share, mu, pair)
            passed = before + now

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

    def _rows(self, batch):
        """Features of the positions, with a column of each bias, padded by zeros."""
        structure = self.structure
        names = [name for name in structure._biases if getattr(structure, name)]
        n_features = structure.n_features_in_ if structure.emission else 0
        n_columns = n_features + len(names)
        rows = np.zeros((len(batch), self.lengths[batch[0]], n_columns))
        for place, i in enumerate(batch):
            x, own = self.X[i], rows[place, : self.lengths[i]]
            if n_features:
                is_array = not (sparse.issparse(x) or isinstance(x, SplitMatrix))
                own[:, :n_features] = x if is_array else x.toarray()
            at = structure._bias_nodes(x)
            for column, name in enumerate(names, n_features):
                own[at[name], column] = 1.0
        return rows

    def _marginals(self, w, rows, batch):
        """p(y_t) and p(y_t | y_{t-1}) for all t."""
        m, k, allowed = rows.shape[2], self.k, self.structure.allowed_
        theta = rows @ w[: m * k].reshape(m, k)
        transition = np.zeros((k, k))
        if self.structure.transition:
            transition = w[m * k :].reshape(k, k)
        if allowed is not None:
            for own, length in zip(theta, self.lengths[batch], strict=True):
                own[:length], barred = tables.barred(allowed, own[:length], transition)
            transition = barred
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._sums(theta, transition, self.lengths[batch])

    def _sums(self, theta, transition, lengths):
        n, longest, k = theta.shape
        after = np.zeros((n, k))
        onward = np.zeros((n, longest, k, k))
        for t in range(longest - 1, 0, -1):
            live = int(np.count_nonzero(lengths > t))
            scores = transition + (theta[:live, t] + after[:live])[:, np.newaxis]
            after[:live] = logsumexp(scores, axis=2)
            after[:live] -= after[:live].max(axis=1, keepdims=True)
            onward[:live, t] = softmax(scores, axis=2)
        # No label may follow one that is impossible itself.
        np.nan_to_num(onward, copy=False, nan=0.0)
        nodes = np.zeros((n, longest, k))
        nodes[:, 0] = softmax(theta[:, 0] + after, axis=1)
        for t in range(1, longest):
            live = int(np.count_nonzero(lengths > t))
            now = np.matmul(nodes[:live, t - 1, np.newaxis], onward[:live, t])[:, 0]
            nodes[:live, t] = now / now.sum(axis=1, keepdims=True)
        return nodes, onward
