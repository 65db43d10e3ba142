"""Class probabilities that go half the way to labels which contradict them."""

import numpy as np
import pytest
from _seeds import new_rng
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric.correction import LabelCorrection


def sample(rng, n, bent=1.0):
    """True probabilities, labels drawn from them, and what a wrong model says."""
    P = rng.dirichlet([4.0, 2.0, 1.0], size=n)
    y = (rng.random(n)[:, None] > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
    y[:3] = [0, 1, 2]
    model = P**bent
    return P, y, model / model.sum(axis=1, keepdims=True)


def reference(P, y, weights):
    """Row by row: (statistic, corrected probabilities)."""
    k = P.shape[1]
    shares = [weights[y == i].sum() for i in range(k)]
    parts = [max(range(k), key=lambda i, p=p: p[i] / shares[i]) for p in P]
    N, M, V = np.zeros((k, k)), np.zeros((k, k)), np.zeros(k)
    for p, label, w, b in zip(P, y, weights, parts, strict=True):
        N[b, label] += w
        M[b] += w * p
        V[b] += w * p[b] * (1 - p[b])
    statistic = sum((N[b, b] - M[b, b]) ** 2 / V[b] for b in range(k) if V[b] > 0)
    found = np.array(
        [p * (N[b] + M[b]) / (2 * M[b]) for p, b in zip(P, parts, strict=True)]
    )
    return statistic, found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_correction_is_that_of_the_formula(dtype):
    rng = new_rng(0)
    _, y, P = sample(rng, 500, bent=4.0)
    weights = rng.integers(0, 4, size=len(y)).astype(float)
    P = P.astype(dtype)
    statistic, expected = reference(P.astype(float), y, weights)
    assert statistic > 11.4  # of three degrees of freedom, at 1 %
    found = LabelCorrection.fit(P, y, weights)(P)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, expected, rtol=2e-5 if dtype == np.float32 else 1e-9
    )


def test_weights_are_numbers_of_examples():
    rng = new_rng(1)
    _, y, P = sample(rng, 300, bent=4.0)
    weights = rng.integers(1, 4, size=len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    weighted = LabelCorrection.fit(P, y, weights.astype(float))
    repeated = LabelCorrection.fit(P[rows], y[rows], np.ones(len(rows)))
    np.testing.assert_allclose(weighted.factors, repeated.factors)


def test_right_probabilities_are_rarely_corrected_and_wrong_ones_always():
    rng = new_rng(2)
    right = wrong = 0
    for _ in range(200):
        P, y, bent = sample(rng, 400, bent=4.0)
        ones = np.ones(len(y))
        right += LabelCorrection.fit(P, y, ones) is not None
        wrong += LabelCorrection.fit(bent, y, ones) is not None
    # Of 200 at 1 %: more than 12 have a chance of 1e-6.
    assert right <= 12
    assert wrong == 200


def test_parts_and_classes_without_examples_are_left_as_they_are():
    P = np.array([[0.9, 0.1, 0.0, 0.0], [0.8, 0.2, 0.0, 0.0]] * 50)
    y = np.array([1, 0] * 50)
    correction = LabelCorrection.fit(P, y, np.ones(100))
    np.testing.assert_array_equal(correction.factors[2:], 1.0)
    np.testing.assert_array_equal(correction.factors[:, 2:], 1.0)
    corrected = correction(P)
    assert np.isfinite(corrected).all()
    np.testing.assert_allclose(corrected.sum(axis=1), 1.0)
    # Certain, and never right: no variance, and nothing known of it.
    certain = np.eye(4)[[0] * 100]
    assert LabelCorrection.fit(certain, y, np.ones(100)) is None


def of_a_wrong_model(seed, metric, **params):
    """A fit over a model that is too sure of itself."""
    rng = new_rng(seed)
    X = rng.standard_normal((1500, 2))
    score = np.column_stack([X[:, 0] + 1.5, X[:, 1], X[:, 0] - X[:, 1] - 1.0])
    P = np.exp(score)
    P /= P.sum(axis=1, keepdims=True)
    y = (rng.random(len(X))[:, None] > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
    y[:3] = [0, 1, 2]
    inner = LogisticRegression().fit(X[:1000], y[:1000])
    inner.coef_ *= 4.0
    model = ComplexMetricClassifier(FrozenEstimator(inner), metric=metric, **params)
    return model.fit(X[:1000], y[:1000]), X, y


@pytest.mark.parametrize("metric", ["min_max", "h_mean", "micro_f1"])
def test_the_certificate_is_of_the_corrected_probabilities(metric):
    model, X, y = of_a_wrong_model(0, metric)
    assert model.label_factors_ is not None
    P = model.estimator_.predict_proba(X[:1000])
    correction = LabelCorrection.fit(P, y[:1000], np.ones(1000))
    np.testing.assert_array_equal(model.label_factors_, correction.factors)
    corrected = correction(P)
    # Of the mixture, and of random other classifiers by the same probabilities.
    C = corrected.T @ model.predict_proba(X[:1000]) / 1000
    assert model.metric_.value(C) == pytest.approx(model.objective_)
    assert model.dual_gap_ <= 1e-3
    rng = new_rng(3)
    for _ in range(200):
        rule = np.eye(3)[np.argmax(corrected * rng.dirichlet(np.ones(3)), axis=1)]
        value = model.metric_.value(corrected.T @ rule / 1000)
        assert value >= model.dual_objective_ - 1e-9


def test_what_is_asked_for_by_name_is_not_corrected():
    for confusion in ("probabilities", "labels"):
        model, *_ = of_a_wrong_model(0, "min_max", confusion=confusion)
        assert model.label_factors_ is None
        assert model.mixture_.correction is None


def test_two_classes_are_not_corrected():
    rng = new_rng(4)
    X = rng.standard_normal((200, 2))
    y = (np.abs(X[:, 0]) > 1).astype(int)
    assert ComplexMetricClassifier().fit(X, y).label_factors_ is None


def test_a_changed_correction_is_refused_when_predicting():
    model, X, *_ = of_a_wrong_model(0, "min_max")
    model.mixture_.correction.factors = np.ones((2, 2))
    with pytest.raises(ValueError, match=r"mixture_\.correction\.factors must have"):
        model.predict(X)
