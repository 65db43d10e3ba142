"""Labels that are not known are refused, and the message says what to do."""

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from _structures import data_of
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
    bcfw_path,
)
from sklearn_structsvm.metrics import (
    confusion_tensor,
    token_accuracy_score,
    token_log_loss,
)

ROWS = {
    "bcfw": BCFWClassifier(),
    "bcfw-cv": BCFWClassifierCV(cv=2),
    "slack": SlackRescaledSSVM(),
    "bmrm": BMRMClassifier(),
    "sublbfgs": SubLBFGSClassifier(),
    "pragam": PragamClassifier(),
    "crf": CRFClassifier(),
    "crf-cv": CRFClassifierCV(cv=2),
    "complex": ComplexMetricClassifier(LogisticRegression()),
}
NODES = {name: ROWS[name] for name in ("bcfw", "bcfw-cv", "slack", "bmrm", "crf")}
LABELS = {name: ROWS[name] for name in ("bcfw", "slack", "bmrm", "crf")}
LABELS["complex"] = MultilabelMetricClassifier(LogisticRegression())


def minus_100(y):
    return np.where(np.arange(len(y)) == 1, -100, y)


def masked(y):
    return np.ma.masked_array(y, mask=np.arange(len(y)) == 1)


def put(value, dtype=object):
    def change(y):
        result = np.array(y, dtype=dtype)
        result[1] = value
        return result

    return change


# Of sequences, trees and graphs these learn without the label: `test_hidden_labels`.
TAKES_NONE = ("bcfw", "bcfw-cv", "crf")
NONE, NAN, NA, FLOAT_NAN = put(None), put(np.nan), put(pd.NA), put(np.nan, float)
UNNAMED = NONE, NAN, NA, FLOAT_NAN

# How the second of some labels is made unknown, and what the message says of it.
MISSING = {
    "-100": (minus_100, "the label -100"),
    "-100 among strings": (lambda y: put(-100)(list("abc" * len(y))), "the label -100"),
    "-100.0": (put(-100.0, float), "the label -100.0"),
    "masked": (masked, "a masked label"),
    "None": (NONE, "the label None"),
    "NaN": (FLOAT_NAN, "the label nan"),
    "NaN among objects": (NAN, "the label nan"),
    "NA": (NA, "the label <NA>"),
}
missing = pytest.mark.parametrize(("change", "message"), MISSING.values(), ids=MISSING)
WHAT = "stand for unknown labels, which are never learned as a class. "


def refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def rows():
    rng = new_rng(0)
    return rng.normal(size=(12, 2)), np.arange(12) % 3


@missing
@pytest.mark.parametrize("name", ROWS)
def test_rows(name, change, message):
    X, y = rows()
    bad = change(y)[: len(y)]
    words = rf"y has {message} \(row 1\).*{WHAT}Leave out the rows"
    refused(lambda: ROWS[name].fit(X, bad), words)
    if change is not masked:
        refused(lambda: ROWS[name].fit(X, bad.tolist()), words)
        refused(lambda: ROWS[name].fit(X, pd.Series(bad)), words)


@missing
def test_scores_of_rows(change, message):
    X, y = rows()
    rule = ComplexMetricClassifier(LogisticRegression().fit(X, y), cv="prefit")
    likely = CRFClassifier().fit(X, y)
    bad = change(y)[: len(y)]
    for call in (rule.fit(X, y).score, likely.score, likely.log_likelihood):
        refused(lambda call=call: call(X, bad), message)
    refused(lambda: confusion_tensor(bad, y), message)


def with_second_label(y, change):
    """Labelings, one of which has its second label changed."""
    at = next(i for i, y_i in enumerate(y) if len(y_i) > 1)
    return [change(y_i)[: len(y_i)] if i == at else y_i for i, y_i in enumerate(y)], at


@missing
@pytest.mark.parametrize("kind", ["chain", "tree", "cycles"])
def test_sequences_trees_and_graphs(kind, change, message):
    structure, X, y = data_of(kind)
    bad, at = with_second_label(y, change)
    place = "position" if kind == "chain" else "node"
    words = rf"y\[{at}\] has {message} \({place} 1\).*{WHAT}"
    words += "Split the sequence" if kind == "chain" else "Leave out the nodes"
    if change in UNNAMED:
        words = rf"y\[{at}\] has a label that is not known \({place} 1\).* leave out"
    for name, model in NODES.items():
        if change in UNNAMED and name in TAKES_NONE:
            continue
        if kind == "cycles" and name == "crf":
            continue  # it takes chains and trees
        model = clone(model).set_params(structure=structure)
        refused(lambda model=model: model.fit(X, bad), words)
    if change in UNNAMED:
        return
    refused(lambda: bcfw_path(X, bad, structure=structure), words)
    model = BCFWClassifier(structure, tol=0.5).fit(X, y)
    refused(lambda: model.score(X, bad), words)
    if kind == "cycles":
        pairs = [(labels, np.ones(len(labels))) for labels in bad]
        refused(lambda: model.fit(X, pairs), words)


@missing
def test_scores_of_sequences(change, message):
    y = np.arange(6) % 3
    bad = [change(y)[: len(y)]]
    refused(lambda: token_accuracy_score(bad, [y]), message)
    proba = [np.full((6, 3), 1 / 3)]
    refused(lambda: token_log_loss(bad, proba, labels=[0, 1, 2]), message)


@pytest.mark.parametrize("value", [-100, np.nan, None, pd.NA, np.ma.masked])
@pytest.mark.parametrize("name", LABELS)
def test_several_labels(name, value):
    _, X, Y = data_of("multilabel")
    dtype = object if value is None or value is pd.NA else float
    bad = np.ma.masked_array(Y, dtype=dtype) if value is np.ma.masked else Y.astype(dtype)
    bad[2, 1] = value
    words = rf"y has .*label.* \(row 2, column 1\).*{WHAT}Leave out the rows"
    refused(lambda: LABELS[name].fit(X, bad), words)
    if isinstance(value, int):
        refused(lambda: LABELS[name].fit(X, sparse.csr_array(bad)), "label -100")


def test_a_mask_that_hides_nothing_is_no_mask():
    X, y = rows()
    whole = np.ma.masked_array(y, mask=np.zeros(len(y), dtype=bool))
    model = BCFWClassifier().fit(X, whole)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


def test_minus_100_that_is_a_class_has_another_name():
    X, y = rows()
    refused(lambda: BCFWClassifier().fit(X, minus_100(y)), "such as the string '-100'")
    model = BCFWClassifier().fit(X, minus_100(y).astype(str))
    assert "-100" in model.classes_


def test_named_classes_and_dates():
    X, y = rows()
    refused(
        lambda: BCFWClassifier(solver_options={"classes": [0, 1, 2, -100]}).fit(X, y),
        "classes has the",
    )
    dates = np.datetime64("2024-01-01") + y
    dates[1] = np.datetime64("NaT", "D")
    refused(lambda: BCFWClassifier().fit(X, dates), r"y has the label .*\(row 1\)")


@missing
@pytest.mark.parametrize("kind", ["rows", "chain"])
def test_dask(kind, change, message):
    if kind == "rows":
        array = pytest.importorskip("dask.array")
        X, y = rows()
        y = change(y)[: len(y)]
        X, y = array.from_array(X, chunks=6), array.from_array(y, chunks=6, asarray=False)
    else:
        bag = pytest.importorskip("dask.bag")
        _, X, y = data_of("chain")
        y, _ = with_second_label(y, change)
        X, y = (bag.from_sequence(items, npartitions=2) for items in (X, y))
    refused(lambda: BCFWClassifier().fit(X, y), f"(?s){message}.*never learned")
