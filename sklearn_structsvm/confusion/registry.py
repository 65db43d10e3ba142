"""Metrics by name."""

from typing import Any

import numpy as np

from sklearn_structsvm._utils.labels import as_classes
from sklearn_structsvm.confusion import agreement, costs, linear, rates, ratios, recalls
from sklearn_structsvm.confusion.checks import check_gradient
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.rate_constraint import RateConstraint

#: What a parameter `metric` may be besides an object.
METRICS = {
    "zero_one": linear.ZeroOne,
    "balanced": recalls.Balanced,
    "ordinal": linear.Ordinal,
    "g_mean": recalls.GMean,
    "h_mean": recalls.HMean,
    "q_mean": recalls.QMean,
    "min_max": recalls.MinMax,
    "micro_f1": ratios.MicroF1,
    "macro_f1": ratios.MacroF1,
    "f1": ratios.FBeta,
    "jaccard": ratios.Jaccard,
    "mcc": agreement.MatthewsCorrelation,
    "kappa": agreement.CohenKappa,
    "expected_cost": costs.ExpectedCost,
    "recall": rates.Recall,
    "precision": rates.Precision,
    "specificity": rates.Specificity,
    "false_positive_rate": rates.FalsePositiveRate,
    "coverage": rates.Coverage,
}


def get_metric(
    metric: str | ConfusionMetric | RateConstraint, classes: Any
) -> ConfusionMetric:
    """Get the metric for a name or an object, resolved to the classes.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    metric : str, ConfusionMetric or rate
        A key of `METRICS`, or an object, which remains unchanged. A rate is an object
        such as ``Recall(label="ill")``, without a bound.
    classes : array-like of shape (k,)
        Class labels, in order.

    Returns
    -------
    metric : ConfusionMetric
        A copy that knows the labels of the rows and columns.

    Raises
    ------
    ValueError
        If the name is unknown, if the metric is not defined for these classes, or if the
        gradient of a user-defined metric does not match its value.
    TypeError
        If `metric` is neither a name nor a metric.

    Examples
    --------
    >>> from sklearn_structsvm.confusion import get_metric
    >>> get_metric("micro_f1", ["no", "yes"])
    MicroF1()
    """
    classes = as_classes(classes)
    if isinstance(metric, str):
        return _named_metric(metric, classes)
    if isinstance(metric, RateConstraint):
        return metric.resolve(classes)
    if not isinstance(metric, ConfusionMetric) or isinstance(metric, type):
        raise TypeError(
            "metric must be a name or an instance of a subclass of ConfusionMetric, "
            f"got {metric!r}."
        )
    metric = metric.resolve(classes)
    if _has_gradient_of_a_user(metric):
        check_gradient(metric, _some_confusion(len(classes)))
    return metric


def _named_metric(name, classes):
    if name not in METRICS:
        raise ValueError(
            f"metric={name!r} is unknown. Valid names are {sorted(METRICS)}."
        )
    metric = METRICS[name]()
    try:
        return metric.resolve(classes)
    except ValueError as error:
        raise ValueError(f"metric={name!r} is {metric!r}. {error}") from None


def _has_gradient_of_a_user(metric):
    """Whether a user-defined gradient could disagree with a user-defined value."""
    if metric.needs_groups:  # how many are not known here
        return False
    kinds = [
        next(kind for kind in type(metric).__mro__ if name in vars(kind))
        for name in ("value", "gradient", "tangent")
    ]
    if kinds[1:] == [ConfusionMetric, ConfusionMetric]:
        return False
    package = __name__.partition(".")[0] + "."
    return any(not kind.__module__.startswith(package) for kind in kinds)


def _some_confusion(k):
    """A matrix without zeros or ties, mostly right."""
    C = np.eye(k) + np.random.default_rng(0).uniform(0.5, 1.0, size=(k, k)) / k
    return C / C.sum()
