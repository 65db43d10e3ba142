"""Metrics of confusion matrices: values, gradients, forms, convexity."""

import numpy as np
import pytest
from _random_confusion import OF_CONFUSION
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from sklearn_structsvm.confusion import ConfusionMetric, check_gradient, check_metric
from sklearn_structsvm.metrics import (
    METRICS,
    Balanced,
    CohenKappa,
    FalsePositiveRate,
    FBeta,
    GMean,
    HMean,
    Jaccard,
    LinearLoss,
    MacroF1,
    MatthewsCorrelation,
    MicroF1,
    MinMax,
    Ordinal,
    Precision,
    QMean,
    Recall,
    SelectionRate,
    Specificity,
    ZeroOne,
)

COSTS = [[0.0, 1.0, 5.0], [2.0, -1.0, 1.0], [4.0, 0.5, 0.0]]


def is_of_any_classes(kind):
    try:
        kind().resolve(np.arange(3))
    except ValueError:
        return False
    return True


OF_ANY_CLASSES = [
    *(METRICS[name]() for name in OF_CONFUSION if is_of_any_classes(METRICS[name])),
    Jaccard("macro"),
    Jaccard("micro"),
    CohenKappa("linear"),
    CohenKappa("quadratic"),
]
OF_THREE = [
    *OF_ANY_CLASSES,
    LinearLoss(COSTS),
    MicroF1(default_label=2),
    FBeta(0.5, pos_label=1),
    Jaccard(pos_label=0),
    Recall(label=2).resolve(range(3)),
    Precision(label=1).resolve(range(3)),
    Specificity(label=0).resolve(range(3)),
    FalsePositiveRate(label=1).resolve(range(3)),
    SelectionRate(label=2).resolve(range(3)),
]
OF_TWO = [
    *OF_ANY_CLASSES,
    *(METRICS[name]() for name in OF_CONFUSION if not is_of_any_classes(METRICS[name])),
    Precision(label=0),
    SelectionRate(label=0),
    FBeta(2.0),
    FBeta(pos_label=0),
]
NOT_CONVEX = [metric for metric in OF_THREE if not metric.convex]


def random_confusion(rng, priors, concentration=1.0):
    """A confusion matrix (or tensor) of given row sums."""
    priors = np.asarray(priors)
    rows = rng.gamma(concentration, size=(*priors.shape, priors.shape[-1])) + 1e-9
    return rows / rows.sum(axis=-1, keepdims=True) * priors[..., None]


def sample(rng, n=60, k=3, labels=None):
    """Labels, predictions that are often right, and weights with zeros."""
    y = rng.integers(k, size=n)
    y[:k] = np.arange(k)
    guess = np.where(rng.random(n) < 0.6, y, rng.integers(k, size=n))
    names = np.arange(k) if labels is None else np.asarray(labels)
    return names[y], names[guess], rng.integers(4, size=n) / 2.0


@pytest.mark.parametrize(
    ("metric", "k"),
    [
        *((metric, 3) for metric in OF_THREE),
        *((metric, 2) for metric in OF_TWO),
        *((metric, 7) for metric in OF_ANY_CLASSES),
    ],
    ids=str,
)
def test_every_claim_of_a_metric_holds_for_any_number_of_classes(metric, k):
    check_metric(metric.resolve(np.arange(k)), k, n_trials=10 if k == 7 else 40)


@pytest.mark.parametrize("metric", [FBeta(), Jaccard()], ids=str)
@pytest.mark.parametrize("k", [1, 3])
def test_a_metric_of_one_class_asks_which_unless_there_are_two(metric, k):
    with pytest.raises(ValueError, match="set pos_label to one of"):
        metric.resolve(np.arange(k))


@given(seed=st.integers(0, 10_000), k=st.integers(2, 5))
def test_functions_of_recalls_are_their_formulas(seed, k):
    rng = new_rng(seed)
    C = random_confusion(rng, rng.dirichlet(np.ones(k)))
    r = [C[i, i] / sum(C[i]) for i in range(k)]
    product = 1.0
    for rate in r:
        product *= rate
    assert Balanced().value(C) == pytest.approx(1 - sum(r) / k)
    assert GMean().value(C) == pytest.approx(1 - product ** (1 / k))
    assert HMean().value(C) == pytest.approx(1 - k / sum(1 / rate for rate in r))
    assert QMean().value(C) == pytest.approx((sum((1 - x) ** 2 for x in r) / k) ** 0.5)
    assert MinMax().value(C) == pytest.approx(max(1 - rate for rate in r))
    assert Ordinal().value(C) == pytest.approx(
        sum(abs(i - j) * C[i, j] for i in range(k) for j in range(k))
    )


@pytest.mark.parametrize("metric", NOT_CONVEX, ids=str)
def test_a_metric_that_does_not_claim_convexity_is_not_convex(metric):
    assert not metric.convex
    metric = metric.resolve(np.arange(3))
    rng = new_rng(0)
    rises = []
    for _ in range(300):
        priors = rng.dirichlet(np.ones(3))
        C, other = (random_confusion(rng, priors, 0.3) for _ in range(2))
        chord = (metric.value(C) + metric.value(other)) / 2
        rises.append(metric.value((C + other) / 2) - chord)
    assert max(rises) > 1e-3


@pytest.mark.parametrize(
    "metric",
    [MacroF1(), Jaccard("macro"), MacroF1("weighted"), Jaccard("weighted"),
     MatthewsCorrelation()],
    ids=str,
)  # fmt: skip
def test_macro_averages_and_correlations_are_not_even_quasi_convex(metric):
    rng = new_rng(0)
    rises = []
    for _ in range(3000):
        C, other = (random_confusion(rng, np.full(4, 0.25), 0.1) for _ in range(2))
        ends = max(metric.value(C), metric.value(other))
        rises.append(metric.value((C + other) / 2) - ends)
    assert max(rises) > 1e-3


@given(seed=st.integers(0, 10_000))
@pytest.mark.parametrize(
    "metric", [MicroF1(), FBeta(pos_label=1), Jaccard("micro"), CohenKappa()], ids=str
)
def test_a_ratio_is_between_its_values_at_the_ends_of_a_segment(metric, seed):
    metric = metric.resolve(np.arange(3))
    rng = new_rng(seed)
    priors = rng.dirichlet(np.ones(3))
    ends = [random_confusion(rng, priors) for _ in range(2)]
    t = rng.uniform()
    low, high = sorted(metric.value(C) for C in ends)
    assert low - 1e-12 <= metric.value(t * ends[0] + (1 - t) * ends[1]) <= high + 1e-12


@pytest.mark.parametrize("metric", [*OF_THREE, MinMax()], ids=str)
def test_an_absent_class_is_left_out_of_value_gradient_and_forms(metric):
    metric = metric.resolve(np.arange(3))
    C = random_confusion(new_rng(1), [0.7, 0.3, 0.0])
    C[:, 2] = 0.0
    C[:2, :2] /= C.sum()
    priors = C.sum(axis=1)
    G, h = metric.tangent(C)
    assert np.isfinite(G).all() and np.isfinite(h)
    assert np.isfinite(metric.value(C))
    pieces = metric.pieces(priors)
    if pieces is not None:
        linear = np.tensordot(pieces[0], C, axes=2) + pieces[1]
        assert linear.max() == pytest.approx(metric.value(C))
    if isinstance(metric, (Balanced, GMean, HMean, QMean, MinMax)):
        assert metric.value(C) == pytest.approx(metric.value(C[:2, :2]))


@pytest.mark.parametrize(
    "metric", [Balanced(), GMean(), HMean(), QMean(), MinMax()], ids=str
)
def test_tangents_at_the_border_stay_below_and_finite(metric):
    rng = new_rng(2)
    priors = np.array([0.5, 0.3, 0.2])
    for zeros in ([0], [0, 1], [0, 1, 2]):
        C = random_confusion(rng, priors)
        for i in zeros:
            C[i, i] = 0.0
        C *= (priors / C.sum(axis=1))[:, None]
        G, h = metric.tangent(C)
        assert np.isfinite(G).all() and np.abs(G).max() < 1e6
        for concentration in (0.05, 0.3, 1.0, 5.0):
            for _ in range(50):
                other = random_confusion(rng, priors, concentration)
                assert np.vdot(G, other) + h <= metric.value(other) + 1e-12


@pytest.mark.parametrize("metric", OF_THREE, ids=str)
def test_gradients_are_finite_at_every_corner(metric):
    metric = metric.resolve(np.arange(3))
    priors = np.array([0.6, 0.3, 0.1])
    for corner in np.ndindex(3, 3, 3):
        C = np.zeros((3, 3))
        C[np.arange(3), corner] = priors
        assert np.isfinite(metric.value(C))
        G, h = metric.tangent(C)
        assert np.isfinite(G).all() and np.isfinite(h)


def test_differences_are_a_gradient_where_entries_are_zero_too():
    class Cubic(ConfusionMetric):
        def value(self, C):
            assert (C >= 0.0).all()
            return float((C**3).sum() + C[0, 0] * C[1, 2])

        def exact(self, C):
            G = 3.0 * C**2
            G[0, 0] += C[1, 2]
            G[1, 2] += C[0, 0]
            return G - np.take_along_axis(G, C.argmax(axis=1)[:, None], axis=1)

    C = np.array([[0.4, 0.0, 0.1], [0.0, 0.3, 0.0], [0.1, 0.1, 0.0]])
    np.testing.assert_allclose(Cubic().gradient(C), Cubic().exact(C), atol=1e-9)


def test_a_metric_of_groups_gets_the_matrices_of_the_groups():
    class WorstGroup(ConfusionMetric):
        convex = needs_groups = True

        def value(self, C):
            errors = 1 - C.trace(axis1=1, axis2=2) / C.sum(axis=(1, 2))
            return float(errors.max())

    metric = WorstGroup()
    check_metric(metric, 3, n_groups=4)
    y, guess, _ = sample(new_rng(0))
    groups = np.arange(len(y)) % 3
    worst = min(sk.accuracy_score(y[groups == a], guess[groups == a]) for a in range(3))
    score = metric(y, guess, sensitive_features=groups)
    assert score == pytest.approx(worst)
    assert metric(y, guess, sensitive_features=groups, y_baseline=y) == score
    with pytest.raises(ValueError, match="needs sensitive_features"):
        metric(y, guess)


def claiming(base, **methods):
    """Of a subclass with other methods."""
    return type("Wrong", (base,), methods)()


FALSE_CLAIMS = {
    "gradient of Wrong is wrong at entry": claiming(
        GMean, gradient=lambda self, C: 1.1 * GMean.gradient(self, C)
    ),
    r"must have shape \(2, 2\); got shape \(2,\)": claiming(
        GMean, gradient=lambda self, C: np.zeros(2)
    ),
    "ratio of Wrong gives": claiming(
        FBeta,
        ratio=lambda self, priors: (FBeta.ratio(self, priors)[0], np.eye(2)),
        value=lambda self, C: FBeta().value(C),
        gradient=lambda self, C: FBeta().gradient(C),
    ),
    "depends on more entries": claiming(
        MicroF1, entries=lambda self, n_classes: np.eye(n_classes, dtype=bool)
    ),
    "tangent of Wrong is not below": claiming(
        QMean, tangent=lambda self, C: (QMean.tangent(self, C)[0], 1.0)
    ),
}


@pytest.mark.parametrize("message", FALSE_CLAIMS)
def test_checks_find_false_claims(message):
    with pytest.raises(ValueError, match=message):
        # Of two classes nothing but the diagonal matters to micro-F1.
        check_metric(FALSE_CLAIMS[message], 3 if "entries" in message else 2)


def test_checks_refuse_what_is_no_number_and_no_matrix():
    for name in ("n_classes", "n_groups", "n_trials"):
        with pytest.raises(TypeError, match=f"{name} must be an integer"):
            check_metric(QMean(), **{name: 2.0})
    for C, words in (
        ([[0.5], [0.2, 0.3]], "C must be an array"),
        (np.full((2, 2, 2), 0.125), r"C must have shape \(k, k\); got"),
        (1.0, r"C must have shape \(k, k\); got"),
        (np.full((2, 3), 0.1), "C must have as many rows as columns"),
    ):
        with pytest.raises(ValueError, match=words):
            check_gradient(QMean(), C)


@pytest.mark.parametrize("labels", [None, ["b", "c", "a"], [True, False]], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_agree_with_scikit_learn(labels, weighted):
    k = 3 if labels is None else len(labels)
    y, guess, weights = sample(new_rng(3), k=k, labels=labels)
    s = {"sample_weight": weights if weighted else None}
    one = y[1]
    others = sorted(set(y))[1:]
    jaccard, f1 = sk.jaccard_score, sk.f1_score
    beta = {"labels": [one], "average": "macro", **s}
    pairs = [
        (ZeroOne(), sk.accuracy_score(y, guess, **s)),
        (Balanced(), sk.balanced_accuracy_score(y, guess, **s)),
        (MinMax(), sk.recall_score(y, guess, average=None, **s).min()),
        (MacroF1(), f1(y, guess, average="macro", **s)),
        (MicroF1(), f1(y, guess, average="micro", labels=others, **s)),
        (FBeta(0.3, pos_label=one), sk.fbeta_score(y, guess, beta=0.3, **beta)),
        (FBeta(1, pos_label=one), f1(y, guess, **beta)),
        (Jaccard(pos_label=one), jaccard(y, guess, **beta)),
        (Jaccard("macro"), jaccard(y, guess, average="macro", **s)),
        (Jaccard("micro"), jaccard(y, guess, average="micro", **s)),
        (MatthewsCorrelation(), sk.matthews_corrcoef(y, guess, **s)),
        (CohenKappa(), sk.cohen_kappa_score(y, guess, **s)),
        (CohenKappa("linear"), sk.cohen_kappa_score(y, guess, weights="linear", **s)),
        (
            CohenKappa("quadratic"),
            sk.cohen_kappa_score(y, guess, weights="quadratic", **s),
        ),
    ]
    for metric, expected in pairs:
        assert metric(y, guess, **s) == pytest.approx(expected, abs=1e-12), metric


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_averages_agree_with_scikit_learn_on_classes_that_are_only_predicted(average):
    y, guess = ["a", "a", "b", "b", "b"], ["a", "c", "b", "a", "b"]
    f1 = sk.f1_score(y, guess, average=average)
    jaccard = sk.jaccard_score(y, guess, average=average)
    assert MacroF1(average)(y, guess) == pytest.approx(f1)
    assert Jaccard(average)(y, guess) == pytest.approx(jaccard)
    assert MacroF1(average)(y, guess, labels=list("abcd")) == pytest.approx(f1)


def test_terms_of_a_macro_average_are_those_of_the_classes_in_the_sample():
    priors = np.array([0.5, 0.5, 0.0])
    C = np.array([[0.4, 0.1, 0.0], [0.1, 0.4, 0.0], [0.0, 0.0, 0.0]])
    terms = MacroF1().ratio_terms(priors)
    assert len(terms) == 2
    mean = sum(w * np.vdot(A, C) / np.vdot(B, C) for w, A, B in terms)
    assert mean == pytest.approx(MacroF1().value(C))


@pytest.mark.parametrize("metric", [Balanced(), GMean(), HMean(), QMean(), MinMax()])
def test_a_recall_that_rounding_left_below_0_is_0(metric):
    # As between two matrices that both have none of a class right.
    C = np.array([[0.0, 0.4], [0.1, 0.5]])
    below = C - np.array([[1e-17, 0.0], [0.0, 0.0]])
    assert metric.value(below) == metric.value(C)
