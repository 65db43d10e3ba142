"""The interior point method for small programs: against scipy's solvers."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy.optimize import linprog, minimize

from sklearn_structsvm.solvers.qp.interior_point import solve_qp


def random_program(rng, n, p):
    """c, a, D, b with b such that the uniform point is inside."""
    c, D = rng.normal(size=n), rng.normal(size=(p, n))
    return c, np.ones(n), D, D.mean(axis=1) + rng.random(p)


@pytest.mark.parametrize("n, p", [(1, 0), (2, 1), (10, 3), (10, 30), (60, 20)])
def test_a_linear_program_ends_at_its_optimum(n, p):
    rng = new_rng(n + p)
    for _ in range(10):
        c, a, D, b = random_program(rng, n, p)
        found = solve_qp(c, a, D, b, np.full(n, 1.0 / n), tol=1e-9)
        best = linprog(c, A_ub=D, b_ub=b, A_eq=a[None], b_eq=[1.0]).fun
        assert c @ found.x == pytest.approx(best, abs=1e-8)
        assert max(found.gap, found.residual) <= 1e-9
        # Where it ends in a corner too, which most of these do.
        assert found.n_steps <= 30
        assert abs(found.x.sum() - 1.0) <= 1e-9
        assert (D @ found.x - b).max(initial=-1.0) <= 1e-9
        assert (found.x > 0.0).all() and (found.y > 0.0).all()


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_quadratic_program_ends_at_its_optimum(rank):
    rng = new_rng(rank)
    for _ in range(10):
        c, a, D, b = random_program(rng, 8, 4)
        A = rng.normal(size=(8, rank))
        Q = A @ A.T
        found = solve_qp(c, a, D, b, np.full(8, 1 / 8), Q=Q, tol=1e-11)
        reference = minimize(
            lambda x, Q=Q, c=c: 0.5 * x @ Q @ x + c @ x,
            np.full(8, 1 / 8),
            jac=lambda x, Q=Q, c=c: Q @ x + c,
            bounds=[(0.0, None)] * 8,
            constraints=[
                {"type": "eq", "fun": lambda x: x.sum() - 1.0},
                {"type": "ineq", "fun": lambda x, D=D, b=b: b - D @ x},
            ],
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        )
        value = 0.5 * found.x @ Q @ found.x + c @ found.x
        assert value <= reference.fun + 1e-7
        assert (D @ found.x - b).max() <= 1e-9


def test_steps_do_not_go_in_a_circle():
    # Where a step back to balance raises the gap, the next one must not undo it.
    A = np.array(
        [[-0.055, -0.029, 0.05, -0.062, -0.018, 0.03, 0.033, 0.0],
         [0.024, -0.068, 0.075, 0.016, 0.023, -0.022, -0.072, 0.0],
         [-0.06, 0.129, -0.004, -0.04, -0.153, 0.109, -0.237, 0.0],
         [0.051, 0.098, -0.032, -0.262, 0.17, -0.115, -0.077, 0.0],
         [-0.262, 0.791, 0.724, 0.377, 0.338, -0.103, 0.152, 0.0]]
    )  # fmt: skip
    D = np.array(
        [[-0.489, -0.614, -0.614, -0.364, -0.614, -0.364, -0.489, -1.0],
         [-0.614, 0.386, 0.136, -0.239, -0.239, -0.489, -0.364, -1.0],
         [-0.364, -0.614, -0.614, -0.614, -0.364, -0.489, -0.364, -1.0]]
    )  # fmt: skip
    c = np.array([-0.335, -0.21, -0.252, -0.325, -0.332, -0.335, -0.346, 10.0])
    x = np.array([0.178, 0.014, 0.014, 0.015, 0.283, 0.481, 0.014, 1.0])
    found = solve_qp(c, np.append(np.ones(7), 0.0), D, np.zeros(3), x, Q=A.T @ A)
    assert max(found.gap, found.residual) <= 1e-9


def test_multipliers_are_those_of_the_middle_and_not_of_a_corner():
    # v >= x0 twice, and 1 - x0 is free: either row may have all of the multiplier.
    D = np.array([[1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [-1.0, 0.0, -1.0]])
    for tol in (1e-1, 1e-9):
        found = solve_qp(
            np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0]), D,
            np.array([0.0, 0.0, -1.0]), np.array([0.7, 0.3, 2.0]), tol=tol,
        )  # fmt: skip
        assert found.y[0] == pytest.approx(found.y[1], rel=1e-6)
    np.testing.assert_allclose(found.y, [0.25, 0.25, 0.5], atol=1e-6)


def test_multipliers_belong_to_the_rows_that_bind():
    # min -x0 with x0 <= 0.3: one unit more of the bound is worth one.
    D = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = solve_qp(
        np.array([-1.0, 0.0]), np.ones(2), D, np.array([0.3, 5.0]), np.full(2, 0.5)
    )
    np.testing.assert_allclose(found.x, [0.3, 0.7], atol=1e-8)
    np.testing.assert_allclose(found.y, [1.0, 0.0], atol=1e-7)
