"""Costs of each example: in the metric, in constraints, in scorers, when predicting."""

import itertools

import numpy as np
import pytest
import sklearn
from _options import placed
from _seeds import new_rng
from scipy.optimize import linprog
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm.metrics import (
    ExpectedCost,
    LinearLoss,
    MetricBound,
    Recall,
    cost_loss,
    expected_cost_score,
)

# Of few examples it may well be right to predict one class only.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The classifier predicts"),
    pytest.mark.filterwarnings("ignore:sensitive_features were passed"),
]


def data(seed, k, n=60):
    """Features, labels, weights, and costs of both forms."""
    rng = new_rng(seed, k)
    X = rng.standard_normal((n, 3))
    y = (X[:, :1] + rng.standard_normal(n)[:, None] > np.linspace(-0.5, 1, k - 1)).sum(1)
    y[:k] = np.arange(k)
    costs = rng.exponential(size=(n, k, k)) * rng.exponential(size=(n, 1, 1))
    costs[:, np.arange(k), np.arange(k)] *= 0.1
    return X, y, rng.integers(1, 4, size=n), costs


def prefit(X, y, **params):
    inner = LogisticRegression().fit(X, y)
    if y.max() > 1:  # and not what the labels may make of them
        params["confusion"] = "probabilities"
    model = placed(ComplexMetricClassifier)(FrozenEstimator(inner), tol=1e-6, **params)
    return model, inner.predict_proba(X)


def average(of_each, weights):
    return float(np.average(of_each, weights=weights))


@pytest.mark.parametrize("k", [2, 3])
def test_known_costs_are_minimized_row_by_row(k):
    X, y, weights, costs = data(0, k)
    model, P = prefit(X, y, metric="expected_cost")
    model.fit(X, y, weights, costs=costs)
    for rows, known in ((X, costs), data(1, k)[::3]):
        P = model.estimator_.predict_proba(rows)
        expected = np.einsum("ri,rij->rj", P, known)
        guess = model.predict(rows, costs=known)
        np.testing.assert_array_equal(guess, expected.argmin(axis=1))
        scores = model.decision_function(rows, costs=known)
        if k == 2:
            assert scores == pytest.approx(expected[:, 0] - expected[:, 1])
        if rows is X:
            least = average(expected.min(axis=1), weights)
            assert model.objective_ == pytest.approx(least)
    assert model.dual_objective_ <= model.objective_ + 1e-12
    assert model.dual_gap_ <= 1e-6
    # Where they are not given their means stand for them.
    means = np.average(costs, axis=0, weights=weights)
    np.testing.assert_array_equal(model.predict(rows), (P @ means).argmin(axis=1))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("names", [["bad", "good", "late"], [0, 1, 2]], ids=str)
def test_columns_of_a_table_of_costs_are_labels(library, names):
    module = pytest.importorskip(library)
    X, y, _, costs = data(0, 3)
    costs = costs[np.arange(len(y)), y]
    y = np.array(names)[y]
    # Columns of polars are strings, whatever labels are.
    columns = names if library == "pandas" else [str(name) for name in names]
    order = [2, 0, 1]
    table = module.DataFrame({columns[j]: costs[:, j] for j in order})
    model = ComplexMetricClassifier(metric="expected_cost", confusion="probabilities")
    expected = model.fit(X, y, costs=costs).predict(X)
    np.testing.assert_array_equal(model.fit(X, y, costs=table).predict(X), expected)
    scores = [
        expected_cost_score(y, expected, costs=of_either) for of_either in (costs, table)
    ]
    assert scores[0] == scores[1] == -model.score(X, y, costs=table)
    assert -ExpectedCost().scorer()(model, X, y, costs=table) == scores[0]
    more = module.DataFrame({c: costs[:, 0] for c in [*columns, "x"]})
    wrong_ones = (table[columns[1:]], "lacks column"), (more, "unknown column 'x'")
    for wrong, message in wrong_ones:
        with pytest.raises(ValueError, match=f"{message}.*columns must be the labels"):
            model.fit(X, y, costs=wrong)


def thresholds(scores, rows, y, costs, weights):
    """All predictions of thresholds on some rows: 1 above, or below if costs say so."""
    cuts = np.concatenate([[-np.inf], np.unique(scores[rows])])
    above = scores[rows][None] > cuts[:, None]
    of_1 = (costs[:, 1] - costs[:, 0])[rows]
    if_0, if_1 = (
        np.average(of_1[y[rows] == i], weights=weights[rows][y[rows] == i])
        for i in (0, 1)
    )
    return np.concatenate([above, ~above] if if_1 > if_0 else [above]).astype(int)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_costs_of_labels_are_minimized_by_a_rule_of_features(seed, k):
    X, y, weights, costs = data(seed, k)
    realized = costs[np.arange(len(y)), y]
    model, P = prefit(X, y, metric="expected_cost")
    model.fit(X, y, weights, costs=realized)
    found = expected_cost_score(
        y, model.predict(X), costs=realized, sample_weight=weights
    )
    if k == 2:
        # The best of all thresholds.
        every = thresholds(P[:, 1], np.arange(len(y)), y, realized, weights)
        sums = [average(realized[np.arange(len(y)), g], weights) for g in every]
        assert found == pytest.approx(min(sums)) == model.objective_
        assert model.dual_objective_ == pytest.approx(min(sums))
    else:
        means = [np.average(realized[y == i], 0, weights[y == i]) for i in range(k)]
        loss = P @ np.array(means)
        np.testing.assert_array_equal(model.predict(X), loss.argmin(axis=1))
        assert model.objective_ == pytest.approx(average(loss.min(axis=1), weights))
        assert model.dual_gap_ <= 1e-6
    np.testing.assert_array_equal(model.predict(X, costs=costs), model.predict(X))


def test_1_is_predicted_for_high_probabilities_unless_costs_ask_for_low_ones():
    turned = 0
    for trial in range(12):
        rng = new_rng(20, trial)
        n = int(rng.integers(5, 15))
        X, y = rng.standard_normal((n, 1)), np.arange(n) % 2
        costs = rng.exponential(size=(n, 2))
        costs[np.arange(n), y] = 0.0
        order = np.argsort(X[:, 0])
        # Whatever the direction in which these increase: labels say nothing of X.
        inner = LogisticRegression().fit(X, X[:, 0] > np.median(X))
        inner.classes_ = np.array([0, 1])
        model = ComplexMetricClassifier(FrozenEstimator(inner), metric="expected_cost")
        guess = model.fit(X, y, costs=costs).predict(X)[order]
        assert (np.diff(guess) >= 0).all()
        assert not np.isnan(model.threshold_)
        # Costs of the wrong label alone, swapped: 1 is right for label 0.
        guess = model.fit(X, y, costs=costs[:, ::-1]).predict(X)[order]
        turned += (np.diff(guess) < 0).any()
    assert turned > 0


@pytest.mark.parametrize("known", [False, True])
def test_costs_that_all_examples_share_are_a_linear_loss(known):
    X, y, weights, costs = data(4, 3)
    L = costs[0]
    shared = np.broadcast_to(L, costs.shape)
    shared = shared if known else shared[np.arange(len(y)), y]
    by_costs, _ = prefit(X, y, metric="expected_cost")
    by_loss, _ = prefit(X, y, metric=LinearLoss(L))
    by_costs.fit(X, y, weights, costs=shared)
    by_loss.fit(X, y, weights)
    np.testing.assert_array_equal(by_costs.predict(X), by_loss.predict(X))
    assert by_costs.objective_ == pytest.approx(by_loss.objective_)
    guess = by_loss.predict(X)
    assert ExpectedCost()(y, guess, costs=shared) == pytest.approx(
        cost_loss(y, guess, costs=L)
    )


def everything(n, k):
    return np.eye(k)[np.array(list(itertools.product(range(k), repeat=n)))]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("swapped", [False, True])
def test_known_costs_with_constraints_end_at_the_optimum_of_a_program(seed, k, swapped):
    n = 9 if k == 2 else 6
    X, y, weights, costs = data(seed, k, n=n)
    inner = LogisticRegression(C=0.3).fit(X, y)
    P, w = inner.predict_proba(X), weights / weights.sum()
    expected = np.einsum("ri,rij->rj", P, costs)
    label = k - 1
    cost = w[:, None] * expected
    hits = np.zeros((n, k))
    hits[:, label] = w * P[:, label] / (w @ P[:, label])
    # Variables: with what probability each row gets each prediction.
    rows = np.kron(np.eye(n), np.ones((1, k)))
    budget = cost.min(axis=1).sum() * 0.9 + cost.mean(axis=1).sum() * 0.1
    if swapped:
        program = linprog(-hits.ravel(), cost.ravel()[None], [budget], rows, np.ones(n))
        params = {
            "metric": Recall(label=label),
            "constraints": MetricBound("expected_cost", at_most=budget),
        }
    else:
        program = linprog(cost.ravel(), -hits.ravel()[None], [-0.8], rows, np.ones(n))
        params = {
            "metric": "expected_cost",
            "constraints": Recall(label=label, at_least=0.8),
        }
    model = placed(ComplexMetricClassifier)(
        FrozenEstimator(inner), tol=1e-6, confusion="probabilities", **params
    ).fit(X, y, weights, costs=costs)
    best = program.fun + (1.0 if swapped else 0.0)
    assert model.objective_ == pytest.approx(best, abs=1e-5)
    assert model.dual_objective_ <= best + 1e-9
    assert model.constraint_violation_ <= 1e-9
    proba = model.predict_proba(X, costs=costs)
    by_proba = (cost * proba).sum() if not swapped else 1.0 - (hits * proba).sum()
    assert by_proba == pytest.approx(model.objective_)
    # No deterministic classifier is below the bound.
    each = np.einsum("gnk,nk->g", everything(n, k), cost)
    recalls = np.einsum("gnk,nk->g", everything(n, k), hits)
    values, met = (1.0 - recalls, each <= budget) if swapped else (each, recalls >= 0.8)
    assert values[met].min() >= model.dual_objective_ - 1e-9


@pytest.mark.parametrize("grouped", [False, True])
def test_thresholds_for_costs_with_constraints_are_those_of_a_program(grouped):
    X, y, weights, costs = data(7, 2, n=40)
    realized = costs[np.arange(len(y)), y]
    group = new_rng(8).integers(2, size=len(y)) * grouped
    constraints = (
        [Recall(at_least=0.7, per_group=True)] if grouped else Recall(at_least=0.7)
    )
    model, P = prefit(X, y, metric="expected_cost", constraints=constraints)
    own = group if grouped else None
    model.fit(X, y, weights, costs=realized, sensitive_features=own)
    w = weights / weights.sum()
    objective, positive, cells = [], [], []
    for a in np.unique(group):
        rows = np.flatnonzero(group == a)
        for guess in thresholds(P[:, 1], rows, y, realized, weights):
            objective.append(w[rows] @ realized[rows, guess])
            is_positive = w[rows] * (y[rows] == 1)
            positive.append(is_positive @ guess / is_positive.sum())
            cells.append(a)
    of_cell = np.array(cells) == np.unique(group)[:, None]
    program = linprog(
        objective,
        A_ub=-1.0 * of_cell * np.array(positive),
        b_ub=np.full(len(of_cell), -0.7),
        A_eq=of_cell.astype(float),
        b_eq=np.ones(len(of_cell)),
    )
    assert model.objective_ == pytest.approx(program.fun, abs=1e-5)
    assert model.dual_objective_ <= program.fun + 1e-9
    assert model.constraint_violation_ <= 1e-9


def test_other_metrics_do_not_look_at_costs_and_what_makes_no_sense_is_refused():
    X, y, weights, costs = data(2, 3)
    plain = ComplexMetricClassifier().fit(X, y, weights)
    with pytest.warns(UserWarning, match="uses costs: they are ignored"):
        given = ComplexMetricClassifier().fit(X, y, weights, costs=costs)
    np.testing.assert_array_equal(given.loss_matrices_, plain.loss_matrices_)
    np.testing.assert_array_equal(given.predict(X, costs=costs), plain.predict(X))
    X, y, _, costs = data(0, 3)
    model = ComplexMetricClassifier(metric="expected_cost")
    for shape in ((60,), (60, 2), (59, 3), (60, 3, 2), (60, 3, 3, 1)):
        with pytest.raises(ValueError, match=r"costs must have shape \(60, 3\), what"):
            model.fit(X, y, costs=np.ones(shape))
    with pytest.raises(ValueError, match="costs must be finite"):
        model.fit(X, y, costs=np.full_like(costs, np.nan))
    with pytest.raises(ValueError, match=r"ExpectedCost\(\) uses individual costs"):
        ExpectedCost()(y, y)
    bound = MetricBound("expected_cost", at_most=5.0)
    of_group = MetricBound("expected_cost", at_most=1.0, group=0)
    least = MetricBound("expected_cost", at_most=-1.0)
    for params, words in (
        ({"metric": "expected_cost", "lmo": "weighted"}, "require lmo='plugin'"),
        ({"constraints": of_group}, "does not support group"),
        ({"constraints": least}, "No classifier meets MetricBound"),
        ({"constraints": bound, "margin": 0.02}, "margin supports only constraints on r"),
        ({"constraints": bound, "margin": "auto"}, "margin supports only constraints on"),
    ):
        model = placed(ComplexMetricClassifier)(**params)
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, costs=costs, sensitive_features=y)


def test_bounds_on_the_cost_are_measured():
    X, y, weights, costs = data(3, 3)
    guess = np.roll(y, 1)
    found = average(costs[np.arange(len(y)), y, guess], weights)
    assert expected_cost_score(
        y, guess, costs=costs, sample_weight=weights
    ) == pytest.approx(found)
    bound = MetricBound("expected_cost", at_most=2.0)
    assert bound(y, guess, costs=costs, sample_weight=weights) == pytest.approx(found - 2)
    names = np.array(["c", "a", "b"])
    reordered = costs[:, [1, 2, 0]][:, :, [1, 2, 0]]
    named = expected_cost_score(names[y], names[guess], costs=reordered)
    assert named == pytest.approx(expected_cost_score(y, guess, costs=costs))


def test_held_out_probabilities_have_their_own_costs():
    X, y, _, costs = data(5, 2)
    folds = StratifiedKFold(3)
    model = ComplexMetricClassifier(metric="expected_cost", cv=folds)
    model.fit(X, y, costs=costs)
    rows = np.concatenate([test for _, test in folds.split(X, y)])
    parts = [
        default_classifier().fit(X[train], y[train]).predict_proba(X[test])
        for train, test in folds.split(X, y)
    ]
    expected = np.einsum("ri,rij->rj", np.concatenate(parts), costs[rows])
    assert model.objective_ == pytest.approx(expected.min(axis=1).mean())


@pytest.mark.parametrize("known", [False, True])
def test_costs_are_routed_through_pipelines_and_searches(known):
    X, y, _, costs = data(6, 2)
    costs = costs if known else costs[np.arange(len(y)), y]
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=False)
        model = ComplexMetricClassifier(inner, metric="expected_cost")
        pipe = make_pipeline(StandardScaler(), model)
        scorer = ExpectedCost().scorer()
        search = GridSearchCV(
            pipe, {"complexmetricclassifier__estimator__C": [0.01, 1.0]},
            scoring=scorer, cv=3, error_score="raise",
        ).fit(X, y, costs=costs)  # fmt: skip
        best = search.best_estimator_
        told = {"costs": costs} if known else {}
        by_hand = -expected_cost_score(y, best.predict(X, **told), costs=costs)
        assert scorer(best, X, y, costs=costs) == pytest.approx(by_hand)
        assert best.score(X, y, costs=costs) == pytest.approx(by_hand)
        scores = cross_val_score(
            pipe, X, y, cv=3, scoring=scorer, params={"costs": costs}
        )
        assert scores.shape == (3,) and (scores < 0).all()
    alone = ComplexMetricClassifier(metric="expected_cost").fit(X, y, costs=costs)
    assert ExpectedCost()(alone, X, y, costs=costs) == alone.score(X, y, costs=costs)
