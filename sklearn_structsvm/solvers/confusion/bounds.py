"""Lower bounds of a metric over all achievable confusion tensors."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL
from sklearn_structsvm.solvers.loop import ROUNDING, Rounding, certified


@dataclass
class RatioMinimum:
    """The smallest ratio that the oracle found, and a lower bound for all ratios.

    `C` (m, k, k).
    """

    C: np.ndarray
    handle: object
    value: float
    bound: float
    n_calls: int


def rounding_of(problem):
    """The `Rounding` of linear functions of confusion tensors, whose entries are sums."""
    sizes = np.array(problem.priors, dtype=np.float64)
    if problem.costs is not None:
        # The mean cost is a share of its range, which may be far from 0.
        low, high = problem.costs.cost_range
        if high > low:
            sizes[-1, 0] = max(1.0, max(abs(low), abs(high)) / (high - low))
    return Rounding(sizes, problem.n_terms, unit=max(problem.unit, ROUNDING))


def error_of(problem, rounding, C):
    """The rounding error of ψ(C)."""
    value = problem.value(C)
    if not (problem.convex or ratio_form(problem) is not None):
        # Rates and functions of them.
        return rounding.of_values(0.0, 1.0, value)
    # Where slopes are finite.
    inside = toward_interior(problem, C, 1.0)
    G, h = problem.tangent(inside)
    return rounding.of_values(0.0, float(np.vdot(np.abs(G), inside)), h, value)


def certified_gap(problem, C, bound):
    """(bound, gap) for ψ(C), whose gap is no smaller than its rounding error."""
    value, error = problem.value(C), error_of(problem, rounding_of(problem), C)
    bound = min(bound, value - error)
    return bound, value - bound


def certified_mixture(problem, rounding, C, bound, violation, n_oracle_calls):
    """`certified` for a mixture with the confusion tensor C.

    `C` (m, k, k). `bound`: lowered by its own rounding error. `violation`: the largest
    one; if constraints are violated, the gap is infinite.
    """
    error = error_of(problem, rounding, C)
    row = certified(problem.value(C), bound - error, error, n_oracle_calls)
    if violation > FEASIBILITY_TOL:
        row["dual_gap"] = np.inf
    return row | {"constraint_violation": violation}


def linear_range(problem, L):
    """The smallest and largest <L, C> over all C >= 0 with the problem's row sums."""
    least = float((problem.priors * L.min(axis=-1)).sum())
    return least, float((problem.priors * L.max(axis=-1)).sum())


def denominator_range(problem, B):
    """The smallest and largest <B, C> over all C >= 0 that may be feasible.

    The row sums alone are used if the result is above 0, and otherwise the linear
    constraints and tangents of the others. The precision's denominator, for example, is
    0 for a classifier that never predicts the class, not for one with a minimal recall.
    """
    least, most = linear_range(problem, B)
    if least > 0.0 or not problem.constrained:
        return least, most
    tangents = []
    for _ in range(20):
        found = _least_denominator(problem, B, tangents)
        if found.status != 0:
            break
        # A linear program's minimum may be too high by this, relative to 1.
        least = max(found.fun - 1e-7, least)
        C = found.x[: B.size].reshape(B.shape)
        curved = [c for c in problem.convex_constraints if c.value(C) > FEASIBILITY_TOL]
        if not curved:
            break
        tangents += [c.tangent(C) for c in curved]
    return max(least, 0.0), most


def _least_denominator(problem, B, tangents):
    """The linear program of `denominator_range`."""
    G, h, _, halves = problem.conditions
    G = np.concatenate([G, np.reshape([L for L, _ in tangents], (-1, *B.shape))])
    h = np.append(h, [offset for _, offset in tangents])
    halves = np.pad(halves, (0, len(tangents)))
    m, k, _ = problem.shape
    # Upper and lower halves are on both sides of a free variable of their level.
    n_levels = halves.max(initial=0)
    sides = sparse.csr_array(
        (-np.sign(halves), (np.arange(len(h)), np.maximum(np.abs(halves) - 1, 0))),
        shape=(len(h), max(n_levels, 1)),
    )
    return linprog(
        np.append(np.ravel(B), np.zeros(sides.shape[1])),
        A_ub=sparse.hstack([sparse.csr_array(G.reshape(-1, B.size)), sides]),
        b_ub=-h,
        A_eq=sparse.hstack(
            [
                sparse.kron(sparse.eye_array(m * k), np.ones((1, k))),
                sparse.csr_array((m * k, sides.shape[1])),
            ]
        ),
        b_eq=problem.priors.ravel(),
        bounds=[(0.0, None)] * B.size + [(None, None)] * sides.shape[1],
    )


def trivial_bound(problem):
    """A bound by the row sums alone: that of the tangent at the true labels.

    It is the least value of a metric that is best for the true labels, so that a gap is
    never larger than the metric's range. -inf if ψ is neither convex nor a ratio.
    """
    C = problem.priors[:, :, None] * np.eye(problem.shape[-1])
    ratio = ratio_form(problem)
    if ratio is not None:
        A, B = ratio
        level, h, below = problem.value(C), 0.0, denominator_range(problem, B)
        L = A - level * B
    elif problem.convex:
        L, h = problem.tangent(C)
    else:
        return -np.inf
    q = linear_range(problem, L)[0] + h
    # The terms cancel but for their rounding errors.
    q -= rounding_of(problem).of_values(np.abs(L).max(axis=-1), h)
    return q if ratio is None else ratio_bound(level, q, below)


def ratio_bound(level, q, below):
    """Bound <A, C> / <B, C>, given <A - level B, C> >= q and <B, C> in `below`."""
    low, high = below
    if not high > 0.0:
        return level if q >= 0.0 else -np.inf
    # If a denominator may be 0, a bound covers all tensors for which it is at least this
    # share of the largest one. For examples of equal weight, nonzero denominators are at
    # least 1 / n. Values that rounding puts below that are then negligible.
    return level + q / (high if q >= 0.0 else max(low, SAME * high))


def minimize_ratio(problem, A, B, *, tol):
    """Minimize <A, C> / <B, C> over 𝒞.

    The oracle minimizes <A - γ B, C>, where γ is the smallest ratio so far, until it
    finds no smaller one [1]_.

    `problem`: only its oracle and its row sums are used. `A`, `B` (m, k, k): <B, C> >=
    0. `tol`: stop if value - bound is at most this. Returns a `RatioMinimum`.

    .. [1] Dinkelbach, "On nonlinear fractional programming", Management Science 13, 1967.
    """
    below, rounding = linear_range(problem, B), rounding_of(problem)
    value = np.vdot(A, problem.uniform) / np.vdot(B, problem.uniform)
    best, bound, n_calls = None, -np.inf, 0
    # Each call of the oracle gains about as many digits as all previous ones. If more
    # calls than this are needed, the rest is rounding.
    while n_calls < 100:
        C, handle, q = problem.lmo(A - value * B)
        n_calls += 1
        sizes = np.abs(A) + abs(value) * B
        q -= rounding.of_values(sizes.max(axis=-1), value)
        bound = max(bound, ratio_bound(value, q, below))
        denominator = np.vdot(B, C)
        found = np.vdot(A, C) / denominator if denominator > 0.0 else np.inf
        if best is None or found < best[0]:
            best = found, C, handle
        if found >= value or found - bound <= tol:
            break
        value = found
    return RatioMinimum(best[1], best[2], float(best[0]), float(bound), n_calls)


@dataclass
class Minorant:
    """A linear function that is nowhere above the problem's objective.

    <L, C> + h <= ψ(C) for all C that satisfy the constraints. For a ratio <A, C> / <B,
    C>, it means <L, C> + h <= <A, C> - level <B, C>. The function is the sum of a part
    for ψ and of the constraints, times multipliers >= 0 with the sum `price`.
    """

    L: np.ndarray
    h: float
    level: float
    objective_L: np.ndarray
    objective_h: float
    price: float

    def toward(self, other, share, *, keep_objective=False):
        """(1 - share) of this one plus `share` of the other, which is a minorant again.

        With `keep_objective`, only the constraints' part is mixed, and the part of ψ is
        the other's.
        """
        mine = other if keep_objective else self
        objective_L = (1.0 - share) * mine.objective_L + share * other.objective_L
        objective_h = (1.0 - share) * mine.objective_h + share * other.objective_h
        rest_L = (1.0 - share) * (self.L - self.objective_L) + share * (
            other.L - other.objective_L
        )
        rest_h = (1.0 - share) * (self.h - self.objective_h) + share * (
            other.h - other.objective_h
        )
        return Minorant(
            objective_L + rest_L,
            objective_h + rest_h,
            (1.0 - share) * mine.level + share * other.level,
            objective_L,
            objective_h,
            (1.0 - share) * self.price + share * other.price,
        )


def toward_interior(problem, C, gap):
    """A point negligibly close to C at which no rate is 0."""
    # On the way to the uniformly random classifier slopes are finite, and a lower bound
    # loses no more than this share of the gap.
    share = min(0.1, 1e-2 * gap)
    return (1.0 - share) * C + share * problem.uniform


def ratio_form(problem):
    """(A, B) if ψ is a ratio and not a maximum of linear functions, else None.

    Minorants are of this form: `tangent_minorant` and `LowerBounds` must agree on it.
    """
    return problem.ratio() if problem.pieces() is None else None


def tangent_minorant(problem, C, gap):
    """The minorant that touches ψ at C. For a ratio it is <A - ψ(C) B, ·>."""
    ratio = ratio_form(problem)
    if ratio is None:
        L, h = problem.tangent(toward_interior(problem, C, gap))
        return Minorant(L, h, 0.0, L, h, 0.0)
    level = problem.value(C)
    L = ratio[0] - level * ratio[1]
    return Minorant(L, 0.0, level, L, 0.0, 0.0)


class LowerBounds:
    """The best lower bound from all calls of an oracle.

    With a minorant <L, C> + h <= ψ(C) of the problem and q = min over 𝒞 of <L, C> + h,
    ψ >= q. For a ratio, <L, C> + h <= <A, C> - level <B, C> gives ψ >= level +
    q / <B, C>, so the range of <B, C> over all tensors with these row sums matters.

    An inexact oracle may have missed the smallest <L, C>. What it later finds for other L
    counts as well, so the bound is at least never above what the known columns show.

    `known`: whether minorants are below ψ, which is true if it is convex or a ratio.
    `minorant` or None: the minorant that gave the bound `value`. `excess`: lower bound
    of every classifier's excess. If it is positive and the oracle exact, the
    constraints cannot be met.
    """

    def __init__(self, problem):
        self.problem = problem
        self.value, self.minorant, self.excess = -np.inf, None, -np.inf
        ratio = ratio_form(problem)
        self.known = problem.convex or ratio is not None
        self.below = None if ratio is None else denominator_range(problem, ratio[1])
        self.notes = []
        self.rounding, self.ratio = rounding_of(problem), ratio

    def lower(self, minorant, q):
        """The bound from a minorant that is nowhere below q, which is lowered."""
        return q if self.below is None else ratio_bound(minorant.level, q, self.below)

    def note(self, minorant, bound, columns):
        """Use the oracle's answer for a minorant's L. Returns the bound from it alone.

        `bound`: the smallest possible <L, C>, according to the oracle and the columns.
        `columns`: everything it has found, including the last answer.
        """
        q = bound + minorant.h - self._error(minorant)
        if self.problem.exact:
            self._take(minorant, q)
        else:
            self.notes.append((minorant, q))
            self.revise(columns.flat[-1:])
        return self.lower(minorant, q) if self.known else q

    def _error(self, minorant):
        """The rounding error of a minorant's minimum.

        The part of ψ and that of the constraints may cancel, also within each.
        """
        L, own = minorant.L, minorant.objective_L
        sizes = np.abs(own) + np.abs(L - own)
        if self.ratio is not None:
            A, B = self.ratio
            sizes += np.abs(A) + abs(minorant.level) * np.abs(B)
        h, own_h = minorant.h, minorant.objective_h
        values = own_h, h - own_h, minorant.level, minorant.price
        return self.rounding.of_values(sizes.max(axis=-1), *values)

    def revise(self, tensors):
        """Lower earlier bounds by what an inexact oracle has found since.

        `tensors` (T, m k k): confusion tensors that are achievable.
        """
        self.value, self.minorant, self.excess = -np.inf, None, -np.inf
        self.notes = [
            (minorant, min(q, float((tensors @ minorant.L.ravel()).min()) + minorant.h))
            for minorant, q in self.notes
        ]
        for minorant, q in self.notes:
            self._take(minorant, q)

    def _take(self, minorant, q):
        if minorant.price > 0.0:
            most = linear_range(self.problem, minorant.objective_L)[1]
            rest = q - minorant.objective_h - most
            self.excess = max(self.excess, rest / minorant.price)
        if not self.known:
            return
        value = self.lower(minorant, q)
        if value > self.value or self.minorant is None:
            self.value, self.minorant = value, minorant


def bound_without_constraints(problem, tol):
    """A lower bound of a ratio that can take any value by mixing with its 0/0.

    Such mixtures satisfy all constraints that the classifiers with 0/0 satisfy with room
    to spare: the precision, for example, does not depend on how rarely the class is
    predicted. The multipliers of such constraints are 0, and no small ones give a bound.

    Returns `bound`: -inf if it is not such a ratio; `n_calls`: of the oracle.
    """
    ratio = ratio_form(problem)
    if ratio is None or linear_range(problem, ratio[1])[0] > 0.0:
        return -np.inf, 0
    found = minimize_ratio(problem, *ratio, tol=tol)
    return found.bound, found.n_calls


def bound_by_terms(problem, tol):
    """A lower bound of a sum of ratios, each at its own minimum.

    `problem`: its constraints are ignored, which only lowers the bound. Returns
    `bound`: -inf if the metric has no `ratio_terms`; `n_calls`: of the oracle.
    """
    terms = problem.ratio_terms()
    if terms is None:
        return -np.inf, 0
    total, n_calls = 0.0, 0
    for weight, A, B in terms:
        found = minimize_ratio(problem, A, B, tol=tol)
        total += weight * found.bound
        n_calls += found.n_calls
    return total, n_calls
