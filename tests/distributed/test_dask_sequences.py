"""Fits on bags and delayed parts of sequences: the optimum of the in-memory fit."""

import numpy as np
import pytest
from _dask_data import bag, dask, in_bag
from _dask_items import chains, check_items, item_problems
from _seeds import new_rng
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, CRFClassifier


@pytest.mark.parametrize("kind", list(item_problems()))
def test_the_optimum_is_that_of_the_fit_in_memory(kind, monkeypatch):
    model, X, y = item_problems()[kind]
    s = new_rng(1).uniform(0.5, 2.0, size=len(X))
    s[3] = 0.0
    here = clone(model).fit(X, y, sample_weight=s)
    monkeypatch.setattr("sklearn_structsvm.distributed.sequences.n_places", lambda: 3)
    model.fit(in_bag(X), in_bag(y), sample_weight=in_bag(s))
    check_items(model, X, y, s, here)
    if kind == "slack":
        assert model.n_queries_ >= model.n_oracle_calls_
    predicted = model.predict(in_bag(X))
    assert isinstance(predicted, bag.Bag)
    given = predicted.compute(scheduler="sync")
    for labels, expected in zip(given, model.predict(X), strict=True):
        np.testing.assert_array_equal(labels, expected)


def test_delayed_parts_do_as_well():
    X, y = chains()
    model = BCFWClassifier(C=0.05, tol=0.01, random_state=0)
    parts = [dask.delayed(list)(X[i : i + 20]) for i in (0, 20, 40)]
    labels = [dask.delayed(list)(y[i : i + 20]) for i in (0, 20, 40)]
    model.fit(parts, labels)
    here = clone(model).fit(in_bag(X), in_bag(y))
    np.testing.assert_array_equal(model.coef_, here.coef_)
    predicted = dask.compute(*model.predict(parts))
    assert [len(part) for part in predicted] == [20, 20, 20]


def test_a_short_run_is_as_in_memory():
    X, y = chains(40)
    model = CRFClassifier(C=0.1, max_iter=2)
    with pytest.warns(UserWarning, match="L-BFGS stopped at max_iter=2"):
        model.fit(in_bag(X), in_bag(y))
    assert model.n_iter_ == 2 and model.n_oracle_calls_ >= 3 * len(X)
