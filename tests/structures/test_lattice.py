"""Lattices of labelings near the best one, against the list of all labelings."""

import numpy as np
import pytest
from _forests import KINDS, random_forests
from _seeds import new_rng

from sklearn_structsvm.structures import GraphStructure, lattice
from sklearn_structsvm.structures.lattice import make_lattice, score_gaps


def forests(kind):
    """A structure, X, y, weights, and all labelings of each x."""
    rng = new_rng(1)
    params = {}
    if kind == "forbidden":
        params = {"transitions": [(0, 1), (2, 2), (None, 2), (1, None)]}
    if kind == "graph":
        X = []
        for T in rng.integers(1, 5, size=6):
            order = rng.permutation(T)
            edges = np.column_stack([order[1:], order[rng.integers(np.arange(1, T))]])
            X.append(
                (rng.standard_normal((T, 2)), edges, rng.standard_normal((T - 1, 2)))
            )
        y = [rng.integers(3, size=len(x[0])) for x in X]
        structure = GraphStructure()
        X, y = structure.check_data(X, y)
        structure.fit(X, y, classes=range(3))
    else:
        own = "tree" if kind == "tree" else "chain"
        found = random_forests(own, k=3, longest=4, **({} if not params else {}))
        structure, X, y, _ = found
        if params:
            structure.set_params(**params)
            X = [x for x in X if len(x) != 1] or [rng.standard_normal((2, 2))]
            structure.allowed_ = structure._allowed()
            y = [next(iter(structure.labelings(x))) for x in X]
    w = rng.standard_normal(structure.n_weights_)
    labelings = [[tuple(map(int, own)) for own in structure.labelings(x)] for x in X]
    return structure, X, y, w, labelings


ALL = (*KINDS, "forbidden", "graph")


@pytest.mark.parametrize("kind", ALL)
def test_a_lattice_holds_the_labelings_within_its_slack(kind, monkeypatch):
    structure, X, _, w, labelings = forests(kind)
    rng = new_rng(2)
    for x, every in zip(X, labelings, strict=True):
        scores = np.array([structure.joint_feature(x, own) @ w for own in every])
        gaps = scores.max() - scores
        order = np.sort(gaps)
        # Between two gaps, so that rounding decides nothing.
        at = rng.integers(len(order))
        slack = order[at] + 0.5 * (
            order[at + 1] - order[at] if at + 1 < len(order) else 1
        )
        if at + 1 < len(order) and order[at + 1] - order[at] < 1e-9:
            continue
        near = {own for own, gap in zip(every, gaps, strict=True) if gap <= slack}
        found = make_lattice(structure, x, w, slack)
        listed = [tuple(map(int, own)) for own in found.labelings()]
        assert len(listed) == len(near) and set(listed) == near
        assert found.count() == (len(near), len(near))
        assert all((own in found) == (own in near) for own in every)
        for v in range(len(found.nodes)):
            present = {own[v] for own in near}
            assert set(np.flatnonzero(found.nodes[v]).tolist()) == present
            parent = found.parents[v]
            if parent >= 0:
                pairs = {(own[parent], own[v]) for own in near}
                assert set(map(tuple, np.argwhere(found.edges[v]).tolist())) == pairs
        monkeypatch.setattr(lattice, "MAX_COUNTED", -1)
        low, high = found.count()
        monkeypatch.undo()
        assert low <= len(near) <= high


@pytest.mark.parametrize("kind", ALL)
def test_gaps_are_differences_of_scores(kind):
    structure, X, y, w, labelings = forests(kind)
    found = score_gaps(structure, X, y, w)
    for x, truth, every, gap in zip(X, y, labelings, found, strict=True):
        best = max(structure.joint_feature(x, own) @ w for own in every)
        np.testing.assert_allclose(
            gap, best - structure.joint_feature(x, truth) @ w, atol=1e-10
        )


def test_impossible_and_unknown_labelings_are_infinitely_far():
    structure, X, _, w, _ = forests("forbidden")
    x = next(x for x in X if len(x) > 1)
    forbidden = [0, 1, *[0] * (len(x) - 2)]
    assert score_gaps(structure, [x], [forbidden], w) == np.inf
    assert score_gaps(structure, [x], [[7] * len(x)], w) == np.inf
    everything = make_lattice(structure, x, w, np.inf)
    assert forbidden not in everything
    n = len(list(structure.labelings(x)))
    assert everything.count() == (n, n)


@pytest.mark.parametrize("kind", ALL)
def test_a_labeling_is_in_the_lattice_of_its_own_gap(kind):
    structure, X, y, w, _ = forests(kind)
    for x, truth, gap in zip(X, y, score_gaps(structure, X, y, w), strict=True):
        found = make_lattice(structure, x, w, gap)
        assert truth in found
        assert found.nodes[np.arange(len(truth)), np.asarray(truth)].all()


def test_a_slack_below_zero_leaves_nothing_and_zero_the_best():
    structure, X, _, w, _ = forests("chain")
    for x in X:
        assert make_lattice(structure, x, w, -1.0).count() == (0, 0)
        assert not make_lattice(structure, x, w, -1.0).nodes.any()
        (best,) = make_lattice(structure, x, w, 0.0).labelings()
        assert np.array_equal(best, structure.decode(x, w))


def test_an_example_of_no_nodes_has_one_labeling():
    structure, _, _, w, _ = forests("chain")
    empty = make_lattice(structure, np.empty((0, 2)), w, 1.0)
    assert empty.count() == (1, 1) and [] in empty
    assert [own.tolist() for own in empty.labelings()] == [[]]


def test_bounds_of_many_labelings_are_near():
    structure, _, _, w, _ = forests("chain")
    found = make_lattice(structure, new_rng(3).standard_normal((40, 2)), w, np.inf)
    assert found.count() == (3.0**40, 3.0**40)
    assert repr(found) == "<LabelingLattice: 1.21577e+19 labelings of 40 nodes>"
