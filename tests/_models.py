"""A fitted model of each kind that can be saved, and what it predicts for."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng
from _structures import ALL, data_of
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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
    StackedStructureClassifier,
    SubLBFGSClassifier,
    bcfw_path,
    crf_path,
    metrics,
)
from sklearn_structsvm.preprocessing import (
    SequenceTransformer,
    WindowFeatures,
    WordFeatures,
)


class Fitted(NamedTuple):
    """A model (or a path), its training data, and options of `fit` and `predict`."""

    model: Any
    X: Any = None
    y: Any = None
    options: dict[str, Any] = {}


FAST = {"max_iter": 2, "random_state": 0}
STRUCTURED = {
    BCFWClassifier: FAST | {"warm_start": True, "step": "pairwise"},
    # Its paths have to get to the smallest C.
    BCFWClassifierCV: FAST | {"Cs": [0.001, 0.002], "cv": 2, "max_iter": 100},
    BMRMClassifier: {"max_iter": 2},
    CRFClassifier: FAST | {"warm_start": True, "solver": "dual"},
    CRFClassifierCV: FAST | {"Cs": [0.1, 0.2], "cv": 2},
    PragamClassifier: {"max_iter": 2},
    SlackRescaledSSVM: FAST | {"warm_start": True},
    SubLBFGSClassifier: {"max_iter": 2},
}
WITH_SUMS = {"binary", "multiclass", "multilabel", "chain", "edges", "tree"}
FLAT = {"binary", "multiclass", "multilabel"}
KINDS = {
    "binary": "BinaryStructure", "multiclass": "MulticlassStructure",
    "multilabel": "MultilabelStructure", "multilabel-csr": "MultilabelStructure",
    "chain": "ChainStructure", "chain-csr": "ChainStructure", "cycles": "GraphStructure",
    "edges": "ChainStructure",
    "forest": "HierarchicalStructure", "graph": "HierarchicalStructure",
    "pairs": "PairwiseMultilabelStructure", "parts": "PictorialStructure",
    "roof": "PairwiseMultilabelStructure", "tree": "TreeStructure",
}  # fmt: skip


def takes(estimator, kind):
    """Whether an estimator trains such data, by the rows' risks where it has them."""
    if estimator in (CRFClassifier, CRFClassifierCV):
        return kind in WITH_SUMS
    if estimator is PragamClassifier:
        return kind in ("chain", "edges", "tree")
    if estimator is BMRMClassifier:
        return kind != "parts"
    if estimator is SlackRescaledSSVM:
        return kind not in ("cycles", "parts", "graph")
    return estimator is not SubLBFGSClassifier


def structured(estimator, kind):
    structure, X, y = data_of(kind)
    return Fitted(estimator(structure=structure, **STRUCTURED[estimator]).fit(X, y), X, y)


def of_rows(estimator, kind):
    _, X, y = data_of(kind)
    return Fitted(estimator(**STRUCTURED[estimator]).fit(X, y), X, y)


def path(kind):
    structure, X, y = data_of(kind)
    return Fitted(bcfw_path(X, y, structure=structure, max_iter=20, random_state=0))


def path_of_c():
    _, X, y = data_of("binary")
    return Fitted(crf_path(X, y, Cs=2))


def tokens():
    X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    y = [["DET", "NOUN"], ["DET", "NOUN"]]
    model = make_pipeline(SequenceTransformer(), CRFClassifier(random_state=0))
    return Fitted(model.fit(X, y), X, y)


def words():
    X, y = [["the", "cat"], ["a", "dog"]], [["DET", "NOUN"], ["DET", "NOUN"]]
    features = WordFeatures(clusters={"pets": {"cat": "pet"}})
    model = make_pipeline(features, CRFClassifier(random_state=0))
    return Fitted(model.fit(X, y), X, y)


def windows():
    _, X, y = data_of("chain")
    model = make_pipeline(WindowFeatures(statistics={"mean": 3}), BCFWClassifier(**FAST))
    return Fitted(model.fit(X, y), X, y)


def scaled_sequences():
    _, X, y = data_of("chain")
    model = make_pipeline(SequenceTransformer(StandardScaler()), BCFWClassifier(**FAST))
    return Fitted(model.fit(X, y), X, y)


def over_rows():
    _, X, y = data_of("chain")
    model = StackedStructureClassifier(LogisticRegression(), cv=2)
    return Fitted(model.fit(X, y), X, y)


def dask():
    array = pytest.importorskip("dask.array")
    _, X, y = data_of("multiclass")
    model = SubLBFGSClassifier(max_iter=2)
    chunked = [array.from_array(part, chunks=8) for part in (X, y)]
    return Fitted(model.fit(*chunked), X, y)


def rows(n_classes=2, n=120):
    rng = new_rng(3)
    X = rng.normal(size=(n, 3))
    y = (X + rng.normal(size=X.shape))[:, :n_classes].argmax(axis=1)
    return X, y, np.array(["f", "m"])[np.arange(n) % 2]


def pooled(**params):
    X, y, sex = rows(2)
    region = np.where(np.arange(len(X)) < 3, "a", "b")
    model = placed(ComplexMetricClassifier)(
        LogisticRegression(), solver_options={"min_group_size": 5}, **params
    )
    groups = {"sensitive_features": np.column_stack([sex, region])}
    with pytest.warns(UserWarning, match="are pooled"):
        model.set_params(cv=None).fit(X, y, **groups)
    return Fitted(model, X, y, groups)


def mixture(n_classes=2, groups=False, costs=False, **params):
    X, y, sex = rows(n_classes)
    params = {"cv": None} | params
    more = {"sensitive_features": sex} if groups else {}
    if costs:
        shape = len(X), n_classes, n_classes
        more["costs"] = new_rng(4).uniform(size=shape)
    model = placed(ComplexMetricClassifier)(LogisticRegression(), **params)
    return Fitted(model.fit(X, y, **more), X, y, more if groups else {})


def corrected():
    X, y, _ = rows(3, n=600)
    # The probabilities are those of other labels.
    wrong = LogisticRegression().fit(X, (y + 1) % 3)
    return Fitted(ComplexMetricClassifier(wrong, cv="prefit").fit(X, y), X, y)


def labels(**params):
    X, _, _ = rows()
    Y = (X + new_rng(5).normal(size=X.shape) > 0).astype(int)
    return Fitted(MultilabelMetricClassifier(cv=None, **params).fit(X, Y), X, Y)


def sets(of="rows", **params):
    X, y, sex = rows()
    more = {}
    if of == "sequences":
        _, X, y = data_of("chain")
        params["estimator"] = CRFClassifier(random_state=0)
    if of == "labels":
        y = np.column_stack([y, 1 - y])
        params["estimator"] = OneVsRestClassifier(LogisticRegression())
    if "condition" in params:
        more["sensitive_features"] = sex
    model = ConformalClassifier(confidence_level=0.5, random_state=0, **params)
    return Fitted(model.fit(X, y, **more), X, y)


EQUAL = metrics.EqualOpportunity(slack=0.5)
COMPLEX = "ComplexMetricClassifier"
MODELS = {
    f"{estimator.__name__} of {kind}": (
        [estimator.__name__, KINDS[kind]]
        + ["a graph with several paths"] * (kind == "graph"),
        partial(structured, estimator, kind),
    )
    for estimator in STRUCTURED
    for kind in ALL
    if takes(estimator, kind)
}
MODELS |= {
    f"{estimator.__name__} of {kind} by its risk": (
        [estimator.__name__, row],
        partial(of_rows, estimator, kind),
    )
    for estimator in (BMRMClassifier, PragamClassifier, SubLBFGSClassifier)
    for kind, row in (
        ("binary", "BinaryStructure"),
        ("multiclass", "MulticlassStructure"),
        ("multilabel-csr", "several labels, ranked"),
    )
}
MODELS |= {
    "a path": (["bcfw_path"], partial(path, "chain")),
    "a path of C": (["crf_path"], path_of_c),
    "tokens": (
        ["CRFClassifier", "ChainStructure", "SequenceTransformer", "tokens"],
        tokens,
    ),
    "words": (["CRFClassifier", "ChainStructure", "WordFeatures"], words),
    "windows": (["BCFWClassifier", "ChainStructure", "WindowFeatures"], windows),
    "sequences": (
        ["BCFWClassifier", "ChainStructure", "SequenceTransformer"],
        scaled_sequences,
    ),
    "Dask": (["SubLBFGSClassifier", "MulticlassStructure"], dask),
    "a mixture": (
        [COMPLEX, 'lmo="plugin"', "corrected probabilities", "GMean"],
        partial(mixture, 3),
    ),
    "a threshold": ([COMPLEX, 'lmo="plugin"', "FBeta"], partial(mixture, metric="f1")),
    "groups": (
        [COMPLEX, 'lmo="plugin"', "groups", "GMean", "EqualOpportunity"],
        partial(mixture, groups=True, constraints=EQUAL),
    ),
    "pooled groups": (
        [COMPLEX, 'lmo="plugin"', "groups", "GMean", "EqualOpportunity"],
        partial(pooled, constraints=EQUAL),
    ),
    "unseen groups": (
        [COMPLEX, 'lmo="plugin"', "groups", "GMean", "EqualOpportunity"],
        partial(mixture, groups=True, constraints=[EQUAL], group_blind=True),
    ),
    "groups by a classifier": (
        [COMPLEX, 'lmo="plugin"', "groups", "group_estimator", "GMean",
         "EqualOpportunity"],
        partial(mixture, groups=True, constraints=EQUAL, group_blind=True,
                group_estimator=LogisticRegression()),
    ),
    "costs": (
        [COMPLEX, 'lmo="plugin"', "ExpectedCost"],
        partial(mixture, costs=True, metric="expected_cost"),
    ),
    "costs of pairs of labels": (
        [COMPLEX, 'lmo="plugin"', "LinearLoss"],
        partial(mixture, metric=metrics.LinearLoss({(0, 1): 1.0, (1, 0): 3.0})),
    ),
    "a baseline": (
        [COMPLEX, 'lmo="plugin"', "GMean", "Churn"],
        partial(mixture, constraints=metrics.Churn(
            DummyClassifier(strategy="constant", constant=0).fit(*rows()[:2]),
            at_most=1.0)),
    ),
    "over rows": (
        ["StackedStructureClassifier", "CRFClassifier", "ChainStructure"], over_rows,
    ),
    "weighted": ([COMPLEX, 'lmo="weighted"', "GMean"], partial(mixture, lmo="weighted")),
    "corrected": (
        [COMPLEX, 'lmo="plugin"', "corrected probabilities", "GMean"], corrected,
    ),
    "sets": (["ConformalClassifier", "estimator=None", "sets of classes"], sets),
    "sets of groups": (
        ["ConformalClassifier", "estimator=None", "sets of classes", "groups"],
        partial(sets, condition="group"),
    ),
    "sets of several labels": (
        ["ConformalClassifier", "sets for several labels"],
        partial(sets, "labels"),
    ),
    "sets of sequences": (
        ["ConformalClassifier", "sets for sequences, trees and graphs",
         "CRFClassifier", "ChainStructure"],
        partial(sets, "sequences"),
    ),
    "thresholds": (
        ["MultilabelMetricClassifier", "estimator=None", "thresholds", "FBeta"], labels,
    ),
    "two labels": (
        ["MultilabelMetricClassifier", "estimator=None", "labels_per_row", "FBeta"],
        partial(labels, labels_per_row=2),
    ),
    "sets of labels": (
        ["MultilabelMetricClassifier", "estimator=None", 'average="samples"', "FBeta"],
        partial(labels, average="samples"),
    ),
}  # fmt: skip
