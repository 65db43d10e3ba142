"""The start in the dual: its plane, its forecast, and what comes after it."""

import numpy as np
import pytest
from _twins import messy_csr
from sklearn.datasets import make_classification

from sklearn_structsvm import SubLBFGSClassifier
from sklearn_structsvm._flat_problem import make_ascent
from sklearn_structsvm.solvers import dual_start, sublbfgs
from sklearn_structsvm.solvers.dual_start import FIRST_LOOK, HOPE, DualStart
from sklearn_structsvm.solvers.sublbfgs import RegularizedRisk, run_sublbfgs

COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [3.0, 1.0, 0.0]])
for_each_k = pytest.mark.parametrize("k", [2, 3])


def problem(k, *, n=80, d=6, layout="dense", label_costs=None, **options):
    """A risk, a function of λ that makes the ascent of the same one, and the problem."""
    X, y = make_classification(
        n, d, n_informative=3, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        class_sep=0.5, random_state=0,
    )  # fmt: skip
    if layout == "csr":
        X = messy_csr(np.where(np.abs(X) < 0.5, 0.0, X))
    weights = np.random.default_rng(0).integers(0, 4, n).astype(float)
    model = SubLBFGSClassifier(label_costs=label_costs, **options)
    bound = model._make_problem(X, y, weights)
    risk = model._make_risk(bound, bias=bound.structure.bias_, n_threads=1)
    return risk, lambda lam: make_ascent(bound, lam)


def end_after(n_passes, monkeypatch):
    def is_slow(self):
        return len(self.gaps) >= n_passes

    monkeypatch.setattr(DualStart, "is_slow", property(is_slow))


@pytest.mark.parametrize("layout", ["dense", "csr"])
@for_each_k
def test_the_plane_lies_below_the_risk_and_has_the_dual_objective(k, layout):
    costs = COSTS if k == 3 else None
    risk, ascend = problem(k, layout=layout, label_costs=costs)
    lam, rng = 0.01, np.random.default_rng(0)
    start = DualStart(ascend(lam), tol=0.0)
    for _ in range(3):
        start.move(np.inf)
        B, offset, plane = start.plane()
        np.testing.assert_allclose(risk.gradient(B), plane, atol=1e-13)
        row, weights = start.check()
        # Where the plane and the regulariser are least together.
        w = -plane / lam
        dual = offset + plane @ w + 0.5 * lam * w @ w
        assert row["dual_objective"] == pytest.approx(dual, abs=1e-13)
        value = RegularizedRisk(risk, lam, weights).value
        assert row["objective"] == pytest.approx(value, rel=1e-13)
        for scale in (0.0, 0.1, 1.0, 10.0):
            w = scale * rng.standard_normal(risk.n_weights)
            assert plane @ w + offset <= risk.value(risk.scores(w)) + 1e-13


@for_each_k
@pytest.mark.parametrize("n_passes", [1, 4])
def test_what_comes_after_goes_on_from_the_weights_and_the_bound(
    k, n_passes, monkeypatch
):
    end_after(n_passes, monkeypatch)
    monkeypatch.setattr(sublbfgs, "GAP_CHECK_INTERVAL", 1)
    risk, ascend = problem(k)
    lam = 1e-3
    best = run_sublbfgs(risk, lam, hybrid=True, tol=1e-9, max_iter=5000)
    result = run_sublbfgs(
        risk, lam, hybrid=True, ascent=ascend(lam), tol=1e-8, max_iter=5000
    )
    assert result.status == "converged" and result.n_iter > n_passes
    assert result.objective == pytest.approx(best.objective, abs=2e-8)
    history = result.history
    # A row before the first step, and one a pass; then the first one of the other method.
    at = history["n_iter"].tolist().index(n_passes)
    assert (np.diff(history["dual_objective"][at:]) >= -1e-15).all()
    assert (np.diff(history["objective"][at:]) <= 1e-14).all()
    suboptimality = history["objective"] - best.dual_objective
    assert (history["dual_gap"] >= suboptimality - 1e-8).all()
    assert (np.diff(history["n_oracle_calls"]) > 0).all()


def test_a_start_that_is_fast_is_all_there_is(monkeypatch):
    risk, ascend = problem(3)
    monkeypatch.setattr(sublbfgs, "RegularizedRisk", None)
    result = run_sublbfgs(risk, 1.0, hybrid=True, ascent=ascend(1.0), tol=1e-5)
    assert result.status == "converged" and result.gap <= 1e-5


def test_many_rows_and_a_small_lambda_are_left_to_the_others(monkeypatch):
    ends = []
    plane = DualStart.plane
    monkeypatch.setattr(
        DualStart, "plane", lambda self: ends.append(len(self.gaps)) or plane(self)
    )
    risk, ascend = problem(2, n=2000, fit_intercept=False)
    result = run_sublbfgs(risk, 1e-6, hybrid=True, ascent=ascend(1e-6), tol=1e-3)
    assert result.status == "converged"
    assert len(ends) == 1 and ends[0] < 0.5 * result.n_iter


def test_given_weights_are_the_start():
    risk, ascend = problem(2)
    w0 = np.ones(risk.n_weights)
    result = run_sublbfgs(risk, 1.0, hybrid=True, ascent=ascend(1.0), w0=w0)
    value = RegularizedRisk(risk, 1.0, w0).value
    assert result.history["objective"][0] == value


@pytest.mark.parametrize(
    ("gaps", "slow"),
    [
        ([1.0], False),
        # From 1 to 1/4 in a doubling: 1e-3 of it takes 4 * (sqrt(250) - 1) = 59 more.
        ([9.0, 1.0, 9.0, 0.25], False),
        ([9.0, 1.0, 9.0, 0.26], True),
        # Not a power of two: not judged.
        ([9.0, 1.0, 9.0, 0.25, 9.0], False),
        ([9.0, 1.0, 9.0, 1.0], True),
        ([9.0, 1.0, 9.0, 2.0], True),
        ([9.0, 1.0, 9.0, 0.0], False),
        ([1.0, 0.6], True),
        ([1.0, 0.3], False),
    ],
)
def test_the_forecast_is_a_power_of_the_passes(gaps, slow):
    assert (dual_start.MAX_PASSES_LEFT, FIRST_LOOK, HOPE) == (60, 2, 20)
    _, ascend = problem(2)
    start = DualStart(ascend(1.0), tol=1e-3)
    start.gaps = gaps
    assert start.is_slow == slow
    start.tol = 0.0
    assert start.is_slow == (len(gaps) in (2, 4) and gaps[-1] > 0.0)
