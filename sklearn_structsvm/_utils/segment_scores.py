"""Scores of segmentations: runs of equal labels, not single positions."""

from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer

from sklearn_structsvm._utils.borders import check_sequence
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.sequence_scores import paired_sequences, sequence_weights

__all__ = [
    "segment_count_ratio",
    "segment_edit_score",
    "segment_count_ratio_scorer",
    "segment_edit_scorer",
    "segment_f1_score",
    "segment_f1_scorer",
]


def _segments(labels, ignored):
    """(label, start, stop) of each run of equal labels."""
    found, start = [], 0
    for label, run in groupby(labels):
        stop = start + len(list(run))
        if label not in ignored:
            found.append((label, start, stop))
        start = stop
    return found


def _paired_segments(y_true, y_pred, ignored_labels, sample_weight):
    """Weight, true segments and predicted segments of each sequence."""
    if ignored_labels is not None:
        check_sequence("ignored_labels", ignored_labels, "None or a list of labels")
    pairs = paired_sequences(y_true, y_pred)
    weights, ignored = sequence_weights(sample_weight, len(pairs)), ignored_labels or ()
    return [
        (weight, _segments(true, ignored), _segments(pred, ignored))
        for weight, (true, pred) in zip(weights, pairs, strict=True)
    ]


@with_plain_calls
def segment_f1_score(
    y_true: Any,
    y_pred: Any,
    *,
    overlap: float = 0.5,
    ignored_labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""F1 of segments that overlap enough, as in temporal action segmentation.

    A segment is a run of equal labels. Each predicted segment, in order, is compared with
    the true segment of its label that it overlaps most. It is correct if no earlier one
    was correct for that segment, and

    .. math:: \frac{|p \cap t|}{|p \cup t|} \ge \text{overlap}.

    The score is 2 TP / (number of true + number
    of predicted segments) over all sequences [1]_. It punishes labels that flicker, which
    accuracy hardly notices, and forgives borders that are a little off.

    Read more in the :ref:`User Guide <guide-scores>`.

    Parameters
    ----------
    y_true, y_pred : sequences of n label sequences
        Labels of each position, of the same lengths.
    overlap : float, default=0.5
        Intersection over union that is needed, above 0 and at most 1. Papers report 0.1,
        0.25 and 0.5.
    ignored_labels : list of labels or None, default=None
        Labels whose segments do not count, such as a background.
    sample_weight : array-like of shape (n,), default=None
        Weights of the sequences.

    Returns
    -------
    score : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If lengths differ, `overlap` is out of range, or there is no segment at all.

    See Also
    --------
    segment_edit_score : Whether segments come in the right order, wherever they are.
    segment_count_ratio : How many segments there are for a true one.

    References
    ----------
    .. [1] C. Lea, M. D. Flynn, R. Vidal, A. Reiter, G. D. Hager, "Temporal Convolutional
       Networks for Action Segmentation and Detection", CVPR 2017.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import segment_f1_score
    >>> y_true = [["sit"] * 4 + ["walk"] * 4]
    >>> segment_f1_score(y_true, [["sit"] * 5 + ["walk"] * 3])
    1.0
    >>> segment_f1_score(y_true, [["sit", "walk"] * 2 + ["walk"] * 4])
    0.333...
    """
    if not 0.0 < overlap <= 1.0:
        raise ValueError(f"overlap must be above 0 and at most 1; got {overlap!r}.")
    right = n_segments = 0.0
    for weight, true, pred in _paired_segments(
        y_true, y_pred, ignored_labels, sample_weight
    ):
        right += weight * _n_matched(true, pred, overlap)
        n_segments += weight * (len(true) + len(pred))
    if n_segments == 0:
        raise ValueError(
            "y_true and y_pred have no segment of positive weight, so F1 is undefined."
        )
    return float(2.0 * right / n_segments)


def _n_matched(true, pred, overlap):
    """Number of predicted segments that find a true one of their own."""
    free, n_matched = [True] * len(true), 0
    first = 0
    for label, start, stop in pred:
        # Both lists are in order, so what ends before this one ends before the rest.
        while first < len(true) and true[first][2] <= start:
            first += 1
        best, place = 0.0, None
        for k in range(first, len(true)):
            own, begin, end = true[k]
            if begin >= stop:
                break
            if own == label:
                common = min(stop, end) - max(start, begin)
                share = common / (max(stop, end) - min(start, begin))
                if share > best:
                    best, place = share, k
        if place is not None and best >= overlap and free[place]:
            free[place] = False
            n_matched += 1
    return n_matched


@with_plain_calls
def segment_edit_score(
    y_true: Any,
    y_pred: Any,
    *,
    ignored_labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Similarity of the segments' labels: one minus their normalized edit distance.

    .. math:: 1 - \frac{\mathrm{Levenshtein}(s, \hat s)}{\max(|s|, |\hat s|)}

    for the labels of the runs :math:`s` of y and :math:`\hat s` of the prediction, as a
    mean over the sequences [1]_. Only the order of segments matters, not their borders.

    Read more in the :ref:`User Guide <guide-scores>`.

    Parameters
    ----------
    y_true, y_pred, ignored_labels, sample_weight : as in `segment_f1_score`
        Sequences without segments have the score 1.

    Returns
    -------
    score : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If lengths differ, or no sequence has positive weight.

    See Also
    --------
    segment_f1_score : Counts segments that overlap.

    References
    ----------
    .. [1] C. Lea, R. Vidal, G. D. Hager, "Learning Convolutional Action Primitives for
       Fine-grained Action Recognition", ICRA 2016.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import segment_edit_score
    >>> segment_edit_score([["a", "a", "b", "c"]], [["a", "b", "b", "c"]])
    1.0
    >>> segment_edit_score([["a", "a", "b", "c"]], [["a", "a", "c", "c"]])
    0.666...
    """
    total = n_sequences = 0.0
    for weight, true, pred in _paired_segments(
        y_true, y_pred, ignored_labels, sample_weight
    ):
        labels = [label for label, *_ in true], [label for label, *_ in pred]
        longest = max(map(len, labels))
        distance = _edit_distance(*labels) / longest if longest else 0.0
        total += weight * (1.0 - distance)
        n_sequences += weight
    if n_sequences == 0:
        raise ValueError("No sequence has positive weight, so the score is undefined.")
    return float(total / n_sequences)


def _edit_distance(a, b):
    """Fewest insertions, deletions and replacements that turn a into b."""
    codes = {label: k for k, label in enumerate(dict.fromkeys([*a, *b]))}
    b = np.array([codes[label] for label in b], dtype=np.intp)
    steps = np.arange(len(b) + 1)
    row = steps.copy()
    for i, label in enumerate(a, 1):
        new = np.empty_like(row)
        new[0] = i
        new[1:] = np.minimum(row[1:] + 1, row[:-1] + (b != codes[label]))
        # Insertions: new[j] = min over j' <= j of new[j'] + j - j'.
        row = np.minimum.accumulate(new - steps) + steps
    return int(row[-1])


@with_plain_calls
def segment_count_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    ignored_labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the number of predicted segments per true one: 1 is ideal.

    Above 1, labels flicker; below 1, segments are missed.

    Read more in the :ref:`User Guide <guide-scores>`.

    Parameters
    ----------
    y_true, y_pred, ignored_labels, sample_weight : as in `segment_f1_score`
        Labels of each position.

    Returns
    -------
    ratio : float
        Over all sequences.

    Raises
    ------
    ValueError
        If lengths differ, or y_true has no segment.

    See Also
    --------
    segment_f1_score : Counts segments that overlap.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import segment_count_ratio
    >>> segment_count_ratio([["a", "a", "a", "b"]], [["a", "b", "a", "b"]])
    2.0
    """
    n_true = n_pred = 0.0
    for weight, true, pred in _paired_segments(
        y_true, y_pred, ignored_labels, sample_weight
    ):
        n_true += weight * len(true)
        n_pred += weight * len(pred)
    if n_true == 0:
        raise ValueError("y_true has no segment of positive weight.")
    return float(n_pred / n_true)


def _minus_log_ratio(*args, **options):
    with np.errstate(divide="ignore"):
        return -abs(float(np.log(segment_count_ratio(*args, **options))))


segment_count_ratio_scorer = make_scorer(_minus_log_ratio)
segment_f1_scorer = make_scorer(segment_f1_score)
segment_edit_scorer = make_scorer(segment_edit_score)
