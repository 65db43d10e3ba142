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

# The prior of a sigmoid's two parameters: its inverse variance, alone and around the
# sigmoid of all labels.
PRIOR_PRECISION, PRIOR_PRECISION_AROUND = 1.0, 5.0

# If a label occurs n times, its own share of the counts is n / (n + this).
LABELS_FOR_HALF = 100.0

# A window of examples, sorted by score, extends this far to each side: WINDOW
# n^WINDOW_POWER.
WINDOW, WINDOW_POWER = 0.25, 0.8

MAX_SOFTMAX_STEPS = 200
MAX_NEWTON_STEPS, MAX_NEWTON_HALVINGS, NEWTON_TOLERANCE = 50, 30, 1e-8


def nearest_to_zero(*probabilities, at_least=NEAREST):
    """The replacement for 0: half of the smallest positive probability, if not too small.

    A forest of 50 trees that says 0 does not mean one in a billion.

    Parameters
    ----------
    *probabilities : ndarrays
    at_least : float
    """
    least = [P.min(where=P > 0.0, initial=1.0) for P in probabilities]
    return max(at_least, float(min(least)) / 2.0)


def log_odds(eta, floor=NEAREST):
    """log η / (1 - η), for η at least `floor` away from 0 and 1."""
    eta = np.clip(np.asarray(eta, dtype=np.float64), floor, 1.0 - floor)
    return np.log(eta) - np.log1p(-eta)


def fit_sigmoid(z, hits, weights, around=(1.0, 0.0), precision=PRIOR_PRECISION):
    """The most probable (a, b) of σ(a z + b), for a normal prior around a given one.

    Newton's method on a strictly convex function, with steps halved until it falls.

    Parameters
    ----------
    z : ndarray of shape (m,)
        Log odds.
    hits : ndarray of shape (m,)
        Weights of the examples with each z that have the label.
    weights : ndarray of shape (m,)
        Weights of all examples.
    around : (float, float)
        Mean of the prior, which is the start.
    precision : float
        Precision of the prior.

    Returns
    -------
    ndarray of shape (2,)
    """
    mean = np.asarray(around, dtype=np.float64)

    def loss(found):
        scores = found[0] * z + found[1]
        off = found - mean
        fit = weights @ np.logaddexp(0.0, scores) - hits @ scores
        return float(fit + precision / 2.0 * off @ off)

    found = mean.copy()
    value = loss(found)
    for _ in range(MAX_NEWTON_STEPS):
        q = expit(found[0] * z + found[1])
        residuals, w = weights * q - hits, weights * q * (1.0 - q)
        gradient = np.array([residuals @ z, residuals.sum()]) + precision * (found - mean)
        wz = w * z
        hessian = np.array([[wz @ z, wz.sum()], [wz.sum(), w.sum()]])
        step = np.linalg.solve(hessian + precision * np.eye(2), gradient)
        for _ in range(MAX_NEWTON_HALVINGS):
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


def shrunk_hits(eta, hits, weights, rest, n, sigmoid, floor=NEAREST):
    """Hits of a label, moved toward its probabilities by its own sigmoid.

    The sigmoid of a probability of 0 is 0. If all probabilities are 0, no hits are left,
    so a rule does not predict a label everywhere that was never learned.

    Parameters
    ----------
    eta : ndarray of shape (m,)
        Probabilities of the label, of the examples for which they are not 0.
    hits : ndarray of shape (m,)
        Weights of those that have the label, 0 of the others.
    weights : ndarray of shape (m,)
    rest : float
        Hits among the examples whose probability is 0.
    n : float
        The effective number of all examples that have the label.
    sigmoid : (float, float)
        Its a and b.
    floor : float
        As for `log_odds`.

    Returns
    -------
    hits : ndarray of shape (m,)
    rest : float
    """
    a, b = sigmoid
    share = n / (n + LABELS_FOR_HALF) if len(eta) else 0.0
    q = expit(a * log_odds(eta, floor) + b)
    return share * hits + (1.0 - share) * weights * q, share * rest


def smoothed_shares(scores, positive, weights, cells, n_cells):
    """The share of each example that counts as positive, for rules by thresholds.

    In each cell, the share is a sigmoid of the score plus the mean residual over the
    examples with similar scores. These are n^.8 / 2 of n examples, a share that falls
    with n, so that finally the labels are counted. Examples with equal scores get the
    same share, in any order. If there are more of them than the window has, it is the
    share of their labels.

    Examples of one score get one share, in whatever order they are. If they are more
    than the window, it is that of their labels.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Probabilities of the positive class.
    positive : ndarray of shape (n,)
        1 for positive examples, 0 for others.
    weights : ndarray of shape (n,)
        Of any scale.
    cells : ndarray of shape (n,)
    n_cells : int

    Returns
    -------
    ndarray of shape (n,)
    """
    z = log_odds(scores, nearest_to_zero(scores, 1.0 - scores))
    counted = effective_weights(weights)
    overall = fit_sigmoid(z, counted * positive, counted)
    found = np.zeros(len(z))
    for cell in range(n_cells):
        rows = np.flatnonzero((cells == cell) & (weights > 0.0))
        if not len(rows):
            continue
        # One value for each distinct score.
        _, first, of_row = np.unique(scores[rows], return_index=True, return_inverse=True)
        own = effective_weights(weights[rows])
        masses = np.bincount(of_row, weights=own)
        positives = np.bincount(of_row, weights=own * positive[rows])
        at = z[rows][first]
        a, b = overall
        if n_cells > 1:
            a, b = fit_sigmoid(at, positives, masses, overall, PRIOR_PRECISION_AROUND)
        q = expit(a * at + b)
        q += _around(masses, positives / masses - q)
        found[rows] = np.clip(q, 0.0, 1.0)[of_row]
    return found


def _around(masses, values):
    """Means of values over a window of mass around each, with reflection at the ends."""
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
    return (integral(middle + half) - integral(middle - half)) / (2.0 * half)


def fit_softmax(Z, y, weights):
    """The most probable (a, b_1, ..., b_k) of softmax(a Z + b), with the sigmoids' prior.

    Parameters
    ----------
    Z : ndarray of shape (n, k)
        Logarithms of class probabilities.
    y : ndarray of shape (n,)
        Codes of the labels.
    weights : ndarray of shape (n,)
        Numbers of examples.

    Returns
    -------
    found : ndarray of shape (k + 1,)
    loss : float
        The minimum: the negative logarithm of likelihood times prior.
    """
    Z, rows, total = Z.astype(np.float64, copy=False), np.arange(len(y)), weights.sum()
    start = np.zeros(Z.shape[1] + 1)
    start[0] = 1.0

    def loss(found):
        scores = found[0] * Z + found[1:]
        scores -= scores.max(axis=1, keepdims=True)
        q = np.exp(scores)
        sums = q.sum(axis=1)
        off = found - start
        value = (
            weights @ (np.log(sums) - scores[rows, y]) + PRIOR_PRECISION / 2 * off @ off
        )
        q /= sums[:, None]
        q[rows, y] -= 1.0
        q *= weights[:, None]
        gradient = (
            np.concatenate([[np.vdot(q, Z)], q.sum(axis=0)]) + PRIOR_PRECISION * off
        )
        return float(value / total), gradient / total

    options = {"maxiter": MAX_SOFTMAX_STEPS, "ftol": 1e-13, "gtol": 1e-8}
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return result.x, float(result.fun * total)
