"""Candidates of slack rescaling: a maximizer of loss · (one + score) is among them."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from _cases import candidate_points
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    TreeStructure,
)

# Of sums of a few numbers in another order, relative to the largest of them.
ROUNDING = 1e-12


@dataclass
class Instance:
    """One example: labels of nodes with scores, costs, and edges to their parents.

    Attributes
    ----------
    theta, costs : ndarray of shape (T, K)
    transition : ndarray of shape (K, K), the parent's label first, or None
    parents : ndarray of shape (T,)
    truth : ndarray of shape (T,)
    """

    theta: np.ndarray
    costs: np.ndarray
    transition: np.ndarray | None
    parents: np.ndarray
    truth: np.ndarray

    def points(self):
        """All labelings, with their scores f(y) - f(truth) and losses."""
        T, K = self.theta.shape
        labelings = np.array(list(product(range(K), repeat=T)))
        f = self.score(labelings) - self.score(self.truth[np.newaxis])
        return labelings, f, self.costs[np.arange(T), labelings].sum(axis=1)

    def score(self, labelings):
        f = self.theta[np.arange(len(self.truth)), labelings].sum(axis=1)
        if self.transition is not None:
            child = self.parents >= 0
            pairs = labelings[:, self.parents[child]], labelings[:, child]
            f = f + self.transition[pairs].sum(axis=1)
        return f


def draw_costs(rng, kind, shape):
    """Costs off the diagonal, or of anything else that is wrong."""
    if kind == "equal":
        return np.full(shape, rng.choice([1.0, 0.3]))
    if kind == "integers":
        return rng.integers(0, 4, size=shape).astype(float)
    if kind == "weighted classes":
        return np.broadcast_to(rng.uniform(0.2, 3.0, size=(shape[0], 1)), shape).copy()
    costs = rng.uniform(0.2, 2.0, size=shape)
    if kind == "zeros":
        costs[rng.random(shape) < 0.4] = 0.0
    return costs


COSTS = ("equal", "integers", "weighted classes", "real", "zeros")


def draw_numbers(rng, shape):
    """Scores of any size; small integers with many ties; or all zero."""
    kind = rng.integers(5)
    if kind == 0:
        return np.zeros(shape)
    if kind == 1:
        return rng.integers(-2, 3, size=shape).astype(float)
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 2)


def draw_parents(rng, T):
    """A forest: a path, a star, or each node under an earlier one; then renumbered."""
    kind = rng.integers(4)
    if kind == 0:
        parents = np.arange(T) - 1
    elif kind == 1:
        parents = np.zeros(T, dtype=int)
        parents[0] = -1
    else:
        parents = np.array([rng.integers(-1, v) if v else -1 for v in range(T)])
    order = rng.permutation(T)
    return np.append(np.argsort(order), -1)[parents[order]]


def draw_nodes(rng, costs, structure, T, K):
    """(oracle, w, instance) of one chain or tree."""
    parents = np.arange(T) - 1
    if structure is TreeStructure:
        parents = draw_parents(rng, T)
    matrix = draw_costs(rng, costs, (K, K))
    np.fill_diagonal(matrix, 0.0)
    parts = dict(zip(("bias", "transition"), rng.random(2) < 0.8, strict=True))
    last = "last_bias" if structure is ChainStructure else "root_bias"
    model = structure(
        label_costs=matrix, normalize_loss=rng.random() < 0.5, **{last: True}, **parts
    )
    features, truth = draw_numbers(rng, (T, 2)), rng.integers(K, size=T)
    x = features if structure is ChainStructure else (features, parents)
    model.fit([x], [truth], classes=np.arange(K))
    w = draw_numbers(rng, model.n_weights_)
    if rng.random() < 0.4:
        # As training makes them: the true labeling is about as good as any.
        w = 0.3 * w + model.joint_feature(x, truth) / T
    theta, transition = model.potentials(x, w)
    unit = 1.0 / T if model.normalize_loss else 1.0
    instance = Instance(theta, unit * matrix[truth], transition, parents, truth)
    return model.make_oracle([x], [truth]), w, instance, model


def draw_multilabel(rng, costs, k):
    truth = rng.integers(2, size=k)
    label_costs = draw_costs(rng, costs, (k, 2))
    x = draw_numbers(rng, (1, 2))
    model = MultilabelStructure(label_costs=label_costs).fit(x, truth[np.newaxis])
    w = draw_numbers(rng, model.n_weights_)
    theta = np.column_stack([np.zeros(k), model.decision_function(x, w)[0]])
    own = np.zeros((k, 2))
    own[np.arange(k), 1 - truth] = label_costs[np.arange(k), truth]
    instance = Instance(theta, own, None, np.full(k, -1), truth)
    return model.make_oracle(x, truth[np.newaxis]), w, instance, model


def draw_single_label(rng, costs, structure, k):
    truth = rng.integers(k, size=1)
    matrix = draw_costs(rng, costs, (k, k))
    np.fill_diagonal(matrix, 0.0)
    x = draw_numbers(rng, (1, 2))
    model = structure(label_costs=matrix).fit(x, truth, classes=np.arange(k))
    w = draw_numbers(rng, model.n_weights_)
    theta = np.atleast_2d(model.decision_function(x, w)[0])
    if structure is BinaryStructure:
        theta = np.array([[0.0, theta.item()]])
    instance = Instance(theta, matrix[truth], None, np.array([-1]), truth)
    return model.make_oracle(x, truth), w, instance, model


def draw(kind, costs, seed):
    rng = new_rng(seed)
    if kind in ("chain", "tree"):
        structure = ChainStructure if kind == "chain" else TreeStructure
        T, K = rng.integers(1, 6), rng.integers(2, 4)
        if rng.random() < 0.2:
            # Long enough for the search with a multiplier where costs are equal.
            T, K = rng.integers(9, 12), 2
        return draw_nodes(rng, costs, structure, T, K)
    if kind == "multilabel":
        return draw_multilabel(rng, costs, rng.integers(1, 9))
    if kind == "multiclass":
        return draw_single_label(rng, costs, MulticlassStructure, rng.integers(2, 6))
    return draw_single_label(rng, costs, BinaryStructure, 2)


def in_given_order(model, instance, labels):
    """Labels of an oracle's rows, those of trees deepest first, as labels of nodes."""
    if not isinstance(model, TreeStructure):
        return labels
    parents, depths = instance.parents, np.zeros(len(labels), dtype=int)
    for v in range(len(parents)):
        at = parents[v]
        while at >= 0:
            depths[v] += 1
            at = parents[at]
    result = np.empty_like(labels)
    result[np.argsort(-depths, kind="stable")] = labels
    return result


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("kind", ["chain", "tree", "multilabel", "multiclass", "binary"])
def test_a_maximizer_over_all_labelings_is_among_the_candidates(kind, costs):
    @settings(max_examples=25)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.3, 5.0]))
    def check(seed, one):
        oracle, w, instance, model = draw(kind, costs, seed)
        labelings, f, g = instance.points()
        best = max(0.0, (g * (one + f)).max())
        found, scores, losses = candidate_points(oracle, 0, w, one)
        size = np.abs(instance.theta).sum() + np.abs(f).max() + one
        value = max([0.0, *(losses * (one + scores))])
        assert value == pytest.approx(best, rel=ROUNDING, abs=1e-14 * size * g.max())
        places = {tuple(y): at for at, y in enumerate(labelings.tolist())}
        for labels, score, loss in zip(found, scores, losses, strict=True):
            at = places[tuple(in_given_order(model, instance, labels).tolist())]
            assert score == pytest.approx(f[at], abs=ROUNDING * size)
            assert loss == pytest.approx(g[at], rel=ROUNDING)

    check()


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
