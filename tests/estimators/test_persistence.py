"""Saving, loading, copying and going on."""

import pickle

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

from sklearn_structsvm import BCFWClassifierCV

round_trips = pytest.mark.parametrize("trip", ROUND_TRIPS.values(), ids=ROUND_TRIPS)


@for_each_estimator
@round_trips
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_comes_back_whole(make_problem, kind, trip):
    problem = make_problem(kind)
    model = problem.fitted()
    again = trip(model)
    assert repr(again) == repr(model)
    assert_same_fit(again, model)
    assert_same_labels(again.predict(problem.X), model.predict(problem.X))
    assert again.score(problem.X, problem.y) == model.score(problem.X, problem.y)


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
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
@round_trips
def test_an_unfitted_estimator_comes_back(make_problem, trip):
    model = make_problem("chain").estimator(C=0.3)
    assert repr(trip(model)) == repr(model)


@round_trips
def test_the_estimator_with_cross_validation_comes_back(trip):
    problem = make_problem("chain")
    model = BCFWClassifierCV(
        problem.structure,
        Cs=[0.1, 1.0],
        cv=2,
        step="pairwise",
        cache=False,
        random_state=0,
    ).fit(problem.X, problem.y)
    again = trip(model)
    assert_same_fit(again, model)
    assert_same_labels(again.predict(problem.X), model.predict(problem.X))


@for_each_estimator
def test_a_state_of_another_version_warns(make_problem):
    model = make_problem("binary").fitted()
    saved = model.__getstate__()
    assert saved["_sklearn_structsvm_version"]
    saved["_sklearn_structsvm_version"] = "0.0.0"
    fresh = type(model).__new__(type(model))
    with pytest.warns(UserWarning, match="saved by sklearn-structsvm 0.0.0"):
        fresh.__setstate__(saved)
    np.testing.assert_array_equal(fresh.coef_, model.coef_)


@for_each_estimator
def test_the_version_does_not_show_among_attributes(make_problem):
    model = pickle.loads(pickle.dumps(make_problem("binary").fitted()))
    assert not [name for name in vars(model) if "version" in name]


def test_structures_come_back():
    for structure in (make_problem("chain").structure, PythonMulticlass(4)):
        again = pickle.loads(pickle.dumps(structure))
        assert again.get_params() == structure.get_params()
