"""What to count as labels: those that there are, drawn towards what the scores say.

A rule is fitted to what it was counted on. The labels of few examples are noise, and the
best rule for them is not that for new examples; probabilities are without this noise, but
may be wrong. What is counted here is between the two, and the nearer to the labels the
more of them there are. Weights are numbers of examples. The constants are one choice for
all data, see benchmarks/README.md.
"""

import numpy as np
from scipy.special import expit

# How near to 0 and 1 a probability is taken to be.
NEAREST = 1e-9

# The prior of a sigmoid's two parameters: its inverse variance, by itself and around the
# sigmoid of all labels.
PRECISION, PRECISION_AROUND = 1.0, 5.0

# A label's own share of what is counted is n / (n + this), if it is there n times.
LABELS_FOR_HALF = 100.0

MAX_STEPS, MAX_HALVINGS, STEP_TOLERANCE = 50, 30, 1e-8


def log_odds(eta):
    """log η / (1 - η), finite."""
    eta = np.clip(np.asarray(eta, dtype=np.float64), NEAREST, 1.0 - NEAREST)
    return np.log(eta) - np.log1p(-eta)


def fit_sigmoid(z, hits, weights, around=(1.0, 0.0), precision=PRECISION):
    """The most probable (a, b) of σ(a z + b), for a normal prior around a given one.

    Newton's method on a strictly convex function, with steps halved until it falls.

    Parameters
    ----------
    z : ndarray of shape (m,)
        Log odds.
    hits : ndarray of shape (m,)
        Weights of those of each z that have the label.
    weights : ndarray of shape (m,)
        Of all of them.
    around : (float, float)
        Mean of the prior, where the search starts.
    precision : float
        Of the prior.

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
    for _ in range(MAX_STEPS):
        q = expit(found[0] * z + found[1])
        residuals, w = weights * q - hits, weights * q * (1.0 - q)
        gradient = np.array([residuals @ z, residuals.sum()]) + precision * (found - mean)
        wz = w * z
        hessian = np.array([[wz @ z, wz.sum()], [wz.sum(), w.sum()]])
        step = np.linalg.solve(hessian + precision * np.eye(2), gradient)
        for _ in range(MAX_HALVINGS):
            after = loss(found - step)
            if after <= value:
                break
            step = step / 2.0
        else:
            # Nothing is left but rounding.
            return found
        found, value = found - step, after
        if np.abs(step).max() < STEP_TOLERANCE:
            return found
    return found


def shrunk_hits(eta, hits, weights, rest, around, precision):
    """Hits of a label, drawn towards its probabilities by a sigmoid of its own.

    Where a probability is 0, the sigmoid says 0 as well. If all of them are, nothing is
    left, and a rule does not predict the label for all rows where it was never learned.

    Parameters
    ----------
    eta : ndarray of shape (m,)
        Probabilities of the label, of the examples for which they are not 0.
    hits : ndarray of shape (m,)
        Weights of those that have the label, 0 of the others.
    weights : ndarray of shape (m,)
    rest : float
        Hits among the examples whose probability is 0.
    around, precision : as of `fit_sigmoid`

    Returns
    -------
    hits : ndarray of shape (m,)
    rest : float
    """
    z = log_odds(eta)
    a, b = fit_sigmoid(z, hits, weights, around, precision)
    n = float(hits.sum()) + rest
    share = n / (n + LABELS_FOR_HALF) if len(eta) else 0.0
    return share * hits + (1.0 - share) * weights * expit(a * z + b), share * rest
