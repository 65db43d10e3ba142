"""Scores of segments, beside definitions written out."""

from itertools import groupby

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from numpy.testing import assert_allclose
from sklearn.model_selection import cross_val_score

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.metrics import (
    segment_count_ratio,
    segment_count_ratio_scorer,
    segment_edit_score,
    segment_edit_scorer,
    segment_f1_score,
    segment_f1_scorer,
)

SCORES = [segment_f1_score, segment_edit_score, segment_count_ratio]


def sequences(n=20):
    rng = new_rng()
    lengths = rng.integers(1, 30, size=n)
    return [
        [np.repeat(rng.integers(3, size=T), rng.integers(1, 5, size=T))[:T].tolist()
         for T in lengths]
        for _ in range(2)
    ]  # fmt: skip


def sets_of(labels):
    """(label, set of positions) of each run."""
    found, start = [], 0
    for label, run in groupby(labels):
        stop = start + len(list(run))
        found.append((label, set(range(start, stop))))
        start = stop
    return found


@pytest.mark.parametrize("overlap", [0.1, 0.25, 0.5, 1.0])
def test_f1_of_segments_is_its_definition(overlap):
    y_true, y_pred = sequences()
    right = n_segments = 0
    for true, pred in zip(map(sets_of, y_true), map(sets_of, y_pred), strict=True):
        hit = [False] * len(true)
        for label, own in pred:
            shares = [
                len(own & other) / len(own | other) * (label == name)
                for name, other in true
            ]
            best = int(np.argmax(shares))
            if shares[best] >= overlap and not hit[best]:
                hit[best], right = True, right + 1
        n_segments += len(true) + len(pred)
    found = segment_f1_score(y_true, y_pred, overlap=overlap)
    assert_allclose(found, 2 * right / n_segments)


def levenshtein(a, b):
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, z in enumerate(b, 1):
            row.append(min(row[-1] + 1, rows[-1][j] + 1, rows[-1][j - 1] + (x != z)))
        rows.append(row)
    return rows[-1][-1]


def test_the_edit_score_and_the_ratio_are_their_definitions():
    y_true, y_pred = sequences()
    scores, n_true, n_pred = [], 0, 0
    for true, pred in zip(y_true, y_pred, strict=True):
        a, b = [[label for label, _ in groupby(own)] for own in (true, pred)]
        scores.append(1 - levenshtein(a, b) / max(len(a), len(b)))
        n_true, n_pred = n_true + len(a), n_pred + len(b)
    assert_allclose(segment_edit_score(y_true, y_pred), np.mean(scores))
    assert_allclose(segment_count_ratio(y_true, y_pred), n_pred / n_true)


@pytest.mark.parametrize("score", SCORES)
def test_perfect_labels_have_the_score_one_and_ignored_ones_none(score):
    y, _ = sequences()
    assert score(y, y) == 1.0
    ignored = [[0] * len(own) for own in y]
    if score is not segment_count_ratio:
        assert score([[0, 1, 0]], [[2, 1, 2]], ignored_labels=[0, 2]) == 1.0
    if score is segment_edit_score:
        assert score(ignored, ignored, ignored_labels=[0]) == 1.0
    else:
        with pytest.raises(ValueError, match="no segment of positive weight"):
            score(ignored, ignored, ignored_labels=[0])


@pytest.mark.parametrize("score", SCORES)
def test_weights_are_repetitions(score):
    y_true, y_pred = sequences()
    weights = new_rng(1).integers(3, size=len(y_true))
    weights[0] = 1
    repeated = [
        [own for own, n in zip(y, weights, strict=True) for _ in range(n)]
        for y in (y_true, y_pred)
    ]
    assert_allclose(score(y_true, y_pred, sample_weight=weights), score(*repeated))


def test_what_is_no_segmentation_is_refused():
    with pytest.raises(ValueError, match="overlap must be above 0"):
        segment_f1_score([["a"]], [["a"]], overlap=0.0)
    with pytest.raises(ValueError, match=r"y_true\[0\] has 1 labels"):
        segment_f1_score([["a"]], [["a", "b"]])
    with pytest.raises(ValueError, match="ignored_labels must be"):
        segment_f1_score([["a"]], [["a"]], ignored_labels="a")


def test_searches_know_the_scorers():
    X, y = make_chains(n_samples=12, random_state=new_seed())
    model = CRFClassifier(random_state=0).fit(X, y)
    for scorer, score in (
        (segment_f1_scorer, segment_f1_score),
        (segment_edit_scorer, segment_edit_score),
        (segment_count_ratio_scorer, lambda *y: -abs(np.log(segment_count_ratio(*y)))),
    ):
        assert scorer(model, X, y) == score(y, model.predict(X))
        scores = cross_val_score(CRFClassifier(), X, y, cv=2, scoring=scorer)
        assert scores.shape == (2,) and (scores <= 1.0).all()
