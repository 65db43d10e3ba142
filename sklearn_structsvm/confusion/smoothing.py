"""Smoothed labels, which lie between the labels and the probabilities.

A rule fits the labels that are counted. The labels of few examples are noisy, and the
best rule for them is not the best for new examples. Probabilities do not have this noise,
but may be wrong. Smoothed labels lie between the two, and are closer to the labels the
more of these there are. Weights of any scale say as much as their effective number of
examples. The constants are the same for all data,
see benchmarks/bench_default_decisions.py.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from sklearn_structsvm._utils.weights import effective_weights

# The smallest distance of a probability from 0.
NEAREST = 1e-9

# Smallest values of probabilities, among which the most probable one is chosen. Naive
# Bayes with many features may return 1e-60, and there may be information in how far below
# 1e-9 a value is.
FLOORS = (NEAREST, 1e-12, 1e-15, 1e-20, 1e-30, 1e-60, 1e-100)

# The prior of a sigmoid's two parameters: its inverse variance, alone and around the
# sigmoid of all labels.
PRIOR_PRECISION, PRIOR_PRECISION_AROUND = 1.0, 5.0

# If a label occurs n times, its own share of the counts is n / (n + this).
LABELS_FOR_HALF = 100.0

# A window of examples, sorted by score, extends this far to each side: WINDOW
# n^WINDOW_POWER.
WINDOW, WINDOW_POWER = 0.25, 0.8

# What the labels of a cell may count in the mean with those of all cells.
OWN_SHARES = np.linspace(0.0, 1.0, 11)

NEWTON_TOLERANCE = 1e-8

# 1 less this is the largest number below 1.
LEAST_BELOW_ONE = float(np.finfo(np.float64).epsneg)


def nearest_to_zero(*probabilities, at_least=NEAREST):
    """The replacement for 0: half of the smallest positive probability, if not too small.

    A forest of 50 trees that says 0 does not mean one in a billion.
    """
    least = [P.min(where=P > 0.0, initial=1.0) for P in probabilities]
    return max(at_least, float(min(least)) / 2.0)


def log_odds(eta, floor=NEAREST):
    """log η / (1 - η), for η at least `floor` away from 0 and, as far as that is, 1."""
    most = min(1.0 - floor, 1.0 - LEAST_BELOW_ONE)
    eta = np.clip(np.asarray(eta, dtype=np.float64), floor, most)
    return np.log(eta) - np.log1p(-eta)


def fit_sigmoid(z, hits, weights, around=(1.0, 0.0), precision=PRIOR_PRECISION):
    """The most probable (a, b) of σ(a z + b), for a normal prior around a given one.

    Newton's method on a strictly convex function, with steps halved until it falls.

    `z` (m,): log odds. `hits` (m,): weights of the examples with each z that have the
    label. `around` (float, float): mean of the prior, which is the start.
    """
    mean = np.asarray(around, dtype=np.float64)

    def loss(found):
        scores = found[0] * z + found[1]
        off = found - mean
        fit = weights @ np.logaddexp(0.0, scores) - hits @ scores
        return float(fit + precision / 2.0 * off @ off)

    found = mean.copy()
    value = loss(found)
    for _ in range(50):
        q = expit(found[0] * z + found[1])
        residuals, w = weights * q - hits, weights * q * (1.0 - q)
        gradient = np.array([residuals @ z, residuals.sum()]) + precision * (found - mean)
        wz = w * z
        hessian = np.array([[wz @ z, wz.sum()], [wz.sum(), w.sum()]])
        step = np.linalg.solve(hessian + precision * np.eye(2), gradient)
        for _ in range(30):
            after = loss(found - step)
            if after <= value:
                break
            step = step / 2.0
        else:
            # Only rounding is left.
            return found
        found, value = found - step, after
        if np.abs(step).max() < NEWTON_TOLERANCE:
            return found
    return found


def fit_sigmoids(z, hits, weights):
    """The most probable sigmoids of several labels, (L, 2).

    They have a slope in common, of which each has its own multiple near 1. It is that
    within labels: between labels, log odds differ by what they occur, which probabilities
    nearly always know, even if they do not know much of a label's rows. At the mean of
    its log odds, a label is near the sigmoid of all.

    `z`, `hits`, `weights`: of each label, as of `fit_sigmoid`.
    """
    a, b = fit_sigmoid(*map(np.concatenate, (z, hits, weights)))
    pairs = zip(weights, z, strict=True)
    means = np.array([w @ own / max(w.sum(), NEAREST) for w, own in pairs])
    z = [own - mean for own, mean in zip(z, means, strict=True)]
    starts = a * means + b
    common = _common_slope(z, hits, weights, starts)
    found = np.array(
        [
            fit_sigmoid(common * own, *of, (1.0, start), PRIOR_PRECISION_AROUND)
            for own, *of, start in zip(z, hits, weights, starts, strict=True)
        ]
    )
    slopes = common * found[:, 0]
    return np.column_stack([slopes, found[:, 1] - slopes * means])


def _common_slope(z, hits, weights, starts):
    """The slope of the sigmoids of all labels, which differ by where they are at z = 0.

    Newton's method in its logarithm, so that the order of probabilities stays. Of the
    curvature, only a part that may be negative is left out.

    `starts` (L,): means of the priors of the log odds at z = 0.
    """
    of = np.repeat(np.arange(len(z)), [len(own) for own in z])
    z, hits, weights = map(np.concatenate, (z, hits, weights))
    log_slope, at = 0.0, starts.copy()
    for _ in range(50):
        scaled = np.exp(log_slope) * z
        q = expit(scaled + at[of])
        residuals, w = weights * q - hits, weights * q * (1.0 - q)
        off = np.bincount(of, residuals, len(at)) + PRIOR_PRECISION_AROUND * (at - starts)
        bend = np.bincount(of, w, len(at)) + PRIOR_PRECISION_AROUND
        both = np.bincount(of, w * scaled, len(at)) / bend
        pull = residuals @ scaled
        slope = pull + PRIOR_PRECISION * log_slope - both @ off
        curvature = w @ scaled**2 - both**2 @ bend + max(pull, 0.0) + PRIOR_PRECISION
        step = np.clip(slope / curvature, -1.0, 1.0)
        log_slope -= step
        at -= off / bend - both * step
        if abs(step) < NEWTON_TOLERANCE:
            break
    return float(np.exp(log_slope))


def shrunk_hits(eta, hits, weights, rest, n, sigmoid, floor=NEAREST):
    """Hits of a label, moved toward its probabilities by its own sigmoid.

    The sigmoid of a probability of 0 is 0.

    `eta` (m,): probabilities of the label where they are not 0. `weights` (m,): of
    these examples. `hits` (m,): the same, but 0 without the label. `rest`: hits among
    the other examples. `n`: the effective number of all examples that have the label.
    `sigmoid`: its (a, b). Returns the new hits and rest.
    """
    a, b = sigmoid
    share = n / (n + LABELS_FOR_HALF)
    q = expit(a * log_odds(eta, floor) + b)
    return share * hits + (1.0 - share) * weights * q, share * rest


def smoothed_shares(scores, positive, weights, cells, n_cells):
    """The share of each example that counts as positive, for rules by thresholds.

    The share is a sigmoid of the score plus the mean residual over the examples with
    similar scores. These are n^.8 / 2 of n examples, a share that falls with n, so that
    finally the labels are counted. Examples with equal scores get the same share, in any
    order. If there are more of them than the window has, it is the share of their labels.

    In one of several cells, it is a mean of two such shares: of the labels of this cell,
    and of those of all cells with their log odds shifted by the same number, for the
    cell's base rate. The weights of this mean are those that predict the labels of the
    cell best, each from all others. So thresholds of groups differ as much as their
    labels say, and not as their noise.

    `cells` (n,). `scores` (n,): probabilities of the positive class. `positive` (n,): 1
    for positive examples, 0 for others. `weights` (n,): of any scale. Returns (n,).
    """
    z = log_odds(scores, nearest_to_zero(scores, 1.0 - scores))
    counted = effective_weights(weights)
    overall = fit_sigmoid(z, counted * positive, counted)
    used = np.flatnonzero(weights > 0.0)
    found, pooled = np.zeros(len(z)), np.zeros((3, len(z)))
    pooled[:, used] = _curve(scores, z, positive, weights, used, overall)
    if n_cells == 1:
        return pooled[0]
    for cell in range(n_cells):
        rows = used[cells[used] == cell]
        if len(rows):
            own = _curve(scores, z, positive, weights, rows, overall, refits=True)
            found[rows] = _best_mean(
                pooled[:, rows], own, positive[rows], effective_weights(weights[rows])
            )
    return found


def _curve(scores, z, positive, weights, rows, sigmoid, refits=False):
    """Shares of rows from their labels, shape (3, n).

    The others are without the label of the row itself: a positive, and a negative one.
    """
    # One value for each distinct score.
    _, first, of_row = np.unique(scores[rows], return_index=True, return_inverse=True)
    own = effective_weights(weights[rows])
    masses = np.bincount(of_row, weights=own)
    positives = np.bincount(of_row, weights=own * positive[rows])
    at = z[rows][first]
    a, b = sigmoid
    if refits:
        a, b = fit_sigmoid(at, positives, masses, sigmoid, PRIOR_PRECISION_AROUND)
    q = expit(a * at + b)
    mean, window = _around(masses, positives / masses - q)
    q, mean = q[of_row], mean[of_row]
    rest = np.maximum(window - own, own)
    shares = [
        q + mean,
        q + (window * mean - own * (1.0 - q)) / rest,
        q + (window * mean + own * q) / rest,
    ]
    return np.clip(shares, 0.0, 1.0)


def _best_mean(pooled, own, positive, weights):
    """The mean of two `_curve` of a cell that predicts its left-out labels best."""
    # No probability is known better than this by so many labels.
    floor = 0.5 / (weights.sum() + 1.0)
    z = log_odds(pooled, floor)
    left_out = np.where(positive, z[1], z[2])
    shift = 0.0
    for _ in range(50):
        q = expit(left_out + shift)
        slope = weights @ (q - positive) + PRIOR_PRECISION * shift
        step = slope / (weights @ (q * (1.0 - q)) + PRIOR_PRECISION)
        shift -= np.clip(step, -1.0, 1.0)
        if abs(step) < NEWTON_TOLERANCE:
            break
    pooled = expit(z + shift)
    best, found = -np.inf, pooled[0]
    for share in OWN_SHARES:
        mixed = (1.0 - share) * pooled + share * own
        p = np.where(positive, mixed[1], 1.0 - mixed[2]).clip(floor)
        fit = float(weights @ np.log(p))
        # Rounding does not decide.
        if fit > best + NEWTON_TOLERANCE:
            best, found = fit, mixed[0]
    return found


def _around(masses, values):
    """Means of values over a window of mass around each, and its mass.

    The values are reflected at the ends.
    """
    places = np.concatenate([[0.0], np.cumsum(masses)])
    sums = np.concatenate([[0.0], np.cumsum(masses * values)])
    total = places[-1]
    half = min(max(1.0, np.floor(WINDOW * total**WINDOW_POWER)) + 0.5, total / 2.0)

    def integral(x):
        beyond = np.where(x < 0.0, 0.0, total)
        outside = (x < 0.0) | (x > total)
        inner = np.interp(np.where(outside, 2.0 * beyond - x, x), places, sums)
        at_end = np.where(x < 0.0, 0.0, sums[-1])
        return np.where(outside, 2.0 * at_end - inner, inner)

    middle = (places[1:] + places[:-1]) / 2.0
    window = 2.0 * half
    return (integral(middle + half) - integral(middle - half)) / window, window


def fit_softmax(Z, y, weights, shares, precision):
    """The most probable (a, b_1, ..., b_k) of softmax(a Z + b).

    The prior is normal around a = 1 and b_i = (1 - a) log π_i, that is, around
    softmax(a (Z - log π) + log π). Whatever a is, its most probable class under balanced
    costs is then that of Z. The precision of a is that of a sigmoid.

    `Z` (n, k): logarithms of class probabilities. `y` (n,): codes of the labels.
    `weights` (n,): numbers of examples. `shares` (k,): π, of the labels; log π counts
    as 0 for a class without examples. `precision`: of b. Returns `found` (k + 1,);
    `loss`: the minimum: the negative logarithm of likelihood times prior.
    """
    prior = np.log(np.where(shares > 0.0, shares, 1.0))
    Z = Z.astype(np.float64, copy=False) - prior
    rows, total = np.arange(len(y)), weights.sum()
    start = np.zeros(Z.shape[1] + 1)
    start[0] = 1.0
    precisions = np.full(len(start), precision)
    precisions[0] = PRIOR_PRECISION

    def loss(found):
        scores = found[0] * Z + prior + found[1:]
        scores -= scores.max(axis=1, keepdims=True)
        q = np.exp(scores)
        sums = q.sum(axis=1)
        off = found - start
        value = weights @ (np.log(sums) - scores[rows, y]) + precisions / 2 * off @ off
        q /= sums[:, None]
        q[rows, y] -= 1.0
        q *= weights[:, None]
        gradient = np.concatenate([[np.vdot(q, Z)], q.sum(axis=0)]) + precisions * off
        return float(value / total), gradient / total

    options = {"maxiter": 200, "ftol": 1e-13, "gtol": 1e-8}
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    found = result.x
    found[1:] += (1.0 - found[0]) * prior
    return found, float(result.fun * total)
