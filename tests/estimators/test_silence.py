"""Nothing is written to the process's output unless `verbose` asks for it."""

import inspect

import numpy as np
import pytest
from _estimators import PythonMulticlass
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import sklearn_structsvm
from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    ConformalClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains, make_hierarchical, make_multilabel
from sklearn_structsvm.metrics import EqualizedOdds
from sklearn_structsvm.solvers.confusion.named import SOLVERS
from sklearn_structsvm.structures import (
    GraphStructure,
    HierarchicalStructure,
    PairwiseMultilabelStructure,
)

SHORT = {"max_iter": 3}
CV = {"Cs": [0.01, 0.1], "cv": 2}


def rows(n_classes=3, n=60):
    return make_classification(
        n, n_features=5, n_informative=4, n_redundant=0, n_classes=n_classes,
        n_clusters_per_class=1, random_state=new_seed(0),
    )  # fmt: skip


def chains():
    return make_chains(
        8, n_features=3, n_classes=3, max_length=4, random_state=new_seed(0)
    )


def cycles():
    rng, at = new_rng(0), np.arange(5)
    X = [(rng.normal(size=(5, 2)), np.c_[at, (at + 1) % 5]) for _ in range(4)]
    return X, [(at + k) % 3 for k in range(4)]


def labels():
    return make_multilabel(20, n_features=4, n_classes=3, random_state=new_seed(0))


def leaves():
    return make_hierarchical(8, n_nodes=8, n_leaves=5, random_state=new_seed(0))[:2]


def groups():
    X, y = rows(2)
    return X, y, {"sensitive_features": np.arange(len(y)) % 2}


EDGES = make_hierarchical(20, n_nodes=8, n_leaves=5, random_state=new_seed(0))[2]
LINEAR_PROGRAMS = {
    "graph": (GraphStructure(inference="lp"), cycles),
    "pairwise": (PairwiseMultilabelStructure(inference="lp"), labels),
    "hierarchy": (HierarchicalStructure(EDGES, inference="lp"), leaves),
}
# An estimator and what makes its data, by name.
CASES = {
    "bcfw": (BCFWClassifier(**SHORT), chains),
    "bcfw-converged": (BCFWClassifier(), rows),
    "bcfw-python": (BCFWClassifier(PythonMulticlass(), **SHORT), lambda: listed(rows)),
    "bcfw-threads": (BCFWClassifier(n_jobs=2, **SHORT), chains),
    "bcfw-cv": (BCFWClassifierCV(**CV), chains),
    "bmrm": (BMRMClassifier(**SHORT), rows),
    "conformal": (ConformalClassifier(), rows),
    "crf": (CRFClassifier(**SHORT), chains),
    "crf-newton": (CRFClassifier(solver="newton"), rows),
    "crf-lbfgs": (CRFClassifier(solver="lbfgs", **SHORT), chains),
    "crf-cv": (CRFClassifierCV(**CV), chains),
    "pragam": (PragamClassifier(**SHORT), rows),
    "pragam-chains": (PragamClassifier(structure="chain", **SHORT), chains),
    "slack": (SlackRescaledSSVM(**SHORT), chains),
    "slack-planes": (SlackRescaledSSVM(solver="cutting_plane", **SHORT), chains),
    "slack-sgd": (SlackRescaledSSVM(solver="sgd", **SHORT), chains),
    "sublbfgs": (SubLBFGSClassifier(**SHORT), rows),
    "sublbfgs-l1": (SubLBFGSClassifier("logistic", penalty="l1"), lambda: rows(2)),
    "multilabel": (
        MultilabelMetricClassifier(
            MultiOutputClassifier(LogisticRegression()), labels_per_row=1
        ),
        labels,
    ),
}
for name, (structure, data) in LINEAR_PROGRAMS.items():
    CASES[f"bcfw-lp-{name}"] = BCFWClassifier(structure, **SHORT), data
    CASES[f"bmrm-lp-{name}"] = BMRMClassifier(structure, **SHORT), data
    by = {"search": "binary"} if name == "graph" else {}
    CASES[f"slack-lp-{name}"] = SlackRescaledSSVM(structure, **SHORT, **by), data
for solver in SOLVERS:
    metric = "micro_f1" if solver == "bisection" else "h_mean"
    of = {"metric": metric, "solver": solver, "max_iter": 5}
    CASES[f"metric-{solver}"] = ComplexMetricClassifier(LogisticRegression(), **of), rows
    CASES[f"metric-{solver}-parity"] = (
        ComplexMetricClassifier(
            LogisticRegression(), constraints=EqualizedOdds(slack=0.1), **of
        ),
        groups,
    )


def listed(data):
    X, y = data()
    return list(X), y.tolist()


def test_every_estimator_is_among_them():
    public = [getattr(sklearn_structsvm, name) for name in sklearn_structsvm.__all__]
    estimators = {kind for kind in public if inspect.isclass(kind)}
    assert {type(model) for model, _ in CASES.values()} == estimators


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The classifier predicts:UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_printed_unless_asked_for(case, capfd):
    # File descriptors 1 and 2, to which compiled libraries write as well.
    model, data = CASES[case]
    X, y, *known = data()
    given = known[0] if known else {}
    model = clone(model).fit(X, y, **given)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            getattr(model, method)(X, **given)
    model.score(X, y, **given)
    assert capfd.readouterr() == ("", "")
