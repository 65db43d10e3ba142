"""All solvers on random problems of every kind, against linear programs."""

import numpy as np
import pytest
from _confusion_problems import FiniteOracle, random_tensors
from _random_confusion import (
    OF_CONFUSION,
    TOL,
    Programs,
    check_solver,
    jumps_upwards,
    random_problem,
)
from _seeds import new_rng

from sklearn_structsvm.confusion import Cells
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.registry import get_metric
from sklearn_structsvm.metrics import (
    EqualizedOdds,
    FBeta,
    Jaccard,
    Precision,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion.bounds import denominator_range
from sklearn_structsvm.solvers.confusion.named import SOLVERS


def is_for(solver, problem):
    if solver == "bisection":
        return problem.ratio() is not None
    return problem.convex or solver not in ("gda", "ellipsoid")


@pytest.mark.parametrize("kind", ["any", "free", "absent"])
@pytest.mark.parametrize("metric", [*OF_CONFUSION, "linear"])
def test_column_generation_ends_at_the_optimum_of_every_problem(metric, kind):
    problem = random_problem(new_rng(0, len(kind)), metric, kind)
    result = check_solver("column_generation", problem, 1000)
    if result is None:
        return
    if metric == "precision" and result.status == "stalled":
        # Nothing keeps its denominator from 0, nor then a bound from -inf.
        assert denominator_range(problem, problem.ratio()[1])[0] == 0.0
    elif metric in ("macro_f1", "jaccard") and result.status == "stalled":
        assert jumps_upwards(problem, result.solution.confusion, problem.oracle.tensors)
    else:
        assert result.status in ("converged", "stationary")


def test_a_jump_on_the_way_to_all_classifiers_does_not_end_the_descent():
    """One of them predicts a class without examples, which spoils mixtures with it."""
    rows = [[[5, 2, 5], [4, 4, 4]], [[1, 4, 0], [4, 5, 0]], [[3, 2, 0], [5, 1, 0]]]
    tensors = np.zeros((3, 1, 3, 3))
    tensors[:, 0, :2] = rows / (2.0 * np.sum(rows, axis=2, keepdims=True))
    cells = Cells(tensors[0].sum(axis=2), np.arange(3))
    metric = get_metric("macro_f1", cells.classes)
    problem = ConfusionProblem(metric, FiniteOracle(tensors), cells, [])
    result = check_solver("column_generation", problem, 1000)
    assert result.objective < min(map(problem.value, tensors)) - 1e-2


@pytest.mark.parametrize("kind", ["any", "free"])
@pytest.mark.parametrize("metric", [*OF_CONFUSION, "linear"])
def test_no_solver_claims_what_is_not_so(metric, kind):
    rng = new_rng(len(kind), *map(ord, metric))
    problem = random_problem(rng, metric, kind)
    programs = Programs(problem)
    for solver in sorted({*SOLVERS} - {"column_generation"}):
        if is_for(solver, problem):
            check_solver(solver, problem, 40, programs=programs)


@pytest.mark.parametrize("metric", ["zero_one", "q_mean", "g_mean", "micro_f1", "kappa"])
def test_what_only_those_meet_that_never_predict_a_class_is_met_so(metric):
    for i in range(4):
        problem = random_problem(new_rng(i), metric, "never")
        result = check_solver("column_generation", problem, 1000)
        if result is not None:
            assert result.status == "converged"


def test_parities_of_a_class_that_is_never_predicted_do_not_end_a_run_early():
    odds = EqualizedOdds(bound="ratio", ratio=0.1, reference="overall")
    for i in range(24):
        drawn = random_problem(new_rng(i), "balanced", "never")
        if drawn.shape[0] == 1 or drawn.shape[-1] == 2:
            continue
        problem = ConfusionProblem(
            drawn.metric, drawn.oracle, drawn.cells, [odds, drawn.constraints[-1]]
        )
        result = check_solver("column_generation", problem, 300, tol=1e-6)
        assert result is None or result.status == "converged"


@pytest.mark.parametrize(
    "metric", [FBeta(pos_label=2), Jaccard("micro"), "min_max", "q_mean"], ids=str
)
def test_a_condition_that_is_zero_for_all_classifiers_changes_nothing(metric):
    for i in range(2):
        tensors, _ = random_tensors(new_rng(i), 25, 3, 3)
        # A precision of 0 / 0 in group 1, which has no example of class 0.
        tensors[:, 1, 0] = 0.0
        tensors /= tensors[0].sum()
        cells = Cells(tensors[0].sum(axis=2), np.arange(3), np.arange(3), [0, 1, 2])
        coverage = SelectionRate(target="priors", slack=0.05, per_group=True)
        zero = Precision(label=0, group=1, at_least=0.0)
        problems = [
            ConfusionProblem(
                get_metric(metric, cells.classes), FiniteOracle(tensors), cells, chosen
            )
            for chosen in ([coverage], [coverage, zero])
        ]
        assert not np.tensordot(tensors, problems[1].linear[0][-1], axes=3).any()
        without, with_zero = (
            check_solver("column_generation", problem, 1000) for problem in problems
        )
        if without is None:
            assert with_zero is None
            continue
        assert without.status == with_zero.status == "converged"
        assert without.n_iter == with_zero.n_iter
        assert abs(without.objective - with_zero.objective) <= 0.1 * TOL
