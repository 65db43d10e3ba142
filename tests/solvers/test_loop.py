"""The one history of all solvers, and what it does not believe."""

import numpy as np
import pytest
from _confusion_problems import FiniteOracle, finite_problem
from _risks import make_risk
from _seeds import new_rng

from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.confusion.bisection import run_bisection
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.ellipsoid import run_ellipsoid
from sklearn_structsvm.solvers.confusion.frank_wolfe import run_frank_wolfe
from sklearn_structsvm.solvers.confusion.gda import run_gda
from sklearn_structsvm.solvers.confusion.split_fw import run_split_fw
from sklearn_structsvm.solvers.loop import GAP_ROUNDING, History

WRONG = "below zero by more than rounding"


def row(objective, dual_objective, **more):
    return {
        "objective": objective,
        "dual_objective": dual_objective,
        "dual_gap": objective - dual_objective,
        "n_oracle_calls": 1,
    } | more


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_a_bound_above_the_objective_is_an_error_at_any_scale(scale):
    with pytest.raises(ValueError, match=WRONG):
        History().note(row(scale, 1.01 * scale), None)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_rounding_is_none(scale):
    history = History()
    history.note(row(scale, scale * (1.0 + 0.5 * GAP_ROUNDING)), None)
    # The scale is that of what there was before, too.
    history.note(row(0.0, 0.5 * GAP_ROUNDING * scale), None)
    assert len(history.rows) == 2


def test_the_most_negative_gap_of_an_example_counts_alone():
    with pytest.raises(ValueError, match=f"gap is -0.01, {WRONG}"):
        History().note(row(1.0, 0.5), None, -0.01)
    History().note(row(1.0, 0.5), None, -0.1 * GAP_ROUNDING)


def test_rounding_of_terms_that_cancel_is_none():
    History().note(row(0.0, 1e-14), None, 0.0, lambda: 1.0)
    for terms in (1e-3, 0.0):
        with pytest.raises(ValueError, match=WRONG):
            History().note(row(0.0, 1e-14), None, 0.0, lambda size=terms: size)


def test_bounds_that_are_not_there_yet_prove_nothing():
    History().note(row(1.0, -np.inf), None, 0.0)
    History().note(row(np.inf, -np.inf), None, 0.0)


def test_a_bound_of_infinity_is_an_error():
    with pytest.raises(ValueError, match=WRONG):
        History().note(row(1.0, np.inf), None)


def test_a_mixture_that_violates_a_constraint_may_be_better_than_all_that_meet_it():
    History().note(row(0.5, 0.6, constraint_violation=1e-10), None)
    with pytest.raises(ValueError, match=WRONG):
        History().note(row(0.5, 0.6, constraint_violation=0.0), None)


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
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"line_search": False},
        {"subproblem": "line"},
    ],
)
def test_a_wrong_risk_does_not_converge(options, broken):
    rng = new_rng(0)
    X = rng.standard_normal((30, 3))
    risk = make_risk("multiclass", X, rng)
    run_bmrm(risk, 0.1, tol=1e-6, **options)
    with pytest.raises(ValueError, match="Of a risk it is value or plane"):
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
    with pytest.raises(ValueError, match="of an LMO a classifier that is not the best"):
        run(problem, tol=1e-3, max_iter=200)
