"""The paper's eight algorithms: against theory, each other, and column generation."""

from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from _confusion_problems import FiniteOracle, check_optimum, check_result, finite_problem
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st

from sklearn_structsvm.confusion import Cells, ConfusionMetric
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.metrics import (
    EqualOpportunity,
    Quantification,
    Recall,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion import bisection, split_fw
from sklearn_structsvm.solvers.confusion.bisection import run_bisection
from sklearn_structsvm.solvers.confusion.bounds import trivial_bound
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.ellipsoid import Ellipsoid, run_ellipsoid
from sklearn_structsvm.solvers.confusion.frank_wolfe import run_frank_wolfe
from sklearn_structsvm.solvers.confusion.gda import run_gda
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError
from sklearn_structsvm.solvers.confusion.slack_variables import (
    Coordinates,
    project_solid_simplex,
)
from sklearn_structsvm.solvers.confusion.split_fw import SplitFrankWolfe, run_split_fw
from sklearn_structsvm.solvers.loop import History

pytestmark = pytest.mark.slow

TOL = 1e-3

FREE = {"frank_wolfe": run_frank_wolfe, "gda": run_gda, "ellipsoid": run_ellipsoid}
CONSTRAINED = {
    "split_fw": run_split_fw,
    "con_gda": run_gda,
    "con_ellipsoid": run_ellipsoid,
}


class Squares(ConfusionMetric):
    """Mean of the squared error rates: 2 / k-smooth in the recalls."""

    convex = smooth = True

    def value(self, C):
        return float(np.square(1.0 - C.diagonal() / C.sum(axis=1)).mean())

    def gradient(self, C):
        priors = C.sum(axis=1)
        return np.diag(-2.0 * (1.0 - C.diagonal() / priors) / (len(C) * priors))

    def entries(self, n_classes):
        return np.eye(n_classes, dtype=bool)


def bounded_ratio(seed):
    coverage = [SelectionRate(at_most=0.5)]
    return finite_problem(new_rng(seed), "micro_f1", coverage, n_tensors=30)


@pytest.mark.parametrize(
    ("solver", "metric"),
    [
        *product(FREE, ["h_mean", "q_mean", "g_mean"]),
        # Frank-Wolfe steps are for smooth metrics.
        *product(["gda", "ellipsoid"], ["min_max"]),
    ],
)
def test_all_solvers_agree_within_their_gaps(solver, metric):
    for seed in range(2):
        problem = finite_problem(new_rng(seed), metric)
        result = FREE[solver](problem, tol=TOL, max_iter=3000)
        exact = run_column_generation(problem, tol=1e-8)
        check_optimum(result, problem, exact.objective, TOL)
        assert exact.dual_objective - 1e-9 <= result.objective


CASES = {
    "coverage": ([SelectionRate(at_most=0.5)], {}),
    "two": ([SelectionRate(at_most=0.5), Recall(at_least=0.3, label=0)], {}),
    "quantification": ([Quantification(0.05)], {}),
    "groups": ([EqualOpportunity(slack=0.02)], {"n_cells": 2, "n_classes": 2}),
    "five groups": ([EqualOpportunity(slack=0.05)], {"n_cells": 5, "n_classes": 2}),
}


@pytest.mark.parametrize(
    ("metric", "case"),
    [*product(["q_mean"], CASES), ("min_max", "coverage"), ("min_max", "groups")],
)
def test_constrained_solvers_agree_and_meet_the_constraints(metric, case):
    constraints, shape = CASES[case]
    problem = finite_problem(new_rng(0), metric, constraints, n_tensors=30, **shape)
    exact, tol = run_column_generation(problem, tol=1e-6), 2.0 * TOL
    for solver, run in CONSTRAINED.items():
        # SplitFW is for smooth metrics.
        is_for = metric == "q_mean" or solver != "split_fw"
        result = run(problem, tol=tol, max_iter=3000 if is_for else 300)
        check_result(result, problem, tol)
        assert result.violation <= 0.0
        assert result.dual_objective <= exact.objective + 1e-9
        assert exact.dual_objective - 1e-9 <= result.objective
        if is_for:
            assert result.status == "converged"
            assert result.objective <= exact.objective + tol


def test_a_run_that_is_cut_short_bounds_the_metric_by_its_range():
    # The tangent at the uniform classifier is below 0 at the true labels.
    y, groups = np.tile([0, 0, 1, 1], 10), np.tile([0, 1], 20)
    problem = ConfusionProblem.from_probabilities(
        Squares(), np.eye(2)[y], y, constraints=[EqualOpportunity(slack=0.02)],
        sensitive_features=groups,
    )  # fmt: skip
    result = run_gda(problem, tol=0.0, max_iter=1, average=True)
    assert -1e-9 <= result.dual_objective <= 0.0


@pytest.mark.parametrize(
    "metric", ["g_mean", "h_mean", "q_mean", "min_max", "micro_f1", "balanced", "f1"]
)
def test_the_least_value_of_a_metric_is_a_bound(metric):
    constraints, shape = CASES["groups"]
    for seed in range(3):
        problem = finite_problem(
            new_rng(seed), metric, constraints, n_tensors=30, **shape
        )
        assert -1e-9 <= trivial_bound(problem) <= 0.0


@pytest.mark.parametrize("solver", CONSTRAINED)
def test_constraints_that_cannot_be_met_are_said_to_be_so(solver):
    problem = finite_problem(new_rng(3), "q_mean", [Recall(at_least=0.95)])
    with pytest.raises(InfeasibleConstraintError, match="none by less than") as caught:
        CONSTRAINED[solver](problem, max_iter=500)
    assert 0.0 < caught.value.smallest_violation < 0.95


def test_split_fw_finds_how_nearly_contradictory_constraints_can_be_met():
    # Whatever the classifier: no matrix of these row sums meets both.
    contradictory = [Recall(label=1, at_least=0.9), SelectionRate(label=1, at_most=0.01)]
    problem = finite_problem(new_rng(3), "q_mean", contradictory)
    with pytest.raises(InfeasibleConstraintError) as caught:
        run_split_fw(problem)
    with pytest.raises(InfeasibleConstraintError) as expected:
        run_column_generation(problem)
    found, smallest = (e.value.smallest_violation for e in (caught, expected))
    assert found == pytest.approx(smallest, rel=0.02)


def test_a_linear_program_that_fails_otherwise_does_not_blame_the_constraints(
    monkeypatch,
):
    failed = SimpleNamespace(status=4, message="Numerical difficulties.")
    monkeypatch.setattr(split_fw, "linprog", lambda *args, **kwargs: failed)
    problem = finite_problem(new_rng(0), "q_mean", [SelectionRate(at_most=0.5)])
    with pytest.raises(RuntimeError, match="Numerical difficulties"):
        run_split_fw(problem)


@pytest.mark.parametrize("metric", ["micro_f1", "kappa"])
@pytest.mark.parametrize("step", ["bisection", "dinkelbach"])
def test_bisection_ends_at_the_best_single_classifier(metric, step):
    for seed in range(4):
        problem = finite_problem(new_rng(seed), metric)
        result = run_bisection(problem, step=step, tol=1e-6)
        best = min(problem.value(C) for C in problem.oracle.tensors)
        check_optimum(result, problem, best, 1e-6, rounding=1e-12)
        assert len(result.solution.weights) == 1


# An inner solver that is cut short ends at a better ratio which does not meet the
# constraints, or at one above the level while its bound is below: neither is proof.
INNER = [
    ({"inner": "column_generation"}, [1]),
    ({"inner": "gda"}, [1]),
    ({"inner": "gda", "inner_max_iter": 20}, range(4)),
]


@pytest.mark.parametrize(("options", "seeds"), INNER)
@pytest.mark.parametrize("step", ["bisection", "dinkelbach"])
def test_bisection_with_constraints_agrees_with_column_generation(step, options, seeds):
    for seed in seeds:
        problem = bounded_ratio(seed)
        result = run_bisection(problem, step=step, tol=TOL, **options)
        check_optimum(
            result, problem, run_column_generation(problem, tol=1e-7).objective, TOL
        )


def test_frank_wolfe_converges_at_the_rate_of_theorem_12():
    # In the k recalls ψ is 2/k-smooth and their set has diameter at most √k: after t
    # steps the gap is at most 2 (2 / k) k / (t + 2) (Jaggi, ICML 2013).
    for seed in range(5):
        problem = finite_problem(new_rng(seed), Squares(), n_classes=4)
        best = run_column_generation(problem, tol=1e-9).objective
        result = run_frank_wolfe(problem, step="paper", tol=0.0, max_iter=200)
        values, t = result.history["objective"], result.history["n_iter"]
        assert (values - best <= 4.0 / (t + 2.0) + 1e-9).all()


def triangle_problem(recalls):
    """`Squares` over three classifiers with these recalls of three classes."""
    recalls = np.array(recalls)[:, np.newaxis, :, np.newaxis]
    tensors = np.where(np.eye(3), recalls, (1.0 - recalls) / 2.0) / 3.0
    cells = Cells.single(np.full(3, 1.0 / 3.0))
    return ConfusionProblem(Squares(), FiniteOracle(tensors), cells, [])


# Theorem 1 of Lacoste-Julien and Jaggi (2015): of so many steps one divides the distance
# from the optimum by 1 - ρ. A set of three classifiers has 3! orders.
STEPS_PER_GOOD_ONE = {"fully_corrective": 1, "away": 2, "pairwise": 3 * 6 + 1}


@pytest.mark.parametrize("step", STEPS_PER_GOOD_ONE)
def test_steps_off_the_worst_classifier_converge_at_their_linear_rate(step):
    for seed in range(5):
        rng, narrow = new_rng(seed), True
        while narrow:
            recalls = rng.random((3, 3))
            sides = np.linalg.norm(recalls - np.roll(recalls, 1, axis=0), axis=1)
            area = np.linalg.norm(np.cross(*(recalls[1:] - recalls[0]))) / 2.0
            # The pyramidal width of a triangle is its least height.
            width = 2.0 * area / sides.max()
            narrow = width < 0.5 * sides.max()
        rho = (width / sides.max()) ** 2 / 4.0
        # The gap is at most diameter √(2 L h), with L = 2 / 3, and h <= 1 at first.
        tol = 1e-6
        enough = tol**2 / (4.0 / 3.0 * sides.max() ** 2)
        n_good = np.log(enough) / np.log1p(-rho)
        limit = int(STEPS_PER_GOOD_ONE[step] * n_good) + 1
        problem = triangle_problem(recalls)
        result = run_frank_wolfe(problem, step=step, tol=tol, max_iter=limit)
        assert result.status == "converged"
        check_result(result, problem, tol)


def test_steps_off_the_worst_classifier_reach_what_plain_ones_do_not():
    # The best mixture is of the last two, but the start is the first: plain steps shrink
    # its weight in a zigzag, and never to zero.
    problem = triangle_problem([[0.35, 0.35, 1.0], [0.7, 0.1, 0.8], [0.1, 0.7, 0.8]])
    plain = run_frank_wolfe(problem, step="line_search", tol=1e-6, max_iter=1000)
    assert plain.status == "max_iter"
    # Both recalls of 0.4, and one of 0.8.
    best = (2 * 0.6**2 + 0.2**2) / 3.0
    for step in STEPS_PER_GOOD_ONE:
        result = run_frank_wolfe(problem, step=step, tol=1e-6, max_iter=100)
        assert result.status == "converged"
        assert best - 1e-12 <= result.objective <= best + 1e-6 < plain.objective


@pytest.mark.parametrize(
    "step", ["paper", "line_search", "away", "pairwise", "fully_corrective"]
)
def test_frank_wolfe_certifies_a_best_single_classifier_to_any_tol(step):
    # The first answer, which no step improves: only the bound has to come up to it.
    problem = triangle_problem([[0.9, 0.9, 0.8], [0.5, 0.6, 0.5], [0.4, 0.3, 0.8]])
    result = run_frank_wolfe(problem, step=step, tol=1e-13)
    assert result.status == "converged"
    check_result(result, problem, 1e-13)
    assert result.objective == problem.value(problem.oracle.tensors[0])


BOUNDED = [SelectionRate(at_most=0.5)]


@pytest.mark.parametrize(
    ("run", "metric", "constraints", "words"),
    [
        (run_frank_wolfe, "q_mean", BOUNDED, "run_split_fw"),
        (partial(run_frank_wolfe, step="long"), "q_mean", (), "one of .*'pairwise'"),
        *(
            (partial(run_split_fw, step=step), "q_mean", BOUNDED, "with constraints must")
            for step in ("fully_corrective", "lin_search")
        ),
        *(
            (run, metric, (), words)
            for run in (run_gda, run_ellipsoid)
            for metric, words in (
                ("macro_f1", "is not: use 'column_generation'"),
                ("kappa", "'bisection'"),
            )
        ),
        (run_bisection, "g_mean", (), "ratio of linear functions"),
        (partial(run_bisection, inner="none"), "kappa", (), "'inner'.* must be one of"),
    ],
)
def test_what_an_algorithm_is_not_for_is_refused(run, metric, constraints, words):
    problem = finite_problem(new_rng(0), metric, constraints)
    with pytest.raises(ValueError, match=words):
        run(problem)


def test_the_average_of_gda_converges_at_the_rate_of_theorem_13():
    # ψ is L-Lipschitz in the k recalls, L = 1 / √k for Squares on [0, 1] times 2. With
    # |λ| <= 2 L, regrets of gradient descent in ξ and ascent in λ over T steps sum to at
    # most T times the gap of the average.
    k, n_steps = 3, 400
    lipschitz = 2.0 / np.sqrt(k)
    radius = 2.0 * lipschitz
    down = np.sqrt(k) / ((lipschitz + radius) * np.sqrt(n_steps))
    up = 2.0 * radius / (np.sqrt(k) * np.sqrt(n_steps))
    regret_xi = k / (2.0 * down * n_steps) + 0.5 * down * (lipschitz + radius) ** 2
    regret_up = (2.0 * radius) ** 2 / (2.0 * up * n_steps) + 0.5 * up * k
    for seed in range(3):
        problem = finite_problem(new_rng(seed), Squares(), n_classes=k)
        best = run_column_generation(problem, tol=1e-9).objective
        options = {"step_sizes": (down, up), "radius": radius, "average": True}
        result = run_gda(problem, **options, tol=0.0, max_iter=n_steps)
        check_result(result, problem, 0.0)
        assert result.n_oracle_calls == n_steps
        assert result.objective - best <= regret_xi + regret_up


def test_the_ellipsoid_converges_at_the_rate_of_theorem_14():
    # After T central cuts the volume has fallen by exp(-T / 2d), so that the best dual
    # value is within exp(-T / 2d²) of the dual function's range over the ball.
    k, radius, n_steps = 2, 2.0, 60
    for seed in range(3):
        problem = finite_problem(new_rng(seed), Squares(), n_classes=k)
        best = run_column_generation(problem, tol=1e-9).objective
        options = {"radius": radius, "deep_cuts": False, "recombine_interval": 10**6}
        result = run_ellipsoid(problem, **options, tol=0.0, max_iter=n_steps)
        spread = 2.0 * (2.0 * radius * np.sqrt(k))
        dual = result.history["dual_objective"][-2]
        assert best - dual <= spread * np.exp(-n_steps / (2.0 * k**2)) + 1e-5


def split_fw_iterate(problem, n_steps, step):
    """C of Algorithm 5, before any pruning."""
    search = SplitFrankWolfe(problem, 0.0, n_steps, {"step": step})
    search.recombine_interval = np.inf
    for _ in range(n_steps):
        search.move()
    return search.coordinates.tensor(search.c)


def con_gda_average(problem, n_steps):
    """The average of Algorithm 6."""
    result = run_gda(problem, average=True, tol=0.0, max_iter=n_steps)
    assert result.n_oracle_calls == n_steps
    return result.solution.confusion


ITERATES = {
    "split_fw": partial(split_fw_iterate, step="line_search"),
    "split_fw_paper": partial(split_fw_iterate, step="paper"),
    "con_gda": con_gda_average,
}


def with_coverage(free, label, at_most):
    """The problem `free` with a bound on how often a label is predicted."""
    constraint = SelectionRate(label=label, at_most=at_most)
    return ConfusionProblem(free.metric, free.oracle, free.cells, [constraint])


@pytest.mark.parametrize("solver", ITERATES)
def test_constrained_iterates_are_within_tol_after_1_by_tol_squared_calls(solver):
    # Theorems 16 and 17, of the algorithms alone: no mixture is recombined here.
    tol = 0.08
    # Each step of SplitFW solves a linear program.
    for seed in range(2 if solver == "con_gda" else 1):
        free = finite_problem(new_rng(seed), "q_mean")
        best = run_column_generation(free, tol=1e-8)
        coverage = best.solution.confusion.sum(axis=(0, 1))
        # Without the constraint, another classifier would be the best; and some meet it.
        label = coverage.argmax()
        least = free.oracle.tensors[:, 0, :, label].sum(axis=1).min()
        at_most = max(coverage[label] - 0.15, 0.5 * (coverage[label] + least))
        bounded = partial(with_coverage, free, label)
        problem = bounded(at_most)
        C = ITERATES[solver](problem, round(1.0 / tol**2))
        violation = problem.violation(C)
        assert violation <= tol
        # What violates the constraint may be better, but not than what may do so.
        exact, relaxed = (
            run_column_generation(bounded(bound), tol=1e-8).objective
            for bound in (at_most, at_most + max(violation, 0.0))
        )
        assert relaxed - 1e-7 <= problem.value(C) <= exact + tol


def test_the_constrained_ellipsoid_takes_no_more_calls_than_theorem_18_says():
    problem = finite_problem(new_rng(0), "q_mean", [Recall(at_least=0.3, label=0)])
    d = Coordinates(problem).n + 1
    for tol in (1e-2, 1e-4):
        result = run_ellipsoid(problem, tol=tol, recombine_interval=1)
        assert result.status == "converged"
        assert result.n_oracle_calls <= 2.0 * d**2 * np.log(100.0 * d / tol)


def test_bisections_inner_problems_get_the_time_that_is_left(monkeypatch):
    given_times = []

    def inner(problem, *, max_time, **options):
        given_times.append(max_time)
        return run_column_generation(problem, max_time=max_time, **options)

    monkeypatch.setitem(bisection.INNER, "column_generation", inner)
    history = History()
    history.started -= 1e5
    run_bisection(bounded_ratio(1), max_time=1e6, history=history)
    assert given_times
    assert max(given_times) <= 9e5


def test_bisection_halves_the_interval_each_time():
    result = run_bisection(finite_problem(new_rng(0), "micro_f1"), tol=1e-4, max_iter=100)
    # The interval is at most [0, 2] here.
    assert result.n_oracle_calls <= np.ceil(np.log2(2.0 / 1e-4)) + 1
    # With constraints each half is a problem.
    result = run_bisection(bounded_ratio(1), tol=1e-3)
    assert result.n_iter <= np.ceil(np.log2(2.0 / 1e-3)) + 1


@given(st.integers(1, 6), st.integers(0, 1000), st.floats(0.0, 0.8))
def test_the_ellipsoid_keeps_what_the_cut_leaves_and_shrinks(d, seed, share):
    rng = new_rng(seed)
    ellipsoid = Ellipsoid(d, 3.0)
    for _ in range(4):
        w = rng.normal(size=d)
        center, B = ellipsoid.center, ellipsoid.B.copy()
        depth = share * float(np.linalg.norm(B.T @ w))
        u = rng.normal(size=(500, d))
        u *= (rng.random((500, 1)) ** (1.0 / d)) / np.linalg.norm(
            u, axis=1, keepdims=True
        )
        points = center + u @ B.T
        kept = points[(points - center) @ w >= depth]
        assert ellipsoid.cut(w, depth)
        inside = np.linalg.solve(ellipsoid.B, (kept - ellipsoid.center).T)
        assert (np.linalg.norm(inside, axis=0) <= 1.0 + 1e-9).all()
        shrunk = abs(np.linalg.det(ellipsoid.B)) / abs(np.linalg.det(B))
        assert shrunk <= np.exp(-0.5 / d) + 1e-12


def test_an_ellipsoid_is_changed_by_no_empty_cut_and_stays_one_when_flat():
    ellipsoid = Ellipsoid(3, 1.0)
    assert not ellipsoid.cut(np.array([1.0, 0.0, 0.0]), 1.0)
    assert not ellipsoid.cut(np.zeros(3))
    np.testing.assert_array_equal(ellipsoid.B, np.eye(3))
    # Thousands of cuts in few directions; the product form cannot lose definiteness.
    rng = new_rng(0)
    ellipsoid = Ellipsoid(5, 100.0)
    for _ in range(3000):
        assert ellipsoid.cut(np.append(rng.normal(size=2), np.zeros(3)))
        assert np.isfinite(ellipsoid.B).all()
    assert (np.linalg.svd(ellipsoid.B, compute_uv=False) > 0.0).all()


def test_projections_are_nearest():
    rng = new_rng(0)
    z = Coordinates(finite_problem(rng, "zero_one", BOUNDED))
    assert not z.single
    for _ in range(20):
        point = rng.normal(size=z.n)
        nearest = z.project(point)
        assert (nearest >= 0.0).all()
        assert (z.groups @ nearest <= 1.0 + 1e-12).all()
        assert (point - nearest) @ (z.project(rng.random(z.n)) - nearest) <= 1e-9
        point = 3.0 * rng.normal(size=4)
        nearest = project_solid_simplex(point, 2.0)
        assert (nearest >= 0.0).all() and nearest.sum() <= 2.0 + 1e-12
        other = 2.0 * rng.dirichlet(np.ones(5))[:4]
        assert (point - nearest) @ (other - nearest) <= 1e-9
