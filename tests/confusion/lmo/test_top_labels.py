"""The k labels that cost least against all sets of k labels."""

import numpy as np
import pytest
from _labelings import all_sets, as_csr, confusion_of, random_eta
from _seeds import new_rng

from sklearn_structsvm.confusion.label_rows import LabelRows
from sklearn_structsvm.confusion.lmo.top_labels import TopLabelsLMO, best_labels


@pytest.mark.parametrize("form", [np.asarray, as_csr])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_gains_are_the_largest_of_all_sets(form, k):
    rng = new_rng(1, k)
    for _ in range(10):
        eta = random_eta(rng, 20, 5, share=0.4)
        gains = np.round(rng.normal(size=(5, 2)), 1)
        labels, found = best_labels(LabelRows.of(form(eta)), gains, k)
        assert np.array_equal(found, np.take_along_axis(eta, labels, axis=1))
        of_all = gains[:, 0] + gains[:, 1] * eta
        best = (of_all @ all_sets(5, k).T).max(axis=1)
        got = np.take_along_axis(of_all, labels, axis=1).sum(axis=1)
        assert got == pytest.approx(best, abs=1e-12)


def test_of_equal_gains_the_first_labels_are_taken_dense_or_sparse():
    eta = np.array([[0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
    for form in (np.asarray, as_csr):
        labels, _ = best_labels(LabelRows.of(form(eta)), np.array([[0.0, 1.0]] * 4), 3)
        assert labels.tolist() == [[1, 2, 0], [0, 1, 2]]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_tensor_and_the_bound_are_those_of_the_best_sets(weighted):
    rng = new_rng(2, weighted)
    eta = random_eta(rng, 9, 4)
    weights = rng.integers(0, 3, size=9) + 1.0 if weighted else np.ones(9)
    lmo = TopLabelsLMO(LabelRows.of(as_csr(eta)), 2, weights if weighted else None)
    for _ in range(10):
        L = rng.normal(size=(4, 2, 2))
        C, handle, bound = lmo(L)
        Y = lmo.choose(handle).matrix(4).toarray()
        expected = [
            confusion_of(weights @ (y * p), weights @ y, weights @ p, weights.sum())
            for y, p in zip(Y.T, eta.T, strict=True)
        ]
        assert C == pytest.approx(np.array(expected) / 4, abs=1e-12)
        assert C.sum(axis=2) == pytest.approx(lmo.priors_, abs=1e-12)
        assert bound == pytest.approx(np.vdot(L, C))
        # Row by row, over all sets.
        least = 0.0
        for w, p in zip(weights / weights.sum(), eta, strict=True):
            absent = L[:, 0, 0] * (1 - p) + L[:, 1, 0] * p
            present = L[:, 0, 1] * (1 - p) + L[:, 1, 1] * p
            costs = absent.sum() + all_sets(4, 2) @ (present - absent)
            least += w * costs.min() / 4
        assert bound == pytest.approx(least, abs=1e-12)


def test_what_is_no_probability_is_refused_with_its_place():
    with pytest.raises(ValueError, match=r"from 0 to 1; got 1.5 for row 1, label 2"):
        LabelRows.of(np.array([[0.0, 0.1, 0.2], [0.0, 1.0, 1.5]]), "P")
    with pytest.raises(ValueError, match="got nan for row 0, label 0"):
        LabelRows.of(np.array([[np.nan]]), "P")
