"""How an estimator over a structure runs its solver: callbacks, warm starts, warnings."""

import warnings
from functools import partial
from numbers import Integral, Real
from pickle import PicklingError

import joblib
import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm.estimators.flat_problem import make_ascent
from sklearn_structsvm.estimators.progress import PassReporter
from sklearn_structsvm.estimators.structured import (
    PROBLEM_CONSTRAINTS,
    StructuredClassifier,
)
from sklearn_structsvm.solvers.blocks import exact
from sklearn_structsvm.solvers.blocks.bcfw import certify, run_bcfw, start_bcfw
from sklearn_structsvm.solvers.blocks.exact import run_exact
from sklearn_structsvm.solvers.loop import History

TRAINING_CONSTRAINTS = {
    **PROBLEM_CONSTRAINTS,
    "C": [Interval(Real, 0, None, closed="neither")],
    "step": [StrOptions({"auto", "fw", "pairwise", "away"})],
    "cache": ["boolean", StrOptions({"auto"})],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "gap_check_interval": [Interval(Integral, 1, None, closed="left")],
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
}


class TrainedClassifier(StructuredClassifier):
    """A structured classifier whose weights one solver finds for one C."""

    def _rng(self):
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(seed)

    def _limits(self):
        """The arguments that all solvers have in common."""
        return {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "max_time": self.max_time,
            "n_threads": effective_n_jobs(self.n_jobs),
        }

    def _train_bcfw(
        self,
        problem,
        oracle,
        data,
        before,
        *,
        average,
        bounds=None,
        kind=None,
        is_batch=False,
        **run,
    ):
        """Run BCFW from the dual point of the previous fit, if there is one.

        Parameters
        ----------
        problem : Problem
        oracle : BlockOracle
        data : (X, y, sample_weight) as they came
        before : dict
            The attributes of the previous fit.
        average, bounds : as for `start_bcfw`
        kind : dict or None
            Parameters that the dual point depends on, beside the examples and the
            structure.
        is_batch : bool
            Batch steps are plain ones and keep no active sets.
        **run
            More arguments of `run_bcfw`.
        """
        kind = {} if kind is None else kind
        key = _key(problem, kind) if self.warm_start else None
        start_from = self._warm_state(key, before.get("_dual_state"), kind)
        iterate, step, cache = start_bcfw(
            oracle,
            problem.weights,
            problem.lam(self.C),
            step="fw" if is_batch else self.step,
            cache=False if is_batch else self.cache,
            average=average,
            bounds=bounds,
            state=start_from,
        )
        solve = self._keeping_the_dual_point(
            problem.structure,
            iterate,
            (key, step, cache),
            partial(run_bcfw, iterate, average=average, **run),
            lambda: certify(iterate, average, self.tol, effective_n_jobs(self.n_jobs)),
        )
        remedy = "" if step == "pairwise" else "step='pairwise' or "
        self._run(problem, data, solve, "BCFW", lambda: iterate.weights, remedy)

    def _train_exact(self, problem, data, before, sampling):
        """The same by exact steps; the structure must have them."""
        key = _key(problem, {}) if self.warm_start else None
        start_from = self._warm_state(key, before.get("_dual_state"), {})
        ascent = make_ascent(problem, problem.lam(self.C))
        if start_from is not None:
            ascent.set_state(start_from)
        solve = self._keeping_the_dual_point(
            problem.structure,
            ascent,
            (key, "exact", False),
            partial(run_exact, ascent, sampling=sampling),
            lambda: exact.certify(
                ascent, self.tol, effective_n_jobs(self.n_jobs)
            ),
        )
        self._run(problem, data, solve, "BCFW", lambda: ascent.weights)

    def _keeping_the_dual_point(self, structure, iterate, state, run, certify_now):
        """A solver for `_run` that leaves what the next warm start needs.

        Parameters
        ----------
        structure : Structure
        iterate : BlockFrankWolfe or ExactAscent
        state : (key, step, cache)
            See `_set_state`.
        run : callable
            (**options) -> SolverResult.
        certify_now : callable
            () -> a row of the history about the iterate, and the weights.
        """

        def solve(**report):
            try:
                result = run(
                    gap_check_interval=self.gap_check_interval,
                    rng=self._rng(),
                    **self._limits(),
                    **report,
                )
            except BaseException:
                if self.warm_start:
                    # Certified where the run was cut. Where not even that works, as the
                    # structure's own code fails, what was before is restored.
                    iterate.rebuild_weights()
                    history = report["history"]
                    history.note(*certify_now())
                    result = history.result("stopped")
                    self._set_result(structure, result)
                    self._set_state(iterate, *state)
                    self._keep_fitted = True
                raise
            self._set_state(iterate, *state)
            return result

        return solve

    def _run(self, problem, data, solve, name, weights=None, remedy=""):
        """Solve, report and store.

        Parameters
        ----------
        solve : callable
            (on_pass, history) -> SolverResult.
        weights : callable or None
            () -> the weights while `solve` runs; None for those of the last gap check.
        name, remedy : str
            For the warning where it does not converge.
        """
        X, y, sample_weight = data
        history = History()

        def snapshot():
            now = history.solution if weights is None else weights()
            structure = self._structure_at(problem, now)
            return self._weight_attributes(structure, now.copy())

        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        reporter = PassReporter(
            self, {"X": X, "y": y, "metadata": metadata}, snapshot
        )
        reporter.begin()
        result = solve(on_pass=reporter, history=history)
        self._set_result(self._structure_at(problem, result.solution), result)
        self._keep_fitted = True
        reporter.end()
        if result.status in ("stalled", "max_iter", "max_time"):
            warnings.warn(
                self._shortfall(result, name, remedy), ConvergenceWarning, stacklevel=7
            )

    def _structure_at(self, problem, weights):
        """The fitted structure, with what of it depends on the weights."""
        return problem.structure

    def _shortfall(self, result, name, remedy):
        """What to tell of a result that is not within `tol`."""
        gap = f"a duality gap of {result.gap:.3g} > tol={self.tol:.3g}"
        doubt = self._doubt(result)
        if result.status == "stalled":
            doubt = doubt or "That is rounding: use a larger tol."
            return f"{name} made no more progress, but {gap} is left. {doubt}"
        return (
            f"{name} stopped at {result.status}={getattr(self, result.status)} with "
            f"{gap}: the objective is at most that far from its optimum. For less, "
            f"increase {result.status}, scale the features, or try {remedy}a smaller C."
            f"{' ' if doubt else ''}{doubt}"
        )

    def _doubt(self, result):
        """Why no solver may close the gap, in a sentence; empty for an exact oracle."""
        return ""

    def _warm_state(self, key, kept, kind):
        if key is None or kept is None:
            return None
        if kept["key"] != key:
            others = " or ".join(["y or the structure", *kind])
            self._warn_of_cold_start(f"{others} is not that", "dual point is")
            return None
        return kept["state"]

    def _warn_of_cold_start(self, other, useless):
        warnings.warn(
            f"warm_start=True, but {other} of the previous fit, whose {useless} of no "
            "use here: starting anew.",
            UserWarning,
            stacklevel=8,
        )

    def _set_state(self, iterate, key, step, cache):
        self.step_ = step
        self.cache_ = cache
        if key is not None:
            self._dual_state = {"key": key, "state": iterate.get_state()}


def _key(problem, kind):
    """Tells the examples and the structure of a dual point from others."""
    structure = problem.structure
    try:
        return joblib.hash(
            (problem.y, structure.get_params(), structure.n_weights_, kind)
        )
    except PicklingError as error:
        raise ValueError(
            "warm_start=True needs labels and a structure that can be pickled: "
            f"{error}"
        ) from error
