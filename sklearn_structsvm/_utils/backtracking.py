"""Steps that are shortened until they pay."""

# The share of the promised decrease that a step must reach (Armijo's rule).
SUFFICIENT_DECREASE = 1e-4

# How often a step is halved before the rest is rounding.
MAX_HALVINGS = 60


def backtrack(attempt, value, step=1.0):
    """The first of successively halved steps that decreases a function enough.

    `attempt`: (step) -> the value there, the change that its slope promises, and
    anything that is known there. `value`: at a step of 0. `step`: tried first. Returns
    `step`: 0.0 if there is none; `value`; `found`: what `attempt` has returned for it.

    Examples
    --------
    >>> from sklearn_structsvm._utils.backtracking import backtrack
    >>> backtrack(lambda s: ((1.0 - 3.0 * s) ** 2, -6.0 * s, None), 1.0)
    (0.5, 0.25, None)
    """
    for _ in range(MAX_HALVINGS):
        there, promised, found = attempt(step)
        if promised < 0.0 and there <= value + SUFFICIENT_DECREASE * promised:
            return step, there, found
        step *= 0.5
    return 0.0, value, None
