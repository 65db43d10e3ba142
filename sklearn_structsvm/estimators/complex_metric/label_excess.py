"""Warnings of labels that a rule predicts far more often than they occur, or hardly."""

import numpy as np

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.labels import MAX_NAMES
from sklearn_structsvm._utils.tolerances import UNNOTICED

# A rule that predicts a label this many times as often as it occurs gets a warning.
TOO_OFTEN = 10

# A label that is predicted for fewer rows is predicted for none of as many new rows with
# a probability of exp(-5), nearly 1%, or more.
FEW_ROWS = 5


def warn_of_excess(diagnostics, names, n_rows, remedy):
    """UserWarning for labels that are predicted far more often than they occur."""
    predicted, occurs = diagnostics["predicted_share"], diagnostics["share"]
    # One more row with the label may be chance.
    (labels,) = np.nonzero(predicted > TOO_OFTEN * (occurs + 1.0 / n_rows))
    if not len(labels):
        return
    worst = labels[np.argmax(predicted[labels])]
    listed = _listed(labels, names)
    shares = f"{predicted[worst]:.2%} of the rows, and {occurs[worst]:.2%} have it"
    warn_caller(
        f"More than {TOO_OFTEN} times as many rows get the label(s) {listed} as have "
        f"them: label {names[worst]} is predicted for {shares}. If that is not wanted, "
        f"{remedy}",
    )


def warn_of_few(diagnostics, names, why, told=(), by_label=True, remedy=""):
    """UserWarning for labels that rows have, and that are predicted for none or few.

    Labels that the user was `told` of, by their places, or that do not matter are left
    out. Few are too few only if the rule of each label is its own; `remedy`: for these.
    """
    have, get = diagnostics["rows"].copy(), diagnostics["predicted_rows"]
    have[list(told)] = 0.0
    (never,) = np.nonzero((have > 0.0) & (get <= UNNOTICED))
    if len(never):
        warn_caller(
            f"Rows have the label(s) {_listed(never, names)}, but none gets them: {why}.",
        )
    (few,) = np.nonzero((have >= FEW_ROWS) & (get > UNNOTICED) & (get < FEW_ROWS))
    if len(few) and by_label:
        warn_caller(
            f"Fewer than {FEW_ROWS} of the rows get the label(s) {_listed(few, names)}. "
            "A decision about so few is mostly chance: perhaps no new row gets them."
            f"{remedy}"
        )


def _listed(labels, names):
    listed = ", ".join(str(names[label]) for label in labels[:MAX_NAMES])
    return listed + f" and {len(labels) - MAX_NAMES} more" * (len(labels) > MAX_NAMES)
