"""Each structure with data for it."""

import numpy as np
from _estimators import make_problem
from _seeds import new_seed

from sklearn_structsvm import structures
from sklearn_structsvm.datasets import make_chains, make_multilabel, make_poses

KINDS = ("binary", "multiclass", "multilabel", "multilabel-csr", "chain", "chain-csr")
GRAPH = [("p", "a"), ("p", "b"), ("q", "b"), ("q", "c")]
STRUCTURES = {
    "edges": structures.ChainStructure(edge_features=True),
    "cycles": structures.GraphStructure(transition="symmetric"),
    "forest": structures.HierarchicalStructure([("p", "a"), ("p", "b"), ("q", "c")]),
    "graph": structures.HierarchicalStructure(GRAPH),
    "pairs": structures.PairwiseMultilabelStructure(),
    "parts": structures.PictorialStructure(make_poses(1).parents),
    "roof": structures.PairwiseMultilabelStructure(inference="roof"),
    "tree": structures.TreeStructure(),
}
ALL = (*KINDS, *STRUCTURES)


def data_of(kind, more=1):
    """A structure and data for it, which may be some times as much."""
    if kind in KINDS:
        problem = make_problem(kind, n=16 * more)
        return problem.structure, problem.X, problem.y
    options = {"n_features": 3, "random_state": new_seed(0)}
    if kind == "edges":
        X, y = make_chains(8 * more, n_classes=3, **options)
        return STRUCTURES[kind], [(x, x[1:] - x[:-1]) for x in X], y
    if kind == "tree":
        X, y = make_chains(8 * more, n_classes=3, **options)
        return STRUCTURES[kind], [(x, np.arange(len(x)) - 1) for x in X], y
    if kind == "cycles":
        X, y = make_chains(8 * more, n_classes=2, **options)
        edges = [np.arange(len(x))[:, np.newaxis] - [0, 1] for x in X]
        edges = [own % len(own) for own in edges]
        return STRUCTURES[kind], list(zip(X, edges, strict=True)), y
    if kind == "parts":
        data = make_poses(5 * more, shape=(9, 8), random_state=new_seed(0))
        return STRUCTURES[kind], data.X, data.y
    return STRUCTURES[kind], *make_multilabel(12 * more, n_classes=3, **options)
