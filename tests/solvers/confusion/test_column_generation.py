"""Column generation: against brute force, other programs and known distributions."""

from itertools import product

import numpy as np
import pytest
from _confusion_problems import (
    FiniteOracle,
    check_optimum,
    check_result,
    finite_problem,
    gaussian_problem,
    linear_optimum,
)
from _problems import check_interrupted
from _random_confusion import Programs
from _seeds import new_rng
from scipy.optimize import brentq
from scipy.stats import norm

from sklearn_structsvm.confusion import ConfusionMetric
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.registry import METRICS
from sklearn_structsvm.metrics import (
    FalsePositiveRate,
    LinearLoss,
    Precision,
    Quantification,
    Recall,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion import column_generation
from sklearn_structsvm.solvers.confusion.column_generation import (
    least_violated,
    run_column_generation,
)
from sklearn_structsvm.solvers.confusion.incumbent import Incumbent
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError


class WorstSquare(ConfusionMetric):
    """A user's own: convex, and not smooth, and its gradient is by differences."""

    convex = True

    def value(self, C):
        return float(max((1.0 - C.diagonal() / C.sum(axis=1)) ** 2))


@pytest.mark.parametrize("size", [1.0, 1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_are_lowered_by_the_rounding_of_terms_that_cancel(dtype, size):
    for seed in range(5):
        rng = new_rng(seed)
        P = rng.dirichlet(np.ones(4), size=1000).astype(dtype)
        costs = size + rng.standard_normal((4, 4))
        problem = ConfusionProblem.from_probabilities(LinearLoss(costs), P)
        result = run_column_generation(problem, tol=1e-12, max_iter=20)
        masses = P.astype(np.longdouble)
        best = (masses @ costs.astype(np.longdouble)).min(axis=1).sum() / masses.sum()
        assert result.dual_objective <= best
        assert result.gap >= abs(result.objective - best)
        assert result.gap <= 100.0 * np.finfo(dtype).eps * size


@pytest.mark.parametrize("metric", ["micro_f1", "kappa"])
def test_ratios_end_at_the_best_single_classifier(metric):
    for seed in range(8):
        problem = finite_problem(new_rng(seed), metric)
        result = run_column_generation(problem, tol=1e-9)
        best = min(problem.value(C) for C in problem.oracle.tensors)
        check_optimum(result, problem, best, 1e-9, rounding=1e-12)
        assert len(result.solution.weights) == 1
        assert result.objective == pytest.approx(best, abs=1e-9)


def test_the_smallest_violation_is_that_of_a_linear_program():
    problem = finite_problem(new_rng(3), "g_mean", [Recall(at_least=0.95)])
    free = ConfusionProblem(problem.metric, problem.oracle, problem.cells)
    best = linear_optimum(free, *problem.linear)
    with pytest.raises(InfeasibleConstraintError) as caught:
        run_column_generation(problem)
    assert best * 0.99 <= caught.value.smallest_violation <= best + 1e-9


def test_a_users_own_metric_needs_a_value_alone():
    for seed in range(3):
        problem = finite_problem(new_rng(seed), WorstSquare())
        result = run_column_generation(problem, tol=1e-4)
        worst = finite_problem(new_rng(seed), "min_max")
        best = linear_optimum(worst, *worst.pieces()) ** 2
        # Differences across a kink are slopes up to their step, 6e-6 of a row.
        check_optimum(result, problem, best, 1e-4, rounding=1e-5)


def test_metrics_that_are_not_convex_end_where_no_slope_leads_down():
    for seed in range(4):
        problem = finite_problem(new_rng(seed), "macro_f1")
        result = run_column_generation(problem, tol=1e-4)
        assert result.status in ("stationary", "converged")
        check_result(result, problem, 1e-4)
        tensors = problem.oracle.tensors
        assert result.objective <= min(problem.value(C) for C in tensors) + 1e-12
        C = result.solution.confusion
        assert np.tensordot(tensors - C, problem.gradient(C), axes=3).min() >= -1e-3
        # The mean of each class's own optimum is below all mixtures.
        weights = new_rng(0).dirichlet(np.full(20, 0.1), size=500)
        mixed = np.tensordot(weights, tensors, axes=1)
        assert result.dual_objective <= min(problem.value(C) for C in mixed)


def test_constrained_metrics_that_are_not_convex_end_where_no_slope_leads_down():
    n, k, tol = 60, 6, 1e-6
    for seed in range(3):
        rng = new_rng(seed, k)
        P = rng.dirichlet(np.ones(k), size=n)
        free = ConfusionProblem.from_probabilities("zero_one", P)
        losses = rng.exponential(size=(4, *free.shape))
        found = [free.lmo(L)[0] for L in losses]
        C = np.tensordot(rng.dirichlet(np.ones(4)), found, axes=1)
        constraints = []
        for kind in (Precision, FalsePositiveRate):
            reached = kind(at_most=0.0).violation(C, free.cells)
            constraints.append(kind(at_most=min(reached + 1e-3, 1.0)))
        problem = ConfusionProblem.from_probabilities(
            "macro_f1", P, constraints=constraints
        )
        result = run_column_generation(problem, tol=tol, max_iter=250)
        assert result.status == "stationary"
        # No mixture that meets the constraints is better to first order.
        C = result.solution.confusion
        tensors = np.zeros((n, k, 1, k, k))
        for i, j in product(range(n), range(k)):
            tensors[i, j, 0, :, j] = P[i] / P.sum()
        tensors = tensors.reshape(-1, 1, k, k)
        programs = Programs(problem, tensors, np.repeat(np.arange(n), k))
        least, _ = programs.solve(programs.along(*problem.tangent(C)))
        assert least >= problem.value(C) - 2.0 * tol


def test_no_bound_is_known_of_a_metric_that_is_not_convex_and_has_no_parts():
    result = run_column_generation(finite_problem(new_rng(0), "mcc"))
    assert result.status == "stationary"
    assert result.dual_objective == -np.inf and result.gap == np.inf


def test_the_uniform_distribution_has_the_optimum_known_in_closed_form():
    # P(Y=1) = 1/3, uniform on [-1, 1] and [0, 2]: η is 0, 1/3 or 1, with probabilities
    # 1/3, 1/2 and 1/6. With a share a of [0, 1] that is predicted 1, the recalls are
    # 1 - a / 2 and 1/2 + a / 2: 3/4 at best, both of them.
    eta = np.array([0.0, 1.0 / 3.0, 1.0])
    eta = np.column_stack([1.0 - eta, eta])
    for metric in ("g_mean", "h_mean", "q_mean", "min_max"):
        problem = ConfusionProblem.from_probabilities(
            metric, eta, sample_weight=[2.0, 3.0, 1.0]
        )
        result = run_column_generation(problem, tol=1e-8)
        assert result.objective == pytest.approx(0.25, abs=1e-7)
        assert result.dual_objective <= 0.25 + 1e-12
        np.testing.assert_allclose(
            result.solution.confusion[0].diagonal(), [0.5, 0.25], atol=1e-3
        )


@pytest.mark.parametrize("positive", [0.5, 0.2])
@pytest.mark.parametrize("metric", ["g_mean", "h_mean", "q_mean", "min_max"])
def test_the_normal_distributions_have_the_optimum_known_in_closed_form(metric, positive):
    # Recalls are Φ(t + 1/2) and Φ(1/2 - t): equal at t = 0, whatever the priors.
    problem = gaussian_problem(metric, positive=positive)
    result = run_column_generation(problem, tol=1e-7)
    check_optimum(result, problem, norm.cdf(-0.5), 1e-7, rounding=1e-12)
    assert result.objective == pytest.approx(norm.cdf(-0.5), abs=2e-7)


def test_the_papers_example_with_coverage_has_its_optimum_on_the_border():
    # H-mean with at most 30 % predicted positive (section 5): a threshold, since of all
    # classifiers of this coverage it has the largest recalls.
    problem = gaussian_problem("h_mean", [SelectionRate(at_most=0.3, label=1)])
    result = run_column_generation(problem, tol=1e-7)
    threshold = brentq(
        lambda t: 0.5 * (norm.sf(t - 0.5) + norm.sf(t + 0.5)) - 0.3, -3.0, 3.0
    )
    best = problem.value(problem.oracle.tensor(threshold))
    check_optimum(result, problem, best, 1e-7, rounding=1e-10)


def three_gaussians(n=60):
    """The distribution of section 8.3 on a grid, as a weighted sample."""
    means = np.array([[1.0, 1.0], [0.0, 0.0], [-1.0, -1.0]])
    inverse = np.linalg.inv(np.array([[5.0, 1.0], [1.0, 5.0]]))
    line = np.linspace(-9.0, 9.0, n)
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    away = points[:, None] - means
    density = np.exp(-0.5 * np.einsum("nki,ij,nkj->nk", away, inverse, away))
    joint = density * [0.85, 0.1, 0.05]
    return joint / joint.sum(axis=1, keepdims=True), joint.sum(axis=1)


def test_no_cost_matrix_on_a_grid_is_better_for_the_papers_synthetic_data():
    eta, weights = three_gaussians()
    problem = ConfusionProblem.from_probabilities("q_mean", eta, sample_weight=weights)
    result = run_column_generation(problem, tol=1e-5)
    check_result(result, problem, 1e-5)
    # The Bayes classifier is argmax_i w_i η_i (Proposition 9).
    grid = np.linspace(0.02, 1.0, 50)
    best = min(
        problem.value(problem.oracle.confusion(-np.diag([a, b, 1.0])[None]))
        for a in 0.3 * grid
        for b in 3.0 * grid
    )
    assert result.dual_objective <= best
    assert result.objective <= best + 1e-5
    assert best <= result.objective + 5e-3


def plugin_problem(metric, constraints=(), confusion="probabilities", n=2000, k=4):
    rng = new_rng(7)
    eta = rng.dirichlet(np.arange(1, k + 1) / 2.0, size=n)
    y = (eta.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return ConfusionProblem.from_probabilities(
        metric, eta, y if confusion == "labels" else None, constraints=constraints
    )


@pytest.mark.parametrize(
    "metric",
    ["h_mean", "q_mean", "g_mean", "min_max", "balanced", "ordinal", "micro_f1", "kappa"],
)
def test_a_certificate_takes_few_calls_of_the_oracle(metric):
    problem, asked = plugin_problem(metric), []
    oracle = problem.oracle
    problem.oracle = lambda L: asked.append(L) or oracle(L)
    result = run_column_generation(problem)
    assert result.status == "converged"
    check_result(result, problem, 1e-3)
    assert len(asked) == result.n_oracle_calls <= 30


@pytest.mark.parametrize("metric", ["h_mean", "min_max", "micro_f1"])
def test_the_bound_of_an_oracle_that_is_not_exact_is_never_above_the_value(metric):
    problem = plugin_problem(metric, confusion="labels")
    assert not problem.exact
    result = run_column_generation(problem, tol=1e-5, max_iter=100)
    assert result.gap >= 0.0
    check_result(result, problem, 1e-5)


def test_a_mixture_has_no_more_classifiers_than_arguments_and_one():
    result = run_column_generation(plugin_problem("min_max"), tol=1e-4)
    assert len(result.solution.weights) <= 5
    assert result.solution.weights.min() >= 1e-6


def test_limits_and_callers_end_a_run_with_what_there_is():
    problem, seen = plugin_problem("min_max"), []
    result = run_column_generation(problem, tol=0.0, max_iter=3)
    assert result.status == "max_iter" and result.n_iter == 3
    check_result(result, problem, 0.0)
    result = run_column_generation(problem, tol=0.0, max_time=0.0)
    assert result.status == "max_time" and result.n_iter == 1

    def stop(n_iter, row, done):
        seen.append((n_iter, row["n_oracle_calls"], done))
        return n_iter == 2

    result = run_column_generation(problem, tol=0.0, on_pass=stop)
    assert result.status == "stopped"
    assert seen == [(1, 1, False), (2, 2, False)]
    check_result(result, problem, 0.0)
    result = run_column_generation(
        finite_problem(new_rng(0), "min_max"), tol=-1.0, max_iter=1000
    )
    assert result.status == "stalled"
    assert result.gap <= 1e-7


def test_an_interrupted_run_leaves_its_best_mixture_behind():
    problem = plugin_problem("min_max")

    def run(tol, **options):
        return run_column_generation(problem, **options)

    check_interrupted(run, lambda mixture: problem.value(mixture.confusion), at=4)


@pytest.mark.parametrize("metric", ["h_mean", "g_mean"])
@pytest.mark.parametrize(
    ("groups", "constraints"),
    [(None, []),
     (np.arange(2), []),
     (np.arange(2), [SelectionRate(at_most=0.0, group=1, label=2)]),
     (np.arange(2), [Precision(at_most=0.05, group=1, label=2)])],
)  # fmt: skip
def test_means_of_recalls_leave_where_several_recalls_are_zero(
    metric, groups, constraints
):
    # No classifier predicts more than two of the five classes, and no line between two
    # classifiers leads to a better mean than the worst.
    rng = new_rng(31)
    P = np.zeros((2, 5))
    P[0, [0, 2, 4]], P[1, [1, 2, 3]] = rng.dirichlet([4.0, 3.0, 1.0], size=2)
    weights = rng.uniform(0.4, 0.6, size=2)
    problem = ConfusionProblem.from_probabilities(
        metric, P, None, sample_weight=weights, sensitive_features=groups,
        constraints=constraints,
    )  # fmt: skip
    result = run_column_generation(problem, tol=1e-6, max_iter=1000, max_time=None)
    assert result.violation <= 0.0
    assert result.status == "converged" and result.gap <= 1e-6
    assert result.objective < 0.9


@pytest.mark.parametrize("constraints", [(), [SelectionRate(at_most=0.4)]], ids=len)
@pytest.mark.parametrize("metric", ["min_max", "mcc", "macro_f1"])
def test_all_columns_but_the_best_may_be_forgotten(monkeypatch, metric, constraints):
    problem = plugin_problem(metric, constraints, k=4)
    unlimited = run_column_generation(problem, tol=1e-6)
    monkeypatch.setattr(column_generation, "MAX_MASTER_COLUMNS", 8)
    result = run_column_generation(problem, tol=1e-6, max_iter=200)
    check_result(result, problem, 1e-6)
    assert result.status == ("converged" if metric == "min_max" else "stationary")
    assert result.objective <= unlimited.objective + 1e-3


class LazyOracle(FiniteOracle):
    """Finds the best of two tensors in its first calls, and of all in later ones."""

    exact = False

    def __init__(self, tensors, n_lazy=4):
        super().__init__(tensors)
        self.n_lazy = n_lazy

    def __call__(self, L):
        self.n_calls += 1
        known = self.tensors[:2] if self.n_calls <= self.n_lazy else self.tensors
        costs = np.tensordot(known, L, axes=3)
        best = int(np.argmin(costs))
        return known[best], best, float(costs[best])


def lazy_problem(constraint, seed):
    """The oracle's first two tensors are those that violate the constraint most."""
    problem = finite_problem(new_rng(seed), "h_mean", [constraint])
    tensors = problem.oracle.tensors
    order = np.argsort([-problem.violation(C) for C in tensors])
    return problem, ConfusionProblem(
        problem.metric, LazyOracle(tensors[order]), problem.cells, [constraint]
    )


@pytest.mark.parametrize("seed", range(4))
def test_an_oracle_that_finds_late_what_meets_the_constraints_is_waited_for(seed):
    exact, lazy = lazy_problem(Recall(at_least=0.3), seed)
    best = run_column_generation(exact, tol=1e-6)
    result = run_column_generation(lazy, tol=1e-4)
    check_result(result, lazy, 1e-4)
    assert result.violation <= 0.0
    assert result.objective <= best.objective + 1e-3
    assert result.n_oracle_calls == lazy.oracle.n_calls


def test_an_oracle_that_is_not_exact_says_what_it_could_not_find():
    exact, lazy = lazy_problem(Recall(at_least=1.0), 0)
    with pytest.raises(
        InfeasibleConstraintError, match="No mixture of the classifiers found"
    ) as caught:
        run_column_generation(lazy)
    with pytest.raises(InfeasibleConstraintError) as expected:
        run_column_generation(exact)
    found = caught.value.smallest_violation
    assert found >= expected.value.smallest_violation
    # The nearest is so by excess: shares of the sample, where recalls are of a class.
    least, _ = Programs(exact).least_excess()
    assert found <= 1.02 * least / exact.priors.min()


def test_the_search_for_the_smallest_violation_ends_with_the_time():
    problem = finite_problem(new_rng(3), "q_mean", [Recall(at_least=0.95)])
    incumbent = Incumbent(problem, 1e-3, least_violated)
    incumbent.deadline = 0.0
    with pytest.raises(InfeasibleConstraintError):
        incumbent.check_feasible(1e-6)
    assert problem.oracle.n_calls <= 2
    # Where that proves nothing, the run goes on to its end.
    _, lazy = lazy_problem(Recall(at_least=0.3), 1)
    incumbent = Incumbent(lazy, 1e-3, least_violated)
    incumbent.deadline = 0.0
    incumbent.check_feasible(1e-6)
    assert 1 <= lazy.oracle.n_calls == incumbent.n_calls <= 2


@pytest.mark.parametrize("metric", ["micro_f1", "min_max", "q_mean", "kappa"])
@pytest.mark.parametrize("missing", [1e-2, 1e-4, 1e-6, 1e-8])
def test_constraints_that_are_missed_by_little_are_an_error(metric, missing):
    for seed in range(3):
        C = np.array(finite_problem(new_rng(seed), metric).oracle.tensors).sum(axis=1)
        highest = (C[:, 0, 0] / C[:, 0].sum(axis=1)).max()
        too_high = Recall(label=0, at_least=min(highest + missing, 1.0))
        if highest + missing < 1.0:
            problem = finite_problem(new_rng(seed), metric, [too_high])
            with pytest.raises(InfeasibleConstraintError):
                run_column_generation(problem)


def test_a_rate_of_zero_beside_a_curved_constraint_is_certified():
    rng = new_rng()
    none = FalsePositiveRate(at_most=0.0, group=0, label=4)
    for _ in range(2):
        problem = ConfusionProblem.from_probabilities(
            METRICS["recall"](pos_label=3),
            rng.dirichlet(np.ones(5), size=8),
            constraints=[none, Quantification(at_most=0.5)],
            sensitive_features=np.arange(8) % 4,
        )
        result = run_column_generation(problem, tol=1e-4)
        assert result.status == "converged"
        assert result.violation <= 1e-9


def test_a_ratio_whose_denominator_may_vanish_ends_at_its_bound():
    for seed in range(2):
        problem = ConfusionProblem.from_probabilities(
            Precision(pos_label=1),
            new_rng(seed).dirichlet(np.full(3, 0.3), size=8),
            constraints=[Quantification(at_most=10.0, per_group=True)],
            sensitive_features=np.arange(8) % 2,
        )
        result = run_column_generation(problem, tol=1e-4)
        assert result.status == "converged"
        assert result.n_iter <= 15


def test_what_a_negligible_weight_meets_is_not_met_without_it():
    # The divergence of a class that is hardly in the group, and that is better never
    # predicted there.
    for seed in range(3):
        problem = ConfusionProblem.from_probabilities(
            Precision(pos_label=1),
            new_rng(seed).dirichlet(np.full(3, 0.3), size=8),
            constraints=[Quantification(at_most=3.0, per_group=True)],
            sensitive_features=np.arange(8) % 2,
        )
        assert run_column_generation(problem, tol=1e-4).violation <= 0.0


@pytest.mark.parametrize("k", [2, 3])
def test_a_curved_constraint_keeps_the_share_of_a_precision_from_zero(k):
    P = new_rng(k).dirichlet(np.ones(k), size=60)
    for at_most in (0.01, 0.1):
        constraint, tol = Quantification(at_most=at_most), 1e-6
        problem = ConfusionProblem.from_probabilities(
            Precision(pos_label=1), P, constraints=[constraint]
        )
        result = run_column_generation(problem, tol=tol, max_iter=200)
        assert result.status == "converged" and result.gap <= tol
        # It binds: the share of label 1 is smaller than it is.
        excess = problem.violation(result.solution.confusion)
        assert -1e-3 < excess <= 1e-9
