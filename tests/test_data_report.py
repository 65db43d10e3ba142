"""What `check_data` says of data is what counting by hand finds, for each form of X."""

import re
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm._utils.binomial import sum_p_value
from sklearn_structsvm.inspection import check_data
from sklearn_structsvm.inspection._data_report import least_slack
from sklearn_structsvm.preprocessing import SequenceTransformer

# What the advice names.
ADVISED = {
    own.__name__: own
    for own in (
        make_column_transformer, OneHotEncoder, SimpleImputer, SequenceTransformer
    )
}  # fmt: skip
TAGS = [["B-x", "I-x"], ["O"], ["B-y", "O", "B-x"]]
WORDS = [["New", "York"], ["it"], ["Mia", "left", "Bern"]]
EDGES = [np.array([[0, 1]]), np.empty((0, 2), int), np.array([[0, 1], [1, 2]])]
PARENTS = [[-1, 0], [-1], [-1, 0, 0]]


def items():
    rng = new_rng()
    return [rng.standard_normal((len(tags), 2)) for tags in TAGS]


FORMS = {
    "sequences": items,
    "sequences, sparse": lambda: list(map(sparse.csr_array, items())),
    "sequences of words": lambda: WORDS,
    "sequences of tokens": lambda: [[{"w": word} for word in own] for own in WORDS],
    "graphs": lambda: list(zip(items(), EDGES, strict=True)),
    "trees": lambda: list(zip(items(), PARENTS, strict=True)),
}


def found(report):
    return {(about, what): value for about, what, value in report.rows}


@pytest.fixture(autouse=True)
def without_fits(monkeypatch):
    for kind in (CRFClassifier, BCFWClassifier):
        monkeypatch.setattr(kind, "_fit_within", None)


@pytest.mark.parametrize("form", FORMS)
def test_items_are_counted_whatever_their_form(form):
    told = found(check_data(FORMS[form](), TAGS))
    kind = form.partition(",")[0]
    assert told["data", "items"].partition(" ")[2] == f"{kind}, of 1 to 3 positions"
    for label, n in Counter(sum(TAGS, [])).items():
        assert f"{label!r} {n}" in told["labels", "counts"]
    assert told["labels", "that occur once"] == "2: 'I-x', 'B-y'"
    assert told["labels", "tag scheme"] == "bio"
    assert "CRFClassifier" in told["advice", "estimator"]
    assert "MB" in told["cost", "memory"] and ("cost", "time") in told


def test_empty_items_and_graphs_without_an_edge_are_counted():
    told = found(check_data([*items(), []], [*TAGS, []]))
    assert told["data", "empty items"] == "1"
    assert told["data", "items"].startswith("4 sequences")
    X = [(np.ones((1, 2)), []), (np.eye(2), [[0, 1]])]
    told = found(check_data(X, [[0], [0, 1]]))
    assert told["data", "items"].startswith("2 graphs")


def test_rows_have_columns_and_groups_with_their_positives():
    rng = new_rng()
    X = rng.standard_normal((300, 3)) * [1.0, 1e4, 1.0]
    y, group = rng.integers(0, 2, 300), rng.choice(["a", "b"], 300)
    told = found(check_data(X, y, sensitive_features=group))
    assert told["data", "rows"] == "300, of 3 columns"
    for name in "ab":
        n, positives = np.sum(group == name), np.sum(y[group == name])
        assert f"{name!r} {n} ({positives})" in told["groups", "rows (positives)"]
    assert "column 1 is about" in told["columns", "scales"]
    assert told["groups", "least slack of EqualOpportunity"][:2] in ("0.", "1.")
    told = found(check_data(X, np.eye(3, dtype=int)[y]))
    assert told["labels", "rows with each"].startswith(f"0 {300 - y.sum()}, 1 {y.sum()}")
    assert told["advice", "estimator"].startswith("MultilabelMetricClassifier()")


def test_what_a_fit_would_refuse_is_said_with_what_is_wrong():
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0], "sex": ["f", "m", None]})
    told = found(check_data(frame, [0, 1, 1]))
    assert told["columns", "missing values"] == "in 'age', 'sex'"
    assert told["columns", "with strings"] == "'sex'"
    assert "Column 'sex'" in told["advice", "first mend"]
    X = items()
    X[2][1, 0] = np.nan
    told = found(check_data(X, [[None, 1], [0], [0, 0, 1]]))
    assert told["columns", "missing values"] == "1"
    assert told["labels", "missing"] == "1 of 6"
    assert "X[2] contains NaN" in told["advice", "first mend"]


def test_all_columns_without_numbers_are_named_and_the_advice_runs():
    X = pd.DataFrame({
        "region": ["north", "south"] * 6, "sex": ["f", "m", None] * 4,
        "age": np.where(np.arange(12) % 5, 30.0, np.nan), "n": np.arange(12),
        "day": pd.date_range("2026-01-01", periods=12), "pay": new_rng().random(12),
    })  # fmt: skip
    X.loc[3, "day"] = None
    told = found(check_data(X, np.arange(12) % 2))
    assert told["columns", "with strings"] == "'region', 'sex'"
    assert told["columns", "with dates"] == "'day'"
    assert told["columns", "missing values"] == "in 'sex', 'age', 'day'"
    advice = told["advice", "first mend"]
    for words in ("Columns 'region', 'sex' of X", "Column 'day' of X", "'age', 'day' of"):
        assert words in advice
    X["day"] = eval(re.search(r"seconds: (.*)\. Put", advice)[1], {"X": X})
    encoder = eval(re.search(r"pipeline: (.*)\.$", advice)[1], ADVISED)
    assert np.isfinite(encoder.fit_transform(X)).all()
    frames = [X.drop(columns="day")] * 2
    told = found(check_data(frames, [[0, 1] * 6] * 2))
    assert "StackedStructureClassifier" in told["advice", "estimator"]
    advice = told["advice", "first mend"]
    encoder = eval(re.search(r"pipeline: (.*)\.$", advice)[1], ADVISED)
    assert np.isfinite(encoder.fit_transform(frames)[1]).all()


def test_costs_of_many_labels_are_those_of_the_advised_fits():
    rng = new_rng()
    X, Y = rng.standard_normal((40, 50)), np.zeros((40, 900), int)
    Y[:, :700] = np.arange(40)[:, None] % 2
    told = found(check_data(X, Y))
    assert told["labels", "without a row"] == "200"
    assert told["cost", "weights"] == str(51 * 900)
    assert float(told["cost", "memory"].split()[1]) * 1e6 >= 8 * 51 * 900
    # Ten passes of the six fits of five folds, over all rows and labels.
    assert "very roughly 0.1 to 1 s" in told["cost", "time"]
    assert ("labels", "without a row") not in found(check_data(X, Y[:, :2]))


def test_tags_that_contradict_the_nearest_scheme_are_told():
    tags = [*TAGS, ["O", "I-x"], ["Bx", "I-x"]]
    told = found(check_data([*WORDS, ["he", "left"], ["it", "is"]], tags))
    expected = "none; nearly bio, but for I-x in y[3][1], Bx in y[4][0]"
    assert told["labels", "tag scheme"] == expected


@pytest.mark.parametrize(("n", "m"), [(80, 80), (60, 300), (2000, 120)])
def test_the_least_slack_is_certified_by_four_of_five_samples_of_such_groups(n, m):
    slack, sizes, rng = least_slack(n, m), np.array([n, m]) // 2, new_rng(0)
    certified = []
    for _ in range(200):
        # The rule is as wrong as the half that chose it.
        true = 0.5 + rng.normal(size=2) * 0.5 / np.sqrt(sizes)
        k = rng.binomial(sizes, np.clip(true, 0.0, 1.0))
        certified.append(sum_p_value([1.0, 1.0], k, sizes, 1.0 + slack, 0.05) <= 0.05)
    # Five standard errors of the share.
    assert 0.65 <= np.mean(certified) <= 0.95


def test_groups_of_one_can_certify_nothing():
    assert least_slack(1, 500) == 1.0


def test_the_report_is_text_and_a_frame(monkeypatch):
    report = check_data(WORDS, TAGS)
    assert str(report) == repr(report)
    assert all(len(row) == 3 for row in report.rows)
    frame = report.to_frame()
    assert list(map(tuple, frame.to_numpy())) == report.rows
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="DataReport.to_frame needs pandas"):
        report.to_frame()
