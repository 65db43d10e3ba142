"""subBFGS and subLBFGS: directions, line searches, certificates, the hybrid."""

import numpy as np
import pytest
from _estimators import however_near
from _seeds import new_rng
from scipy.optimize import minimize_scalar

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.risks import BinaryHinge, MulticlassHinge
from sklearn_structsvm.solvers.batch._lbfgs import LimitedMemory
from sklearn_structsvm.solvers.batch.quasi_newton import (
    CURVATURE,
    MIN_CURVATURE,
    WOLFE_DECREASE,
    FullMatrix,
    Objective,
    QuasiNewtonSteps,
    descent_direction,
    update_pair,
    wolfe_step,
)
from sklearn_structsvm.solvers.batch.sublbfgs import RegularizedRisk, run_sublbfgs
from sklearn_structsvm.solvers.qp._simplex_qp import SimplexQP

MODES = [
    pytest.param({}, id="sublbfgs"),
    pytest.param({"full_matrix": True}, id="subbfgs"),
    pytest.param({"line_search": "wolfe"}, id="wolfe"),
    pytest.param({"hybrid": True}, id="hybrid"),
]


class WeightedDistance(Objective):
    """Σ_j c_j |w_j|, all of whose subgradients are known."""

    def __init__(self, scales, start):
        self.scales = np.array(scales, dtype=float)
        self.weights = np.array(start, dtype=float)
        self._settle(self.scales * np.sign(self.weights))

    def _settle(self, gradient):
        self.value = float(self.scales @ np.abs(self.weights))
        self.gradient = gradient

    def _steepest_at(self, w, direction):
        return self.scales * np.where(np.abs(w) < 1e-14, np.sign(direction), np.sign(w))

    def steepest(self, direction):
        return self._steepest_at(self.weights, direction)

    def slope(self, direction):
        return float(self.steepest(direction) @ direction)

    def exact_step(self, direction):
        with np.errstate(divide="ignore", invalid="ignore"):
            hits = -self.weights / direction
        steps = hits[np.isfinite(hits) & (hits > 0.0)]
        values = [self.probe(direction, step)[0] for step in steps]
        return float(steps[np.argmin(values)])

    def probe(self, direction, step):
        w = self.weights + step * direction
        slope = self._steepest_at(w, direction) @ direction
        return float(self.scales @ np.abs(w)), float(slope)

    def move(self, direction, step):
        self.weights = self.weights + step * direction
        self._settle(self._steepest_at(self.weights, direction))


def data(kind, seed=0, n=40, d=6, k=4):
    """X, encoded y and sample weights."""
    rng = new_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "binary":
        y = (X[:, 0] + rng.normal(size=n) > 0.0).astype(int)
    else:
        y = (X[:, :k] + rng.normal(size=(n, k))).argmax(axis=1)
    return X, y, rng.uniform(0.2, 2.0, n)


def make_risk(kind, X, y, s=None):
    if kind == "binary":
        return BinaryHinge(X, y, s)
    return MulticlassHinge(X, y, s, n_classes=4)


def problem(kind="multiclass", **shape):
    return make_risk(kind, *data(kind, **shape))


def objective_at(risk, lam, w):
    return 0.5 * lam * w @ w + risk.value(risk.scores(w))


def test_two_steps_of_subbfgs_solve_the_toy_problem_where_bfgs_is_stuck():
    toy = WeightedDistance([10.0, 1.0], [1.0, 1.0])
    steps = QuasiNewtonSteps(toy, full_matrix=True, max_directions=50)
    assert steps.move()
    assert toy.weights[0] == pytest.approx(0.0, abs=1e-12)
    assert toy.value > 0.5
    # BFGS's own direction does not descend from the hinge.
    assert toy.slope(-steps.inverse.multiply(toy.gradient)) > 0.0
    assert steps.move()
    np.testing.assert_allclose(toy.weights, 0.0, atol=1e-10)
    # From the minimum no direction descends.
    toy = WeightedDistance([10.0, 1.0], [0.0, 0.0])
    toy.gradient = np.array([10.0, 1.0])
    assert not QuasiNewtonSteps(toy, full_matrix=True, max_directions=50).move()


@pytest.mark.parametrize("seed", range(5))
def test_direction_finding_keeps_to_theorem_6(seed):
    rng = new_rng(seed)
    vertices = rng.normal(size=(30, 5)) + 2.0
    root = rng.normal(size=(5, 5))
    B = root @ root.T / 5.0

    class Polytope:
        gradient = vertices[0]

        def steepest(self, p):
            return vertices[(vertices @ p).argmax()]

        def slope(self, p):
            return float((vertices @ p).max())

    squares, norm = (vertices**2).sum(axis=1).max(), np.linalg.norm(B, 2)
    tol = 1e-3 * squares * norm
    p, slope, n, gap = descent_direction(
        Polytope(), lambda v: B @ v, tol=tol, max_directions=10**4
    )
    assert n <= 8.0 * squares * norm / tol - 4.0
    assert gap <= tol
    # The model's minimum is that of its dual, -½ ḡᵀ B ḡ over the convex hull.
    program = SimplexQP()
    gram = vertices @ B @ vertices.T
    for j in range(len(vertices)):
        program.add_row(gram[j, : j + 1], 0.0)
    minimum = -program.solve()[1]
    model = 0.5 * p @ np.linalg.solve(B, p) + slope
    assert minimum - 1e-12 <= model <= minimum + tol


@however_near
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize(
    ("options", "tol"),
    [
        # The last digits take subLBFGS alone very long (section 8 of the paper).
        ({}, 1e-3),
        ({"line_search": "wolfe"}, 1e-3),
        ({"full_matrix": True}, 1e-7),
        ({"hybrid": True}, 1e-7),
    ],
)
def test_each_mode_reaches_the_optimum_that_bcfw_certifies(kind, options, tol):
    X, y, s = data(kind)
    lam = 0.05
    peer = BCFWClassifier(
        C=1.0 / (lam * s.sum()),
        fit_intercept=False,
        step="pairwise",
        tol=1e-9,
        max_iter=10**5,
        random_state=0,
    ).fit(X, y, sample_weight=s)
    risk = make_risk(kind, X, y, s)
    result = run_sublbfgs(risk, lam, tol=tol, **options)
    # Quasi-Newton steps alone may end before, where rounding hides the way down, or take
    # very long, whatever matrix they have.
    alone = "hybrid" not in options
    assert result.status == "converged" or alone
    assert result.dual_objective <= peer.objective_ + 1e-9
    excess = result.objective - peer.objective_
    assert -1e-9 <= excess <= result.gap + 1e-9
    assert excess <= tol + 1e-9 or (alone and excess <= 0.05 * peer.objective_)
    assert result.objective == pytest.approx(
        objective_at(risk, lam, result.solution), rel=1e-12
    )


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_the_certificate_is_never_below_the_true_suboptimality(options, seed):
    risk = problem(seed=seed)
    lam = 10.0 ** -(1 + seed)
    optimum = run_sublbfgs(risk, lam, hybrid=True, tol=1e-9, max_iter=5000)
    assert optimum.gap < 1e-8
    history = run_sublbfgs(risk, lam, tol=0.0, max_iter=60, **options).history
    suboptimality = history["objective"] - optimum.dual_objective
    assert (history["dual_gap"] >= suboptimality - 1e-8).all()
    assert (history["dual_objective"] <= optimum.objective + 1e-12).all()
    assert (np.diff(history["dual_objective"]) >= 0.0).all()
    assert (np.diff(history["objective"]) <= 1e-14).all()


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_exact_steps_are_minima_along_the_line(kind):
    risk = problem(kind)
    objective = RegularizedRisk(risk, 0.01)
    for _ in range(10):
        p, slope, _, _ = descent_direction(objective, lambda v: v, max_directions=20)
        assert slope < 0.0
        step = objective.exact_step(p)
        found = minimize_scalar(
            lambda eta, w=objective.weights, p=p: objective_at(risk, 0.01, w + eta * p),
            bounds=(0.0, 3.0 * step),
            method="bounded",
            options={"xatol": 1e-12},
        )
        value, _ = objective.probe(p, step)
        assert value <= found.fun + 1e-14
        objective.move(p, step)


@pytest.mark.parametrize("first", [1e-4, 1.0, 1e4])
def test_inexact_steps_meet_the_subgradient_wolfe_conditions(first):
    risk = problem(n=80)
    lam = 1e-3
    objective = RegularizedRisk(risk, lam)
    for _ in range(10):
        p, slope, _, _ = descent_direction(objective, lambda v: v, max_directions=20)
        w, start = objective.weights, objective.value
        step = wolfe_step(objective, p, slope, first=first)
        assert step > 0.0
        value = objective_at(risk, lam, w + step * p)
        assert value <= start + WOLFE_DECREASE * step * slope + 1e-14
        # The slope to the right of the step, by the definition of the derivative.
        h = 1e-7 * step
        right = (objective_at(risk, lam, w + (step + h) * p) - value) / h
        assert right >= CURVATURE * slope - 1e-6 * abs(slope)
        objective.move(p, step)


def test_the_steepest_subgradient_is_the_derivative_along_its_direction():
    risk = problem()
    objective = RegularizedRisk(risk, 0.1)
    rng = new_rng(0)
    for _ in range(5):
        p = rng.normal(size=risk.n_weights)
        h = 1e-6
        derivative = (objective_at(risk, 0.1, h * p) - objective.value) / h
        assert objective.slope(p) == pytest.approx(derivative, abs=1e-5)
        assert objective.steepest(p) @ p == pytest.approx(objective.slope(p), abs=1e-12)


def test_limited_memory_is_the_full_matrix_while_no_pair_is_forgotten():
    rng = new_rng(0)
    full, limited = FullMatrix(5, rescale=False), LimitedMemory(5, 8, rescale=False)
    for _ in range(8):
        step = rng.normal(size=5)
        change = step * rng.uniform(0.5, 2.0, 5)
        full.update(step, change)
        limited.update(step, change)
        np.testing.assert_allclose(limited.multiply(change), step, rtol=1e-9)
        v = rng.normal(size=5)
        np.testing.assert_allclose(limited.multiply(v), full.multiply(v), rtol=1e-8)
    limited.update(np.ones(5), np.ones(5))
    full.update(np.ones(5), np.ones(5))
    assert not np.allclose(limited.multiply(v), full.multiply(v), rtol=1e-4)


def test_pairs_of_too_little_curvature_are_given_the_least_and_those_of_none_refused():
    for change in ([-1.0, 0.0], [0.0, 1.0], [np.nan, 0.0]):
        with pytest.raises(ValueError, match="positive product"):
            LimitedMemory(2, 3).update(np.array([1.0, 0.0]), np.array(change))
    inverse, change = LimitedMemory(2, 3), np.array([0.0, 1.0])
    update_pair(inverse, np.array([1.0, 0.0]), change)
    assert inverse.multiply(change) @ change == pytest.approx(MIN_CURVATURE)


def test_the_hybrid_keeps_its_planes_and_needs_fewer_iterations():
    X, y, _ = data("binary", n=150, d=30)
    risk = BinaryHinge(X, y)
    alone = run_sublbfgs(risk, 1e-4, tol=1e-4, max_iter=3000)
    hybrid = run_sublbfgs(risk, 1e-4, tol=1e-4, max_iter=3000, hybrid=True)
    assert hybrid.status == "converged"
    assert hybrid.n_iter < 0.7 * alone.n_iter
    assert (np.diff(hybrid.history["dual_objective"]) >= 0.0).all()


@pytest.mark.parametrize("options", MODES)
def test_a_run_goes_on_from_where_another_one_ended(options):
    risk = problem(n=60)
    first = run_sublbfgs(risk, 1e-2, tol=0.0, max_iter=8, **options)
    again = run_sublbfgs(risk, 1e-2, tol=0.0, max_iter=1, w0=first.solution, **options)
    assert first.status == "max_iter" and first.n_iter == 8
    assert again.history["objective"][0] == pytest.approx(first.objective, rel=1e-13)
    assert again.objective <= first.objective * (1.0 + 1e-14)


def test_objectives_of_near_ties_are_not_those_of_the_lower_planes():
    """A plane of a tie is less than the risk, by more than the rounding of either."""
    n = 50
    risk = MulticlassHinge(np.ones((n, 1)), np.zeros(n, dtype=int), n_classes=3)
    near = 0.5 + 1e-13
    w = np.array([0.0, 0.5, near])
    history = run_sublbfgs(risk, 0.1, w0=w, max_iter=1).history
    expected = 0.05 * (w @ w) + 1.0 + near
    assert history["objective"][0] == pytest.approx(expected, abs=2e-15)
