"""Constraints that hold for new examples: tightened, or certified by held-out ones."""

import re
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn
from _mixtures import Scored, make_data, recalls_of_groups
from _options import placed, set_placed
from _seeds import new_rng
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import ComplexMetricClassifier, metrics
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm._utils.tolerances import rounded_up
from sklearn_structsvm.confusion.binomial_tests import p_value, rate_sums
from sklearn_structsvm.confusion.tightening import find_bounds
from sklearn_structsvm.estimators.complex_metric import solving
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

# Constraints of all kinds are tried, some of which do not need the groups.
pytestmark = pytest.mark.filterwarnings("ignore:sensitive_features were passed")


def certified(constraints, confidence=0.95, **params):
    return placed(ComplexMetricClassifier)(
        constraints=constraints, constraint_confidence=confidence, **params
    )


confident = partial(certified, constraint_calibration="uniform")


def scores(rng, n):
    """Probabilities u of a group and .6 u of another one, and labels."""
    groups = (rng.random(n) < 0.4).astype(int)
    p = rng.random(n) * np.where(groups, 0.6, 1.0)
    return p[:, None], (rng.random(n) < p).astype(int), groups


def test_the_constraint_holds_for_the_population_as_often_as_said():
    rng, n_fits, slack = new_rng(0), 40, 0.3
    held = {None: 0, 0.8: 0}
    # Without the constraint the recalls are .75 and .31.
    for _ in range(n_fits):
        X, y, groups = scores(rng, 600)
        for confidence in held:
            fair = metrics.EqualOpportunity(slack=slack, reference="groups")
            model = confident(fair, confidence, metric="zero_one", estimator=Scored())
            model.set_params(cv="prefit", confusion="labels")
            model.fit(X, y, sensitive_features=groups)
            one, other = recalls_of_groups(model)
            held[confidence] += abs(one - other) <= slack
            if confidence is not None:
                (bounds,) = model.constraint_bounds_
                assert model.constraint_violation_ <= 1e-9 - max(bounds.values())
    # The probability is at least .8, less six standard deviations of the share.
    assert held[0.8] / n_fits >= 0.8 - 6 * 0.4 / np.sqrt(n_fits)
    assert held[0.8] > held[None]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "constraint",
    [
        metrics.EqualOpportunity(slack=0.8),
        metrics.DemographicParity(slack=0.5, reference="groups"),
        metrics.Recall(at_least=0.2, label=1),
        # Label 1 is the label of a fifth of the rows: it may always be predicted.
        metrics.Precision(at_least=0.1, label=1),
        metrics.SelectionRate(target="priors", slack=0.25),
        metrics.Churn(LogisticRegression(), at_most=0.5),
    ],
    ids=repr,
)
@pytest.mark.parametrize("params", [{}, {"group_blind": True}, {"cv": 3}], ids=str)
def test_what_is_met_is_met_by_more_than_the_bound(k, constraint, params):
    X, y, groups = make_data(k)
    for label in range(k):
        # In equal parts: of fewer in a group a recall is not known to .8.
        rows = np.flatnonzero(y == label)
        groups[rows[::2]], groups[rows[1::2]] = "old", "young"
    if isinstance(constraint, metrics.Churn):
        constraint.baseline.fit(X, y)
    model = confident(constraint, metric="h_mean", **params)
    model.fit(X, y, sensitive_features=groups)
    metadata = {}
    if model.groups_ is not None:
        metadata["sensitive_features"] = groups
    if isinstance(constraint, metrics.Churn):
        metadata["y_baseline"] = constraint.baseline.predict(X)
    _, cells = metrics.confusion_tensor(y, y, labels=np.arange(k), **metadata)
    (bounds,) = find_bounds([constraint], cells, [cells.priors * len(y)] * 2, 0.95)
    assert (bounds.values > 0).all()
    G, h = constraint.linear(cells)
    left = np.tensordot(G, model.cell_confusions_, axes=3) + h + bounds.values
    assert left.max() <= 1e-9
    expected = bounds.by_group(cells.group_names)
    assert model.constraint_bounds_ == [pytest.approx(expected)]


@pytest.mark.filterwarnings("ignore:.* promises nothing without:UserWarning")
def test_without_constraints_there_is_nothing_to_tighten_or_to_hold_out():
    X, y, _ = make_data(2)
    model = confident((), metric="h_mean").fit(X, y)
    # Which are labels that are counted, whatever is asked for.
    free = ComplexMetricClassifier(metric="h_mean", confusion="labels").fit(X, y)
    assert model.constraint_bounds_ == []
    np.testing.assert_array_equal(model.loss_matrices_, free.loss_matrices_)
    assert not hasattr(free, "constraint_bounds_")
    model = certified((), cv=None).fit(X, y)
    free = ComplexMetricClassifier(cv=None).fit(X, y)
    np.testing.assert_array_equal(model.loss_matrices_, free.loss_matrices_)
    assert not hasattr(model, "calibration_p_values_")


def test_more_examples_are_tightened_less_and_weights_count():
    X, y, groups = make_data(2, n=2000)
    widths = []
    for n, weights in ((300, None), (2000, None), (2000, 7.0), (2000, "some")):
        if weights == "some":
            w = (np.arange(n) < 300).astype(float)
        else:
            w = None if weights is None else np.full(n, weights)
        model = confident(metrics.Recall(at_least=0.3, label=1), cv=None)
        model.fit(X[:n], y[:n], sample_weight=w, sensitive_features=groups[:n])
        widths.append(model.constraint_bounds_[0][None])
    assert widths[0] > 2 * widths[1]
    assert widths[1] == pytest.approx(widths[2])
    assert widths[0] == pytest.approx(widths[3])


def test_what_cannot_be_met_names_small_groups_and_the_slack_that_could_be():
    X, y, groups = make_data(2, n=1000)
    groups = np.where(np.arange(1000) < 60, "few", groups)
    model = confident(metrics.EqualOpportunity(slack=0.1))
    with pytest.warns(
        UserWarning, match=r"too small for EqualOpp.*'few' \(slack="
    ) as caught:
        model.fit(X, y, sensitive_features=groups)
    (bounds,) = model.constraint_bounds_
    words = str(caught[0].message)
    assert f"'few' (slack={bounds['few']:.3g})" in words
    # All that is possible is done: for those there is nothing left.
    assert model.constraint_violation_ == pytest.approx(-0.1, abs=1e-6)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Groups are too small")
        enough = float(f"{max(bounds.values()) + 5e-4:.3f}")
        model.set_params(constraints=metrics.EqualOpportunity(slack=enough))
        model.fit(X, y, sensitive_features=groups)
    X, y, _ = make_data(2)
    with pytest.raises(InfeasibleConstraintError) as caught:
        confident(metrics.SelectionRate(target=0.5, slack=0.01, label=1)).fit(X, y)
    words, low = str(caught.value), caught.value.smallest_violation
    assert "With constraint_confidence=0.95" in words and "slack=" in words
    enough = metrics.SelectionRate(target=0.5, slack=0.011 + low, label=1)
    assert confident(enough).fit(X, y).constraint_violation_ < 0
    too_much = metrics.Recall(at_least=0.99, label=1)
    ComplexMetricClassifier(constraints=too_much).fit(X, y)
    with pytest.raises(InfeasibleConstraintError, match="looser. "):
        confident(too_much).fit(X, y)


UNIFORM = {"constraint_calibration": "uniform"}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        *(
            ({"constraint_calibration": calibration}, "constraint_calibration")
            for calibration in (0.0, 1.0, "folds", None)
        ),
        *(
            ({"constraint_confidence": confidence}, "constraint_confidence")
            for confidence in (0.0, 1.0, 95, "high")
        ),
        ({"constraints": metrics.Quantification(0.1)}, "constraints on rates"),
        ({"cv": [(np.arange(9), np.arange(9, 18))]}, "splitter"),
        ({"constraint_calibration": 1e-4}, "leaves none"),
        (UNIFORM | {"confusion": "probabilities"}, "confusion='auto' or 'labels'"),
        (UNIFORM | {"lmo": "weighted"}, "=0.95 requires lmo='plugin'"),
        (UNIFORM | {"constraints": metrics.Quantification(0.1)}, "constraints on rates"),
    ],
    ids=repr,
)
def test_what_it_does_not_go_with(params, words):
    X, y, _ = make_data(2)
    with pytest.raises(ValueError, match=words):
        set_placed(certified(metrics.Recall(at_least=0.1)), **params).fit(X, y)


def test_held_out_examples_have_equal_weights_and_those_of_none_are_not_counted():
    X, y, _ = make_data(2)
    with pytest.raises(ValueError, match="constraint_calibration='uniform'"):
        certified(metrics.Recall(at_least=0.1)).fit(X, y, sample_weight=1.0 + (y == 1))
    X, y, groups = make_data(2, n=900)
    weights = np.where(np.arange(900) < 600, 3.0, 0.0)
    params = {"constraints": metrics.Recall(at_least=0.2), "cv": None}
    weighted = certified(**params).fit(X, y, sample_weight=weights)
    plain = certified(**params).fit(X[:600], y[:600])
    assert len(weighted.calibration_p_values_) > 0
    # A half more rows would multiply the logarithm of a p-value by 1.5; the rules found
    # differ by rounding.
    first, second = (np.log(m.calibration_p_values_[0]) for m in (weighted, plain))
    assert 0.75 <= first / second <= 1.33


def test_constraints_are_violated_no_more_often_than_allowed():
    """In the population, which is known; a refusal is no violation."""
    rng, n_fits, slack, error = new_rng(0), 16, 0.25, 0.2
    n_violated = n_certified = 0
    for _ in range(n_fits):
        X, y, groups = scores(rng, 800)
        fair = metrics.EqualOpportunity(slack=slack, reference="groups")
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
        metrics.SelectionRate(at_most=0.9, label=0),
        metrics.DemographicParity(slack=0.6, reference="groups"),
    ]
    model = certified(constraints, metric="balanced", max_iter=50, **params)
    model.fit(X, y, sensitive_features=groups)
    p_values = model.calibration_p_values_
    assert p_values[0] <= 0.05 and (p_values[:-1] <= 0.05).all()
    # The rows are those that the documented draw holds out.
    held = np.sort(np.random.RandomState(0).permutation(len(y))[: len(y) // 2])
    metadata = {} if model.group_blind else {"sensitive_features": groups[held]}
    predicted = model.predict(X[held], **metadata)
    C, _ = metrics.confusion_tensor(
        y[held], predicted, labels=np.arange(k), sensitive_features=groups[held]
    )
    _, cells = metrics.confusion_tensor(
        y, y, labels=np.arange(k), sensitive_features=groups
    )
    counts = np.round(C * len(held))
    sums = [s for c in constraints for s in rate_sums(c, cells, counts)]
    p = p_value(sums, 0.05)
    assert p <= 0.05
    assert np.isclose(p_values, p).any()


def test_single_rules_are_certified_as_such():
    X, y, _ = scores(new_rng(4), 3000)
    model = certified(
        metrics.Precision(at_least=0.75), metric="recall", estimator=Scored(), cv="prefit"
    )
    model.set_params(randomized=False).fit(X, y)
    assert len(model.mixture_weights_) == 1
    held = np.sort(np.random.RandomState(0).permutation(len(y))[: len(y) // 2])
    chosen = y[held][model.predict(X[held]) == 1]
    p = binom.cdf((chosen == 0).sum(), len(chosen), 0.25)
    assert p <= 0.05 and np.isclose(model.calibration_p_values_, p).any()


def test_nothing_but_the_other_rows_is_fitted():
    X, y, _ = make_data(2, n=600)
    model = certified(metrics.Recall(at_least=0.2), constraint_calibration=0.25, cv=None)
    model.fit(X, y)
    held = np.random.RandomState(0).permutation(600)[:150]
    rest = np.setdiff1d(np.arange(600), held)
    expected = default_classifier().fit(X[rest], y[rest])
    np.testing.assert_array_equal(model.estimator_.coef_, expected.coef_)
    again = certified(metrics.Recall(at_least=0.2), constraint_calibration=0.25, cv=None)
    again.fit(X, y)
    np.testing.assert_array_equal(model.loss_matrices_, again.loss_matrices_)
    np.testing.assert_array_equal(
        model.calibration_p_values_, again.calibration_p_values_
    )


def test_the_precision_of_a_rare_class_can_be_certified():
    rng = new_rng(2)
    y = (rng.random(28_000) < 530 / 28_000).astype(int)
    odds = np.exp(3.0 * (rng.normal(size=len(y)) + 3.0 * y) - 4.5) * 530 / 27_470
    model = certified(
        metrics.Precision(at_least=0.5), metric="recall", estimator=Scored(), cv="prefit"
    )
    X = (odds / (1 + odds))[:, None]
    model.fit(X, y)
    assert model.predict(X)[y == 1].mean() > 0.5
    with pytest.raises(InfeasibleConstraintError, match="looser"):
        model.set_params(solver_options__constraint_calibration="uniform").fit(X, y)


def test_a_refusal_says_what_would_do_but_offers_no_constraint_that_is_none():
    X, y, groups = scores(new_rng(3), 400)
    fair = metrics.EqualOpportunity(slack=0.02, reference="groups")
    model = certified(fair, estimator=Scored(), cv="prefit")
    with pytest.raises(InfeasibleConstraintError, match=r"the 200 held-out") as caught:
        model.fit(X, y, sensitive_features=groups)
    low = caught.value.smallest_violation
    words = str(caught.value)
    assert 0.0 < low and f"{rounded_up(low)} looser" in words
    assert low <= float(rounded_up(low)) < low + 0.002
    ((verb, errors),) = re.findall(
        r"rule seems to (meet|violate) .*, by (\d+\.\d) standard errors\.$", words
    )
    # More would have been enough.
    assert verb == "violate" or float(errors) < 3.0
    assert not hasattr(model, "classes_")
    # Probabilities that are wrong: nothing that is predicted is right.
    X, y = np.tile([[0.9], [0.01]], (60, 1)), np.tile([0, 1], 60)
    words = refusal(metrics.Precision(at_least=0.3), X, y, metric="zero_one",
                    confusion="probabilities")  # fmt: skip
    assert "looser" not in words and "examples that are predicted as 1" in words
    assert "this was chance, or the probabilities are wrong" in words


def refusal(constraint, X, y, groups=None, **params):
    model = certified(constraint, estimator=Scored(), cv="prefit", **params)
    with pytest.raises(InfeasibleConstraintError) as caught:
        model.fit(X, y, sensitive_features=groups)
    return str(caught.value)


def test_a_stricter_slack_needs_more_examples_and_never_as_few_as_there_are():
    X, y, groups = scores(new_rng(3), 400)
    few = np.flatnonzero(y == 1)[:30]
    groups = np.array(["many", "more"])[groups]
    groups[few] = "few"
    said = []
    for slack in (0.01, 0.03, 0.06, 0.1):
        words = refusal(metrics.EqualOpportunity(slack=slack), X, y, groups)
        assert re.search(
            r"decides are rates of .*\d+ examples of group 'few' with label 1", words
        )
        ((enough,),) = [re.findall(r"about ([\d,]+) examples in all", words)]
        said.append(int(enough.replace(",", "")))
    assert said == sorted(said, reverse=True) and said[-1] > 400
    # With the square of the slack, but for rounding to two digits.
    assert said[0] / said[1] == pytest.approx(9.0, rel=0.3)


def test_rules_of_a_certified_search_share_its_boxes_and_the_last_is_not_sought_again(
    monkeypatch,
):
    X, y, _ = scores(new_rng(5), 1200)
    shares, find = [], solving.find_single_rule
    shifts, rule = [], solving.CertifiedSearch.rule

    def noting_share(oracle, problem, *args):
        shares.append(args[-1])
        return find(oracle, problem, *args)

    def noting_shift(search, shift):
        shifts.append(shift)
        return rule(search, shift)

    monkeypatch.setattr(solving, "find_single_rule", noting_share)
    monkeypatch.setattr(solving.CertifiedSearch, "rule", noting_shift)
    model = certified(metrics.Recall(at_least=0.3), metric="zero_one", estimator=Scored())
    model.set_params(randomized=False, cv="prefit").fit(X, y)
    assert len(set(shifts)) == len(shifts) == len(shares)
    assert min(shares) >= len(shifts)
    assert len(model.mixture_weights_) == 1 and len(model.history_["n_iter"]) > 0


def test_metadata_of_the_rows_are_divided_with_them():
    class Noting(LogisticRegression):
        def fit(self, X, y, note=None):
            assert np.array_equal(X[:, 0], note)
            return super().fit(X, y)

    X, y, groups = make_data(2, n=600)
    model = certified(metrics.SelectionRate(at_most=0.9), estimator=Noting(), cv=3)
    model.fit(X, y, note=X[:, 0])
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_params(estimator=Noting().set_fit_request(note=True))
        model.fit(X, y, note=X[:, 0])
