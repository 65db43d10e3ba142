"""Candidates of slack rescaling: a maximizer of loss · (one + score) is among them."""

import numpy as np
import pytest
from _cases import candidate_points
from _seeds import new_rng

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


def test_labelings_of_too_many_losses_are_an_error_that_says_what_to_do():
    oracle, w = hard_multilabel(60, seed=0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="too expensive.*small integers"):
            candidate_points(oracle, 0, w)
