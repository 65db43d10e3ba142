"""Chains over many labels: decoding, and memory for what their labelings touch."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm.structures import ChainStructure
from sklearn_structsvm.structures._probe import Probe

T, K = 9, 12


def random_chain(n_labels=K, length=T, seed=0):
    """A structure, an oracle of one chain, its labels, and weights."""
    rng = new_rng(seed)
    X = [rng.standard_normal((length, 2))]
    y = [rng.integers(n_labels, size=length)]
    structure = ChainStructure().fit(X, y, classes=np.arange(n_labels))
    w = rng.standard_normal(structure.n_weights_)
    return structure, structure.make_oracle(X, y), X[0], y[0], w


def dense_edges(oracle):
    edges = sparse.csr_array(oracle.get_blocks()[1], shape=(1, K * K))
    return edges.toarray().reshape(K, K)


@pytest.mark.parametrize("n_labels", [63, 64, 65, 66, 68, 130, 2051])
def test_of_many_labels_the_best_path_is_found(n_labels):
    structure, oracle, x, _, w = random_chain(n_labels, length=4)
    theta, pairs = structure.potentials(x, w)
    best, choices = theta[0], []
    for scores in theta[1:]:
        through = best[:, np.newaxis] + pairs
        choices.append(through.argmax(axis=0))
        best = scores + through.max(axis=0)
    path = [int(best.argmax())]
    for choice in reversed(choices):
        path.append(int(choice[path[-1]]))
    assert oracle.decode(w).tolist() == path[::-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_labelings", [1, 2, 3, 4, 5, 9, 30])
def test_labelings_are_scored_and_moved_to_at_the_columns_they_touch(n_labelings, dtype):
    rng = new_rng(n_labelings)
    x = rng.standard_normal((T, 20)) * (rng.uniform(size=(T, 20)) < 0.4)
    x[0, 0] = 1.0
    X, y = [sparse.csr_array(x.astype(dtype))], [rng.integers(K, size=T)]
    structure = ChainStructure().fit(X, y, classes=np.arange(K))
    w = rng.standard_normal(structure.n_weights_)
    probe = Probe(structure.make_oracle(X, y), 0, w)
    for share in (0.1, 0.5, 1.0):
        moved = rng.uniform(size=(n_labelings, T)) < share
        labelings = np.where(moved, rng.integers(K, size=(n_labelings, T)), y[0])
        labelings = labelings.astype(np.intc)
        features = [
            structure.joint_feature(X[0], labels) - structure.joint_feature(X[0], y[0])
            for labels in labelings
        ]
        for scores in probe.scores(labelings):
            np.testing.assert_allclose(scores, features @ w, rtol=0, atol=1e-10)
        coefs = rng.standard_normal(n_labelings)
        coefs[::3] = 0.0
        feature, _ = probe.direction(coefs, labelings)
        np.testing.assert_allclose(feature, coefs @ features, rtol=0, atol=1e-12)


def test_labelings_that_have_gone_take_no_memory():
    _, oracle, _, _, w = random_chain()
    probe, rng = Probe(oracle, 0, w), new_rng(2)
    for _ in range(200):
        probe.direction([1.0], [rng.integers(K, size=T).astype(np.intc)])
        probe.move(0.3)
        probe.move(-0.3)
        # Each has T - 1 pairs, as the truth does. There is room for twice what is kept
        # and what is to come.
        assert len(oracle.get_blocks()[1][0]) <= 8 * (T - 1)


def test_saved_blocks_are_restored_also_from_dense_arrays():
    _, oracle, _, _, w = random_chain()
    probe, rng = Probe(oracle, 0, w), new_rng(3)
    probe.direction([0.5, 0.2], rng.integers(K, size=(2, T)).astype(np.intc))
    probe.move(1.0)
    score = probe.block_score()
    nodes, edges = oracle.get_blocks()
    dense = dense_edges(oracle)
    for saved in (edges, dense.reshape(1, K * K), dense.reshape(1, K, K)):
        oracle.scale_blocks(0.0)
        assert probe.block_score() == 0.0
        oracle.set_blocks((nodes, saved))
        assert probe.block_score() == pytest.approx(score, abs=1e-13)


@pytest.mark.parametrize("damage", ["shape", "index", "nan"])
def test_damaged_blocks_are_refused(damage):
    _, oracle, _, _, w = random_chain()
    probe = Probe(oracle, 0, w)
    probe.direction([1.0], [np.arange(T, dtype=np.intc)])
    probe.move(1.0)
    nodes, edges = oracle.get_blocks()
    if damage == "shape":
        edges = edges[:-1]
    elif damage == "index":
        edges[1][0] = K * K
    else:
        edges[0][0] = np.nan
    with pytest.raises(ValueError):
        oracle.set_blocks((nodes, edges))
