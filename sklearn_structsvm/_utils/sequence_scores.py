"""Scores of label sequences, and scorers for the parameter ``scoring``."""

import operator
import warnings
from collections import defaultdict
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer

from sklearn_structsvm._utils.borders import as_floats, check_choice
from sklearn_structsvm._utils.labels import refuse_missing
from sklearn_structsvm._utils.weights import check_weights

__all__ = [
    "entity_f1_score",
    "entity_f1_scorer",
    "entity_precision_score",
    "entity_recall_score",
    "log_likelihood_scorer",
    "neg_token_log_loss_scorer",
    "token_accuracy_score",
    "token_accuracy_scorer",
    "token_log_loss",
]


def _as_label_list(labels, name, i):
    """One sequence of labels as a list of Python objects."""
    if name == "y_true":
        remedy = "Leave out these positions, in predictions and probabilities as well."
        refuse_missing(labels, f"{name}[{i}]", place="position", remedy=remedy)
    if isinstance(labels, (list, tuple)):
        return labels
    if not isinstance(labels, (str, bytes)):
        labels = np.asarray(labels)
        if labels.ndim == 1:
            return labels.tolist()
    raise ValueError(f"{name}[{i}] must be a 1-D sequence of labels, got {labels!r}.")


def _paired_sequences(y_true, y_pred):
    """List of pairs of label lists of equal lengths; ValueError names the odd item."""
    for name, y in (("y_true", y_true), ("y_pred", y_pred)):
        is_list = hasattr(y, "__len__") and getattr(y, "ndim", 1) > 0
        if not is_list or isinstance(y, (str, bytes)):
            raise ValueError(f"{name} must be a list of label sequences, got {y!r}.")
    if len(y_true) != len(y_pred):
        raise ValueError(
            f"y_true has {len(y_true)} sequences but y_pred has {len(y_pred)}."
        )
    pairs = []
    for i, (true, pred) in enumerate(zip(y_true, y_pred, strict=True)):
        true = _as_label_list(true, "y_true", i)
        pred = _as_label_list(pred, "y_pred", i)
        if len(true) != len(pred):
            raise ValueError(
                f"y_true[{i}] has {len(true)} labels but y_pred[{i}] has {len(pred)}."
            )
        pairs.append((true, pred))
    return pairs


def _sequence_weights(sample_weight, n):
    """One weight a sequence; there may be none."""
    return check_weights(sample_weight, n, item="sequence", may_vanish=n == 0)


def token_accuracy_score(
    y_true: Any, y_pred: Any, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Accuracy over all tokens of all sequences.

    .. math:: \frac{\sum_i s_i \sum_t [\hat y_{it} = y_{it}]}{\sum_i s_i T_i}

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
    pairs = _paired_sequences(y_true, y_pred)
    weights = _sequence_weights(sample_weight, len(pairs))
    correct = np.array([sum(map(operator.eq, *pair)) for pair in pairs], dtype=float)
    lengths = np.array([len(true) for true, _ in pairs], dtype=float)
    n_tokens = weights @ lengths
    if n_tokens == 0:
        raise ValueError(
            "y_true has no token of positive weight, so the accuracy is undefined."
        )
    return float(weights @ correct / n_tokens)


def token_log_loss(
    y_true: Any,
    y_proba: Any,
    *,
    labels: Any,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Log loss over all tokens: mean negative log-probability of the true label.

    .. math:: -\frac{\sum_i s_i \sum_t \log p_{it}(y_{it})}{\sum_i s_i T_i}

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
    labels = np.asarray(labels).tolist()
    places = {label: c for c, label in enumerate(labels)}
    for name, y in (("y_true", y_true), ("y_proba", y_proba)):
        if not hasattr(y, "__len__") or isinstance(y, (str, bytes)):
            raise ValueError(f"{name} must be a list, got {y!r}.")
    if len(y_true) != len(y_proba):
        raise ValueError(
            f"y_true has {len(y_true)} sequences but y_proba has {len(y_proba)}."
        )
    weights = _sequence_weights(sample_weight, len(y_true))
    losses, lengths = np.zeros(len(y_true)), np.zeros(len(y_true))
    for i, (true, proba) in enumerate(zip(y_true, y_proba, strict=True)):
        true = _as_label_list(true, "y_true", i)
        proba = as_floats(f"y_proba[{i}]", proba, len(true), len(labels))
        if proba.size and not (proba.min() >= 0.0 and proba.max() <= 1.0 + 1e-6):
            raise ValueError(f"y_proba[{i}] must hold probabilities, within [0, 1].")
        codes = np.array([places.get(label, -1) for label in true], dtype=np.intp)
        given = np.where(codes < 0, 0.0, proba[np.arange(len(true)), codes])
        losses[i] = -np.log(np.maximum(given, np.finfo(np.float64).eps)).sum()
        lengths[i] = len(true)
    n_tokens = weights @ lengths
    if n_tokens == 0:
        raise ValueError(
            "y_true has no token of positive weight, so the loss is undefined."
        )
    return float(weights @ losses / n_tokens)


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
    proba = _method(estimator, "predict_proba")(X)
    labels = estimator.classes_
    return -token_log_loss(y, proba, labels=labels, sample_weight=sample_weight)


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
    weights = None if sample_weight is None else np.asarray(sample_weight)
    return float(np.average(logs, weights=weights))


def _method(estimator, name):
    method = getattr(estimator, name, None)
    if method is None:
        raise TypeError(
            f"This score requires an estimator with {name}, such as CRFClassifier; got "
            f"{estimator!r}."
        )
    return method


def _split_tag(tag, name, i, t):
    """``("B", "NP")`` of ``"B-NP"``, as conlleval and seqeval split a tag."""
    if isinstance(tag, str) and tag[:1] in ("O", "B", "I", "E", "S"):
        if len(tag) == 1:
            return tag, "_"
        if tag[1] == "-" and tag[0] != "O":
            return tag[0], tag[2:] or "_"
    raise ValueError(
        f"{name}[{i}][{t}] must be an entity tag such as 'B-NP', 'I-NP' or 'O', "
        f"got {tag!r}."
    )


def _entities(tags, name, i, seen):
    """Set of the ``(type, first, last)`` that the tags of one sequence spell.

    ``seen`` caches the tags split so far. The rules are conlleval's: an entity ends
    before ``O``, ``B`` and ``S``, after ``E`` and ``S``, and where the type changes;
    whatever tag comes next, if not ``O``, starts another.
    """
    found = set()
    open_type = start = None
    closed = True
    for t, tag in enumerate(tags):
        parts = seen.get(tag) if isinstance(tag, str) else None
        if parts is None:
            parts = seen[tag] = _split_tag(tag, name, i, t)
        prefix, type_ = parts
        starts = prefix in "BS" or closed or type_ != open_type
        if not closed and (starts or prefix == "O"):
            found.add((open_type, start, t - 1))
        if prefix == "O":
            closed = True
            continue
        if starts:
            open_type, start = type_, t
        closed = prefix in "ES"
        if closed:
            found.add((open_type, start, t))
    if not closed:
        found.add((open_type, start, len(tags) - 1))
    return found


def _entity_counts(y_true, y_pred, sample_weight):
    """Weighted numbers of right, predicted and true entities, each (n_types,).

    The types are sorted by name.
    """
    pairs = _paired_sequences(y_true, y_pred)
    weights = _sequence_weights(sample_weight, len(pairs))
    counts = defaultdict(lambda: np.zeros(3))
    seen = {}
    for i, ((tags_true, tags_pred), weight) in enumerate(
        zip(pairs, weights.tolist(), strict=True)
    ):
        true = _entities(tags_true, "y_true", i, seen)
        pred = _entities(tags_pred, "y_pred", i, seen)
        for column, entities in enumerate((true & pred, pred, true)):
            for type_, _, _ in entities:
                counts[type_][column] += weight
    table = [counts[type_] for type_ in sorted(counts)]
    return np.array(table, dtype=float).reshape(-1, 3).T


def check_zero_division(zero_division):
    """The value that stands for 0/0."""
    if isinstance(zero_division, str) and zero_division == "warn":
        return 0.0
    if isinstance(zero_division, Real) and (
        zero_division in (0, 1) or np.isnan(zero_division)
    ):
        return float(zero_division)
    raise ValueError(
        f"zero_division must be 'warn', 0, 1 or np.nan, got {zero_division!r}."
    )


def _entity_score(metric, y_true, y_pred, average, sample_weight, zero_division):
    """Shared body of the three entity scores; ``metric`` names the one wanted."""
    check_choice("average", average, ("micro", "macro", "weighted", None))
    filler = check_zero_division(zero_division)
    counts = _entity_counts(y_true, y_pred, sample_weight)
    if average == "micro" or (average is not None and not counts[2].any()):
        # Without a true entity there is nothing to average by, and only the pooled
        # counts say whether anything was predicted.
        counts = counts.sum(axis=1, keepdims=True)
    right, predicted, true = counts
    numerator, denominator = {
        "precision": (right, predicted),
        "recall": (right, true),
        "f1": (2 * right, predicted + true),
    }[metric]
    undefined = denominator == 0
    if undefined.any() and isinstance(zero_division, str):
        lack = {"precision": "predicted", "recall": "true"}
        warnings.warn(
            f"Entity {metric} is ill-defined and set to 0.0 where there is no "
            f"{lack.get(metric, 'true nor predicted')} entity. Use the parameter "
            "zero_division to control this.",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    scores = np.full(len(numerator), filler)
    np.divide(numerator, denominator, out=scores, where=~undefined)
    if average is None:
        return scores
    weighted = average == "weighted" and true.any()
    weights = true if weighted else np.ones(len(scores))
    used = ~np.isnan(scores) & (weights > 0)  # np.nan leaves a type out of the mean
    if not used.any():
        return float("nan")
    return float(np.average(scores[used], weights=weights[used]))


def entity_f1_score(
    y_true: Any,
    y_pred: Any,
    *,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    sample_weight: ArrayLike | None = None,
    zero_division: float | Literal["warn"] = "warn",
) -> Any:
    r"""F1 score of entities encoded by IOB tags (convention of conlleval).

    .. math:: F_1 = \frac{2 \, |E \cap \hat E|}{|E| + |\hat E|}

    Here :math:`E` are the true and :math:`\hat E` the predicted entities. An entity
    consists of its type, first and last token, and is correct if all three match.
    Entities are decoded as by conlleval [1]_ and the default mode of seqeval [2]_:
    ``B-X`` starts an entity of type ``X``; ``I-X`` continues it, or starts one after
    ``O`` or another type; ``O`` is outside; ``E-X`` ends an entity, and ``S-X`` is a
    whole one (IOBES tags).

    Read more in the :ref:`User Guide <guide-scores>`.

    Parameters
    ----------
    y_true : sequence of n sequences of str
        True tags: ragged lists, an object array of 1-D arrays or, if all sequences have
        the same length, a 2-D array.
    y_pred : sequence of n sequences of str
        Predicted tags, of the same lengths.
    average : {'micro', 'macro', 'weighted'} or None, default='micro'
        'micro' pools the entities of all types. 'macro' averages the scores of the types,
        and 'weighted' weights them by the number of true entities. None returns the score
        of each type.
    sample_weight : array-like of shape (n,), default=None
        Weights of the sequences. The weight applies to each entity of a sequence.
    zero_division : {'warn', 0, 1, np.nan}, default='warn'
        Value of a score that is 0/0. 'warn' means 0 with an `UndefinedMetricWarning`.
        With `np.nan`, averages leave out types without a score.

    Returns
    -------
    score : float, or ndarray of shape (n_types,) if `average=None`
        Types are those in `y_true` and `y_pred`, sorted by name.

    Raises
    ------
    ValueError
        If lengths differ or a label is not an entity tag (the message names the item), or
        if weights are not finite and non-negative.

    See Also
    --------
    entity_precision_score : Fraction of predicted entities that are correct.
    entity_recall_score : Fraction of true entities that are found.

    References
    ----------
    .. [1] E. F. Tjong Kim Sang, S. Buchholz, "Introduction to the CoNLL-2000 Shared
       Task: Chunking", CoNLL-2000 and LLL-2000.
    .. [2] H. Nakayama, "seqeval: A Python framework for sequence labeling
       evaluation", 2018.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import entity_f1_score
    >>> y_true = [["B-NP", "I-NP", "O"], ["B-VP"]]
    >>> y_pred = [["B-NP", "I-NP", "B-VP"], ["B-VP"]]
    >>> entity_f1_score(y_true, y_pred)
    0.8
    """
    return _entity_score("f1", y_true, y_pred, average, sample_weight, zero_division)


def entity_precision_score(
    y_true: Any,
    y_pred: Any,
    *,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    sample_weight: ArrayLike | None = None,
    zero_division: float | Literal["warn"] = "warn",
) -> Any:
    r"""Precision of predicted entities, :math:`|E \cap \hat E| / |\hat E|`.

    Entities are decoded as in :func:`entity_f1_score`.

    Read more in the :ref:`User Guide <guide-scores>`.

    Parameters
    ----------
    y_true, y_pred : sequence of n sequences of str
        True and predicted tags, of the same lengths.
    average : {'micro', 'macro', 'weighted'} or None, default='micro'
        How to average over entity types, see :func:`entity_f1_score`.
    sample_weight : array-like of shape (n,), default=None
        Weights of the sequences.
    zero_division : {'warn', 0, 1, np.nan}, default='warn'
        Value of the score if no entities are predicted (0/0).

    Returns
    -------
    score : float, or ndarray of shape (n_types,) if `average=None`
        Types are those in `y_true` and `y_pred`, sorted by name.

    Raises
    ------
    ValueError
        As in :func:`entity_f1_score`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import entity_precision_score
    >>> y_true = [["B-NP", "I-NP", "O"], ["B-VP"]]
    >>> y_pred = [["B-NP", "I-NP", "B-VP"], ["B-VP"]]
    >>> entity_precision_score(y_true, y_pred)
    0.666...
    """
    return _entity_score(
        "precision", y_true, y_pred, average, sample_weight, zero_division
    )


def entity_recall_score(
    y_true: Any,
    y_pred: Any,
    *,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    sample_weight: ArrayLike | None = None,
    zero_division: float | Literal["warn"] = "warn",
) -> Any:
    r"""Recall of true entities, :math:`|E \cap \hat E| / |E|`.

    Entities are decoded as in :func:`entity_f1_score`.

    Read more in the :ref:`User Guide <guide-scores>`.

    Parameters
    ----------
    y_true, y_pred : sequence of n sequences of str
        True and predicted tags, of the same lengths.
    average : {'micro', 'macro', 'weighted'} or None, default='micro'
        How to average over entity types, see :func:`entity_f1_score`.
    sample_weight : array-like of shape (n,), default=None
        Weights of the sequences.
    zero_division : {'warn', 0, 1, np.nan}, default='warn'
        Value of the score if there are no true entities (0/0).

    Returns
    -------
    score : float, or ndarray of shape (n_types,) if `average=None`
        Types are those in `y_true` and `y_pred`, sorted by name.

    Raises
    ------
    ValueError
        As in :func:`entity_f1_score`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import entity_recall_score
    >>> y_true = [["B-NP", "I-NP", "O"], ["B-VP"]]
    >>> y_pred = [["B-NP", "I-NP", "B-VP"], ["B-VP"]]
    >>> entity_recall_score(y_true, y_pred)
    1.0
    """
    return _entity_score("recall", y_true, y_pred, average, sample_weight, zero_division)


# Objects shared by the whole process: set_score_request would change them for all.
#: Scorer of :func:`token_accuracy_score`, for ``scoring=``. Under metadata routing, use
#: ``make_scorer(token_accuracy_score).set_score_request(sample_weight=True)``.
token_accuracy_scorer = make_scorer(token_accuracy_score)
#: Scorer of :func:`entity_f1_score`, for ``scoring=``, to be weighted likewise.
entity_f1_scorer = make_scorer(entity_f1_score)
