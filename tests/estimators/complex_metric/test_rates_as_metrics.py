"""Rates of one class as metrics: the most of one at a bound on another."""

import warnings
from functools import partial

import numpy as np
import pytest
from _mixtures import noisy_rows
from _seeds import new_rng
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.confusion import get_metric
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    Precision,
    Recall,
    SelectionRate,
)

# Of few examples it may well be right to predict one class only.
pytestmark = pytest.mark.filterwarnings("ignore:The classifier predicts")

NAMES = ["recall", "precision", "specificity", "false_positive_rate", "selection_rate"]


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
            FrozenEstimator(inner), metric=Precision(label=2), constraints=constraints,
            confusion="probabilities",
        )  # fmt: skip
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


def test_a_precision_that_nothing_reaches_is_said_and_others_have_a_certificate():
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
    X, y = data(3)
    model = ComplexMetricClassifier(metric="precision", cv=None, confusion="labels")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    is_told = any("Fewer than 5 of the rows get" in str(w.message) for w in told)
    assert is_told == (80 * model.confusion_[:, 1].sum() < 5)
    assert model.dual_gap_ <= 1e-3
    scores = model.estimator_.predict_proba(X)[:, 1]
    above = scores >= np.unique(scores)[:, None]
    best = max(y[rows].mean() for rows in [*above, *~above[1:]])
    assert model.objective_ <= 1.0 - best + 1e-3
