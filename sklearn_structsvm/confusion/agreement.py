"""Agreement beyond chance: Matthews correlation and Cohen's kappa."""

from typing import Literal

import numpy as np

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.ratios import RatioMetric

__all__ = ["CohenKappa", "MatthewsCorrelation"]


class MatthewsCorrelation(ConfusionMetric):
    r"""One minus the Matthews correlation coefficient (MCC).

    .. math:: \psi(C) = 1 - \frac{\sum_i C_{ii} - \sum_i \pi_i q_i}
       {\sqrt{1 - \sum_i \pi_i^2} \sqrt{1 - \sum_i q_i^2}},
       \qquad \pi_i = \sum_j C_{ij}, \; q_j = \sum_i C_{ij}

    For more than two classes this is Gorodkin's :math:`R_k`. It is smooth if more than
    one class is predicted, but it is neither convex, nor quasi-convex, nor a ratio of
    linear functions. Solvers therefore find a local minimum without a lower bound.
    :class:`CohenKappa`, which is a ratio, takes similar values and has a bound. The score
    is 0 if all labels or all predictions are of one class.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import MatthewsCorrelation
    >>> MatthewsCorrelation()(["a", "a", "b", "b"], ["a", "a", "b", "a"])
    0.577...
    """

    smooth = True

    def value(self, C: np.ndarray) -> float:
        C = C / C.sum()
        p, q = C.sum(axis=1), C.sum(axis=0)
        product = (1.0 - p @ p) * (1.0 - q @ q)
        if not product > 0.0:
            return 1.0
        return float(1.0 - (np.trace(C) - p @ q) / np.sqrt(product))

    def gradient(self, C: np.ndarray) -> np.ndarray:
        total = C.sum()
        C = C / total
        p, q = C.sum(axis=1), C.sum(axis=0)
        # No gradient is computed if the variance of the predictions is below this: the
        # correlation of a classifier that almost always predicts the same class jumps.
        variance = max(1.0 - q @ q, 1e-6)
        scale = np.sqrt((1.0 - p @ p) * variance)
        if not scale > 0.0:
            return np.zeros_like(C)
        covariance = np.trace(C) - p @ q
        columns = p / scale - covariance / scale * q / variance
        return (columns - np.eye(len(C)) / scale) / total


class CohenKappa(RatioMetric):
    r"""One minus Cohen's kappa, the agreement beyond chance.

    .. math:: \psi(C) = \frac{\sum_{ij} w_{ij} C_{ij}}{\sum_{ij} w_{ij} \pi_i q_j},
       \qquad q_j = \sum_i C_{ij}

    The class priors :math:`\pi_i` are fixed, so this is a ratio of linear functions. The
    score is 0 if all labels and predictions are of one class (0/0).

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    weights : {None, 'linear', 'quadratic'}, default=None
        The disagreement weights :math:`w_{ij}` are 1 for different classes, or the
        absolute or squared difference of the ranks of the sorted labels.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import CohenKappa
    >>> CohenKappa()(["a", "a", "b", "b"], ["a", "a", "b", "a"])
    0.5
    """

    def __init__(self, weights: Literal["linear", "quadratic"] | None = None) -> None:
        self.weights = weights

    def ratio(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ranks = np.arange(len(priors), dtype=np.float64)
        distance = np.abs(ranks[:, None] - ranks)
        powers = {None: 0.0, "linear": 1.0, "quadratic": 2.0}
        A = np.where(distance > 0.0, distance ** powers[self.weights], 0.0)
        chance = np.asarray(priors) @ A / np.sum(priors)
        return A, np.broadcast_to(chance, A.shape).copy()

    def check(self, n_classes: int) -> None:
        check_choice("weights", self.weights, (None, "linear", "quadratic"))
