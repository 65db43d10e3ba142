"""`threshold_`, `thresholds_` and `cv_thresholds_`: the number that a rule is."""

from functools import partial

import numpy as np
import pytest
from _mixtures import noisy_rows
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric.thresholds import NamedThresholds
from sklearn_structsvm.metrics import EqualizedOdds, LinearLoss, Recall, SelectionRate

data = partial(noisy_rows, n=150, cut=0.5)


@pytest.mark.parametrize("metric", ["f1", "zero_one", "balanced", "kappa"])
def test_the_threshold_is_what_predictions_are_made_by(metric):
    X, y = data(0)
    model = ComplexMetricClassifier(metric=metric, cv=None, confusion="labels")
    P = model.fit(X, y).estimator_.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict(X), P > model.threshold_)
    # The best of all, by brute force.
    cuts = np.concatenate([[-np.inf], np.unique(P)])
    best = max(model.metric_(y, (P > cut).astype(int)) for cut in cuts)
    assert model.score(X, y) == pytest.approx(best)


def test_costs_of_mistakes_have_the_threshold_of_theory():
    X, y = data(1)
    loss = LinearLoss([[0.0, 1.0], [4.0, 0.0]])
    model = ComplexMetricClassifier(metric=loss, confusion="probabilities").fit(X, y)
    assert model.threshold_ == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("L", "threshold"),
    [([[0, 1], [1, 0]], 0.5), ([[0, 1], [3, 0]], 0.25), ([[1, 0], [1, 0]], -np.inf),
     ([[0, 1], [0, 1]], np.inf), ([[0, 0], [0, 0]], np.inf),
     ([[0, -2], [0, -1]], -np.inf), ([[0, 1], [0, 2]], np.inf),
     ([[1, 0], [0, 1]], np.nan)],
)  # fmt: skip
def test_every_loss_matrix_has_its_threshold(L, threshold):
    found = NamedThresholds(np.array(L, dtype=float), 1).told
    assert found == threshold or (np.isnan(found) and np.isnan(threshold))


def test_groups_have_a_threshold_each():
    X, y = data(2)
    group = np.where(X[:, 1] > 0, "a", "b")
    bound = Recall(at_least=0.01, per_group=True)
    model = ComplexMetricClassifier(metric="zero_one", constraints=bound)
    model.fit(X, y, sensitive_features=group)
    assert list(model.thresholds_) == ["a", "b"]
    P = model.estimator_.predict_proba(X)[:, 1]
    each = np.array([model.thresholds_[name] for name in group])
    guess = model.predict(X, sensitive_features=group)
    np.testing.assert_array_equal(guess, P > each)
    with pytest.raises(AttributeError, match="See thresholds_"):
        model.threshold_  # noqa: B018


def test_where_there_is_no_threshold_it_is_said_why():
    X, y = data(3)
    group = np.where(X[:, 1] > 0, "a", "b")
    plain = ComplexMetricClassifier(metric="zero_one")
    with pytest.raises(AttributeError, match="no threshold_ before fit"):
        plain.threshold_  # noqa: B018
    three = plain.fit(X, y + (X[:, 0] > 1))
    with pytest.raises(AttributeError, match="no threshold_: there are 3 classes"):
        three.threshold_  # noqa: B018
    # No share of 150 rows is that.
    mixed = ComplexMetricClassifier(
        metric="zero_one", constraints=SelectionRate(target=0.3337, slack=0.0)
    ).fit(X, y)
    with pytest.raises(AttributeError, match=r"the classifier is a mixture of \d rules"):
        mixed.threshold_  # noqa: B018
    fair = ComplexMetricClassifier(constraints=EqualizedOdds(slack=0.01, pos_label=1))
    fair.fit(X, y, sensitive_features=group)
    assert not hasattr(fair, "thresholds_")
    other = ComplexMetricClassifier(
        DecisionTreeClassifier(max_depth=1), solver_options={"lmo": "weighted"}
    )
    with pytest.raises(AttributeError, match="decide without class probabilities"):
        other.fit(X, y).threshold_  # noqa: B018
    with pytest.raises(AttributeError, match="has no rules per group"):
        plain.fit(X, y).thresholds_  # noqa: B018
    costs = np.ones((len(y), 2, 2)) - np.eye(2)
    known = ComplexMetricClassifier(metric="expected_cost").fit(X, y, costs=costs)
    with pytest.raises(AttributeError, match="depends on the costs of the example"):
        known.threshold_  # noqa: B018


def test_thresholds_of_folds_are_those_of_fits_to_their_held_out_part():
    X, y = data(4, n=300)
    folds = StratifiedKFold(3)
    options = {"metric": "f1", "confusion": "labels"}
    model = ComplexMetricClassifier(cv=folds, **options).fit(X, y)
    alone = []
    for train, test in folds.split(X, y):
        inner = LogisticRegression(max_iter=1000).fit(X[train], y[train])
        part = ComplexMetricClassifier(FrozenEstimator(inner), **options)
        alone.append(part.fit(X[test], y[test]).threshold_)
    np.testing.assert_allclose(model.cv_thresholds_, alone)
    # A fit without folds leaves none behind.
    model.set_params(cv=None).fit(X, y)
    assert not hasattr(model, "cv_thresholds_")
    group = np.where(X[:, 1] > 0, "a", "b")
    model.set_params(
        cv=3, metric="zero_one", constraints=Recall(at_least=0.01, per_group=True)
    ).fit(X, y, sensitive_features=group)
    assert model.cv_thresholds_.shape == (3, 2)
    by_costs = ComplexMetricClassifier(metric="expected_cost", cv=3)
    by_costs.fit(X, y, costs=np.column_stack([4.0 * y, 1.0 - y]))
    assert by_costs.cv_thresholds_.shape == (3,)
