"""Minimize a difference of convex functions by a sequence of convex problems.

With labels hidden, the objective is

    F(w) = P(w) - A(w),    P(w) = Ω(w) + Σ_i p_i H_i(w),

where H_i is the log-loss or the hinge of an allowed labeling y_i of example i, and

    A(w) = Σ_i p_i log Σ_y exp ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩

sums over all allowed y. For the hinge, A has the maximum over y in place of the log-sum.
A is convex, so it is nowhere below its tangent plane ⟨a, w⟩ + b at any w_k. Therefore F
is at most S_k(w) = P(w) - ⟨a, w⟩ - b, which is convex and equals F at w_k. Each step
minimizes S_k by block ascent, from the dual point of the last step: subtracting a plane
changes no dual variable. F never rises, because weights that are not better are rejected.

*The certificate.* D_k(α) is at most the minimum of S_k, so that F(w_k) - D_k(α) bounds
what one more step could gain. The run ends when that is at most `tol`. This does not
bound the distance to the global minimum of F, which remains unknown.

Yuille, Rangarajan, "The concave-convex procedure", Neural Computation 15, 2003; Yu,
Joachims, "Learning structural SVMs with latent variables", ICML 2009.
"""

import numpy as np

from sklearn_structsvm.solvers.accuracy import INNER_SHARE, ROUGH_SHARE
from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.loop import certified, run_steps

# The statuses of a run that has not converged.
CUT = ("stopped", "max_iter", "max_time")


class LogSums:
    """Logarithms of sums over the labelings that are allowed: A of likelihoods.

    `oracle`: oracle over the allowed labelings that `has_sums`, with a new dual state.
    `weights` (n_blocks,): p_i.
    """

    def __init__(self, oracle, weights, n_threads=1):
        self.oracle, self.weights, self.n_threads = oracle, weights, n_threads
        self.n_calls = 0

    def at(self, w):
        """A(w) and its gradient a."""
        self.n_calls += np.count_nonzero(self.weights)
        return self.oracle.log_loss(self.weights, w, self.n_threads)


class Maxima:
    """Scores of the best labelings that are allowed: A of hinges.

    Parameters as of `LogSums`, for any oracle. The allowed labelings have no loss.
    """

    def __init__(self, oracle, weights, n_threads=1):
        self.risk, self.n_threads = EmpiricalRisk(oracle, weights), n_threads

    @property
    def n_calls(self):
        return self.risk.n_oracle_calls

    def at(self, w):
        """A(w), or a lower value if the oracle is not exact, and a subgradient a."""
        self.risk.ask(w, self.n_threads)
        a, b = self.risk.plane()
        self.risk.release_answers()
        return w.dot(a) + b, a


class ConcaveConvex:
    """The state of the procedure.

    `iterate` (BlockFrankWolfe or MarginalAscent): modified in place. It minimizes S_k.
    `concave`: with `at` and `n_calls`, as `LogSums` has them. `w` (d,): the first
    weights. `first` (LBFGSSteps or None): steps on F itself that precede the procedure.

    Attributes: `weights` (d,): w_k, the best so far. `objective`: F(w_k).
    """

    # No weights are better than `weights`.
    best_weights = None

    def __init__(self, iterate, concave, w, first=None):
        self.iterate, self.concave = iterate, concave
        self.w, self.first = np.array(w), first
        self.objective = np.nan

    @property
    def weights(self):
        return self.w if self.first is None else self.first.weights

    def run(self, ascend, limits, first_tol=0.0):
        """Minimize F.

        `ascend`: (**limits) -> `SolverResult` of the iterate. `first_tol`: the gap at
        which the first steps end. Returns a `SolverResult`: each row of the history has
        the number of its step, which is 0 before the first. The last row of a step
        describes w_k and F.
        """
        tol, history = limits.tol, limits.history
        listener = Listener(limits.on_pass)
        own = {
            "max_iter": limits.max_iter,
            "max_time": limits.max_time,
            "on_pass": listener,
            "history": history,
        }
        history.step, status = 0, None
        history.begin()
        if self.first is not None:
            steps, first_tol = self.first, max(tol, first_tol)
            made = run_steps(steps, tol=first_tol, **own)
            status = made.status if made.status in CUT else None
            self.w, self.first = steps.weights, None
            self.iterate.n_oracle_calls += history.rows[-1]["n_oracle_calls"]
            if history.n_iter > 0:
                self.iterate.go_to(self.w)
        self._begin(limits.n_threads)
        row = history.note(*self.certify())
        while True:
            if row["dual_gap"] <= tol:
                status = "converged"
            elif listener.has_stopped:
                status = "stopped"
            elif history.n_iter >= limits.max_iter:
                status = "max_iter"
            if status is not None:
                break
            history.step += 1
            target = max(INNER_SHARE * row["dual_gap"], ROUGH_SHARE * tol)
            result = ascend(
                **own,
                tol=target,
                gap_check_interval=limits.gap_check_interval,
                n_threads=limits.n_threads,
            )
            is_better = result.objective < self.objective
            if is_better:
                self._take(result)
            row = history.note(*self.certify())
            if result.status in CUT or (result.status == "stalled" and not is_better):
                status = result.status
        listener.pass_on(True)
        return history.result(status)

    def _begin(self, n_threads):
        value, a = self._ask(self.w)
        self.plane = a, value - self.w.dot(a)
        self.iterate.subtract_plane(*self.plane)
        hinge = self.iterate.hinge(self.w, n_threads=n_threads)
        self.objective = self.iterate.penalty(self.w) + hinge

    def _take(self, result):
        """Adopt the weights of a step, and compute the plane of A there."""
        self.w, self.objective = result.solution, result.objective
        value, a = self._ask(self.w)
        a_before, b_before = self.plane
        rise = value - (self.w.dot(a_before) + b_before)
        # An inexact oracle may have returned less than the best labeling it has seen.
        if rise > 0.0:
            self.plane = a, value - self.w.dot(a)
            self.objective -= rise
            self.iterate.subtract_plane(*self.plane)

    def _ask(self, w):
        before = self.concave.n_calls
        found = self.concave.at(w)
        self.iterate.n_oracle_calls += self.concave.n_calls - before
        return found

    def certify(self):
        """The row of w_k, and w_k."""
        if self.first is not None:
            return self.first.row(), self.first.weights
        if np.isnan(self.objective):
            self._begin(1)
        iterate, objective = self.iterate, self.objective
        bound, rounding = iterate.dual_objective, iterate.rounding
        error = rounding.of_values(self.w, objective, iterate.penalty(self.w))
        bound -= error + rounding.of_values(iterate.weights, bound, iterate.loss)
        row = certified(objective, bound, error, iterate.n_oracle_calls)
        return row, self.w

    def rebuild_weights(self):
        """Rebuild the weights of the dual point after steps that were cut short."""
        self.iterate.rebuild_weights()

    def get_state(self):
        """The dual point of the iterate, and w_k; picklable."""
        return self.iterate.get_state() | {"weights": np.array(self.weights)}


class Listener:
    """Forwards the passes of all steps; no step is announced as the last."""

    def __init__(self, on_pass):
        self.on_pass, self.has_stopped, self.last = on_pass, False, None

    def __call__(self, n_iter, row, done):
        self.pass_on(False)
        self.last = n_iter, row
        if not done:
            self.pass_on(False)
        return self.has_stopped

    def pass_on(self, done):
        """Report the last pass, once it is known whether it ends the run."""
        last, self.last = self.last, None
        if self.on_pass is not None and last is not None:
            self.has_stopped |= bool(self.on_pass(*last, done))
