"""Box constraints on the weights (Algorithms 8 and 9)."""

import numpy as np
import pytest
from _problems import KINDS, PRESENTED, odd_box, optimum, random_problem, uneven_weights
from _seeds import new_rng
from scipy.optimize import minimize
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw

LAM, N = 0.05, 8


def quadratic_program(listed, lam, p, lower, upper):
    """min λ/2 ||w||² + Σ p_i ξ_i over w in the box and all margins, by SLSQP."""
    d, n = listed.d, listed.n
    rows = np.vstack([-listed.delta(i) for i in range(n)])
    owner = np.repeat(np.arange(n), [len(loss) for loss in listed.loss])
    A = np.hstack([rows, np.eye(n)[owner]])
    b = np.concatenate(listed.loss)
    start = np.concatenate([np.clip(0.0, lower, upper), np.full(n, 5.0)])
    result = minimize(
        lambda z: 0.5 * lam * z[:d] @ z[:d] + p @ z[d:],
        start,
        jac=lambda z: np.concatenate([lam * z[:d], p]),
        bounds=list(zip(lower, upper, strict=True)) + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda z: A @ z - b, "jac": lambda z: A},
        method="SLSQP",
        options={"ftol": 1e-11, "maxiter": 1000},
    )
    if not result.success:
        raise RuntimeError(result.message)
    w = np.clip(result.x[:d], lower, upper)
    return 0.5 * lam * w @ w + listed.hinge(w, p)


@pytest.mark.parametrize("kind", KINDS)
def test_block_and_batch_steps_reach_the_optimum_of_a_quadratic_program(kind):
    problem, p, lam = random_problem(kind), uneven_weights(empty=()), 0.3
    lower, upper = odd_box(problem.listed.d)
    best = quadratic_program(problem.listed, lam, p, lower, upper)
    for step, algorithm, tol in [
        ("fw", "block", 1e-3),
        ("pairwise", "block", 1e-6),
        ("away", "block", 1e-6),
        ("fw", "batch", 1e-2),
    ]:
        solver = problem.solver(lam, p, step=step, lower=lower, upper=upper)
        options = {"algorithm": algorithm, "tol": tol, "max_iter": 10**5, "rng": 0}
        result = run_bcfw(solver, sampling="permuted", **options)
        assert result.status == "converged"
        assert ((result.solution >= lower) & (result.solution <= upper)).all()
        primal = problem.listed.primal(result.solution, lam, p)
        assert result.objective == pytest.approx(primal, rel=1e-12)
        # SLSQP is exact to about 1e-8 here.
        assert -1e-7 <= primal - best <= result.gap + 1e-7
    # Some bound is felt: without the box the optimum is another one, by more than what
    # either is off.
    assert best > optimum(problem, lam, p) + 1e-6


@pytest.mark.parametrize("algorithm", ["block", "batch"])
def test_equal_bounds_leave_one_point(algorithm):
    problem = random_problem("chain")
    point = new_rng(0).uniform(-0.3, 0.3, size=problem.listed.d)
    solver = problem.solver(LAM, lower=point, upper=point)
    result = run_bcfw(solver, algorithm=algorithm, tol=1e-3, max_iter=10**5, rng=0)
    np.testing.assert_array_equal(result.solution, point)
    assert result.objective == pytest.approx(problem.listed.primal(point, LAM))
    assert result.status == "converged"


@pytest.mark.parametrize(("kind", "layout"), PRESENTED[:-1])
def test_the_classifier_keeps_its_coefficients_within_their_bounds(kind, layout):
    problem = random_problem(kind, layout)
    model = BCFWClassifier(
        clone(problem.structure), C=0.5, solver_options={"intercept_scaling": 1.5}
    )
    model.set_params(random_state=0, tol=1e-2).fit(problem.X, problem.y)
    # Which leave the optimum without them out.
    high = 0.5 * np.abs(model.coef_).max()
    low = -0.3 * high
    model.set_params(solver_options__coef_bounds=(low, high)).fit(problem.X, problem.y)
    assert model.coef_.min() >= low
    assert model.coef_.max() <= high
    intercept = getattr(model, "intercept_", None)
    w = model.structure_.join_weights(model.coef_, intercept)
    lower, upper = np.full(len(w), low), np.full(len(w), high)
    if intercept is not None:
        # The intercepts, which come last, are free.
        lower[-len(intercept) :], upper[-len(intercept) :] = -np.inf, np.inf
    lam, p = 1 / (0.5 * N), problem.listed.uniform
    best = quadratic_program(problem.listed, lam, p, lower, upper)
    primal = problem.listed.primal(w, lam)
    assert model.objective_ == pytest.approx(primal, rel=1e-12)
    assert -1e-7 <= primal - best <= model.dual_gap_ + 1e-7


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((0.5, 0.4), "lower bound above the upper one: 0.5 > 0.4 for weight 0"),
        ((-1.0, [[1, 1, -2], [1, 1, 1], [1, 1, 1]]), "-1.0 > -2.0 for weight 6"),
        ((np.nan, 1.0), "lower bound of coef_bounds has NaN"),
        ((-1.0, [1.0, 2.0]), r"upper bound .* \(3, 3\); got shape \(2,\)"),
        ((-1.0, 0.0, 1.0), "coef_bounds"),
    ],
)
def test_bounds_that_make_no_box_are_refused(bounds, message):
    problem = random_problem("multiclass")
    model = BCFWClassifier(
        clone(problem.structure), solver_options={"coef_bounds": bounds}
    )
    with pytest.raises(ValueError, match=message):
        model.fit(problem.X, problem.y)
    assert not hasattr(model, "coef_")
