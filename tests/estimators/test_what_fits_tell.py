"""What fits print, which is nothing unless `verbose` asks, and what histories tell."""

import inspect

import numpy as np
import pytest
from _estimators import ITERATIVE, PythonMulticlass, make_problem
from _options import placed
from _seeds import new_rng, new_seed
from _structures import STRUCTURES, data_of
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import sklearn_structsvm
from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    ComplexMetricClassifier,
    ConformalClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    StackedStructureClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.metrics import EqualizedOdds
from sklearn_structsvm.solvers.confusion.named import SOLVERS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PARITY = EqualizedOdds(slack=0.1)
SHORT = {"max_iter": 3}


# An estimator and the kind of its data, by name.
CASES = {name: (model, kind) for name, (kind, model) in ITERATIVE.items()}
CASES |= {
    "bcfw-python": (BCFWClassifier(PythonMulticlass(), **SHORT), "custom"),
    "bcfw-threads": (BCFWClassifier(n_jobs=2, **SHORT), "chain"),
    "conformal": (ConformalClassifier(), "multiclass"),
    "stacked": (
        StackedStructureClassifier(GaussianNB(), CRFClassifier(**SHORT)),
        "chain",
    ),
    "sublbfgs-l1": (SubLBFGSClassifier("logistic", penalty="l1"), "binary"),
}
for kind in ("cycles", "pairs", "forest"):
    structure = clone(STRUCTURES[kind]).set_params(inference="lp")
    by = {"search": "binary"} if kind == "cycles" else {}
    CASES[f"bcfw-lp-{kind}"] = BCFWClassifier(structure, **SHORT), kind
    CASES[f"bmrm-lp-{kind}"] = BMRMClassifier(structure, **SHORT), kind
    CASES[f"slack-lp-{kind}"] = placed(SlackRescaledSSVM)(structure, **SHORT, **by), kind
for solver in SOLVERS:
    metric = "micro_f1" if solver == "bisection" else "h_mean"
    of = {"metric": metric, "solver": solver, "max_iter": 5, "cv": 3}
    CASES[f"metric-{solver}"] = (
        placed(ComplexMetricClassifier)(GaussianNB(), **of),
        "multiclass",
    )
    fair = placed(ComplexMetricClassifier)(GaussianNB(), constraints=PARITY, **of)
    CASES[f"metric-{solver}-parity"] = fair, "binary"


def test_every_estimator_is_among_them():
    public = [getattr(sklearn_structsvm, name) for name in sklearn_structsvm.__all__]
    estimators = {kind for kind in public if inspect.isclass(kind)}
    assert {type(model) for model, _ in CASES.values()} == estimators


@pytest.mark.filterwarnings("ignore:The classifier predicts:UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_printed_unless_asked_for(case, capfd):
    # File descriptors 1 and 2, to which compiled libraries write as well.
    model, kind = CASES[case]
    problem = make_problem("custom")
    X, y = (problem.X, problem.y) if kind == "custom" else data_of(kind, 3)[1:]
    fair = case.endswith("parity")
    given = {"sensitive_features": np.arange(len(y)) % 2} if fair else {}
    model = clone(model).fit(X, y, **given)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            getattr(model, method)(X, **given)
    model.score(X, y, **given)
    assert capfd.readouterr() == ("", "")


BLOCKS = {"blocks", "accelerated", "planes"}
ROWS = [
    (SubLBFGSClassifier(), {"blocks", "accelerated", "planes", "sublbfgs"}),
    (SubLBFGSClassifier(solver="sublbfgs"), {"sublbfgs"}),
    (SubLBFGSClassifier("logistic", penalty="l1"), {"newton"}),
    (CRFClassifier(), {"newton"}),
    (BMRMClassifier(), {"planes"}),
    (PragamClassifier(max_iter=5), {"excessive_gap"}),
    (ComplexMetricClassifier(), {"column_generation"}),
    (ComplexMetricClassifier(solver_options={"solver": "frank_wolfe"}), {"frank_wolfe"}),
]
CHAINS = [
    (BCFWClassifier("chain", max_iter=5), BLOCKS),
    (CRFClassifier("chain", solver="lbfgs"), {"lbfgs"}),
    (CRFClassifier("chain", solver="newton"), {"newton"}),
    (BMRMClassifier("chain", max_iter=5), {"planes"}),
    (PragamClassifier(structure="chain", max_iter=5), {"excessive_gap"}),
    *(
        (SlackRescaledSSVM("chain", solver=name, max_iter=5), methods)
        for name, methods in (
            ("bcfw", BLOCKS), ("sgd", {"sgd"}), ("cutting_plane", {"planes"}),
            ("one_slack", {"planes"}),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "methods"),
    ROWS + CHAINS,
    ids=lambda value: repr(sorted(value) if isinstance(value, set) else value),
)
def test_the_history_names_what_made_each_pass(model, methods):
    if any(model is own for own, _ in CHAINS):
        X, y = make_chains(10, random_state=new_seed())
    else:
        X = new_rng().standard_normal((60, 3))
        y = (X[:, 0] + new_rng(1).standard_normal(60) > 0).astype(int)
    history = model.fit(X, y).history_
    made = np.diff(history["n_iter"], prepend=0) > 0
    assert set(history["method"][made]) <= methods
    assert set(history["method"][~made]) <= {"start", *methods}
