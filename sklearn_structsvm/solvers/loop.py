"""Shared by all solvers: passes, gap checks, stopping rules and the result."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.tolerances import SUM_ROUNDING, UNNOTICED

# Steps between two looks at the clock and at pending signals; each is followed by one if
# it calls a structure in Python, which may take seconds, such as a linear program.
STEPS_PER_LOOK = 1024

# How far rounding may take a gap below zero, as a share of the largest objective of the
# run. A gap is a difference of sums over the examples, whose terms are sums over the
# features. With unit roundoff u, its error is a small multiple of u times the sizes of
# those terms. These cancel by another factor of 1e4 if features have large offsets. In
# 4,000 fits with features from 1e-10 to 1e18 and C from 1e-12 to 1e12 the error was below
# 1e-12. Scores in float32, which an LMO may have, have u = 6e-8. A wrong oracle shows in
# the first digits.
GAP_ROUNDING = 1e-6

# By how much a computed sum of n terms may differ from the true one, as a share of the
# sizes of the terms: this times √n, because most errors of n additions cancel. It is the
# unit roundoff, of which a sum that grows steadily loses a third of this on average.
ROUNDING = 2.0**-53

# Even a sum of two terms has an exponential or a logarithm in it.
FEWEST_TERMS = 16

WRONG_ORACLE = (
    "an oracle did not find the maximum that it was asked for. In a structure, "
    "loss_augmented_decode (or constrained_decode, slack_augmented_decode) is not exact: "
    "it may forget the loss, take argmin for argmax, or maximize another loss or "
    "joint_feature; sklearn_structsvm.structures.check_structure finds out which. In a "
    "risk, value or plane is wrong; an LMO returns a classifier that is not the best."
)

# The error if everything that was called belongs to the library.
WRONG_SUMS = (
    "rounding errors are too large, or the library is wrong. Scale the features, for "
    "example with sklearn.preprocessing.StandardScaler, or use a smaller C. If it still "
    "fails, please report it."
)

# The entries of every row of a history.
HISTORY_KEYS = (
    "n_iter",
    "n_oracle_calls",
    "seconds",
    "objective",
    "dual_objective",
    "dual_gap",
)


@dataclass
class Rounding:
    """Bounds on the rounding errors of means over the examples.

    A lower bound on the optimum is lowered by such a bound before it is used or kept, and
    no gap is smaller. A certificate is a small difference of terms that may be huge, as
    on columns of 1e9, so what counts is the size of the terms.

    `sizes` (n_weights,) or float: at least Σ_i p_i |φ_j(x_i, y)| for any labelings. 0.0
    if features are not known. `n_terms`: the number of rows of features. `of_maxima`:
    the share of the maxima over labelings that a search may miss by its rounding.
    `unit`: the unit roundoff of the scores by which an oracle chooses, or of slopes.
    """

    sizes: object = 0.0
    n_terms: int = 1
    of_maxima: float = 0.0
    unit: float = ROUNDING

    @property
    def share(self):
        """The error of a sum, as a share of the sizes of its terms."""
        of_sums = ROUNDING * np.sqrt(max(self.n_terms, FEWEST_TERMS))
        return max(of_sums, self.unit * np.sqrt(FEWEST_TERMS))

    @property
    def of_means(self):
        """The error of a mean of joint features: one number for each weight."""
        return self.share * self.sizes

    def are_rough(self, w, lam):
        """Which entries of gradients are not known well beside λ, with scores of w."""
        scores = np.max(self.sizes * np.abs(w), initial=1.0)
        return (self.of_means * scores > UNNOTICED * lam) & (lam > 0.0)

    def of_values(self, w, *values):
        """The error of a sum of these values and of mean scores at w."""
        scores = float(np.sum(self.of_means * np.abs(w)))
        return scores + (self.share + self.of_maxima) * float(np.sum(np.abs(values)))


def rounding_of(risk):
    """The `Rounding` of a risk over rows."""
    return Rounding(risk.mean_sizes, risk.n_samples)


def certified(objective, bound, error, n_oracle_calls):
    """A row of the history, for `History.note`.

    `bound`: a lower bound on the optimum, lowered by its own rounding error and by that
    of the objective. `error`: the rounding error of the objective; see `Rounding`. The
    gap is no smaller.
    """
    return {
        "objective": objective,
        "dual_objective": bound,
        "dual_gap": objective - bound,
        "n_oracle_calls": n_oracle_calls,
        "rounding": error,
    }


@dataclass
class SolverResult:
    """The result of a solver's run.

    `solution` (d,) or Mixture: the weights w, which may be an average of the iterates;
    or the classifiers of a mixture, with their probabilities and confusion tensors.
    `objective`, `dual_objective`, `gap`: values of the normalized problem at
    `solution`. `gap` bounds the suboptimality. `violation`: the largest violation of a
    constraint by `solution`; -inf without constraints. `n_iter`, `n_oracle_calls`:
    passes, and calls of the oracle, including those of the gap checks. `status`
    ({"converged", "stationary", "stalled", "max_iter", "max_time", "stopped"}): why the
    run ended: "converged" if the gap is at most `tol` and constraints are met,
    "stationary" at a point where a metric that is not convex has no direction of
    descent steeper than `tol`, "stalled" if the solver found nothing more to do,
    "stopped" if a callback asked for it. `history`: the results of the checks:
    `HISTORY_KEYS`, for mixtures "constraint_violation", for a sequence of convex
    problems "step", and the "method" that moved.
    """

    solution: object
    objective: float
    dual_objective: float
    gap: float
    violation: float
    n_iter: int
    n_oracle_calls: int
    status: str
    history: dict


class History:
    """The rows of a run's checks, and the number of its passes.

    A caller who passes it to a solver still has it if the run is interrupted.

    Attributes: `started`: time in seconds of `perf_counter`. `solution` (d,), Mixture
    or None: the solution that the last row describes. `scale`: the largest size of an
    objective so far. `step` or None: the number of the convex problem that rows belong
    to, if there are several. `method` or None: the name of the method that made the
    last pass, if it has one. `is_settled`: whether the run has ended and
    `solution` are the best weights seen.
    """

    def __init__(self, wrong=WRONG_ORACLE):
        self.wrong = wrong
        self.started = perf_counter()
        self.n_iter = 0
        self.rows = []
        self.solution = None
        self.scale = 0.0
        self.step, self.method, self.is_settled = None, None, False
        self.forget_objectives()

    def begin(self):
        """Rows name the method from now on; before the first pass it is "start"."""
        if self.method is None:
            self.method = "start"

    def forget_objectives(self):
        """Another problem begins, whose optimum may be larger."""
        self.least, self.step_of_least = np.inf, self.step
        self.best = None

    def note(self, row, solution, most_negative_gap=0.0, size_of_terms=None):
        """Append a row, with the pass and the time, and return it.

        `solution` (d,) or Mixture. `row`: see `certified`. Those of mixtures have a
        "constraint_violation" as well. A true "is_final" says that no other weights are
        to be returned. `most_negative_gap`: the smallest share of an example in the
        gap, if it is known. No share should be negative. `size_of_terms` or None: () ->
        the size of the terms whose difference is the gap, if it is known. It is called
        before an oracle is blamed for a negative gap. ValueError if no exact oracle can
        have this gap.
        """
        self._check(row, most_negative_gap, size_of_terms)
        row = dict(row)
        error, is_final = row.pop("rounding"), row.pop("is_final", False)
        row |= self._gap(row, error)
        row |= {"n_iter": self.n_iter, "seconds": perf_counter() - self.started}
        if self.step is not None:
            row["step"] = self.step
        if self.method is not None:
            row["method"] = self.method
        self.rows.append(row)
        self.solution, self.is_settled = solution, False
        # Solvers keep the best mixture themselves, which need not be of least objective.
        if "constraint_violation" not in row:
            if is_final or self.best is None or row["objective"] < self.best[0]:
                self.best = row["objective"], solution, error
        return row

    def settle(self):
        """Let the last row describe the best weights seen, with the last bound."""
        row, self.is_settled = self.rows[-1], True
        if self.best is None:
            return
        objective, solution, error = self.best
        # Equal but for rounding are the last weights, which the bound belongs to.
        if not objective < row["objective"] - error:
            return
        row["objective"], self.solution = objective, solution
        if np.isfinite(row["dual_gap"]):
            row["dual_gap"] = row["objective"] - row["dual_objective"]
            row |= self._gap(row, error)

    def _gap(self, row, error):
        """The gap, which is no smaller than the rounding error of its terms.

        A bound above an objective that was seen proves an error, so there is no gap.
        """
        if self.step != self.step_of_least:
            self.forget_objectives()
        # A mixture that violates a constraint may be better than all that satisfy it.
        if row.get("constraint_violation", 0.0) <= 0.0:
            self.least = min(self.least, row["objective"] + error)
            if row["dual_objective"] > self.least:
                return {"dual_gap": np.inf}
        if row["dual_gap"] >= error:
            return {}
        return {"dual_gap": error, "dual_objective": row["objective"] - error}

    def _check(self, row, most_negative_gap, size_of_terms):
        if np.isnan(row["dual_gap"]):
            raise ValueError(
                "The objective is not a number, because squares of the features, or "
                "their products with C, overflow. Scale the features, or use a smaller "
                "C."
            )
        bounds = row["objective"], row["dual_objective"]
        sizes = [abs(value) for value in bounds if np.isfinite(value)]
        self.scale = max([self.scale, *sizes])
        # A mixture that violates a constraint may be better than all that satisfy it.
        if row.get("constraint_violation", 0.0) <= 0.0:
            most_negative_gap = min(most_negative_gap, row["dual_gap"])
        rounding = max(GAP_ROUNDING * self.scale, row["rounding"])
        if most_negative_gap < -rounding and size_of_terms is not None:
            # The objective may be small or zero, but its terms are not.
            rounding = max(rounding, SUM_ROUNDING * size_of_terms())
        if most_negative_gap < -rounding:
            raise ValueError(
                f"The duality gap is {most_negative_gap:.3g}, below zero by more than "
                f"rounding: {self.wrong}"
            )

    def result(self, status):
        """The `SolverResult` at the last row, for the best weights seen."""
        self.settle()
        row = self.rows[-1]
        keys = [*HISTORY_KEYS, *(key for key in row if key not in HISTORY_KEYS)]
        return SolverResult(
            solution=self.solution,
            objective=float(row["objective"]),
            dual_objective=float(row["dual_objective"]),
            gap=float(row["dual_gap"]),
            violation=row.get("constraint_violation", -np.inf),
            n_iter=self.n_iter,
            n_oracle_calls=row["n_oracle_calls"],
            status=status,
            history={key: np.array([r[key] for r in self.rows]) for key in keys},
        )


def run_passes(
    move,
    check,
    *,
    tol=1e-3,
    max_iter=1000,
    max_time=None,
    gap_check_interval=1,
    predicts_convergence=None,
    finishes=False,
    on_pass=None,
    history=None,
    method=None,
):
    """Make passes, and check the gap at intervals, until one of the limits is reached.

    `move`: (deadline) -> None, or the status that ends the run.
    `check`: (done) -> the arguments of `History.note`, or None before there are any: a
      row of the history with the `HISTORY_KEYS` except the pass and the time, the
      solution that it describes, and optionally the most negative gap of an example and
      `size_of_terms`. `done` says whether the run ends here. A "dual_gap" of inf means
      that constraints are violated.
    `max_time` or None: seconds since the history began.
    `gap_check_interval`: passes between two checks. There is one before the first pass
      and one at the end.
    `predicts_convergence` or None: () -> whether to check the gap anyway.
    `finishes`: whether `check` does additional work at the end, so that it must be
      called again if a callback ends the run.
    `on_pass` or None: called after each pass with its number, the last row of the
      history (a dict) and whether the run ends here anyway. A true return value ends it.
    `method` or None: the name of what moves; None if `move` names it in the history.
    Returns a `SolverResult`.
    """
    history = History() if history is None else history
    if method is not None:
        history.begin()
    deadline = np.inf if max_time is None else history.started + max_time

    def checked_row(done):
        found = check(done)
        return None if found is None else history.note(*found)

    row = checked_row(False)
    status = "converged" if row is not None and row["dual_gap"] <= tol else None
    history.method = method or history.method
    while status is None:
        history.n_iter += 1
        status = move(deadline)
        if status is None and history.n_iter >= max_iter:
            status = "max_iter"
        elif status is None and perf_counter() >= deadline:
            status = "max_time"
        is_checked = (
            status is not None
            or history.n_iter % gap_check_interval == 0
            or (predicts_convergence is not None and predicts_convergence())
        )
        if is_checked:
            row = checked_row(status is not None)
            if row["dual_gap"] <= tol:
                status = "converged"
        if status is not None:
            history.settle()
        if on_pass is not None:
            asked_to_stop = on_pass(history.n_iter, row, status is not None)
            if asked_to_stop and status is None:
                status = "stopped"
                if finishes or not is_checked:
                    checked_row(True)
    return history.result(status)


def run_steps(steps, **limits):
    """`run_passes` with steps that know their weights and their row of the history.

    `steps`: its `move` takes a deadline and returns whether there was a step, `row`
    returns a row of the history, `weights` is the solution that it describes, and
    `method` the name of its method. `**limits` as for `run_passes`.
    """
    history = limits["history"] = limits.get("history") or History()
    history.begin()

    def move(deadline):
        history.method = steps.method
        return None if steps.move(deadline) else "stalled"

    return run_passes(move, lambda done: (steps.row(), steps.weights), **limits)
