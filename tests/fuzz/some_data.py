"""Random examples, with all their labelings as rows of scores."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from convex import LONG, Convex
from listed import (
    all_labels,
    chain_features,
    each_label,
    edge_features,
    graph_features,
    labels_of_nodes,
    one_class,
    tree_features,
)
from scipy import sparse

from sklearn_structsvm import structures

ROWS = ("binary", "classes", "labels")
NODES = ("chain", "tree", "forest")


def pick(rng, options):
    return options[rng.integers(len(options))]


@dataclass
class Data:
    """Examples as the package takes them, and as groups of rows of scores.

    Attributes
    ----------
    kind : str
    X, y : as for `fit`
    examples : list of lists of pairs (A, b)
        The groups of each example.
    structure : "auto" or Structure
    bias : float
        The value of the constant feature; 0 without one.
    is_bias_free : bool
        Whether its weight has no penalty.
    is_whole : bool
        Whether the loss is of the whole sample, so that examples have to stay.
    """

    kind: str
    X: object
    y: object
    examples: list
    structure: object = "auto"
    bias: float = 0.0
    is_bias_free: bool = False
    is_whole: bool = False

    def chosen(self, places):
        """X and y of some examples."""
        X = self.X[places] if hasattr(self.X, "shape") else [self.X[i] for i in places]
        y = self.y[places] if hasattr(self.y, "shape") else [self.y[i] for i in places]
        return X, y

    def weights_of(self, model):
        """The weights of a fit in the order of the columns of A."""
        coef = np.asarray(model.coef_, LONG)
        if self.kind in NODES:
            return coef
        if self.bias:
            own = np.asarray(model.intercept_, LONG)[:, np.newaxis] / LONG(self.bias)
            coef = np.concatenate([coef, own], axis=1)
        return coef.T.ravel()

    def convex(self, loss, C, l1_ratio, places, weights):
        """The normalized objective of a fit to these examples."""
        groups = [
            (weight, A, b)
            for i, weight in zip(places, np.asarray(weights, LONG), strict=True)
            for A, b in self.examples[i]
            if weight > 0
        ]
        total = np.asarray(weights, LONG).sum()
        weights, A, b = zip(*groups, strict=True)
        sizes = [len(own) for own in b]
        d = A[0].shape[1]
        lam = 1 / (LONG(C) * total) * np.ones(d, LONG)
        if self.is_bias_free:
            lam[-1] = 0
        return Convex(
            loss, np.concatenate(A), np.concatenate(b), np.cumsum([0, *sizes[:-1]]),
            np.array(weights, LONG) / total, lam * (1 - LONG(l1_ratio)),
            lam * LONG(l1_ratio),
        )  # fmt: skip


def some_column(rng, n):
    """A column as tables have them, or of any size."""
    ways = [
        lambda: rng.normal(size=n) * 10.0 ** rng.uniform(-12, 12),
        lambda: 10.0 ** rng.uniform(6, 12) * (1.0 - 1e-3 * rng.random(n)),
        lambda: rng.integers(1990, 2025, n),
        lambda: np.arange(n) + 1e5,
        lambda: rng.poisson(2.0, n),
        lambda: np.round(rng.lognormal(8.0, 2.0, n), 2),
        lambda: rng.standard_cauchy(n),
        lambda: rng.integers(0, 2, n),
        lambda: np.full(n, rng.normal()),
        lambda: np.zeros(n),
    ]
    return np.asarray(ways[rng.integers(len(ways))](), dtype=float)


def some_matrix(rng, n, f):
    """Plain columns, or others among them."""
    X = rng.normal(size=(n, f))
    if rng.random() < 0.5:
        for j in range(f):
            if rng.random() < 0.5:
                X[:, j] = some_column(rng, n)
    elif rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.1:
        X[:, -1] = X[:, 0] * (1.0 + 1e-9 * (rng.random() < 0.5))
    return X


def some_form(rng, x):
    """Dense or CSR, in double or single precision."""
    x = x.astype(np.float32) if rng.random() < 0.15 else x
    return sparse.csr_array(x) if rng.random() < 0.3 else x


def some_scores(rng, X, k):
    """Scores of k classes that depend on X, whatever the sizes of its columns."""
    size = np.abs(X).max(axis=0)
    scores = X / np.where(size > 0, size, 1.0) @ rng.normal(size=(X.shape[1], k)) * 3.0
    return scores + rng.normal(size=scores.shape)


def some_rows(rng, kind, list_one, has_bias=True):
    """Rows of X with their labels, and each row as groups."""
    n, f = int(rng.integers(6, 30)), int(rng.integers(1, 6))
    k = 2 if kind == "binary" else int(rng.integers(3, 5))
    X = some_matrix(rng, n, f)
    scores = some_scores(rng, X, k)
    y = (scores > 0).astype(int) if kind == "labels" else scores.argmax(axis=1)
    if kind != "labels":
        y[:k] = np.arange(k)
    bias = 10.0 ** rng.integers(-1, 2) if has_bias and rng.random() < 0.7 else 0.0
    costs = np.ones((k, 2)) if list_one in (each_label, all_labels) else 1.0 - np.eye(k)
    X = some_form(rng, X)
    long = (X.toarray() if sparse.issparse(X) else X).astype(LONG)
    if bias:
        long = np.column_stack([long, np.full(n, LONG(bias))])
    examples = [list_one(x, own, k, costs) for x, own in zip(long, y, strict=True)]
    return Data(kind, X, y, examples, bias=float(bias))


def some_nodes(rng, kind):
    """Sequences, trees or acyclic graphs, each with all its labelings."""
    n, f, k = int(rng.integers(3, 9)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    sizes = rng.integers(1, 5, size=n)
    sizes[0] = max(sizes[0], k)
    starts = np.cumsum([0, *sizes])
    rows = some_matrix(rng, starts[-1], f)
    y = some_scores(rng, rows, k).argmax(axis=1)
    y[:k] = np.arange(k)
    X, labels, examples = [], [], []
    costs = 1.0 - np.eye(k)
    if rng.random() < 0.3:
        costs *= rng.uniform(0.5, 1.5, size=(k, k))
    transition = ("potts", "symmetric", "directed")[rng.integers(3)]
    normalize = rng.random() < 0.7
    is_single, is_sparse = rng.random() < 0.15, rng.random() < 0.3
    has_edges = kind == "chain" and rng.random() < 0.3
    gaps = some_matrix(rng, starts[-1], int(rng.integers(1, 3)))
    for a, b in zip(starts[:-1], starts[1:], strict=True):
        T, x, own = b - a, rows[a:b], y[a:b]
        x = x.astype(np.float32) if is_single else x
        parents = np.array([-1, *(rng.integers(-1, v) for v in range(1, T))])
        children = np.flatnonzero(parents >= 0)
        edges = np.column_stack([parents[children], children])
        features = chain_features
        if kind == "chain":
            edges = np.column_stack([np.arange(T - 1), np.arange(1, T)])
            if has_edges:
                features = partial(edge_features, z=gaps[a + 1 : b].astype(LONG))
        elif kind == "tree":
            features = partial(tree_features, roots=parents < 0)
        else:
            features = partial(graph_features, kind=transition)
        share = LONG(1) / T if normalize else LONG(1)
        examples.append(
            labels_of_nodes(x.astype(LONG), edges, own, k, costs, features, share)
        )
        item = sparse.csr_array(x) if is_sparse else x
        chain = (item, gaps[a + 1 : b]) if has_edges else item
        X.append({"chain": chain, "tree": (item, parents), "forest": (item, edges)}[kind])
        labels.append(own)
    options = {"label_costs": costs, "normalize_loss": normalize}
    structure = {
        "chain": partial(structures.ChainStructure, edge_features=has_edges),
        "tree": structures.TreeStructure,
        "forest": partial(structures.GraphStructure, transition=transition),
    }[kind](**options)
    return Data(kind, X, labels, examples, structure)


def some_data(rng, kind, list_labels=each_label, has_bias=True):
    """Examples of any kind."""
    if kind in NODES:
        return some_nodes(rng, kind)
    list_one = list_labels if kind == "labels" else one_class
    return some_rows(rng, kind, list_one, has_bias)


def with_other(data, change):
    """The same data with other rows for each labeling."""
    data.examples = [change(groups) for groups in data.examples]
    return data
