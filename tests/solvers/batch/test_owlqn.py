"""OWL-QN and OWL-QN*: optima, certificates, orthants."""

import numpy as np
import pytest
from _references import logistic_regression
from _seeds import new_rng

from sklearn_structsvm.risks import Logistic
from sklearn_structsvm.solvers.batch.owlqn import L1Risk, OrthantSteps, run_owlqn
from sklearn_structsvm.solvers.loop import History

DIRECTIONS = ["owlqn", "sub"]


def data(seed=0, n=120, d=15):
    rng = new_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.0).astype(int)
    return X, y, rng.uniform(0.2, 2.0, n)


def objective_at(risk, lam, w):
    return lam * np.abs(w).sum() + risk.value(risk.scores(w))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("solver", ["liblinear", "saga"])
@pytest.mark.parametrize("lam", [0.1, 0.01])
def test_both_agree_with_scikit_learn(direction, solver, lam):
    X, y, s = data()
    peer = logistic_regression(
        l1_ratio=1.0,
        C=1.0 / (lam * s.sum()),
        solver=solver,
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**5,
        random_state=0,
    ).fit(X, y, sample_weight=s)
    risk = Logistic(X, y, s)
    result = run_owlqn(risk, lam, direction=direction, tol=1e-6, max_iter=20000)
    assert result.status == "converged"
    optimum = objective_at(risk, lam, peer.coef_.ravel())
    assert result.objective == pytest.approx(optimum, abs=1.1e-6)
    assert result.objective == pytest.approx(
        objective_at(risk, lam, result.solution), rel=1e-12
    )
    # By convexity F(w) - F* >= Σ (λ - |g_j|) |w_j|, over the zeros of the optimum, where
    # g is the slope of the loss: what is not zero there is as small as the gap says.
    best = peer.coef_.ravel()
    signs, p = 2.0 * y - 1.0, s / s.sum()
    slopes = X.T @ (p * -signs / (1.0 + np.exp(signs * (X @ best))))
    room = np.maximum(lam - np.abs(slopes), 0.0)[best == 0.0]
    assert room @ np.abs(result.solution[best == 0.0]) <= result.gap + 1e-7


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_is_never_below_the_true_suboptimality(direction, seed):
    X, y, s = data(seed)
    lam = 10.0 ** -(1 + seed)
    optimum = run_owlqn(Logistic(X, y, s), lam, tol=1e-10, max_iter=5000)
    # As near as rounding lets it come: of the objective to about 1e-16, of the gradients
    # that a step must find there to its root.
    assert optimum.gap < 1e-6
    history = run_owlqn(
        Logistic(X, y, s), lam, direction=direction, tol=0.0, max_iter=40
    ).history
    suboptimality = history["objective"] - optimum.objective
    assert (history["dual_gap"] >= suboptimality - 1e-12).all()
    assert (np.diff(history["objective"]) <= 0.0).all()
    assert (history["dual_objective"] <= optimum.objective + 1e-12).all()


def test_no_weight_is_the_answer_where_the_penalty_is_large():
    X, y, _ = data()
    risk = Logistic(X, y)
    largest = np.abs(L1Risk(risk, 1.0).smooth_gradient).max()
    result = run_owlqn(risk, 1.001 * largest, tol=1e-12)
    assert result.n_iter == 0 and result.status == "converged"
    assert not result.solution.any()
    assert run_owlqn(risk, 0.999 * largest, tol=1e-9).solution.any()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_no_step_crosses_zero(direction):
    X, y, _ = data(d=20)
    seen = [np.zeros(20)]
    history = History()
    run_owlqn(
        Logistic(X, y), 1e-3, direction=direction, tol=0.0, max_iter=30, history=history,
        on_pass=lambda *_: seen.append(history.solution),
    )  # fmt: skip
    moves = zip(seen, seen[1:], strict=False)
    assert all((before * after >= 0.0).all() for before, after in moves)
    assert len(seen) > 20


def test_a_poor_subgradient_stops_owlqn_but_not_its_variant():
    X, y, _ = data()
    objective = L1Risk(Logistic(X, y), 0.15)
    # Any subgradient at zero may come first: here the penalty's at its bounds.
    signs = new_rng(0).choice([-1.0, 1.0], size=15)
    objective.gradient = objective.smooth_gradient + 0.15 * signs
    start = objective.value
    steps = OrthantSteps(objective, direction="sub", max_directions=100)
    plain = -steps.inverse.multiply(objective.gradient)
    assert objective.slope(plain) > 0.0
    assert steps.move()
    assert objective.value < start
    assert steps.n_directions > 0


def test_random_subgradients_are_subgradients():
    X, y, s = data()
    risk, lam = Logistic(X, y, s), 0.05
    w = new_rng(1).normal(size=15) * (np.arange(15) % 3 == 0)
    objective = L1Risk(risk, lam, w, new_rng(2))
    rng = new_rng(3)
    for _ in range(50):
        other = w + rng.normal(size=15) * rng.choice([1e-3, 1.0])
        below = objective.value + objective.gradient @ (other - w)
        assert objective_at(risk, lam, other) >= below - 1e-12
    redrawn = L1Risk(risk, lam, w, new_rng(4)).gradient
    np.testing.assert_array_equal(redrawn[w != 0.0], objective.gradient[w != 0.0])
    assert (redrawn[w == 0.0] != objective.gradient[w == 0.0]).all()


def test_random_subgradients_stop_owlqn_but_not_its_variant():
    """OWL-QNr and OWL-QN*r: section 7.3 and Figure 11 of Yu et al."""
    X, y, s = data(n=200, d=30)
    risk, lam = Logistic(X, y, s), 0.03
    best = run_owlqn(risk, lam, tol=1e-8, max_iter=5000)
    start = objective_at(risk, lam, np.zeros(30))
    left = {}
    for direction in DIRECTIONS:
        found = run_owlqn(
            risk, lam, direction=direction, rng=new_rng(0), tol=1e-6, max_iter=2000
        )
        left[direction] = (found.objective - best.objective) / (start - best.objective)
        again = run_owlqn(
            risk, lam, direction=direction, rng=new_rng(0), tol=1e-6, max_iter=2000
        )
        np.testing.assert_array_equal(again.solution, found.solution)
    assert left["sub"] <= 0.01
    assert left["sub"] < left["owlqn"]


def test_an_unknown_direction_is_refused_by_name():
    with pytest.raises(ValueError, match="direction must be 'owlqn' or 'sub'; got 'x'"):
        run_owlqn(Logistic(*data()), 0.1, direction="x")
