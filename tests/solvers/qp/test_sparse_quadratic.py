"""Quadratic functions with an L1 penalty: conditions of optimality, and the factor."""

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.solvers.qp._active_factor import ActiveFactor
from sklearn_structsvm.solvers.qp.sparse_quadratic import minimize_sparse_quadratic


def quadratic(rng, m, offset):
    """A matrix with a diagonal of 1; columns are as similar as they are far from zero."""
    X = rng.normal(size=(rng.integers(1, 2 * m + 1), m)) + offset * rng.normal(size=m)
    A = X.T @ X
    scales = 1.0 / np.sqrt(A.diagonal())
    A *= scales * scales[:, np.newaxis]
    return A + 1e-8 * np.eye(m), rng.normal(size=m) * 5.0, rng.uniform(0.1, 2.0, m)


@pytest.mark.parametrize("offset", [0.0, 10.0])
def test_no_subgradient_is_left_at_the_minimum(offset):
    rng = new_rng(int(offset))
    for m in (1, 2, 5, 30, 60):
        A, b, penalties = quadratic(rng, m, offset)
        for start in (np.zeros(m), rng.normal(size=m), rng.normal(size=m).round()):
            x = minimize_sparse_quadratic(A, b, penalties, start)
            gradient = A @ x + b
            left = np.abs(gradient + penalties * np.sign(x))
            at_zero = np.maximum(np.abs(gradient) - penalties, 0.0)
            rounding = 1e-12 * m * max(1.0, np.abs(x).max())
            assert np.where(x == 0.0, at_zero, left).max() <= 1e-8 + rounding


def test_without_a_better_place_the_start_is_returned():
    A = np.array([[2.0, 1.0], [1.0, 2.0]])
    x = minimize_sparse_quadratic(A, np.array([0.5, -0.5]), np.ones(2), np.zeros(2))
    assert not x.any()


def test_a_factor_solves_the_system_of_what_is_active():
    rng = new_rng()
    m = 12
    X = rng.normal(size=(2 * m, m))
    A = X.T @ X
    factor, active = ActiveFactor(A), []
    for _ in range(200):
        if len(active) < m and (not active or rng.random() < 0.6):
            j = int(rng.choice(np.setdiff1d(np.arange(m), active)))
            factor.add(j)
            active.append(j)
        else:
            k = int(rng.integers(len(active)))
            factor.remove(k)
            del active[k]
        assert factor.active.tolist() == active
        right = rng.normal(size=len(active))
        there = np.linalg.solve(A[np.ix_(active, active)], right)
        bound = 1e-10 * np.linalg.cond(A) * max(1.0, np.abs(there).max(initial=0.0))
        assert np.abs(factor.solve(right) - there).max(initial=0.0) <= bound
