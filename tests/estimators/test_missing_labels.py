"""Labels that are not known or look wrong: refused with what to do, or said once."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng, new_seed
from _structures import data_of
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

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
    metrics,
)
from sklearn_structsvm._utils.scorers import SCORERS
from sklearn_structsvm.callbacks import EarlyStopping
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.metrics import (
    confusion_tensor,
    token_accuracy_score,
    token_log_loss,
)
from sklearn_structsvm.structures import MISSING

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ROWS = {
    "bcfw": BCFWClassifier(), "bcfw-cv": BCFWClassifierCV(cv=2),
    "slack": SlackRescaledSSVM(), "bmrm": BMRMClassifier(),
    "sublbfgs": SubLBFGSClassifier(), "pragam": PragamClassifier(),
    "crf": CRFClassifier(), "crf-cv": CRFClassifierCV(cv=2),
    "complex": ComplexMetricClassifier(LogisticRegression()),
}  # fmt: skip
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
UNKNOWN = {
    "-100": (minus_100, "the label -100"),
    "-100 among strings": (lambda y: put(-100)(list("abc" * len(y))), "the label -100"),
    "-100.0": (put(-100.0, float), "the label -100.0"),
    "masked": (masked, "a masked label"),
    "None": (NONE, "the label None"),
    "NaN": (FLOAT_NAN, "the label nan"),
    "NaN among objects": (NAN, "the label nan"),
    "NA": (NA, "the label <NA>"),
}
missing = pytest.mark.parametrize(("change", "message"), UNKNOWN.values(), ids=UNKNOWN)
WHAT = "stand for unknown labels, which are never learned as a class. "


def refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def rows():
    rng = new_rng(0)
    return rng.normal(size=(12, 2)), np.arange(12) % 3


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    X, y = rows()
    for change, message in UNKNOWN.values():
        bad = change(y)[: len(y)]
        words = rf"y has {message} \(row 1\).*{WHAT}Leave out the rows"
        refused(lambda bad=bad: ROWS[name].fit(X, bad), words)
        if change is not masked:
            refused(lambda bad=bad: ROWS[name].fit(X, bad.tolist()), words)
            refused(lambda bad=bad: ROWS[name].fit(X, pd.Series(bad)), words)


@missing
def test_scores_and_dask_collections(change, message):
    X, y = rows()
    rule = ComplexMetricClassifier(LogisticRegression().fit(X, y), cv="prefit")
    likely = CRFClassifier().fit(X, y)
    bad = change(y)[: len(y)]
    for call in (rule.fit(X, y).score, likely.score, likely.log_likelihood):
        refused(lambda call=call: call(X, bad), message)
    refused(lambda: confusion_tensor(bad, y), message)
    refused(lambda: token_accuracy_score([bad], [y]), message)
    proba = [np.full((len(y), 3), 1 / 3)]
    refused(lambda: token_log_loss([bad], proba, labels=[0, 1, 2]), message)
    array, bag = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    parts = array.from_array(X, chunks=6), array.from_array(bad, chunks=6, asarray=False)
    refused(lambda: BCFWClassifier().fit(*parts), f"(?s){message}.*never learned")
    _, X, y = data_of("chain")
    data = X, with_second_label(y, change)[0]
    parts = [bag.from_sequence(items, npartitions=2) for items in data]
    refused(lambda: BCFWClassifier().fit(*parts), f"(?s){message}.*never learned")


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
        words = rf"y\[{at}\] has an unknown label \({place} 1\).* leave out"
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


@pytest.mark.parametrize("name", LABELS)
def test_several_labels(name):
    _, X, Y = data_of("multilabel")
    words = rf"y has .*label.* \(row 2, column 1\).*{WHAT}Leave out the rows"
    for value in (-100, np.nan, None, pd.NA, np.ma.masked):
        bad = Y.astype(object if value is None or value is pd.NA else float)
        bad = np.ma.masked_array(bad) if value is np.ma.masked else bad
        bad[2, 1] = value
        refused(lambda bad=bad: LABELS[name].fit(X, bad), words)
        if isinstance(value, int):
            csr = sparse.csr_array(bad)
            refused(lambda csr=csr: LABELS[name].fit(X, csr), "label -100")


def test_masks_of_nothing_named_classes_and_dates():
    X, y = rows()
    whole = np.ma.masked_array(y, mask=np.zeros(len(y), dtype=bool))
    assert BCFWClassifier().fit(X, whole).classes_.tolist() == [0, 1, 2]
    refused(lambda: BCFWClassifier().fit(X, minus_100(y)), "such as the string '-100'")
    assert "-100" in BCFWClassifier().fit(X, minus_100(y).astype(str)).classes_
    named = BCFWClassifier(solver_options={"classes": [0, 1, 2, -100]})
    refused(lambda: named.fit(X, y), "classes has the")
    dates = np.datetime64("2024-01-01") + y
    dates[1] = np.datetime64("NaT", "D")
    refused(lambda: BCFWClassifier().fit(X, dates), r"y has the label .*\(row 1\)")


SHORT = {"max_iter": 3, "random_state": 0}
SEARCHES = [
    CRFClassifierCV("chain", Cs=[0.1, 1.0], cv=2, random_state=0),
    BCFWClassifierCV("chain", Cs=[0.1, 1.0], cv=2, random_state=0),
]
ESTIMATORS = [CRFClassifier("chain", **SHORT), BCFWClassifier("chain", **SHORT)]


def chains(n=12):
    return make_chains(n, n_features=3, n_classes=3, random_state=new_seed(0))


NOTHING = [None, float("nan"), np.float32("nan"), pd.NA]


@pytest.mark.parametrize(
    ("model", "nothing"),
    [*product(ESTIMATORS[:1], [*NOTHING, "float32", "float64"]),
     *product([ESTIMATORS[1], CRFClassifier("tree", **SHORT)], [None, "float32"])],
)  # fmt: skip
def test_labels_that_got_lost_are_unknown_and_counted(model, nothing):
    """Also in a column of floats with NaN, which sentences without one have too."""
    X, y = chains()
    if model.structure == "tree":
        X = [(x, np.arange(len(x)) - 1) for x in X]
    value = np.nan if isinstance(nothing, str) else nothing
    lost, hidden = (
        [[own, *y_i.tolist()[1:]] if i % 2 else y_i.tolist() for i, y_i in enumerate(y)]
        for own in (value, MISSING)
    )
    if isinstance(nothing, str):
        lost = [np.array(own, dtype=nothing) for own in lost]
    n = sum(map(len, y))
    words = rf"None or NaN: {len(y) // 2} of {n}, the first one at y\[1\]\[0\]"
    with pytest.warns(UserWarning, match=words) as caught:
        found = clone(model).fit(X, lost)
    assert sum("None or NaN" in str(own.message) for own in caught) == 1
    expected = clone(model).fit(X, hidden)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    assert found.score(X, lost) == expected.score(X, hidden)


def words_as_labels(rng, n_once, n_often):
    labels = [f"w{i}" for i in range(n_once)]
    labels += [f"t{i}" for i in range(n_often) for _ in range(2)]
    labels = rng.permutation(labels).tolist()
    y = [labels[i : i + 4] for i in range(0, len(labels), 4)]
    return [rng.normal(size=(len(own), 2)) for own in y], y


@pytest.mark.parametrize("model", ESTIMATORS)
def test_a_set_of_labels_most_of_which_occur_once_is_said(model):
    X, y = words_as_labels(new_rng(0), 15, 9)
    with pytest.warns(UserWarning, match="^15 of 24 labels in y occur once, such as 'w"):
        model.fit(X, y)
    # These are fine: few labels, or no more than half of them once.
    for n_once, n_often in ((12, 8), (12, 12)):
        model.fit(*words_as_labels(new_rng(1), n_once, n_often))


@pytest.mark.parametrize("model", SEARCHES)
def test_searches_say_it_once(model):
    X, y = words_as_labels(new_rng(0), 15, 9)
    y = [[None, *own[1:]] for own in y]
    with pytest.warns(UserWarning) as caught:
        model.fit(X, y)
    texts = [str(warning.message) for warning in caught]
    assert sum("None or NaN" in text for text in texts) == 1
    assert sum("occur once" in text for text in texts) <= 1


@pytest.mark.parametrize(
    ("model", "name"),
    [*product(SEARCHES[:1], SCORERS), *product(SEARCHES[1:], ["entity_f1"])],
)
def test_searches_take_names_of_our_scorers(model, name):
    X, y = chains()
    if name == "entity_f1":
        y = [np.array(["O", "B-X", "I-X"])[own] for own in y]
    found = clone(model).set_params(scoring=name).fit(X, y)
    expected = clone(model).set_params(scoring=getattr(metrics, f"{name}_scorer"))
    expected.fit(X, y)
    np.testing.assert_array_equal(found.scores_path_, expected.scores_path_)
    assert found.C_ == expected.C_
    with pytest.raises(ValueError, match="none such"):
        clone(model).set_params(scoring="none such").fit(X, y)


def test_a_callback_takes_names_of_our_scorers():
    ours = {name for name in metrics.__all__ if name.endswith("_scorer")}
    assert {f"{name}_scorer" for name in SCORERS} == ours
    assert not set(SCORERS) & set(get_scorer_names())
    X, y = chains()
    stopping = EarlyStopping(X, y, scoring="token_accuracy")
    pytest.importorskip("sklearn.callback")
    BCFWClassifier("chain", **SHORT).set_callbacks(stopping).fit(X, y)


@pytest.mark.parametrize("model", SEARCHES)
def test_stratified_folds_are_refused_for_sequences(model):
    for cv in (StratifiedKFold(2), RepeatedStratifiedKFold()):
        with pytest.raises(TypeError, match="one class per example.*use KFold or GroupK"):
            clone(model).set_params(cv=cv).fit(*chains())
