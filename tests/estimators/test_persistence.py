"""Saving, loading, copying and going on."""

import pickle
from itertools import product

import numpy as np
import pytest
from _estimators import (
    KINDS,
    PythonMulticlass,
    assert_same_fit,
    assert_same_labels,
    for_each_estimator,
    make_problem,
)
from _saving import ROUND_TRIPS
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    ComplexMetricClassifier,
    SlackRescaledSSVM,
)


def check_it_comes_back(problem, **params):
    model = problem.fitted(**params)
    for trip in ROUND_TRIPS.values():
        again = trip(model)
        assert repr(again) == repr(model)
        assert_same_fit(again, model)
        assert_same_labels(again.predict(problem.X), model.predict(problem.X))
        assert again.score(problem.X, problem.y) == model.score(problem.X, problem.y)


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_comes_back_whole(make_problem, kind):
    check_it_comes_back(make_problem(kind))


def test_the_estimator_with_cross_validation_comes_back():
    problem = make_problem("chain", model=BCFWClassifierCV)
    check_it_comes_back(problem, Cs=[0.1, 1.0], cv=2)


@for_each_estimator
@pytest.mark.parametrize(
    ("kind", "step"),
    [(kind, "pairwise") for kind in KINDS]
    + [*product(["multiclass", "chain", "custom"], ["fw", "away"])],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_goes_on_after_loading_as_it_would_have(make_problem, kind, step):
    problem = make_problem(kind)
    model = problem.fitted(warm_start=True, step=step, tol=1e-10, max_iter=3)
    loaded = [trip(model) for trip in ROUND_TRIPS.values()]
    cut = model.dual_objective_
    for one in (model, *loaded):
        one.set_params(max_iter=20).fit(problem.X, problem.y)
    assert model.history_["dual_objective"][0] == pytest.approx(cut, abs=1e-12)
    assert model.dual_objective_ > cut
    for again in loaded:
        assert_same_fit(again, model)


@for_each_estimator
def test_an_unfitted_estimator_comes_back(make_problem):
    model = make_problem("chain").estimator(C=0.3)
    for trip in ROUND_TRIPS.values():
        assert repr(trip(model)) == repr(model)


@pytest.mark.parametrize(
    "model",
    [BCFWClassifier(), SlackRescaledSSVM(), ComplexMetricClassifier(GaussianNB(), cv=2)],
    ids=lambda model: type(model).__name__,
)
def test_a_state_of_another_version_warns(model):
    problem = make_problem("binary")
    model = clone(model).fit(problem.X, problem.y)
    saved = model.__getstate__()
    assert saved["_sklearn_structsvm_version"]
    saved["_sklearn_structsvm_version"] = "0.0.0"
    fresh = type(model).__new__(type(model))
    with pytest.warns(UserWarning, match="saved by sklearn-structsvm 0.0.0"):
        fresh.__setstate__(saved)
    np.testing.assert_array_equal(fresh.predict(problem.X), model.predict(problem.X))
    # It does not show among the attributes.
    again = pickle.loads(pickle.dumps(model))
    assert not [name for name in vars(again) if "version" in name]


def test_structures_come_back():
    for structure in (make_problem("chain").structure, PythonMulticlass(4)):
        again = pickle.loads(pickle.dumps(structure))
        assert again.get_params() == structure.get_params()
