"""Scores of label sequences, and scorers for the parameter ``scoring``."""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer

from sklearn_structsvm._utils.borders import as_array, as_floats, check_sequence
from sklearn_structsvm._utils.labels import (
    as_classes,
    check_node_weights,
    plain,
    refuse_missing,
    split_weights,
)
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm._utils.weights import check_weights

__all__ = [
    "log_likelihood_scorer",
    "neg_token_log_loss_scorer",
    "token_accuracy_score",
    "token_accuracy_scorer",
    "token_log_loss",
]


def _as_label_list(labels, name, i):
    """One sequence of labels as a list of Python objects."""
    if name == "y_true":
        remedy = (
            "Leave out these positions, in predictions (and probabilities) as well: "
            "y_true, y_pred = ([[b for b, t in zip(*own) if t not in (None, MISSING)] "
            "for own in zip(y, y_true)] for y in (y_true, y_pred))"
        )
        refuse_missing(labels, f"{name}[{i}]", place="position", remedy=remedy)
    if isinstance(labels, (list, tuple)):
        return labels
    if not isinstance(labels, (str, bytes)):
        array = as_array(f"{name}[{i}]", labels)
        if array.ndim == 1:
            return array.tolist()
    way = f"for one sequence pass [{name}]"
    if isinstance(labels, str) and len(labels.split()) > 1:
        way = f"split strings by [labels.split() for labels in {name}]"
    raise ValueError(
        f"{name}[{i}] must be a 1-D sequence of labels, got {plain(labels)!r}: {way}."
    )


def paired_sequences(y_true, y_pred):
    """List of pairs of label lists of equal lengths; ValueError names the odd item.

    Without the weights that tokens of `y_true` may have.
    """
    for name, y in (("y_true", y_true), ("y_pred", y_pred)):
        check_sequence(name, y, "a list of label sequences")
    if len(y_true) != len(y_pred):
        raise ValueError(
            f"y_true has {len(y_true)} sequences but y_pred has {len(y_pred)}."
        )
    pairs = []
    for i, (true, pred) in enumerate(zip(y_true, y_pred, strict=True)):
        true = _as_label_list(split_weights(true)[0], "y_true", i)
        pred = _as_label_list(pred, "y_pred", i)
        if len(true) != len(pred):
            raise ValueError(
                f"y_true[{i}] has {len(true)} labels but y_pred[{i}] has {len(pred)}."
            )
        pairs.append((true, pred))
    return pairs


def sequence_weights(sample_weight, n):
    """One weight a sequence; there may be none."""
    return check_weights(sample_weight, n, item="sequence", may_vanish=n == 0)


def _summed(values, own, i):
    """The sum of the values of tokens, and the number of tokens, or by their weights."""
    weights = check_node_weights(f"y_true[{i}][1]", split_weights(own)[1], len(values))
    if weights is None:
        return np.sum(values), len(values)
    return weights.dot(values), weights.sum()


@with_plain_calls
def token_accuracy_score(
    y_true: Any, y_pred: Any, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Accuracy over all tokens of all sequences.

    .. math:: \frac{\sum_i s_i \sum_t [\hat y_{it} = y_{it}]}{\sum_i s_i T_i}

    If sequences are pairs (labels, weights), tokens count by their weights.

    Read more in the :ref:`User Guide <guide-scores>`.

    Parameters
    ----------
    y_true : sequence of n label sequences
        True labels, of any type: ragged lists, an object array of 1-D arrays or, if all
        sequences have the same length, a 2-D array.
    y_pred : sequence of n label sequences
        Predicted labels, of the same lengths.
    sample_weight : array-like of shape (n,), default=None
        Weights of the sequences. The weight applies to each token of a sequence.

    Returns
    -------
    score : float
        Between 0 and 1. Long sequences count more than short ones.

    Raises
    ------
    ValueError
        If lengths differ (the message names the item), if no token has positive weight,
        or if weights are not finite and non-negative.

    See Also
    --------
    entity_f1_score : For chunks encoded by IOB tags.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import token_accuracy_score
    >>> token_accuracy_score([["a", "b"], ["c"]], [["a", "a"], ["c"]])
    0.666...
    """
    pairs = paired_sequences(y_true, y_pred)
    weights = sequence_weights(sample_weight, len(pairs))
    sums = [
        _summed(list(map(operator.eq, *pair)), own, i)
        for i, (pair, own) in enumerate(zip(pairs, y_true, strict=True))
    ]
    correct, lengths = np.array(sums, dtype=float).reshape(-1, 2).T
    n_tokens = weights @ lengths
    if n_tokens == 0:
        raise ValueError(
            "y_true has no token of positive weight, so the accuracy is undefined."
        )
    return float(weights @ correct / n_tokens)


@with_plain_calls
def token_log_loss(
    y_true: Any,
    y_proba: Any,
    *,
    labels: Any,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Log loss over all tokens: mean negative log-probability of the true label.

    .. math:: -\frac{\sum_i s_i \sum_t \log p_{it}(y_{it})}{\sum_i s_i T_i}

    If sequences are pairs (labels, weights), tokens count by their weights.

    Read more in the :ref:`User Guide <guide-probability-scores>`.

    Parameters
    ----------
    y_true : sequence of n label sequences
        True labels: ragged lists, an object array of 1-D arrays or, if all sequences have
        the same length, a 2-D array.
    y_proba : sequence of n arrays of shape (T_i, n_classes)
        Probabilities, as returned by `predict_proba`.
    labels : array-like of shape (n_classes,)
        Labels of the columns: the `classes_` of the classifier.
    sample_weight : array-like of shape (n,), default=None
        Weights of the sequences. The weight applies to each token of a sequence.

    Returns
    -------
    loss : float
        0 if all predictions are certain and correct. Probabilities are clipped to the
        machine epsilon of their type, as in :func:`sklearn.metrics.log_loss`; a label
        that is not among `labels` counts as that.

    Raises
    ------
    ValueError
        If lengths differ or a probability is not within [0, 1] (the message names the
        item), if no token has positive weight, or if weights are not finite and
        non-negative.

    See Also
    --------
    CRFClassifier.log_likelihood : For whole labelings.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import token_log_loss
    >>> y_proba = [[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8]]]
    >>> token_log_loss([["a", "b"], ["b"]], y_proba, labels=["a", "b"])
    0.34...
    """
    columns = _columns_of(labels)
    check_sequence("y_true", y_true, "a list of label sequences")
    check_sequence("y_proba", y_proba, "a list of arrays, one per sequence")
    if len(y_true) != len(y_proba):
        raise ValueError(
            f"y_true has {len(y_true)} sequences but y_proba has {len(y_proba)}."
        )
    weights = sequence_weights(sample_weight, len(y_true))
    losses, lengths = np.zeros(len(y_true)), np.zeros(len(y_true))
    for i, (own, proba) in enumerate(zip(y_true, y_proba, strict=True)):
        true = _as_label_list(split_weights(own)[0], "y_true", i)
        proba = as_floats(f"y_proba[{i}]", proba, len(true), len(columns))
        if proba.size and not (proba.min() >= 0.0 and proba.max() <= 1.0 + 1e-6):
            raise ValueError(f"y_proba[{i}] must hold probabilities, within [0, 1].")
        try:
            codes = np.array([columns.get(label, -1) for label in true], dtype=np.intp)
        except TypeError as error:
            words = f"y_true[{i}] contains what cannot be a label: {error}."
            raise ValueError(words) from error
        given = np.where(codes < 0, 0.0, proba[np.arange(len(true)), codes])
        each = -np.log(np.maximum(given, np.finfo(np.float64).eps))
        losses[i], lengths[i] = _summed(each, own, i)
    n_tokens = weights @ lengths
    if n_tokens == 0:
        raise ValueError(
            "y_true has no token of positive weight, so the loss is undefined."
        )
    return float(weights @ losses / n_tokens)


def _columns_of(labels):
    """The column of each label; ValueError unless they are a list of distinct labels."""
    labels = as_classes(labels, "labels").tolist()
    try:
        columns = {label: c for c, label in enumerate(labels)}
    except TypeError as error:
        raise ValueError(f"labels contains what cannot be one: {error}.") from error
    if len(columns) < len(labels):
        raise ValueError("labels holds a label twice.")
    return columns


@with_plain_calls
def neg_token_log_loss_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None
) -> float:
    """Scorer with the negative :func:`token_log_loss`, for ``scoring=``.

    Read more in the :ref:`User Guide <guide-probability-scores>`.

    Parameters
    ----------
    estimator : classifier of sequences with `predict_proba`
        Fitted estimator.
    X, y : sequences of n examples and labelings
        Test data.
    sample_weight : array-like of shape (n,) or None, default=None
        Weights of the sequences.

    Returns
    -------
    score : float
        Higher is better.
    """
    estimator = snapshot(estimator)
    proba = _method(estimator, "predict_proba")(X)
    labels = estimator.classes_
    return -token_log_loss(y, proba, labels=labels, sample_weight=sample_weight)


@with_plain_calls
def log_likelihood_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None
) -> float:
    """Scorer with the mean log-likelihood of whole labelings, for ``scoring=``.

    Read more in the :ref:`User Guide <guide-probability-scores>`.

    Parameters
    ----------
    estimator : classifier with `log_likelihood`
        Fitted estimator.
    X, y : sequences of n examples and labelings
        Test data.
    sample_weight : array-like of shape (n,) or None, default=None
        Weights of the examples.

    Returns
    -------
    score : float
        Higher is better. It is -inf if a labeling has a label that was not seen in `fit`.
    """
    logs = _method(estimator, "log_likelihood")(X, y)
    weights = check_weights(sample_weight, len(logs), item="example")
    return float(np.average(logs, weights=weights))


def _method(estimator, name):
    method = getattr(estimator, name, None)
    if method is None:
        raise TypeError(
            f"This score requires an estimator with {name}, such as CRFClassifier; got "
            f"{estimator!r}."
        )
    return method


# An object shared by the whole process: set_score_request would change it for all.
#: Scorer of :func:`token_accuracy_score`, for ``scoring=``. Under metadata routing, use
#: ``make_scorer(token_accuracy_score).set_score_request(sample_weight=True)``.
token_accuracy_scorer = make_scorer(token_accuracy_score)
