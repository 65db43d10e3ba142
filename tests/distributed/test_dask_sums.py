"""Conditional random fields over parts of the examples: the optimum, and misuse."""

import pickle

import numpy as np
import pytest
from _dask_data import bag, da, divided, in_bag, problems, rows
from _estimators import assert_same_optimum
from _options import placed
from _seeds import new_rng, new_seed
from sklearn.base import clone

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.distributed.dask_workers import LocalWorkers
from sklearn_structsvm.distributed.examples import Examples
from sklearn_structsvm.distributed.sums import DistributedSums, SumShard
from sklearn_structsvm.structures import (
    ChainStructure,
    GraphStructure,
    PairwiseMultilabelStructure,
    TreeStructure,
    grid_edges,
)

FIT = {"C": 0.1, "tol": 1e-7, "max_iter": 10**4, "random_state": 0}


def chains(n=40):
    return make_chains(n, n_classes=3, random_state=new_seed(0))


def shards_of(structure, X, y, p, k=3):
    parts = [np.arange(j, len(X), k) for j in range(k)]
    return [
        SumShard(Examples(structure, [X[i] for i in part], [y[i] for i in part], p[part]))
        for part in parts
    ]


def test_sums_over_parts_are_those_of_all_whatever_happens_to_them():
    X, y = chains()
    structure = ChainStructure().fit(*ChainStructure().check_data(X, y))
    X, y = structure.check_data(X, y)
    rng = new_rng(1)
    p = rng.random(len(X))
    p /= p.sum()
    shards = shards_of(structure, X, y, p)
    sums = DistributedSums(LocalWorkers(shards), len(X), structure.n_weights_)
    squares = structure._mean_squares(X, p)
    np.testing.assert_allclose(sums.mean_squares(), squares, rtol=1e-12)
    oracle = structure.make_oracle(X, y)
    for k in range(4):
        w = rng.standard_normal(structure.n_weights_)
        value, gradient = sums.log_loss(None, w)
        expected, slope = oracle.log_loss(p, w)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12)
        # Lost, or handed over to another worker.
        shards[k % 3] = pickle.loads(pickle.dumps(shards[k % 3]))
        assert shards[k % 3].oracle is None


FLAT = {
    name: problem
    for name, problem in problems().items()
    if not {"label_costs", "loss"} & set(problem[3])
}


@pytest.mark.parametrize("name", FLAT)
def test_the_optimum_of_rows_is_that_of_the_fit_in_memory(name, monkeypatch):
    X, y, s, options = FLAT[name]
    model = placed(CRFClassifier)(**FIT | options)
    here = clone(model).fit(X, y, sample_weight=s)
    monkeypatch.setattr("sklearn_structsvm.distributed.rows.n_places", lambda: 3)
    data = divided(X), divided(y), divided(s)
    model.fit(*data)
    assert model.dual_gap_ <= model.tol and model.solver_ == "lbfgs"
    bound = max(model.dual_gap_, here.dual_gap_)
    assert abs(model.objective_ - here.objective_) <= bound + 1e-12
    np.testing.assert_array_equal(model.classes_, here.classes_)
    np.testing.assert_allclose(model.predict_proba(X), here.predict_proba(X), atol=1e-2)
    assert model.predict(data[0]).compute().shape == y.shape
    np.testing.assert_array_equal(clone(model).fit(*data).coef_, model.coef_)


@pytest.mark.parametrize("kind", ["chain", "names", "tree"])
def test_the_optimum_of_sequences_is_that_of_the_fit_in_memory(kind, monkeypatch):
    X, y = chains()
    structure = "auto"
    if kind == "names":
        y = [np.array(list("abc"))[labels] for labels in y]
    if kind == "tree":
        structure = TreeStructure()
        X = [(x, np.arange(len(x)) - 1) for x in X]
    s = new_rng(1).uniform(0.5, 2.0, size=len(X))
    s[3] = 0.0
    model = CRFClassifier(structure, **FIT)
    here = clone(model).fit(X, y, sample_weight=s)
    monkeypatch.setattr("sklearn_structsvm.distributed.sequences.n_places", lambda: 3)
    model.fit(in_bag(X), in_bag(y), sample_weight=in_bag(s))
    assert model.dual_gap_ <= model.tol
    assert_same_optimum(model, here, model.C * s.sum())
    value = 0.5 * model.coef_ @ model.coef_ / (model.C * s.sum())
    value -= s @ model.log_likelihood(X, y) / s.sum()
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    predicted = model.predict(in_bag(X)).compute(scheduler="threads")
    for given, expected in zip(predicted, model.predict(X), strict=True):
        np.testing.assert_array_equal(given, expected)


def test_callbacks_and_a_short_run_are_as_in_memory():
    X, y = chains()
    model = CRFClassifier(**FIT | {"max_iter": 2})
    with pytest.warns(UserWarning, match="L-BFGS stopped at max_iter=2"):
        model.fit(in_bag(X), in_bag(y))
    assert model.n_iter_ == 2 and model.n_oracle_calls_ >= 3 * len(X)


def test_graphs_are_summed_in_memory_only():
    x = np.ones((4, 2)), grid_edges((2, 2))
    X = bag.from_sequence([x] * 4, npartitions=2)
    y = bag.from_sequence([np.arange(4) % 2] * 4, npartitions=2)
    with pytest.raises(ValueError, match="GraphStructure needs data in memory"):
        CRFClassifier(GraphStructure()).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "dual"}, "solver='dual' needs data in memory; with Dask it must be"),
        ({"solver": "newton"}, "solver='newton' needs data in memory"),
        ({"warm_start": True}, "warm_start=True needs data in memory"),
        ({"structure": PairwiseMultilabelStructure()}, "needs a structure that can sum"),
        ({"class_weight": "balanced"}, r"class_weight of .* needs data in memory"),
        ({"label_costs": 1.0 - np.eye(3)}, r"label_costs of .* needs data in memory"),
    ],
    ids=str,
)
def test_what_is_not_for_parts_says_so(options, message):
    X, y = chains(9)
    model = placed(CRFClassifier)(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(in_bag(X), in_bag(y))
    assert not hasattr(model, "coef_")


def test_wrong_rows_are_errors_before_any_work():
    X, y, _ = rows()
    X, y = divided(X), divided(y)
    with pytest.raises(TypeError, match="does not support Dask arrays and data frames"):
        CRFClassifier(ChainStructure()).fit(X, y)
    with pytest.raises(ValueError, match=r"Chunk \d of the Dask collection"):
        CRFClassifier().fit(da.full_like(X, np.nan), y)
