"""Rates by group, and promises beside what held."""

import sys

import numpy as np
import pandas as pd
import pytest
from _options import placed
from _seeds import cache_by_seed, new_rng
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualOpportunity,
    Quantification,
    Recall,
)
from sklearn_structsvm.plotting import fairness_report


def sample():
    rng = new_rng(0)
    group = rng.choice(["old", "young"], size=600)
    X = rng.normal(size=(600, 2)) + (group == "old")[:, None]
    return X, (X[:, 0] + rng.normal(size=600) > 0.5).astype(int), group


@cache_by_seed
def fitted():
    X, y, group = sample()
    constraints = [EqualOpportunity(slack=0.1), Recall(at_least=0.1), Quantification(0.9)]
    model = ComplexMetricClassifier(constraints=constraints, cv=None)
    return model.fit(X, y, sensitive_features=group), X, y, group


def test_rates_and_intervals_are_those_of_others():
    model, X, y, group = fitted()
    report = fairness_report(model, X, y, sensitive_features=group, confidence_level=0.9)
    guess = model.predict(X, sensitive_features=group)
    found, promises = report.to_frames()
    assert found.index.tolist() == ["old", "young", "all"]
    for name in found.index:
        rows = np.ones(600, dtype=bool) if name == "all" else group == name
        row = found.loc[name]
        assert row["n"] == rows.sum() and row["positives"] == y[rows].sum()
        assert row["recall"] == pytest.approx(recall_score(y[rows], guess[rows]))
        assert row["precision"] == pytest.approx(precision_score(y[rows], guess[rows]))
        assert row["selection rate"] == pytest.approx(guess[rows].mean())
        false = guess[rows & (y == 0)]
        assert row["false positive rate"] == pytest.approx(false.mean())
        exact = binomtest(int(false.sum()), len(false)).proportion_ci(0.9, "exact")
        assert row["false positive rate low"] == pytest.approx(exact.low)
        assert row["false positive rate high"] == pytest.approx(exact.high)
    for i, constraint in enumerate(model.constraints):
        metadata = {"sensitive_features": group} if constraint.needs_groups else {}
        # What the mixture is expected to do, not what one draw from it does.
        P = model.predict_proba(X, sensitive_features=group)
        violation = constraint(y, P, labels=model.classes_, **metadata)
        assert promises["violation"][i] == pytest.approx(violation)
        assert promises["holds"][i] == (violation <= 0)
    assert promises["promised"].tolist() == ["in training, by smoothed labels"] * 3
    assert np.isnan(promises["p value"][2]) and promises["p value"][1] < 1e-6


def test_text_figure_and_frames_that_need_pandas_have_all_groups(monkeypatch):
    model, X, y, group = fitted()
    report = fairness_report(model, X, y, sensitive_features=group)
    text = str(report)
    assert all(word in text for word in ("old", "young", "all", "Recall(at_least=0.1)"))
    assert len(text.split("\n\n")[0].splitlines()) == 4
    assert len(text.split("\n\n")[1].splitlines()) == 4
    report.plot()
    labels = [points.get_label() for points in report.points_]
    assert labels == [f"{name} ({(group == name).sum()})" for name in ("old", "young")]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frames needs pandas.*pip install pandas"):
        report.to_frames()


def draw(rng, n):
    """Groups of different sizes, one of which has fewer positives."""
    group = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, 2)) + (group == "b")[:, None] * 0.3
    score = 1.2 * X[:, 0] - 0.8 - 0.5 * (group == "c")
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int), group


def draw_six(rng, n):
    """Six groups of equal size and rising scores."""
    group = rng.integers(6, size=n)
    X = rng.normal(size=(n, 2)) + 0.15 * group[:, None]
    score = 1.2 * X[:, 0] + X[:, 1] - 1.0
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int), group


def draw_two(rng, n):
    """Two groups, the smaller of which has more positives."""
    group = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    X = rng.normal(size=(n, 2)) + 0.6 * (group == "b")[:, None]
    score = 1.5 * X[:, 0] - 0.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int), group


def fresh_violations(n_fits, fair, draw=draw, margins=None, n_new=20_000, **params):
    """For new rows, of fits to samples of their own; and what the reports expect.

    With `margins`, each fit is repeated with the margin that its report says.
    """
    rng = new_rng(7)
    X_new, y_new, new = draw(rng, n_new)
    found, expected = [], []
    for _ in range(n_fits):
        X, y, group = draw(rng, 800)
        model = placed(ComplexMetricClassifier)(
            metric="f1", constraints=fair, cv=None, **params
        )
        model.fit(X, y, sensitive_features=group)
        report = fairness_report(model, X, y, sensitive_features=group)
        expected += report.promises["new rows"]
        if margins is not None:
            margins += report.promises["margin"]
            if not 0.0 < margins[-1] < np.inf:
                continue
            model.set_params(solver_options__margin=margins[-1]).fit(
                X, y, sensitive_features=group
            )
        P = model.predict_proba(X_new, sensitive_features=new)
        found.append(fair(y_new, P, labels=[0, 1], sensitive_features=new))
    return np.array(found), np.array(expected)


def test_what_is_expected_of_new_rows_is_about_what_they_have():
    # Of so many rows that rates of the smallest group are right to a few thousandths.
    found, expected = fresh_violations(10, EqualOpportunity(slack=0.05), n_new=200_000)
    error = found.std() / np.sqrt(len(found))
    assert found.mean() > 0.0
    assert abs(found.mean() - expected.mean()) < 4.0 * error + 0.015


@pytest.mark.parametrize(
    ("draw", "fair"),
    [
        (draw, EqualOpportunity(slack=0.1)),
        (draw_two, DemographicParity(slack=0.02)),
        (draw_six, EqualOpportunity(slack=0.15)),
    ],
)
def test_the_margin_that_is_printed_keeps_constraints_in_expectation(draw, fair):
    margins = []
    found, expected = fresh_violations(10, fair, draw, margins)
    margins = np.array(margins)
    assert ((margins > 0.0) == (expected > 0.0)).all()
    assert (margins >= expected - 1e-6).all()
    assert margins[margins < np.inf].max() <= fair.slack
    # Of those that a margin is enough for.
    assert len(found) > 3
    assert found.mean() < 4.0 * found.std(ddof=1) / np.sqrt(len(found))


def test_where_chance_exceeds_the_slack_no_margin_is_said_to_be_enough():
    margins = []
    fresh_violations(3, EqualOpportunity(slack=0.02), draw_six, margins)
    assert np.isposinf(margins).all()


def test_a_margin_of_a_standard_error_lowers_what_is_expected_of_new_rows():
    fair = EqualOpportunity(slack=0.1)
    plain, before = fresh_violations(6, fair)
    careful, after = fresh_violations(6, fair, margin="auto")
    assert (after < before).mean() > 0.7
    assert after.mean() < before.mean() - 0.01
    # The same samples were drawn.
    change = careful - plain
    assert change.mean() < 3.0 * change.std() / np.sqrt(len(change))


def test_rules_that_are_not_expected_to_hold_get_a_remedy():
    X, y, group = draw(new_rng(8), 800)
    model = ComplexMetricClassifier(constraints=EqualOpportunity(slack=0.02), cv=None)
    report = fairness_report(
        model.fit(X, y, sensitive_features=group), X, y, sensitive_features=group
    )
    assert report.promises["new rows"][0] > 0.0
    assert "margin" in str(report).split("\n\n")[-1]
    # The fit did not count these groups.
    other = EqualOpportunity(slack=0.02, feature=0)
    two = np.column_stack([np.arange(800) % 4, group])
    report = fairness_report(
        LogisticRegression().fit(X, y), X, y, sensitive_features=two, constraints=other
    )
    assert np.isnan(report.promises["new rows"][0])


@pytest.mark.parametrize(("times", "word"), [(1, "no"), (50, "broken")])
def test_rows_show_that_a_promise_is_broken_or_show_nothing(times, word):
    model = DecisionTreeClassifier().fit([[0], [1]], [0, 1])
    X = np.repeat([[1], [0], [1], [1]], times, axis=0)
    group = np.repeat(list("aabb"), times)
    report = fairness_report(model, X, np.ones(len(X), int), sensitive_features=group,
                             constraints=EqualOpportunity(slack=0.1))  # fmt: skip
    line = next(line for line in str(report).splitlines() if "EqualOpp" in line)
    assert word in line.split()
    (p,) = report.promises["broken p value"]
    assert (p < 0.05) == (word == "broken") and report.promises["p value"] == [1.0]


def test_another_classifier_and_several_columns():
    X, y, group = sample()
    frame = pd.DataFrame({"age": group, "sign": X[:, 1] > 0})
    model = LogisticRegression().fit(X, y)
    fair = EqualOpportunity(slack=1.0, feature="age")
    report = fairness_report(model, X, y, sensitive_features=frame, constraints=fair)
    assert report.promises["holds"] == [True]
    assert len(report.by_group["group"]) == 5 and "old, True" in str(report)


def test_misuse():
    X, y, group = sample()
    model = LogisticRegression().fit(X, np.where(y, "yes", "no"))
    with pytest.raises(ValueError, match="set pos_label"):
        fairness_report(model, X, np.where(y, "yes", "no"), sensitive_features=group)
    with pytest.raises(ValueError, match="compares groups: pass sensitive_features"):
        fairness_report(model, X, y, sensitive_features=None, pos_label="yes")
    with pytest.raises(ValueError, match="confidence_level must be a number"):
        fairness_report(
            model, X, y, sensitive_features=group, pos_label="yes", confidence_level=95
        )
