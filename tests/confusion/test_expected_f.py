"""Expected F-measures against all sets and all outcomes."""

from itertools import product

import numpy as np
import pytest
from _labelings import as_csr, expected_f, random_eta
from _seeds import new_rng

from sklearn_structsvm.confusion.expected_f import best_sets
from sklearn_structsvm.confusion.label_rows import LabelRows


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.7])
def test_the_sets_have_the_largest_expected_f_of_all(beta):
    eta = random_eta(new_rng(1), 12, 5, ties=False)
    eta[0] = 0.0
    eta[1, :2] = 1.0
    eta[2] = 0.5
    eta[3] = np.round(eta[3], 1)
    matrix, values = best_sets(LabelRows.of(as_csr(eta)), beta)
    sets = np.array(list(product([0, 1], repeat=5)))
    for found, value, row in zip(matrix.toarray(), values, eta, strict=True):
        best = max(expected_f(s, row, beta) for s in sets)
        assert value == pytest.approx(best, abs=1e-12)
        assert expected_f(found, row, beta) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 4])
def test_the_value_of_a_given_size_is_that_of_the_most_probable_labels(k):
    eta = random_eta(new_rng(2), 8, 4, ties=False, share=0.6)
    _, values = best_sets(LabelRows.of(eta), 1.0, k)
    for value, row in zip(values, eta, strict=True):
        top = np.zeros(4)
        top[np.argsort(-row)[:k]] = 1.0
        assert value == pytest.approx(expected_f(top, row, 1.0), abs=1e-12)


def test_many_labels_keep_their_digits():
    # As many labels as make f[0] underflow, all of them 1/2, where division is at its
    # worst: the value is that of the normal approximation, to its order of accuracy.
    m = 2000
    _, values = best_sets(LabelRows.of(np.full((1, m), 0.5)), 1.0)
    # All are predicted: 2 S / (S + m) for S of mean m / 2 and variance m / 4.
    mean, variance = m / 2, m / 4
    curvature = -4 * m / (mean + m) ** 3
    assert values[0] == pytest.approx(
        2 * mean / (mean + m) + 0.5 * curvature * variance, abs=1e-6
    )
