"""Warnings of labels that a rule predicts far more often than they occur."""

import numpy as np

from sklearn_structsvm._utils.caller import warn_caller

# A rule that predicts a label so many times as often as it occurs is warned of, and so
# many labels are listed.
TOO_OFTEN = 10
MAX_LISTED = 10


def warn_of_excess(confusion, n_rows, remedy):
    """UserWarning for labels that are predicted far more often than they occur."""
    predicted, occurs = confusion[:, :, 1].sum(axis=1), confusion[:, 1].sum(axis=1)
    # A row more that has the label may be chance.
    (labels,) = np.nonzero(predicted > TOO_OFTEN * (occurs + 1.0 / n_rows))
    if not len(labels):
        return
    worst = labels[np.argmax(predicted[labels])]
    listed = ", ".join(map(str, labels[:MAX_LISTED].tolist()))
    listed += f" and {len(labels) - MAX_LISTED} more" * (len(labels) > MAX_LISTED)
    warn_caller(
        f"More than {TOO_OFTEN} times as many rows get the label(s) {listed} as have "
        f"them: label {worst} is predicted for {predicted[worst]:.3g} of the rows, and "
        f"{occurs[worst]:.3g} have it. If that is not wanted, {remedy}",
        UserWarning,
    )
