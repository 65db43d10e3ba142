"""Scores of the entities that IOB tags spell, as by conlleval."""

import warnings
from collections import defaultdict
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer

from sklearn_structsvm._utils.borders import check_choice, check_zero_division
from sklearn_structsvm._utils.sequence_scores import paired_sequences, sequence_weights

__all__ = [
    "entity_f1_score",
    "entity_f1_scorer",
    "entity_precision_score",
    "entity_recall_score",
]


def tag_parts(tag):
    """``("B", "NP")`` of ``"B-NP"``, as conlleval and seqeval split a tag, or None."""
    if isinstance(tag, str) and tag[:1] in ("O", "B", "I", "E", "S"):
        if len(tag) == 1:
            return tag, "_"
        if tag[1] == "-" and tag[0] != "O":
            return tag[0], tag[2:] or "_"
    return None


def _split_tag(tag, name, i, t):
    parts = tag_parts(tag)
    if parts is None:
        raise ValueError(
            f"{name}[{i}][{t}] must be an entity tag such as 'B-NP', 'I-NP' or 'O', "
            f"got {tag!r}."
        )
    return parts


def entities_of(tags, name="y", i=0, seen=None):
    """Set of the ``(type, first, last)`` that the tags of one sequence spell.

    ``seen`` caches the tags split so far. The rules are conlleval's: an entity ends
    before ``O``, ``B`` and ``S``, after ``E`` and ``S``, and where the type changes;
    whatever tag comes next, if not ``O``, starts another.
    """
    found = set()
    seen = {} if seen is None else seen
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
    pairs = paired_sequences(y_true, y_pred)
    weights = sequence_weights(sample_weight, len(pairs))
    counts = defaultdict(lambda: np.zeros(3))
    seen = {}
    for i, ((tags_true, tags_pred), weight) in enumerate(
        zip(pairs, weights.tolist(), strict=True)
    ):
        true = entities_of(tags_true, "y_true", i, seen)
        pred = entities_of(tags_pred, "y_pred", i, seen)
        for column, entities in enumerate((true & pred, pred, true)):
            for type_, _, _ in entities:
                counts[type_][column] += weight
    table = [counts[type_] for type_ in sorted(counts)]
    return np.array(table, dtype=float).reshape(-1, 3).T


def _entity_score(metric, y_true, y_pred, average, sample_weight, zero_division):
    """Shared body of the three entity scores; ``metric`` names the one wanted."""
    check_choice("average", average, ("micro", "macro", "weighted", None))
    filler = check_zero_division(zero_division)
    counts = _entity_counts(y_true, y_pred, sample_weight)
    if average == "micro" or (average is not None and not counts[2].any()):
        # Without a true entity there are no weights to average with, and only the
        # pooled counts say whether anything was predicted.
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


# An object shared by the whole process: set_score_request would change it for all.
#: Scorer of :func:`entity_f1_score`, for ``scoring=``. Under metadata routing, use
#: ``make_scorer(entity_f1_score).set_score_request(sample_weight=True)``.
entity_f1_scorer = make_scorer(entity_f1_score)
