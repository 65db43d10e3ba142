"""Scores of predictions as functions: those that scikit-learn does not have."""

import warnings

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_structsvm._utils.sequence_scores import check_zero_division
from sklearn_structsvm.confusion.counts import confusion_tensor
from sklearn_structsvm.confusion.linear import LinearLoss, Ordinal
from sklearn_structsvm.confusion.ratios import MicroF1
from sklearn_structsvm.confusion.recalls import GMean, HMean, MinMax, QMean


def g_mean_score(y_true, y_pred, *, labels=None, sample_weight=None):
    r"""Geometric mean of the classes' recalls.

    .. math:: \Big(\prod_i r_i\Big)^{1/k}

    0 as soon as one class is never found. imbalanced-learn's `geometric_mean_score` is
    the same, but for a class that is predicted and does not occur in `y_true`: it has no
    recall, and is left out here.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions, of any kind.

    labels : array-like of shape (k,), default=None
        All classes. They need not be given: one that does not occur has no recall.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    Returns
    -------
    score : float
        Between 0 and 1.

    See Also
    --------
    sklearn.metrics.balanced_accuracy_score : The arithmetic mean.
    GMean : The metric to be optimised.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import g_mean_score
    >>> g_mean_score([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    0.707...
    """
    return GMean()(y_true, y_pred, labels=labels, sample_weight=sample_weight)


def h_mean_score(y_true, y_pred, *, labels=None, sample_weight=None):
    r"""Harmonic mean of the classes' recalls, :math:`k / \sum_i (1 / r_i)`.

    0 as soon as one class is never found; a class that does not occur in `y_true` is left
    out.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions, of any kind.

    labels : array-like of shape (k,), default=None
        All classes, if they are to be checked.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    Returns
    -------
    score : float
        Between 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import h_mean_score
    >>> h_mean_score([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    0.666...
    """
    return HMean()(y_true, y_pred, labels=labels, sample_weight=sample_weight)


def q_mean_score(y_true, y_pred, *, labels=None, sample_weight=None):
    r"""One minus the quadratic mean of the classes' error rates.

    .. math:: 1 - \sqrt{\frac{1}{k} \sum_i (1 - r_i)^2}

    A class that does not occur in `y_true` is left out.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions, of any kind.

    labels : array-like of shape (k,), default=None
        All classes, if they are to be checked.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    Returns
    -------
    score : float
        Between 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import q_mean_score
    >>> q_mean_score([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    0.646...
    """
    return QMean()(y_true, y_pred, labels=labels, sample_weight=sample_weight)


def min_recall_score(y_true, y_pred, *, labels=None, sample_weight=None):
    r"""The worst class's recall, :math:`\min_i r_i`; one minus the min-max loss.

    A class that does not occur in `y_true` is left out.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions, of any kind.

    labels : array-like of shape (k,), default=None
        All classes, if they are to be checked.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    Returns
    -------
    score : float
        Between 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import min_recall_score
    >>> min_recall_score([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    0.5
    """
    return MinMax()(y_true, y_pred, labels=labels, sample_weight=sample_weight)


def micro_f1_score(
    y_true,
    y_pred,
    *,
    default_label=None,
    labels=None,
    sample_weight=None,
    zero_division="warn",
):
    r"""F1 of all classes but a default one, their counts pooled.

    .. math:: \frac{2 \sum_{i \neq 0} C_{ii}}{2 - \sum_j C_{0j} - \sum_j C_{j0}}

    with 0 the default class ("nothing here"); the same as scikit-learn's
    ``f1_score(average="micro")`` with `labels` all classes but the default one. The
    average over the classes is always "micro".

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions, of any kind.

    default_label : label, default=None
        The default class; None is the first of the sorted labels.

    labels : array-like of shape (k,), default=None
        All classes, the default one among them; by default those that occur.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    zero_division : {'warn', 0, 1, np.nan}, default='warn'
        The score where all labels and predictions are the default class, 0/0. 'warn' is 0
        with an `UndefinedMetricWarning`.

    Returns
    -------
    score : float
        Between 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import micro_f1_score
    >>> micro_f1_score(["O", "O", "x", "y", "y"], ["O", "x", "x", "y", "O"])
    0.666...
    """
    filler = check_zero_division(zero_division)
    C, cells = confusion_tensor(
        y_true, y_pred, labels=labels, sample_weight=sample_weight
    )
    metric = MicroF1(default_label)
    metric = metric.resolve(cells.classes) if cells.n_classes > 1 else metric
    _, B = metric.ratio(cells.class_priors)
    if np.vdot(B, cells.total(C)) > 0.0:
        return metric.score_of(cells.total(C))
    if isinstance(zero_division, str):
        warnings.warn(
            "Micro-F1 is ill-defined and set to 0.0: all labels and predictions are the "
            "default class. Use the parameter zero_division to control this.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return filler


def ordinal_loss(y_true, y_pred, *, labels=None, sample_weight=None):
    r"""Mean distance of prediction and label, in ranks of the sorted labels.

    .. math:: \sum_{ij} |i - j| \, C_{ij}

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions that can be sorted.

    labels : array-like of shape (k,), default=None
        All classes, in order: needed where some do not occur, so that ranks are right.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    Returns
    -------
    loss : float
        Between 0 and k - 1; less is better.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import ordinal_loss
    >>> ordinal_loss([1, 2, 3, 3], [1, 2, 3, 1])
    0.5
    """
    return Ordinal()(y_true, y_pred, labels=labels, sample_weight=sample_weight)


def cost_loss(y_true, y_pred, *, costs, labels=None, sample_weight=None):
    r"""Mean cost of the predictions, :math:`\sum_{ij} L_{ij} C_{ij}`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions, of any kind.

    costs : array-like of shape (k, k) or dict
        L, the cost of predicting class j where the label is class i, in the order of
        `labels`; or ``{(label, prediction): cost}``, all others costing 0.

    labels : array-like of shape (k,), default=None
        All classes, in the order of `costs`; by default those that occur, sorted.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    Returns
    -------
    loss : float
        Less is better.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import cost_loss
    >>> cost_loss(["ill", "well"], ["well", "well"], costs={("ill", "well"): 10.0})
    5.0
    """
    metric = LinearLoss(costs)
    return metric(y_true, y_pred, labels=labels, sample_weight=sample_weight)


def quantification_loss(y_true, y_pred, *, labels=None, sample_weight=None):
    r"""Kullback-Leibler divergence of the predicted from the true class shares.

    .. math:: \sum_i \pi_i \log \frac{\pi_i}{q_i}

    with π_i the share of the label and q_i of the prediction i.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions, of any kind.

    labels : array-like of shape (k,), default=None
        All classes, if they are to be checked.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    Returns
    -------
    loss : float
        In nats; 0 where the shares agree, infinite where a class that occurs is never
        predicted.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import quantification_loss
    >>> round(quantification_loss(["a", "a", "b", "b"], ["a", "b", "b", "b"]), 4)
    0.1438
    """
    C, cells = confusion_tensor(
        y_true, y_pred, labels=labels, sample_weight=sample_weight
    )
    used = cells.class_priors > 0.0
    p, q = cells.class_priors[used], cells.total(C).sum(axis=0)[used]
    if not q.all():
        return float("inf")
    return max(0.0, float(p @ np.log(p / q)))
