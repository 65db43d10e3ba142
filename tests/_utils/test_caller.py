"""Warnings are reported for the line of who called the library."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from _estimators import make_problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
    bcfw_path,
)
from sklearn_structsvm._utils.caller import warn_caller

CHAIN, ROWS = make_problem("chain"), make_problem("binary", n=40)
SHORT = {"max_iter": 1, "tol": 1e-12}
LINEAR = [
    BCFWClassifier(**SHORT),
    BCFWClassifier(step="fw", **SHORT),
    SlackRescaledSSVM(**SHORT),
    SlackRescaledSSVM(solver="sgd", **SHORT),
    SlackRescaledSSVM(solver="cutting_plane", **SHORT),
    SubLBFGSClassifier(**SHORT),
    SubLBFGSClassifier("logistic", penalty="l1", **SHORT),
    BMRMClassifier(**SHORT),
    BMRMClassifier(structure=ROWS.structure, **SHORT),
    PragamClassifier(**SHORT),
    # One pass of a path reaches the first C, and no more.
    BCFWClassifierCV(Cs=[1e-6, 1.0], cv=2, max_iter=1),
]
METRIC = partial(ComplexMetricClassifier, LogisticRegression(), "h_mean")


def reported(category, match, call):
    """Where the warnings of a call are said to come from, as (file, line)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [w for w in caught if issubclass(w.category, category)]
    found = [w for w in found if match in str(w.message)]
    (place,) = {(w.filename, w.lineno) for w in found}
    return place


def first_line(call):
    return __file__, call.__code__.co_firstlineno


def warn():
    warn_caller("here", UserWarning)


def test_from_outside_it_is_the_line_itself():
    assert reported(UserWarning, "here", warn) == (
        __file__,
        warn.__code__.co_firstlineno + 1,
    )


@pytest.mark.parametrize("model", LINEAR, ids=str)
def test_of_a_fit_that_did_not_converge(model):
    call = lambda: model.fit(ROWS.X, ROWS.y)  # noqa: E731
    assert reported(ConvergenceWarning, "max_iter=1", call) == first_line(call)


@pytest.mark.parametrize("model", LINEAR, ids=str)
def test_of_a_fit_within_a_pipeline(model):
    pipeline = make_pipeline(StandardScaler(), clone(model))
    call = lambda: pipeline.fit(ROWS.X, ROWS.y)  # noqa: E731
    assert reported(ConvergenceWarning, "max_iter=1", call) == first_line(call)


@pytest.mark.parametrize(
    "model",
    [
        BCFWClassifier(),
        BCFWClassifier(step="exact"),
        SlackRescaledSSVM(),
        BMRMClassifier(),
        SubLBFGSClassifier(),
    ],
    ids=str,
)
def test_of_a_start_anew(model):
    model = clone(model).set_params(warm_start=True, tol=0.1).fit(ROWS.X, ROWS.y)
    call = lambda: model.fit(ROWS.X[:, :2], 2 - ROWS.y)  # noqa: E731
    assert reported(UserWarning, "warm_start=True", call) == first_line(call)


def test_of_a_path_cut_short():
    call = lambda: bcfw_path(CHAIN.X, CHAIN.y, max_iter=1)  # noqa: E731
    assert reported(ConvergenceWarning, "max_iter=1", call) == first_line(call)


@pytest.mark.parametrize(
    "solver", ["column_generation", "frank_wolfe", "gda", "ellipsoid"]
)
def test_of_a_metric_that_did_not_converge(solver):
    # The best recalls are between those of two classifiers, so that one step finds but
    # the bounds that other recalls give.
    X = np.repeat([[0.0], [1.0]], [40, 20], axis=0)
    y = np.repeat([0, 1, 0, 1], [30, 10, 10, 10])
    model = METRIC(solver_options={"solver": solver}, **SHORT)
    call = lambda: model.fit(X, y)  # noqa: E731
    assert reported(ConvergenceWarning, "max_iter=1", call) == first_line(call)


def test_of_a_metric_that_has_one_label_predicted():
    y = np.arange(40) == 0
    model = ComplexMetricClassifier(
        LogisticRegression(C=1e-9), "zero_one", confusion="probabilities", cv=None
    )
    call = lambda: model.fit(ROWS.X, y)  # noqa: E731
    assert reported(UserWarning, "never", call) == first_line(call)


def test_of_weights_that_an_estimator_does_not_take():
    class Unweighted(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    model = ComplexMetricClassifier(Unweighted(), "h_mean")
    call = lambda: model.fit(ROWS.X, ROWS.y, np.ones(40))  # noqa: E731
    assert reported(UserWarning, "does not accept sample_weight", call) == first_line(
        call
    )


def test_of_classes_that_a_fold_lacks():
    y = np.repeat([0, 1, 2], [13, 13, 14])
    model = METRIC(cv=KFold(3))
    call = lambda: model.fit(ROWS.X, y)  # noqa: E731
    assert reported(UserWarning, "A fold has no training", call) == first_line(call)


@pytest.mark.parametrize(
    "model", [BCFWClassifier(), SubLBFGSClassifier(), METRIC()], ids=str
)
def test_of_a_pickle_by_another_version(model, monkeypatch):
    model.fit(ROWS.X, ROWS.y)
    monkeypatch.setattr("sklearn_structsvm.estimators.base.__version__", "0.0.0")
    saved = pickle.dumps(model)
    monkeypatch.undo()
    call = lambda: pickle.loads(saved)  # noqa: E731
    assert reported(UserWarning, "was saved by", call) == first_line(call)
