"""Probabilities out of folds, on the scale of the classifier that predicts.

A threshold is chosen by probabilities of the classifiers of folds, and applied to those
of the classifier that is fitted to all rows. The latter has seen more rows. Log odds of
naive Bayes are then not the same: a word that one more row has may move all of them. So
they are matched by quantiles. Rows that both classifiers have seen show the scale of
each, in which the bias of having seen them is the same.
"""

import numpy as np
from scipy.special import expit

# Quantiles are means of log odds in this many bins of equal weight, or fewer with less
# than ROWS_PER_BIN different log odds for each. From five to 50 bins do equally well.
BINS, ROWS_PER_BIN = 10, 10

# A fold's classifier predicts about as many rows that it has seen as rows that it has
# not, and at least this many, if there are so many.
SEEN_ROWS = 200


def seen_rows(train, test):
    """Some of the training rows of a fold, evenly spaced."""
    n_wanted = max(len(test), SEEN_ROWS)
    return train[:: max(1, len(train) // n_wanted)]


def on_scale_of(fitted, held_out, folds, seen, weights):
    """Probabilities out of folds, on the scale of a classifier fitted to all rows.

    Parameters
    ----------
    fitted : ndarray of shape (n, 2)
        Probabilities of that classifier for all rows.
    held_out : ndarray of shape (n', 2)
        Probabilities out of folds.
    folds : list of slice
        The part of `held_out` that belongs to each fold.
    seen : list of (ndarray of shape (m,), ndarray of shape (m, 2))
        For each fold: rows that its classifier has seen, and its probabilities of these.
    weights : ndarray of shape (n,)
        Weights of all rows.

    Returns
    -------
    ndarray of shape (n', 2)
        An increasing function of the fold's probabilities in each fold.
    """
    every = [fitted, held_out, *(of_fold for _, of_fold in seen)]
    # Naive Bayes may say 1e-60, and a forest of 50 trees that says 0 means less than .02.
    floor = min(P.min(where=P > 0.0, initial=1.0) for P in every) / 2.0
    floor = max(float(floor), float(np.finfo(np.float64).tiny))

    def log_odds(P):
        P = np.log(np.maximum(P.astype(np.float64, copy=False), floor))
        return P[:, 1] - P[:, 0]

    moved = np.empty(len(held_out))
    for fold, (rows, of_fold) in zip(folds, seen, strict=True):
        own = log_odds(of_fold), log_odds(fitted[rows])
        matched = matched_quantiles(*own, weights[rows])
        moved[fold] = matched(log_odds(held_out[fold]))
    found = np.column_stack([expit(-moved), expit(moved)])
    return found.astype(held_out.dtype, copy=False)


def matched_quantiles(before, after, weights):
    """A piecewise linear function that moves quantiles of `before` to those of `after`.

    Parameters
    ----------
    before, after, weights : ndarrays of shape (m,)
        An integer weight is as good as that many rows.

    Returns
    -------
    callable
        (ndarray) -> ndarray. It increases, and goes on with its last slopes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.estimators.complex_metric.fold_scales import (
    ...     matched_quantiles,
    ... )
    >>> z = np.linspace(-3, 5, 101)
    >>> matched = matched_quantiles(z, 2 * z + 1, np.ones(101))
    >>> matched(np.array([-9.0, 0.0, 9.0])).round(6).tolist()
    [-17.0, 1.0, 19.0]
    """
    n_values = len(np.unique(before[weights > 0.0]))
    if n_values == 0:
        return lambda z: z
    n_bins = max(1, min(BINS, n_values // ROWS_PER_BIN))
    x, y = (bin_means(values, weights, n_bins) for values in (before, after))
    # Equal values, such as those of most rows of a small tree, have one image.
    x, of_bin = np.unique(x, return_inverse=True)
    y = np.bincount(of_bin, weights=y) / np.bincount(of_bin)
    if len(x) == 1:
        return lambda z: z + (y[0] - x[0])
    slopes = np.diff(y) / np.diff(x)

    def matched(z):
        at = np.clip(np.searchsorted(x, z, side="right") - 1, 0, len(slopes) - 1)
        return y[at] + slopes[at] * (z - x[at])

    return matched


def bin_means(values, weights, n_bins):
    """Means of sorted values in bins of equal weight."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    ends = np.append(0.0, np.cumsum(weights))
    sums = np.append(0.0, np.cumsum(weights * values))
    cuts = np.linspace(0.0, ends[-1], n_bins + 1)
    return np.diff(np.interp(cuts, ends, sums)) * (n_bins / ends[-1])
