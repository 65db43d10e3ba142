"""Slow and obvious references for the package's fast code, and data for comparisons.

Nothing here calls the package. Labelings are enumerated, joint features are summed by
definition, and block-coordinate Frank-Wolfe stores w, w_i and all dual variables as
printed in the papers.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import sklearn
from _seeds import new_rng
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version


def flat_feature(x, mu, bias=0.0):
    """x ⊗ μ, features first, with a constant feature `bias` unless it is 0."""
    values = list(x) + ([bias] if bias else [])
    return np.array([value * m for value in values for m in mu], dtype=float)


def chain_feature(x, labels, k, parts):
    """Emissions, bias, first bias, last bias and transitions, as named in `parts`."""
    features = {
        "emission": np.zeros((x.shape[1], k)),
        "bias": np.zeros(k),
        "first_bias": np.zeros(k),
        "last_bias": np.zeros(k),
        "transition": np.zeros((k, k)),
    }
    for t, label in enumerate(labels):
        features["emission"][:, label] += x[t]
        features["bias"][label] += 1
        if t == 0:
            features["first_bias"][label] += 1
        else:
            features["transition"][labels[t - 1], label] += 1
        if t == len(labels) - 1:
            features["last_bias"][label] += 1
    return np.concatenate([[]] + [features[p].ravel() for p in features if p in parts])


CHAIN_PARTS = ("emission", "bias", "first_bias", "last_bias", "transition")


@dataclass
class Listed:
    """A listed problem, with every labeling of every example.

    Attributes
    ----------
    labelings : list of n lists of m_i labelings
    truth : list of n places in those lists
    phi : list of n arrays of shape (m_i, d)
    loss : list of n arrays of shape (m_i,)
    """

    labelings: list
    truth: list
    phi: list
    loss: list

    @property
    def n(self):
        return len(self.truth)

    @property
    def d(self):
        return self.phi[0].shape[1]

    @property
    def uniform(self):
        return np.full(self.n, 1.0 / self.n)

    def delta(self, i):
        """φ(x_i, y) - φ(x_i, y_i) of all y."""
        return self.phi[i] - self.phi[i][self.truth[i]]

    def values(self, i, w, lam=1.0):
        """lam · L_i(y) + ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩ of all y."""
        return lam * self.loss[i] + self.delta(i) @ w

    def hinge(self, w, p=None, lam=1.0):
        p = self.uniform if p is None else p
        return sum(p[i] * self.values(i, w, lam).max() for i in range(self.n))

    def primal(self, w, lam, p=None):
        return 0.5 * lam * w @ w + self.hinge(w, p)

    def dual_point(self, alpha, lam, p=None):
        """(Aα, b'α) of explicit dual variables over all labelings."""
        p = self.uniform if p is None else p
        v, loss = np.zeros(self.d), 0.0
        for i in range(self.n):
            v -= p[i] / lam * alpha[i] @ self.delta(i)
            loss += p[i] * alpha[i] @ self.loss[i]
        return v, loss

    def dual(self, alpha, lam, p=None):
        v, loss = self.dual_point(alpha, lam, p)
        return loss - 0.5 * lam * v @ v

    def radius(self):
        """Largest ||φ(x_i, y) - φ(x_i, y_i)||."""
        return max(np.linalg.norm(self.delta(i), axis=1).max() for i in range(self.n))

    def slack_rescaled(self):
        """Features times the losses of their labelings, as in slack rescaling."""
        phi = [loss[:, np.newaxis] * self.delta(i) for i, loss in enumerate(self.loss)]
        return Listed(self.labelings, self.truth, phi, self.loss)

    def subgradient_bound(self, lam, n_steps):
        """The distance of stochastic subgradients from the optimum after this many steps.

        It is at most 2 R² / (λ k), in expectation and for the average that weights step k
        by k (Lacoste-Julien, Schmidt, Bach 2012).
        """
        return 2.0 * self.radius() ** 2 / (lam * n_steps)

    def curvatures(self, lam, p=None):
        """C_f of each block: p_i² / λ times the squared diameter of its features."""
        p = self.uniform if p is None else p
        result = []
        for i in range(self.n):
            differences = self.phi[i][:, np.newaxis] - self.phi[i]
            widest = np.square(differences).sum(axis=2).max()
            result.append(p[i] ** 2 / lam * widest)
        return np.array(result)


def list_multiclass(X, y, k, costs=None, bias=0.0):
    costs = 1.0 - np.eye(k) if costs is None else np.asarray(costs, dtype=float)
    phi = [np.array([flat_feature(x, np.eye(k)[c], bias) for c in range(k)]) for x in X]
    return Listed([list(range(k))] * len(y), list(y), phi, [costs[c] for c in y])


def list_binary(X, y, costs=None, bias=0.0):
    costs = 1.0 - np.eye(2) if costs is None else np.asarray(costs, dtype=float)
    phi = [np.array([flat_feature(x, [c], bias) for c in (0, 1)]) for x in X]
    return Listed([[0, 1]] * len(y), list(y), phi, [costs[c] for c in y])


def list_multilabel(X, Y, costs=None, bias=0.0):
    k = len(Y[0])
    costs = np.ones((k, 2)) if costs is None else np.asarray(costs, dtype=float)
    labelings = [tuple(mu) for mu in product((0, 1), repeat=k)]
    phi = [np.array([flat_feature(x, mu, bias) for mu in labelings]) for x in X]
    loss = [
        np.array(
            [sum(costs[c, y[c]] for c in range(k) if mu[c] != y[c]) for mu in labelings]
        )
        for y in Y
    ]
    truth = [labelings.index(tuple(map(int, y))) for y in Y]
    return Listed([labelings] * len(truth), truth, phi, loss)


def list_labelings(y, labelings, feature, loss):
    """A problem of labels of nodes, by functions of an example's place and a labeling."""
    listed = [labelings(i) for i in range(len(y))]
    places = [(i, own) for i, own in enumerate(listed)]
    return Listed(
        listed,
        [own.index(tuple(map(int, y[i]))) for i, own in places],
        [np.array([feature(i, labels) for labels in own]) for i, own in places],
        [np.array([loss(i, labels) for labels in own]) for i, own in places],
    )


def is_allowed(labels, mask):
    """Whether a mask of (k + 1)² allows each pair, with k before and after them all."""
    k = len(mask) - 1
    return all(mask[a, b] for a, b in zip((k, *labels), (*labels, k), strict=True))


def is_allowed_tree(labels, parents, mask):
    """Whether a mask of (k + 1)² allows each pair, with k above roots, below leaves."""
    k, inner = len(mask) - 1, {p for p in parents if p >= 0}
    above = [k if p < 0 else labels[p] for p in parents]
    ends = [label for v, label in enumerate(labels) if v not in inner]
    return all(mask[a, c] for a, c in zip(above, labels, strict=True)) and all(
        mask[label, k] for label in ends
    )


def weighted_sum(costs, weights, normalize):
    """The sum of the costs of nodes by their weights; their mean if `normalize`."""
    weights = np.ones(len(costs)) if weights is None else weights
    unit = 1.0 / weights.sum() if normalize and weights.any() else 1.0
    return weights @ costs * unit


def list_chains(
    X, y, k, costs=None, normalize=True, parts=CHAIN_PARTS, mask=None, edges=None,
    weights=None,
):  # fmt: skip
    """All labelings; `edges`, `weights`: of edges and nodes of each chain, or None."""
    costs = 1.0 - np.eye(k) if costs is None else np.asarray(costs, dtype=float)

    def labelings(i):
        found = product(range(k), repeat=len(y[i]))
        return [labels for labels in found if mask is None or is_allowed(labels, mask)]

    def loss(i, labels):
        each = [costs[a, b] for a, b in zip(y[i], labels, strict=True)]
        return weighted_sum(each, None if weights is None else weights[i], normalize)

    def feature(i, labels):
        own = chain_feature(X[i], labels, k, parts)
        if edges is None:
            return own
        pairs = np.zeros((edges[i].shape[1], k, k))
        for z, *pair in zip(edges[i], labels[:-1], labels[1:], strict=True):
            pairs[:, *pair] += z
        return np.append(own, pairs)

    return list_labelings(y, labelings, feature, loss)


class Textbook:
    """Algorithms 1, 3, 4, 5 and 9 of the BCFW paper, with explicit w_i and α.

    Parameters
    ----------
    safeguard : bool
        The safeguard of appendix G: the plain step if it increases the dual more.
    cache : (F, ν) or None
        The cache-hit criterion of Algorithm 5. All labelings seen are kept.

    Attributes
    ----------
    n_hits, n_calls : int
        Hits of the cache, and calls of the oracle by steps.
    visited : ndarray
        The blocks of the last run. Blocks with tied labelings are omitted, because
        rounding decides there: a pairwise step leaves two labelings of a block equal
        until another block moves. So are blocks whose cache is at the edge of a hit, or
        has tied labelings.
    """

    def __init__(
        self,
        listed,
        lam,
        p=None,
        step="fw",
        lower=-np.inf,
        upper=np.inf,
        safeguard=True,
        cache=None,
    ):
        self.listed, self.lam, self.step = listed, lam, step
        self.safeguard, self.cache = safeguard, cache
        self.n_hits = self.n_calls = 0
        self.p = listed.uniform if p is None else p
        self.lower, self.upper = lower, upper
        self.v = np.zeros(listed.d)
        self.v_blocks = np.zeros((listed.n, listed.d))
        self.loss_blocks = np.zeros(listed.n)
        self.alpha = [np.zeros(len(loss)) for loss in listed.loss]
        for alpha, truth in zip(self.alpha, listed.truth, strict=True):
            alpha[truth] = 1.0
        self.at_hand = [alpha > 0.0 for alpha in self.alpha]

    @property
    def w(self):
        return np.clip(self.v, self.lower, self.upper)

    def gain(self, i, values, c):
        """⟨α_i - e_c, ∇_i f⟩: the block's gap, if c is the best labeling."""
        return self.p[i] * (values[c] - self.alpha[i] @ values)

    def check_gaps(self):
        """Record all block gaps and their sum."""
        every = [self.listed.values(i, self.w) for i in range(self.listed.n)]
        self.gaps = np.array(
            [self.gain(i, values, values.argmax()) for i, values in enumerate(every)]
        )
        self.gap = self.gaps.sum()

    def ask(self, i, values):
        """The labeling to which block i moves, or None if rounding decides it."""
        s = int(values.argmax())
        if self.cache is not None:
            F, nu = self.cache
            hand = np.flatnonzero(self.at_hand[i])
            c = hand[values[hand].argmax()]
            gain = self.gain(i, values, c)
            edge = max(F * self.gaps[i], nu / np.count_nonzero(self.p) * self.gap)
            rounding = 1e-9 * self.listed.loss[i].max()
            nearest = np.diff(np.sort(values[hand])[-2:]).min(initial=np.inf)
            if abs(gain - edge) <= self.p[i] * rounding or nearest <= rounding:
                return None
            if gain > edge:
                self.n_hits += 1
                return c
            self.gaps[i] = self.gain(i, values, s)
            self.at_hand[i][s] = True
        self.n_calls += 1
        return s

    def corner(self, i, c):
        """w_s = p_i ψ_i(y) / λ and ℓ_s = p_i L_i(y)."""
        p = self.p[i]
        return (-p / self.lam * self.listed.delta(i)[c], p * self.listed.loss[i][c])

    def run(self, blocks):
        self.visited = np.array([i for i in blocks if self.move(i)], dtype=np.intp)
        return self

    def move(self, i):
        """Make one step. Returns whether it was made, which excludes ties."""
        w, alpha = self.w, self.alpha[i]
        values = self.listed.values(i, w)
        best, worst = np.sort(values)[-2:], np.sort(values[alpha > 0])[:2]
        nearest = np.concatenate([np.diff(best), np.diff(worst)]).min()
        if nearest <= 1e-9 * np.abs(values).max():
            return False
        s = self.ask(i, values)
        if s is None:
            return False
        active = np.flatnonzero(alpha > 0)
        a = active[values[active].argmin()]
        w_s, loss_s = self.corner(i, s)
        w_a, loss_a = self.corner(i, a)
        w_i, loss_i = self.v_blocks[i].copy(), self.loss_blocks[i]
        e_s, e_a = np.eye(len(alpha))[[s, a]]
        # For each candidate: the changes of w_i, ℓ_i and α_i, and the longest step.
        steps = [(w_s - w_i, loss_s - loss_i, e_s - alpha, 1.0)]
        if len(active) > 1:
            if self.step == "pairwise":
                steps.append((w_s - w_a, loss_s - loss_a, e_s - e_a, alpha[a]))
            elif self.step == "away":
                longest = alpha[a] / (1.0 - alpha[a])
                steps.append((w_i - w_a, loss_i - loss_a, alpha - e_a, longest))
        gains = [-self.lam * dw @ w + dl for dw, dl, _, _ in steps]
        if self.step == "away" and len(steps) > 1 and gains[0] > gains[1]:
            del steps[1]
        searched = [self.search(step, w) for step in steps]
        # If there is another kind of step, it is used, or with the safeguard the better
        # one.
        best = len(steps) - 1
        if self.safeguard:
            best = int(np.argmax([progress for progress, _ in searched]))
        (dw, dl, dalpha, longest), gamma = steps[best], searched[best][1]
        self.v_blocks[i] += gamma * dw
        self.loss_blocks[i] += gamma * dl
        self.v += gamma * dw
        alpha += gamma * dalpha
        if best == 1 and gamma == longest:
            alpha[a] = 0.0
        return True

    def search(self, step, w):
        """The progress and the step of the exact line search."""
        dw, dl, _, longest = step
        gain, norm = -self.lam * dw @ w + dl, self.lam * dw @ dw
        if gain <= 0:
            return 0.0, 0.0
        gamma = longest if gain >= longest * norm else gain / norm
        return gamma * gain - 0.5 * gamma**2 * norm, gamma


def visits(n, passes, seed=0):
    """Blocks in random order, none twice in a row.

    A line search may end where two labelings of its block tie. Rounding would then decide
    which of them is the best for the next step on the same block.
    """
    rng = new_rng(seed)
    order = [rng.integers(n)]
    while len(order) < passes * n:
        order.append((order[-1] + rng.integers(1, n)) % n)
    return np.array(order)


def messy_csr(X, seed=0):
    """X as CSR with unsorted indices, entries split in two halves, and stored zeros.

    Indices have 32 bits for even seeds and 64 for odd ones.
    """
    rng = new_rng(seed)
    data, indices, indptr = [], [], [0]
    for row in np.asarray(X, dtype=float):
        entries = []
        for j, value in enumerate(row):
            if rng.random() < 0.4:
                entries += [(j, value / 2), (j, value / 2)]
            elif value != 0.0 or rng.random() < 0.5:
                entries.append((j, value))
        for at in rng.permutation(len(entries)):
            indices.append(entries[at][0])
            data.append(entries[at][1])
        indptr.append(len(data))
    result = sparse.csr_array((np.array(data), indices, indptr), shape=np.shape(X))
    dtype = np.int64 if seed % 2 else np.int32
    result.indices, result.indptr = np.array(indices, dtype), np.array(indptr, dtype)
    return result


def logistic_regression(*, l1_ratio, **options):
    """That of scikit-learn, which up to 1.7 has to be told the penalty by its name."""
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        name = "l1" if l1_ratio == 1.0 else "elasticnet"
        return LogisticRegression(penalty=name, **options).set_params(
            l1_ratio=None if name == "l1" else l1_ratio
        )
    return LogisticRegression(l1_ratio=l1_ratio, **options)


def random_chains(n=6, k=3, n_features=3, longest=3, seed=0):
    """X, y (label indices) and costs for which no two labelings have the same loss."""
    rng = new_rng(seed)
    lengths = rng.integers(1, longest + 1, size=n)
    X = [rng.standard_normal((T, n_features)) for T in lengths]
    y = [rng.integers(k, size=T) for T in lengths]
    y[0][0], y[1][0], y[-1][-1] = 0, 1, k - 1
    return X, y, random_costs(k, rng)


def random_costs(k, rng):
    costs = rng.uniform(0.5, 1.5, size=(k, k))
    np.fill_diagonal(costs, 0.0)
    return costs
