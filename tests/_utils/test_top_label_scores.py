"""Scores of the k first labels, against their definitions row by row."""

from math import log2

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm._utils.indicators import largest_of_rows
from sklearn_structsvm.metrics import (
    label_propensities,
    ndcg_at_k_score,
    precision_at_k_score,
)

SCORES = precision_at_k_score, ndcg_at_k_score


def first(scores, k):
    """The labels that rank first; ties go to the first label."""
    return sorted(range(len(scores)), key=lambda label: (-scores[label], label))[:k]


def by_definition(Y, S, k, p, weights):
    """Precision and nDCG, then both with propensities, as napkinXC defines them."""
    found, best = np.zeros(4), np.zeros(4)
    for y, scores, weight in zip(Y, S, weights, strict=True):
        ranked = first(scores, k)
        ideal = sorted((1 / p[label] for label in np.flatnonzero(y)), reverse=True)[:k]
        norm = sum(1 / log2(t + 2) for t in range(len(ideal))) or 1.0
        of_ranks = [(y[label], y[label] / p[label]) for label in ranked]
        found[0] += weight * sum(hit for hit, _ in of_ranks) / k
        found[2] += weight * sum(gain for _, gain in of_ranks)
        best[2] += weight * sum(ideal)
        for t, (hit, gain) in enumerate(of_ranks):
            found[1] += weight * hit / log2(t + 2) / norm
            found[3] += weight * gain / log2(t + 2) / norm
        best[3] += weight * sum(g / log2(t + 2) for t, g in enumerate(ideal)) / norm
    best[:2] = np.sum(weights)
    return np.divide(found, best, out=np.zeros(4), where=best > 0)


FORMS = [np.asarray, sparse.csc_matrix]
FORMS += [sparse.csr_array, sparse.coo_array, sparse.lil_array, sparse.dok_array]
FORMS += [sparse.bsr_array]


@pytest.mark.parametrize("form", FORMS)
def test_scores_are_those_of_the_definitions(form):
    rng = new_rng(0)
    for _ in range(30):
        n, n_labels = rng.integers(1, 9, 2)
        k = int(rng.integers(1, n_labels + 1))
        Y = (rng.random((n, n_labels)) < rng.random()).astype(int)
        S = rng.integers(0, 4, Y.shape) + 1.0  # with ties
        p, weights = rng.uniform(0.1, 1.0, n_labels), rng.uniform(0.1, 1.0, n)
        wanted = by_definition(Y, S, k, p, weights)
        for propensities, expected in ((None, wanted[:2]), (p, wanted[2:])):
            found = [
                score(
                    form(Y), form(S), k, propensities=propensities, sample_weight=weights
                )
                for score in SCORES
            ]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_only_stored_entries_of_sparse_scores_rank():
    scores = sparse.csr_array(([-1.0], ([0], [1])), shape=(1, 3))
    y_true = [[1, 0, 1]]
    assert precision_at_k_score(y_true, scores, 1) == 0.0
    assert precision_at_k_score(y_true, scores.toarray(), 1) == 1.0


def test_the_largest_entries_of_rows_stand_in_falling_order():
    rng = new_rng(1)
    for _ in range(50):
        S = rng.integers(1, 4, rng.integers(1, 7, 2)).astype(float)
        k = int(rng.integers(1, S.shape[1] + 2))
        for scores in (S, sparse.csr_array(S)):
            found = largest_of_rows(scores, k)
            rows = np.split(found.indices, found.indptr[1:-1])
            assert [row.tolist() for row in rows] == [first(row, k) for row in S]
            np.testing.assert_array_equal(
                found.data,
                S[np.repeat(np.arange(len(S)), np.diff(found.indptr)), found.indices],
            )


def test_a_perfect_ranking_scores_1_with_propensities_and_rows_without_labels_0():
    Y = (new_rng(2).random((20, 6)) < 0.4).astype(int)
    Y[0] = 1
    p = label_propensities(Y)
    assert ((p > 0) & (p <= 1)).all()
    order = np.argsort(Y.sum(axis=0), kind="stable")
    np.testing.assert_array_equal(p[order], np.sort(p))  # rare labels are missed more
    for score in SCORES:
        assert score(Y, Y / p, 3, propensities=p) == pytest.approx(1.0)
        assert score(np.zeros_like(Y), Y / p, 3) == 0.0
        assert score(np.zeros_like(Y), Y / p, 3, propensities=p) == 0.0


JUNK = np.array([[0.5, {}, 0.0]] * 3, dtype=object)


@pytest.mark.parametrize("score", SCORES)
def test_bad_arguments_are_named(score):
    Y, S = np.eye(3), np.ones((3, 3))
    for arguments, options, message in [
        ((Y, S, 0), {}, "k must be"),
        ((Y, S, 4), {}, "k must be"),
        ((Y, S[:2], 1), {}, "y_score must have shape"),
        ((Y, S * np.nan, 1), {}, "y_score must be finite"),
        ((Y, S.astype(str), 1), {}, "y_score must hold numbers"),
        ((Y, np.ma.masked_array(S, Y > 0), 1), {}, r"y_score is a .* entry \[0, 0\]"),
        ((Y, [[1, 0, 0], [0, 1]], 1), {}, "y_score must be an array"),
        ((Y, sparse.dok_array(S[:, :2]), 1), {}, "y_score must have shape"),
        ((Y, sparse.csr_array(S * np.nan), 1), {}, "y_score must be finite"),
        ((Y, sparse.csr_array(S * 1j), 1), {}, "y_score must hold numbers"),
        ((2 * Y, S, 1), {}, "y must hold 0 and 1 only"),
        ((Y, JUNK, 1), {}, "^y_score must hold numbers"),
        ((JUNK, S, 1), {}, "^y must hold numbers"),
        ((Y, S, 1), {"propensities": [0.0, 1.0, 1.0]}, "propensities must be greater"),
        ((Y, S, 1), {"propensities": [1.0]}, "propensities"),
        ((Y, S, 1), {"sample_weight": [1.0]}, "sample_weight must have shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            score(*arguments, **options)
    with pytest.raises(ValueError, match="at least 3 rows"):
        label_propensities(Y[:2])
    with pytest.raises(ValueError, match="b must be"):
        label_propensities(Y, b=0.0)
    for value in (None, "1", [1.0], True, 1j):
        with pytest.raises(TypeError, match="a must be a number"):
            label_propensities(Y, a=value)
        with pytest.raises(TypeError, match="b must be a number"):
            label_propensities(Y, b=value)
