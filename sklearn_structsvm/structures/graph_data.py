"""Checks of users' graphs, and their form for `GraphOracle`."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from sklearn_structsvm._utils.borders import as_array
from sklearn_structsvm._utils.columns import stored_values
from sklearn_structsvm._utils.labels import split_weights
from sklearn_structsvm.structures import validation
from sklearn_structsvm.structures.base import as_list


def check_graphs(X, check_rows, n_edge_features=None, *, attractive=False):
    """X as a list of tuples (features, edges, edge features).

    ValueError naming the item: see `NodeStructure._check_rows` for the features. Edges
    must be pairs of different nodes. Either all graphs have edge features or none, one
    row for each edge, and nonnegative if `attractive`.
    """
    X = [_as_parts(x, i) for i, x in enumerate(as_list(X, "X"))]
    features = check_rows([x[0] for x in X], "[0]", "graph")
    edges = [
        _check_edges(x[1], item.shape[0], i)
        for i, (x, item) in enumerate(zip(X, features, strict=True))
    ]
    edge_features = _check_edge_features([x[2] for x in X], edges, n_edge_features)
    if attractive:
        _check_not_negative(edge_features)
    return list(zip(features, edges, edge_features, strict=True))


def known_part(X, y, allowed):
    """Checked graphs without the nodes that may have several labels.

    Returns `X`, `y`; `kept` (intp): the graphs that keep some nodes.
    """
    items, labelings, kept = [], [], []
    for i, (x, y_i, mask) in enumerate(zip(X, y, allowed, strict=True)):
        nodes = np.flatnonzero(mask.sum(axis=1) == 1)
        if len(nodes):
            rows, edges, edge_features = x
            if isinstance(rows, validation.FeaturesWithScores):
                rows = rows._make(part[nodes] for part in rows)
            else:
                rows = rows[nodes]
            among = np.isin(edges, nodes).all(axis=1)
            edges = np.searchsorted(nodes, edges[among])
            items.append((rows, edges, edge_features[among]))
            labels, weights = split_weights(y_i)
            labels = labels[nodes]
            labelings.append(labels if weights is None else (labels, weights[nodes]))
            kept.append(i)
    return items, labelings, np.array(kept, dtype=np.intp)


def pair_weights(transition, k):
    """The weight of each pair of k labels, shape (k, k), as an index; -1 for none."""
    if not transition:
        return np.full((k, k), -1, dtype=np.intc)
    if transition == "potts":
        return (np.eye(k) - 1).astype(np.intc)
    if transition == "symmetric":
        places = np.zeros((k, k), dtype=np.intc)
        upper = np.triu_indices(k)
        places[upper] = places.T[upper] = np.arange(len(upper[0]))
        return places
    return np.arange(k * k, dtype=np.intc).reshape(k, k)


def rooted_forest(x):
    """An item of `parents` of a `GraphOracle`, or None if the graph has a cycle."""
    T, edges = x[0].shape[0], x[1]
    if len(edges) >= T:
        return None
    around = sparse.csr_array(
        (
            np.ones(2 * len(edges)),
            (np.r_[edges[:, 0], edges[:, 1]], np.r_[edges[:, 1], edges[:, 0]]),
        ),
        shape=(T, T),
    )
    n_parts, part = connected_components(around, directed=False)
    if len(edges) != T - n_parts:
        return None
    edge_of = {}
    for e, (a, b) in enumerate(edges.tolist()):
        edge_of[a, b] = edge_of[b, a] = e
    order, parent = [], np.full(T, -1)
    for root in np.unique(part, return_index=True)[1]:
        own, above = breadth_first_order(around, root, directed=False)
        order.append(own)
        parent[own[1:]] = above[own[1:]]
    order = np.concatenate(order)[::-1]
    edge = [edge_of[v, p] if p >= 0 else -1 for v, p in enumerate(parent.tolist())]
    return np.stack([order, parent[order], np.array(edge)[order]])


def _as_parts(x, i):
    """The tuple (features, edges, edge features or None)."""
    if not isinstance(x, (tuple, list)) or len(x) not in (2, 3):
        size = f" of {len(x)} items" if isinstance(x, (tuple, list)) else ""
        raise ValueError(
            f"X[{i}] must be a tuple (features, edges) or (features, edges, "
            f"edge_features); got {type(x).__name__}{size}."
        )
    return (*x, None)[:3]


def _edges_meant(edges):
    """What to write for edges in another form."""
    if edges.shape == (2, edges.shape[-1]) and edges.dtype.kind in "iu":
        return " If a column is an edge, pass edges.T."
    if edges.ndim == 2 and edges.shape[0] == edges.shape[1]:
        return " If it is an adjacency matrix, pass np.argwhere(np.triu(edges))."
    return " Items are (features, edges), in this order."


def _check_edges(edges, n_nodes, i):
    """Edges as an array of shape (m, 2); ValueError if a node of one does not exist."""
    name = f"X[{i}][1]"
    edges = as_array(name, edges)
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold two integers, the nodes of an edge, in each row; got an "
            f"array of shape {edges.shape} and type {edges.dtype}.{_edges_meant(edges)}"
        )
    # A copy: a user may change them during a fit.
    edges = np.array(edges, dtype=np.intp, order="C")
    bad = np.flatnonzero(((edges < 0) | (edges >= n_nodes)).any(axis=1))
    if len(bad):
        raise ValueError(
            f"{name} has the edge {tuple(edges[bad[0]].tolist())}; the nodes of "
            f"X[{i}][0] are 0 to {n_nodes - 1}."
        )
    bad = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(bad):
        raise ValueError(
            f"{name} has an edge from node {edges[bad[0], 0]} to itself: leave it out."
        )
    return edges


def _check_edge_features(given, edges, n_features):
    """Features of the edges of each graph; ones if no graph has any."""
    has_features = given[0] is not None
    for i, item in enumerate(given):
        if (item is not None) != has_features:
            raise ValueError(
                f"Either all graphs must have edge features, or none; X[{i}] has "
                f"{'none' if item is None else 'some'}, and X[0] has "
                f"{'some' if has_features else 'none'}."
            )
    if not has_features:
        if n_features not in (None, 1):
            raise ValueError(
                f"The edges of X have no features, but had {n_features} in fit."
            )
        return [np.ones((len(own), 1)) for own in edges]
    some = [i for i, own in enumerate(edges) if len(own)]
    checked = iter(())
    if some:
        checked = iter(
            validation.check_items(
                [given[i] for i in some], n_features, part="[2]", kind="graph"
            )
        )
    result = []
    for i, own in enumerate(edges):
        item = next(checked) if len(own) else None
        if item is not None and item.shape[0] != len(own):
            raise ValueError(
                f"X[{i}][2] has {item.shape[0]} rows for the {len(own)} edges of "
                f"X[{i}][1]."
            )
        result.append(item)
    known = next((item for item in result if item is not None), None)
    if known is None:
        none = np.empty((0, n_features or np.shape(given[0])[-1]))
    else:
        none = known[:0]
    return [none if item is None else item for item in result]


def _check_not_negative(edge_features):
    """ValueError if a feature of an edge is below 0."""
    for i, item in enumerate(edge_features):
        for values in stored_values(item):
            if (values < 0).any():
                raise ValueError(
                    f"X[{i}][2] has the value {values[values < 0].flat[0]}: with "
                    "attractive=True the features of edges must be >= 0."
                )
