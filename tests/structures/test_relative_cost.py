"""What the oracles declare that a call costs, and what "auto" makes of it."""

import numpy as np
import pytest
from _estimators import PythonMulticlass

from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import start_bcfw
from sklearn_structsvm.structures import (
    ChainStructure,
    HierarchicalStructure,
    MulticlassStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
    PictorialStructure,
    TreeStructure,
)

N = 6
X = np.arange(2.0 * N).reshape(N, 2)


def multiclass(k):
    y = np.arange(N) % 2
    return MulticlassStructure().fit(X, y, classes=range(k)).make_oracle(X, y)


def indicator(structure, k):
    Y = np.arange(N * k).reshape(N, k) % 3 == 0
    return structure.fit(X, Y).make_oracle(X, Y)


def multilabel(k):
    return indicator(MultilabelStructure(), k)


def pairwise(k, inference, **options):
    return indicator(PairwiseMultilabelStructure(inference=inference, **options), k)


def hierarchy(k, inference="tree"):
    """One root above k leaves."""
    edges = [(0, leaf) for leaf in range(1, k + 1)]
    return indicator(HierarchicalStructure(edges, inference=inference), k)


def chain(k, length, **options):
    items, y = [np.ones((length, 1))] * N, [np.zeros(length, dtype=int)] * N
    return ChainStructure(**options).fit(items, y, classes=range(k)).make_oracle(items, y)


def tree(k, length, n_roots=1):
    parents = np.maximum(np.arange(length) - n_roots, -1)
    items, y = [(np.ones((length, 1)), parents)] * N, [np.zeros(length, int)] * N
    return TreeStructure().fit(items, y, classes=range(k)).make_oracle(items, y)


def pictures(n_parts, shape, n_types=1, n_features=1):
    X = [np.ones((n_parts, *shape, n_features))] * N
    y = [np.zeros((n_parts, 2 + (n_types > 1)), dtype=int)] * N
    return PictorialStructure(np.arange(n_parts) - 1, n_types).fit(X, y).make_oracle(X, y)


def python(k):
    return PythonMulticlass(k).fit(list(X), [0] * N).make_oracle(list(X), [0] * N)


@pytest.mark.parametrize(
    "oracles",
    [
        [multiclass(k) for k in (2, 5, 30, 200)],
        [multilabel(k) for k in (1, 5, 30)],
        [hierarchy(k) for k in (2, 10, 50)],
        [chain(k, 8) for k in (2, 3, 5, 10, 26, 50)],
        [tree(k, 8) for k in (2, 3, 5, 10, 26, 50)],
        [chain(5, length) for length in (1, 2, 8, 30)],
        [tree(5, 8, n_roots) for n_roots in (8, 4, 1)],
        [chain(5, 8, transition=False), chain(5, 8)],
        [pictures(3, (k, k)) for k in (1, 2, 8, 30, 64, 65, 100)],
        [pictures(k, (8, 8)) for k in (1, 2, 10)],
        [pictures(3, (8, 8), n_types=k) for k in (1, 2, 5)],
        [pairwise(k, "enumerate") for k in (2, 4, 8, 14, 18)],
        [pairwise(k, "roof") for k in (3, 8, 30)],
        [pairwise(8, "roof", pairs="tree"), pairwise(8, "roof")],
        [
            pairwise(8, "enumerate"),
            pairwise(8, "enumerate", label_costs=np.arange(1.0, 17.0).reshape(8, 2)),
        ],
        # From one kind to the next, for four labels or classes.
        [
            multilabel(4), multiclass(4), hierarchy(4), chain(4, 8),
            pairwise(8, "enumerate"), chain(26, 8), pairwise(14, "enumerate"),
            pictures(10, (80, 80)), python(4),
        ],
    ],
)  # fmt: skip
def test_costs_grow_as_the_operations_do(oracles):
    costs = [oracle.relative_cost for oracle in oracles]
    assert (np.diff(costs) > 0.0).all()
    # A maximum is scored in the end, as any labeling is.
    assert costs[0] > 1.0


@pytest.mark.parametrize(
    "make",
    [lambda: python(3), lambda: pairwise(3, "lp"), lambda: hierarchy(3, "lp")],
    ids=["python", "pairwise", "hierarchy"],
)
def test_what_calls_python_has_no_count(make):
    oracle = make()
    assert_chosen(oracle, "corrective", True)
    assert oracle.relative_cost == np.inf
    assert SlackOracle(oracle).relative_cost == np.inf


@pytest.mark.parametrize("oracle", [multiclass(3), chain(3, 8), pairwise(4, "roof")])
@pytest.mark.parametrize("search", ["angular", "exact", "binary"])
def test_a_search_costs_more_than_a_call(oracle, search):
    cost = oracle.relative_cost
    assert SlackOracle(oracle, search).relative_cost >= 2 * cost


@pytest.mark.parametrize(
    ("oracle", "step", "cache"),
    [
        (indicator(MultilabelStructure(), 1), "fw", False),
        (multiclass(3), "fw", False),
        (multiclass(10), "fw", False),
        (multilabel(50), "fw", False),
        (chain(5, 1), "fw", False),
        (chain(3, 8, transition=False), "fw", False),
        (chain(2, 8), "corrective", False),
        (chain(26, 8), "corrective", False),
        (chain(50, 30), "corrective", True),
        (tree(3, 8), "corrective", False),
        (tree(50, 30), "corrective", True),
        (hierarchy(15), "corrective", False),
        (pictures(3, (2, 2)), "fw", False),
        (pictures(3, (12, 12)), "corrective", False),
        (pictures(10, (32, 32)), "corrective", True),
        (pairwise(4, "enumerate"), "corrective", False),
        (pairwise(18, "enumerate"), "corrective", True),
        (pairwise(20, "roof"), "corrective", False),
    ],
)
def test_auto_goes_by_the_cost(oracle, step, cache):
    assert_chosen(oracle, step, cache)


def assert_chosen(oracle, step, cache):
    """What "auto" takes for the steps, and whether it takes a cache."""
    uniform = np.full(N, 1.0 / N)
    assert start_bcfw(oracle, uniform, 0.1)[1:] == (step, False)
    # With an average it follows the paper.
    step = "pairwise" if step == "corrective" else step
    assert start_bcfw(oracle, uniform, 0.1, average=True)[1:] == (step, cache)
