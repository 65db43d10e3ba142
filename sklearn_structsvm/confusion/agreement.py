"""Agreement beyond chance: Matthews' correlation and Cohen's kappa."""

import numpy as np

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.ratios import RatioMetric

__all__ = ["CohenKappa", "MatthewsCorrelation"]

# Variance of the predictions below which gradients are not taken: a classifier that says
# almost always the same has a correlation that jumps.
TINY_VARIANCE = 1e-6


class MatthewsCorrelation(ConfusionMetric):
    r"""One minus the correlation of labels and predictions (MCC, Gorodkin's R_k).

    .. math:: \psi(C) = 1 - \frac{\sum_i C_{ii} - \sum_i \pi_i q_i}
       {\sqrt{1 - \sum_i \pi_i^2} \sqrt{1 - \sum_i q_i^2}},
       \qquad \pi_i = \sum_j C_{ij}, \; q_j = \sum_i C_{ij}

    A linear function over the root of a concave one: smooth where more than one class is
    predicted, but neither convex nor quasi-convex, and no ratio of linear functions.
    Solvers find a local minimum and know no bound. Kappa, a ratio, is close to it and has
    one. Where either side is constant the score is 0.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import MatthewsCorrelation
    >>> MatthewsCorrelation()(["a", "a", "b", "b"], ["a", "a", "b", "a"])
    0.577...
    """

    smooth = True

    def value(self, C):
        C = C / C.sum()
        p, q = C.sum(axis=1), C.sum(axis=0)
        product = (1.0 - p @ p) * (1.0 - q @ q)
        if not product > 0.0:
            return 1.0
        return float(1.0 - (np.trace(C) - p @ q) / np.sqrt(product))

    def gradient(self, C):
        total = C.sum()
        C = C / total
        p, q = C.sum(axis=1), C.sum(axis=0)
        variance = max(1.0 - q @ q, TINY_VARIANCE)
        scale = np.sqrt((1.0 - p @ p) * variance)
        if not scale > 0.0:
            return np.zeros_like(C)
        covariance = np.trace(C) - p @ q
        columns = p / scale - covariance / scale * q / variance
        return (columns - np.eye(len(C)) / scale) / total


class CohenKappa(RatioMetric):
    r"""One minus Cohen's kappa, agreement beyond that of chance.

    .. math:: \psi(C) = \frac{\sum_{ij} w_{ij} C_{ij}}{\sum_{ij} w_{ij} \pi_i q_j},
       \qquad q_j = \sum_i C_{ij}

    The label shares π_i do not change, so this is a ratio of linear functions. Where all
    labels and predictions are of one class (0/0) the score is 0.

    Parameters
    ----------
    weights : {None, 'linear', 'quadratic'}, default=None
        w_ij = [i ≠ j], ``|i - j|`` or (i - j)², with the ranks of the sorted labels.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import CohenKappa
    >>> CohenKappa()(["a", "a", "b", "b"], ["a", "a", "b", "a"])
    0.5
    """

    def __init__(self, weights=None):
        self.weights = weights

    def ratio(self, priors):
        ranks = np.arange(len(priors), dtype=np.float64)
        distance = np.abs(ranks[:, None] - ranks)
        powers = {None: 0.0, "linear": 1.0, "quadratic": 2.0}
        A = np.where(distance > 0.0, distance ** powers[self.weights], 0.0)
        chance = np.asarray(priors) @ A / np.sum(priors)
        return A, np.broadcast_to(chance, A.shape).copy()

    def check(self, n_classes):
        check_choice("weights", self.weights, (None, "linear", "quadratic"))
