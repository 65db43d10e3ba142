"""Fits are repeated bit for bit, with default parameters and on a busy machine."""

from contextlib import contextmanager
from itertools import product
from threading import Event, Thread
from time import sleep

import numpy as np
import pytest
from _estimators import assert_same_fit, assert_same_labels, make_problem
from _options import placed
from _seeds import new_seed
from _structures import ALL, data_of
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
    bcfw_path,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.metrics import DemographicParity
from sklearn_structsvm.solvers.confusion.named import SOLVERS
from sklearn_structsvm.structures import ChainStructure

# No fit here is at its end by then, so that its bits depend on every step it made.
SHORT = {"max_iter": 6, "tol": 0.0}


# When an oracle was timed, of chains such as "letters" the load decided on the steps.
MORE = ("letters", "lp", "forest-lp", "custom")
STRUCTURES = [kind for kind in ALL if not kind.endswith("csr")] + [*MORE]


def data(kind):
    """A structure, and data that are enough for two threads."""
    if kind == "letters":
        X, y = make_chains(
            30, n_features=4, n_classes=26, max_length=4, random_state=new_seed(0)
        )
        return ChainStructure(), X, y
    if kind == "custom":
        problem = make_problem(kind, n=12)
        return problem.structure, problem.X, problem.y
    if kind in ("lp", "forest-lp"):
        structure, X, y = data_of({"lp": "pairs"}.get(kind, "forest"))
        return clone(structure).set_params(inference="lp"), X[:8], y[:8]
    structure, X, y = data_of(kind, 3)
    if kind == "parts":
        # Not all solvers keep to its bounds.
        structure = clone(structure).set_params(convex=False)
    return structure, X, y


def rows(kind="multiclass"):
    return data(kind)[1:]


FEW = ("binary", "multiclass", "multilabel", "letters", "parts", "custom")
SLOW = ("lp", "forest-lp", "custom")
NUMBERS = (
    "objective_", "dual_objective_", "n_iter_", "n_oracle_calls_", "confusion_",
    "constraint_violation_", "mixture_weights_", "loss_matrices_",
)  # fmt: skip


@contextmanager
def busy_machine():
    """Threads that compute beside the block, and shift where its memory lies."""
    done = Event()

    def multiply():
        A = np.ones((150, 150))
        while not done.is_set():
            A @ A
            sleep(0)

    def allocate():
        kept, size = [], 1
        while not done.is_set():
            size = (size * 5 + 3) % 4099
            kept = [*kept[-40:], np.empty(size)]
            # Else each call of Python by a kernel would wait 5 ms for its turn.
            sleep(0)

    threads = [Thread(target=work, daemon=True) for work in (multiply, allocate)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def assert_repeated(estimator, X, y, n_jobs=2):
    """The fit of a quiet machine is that of a busy one, and of other threads."""
    first = clone(estimator).fit(X, y)
    with busy_machine():
        again = clone(estimator).set_params(n_jobs=n_jobs).fit(X, y)
    assert_same_fit(again, first)
    assert_same_labels(again.predict(X), first.predict(X))


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("kind", STRUCTURES)
def test_block_coordinate_frank_wolfe(kind):
    structure, *examples = data(kind)
    assert_repeated(BCFWClassifier(structure, random_state=0, **SHORT), *examples)
    averaged = BCFWClassifier(
        structure, solver_options={"average": True}, random_state=0, **SHORT
    )
    assert_repeated(averaged, *examples)


# Each decoder by one solver, and each solver by some decoders.
@pytest.mark.parametrize(
    ("kind", "solver"),
    [*product(STRUCTURES, ["bcfw"]), *product(FEW, ["sgd", "cutting_plane"])],
)
def test_slack_rescaling(kind, solver):
    structure, *examples = data(kind)
    short = {"max_iter": 3, "tol": 0.0} if kind in SLOW else SHORT
    if kind in ("cycles", "parts", "graph"):
        short = short | {"search": "binary"}
    model = placed(SlackRescaledSSVM)(structure, solver=solver, random_state=0, **short)
    assert_repeated(model, *examples)


@pytest.mark.parametrize(
    ("kind", "formulation"),
    [*product(STRUCTURES, ["one-slack"]), *product(FEW, ["n-slack"])],
)
def test_cutting_planes(kind, formulation):
    structure, *examples = data(kind)
    model = BMRMClassifier(
        structure, solver_options={"formulation": formulation}, random_state=0, **SHORT
    )
    assert_repeated(model, *examples)


@pytest.mark.parametrize("kind", ["chain", "letters", "tree"])
def test_excessive_gaps(kind):
    structure, *examples = data(kind)
    assert_repeated(PragamClassifier(structure=structure, **SHORT), *examples)


@pytest.mark.parametrize("kind", [kind for kind in FEW if kind not in SLOW])
def test_C_chosen_along_paths(kind):
    structure, *examples = data(kind)
    model = BCFWClassifierCV(
        structure, Cs=[1e-4, 1e-3], cv=2, max_iter=30, random_state=0
    )
    assert_repeated(model, *examples, n_jobs=1)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_paths(kind):
    structure, *examples = data(kind)
    X, y = examples
    options = {"structure": structure, "min_lambda": 0.1, "random_state": 0}
    options["max_iter"] = 6
    first = placed(bcfw_path)(X, y, **options)
    with busy_machine():
        again = placed(bcfw_path)(X, y, n_jobs=2, **options)
    for name in ("lambdas", "coefs", "gaps", "n_iter", "n_oracle_calls"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel"])
@pytest.mark.parametrize(
    "estimator",
    [SubLBFGSClassifier(), SubLBFGSClassifier(solver="sublbfgs"), BMRMClassifier(),
     BMRMClassifier(solver_options={"subproblem": "line"}), PragamClassifier()],
    ids=str,
)  # fmt: skip
def test_batch_methods(estimator, kind):
    assert_repeated(estimator.set_params(**SHORT), *rows(kind))


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (SubLBFGSClassifier("logistic", penalty="l1", **SHORT), "binary"),
        (BCFWClassifier(l1_ratio=0.5, random_state=0, **SHORT), "chain"),
        (CRFClassifier(l1_ratio=0.5, random_state=0, **SHORT), "chain"),
        (CRFClassifier(l1_ratio=1.0, random_state=0, **SHORT), "chain"),
    ],
    ids=repr,
)
def test_penalties(model, kind):
    assert_repeated(model, *rows(kind))


@pytest.mark.parametrize("solver", ["dual", "lbfgs", "newton"])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "chain", "tree"])
def test_random_fields(kind, solver):
    structure, *examples = data(kind)
    # Newton's method is not for trees.
    solver = "auto" if (kind, solver) == ("tree", "newton") else solver
    X, y = examples
    model = CRFClassifier(structure, solver=solver, random_state=0, **SHORT)
    # Other sums over all examples are those of parts, of which threads make more.
    n_jobs = 2 if solver == "dual" else 1
    assert_repeated(model, X, y, n_jobs)
    if kind == "chain":
        assert_repeated(model, [sparse.csr_array(x) for x in X], y, n_jobs)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("constrained", [False, True])
def test_complex_metrics(solver, constrained):
    X, y = data_of("binary" if constrained else "multiclass", 8)[1:]
    metric = "micro_f1" if solver == "bisection" else "h_mean"
    constraints = DemographicParity(slack=0.02) if constrained else ()
    model = ComplexMetricClassifier(
        LogisticRegression(),
        metric,
        constraints,
        solver_options={"solver": solver},
        max_iter=20,
        cv=2,
    )
    groups = {"sensitive_features": (X[:, 0] > 0).astype(int)} if constrained else {}
    first = clone(model).fit(X, y, **groups)
    with busy_machine():
        again = clone(model).set_params(n_jobs=2).fit(X, y, **groups)
    for name in NUMBERS:
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    for method in ("predict", "predict_proba"):
        found = [getattr(m, method)(X, **groups) for m in (again, first)]
        np.testing.assert_array_equal(*found)
