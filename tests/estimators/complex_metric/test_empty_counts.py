"""Rates among no examples: nothing is known of them, and nothing is promised."""

import re
import warnings

import numpy as np
import pytest
import sklearn
from _options import placed
from _seeds import new_rng
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier, MultilabelMetricClassifier
from sklearn_structsvm.confusion import Cells
from sklearn_structsvm.confusion.binomial_tests import empty_of, p_value, rate_sums
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalsePositiveRate,
    MetricBound,
    Precision,
    PredictiveParity,
    Quantification,
    Recall,
    SelectionRate,
    Specificity,
)
from sklearn_structsvm.plotting import fairness_report
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

BOTH = {"per_group": True}

# What is empty if group "few" has no example with label 1.
OF_POSITIVES = [
    EqualOpportunity(slack=0.1), EqualOpportunity(bound="ratio", reference="overall"),
    EqualizedOdds(slack=0.1), Recall(at_least=0.3, group="few"),
    Recall(at_most=0.9, **BOTH), FalsePositiveRate(label=0, at_most=0.9, **BOTH),
    Specificity(label=0, at_least=0.1, group="few"),
    MetricBound("balanced", at_least=0.3, **BOTH),
]  # fmt: skip

# Constraints on everyone in group "few".
OF_ALL = [
    DemographicParity(slack=0.1),
    PredictiveParity(slack=0.1),
    SelectionRate(at_most=0.9, group="few"),
    Precision(at_least=0.1, **BOTH),
    MetricBound("zero_one", at_most=0.9, **BOTH),
    MetricBound("f1", at_least=0.1, group="few"),
]


def draw(n=300, *, n_few=40):
    """Rows of which the first `n_few` are of group "few", without a label 1."""
    rng = new_rng(0)
    few = np.arange(n) < n_few
    y = (~few & (rng.random(n) < 0.4)).astype(int)
    X = rng.normal(size=(n, 1)) + 2 * y[:, None]
    return X, y, np.where(few, "few", "many")


def model_of(constraints, **params):
    params = {"metric": "balanced", "cv": None, "min_group_size": None} | params
    return placed(ComplexMetricClassifier)(
        LogisticRegression(), constraints=constraints, **params
    )


def tensor(*entries):
    """Counts of two groups, and their cells; entries (group, label, prediction, n)."""
    counts = np.zeros((2, 2, 2))
    for a, i, j, n in entries:
        counts[a, i, j] = n
    priors = counts.sum(axis=2) / counts.sum()
    cells = Cells(priors, np.array([0, 1]), np.arange(2), ["few", "many"])
    return counts, cells


@pytest.mark.parametrize("constraint", OF_POSITIVES, ids=repr)
def test_a_label_that_a_group_lacks_is_never_certified_and_told_once(constraint):
    X, y, group = draw()
    words = "no examples of group 'few' with label 1"
    for calibration in (0.5, "uniform"):
        model = model_of(
            constraint, constraint_confidence=0.9, constraint_calibration=calibration
        )
        with pytest.raises(InfeasibleConstraintError, match=words):
            model.fit(X, y, sensitive_features=group)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = model_of(constraint).fit(X, y, sensitive_features=group)
    said = [str(w.message) for w in caught if "says nothing" in str(w.message)]
    assert len(said) == 1 and words in said[0]
    assert model.constraint_violation_ >= 0.0
    # On new rows, too.
    guess = model.predict(X, sensitive_features=group)
    assert constraint(y, guess, sensitive_features=group) >= 0.0


@pytest.mark.parametrize("constraint", OF_ALL, ids=repr)
def test_rows_without_weight_are_no_examples(constraint):
    X, y, group = draw()
    weights = (group != "few").astype(float)
    promised = model_of(constraint, constraint_confidence=0.9)
    with pytest.raises(InfeasibleConstraintError, match="no examples of group 'few'"):
        promised.fit(X, y, weights, sensitive_features=group)
    with pytest.warns(UserWarning, match="no examples of group 'few'"):
        model = model_of(constraint).fit(X, y, weights, sensitive_features=group)
    assert model.constraint_violation_ >= 0.0


def test_the_held_out_rows_must_have_examples_as_well():
    """Of two rows with label 1 in the group, at times none is held out."""
    X, y, group = draw()
    y[:2] = 1
    for seed in range(12):
        model = model_of(
            Recall(at_least=0.01, group="few"), constraint_confidence=0.5,
            constraint_calibration=0.3, random_state=seed,
        )  # fmt: skip
        try:
            model.fit(X, y, sensitive_features=group)
        except InfeasibleConstraintError as error:
            if "no held-out examples of group 'few' with label 1" in str(error):
                return
    pytest.fail("examples were always held out")


def test_what_is_never_predicted_has_no_certified_precision():
    """And if group 'few' is not predicted as 1 once, the error says so."""
    counts, cells = tensor((0, 0, 0, 30), (0, 1, 0, 30), (1, 1, 1, 50), (1, 0, 0, 50))
    for constraint in (Precision(at_least=0.1, **BOTH), PredictiveParity(slack=0.5)):
        sums = rate_sums(constraint, cells, counts)
        assert p_value(sums, 0.1) == 1.0
        words = "examples of group 'few' that are predicted as 1"
        assert empty_of(sums, counts, cells) == [words]
        assert constraint.violation(counts / counts.sum(), cells) == 0.0
    X, y, group = draw()
    y[:20] = 1
    X[:40] = -5.0
    constraint = Precision(at_least=0.9, group="few")
    with pytest.raises(InfeasibleConstraintError, match=f"no held-out {words}"):
        model_of(constraint, metric="f1", constraint_confidence=0.9, random_state=0).fit(
            X, y, sensitive_features=group
        )
    with pytest.warns(UserWarning, match=f"{re.escape(repr(constraint))} .* {words}"):
        model_of(constraint, metric="f1").fit(X, y, sensitive_features=group)


def test_a_group_that_the_other_part_lacks_is_tested_by_the_held_out_rows():
    """Three rows of a group, all of which are held out at times."""
    for seed in range(6):
        rng = new_rng(1, seed)
        X, y, g = rng.normal(size=(40, 2)), rng.integers(0, 3, 40), np.arange(40) < 3
        model = model_of(
            Precision(label=0, at_least=0.05, **BOTH), constraint_confidence=0.6,
            constraint_calibration=0.8, random_state=seed,
        )  # fmt: skip
        try:
            model.fit(X, y, sensitive_features=g)
        except InfeasibleConstraintError:
            continue
        assert model.calibration_p_values_.min() <= 0.4


def test_what_asks_for_nothing_needs_no_examples_and_empty_parts_have_no_margin():
    X, y, group = draw()
    for constraint in (
        EqualOpportunity(slack=1.0),
        EqualOpportunity(bound="ratio", ratio=0.0),
        Recall(at_least=0.0, at_most=1.0, **BOTH),
    ):
        model_of(constraint).fit(X, y, sensitive_features=group)
        model = model_of(constraint, constraint_confidence=0.9, random_state=0)
        model.fit(X, y, sensitive_features=group)
    baseline = DummyClassifier(strategy="constant", constant=0).fit(X, y)
    with pytest.warns(UserWarning, match="no examples that the baseline labels 1"):
        model = model_of(Churn(baseline, 0.5, label=1)).fit(X, y)
    assert model.constraint_violation_ == 0.0
    weights = (group != "few").astype(float)
    for constraint in (
        Quantification(0.5, group="few"),
        MetricBound("g_mean", at_least=0.2, group="few"),
    ):
        with pytest.warns(UserWarning, match="no examples of group 'few'"):
            model = model_of(constraint).fit(X, y, weights, sensitive_features=group)
        assert model.constraint_violation_ == 0.0


def test_a_report_says_that_there_are_no_examples():
    X, y, group = draw()
    with pytest.warns(UserWarning, match="says nothing"):
        model = model_of([EqualOpportunity(slack=1e-9), Recall(at_least=0.01)]).fit(
            X, y, sensitive_features=group
        )
    report = fairness_report(model, X, y, sensitive_features=group)
    assert np.isnan(report.promises["holds"][0]) and report.promises["holds"][1]
    assert report.promises["p value"][0] == 1.0
    (line,) = (line for line in str(report).splitlines() if "EqualOpp" in line)
    assert "no examples" in line and "yes" not in line
    # A group that does not occur at all has a row, and proves nothing either.
    rows = group == "many"
    report = fairness_report(model, X[rows], y[rows], sensitive_features=group[rows])
    assert report.by_group["n"][:2] == [0, rows.sum()]
    assert np.isnan(report.promises["holds"][0])


def test_labels_left_out_for_a_precision_are_named():
    rng = new_rng(2)
    X = rng.normal(size=(400, 3))
    Y = np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0, rng.random(400) < 0.2]).astype(int)
    constraint = Precision(at_least=0.8)
    model = MultilabelMetricClassifier(metric="recall", constraints=constraint, cv=None)
    with pytest.warns(UserWarning, match=r"label\(s\) 2, .* never or always predicted"):
        model.fit(X, Y)
    assert np.isinf(model.thresholds_).tolist() == [False, False, True]


class TestGroups:
    def test_that_the_inner_classifier_requests_are_used(self):
        class Inner(LogisticRegression):
            def fit(self, X, y, sensitive_features=None):
                return super().fit(X, y)

        X, y, group = draw()
        with sklearn.config_context(enable_metadata_routing=True):
            inner = Inner().set_fit_request(sensitive_features=True)
            ComplexMetricClassifier(inner, "balanced", cv=None).fit(
                X, y, sensitive_features=group
            )

    @pytest.mark.parametrize("params", [{}, {"constraints": Recall(at_least=0.01)}])
    def test_that_nothing_uses_are_told_once(self, params):
        X, y, group = draw()
        model = ComplexMetricClassifier(metric="balanced", cv=None, **params)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, sensitive_features=group)
        said = [w for w in caught if "uses groups: they are ignored" in str(w.message)]
        assert len(said) == 1 and model.groups_ is None
        with pytest.warns(UserWarning, match="uses groups: they are ignored"):
            model.set_params(constraints=Recall(at_least=0.01, label=0)).fit(
                X, y, sensitive_features=group
            )
        by_group = model.set_params(constraints=Recall(at_least=0.01, group="many"))
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*are ignored")
            by_group.fit(X, y, sensitive_features=group)

    def test_that_are_tiny_are_told_by_default(self):
        X, y, group = draw(n_few=12)
        y[:6] = 1
        constraint = DemographicParity(slack=0.2)
        model = ComplexMetricClassifier(metric="balanced", constraints=constraint)
        with pytest.warns(UserWarning, match=r"fewer than 20 examples: 'few' \(12\)"):
            model.fit(X, y, sensitive_features=group)
        assert model.groups_.tolist() == ["few", "many"] and model.pooled_groups_ == {}
        model.set_params(solver_options__min_group_size=None).fit(
            X, y, sensitive_features=group
        )
