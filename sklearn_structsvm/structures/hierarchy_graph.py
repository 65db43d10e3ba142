"""A hierarchy of names as numbered nodes, and messages along its edges."""

import heapq
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import check_indices, check_shape, check_starts
from sklearn_structsvm._utils.labels import listed, plain


@dataclass
class Hierarchy:
    """A directed acyclic graph, its nodes numbered from the roots on.

    `starts` (n_nodes + 2,) intp. `nodes` (n_nodes,): names; parents stand before their
    children. `leaves` (n_leaves,) intp: numbers of the nodes without children.
    `children` (n_edges + n_roots,) intp: ``children[starts[n]:starts[n + 1]]`` are
    those of node n, and for n = n_nodes the roots.
    """

    nodes: np.ndarray
    leaves: np.ndarray
    starts: np.ndarray
    children: np.ndarray

    def check(self):
        """Raise ValueError if the arrays are not a numbered graph with parents first."""
        for name in ("nodes", "children", "leaves"):
            check_shape(name, getattr(self, name), "n")
        k = len(self.nodes)
        check_starts("starts", self.starts, k + 1, len(self.children))
        check_indices("children", self.children, k)
        check_indices("leaves", self.leaves, k)
        parents = np.repeat(np.append(np.arange(k), -1), np.diff(self.starts))
        if (self.children <= parents).any():
            raise ValueError("children must come after their parents.")

    def below(self, n):
        """The children of node n, or for n_nodes the roots."""
        return self.children[self.starts[n] : self.starts[n + 1]]

    def switch_on(self, Y):
        """u(Y) of indicators Y of leaves, of shape (n, n_nodes), dtype int8."""
        U = np.zeros((len(Y), len(self.nodes)), dtype=np.int8)
        U[:, self.leaves] = Y
        for n in reversed(range(len(self.nodes))):
            if len(self.below(n)):
                U[:, n] = U[:, self.below(n)].max(axis=1)
        return U

    def covers(self, Y):
        """The nodes that represent sets of leaves, (n, n_nodes).

        All leaves below such a node are in the set. Nodes below another such node are
        omitted, so in a forest no smaller set of nodes has exactly these leaves.
        """
        whole = np.zeros((len(Y), len(self.nodes)), dtype=bool)
        whole[:, self.leaves] = Y
        for n in reversed(range(len(self.nodes))):
            if len(self.below(n)):
                whole[:, n] = whole[:, self.below(n)].all(axis=1)
        result = whole.copy()
        for n in range(len(self.nodes)):
            result[:, self.below(n)] &= ~whole[:, [n]]
        return result

    def inequalities(self):
        """(A, b) of z_c - z_n <= 0 and z_n - Σ_c z_c <= 0."""
        children = [self.below(n) for n in range(len(self.nodes))]
        parents = np.repeat(np.arange(len(children)), [len(c) for c in children])
        each = np.arange(len(parents))
        inner = np.unique(parents)
        row = len(each) + np.searchsorted(inner, parents)
        c = self.children[each]
        A = sparse.coo_array(
            (
                np.repeat([1.0, -1.0, -1.0, 1.0], [len(each)] * 3 + [len(inner)]),
                (
                    np.concatenate([each, each, row, len(each) + np.arange(len(inner))]),
                    np.concatenate([c, parents, c, inner]),
                ),
            ),
            shape=(len(each) + len(inner), len(children)),
        )
        return A, np.zeros(A.shape[0])

    def leaf_margins(self, theta):
        """Best score with a leaf minus best without it, of a forest's node scores.

        Messages up: d, the best score of a node's subtree with the node on. Messages
        down: `rest`, the best score of all other nodes with the node on, and `off`, the
        best score with the node off. O(n_nodes) for each row of theta, (n, n_nodes).
        """
        k = len(self.nodes)
        d, rest, off = theta.copy(), np.empty_like(theta), np.empty_like(theta)
        for n in reversed(range(k)):
            if len(self.below(n)):
                inside, best = d[:, self.below(n)], d[:, self.below(n)].max(axis=1)
                positive = np.maximum(inside, 0.0).sum(axis=1)
                d[:, n] += np.where(best > 0.0, positive, best)
        for n in [k, *range(k)]:
            below = self.below(n)
            positive = np.maximum(d[:, below], 0.0)
            others = positive.sum(axis=1, keepdims=True) - positive
            if n == k:
                rest[:, below] = off[:, below] = others
            elif len(below):
                outside = rest[:, [n]] + theta[:, [n]]
                rest[:, below] = outside + others
                # Without c, n may be off, or on because of another child.
                rival = _best_of_others(d[:, below])
                on = outside + np.where(rival > 0.0, others, rival)
                off[:, below] = np.maximum(off[:, [n]], on)
        return (d + rest - off)[:, self.leaves]


def read_hierarchy(edges, leaves=None):
    """The `Hierarchy` of (parent, child) pairs of names, leaves in the order given.

    ValueError if `edges` is empty, no list of pairs, or has names that are neither all
    integers nor all strings, an edge twice, or a cycle; if `leaves` have children.
    """
    edges = _read_edges(edges)
    children = {name: [] for name in sorted({name for pair in edges for name in pair})}
    n_parents = dict.fromkeys(children, 0)
    for parent, child in edges:
        children[parent].append(child)
        n_parents[child] += 1
    roots = [name for name, count in n_parents.items() if count == 0]
    order, waiting = [], roots.copy()
    while waiting:
        order.append(heapq.heappop(waiting))
        for child in children[order[-1]]:
            n_parents[child] -= 1
            if n_parents[child] == 0:
                heapq.heappush(waiting, child)
    if len(order) < len(children):
        raise ValueError(
            "edges must not contain a cycle; got "
            f"{_cycle(edges, {name for name in children if n_parents[name]})}."
        )
    number = {name: n for n, name in enumerate(order)}
    below = [sorted(number[child] for child in children[name]) for name in order]
    below.append([number[root] for root in roots])
    leaves = _read_leaves(leaves, children)
    return Hierarchy(
        nodes=np.array(order),
        leaves=np.array([number[name] for name in leaves], dtype=np.intp),
        starts=np.cumsum([0] + [len(b) for b in below], dtype=np.intp),
        children=np.concatenate([np.array(b, dtype=np.intp) for b in below]),
    )


def _read_edges(edges):
    pairs = []
    for row, pair in enumerate(edges):
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise ValueError(
                "edges must hold pairs (parent, child) of node names; "
                f"got {pair!r} in row {row}."
            )
        pairs.append(tuple(map(plain, pair)))
    if not pairs:
        raise ValueError("edges is empty: a hierarchy needs at least one edge.")
    names = [name for pair in pairs for name in pair]
    for kind in (Integral, str):
        if isinstance(names[0], kind):
            odd = [name for name in names if not isinstance(name, kind)]
            break
    else:
        odd = names
    if odd:
        raise ValueError(
            f"edges must name nodes by integers only or by strings only; got {odd[0]!r}"
            f"{'' if odd is names else f' beside {names[0]!r}'}."
        )
    first = {}
    for row, pair in enumerate(pairs):
        if pair[0] == pair[1]:
            raise ValueError(f"edges has a node that is its own child: {pair[0]!r}.")
        if first.setdefault(pair, row) != row:
            raise ValueError(
                f"edges has {pair!r} twice, in rows {first[pair]} and {row}."
            )
    return pairs


def _cycle(edges, left):
    """A cycle in words, among nodes that all have a parent among them."""
    parent = {child: parent for parent, child in edges if {parent, child} <= left}
    path = [min(left)]
    while parent[path[-1]] not in path:
        path.append(parent[path[-1]])
    path.append(parent[path[-1]])
    cycle = path[path.index(path[-1]) :]
    return " -> ".join(repr(name) for name in reversed(cycle))


def _read_leaves(leaves, children):
    found = [name for name, below in children.items() if not below]
    if leaves is None:
        return found
    leaves = [plain(name) for name in leaves]
    for name in leaves:
        if not isinstance(name, (Integral, str)):
            raise ValueError(f"leaves must hold names of nodes; got {name!r}.")
        if name not in children:
            raise ValueError(f"leaves has {name!r}, which is not in edges.")
        if children[name]:
            raise ValueError(
                f"leaves has {name!r}, which has children, such as {children[name][0]!r}."
            )
        if leaves.count(name) > 1:
            raise ValueError(f"leaves has {name!r} twice.")
    missing = [name for name in found if name not in leaves]
    if missing:
        raise ValueError(
            f"leaves must contain {listed(missing)}, which have no children in edges."
        )
    return leaves


def _best_of_others(values):
    """Largest value of the other columns; -inf for a column that is alone."""
    padded = np.column_stack([values, np.full(len(values), -np.inf)])
    best = values.argmax(axis=1)
    second, first = np.partition(padded, -2, axis=1)[:, -2:].T[:, :, np.newaxis]
    return np.where(np.arange(values.shape[1]) == best[:, np.newaxis], second, first)
