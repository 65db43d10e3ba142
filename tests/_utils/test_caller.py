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
from sklearn_structsvm.datasets import read_conll
from sklearn_structsvm.metrics import entity_f1_score, entity_report, micro_f1_score

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


def check_the_line(category, match, call):
    assert reported(category, match, call) == (__file__, call.__code__.co_firstlineno)


def warn():
    warn_caller("here", UserWarning)


def test_from_outside_it_is_the_line_itself():
    assert reported(UserWarning, "here", warn) == (
        __file__,
        warn.__code__.co_firstlineno + 1,
    )


@pytest.mark.parametrize("model", LINEAR, ids=str)
@pytest.mark.parametrize("wrap", [clone, partial(make_pipeline, StandardScaler())])
def test_of_a_fit_that_did_not_converge_also_within_a_pipeline(model, wrap):
    model = wrap(model)
    check_the_line(ConvergenceWarning, "max_iter=1", lambda: model.fit(ROWS.X, ROWS.y))


@pytest.mark.parametrize(
    "model",
    [BCFWClassifier(), BCFWClassifier(step="exact"), SlackRescaledSSVM(),
     BMRMClassifier(), SubLBFGSClassifier()],
    ids=str,
)  # fmt: skip
def test_of_a_start_anew(model):
    model = clone(model).set_params(warm_start=True, tol=0.1).fit(ROWS.X, ROWS.y)
    check_the_line(
        UserWarning, "warm_start=True", lambda: model.fit(ROWS.X[:, :2], 2 - ROWS.y)
    )


class Unweighted(LogisticRegression):
    def fit(self, X, y):
        return super().fit(X, y)


# The best recalls are between those of two classifiers, so that one step finds but the
# bounds that other recalls give.
FEW = (
    np.repeat([[0.0], [1.0]], [40, 20], axis=0),
    np.repeat([0, 1, 0, 1], [30, 10, 10, 10]),
)
RARE = ROWS.X, np.arange(40) == 0
LACKING = ROWS.X, np.repeat([0, 1, 2], [13, 13, 14])
NEVER = ComplexMetricClassifier(
    LogisticRegression(C=1e-9), "zero_one", confusion="probabilities", cv=None
)
UNWEIGHTED = ComplexMetricClassifier(Unweighted(), "h_mean")
PLAIN = ROWS.X, ROWS.y


def of(solver):
    return METRIC(solver_options={"solver": solver}, **SHORT)


OTHERS = {
    "path": ("max_iter=1", lambda: bcfw_path(CHAIN.X, CHAIN.y, max_iter=1)),
    **{
        own: ("max_iter=1", lambda own=own: of(own).fit(*FEW))
        for own in ("column_generation", "frank_wolfe", "gda", "ellipsoid")
    },
    "never": ("never", lambda: NEVER.fit(*RARE)),
    "weights": ("sample_weight", lambda: UNWEIGHTED.fit(*PLAIN, np.ones(40))),
    "fold": ("A fold has no training", lambda: METRIC(cv=KFold(3)).fit(*LACKING)),
    "file": ("occur only once", lambda: read_conll(["a O"])),
    "entities": ("ill-defined", lambda: entity_f1_score([["O"]], [["O"]])),
    "report": ("ill-defined", lambda: entity_report([["O"]], [["B-X"]])),
    "micro": ("ill-defined", lambda: micro_f1_score([0, 0], [0, 0], labels=[0, 1])),
}


@pytest.mark.parametrize(("match", "call"), OTHERS.values(), ids=OTHERS)
def test_of_paths_and_rules(match, call):
    check_the_line(UserWarning, match, call)


@pytest.mark.parametrize(
    "model", [BCFWClassifier(), SubLBFGSClassifier(), METRIC()], ids=str
)
def test_of_a_pickle_by_another_version(model, monkeypatch):
    model.fit(ROWS.X, ROWS.y)
    monkeypatch.setattr("sklearn_structsvm.estimators.base.__version__", "0.0.0")
    saved = pickle.dumps(model)
    monkeypatch.undo()
    check_the_line(UserWarning, "was saved by", lambda: pickle.loads(saved))
