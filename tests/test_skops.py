"""Files of skops: all that is fitted comes back as it was, by the types that we list."""

import re
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from _seeds import cache_by_seed, new_rng
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
    SubLBFGSClassifier,
    bcfw_path,
    crf_path,
    metrics,
)
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.preprocessing import SequenceTransformer

io = pytest.importorskip("skops.io")

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Training predicts:UserWarning"),
]
PAGE = Path(__file__).parents[1] / "doc" / "guide" / "deployment.rst"

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
WITH_SUMS = {"binary", "multiclass", "multilabel", "chain", "tree"}
FLAT = {"binary", "multiclass", "multilabel"}
KINDS = {
    "binary": "two classes",
    "multiclass": "several classes",
    "multilabel": "several labels",
    "multilabel-csr": "several labels",
    "chain": "ChainStructure",
    "chain-csr": "ChainStructure",
    "cycles": "GraphStructure",
    "forest": "HierarchicalStructure",
    "graph": "HierarchicalStructure",
    "pairs": "PairwiseMultilabelStructure",
    "parts": "PictorialStructure",
    "roof": "PairwiseMultilabelStructure",
    "tree": "TreeStructure",
}


def takes(estimator, kind):
    """Whether an estimator trains such data, by the rows' risks where it has them."""
    if estimator in (CRFClassifier, CRFClassifierCV):
        return kind in WITH_SUMS
    if estimator is PragamClassifier:
        return kind in ("chain", "tree")
    if estimator is BMRMClassifier:
        return kind != "parts"
    if estimator is SlackRescaledSSVM:
        return kind not in ("cycles", "parts", "graph")
    return estimator is not SubLBFGSClassifier


def structured(estimator, kind):
    structure, X, y = data_of(kind)
    return estimator(structure=structure, **STRUCTURED[estimator]).fit(X, y), X, y


def of_rows(estimator, kind):
    _, X, y = data_of(kind)
    return estimator(**STRUCTURED[estimator]).fit(X, y), X, y


def path(kind):
    structure, X, y = data_of(kind)
    return bcfw_path(X, y, structure=structure, max_iter=20, random_state=0), None, None


def path_of_c():
    _, X, y = data_of("binary")
    return crf_path(X, y, Cs=2), None, None


def tokens():
    X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    y = [["DET", "NOUN"], ["DET", "NOUN"]]
    model = make_pipeline(SequenceTransformer(), CRFClassifier(random_state=0))
    return model.fit(X, y), X, y


def scaled_sequences():
    _, X, y = data_of("chain")
    model = make_pipeline(SequenceTransformer(StandardScaler()), BCFWClassifier(**FAST))
    return model.fit(X, y), X, y


def dask():
    array = pytest.importorskip("dask.array")
    _, X, y = data_of("multiclass")
    model = SubLBFGSClassifier(max_iter=2)
    return model.fit(*(array.from_array(part, chunks=8) for part in (X, y))), X, None


def rows(n_classes=2, n=120):
    rng = new_rng(3)
    X = rng.normal(size=(n, 3))
    y = (X + rng.normal(size=X.shape))[:, :n_classes].argmax(axis=1)
    return X, y, np.array(["f", "m"])[np.arange(n) % 2]


def pooled(**params):
    X, y, sex = rows(2)
    region = np.where(np.arange(len(X)) < 3, "a", "b")
    model = ComplexMetricClassifier(LogisticRegression(), min_group_size=5, **params)
    groups = {"sensitive_features": np.column_stack([sex, region])}
    with pytest.warns(UserWarning, match="are pooled"):
        return model.set_params(cv=None).fit(X, y, **groups), X, groups


def mixture(n_classes=2, groups=False, costs=False, **params):
    X, y, sex = rows(n_classes)
    params = {"cv": None} | params
    more = {"sensitive_features": sex} if groups else {}
    if costs:
        shape = len(X), n_classes, n_classes
        more["costs"] = new_rng(4).uniform(size=shape)
    model = ComplexMetricClassifier(LogisticRegression(), **params)
    return model.fit(X, y, **more), X, (more if groups else {})


def corrected():
    X, y, _ = rows(3, n=600)
    # The probabilities are those of other labels.
    wrong = LogisticRegression().fit(X, (y + 1) % 3)
    return ComplexMetricClassifier(wrong, cv="prefit").fit(X, y), X, {}


def labels(**params):
    X, _, _ = rows()
    Y = (X + new_rng(5).normal(size=X.shape) > 0).astype(int)
    return MultilabelMetricClassifier(cv=None, **params).fit(X, Y), X, {}


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
    return model.fit(X, y, **more), X, {}


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
        ("binary", "two classes"),
        ("multiclass", "several classes"),
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
    "sequences": (
        ["BCFWClassifier", "ChainStructure", "SequenceTransformer"],
        scaled_sequences,
    ),
    "Dask": (["SubLBFGSClassifier", "several classes"], dask),
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
    "weighted": ([COMPLEX, 'lmo="weighted"', "GMean"], partial(mixture, lmo="weighted")),
    "corrected": (
        [COMPLEX, 'lmo="plugin"', "corrected probabilities", "GMean"], corrected,
    ),
    "sets": (["ConformalClassifier", "sets of classes"], sets),
    "sets of groups": (
        ["ConformalClassifier", "sets of classes", "groups"],
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
    "thresholds": (["MultilabelMetricClassifier", "thresholds", "FBeta"], labels),
    "two labels": (
        ["MultilabelMetricClassifier", "labels_per_row", "FBeta"],
        partial(labels, labels_per_row=2),
    ),
    "sets of labels": (
        ["MultilabelMetricClassifier", 'average="samples"', "FBeta"],
        partial(labels, average="samples"),
    ),
}  # fmt: skip


def table():
    """By their names, the rows of the table in the documentation."""
    text = PAGE.read_text(encoding="utf-8")
    text = text[text.index(".. list-table:: Types to trust") :]
    rows = re.split(r"^   \* - ", text[: text.index("\nONNX\n")], flags=re.MULTILINE)
    found = {}
    for row in rows[2:]:
        name, types = row.split("\n     - ", 1)
        name = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", name).replace("`", "")
        types = re.findall(r"``([\w.]+)``", types)
        found[name] = {f"sklearn_structsvm.{kind}" for kind in types}
    return found


TABLE = table()


def type_of(kind):
    return f"{kind.__module__}.{kind.__name__}"


def types_of(name):
    """What the table says of one of `MODELS`."""
    found = set()
    for row in MODELS[name][0]:
        found |= TABLE[row] if row in TABLE else {type_of(getattr(metrics, row))}
    return found


@cache_by_seed
def saved(name):
    """A model, what it predicts for, and the file that it is in."""
    model, *data = MODELS[name][1]()
    return model, data, io.dumps(model)


def untrusted(file):
    return set(io.get_untrusted_types(data=file))


@pytest.mark.parametrize("name", MODELS)
def test_a_file_holds_the_types_that_the_table_says(name):
    assert untrusted(saved(name)[2]) == types_of(name)


def test_the_table_has_no_more_than_that():
    names = set().union(*(names for names, _ in MODELS.values()))
    assert set(TABLE) - names == {"metrics", "constraints"}
    for row, base in (("metrics", ConfusionMetric), ("constraints", Constraint)):
        public = [getattr(metrics, name) for name in metrics.__all__]
        kinds = [kind for kind in public if isinstance(kind, type)]
        kinds = [kind for kind in kinds if issubclass(kind, base) and kind is not base]
        public = set(map(type_of, kinds))
        assert TABLE[row] == public, (
            f"The row {row!r} of doc/guide/deployment.rst lacks {public - TABLE[row]}, "
            f"and has {TABLE[row] - public} for nothing."
        )


METHODS = "predict", "predict_proba", "decision_function", "entropy"


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_is_what_was_saved(name):
    model, data, file = saved(name)
    again = io.loads(file, trusted=sorted(types_of(name)))
    if name == "a path":
        assert_same(again.coefs, model.coefs)
        assert_same(again.coef(again.lambdas[-1]), model.coef(model.lambdas[-1]))
        return
    if name == "a path of C":
        for attribute in ("Cs", "coefs", "intercepts", "dual_gaps", "n_nonzeros"):
            assert_same(getattr(again, attribute), getattr(model, attribute))
        return
    X, more = data
    assert repr(again) == repr(model)
    options = more if isinstance(more, dict) else {}
    methods = [method for method in METHODS if hasattr(model, method)]
    assert "predict" in methods
    for method in methods:
        assert_same(
            getattr(again, method)(X, **options), getattr(model, method)(X, **options)
        )


def assert_same(a, b):
    """Equal bit for bit, arrays of arrays as well."""
    if isinstance(a, tuple) or getattr(a, "dtype", "") == "O":
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif hasattr(a, "toarray"):
        np.testing.assert_array_equal(a.toarray(), b.toarray())
    else:
        np.testing.assert_array_equal(a, b)


WARM = re.compile("(BCFWClassifier|SlackRescaledSSVM|CRFClassifier) of")


@pytest.mark.parametrize("name", [*filter(WARM.match, MODELS)])
def test_a_fit_goes_on_after_reading_as_it_would_have(name):
    model, (X, y), file = saved(name)
    again = io.loads(file, trusted=sorted(types_of(name)))
    again.fit(X, y)
    assert again.history_["dual_objective"][0] == pytest.approx(
        model.dual_objective_, abs=1e-9
    )
    assert_same(again.coef_, deepcopy(model).fit(X, y).coef_)


OBJECTS = [
    metrics.FBeta(0.5, pos_label=1),
    metrics.LinearLoss({(0, 1): 1.0, (2, 0): 3.0}),
    metrics.LinearLoss([[0, 1, 2], [3, 0, 1], [1, 1, 0]]),
    *(kind() for kind in (metrics.ZeroOne, metrics.Ordinal, metrics.Balanced)),
    *(kind() for kind in (metrics.GMean, metrics.HMean, metrics.QMean, metrics.MinMax)),
    *(kind() for kind in (metrics.MacroF1, metrics.MatthewsCorrelation)),
    metrics.MicroF1(default_label=2),
    metrics.Jaccard("micro"),
    metrics.CohenKappa("linear"),
    metrics.ExpectedCost(),
    metrics.Recall(at_least=0.6),
    metrics.Recall(at_least={"a": 0.7, "c": 0.2}, per_group=True),
    metrics.Specificity(at_least=0.5),
    metrics.Precision(target=0.5, slack=0.1),
    metrics.FalsePositiveRate(at_most=[0.1, 0.2, 0.3]),
    metrics.Coverage(target=[0.2, 0.3, 0.5], slack=0.0, group="f"),
    metrics.DemographicParity(bound="ratio"),
    metrics.EqualOpportunity(reference="groups", slack=0.0),
    metrics.EqualizedOdds(),
    metrics.PredictiveParity(),
    metrics.Quantification(0.01, target={"a": 0.5, "b": 0.5}),
    metrics.MetricBound(metrics.FBeta(2.0), at_least=0.5),
    metrics.Churn(DummyClassifier(), 0.3),
]


@pytest.mark.parametrize("thing", OBJECTS, ids=lambda thing: type(thing).__name__)
def test_metrics_and_constraints_come_back(thing):
    file = io.dumps(thing)
    types = untrusted(file)
    assert type_of(type(thing)) in types
    assert types <= TABLE["metrics"] | TABLE["constraints"]
    again = io.loads(file, trusted=sorted(types))
    assert repr(again) == repr(thing)
    assert type(again) is type(thing)


def test_every_metric_and_constraint_was_tried():
    tried = set(map(type_of, map(type, OBJECTS)))
    missing = (TABLE["metrics"] | TABLE["constraints"]) - tried
    assert not missing, f"OBJECTS of tests/test_skops.py has no {missing}."
