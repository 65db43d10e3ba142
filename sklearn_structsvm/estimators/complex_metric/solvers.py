"""Which solver a name stands for, and what is told of its result."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm.solvers.confusion.bisection import run_bisection
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.ellipsoid import run_ellipsoid
from sklearn_structsvm.solvers.confusion.frank_wolfe import run_frank_wolfe
from sklearn_structsvm.solvers.confusion.gda import run_gda
from sklearn_structsvm.solvers.confusion.mixture import MET
from sklearn_structsvm.solvers.confusion.split_fw import run_split_fw

# Name: the functions without and with constraints.
SOLVERS = {
    "column_generation": (run_column_generation, run_column_generation),
    "frank_wolfe": (run_frank_wolfe, run_split_fw),
    "gda": (run_gda, run_gda),
    "ellipsoid": (run_ellipsoid, run_ellipsoid),
    "bisection": (run_bisection, run_bisection),
}

# What solver="auto" stands for. Section 8.6 of the paper has Frank-Wolfe for smooth
# metrics, the ellipsoid for few classes and GDA for all else; column generation reaches a
# gap of 1e-3 in fewer calls than each of them on every data set tried.
AUTO = "column_generation"

# A share of the predictions below this is what sums of weights leave of zero.
ROUNDING = 1e-12


def find_solver(name, problem):
    """The name that "auto" stands for, and the function for the problem."""
    name = AUTO if name == "auto" else name
    return name, SOLVERS[name][problem.constrained]


def warn_of_shortfall(estimator, result):
    """ConvergenceWarning where a run ended before it was done."""
    if result.status not in ("max_iter", "max_time", "stalled"):
        return
    lacks = []
    if result.gap > estimator.tol and np.isfinite(result.gap):
        lacks.append(
            f"a gap of {result.gap:.3g} > tol={estimator.tol:.3g}: the metric is at most "
            "that far from its optimum"
        )
    if result.violation > MET:
        lacks.append(f"a constraint violated by {estimator.constraint_violation_:.3g}")
    if not lacks and result.status == "stalled":
        return
    if result.status == "stalled":
        end, remedy = "found nothing more to do", "Use a larger tol, or another solver."
    else:
        limit = getattr(estimator, result.status)
        end = f"stopped at {result.status}={limit}"
        remedy = f"Increase {result.status}"
        remedy += "." if estimator.solver_ == AUTO else f", or use solver='{AUTO}'."
    what = " and ".join(lacks) or "no bound on how far it is from its optimum"
    warn_caller(
        f"{estimator.solver_} {end}, with {what}. {remedy}",
        ConvergenceWarning,
    )


def warn_of_constant(estimator):
    """UserWarning where the mixture predicts one class only."""
    predicted = estimator.confusion_.sum(axis=0) > ROUNDING
    if predicted.sum() != 1:
        return
    (always,) = estimator.classes_[predicted].tolist()
    never = estimator.classes_[~predicted].tolist()
    by, look_at = "of those that the LMO found", "LMO"
    if hasattr(estimator, "estimator_"):
        by, look_at = "by the class probabilities", "probabilities"
    warn_caller(
        f"The classifier predicts {always!r} for every training example and never "
        f"{never}: {by} nothing else is better for metric={estimator.metric!r} and the "
        f"constraints. Have a look at the {look_at} and the sample weights.",
        UserWarning,
    )
