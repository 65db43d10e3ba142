"""Forecasts of the duality gap: when to check it, and how long it will take to close."""

import numpy as np


def passes_left(rows, tol):
    """How many more passes a gap takes that goes on to fall as in the second half.

    Parameters
    ----------
    rows : list of dict
        Of a `History`.
    tol : float

    Returns
    -------
    float
        inf where the gap has not fallen, or there are too few rows to tell.
    """
    if len(rows) < 3:
        return np.inf
    # Accelerated gaps go up and down: what counts is the best so far.
    gaps = np.minimum.accumulate([row["dual_gap"] for row in rows])
    middle = len(rows) // 2
    made = rows[-1]["n_iter"] - rows[middle]["n_iter"]
    return passes_at_pace(made, gaps[middle], gaps[-1], tol)


def passes_at_pace(made, before, after, tol):
    """How many more passes a gap takes to `tol`, which `made` of them have lowered.

    It goes on to fall by the same factor; inf if it has not fallen, or `tol` is 0.
    """
    if after <= tol:
        return 0.0
    if not after < before or tol == 0.0:
        return np.inf
    return made * np.log(after / tol) / np.log(before / after)


class GapForecast:
    """Foresees what a check would find, from the gaps as last seen.

    The true gap of what is returned has a ratio to their sum that changes little from
    one check to the next. It is mostly one half for exact steps, whose average has the
    better objective, and more than one where blocks have not been seen for long.

    Parameters
    ----------
    iterate : BlockFrankWolfe or ExactAscent
    tol : float
    certify : callable
        () -> what a check of `run_passes` returns.
    """

    def __init__(self, iterate, tol, certify):
        self.iterate = iterate
        self.tol = tol
        self.certify = certify
        self.ratio = 1.0
        self.steps_at_check = 0

    def check(self):
        seen = self.iterate.estimated_gap
        row, *others = self.certify()
        # Before the first step nothing has been seen.
        if self.iterate.n_steps and seen > 0.0:
            self.ratio = row["dual_gap"] / seen
        self.steps_at_check = self.iterate.n_steps
        return row, *others

    def predicts_convergence(self):
        # A check costs up to two steps for each example: not to be repeated at once.
        made = self.iterate.n_steps - self.steps_at_check
        return (
            made >= len(self.iterate.active_blocks)
            and self.ratio * self.iterate.estimated_gap <= self.tol
        )
