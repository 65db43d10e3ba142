"""Newton's method for sequences: conditions of optimality, certificates and limits."""

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.solvers.batch.chain_newton import CenteredWeights, ChainNewtonSteps
from sklearn_structsvm.solvers.loop import run_steps
from sklearn_structsvm.structures import ChainStructure


class Problem:
    def __init__(self, rng, scale=1.0, offset=0.0, n=25):
        X, y = make_chains(
            n, n_features=4, n_classes=3, max_length=5, random_state=rng.integers(2**31)
        )
        X = [scale * (x + offset) for x in X]
        self.largest = max(np.abs(x).max() for x in X)
        structure = ChainStructure().fit(X, y)
        self.p = rng.uniform(0.0, 1.0, n) * (rng.uniform(size=n) < 0.8)
        self.p[0] = 1.0
        self.p /= self.p.sum()
        self.oracle = structure.make_oracle(X, y)
        self.hessian = structure._make_curvature(X, self.p).at

    def run(self, lam, l1_ratio, w0=None, **options):
        return run_steps(self.steps(lam, l1_ratio, w0), **options)

    def steps(self, lam, l1_ratio, w0=None):
        data = self.oracle, self.p, self.hessian, lam, l1_ratio
        return ChainNewtonSteps(*data, w0=w0)

    def objective(self, w, lam, l1_ratio):
        squares = 0.5 * (1.0 - l1_ratio) * w @ w
        return lam * (squares + l1_ratio * np.abs(w).sum()) + self.loss(w)[0]

    def loss(self, w):
        return self.oracle.log_loss(self.p, w)


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e4, 3.0), (1e-3, 10.0)])
def test_the_weights_meet_the_conditions_of_optimality(l1_ratio, scale, offset):
    problem, lam = Problem(new_rng(), scale, offset), 0.05
    result = problem.run(lam, l1_ratio, tol=1e-9, max_iter=200)
    assert result.gap <= 1e-9
    w = result.solution
    # What a move of one weight alone would gain: its second derivative is at most a
    # quarter of the squared range of its feature, a sum over at most 5 positions.
    g = problem.loss(w)[1] + (1.0 - l1_ratio) * lam * w
    beyond = np.where(
        w == 0.0,
        np.maximum(np.abs(g) - l1_ratio * lam, 0.0),
        np.abs(g + l1_ratio * lam * np.sign(w)),
    )
    curvature = (5.0 * max(problem.largest, 1.0)) ** 2 / 4.0 + lam
    gain = beyond**2 / (2.0 * curvature)
    gain = np.where(w == 0.0, gain, np.minimum(gain, 0.5 * beyond * np.abs(w)))
    assert gain.max() <= result.gap + 1e-12
    # And no other point is below the dual objective.
    rng = new_rng()
    for size in (1e-4, 1e-2, 1.0):
        other = w + size * rng.normal(size=len(w)) * np.abs(w).max()
        assert problem.objective(other, lam, l1_ratio) >= result.dual_objective - 1e-12
    assert problem.objective(w, lam, l1_ratio) == pytest.approx(result.objective)


def test_each_step_lowers_the_objective_and_keeps_the_bound():
    problem, lam = Problem(new_rng(), 1e2, 5.0), 0.02
    best = problem.run(lam, 1.0, tol=1e-8, max_iter=200)
    steps = problem.steps(lam, 1.0)
    before = steps.row()
    for _ in range(30):
        if not steps.move():
            break
        row = steps.row()
        assert row["objective"] <= before["objective"] * (1.0 + 1e-12)
        assert row["dual_objective"] >= before["dual_objective"]
        assert row["dual_objective"] <= best.objective + 1e-12
        assert row["objective"] >= best.dual_objective - 1e-12
        before = row
    assert before["dual_gap"] <= 1e-6


def test_it_starts_from_given_weights_and_stalls_only_at_the_optimum():
    problem, lam = Problem(new_rng()), 0.05
    there = problem.run(lam, 1.0, tol=0.0, max_iter=100)
    assert there.status in ("stalled", "converged")
    assert there.gap <= 1e-9
    assert problem.run(lam, 1.0, tol=1e-8, w0=there.solution).n_iter == 0


@pytest.mark.parametrize("draw", range(4))
def test_steps_into_certain_labelings_are_not_the_last(draw):
    """Where labels are almost certain, second derivatives are little but rounding.

    About one draw in ten gets there.
    """
    rng = new_rng(draw)
    y = [rng.choice(3, 200, p=[0.95, 0.03, 0.02]) for _ in range(30)]
    y[0][:3] = range(3)
    X = [np.eye(3)[labels] + rng.normal(size=(200, 3)) for labels in y]
    structure, p = ChainStructure().fit(X, y), np.full(30, 1.0 / 30.0)
    hessian = structure._make_curvature(X, p).at
    oracle = structure.make_oracle(X, y)
    steps = ChainNewtonSteps(oracle, p, hessian, 0.002, 1.0)
    result = run_steps(steps, tol=1e-3, max_iter=100)
    assert result.gap <= 1e-3


@pytest.mark.parametrize("means", [[3.0, -20.0, 0.5], [0.0, 0.0, 0.0]])
def test_weights_of_centered_features_are_an_exact_change_of_variables(means):
    rng, ridge, means = new_rng(5), 0.3, np.array(means)
    X = [means + rng.normal(size=(T, 3)) * [1.0, 5.0, 0.0] for T in (1, 4, 3, 5)]
    y = [rng.integers(3, size=len(x)) for x in X]
    structure = ChainStructure().fit(X, y, classes=[0, 1, 2])
    p = np.full(4, 0.25)
    own = CenteredWeights(means, np.array([1.0, 5.0, 0.0]), 3, structure.n_weights_)
    w = rng.normal(size=structure.n_weights_)
    changes = np.eye(len(w))
    # The columns are what each variable changes.
    map_ = np.column_stack([own.moved(w, change) - w for change in changes])
    H = structure._make_curvature(X, p).at(w)
    centered = structure._make_curvature(X, p, centers=means).at(w)
    found = own.hessian(centered) + ridge * (own.more + np.eye(len(w)))
    expected = map_.T @ (H + ridge * np.eye(len(w))) @ map_
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    oracle, squares = structure.make_oracle(X, y), structure._mean_squares(X, p)
    slopes = own.differences(lambda w: oracle.log_loss(p, w)[1], w, squares)
    np.testing.assert_allclose(slopes, own.hessian(centered), atol=1e-6)
    gradient = rng.normal(size=len(w))
    np.testing.assert_allclose(own.slopes(gradient), map_.T @ gradient, atol=1e-9)
    assert np.linalg.matrix_rank(map_) == len(w)
