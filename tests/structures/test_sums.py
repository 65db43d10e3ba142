"""Sums over labelings against enumeration: log Z, marginals, entropies, gradients."""

from types import SimpleNamespace

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from scipy.special import logsumexp

from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    TreeStructure,
    check_structure,
)
from sklearn_structsvm.structures.checked_oracle import check_sums


class Enumerated:
    """A distribution over all labelings of one example, written out."""

    def __init__(self, structure, x, w):
        self.labelings = [np.asarray(y) for y in structure.labelings(x)]
        self.phi = np.array([structure.joint_feature(x, y) for y in self.labelings])
        scores = self.phi @ w
        self.log_p = scores - logsumexp(scores)
        self.p = np.exp(self.log_p)

    def place(self, y):
        return next(
            j for j, other in enumerate(self.labelings) if np.array_equal(other, y)
        )

    def entropy(self):
        return -sum(p * log_p for p, log_p in zip(self.p, self.log_p, strict=True) if p)

    def marginals(self, classes):
        """Of the labels at each place, or of indicators."""
        labels = np.array(self.labelings)
        return np.array([(self.p @ (labels == c)).T for c in classes]).T


def random_parents(rng, size):
    """Of a forest whose nodes come in any order."""
    order = rng.permutation(size)
    parents = np.full(size, -1)
    for j in range(1, size):
        if rng.random() < 0.8:
            parents[order[j]] = order[rng.integers(j)]
    return parents


def random_problem(kind, rng, n=3, scale=1.0, k=3, n_features=2):
    """(structure, X, y, w) with few enough labelings to write them out."""
    parts = rng.random(2) < 0.8
    if kind == "chain":
        structure = ChainStructure(
            bias=bool(parts[0]), last_bias=False, transition=bool(parts[1])
        )
    elif kind == "tree":
        structure = TreeStructure(root_bias=bool(parts[0]), transition=bool(parts[1]))
    elif kind == "edges":
        structure = ChainStructure(last_bias=bool(parts[0]), edge_features=True)
    if kind in ("chain", "tree", "edges"):
        sizes = rng.integers(1, 5, size=n)
        X = [rng.normal(size=(size, n_features)) for size in sizes]
        y = [rng.integers(k, size=size) for size in sizes]
        y[0] = np.arange(k)
        X[0] = rng.normal(size=(k, n_features))
        if rng.random() < 0.5:
            X = [sparse.csr_array(x * (rng.random(x.shape) < 0.6)) for x in X]
        if kind == "tree":
            X = [(x, random_parents(rng, x.shape[0])) for x in X]
        if kind == "edges":
            edges = [scale * rng.normal(size=(x.shape[0] - 1, 2)) for x in X]
            X = list(zip(X, edges, strict=True))
        structure.fit(X, y)
    else:
        X = rng.normal(size=(n + k, n_features))
        labels = np.concatenate([np.arange(k), rng.integers(k, size=n)])
        if kind == "binary":
            structure, y = BinaryStructure(), labels % 2
        elif kind == "multiclass":
            structure, y = MulticlassStructure(), labels
        else:
            structure, y = MultilabelStructure(), rng.integers(2, size=(n + k, k))
        structure.fit(X, y, bias=float(rng.integers(2)))
    return structure, X, y, scale * rng.normal(size=structure.n_weights_)


KINDS = ["chain", "tree", "edges", "binary", "multiclass", "multilabel"]


def checked(structure, X, y):
    return (X, y) if structure.flat else structure.check_data(X, y)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 500.0])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_enumeration(kind, scale):
    for trial in range(3):
        rng = new_rng(trial, KINDS.index(kind), int(scale))
        structure, X, y, w = random_problem(kind, rng, scale=scale)
        X, y = checked(structure, X, y)
        marginals = structure.marginals(X, w)
        entropies = structure.entropies(X, w)
        logs = structure.log_probabilities(X, y, w)
        classes = [1] if kind == "multilabel" else structure.classes_
        for i in range(len(y)):
            listed = Enumerated(structure, X[i], w)
            expected = listed.marginals(classes)
            found = marginals[i]
            assert np.reshape(expected, found.shape) == pytest.approx(found, abs=1e-10)
            assert entropies[i] == pytest.approx(listed.entropy(), rel=1e-9, abs=1e-9)
            log_p = listed.log_p[listed.place(y[i])]
            assert logs[i] == pytest.approx(log_p, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradient_are_those_of_the_enumeration(kind):
    for trial in range(3):
        rng = new_rng(trial, KINDS.index(kind))
        structure, X, y, w = random_problem(kind, rng)
        X, y = checked(structure, X, y)
        p = rng.dirichlet(np.ones(len(y)))
        p[0] = 0.0
        loss, gradient = structure.make_oracle(X, y).log_loss(p, w)
        expected_loss, expected = 0.0, np.zeros(len(w))
        for i in range(len(y)):
            listed = Enumerated(structure, X[i], w)
            truth = listed.place(y[i])
            expected_loss -= p[i] * listed.log_p[truth]
            expected += p[i] * (listed.p @ listed.phi - listed.phi[truth])
        assert loss == pytest.approx(expected_loss, rel=1e-10, abs=1e-12)
        assert gradient == pytest.approx(expected, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_finite_differences(kind):
    rng = new_rng(KINDS.index(kind))
    structure, X, y, w = random_problem(kind, rng)
    X, y = checked(structure, X, y)
    oracle = structure.make_oracle(X, y)
    p = np.full(len(y), 1.0 / len(y))
    _, gradient = oracle.log_loss(p, w)
    along, step = rng.normal(size=len(w)), 1e-4
    ends = [oracle.log_loss(p, w + sign * step * along)[0] for sign in (-1.0, 1.0)]
    slope = (ends[1] - ends[0]) / (2.0 * step)
    assert slope == pytest.approx(gradient @ along, rel=1e-5, abs=1e-6)


def long_chain(T, k, scale, rng):
    """A chain whose emissions are its scores, and weights that say so."""
    theta, transition = scale * rng.normal(size=(T, k)), scale * rng.normal(size=(k, k))
    structure = ChainStructure(bias=False, first_bias=False, last_bias=False)
    y = [np.resize(np.arange(k), T)]
    structure.fit([theta], y)
    w = np.concatenate([np.eye(k).ravel(), transition.ravel()])
    return structure, theta, transition, y, w


def normalized(scores):
    """Scores less the logarithm of the sum of their exponentials, and that."""
    highest = scores.max()
    log_z = highest + np.log(np.exp(scores - highest).sum())
    return scores - log_z, log_z


def by_logarithms(theta, transition):
    """log Z, marginals and expected pairs, in the logarithmic domain."""
    T = len(theta)
    forward, backward, log_z = theta.copy(), np.zeros_like(theta), 0.0
    for t in range(T):
        if t > 0:
            pairs = forward[t - 1][:, np.newaxis] + transition
            highest = pairs.max(axis=0)
            forward[t] += highest + np.log(np.exp(pairs - highest).sum(axis=0))
        forward[t], part = normalized(forward[t])
        log_z += part
    for t in range(T - 2, -1, -1):
        pairs = transition + theta[t + 1] + backward[t + 1]
        highest = pairs.max(axis=1)
        sums = np.exp(pairs - highest[:, np.newaxis]).sum(axis=1)
        backward[t] = normalized(highest + np.log(sums))[0]
    marginals = [np.exp(normalized(row)[0]) for row in forward + backward]
    pairs = np.zeros_like(transition)
    for t in range(1, T):
        after = theta[t] + backward[t]
        pairs += np.exp(normalized(forward[t - 1][:, np.newaxis] + transition + after)[0])
    return log_z, np.array(marginals), pairs


@pytest.mark.parametrize("scale", [2.0, 1000.0])
def test_chains_of_5_000_positions_are_summed_as_short_ones_are(scale):
    structure, theta, transition, y, w = long_chain(5_000, 3, scale, new_rng(0))
    log_z, expected, _ = by_logarithms(theta, transition)
    found = structure.marginals([theta], w)[0]
    # Scores of this size have so few digits left.
    assert found == pytest.approx(expected, abs=1e-12 * scale + 1e-11)
    assert found.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    truth = theta[np.arange(5_000), y[0]].sum()
    truth += transition[y[0][:-1], y[0][1:]].sum()
    log_p = structure.log_probabilities([theta], y, w)[0]
    assert log_p == pytest.approx(truth - log_z, rel=1e-10, abs=1e-10 * abs(log_z))


@pytest.mark.parametrize("scale", [3.0, 60.0, 100.0])
def test_numbers_and_logarithms_agree_where_scores_are_wide(scale):
    # Ranges on both sides of what is summed without logarithms.
    for trial in range(5):
        structure, theta, transition, _, w = long_chain(30, 7, scale, new_rng(trial))
        _, expected, _ = by_logarithms(theta, transition)
        assert structure.marginals([theta], w)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", [2, 7, 8, 9, 16, 17, 26, 31, 33, 47, 56, 70])
def test_sums_do_not_depend_on_how_labels_fill_vectors(k):
    # The offsets of positions make some chains wider than what is summed at once, or any
    # position of them.
    for offset in (0.0, 100.0, 200.0, 2000.0):
        rng = new_rng(k, int(offset))
        structure, theta, transition, y, w = long_chain(k + 20, k, 2.0, rng)
        theta += offset * rng.normal(size=(len(theta), 1))
        log_z, marginals, pairs = by_logarithms(theta, transition)
        X = [sparse.csr_array(theta) if offset == 100.0 else theta]
        assert structure.marginals(X, w)[0] == pytest.approx(marginals, abs=1e-10)
        loss, gradient = structure.make_oracle(X, y).log_loss(np.ones(1), w)
        truth, labels = np.zeros((k, k)), y[0]
        np.add.at(truth, (labels[:-1], labels[1:]), 1.0)
        true_score = theta[np.arange(len(theta)), labels].sum()
        true_score += (truth * transition).sum()
        assert loss == pytest.approx(log_z - true_score, rel=1e-10, abs=1e-8)
        expected = (pairs - truth).ravel()
        assert gradient[-k * k :] == pytest.approx(expected, abs=1e-9)
        marginals[np.arange(len(theta)), labels] -= 1.0
        expected = (theta.T @ marginals).ravel()
        size = 1.0 + np.abs(theta).max()
        assert gradient[: -k * k] == pytest.approx(expected, abs=1e-8 * size)


def test_a_chain_of_one_position_has_no_pairs():
    for k in (3, 17):
        rng = new_rng(k)
        structure, _, transition, _, w = long_chain(k, k, 3.0, rng)
        theta = rng.normal(size=(1, k))
        assert structure.marginals([theta], w)[0] == pytest.approx(
            by_logarithms(theta, transition)[1], abs=1e-12
        )
        oracle = structure.make_oracle([theta], [np.zeros(1, dtype=np.intc)])
        assert not oracle.log_loss(np.ones(1), w)[1][-k * k :].any()


def test_many_children_who_disagree_lose_nobody():
    # The product of the messages to the root underflows on the way for either label.
    n = 400
    rng = new_rng()
    features = np.zeros((n + 1, 2))
    features[1:, 0] = np.repeat([1.0, 0.0], n // 2)
    features[1:, 1] = np.repeat([0.0, 1.0], n // 2)
    X = [(features, [-1] + n * [0])]
    structure = TreeStructure(bias=False, root_bias=False)
    structure.fit(X, [np.arange(n + 1) % 2])
    strong = 20.0
    shift = rng.normal()
    w = np.concatenate([strong * np.eye(2).ravel(), 10.0 * np.eye(2).ravel()])
    w[0] += shift / n
    X, _ = structure.check_data(X)
    theta = features @ w[:4].reshape(2, 2)
    root = logsumexp(theta[1:, np.newaxis, :] + w[4:].reshape(2, 2), axis=2).sum(axis=0)
    expected = np.exp(root - logsumexp(root))
    assert 1e-9 < expected.min()
    assert structure.marginals(X, w)[0][0] == pytest.approx(expected, abs=1e-9)


def test_threads_do_not_change_the_sums():
    structure, X, y, w = random_problem("chain", new_rng(), n=30)
    X, y = structure.check_data(X, y)
    for ask in (structure.marginals, structure.entropies):
        one, three = (ask(X, w, n_threads=n) for n in (1, 3))
        assert all(map(np.array_equal, one, three))
    p = np.full(len(y), 1.0 / len(y))
    oracle = structure.make_oracle(X, y)
    (loss, gradient), (loss_3, gradient_3) = (oracle.log_loss(p, w, n) for n in (1, 3))
    assert loss == loss_3
    assert gradient == pytest.approx(gradient_3, rel=1e-12, abs=1e-14)


def test_labels_that_were_not_seen_have_no_probability():
    structure, X, y, w = random_problem("chain", new_rng())
    X, y = structure.check_data(X, [*y[:-1], np.full(len(y[-1]), 77)])
    logs = structure.log_probabilities(X, y, w)
    assert np.isfinite(logs[:-1]).all() and logs[-1] == -np.inf


def test_a_subclass_with_decoders_of_its_own_claims_no_sums():
    class Greedy(ChainStructure):
        def loss_augmented_decode(self, x, y_true, w, lam=1.0):
            return y_true

    assert ChainStructure.has_sums and not Greedy.has_sums


@pytest.mark.parametrize("kind", KINDS)
def test_the_sums_pass_the_check_of_structures(kind):
    structure, X, y, _ = random_problem(kind, new_rng(3))
    check_structure(structure, X, y, n_trials=1, random_state=0)


def test_a_claim_of_sums_without_them_is_found():
    class Claims(ChainStructure):
        def loss_augmented_decode(self, x, y_true, w, lam=1.0):
            (x,), (y_true,) = self.check_data([x], [y_true])
            return self.classes_[self._compiled_oracle([x], [y_true]).decode(w, lam)]

        def marginals(self, X, w, n_threads=1):
            return super().marginals(X, w, n_threads)

    _, X, y, _ = random_problem("chain", new_rng(3))
    assert Claims.has_sums
    with pytest.raises(ValueError, match="Claims claims has_sums"):
        check_structure(Claims(), X, y, n_trials=1, random_state=0)


def test_an_oracle_with_other_sums_is_found():
    structure, X, y, _ = random_problem("multiclass", new_rng(4))
    structure.fit(X, y)
    oracle = structure.make_oracle(X, y)
    # An example of two labelings, where the oracle has three.
    example = SimpleNamespace(
        i=0, listed=[0, 1], points=lambda w: (np.zeros(2), np.zeros(2), 1e-9)
    )
    with pytest.raises(ValueError, match="log-loss by it is 1.09861 for example 0"):
        check_sums(oracle, "it", 0, example, np.zeros(oracle.n_weights))
