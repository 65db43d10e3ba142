"""Examples as rows of scores: one for each labeling, by the definition of its features.

Nothing here calls the package. A group is a pair (A, b): a labeling y of an example has
the features φ(x, y) - φ(x, y_true) as a row of A, and its loss as an entry of b.
"""

from itertools import combinations_with_replacement, product

import numpy as np
from convex import LONG


def one_class(x, truth, k, costs):
    """Several classes, or two, whose weights are those of the second less the first's."""
    if k == 2:
        sign = 1 - 2 * int(truth)
        A = np.stack([np.zeros_like(x), sign * x])
        return [(A, np.array([0, costs[truth, 1 - truth]], LONG))]
    codes = np.eye(k, dtype=LONG)
    A = np.einsum("f,ck->cfk", x, codes - codes[truth]).reshape(k, -1)
    return [(A, np.asarray(costs[truth], LONG))]


def each_label(x, truth, k, costs):
    """Labels on their own, so with as many groups."""
    groups = []
    for label, is_there in enumerate(map(int, truth)):
        row = np.einsum("f,k->fk", x, np.eye(k, dtype=LONG)[label]).ravel()
        A = np.stack([np.zeros_like(row), (1 - 2 * is_there) * row])
        groups.append((A, np.array([0, costs[label, is_there]], LONG)))
    return groups


def all_labels(x, truth, k, costs):
    """All sets of labels."""
    sets = np.array(list(product([0, 1], repeat=k)))
    A = np.einsum("f,mk->mfk", x, (sets - truth).astype(LONG))
    wrong = np.take_along_axis(costs, truth[:, np.newaxis], axis=1)[:, 0]
    return [(A.reshape(len(sets), -1), ((sets != truth) @ wrong).astype(LONG))]


def ranked_labels(x, truth, k, costs):
    """All pairs of a label that the example has and one that it does not have."""
    codes, rows, margins = np.eye(k, dtype=LONG), [np.zeros((len(x), k), LONG)], [0.0]
    for here, there in product(np.flatnonzero(truth), np.flatnonzero(np.equal(truth, 0))):
        rows.append(np.einsum("f,k->fk", x, codes[there] - codes[here]))
        margins.append(costs[here, there])
    return [(np.array(rows).reshape(len(rows), -1), np.array(margins, LONG))]


def one_against_rest(x, truth, k, costs):
    """One row for each class, or one for two, of which positive parts are squared."""
    signs = np.where(np.arange(k) == truth, -1, 1) if k > 2 else [1 - 2 * int(truth)]
    A = np.einsum("f,ck->cfk", x, np.diag(np.asarray(signs, LONG)))
    return [(A.reshape(len(signs), -1), np.ones(len(signs), LONG))]


def whole_sample(X, y, loss):
    """All labelings of the sample as one group, or pairs of rows for the ROC."""
    n, (P, N) = len(y), np.array([y.sum(), len(y) - y.sum()], LONG)
    if loss == "roc_auc":
        pairs = product(np.flatnonzero(y), np.flatnonzero(y == 0))
        rows = [n / (P * N) * np.stack([0 * X[0], X[j] - X[i]]) for i, j in pairs]
        return [(A, n / (P * N) * np.array([0, 1], LONG)) for A in rows]
    labelings = np.array(list(product([0, 1], repeat=n)))
    hits, wrong = labelings @ y, (labelings != y).sum(axis=1)
    # The loss of each labeling, and its slope at the truth in the costlier mistake.
    losses, slope = {
        "zero_one": (wrong / LONG(n), 1 / LONG(n)),
        "f1": (wrong / (2 * hits + wrong).astype(LONG), 1 / (2 * P)),
        "jaccard": (wrong / (hits + wrong).astype(LONG), 1 / P),
    }[loss]
    return [(n * slope * (labelings - y) @ X, n * losses)]


def slack_rescaled(groups):
    """The loss of a labeling times (1 + its score)."""
    return [(A * b[:, np.newaxis], b) for A, b in groups]


def without_loss(groups):
    return [(A, np.zeros_like(b)) for A, b in groups]


def labels_of_nodes(x, edges, truth, k, costs, features, loss_share):
    """All labelings of nodes that edges connect.

    Parameters
    ----------
    x : ndarray of shape (T, n_features)
    edges : ndarray of shape (m, 2)
    costs : ndarray of shape (k, k)
    features : callable
        (one-hot labels of nodes (T, k), those of edges (m, k, k)) -> the joint feature.
    loss_share : float
    """
    eye, found, loss = np.eye(k, dtype=LONG), [], []
    for labels in product(range(k), repeat=len(x)):
        labels = np.array(labels)
        nodes = eye[labels]
        pairs = nodes[edges[:, 0], :, np.newaxis] * nodes[edges[:, 1], np.newaxis]
        found.append(np.concatenate([part.ravel() for part in features(x, nodes, pairs)]))
        loss.append(loss_share * costs[truth, labels].sum())
    place = int(np.ravel_multi_index(tuple(truth), (k,) * len(x)))
    A = np.array(found)
    return [(A - A[place], np.array(loss, LONG))]


def chain_features(x, nodes, pairs):
    return x.T @ nodes, nodes.sum(axis=0), nodes[0], nodes[-1], pairs.sum(axis=0)


def edge_features(x, nodes, pairs, z):
    """Of a chain with features z of its edges."""
    of_edges = np.einsum("mf,mab->fab", z, pairs)
    return *chain_features(x, nodes, pairs), of_edges


def tree_features(x, nodes, pairs, roots):
    emission, bias = x.T @ nodes, nodes.sum(axis=0)
    return emission, bias, nodes[roots].sum(axis=0), pairs.sum(axis=0)


def graph_features(x, nodes, pairs, kind):
    """Of edges without features."""
    both = pairs.sum(axis=0)
    if kind == "potts":
        parts = [np.trace(both)]
    elif kind == "symmetric":
        places = combinations_with_replacement(range(len(both)), 2)
        parts = [both[a, b] + (a != b) * both[b, a] for a, b in places]
    else:
        parts = both
    return x.T @ nodes, nodes.sum(axis=0), np.asarray(parts, LONG)
