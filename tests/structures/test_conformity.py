"""LAC, APS and RAPS, by their definitions row by row; nodes that stand for leaves."""

from itertools import chain, combinations

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.structures.conformity import CLASS_SCORES, margin
from sklearn_structsvm.structures.hierarchy_graph import read_hierarchy


def by_definition(name, p, u):
    order = sorted(range(len(p)), key=lambda c: -p[c])
    result = np.empty(len(p))
    for rank, c in enumerate(order, start=1):
        if name == "lac":
            result[c] = 1.0 - p[c]
            continue
        result[c] = sum(p[d] for d in order[: rank - 1]) + u * p[c]
        if name == "raps":
            result[c] += 0.01 * max(0, rank - 5)
    return result


@pytest.mark.parametrize("is_random", [False, True])
@pytest.mark.parametrize("name", CLASS_SCORES)
def test_scores_are_those_of_their_papers(name, is_random):
    p = new_rng().dirichlet(np.ones(8), size=20)
    shares = new_rng(5).random(20) if is_random else None
    found = CLASS_SCORES[name](p, shares)
    u = np.zeros(20) if shares is None else shares
    expected = [by_definition(name, *pair) for pair in zip(p, u, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_margins_are_distances_from_the_best():
    scores = new_rng().standard_normal((6, 4))
    assert (margin(scores).min(axis=1) == 0.0).all()
    np.testing.assert_array_equal(scores.max(axis=1)[:, None] - scores, margin(scores))
    assert margin(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("is_forest", [True, False])
def test_covers_are_the_fewest_nodes_with_these_leaves(is_forest):
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("c", "f"), ("g", "h")]
    edges += [] if is_forest else [("g", "f")]
    graph = read_hierarchy(edges)
    k = len(graph.nodes)
    below = {}
    for n in reversed(range(k)):
        own = [below[c] for c in graph.below(n)]
        below[n] = set().union(*own) if own else {n}
    everything = range(len(graph.leaves))
    subsets = chain.from_iterable(
        combinations(everything, r) for r in range(len(graph.leaves) + 1)
    )
    for subset in subsets:
        row = np.zeros((1, len(graph.leaves)), dtype=bool)
        row[0, list(subset)] = True
        found = np.flatnonzero(graph.covers(row)[0])
        wanted = set(graph.leaves[list(subset)].tolist())
        assert set().union(*(below[n] for n in found)) == wanted
        if is_forest:
            sizes = [
                r
                for r in range(k + 1)
                for nodes in combinations(range(k), r)
                if set().union(*(below[n] for n in nodes)) == wanted
            ]
            assert len(found) == min(sizes)
