"""Bounds of structures: every estimator keeps to them, or says that it does not."""

from itertools import product

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng, new_seed

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
)
from sklearn_structsvm.datasets import make_chains, make_poses
from sklearn_structsvm.structures import (
    ChainStructure,
    GraphStructure,
    PictorialStructure,
)


class Attractive(ChainStructure):
    """A chain of the user's own, none of whose weights is negative."""

    def weight_bounds(self):
        return np.zeros(self.n_weights_), np.full(self.n_weights_, np.inf)


def graphs(k):
    """Cycles whose neighbors differ, which weights without bounds would use."""
    rng = new_rng(0)
    at = np.arange(6)
    edges = np.column_stack([at, (at + 1) % 6])
    y = [(at + start) % k for start in range(6)]
    return [(np.eye(k)[own] + rng.normal(size=(6, k)), edges) for own in y], y


def chains():
    X, y = make_chains(8, n_features=3, n_classes=3, random_state=new_seed(0))
    return [x - 2.0 for x in X], y


def poses():
    data = make_poses(5, shape=(9, 8), random_state=new_seed(0))
    return data.X, data.y


DATA = {
    "graph of 2 labels": (GraphStructure(attractive=True), lambda: graphs(2)),
    "graph of 3 labels": (GraphStructure(attractive=True), lambda: graphs(3)),
    "parts": (PictorialStructure(make_poses(1).parents), poses),
    "chain": (Attractive(), chains),
}
MARGIN = {"rescaling": "margin"}
KEEPING = {
    "bcfw": (BCFWClassifier, {"random_state": 0}),
    "bcfw batch": (BCFWClassifier, {"algorithm": "batch", "random_state": 0}),
    "bcfw cv": (
        BCFWClassifierCV,
        {"Cs": [0.01, 0.1], "cv": 2, "max_iter": 10**5, "random_state": 0},
    ),
    "margin": (SlackRescaledSSVM, {**MARGIN, "random_state": 0}),
    "slack": (SlackRescaledSSVM, {"search": "binary", "random_state": 0}),
}
REFUSING = {
    "one-slack": (BMRMClassifier, {}),
    "n-slack": (BMRMClassifier, {"formulation": "n-slack"}),
    "margin one-slack": (SlackRescaledSSVM, {**MARGIN, "solver": "one_slack"}),
    "margin n-slack": (SlackRescaledSSVM, {**MARGIN, "solver": "cutting_plane"}),
    "slack n-slack": (SlackRescaledSSVM, {"search": "binary", "solver": "cutting_plane"}),
    "sgd": (SlackRescaledSSVM, {**MARGIN, "solver": "sgd"}),
}
OF_CHAINS = {
    "crf dual": (CRFClassifier, {"solver": "dual"}),
    "crf lbfgs": (CRFClassifier, {"solver": "lbfgs"}),
    "crf cv": (CRFClassifierCV, {"cv": 2}),
    "pragam": (PragamClassifier, {}),
}


def data_of(name, on_machines):
    """A structure, and data here or on many machines."""
    structure, draw = DATA[name]
    if not on_machines:
        return structure, *draw()
    bag = pytest.importorskip("dask.bag")
    return structure, *(bag.from_sequence(items, npartitions=2) for items in draw())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("method", "on_machines"),
    [*product(KEEPING, [False]), *product(["bcfw", "margin", "slack"], [True])],
)
@pytest.mark.parametrize("name", DATA)
def test_weights_are_within_the_bounds_of_the_structure(name, method, on_machines):
    (structure, X, y), (estimator, params) = data_of(name, on_machines), KEEPING[method]
    params = {"max_iter": 20} | params
    model = placed(estimator)(structure=structure, tol=0.1, **params).fit(X, y)
    lower, upper = model.structure_.weight_bounds()
    assert (model.coef_ >= lower).all() and (model.coef_ <= upper).all()
    if name != "parts":
        # Some bind: they are no bounds that hold anyway.
        assert (model.coef_[np.isfinite(lower)] == 0.0).any()


@pytest.mark.parametrize("on_machines", [False, True])
@pytest.mark.parametrize(
    ("name", "method"), [*product(DATA, REFUSING), *product(["chain"], OF_CHAINS)]
)
def test_what_knows_no_bounds_refuses_a_structure_that_has_some(
    name, method, on_machines
):
    (structure, X, y) = data_of(name, on_machines)
    estimator, params = (REFUSING | OF_CHAINS)[method]
    model = placed(estimator)(structure=structure, **params)
    words = f"{type(structure).__name__} bounds its weights, which .* does not support"
    if on_machines and method != "crf lbfgs":
        # These know no examples on many machines either.
        words = "needs data in memory|must be a sequence|does not support Dask"
    with pytest.raises((ValueError, TypeError), match=words):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
