"""One rule for all groups, where the best one without constraints meets them."""

import warnings

import numpy as np
import pytest
from _options import set_placed
from _seeds import new_rng
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    Churn,
    EqualOpportunity,
    PredictiveParity,
    confusion_tensor,
)
from sklearn_structsvm.plotting import fairness_report

WIDE = EqualOpportunity(slack=0.6)
BASELINE = DummyClassifier(strategy="constant", constant=0).fit([[0], [0]], [0, 1])


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
    P = model.predict_proba(X, sensitive_features=groups)
    np.testing.assert_allclose(P, free.predict_proba(X))
    # What is reported is of all groups.
    C, cells = confusion_tensor(y, P, labels=range(k), sensitive_features=groups)
    np.testing.assert_allclose(model.cell_confusions_, C, atol=1e-12)
    assert model.certified_confusions_.shape == C.shape
    if confusion == "labels":
        assert model.constraint_violation_ == pytest.approx(WIDE.violation(C, cells))


def test_smoothed_labels_have_one_threshold_too_and_so_do_folds():
    X, y, groups = groups_alike()
    model = fit(randomized=False, cv=3)
    assert model.common_rule_
    assert model.cv_thresholds_.shape == (3, 3)
    assert (model.cv_thresholds_ == model.cv_thresholds_[:, :1]).all()
    model = fit(randomized=False)
    assert model.counted_ == "smoothed" and model.common_rule_
    assert len(set(model.thresholds_.values())) == 1
    assert "\n" not in str(model.rule_)
    C = model.certified_confusions_
    assert model.objective_ == pytest.approx(model.metric_.value(C.sum(axis=0)))
    assert model.dual_gap_ <= 1e-3
    assert model.constraint_violation_ <= 0.0
    report = fairness_report(model, X, y, sensitive_features=groups)
    assert report.promises["promised"] == [
        "in training, by smoothed labels, as without constraints"
    ]


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


@pytest.mark.parametrize(
    ("params", "common"),
    [
        ({"group_blind": True}, False),
        ({"constraint_confidence": 0.6}, False),
        ({"lmo": "weighted"}, False),
        # Rules that depend on a baseline differ from one.
        ({"constraints": [WIDE, Churn(BASELINE, at_most=1.0)]}, False),
        ({"constraints": PredictiveParity(slack=0.6)}, True),
        ({"constraints": [WIDE, PredictiveParity(slack=0.9)]}, True),
        ({"solver": "frank_wolfe"}, True),
        ({"solver": "gda"}, True),
        ({"solver": "ellipsoid"}, True),
    ],
    ids=repr,
)
def test_it_is_looked_for_where_one_rule_can_meet_all_constraints(params, common):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(**params)
    assert model.common_rule_ == common
    assert model.solver_ == params.get("solver", model.solver_)
