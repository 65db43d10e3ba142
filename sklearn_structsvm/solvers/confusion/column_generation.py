"""Column generation: the best mixture of the classifiers found by an oracle."""

from dataclasses import replace
from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.conditions import (
    Conditions,
    largest_parts,
    largest_violation,
)
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING, VALUE_ROUNDING
from sklearn_structsvm.solvers.accuracy import FINAL_SHARE, INNER_SHARE, ROUGH_SHARE
from sklearn_structsvm.solvers.confusion.bounds import Minorant, toward_interior
from sklearn_structsvm.solvers.confusion.incumbent import Incumbent
from sklearn_structsvm.solvers.confusion.master import (
    FINEST_PROGRAM,
    RatioMaster,
    SmoothMaster,
    make_master,
)
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)
from sklearn_structsvm.solvers.confusion.parts import PartsMaster, mixes_parts
from sklearn_structsvm.solvers.confusion.solver import ConfusionSolver

# The share of the new multipliers in those that are priced. The rest are those of the
# best bound.
NEW_SHARE = 0.6

# The same for programs of parts, whose multipliers are vertices and vary more. It is 1 if
# they found nothing.
NEW_SHARE_OF_PARTS = 0.1

# The factor by which the master problem is solved more exactly if its multipliers found
# nothing; and the largest such factor, beyond which the answer would be the same.
SHARPER = 1.0 / INNER_SHARE
SHARPEST = 1.0 / FINEST_PROGRAM

# The number of programs per call of the oracle, or of all classifiers, if each is only an
# approximation.
MAX_PROGRAMS_PER_CALL = 10

# The number of columns kept in the master problem, those with the largest weights.
MAX_MASTER_COLUMNS = 300

# After this many calls, cells get weights of their own. On the data of the paper most
# runs have ended by then.
CALLS_IN_COMMON = 30

# With at most this many pairs of an example and a class, the program of all classifiers
# is solved as well, which takes HiGHS less than a second.
MAX_WHOLE = 2000

# Calls for a problem within another: the smallest violation, or the relaxation of a rule.
MAX_INNER_CALLS = 200


class ColumnGeneration(ConfusionSolver):
    """Minimize ψ over the achievable confusion tensors that meet the constraints.

    Each iteration solves the master problem, the best mixture of the classifiers found so
    far, and asks the oracle for the best classifier for the loss given by its
    multipliers: the slope of ψ at the mixture plus the slopes of the constraints, each
    times its multiplier. The linear function with this slope is nowhere above ψ where the
    constraints hold. So its minimum over all achievable tensors, which the oracle
    computes, is a lower bound of ψ (a Lagrange bound).

    For smooth ψ the master problem is one quadratic program, by an interior point method.
    For maxima of linear functions and for linear ones it is a linear program, and for
    ratios the one of Dinkelbach's method. Calls are saved in two ways. Programs are
    solved only as exactly as the gap requires, so multipliers come from the middle of the
    optimal set and not from a vertex [1]_. Oscillating multipliers are averaged with
    those of the best bound [2]_. Constraints are enforced by an exact penalty, whose
    price rises until they hold.

    If a metric is neither convex nor a ratio, the method descends from each of the first
    few classifiers until the slope promises less than `tol` ("stationary"). The bound is
    then that of its ratios, each minimized on its own. It is well below the minimum if
    the ratios disagree, and -inf if there are none.

    .. [1] Gondzio, Gonzalez-Brevis, Munari, "New developments in the primal-dual column
       generation technique", European Journal of Operational Research 224, 2013.
    .. [2] Wentges, "Weighted Dantzig-Wolfe decomposition for linear mixed-integer
       programming", International Transactions in Operational Research 4, 1997.
    """

    CALLED = "solver='column_generation'"
    MAX_ITER = 1000

    def __init__(self, problem, tol, max_iter, options):
        super().__init__(problem, tol, max_iter, options)
        self.incumbent = _Finishing(self, problem, tol)
        self.columns, self.bounds = self.incumbent.columns, self.incumbent.bounds
        if problem.constrained and min(self.bounds.below or (1.0,)) <= tol:
            # Minorants may give none, and programs are as exact as a gap requires.
            self.incumbent.bound_by_ratios()
        self.master = make_master(problem, self.columns)
        self.parts, self.may_part, self.share = None, mixes_parts(problem), 1.0
        self.sharpness = 1.0
        # The merit is ψ plus the price of the violation.
        self.gap, self.merit = 1.0, np.inf
        self.highest_price = self.master.price
        # Columns from which descents still have to start, if ψ is not convex.
        self.places = None
        self.minorants = [self.master.first_minorant(), *self.starts()]
        # With cuts, a program is only a part of the master problem.
        self.rounds = MAX_PROGRAMS_PER_CALL if self.master.bends else 1
        # Multipliers oscillate, but the slopes of a smooth metric do not.
        curved = isinstance(self.master, (SmoothMaster, RatioMaster))
        self.damped = self.bounds.known and (problem.constrained or not curved)

    def starts(self):
        """Additional losses to price first, if the result depends on the start."""
        problem, losses = self.problem, []
        if not self.bounds.known:
            priors = np.maximum(problem.priors.sum(axis=0), SUM_ROUNDING)
            losses = [-np.eye(len(priors)), np.diag(-1.0 / priors)]
        if isinstance(problem, ViolationProblem) and problem.tries_constants:
            # Their best classifiers always predict one class, in all groups.
            losses += [*-np.eye(problem.shape[-1])]
        for loss in losses:
            L = np.broadcast_to(loss, problem.shape)
            yield Minorant(L, 0.0, 0.0, L, 0.0, 0.0)

    def move(self):
        """Make one call of the oracle (or more at the start), and solve one program."""
        if self.parts is not None:
            return self.move_parts()
        if self.may_part and self.incumbent.n_calls >= CALLS_IN_COMMON:
            return self.begin_parts()
        # This precedes the call, because the index of the new column must remain valid.
        if len(self.columns) > MAX_MASTER_COLUMNS:
            self.forget()
        before = self.bounds.value
        while self.minorants:
            C, index, is_new, low = self.incumbent.certify(self.minorants.pop(0))
        if is_new:
            self.sharpness = max(self.sharpness / SHARPER, 1.0)
        else:
            self.sharpness *= SHARPER
            if self.sharpness > SHARPEST and self.bounds.value <= before + VALUE_ROUNDING:
                if self.incumbent.lacks_feasible():
                    self.incumbent.find_feasible()
                elif not self.leave_plateau():
                    return "stalled"
                self.sharpness = 1.0
            self.sharpness = min(self.sharpness, SHARPEST)
        if not self.bounds.known and self.go_on_from(C, index, low):
            return "stationary"
        self.optimize(self.sharpness / ROUGH_SHARE)
        return None

    def leave_plateau(self):
        """Go, within the constraints, where slopes nearby point to, half of the way.

        The harmonic and the geometric mean of recalls is the same wherever one is 0. If
        several are, no way from one column to another leaves that. If one is 0 wherever
        the constraints hold, slopes ever nearer to 0 prove it. Returns whether the new
        place is better.
        """
        problem, incumbent = self.problem, self.incumbent
        if not self.bounds.known or not isinstance(self.master, SmoothMaster):
            return False
        weights = self.columns.add_all(incumbent.best.parts())
        gap = min(incumbent.gap, 1.0)
        for _ in range(2 * problem.shape[-1]):
            C = toward_interior(problem, self.columns.mix(weights), gap)
            L, h = problem.tangent(C)
            found, to = incumbent.solve_linear(
                ColumnGeneration.run, L, self.tol, MAX_INNER_CALLS
            )
            incumbent.note_dual(found.dual_objective + h, h)
            weights = 0.5 * (np.pad(weights, (0, len(to) - len(weights))) + to)
            merit, _, _ = self.master.merit(self.columns.mix(weights))
            if merit < self.merit - VALUE_ROUNDING:
                self.master.weights, self.master.n_still = weights, 0
                self.note()
                return True
            gap *= FINAL_SHARE
        return False

    def begin_parts(self):
        """Go on with a `PartsMaster`, from the classifiers found."""
        self.parts = PartsMaster(self.problem)
        for C, handle in zip(self.columns.tensors, self.columns.handles, strict=True):
            self.parts.add(C, handle)
        examples = self.problem.examples()
        if examples is not None and examples[1].size <= MAX_WHOLE:
            self.certify_whole(*examples)
        return self.go_on_with(self.parts.solve(), 1.0)

    def certify_whole(self, cells, masses):
        """Find the bound by the program of all classifiers of few examples."""
        whole, before = PartsMaster(self.problem), np.inf
        whole.add_examples(cells, masses)
        for _ in range(MAX_PROGRAMS_PER_CALL):
            minorant = whole.solve()
            if minorant is None:
                return
            is_feasible = self.problem.excess(whole.C) <= FEASIBILITY_TOL
            if is_feasible and (whole.is_linear or whole.merit >= before - self.tol):
                break
            before = whole.merit if is_feasible else np.inf
        self.incumbent.certify(minorant)

    def go_on_with(self, minorant, share):
        """Choose what to price next; without a minorant, the common weights go on."""
        if minorant is None:
            self.parts, self.may_part = None, False
            self.optimize(self.sharpness / ROUGH_SHARE)
            return None
        old = self.bounds.minorant
        if old is not None and share < 1.0:
            is_ratio = self.parts.ratio is not None
            minorant = old.toward(minorant, share, keep_objective=is_ratio)
        self.minorants, self.share = [minorant], share
        return None

    def move_parts(self):
        """Make one call of the oracle, and solve one program of the parts."""
        parts, low = self.parts, self.bounds.value
        before = len(parts.cells), parts.price, parts.value
        C, index, _, _ = self.incumbent.certify(self.minorants.pop(0))
        parts.add(C, self.columns.handles[index])
        if parts.merit - self.incumbent.bound <= self.tol:
            self.take_parts()
            if self.incumbent.gap <= self.tol:
                return None
        minorant = parts.solve()
        if len(parts.cells) > before[0]:
            return self.go_on_with(minorant, NEW_SHARE_OF_PARTS)
        rises = self.bounds.value > low + VALUE_ROUNDING
        # A ratio's new level, or a new tangent, is another program.
        is_same = parts.price == before[1] and abs(parts.value - before[2]) <= (
            VALUE_ROUNDING
        )
        if not rises and is_same and self.share == 1.0:
            self.take_parts()
            if not self.incumbent.lacks_feasible():
                return "stalled"
            self.incumbent.find_feasible()
        return self.go_on_with(minorant, 1.0)

    def take_parts(self):
        """Add the classifiers that the mixture of the parts consists of."""
        self.incumbent.take(self.columns.add_all(self.parts.classifiers()))

    def go_on_from(self, C, index, low):
        """Without convexity, descend from each start. Returns whether all are done."""
        if self.places is None:
            self.places = list(range(len(self.columns)))
            return self.restart()
        # The price falls where the constraints hold. The price that it took to leave a
        # violating column keeps the descent from returning there.
        if self.master.merit(C, self.highest_price)[0] < self.merit:
            self.start_at(index)
            return False
        self.gap = max(self.merit - low, 0.0)
        if self.gap > self.tol or self.excess > FEASIBILITY_TOL:
            return False
        return self.restart()

    def restart(self):
        """Go to the best remaining start. Returns whether there is none."""
        if not self.places:
            return True
        # Old columns do not say how exactly a new descent must be solved.
        self.sharpness = 1.0
        merits = [self.master.merit(self.columns.tensors[t])[0] for t in self.places]
        self.start_at(self.places.pop(int(np.argmin(merits))))
        return False

    def start_at(self, index):
        self.master.start_at(index)
        self.note()

    def optimize(self, sharpness):
        """Solve the master problem, note the mixture, and choose what to price next."""
        gap = min(self.gap, 1.0)
        for _ in range(self.rounds):
            new = self.master.solve(gap, gap / sharpness)
            self.note()
            within = float((self.columns.flat @ new.L.ravel()).min()) + new.h
            low = self.bounds.lower(new, within)
            # Each program adds tangents, so that a sharper one may go on.
            is_stuck = self.master.stuck and self.sharpness == 1.0
            if self.merit - low <= gap / sharpness or is_stuck:
                break
        if self.bounds.known:
            self.gap = max(self.merit - self.incumbent.bound, 0.0)
        self.master.set_price(self.gap)
        self.highest_price = max(self.highest_price, self.master.price)
        old = self.bounds.minorant
        if self.damped and old is not None and self.sharpness == 1.0:
            ratio = isinstance(self.master, RatioMaster)
            new = old.toward(new, NEW_SHARE, keep_objective=ratio)
        self.minorants = [new]

    def note(self):
        """Keep the mixture if it is the best so far."""
        self.merit, _, self.excess = self.master.merit(
            self.columns.mix(self.master.weights)
        )
        self.incumbent.take(self.master.weights)

    def forget(self):
        """Drop the columns with the smallest weights."""
        self.places = []
        self.master.extend()
        heaviest = np.sort(np.argsort(self.master.weights)[-MAX_MASTER_COLUMNS // 2 :])
        self.master.keep(heaviest)
        self.incumbent.keep(heaviest)


class _Finishing(Incumbent):
    """Solves the master problem again, exactly, at the end of the run."""

    def __init__(self, search, problem, tol):
        super().__init__(problem, tol, least_violated)
        self.search, self.has_asked = search, False

    def lacks_feasible(self):
        """Whether the constraints are violated, and may be infeasible."""
        return self.violation > FEASIBILITY_TOL and not self.has_asked

    def find_feasible(self):
        """Add columns of which a mixture satisfies the constraints.

        InfeasibleConstraintError if there are none. A price may not detect a small
        violation.
        """
        self.has_asked = True
        found = _minimize_violation(
            self.problem, 0.0, self.deadline, lambda low, high: low > FEASIBILITY_TOL
        )
        self.n_calls += found.n_oracle_calls
        if found.dual_objective > FEASIBILITY_TOL:
            self.check_feasible(found.dual_objective)
        else:
            self.columns.add_all(found.solution.parts())

    def finish(self):
        if self.search.parts is None:
            self.search.optimize(1.0 / max(FINAL_SHARE * self.tol, FINEST_PROGRAM))
        elif self.gap > self.tol:
            self.search.take_parts()
        super().finish()


class ViolationProblem:
    """Minimize the largest of a problem's conditions, which is convex.

    These are <G[p] - level D[p], C> + h[p] and φ_q(C) - level: none is positive if no
    violation exceeds `level`. At level 0 the largest is the excess.

    `tries_constants`: whether to begin with the classifiers of a single class.
    """

    convex, smooth, constrained, convex_constraints = True, False, False, ()
    leveled = ()

    def __init__(self, problem, level=0.0, tries_constants=False):
        self.problem, self.level = problem, level
        self.tries_constants = tries_constants
        self.shape, self.priors, self.exact = problem.shape, problem.priors, problem.exact
        self.uniform, self.lmo = problem.uniform, problem.lmo
        self.n_terms, self.unit, self.costs = problem.n_terms, problem.unit, problem.costs
        none = np.zeros((0, *problem.shape))
        self.conditions = Conditions(none, np.zeros(0), none, np.zeros(0, dtype=int))
        G, self.offsets, D, self.piece_halves = problem.conditions
        self.slopes = G - level * D

    def value(self, C):
        """The largest condition."""
        linear = np.tensordot(self.slopes, C, axes=3) + self.offsets
        bent = [phi.value(C) - self.level for phi in self.problem.convex_constraints]
        return float(max([largest_violation(linear, None, self.piece_halves), *bent]))

    def violation(self, C):
        """-inf, because the constraints are what is minimized."""
        return -np.inf

    excess = violation

    def tangent(self, C):
        """The tangent of the largest condition."""
        linear = np.tensordot(self.slopes, C, axes=3) + self.offsets
        worst = max(
            self.problem.convex_constraints, key=lambda phi: phi.value(C), default=None
        )
        largest = largest_violation(linear, None, self.piece_halves)
        if worst is None or largest >= worst.value(C) - self.level:
            parts = largest_parts(linear, self.piece_halves)
            return self.slopes[parts].sum(axis=0), float(self.offsets[parts].sum())
        G, h = worst.tangent(C)
        return G, h - self.level

    def pieces(self):
        """The conditions (with `piece_halves`), if all of them are linear."""
        linear = self.slopes, self.offsets
        return None if self.problem.convex_constraints else linear

    def ratio(self):
        """None."""
        return None

    def features(self, tensors):
        """All entries."""
        return tensors.reshape(len(tensors), -1)


def least_violated(problem, bound, max_time=None):
    """The mixture with the smallest excess; InfeasibleConstraintError if it is positive.

    `bound`: a positive lower bound of the excess. If the oracle is exact, this is
    proven, so the error is certain and only the smallest violation is computed. An
    inexact oracle may still find a classifier that it missed. `max_time` or None:
    seconds. Returns a `SolverResult`: only with an inexact oracle: the mixture
    satisfies the constraints, exactly or nearly, or time ran out before this was known.
    """
    deadline = np.inf if max_time is None else perf_counter() + max_time
    tol = FINAL_SHARE * bound

    def is_enough(low, high):
        return high - low <= FINAL_SHARE * high

    def is_short(found):
        return found.objective > max(tol, FEASIBILITY_TOL) and found.status != "max_time"

    known = problem, 0.0, deadline, is_enough, tol
    found = _minimize_violation(*known)
    if not problem.exact and is_short(found):
        # Such an oracle may come near no mixture that treats all groups alike.
        before, found = found.n_oracle_calls, _minimize_violation(*known, True)
        found = replace(found, n_oracle_calls=found.n_oracle_calls + before)
    violation = problem.violation(found.solution.confusion)
    if problem.exact:
        bound = max(bound, found.dual_objective)
        low, high = _violation_range(problem, bound, violation, deadline)
        listed = " and ".join(map(repr, problem.constraints))
        raise InfeasibleConstraintError(
            f"No classifier meets {listed} on these examples: the best one found "
            f"violates them by {high:.3g}, and none by less than {low:.3g}.",
            low,
        )
    if is_short(found):
        raise InfeasibleConstraintError(
            "No mixture of the classifiers found meets the constraints on these "
            f"examples: the best one violates them by {violation:.3g}.",
            violation,
        )
    return found


def _violation_range(problem, low, high, deadline):
    """Bounds of the smallest violation, by bisection, to a relative accuracy.

    Denominators are at most 1. So if a condition exceeds 0 by q at some level, the
    violation exceeds that level by at least q.
    """
    while high - low > FINAL_SHARE * high and perf_counter() < deadline:
        level = 0.5 * (low + high)
        found = _minimize_violation(
            problem, level, deadline, lambda low, high: low > FEASIBILITY_TOL
        )
        violation = problem.violation(found.solution.confusion)
        is_proof = found.dual_objective > FEASIBILITY_TOL
        if not is_proof and violation >= high:
            break
        low = level + found.dual_objective if is_proof else low
        high = min(high, violation)
    return low, high


def _minimize_violation(
    problem, level, deadline, is_enough, tol=FEASIBILITY_TOL, tries_constants=False
):
    """The `SolverResult` of a `ViolationProblem`, which ends early at 0 or `enough`."""
    left = None if np.isinf(deadline) else max(deadline - perf_counter(), 0.0)
    return ColumnGeneration.run(
        ViolationProblem(problem, level, tries_constants),
        tol=tol,
        max_iter=MAX_INNER_CALLS,
        max_time=left,
        on_pass=lambda n_iter, row, done: (
            row["objective"] <= 0.0 or is_enough(row["dual_objective"], row["objective"])
        ),
    )


run_column_generation = ColumnGeneration.run
