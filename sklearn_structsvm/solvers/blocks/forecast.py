"""Forecasts of the duality gap: when to check it, and how long it will take to close."""

import numpy as np

# A forecast counts after this many passes, or rounds.
FIRST_FORECAST = 20


def passes_left(rows, tol):
    """The number of passes left if the gap falls on as it did in the second half.

    `rows` (list of dict): the rows of a `History`. Returns inf if the gap has not
    fallen, or if there are too few rows.
    """
    if len(rows) < 3:
        return np.inf
    # Accelerated gaps go up and down, so the best gap so far counts.
    gaps = np.minimum.accumulate([row["dual_gap"] for row in rows])
    middle = len(rows) // 2
    made = rows[-1]["n_iter"] - rows[middle]["n_iter"]
    return passes_at_pace(made, gaps[middle], gaps[-1], tol)


def passes_at_pace(made, before, after, tol):
    """The number of passes left if the gap falls on at the pace of `made` passes.

    It falls by the same factor per pass. inf if it has not fallen, or if `tol` is 0.
    """
    if after <= tol:
        return 0.0
    if not after < before or tol == 0.0:
        return np.inf
    return made * np.log(after / tol) / np.log(before / after)


class GapForecast:
    """Predicts the result of a gap check from the last known gaps.

    The ratio of the true gap to the sum of the known block gaps changes little from one
    check to the next. It is mostly one half for exact steps, whose average has the better
    objective, and above one if some blocks have not been visited for long.

    `iterate` (BlockFrankWolfe or ExactAscent). `certify`: () -> what a check of
    `run_passes` returns.
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
        # Before the first step no gap is known.
        if self.iterate.n_steps and seen > 0.0:
            with np.errstate(over="ignore"):
                self.ratio = row["dual_gap"] / seen
        self.steps_at_check = self.iterate.n_steps
        return row, *others

    def predicts_convergence(self):
        # A check costs up to two steps per example, so it is not repeated at once.
        made = self.iterate.n_steps - self.steps_at_check
        return (
            made >= len(self.iterate.active_blocks)
            and self.ratio * self.iterate.estimated_gap <= self.tol
        )
