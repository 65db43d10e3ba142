"""The start in the dual: its plane, its forecast, and what comes after it."""

from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
from _references import messy_csr
from _seeds import new_rng, new_seed
from sklearn.datasets import make_classification

from sklearn_structsvm import SubLBFGSClassifier
from sklearn_structsvm.estimators.batch_losses import loss_of
from sklearn_structsvm.estimators.problem import bind_local
from sklearn_structsvm.estimators.steps import make_ascent
from sklearn_structsvm.solvers.batch import sublbfgs
from sklearn_structsvm.solvers.batch.sublbfgs import RegularizedRisk, run_sublbfgs
from sklearn_structsvm.solvers.blocks.dual_start import DualStart

COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [3.0, 1.0, 0.0]])
for_each_k = pytest.mark.parametrize("k", [2, 3])


def problem(k, *, n=80, d=6, layout="dense", label_costs=None, **options):
    """A risk, and a function of λ to what makes the ascent of the same one."""
    X, y = make_classification(
        n, d, n_informative=3, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        class_sep=0.5, random_state=new_seed(0),
    )  # fmt: skip
    if layout == "csr":
        X = messy_csr(np.where(np.abs(X) < 0.5, 0.0, X))
    weights = new_rng(0).integers(0, 4, n).astype(float)
    model = SubLBFGSClassifier(label_costs=label_costs, **options)
    bound = bind_local(model, X, y, weights)
    options = {"bias": bound.structure.bias_, "n_threads": 1}
    risk = loss_of(model).make_risk(model, bound, options)
    return risk, lambda lam: partial(DualStart, make_ascent(bound, lam))


def end_after(n_passes, monkeypatch):
    def is_slow(self):
        return self.n_made >= n_passes

    monkeypatch.setattr(DualStart, "is_slow", property(is_slow))


@pytest.mark.parametrize("layout", ["dense", "csr"])
@for_each_k
def test_the_plane_lies_below_the_risk_and_has_the_dual_objective(k, layout):
    costs = COSTS if k == 3 else None
    risk, begin = problem(k, layout=layout, label_costs=costs)
    lam, rng = 0.01, new_rng(0)
    start = begin(lam)()
    for _ in range(3):
        start.move(np.inf)
        B, offset, plane = start.plane()
        np.testing.assert_allclose(risk.gradient(B), plane, atol=1e-13)
        row, weights = start.check()
        # Where the plane and the regularizer are least together.
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
    risk, begin = problem(k)
    lam = 1e-3
    best = run_sublbfgs(risk, lam, hybrid=True, tol=1e-9, max_iter=5000)
    result = run_sublbfgs(
        risk, lam, hybrid=True, make_start=begin(lam), tol=1e-8, max_iter=5000
    )
    assert result.status == "converged" and result.n_iter > n_passes
    assert result.objective == pytest.approx(best.objective, abs=2e-8)
    history = result.history
    # A row before the first step, and one a pass; then the first one of the other method.
    at = history["n_iter"].tolist().index(n_passes)
    assert (np.diff(history["dual_objective"][at:]) >= -1e-15).all()
    assert (np.diff(history["objective"][at:]) <= 1e-14).all()
    methods = history["method"]
    assert set(methods[1 : at + 1]) <= {"blocks", "accelerated"}
    assert set(methods[at + 1 :]) <= {"sublbfgs", "planes"}
    suboptimality = history["objective"] - best.dual_objective
    assert (history["dual_gap"] >= suboptimality - 1e-8).all()
    assert (np.diff(history["n_oracle_calls"]) > 0).all()


def test_a_start_that_is_fast_is_all_there_is(monkeypatch):
    risk, begin = problem(3)
    monkeypatch.setattr(sublbfgs, "RegularizedRisk", None)
    result = run_sublbfgs(risk, 1.0, hybrid=True, make_start=begin(1.0), tol=1e-5)
    assert result.status == "converged" and result.gap <= 1e-5


def test_many_rows_and_a_small_lambda_are_left_to_the_others(monkeypatch):
    ends = []
    plane = DualStart.plane
    monkeypatch.setattr(
        DualStart, "plane", lambda self: ends.append(self.n_made) or plane(self)
    )
    risk, begin = problem(2, n=2000, fit_intercept=False)
    result = run_sublbfgs(risk, 1e-6, hybrid=True, make_start=begin(1e-6), tol=1e-3)
    assert result.status == "converged"
    assert len(ends) == 1 and ends[0] < 0.5 * result.n_iter


def test_a_start_that_takes_far_longer_than_foreseen_ends():
    _, begin = problem(2, n=300)
    start = begin(1e-6)(1e-9, max_passes_left=3)
    start.acceleration.foreseen_passes = lambda: 2.0
    for n in range(1, 9):
        start.move(np.inf)
        assert start.is_slow == (n > 6)


def test_more_is_waited_for_where_planes_are_long(monkeypatch):
    limits = []

    risk, begin = problem(2)

    def start(tol, max_passes_left, n_threads):
        limits.append(max_passes_left)
        return begin(1.0)(tol, max_passes_left, n_threads)

    for answer in (False, True):
        monkeypatch.setattr(sublbfgs, "has_long_planes", Mock(return_value=answer))
        run_sublbfgs(risk, 1.0, hybrid=True, make_start=start)
    few, many = sublbfgs.MAX_PASSES_LEFT, sublbfgs.MAX_PASSES_BEFORE_LONG_PLANES
    assert limits == [few, many] and few < many
