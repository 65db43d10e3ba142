"""Confusion tensors of predictions: labels and groups of any kind, counted by cell."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target, unique_labels

from sklearn_structsvm._utils.borders import (
    as_array,
    as_floats,
    check_indices,
    check_shape,
)
from sklearn_structsvm._utils.groups import Groups
from sklearn_structsvm._utils.labels import as_classes, encode, refuse_missing, unique
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.cells import Cells


@with_plain_calls
def confusion_tensor(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    sensitive_features: Any = None,
    y_baseline: ArrayLike | None = None,
) -> tuple[np.ndarray, Cells]:
    """Compute the confusion tensor: weighted fractions by cell, label and prediction.

    Read more in the :ref:`User Guide <guide-counting>`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels: strings, numbers or booleans.
    y_pred : array-like of shape (n,) or (n, k)
        Predicted labels. With `labels`, it may be the probability with which each of them
        is predicted; the result is then the expectation for a randomized classifier.
    labels : array-like of shape (k,) or None, default=None
        All classes, in the order of the rows and columns. None uses those that occur, in
        sorted order.
    sample_weight : array-like of shape (n,) or None, default=None
        Non-negative weights of the examples, not all 0.
    sensitive_features : array-like of shape (n,) or (n, p), or data frame, default=None
        Group of each example. For several columns, groups are combinations that occur.
    y_baseline : array-like of shape (n,) or None, default=None
        Labels assigned by a baseline classifier. They divide each group further.

    Returns
    -------
    C : ndarray of shape (m, k, k)
        Entry [a, i, j] is the fraction of examples that are in cell a, have label i and
        are predicted as j. The entries sum to 1.
    cells : Cells
        Description of the cells, rows and columns.

    Raises
    ------
    ValueError
        If lengths differ, if labels are no class labels or not among `labels`, or if
        weights are negative or all zero.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import confusion_tensor
    >>> C, cells = confusion_tensor(
    ...     ["n", "n", "y", "y"], ["n", "y", "y", "y"], sensitive_features=[0, 1, 0, 1]
    ... )
    >>> C.tolist()
    [[[0.25, 0.0], [0.0, 0.25]], [[0.0, 0.25], [0.0, 0.25]]]
    >>> cells.group_names, cells.classes.tolist()
    ([0, 1], ['n', 'y'])
    """
    y_true = as_labels(y_true, "y_true")
    shape = as_array("y_pred", y_pred).shape
    probable = len(shape) == 2 and shape[1] != 1
    if probable and labels is None:
        raise ValueError(
            "y_pred of shape (n, k) needs labels: the labels of its columns."
        )
    if probable:
        y_pred = as_floats("y_pred", y_pred, "n", "k")
    else:
        y_pred = as_labels(y_pred, "y_pred")
    check_consistent_length(y_true, y_pred, sample_weight, y_baseline)
    if y_baseline is not None:
        y_baseline = as_labels(y_baseline, "y_baseline")
    weights = check_weights(sample_weight, len(y_true))
    if labels is None:
        known = [y for y in (y_true, y_pred, y_baseline) if y is not None]
        classes = unique_labels(*known)
    else:
        classes = as_classes(labels, "labels")
    groups = None
    if sensitive_features is not None:
        groups = sensitive_features
        if not isinstance(groups, Groups):
            groups = Groups(groups, len(y_true))
    y = encode(y_true, classes, "y_true")
    baseline = None
    if y_baseline is not None:
        baseline = encode(y_baseline, classes, "y_baseline")
    codes, cells = make_cells(y, weights, classes, groups, baseline)
    predicted = y_pred if probable else encode(y_pred, classes, "y_pred")
    # Counts of integer weights are exact, so the counts are divided and not the weights.
    return count(codes, y, predicted, weights, cells.shape) / weights.sum(), cells


@with_plain_calls
def make_cells(
    y: np.ndarray,
    weights: np.ndarray,
    classes: np.ndarray,
    groups: Any = None,
    baseline: Any = None,
) -> tuple[np.ndarray, Cells]:
    """Make the cells of all combinations of groups and baseline labels.

    Read more in the :ref:`User Guide <guide-counting>`.

    Parameters
    ----------
    y : ndarray of int, shape (n,)
        Indices of the labels in `classes`.
    weights : ndarray of shape (n,)
        Non-negative weights of the examples, not all 0.
    classes : ndarray of shape (k,)
        Class labels.
    groups : Groups or None
        Groups of the examples.
    baseline : ndarray of int, shape (n,), or None
        Indices of the baseline's labels.

    Returns
    -------
    codes : ndarray of int, shape (n,)
        Cell of each example.
    cells : Cells
        The cells, with baseline labels varying fastest. Empty cells are included, so that
        every new example has a cell.
    """
    k = len(as_classes(classes))
    y = column_or_1d(as_array("y", y))
    check_indices("y", y, k)
    if baseline is not None:
        baseline = column_or_1d(as_array("baseline", baseline))
        check_indices("baseline", baseline, k)
        check_consistent_length(y, baseline)
    weights = as_floats("weights", weights, len(y))
    if not (groups is None or isinstance(groups, Groups)):
        raise TypeError(f"groups must be Groups or None; got {groups!r}.")
    n_groups = 1 if groups is None else len(groups.names)
    n_parts = 1 if baseline is None else k
    codes = np.zeros(len(y), dtype=np.intp)
    if groups is not None:
        codes += groups.codes * n_parts
    if baseline is not None:
        codes += baseline
    m = n_groups * n_parts
    priors = np.bincount(codes * k + y, weights=weights, minlength=m * k)
    cells = Cells(
        priors.reshape(m, k) / weights.sum(),
        classes,
        groups=None if groups is None else np.repeat(np.arange(n_groups), n_parts),
        group_names=None if groups is None else groups.names,
        baseline=None if baseline is None else np.tile(np.arange(k), n_groups),
        feature_names=None if groups is None else groups.columns,
    )
    return codes, cells


def count(codes, y, predicted, weights, shape):
    """Sums of weights, (m, k, k); `predicted` is codes (n,) or probabilities (n, k)."""
    m, k, _ = shape
    rows = codes * k + y
    if predicted.ndim == 1:
        C = np.bincount(rows * k + predicted, weights=weights, minlength=m * k * k)
        return C.reshape(shape)
    if predicted.shape[1] != k:
        raise ValueError(
            f"y_pred has {predicted.shape[1]} columns, but there are {k} labels."
        )
    columns = [
        np.bincount(rows, weights=weights * column, minlength=m * k)
        for column in predicted.T
    ]
    return np.stack(columns, axis=1).reshape(shape)


def as_labels(y: Any, name: str) -> np.ndarray:
    """A 1-D array of labels of a classification problem."""
    refuse_missing(y, name)
    try:
        y = as_array(name, y)
    except ValueError as error:
        raise ValueError(
            f"{error} It must hold one label for each example. For sequences of labels "
            "there are token_accuracy_score and entity_f1_score."
        ) from error
    check_shape(name, y[:, 0] if y.shape[1:] == (1,) else y, "n")
    y = y.ravel()
    if not len(y):
        raise ValueError(f"{name} is empty.")
    if y.dtype == object:
        unique(y, name)
    kind = type_of_target(y, input_name=name)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"{name} must hold class labels, one each; it is {kind}.")
    return y
