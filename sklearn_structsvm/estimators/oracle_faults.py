"""Signs that an oracle, or a decoder of a user's structure, is incorrect."""

import numpy as np

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.loop import WRONG_ORACLE, WRONG_SUMS


def wrong_words(*parts):
    """The fault that a negative gap reveals, by the components of the gap.

    Users cannot correct structures and losses of the library.
    """
    ours = __name__.partition(".")[0], "builtins"
    packages = {type(part).__module__.partition(".")[0] for part in parts}
    return WRONG_SUMS if packages.issubset(ours) else WRONG_ORACLE


def check_nothing_to_learn(problem):
    """Warn that there is nothing to learn if zero weights have no loss.

    Either no labeling has a loss, or the oracle missed those that have one. A user's
    oracle may do so if it minimizes the loss instead of maximizing it. But then, for
    other weights, its result is worse than the true labeling, whose value is 0.

    Returns False if zero weights have a loss. ValueError if the oracle missed that.
    """
    oracle = problem.make_oracle()
    risk = EmpiricalRisk(oracle, problem.weights)
    wrong = wrong_words(problem.structure)
    direction = np.random.default_rng(0).standard_normal(oracle.n_weights)
    # Scores must exceed losses, whatever the units of the features.
    for scale in (0.0, 1.0, 1e4, 1e8):
        value = risk.ask(scale * direction)
        risk.release_answers()
        if scale == 0.0 and value > 0.0:
            return False
        if wrong == WRONG_ORACLE and risk.most_negative_gap < 0.0:
            raise ValueError(f"The objective is zero at zero weights: {wrong}")
    warn_caller(
        "There is nothing to learn: every possible output of every example has loss 0.",
    )
    return True
