"""Metrics by name, and constraints as objects."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names

from sklearn_structsvm._utils.labels import as_classes
from sklearn_structsvm._utils.mistakes import closest, meant, with_plain_calls
from sklearn_structsvm.confusion import agreement, costs, linear, rates, ratios, recalls
from sklearn_structsvm.confusion.checks import check_gradient
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.function_metric import FunctionMetric
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
    "selection_rate": rates.SelectionRate,
}

# What scikit-learn calls metrics that have a certificate here, and the name of a score.
OTHER_NAMES = {
    "accuracy": linear.ZeroOne,
    "balanced_accuracy": recalls.Balanced,
    "cohen_kappa": agreement.CohenKappa,
    "f1_macro": ratios.MacroF1,
    "f1_micro": linear.ZeroOne,
    "f1_weighted": partial(ratios.MacroF1, "weighted"),
    "jaccard_macro": partial(ratios.Jaccard, "macro"),
    "jaccard_micro": partial(ratios.Jaccard, "micro"),
    "jaccard_weighted": partial(ratios.Jaccard, "weighted"),
    "matthews_corrcoef": agreement.MatthewsCorrelation,
    "min_recall": recalls.MinMax,
    "precision_micro": linear.ZeroOne,
    "recall_macro": recalls.Balanced,
    "recall_micro": linear.ZeroOne,
    "recall_weighted": linear.ZeroOne,
}


@with_plain_calls
def get_metric(
    metric: str | ConfusionMetric | RateConstraint | Callable[..., Any], classes: Any
) -> ConfusionMetric:
    """Get the metric for a name or an object, resolved to the classes.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    metric : str, ConfusionMetric, rate or callable
        A key of `METRICS`, scikit-learn's name of a score, or an object, which remains
        unchanged. A rate is an object such as ``Recall(pos_label="ill")``, without a
        bound. For two classes also a score of (y_true, y_pred), or a scorer made of one.
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
    if isinstance(metric, type):
        raise TypeError(f"metric must be an object: write {metric.__name__}().")
    if isinstance(metric, Constraint):
        words = f"metric={metric!r} is a constraint: write constraints={metric!r}."
        raise TypeError(words)
    if callable(metric) and not isinstance(metric, ConfusionMetric):
        metric = FunctionMetric(metric)
    if not isinstance(metric, ConfusionMetric):
        raise TypeError(
            "metric must be a name such as 'f1', an object of sklearn_structsvm.metrics "
            f"such as FBeta(beta=2), or a score of (y_true, y_pred); got {metric!r}."
        )
    metric = metric.resolve(classes)
    if _has_gradient_of_a_user(metric):
        check_gradient(metric, _some_confusion(len(classes)))
    return metric


def _named_metric(name, classes):
    own = name.removesuffix("_score")
    known = METRICS | OTHER_NAMES
    if own in known:
        metric = known[own]()
    elif own in get_scorer_names():
        return FunctionMetric(get_scorer(own)).resolve(classes)
    else:
        names = [*known, *(f"{one}_score" for one in known)]
        raise ValueError(
            f"metric={name!r} is unknown.{meant(name, names)} Valid names are "
            f"{sorted(known)}."
        )
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


def read_constraints(constraints):
    """A tuple of constraints; TypeError for anything else."""
    if not isinstance(constraints, list | tuple):
        constraints = (constraints,)
    for constraint in constraints:
        if isinstance(constraint, type) and issubclass(constraint, Constraint):
            name = constraint.__name__
            written = {own.partition("(")[0]: own for own in reversed(OBJECTS.values())}
            raise TypeError(
                f"constraints must hold objects; got the class {name}. Write "
                f"{written.get(name, name + '(...)')}."
            )
        if isinstance(constraint, str):
            raise TypeError(
                f"constraints must hold objects; got {constraint!r}. "
                f"{_object_for(constraint)}"
            )
        if isinstance(constraint, ConfusionMetric):
            raise TypeError(
                f"constraints must hold constraints; got the metric {constraint!s}. "
                f"Write MetricBound({constraint!s}, at_most=...)."
            )
        if not isinstance(constraint, Constraint):
            name = getattr(constraint, "__name__", None)
            if isinstance(constraint, Mapping) and constraint:
                name = next(iter(constraint))
            raise TypeError(
                f"constraints must hold objects; got {name or constraint!r}. "
                f"{_object_for(str(name))}"
            )
    return tuple(constraints)


# The names to write for constraints that have other names elsewhere.
OBJECTS = {
    "demographic_parity": "DemographicParity(slack=0.05)",
    "equal_opportunity": "EqualOpportunity(slack=0.05)",
    "true_positive_rate_parity": "EqualOpportunity(slack=0.05)",
    "false_negative_rate_parity": "EqualOpportunity(slack=0.05)",
    "false_positive_rate_parity": "EqualOpportunity(slack=0.05, pos_label=...)",
    "true_negative_rate_parity": "EqualOpportunity(slack=0.05, pos_label=...)",
    "equalized_odds": "EqualizedOdds(slack=0.05)",
    "predictive_parity": "PredictiveParity(slack=0.05)",
    "predictive_value_parity": "PredictiveParity(slack=0.05)",
    "recall": "Recall(at_least=0.9)",
    "precision": "Precision(at_least=0.9)",
    "selection_rate": "SelectionRate(at_most=0.1)",
}


def _object_for(name):
    """The name to write instead."""
    name = re.sub("_(difference|ratio|score)$", "", name)
    for known in closest(name, OBJECTS):
        return f"Write {OBJECTS[known]}, of sklearn_structsvm.metrics."
    known = OBJECTS["equal_opportunity"]
    return f"Write an object of sklearn_structsvm.metrics, such as {known}."
