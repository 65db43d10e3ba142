"""Sums over labelings against enumeration: log Z, marginals, entropies, gradients."""

from types import SimpleNamespace

import numpy as np
import pytest
from _forests import random_forests
from _seeds import new_rng
from scipy import sparse
from scipy.special import logsumexp

from sklearn_structsvm.structures import (
    ChainStructure,
    MulticlassStructure,
    TreeStructure,
    check_structure,
)
from sklearn_structsvm.structures.checked_oracle import check_sums


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
    structure, X, y, listed = random_forests("chain", n=30)
    w = new_rng().normal(size=listed.d)
    for ask in (structure.marginals, structure.entropies):
        one, three = (ask(X, w, n_threads=n) for n in (1, 3))
        assert all(map(np.array_equal, one, three))
    p = np.full(len(y), 1.0 / len(y))
    oracle = structure.make_oracle(X, y)
    (loss, gradient), (loss_3, gradient_3) = (oracle.log_loss(p, w, n) for n in (1, 3))
    assert loss == loss_3
    assert gradient == pytest.approx(gradient_3, rel=1e-12, abs=1e-14)


def test_a_claim_of_sums_without_them_is_found():
    class Claims(ChainStructure):
        def loss_augmented_decode(self, x, y_true, w, lam=1.0):
            (x,), (y_true,) = self.check_data([x], [y_true])
            return self.classes_[self._compiled_oracle([x], [y_true]).decode(w, lam)]

        def marginals(self, X, w, n_threads=1):
            return super().marginals(X, w, n_threads)

    _, X, y, _ = random_forests("chain")
    assert Claims.has_sums
    with pytest.raises(ValueError, match="Claims claims has_sums"):
        check_structure(Claims(), X, y, n_trials=1, random_state=0)


def test_an_oracle_with_other_sums_is_found():
    X, y = new_rng(4).normal(size=(6, 2)), np.arange(6) % 3
    oracle = MulticlassStructure().fit(X, y).make_oracle(X, y)
    # An example of two labelings, where the oracle has three.
    example = SimpleNamespace(
        i=0, listed=[0, 1], points=lambda w: (np.zeros(2), np.zeros(2), 1e-9)
    )
    with pytest.raises(ValueError, match="log-loss by it is 1.09861 for example 0"):
        check_sums(oracle, "it", 0, example, np.zeros(oracle.n_weights))
