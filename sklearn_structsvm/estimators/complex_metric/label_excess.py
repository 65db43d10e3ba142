"""Warnings of labels that a rule predicts far more often than they occur."""

import numpy as np

from sklearn_structsvm._utils.caller import warn_caller

# A rule that predicts a label this many times as often as it occurs gets a warning, which
# lists at most this many labels.
TOO_OFTEN = 10
MAX_LISTED = 10


def warn_of_excess(diagnostics, names, n_rows, remedy):
    """UserWarning for labels that are predicted far more often than they occur."""
    predicted, occurs = diagnostics["predicted_share"], diagnostics["share"]
    # One more row with the label may be chance.
    (labels,) = np.nonzero(predicted > TOO_OFTEN * (occurs + 1.0 / n_rows))
    if not len(labels):
        return
    worst = labels[np.argmax(predicted[labels])]
    listed = ", ".join(str(names[label]) for label in labels[:MAX_LISTED])
    listed += f" and {len(labels) - MAX_LISTED} more" * (len(labels) > MAX_LISTED)
    shares = f"{predicted[worst]:.3g} of the rows, and {occurs[worst]:.3g} have it"
    warn_caller(
        f"More than {TOO_OFTEN} times as many rows get the label(s) {listed} as have "
        f"them: label {names[worst]} is predicted for {shares}. If that is not wanted, "
        f"{remedy}",
        UserWarning,
    )
