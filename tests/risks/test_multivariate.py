"""Losses of the whole sample, against all labelings and all pairs written out."""

from itertools import product

import numpy as np
import pytest
from _seeds import new_rng
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score

from sklearn_structsvm import metrics
from sklearn_structsvm.risks import BinaryHinge, ConfusionHinge, RocAucHinge, TopKHinge
from sklearn_structsvm.risks._tables import best_table
from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.batch.sublbfgs import run_sublbfgs

METRICS = {
    "f1": metrics.FBeta(),
    "f2": metrics.FBeta(2.0),
    "f_half": metrics.FBeta(0.5),
    "f1_of_negative": metrics.FBeta(pos_label=0),
    "jaccard": metrics.Jaccard(),
    "micro_f1": metrics.MicroF1(),
    "kappa": metrics.CohenKappa(),
    "zero_one": metrics.ZeroOne(),
    "costs": metrics.LinearLoss([[0.0, 1.0], [3.0, 0.0]]),
}
TOP = {"break_even": None, "few": 2, "many": -2}
KINDS = [*METRICS, *TOP, "roc_auc"]


def labels(rng, n):
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return y


def make(kind, X, y, weights=None, **options):
    if kind == "roc_auc":
        return RocAucHinge(X, y, weights, **options)
    if kind in METRICS:
        return ConfusionHinge(X, y, METRICS[kind].resolve([0, 1]), weights, **options)
    units = np.ones(len(y)) if weights is None else np.asarray(weights)
    k = TOP[kind]
    if k is not None and k < 0:
        # More than there are positives.
        k = min(int(units @ y) - k, int(units.sum()))
    return TopKHinge(X, y, k, weights, **options)


def table(y, other, weights=None):
    """The confusion matrix, whose entries sum to 1."""
    C = np.zeros((2, 2))
    np.add.at(C, (np.asarray(y), np.asarray(other)), 1.0 if weights is None else weights)
    return C / C.sum()


def unit_scale(metric, y):
    """σ, the larger of ψ's derivatives by a mistake where all is right, by hand."""
    n, P, N = len(y), int(np.sum(y)), int(np.sum(1 - y))
    if isinstance(metric, metrics.FBeta):
        count = N if metric.pos_label == 0 else P
        return max(metric.beta**2, 1.0) / ((1.0 + metric.beta**2) * count)
    if isinstance(metric, metrics.Jaccard):
        return 1.0 / P
    if isinstance(metric, metrics.MicroF1):
        return 1.0 / (2.0 * P)
    if isinstance(metric, metrics.LinearLoss):
        return 3.0 / n
    if isinstance(metric, metrics.CohenKappa):
        # 1 - κ is the error over that of chance, which is 2 P N / n² at the truth.
        return n / (2.0 * P * N)
    return 1.0 / n


def listed_lines(risk, kind, y):
    """(offsets, coefficients) of all labelings, or of all sets of pairs' lines."""
    n = len(y)
    P = int(np.sum(y))
    if kind == "roc_auc":
        pairs = [(i, j) for i in np.flatnonzero(y) for j in np.flatnonzero(1 - y)]
        offsets, rows = [], []
        for chosen in product((0, 1), repeat=len(pairs)):
            B = np.zeros(n)
            for used, (i, j) in zip(chosen, pairs, strict=True):
                B[i] -= used / len(pairs)
                B[j] += used / len(pairs)
            offsets.append(sum(chosen) / len(pairs))
            rows.append(B)
        return np.array(offsets), np.array(rows)
    every = np.array(list(product((0, 1), repeat=n)))
    if kind in METRICS:
        metric = METRICS[kind].resolve([0, 1])
        psi = [metric.value(table(y, other)) for other in every]
        return np.array(psi), unit_scale(METRICS[kind], y) * (every - y)
    k = risk.k
    every = every[every.sum(axis=1) == k]
    offsets, rows = [], []
    for other in every:
        missed, false = (y == 1) & (other == 0), (y == 0) & (other == 1)
        e = min(missed.sum(), false.sum())
        B = e * (false / max(false.sum(), 1) - missed / max(missed.sum(), 1))
        offsets.append(e / k)
        rows.append(B / k)
        assert missed.sum() - e == max(P - k, 0) or e == 0
    return np.array(offsets), np.array(rows)


def draws(rng, n):
    yield rng.standard_normal(n)
    yield rng.integers(-1, 2, n).astype(float)
    yield np.zeros(n)
    yield 5.0 * rng.standard_normal(n)


@pytest.mark.parametrize("kind", KINDS)
def test_the_oracle_finds_the_maximum_over_all_labelings(kind):
    rng = new_rng(0)
    for n in (2, 4, 6) if kind == "roc_auc" else (2, 4, 6, 10):
        y = labels(rng, n)
        risk = make(kind, np.zeros((n, 1)), y)
        offsets, rows = listed_lines(risk, kind, y)
        for z in draws(rng, n):
            values = offsets + rows @ z
            assert risk.value(z[:, None]) == pytest.approx(values.max(), abs=1e-13)
            for d in draws(rng, n):
                B, offset = risk.plane(z[:, None], d[:, None])
                # Its own height, and the steepest of those that are as high.
                height = offset + B[:, 0] @ z
                assert height == pytest.approx(values.max(), abs=1e-11)
                tied = values >= values.max() - 1e-11
                assert B[:, 0] @ d == pytest.approx((rows @ d)[tied].max(), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_tables_are_as_good_as_all_of_them(metric):
    rng = new_rng(2)
    for _ in range(20):
        y = labels(rng, 40)
        risk = ConfusionHinge(np.zeros((40, 1)), y, metric.resolve([0, 1]))
        z = rng.standard_normal(40) * rng.choice([0.1, 1.0, 10.0])
        low, top = np.sort(z[y == 1]), np.sort(z[y == 0])[::-1]
        P, N = len(low), len(top)
        best = -np.inf
        for m, b in product(range(P + 1), range(N + 1)):
            C = np.array([[N - b, b], [m, P - m]]) / 40
            gain = risk.scale * (top[:b].sum() - low[:m].sum())
            best = max(best, risk.metric.value(C) + gain)
        assert risk.value(z[:, None]) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_planes_touch_the_risk_and_never_exceed_it(kind):
    rng = new_rng(3)
    for n in (3, 50):
        y, X = labels(rng, n), rng.standard_normal((n, 3))
        risk = make(kind, X, y, rng.integers(1, 4, n).astype(float), bias=2.0)
        w = rng.standard_normal(risk.n_weights)
        Z = risk.scores(w)
        for along in (None, risk.scores(rng.standard_normal(risk.n_weights))):
            B, offset = risk.plane(Z, along)
            g = risk.gradient(B)
            if kind not in METRICS:
                w = np.append(w[:-1], 0.0)
                Z = risk.scores(w)
                B, offset = risk.plane(Z)
                g = risk.gradient(B)
                assert g[-1] == 0.0
            assert offset + g @ w == pytest.approx(risk.value(Z), rel=1e-12)
            for scale in np.geomspace(1e-3, 1e3, 30):
                v = w + scale * rng.standard_normal(len(w))
                height = risk.value(risk.scores(v))
                assert height >= 0.0
                size = 1e-12 * (1.0 + abs(offset) + np.abs(g) @ np.abs(v))
                assert height >= offset + g @ v - size


@pytest.mark.parametrize("kind", KINDS)
def test_whole_weights_are_rows_that_occur_so_often(kind):
    rng = new_rng(4)
    y, X = labels(rng, 15), rng.integers(-1, 2, (15, 2)).astype(float)
    counts = rng.integers(0, 4, 15)
    counts[:2] = 1, 2
    many = np.repeat(np.arange(15), counts)
    weighted = make(kind, X, y, counts)
    repeated = make(kind, X[many], y[many])
    for _ in range(10):
        w, d = rng.standard_normal((2, 2))
        Z, D = weighted.scores(w), weighted.scores(d)
        value = repeated.value(repeated.scores(w))
        assert weighted.value(Z) == pytest.approx(value, rel=1e-12)
        B, offset = weighted.plane(Z, D)
        B2, offset2 = repeated.plane(repeated.scores(w), repeated.scores(d))
        assert offset == pytest.approx(offset2)
        np.testing.assert_allclose(
            weighted.gradient(B), repeated.gradient(B2), atol=1e-12
        )


def test_the_error_rate_has_the_hinge_of_every_row():
    rng = new_rng(5)
    for class_weight in (None, [0.3, 2.0]):
        y, X = labels(rng, 30), rng.standard_normal((30, 3))
        shares = np.ones(2) if class_weight is None else np.array(class_weight)
        risk = ConfusionHinge(
            X, y, metrics.ZeroOne().resolve([0, 1]), class_weight=class_weight, bias=1.0
        )
        rows = BinaryHinge(X, y, shares[y], bias=1.0)
        for _ in range(10):
            w, d = rng.standard_normal((2, 4))
            Z, D = risk.scores(w), risk.scores(d)
            assert risk.value(Z) == pytest.approx(rows.value(Z), rel=1e-13)
            steps = [one.line_search(Z, D, w @ d, d @ d, 0.01) for one in (risk, rows)]
            assert steps[0] == pytest.approx(steps[1], rel=1e-6, abs=1e-12)


def test_class_weights_are_those_of_the_counts():
    rng = new_rng(6)
    y, X = labels(rng, 8), np.zeros((8, 1))
    shares = np.array([0.5, 3.0])
    metric = metrics.FBeta().resolve([0, 1])
    risk = ConfusionHinge(X, y, metric, class_weight=shares)
    P = shares[1] * y.sum()
    for z in draws(rng, 8):
        best = -np.inf
        for other in product((0, 1), repeat=8):
            gain = (shares[y] * (np.array(other) - y)) @ z / (2.0 * P)
            best = max(best, metric.value(table(y, other, shares[y])) + gain)
        assert risk.value(z[:, None]) == pytest.approx(best)


def test_the_area_has_the_hinge_of_every_pair():
    rng = new_rng(7)
    for n in (2, 30, 200):
        y, X = labels(rng, n), rng.standard_normal((n, 2))
        weights = rng.random(n) + 0.1
        risk = RocAucHinge(X, y, weights)
        for z in draws(rng, n):
            i, j = np.nonzero((y[:, None] == 1) & (y[None, :] == 0))
            pairs = weights[i] * weights[j]
            hinges = np.maximum(0.0, 1.0 - z[i] + z[j])
            expected = pairs @ hinges / pairs.sum()
            assert risk.value(z[:, None]) == pytest.approx(expected, rel=1e-12)
            assert expected >= 1.0 - roc_auc_score(y, z, sample_weight=weights) - 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_the_risk_is_nowhere_below_the_loss_of_the_predictions(kind):
    rng = new_rng(8)
    for _ in range(20):
        y = labels(rng, 25)
        risk = make(kind, np.zeros((25, 1)), y)
        z = rng.standard_normal(25)
        if kind in METRICS:
            loss = METRICS[kind].resolve([0, 1])(y, (z > 0).astype(int), labels=[0, 1])
            loss = loss if kind == "costs" else 1.0 - loss
        elif kind == "roc_auc":
            loss = 1.0 - roc_auc_score(y, z)
        else:
            k, hits = risk.k, y[np.argsort(-z)[: risk.k]].sum()
            np.testing.assert_allclose(risk.above(z).sum(), k / 25)
            loss = (min(k, y.sum()) - hits) / k
        assert risk.value(z[:, None]) >= loss - 1e-12


def on_line(steps, square, heights, slopes):
    """A quadratic of these three coefficients, and the highest of the lines."""
    steps = np.asarray(steps)
    most = (heights + np.outer(steps, slopes)).max(axis=1)
    return square[0] + square[1] * steps + square[2] * steps**2 + most


@pytest.mark.parametrize("kind", KINDS)
def test_the_line_search_ends_at_the_minimum_over_all_lines(kind):
    rng = new_rng(10)
    for lam in (1e-3, 0.1, 10.0):
        n = 6
        y, X = labels(rng, n), rng.standard_normal((n, 2))
        risk = make(kind, X, y)
        offsets, rows = listed_lines(risk, kind, y)
        w, d = rng.standard_normal((2, 2))
        Z, D = risk.scores(w), risk.scores(d)
        heights, slopes = offsets + rows @ Z[:, 0], rows @ D[:, 0]
        lines = np.unique(np.round(np.column_stack([heights, slopes]), 14), axis=0)
        heights, slopes = lines.T

        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = (heights[:, None] - heights) / (slopes - slopes[:, None])
        bottoms = -(slopes + lam * (w @ d)) / (lam * (d @ d))
        steps = np.concatenate([[0.0], crossings.ravel(), bottoms])
        steps = steps[np.isfinite(steps) & (steps >= 0.0)]
        square = lam * np.array([w @ w, 2.0 * w @ d, d @ d]) / 2.0
        least = on_line(steps, square, heights, slopes).min()
        for start in (1e-3, 1.0, 1e3):
            step = risk.line_search(Z, D, w @ d, d @ d, lam, start=start)
            value = on_line([step], square, heights, slopes)[0]
            assert value == pytest.approx(least, rel=1e-12)
        assert risk.line_search(Z, D, w @ d, d @ d, lam, largest=0.0) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_holds_and_the_optimum_is_that_of_all_planes(kind):
    rng = new_rng(11)
    n, lam = 5, 0.1
    y, X = labels(rng, n), rng.standard_normal((n, 2))
    risk = make(kind, X, y)
    offsets, rows = listed_lines(risk, kind, y)
    planes = rows @ X
    # min λ/2 ||w||² + ξ over ξ >= planes w + offsets, by sequential programming.
    peer = minimize(
        lambda v: 0.5 * lam * v[:2] @ v[:2] + v[2],
        np.append(np.zeros(2), offsets.max()),
        jac=lambda v: np.append(lam * v[:2], 1.0),
        constraints={
            "type": "ineq",
            "fun": lambda v: v[2] - planes @ v[:2] - offsets,
            "jac": lambda v: np.column_stack([-planes, np.ones(len(planes))]),
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    solvers = [run_bmrm, run_sublbfgs]
    for options in ({}, {"line_search": False}, {"hybrid": True}):
        result = solvers["hybrid" in options](risk, lam, tol=1e-9, **options)
        w = result.solution
        objective = 0.5 * lam * w @ w + (offsets + planes @ w).max()
        assert result.objective == pytest.approx(objective, abs=1e-12)
        assert result.dual_objective <= peer.fun + 1e-7
        assert result.objective == pytest.approx(peer.fun, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_and_many_ties(kind):
    rng = new_rng(13)
    n = 5000
    y = (rng.random(n) < 0.05).astype(int)
    X = rng.integers(-1, 2, (n, 3)) + 1.0 * y[:, None]
    result = run_sublbfgs(make(kind, X, y), 1e-3, tol=1e-3, max_iter=300, hybrid=True)
    assert result.status == "converged"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_numbers_write_nowhere_else(kind, value):
    risk = make(kind, np.zeros((5, 1)), np.array([0, 1, 0, 1, 1]))
    Z = np.full((5, 1), value)
    around = np.zeros((7, 1))
    with np.errstate(invalid="ignore"):
        risk.plane(Z, Z, out=around[1:-1])
    np.testing.assert_array_equal(around[[0, -1]], 0.0)


def test_what_has_no_oracle_is_refused():
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]

    class Offset(metrics.ZeroOne):
        def ratio(self, priors):
            A, B = super().ratio(priors)
            return A + B, B

    class Precision(metrics.FBeta):
        def weights(self):
            return 1.0, 0.0, 0.0

    class WrongWay(metrics.FBeta):
        def ratio(self, priors):
            # The more mistakes, the more is added by one more of either kind.
            return np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 0.1], [0.1, 1.0]])

    for metric, word in [
        (metrics.GMean(), "no ratio"),
        (Offset(), "not zero where all labels are right"),
        (Precision(), "divides by zero"),
        (metrics.LinearLoss(np.zeros((2, 2))), "costs no mistake"),
        (WrongWay(), "not concave"),
    ]:
        with pytest.raises(ValueError, match=f"{word}.*ComplexMetricClassifier"):
            ConfusionHinge(X, y, metric.resolve([0, 1]))


def test_bad_arguments_are_named():
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    metric = metrics.FBeta().resolve([0, 1])
    with pytest.raises(ValueError, match=r"integers.*1\.5 for sample 2"):
        ConfusionHinge(X, y, metric, [1.0, 2.0, 1.5, 1.0])
    with pytest.raises(ValueError, match="at most.*Divide the weights"):
        TopKHinge(X, y, 1, [1.0, 2.0, 1e12, 1.0])
    for weight in ([1.0], [1.0, 0.0], [1.0, np.inf]):
        with pytest.raises(ValueError, match="class_weight must hold two positive"):
            ConfusionHinge(X, y, metric, class_weight=weight)
    for k in (0, 5, 1.5):
        with pytest.raises(ValueError, match=rf"k must be one of 1, ..., 4.*got {k}"):
            TopKHinge(X, y, k)
    with pytest.raises(ValueError, match="both classes.*none of class 1"):
        RocAucHinge(X, y, [1.0, 0.0, 1.0, 0.0])
    risk = RocAucHinge(X, y)
    with pytest.raises(NotImplementedError, match="whole sample"):
        risk.sample_losses(risk.empty())
    with pytest.raises(TypeError, match="cannot be listed"):
        risk.dual_form()
    for options, word in [({"largest": -1.0}, "largest"), ({"start": 0.0}, "start")]:
        with pytest.raises(ValueError, match=word):
            risk.line_search(X, X, 0.0, 1.0, 0.1, **options)
    three, sums = np.zeros(3), np.zeros(4)
    for wrong in [
        (sums, sums, three, three, three),
        (sums, sums, sums, sums, three),
        (sums, sums, sums, three, three, three, sums),
    ]:
        with pytest.raises(ValueError, match="fit|3 coefficients"):
            best_table(*wrong)
