"""Points of the local polytope of a graph, which relaxes its labelings."""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.tolerances import SAME, VALUE_ROUNDING
from sklearn_structsvm.structures.polytope import Polytope


def best_point(theta, tables, edges, polytopes):
    """The point of the local polytope with the largest score.

    `edges` (m, 2). `theta` (T, k): scores of the labels of each node. `tables` (m, k,
    k): scores of the pairs of labels of each edge. `polytopes`: the polytopes of graphs
    seen before; that of this graph is added. Returns (T,), int, or (T k + m k²,),
    float: label indices, or a point of which some entries are fractional.
    """
    if not np.any(tables):
        # Nodes are independent, as with zero weights. The simplex method would take long,
        # because many points are optimal.
        return theta.argmax(axis=1)
    T, k = theta.shape
    key = (T, edges.tobytes())
    if key not in polytopes:
        polytopes[key] = local_polytope(T, edges, k)
    z = polytopes[key].maximize(np.append(theta, tables))
    if (np.abs(z - np.round(z)) <= SAME).all():
        return z[: theta.size].reshape(theta.shape).argmax(axis=1)
    return z


def rounded_labels(theta, tables, edges):
    """Labels with the largest weights in `best_point`, improved one by one.

    Each label is changed until no change of a single label raises the score. Arguments
    are those of `best_point`.

    Returns (T,), int: label indices.
    """
    labels = best_point(theta, tables, edges, {})
    if labels.dtype.kind == "f":
        labels = labels[: theta.size].reshape(theta.shape).argmax(axis=1)
    around = [[] for _ in theta]
    for e, (a, b) in enumerate(edges.tolist()):
        around[a].append((tables[e], b))
        around[b].append((tables[e].T, a))
    least = VALUE_ROUNDING * (np.abs(theta).sum() + np.abs(tables).sum())
    has_gained = True
    while has_gained:
        has_gained = False
        for v, own in enumerate(theta):
            scores = own + sum(table[:, labels[u]] for table, u in around[v])
            best = scores.argmax()
            if scores[best] > scores[labels[v]] + least:
                labels[v], has_gained = best, True
    return labels


def half_integral_point(decoded, T, edges):
    """The result of a `GraphOracle` as a point of the local polytope.

    Label 2 of a node means half 0 and half 1. The flags of edges follow: whether the
    labels at both ends are equal if both are half.
    """
    half = decoded[:T] == 2
    nodes = np.where(half[:, np.newaxis], 0.5, np.eye(3)[decoded[:T], :2])
    first, second = nodes[edges].swapaxes(0, 1)
    pairs = first[:, :, np.newaxis] * second[:, np.newaxis]
    both = half[edges].all(axis=1)
    agree = decoded[T:].astype(bool)
    pairs[both & agree] = np.eye(2) / 2
    pairs[both & ~agree] = (1 - np.eye(2)) / 2
    return np.append(nodes, pairs)


def local_polytope(T, edges, k):
    """Marginals of T nodes and m edges that agree with each other, for k labels.

    The points z = (μ_v(a), μ_e(a, b)) of [0, 1]^(T k + m k²) with Σ_a μ_v(a) = 1, and
    Σ_b μ_e(a, b) = μ_u(a) and Σ_a μ_e(a, b) = μ_v(b) for each edge e = (u, v).
    """
    m = len(edges)
    one, each = np.ones((1, k)), sparse.csr_array(sparse.eye(k))
    sums = sparse.kron(sparse.csr_array(sparse.eye(T)), one)
    rows, b = [sparse.hstack([sums, sparse.csr_array((T, m * k * k))])], [np.ones(T)]
    if m:
        for end, marginal in (
            (edges[:, 0], sparse.kron(each, one)),
            (edges[:, 1], sparse.kron(one, each)),
        ):
            chosen = sparse.csr_array((np.ones(m), (np.arange(m), end)), shape=(m, T))
            of_edges = sparse.kron(sparse.csr_array(sparse.eye(m)), marginal)
            rows.append(sparse.hstack([-sparse.kron(chosen, each), of_edges]))
            b.append(np.zeros(m * k))
    A, b = sparse.vstack(rows), np.concatenate(b)
    return Polytope(A, b, n_equations=len(b))


def is_point(y):
    """Whether y is a point of the relaxation instead of labels."""
    return isinstance(y, np.ndarray) and y.dtype.kind == "f"
