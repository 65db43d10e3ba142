"""The master problem: the best mixture of the classifiers found so far."""

import numpy as np

from sklearn_structsvm._utils.backtracking import SUFFICIENT_DECREASE
from sklearn_structsvm._utils.conditions import largest_of_halves
from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO, SAME, UNNOTICED
from sklearn_structsvm.solvers.accuracy import MAX_IDLE
from sklearn_structsvm.solvers.confusion.bounds import Minorant, toward_interior
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL
from sklearn_structsvm.solvers.qp.epigraph import Epigraph, balanced, minimize


class LinearRows:
    """Linear functions <G[p], C> + h[p], and their values at the columns."""

    def __init__(self, columns, G, h):
        self.columns, self.G, self.h = columns, G, h
        self._values = np.zeros((len(h), 0))

    @property
    def count(self):
        return len(self.h)

    def values(self):
        """Values of the columns, of shape (p, T)."""
        known = self._values.shape[1]
        if known < len(self.columns):
            new = self.G @ self.columns.flat[known:].T + self.h[:, None]
            self._values = np.concatenate([self._values, new], axis=1)
        return self._values

    def note(self, multipliers):
        """Receive the multipliers of each program."""

    def keep(self, indices):
        self._values = self.values()[:, indices]


class Cuts(LinearRows):
    """Tangents of a convex function; inactive ones are dropped."""

    def __init__(self, columns, source):
        super().__init__(columns, np.zeros((0, columns.flat.shape[1])), np.zeros(0))
        self.source = source
        self.idle = np.zeros(0, dtype=int)
        # The sum of the last multipliers.
        self.pressure = 0.0

    def add(self, C):
        """Add the tangent at C."""
        self.values()
        G, h = self.source.tangent(C)
        G = np.ascontiguousarray(G, dtype=np.float64).reshape(1, -1)
        kept = self.idle <= MAX_IDLE
        self.G = np.concatenate([self.G[kept], G])
        self.h = np.append(self.h[kept], h)
        self.idle = np.append(self.idle[kept], 0)
        new = self.columns.flat @ G[0] + h
        self._values = np.concatenate([self._values[kept], new[None]])

    def note(self, multipliers):
        self.pressure = float(multipliers.sum())
        active = multipliers > UNNOTICED * self.pressure / max(len(multipliers), 1)
        self.idle = np.where(active, 0, self.idle + 1)


# Constraints are tightened by this amount, so that they hold exactly despite the
# program's tolerance and rounding. Rates and shares are of the order of 1.
CONSTRAINT_MARGIN = FEASIBILITY_TOL

# The first price per unit of violation, and its intended multiple of the sum of the
# multipliers. With twice the sum, all points of the central path satisfy the constraints.
FIRST_PRICE = 10.0
PRICE_RATIO = 4.0
MAX_PRICE = 1e8

# A price below this is raised as soon as it limits the multipliers.
EASY_PRICE = 1e3

# Step of the differences of gradients, as a share of the way to a column.
DIFFERENCE_SHARE = 1e-5

# Weight of the uniform mixture in the start of a program.
START_SHARE = 0.1

# The accuracy of the program relative to a gap of the order of 1, and the finest
# accuracy.
FINEST_PROGRAM = 1e-10

# The number of programs in a row that may bring no progress. Each adds tangents at its
# solution.
MAX_IDLE_PROGRAMS = 2

# Slopes of ratios are in units of the ratio if the denominator is at least this share of
# the largest one. Below that they are smaller, since 0/0 has no slope.
LEAST_SHARE = 1e-3


def make_master(problem, columns):
    """The master problem that fits the metric's form."""
    if problem.pieces() is not None:
        return PiecewiseMaster(problem, columns)
    if problem.ratio() is not None:
        return RatioMaster(problem, columns)
    if problem.convex and not problem.smooth:
        return CutMaster(problem, columns)
    return SmoothMaster(problem, columns)


class Master:
    """min ψ(C) + price · (excess of C)⁺ for C = Σ_t α_t C_t, α in the simplex.

    Subclasses differ in how ψ enters the quadratic program of a step.

    Attributes: `weights` (T,): α. Columns added later have no weight. `pressure`: sum
    of the constraints' multipliers in the last program, at most `price`.
    """

    def __init__(self, problem, columns):
        self.problem, self.columns = problem, columns
        self.weights = np.zeros(0)
        self.price = FIRST_PRICE
        self.pressure = 0.0
        self.n_still, self.trial, self.bars = 0, None, np.zeros(0, dtype=bool)
        G, h, _, self.halves = problem.conditions
        self.piece_halves = np.zeros(0, dtype=int)
        self.rows = LinearRows(columns, G.reshape(len(h), int(np.prod(problem.shape))), h)
        self.opposites = _opposites(self.rows.G, h)
        self.cuts = [Cuts(columns, phi) for phi in problem.convex_constraints]
        self.constrained = problem.constrained
        self.bends = len(self.cuts) > 0

    # Methods of the subclasses.

    def first_minorant(self):
        """The minorant of ψ alone, at the uniformly random classifier."""
        L, h, level, _ = self.objective_minorant(self.problem.uniform, None)
        return Minorant(L, h, level, L, h, 0.0)

    def objective(self, weights, interior):
        """(c, Q, rows, offsets): slopes, curvature or None, and pieces (q, T)."""
        raise NotImplementedError

    def objective_minorant(self, C, multipliers):
        """(L, h, level) of ψ at C, given the multipliers of the pieces."""
        raise NotImplementedError

    # One step.

    def merit(self, C, price=None):
        """ψ(C) + price · (excess)⁺ (by default the current price), ψ(C), the excess."""
        price = self.price if price is None else price
        value = self.problem.value(C)
        excess = self.problem.excess(C) if self.constrained else -np.inf
        return value + price * max(excess, 0.0), value, excess

    def extend(self):
        """Count new columns in, without weight: slopes are those at the mixture."""
        n, n_new = len(self.weights), len(self.columns) - len(self.weights)
        new = np.zeros(n_new) if n else np.full(n_new, 1.0 / n_new)
        self.weights = np.append(self.weights, new)

    @property
    def stuck(self):
        """Whether the next program would be the same if not solved more exactly."""
        return self.n_still > (MAX_IDLE_PROGRAMS if self.bends else 0)

    def start_at(self, index):
        """Go to one of the columns."""
        self.weights = np.zeros(len(self.columns))
        self.weights[index] = 1.0

    def solve(self, gap, tol):
        """Solve one program, and make a step to its solution.

        `gap`: the gap of the whole problem, as far as it is known. `tol`: the accuracy
        of the program. Returns `minorant`: the minorant of the multipliers, at the new
        weights.
        """
        self.extend()
        C = self.columns.mix(self.weights)
        for cut in self.cuts:
            self._cut(cut, C)
        inside = toward_interior(self.problem, C, gap)
        c, Q, pieces, offsets = self.objective(self.weights, inside)
        if self.cuts and self.n_still == 0:
            bend = self._constraint_curvature(inside)
            Q = bend if Q is None else Q + bend
            c = c - bend @ self.weights
        target, y = self._program(c, Q, pieces, offsets, max(tol, FINEST_PROGRAM))
        n_pieces = len(offsets)
        target = target / target.sum()
        self.trial = self.columns.mix(target)
        self.move(target, c, Q)
        if n_pieces:
            y = y / y[:n_pieces][self.piece_halves >= 0].sum()
        # What opposite conditions have in common cancels. Without slack a program may
        # choose it as large as the price allows, and rounds the rest to its digits.
        pairs = self.opposites + n_pieces
        y[pairs] -= y[pairs].min(axis=0)
        # Multipliers that only bar columns need no price.
        self.pressure = self._price_of(np.where(self.bars, 0.0, y[n_pieces:]))
        return self._minorant(y[:n_pieces], y[n_pieces:], gap)

    def _price_of(self, multipliers):
        """The sum of the multipliers, in which two halves count once."""
        halves = self._halves(len(multipliers))
        return float(multipliers[halves >= 0].sum())

    def _halves(self, n):
        """The halves of the linear constraints and of the cuts, n in all."""
        return np.append(self.halves, np.zeros(n - len(self.halves), dtype=int))

    def _cut(self, cuts, C):
        """Add the tangent at C, which explains why the last program made no progress."""
        if self.n_still:
            cuts.add(self.trial)
        cuts.add(C)

    def set_price(self, gap):
        """Set a price well above the multipliers, which it limits under violations.

        `gap`: the gap of the merit. If it is small compared with the cost of the excess,
        or if programs make no progress, only a higher price can reduce the excess.
        """
        if not self.constrained:
            return
        wanted = PRICE_RATIO * self.pressure
        excess = self.problem.excess(self.columns.mix(self.weights))
        may_rise = self.price < EASY_PRICE or gap < 0.5 * self.price * excess
        if excess <= FEASIBILITY_TOL:
            self.price = min(max(wanted, FIRST_PRICE), MAX_PRICE)
        elif self.n_still or (may_rise and wanted > self.price):
            self.price = min(PRICE_RATIO * self.price, MAX_PRICE)

    def move(self, target, c, Q):
        """Move to the program's solution, or as far as a curved merit falls."""
        if self.cuts:
            _search_line(self, target, 0.0)
        else:
            self.weights = target

    def _program(self, c, Q, pieces, offsets, tol):
        """The quadratic program in (α, v, w, t): v >= all pieces, w >= all violations.

        Of each level there is a t between its upper and its lower halves.

        Returns `weights` (T,): α, whose sum is 1 up to the program's tolerance;
        `multipliers`: multipliers of the pieces, then of the constraints.
        """
        values = np.zeros((0, len(c)))
        if self.constrained:
            # The values of all linear constraints and cuts at the columns, (p, T).
            values = np.concatenate([s.values() for s in (self.rows, *self.cuts)])
        self.bars = np.zeros(len(values), dtype=bool)
        return self._program_of(self.weights, c, Q, pieces, offsets, tol, values)

    def _program_of(self, weights, c, Q, pieces, offsets, tol, values):
        """`_program` of some columns, from given weights."""
        counts, tight = _counting(values, self._halves(len(values)))
        # A mixture that meets a condition that no column meets with a margin has none of
        # the columns that violate it. At a price they would spoil the scale of the rest.
        barred = (values[tight] > FEASIBILITY_TOL).any(axis=0)
        if barred.all() or not barred.any():
            weights = START_SHARE / len(c) + (1.0 - START_SHARE) * weights
            return self._priced(
                weights / weights.sum(), c, Q, pieces, offsets, tol, values, counts
            )
        kept = ~barred
        x = np.zeros(len(c))
        # The rest may be without a margin for other conditions.
        x[kept], y = self._program_of(
            weights[kept],
            c[kept],
            None if Q is None else Q[np.ix_(kept, kept)],
            pieces[:, kept] if len(offsets) else pieces,
            offsets,
            tol,
            np.where(tight[:, None], 0.0, values[:, kept]),
        )
        slopes = c + y @ np.concatenate([pieces.reshape(-1, len(c)), values])
        slopes = slopes if Q is None else slopes + Q @ x
        # Multipliers with which these columns are no better than the others.
        worse = np.maximum(values[tight], 0.0).sum(axis=0)[barred]
        most = float(((slopes[kept].min() - slopes[barred]) / worse).max())
        self.bars |= tight
        y[len(offsets) :][tight] = max(most, 0.0)
        return x, y

    def _priced(self, weights, c, Q, pieces, offsets, tol, values, counts):
        """`_program_of` columns with a price for the conditions that count."""
        epigraphs, halves = [], self._halves(len(values))
        if len(offsets):
            # v is measured from below all pieces, so it is positive.
            of_pieces = self.piece_halves
            low = -float(largest_of_halves(-pieces.min(axis=1)[:, None], of_pieces).max())
            epigraphs.append(Epigraph(1.0, pieces, of_pieces, low - 1.0, weights))
        if self.constrained:
            own = values[counts], halves[counts]
            epigraphs.append(Epigraph(self.price, *own, -CONSTRAINT_MARGIN, weights, 0.0))
        x, multipliers = minimize(c, np.ones(len(c)), weights, epigraphs, Q=Q, tol=tol)
        y, of_all = np.zeros(0), np.zeros(len(counts))
        if len(offsets):
            y = balanced(multipliers[0], self.piece_halves)
        if self.constrained:
            of_all[counts] = balanced(multipliers[-1], halves[counts])
        return x, np.append(y, of_all)

    def _curvature(self, C, gradient, of):
        """αᵀ ∇²f α' for columns α, α' seen from C, where f is the function `of`."""
        away = self.columns.flat - C.ravel()
        changes = np.empty_like(away)
        for t, way in enumerate(away):
            near = C + DIFFERENCE_SHARE * way.reshape(C.shape)
            changes[t] = of.gradient(near).ravel() - gradient
        Q = changes @ away.T / DIFFERENCE_SHARE
        return 0.5 * (Q + Q.T)

    def _constraint_curvature(self, C):
        """The curvature of the convex constraints times their multipliers."""
        total = np.zeros((len(self.weights),) * 2)
        for cut in self.cuts:
            if cut.pressure > 0.0:
                gradient = cut.source.gradient(C).ravel()
                total += cut.pressure * self._curvature(C, gradient, cut.source)
        return _positive(total, known=True)

    def _minorant(self, pieces, multipliers, gap):
        C = self.columns.mix(self.weights)
        L, h, level, scale = self.objective_minorant(
            toward_interior(self.problem, C, gap), pieces
        )
        total_L, total_h, start = L, h, 0
        for source in (self.rows, *self.cuts):
            mu = scale * multipliers[start : start + source.count]
            start += source.count
            source.note(mu)
            if len(mu):
                total_L = total_L + (mu @ source.G).reshape(L.shape)
                total_h += float(mu @ source.h)
        price = scale * self._price_of(multipliers)
        return Minorant(total_L, total_h, level, L, h, price)

    def keep(self, indices):
        """Drop all columns but these. Call this before `columns.keep`."""
        weights = self.weights[indices]
        self.weights = weights / weights.sum()
        for source in (self.rows, *self.cuts):
            source.keep(indices)


class PiecewiseMaster(Master):
    """ψ(C) = max_p <G[p], C> + h[p]: a linear program."""

    def __init__(self, problem, columns):
        super().__init__(problem, columns)
        G, h = problem.pieces()
        self.pieces = LinearRows(columns, G.reshape(len(h), -1), h)
        halves = problem.piece_halves
        self.piece_halves = np.zeros(len(h), dtype=int) if halves is None else halves

    def objective(self, weights, interior):
        values = self.pieces.values()
        return np.zeros(values.shape[1]), None, values, self.pieces.h

    def objective_minorant(self, C, multipliers):
        if multipliers is None:
            multipliers = balanced(np.ones(self.pieces.count), self.piece_halves)
            multipliers /= multipliers[self.piece_halves >= 0].sum()
        L = (multipliers @ self.pieces.G).reshape(C.shape)
        return L, float(multipliers @ self.pieces.h), 0.0, 1.0

    def keep(self, indices):
        super().keep(indices)
        self.pieces.keep(indices)


class CutMaster(Master):
    """A convex ψ that is not smooth everywhere: the largest of its tangents so far."""

    def __init__(self, problem, columns):
        super().__init__(problem, columns)
        self.tangents = Cuts(columns, problem)
        self.bends = True

    def objective(self, weights, interior):
        self._cut(self.tangents, self.columns.mix(weights))
        values = self.tangents.values()
        self.piece_halves = np.zeros(len(values), dtype=int)
        return np.zeros(values.shape[1]), None, values, self.tangents.h

    def objective_minorant(self, C, multipliers):
        if multipliers is None:
            return *self.problem.tangent(C), 0.0, 1.0
        L = (multipliers @ self.tangents.G).reshape(C.shape)
        h = float(multipliers @ self.tangents.h)
        self.tangents.note(multipliers)
        return L, h, 0.0, 1.0

    def move(self, target, c, Q):
        _search_line(self, target, 0.0)

    def keep(self, indices):
        super().keep(indices)
        self.tangents.keep(indices)


class RatioMaster(Master):
    """ψ(C) = <A, C> / <B, C>: its tangent, a step of Dinkelbach's method."""

    def __init__(self, problem, columns):
        super().__init__(problem, columns)
        self.A, self.B = problem.ratio()
        self.terms = LinearRows(
            columns, np.array([self.A.ravel(), self.B.ravel()]), np.zeros(2)
        )

    def objective(self, weights, interior):
        numerators, denominators = self.terms.values()
        level = self.problem.value(self.columns.mix(weights))
        most = float(denominators.max())
        self.below = max(float(denominators @ weights), LEAST_SHARE * most) or 1.0
        slopes = (numerators - level * denominators) / self.below
        return slopes, None, np.zeros((0, 0)), ()

    def move(self, target, c, Q):
        # Along a line a ratio of linear functions is monotone.
        if not self.constrained:
            target = np.zeros(len(c))
            target[np.argmin(c)] = 1.0
        _search_line(self, target, float(c @ (self.weights - target)))

    def objective_minorant(self, C, multipliers):
        below = 1.0
        if multipliers is not None:
            C, below = self.columns.mix(self.weights), self.below
        level = self.problem.value(C)
        return self.A - level * self.B, 0.0, level, below

    def keep(self, indices):
        super().keep(indices)
        self.terms.keep(indices)


class SmoothMaster(Master):
    """ψ with its gradient, and its curvature by differences of gradients."""

    def objective(self, weights, interior):
        flat = self.columns.flat
        gradient = self.problem.gradient(interior).ravel()
        Q = self._curvature(interior, gradient, self.problem)
        Q = _positive(Q, known=self.problem.convex)
        return flat @ gradient - Q @ weights, Q, np.zeros((0, 0)), ()

    def move(self, target, c, Q):
        step = target - self.weights
        _search_line(self, target, -float(step @ (c + Q @ (self.weights + 0.5 * step))))
        if self.n_still and self._jumps(target):
            self._move_to_column(c + Q @ self.weights)

    def _jumps(self, target):
        """Whether the merit rises at once on the way to the target.

        A class without examples has no error until it is predicted (its rate is 0/0), so
        one column that predicts it spoils each mixture. Slopes do not see this.
        """
        near = self.weights + SAME * (target - self.weights)
        merits = [self.merit(self.columns.mix(w))[0] for w in (self.weights, near)]
        return merits[1] - merits[0] > 1e-3

    def _move_to_column(self, slopes):
        """Move toward the column with the least slope for which the merit falls."""
        for t in np.argsort(slopes):
            predicted = float(slopes @ self.weights - slopes[t])
            if not predicted > 0.0:
                return
            column = np.zeros(len(slopes))
            column[t] = 1.0
            _search_line(self, column, predicted)
            if self.n_still == 0:
                return

    def objective_minorant(self, C, multipliers):
        L, h = self.problem.tangent(C)
        return L, h, 0.0, 1.0


def _opposites(G, h):
    """Pairs (2, q) of conditions whose slopes are each other's negatives."""
    # Not of those that contradict each other: their multipliers are the proof.
    # A difference from 0, or a sum with it, is never -0.0.
    last = {(0.0 - slopes).tobytes(): p for p, slopes in enumerate(G)}
    found = {last.get((slopes + 0.0).tobytes(), -1): p for p, slopes in enumerate(G)}
    pairs = [(p, q) for q, p in found.items() if p < q and h[p] + h[q] <= 0.0]
    return np.array(pairs, dtype=int).reshape(-1, 2).T


def _counting(values, halves):
    """Masks of the conditions that count, and of those that all columns nearly violate.

    Some column violates those that count, or satisfies them with a margin. Every mixture
    satisfies all other constraints, but with less than the margin to spare. (A rate of
    0/0, for example, is the condition 0 <= 0.) Their multipliers would be as large as the
    price allows, however high it is. Those of the second kind, such as a rate of at most
    0, are met by no column with a margin, and violated by some. Halves are none of them.

    `values` (p, T): the values at the columns. `halves` (p,): as of `Conditions`. The
    halves of a level count together.
    """

    def count(values):
        met, spared = values <= ROUNDED_ZERO, values <= -CONSTRAINT_MARGIN
        return ~met.all(axis=1) | spared.any(axis=1), ~spared.any(axis=1)

    counts, tight = count(values)
    of_levels, _ = count(largest_of_halves(values, halves))
    tight &= counts & (halves == 0)
    return np.where(halves == 0, counts, of_levels[np.abs(halves)]), tight


def _positive(Q, known):
    """The nearest positive semidefinite matrix, or the same if `known` up to rounding."""
    if not known:
        values, vectors = np.linalg.eigh(Q)
        Q = (vectors * np.maximum(values, 0.0)) @ vectors.T
    Q[np.diag_indices(len(Q))] += 1e-10 * (1.0 + np.trace(Q) / len(Q))
    return Q


def _search_line(master, target, predicted):
    """Halve the step to the target until the merit falls by its share, or do not move."""
    weights, columns = master.weights, master.columns
    before = master.merit(columns.mix(weights))[0]
    step = 1.0
    while step >= 1e-3:
        tried = weights + step * (target - weights)
        fall = before - master.merit(columns.mix(tried))[0]
        if fall > max(SUFFICIENT_DECREASE * step * predicted, 0.0):
            master.weights = tried
            master.n_still = 0
            return
        step *= 0.5
    master.n_still += 1
