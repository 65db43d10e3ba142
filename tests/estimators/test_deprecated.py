"""Parameters that are deprecated: silent by default, and honored where they are set."""

import warnings

import numpy as np
import pytest
from _estimators import assert_same_fit, exact_ssvm, make_problem
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_structsvm import SlackRescaledSSVM, SubLBFGSClassifier

# With the values that a parameter stands for if it is not set.
PARAMETERS = {
    SlackRescaledSSVM: {
        "search_rtol": 1e-6, "max_queries": 1000, "formulation": "n-slack",
        "cache": "auto",
    },
    SubLBFGSClassifier: {"direction_tol": 1e-5, "max_directions": 20},
}  # fmt: skip
each_parameter = pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in PARAMETERS for name in PARAMETERS[kind]]
)


def make_model(kind, name=None):
    solver = {"formulation": "cutting_plane", "cache": "bcfw"}.get(name)
    model = kind(tol=0.1).set_params(**{"solver": solver} if solver else {})
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model


@each_parameter
def test_a_deprecated_parameter_warns_the_caller_and_is_what_its_default_was(kind, name):
    problem = make_problem("multiclass")
    model = make_model(kind, name)
    plain = clone(model).fit(problem.X, problem.y)
    model.set_params(**{name: PARAMETERS[kind][name]})
    words = f"The parameter {name} of {kind.__name__} is deprecated since version 0.2 and"
    with pytest.warns(FutureWarning, match=words) as record:
        model.fit(problem.X, problem.y)
    assert len(record) == 1 and record[0].filename == __file__
    assert_same_fit(model, plain)


@pytest.mark.parametrize("kind", PARAMETERS)
def test_defaults_and_their_clones_do_not_warn(kind):
    problem = make_problem("multiclass")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        model = make_model(kind).fit(problem.X, problem.y)
        GridSearchCV(clone(model), {"tol": [0.1, 0.2]}, cv=2).fit(problem.X, problem.y)
        model.set_params(**{name: "deprecated" for name in PARAMETERS[kind]})
        model.fit(problem.X, problem.y)


@pytest.mark.parametrize(
    "options",
    [
        {"search_rtol": 0.3, "solver": "cutting_plane"},
        {"max_queries": 1, "solver": "cutting_plane"},
        {"cache": True, "step": "away"},
        {"formulation": "one-slack", "solver": "cutting_plane"},
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_deprecated_settings_of_slack_rescaling_are_honored(options):
    problem = make_problem("chain")
    shared = {"C": 0.3, "max_iter": 30, "tol": 1e-6, "random_state": 0}
    unset = {"cache": "auto", "search_rtol": 1e-6}
    if "formulation" in options:
        other = exact_ssvm(problem.structure, solver="one_slack", **unset, **shared)
    else:
        other = exact_ssvm(problem.structure, **unset | options, **shared)
    model = SlackRescaledSSVM(problem.structure, **options, **shared)
    with pytest.warns(FutureWarning):
        model.fit(problem.X, problem.y)
    assert_same_fit(model, other.fit(problem.X, problem.y))


def test_the_two_forms_of_cutting_planes_differ():
    problem = make_problem("chain")
    first, second = (
        SlackRescaledSSVM(problem.structure, solver=solver, random_state=0)
        .fit(problem.X, problem.y)
        .coef_
        for solver in ("cutting_plane", "one_slack")
    )
    assert not np.array_equal(first, second)
