"""The state of a run: the classifiers found, the best mixture of them, a lower bound."""

from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.tolerances import SUM_ROUNDING, UNNOTICED
from sklearn_structsvm.solvers.accuracy import INNER_SHARE
from sklearn_structsvm.solvers.confusion.bounds import (
    LowerBounds,
    bound_by_terms,
    bound_without_constraints,
    certified_mixture,
    trivial_bound,
)
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL, Columns
from sklearn_structsvm.solvers.confusion.pruning import (
    best_weights,
    meet_exactly,
    sparsify,
)
from sklearn_structsvm.solvers.loop import run_passes

# The number of columns over which `recombine` optimizes. If there are more, it keeps
# those of the best mixture and the latest ones.
MAX_RECOMBINED = 100

# Two recombinations are at least this share of the iterations made so far apart.
RECOMBINE_SHARE = 0.2


class Incumbent:
    """The classifiers of a run, the best mixture of them, and the best bound.

    `on_infeasible`: (problem, bound, max_time) -> SolverResult. Called if no classifier
    seems to satisfy the constraints; it is `least_violated`. `recombines`: whether to
    optimize over all classifiers again at the end.

    Attributes: `bounds`: bounds from minorants. `dual`: the best bound from dual
    functions. `deadline`: the end of the run, in seconds of `perf_counter`. `C` (m, k,
    k) or None: the best mixture's tensor. `value`, `violation`: its ψ, and the largest
    violation of a constraint, in the constraint's own units.
    """

    def __init__(self, problem, tol, on_infeasible, recombines=False):
        self.problem, self.tol, self.recombines = problem, tol, recombines
        self.on_infeasible = on_infeasible
        self.columns, self.bounds = Columns(problem.shape), LowerBounds(problem)
        self.n_calls = 0
        self.deadline = np.inf
        self.dual = -np.inf
        self.C, self.value, self.violation = None, np.inf, np.inf
        # The best mixture consists of some of these.
        self._weights = self._mixture = None
        # A mixture is better if it exceeds the constraints by less, then if its value is
        # smaller.
        self._key = np.inf, np.inf
        self._next, self.is_ending = 1, False

    @property
    def seconds_left(self):
        """Seconds until the deadline, or None without one."""
        if np.isinf(self.deadline):
            return None
        return max(self.deadline - perf_counter(), 0.0)

    @property
    def bound(self):
        """The best lower bound, or an estimate of it if the oracle is inexact."""
        bound = max(self.bounds.value, self.dual)
        if not self.problem.exact and self.violation <= FEASIBILITY_TOL:
            # That is not above any value that was seen.
            return min(bound, self.value, self._key[1])
        return bound

    @property
    def gap(self):
        """The best mixture's value minus the bound; inf if a constraint is violated."""
        return self.value - self.bound if self.violation <= FEASIBILITY_TOL else np.inf

    @property
    def best(self):
        """The best mixture."""
        if self._mixture is None:
            self._mixture = self.columns.mixture(self._weights)
        return self._mixture

    def ask(self, L):
        """Call the oracle.

        Returns its tensor, its column, whether that is new, its bound.
        """
        C, handle, bound = self.problem.lmo(L)
        self.n_calls += 1
        index, is_new = self.columns.add(C, handle)
        if not self.problem.exact:
            bound = min(bound, float((self.columns.flat @ np.ravel(L)).min()))
        return C, index, is_new, bound

    def certify(self, minorant):
        """Call the oracle for a minorant. Returns the results of `ask` and a bound on ψ.

        InfeasibleConstraintError if no classifier satisfies the constraints.
        """
        C, index, is_new, bound = self.ask(minorant.L)
        low = self.bounds.note(minorant, bound, self.columns)
        if self.bounds.excess > FEASIBILITY_TOL:
            self.check_feasible(self.bounds.excess)
        return C, index, is_new, low

    def check_feasible(self, bound):
        """Raise an error unless an inexact oracle satisfies the constraints after all.

        `bound`: lower bound of the excess, according to the oracle.
        """
        found = self.on_infeasible(self.problem, bound, self.seconds_left)
        self.n_calls += found.n_oracle_calls
        self.columns.add_all(found.solution.parts())
        self.bounds.revise(self.columns.flat)

    def solve_linear(self, run, L, tol, max_iter):
        """The result of <L, C> under the constraints, and its weights (T,)."""
        found = run(
            self.problem.linearized(L),
            tol=tol,
            max_iter=max_iter,
            max_time=self.seconds_left,
        )
        self.n_calls += found.n_oracle_calls
        return found, self.columns.add_all(found.solution.parts())

    def note_dual(self, value, *terms):
        """Use a value of a dual function: a lower bound, if the oracle is exact.

        It is lowered by the rounding error of a sum of these terms, if any.
        """
        error = self.bounds.rounding.of_values(0.0, *terms)
        self.dual = max(self.dual, value - error)

    def take(self, weights):
        """Keep a mixture of the columns if it is the best so far."""
        # The mixture will be without the others.
        weights = np.where(weights > SUM_ROUNDING, weights, 0.0)
        problem, C = self.problem, self.columns.mix(weights / weights.sum())
        excess, violation = problem.excess(C), problem.violation(C)
        # That takes a program, so it is for the mixtures that a run may end with.
        may_end = self.is_ending or problem.value(C) - self.bound <= self.tol
        if violation > FEASIBILITY_TOL and excess <= UNNOTICED and may_end:
            weights = meet_exactly(problem, self.columns.flat, weights)
            C = self.columns.mix(weights)
            excess, violation = problem.excess(C), problem.violation(C)
        key = (
            0.0 if violation <= FEASIBILITY_TOL else max(excess, FEASIBILITY_TOL),
            problem.value(C),
        )
        if self.C is None or key < self._key:
            self.C, self.value, self.violation = C, key[1], violation
            self._weights, self._mixture, self._key = np.array(weights), None, key

    def replace(self, weights):
        """Replace the best mixture, whether the new one is better or not."""
        self.C = None
        self.take(weights)

    def keep(self, indices):
        """Forget all columns but these; the best mixture stays."""
        # Compute it from the columns before they are removed.
        self._mixture = self.best
        self.columns.keep(indices)

    def is_due(self, t, interval):
        """Whether to recombine after iteration t, which happens less and less often."""
        if t < self._next:
            return False
        self._next = t + max(interval, int(RECOMBINE_SHARE * t))
        return True

    def recombine(self):
        """Optimize over the columns, and bound all other columns."""
        if len(self.columns) > MAX_RECOMBINED:
            mixture, n = self.best, len(self.columns)
            self.keep(np.arange(n - MAX_RECOMBINED // 2, n))
            self.columns.add_all(mixture.parts())
        weights, minorant = best_weights(
            self.problem,
            self.columns,
            tol=INNER_SHARE * max(self.tol, min(self.gap, 1.0)),
        )
        self.take(weights)
        self.certify(minorant)

    def run(self, move, *, max_iter, max_time, on_pass, history):
        """Call `run_passes` for a solver that reports by `take` and `certify`.

        `move`: () -> None, or the status that ends the run. `max_iter`, `max_time`,
        `on_pass`, `history` as for `run_passes`. Returns a `SolverResult`.
        """

        def move_until(deadline):
            self.deadline = deadline
            return move()

        return run_passes(
            move_until,
            self.check,
            tol=self.tol,
            max_iter=max_iter,
            max_time=max_time,
            finishes=True,
            on_pass=on_pass,
            history=history,
        )

    def check(self, done=False):
        """A row of the history and the best mixture, which is final if the run ends."""
        if self.C is None:
            return None
        if done or (self.gap <= self.tol and self.violation <= FEASIBILITY_TOL):
            self.is_ending = True
            self.finish()
        row = certified_mixture(
            self.problem, self.bounds.rounding, self.C, self.bound, self.violation,
            self.n_calls,
        )  # fmt: skip
        return row, self.best

    def finish(self):
        """Make the best mixture smaller, and add bounds other than minorants."""
        if self.recombines and self.gap > self.tol:
            self.recombine()
        self._mixture = sparsify(self.problem, self.best, tol=self.tol)
        self.C = self._mixture.confusion
        self.value = self.problem.value(self.C)
        self.violation = self.problem.violation(self.C)
        if not (self.bounds.known and self.gap <= self.tol):
            self.bound_by_ratios()

    def bound_by_ratios(self):
        """Add bounds other than minorants, of an exact oracle."""
        if not self.problem.exact:
            return
        by = bound_without_constraints if self.bounds.known else bound_by_terms
        value, n_calls = by(self.problem, self.tol)
        self.n_calls += n_calls
        self.note_dual(value)
        if self.problem.constrained:
            self.note_dual(trivial_bound(self.problem))
