"""Individual costs of the examples: checks, and their mean over predictions."""

import numpy as np

from sklearn_structsvm._utils.borders import as_array, as_floats
from sklearn_structsvm._utils.labels import as_classes, encode, unique_of
from sklearn_structsvm._utils.tables import column_names, places_of_labels
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.counts import as_labels


def check_costs(costs, n, classes):
    """Costs of n examples as float64; ValueError unless (n, k) or (n, k, k), finite.

    The columns of a data frame are labels, in any order.
    """
    k, shape = len(classes), as_array("costs", costs).shape
    places = places_of_labels("costs", column_names(costs), classes)
    if places is not None:
        costs = as_array("costs", costs)[:, places]
    if shape == (n, k):
        return as_floats("costs", costs, n, k)
    if shape == (n, k, k):
        return as_floats("costs", costs, n, k, k)
    raise ValueError(
        f"costs must have shape {(n, k)}, what predicting each class costs for each "
        f"example, or {(n, k, k)}, where it depends on the label; got shape {shape}."
    )


def costs_of_labels(costs, y):
    """The cost of each prediction, (n, k), given the labels."""
    return costs if costs.ndim == 2 else costs[np.arange(len(y)), y]


def mean_cost(y_true, y_pred, costs, *, sample_weight=None, labels=None):
    """Mean cost of predictions, or of their probabilities; see `ExpectedCost`."""
    y_true = as_labels(y_true, "y_true")
    shape = as_array("y_pred", y_pred).shape
    probable = len(shape) == 2 and shape[1] != 1
    if not probable:
        y_pred = as_labels(y_pred, "y_pred")
    if labels is None:
        known = {"y_true": y_true} | ({} if probable else {"y_pred": y_pred})
        labels = unique_of(**known)
    classes = as_classes(labels, "labels")
    n, k = len(y_true), len(classes)
    of_labels = costs_of_labels(
        check_costs(costs, n, classes), encode(y_true, classes, "y_true")
    )
    if probable:
        of_each = (of_labels * as_floats("y_pred", y_pred, n, k)).sum(axis=1)
    else:
        predicted = encode(y_pred, classes, "y_pred")
        if len(predicted) != n:
            raise ValueError(f"y_pred has {len(predicted)} labels, but y_true has {n}.")
        of_each = of_labels[np.arange(n), predicted]
    return float(np.average(of_each, weights=check_weights(sample_weight, n)))
