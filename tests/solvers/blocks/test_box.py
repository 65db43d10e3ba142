"""Box constraints on the weights (Algorithms 8 and 9)."""

import numpy as np
import pytest
from _problems import (
    KINDS,
    PRESENTED,
    explicit_alpha,
    list_structure,
    odd_box,
    optimum,
    random_problem,
    uneven_weights,
)
from _references import Listed, visits
from _seeds import new_rng
from scipy.optimize import minimize
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks.bcfw import certify, run_bcfw

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


def weights_of_examples():
    return uneven_weights(empty=())


@pytest.mark.parametrize("kind", KINDS)
def test_block_and_batch_steps_reach_the_optimum_of_a_quadratic_program(kind):
    problem, p, lam = random_problem(kind), weights_of_examples(), 0.3
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


def dual_objective(v, loss, lower, upper):
    """ℓ - λ/2 ||w||² - λ(β_u'u - β_l'l), the multipliers of the bounds at their best."""
    over = np.maximum(v - upper, 0.0)
    under = np.maximum(lower - v, 0.0)
    bounds = over[over > 0] @ upper[over > 0] - under[under > 0] @ lower[under > 0]
    w = v - over + under
    return loss - 0.5 * LAM * w @ w - LAM * bounds


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_is_primal_minus_dual(kind, average):
    problem = random_problem(kind)
    lower, upper = odd_box(problem.listed.d)
    solver = problem.solver(
        LAM, step="pairwise", lower=lower, upper=upper, average=average
    )
    for blocks in np.split(visits(N, passes=12), 4):
        solver.run(blocks)
        # Without a gap to begin with w would be the answer, in place of the average.
        row, w, _ = certify(solver, average, tol=-np.inf)
        if average:
            v, loss = solver.average_point()
        else:
            v, loss = problem.listed.dual_point(explicit_alpha(problem, solver), LAM)
        np.testing.assert_allclose(w, np.clip(v, lower, upper), rtol=0, atol=1e-12)
        primal = problem.listed.primal(w, LAM)
        dual = dual_objective(v, loss, lower, upper)
        assert row["objective"] == pytest.approx(primal, rel=1e-12)
        assert row["dual_gap"] == pytest.approx(primal - dual, rel=1e-10)


@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_step_decreases_the_dual(kind, step):
    problem = random_problem(kind)
    lower, upper = odd_box(problem.listed.d)
    solver = problem.solver(LAM, step=step, lower=lower, upper=upper)
    last = -np.inf
    for i in visits(N, passes=30):
        solver.run(np.array([i]))
        w, (v, loss) = solver.weights, solver.dual_point()
        assert ((w >= lower) & (w <= upper)).all()
        dual = dual_objective(v, loss, lower, upper)
        assert dual >= last - 1e-15
        last = dual


@pytest.mark.parametrize("kind", KINDS)
def test_infinite_bounds_change_nothing(kind):
    problem = random_problem(kind)
    free = np.full(problem.listed.d, np.inf)
    one = problem.solver(LAM, step="pairwise")
    other = problem.solver(LAM, step="pairwise", lower=-free, upper=free)
    for solver in (one, other):
        solver.run(visits(N, passes=12))
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.check_gaps() == other.check_gaps()


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_state_is_within_the_box_at_any_lambda(kind):
    problem = random_problem(kind)
    lower, upper = odd_box(problem.listed.d)
    old = problem.solver(LAM, step="pairwise", lower=lower, upper=upper)
    old.run(visits(N, passes=5))
    new = problem.solver(0.2, step="pairwise", lower=lower, upper=upper)
    new.set_state(old.get_state())
    old.set_lambda(0.2)
    v = problem.listed.dual_point(explicit_alpha(problem, old), 0.2)[0]
    for solver in (old, new):
        expected = np.clip(v, lower, upper)
        np.testing.assert_allclose(solver.weights, expected, rtol=0, atol=1e-12)


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


def test_a_box_of_one_weight_is_solved_by_hand():
    """min λ/2 w² + max(0, 1 - w) over w <= 1/2: the bound, for λ < 1."""
    listed = Listed([[0, 1]], [0], [np.array([[0.0], [-1.0]])], [np.array([0.0, 1.0])])
    solver = list_structure(listed).solver(
        0.5, lower=np.array([-1.0]), upper=np.array([0.5])
    )
    result = run_bcfw(solver, tol=1e-12, rng=0)
    assert result.solution[0] == 0.5
    assert result.objective == pytest.approx(0.5 * 0.5 * 0.25 + 0.5)
