"""Rates of one class as metrics: the most of one at a bound on another."""

from functools import partial

import numpy as np
import pytest
from _mixtures import noisy_rows
from _seeds import new_rng
from scipy.optimize import linprog
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.confusion import get_metric
from sklearn_structsvm.confusion.lmo.plugin import PluginLMO
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    FalsePositiveRate,
    MetricBound,
    Precision,
    Recall,
    SelectionRate,
    Specificity,
)

# Of few examples it may well be right to predict one class only.
pytestmark = pytest.mark.filterwarnings("ignore:The classifier predicts")

NAMES = ["recall", "precision", "specificity", "false_positive_rate", "selection_rate"]
BOUNDS = [
    ("recall", Precision(at_least=0.7)),
    ("precision", Recall(at_least=0.4)),
    ("specificity", Recall(at_least=0.6)),
    ("false_positive_rate", Recall(at_least=0.6)),
    ("selection_rate", Precision(at_least=0.6)),
    ("recall", SelectionRate(at_most=0.25)),
    ("recall", MetricBound("precision", at_least=0.7)),
    ("recall", Specificity(at_least=0.8)),
]


data = partial(noisy_rows, n=80, cut=0.3)


@pytest.mark.filterwarnings("ignore:sensitive_features were passed")
@pytest.mark.filterwarnings("ignore:Fewer than 5 of the rows")
@pytest.mark.parametrize("kind", ["alone", "coverage", "parity", "churn"])
def test_a_precision_that_may_be_0_over_0_has_a_bound(kind):
    # Of probabilities: no mixture has more than the rows that are surest.
    for trial in range(8):
        rng = new_rng(9, trial)
        n = int(rng.integers(30, 120))
        X = rng.standard_normal((n, 3))
        noisy = X[:, :1] + rng.standard_normal((n, 1))
        y = (noisy > np.array([-0.5, 0.7])).sum(axis=1)
        y[:3] = [0, 1, 2]
        weights = rng.exponential(size=n)
        inner = LogisticRegression().fit(X, y)
        constraints = {
            "alone": (),
            "coverage": SelectionRate(at_least={2: 0.1}),
            "parity": DemographicParity(slack=0.1, pos_label=2),
            # Met with room to spare by leaving out class 2.
            "churn": Churn(DummyClassifier(strategy="constant", constant=0).fit(X, y),
                           at_most=0.3),
        }[kind]  # fmt: skip
        model = ComplexMetricClassifier(
            FrozenEstimator(inner),
            metric=Precision(label=2),
            constraints=constraints,
            confusion="probabilities",
        )
        model.fit(X, y, weights, sensitive_features=(X[:, 1] > 0).astype(int))
        eta = inner.predict_proba(X)[:, 2]
        best = eta.max()
        if kind == "coverage":
            order = np.argsort(-eta)
            shares = weights[order] / weights.sum()
            before = np.cumsum(shares) - shares
            best = np.clip(0.1 - before, 0.0, shares) @ eta[order] / 0.1
        assert model.dual_gap_ <= model.tol
        assert model.dual_objective_ <= 1.0 - best + 1e-9
        assert model.objective_ >= 1.0 - best - 1e-9


def rates(tp, fp, n_positive, n):
    """(numerator, denominator) of each rate, whose numerators are linear."""
    negatives = n - n_positive
    return {
        "recall": (tp, n_positive),
        "precision": (tp, tp + fp),
        "specificity": (negatives - fp, negatives),
        "false_positive_rate": (fp, negatives),
        "selection_rate": (tp + fp, n),
    }


def best_by_program(name, constraint, y, scores):
    """The best rate of all mixtures of thresholds, by linear programs.

    A ratio is maximized by bisection over programs that ask whether it can be reached.
    """
    cuts = np.concatenate([[-np.inf], np.unique(scores)])
    above = scores[None] > cuts[:, None]
    guesses = np.concatenate([above, ~above])
    tp, fp = guesses @ y, guesses @ (1 - y)
    table = rates(tp, fp, y.sum(), len(y))
    if isinstance(constraint, MetricBound):
        bounded, low, high = constraint.metric, constraint.at_least, None
    else:
        bounded, low, high = constraint.__name__, constraint.at_least, constraint.at_most
    N, D = table[bounded]
    row = low * D - N if low is not None else N - high * D
    N, D = table[name]

    def solve(objective):
        return linprog(
            objective, A_ub=[row], b_ub=[0.0], A_eq=np.ones((1, len(tp))), b_eq=[1.0]
        ).fun

    if np.ndim(D) == 0:
        sign = 1.0 if name == "false_positive_rate" else -1.0
        return abs(solve(sign * N / D))
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if solve(middle * D - N) <= 1e-12:
            low = middle
        else:
            high = middle
    return low


@pytest.mark.parametrize(("name", "constraint"), BOUNDS, ids=str)
def test_the_most_of_a_rate_at_a_bound_is_that_of_a_linear_program(name, constraint):
    X, y = data(len(name))
    inner = LogisticRegression().fit(X, y)
    model = ComplexMetricClassifier(
        inner, metric=name, constraints=constraint, cv="prefit", tol=1e-6,
        confusion="labels",
    ).fit(X, y)  # fmt: skip
    best = best_by_program(name, constraint, y, inner.predict_proba(X)[:, 1])
    assert model.constraint_violation_ <= 1e-9
    found = model.metric_.score_of(model.confusion_)
    assert found == pytest.approx(best, abs=1e-5)
    reached = model.dual_objective_
    reached = reached if name == "false_positive_rate" else 1.0 - reached
    sign = -1.0 if name == "false_positive_rate" else 1.0
    assert sign * (reached - best) >= -1e-9


@pytest.mark.parametrize("k", [2, 3])
def test_rates_as_functions_are_those_of_scikit_learn(k):
    rng = new_rng(k)
    y, guess = rng.integers(k, size=(2, 60))
    weights = rng.integers(1, 4, size=60)
    for label in range(k):
        of_label = {"labels": [label], "average": "macro", "sample_weight": weights}
        others = {"average": "binary", "sample_weight": weights}
        expected = {
            Recall: recall_score(y, guess, **of_label),
            Precision: precision_score(y, guess, **of_label),
            Specificity: recall_score(y != label, guess != label, **others),
            FalsePositiveRate: 1 - recall_score(y != label, guess != label, **others),
            SelectionRate: np.average(guess == label, weights=weights),
        }
        for kind, rate in expected.items():
            for named in [kind(label=label)] + [kind()] * (k == 2 and label == 1):
                found = named(y, guess, sample_weight=weights)
                assert found == pytest.approx(rate)


def test_a_bound_is_on_the_label_that_the_metric_is_of():
    y, guess = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 0])
    assert Recall(at_least=0.9)(y, guess) == pytest.approx(0.4)
    assert Recall(at_least=0.9)(y > 0, guess > 0) == pytest.approx(0.4)
    assert Recall(at_least=0.9, label=0)(y, guess) == pytest.approx(0.9 - 2 / 3)
    # Of each class, where there are numbers for each, or more than two classes.
    assert Recall(at_least=[0.9, 0.1])(y, guess) == pytest.approx(0.9 - 2 / 3)
    three = np.append(y, 2), np.append(guess, 2)
    assert Recall(at_least=0.9)(*three) == pytest.approx(0.4)
    with pytest.raises(ValueError, match=r"Recall needs .* set pos_label to one of"):
        Recall(at_least=0.9)(["no", "yes"], ["no", "no"])


def test_names_and_objects_are_the_same_metric():
    X, y = data(0)
    named = ComplexMetricClassifier(
        metric="recall",
        constraints=SelectionRate(at_most=0.3),
        cv=None,
        confusion="labels",
    )
    by_name = named.fit(X, y).predict_proba(X)
    named.set_params(metric=Recall(label=1))
    np.testing.assert_array_equal(named.fit(X, y).predict_proba(X), by_name)
    assert named.pos_label_ == 1
    labels = np.array(["ok", "fraud"])[y]
    other = named.set_params(
        metric=Recall(label="fraud"),
        constraints=SelectionRate(label="fraud", at_most=0.3),
    ).fit(X, labels)
    assert other.pos_label_ == "fraud"
    # "fraud" is first. The best mixture need not be unique, but its metric is.
    assert other.objective_ == pytest.approx(named.objective_, abs=named.tol)
    C = other.confusion_[::-1, ::-1]
    assert C[1, 1] / C[1].sum() == pytest.approx(1.0 - other.objective_, abs=1e-9)
    assert C[:, 1].sum() <= 0.3 + 1e-9
    found = recall_score(y, other.predict(X) == "fraud")
    assert other.score(X, labels) == pytest.approx(found)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_and_groups_are_not_of_a_metric(name):
    kind = type(get_metric(name, [0, 1]).rate)
    for wrong in (kind(at_least=0.5), kind(target=0.5, slack=0.1)):
        with pytest.raises(ValueError, match="has bounds, so it is a constraint"):
            get_metric(wrong, [0, 1])
    for wrong in (kind(group="a"), kind(per_group=True)):
        with pytest.raises(ValueError, match="does not support group"):
            get_metric(wrong, [0, 1])
    with pytest.raises(ValueError, match="label='x' is not a class"):
        get_metric(kind(label="x"), ["a", "b", "c"])
    with pytest.raises(ValueError, match="needs at_least, at_most, or target"):
        ComplexMetricClassifier(constraints=kind()).fit(*data(0))


def test_a_precision_that_nothing_reaches_is_said_not_to_be_reached():
    X, y = data(1)
    X[:, 0] = 0.0  # nothing is known
    strict = ComplexMetricClassifier(
        LogisticRegression(C=1e-6), metric="recall", constraints=Precision(at_least=1.0)
    )
    X[:] = 0.0
    with pytest.warns(UserWarning, match="predicts 0 for every training example"):
        model = strict.fit(X, y)
    assert model.confusion_[:, 1].sum() <= 1e-12
    strict.set_params(constraints=[Precision(at_least=1.0), Recall(at_least=0.5)])
    with pytest.raises(ValueError, match="No classifier meets Precision"):
        strict.fit(X, y)


def test_rates_of_one_of_many_classes_reach_the_optimum_of_a_linear_program():
    rng = new_rng(5)
    P = rng.dirichlet([1.0, 2.0, 3.0], size=7)
    # All 3^7 deterministic classifiers of seven rows.
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 7), -1).reshape(-1, 7)
    chosen = np.eye(3)[grid]
    C = np.einsum("ni,gnj->gij", P, chosen) / 7
    lmo = PluginLMO().fit(P)
    for name in ("recall", "specificity", "selection_rate"):
        metric = get_metric(type(get_metric(name, [0, 1]).rate)(label=2), range(3))
        (G,), (h,) = metric.pieces(lmo.priors_[0])
        values = np.tensordot(C, G, axes=2) + h
        bound = lmo(G[None])[2] + h
        assert values.min() == pytest.approx(bound)
        assert metric.value(C[values.argmin()]) == pytest.approx(bound)


def best_precision(y, scores):
    found = [
        y[side].mean()
        for cut in np.unique(scores)
        for side in (scores >= cut, scores <= cut)
    ]
    return max(found)


def test_a_precision_without_constraints_ends_with_a_certificate():
    X, y = data(3)
    model = ComplexMetricClassifier(
        metric="precision", tol=1e-3, cv=None, confusion="labels"
    )
    with pytest.warns(UserWarning, match="Fewer than 5 of the rows get the label.s. 1"):
        model.fit(X, y)
    assert model.dual_gap_ <= 1e-3
    best = best_precision(y, model.estimator_.predict_proba(X)[:, 1])
    assert model.objective_ <= 1.0 - best + 1e-3
