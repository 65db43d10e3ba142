"""Small instances of the built-in structures, and claims about each of them.

Numbers are multiples of a quarter, so ties are frequent and sums are exact, or costs are
real, so that no step is a tie.
"""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
from _references import (
    CHAIN_PARTS,
    Listed,
    Textbook,
    flat_feature,
    is_allowed_tree,
    list_binary,
    list_chains,
    list_labelings,
    list_multiclass,
    list_multilabel,
    messy_csr,
    visits,
    weighted_sum,
)
from _seeds import new_rng
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from scipy.special import logsumexp

from sklearn_structsvm import structures
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
from sklearn_structsvm.structures._callback import CallbackOracle
from sklearn_structsvm.structures._probe import Probe
from sklearn_structsvm.structures.lattice import make_lattice, score_gaps

# An example costs a dozen decodings of everything.
some = settings(max_examples=25)
# The same for `check_structure`, which makes more calls.
few = settings(max_examples=8)

LAMS = (0.0, 0.25, 1.0, 3.0)

# The rounding of reordered sums of a few quarters, and of thirds if losses are
# normalized.
TOLERANCE = 1e-12

NAMES = [
    ["dog", "cat", "zebra", "a rather long name"],
    [-7, 3, 40, 41],
    [10**12, 10**12 + 1, -(10**12), 0],
]


@dataclass
class Case:
    """A fitted structure, its data, and the same problem with all labelings listed.

    Attributes
    ----------
    X, y : what `make_oracle` takes
    items : list of what the single calls take as x
    names : list of labelings as the structure gives them, in the order of `listed`
    """

    structure: object
    X: object
    y: object
    items: list
    names: list
    listed: Listed
    w: np.ndarray

    @classmethod
    def of_rows(cls, structure, X, y, listed, w, names=None):
        """A case of rows, named by the labelings of the list unless others are given."""
        names = listed.labelings if names is None else names
        items = [X[[i]] for i in range(listed.n)]
        return cls(structure, X, y, items, names, listed, w)

    @classmethod
    def of_nodes(cls, structure, X, y, listed, w, classes):
        """A case of items with a label at each position."""
        names = [[classes[list(c)] for c in every] for every in listed.labelings]
        return cls(structure, X, y, X, names, listed, w)

    def place(self, i, labeling):
        same = [np.array_equal(name, labeling) for name in self.names[i]]
        assert sum(same) == 1, f"{labeling!r} is no labeling of example {i}"
        return same.index(True)

    def truth(self, i):
        return self.names[i][self.listed.truth[i]]

    def oracle(self):
        return self.structure.make_oracle(self.X, self.y)


def quarters(shape, largest=8):
    return hnp.arrays(float, shape, elements=st.integers(-largest, largest)).map(
        lambda values: values / 4
    )


@st.composite
def real_costs(draw, shape):
    """Costs of which hardly any sums are equal, and some are zero."""
    rng = new_rng(draw(st.integers(0, 999)))
    return rng.uniform(0.2, 2.0, shape) * (rng.random(shape) < 0.8)


def costs(k, real=False):
    """A cost matrix with zero diagonal, or None for the default one unless `real`."""

    def zero_diagonal(values):
        values = np.abs(values)
        np.fill_diagonal(values, 0.0)
        return values

    if real:
        return real_costs((k, k)).map(zero_diagonal)
    return st.none() | quarters((k, k)).map(zero_diagonal)


def costs_of_labels(k, real=False):
    """Those of false alarms and misses (k, 2), or None as above."""
    return real_costs((k, 2)) if real else st.none() | quarters((k, 2)).map(np.abs)


@st.composite
def with_weights(draw, y):
    """Labels of nodes with weights or without, and these weights or None."""
    if draw(st.booleans()):
        return y, None
    weights = [np.abs(draw(quarters(len(labels), largest=2))) for labels in y]
    for own in weights:
        # Of a sum that is exact when it divides.
        own[-1] = 2.0 - own[:-1].sum()
        own *= draw(st.sampled_from([0.0, 0.25, 1.0]))
    return list(zip(y, weights, strict=True)), weights


@st.composite
def label_names(draw, k):
    """Names of k labels in any order, and sorted."""
    names = draw(st.permutations(draw(st.sampled_from(NAMES))))[:k]
    return names, np.sort(names)


@st.composite
def layouts(draw):
    """The forms of rows: dense, and CSR with unsorted indices and the like."""
    seed = draw(st.none() | st.integers(0, 99))
    return np.asarray if seed is None else lambda X: messy_csr(X, seed)


@st.composite
def single_label_cases(draw, structure, listing, k, real=False):
    n, d = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    X = draw(quarters((n, d)))
    y = draw(hnp.arrays(int, n, elements=st.integers(0, k - 1)))
    label_costs = draw(costs(k, real))
    bias = draw(st.sampled_from([0.0, 1.0, 2.5]))
    names, classes = draw(label_names(k))
    X_given = draw(layouts())(X)
    fitted = structure(label_costs=label_costs).fit(
        X_given, classes[y], classes=names, bias=bias
    )
    listed = listing(X, y, label_costs, bias)
    w, every = draw(quarters(listed.d)), [list(classes)] * n
    return Case.of_rows(fitted, X_given, classes[y], listed, w, every)


@st.composite
def multiclass_cases(draw, real=False):
    k = draw(st.integers(2, 4))

    def listing(X, y, costs, bias):
        return list_multiclass(X, y, k, costs, bias)

    return draw(single_label_cases(structures.MulticlassStructure, listing, k, real))


def binary_cases():
    return single_label_cases(structures.BinaryStructure, list_binary, 2)


@st.composite
def multilabel_cases(draw, most=3, real=False):
    n, d, k = (draw(st.integers(1, largest)) for largest in (3, 3, most))
    X = draw(quarters((n, d)))
    Y = draw(hnp.arrays(int, (n, k), elements=st.integers(0, 1)))
    label_costs, normalize = draw(costs_of_labels(k, real)), draw(st.booleans())
    bias = draw(st.sampled_from([0.0, 1.0, 2.5]))
    X_given = draw(layouts())(X)
    structure = structures.MultilabelStructure(normalize, label_costs)
    scaled = (np.ones((k, 2)) if label_costs is None else label_costs) / (
        k if normalize else 1
    )
    listed = list_multilabel(X, Y, scaled, bias)
    structure.fit(X_given, Y, bias=bias)
    return Case.of_rows(structure, X_given, Y, listed, draw(quarters(listed.d)))


@st.composite
def chain_cases(
    draw, parts=CHAIN_PARTS, lengths=(1, 2, 3), barred=False, edges=False, real=False
):
    n, d, k = (draw(st.integers(*bounds)) for bounds in ((1, 3), (1, 2), (2, 3)))
    T = [draw(st.sampled_from(lengths)) for _ in range(n)]
    X = [draw(quarters((t, d))) for t in T]
    y = [draw(hnp.arrays(int, t, elements=st.integers(0, k - 1))) for t in T]
    label_costs, normalize = draw(costs(k, real)), draw(st.booleans())
    (names, classes), layout = draw(label_names(k)), draw(layouts())
    y_given, weights = draw(with_weights([classes[labels] for labels in y]))
    X_given = [layout(x) for x in X]
    of_edges = None
    if edges:
        of_edges, layout = [draw(quarters((t - 1, d))) for t in T], draw(layouts())
        X_given = list(zip(X_given, map(layout, of_edges), strict=True))
    mask = None
    if barred:
        mask = draw(hnp.arrays(bool, (k + 1, k + 1)))
        for labels in y:
            mask[np.append(k, labels), np.append(labels, k)] = True
    structure = structures.ChainStructure(
        **{part: part in parts for part in CHAIN_PARTS}, normalize_loss=normalize,
        label_costs=label_costs, transitions=mask, edge_features=edges,
    )  # fmt: skip
    structure.fit(X_given, y_given, classes=names)
    X_given, _ = structure.check_data(X_given)
    options = normalize, parts, mask, of_edges, weights
    listed = list_chains(X, y, k, label_costs, *options)
    w = draw(quarters(listed.d))
    return Case.of_nodes(structure, X_given, y_given, listed, w, classes)


TREE_PARTS = ("emission", "bias", "root_bias", "transition")


def tree_feature(x, parents, labels, k, parts=TREE_PARTS):
    features = {
        "emission": np.zeros((x.shape[1], k)),
        "bias": np.zeros(k),
        "root_bias": np.zeros(k),
        "transition": np.zeros((k, k)),
    }
    for v, label in enumerate(labels):
        features["emission"][:, label] += x[v]
        features["bias"][label] += 1
        if parents[v] < 0:
            features["root_bias"][label] += 1
        else:
            features["transition"][labels[parents[v]], label] += 1
    return np.concatenate([[]] + [features[p].ravel() for p in TREE_PARTS if p in parts])


def list_trees(
    X, y, k, costs=None, normalize=True, parts=TREE_PARTS, mask=None, weights=None
):
    costs = 1.0 - np.eye(k) if costs is None else np.asarray(costs, dtype=float)

    def labelings(i):
        found = product(range(k), repeat=len(y[i]))
        return [c for c in found if mask is None or is_allowed_tree(c, X[i][1], mask)]

    def loss(i, labels):
        own = None if weights is None else weights[i]
        return weighted_sum(costs[y[i], list(labels)], own, normalize)

    return list_labelings(
        y, labelings, lambda i, labels: tree_feature(*X[i], labels, k, parts), loss
    )


@st.composite
def forests(draw, T):
    """Parents of T nodes in any order."""
    order = draw(st.permutations(range(T)))
    parents = np.full(T, -1)
    for at in range(1, T):
        above = draw(st.integers(-1, at - 1))
        parents[order[at]] = order[above] if above >= 0 else -1
    return parents


def allow(mask, labels, parents):
    """Let a mask allow a labeling."""
    k = len(mask) - 1
    mask[np.where(parents < 0, k, labels[parents]), labels] = True
    mask[labels[~np.isin(np.arange(len(labels)), parents)], k] = True


@st.composite
def tree_cases(draw, parts=TREE_PARTS, sizes=(1, 2, 3, 4), barred=False, real=False):
    n, d, k = (draw(st.integers(*bounds)) for bounds in ((1, 3), (1, 2), (2, 3)))
    sizes = [draw(st.sampled_from(sizes)) for _ in range(n)]
    X = [(draw(quarters((T, d))), draw(forests(T))) for T in sizes]
    y = [np.array(draw(st.lists(st.integers(0, k - 1), min_size=T, max_size=T)))
         for T in sizes]  # fmt: skip
    label_costs, normalize = draw(costs(k, real)), draw(st.booleans())
    (names, classes), layout = draw(label_names(k)), draw(layouts())
    mask = None
    if barred:
        mask = draw(hnp.arrays(bool, (k + 1, k + 1)))
        for (_, parents), labels in zip(X, y, strict=True):
            allow(mask, labels, parents)
    structure = structures.TreeStructure(
        **{part: part in parts for part in TREE_PARTS},
        normalize_loss=normalize,
        label_costs=label_costs,
        transitions=mask,
    )
    y_given, weights = draw(with_weights([classes[labels] for labels in y]))
    X_given, y_given = structure.check_data(
        [(layout(x), parents.tolist()) for x, parents in X], y_given
    )
    structure.fit(X_given, y_given, classes=names)
    listed = list_trees(X, y, k, label_costs, normalize, parts, mask, weights)
    w = draw(quarters(listed.d))
    return Case.of_nodes(structure, X_given, y_given, listed, w, classes)


GRAPH_KINDS = ("potts", "symmetric", "directed")


def seen_by_edge(kind, a, b, k):
    """One-hot: what an edge sees of its labels."""
    if kind == "potts":
        return np.array([float(a == b)])
    if kind == "directed":
        return np.eye(k * k)[a * k + b]
    pairs = [(c, d) for c in range(k) for d in range(c, k)]
    return np.eye(len(pairs))[pairs.index((min(a, b), max(a, b)))]


def graph_feature(x, labels, k, kind):
    features, edges, edge_features = x
    parts = [features.T @ np.eye(k)[list(labels)], np.eye(k)[list(labels)].sum(axis=0)]
    if kind:
        edge_part = np.zeros((edge_features.shape[1], len(seen_by_edge(kind, 0, 0, k))))
        for (u, v), z in zip(edges, edge_features, strict=True):
            edge_part += np.outer(z, seen_by_edge(kind, labels[u], labels[v], k))
        parts.append(edge_part)
    return np.concatenate([part.ravel() for part in parts])


def list_graphs(X, y, weights, k, label_costs, normalize, kind):
    label_costs = 1.0 - np.eye(k) if label_costs is None else label_costs

    def loss(i, labels):
        own = None if weights is None else weights[i]
        return weighted_sum(label_costs[y[i], list(labels)], own, normalize)

    return list_labelings(
        y,
        lambda i: list(product(range(k), repeat=len(y[i]))),
        lambda i, labels: graph_feature(X[i], labels, k, kind),
        loss,
    )


@st.composite
def edges_of(draw, T, is_forest):
    """Edges of T nodes, in any order and direction, or those of a forest."""
    if is_forest:
        chosen = [(v, p) for v, p in enumerate(draw(forests(T))) if p >= 0]
    else:
        pairs = list(combinations(draw(st.permutations(range(T))), 2))
        # Some of them twice.
        chosen = draw(st.lists(st.sampled_from(pairs), max_size=7)) if pairs else []
    flips = [draw(st.booleans()) for _ in chosen]
    turned = [
        (b, a) if flip else (a, b) for (a, b), flip in zip(chosen, flips, strict=True)
    ]
    return np.array(turned, dtype=int).reshape(-1, 2)


@st.composite
def graph_cases(draw, k=None, is_forest=False, real=False):
    k = draw(st.integers(2, 3)) if k is None else k
    n, d, E = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    kind, given_E = draw(st.sampled_from([*GRAPH_KINDS, False])), draw(st.booleans())
    sizes = [draw(st.integers(1, 4)) for _ in range(n)]
    X, y = [], []
    for T in sizes:
        edges = draw(edges_of(T, is_forest))
        edge_features = draw(quarters((len(edges), E)))
        if not given_E:
            edge_features = np.ones((len(edges), 1))
        X.append((draw(quarters((T, d))), edges, edge_features))
        y.append(draw(hnp.arrays(int, T, elements=st.integers(0, k - 1))))
    label_costs, normalize = draw(costs(k, real)), draw(st.booleans())
    (names, classes), layout = draw(label_names(k)), draw(layouts())
    structure = structures.GraphStructure(
        transition=kind, inference="lp", normalize_loss=normalize, label_costs=label_costs
    )
    X_given = [(layout(x), e.tolist(), layout(z) if len(z) else z) for x, e, z in X]
    if not given_E:
        X_given = [x[:2] for x in X_given]
    y_given, weights = draw(with_weights([classes[labels] for labels in y]))
    X_given, y_given = structure.check_data(X_given, y_given)
    structure.fit(X_given, y_given, classes=names)
    listed = list_graphs(X, y, weights, k, label_costs, normalize, kind)
    w = draw(quarters(listed.d))
    return Case.of_nodes(structure, X_given, y_given, listed, w, classes)


def pairwise_feature(x, Y, pairs, bias):
    combinations_of_pairs = np.zeros((len(pairs), 4))
    for row, (a, b) in zip(combinations_of_pairs, pairs, strict=True):
        row[2 * Y[a] + Y[b]] = 1.0
    return np.append(flat_feature(x, Y, bias), combinations_of_pairs)


def list_pairwise(X, Y, pairs, costs, bias):
    k = len(Y[0])
    labelings = [np.array(y) for y in product((0, 1), repeat=k)]
    phi = [np.array([pairwise_feature(x, y, pairs, bias) for y in labelings]) for x in X]
    loss = [
        np.array(
            [sum(costs[c, t[c]] for c in range(k) if y[c] != t[c]) for y in labelings]
        )
        for t in Y
    ]
    truth = [int("".join(map(str, t)), 2) for t in Y]
    return Listed([labelings] * len(truth), truth, phi, loss)


@st.composite
def pairwise_cases(draw, inference="enumerate", real=False):
    n, d, k = (draw(st.integers(1, largest)) for largest in (3, 2, 4))
    X = draw(quarters((n, d)))
    Y = draw(hnp.arrays(int, (n, k), elements=st.integers(0, 1)))
    chosen = [
        draw(st.permutations(pair))
        for pair in combinations(range(k), 2)
        if draw(st.booleans())
    ]
    costs = draw(costs_of_labels(k, real))
    normalize, bias = draw(st.booleans()), draw(st.sampled_from([0.0, 1.0, 2.5]))
    structure = structures.PairwiseMultilabelStructure(
        chosen, inference, normalize, costs
    )
    scaled = (np.ones((k, 2)) if costs is None else costs) / (k if normalize else 1)
    listed = list_pairwise(X, Y, chosen, scaled, bias)
    X_given = draw(layouts())(X)
    structure.fit(X_given, Y, bias=bias)
    return Case.of_rows(structure, X_given, Y, listed, draw(quarters(listed.d)))


def ancestors(edges, leaf):
    """The leaf and all above it."""
    found = {leaf}
    while True:
        more = {parent for parent, child in edges if child in found} - found
        if not more:
            return found
        found |= more


def list_sets(X, Y, edges, nodes, leaves, costs, bias=0.0):
    """The problem written out: all sets of leaves, whatever the graph."""
    labelings = list(product((0, 1), repeat=len(leaves)))
    on = []
    for labeling in labelings:
        present = [leaf for leaf, is_on in zip(leaves, labeling, strict=True) if is_on]
        union = set().union(*(ancestors(edges, leaf) for leaf in present))
        on.append([node in union for node in nodes])
    sets = np.array(labelings)
    loss = [(np.where(y, costs[:, 1], costs[:, 0]) * (sets != y)).sum(1) for y in Y]
    phi = [np.array([flat_feature(x, u, bias) for u in on]) for x in X]
    truth = [labelings.index(tuple(map(int, y))) for y in Y]
    return Listed([labelings] * len(Y), truth, phi, loss)


@st.composite
def hierarchies(draw, largest_in_degree, most_leaves):
    """Edges of a graph whose nodes are numbered at random."""
    n_inner, n_leaves = draw(st.integers(1, 4)), draw(st.integers(1, most_leaves - 3))
    name = draw(st.permutations(range(n_inner + n_leaves)))
    edges = set()
    for child in range(1, n_inner + n_leaves):
        # Some of the inner nodes are roots, and some turn out to be leaves.
        inner, least = range(min(child, n_inner)), int(child >= n_inner)
        parents = draw(
            st.sets(st.sampled_from(inner), min_size=least, max_size=largest_in_degree)
        )
        edges |= {(name[parent], name[child]) for parent in parents}
    return draw(st.permutations(sorted(edges)))


@st.composite
def hierarchy_cases(
    draw, largest_in_degree=1, most_leaves=5, inference="auto", real=False
):
    edges = draw(hierarchies(largest_in_degree, most_leaves))
    found = {child for _, child in edges} - {parent for parent, _ in edges}
    leaves = draw(st.permutations(sorted(found)))
    k, n, n_features = len(leaves), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    X = draw(quarters((n, n_features)))
    Y = draw(hnp.arrays(int, (n, k), elements=st.integers(0, 1)))
    label_costs, normalize = draw(costs_of_labels(k, real)), draw(st.booleans())
    bias = draw(st.sampled_from([0.0, 2.5]))
    X_given = draw(layouts())(X)
    structure = structures.HierarchicalStructure(
        edges, leaves, inference, normalize, label_costs
    )
    structure.fit(X_given, Y, bias=bias)
    costs = np.ones((k, 2)) if label_costs is None else label_costs
    costs = costs / k if normalize else costs
    listed = list_sets(X, Y, edges, structure.nodes_.tolist(), leaves, costs, bias)
    return Case.of_rows(structure, X_given, Y, listed, draw(quarters(listed.d)))


def dag_cases():
    return hierarchy_cases(largest_in_degree=3, inference="lp")


def candidate_points(oracle, i, w, one=1.0):
    """Labelings that include a maximizer of loss · (one + score), scores and losses."""
    points = Probe(oracle, i, w).candidates(one)
    labels, scores, losses = zip(*points, strict=True) if points else ([], [], [])
    return np.array(labels), np.array(scores), np.array(losses)


def check_candidates(case, one):
    """All are of the list, and one has the largest loss · (one + score)."""
    oracle = case.oracle()
    for i in range(case.listed.n):
        _, scores, losses = candidate_points(oracle, i, case.w, one)
        f, g = case.listed.values(i, case.w, 0.0), case.listed.loss[i]
        found = (losses * (one + scores)).max(initial=0.0)
        best = (g * (one + f)).max(initial=0.0)
        np.testing.assert_allclose(found, best, rtol=TOLERANCE, atol=TOLERANCE)
        for score, loss in zip(scores, losses, strict=True):
            assert np.hypot(f - score, g - loss).min() <= TOLERANCE


def check_scores_of_labels(case):
    """How far the best labeling with a label is ahead of the best one without it."""
    rows = case.structure.decision_function(case.X, case.w)
    for i, row in enumerate(rows):
        values = case.listed.phi[i] @ case.w
        labelings = np.array(case.listed.labelings[i], dtype=bool)
        for score, on in zip(row, labelings.T, strict=True):
            assert abs(score - values[on].max() + values[~on].max()) <= TOLERANCE
        if np.abs(row).min() > TOLERANCE:
            predicted = case.structure.decode(case.items[i], case.w)
            np.testing.assert_array_equal(predicted, row > 0)


def check_sums(case, scale):
    """Marginals, entropies, log-probabilities, and the log-loss with its gradient."""
    structure, w, listed = case.structure, scale * case.w, case.listed
    marginals = structure.marginals(case.X, w)
    entropies = structure.entropies(case.X, w)
    y = case.y if structure.flat else list(map(case.truth, range(listed.n)))
    logs = structure.log_probabilities(case.X, y, w)
    n_labels = 1 if structure.flat else len(structure.classes_)
    total = np.zeros(listed.d)
    for i in range(listed.n):
        scores, labelings = listed.phi[i] @ w, np.array(listed.labelings[i])
        log_p = scores - logsumexp(scores)
        p, truth = np.exp(log_p), listed.truth[i]
        if labelings.ndim == 1:
            found, expected = np.reshape(marginals[i], -1), p[-np.size(marginals[i]) :]
        else:
            codes = range(n_labels) if n_labels > 1 else [1]
            on = np.stack([labelings == c for c in codes], axis=2)
            found = np.reshape(marginals[i], on.shape[1:])
            expected = np.einsum("y,ytc->tc", p, on)
            assert (found[~on.any(axis=0)] == 0.0).all()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        entropy = -p[p > 0] @ log_p[p > 0]
        np.testing.assert_allclose(entropies[i], entropy, rtol=1e-9, atol=1e-8)
        np.testing.assert_allclose(logs[i], log_p[truth], rtol=1e-9, atol=1e-9)
        total += (p @ listed.phi[i] - listed.phi[i][truth]) / listed.n
    loss, gradient = case.oracle().log_loss(listed.uniform, w)
    np.testing.assert_allclose(loss, -np.mean(logs), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gradient, total, rtol=0, atol=1e-9)


def check_soft_maxima(case, temperature):
    """The risk, its soft bound, and the mean features and losses of its distributions."""
    listed, w = case.listed, case.w
    p = np.arange(float(listed.n)) + (listed.n == 1)
    p /= p.sum()
    risk = EmpiricalRisk(case.oracle(), p)
    soft = loss = 0.0
    plane = np.zeros(listed.d)
    for i in range(listed.n):
        values = listed.values(i, w)
        log_z = logsumexp(values / temperature)
        P = np.exp(values / temperature - log_z)
        above = values.mean()
        if np.isfinite(temperature):
            above = temperature * (log_z - np.log(len(values)))
        soft += p[i] * above
        plane += p[i] * P @ listed.delta(i)
        loss += p[i] * P @ listed.loss[i]
    scale, hard = 1.0 + np.abs(w).sum(), listed.hinge(w, p)
    rounding = 1e-13 * scale + 1e-14 * min(temperature, 1e9)
    found = risk.soften(w, temperature)
    np.testing.assert_allclose(found, (hard, soft), rtol=0, atol=rounding)
    assert soft <= hard + 1e-12 * scale
    # Scores are known to rounding, which a low temperature makes the more of.
    rounding = 1e-12 + 1e-15 * scale / temperature
    V, found = risk.soft_plane()
    np.testing.assert_allclose(V, plane, rtol=0, atol=rounding * scale)
    np.testing.assert_allclose(found, loss, rtol=0, atol=rounding)


def check_most_violating(case, one):
    """By searches of the oracle, and by one that calls `constrained_decode`."""
    searches = [(case.oracle(), "exact"), (case.oracle(), "angular")]
    if not isinstance(case.structure, structures.GraphStructure):
        n_weights = case.structure.n_weights_
        calls = CallbackOracle(case.structure, case.X, case.y, n_weights)
        searches.append((calls, "angular"))
    for i in range(case.listed.n):
        g, f = case.listed.loss[i], case.listed.values(i, case.w, 0.0)
        best = (g * (one + f)).max(initial=0.0)
        for oracle, search in searches:
            found = find_most_violating(oracle, i, case.w, search=search, one=one)
            np.testing.assert_allclose(found.value, best, rtol=1e-9, atol=TOLERANCE)


def check_lattice(case, k):
    """It holds the labelings whose scores are within a slack of the best one."""
    truths = list(map(case.truth, range(case.listed.n)))
    gaps = score_gaps(case.structure, case.X, truths, case.w)
    for i, x in enumerate(case.items):
        every, scores = case.listed.labelings[i], case.listed.phi[i] @ case.w
        missing = scores.max() - scores
        own = missing[case.listed.truth[i]]
        np.testing.assert_allclose(gaps[i], own, rtol=0, atol=1e-10)
        assert truths[i] in make_lattice(case.structure, x, case.w, gaps[i])
        # Between two of them, so that rounding decides nothing.
        slack = missing[k % len(missing)] + 1e-3
        found = make_lattice(case.structure, x, case.w, slack)
        near = np.flatnonzero(missing <= slack)
        places = [case.place(i, labels) for labels in found.labelings()]
        assert sorted(places) == near.tolist()
        assert found.count() == (len(near), len(near))
        holds = [labels in found for labels in case.names[i]]
        np.testing.assert_array_equal(holds, missing <= slack)
        codes = np.array(every)[near]
        for v, parent in enumerate(found.parents):
            assert set(np.flatnonzero(found.nodes[v])) == set(codes[:, v])
            if parent >= 0:
                pairs = set(map(tuple, codes[:, [parent, v]].tolist()))
                assert set(map(tuple, np.argwhere(found.edges[v]).tolist())) == pairs
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(structures.lattice, "MAX_COUNTED", -1)
            low, high = found.count()
        assert low <= len(near) <= high


def check_it(case):
    """Check that decoders, claims and oracle of the structure agree."""
    structures.check_structure(case.structure, case.X, case.y, n_trials=2)


def dense(phi):
    return phi.toarray().ravel() if sparse.issparse(phi) else phi


def check_features_and_losses(case):
    for i, item in enumerate(case.items):
        for c, name in enumerate(case.names[i]):
            feature = dense(case.structure.joint_feature(item, name))
            assert feature.shape == (case.structure.n_weights_,)
            np.testing.assert_array_equal(feature, case.listed.phi[i][c])
            loss = case.structure.loss(case.y[i], name)
            assert abs(loss - case.listed.loss[i][c]) <= TOLERANCE


def check_k_best(case, k):
    for i, item in enumerate(case.items):
        labelings, scores = case.structure.k_best(item, case.w, k)
        all_scores = case.listed.phi[i] @ case.w
        expected = np.sort(all_scores)[::-1][:k]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=TOLERANCE)
        places = [case.place(i, labeling) for labeling in labelings]
        assert len(set(places)) == len(places)
        np.testing.assert_allclose(all_scores[places], scores, rtol=0, atol=TOLERANCE)


def check_max_marginals(case):
    for i, item in enumerate(case.items):
        found = case.structure.max_marginals(item, case.w)
        scores = case.listed.phi[i] @ case.w
        labelings = np.array(case.listed.labelings[i])
        for v, c in np.ndindex(*found.shape):
            expected = scores[labelings[:, v] == c].max(initial=-np.inf)
            np.testing.assert_allclose(found[v, c], expected, rtol=0, atol=TOLERANCE)


def check_batch_equals_single_calls(case):
    for lam in LAMS:
        together = case.oracle().decode(case.w, lam)
        # A new oracle each time, whose labelings are examined one after another, by
        # class.
        alone = [
            case.structure.make_oracle(case.X[i : i + 1], case.y[i : i + 1]).decode(
                case.w, lam
            )
            for i in range(case.listed.n)
        ]
        np.testing.assert_array_equal(together, np.concatenate(alone))
    predictions = case.structure.decode_batch(case.X, case.w)
    for item, labels in zip(case.items, predictions, strict=True):
        np.testing.assert_array_equal(case.structure.decode(item, case.w), labels)


def check_scores_of_the_solver(case):
    """The oracle's ⟨w, φ(x, y) - φ(x, y_i)⟩ agrees with the joint features."""
    solver = BlockFrankWolfe(case.oracle(), case.listed.uniform, 1.0)
    for lam in LAMS:
        expected = case.listed.hinge(case.w, lam=lam)
        assert abs(solver.hinge(case.w, lam) - expected) <= TOLERANCE


def check_steps(case, step):
    """Weights and losses are those of the textbook. Returns the number of steps."""
    solver = BlockFrankWolfe(case.oracle(), case.listed.uniform, 0.05, step=step)
    reference = Textbook(case.listed, 0.05, step=step)
    solver.run(reference.run(visits(case.listed.n, passes=8)).visited)
    # What is zero may be so by terms that cancel, which are at most radius / λ.
    atol = 1e-12 * np.abs(reference.w).max() + 1e-15 * case.listed.radius() / 0.05
    np.testing.assert_allclose(solver.weights, reference.w, rtol=0, atol=atol)
    np.testing.assert_allclose(solver.loss, reference.loss_blocks.sum(), rtol=1e-12)
    return len(reference.visited)


def check_constrained_decoding(case, lam, alpha, beta, strict_alpha, strict_beta):
    for i, item in enumerate(case.items):
        g = case.listed.loss[i]
        h = 1.0 + case.listed.values(i, case.w, 0.0)
        above = g > beta * h if strict_beta else g >= beta * h
        if np.isinf(alpha):
            below = h > 0 if strict_alpha else h >= 0
        else:
            below = g < alpha * h if strict_alpha else g <= alpha * h
        label = case.structure.constrained_decode(
            item, case.y[i], case.w, lam, alpha, beta, strict_alpha, strict_beta
        )
        allowed = np.flatnonzero(above & below)
        if len(allowed) == 0:
            assert label is None
        else:
            place = case.place(i, label)
            assert place in allowed
            values = h + lam * g
            assert values[place] >= values[allowed].max() - TOLERANCE


def angles():
    """(lam, alpha, beta, strict_alpha, strict_beta) of the constrained λ-oracle."""
    slopes = st.integers(0, 12).map(lambda value: value / 4)
    return st.tuples(
        st.sampled_from(LAMS), slopes | st.just(np.inf), slopes, st.booleans(),
        st.booleans(),
    )  # fmt: skip


def check_potentials(case):
    """Those of nodes and of pairs, whose parents are the ones before in a chain."""
    for i, item in enumerate(case.items):
        theta, transition = case.structure.potentials(item, case.w)
        is_tree = isinstance(case.structure, structures.TreeStructure)
        parents = item[1] if is_tree else np.arange(len(theta)) - 1
        if transition.ndim == 2:
            transition = np.broadcast_to(transition, (len(theta), *transition.shape))
        else:
            transition = np.append(transition[:1], transition, axis=0)
        for c, labels in enumerate(case.listed.labelings[i]):
            score = theta[range(len(labels)), labels].sum()
            score += sum(
                transition[v, labels[p], labels[v]]
                for v, p in enumerate(parents)
                if p >= 0
            )
            assert abs(score - case.listed.phi[i][c] @ case.w) <= TOLERANCE


def check_best_labelings(case):
    for i, (item, truth) in enumerate(zip(case.items, case.y, strict=True)):
        scores = case.listed.phi[i] @ case.w
        labels = case.structure.decode(item, case.w)
        assert scores[case.place(i, labels)] >= scores.max() - TOLERANCE
        for lam in (0.0, 1.0):
            labels = case.structure.loss_augmented_decode(item, truth, case.w, lam)
            values = scores + lam * case.listed.loss[i]
            assert values[case.place(i, labels)] >= values.max() - TOLERANCE
