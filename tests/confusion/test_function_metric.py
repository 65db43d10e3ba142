"""Scores of (y_true, y_pred) as metrics, and scikit-learn's names of metrics."""

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng
from sklearn import metrics as sk
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_structsvm import ComplexMetricClassifier, MultilabelMetricClassifier
from sklearn_structsvm.confusion import get_metric


class Given(ClassifierMixin, BaseEstimator):
    """Its feature is the probability of the second class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


def profit(y_true, y_pred):
    """It takes no weights, and grows with the number of examples."""
    hits = (y_true == "yes") & (y_pred == "yes")
    return 7.0 * hits.sum() - 2.0 * ((y_true == "no") & (y_pred == "yes")).sum()


def sample(seed, n=40):
    rng = new_rng(seed)
    p = rng.random(n).round(1 + seed % 2)
    y = np.where(rng.random(n) < p, "yes", "no")
    y[:2] = "no", "yes"
    return p[:, None], y


def fit(metric, X, y, **options):
    model = placed(ComplexMetricClassifier)(
        Given().fit(X, y), metric=metric, confusion="labels", cv="prefit", **options
    )
    return model.fit(X, y)


SCORES = {
    "profit": (profit, profit),
    "a scorer": (sk.make_scorer(sk.fbeta_score, beta=2, pos_label="yes"),
                 lambda y, guess: sk.fbeta_score(y, guess, beta=2, pos_label="yes")),
    "a loss": (sk.make_scorer(profit, greater_is_better=False),
               lambda y, guess: -profit(y, guess)),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore:The classifier predicts .* for every")
def test_a_score_is_as_good_as_at_the_best_of_all_thresholds(name, seed):
    metric, score = SCORES[name]
    X, y = sample(seed)
    model = fit(metric, X, y)
    cuts = [-1.0, *np.unique(X)]
    best = max(score(y, np.where(X[:, 0] > cut, "yes", "no")) for cut in cuts)
    assert 1.0 - model.objective_ == pytest.approx(best)
    assert score(y, model.predict(X)) == pytest.approx(best)
    assert model.score(X, y) == pytest.approx(best)
    assert model.dual_gap_ == np.inf


def test_it_weights_as_the_score_does():
    X, y = sample(1)
    weights = new_rng(2).integers(1, 4, len(y))
    metric = sk.make_scorer(sk.jaccard_score, pos_label="yes")
    one = ComplexMetricClassifier(
        Given().fit(X, y), metric=metric, confusion="labels", cv="prefit"
    ).fit(X, y, sample_weight=weights)
    expected = sk.jaccard_score(y, one.predict(X), pos_label="yes", sample_weight=weights)
    assert 1.0 - one.objective_ == pytest.approx(expected)
    repeated = fit(metric, X.repeat(weights, axis=0), y.repeat(weights))
    assert repeated.objective_ == pytest.approx(one.objective_)


@pytest.mark.parametrize(
    "metric, error, words",
    [
        ("roc_auc", ValueError, "judges probabilities or their order"),
        (sk.make_scorer(sk.log_loss, response_method="predict_proba"), ValueError, "jud"),
        (lambda y, guess: "good", ValueError, "must be a finite number; got 'good'"),
    ],
)
def test_what_is_no_score_of_decisions_is_refused(metric, error, words):
    with pytest.raises(error, match=words):
        fit(metric, *sample(0))


def test_more_classes_are_shown_the_lines_of_a_metric():
    X, y = np.eye(3), ["a", "b", "c"]
    for metric in (sk.accuracy_score, "precision_macro"):
        with pytest.raises(ValueError, match=r"not for 3(.|\n)*def value\(self, C\)"):
            ComplexMetricClassifier(metric=metric).fit(X, y)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "name",
    [
        "accuracy", "balanced_accuracy", "f1_macro", "f1_micro", "f1_weighted",
        "jaccard_macro", "jaccard_micro", "jaccard_weighted", "matthews_corrcoef",
        "precision_micro", "recall_macro", "recall_micro", "recall_weighted",
    ],
)  # fmt: skip
def test_a_name_of_scikit_learn_is_its_score(name, k):
    rng = new_rng(k)
    y, guess = np.append([*range(k)], rng.integers(k, size=40)), rng.integers(k, size=40)
    guess = np.append([*range(k)], guess)
    metric = get_metric(name, range(k))
    scorer = sk.get_scorer(name)
    expected = scorer._score_func(y, guess, **scorer._kwargs)
    assert metric(y, guess) == pytest.approx(expected)
    assert get_metric(f"{name}_score", range(k))(y, guess) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [ComplexMetricClassifier, MultilabelMetricClassifier])
def test_a_share_is_held_out_once(kind):
    X = new_rng(4).random((60, 2))
    y = (X[:, 0] + 0.3 * new_rng(5).random(60) > 0.6).astype(int)
    y = y if kind is ComplexMetricClassifier else np.column_stack([y, 1 - y])
    model = kind(cv=0.25).fit(X, y)
    # Of 15 rows.
    counts = 15 * model.confusion_
    assert np.allclose(counts, counts.round())
    assert np.array_equal(model.confusion_, kind(cv=0.25).fit(X, y).confusion_)
