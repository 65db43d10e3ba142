"""Losses that are functions of the recalls: G-mean, H-mean, Q-mean, min-max."""

import numpy as np

from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO
from sklearn_structsvm.confusion.metric import ConfusionMetric

__all__ = ["Balanced", "GMean", "HMean", "MinMax", "QMean"]


class RecallMetric(ConfusionMetric):
    """Base: ψ(C) = f(r), r_i = C_ii / Σ_j C_ij over the classes in the sample.

    A subclass gives `loss(recalls)` and `slopes(recalls)`, its gradient. A class with an
    empty row has no recall and is left out, as by scikit-learn's balanced accuracy.
    """

    convex = True
    smooth = True

    def loss(self, recalls: np.ndarray) -> float:
        """f(r), a float."""
        raise NotImplementedError

    def slopes(self, recalls: np.ndarray) -> np.ndarray:
        """The gradient of f, of the shape of `recalls`, none of which is 0."""
        raise NotImplementedError

    def value(self, C: np.ndarray) -> float:
        priors = C.sum(axis=1)
        present = priors > 0.0
        # Between two matrices, rounding may put an entry slightly below 0.
        right = np.maximum(C.diagonal()[present], 0.0)
        return float(self.loss(right / priors[present]))

    def tangent(self, C: np.ndarray) -> tuple[np.ndarray, float]:
        priors = C.sum(axis=1)
        present = np.flatnonzero(priors > 0.0)
        # The slope of the G-mean at 0 is infinite, so that one nearby is taken there.
        recalls = C.diagonal()[present] / priors[present]
        recalls = np.where(recalls > ROUNDED_ZERO, recalls, 1e-4)
        slopes = self.slopes(recalls)
        G = np.zeros_like(C, dtype=np.float64)
        G[present, present] = slopes / priors[present]
        return G, float(self.loss(recalls) - slopes @ recalls)

    def gradient(self, C: np.ndarray) -> np.ndarray:
        return self.tangent(C)[0]

    def entries(self, n_classes: int) -> np.ndarray:
        return np.eye(n_classes, dtype=bool)


class Balanced(RecallMetric):
    r"""One minus balanced accuracy, the mean recall of the classes.

    .. math:: \psi(C) = 1 - \frac{1}{k} \sum_i r_i, \qquad r_i = C_{ii} / \sum_j C_{ij}

    It is linear in C, because the row sums of C are fixed. For two classes it is the
    balanced error rate (BER). The score is scikit-learn's `balanced_accuracy_score`.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Balanced
    >>> Balanced()(["a", "a", "a", "b"], ["a", "a", "b", "b"])
    0.833...
    """

    def loss(self, recalls: np.ndarray) -> float:
        return 1.0 - recalls.mean()

    def slopes(self, recalls: np.ndarray) -> np.ndarray:
        return np.full(len(recalls), -1.0 / len(recalls))

    def pieces(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        G, h = self.tangent(np.diag(priors))
        return G[None], np.array([h])

    def ratio(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (G,), (h,) = self.pieces(priors)
        ones = np.ones_like(G)
        # <ones, C> is the constant Σ priors, so the offset is a matrix as well.
        return G + h / np.sum(priors) * ones, ones / np.sum(priors)


class GMean(RecallMetric):
    r"""One minus the geometric mean of the recalls (G-mean).

    .. math:: \psi(C) = 1 - \Big(\prod_i r_i\Big)^{1/k},
       \qquad r_i = C_{ii} / \sum_j C_{ij}

    This is Example 3 of Narasimhan et al. (JMLR 2024). The loss is convex, since the
    geometric mean is concave. Its slope is infinite where a recall is 0; gradients
    there are those at a recall of 1e-4. Where constraints keep a recall at 0, rounding
    leaves a gap of up to :math:`10^{-12/k}`.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import GMean
    >>> GMean()([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    0.707...
    """

    def loss(self, recalls: np.ndarray) -> float:
        return 1.0 - _geometric_mean(recalls) if recalls.all() else 1.0

    def slopes(self, recalls: np.ndarray) -> np.ndarray:
        return -_geometric_mean(recalls) / (len(recalls) * recalls)


class HMean(RecallMetric):
    r"""One minus the harmonic mean of the recalls (H-mean).

    .. math:: \psi(C) = 1 - k \Big(\sum_i 1 / r_i\Big)^{-1},
       \qquad r_i = C_{ii} / \sum_j C_{ij}

    Read more in the :ref:`User Guide <guide-metrics>`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import HMean
    >>> HMean()([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    0.666...
    """

    def loss(self, recalls: np.ndarray) -> float:
        return 1.0 - len(recalls) / (1.0 / recalls).sum() if recalls.all() else 1.0

    def slopes(self, recalls: np.ndarray) -> np.ndarray:
        return -len(recalls) / ((1.0 / recalls).sum() * recalls) ** 2


class QMean(RecallMetric):
    r"""Quadratic mean of the error rates of the classes (Q-mean).

    .. math:: \psi(C) = \sqrt{\frac{1}{k} \sum_i (1 - r_i)^2},
       \qquad r_i = C_{ii} / \sum_j C_{ij}

    The loss is smooth unless there are no errors; there the gradient is set to 0.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import QMean
    >>> QMean()([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    0.646...
    """

    def loss(self, recalls: np.ndarray) -> float:
        return np.sqrt(np.square(1.0 - recalls).mean())

    def slopes(self, recalls: np.ndarray) -> np.ndarray:
        loss = self.loss(recalls)
        if loss == 0.0:
            return np.zeros(len(recalls))
        return (recalls - 1.0) / (len(recalls) * loss)


class MinMax(RecallMetric):
    r"""One minus the worst recall: the largest error rate of any class (min-max).

    .. math:: \psi(C) = \max_i (1 - r_i), \qquad r_i = C_{ii} / \sum_j C_{ij}

    The loss is convex but not smooth. Its gradient is that of the first class with the
    largest error rate.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import MinMax
    >>> MinMax()([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    0.5
    """

    smooth = False

    def loss(self, recalls: np.ndarray) -> float:
        return 1.0 - recalls.min()

    def slopes(self, recalls: np.ndarray) -> np.ndarray:
        slopes = np.zeros(len(recalls))
        slopes[np.argmin(recalls)] = -1.0
        return slopes

    def pieces(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        present = np.flatnonzero(np.asarray(priors) > 0.0)
        G = np.zeros((len(present), len(priors), len(priors)))
        G[np.arange(len(present)), present, present] = -1.0 / priors[present]
        return G, np.ones(len(present))


def _geometric_mean(recalls):
    # `mean` takes three times as long for few numbers.
    return np.exp(np.log(recalls).sum() / len(recalls))
