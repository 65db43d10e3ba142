"""`randomized=False`: one rule, its certificate, its words, and what they allow."""

import warnings

import numpy as np
import pytest
from _mixtures import even_one_class, make_data
from _options import placed
from _seeds import new_rng
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, get_scorer, make_scorer, roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric import single_rule
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    EqualOpportunity,
    ExpectedCost,
    LinearLoss,
    MetricBound,
    Precision,
    Recall,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion import rule_search
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

# Rules for everyone are compared with those of groups.
pytestmark = [
    even_one_class,
    pytest.mark.filterwarnings("ignore:sensitive_features were passed"),
]

# No share of the 400 rows of `make_data` is that.
UNEVEN = SelectionRate(target=0.33337, slack=0.0)


def single(*args, **params):
    return placed(ComplexMetricClassifier)(*args, randomized=False, **params)


def cuts_of(p):
    return np.concatenate([[-np.inf], np.unique(p)])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", ["g_mean", "f1", "min_max", "mcc"])
def test_the_rule_is_the_best_of_all_thresholds(metric, weighted):
    X, y, _ = make_data(2, 120)
    weights = new_rng(1).integers(0, 4, size=len(y)).astype(float) if weighted else None
    if weighted:
        weights[:2] = 1.0
    model = single(metric=metric, cv=None, confusion="labels")
    model.fit(X, y, sample_weight=weights)
    p = model.estimator_.predict_proba(X)[:, 1]
    best = max(
        model.metric_(y, (p > cut).astype(int), sample_weight=weights)
        for cut in cuts_of(p)
    )
    assert model.score(X, y, sample_weight=weights) == pytest.approx(best)
    np.testing.assert_array_equal(model.predict(X), p > model.threshold_)
    assert 1.0 - model.objective_ == pytest.approx(best)


@pytest.mark.parametrize(
    ("k", "params"),
    [
        (2, {"metric": "h_mean"}),
        (2, {"metric": "min_max", "constraints": EqualOpportunity(slack=0.1)}),
        (2, {"metric": "f1", "constraints": DemographicParity(slack=0.1)}),
        (2, {"metric": "zero_one", "confusion": "probabilities"}),
        (2, {"constraints": EqualOpportunity(slack=0.3), "group_blind": True}),
        (3, {"metric": "g_mean"}),
        (3, {"metric": "min_max"}),
        (3, {"metric": "micro_f1"}),
        (3, {"metric": "q_mean", "constraints": EqualOpportunity(slack=0.3)}),
        (3, {"metric": "h_mean", "confusion": "labels"}),
        (3, {"metric": "min_max", "lmo": "weighted", "max_iter": 30}),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_gap_is_to_the_bound_of_all_mixtures(k, params):
    X, y, groups = make_data(k)
    mixture = placed(ComplexMetricClassifier)(cv=None, **params)
    mixture.fit(X, y, sensitive_features=groups)
    assert not hasattr(mixture, "mixture_objective_")
    model = clone(mixture).set_params(randomized=False)
    model.fit(X, y, sensitive_features=groups)
    assert len(model.mixture_weights_) == 1
    assert model.mixture_objective_ == mixture.objective_
    assert model.constraint_violation_ <= 1e-9
    C = model.certified_confusions_
    value = model.metric_.value(C.sum(axis=0))
    assert model.objective_ == pytest.approx(value, abs=1e-9)
    assert model.dual_gap_ > 0.0
    if params.get("confusion") == "labels" or params.get("group_blind"):
        pass  # It is about the probabilities.
    elif "lmo" not in params:
        assert model.dual_objective_ == pytest.approx(mixture.dual_objective_, abs=1e-12)
        assert model.dual_gap_ == model.objective_ - model.dual_objective_
    if k == 2 and len(mixture.mixture_weights_) == 1 and not params.get("group_blind"):
        # The search is exact. But a mixture may use a threshold the wrong way round.
        if all(np.isfinite(t) for t in np.ravel(list(_thresholds(mixture)))):
            assert model.objective_ <= mixture.objective_ + 1e-9
    guess = model.predict(X, sensitive_features=groups)
    P = model.predict_proba(X, sensitive_features=groups)
    np.testing.assert_array_equal(P, np.eye(k)[guess])
    # The same bits again, and with a mixture nothing is left of it.
    again = clone(model).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(again.loss_matrices_, model.loss_matrices_)
    model.set_params(randomized=True).fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "mixture_objective_")
    np.testing.assert_array_equal(model.loss_matrices_, mixture.loss_matrices_)


def _thresholds(model):
    try:
        return [model.threshold_]
    except AttributeError:
        return model.thresholds_.values()


def test_constraints_are_tightened_for_single_rules_as_well():
    X, y, groups = make_data(2)
    bound = Recall(at_least=0.3, per_group=True)
    model = single(metric="zero_one", constraints=bound, cv=None)
    model.set_params(
        constraint_confidence=0.9, solver_options__constraint_calibration="uniform"
    )
    model.fit(X, y, sensitive_features=groups)
    least = min(value for found in model.constraint_bounds_ for value in found.values())
    guess = model.predict(X, sensitive_features=groups)
    recalls = [guess[(groups == g) & (y == 1)].mean() for g in ("old", "young")]
    assert min(recalls) >= 0.3
    assert model.constraint_violation_ <= -least + 1e-9 < 0.0
    assert len(model.thresholds_) == 2


def test_without_a_single_rule_the_error_says_that_a_mixture_exists():
    X, y, _ = make_data(2)
    mixture = ComplexMetricClassifier(metric="zero_one", constraints=UNEVEN, cv=None)
    assert len(mixture.fit(X, y).mixture_weights_) > 1
    model = clone(mixture).set_params(randomized=False, confusion="labels")
    message = "No single rule satisfies .* closest .*A mixture of rules .*randomized=True"
    with pytest.raises(InfeasibleConstraintError, match=message) as caught:
        model.fit(X, y)
    assert not hasattr(model, "classes_")
    # It is as near as any threshold comes.
    p = mixture.estimator_.predict_proba(X)[:, 1]
    least = min(abs(np.mean(p > cut) - 0.33337) for cut in cuts_of(p))
    assert caught.value.smallest_violation == pytest.approx(least)
    three, labels, _ = make_data(3)
    few = SelectionRate(target={1: 0.33337}, slack=0.0)
    with pytest.raises(InfeasibleConstraintError, match="No single rule was found that"):
        single(constraints=few, cv=None).fit(three, labels)
    with pytest.raises(AttributeError, match="no rule_ before fit"):
        _ = single().rule_
    with pytest.raises(AttributeError, match=r"mixture of \d rules; randomized=False"):
        _ = mixture.fit(X, y).rule_
    trees = single(DecisionTreeClassifier(max_depth=1), "f1", lmo="weighted").fit(X, y)
    assert len(trees.classifiers_) == 1
    with pytest.raises(AttributeError, match="decide without class probabilities"):
        _ = trees.rule_
    with pytest.raises(ValueError, match="'randomized' parameter"):
        ComplexMetricClassifier(randomized="no").fit(X, y)


def test_costs_that_only_training_knows_have_the_best_threshold():
    X, y, _ = make_data(2, 120)
    costs = new_rng(3).exponential(size=(len(y), 2))
    costs[np.arange(len(y)), y] = 0.0
    bound = Recall(at_least=0.5)
    model = single(metric="expected_cost", constraints=bound, cv=None)
    model.fit(X, y, costs=costs)
    p, best = model.estimator_.predict_proba(X)[:, 1], np.inf
    for cut in cuts_of(p):
        guess = (p > cut).astype(int)
        if guess[y == 1].mean() >= 0.5:
            best = min(best, ExpectedCost()(y, guess, costs=costs))
    assert model.objective_ == pytest.approx(best)
    assert ExpectedCost()(y, model.predict(X), costs=costs) == pytest.approx(best)
    # Costs that the rule sees are another thing: it is not a threshold.
    known = np.repeat(costs[:, None], 2, axis=1) * (1 - np.eye(2))
    budget = MetricBound("expected_cost", at_most=0.5)
    seeing = single(metric="recall", constraints=budget, cv=None).fit(X, y, costs=known)
    assert len(seeing.mixture_weights_) == 1
    assert seeing.constraint_violation_ <= 1e-9


def test_scores_rank_as_the_probabilities_do():
    X, y, _ = make_data(2)
    names = np.array(["no", "yes"])[y]
    fraud = Recall(label="yes"), Precision(label="yes", at_least=0.3)
    model = single(metric=fraud[0], constraints=fraud[1], cv=None).fit(X, names)
    p = model.estimator_.predict_proba(X)[:, 1]
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores > 0, model.predict(X) == "yes")
    area = roc_auc_score(y, p)
    assert get_scorer("roc_auc")(model, X, names) == pytest.approx(area)
    calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(X, names)
    assert len(np.unique(calibrated.predict_proba(X)[:, 1])) > len(X) / 2
    mixture = ComplexMetricClassifier(metric="zero_one", constraints=UNEVEN, cv=None)
    mixture.fit(X, y)
    assert len(mixture.mixture_weights_) > 1
    if (mixture.loss_matrices_[:, 0, 0, 1] > mixture.loss_matrices_[:, 0, 1, 1]).all():
        # No rule predicts label 1 below a threshold.
        assert get_scorer("roc_auc")(mixture, X, y) == pytest.approx(area)
    sure = mixture.predict_proba(X).max(axis=1) == 1.0
    scores = mixture.decision_function(X)
    agreed = mixture.predict(X)[sure]
    low, high = scores[sure][agreed == 0], scores[sure][agreed == 1]
    assert low.max(initial=-np.inf) < high.min(initial=np.inf)


def test_thresholds_of_folds_are_those_of_single_rules_and_share_the_boxes_of_one(
    monkeypatch,
):
    X, y, _ = make_data(2)
    shares, search = [], single_rule.search_rules

    def shared(*args, n_searches=1, **options):
        shares.append(n_searches)
        return search(*args, n_searches=n_searches, **options)

    monkeypatch.setattr(single_rule, "search_rules", shared)
    few = SelectionRate(at_most=0.3, label=1)
    model = single(metric="f1", constraints=few, cv=3).fit(X, y)
    assert model.cv_thresholds_.shape == (3,)
    assert hasattr(model, "threshold_")
    assert shares == [1, 3, 3, 3]


@pytest.mark.parametrize("metric", [f1_score, make_scorer(f1_score)])
def test_a_rule_for_a_function_or_a_scorer_has_its_name(metric):
    X, y, _ = make_data(2)
    model = ComplexMetricClassifier(metric=metric, cv=None).fit(X[:40], y[:40])
    assert "f1_score" in str(model.rule_).partition(": ")[0]


def test_the_rule_in_words_is_the_rule():
    X, y, groups = make_data(2)
    names = np.array(["fraud", "ok"])[1 - y]
    model = single(
        metric="g_mean", constraints=EqualOpportunity(slack=0.2, pos_label="fraud"),
        cv=None,
    ).fit(X, names, sensitive_features=groups)  # fmt: skip
    rule = model.rule_
    title = "g_mean with EqualOpportunity(pos_label='fraud', slack=0.2):"
    table = rule.columns
    cuts = table["threshold"]
    assert table["label"] == ["fraud"] * len(cuts)
    assert table["otherwise"] == ["ok"] * len(cuts)
    words = [f"fraud if p(fraud) >= {cut!r}, else ok" for cut in cuts]
    if len(cuts) == 1:
        # Both groups have the same threshold.
        assert str(rule) == f"{title} {words[0]}"
        cuts = cuts * 2
    else:
        assert table["group"] == ["old", "young"]
        lines = [f"  group {name}: {own}" for name, own in zip(
            table["group"], words, strict=True)]  # fmt: skip
        assert str(rule).splitlines() == [title, *lines]
    p = model.estimator_.predict_proba(X)[:, 0]
    guess = np.where(p >= np.where(groups == "old", *cuts), "fraud", "ok")
    np.testing.assert_array_equal(model.predict(X, sensitive_features=groups), guess)
    assert "<th>threshold</th>" in rule._repr_html_()
    assert repr(rule) == str(rule)


def test_weights_and_costs_of_the_table_are_the_rule():
    X, y, groups = make_data(3)
    model = single(metric="g_mean", cv=None).fit(X, y)
    P = model.estimator_.predict_proba(X)
    P = model.mixture_.correction(P) if model.mixture_.correction is not None else P
    table = model.rule_.columns
    assert table["label"] == [0, 1, 2]
    guess = (P * table["weight"]).argmax(axis=1)
    np.testing.assert_array_equal(guess, model.predict(X))
    assert str(model.rule_).startswith("g_mean: the largest of ")
    loss = LinearLoss([[0, 1, 2], [3, 0, 1], [9, 4, 0]])
    model = single(metric=loss, cv=None).fit(X, y)
    P = model.estimator_.predict_proba(X)
    P = model.mixture_.correction(P) if model.mixture_.correction is not None else P
    costs = np.reshape(model.rule_.columns["cost"], (3, 3))
    np.testing.assert_array_equal((P @ costs).argmin(axis=1), model.predict(X))
    fair = single(constraints=EqualOpportunity(slack=0.3), group_blind=True, cv=None)
    fair.fit(X, y, sensitive_features=groups)
    assert fair.rule_.columns["group"] == ["old"] * 9 + ["young"] * 9
    P = fair.estimator_.predict_proba(X)
    costs = np.reshape(fair.rule_.columns["cost"], (6, 3))
    np.testing.assert_array_equal((P @ costs).argmin(axis=1), fair.predict(X))


def test_rules_of_one_label_of_a_baseline_and_below_a_threshold_are_told_as_such():
    X, y, _ = make_data(2)
    always = LinearLoss([[1.0, 0.0], [1.0, 0.0]])
    with pytest.warns(UserWarning, match="predicts 1 for every"):
        model = single(metric=always, cv=None).fit(X, y)
    assert str(model.rule_).endswith(": always 1")
    old = LogisticRegression().fit(X[:, :2], y)

    class Old:
        def predict(self, X):
            return old.predict(X[:, :2])

    model = single(constraints=Churn(Old(), at_most=0.1), cv=None).fit(X, y)
    assert model.rule_.columns["baseline"] == [0, 1]
    assert "\n  baseline 0: " in str(model.rule_)
    wrong = FrozenEstimator(LogisticRegression().fit(X, 1 - y))
    model = ComplexMetricClassifier(wrong, "balanced", confusion="labels").fit(X, y)
    (threshold,) = model.rule_.columns["threshold"]
    assert str(model.rule_) == f"balanced: 1 if p(1) < {threshold!r}, else 0"
    p = wrong.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict(X), p < threshold)


def test_a_search_that_is_cut_short_says_so(monkeypatch):
    X, y, groups = make_data(2)
    monkeypatch.setattr(rule_search, "MAX_BOXES_OF_CELLS", 0)
    monkeypatch.setattr(rule_search, "MAX_ENUMERATED", 9)
    monkeypatch.setattr(rule_search, "MAX_AROUND", 4)
    # A rule of the mixture meets the one constraint.
    bound = SelectionRate(label=1, at_most=0.2503, group="old")
    model = single(metric="f1", constraints=bound, cv=None, confusion="labels", tol=1e-9)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=groups)
    words = "The search for the best single rule ended early"
    assert (model.dual_gap_ > 1e-9) == any(words in str(w.message) for w in told)
