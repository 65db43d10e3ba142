r"""Exact bounds on rates that are estimated from counts, and on sums of two rates.

A count of k among n independent examples is binomial. P(K <= k) falls as the rate grows,
so that it is the p-value of "the rate is at least r" at r itself, and the rates that are
not rejected are the interval of Clopper and Pearson [1]_.

For a weighted sum of two independent rates there is one more parameter, along the line
where the sum is at its bound. The p-value is the largest over that line. As proposed by
Berger and Boos [2]_, the search is confined to a confidence interval of the first rate,
whose error is added. P(T <= t) falls in both rates, so that on a piece of the line it is
at most its value at the lower ends of both: the maximum over pieces is a proven bound,
which a finer division makes as sharp as one likes.

.. [1] Clopper, Pearson, "The use of confidence or fiducial limits illustrated in the case
   of the binomial", Biometrika 26, 1934.
.. [2] Berger, Boos, "P values maximized over a confidence set for the nuisance
   parameter", Journal of the American Statistical Association 89, 1994.
"""

import numpy as np
from scipy.special import betaincc, betaincinv, gammaln, xlog1py, xlogy

from sklearn_structsvm._utils.tolerances import SAME

# Share of the error that confines the search.
NUISANCE_SHARE = 0.02

# Pieces of the line at first, and how often those that decide are halved.
PIECES, HALVINGS = 24, 5

# Counts that are further from their mean than this many standard deviations are left
# out, and their probability is added.
WINDOW, LEFT_OUT = 8.5, 1e-13

# Newton's steps toward the best of Chernoff's bounds, each of which is a bound, and the
# largest exponent, whose exponential is more than rounding.
CHERNOFF_STEPS, LARGEST_EXPONENT = 4, 30.0


def clopper_pearson(k, n, confidence=0.95):
    """Two-sided confidence limits of a rate, exact.

    `k` successes in `n` trials; without trials the limits are 0 and 1.
    """
    tail = (1.0 - confidence) / 2.0
    return lower_limit(k, n, tail), upper_limit(k, n, tail)


def upper_limit(k, n, error):
    """The rate that is exceeded with at most this probability."""
    k, n = np.asarray(k, dtype=float), np.asarray(n, dtype=float)
    inside = k < n
    found = betaincinv(np.where(inside, k + 1.0, 1.0), np.where(inside, n - k, 1.0),
                       1.0 - error)  # fmt: skip
    return np.where(inside, found, 1.0)


def lower_limit(k, n, error):
    """The rate that is not reached with at most this probability."""
    return 1.0 - upper_limit(np.subtract(n, k), n, error)


def sum_p_value(costs, k, n, bound, error):
    """P-value of "Σ_r costs[r] rate[r] is above the bound", for independent counts.

    If it is at most `error`, the sum is at most the bound, with that confidence.

    `costs` (R,): positive. `k`, `n` (R,), int: successes and trials. With more than two
    rates, or where the counts may depend on one another, each rate gets a limit of its
    own, of a share of the error. `error`: at which p-values are to be sharp. Returns at
    most 1; 1 without doubt that the sum may be above.
    """
    costs = np.asarray(costs, dtype=float)
    k, n = np.asarray(k, dtype=float), np.asarray(n, dtype=float)
    if costs.sum() <= bound:
        return 0.0
    if bound < 0.0 or not n.all() or (k == n).all():
        return 1.0
    if len(costs) == 1:
        # At a rate of exactly the bound the condition holds: what is above it is worse.
        return float(betaincc(k[0] + 1.0, n[0] - k[0], bound / costs[0]))
    if len(costs) > 2:
        return union_p_value(costs, k, n, bound)
    return _two_p_value(costs, k, n, bound, error)


def union_p_value(costs, k, n, bound):
    """The smallest error at which the sum of the rates' upper limits is at the bound."""
    costs, k, n = (np.asarray(values, dtype=float) for values in (costs, k, n))

    def is_met(error):
        return costs @ upper_limit(k, n, error / len(costs)) <= bound

    if not is_met(1.0):
        return 1.0
    low, high = 1e-12, 1.0
    if is_met(low):
        return low
    for _ in range(40):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if is_met(middle) else (middle, high)
    return float(high)


def _two_p_value(costs, k, n, bound, error):
    shares = costs / n
    total = shares @ k
    if total >= bound:
        return 1.0
    if n[0] > n[1]:  # the sum over counts is of the smaller sample
        return _two_p_value(costs[::-1], k[::-1], n[::-1], bound, error)
    spent = NUISANCE_SHARE * error
    low, high = clopper_pearson(k[0], n[0], 1.0 - spent)
    # Where both rates are from 0 to 1.
    low = max(low, (bound - costs[1]) / costs[0])
    high = min(high, bound / costs[0])
    if low > high:
        return spent

    def other(first):
        return np.clip((bound - costs[0] * first) / costs[1], 0.0, 1.0)

    tail = _TailOfSum(costs, n, total, low, high, (other(high), other(low)))

    edges = np.linspace(low, high, PIECES + 1)
    left, right = edges[:-1], edges[1:]
    at_edges = tail(edges, other(edges))
    worst = at_edges.max()
    settled = 0.0
    for halving in range(HALVINGS + 1):
        above = tail(left, other(right))
        # What is below all that counts needs no finer look.
        is_open = above > max(worst, error - spent)
        settled = max(settled, above[~is_open].max(initial=0.0))
        if worst > error - spent or not is_open.any() or halving == HALVINGS:
            settled = max(settled, above.max())
            break
        left, right = left[is_open], right[is_open]
        middle = 0.5 * (left + right)
        worst = max(worst, tail(middle, other(middle)).max())
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return float(min(settled + spent, 1.0))


def pair_p_bounds(costs, k, n, bound, error):
    """Upper bounds of `sum_p_value` for many pairs of independent counts at once.

    The tail at each piece of the line is at most Chernoff's bound, which is a few times
    as large. Only pairs for which this does not decide need the sum over counts.

    `costs`, `k`, `n` (P, 2); `bound` (P,).
    """
    found = np.ones(len(bound))
    total = (costs / np.maximum(n, 1.0) * k).sum(axis=1)
    found[costs.sum(axis=1) <= bound] = 0.0
    used = np.flatnonzero((found > 0.0) & (total < bound) & n.all(axis=1))
    # As for one pair, the first sample is the smaller one.
    swapped = (n[used, 0] > n[used, 1])[:, None]
    costs, k, n = (np.where(swapped, v[used, ::-1], v[used]) for v in (costs, k, n))
    bound, total = bound[used], total[used]
    spent = NUISANCE_SHARE * error
    # Many pairs share a sample.
    samples, places = np.unique(np.stack([k[:, 0], n[:, 0]]), axis=1, return_inverse=True)
    limits = clopper_pearson(*samples, 1.0 - spent)
    low, high = (limit[np.ravel(places)] for limit in limits)
    low = np.maximum(low, (bound - costs[:, 1]) / costs[:, 0])
    high = np.minimum(high, bound / costs[:, 0])
    edges = np.linspace(low, np.maximum(low, high), PIECES + 1)
    others = np.clip((bound - costs[:, 0] * edges) / costs[:, 1], 0.0, 1.0)
    tails = _chernoff(costs, n, total, np.stack([edges[:-1], others[1:]], axis=-1))
    tails = np.where(low > high, 0.0, tails.max(axis=0) + LEFT_OUT)
    found[used] = np.minimum(tails * (1.0 + SAME) + spent, 1.0)
    return found


def _chernoff(costs, n, total, rates):
    """A bound of P(Σ_r costs[r] K_r / n_r <= total), for rates of shape (..., P, 2)."""
    total = total + SAME * costs.max(axis=1)
    shares = costs / n
    power, most = np.zeros(rates.shape[:-1]), LARGEST_EXPONENT / shares.max(axis=1)
    for _ in range(CHERNOFF_STEPS):
        weights = rates * np.exp(-power[..., None] * shares)
        tilted = weights / (1.0 - rates + weights)
        excess = (costs * tilted).sum(axis=-1) - total
        curvature = (costs * shares * tilted * (1.0 - tilted)).sum(axis=-1)
        step = np.divide(excess, curvature, out=np.zeros_like(power), where=curvature > 0)
        # Any power gives a bound, and 0 gives 1.
        power = np.clip(power + step, 0.0, most)
    change = np.log1p(rates * np.expm1(-power[..., None] * shares))
    return np.minimum(np.exp(power * total + (n * change).sum(axis=-1)), 1.0)


class _TailOfSum:
    """P(costs[0] K_0 / n_0 + costs[1] K_1 / n_1 <= total), for arrays of rates.

    The rates of the first sample are from `low` to `high`, and those of the second the
    ones with which the sum of rates is at the bound.
    """

    def __init__(self, costs, n, total, low, high, others):
        self.first = _Counts(n[0], low, high)
        self.second = _Counts(n[1], *others)
        left = (total - costs[0] * self.first.values / n[0]) * n[1] / costs[1]
        at_most = np.floor(left + SAME * n[1]) - self.second.values[0]
        # Place in the sums, which begin with 0.
        last = len(self.second.values)
        self.places = np.clip(at_most + 1.0, 0.0, last).astype(np.intp)

    def __call__(self, first, second):
        sums = np.cumsum(self.second.probabilities(second), axis=1)
        sums = np.pad(sums, ((0, 0), (1, 0)))
        tails = self.first.probabilities(first) * sums[:, self.places]
        return tails.sum(axis=1) + LEFT_OUT


class _Counts:
    """The counts of n trials that are not negligible for rates from `low` to `high`."""

    def __init__(self, n, low, high):
        spread = WINDOW * np.sqrt(n) * 0.5 + 10.0
        self.n = n
        self.values = np.arange(
            max(np.floor(n * low - spread), 0.0),
            min(np.ceil(n * high + spread), n) + 1.0,
        )
        self.choices = (
            gammaln(n + 1.0) - gammaln(self.values + 1.0) - gammaln(n - self.values + 1.0)
        )

    def probabilities(self, rates):
        """Of each count, by rate."""
        p = np.asarray(rates, dtype=float)[:, None]
        others = self.n - self.values
        return np.exp(self.choices + xlogy(self.values, p) + xlog1py(others, -p))
