"""subBFGS and subLBFGS: directions, line searches, certificates, the hybrid."""

from functools import partial

import numpy as np
import pytest
from _estimators import however_near
from _problems import check_interrupted
from _seeds import new_rng
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.risks import BinaryHinge, MulticlassHinge
from sklearn_structsvm.solvers.batch import sublbfgs
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
from sklearn_structsvm.solvers.loop import HISTORY_KEYS, History
from sklearn_structsvm.solvers.qp._simplex_qp import SimplexQP
from sklearn_structsvm.solvers.turns import Turn, Turns

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


def test_the_minimum_of_the_toy_problem_has_no_descent_direction():
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


def test_the_gap_of_direction_finding_never_grows_with_more_directions():
    objective = RegularizedRisk(problem(), 0.01)
    gaps = [
        descent_direction(objective, lambda v: v, tol=0.0, max_directions=n)[3]
        for n in (20, 40, 80)
    ]
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < gaps[0]


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


def test_the_hybrid_agrees_with_liblinear():
    X, y, _ = data("binary", n=200)
    lam = 0.01
    peer = LinearSVC(
        C=1.0 / (lam * len(y)),
        loss="hinge",
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**6,
    ).fit(X, y)
    risk = BinaryHinge(X, y)
    result = run_sublbfgs(risk, lam, tol=1e-8, hybrid=True)
    assert result.objective == pytest.approx(
        objective_at(risk, lam, peer.coef_.ravel()), rel=1e-6
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


@pytest.mark.parametrize("options", MODES)
def test_the_objective_falls_at_each_iteration(options):
    risk = problem(n=60)
    objective = RegularizedRisk(risk, 1e-3)
    hybrid = options.get("hybrid")
    if hybrid:
        steps = sublbfgs._Certified(objective, QuasiNewtonSteps(objective), True)
        turn = Turn(steps)
        turn.then = lambda row, w: Turn(steps.bundle_steps(row, -np.inf), row, w)
    else:
        turn = Turn(QuasiNewtonSteps(objective, **options))
    turns = Turns(turn, History())

    def look():
        if not hybrid:
            return objective.value, objective.weights
        row, weights = turns.check()
        return row["objective"], weights

    values = [look()[0]]
    for _ in range(40):
        if turns.move(np.inf) == "stalled":
            break
        value, weights = look()
        values.append(value)
        assert value == pytest.approx(objective_at(risk, 1e-3, weights), rel=1e-12)
    assert len(values) > 15
    falls = -np.diff(values)
    # A bundle step may find nothing better on its line.
    assert (falls >= -1e-14).all() if hybrid else (falls > 0.0).all()


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


@pytest.mark.parametrize("change", [[-1.0, 0.0], [0.0, 1.0], [np.nan, 0.0]])
def test_pairs_without_curvature_are_refused(change):
    with pytest.raises(ValueError, match="positive product"):
        LimitedMemory(2, 3).update(np.array([1.0, 0.0]), np.array(change))


def test_pairs_of_too_little_curvature_are_given_the_least():
    inverse, change = LimitedMemory(2, 3), np.array([0.0, 1.0])
    update_pair(inverse, np.array([1.0, 0.0]), change)
    assert inverse.multiply(change) @ change == pytest.approx(MIN_CURVATURE)


def test_the_hybrid_keeps_its_planes_and_needs_fewer_iterations():
    X, y, _ = data("binary", n=300, d=30)
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


def test_dense_and_sparse_features_lead_the_same_way():
    X, y, s = data("multiclass")
    X[np.abs(X) < 0.5] = 0.0
    runs = [
        run_sublbfgs(make_risk("multiclass", A, y, s), 0.01, tol=1e-6, hybrid=True)
        for A in (X, csr_array(X))
    ]
    assert runs[0].objective == pytest.approx(runs[1].objective, abs=2e-6)


def test_what_an_interrupted_run_saw_is_in_its_history():
    risk = problem(n=100)
    run, objective = partial(run_sublbfgs, risk, 1e-3), partial(objective_at, risk, 1e-3)
    result = check_interrupted(run, objective, at=25).result("stopped")
    assert set(result.history) == {*HISTORY_KEYS, "method"}
    assert result.history["method"].tolist() == ["start", "sublbfgs", "sublbfgs"]
    assert result.history["n_iter"].tolist() == [0, 10, 20]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"max_iter": 3}, "max_iter"),
        ({"max_time": 0.0}, "max_time"),
        ({"on_pass": lambda *_: True}, "stopped"),
    ],
)
def test_each_limit_ends_a_run_with_a_certificate(options, status):
    result = run_sublbfgs(problem(), 1e-3, tol=0.0, **options)
    assert result.status == status
    assert 0.0 < result.gap < np.inf
    assert result.gap == result.objective - result.dual_objective


def test_one_iteration_costs_one_product_of_each_kind():
    X, y, _ = data("multiclass", n=200)
    risk = make_risk("multiclass", X, y)
    counts = {"scores": 0, "gradient": 0, "plane": 0}

    def count(name):
        call = getattr(risk, name)

        def counted(*args, **options):
            counts[name] += 1
            return call(*args, **options)

        setattr(risk, name, counted)

    for name in counts:
        count(name)
    steps = QuasiNewtonSteps(RegularizedRisk(risk, 1e-2))
    steps.move()
    start = dict(counts)
    extra = steps.n_directions
    for _ in range(20):
        steps.move()
    extra = steps.n_directions - extra
    assert counts["scores"] - start["scores"] <= 20 + 2 * extra
    assert counts["gradient"] - start["gradient"] <= 20 + extra
    # One for the slope along each direction, and one where the step ends.
    assert counts["plane"] - start["plane"] == 2 * 20 + extra


def test_objectives_of_near_ties_are_not_those_of_the_lower_planes():
    """A plane of a tie is less than the risk, by more than the rounding of either."""
    n = 50
    risk = MulticlassHinge(np.ones((n, 1)), np.zeros(n, dtype=int), n_classes=3)
    near = 0.5 + 1e-13
    w = np.array([0.0, 0.5, near])
    history = run_sublbfgs(risk, 0.1, w0=w, max_iter=1).history
    expected = 0.05 * (w @ w) + 1.0 + near
    assert history["objective"][0] == pytest.approx(expected, abs=2e-15)
