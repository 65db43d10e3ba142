"""How a problem is solved: the solver, its options, and the use of its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm._contract.iterate import Iterate
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm.estimators.oracle_faults import (
    check_nothing_to_learn,
    wrong_words,
)
from sklearn_structsvm.estimators.remedies import convergence_message
from sklearn_structsvm.solvers.loop import History


@dataclass
class Method:
    """A solver with its problem and options.

    `name`: the name in the warning about convergence.
    `solve`: (on_pass, history) -> SolverResult.
    `iterate` or None: the object that `solve` modifies, if it is a consistent dual
      point at any moment.
    `certify` or None: () -> the arguments of `History.note` for the iterate.
    `kept` or None: see `WarmStart`. With it, an interrupted run leaves the estimator
      with the current iterate.
    `resolved`: the resolved values of "auto", by the names of fitted attributes.
    `count_queries` or None: SolverResult -> the decoder calls of all searches, for
      estimators that count them.
    """

    name: str
    solve: Callable[..., Any]
    iterate: Iterate | None = None
    certify: Callable[[], tuple] | None = None
    kept: dict | None = None
    resolved: dict[str, Any] = field(default_factory=dict)
    count_queries: Callable[[Any], int] | None = None

    def weights_now(self, history):
        """The best weights known during a run."""
        if self.iterate is None or history.is_settled:
            return history.solution
        best = self.iterate.best_weights
        return self.iterate.weights if best is None else best

    def interrupted(self, history):
        """The result of an interrupted run, certified at its last iterate."""
        self.iterate.rebuild_weights()
        history.note(*self.certify())
        return history.result("stopped")


def run(fit, problem, method):
    """Solve a problem within a fit: report progress, store results, warn.

    `problem` (LocalProblem or RemoteProblem). `fit`: of a `StructuredClassifier`.
    """
    estimator, structure = fit.estimator, problem.structure
    wrong = wrong_words(structure, estimator.loss)
    history = History(wrong)

    def snapshot():
        return estimator._attributes_at(problem, method.weights_now(history).copy())

    reporter = fit.reporter(snapshot)
    reporter.begin()
    try:
        result = method.solve(on_pass=reporter, history=history)
    except BaseException:
        if method.iterate is not None and method.kept is not None:
            # If even the certificate fails, because of an error in the structure's code,
            # the previous state is restored.
            _store(fit, problem, method, method.interrupted(history))
        raise
    if _may_center(estimator, structure):
        _center(result, problem, problem.lam(estimator.C))
    is_optimal_at_zero = result.objective == 0.0 == result.n_iter
    if is_optimal_at_zero and not structure.flat:
        if not check_nothing_to_learn(problem):
            raise ValueError(f"The objective is zero at zero weights: {wrong}")
    _store(fit, problem, method, result)
    reporter.end()
    if result.status in ("stalled", "max_iter", "max_time"):
        hint = estimator._convergence_hint(problem, result)
        message = convergence_message(estimator, problem, result, method.name, hint)
        warn_caller(message, ConvergenceWarning)


def _may_center(estimator, structure):
    """Whether shorter weights with the same differences of scores are better."""
    is_l2 = estimator.penalty == "l2" and estimator.l1_ratio == 0.0
    # Other losses look at each score by itself.
    is_hinge = estimator.loss in (None, "hinge", "slack_hinge")
    bounds = estimator._settings().get("coef_bounds")
    in_box = bounds is not None or structure.weight_bounds() is not None
    is_own = type(structure).make_oracle is not type(structure)._compiled_oracle
    return is_l2 and is_hinge and not (in_box or is_own)


def _center(result, problem, lam):
    """Center the weights of the classes, if that gains more than rounding."""
    w, history = problem.structure._centered(result.solution), result.history
    gain = 0.5 * lam * float(result.solution @ result.solution - w @ w)
    error = problem.rounding.of_values(w, result.objective)
    # The objective is known up to its rounding at the longer weights.
    known = problem.rounding.of_values(result.solution, result.objective)
    if not error < gain < np.inf or known > 2.0 * error:
        return
    result.solution = w
    result.objective -= gain
    result.gap = max(result.objective - result.dual_objective, error)
    history["objective"][-1], history["dual_gap"][-1] = result.objective, result.gap


def _store(fit, problem, method, result):
    """Set the fitted attributes, and keep them."""
    found = {
        "objective_": float(result.objective),
        "dual_objective_": float(result.dual_objective),
        "dual_gap_": float(result.gap),
        "n_iter_": result.n_iter,
        "n_oracle_calls_": result.n_oracle_calls,
        "history_": result.history,
        **fit.estimator._attributes_at(problem, result.solution),
        **method.resolved,
    }
    if method.count_queries is not None:
        found["n_queries_"] = method.count_queries(result)
    if method.kept is not None:
        state = {"weights": result.solution.copy()}
        if method.iterate is not None:
            state = method.iterate.get_state()
        found["_dual_state"] = method.kept | {"state": state}
    vars(fit.estimator).update(found)
    fit.commit()
