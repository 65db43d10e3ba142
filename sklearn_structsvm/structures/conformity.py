"""How unlikely each label is: the scores of conformal prediction.

All of them are nonconformity scores: small scores belong to likely labels.
"""

import numpy as np


def lac(probabilities, shares=None):
    """1 - p: least ambiguous sets [Sadinle, Lei and Wasserman, 2019]."""
    return 1.0 - probabilities


def aps(probabilities, shares=None):
    """Sum of the probabilities of the labels before each, the largest first.

    With `shares`, of shape (n,) and uniform in [0, 1), this share of the label's own
    probability is added, one for each row [Romano, Sesia and Candès, 2020].
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    own = np.take_along_axis(probabilities, order, axis=1)
    share = 0.0 if shares is None else shares[:, np.newaxis]
    # Without a random share, the first label has exactly 0, and the scores of a row
    # increase.
    before = np.cumsum(own, axis=1)[:, :-1]
    sums = np.hstack([np.zeros((len(own), 1)), before]) + share * own
    result = np.empty_like(sums)
    np.put_along_axis(result, order, sums, axis=1)
    return result


def raps(probabilities, shares=None):
    """APS and a penalty for ranks beyond the fifth [Angelopoulos et al., 2021]."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, order.shape[1] + 1)[np.newaxis], axis=1)
    # Regularization as in the experiments of the paper.
    extra = 0.01 * np.maximum(ranks - 5, 0)
    return aps(probabilities, shares) + extra


def margin(scores):
    """The distance of each score from the best one of its row."""
    return scores.max(axis=1, keepdims=True, initial=-np.inf) - scores


CLASS_SCORES = {"lac": lac, "aps": aps, "raps": raps}
