"""Candidates of slack rescaling: a maximizer of loss · (one + score) is among them."""

from itertools import product

import numpy as np
import pytest
from _cases import candidate_points
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
from sklearn_structsvm.structures import (
    ChainStructure,
    MultilabelStructure,
    TreeStructure,
)

# Of sums of a few numbers in another order, relative to the largest of them.
ROUNDING = 1e-12


@pytest.mark.parametrize("structure", [ChainStructure, TreeStructure])
def test_other_units_of_cost_change_nothing_on_long_examples(structure):
    """Integer costs have sums that are exact; of their thirds many differ by rounding."""
    rng = new_rng(0)
    for T in (30, 80):
        costs = rng.integers(1, 4, size=(4, 4)).astype(float)
        np.fill_diagonal(costs, 0.0)
        truth, values = rng.integers(4, size=T), []
        x = np.eye(4)[truth] + 0.7 * rng.standard_normal((T, 4))
        if structure is TreeStructure:
            x = (x, (np.arange(T) + 1) // 2 - 1)
        for unit in (1.0, 1.0 / 3.0):
            model = structure(label_costs=unit * costs, normalize_loss=False)
            model.fit([x], [truth], classes=np.arange(4))
            w = new_rng(1).standard_normal(model.n_weights_) / 2
            w[:16] = np.eye(4).ravel()
            _, scores, losses = candidate_points(model.make_oracle([x], [truth]), 0, w)
            values.append((losses * (1.0 + scores)).max() / unit)
        assert values[0] > 1.0
        assert values[1] == pytest.approx(values[0], rel=1e-11)


def test_candidates_of_a_tree_that_is_a_path_are_as_good_as_those_of_the_chain():
    rng = new_rng(0)
    for T in (1, 2, 7, 40):
        truth = rng.integers(5, size=T)
        x = np.eye(5)[truth] + rng.standard_normal((T, 5))
        chain = ChainStructure(last_bias=False).fit([x], [truth], classes=np.arange(5))
        path = (x, np.arange(T) - 1)
        tree = TreeStructure().fit([path], [truth], classes=np.arange(5))
        w = rng.standard_normal(chain.n_weights_)
        oracles = (chain.make_oracle([x], [truth]), tree.make_oracle([path], [truth]))
        best = np.zeros((2, 2))
        for row, v in zip(best, (w, -w), strict=True):
            points = [candidate_points(oracle, 0, v) for oracle in oracles]
            # No candidates are those of a maximum of zero, the true labeling's.
            row[:] = [
                (losses * (1.0 + scores)).max(initial=0.0) for _, scores, losses in points
            ]
        # What scores less than the truth by w scores more by -w.
        assert best[:, 0].max() > 0.0
        np.testing.assert_allclose(best[:, 1], best[:, 0], rtol=ROUNDING)


def hard_multilabel(k, seed):
    """Labels that gain what they cost: of any set of them h + λ g is the same."""
    label_costs = np.repeat(new_rng(seed).random((k, 1)), 2, axis=1)
    model = MultilabelStructure(label_costs=label_costs).fit(
        np.ones((1, 1)), np.zeros((1, k), dtype=int)
    )
    w = -label_costs[:, 0] / label_costs[:, 0].sum()
    return model.make_oracle(np.ones((1, 1)), np.zeros((1, k), dtype=int)), w


def test_of_too_many_losses_one_labeling_is_taken_with_a_bound_for_all():
    for k, search in product((20, 60, 200), ("angular", "exact")):
        oracle, w = hard_multilabel(k, seed=0)
        found = find_most_violating(oracle, 0, w, search=search)
        # Of h + λ g = 1 the largest h g has both alike, and sums of costs come near it.
        most = 0.25 * found.loss / (1.0 - found.margin)
        assert 0.999 * most < found.value <= found.bound < most * (1 + 1e-9)


def best_by_number_of_errors(theta, edge, truth):
    """Scores of the best labelings of a chain with 0, 1, 2, ... errors."""
    T, k = theta.shape
    scores = np.full((T + 1, k), -np.inf)
    scores[(np.arange(k) != truth[0]).astype(int), np.arange(k)] = theta[0]
    for t in range(1, T):
        before = (scores[:, :, np.newaxis] + edge).max(axis=1) + theta[t]
        scores[1:], scores[0] = before[:-1], -np.inf
        scores[:, truth[t]] = before[:, truth[t]]
    return scores.max(axis=1)


def test_long_chains_whose_best_labelings_are_far_apart_are_searched():
    """One of two runs of labels is best, by the multiplier, and none in between."""
    T, rng = 1000, new_rng(0)
    truth = np.append(rng.integers(2, size=T - 2), [0, 1])
    x = rng.standard_normal((T, 1))
    structure = ChainStructure(normalize_loss=False, last_bias=False)
    structure.fit([x], [truth], classes=np.arange(2))
    oracle = structure.make_oracle([x], [truth])
    for stay in (0.0, 0.1, 1.0):
        w = np.zeros(structure.n_weights_)
        w[:2] = rng.normal(scale=2.0 / T, size=2)
        w[-4:] = stay * np.eye(2).ravel()
        theta, edge = structure.potentials(x, w)[:2]
        score = theta[np.arange(T), truth].sum() + edge[truth[:-1], truth[1:]].sum()
        h = 1.0 + best_by_number_of_errors(theta, edge, truth) - score
        found = find_most_violating(oracle, 0, w)
        assert found.value == pytest.approx((h * np.arange(T + 1)).max(), rel=1e-11)
        assert found.bound == pytest.approx(found.value, rel=1e-11)
