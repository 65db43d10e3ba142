"""Groups that are too small for constraints are pooled."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from _options import placed
from _seeds import new_rng
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    Recall,
)
from sklearn_structsvm.plotting import fairness_report

# The rules of so few examples may be of one class.
pytestmark = pytest.mark.filterwarnings("ignore:The classifier predicts:UserWarning")
POOLED = pytest.mark.filterwarnings("ignore:Groups of fewer than:UserWarning")
PARITY = DemographicParity(slack=0.1)


def sample(rng, n=240):
    """Labels that depend on the group; two of the four groups are small."""
    groups = np.repeat(["a", "b", "x", "y"], [n // 2, n - n // 2 - 12, 7, 5])
    X = rng.normal(size=(n, 2)) + 0.5 * (groups == "a")[:, None]
    y = (X[:, 0] + rng.normal(size=n) > 0.3).astype(int)
    order = rng.permutation(n)
    return X[order], y[order], groups[order]


def by_hand(groups):
    return np.where(np.isin(groups, ["x", "y"]), "other", groups)


def model_of(constraints=PARITY, **params):
    params = {"cv": None, "metric": "zero_one", "min_group_size": 10} | params
    return placed(ComplexMetricClassifier)(constraints=constraints, **params)


@POOLED
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"group_blind": True},
        {"group_blind": True, "group_estimator": LogisticRegression()},
        {"randomized": False, "metric": "balanced"},
        {"constraints": Recall(at_least=0.5, per_group=True), "metric": "zero_one"},
        {"constraint_confidence": 0.9, "constraints": DemographicParity(slack=0.95)},
    ],
    ids=["mixture", "blind", "blind by two", "single", "per group", "certified"],
)
def test_the_fit_is_that_of_groups_that_are_renamed_before(params):
    X, y, groups = sample(new_rng(0))
    model = model_of(**params).fit(X, y, sensitive_features=groups)
    plain = model_of(**params, min_group_size=None)
    plain.fit(X, y, sensitive_features=by_hand(groups))
    assert model.groups_.tolist() == plain.groups_.tolist() == ["a", "b", "other"]
    assert model.dual_objective_ == plain.dual_objective_
    np.testing.assert_array_equal(model.cell_confusions_, plain.cell_confusions_)
    known = {} if params.get("group_blind") else {"sensitive_features": groups}
    renamed = {name: by_hand(values) for name, values in known.items()}
    P = model.predict_proba(X, **known)
    np.testing.assert_array_equal(P, plain.predict_proba(X, **renamed))
    # The pooled group may be named as well.
    np.testing.assert_array_equal(P, model.predict_proba(X, **renamed))


def test_a_warning_lists_the_groups_that_are_pooled_and_a_pool_that_is_small():
    X, y, groups = sample(new_rng(1))
    with pytest.warns(UserWarning, match=r"pooled: 'x' \(7\), 'y' \(5\) as 'other'\.$"):
        model = model_of().fit(X, y, sensitive_features=groups)
    assert model.pooled_groups_ == {"x": 7, "y": 5}
    with pytest.warns(UserWarning, match=r"still smaller: 'other' \(12\)"):
        model.set_params(solver_options__min_group_size=13).fit(
            X, y, sensitive_features=groups
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(solver_options__min_group_size=5).fit(
            X, y, sensitive_features=groups
        )
        assert model.pooled_groups_ == {} and len(model.groups_) == 4
        # Nothing is counted by groups.
        model.set_params(solver_options__min_group_size=13, constraints=())
        with pytest.warns(UserWarning, match="ignored"):
            model.fit(X, y, sensitive_features=groups)
        assert model.pooled_groups_ == {} and model.groups_ is None


@POOLED
def test_pooled_groups_cannot_be_constrained_and_rows_of_no_weight_do_not_count():
    X, y, groups = sample(new_rng(2))
    weights = np.ones(len(y))
    weights[np.flatnonzero(groups == "b")[9:]] = 0.0
    model = model_of(min_group_size=10)
    model.fit(X, y, weights, sensitive_features=groups)
    assert model.pooled_groups_ == {"b": 9, "x": 7, "y": 5}
    model = model_of(Recall(at_least=0.5, group="x"), confusion="labels")
    with pytest.raises(ValueError, match="'x', which has only 7 examples .*'other'"):
        model.fit(X, y, sensitive_features=groups)
    model.set_params(constraints__group="other").fit(X, y, sensitive_features=groups)
    P = model.predict_proba(X, sensitive_features=groups)
    recall, renamed = Recall(at_least=0.5, group="other"), by_hand(groups)
    assert recall(y, P, labels=model.classes_, sensitive_features=renamed) <= 1e-9


@POOLED
def test_groups_that_did_not_occur_or_a_fitted_classifier_does_not_know_are_errors():
    X, y, groups = sample(new_rng(4))
    model = model_of().fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="contains 'z', which did not occur in fit"):
        model.predict(X[:1], sensitive_features=["z"])
    of_groups = LogisticRegression().fit(X, groups)
    of_labels = LogisticRegression().fit(X, y)
    model = model_of(
        estimator=of_labels, cv="prefit", group_blind=True, group_estimator=of_groups
    )
    with pytest.raises(ValueError, match="group_estimator was fitted before"):
        model.fit(X, y, sensitive_features=groups)


@POOLED
def test_scores_and_reports_count_the_groups_of_the_fit():
    X, y, groups = sample(new_rng(5))
    parity = EqualizedOdds(slack=0.2)
    model = model_of(parity).fit(X, y, sensitive_features=groups)
    guess = model.predict(X, sensitive_features=groups)
    expected = parity(y, guess, sensitive_features=by_hand(groups))
    known = {"sensitive_features": groups}
    assert parity.scorer()(model, X, y, **known) == -expected
    with sklearn.config_context(enable_metadata_routing=True):
        steps = make_pipeline(StandardScaler(), model_of(parity)).fit(X, y, **known)
        guess = steps.predict(X, **known)
        of_steps = parity(y, guess, sensitive_features=by_hand(groups))
        assert parity.scorer()(steps, X, y, **known) == -of_steps
    # Of mixtures it reports what is expected, and `predict` draws.
    model = model_of(parity, randomized=False).fit(X, y, sensitive_features=groups)
    guess = model.predict(X, sensitive_features=groups)
    expected = parity(y, guess, sensitive_features=by_hand(groups))
    report = fairness_report(model, X, y, sensitive_features=groups)
    assert report.by_group["group"] == ["a", "b", "other", "all"]
    assert report.by_group["n"][2] == 12
    np.testing.assert_allclose(report.promises["violation"], expected, atol=1e-12)


@POOLED
def test_constraints_of_a_feature_count_its_values_whatever_is_pooled():
    rng = new_rng(6)
    X, y, _ = sample(rng)
    sex = rng.choice(["f", "m"], size=len(y))
    region = rng.choice(["n", "s", "w"], size=len(y), p=[0.5, 0.47, 0.03])
    region[:4], sex[:2] = "w", "f"
    table = pd.DataFrame({"sex": sex, "region": region})
    constraint = EqualOpportunity(slack=0.02, feature="sex")
    model = model_of([constraint, PARITY], min_group_size=20, confusion="labels")
    model.fit(X, y, sensitive_features=table)
    assert {name[0] for name in model.groups_} == {"f", "m"}
    assert {name[1] for name in model.groups_} == {"n", "s", "other"}
    P = model.predict_proba(X, sensitive_features=table)
    violation = constraint(y, P, labels=model.classes_, sensitive_features=table)
    assert violation <= 1e-9


def test_groups_must_be_large_enough_and_combinations_poolable():
    X, y, groups = sample(new_rng(7))
    with pytest.raises(ValueError, match="All groups .* min_group_size=1000"):
        model_of(min_group_size=1000).fit(X, y, sensitive_features=groups)
    table = np.column_stack([np.where(groups == "a", "a", "b"), np.arange(len(y)) % 2])
    table[:3] = "a", "1"
    each = [DemographicParity(slack=0.1, feature=j) for j in (0, 1)]
    model = model_of([*each, PARITY], min_group_size=70)
    with pytest.raises(ValueError, match="cannot be pooled"):
        model.fit(X, y, sensitive_features=table)
    for invalid in (0, 2.5, "10"):
        with pytest.raises(ValueError, match="The 'min_group_size' parameter"):
            model_of(min_group_size=invalid).fit(X, y, sensitive_features=groups)


def test_groups_of_single_rows_are_refused_before_any_work():
    rng = new_rng()
    X, y, groups = sample(rng)
    age = rng.normal(size=len(y))
    words = "240 groups, the smallest of 1 row: bin them"
    model = model_of(EqualOpportunity(slack=0.05), min_group_size=None)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y, sensitive_features=age)
    both = pd.DataFrame({"group": groups, "age": age})
    with pytest.raises(ValueError, match=words):
        model.fit(X, y, sensitive_features=both)
    model.set_params(constraints=EqualOpportunity(slack=0.05, feature="age"))
    with pytest.raises(ValueError, match=words):
        model.fit(X, y, sensitive_features=both)
    quartile = np.searchsorted(np.quantile(age, [0.25, 0.5, 0.75]), age)
    model.set_params(constraints=EqualOpportunity(slack=0.05))
    assert len(model.fit(X, y, sensitive_features=quartile).groups_) == 4
