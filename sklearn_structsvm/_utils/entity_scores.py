"""Scores of the entities that IOB tags spell, as by conlleval."""

from collections import defaultdict
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer

from sklearn_structsvm._utils.borders import check_choice, check_zero_division
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.sequence_scores import paired_sequences, sequence_weights
from sklearn_structsvm._utils.tags import entities_of, named_scheme

__all__ = [
    "entity_report",
    "entity_f1_score",
    "entity_f1_scorer",
    "entity_precision_score",
    "entity_recall_score",
]


def _entity_counts(y_true, y_pred, sample_weight, scheme, strict):
    """Types by name, and weighted numbers of right, predicted and true entities (3, n).

    `strict` needs a scheme.
    """
    if scheme is not None:
        scheme = named_scheme("scheme", scheme)
    elif strict:
        raise ValueError("strict=True needs a scheme, such as scheme='bio'.")
    pairs = paired_sequences(y_true, y_pred)
    weights = sequence_weights(sample_weight, len(pairs))
    counts = defaultdict(lambda: np.zeros(3))
    seen = {}
    for i, ((tags_true, tags_pred), weight) in enumerate(
        zip(pairs, weights.tolist(), strict=True)
    ):
        true = entities_of(tags_true, scheme, strict, "y_true", i, seen)
        pred = entities_of(tags_pred, scheme, strict, "y_pred", i, seen)
        for column, entities in enumerate((true & pred, pred, true)):
            for type_, _, _ in entities:
                counts[type_][column] += weight
    names = sorted(counts)
    table = [counts[type_] for type_ in names]
    return names, np.array(table, dtype=float).reshape(-1, 3).T


def _entity_score(
    metric, y_true, y_pred, average, sample_weight, zero_division, scheme, strict
):
    """Shared body of the three entity scores; ``metric`` names the one wanted."""
    check_choice("average", average, ("micro", "macro", "weighted", None))
    check_zero_division(zero_division)
    _, counts = _entity_counts(y_true, y_pred, sample_weight, scheme, strict)
    return _averaged(metric, counts, average, zero_division)


def _averaged(metric, counts, average, zero_division):
    """A score of these counts (3, n_types), of each type or averaged."""
    filler = check_zero_division(zero_division)
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
        warn_caller(
            f"Entity {metric} is ill-defined and set to 0.0 where there is no "
            f"{lack.get(metric, 'true nor predicted')} entity. Use the parameter "
            "zero_division to control this.",
            UndefinedMetricWarning,
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


@with_plain_calls
def entity_f1_score(
    y_true: Any,
    y_pred: Any,
    *,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    sample_weight: ArrayLike | None = None,
    zero_division: float | Literal["warn"] = "warn",
    scheme: str | None = None,
    strict: bool = False,
) -> Any:
    r"""F1 score of entities encoded by IOB tags (convention of conlleval).

    .. math:: F_1 = \frac{2 \, |E \cap \hat E|}{|E| + |\hat E|}

    Here :math:`E` are the true and :math:`\hat E` the predicted entities. An entity
    consists of its type, first and last token, and is correct if all three match.
    Entities are decoded as by conlleval [1]_ and the default mode of seqeval [2]_:
    ``B-X`` starts an entity of type ``X``; ``I-X`` (``M-X`` in BMES tags) continues it,
    or starts one after ``O`` or another type; ``O`` is outside; ``E-X`` (``L-X``) ends an
    entity, and ``S-X`` (``U-X``) is a whole one. So IOB1, BIO, BIOES, BILOU and BMES tags
    are all read without a `scheme`.

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
    scheme : str or None, default=None
        The scheme of the tags, as of
        :func:`~sklearn_structsvm.preprocessing.convert_tags`: other letters are then an
        error. "runs" are labels without letters.
    strict : bool, default=False
        Whether only what is spelled correctly by `scheme` is an entity, as in the strict
        mode of seqeval: in BIO an ``I-X`` that nothing begins is none.

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
    entity_report : The scores of each type of entity.
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
    return _entity_score(
        "f1", y_true, y_pred, average, sample_weight, zero_division, scheme, strict
    )


@with_plain_calls
def entity_precision_score(
    y_true: Any,
    y_pred: Any,
    *,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    sample_weight: ArrayLike | None = None,
    zero_division: float | Literal["warn"] = "warn",
    scheme: str | None = None,
    strict: bool = False,
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
    scheme : str or None, default=None
        The scheme of the tags, see :func:`entity_f1_score`.
    strict : bool, default=False
        Whether only correct tags spell entities, see :func:`entity_f1_score`.

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
        "precision", y_true, y_pred, average, sample_weight, zero_division, scheme, strict
    )


@with_plain_calls
def entity_recall_score(
    y_true: Any,
    y_pred: Any,
    *,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    sample_weight: ArrayLike | None = None,
    zero_division: float | Literal["warn"] = "warn",
    scheme: str | None = None,
    strict: bool = False,
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
    scheme : str or None, default=None
        The scheme of the tags, see :func:`entity_f1_score`.
    strict : bool, default=False
        Whether only correct tags spell entities, see :func:`entity_f1_score`.

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
    return _entity_score(
        "recall", y_true, y_pred, average, sample_weight, zero_division, scheme, strict
    )


@with_plain_calls
def entity_report(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    zero_division: float | Literal["warn"] = "warn",
    scheme: str | None = None,
    strict: bool = False,
) -> dict[str, dict[str, float]]:
    """Report precision, recall and F1 of each type of entity, and their averages.

    Entities are decoded as in :func:`entity_f1_score`.

    Read more in the :ref:`User Guide <guide-scores>`.

    Parameters
    ----------
    y_true, y_pred : sequence of n sequences of str
        True and predicted tags, of the same lengths.
    sample_weight : array-like of shape (n,), default=None
        Weights of the sequences.
    zero_division : {'warn', 0, 1, np.nan}, default='warn'
        Value of a score that is 0/0, see :func:`entity_f1_score`.
    scheme : str or None, default=None
        The scheme of the tags, see :func:`entity_f1_score`.
    strict : bool, default=False
        Whether only correct tags spell entities, see :func:`entity_f1_score`.

    Returns
    -------
    dict of dicts
        For each type, sorted by name, and for "micro avg", "macro avg" and "weighted
        avg": "precision", "recall", "f1-score" and "support", the number of true
        entities. It has the form of :func:`sklearn.metrics.classification_report` with
        ``output_dict=True``; ``pandas.DataFrame(report).T`` is a table.

    Raises
    ------
    ValueError
        As in :func:`entity_f1_score`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import entity_report
    >>> y_true = [["B-NP", "I-NP", "B-VP", "B-VP"]]
    >>> report = entity_report(y_true, [["B-NP", "I-NP", "B-VP", "O"]])
    >>> report["VP"]["precision"], report["VP"]["recall"]
    (1.0, 0.5)
    >>> report["micro avg"]["f1-score"]
    0.8
    """
    names, counts = _entity_counts(y_true, y_pred, sample_weight, scheme, strict)
    rows: dict[str, dict[str, float]] = {}
    for key, metric in (
        ("precision", "precision"),
        ("recall", "recall"),
        ("f1-score", "f1"),
    ):
        own = _averaged(metric, counts, None, zero_division) if names else []
        for name, score in zip(names, own, strict=True):
            rows.setdefault(name, {})[key] = float(score)
        for average in ("micro", "macro", "weighted"):
            score = _averaged(metric, counts, average, zero_division)
            rows.setdefault(f"{average} avg", {})[key] = score
    for name, n in zip(names, counts[2], strict=True):
        rows[name]["support"] = float(n)
    for average in ("micro", "macro", "weighted"):
        rows[f"{average} avg"]["support"] = float(counts[2].sum())
    return {name: rows[name] for name in [*names, *list(rows)[len(names) :]]}


# An object shared by the whole process: set_score_request would change it for all.
#: Scorer of :func:`entity_f1_score`, for ``scoring=``. Under metadata routing, use
#: ``make_scorer(entity_f1_score).set_score_request(sample_weight=True)``.
entity_f1_scorer = make_scorer(entity_f1_score)
