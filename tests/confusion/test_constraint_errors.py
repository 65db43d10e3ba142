"""Constraints that make no sense are refused before any work."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from sklearn_structsvm.confusion import Cells
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    MetricBound,
    Quantification,
    Recall,
)

BASELINE = DummyClassifier(strategy="constant", constant="a").fit([[0], [0]], ["a", "b"])
CELLS = Cells(
    np.full((6, 3), 1 / 18),
    np.array(["a", "b", "c"]),
    groups=np.repeat([0, 1], 3),
    group_names=["f", "m"],
    baseline=np.tile([0, 1, 2], 2),
)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Recall(), "needs at_least, at_most, or target"),
        (Recall(at_least=1.5), "at_least must be a number from 0.0 to 1.0, got 1.5"),
        (Recall(at_least="priors"), "at_least must be a number, got 'priors'"),
        (Recall(at_least=0.5, at_most=0.4), "at_least=0.5 is above at_most=0.4"),
        (Recall(target=0.5), "target requires slack"),
        (Recall(at_least=0.5, target=0.5, slack=0.1), "target requires slack"),
        (Recall(at_least=0.5, slack=0.1), "slack requires target"),
        (Recall(at_least=0.5, label="x"), "label='x' is not a class"),
        (Recall(at_least={"x": 0.5}), "at_least='x' is not a class"),
        (Recall(at_least=[0.1, 0.2]), "a dict by label or 3 numbers"),
        (Recall(at_least=[[0.1], [0.2, 0.3]]), "at_least must be an array"),
        (Recall(at_least=[0.1] * 3, label="a"), "at_least must be a number"),
        (Recall(at_least=0.5, group="x"), "group='x' is not a group"),
        (Recall(at_least=0.5, group="f", per_group=True), "but not both"),
        (Recall(at_least=0.5, per_group=np.ones(2)), "per_group must be True or False"),
        (Churn(BASELINE, 0.1, per_group="all"), "per_group must be True or False"),
        (Quantification(0.1, per_group=[]), "per_group must be True or False"),
        (MetricBound("g_mean", at_least=0.5, per_group=2), "per_group must be True or"),
        (DemographicParity(slack=-1), "slack must be a number from 0.0"),
        (DemographicParity(bound="ratio", ratio=1.2), "ratio must be a number"),
        (DemographicParity(bound="both"), "bound must be one of"),
        (DemographicParity(bound=np.array(["ratio"])), "bound must be one of"),
        (EqualizedOdds(reference="all"), "reference must be one of"),
        (EqualOpportunity(pos_label=1), "pos_label=1 is not a class"),
        (Churn(None, 0.1), "baseline must be a fitted classifier"),
        (Churn(np.ones(2), 0.1), "baseline must be a fitted classifier"),
        (Churn(BASELINE, 2), "at_most must be a number from 0.0 to 1.0"),
        (Churn(BASELINE, 0.1, label="x"), "label='x' is not a class"),
        (Quantification(0.0), "at_most must be positive"),
        (Quantification(-1.0), "at_most must be a number"),
        (Quantification(0.1, target=[1.0]), r"target must have shape \(3,\)"),
        (Quantification(0.1, target=[0.5, 0.6, 0.1]), "target must be 3 non-negative"),
        (Quantification(0.1, target=[[1.0], []]), "target must be an array"),
        (Quantification(0.1, target={"a": "all"}), "target must hold numbers"),
        (Quantification(0.1, target={"x": 1.0}), "target='x' is not a class"),
        (MetricBound("g_mean"), "exactly one of at_most and at_least"),
        (MetricBound("g_mean", at_most=0.1, at_least=0.9), "exactly one of at_most"),
        (MetricBound("macro_f1", at_least=0.5), "MacroF1 cannot be bounded"),
        (MetricBound("mcc", at_least=0.5), "MatthewsCorrelation cannot be bounded"),
        (MetricBound("ordinal", at_least=0.5), "Ordinal is a cost"),
        (
            MetricBound("f1", at_least=0.5),
            r"FBeta.*pos_label to one of \['a', 'b', 'c'\]",
        ),
        (MetricBound("nothing", at_least=0.5), "metric='nothing' is unknown"),
    ],
    ids=lambda value: None if isinstance(value, str) else repr(value),
)
def test_constraints_that_make_no_sense_are_refused(constraint, message):
    with pytest.raises(ValueError, match=message):
        constraint.check(CELLS)


@pytest.mark.parametrize(
    "constraint",
    [
        DemographicParity(),
        EqualOpportunity(),
        EqualizedOdds(),
        Recall(at_least=0.5, per_group=True),
        Recall(at_least=0.5, group="m"),
        Quantification(0.1, group="m"),
        Quantification(0.1, per_group=True),
        MetricBound("g_mean", at_least=0.5, per_group=True),
        Churn(BASELINE, 0.1, group="m"),
    ],
    ids=repr,
)
def test_constraints_on_groups_ask_for_them(constraint):
    assert constraint.needs_groups
    with pytest.raises(ValueError, match="needs sensitive_features"):
        constraint(["a", "b"], ["a", "b"], y_baseline=["a", "b"])


def test_churn_asks_for_the_baselines_labels():
    with pytest.raises(ValueError, match="y_baseline"):
        Churn(BASELINE, 0.1)(["a", "b"], ["a", "b"])
    C, cells = np.eye(2)[np.newaxis] / 2, Cells.single([0.5, 0.5])
    with pytest.raises(ValueError, match="y_baseline"):
        Churn(BASELINE, 0.1).violation(C, cells)


@pytest.mark.parametrize("at_most", [None, "x", -1.0, np.nan])
def test_a_bound_that_is_no_number_is_refused_where_it_is_used(at_most):
    C, cells = np.eye(2)[np.newaxis] / 2, Cells.single([0.5, 0.5])
    with pytest.raises(ValueError, match="^at_most must be a number"):
        Quantification(at_most).violation(C, cells)
