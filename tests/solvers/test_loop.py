"""The one history of all solvers, and what it does not believe."""

import math
from fractions import Fraction

import numpy as np
import pytest
from _confusion_problems import FiniteOracle, finite_problem
from _risks import make_risk
from _seeds import new_rng

from sklearn_structsvm._utils.columns import mean_sizes_of_rows
from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.confusion.bisection import run_bisection
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.ellipsoid import run_ellipsoid
from sklearn_structsvm.solvers.confusion.frank_wolfe import run_frank_wolfe
from sklearn_structsvm.solvers.confusion.gda import run_gda
from sklearn_structsvm.solvers.confusion.split_fw import run_split_fw
from sklearn_structsvm.solvers.loop import GAP_ROUNDING, History, Rounding, certified

WRONG = "below zero by more than rounding"


def row(objective, dual_objective, **more):
    return {
        "objective": objective,
        "dual_objective": dual_objective,
        "dual_gap": objective - dual_objective,
        "n_oracle_calls": 1,
        "rounding": 0.0,
    } | more


# What `note` gets, and whether it proves a wrong oracle.
NOTES = {
    **{
        f"a bound above, {s:g}": ((row(s, 1.01 * s),), True) for s in (1e-100, 1.0, 1e100)
    },
    "a bound of infinity": ((row(1.0, np.inf),), True),
    "no bound yet": ((row(1.0, -np.inf), None, 0.0), False),
    "no objective yet": ((row(np.inf, -np.inf), None, 0.0), False),
    "a negative gap of an example": ((row(1.0, 0.5), None, -0.01), True),
    "its rounding": ((row(1.0, 0.5), None, -0.1 * GAP_ROUNDING), False),
    "terms that cancel": ((row(0.0, 1e-14), None, 0.0, lambda: 1.0), False),
    "terms that do not": ((row(0.0, 1e-14), None, 0.0, lambda: 1e-3), True),
    "no terms": ((row(0.0, 1e-14), None, 0.0, lambda: 0.0), True),
    # A mixture that violates a constraint may be better than all that meet it.
    "a violation": ((row(0.5, 0.6, constraint_violation=1e-10),), False),
    "no violation": ((row(0.5, 0.6, constraint_violation=0.0),), True),
}


@pytest.mark.parametrize(("noted", "is_wrong"), NOTES.values(), ids=NOTES)
def test_a_bound_above_the_objective_is_an_error_but_for_rounding(noted, is_wrong):
    arguments = (*noted, None)[: max(2, len(noted))]
    if is_wrong:
        with pytest.raises(ValueError, match=WRONG):
            History().note(*arguments)
    else:
        History().note(*arguments)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_rounding_is_none(scale):
    history = History()
    history.note(row(scale, scale * (1.0 + 0.5 * GAP_ROUNDING)), None)
    # The scale is that of what there was before, too.
    history.note(row(0.0, 0.5 * GAP_ROUNDING * scale), None)
    assert len(history.rows) == 2


def test_a_gap_is_no_smaller_than_the_rounding_of_its_terms():
    for bound in (1.0, 1.0 - 1e-12, 1.0 + 5e-11):
        noted = History().note(certified(1.0, bound - 1e-10, 1e-10, 1), None)
        assert noted["dual_gap"] >= 1e-10
        assert noted["dual_objective"] <= 1.0 - 1e-10


def test_a_bound_above_an_objective_that_was_seen_never_ends_as_converged():
    history = History()
    history.note(certified(1.0, 0.0, 1e-15, 1), None)
    # Of worse weights, the gap alone would look like convergence.
    noted = history.note(certified(1.0 + 2e-7, 1.0 + 1e-7, 1e-15, 1), None)
    assert noted["dual_gap"] == np.inf
    # Another problem may have a larger optimum.
    history.forget_objectives()
    noted = history.note(certified(3.0, 2.9, 1e-15, 1), None)
    assert noted["dual_gap"] == pytest.approx(0.1)


def test_the_result_describes_the_best_weights_seen():
    history = History()
    for k, objective in enumerate((3.0, 1.0, 2.0)):
        history.note(certified(objective, 0.3 * k, 1e-15, 1), np.full(2, float(k)))
    result = history.result("max_iter")
    np.testing.assert_array_equal(result.solution, np.ones(2))
    assert result.objective == 1.0 == result.history["objective"][-1]
    assert result.gap == pytest.approx(1.0 - 0.6)


@pytest.mark.parametrize("n_terms", [30, 10_000])
def test_errors_of_scores_are_those_of_terms_and_not_of_sums(n_terms):
    rng = new_rng(7)
    X = 1e9 + rng.standard_normal((n_terms, 2))
    w = np.array([1.0, -1.0]) * rng.standard_normal()
    p = np.full(n_terms, 1.0 / n_terms)
    rounding = Rounding(mean_sizes_of_rows(X, p), n_terms)
    exact = math.fsum(
        float(Fraction(a) * Fraction(w[0]) + Fraction(b) * Fraction(w[1])) / n_terms
        for a, b in X.tolist()
    )
    error = abs(float(p @ (X @ w)) - exact)
    # The sum is of size 1, and its terms are of size 1e9.
    assert error <= rounding.of_values(w) <= 1e-4 * abs(w[0])


class HighPlanes:
    """A risk whose planes are above it."""

    def __init__(self, risk):
        self.risk = risk

    def __getattr__(self, name):
        return getattr(self.risk, name)

    def plane(self, *args, **kwargs):
        B, offset = self.risk.plane(*args, **kwargs)
        return B, offset + 0.3


class LowValues(HighPlanes):
    """A risk that leaves out a part of its values."""

    plane = property(lambda self: self.risk.plane)

    def value(self, Z):
        return 0.3 * self.risk.value(Z)


@pytest.mark.parametrize("broken", [HighPlanes, LowValues])
@pytest.mark.parametrize("options", [{}, {"line_search": False}, {"subproblem": "line"}])
def test_a_wrong_risk_does_not_converge(options, broken):
    rng = new_rng(0)
    risk = make_risk("multiclass", rng.standard_normal((30, 3)), rng)
    run_bmrm(risk, 0.1, tol=1e-6, **options)
    with pytest.raises(ValueError, match="In a risk, value or plane is wrong"):
        run_bmrm(broken(risk), 0.1, tol=1e-6, **options)


class OverstatesItsBound(FiniteOracle):
    def __call__(self, L):
        C, handle, bound = super().__call__(L)
        # More than any metric is: less may look like convergence.
        return C, handle, bound + 10.0


@pytest.mark.parametrize(
    ("run", "metric"),
    [
        (run_column_generation, "q_mean"),
        (run_frank_wolfe, "q_mean"),
        (run_split_fw, "q_mean"),
        (run_gda, "q_mean"),
        (run_ellipsoid, "q_mean"),
        (run_bisection, "micro_f1"),
    ],
)
def test_a_wrong_lmo_that_is_said_to_be_exact_does_not_converge(run, metric):
    problem = finite_problem(new_rng(0), metric)
    run(problem, tol=1e-3, max_iter=200)
    problem.oracle = OverstatesItsBound(problem.oracle.tensors)
    with pytest.raises(ValueError, match="LMO returns a classifier that is not"):
        run(problem, tol=1e-3, max_iter=200)
