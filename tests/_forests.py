"""Random chains and trees with all their labelings listed."""

import numpy as np
from _references import list_labelings, messy_csr, random_costs
from _seeds import new_rng

from sklearn_structsvm.structures import ChainStructure, TreeStructure

KINDS = ("chain", "tree")


def random_forests(kind, seed=0, *, n=6, k=3, longest=3, layout="dense", **params):
    """A fitted structure, checked X and y, and the same problem as a `Listed`.

    Parameters
    ----------
    params : dict
        Parameters of the structure. label_costs=True draws the costs.
    """
    rng = new_rng(seed)
    lengths = rng.integers(1, longest + 1, n)
    X = [rng.standard_normal((T, 2)) for T in lengths]
    if layout == "csr":
        X = [messy_csr(x) for x in X]
    y = [rng.integers(k, size=T) for T in lengths]
    if params.get("label_costs") is True:
        params = params | {"label_costs": random_costs(k, rng)}
    structure = ChainStructure(**params) if kind == "chain" else TreeStructure(**params)
    if kind == "tree":
        X = [(x, random_parents(x.shape[0], rng)) for x in X]
    X, y = structure.check_data(X, y)
    structure.fit(X, y, classes=range(k))
    return structure, X, y, listed(structure, X, y)


def random_parents(T, rng):
    """Random parents of T nodes in any order, with a few roots."""
    order, parents = rng.permutation(T), np.full(T, -1)
    for at in range(1, T):
        above = rng.integers(-1, at)
        parents[order[at]] = order[above] if above >= 0 else -1
    return parents


def listed(structure, X, y):
    return list_labelings(
        y,
        lambda i: [tuple(map(int, labels)) for labels in structure.labelings(X[i])],
        lambda i, labels: structure.joint_feature(X[i], labels),
        lambda i, labels: structure.loss(y[i], labels),
    )
