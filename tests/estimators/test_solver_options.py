"""Options that are given in one dict: where they are told, checked, copied and set."""

import inspect
import pickle
import re

import numpy as np
import pytest
from _options import placed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklearn_structsvm
from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    ComplexMetricClassifier,
    CRFClassifierCV,
    bcfw_path,
    crf_path,
)

KINDS = [
    kind
    for kind in map(sklearn_structsvm.__dict__.get, sklearn_structsvm.__all__)
    if hasattr(kind, "_option_table")
]
WITH_OPTIONS = [kind for kind in KINDS if kind._option_table]
each = pytest.mark.parametrize("kind", WITH_OPTIONS)
X, Y = np.arange(12.0).reshape(-1, 1), np.arange(12) % 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_constructor_has_at_most_fourteen_parameters(kind):
    assert len(inspect.signature(kind).parameters) <= 14


@each
def test_a_docstring_tells_each_option_with_its_default(kind):
    told = inspect.getdoc(kind).partition("solver_options : dict")[2]
    told = told.partition("\nAttributes\n")[0]
    lines = dict(re.findall(r"^ {4}(\w[\w, ]*) : (.*)", told, re.MULTILINE))
    listed = {name: line for key, line in lines.items() for name in key.split(", ")}
    assert listed.keys() == kind._option_table.keys()
    for name, option in kind._option_table.items():
        default = repr(option.default).replace("'", '"')
        is_told_elsewhere = listed[name] == "optional"
        assert is_told_elsewhere or listed[name].endswith(f"default={default}"), name


@each
def test_an_option_given_as_a_parameter_is_told_where_it_belongs(kind):
    words = re.escape("solver_options={'max_time': 5}")
    with pytest.raises(TypeError, match=words):
        kind(max_time=5)
    with pytest.raises(ValueError, match=words):
        kind().set_params(max_time=5)


@each
def test_an_unknown_option_gets_the_list_and_the_one_that_was_meant(kind):
    words = r"'maxtime' is not among .* Did you mean 'max_time'\? They are: .*max_time"
    with pytest.raises(ValueError, match=words):
        kind(solver_options={"maxtime": 5}).fit(X, Y)


@each
def test_a_value_of_the_wrong_kind_is_refused_like_one_of_a_parameter(kind):
    words = f"The 'max_time' parameter of the solver_options of {kind.__name__}.* must be"
    for value in (-1, "long"):
        with pytest.raises(ValueError, match=words):
            kind(solver_options={"max_time": value}).fit(X, Y)


@each
def test_options_are_copied_pickled_shown_and_set_one_by_one(kind):
    model = placed(kind)(max_time=5)
    for other in (clone(model), pickle.loads(pickle.dumps(model))):
        assert other.get_params() == model.get_params()
    assert "solver_options={'max_time': 5}" in repr(model)
    assert "max_time" in model._repr_html_()
    given = model.solver_options
    name = next(iter(kind._option_table.keys() - {"max_time"}), "max_time")
    model.set_params(**{f"solver_options__{name}": None})
    assert model.solver_options == {"max_time": 5, name: None}
    assert given == {"max_time": 5}


def test_a_search_sets_one_option_or_all_of_them():
    model = make_pipeline(
        StandardScaler(), BCFWClassifier(solver_options={"max_time": 100.0})
    )
    for grid in (
        {"bcfwclassifier__solver_options__sampling": ["gap", "permuted"]},
        {"bcfwclassifier__solver_options": [None, {"sampling": "gap"}]},
    ):
        search = GridSearchCV(model, grid, cv=2).fit(X, Y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_paths_take_options_and_refuse_those_of_single_fits():
    for path in (bcfw_path, crf_path):
        with pytest.raises(ValueError, match=f"'average' is not .* {path.__name__}"):
            path(X, Y, solver_options={"average": True})
        with pytest.raises(ValueError, match=f"the solver_options of {path.__name__}"):
            path(X, Y, solver_options={"max_time": -1})


def test_cross_validation_gives_its_options_to_its_fits():
    options = {"solver": "lbfgs", "decoding": "mbr", "intercept_scaling": 3.0}
    model = CRFClassifierCV(Cs=[0.1, 1.0], cv=2, solver_options=options).fit(X, Y)
    assert model.solver_ == "lbfgs"
    assert model.structure_.bias_ == 3.0
    options = {"cache": True, "eps": 0.5}
    model = BCFWClassifierCV(
        "multiclass", Cs=[0.1, 1.0], cv=2, step="fw", solver_options=options
    )
    assert model.fit(X, Y).cache_


def test_options_of_a_solver_of_confusions_are_those_of_the_one_chosen():
    words = r"'step' is not among .* ComplexMetricClassifier with solver='column_gen"
    with pytest.raises(ValueError, match=words):
        ComplexMetricClassifier(solver_options={"step": "paper"}).fit(X, Y)
    options = {"solver": "frank_wolfe", "step": "papr"}
    with pytest.raises(ValueError, match="'step' .* must be one of"):
        ComplexMetricClassifier(solver_options=options).fit(X, Y)
