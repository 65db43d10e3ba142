"""Lattices of labelings near the best one; see also `test_listed`."""

import numpy as np
from _forests import random_forests
from _seeds import new_rng

from sklearn_structsvm.structures import ChainStructure
from sklearn_structsvm.structures.lattice import make_lattice, score_gaps


def chains():
    structure, X, _, listed = random_forests("chain", longest=4)
    return structure, X, new_rng(1).standard_normal(listed.d)


def test_impossible_and_unknown_labelings_are_infinitely_far():
    bans = [(0, 1), (2, 2), (None, 2), (1, None)]
    rng = new_rng(1)
    x = rng.standard_normal((3, 2))
    structure = ChainStructure(transitions=bans).fit([x], [[0, 2, 0]], classes=range(3))
    w = rng.standard_normal(structure.n_weights_)
    forbidden = [0, 1, *[0] * (len(x) - 2)]
    assert score_gaps(structure, [x], [forbidden], w) == np.inf
    assert score_gaps(structure, [x], [[7] * len(x)], w) == np.inf
    everything = make_lattice(structure, x, w, np.inf)
    assert forbidden not in everything
    n = len(list(structure.labelings(x)))
    assert everything.count() == (n, n)


def test_a_slack_below_zero_leaves_nothing_and_zero_the_best():
    structure, X, w = chains()
    for x in X:
        assert make_lattice(structure, x, w, -1.0).count() == (0, 0)
        assert not make_lattice(structure, x, w, -1.0).nodes.any()
        (best,) = make_lattice(structure, x, w, 0.0).labelings()
        assert np.array_equal(best, structure.decode(x, w))


def test_no_nodes_have_one_labeling_and_many_have_bounds():
    structure, _, w = chains()
    empty = make_lattice(structure, np.empty((0, 2)), w, 1.0)
    assert empty.count() == (1, 1) and [] in empty
    assert [own.tolist() for own in empty.labelings()] == [[]]
    found = make_lattice(structure, new_rng(3).standard_normal((40, 2)), w, np.inf)
    assert found.count() == (3.0**40, 3.0**40)
    assert repr(found) == "<LabelingLattice: 1.21577e+19 labelings of 40 nodes>"
