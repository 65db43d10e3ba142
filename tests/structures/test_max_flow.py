"""Minimum cuts of labels that attract each other, against SciPy's maximum flow."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from sklearn_structsvm.structures._qpbo import RoofDuality


def grid(n_rows, n_columns):
    at = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    sides = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    return np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in sides])


def scattered(k, m, rng):
    """Pairs, some of them more than once."""
    first = rng.integers(k, size=m)
    return np.column_stack([first, (first + rng.integers(1, k, size=m)) % k])


def path(k, rng):
    """A path in an order of its own, where trees get as deep as they can."""
    order = rng.permutation(k)
    return np.column_stack([order[:-1], order[1:]])


def problems():
    for seed in range(6):
        rng = new_rng(seed)
        strength = int(rng.integers(1, 12))
        yield grid(*rng.integers(2, 40, size=2)), strength, rng
        yield scattered(200, int(rng.integers(1, 1500)), rng), strength, rng
        yield path(3000, rng), strength, rng


def network_of(excess, pairs, arcs):
    """Supplies from node k, demands to node k + 1, arcs both ways."""
    k = len(excess)
    rows = [np.full(k, k), np.arange(k), *pairs.T]
    columns = [np.arange(k), np.full(k, k + 1), *pairs.T[::-1]]
    values = [np.maximum(excess, 0), np.maximum(-excess, 0), arcs, arcs]
    # SciPy before 1.12 keeps the type of places, and finds flows by 32 bits alone.
    places = [np.concatenate(at).astype(np.int32) for at in (rows, columns)]
    entries = np.concatenate(values), tuple(places)
    return sparse.csr_array(entries, shape=(k + 2, k + 2), dtype=np.int32)


def test_cuts_are_those_of_an_independent_maximum_flow():
    n_mixed = 0
    for pairs, strength, rng in problems():
        k = int(pairs.max()) + 1
        arcs = rng.integers(0, strength + 1, size=len(pairs))
        excess = rng.integers(-9, 10, size=k)
        # The labels whose cut has these supplies and arcs.
        J = 2.0 * arcs
        q = excess - np.bincount(pairs.ravel(), np.repeat(arcs, 2), k)
        labels = RoofDuality(k, pairs).maximize(q, J)[:k]
        assert set(labels) <= {0.0, 1.0}
        network = network_of(excess, pairs, arcs)
        flow = maximum_flow(network, k, k + 1)
        cut = arcs @ (labels[pairs[:, 0]] != labels[pairs[:, 1]])
        cut += np.maximum(excess, 0) @ (1 - labels) + np.maximum(-excess, 0) @ labels
        assert cut == flow.flow_value
        # The smallest of all cuts: what supplies still reach.
        left = sparse.csr_array(network - flow.flow)
        left.eliminate_zeros()
        reached = breadth_first_order(left, k, return_predecessors=False)
        np.testing.assert_array_equal(
            np.flatnonzero(labels), np.sort(reached[reached < k])
        )
        n_mixed += 0 < labels.sum() < k
    assert n_mixed > 0


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e150])
def test_capacities_of_any_size_and_ratio_are_cut(scale):
    """Where they differ by sixteen powers of ten, as rounding decides nothing here."""
    for seed in range(20):
        rng = new_rng(seed)
        pairs = scattered(12, 30, rng)
        J = scale * 10.0 ** rng.uniform(-8, 8, size=30)
        q = scale * rng.normal(size=12) * 10.0 ** rng.uniform(-8, 8, size=12)
        q -= np.bincount(pairs.ravel(), np.repeat(J, 2), 12) / 2
        labels = RoofDuality(12, pairs).maximize(q, J)[:12]
        every = (np.arange(2**12)[:, np.newaxis] >> np.arange(12)) & 1
        values = every @ q + every[:, pairs].prod(axis=2) @ J
        found = labels @ q + labels[pairs].prod(axis=1) @ J
        size = np.abs(q).sum() + np.abs(J).sum()
        assert found >= values.max() - 1e-13 * size


def test_a_graph_of_a_hundred_thousand_labels_is_cut():
    rng = new_rng(0)
    pairs, k = grid(320, 320), 320 * 320
    arcs = rng.integers(0, 3, size=len(pairs))
    excess = rng.integers(-9, 10, size=k)
    q = excess - np.bincount(pairs.ravel(), np.repeat(arcs, 2), k)
    labels = RoofDuality(k, pairs).maximize(q, 2.0 * arcs)[:k]
    cut = arcs @ (labels[pairs[:, 0]] != labels[pairs[:, 1]])
    cut += np.maximum(excess, 0) @ (1 - labels) + np.maximum(-excess, 0) @ labels
    assert cut == maximum_flow(network_of(excess, pairs, arcs), k, k + 1).flow_value
