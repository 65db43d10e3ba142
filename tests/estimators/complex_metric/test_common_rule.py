"""One rule for all groups, where the best one without constraints meets them."""

import warnings

import numpy as np
import pytest
from _options import set_placed
from _seeds import new_rng
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    Churn,
    EqualOpportunity,
    PredictiveParity,
    confusion_tensor,
)
from sklearn_structsvm.plotting import fairness_report

# All groups of the same law meet it, by far.
WIDE = EqualOpportunity(slack=0.6)


def groups_alike(k=2, n=600, seed=0):
    rng = new_rng(k, n, seed)
    X, groups = rng.standard_normal((n, 3)), rng.choice(["a", "b", "c"], n)
    scores = X @ rng.standard_normal((3, k)) + rng.gumbel(size=(n, k))
    return X, scores.argmax(axis=1), groups


def fit(k=2, constraints=WIDE, **params):
    X, y, groups = groups_alike(k)
    model = ComplexMetricClassifier(LogisticRegression(), constraints=constraints)
    set_placed(model, **{"metric": "g_mean", "cv": None} | params)
    return model.fit(X, y, sensitive_features=groups if constraints else None)


@pytest.mark.parametrize("randomized", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("confusion", ["labels", "probabilities"])
def test_it_is_the_rule_without_constraints(confusion, k, randomized):
    X, y, groups = groups_alike(k)
    options = {"confusion": confusion, "randomized": randomized}
    model, free = fit(k, **options), fit(k, (), **options)
    assert model.common_rule_ and not free.common_rule_
    assert model.objective_ == pytest.approx(free.objective_, abs=1e-12)
    assert model.dual_objective_ == pytest.approx(free.dual_objective_, abs=1e-12)
    np.testing.assert_allclose(
        model.predict_proba(X, sensitive_features=groups), free.predict_proba(X)
    )
    # What is reported is of all groups.
    P = model.predict_proba(X, sensitive_features=groups)
    C, cells = confusion_tensor(y, P, labels=range(k), sensitive_features=groups)
    np.testing.assert_allclose(model.cell_confusions_, C, atol=1e-12)
    assert model.certified_confusions_.shape == C.shape
    if confusion == "labels":
        assert model.constraint_violation_ == pytest.approx(WIDE.violation(C, cells))


def test_smoothed_labels_have_one_threshold_too():
    model = fit(randomized=False)
    assert model.counted_ == "smoothed" and model.common_rule_
    assert len(set(model.thresholds_.values())) == 1
    assert "\n" not in str(model.rule_)
    C = model.certified_confusions_
    assert model.objective_ == pytest.approx(model.metric_.value(C.sum(axis=0)))
    assert model.dual_gap_ <= 1e-3
    assert model.constraint_violation_ <= 0.0


def test_thresholds_of_folds_have_a_column_for_each_group():
    model = fit(cv=3, randomized=False)
    assert model.common_rule_
    assert model.cv_thresholds_.shape == (3, 3)
    assert (model.cv_thresholds_ == model.cv_thresholds_[:, :1]).all()


def test_constraints_that_it_does_not_meet_give_rules_of_groups():
    X, y, groups = groups_alike()
    groups = np.where(X[:, 0] > 0.0, "high", "low")
    fair = EqualOpportunity(slack=0.0)
    model = ComplexMetricClassifier(LogisticRegression(), constraints=fair, cv=None)
    model.fit(X, y, sensitive_features=groups)
    assert not model.common_rule_
    assert model.constraint_violation_ <= 1e-9


def test_a_margin_is_kept_by_it():
    fair = EqualOpportunity(slack=0.3)
    for margin in (None, "auto", 0.3):
        model = fit(constraints=fair, margin=margin)
        assert model.constraint_violation_ <= (-0.3 + 1e-9 if margin == 0.3 else 0.0)


def test_the_report_says_so():
    X, y, groups = groups_alike()
    model = fit()
    report = fairness_report(model, X, y, sensitive_features=groups)
    assert report.promises["promised"] == [
        "in training, by smoothed labels, as without constraints"
    ]


@pytest.mark.parametrize(
    "params",
    [{"group_blind": True}, {"constraint_confidence": 0.6}, {"lmo": "weighted"}],
)
def test_other_rules_are_as_before(params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not fit(**params).common_rule_


@pytest.mark.parametrize(
    "constraint",
    [PredictiveParity(slack=0.6), [WIDE, PredictiveParity(slack=0.9)]],
)
def test_all_constraints_have_to_be_met(constraint):
    assert fit(constraints=constraint).common_rule_


def test_rules_that_depend_on_a_baseline_differ_from_one():
    X, y, groups = groups_alike()
    baseline = LogisticRegression().fit(X, y)
    model = fit(constraints=[WIDE, Churn(baseline, at_most=1.0)])
    assert not model.common_rule_


@pytest.mark.parametrize("solver", ["frank_wolfe", "gda", "ellipsoid"])
def test_the_papers_algorithms_look_for_it_too(solver):
    model = fit(solver=solver)
    assert model.common_rule_ and model.solver_ == solver
