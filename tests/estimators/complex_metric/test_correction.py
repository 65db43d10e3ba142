"""Class probabilities that are calibrated, and go to what the labels say in parts."""

import warnings

import numpy as np
import pytest
from _seeds import new_rng
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.confusion.smoothing import fit_softmax
from sklearn_structsvm.estimators.complex_metric.correction import (
    LabelCorrection,
    calibrated,
)


def sample(rng, n, bent=1.0):
    """True probabilities, labels drawn from them, and what a wrong model says."""
    P = rng.dirichlet([4.0, 2.0, 1.0], size=n)
    y = (rng.random(n)[:, None] > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
    y[:3] = [0, 1, 2]
    model = P**bent
    return P, y, model / model.sum(axis=1, keepdims=True)


def reference_counts(N, M, own):
    """Error by error: how well all others of its class say in which part it is."""
    k = len(own)
    wanted = np.array(
        [[own[i] * N[b, i] + (1 - own[i]) * M[b, i] for i in range(k)] for b in range(k)]
    )
    kept = wanted.copy()
    best = -np.inf
    for t in np.linspace(0, 1, 21):
        counts, fit = wanted.copy(), 0.0
        for i in range(k):
            others = [b for b in range(k) if b != i]
            share = t * own[i]
            all_labels, by_model = wanted[others, i].sum(), M[others, i].sum()

            def divided(b, N_bi, i=i, share=share, scale=all_labels / by_model):
                return share * N_bi + (1 - share) * M[b, i] * scale

            for b in others:
                counts[b, i] = divided(b, N[b, i])
            for b in others:
                if N[b, i]:
                    left = divided(b, N[b, i] - min(N[b, i], 1))
                    rest = sum(counts[c, i] for c in others if c != b)
                    fit += N[b, i] * np.log(left / (left + rest))
        if fit > best:
            best, kept = fit, counts
    return kept


def reference(P, y, weights, floor, calibration):
    """Row by row: corrected probabilities, of a calibration."""
    k = P.shape[1]
    numbers = [weights[y == i].sum() for i in range(k)]
    q = np.maximum(P, floor) ** calibration[0] * np.exp(calibration[1:])
    q /= q.sum(axis=1, keepdims=True)
    parts = [max(range(k), key=lambda i, p=p: p[i] / numbers[i]) for p in q]
    N, M = np.zeros((k, k)), np.zeros((k, k))
    for p, label, w, b in zip(q, y, weights, parts, strict=True):
        N[b, label] += w
        M[b] += w * p
    effective = [n**2 / (weights[y == i] ** 2).sum() for i, n in enumerate(numbers)]
    wanted = reference_counts(N, M, [n / (n + 30) for n in effective])
    found = np.array([p * wanted[b] / M[b] for p, b in zip(q, parts, strict=True)])
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_correction_is_that_of_the_formula(dtype):
    rng = new_rng(0)
    _, y, P = sample(rng, 500, bent=4.0)
    weights = rng.integers(0, 4, size=len(y)).astype(float)
    P = P.astype(dtype)
    correction = LabelCorrection.fit(P, y, weights)
    weights *= weights.sum() / (weights @ weights)
    # The most probable of the floors, which is half of the least probability at least.
    losses = {
        max(P.astype(float).min() / 2, floor): 0.0
        for floor in (1e-9, 1e-12, 1e-15, 1e-20, 1e-30, 1e-60, 1e-100)
    }
    shares = np.bincount(y, weights=weights) / weights.sum()
    for floor in losses:
        scores = np.log(np.maximum(P, floor))
        losses[floor] = fit_softmax(scores, y, weights, shares, 30.0)[1]
    # Of floors that are as probable but for rounding, any is right.
    floor = min(losses, key=lambda own: abs(np.log(own / correction.floor)))
    assert correction.floor == pytest.approx(floor, abs=0.0)
    rounding = 1e-4 if dtype == np.float32 else 1e-9
    assert losses[floor] == pytest.approx(min(losses.values()), rel=rounding)
    expected = reference(P.astype(float), y, weights, floor, correction.calibration)
    found = correction(P)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, expected, rtol=2e-4 if dtype == np.float32 else 1e-9
    )


def test_a_calibration_finds_back_what_was_bent():
    P, y, bent = sample(new_rng(5), 20_000, bent=3.0)
    a, *b = LabelCorrection.fit(bent, y, np.ones(len(y))).calibration
    assert a == pytest.approx(1 / 3, abs=0.05)
    assert np.ptp(b) < 0.2
    # All of them the same in the end, and not far from the truth.
    corrected = LabelCorrection.fit(bent, y, np.ones(len(y)))(bent)
    assert np.abs(corrected - P).mean() < 0.02


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_tiny_probabilities_say_is_not_cut_off(dtype):
    P, y, _ = sample(new_rng(6), 20_000)
    bent = 15.0 if dtype == np.float32 else 60.0
    model = (P / P.max(axis=1, keepdims=True)).astype(dtype) ** dtype(bent)
    model /= model.sum(axis=1, keepdims=True)
    correction = LabelCorrection.fit(model, y, np.ones(len(y)))
    assert np.finfo(dtype).tiny <= correction.floor < 1e-12
    assert np.abs(correction(model) - P).mean() < 0.02


def test_few_labels_hardly_bend_the_rule_of_balanced_costs():
    rng = new_rng(7)
    shares = np.array([0.8, 0.15, 0.05])
    changed = []
    for _ in range(20):
        P, y, _ = sample(rng, 60)
        P *= shares
        model = P**0.3 * shares**0.7
        model /= model.sum(axis=1, keepdims=True)
        y = (rng.random(60)[:, None] > (P / P.sum(1)[:, None]).cumsum(1)[:, :-1]).sum(1)
        y[:3] = 0, 1, 2
        correction = LabelCorrection.fit(model, y, np.ones(60))
        q = calibrated(model, correction.floor, correction.calibration)
        rules = [np.argmax(p / np.bincount(y), axis=1) for p in (model, q)]
        changed.append(np.mean(rules[0] != rules[1]))
    assert np.mean(changed) < 0.1


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e9, 0.0])
def test_weights_count_whatever_their_scale_and_those_of_zero_not_at_all(scale):
    rng = new_rng(1)
    _, y, P = sample(rng, 300, bent=4.0)
    weights = rng.integers(0, 4 if scale else 2, size=len(y)).astype(float)
    once = LabelCorrection.fit(P, y, weights)
    rows = weights > 0.0
    again = (
        LabelCorrection.fit(P, y, weights * scale)
        if scale
        else LabelCorrection.fit(P[rows], y[rows], np.ones(rows.sum()))
    )
    np.testing.assert_allclose(again.factors, once.factors, rtol=1e-5)
    np.testing.assert_allclose(again.calibration, once.calibration, atol=1e-5)


def test_parts_and_classes_without_examples_are_left_as_they_are():
    P = np.array([[0.9, 0.1, 0.0, 0.0], [0.8, 0.2, 0.0, 0.0]] * 50)
    y = np.array([1, 0] * 50)
    correction = LabelCorrection.fit(P, y, np.ones(100))
    np.testing.assert_array_equal(correction.factors[2:], 1.0)
    corrected = correction(P)
    assert np.isfinite(corrected).all()
    np.testing.assert_allclose(corrected.sum(axis=1), 1.0)
    certain = np.eye(4)[[0] * 100]
    corrected = LabelCorrection.fit(certain, y, np.ones(100))(certain)
    assert np.isfinite(corrected).all()
    # Half of them are right, which it finds out.
    np.testing.assert_allclose(corrected[:, 0], 0.5, atol=0.25)


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


def test_what_is_asked_for_by_name_is_not_corrected_nor_are_two_classes():
    for confusion in ("probabilities", "labels"):
        model, X, y = of_a_wrong_model(0, "min_max", confusion=confusion)
        assert model.label_factors_ is None
        assert model.mixture_.correction is None
    assert ComplexMetricClassifier().fit(X, y > 0).label_factors_ is None


def test_classes_of_few_examples_are_named_with_the_remedy():
    rng = new_rng(8)
    X = rng.standard_normal((60, 2))
    y = np.repeat(["a", "b", "c"], [31, 20, 9])
    model = ComplexMetricClassifier(metric="balanced")
    with pytest.warns(UserWarning, match=r"have the label\(s\) 'c': .*lmo='weighted'"):
        model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Two classes, and probabilities that are given or not used.
        model.fit(X, y == "c")
        inner = LogisticRegression().fit(X, y)
        ComplexMetricClassifier(FrozenEstimator(inner), metric="balanced").fit(X, y)
        model.set_params(solver_options__lmo="weighted").fit(X, y)


def test_a_changed_correction_is_refused_when_predicting():
    model, X, *_ = of_a_wrong_model(0, "min_max")
    model.mixture_.correction.factors = np.ones((2, 2))
    with pytest.raises(ValueError, match=r"mixture_\.correction\.factors must have"):
        model.predict(X)
