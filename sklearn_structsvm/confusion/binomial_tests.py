r"""Constraints as statements on binomial rates, to be tested on held-out examples.

A rule that was chosen without them predicts label j for an example of cell a and label i
with a probability of its own, and a constraint <G, C> + h <= 0 is one on such rates:

- A row G[a, i] that has two values is one rate, of the examples of that cell and label;
  rows with the same two values are one rate of all their examples. So a recall, a
  selection rate and a churn are one rate each, and the difference of two groups' is one
  of two independent rates.
- If G is 0 wherever its denominator D is, and h is 0, what is bounded is a rate among the
  examples that D counts: a precision is one among those that are predicted.
- Rows of more values are sums of rates, of "the value is at least v".

The numbers of examples by cell and label are taken as they are, as are their shares. A
count of independent examples is binomial, whatever the distribution, which
`_utils.binomial` makes exact tests of.

To reject "some condition is violated", each of the conditions has to be rejected, at the
same level and not at a share of it: a rule that violates one is not certified unless
the test of that one errs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from sklearn_structsvm._utils.binomial import (
    pair_p_bounds,
    sum_p_value,
    union_p_value,
)
from sklearn_structsvm._utils.conditions import sums_of_halves
from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO
from sklearn_structsvm.confusion.moved import spare_of

# This is added to both outcomes of a rate, so that its variance is not 0.
PRIOR_COUNT = 0.5

# So many of the samples that are said to be enough are certified.
POWER = 0.8

# The number of samples that an expected violation is the mean of: its error is a tenth of
# the standard error of one sample.
N_DRAWS = 100

# P-values below this share of the error need not be sharp: an upper bound is enough.
SURE_SHARE = 0.1


@dataclass
class RateSum:
    """One condition: Σ_r costs[r] rate[r] <= bound.

    `costs` (R,): positive. `k`, `n` (R,): how many examples each rate counts, and among
    how many. `independent`: whether the counts are of different examples. `unit`: a
    change of the condition's violation by 1 is one of the sum by this. `among` (list of
    (m, k, k) bool): what the rates are among: entries of the counts.
    """

    costs: np.ndarray
    k: np.ndarray
    n: np.ndarray
    bound: float
    independent: bool = True
    unit: float = 1.0
    among: Any = ()

    def p_value(self, error):
        """Of "the condition is violated"; sharp where it is about `error`."""
        if self.independent:
            return sum_p_value(self.costs, self.k, self.n, self.bound, error)
        if self.costs.sum() <= self.bound:
            return 0.0
        if self.bound < 0.0 or not self.n.all():
            return 1.0
        return union_p_value(self.costs, self.k, self.n, self.bound)


@dataclass
class RateSums(Sequence):
    """Many conditions: `RateSum` by index, and what is known of all at once.

    `costs`, `k`, `n` (P, R): as of `RateSum`; the costs are 0 where a condition is on
    fewer than R rates. `bound`, `unit`, `independent` (P,); `among`: a list of P.
    """

    costs: np.ndarray
    k: np.ndarray
    n: np.ndarray
    bound: np.ndarray
    independent: np.ndarray
    unit: np.ndarray
    among: list

    @classmethod
    def of(cls, sums):
        """Conditions from a sequence of `RateSum`, or of some of them together."""
        if isinstance(sums, cls):
            return sums
        many = [each if isinstance(each, cls) else cls._of_one(each) for each in sums]
        width = max((each.costs.shape[1] for each in many), default=0)

        def stacked(name, missing=None):
            found = [np.zeros((0, width) if missing is not None else 0)]
            for each in many:
                values = getattr(each, name)
                if missing is not None:
                    more = ((0, 0), (0, width - values.shape[1]))
                    values = np.pad(values, more, constant_values=missing)
                found.append(values)
            return np.concatenate(found)

        return cls(
            stacked("costs", 0.0),
            stacked("k", 0.0),
            stacked("n", 1.0),
            stacked("bound"),
            stacked("independent").astype(bool),
            stacked("unit"),
            [among for each in many for among in each.among],
        )

    @classmethod
    def _of_one(cls, one):
        rows = (np.reshape(values, (1, -1)) for values in (one.costs, one.k, one.n))
        own = (np.array([v]) for v in (one.bound, one.independent, one.unit))
        return cls(*rows, *own, [one.among])

    def __len__(self):
        return len(self.bound)

    def __getitem__(self, p):
        counts = self.costs[p] != 0.0
        return RateSum(
            self.costs[p][counts],
            self.k[p][counts],
            self.n[p][counts],
            float(self.bound[p]),
            bool(self.independent[p]),
            float(self.unit[p]),
            self.among[p],
        )

    def looser(self, by):
        """The same with violations that are smaller by a number."""
        return replace(self, bound=self.bound + by * self.unit)

    @property
    def standard_errors(self):
        """Of the violations; inf if a rate has no examples."""
        rates = (self.k + PRIOR_COUNT) / (self.n + 2.0 * PRIOR_COUNT)
        with np.errstate(divide="ignore"):
            variances = self.costs**2 * rates * (1.0 - rates) / self.n
        return np.sqrt(variances.sum(axis=1)) / self.unit

    @property
    def violations(self):
        """Estimates of them; without examples of a rate, as if it were 1."""
        rates = np.divide(self.k, self.n, out=np.ones_like(self.costs), where=self.n > 0)
        return ((self.costs * rates).sum(axis=1) - self.bound) / self.unit

    @property
    def spares(self):
        """By how many standard errors each seems to be met; -inf of a rate among none."""
        return np.where(
            self.n.all(axis=1), -self.violations / self.standard_errors, -np.inf
        )

    def decisive(self, error):
        """(p, index): of "some condition is violated", and of the one that says so.

        The largest of the conditions' p-values. Those that a bound shows not to be the
        largest, or to be far below the error, are not computed.
        """
        bounds = self._p_bounds(error)
        worst, index = 0.0, None
        for p in np.argsort(-bounds, kind="stable").tolist():
            if bounds[p] <= max(worst, SURE_SHARE * error):
                worst = max(worst, float(bounds[p]))
                index = p if index is None else index
                break
            found = self[p].p_value(error)
            if index is None or found > worst:
                worst, index = found, p
        return worst, index

    def _p_bounds(self, error):
        """Upper bounds of the p-values; 1 unless they are of two independent rates."""
        found = np.ones(len(self))
        pairs = self.independent & ((self.costs > 0.0).sum(axis=1) == 2)
        if pairs.any():
            counts = self.costs[pairs] > 0.0
            of_pairs = (values[pairs] for values in (self.costs, self.k, self.n))
            rates = (values[counts].reshape(-1, 2) for values in of_pairs)
            found[pairs] = pair_p_bounds(*rates, self.bound[pairs], error)
        return found


def rate_sums(constraint, cells, counts):
    """The `RateSums` of the linear conditions of a constraint.

    `cells`: of the sample that shares are taken from. `counts` (m, k, k): held-out
    examples by cell, label and prediction. The order is that of `Constraint.linear`.
    """
    if constraint.has_levels:
        return RateSums.of(_precision_sums(constraint, cells, counts))
    G, h, D, halves = constraint._conditions(cells)
    whole = halves == 0
    of_whole = None if D is None else D[whole]
    found = [RateSums.of(_whole_sums(G[whole], h[whole], of_whole, cells, counts))]
    for e in range(1, halves.max(initial=0) + 1):
        upper, lower = (
            RateSums.of([_by_label(G[p], h[p], cells.priors, counts) for p in own])
            for own in (np.flatnonzero(halves == e), np.flatnonzero(halves == -e))
        )
        units = np.ones(len(upper))
        if D is not None:
            units = np.tensordot(D[halves == e], counts, axes=3) / max(counts.sum(), 1)
        found.append(_pairs(upper, lower, np.where(units == 0.0, 1.0, units)))
    return RateSums.of(found)


def _pairs(upper, lower, units):
    """The condition of each upper half with the lower half of each other rate."""
    a, b = (~np.eye(len(upper), dtype=bool)).nonzero()
    costs, k, n = (
        np.concatenate([getattr(upper, name)[a], getattr(lower, name)[b]], axis=1)
        for name in ("costs", "k", "n")
    )
    return RateSums(
        costs,
        k,
        n,
        upper.bound[a] + lower.bound[b],
        upper.independent[a] & lower.independent[b],
        units[a],
        [upper.among[i] + lower.among[j] for i, j in zip(a, b, strict=True)],
    )


def _whole_sums(G, h, D, cells, counts):
    found = []
    for p in range(len(h)):
        inside = None if D is None else D[p] != 0.0
        if inside is not None and h[p] == 0.0 and not G[p][~inside].any():
            sums = _conditional(G[p], D[p], inside, counts)
            if sums is not None:
                found.append(sums)
                continue
        unit = 1.0 if D is None else (D[p] * counts).sum() / max(counts.sum(), 1)
        found.append(_by_label(G[p], float(h[p]), cells.priors, counts, unit or 1.0))
    return found


def _precision_sums(parity, cells, counts):
    """Conditions on pairs of precisions, which are of different examples.

    With ``reference="overall"`` a group is compared with the others together: the
    precision of all is w times its own and 1 - w times theirs, where w is its share of
    the predictions, as it is among the counts.
    """
    slack, ratio = (
        (parity.slack, 1.0) if parity.bound == "difference" else (0.0, parity.ratio)
    )
    found = []
    for index, (masks, _) in zip(
        parity.positives(cells), parity.precisions(cells), strict=True
    ):
        predicted = counts[:, :, index].sum(axis=1)
        parts = np.array([[counts[m, index, index].sum(), predicted[m].sum()]
                          for m in masks])  # fmt: skip
        among = np.zeros((len(masks), *cells.shape), dtype=bool)
        among[..., index] = np.array(masks)[..., None]
        for a, own in enumerate(parts):
            rests = list(np.delete(among, a, axis=0))
            if parity.reference == "groups":
                others = [part for b, part in enumerate(parts) if b != a]
                signs = [(ratio, -1.0)]
            else:
                others = [parts.sum(axis=0) - own]
                rests = [np.any(rests, axis=0)]
                w = own[1] / max(parts[:, 1].sum(), 1.0)
                signs = [(ratio - w, w - 1.0), (ratio * w - 1.0, ratio * (1.0 - w))]
            rate = (own[0] + PRIOR_COUNT) / (own[1] + 2.0 * PRIOR_COUNT)
            unit = 1.0 if parity.bound == "difference" else rate
            for other, rest in zip(others, rests, strict=True):
                found.extend(
                    replace(
                        _signed(each, own, other, slack, unit), among=[among[a], rest]
                    )
                    for each in signs
                    if np.any(each)
                )
    return found


def _signed(signs, one, other, bound, unit):
    """Σ signs[r] rate[r] <= bound; what is subtracted is a rate of the other examples."""
    signs, (k, n) = np.array(signs), np.transpose([one, other])
    is_less = signs < 0.0
    k, bound = np.where(is_less, n - k, k), bound - signs[is_less].sum()
    counts = signs != 0.0
    return RateSum(np.abs(signs)[counts], k[counts], n[counts], bound, unit=unit)


def _conditional(G, D, inside, counts):
    """A rate among the examples that D counts; None if G has more than two values."""
    values = np.unique(G[inside])
    if len(values) > 2:
        return None
    if not len(values):  # of a group that the sample lacks
        return RateSum(np.ones(1), np.zeros(1), np.zeros(1), 0.0, among=[inside])
    low, high = values[0], values[-1]
    n = counts[inside].sum()
    k = counts[inside & (high == G)].sum()
    # <G, C> <= 0 if the share of `high` is at most this.
    bound = 1.0 if high <= 0.0 else 0.0 if low >= 0.0 else -low / (high - low)
    unit = D[inside].mean() / (high - low) if high > low else 1.0
    k, n = np.array([k]), np.array([n])
    return RateSum(np.ones(1), k, n, bound, unit=unit, among=[inside])


def _by_label(G, h, priors, counts, unit=1.0):
    """Rates among the examples of labels and cells."""
    rows = {}
    for s in zip(*np.nonzero(G.any(axis=2)), strict=True):
        rows.setdefault(tuple(np.unique(G[s]).tolist()), []).append(s)
    costs, k, n, bound, among = [], [], [], -h, []
    n_units = 0
    for values, members in rows.items():
        where = tuple(np.array(members).T)
        share = priors[where].sum()
        bound -= share * values[0]
        if share == 0.0 or len(values) == 1:
            continue
        n_units += 1
        of_unit = counts[where]
        among.append(np.zeros(counts.shape, dtype=bool))
        among[-1][where] = True
        for low, high in zip(values[:-1], values[1:], strict=True):
            costs.append(share * (high - low))
            k.append(of_unit[G[where] >= high].sum())
            n.append(of_unit.sum())
    costs, k, n = map(np.array, (costs, k, n))
    return RateSum(costs, k, n, bound, n_units == len(costs), unit, among)


def empty_of(sums, counts, cells):
    """Names of what rates are among and that was not counted once."""
    masks = {id(mask): mask for own in RateSums.of(sums).among for mask in own}
    among = [mask for mask in masks.values() if not counts[mask].any()]
    return list(dict.fromkeys(map(cells.words_of, among)))


def one_standard_error(constraint, cells, counts):
    """One standard error of each condition of a constraint, for `Moved`.

    That all of g rates are close has a condition for each pair, whose error is σ_ab =
    sqrt(v_a + v_b). In two halves (see `Conditions`) both may be stricter by v_a /
    sqrt(v_a + v) for the least v of the other groups: two groups together by at least
    σ_ab, and by no more if all v are equal.

    `counts` (m, k, k): by cell, label and prediction.
    """
    halves = np.zeros(0, dtype=int)
    if not constraint.has_levels:
        G, h, D, halves = constraint._conditions(cells)
    has_halves = halves.any() and D is None
    if has_halves:
        sums = RateSums.of([_by_label(g, 0.0, cells.priors, counts) for g in G])
    else:
        sums = rate_sums(constraint, cells, counts)
    found = sums.standard_errors
    # Of rates without examples there is no error.
    found = np.where(np.isfinite(found), found, 0.0)
    if not has_halves:
        return found
    variances = found**2
    for side in set(halves[halves != 0].tolist()):
        own = np.flatnonzero(halves == side)
        v = variances[own]
        low, second = np.partition(v, 1)[:2]
        others = np.where(np.arange(len(v)) == v.argmin(), second, low)
        both = np.sqrt(v + others)
        found[own] = np.divide(v, both, out=np.zeros(len(v)), where=both > 0.0)
    return found


def p_value(sums, error):
    """Of "some condition is violated", as of `RateSums.decisive`."""
    return RateSums.of(sums).decisive(error)[0]


def broken_p_value(sums, error):
    """Of "all conditions hold": of the one that seems to be met least, times all.

    That it holds is that the opposite outcomes of its rates are not too rare.
    """
    spares = sums.spares
    known = np.flatnonzero(np.isfinite(spares))
    if not len(known) or spares[known].min() >= 0.0:
        return 1.0
    worst = sums[int(known[spares[known].argmin()])]
    bound = worst.costs.sum() - worst.bound
    opposite = replace(worst, k=worst.n - worst.k, bound=bound)
    return min(len(sums) * opposite.p_value(error / len(sums)), 1.0)


def chance(share):
    """By how many standard errors held-out rates may be worse than is expected.

    In one of five samples they are. A rule is chosen by the other rows, whose rates err
    as well: `share` of all are held out.
    """
    return ndtri(POWER) / np.sqrt(1.0 - share)


def enough_factor(spare, error, share):
    """What a sample has to be multiplied by, so that as surely as `POWER` it certifies.

    `spare`: the standard errors by which all conditions are expected to be met. It
    grows with the square root of the size, until it allows for chance, and for the test.
    None if no size would do.
    """
    needed = chance(share) - ndtri(error)
    return (needed / spare) ** 2 if spare > 0.0 else None


def expected_violation(constraint, cells, counts):
    """The violation to expect of new examples, and the margin with which it would not be.

    It is larger than that of the sample, because the condition that chance hits most is
    the one that counts. Predictions of each cell and label are drawn anew
    `N_DRAWS` times, with the rates of the sample (parametric bootstrap). A margin moves
    the conditions that are nearest to their limits, and not what chance adds to each. So
    it has to be more than the violation: others then decide.

    `counts` (m, k, k) need not be integers. The margin is 0 if no violation is to be
    expected, and inf if none is enough that `spare_of` the constraint allows.
    """
    # Rounding of a mixture may leave -1e-18.
    counts = np.maximum(counts, 0.0)
    sizes, n = counts.sum(axis=2), counts.sum()
    rates = np.zeros_like(counts)
    rates[..., 0] = 1.0
    np.divide(counts, sizes[..., None], out=rates, where=sizes[..., None] > 0.0)
    whole = np.rint(sizes).astype(np.int64)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(whole, rates, size=(N_DRAWS, *sizes.shape))
    drawn = drawn * (sizes / np.maximum(whole, 1))[..., None] / n
    violation = float(np.mean([constraint.violation(C, cells) for C in drawn]))
    if violation <= 0.0:
        return violation, 0.0
    own = _conditions_of(constraint, cells, counts / n)
    chance = np.array([_conditions_of(constraint, cells, C) for C in drawn]) - own

    def is_enough(margin):
        return (np.minimum(own, -margin) + chance).max(axis=1).mean() <= 0.0

    low, high = 0.0, min(spare_of(constraint), 1.0)
    if not is_enough(high):
        return violation, np.inf
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return violation, high


def _conditions_of(constraint, cells, C):
    """The violation of each condition; of a constraint that is not linear, the whole."""
    if constraint.has_levels or constraint.has_convex:
        return np.array([constraint.violation(C, cells)])
    G, h, D, halves = constraint._conditions(cells)
    values = sums_of_halves(np.tensordot(G, C, axes=3) + h, halves)
    if D is None:
        return values
    below = sums_of_halves(np.tensordot(D, C, axes=3), halves)
    # What has no examples violates nothing.
    found = np.full(len(values), -1.0)
    return np.divide(values, below, out=found, where=below > ROUNDED_ZERO)


def allowance(sums, error):
    """How much looser all conditions would have to be for the rates to be certified."""
    low, high = 0.0, 2.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        is_enough = p_value(RateSums.of(sums).looser(middle), error) <= error
        low, high = (low, middle) if is_enough else (middle, high)
    return high
