"""Sums over the labelings of graphs, which are bounds if there are cycles."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from sklearn_structsvm._utils._matrix.features import stack_csr
from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm.structures import validation
from sklearn_structsvm.structures._tree_reweighted import tree_reweighted
from sklearn_structsvm.structures.allowed_labels import lowered
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.nodes import NodeStructure, places_in

# For predictions, messages are passed until the bound of a graph is within this of the
# smallest one, per node, and at most this often.
PRECISION = 1e-10
MAX_ROUNDS = 1000


class ReweightedGraphs:
    """All graphs as one graph, with an order of the nodes and trees along it.

    The order is breadth-first, so a forest has a single tree, and its sums are exact.

    `structure`: fitted. `X` (list of n tuples (features, edges, edge features)):
    checked; no graph is empty.
    """

    def __init__(self, structure, X):
        self.structure = structure
        if not structure.transition:
            X = [(x[0], x[1][:0], x[2][:0]) for x in X]
        self.offsets = structure._starts(X)
        self.edge_offsets = validation.starts_of(x[1] for x in X)
        self.graph = _joined(structure, X)
        # The first node of each edge's graph.
        firsts = np.repeat(self.offsets[:-1], np.diff(self.edge_offsets))[:, None]
        self.edges = self.graph[1] + firsts
        self.order = np.concatenate(
            [
                start + _breadth_first(stop - start, x[1])
                for x, start, stop in zip(X, self.offsets, self.offsets[1:], strict=False)
            ]
        )
        ends = places_in(self.order, self.edges)
        earlier, later = np.sort(ends, axis=1).T
        self.edge_order = np.lexsort((earlier, later))
        ends = ends[self.edge_order]
        self.is_turned = ends[:, 0] > ends[:, 1]
        ends.sort(axis=1)
        self.rho = 1.0 / np.bincount(ends[:, 1], minlength=1)[ends[:, 1]]
        # Edges are in the order of their graphs both before and after.
        self.ends = np.ascontiguousarray(ends - firsts, dtype=np.intc)
        self.splits = np.zeros((len(ends), len(structure.classes_)))

    def potentials(self, w, allowed=None):
        """Scores of the labels of all nodes, and of the pairs of all edges."""
        theta, tables = self.structure._graph_potentials(self.graph, w)
        if allowed is not None:
            theta[~np.concatenate(allowed)] = -np.inf
        return theta, tables

    def sums(self, theta, tables, max_rounds, tol, n_threads):
        """Bounds of the logarithms of sums, after at most `max_rounds` more messages.

        Returns `results` (n, 3): the bound, the most by which it could be lower, and
        the entropy; `nodes` (n_nodes, k); `pairs` (n_edges, k, k): marginals, in the
        order of `theta` and `tables`. If `max_rounds` is 0, they are the derivatives of
        the bounds. Otherwise they are consistent with each other.
        """
        own = tables[self.edge_order]
        own[self.is_turned] = own[self.is_turned].swapaxes(1, 2)
        results, ordered, found = tree_reweighted(
            self.offsets,
            self.edge_offsets,
            self.ends,
            self.rho,
            theta[self.order],
            own,
            self.splits,
            tol,
            max_rounds,
            n_threads,
        )
        nodes, pairs = np.empty_like(ordered), np.empty_like(found)
        nodes[self.order] = ordered
        found[self.is_turned] = found[self.is_turned].swapaxes(1, 2)
        pairs[self.edge_order] = found
        return results, nodes, pairs

    def scores(self, theta, tables, labels):
        """The scores of encoded labels by graph, and the places of their pairs."""
        n = len(self.offsets) - 1
        first, second = labels[self.edges].T
        pairs = np.arange(len(self.edges)), first, second
        of_nodes = theta[np.arange(len(labels)), labels]
        scores = np.add.reduceat(of_nodes, self.offsets[:-1])
        graph = np.repeat(np.arange(n), np.diff(self.edge_offsets))
        return scores + np.bincount(graph, tables[pairs], minlength=n), pairs


class BoundedLogLoss:
    """Σ_i p_i (bound of log Σ_y exp ⟨w, φ(x_i, y)⟩ - ⟨w, φ(x_i, y_i)⟩), as solvers ask.

    `log_loss` keeps the messages, so it is smooth and convex. `tighten` passes more. Sums
    of forests are exact. `allowed`: labels to sum over, as of `make_oracle`.
    """

    def __init__(self, structure, X, y, allowed=None, added=None, known=None):
        self.structure, self.graphs = structure, ReweightedGraphs(structure, X)
        self.allowed, self.can_tighten = allowed, structure.relaxed
        self.labels = structure._encode(y, self.graphs.offsets)
        self.added = None
        if added is not None:
            costs, rows = structure._added_costs(added, y, self.labels, known)
            self.added = costs[rows]
        self.n_weights = structure.n_weights_

    def log_loss(self, weights, w, n_threads=1):
        """The loss and its gradient."""
        return self._at(weights, w, 0, 0.0, n_threads)[:2]

    def tighten(self, weights, w, tol, n_threads=1):
        """Lower the bounds at w until they are, on average, at most `tol` too high.

        Returns `loss`; `gradient` (n_weights,); `slack`: the most by which better
        messages could lower the loss; `direction` (n_weights,): the gradient from
        consistent marginals.
        """
        per_node = tol / (weights @ np.diff(self.graphs.offsets))
        _, direction, slack = self._at(weights, w, 100, per_node, n_threads)
        return *self.log_loss(weights, w, n_threads), max(slack, 0.0), direction

    def _at(self, p, w, max_rounds, tol, n_threads):
        graphs = self.graphs
        theta, tables = graphs.potentials(w, self.allowed)
        if self.added is not None:
            theta += self.added
        results, nodes, pairs = graphs.sums(theta, tables, max_rounds, tol, n_threads)
        scores, places = graphs.scores(theta, tables, self.labels)
        nodes[np.arange(len(nodes)), self.labels] -= 1.0
        pairs[places] -= 1.0
        nodes *= np.repeat(p, np.diff(graphs.offsets))[:, None]
        pairs *= np.repeat(p, np.diff(graphs.edge_offsets))[:, None, None]
        gradient = self.structure._point_feature(
            graphs.graph, nodes, pairs.reshape(len(pairs), pairs.shape[1] ** 2)
        )
        return float(p @ (results[:, 0] - scores)), gradient, float(p @ results[:, 1])


class SumBounds(NodeStructure):
    """Base of `GraphStructure` with its sums over labelings."""

    # They are bounds if there are cycles.
    has_sums = False

    def _make_sums(self, X, y, **added):
        return BoundedLogLoss(self, X, y, **added)

    def marginals(
        self, X: Any, w: np.ndarray, n_threads: int = 1, allowed: Any = None
    ) -> np.ndarray:
        """Compute the marginal probabilities of the classes at each node.

        They are exact for forests, and tree-reweighted for other graphs. `allowed` has a
        mask of the labels that nodes may have for each example, or None. Returns an
        object array of n arrays of shape (T_i, n_classes).
        """
        (_, nodes, _), graphs, _ = self._sums(X, w, n_threads, allowed)
        return as_object_array(np.split(nodes, graphs.offsets[1:-1]))

    def entropies(
        self, X: Any, w: np.ndarray, n_threads: int = 1, allowed: Any = None
    ) -> np.ndarray:
        """Compute the entropy of the distribution of each example.

        With cycles it is an upper bound for all distributions with these marginals.
        """
        return np.maximum(self._sums(X, w, n_threads, allowed)[0][0][:, 2], 0.0)

    def log_probabilities(
        self, X: Any, y: Any, w: np.ndarray, n_threads: int = 1, allowed: Any = None
    ) -> np.ndarray:
        """Compute the log-probability of each labeling, or a lower bound of it."""
        labels = list(map(self._labels_of, y))
        has_none = np.array([bool(self.unseen_labels([own])) for own in labels])
        others = self._any_labels(X)
        known = zip(labels, others, has_none, strict=True)
        codes = self._encode([other if none else own for own, other, none in known])
        (results, _, _), graphs, potentials = self._sums(X, w, n_threads, allowed)
        scores, _ = graphs.scores(*potentials, codes)
        # A barred label has the score -inf.
        logs = np.minimum(scores - results[:, 0], 0.0)
        return np.where(has_none, -np.inf, logs)

    def least_costly(self, X: Any, marginals: Any, allowed: Any = None) -> np.ndarray:
        """Find the labelings with the smallest expected loss, given the marginals."""
        benefits = [-nodes @ self.label_costs_ for nodes in marginals]
        if allowed is not None:
            benefits = list(map(lowered, benefits, allowed))
        return as_object_array([self.classes_[own.argmax(axis=1)] for own in benefits])

    def _sums(self, X, w, n_threads, allowed):
        """The results of `ReweightedGraphs.sums`, the graphs, and their potentials."""
        w = as_floats("w", w, self.n_weights_, finite=False)
        graphs = ReweightedGraphs(self, X)
        potentials = graphs.potentials(w, allowed)
        sums = graphs.sums(*potentials, MAX_ROUNDS, PRECISION, n_threads)
        return sums, graphs, potentials


def _breadth_first(n_nodes, edges):
    """The nodes of a graph in an order in which components are connected."""
    around = sparse.csr_array(
        (np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes)
    )
    # There may be many nodes without edges.
    is_found = np.bincount(edges.ravel(), minlength=n_nodes) == 0
    order = [np.flatnonzero(is_found)]
    for v in np.flatnonzero(~is_found).tolist():
        if not is_found[v]:
            own = breadth_first_order(around, v, False, return_predecessors=False)
            is_found[own] = True
            order.append(own)
    return np.concatenate(order)


def _joined(structure, X):
    """All graphs as one, without offsets of the node numbers."""
    rows = _stacked([structure._features(x) for x in X])
    if structure._has_both:
        rows = rows, _stacked([structure._scores(x) for x in X])
    return rows, np.concatenate([x[1] for x in X]), _stacked([x[2] for x in X])


def _stacked(items):
    """All rows of matrices of one kind below one another."""
    if isinstance(items[0], SplitMatrix):
        parts = zip(*(item.matrices for item in items), strict=True)
        return SplitMatrix([_stacked(list(part)) for part in parts])
    return stack_csr(items) if sparse.issparse(items[0]) else np.concatenate(items)
