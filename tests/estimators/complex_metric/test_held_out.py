"""Constraints that held-out examples certify."""

import re

import numpy as np
import pytest
import sklearn
from _mixtures import Scored, make_data, recalls_of_groups
from _options import placed, set_placed
from _seeds import new_rng
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.confusion.binomial_tests import p_value, rate_sums
from sklearn_structsvm.confusion.counts import confusion_tensor
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualOpportunity,
    Precision,
    Quantification,
    Recall,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError


def certified(constraints, confidence=0.95, **params):
    return placed(ComplexMetricClassifier)(
        constraints=constraints, constraint_confidence=confidence, **params
    )


def scores(rng, n):
    """Probabilities u of a group and .6 u of another one, and labels."""
    groups = (rng.random(n) < 0.4).astype(int)
    p = rng.random(n) * np.where(groups, 0.6, 1.0)
    return p[:, None], (rng.random(n) < p).astype(int), groups


def test_constraints_are_violated_no_more_often_than_allowed():
    """In the population, which is known; a refusal is no violation."""
    rng, n_fits, slack, error = new_rng(0), 16, 0.25, 0.2
    n_violated = n_certified = 0
    for _ in range(n_fits):
        X, y, groups = scores(rng, 800)
        fair = EqualOpportunity(slack=slack, reference="groups")
        model = certified(fair, 1 - error, metric="zero_one", estimator=Scored())
        try:
            model.set_params(cv="prefit").fit(X, y, sensitive_features=groups)
        except InfeasibleConstraintError:
            continue
        n_certified += 1
        one, other = recalls_of_groups(model)
        n_violated += abs(one - other) > slack
    assert n_certified > 0
    # The chance to be above this is below 1e-6.
    assert n_violated <= binom.isf(1e-6, n_fits, error)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"cv": None, "confusion": "probabilities"},
        {"group_blind": True, "cv": None},
        {"lmo": "weighted", "estimator": DecisionTreeClassifier(max_depth=2)},
    ],
    ids=str,
)
@pytest.mark.parametrize("k", [2, 3])
def test_the_last_rule_is_certified_by_what_predict_says(k, params):
    X, y, groups = make_data(k, n=1200)
    constraints = [
        SelectionRate(at_most=0.9, label=0),
        DemographicParity(slack=0.6, reference="groups"),
    ]
    model = certified(constraints, metric="balanced", max_iter=50, **params)
    model.fit(X, y, sensitive_features=groups)
    p_values = model.calibration_p_values_
    assert p_values[0] <= 0.05 and (p_values[:-1] <= 0.05).all()
    # The rows are those that the documented draw holds out.
    held = np.sort(np.random.RandomState(0).permutation(len(y))[: len(y) // 2])
    metadata = {} if model.group_blind else {"sensitive_features": groups[held]}
    predicted = model.predict(X[held], **metadata)
    C, _ = confusion_tensor(
        y[held], predicted, labels=np.arange(k), sensitive_features=groups[held]
    )
    _, cells = confusion_tensor(y, y, labels=np.arange(k), sensitive_features=groups)
    counts = np.round(C * len(held))
    sums = [s for c in constraints for s in rate_sums(c, cells, counts)]
    p = p_value(sums, 0.05)
    assert p <= 0.05
    assert np.isclose(p_values, p).any()


def test_single_rules_are_certified_as_such():
    X, y, _ = scores(new_rng(4), 3000)
    model = certified(
        Precision(at_least=0.75), metric="recall", estimator=Scored(), cv="prefit"
    )
    model.set_params(randomized=False).fit(X, y)
    assert len(model.mixture_weights_) == 1
    held = np.sort(np.random.RandomState(0).permutation(len(y))[: len(y) // 2])
    chosen = y[held][model.predict(X[held]) == 1]
    p = binom.cdf((chosen == 0).sum(), len(chosen), 0.25)
    assert p <= 0.05 and np.isclose(model.calibration_p_values_, p).any()


def test_nothing_but_the_other_rows_is_fitted():
    X, y, _ = make_data(2, n=600)
    model = certified(Recall(at_least=0.2), constraint_calibration=0.25, cv=None)
    model.fit(X, y)
    held = np.random.RandomState(0).permutation(600)[:150]
    rest = np.setdiff1d(np.arange(600), held)
    expected = LogisticRegression(max_iter=1000).fit(X[rest], y[rest])
    np.testing.assert_array_equal(model.estimator_.coef_, expected.coef_)
    again = certified(Recall(at_least=0.2), constraint_calibration=0.25, cv=None)
    again.fit(X, y)
    np.testing.assert_array_equal(model.loss_matrices_, again.loss_matrices_)
    np.testing.assert_array_equal(
        model.calibration_p_values_, again.calibration_p_values_
    )


def test_it_costs_less_than_the_bound_for_all_rules():
    X, y, _ = scores(new_rng(1), 6000)
    found = {}
    for how in (0.5, "uniform"):
        model = certified(
            Precision(at_least=0.75), metric="recall", estimator=Scored(), cv="prefit"
        )
        try:
            model.set_params(solver_options__constraint_calibration=how).fit(X, y)
        except InfeasibleConstraintError:
            found[how] = 0.0
            continue
        u = (np.arange(1000) + 0.5) / 1000
        found[how] = u @ model.predict_proba(u[:, None])[:, 1] / u.sum()
    assert found[0.5] > found["uniform"]


def test_the_precision_of_a_rare_class_can_be_certified():
    rng = new_rng(2)
    y = (rng.random(28_000) < 530 / 28_000).astype(int)
    odds = np.exp(3.0 * (rng.normal(size=len(y)) + 3.0 * y) - 4.5) * 530 / 27_470
    model = certified(
        Precision(at_least=0.5), metric="recall", estimator=Scored(), cv="prefit"
    )
    X = (odds / (1 + odds))[:, None]
    model.fit(X, y)
    assert model.predict(X)[y == 1].mean() > 0.5
    with pytest.raises(InfeasibleConstraintError, match="looser"):
        model.set_params(solver_options__constraint_calibration="uniform").fit(X, y)


def test_without_constraints_no_rows_are_held_out():
    X, y, _ = make_data(2)
    model = certified((), cv=None).fit(X, y)
    free = ComplexMetricClassifier(cv=None).fit(X, y)
    np.testing.assert_array_equal(model.loss_matrices_, free.loss_matrices_)
    assert not hasattr(model, "calibration_p_values_")


def test_a_refusal_says_what_would_do():
    X, y, groups = scores(new_rng(3), 400)
    fair = EqualOpportunity(slack=0.02, reference="groups")
    model = certified(fair, estimator=Scored(), cv="prefit")
    with pytest.raises(InfeasibleConstraintError, match=r"the 200 held-out") as caught:
        model.fit(X, y, sensitive_features=groups)
    low = caught.value.smallest_violation
    words = str(caught.value)
    assert 0.0 < low and f"{low:.2g} looser" in words
    ((verb, errors),) = re.findall(
        r"rule seems to (meet|violate) .*, by (\d+\.\d) standard errors\.$", words
    )
    # More would have been enough.
    assert verb == "violate" or float(errors) < 3.0
    assert not hasattr(model, "classes_")


def test_rows_of_no_weight_are_not_counted():
    X, y, groups = make_data(2, n=900)
    weights = np.where(np.arange(900) < 600, 3.0, 0.0)
    params = {"constraints": Recall(at_least=0.2), "cv": None}
    weighted = certified(**params).fit(X, y, sample_weight=weights)
    plain = certified(**params).fit(X[:600], y[:600])
    assert len(weighted.calibration_p_values_) > 0
    # A half more rows would multiply the logarithm of a p-value by 1.5; the rules found
    # differ by rounding.
    first, second = (np.log(m.calibration_p_values_[0]) for m in (weighted, plain))
    assert 0.75 <= first / second <= 1.33


def test_metadata_of_the_rows_are_divided_with_them():
    class Noting(LogisticRegression):
        def fit(self, X, y, note=None):
            assert np.array_equal(X[:, 0], note)
            return super().fit(X, y)

    X, y, groups = make_data(2, n=600)
    model = certified(SelectionRate(at_most=0.9), estimator=Noting(), cv=3)
    model.fit(X, y, note=X[:, 0])
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_params(estimator=Noting().set_fit_request(note=True))
        model.fit(X, y, note=X[:, 0])


class TestMisuse:
    @pytest.mark.parametrize("calibration", [0.0, 1.0, "folds", None])
    def test_what_is_no_share(self, calibration):
        X, y, _ = make_data(2)
        model = certified(Recall(at_least=0.1), constraint_calibration=calibration)
        with pytest.raises(ValueError, match="constraint_calibration"):
            model.fit(X, y)

    def test_weights_that_differ(self):
        X, y, _ = make_data(2)
        with pytest.raises(ValueError, match="constraint_calibration='uniform'"):
            certified(Recall(at_least=0.1)).fit(X, y, sample_weight=1.0 + (y == 1))

    @pytest.mark.parametrize(
        ("params", "words"),
        [
            ({"constraints": Quantification(0.1)}, "constraints on rates"),
            ({"cv": [(np.arange(9), np.arange(9, 18))]}, "splitter"),
            ({"constraint_calibration": 1e-4}, "leaves none"),
        ],
    )
    def test_what_it_does_not_go_with(self, params, words):
        X, y, _ = make_data(2)
        with pytest.raises(ValueError, match=words):
            set_placed(certified(Recall(at_least=0.1)), **params).fit(X, y)
