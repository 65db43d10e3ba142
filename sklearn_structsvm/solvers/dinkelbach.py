"""Ratios of linear functions without constraints: Dinkelbach's method."""

from dataclasses import dataclass

import numpy as np

# Each call of the oracle gains about as many digits as all before it; what takes more
# calls than this is rounding.
MAX_CALLS = 100


@dataclass
class RatioMinimum:
    """The least ratio that the oracle found, and a lower bound of all.

    Attributes
    ----------
    C : ndarray of shape (m, k, k)
    handle : object
    value, bound : float
    n_calls : int
    """

    C: np.ndarray
    handle: object
    value: float
    bound: float
    n_calls: int


def linear_range(problem, L):
    """The least and the largest <L, C> over all C >= 0 of the problem's row sums."""
    least = float((problem.priors * L.min(axis=-1)).sum())
    return least, float((problem.priors * L.max(axis=-1)).sum())


def ratio_bound(level, q, below):
    """Lower bound of <A, C> / <B, C> with <A - level B, C> >= q and <B, C> in `below`."""
    low, high = below
    if q >= 0.0:
        return level + q / high if high > 0.0 else level
    return level + q / low if low > 0.0 else -np.inf


def minimise_ratio(problem, A, B, *, tol):
    """Minimise <A, C> / <B, C> over 𝒞.

    The oracle is asked for the least <A - γ B, C>, γ the least ratio so far, until it
    finds none that is less [1]_.

    Parameters
    ----------
    problem : ConfusionProblem
        Of which only the oracle and the row sums count.
    A, B : ndarray of shape (m, k, k)
        <B, C> >= 0.
    tol : float
        Stop where value - bound is at most this.

    Returns
    -------
    RatioMinimum

    References
    ----------
    .. [1] Dinkelbach, "On nonlinear fractional programming", Management Science 13, 1967.
    """
    below = linear_range(problem, B)
    value = np.vdot(A, problem.uniform) / np.vdot(B, problem.uniform)
    best, bound, n_calls = None, -np.inf, 0
    while n_calls < MAX_CALLS:
        C, handle, q = problem.lmo(A - value * B)
        n_calls += 1
        bound = max(bound, ratio_bound(value, q, below))
        denominator = np.vdot(B, C)
        found = np.vdot(A, C) / denominator if denominator > 0.0 else np.inf
        if best is None or found < best[0]:
            best = found, C, handle
        if found >= value or found - bound <= tol:
            break
        value = found
    return RatioMinimum(best[1], best[2], float(best[0]), float(bound), n_calls)
