"""Oracles of one's own: what a subclass must have, and what is made of its answers."""

import numpy as np
import pytest
from _seeds import new_rng
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from sklearn_structsvm.confusion.lmo import LMO, WeightedLMO
from sklearn_structsvm.confusion.lmo.checked import CheckedLMO

X, Y = load_iris(return_X_y=True)
X, Y = X[:, 1:2], (Y == 0).astype(int)
ZERO_ONE = 1.0 - np.eye(2)[None]


def wide(X):
    return (X[:, 0] > 3).astype(int)


def never(X):
    return np.zeros(len(X), dtype=int)


class Cheaper(LMO):
    """The cheaper of two functions: all that it has is a call."""

    def __init__(self, answer=lambda C, rule: (C, rule)):
        self.answer = answer

    def __call__(self, L):
        rules = [wide, never]
        tensors = [self.count(rule(self.X_)) for rule in rules]
        best = int(np.argmin([(L * C).sum() for C in tensors]))
        return self.answer(tensors[best], rules[best])


def checked(answer=None):
    lmo = Cheaper() if answer is None else Cheaper(answer)
    return CheckedLMO(lmo.fit(X, Y), Y, n_classes=2)


def test_an_lmo_of_ones_own_needs_a_call():
    lmo = checked()
    assert lmo.shape_ == (1, 2, 2) and not lmo.exact
    np.testing.assert_allclose(lmo.priors_, [[2 / 3, 1 / 3]])
    C, (L, rule), bound = lmo(ZERO_ONE)
    np.testing.assert_array_equal(L, ZERO_ONE)
    assert rule is wide
    assert bound == pytest.approx(np.mean(wide(X) != Y)) == (ZERO_ONE * C).sum()
    np.testing.assert_array_equal(
        lmo.lmo.predict(rule, X, np.zeros(len(X), dtype=int)), wide(X)
    )


def test_predictions_are_counted_by_cell_and_weight():
    rng = new_rng(0)
    cells, weights = rng.integers(0, 2, len(X)), rng.random(len(X))
    lmo = Cheaper().fit(X, Y, weights, cells, n_cells=3)
    C = lmo.count(wide(X))
    expected = np.zeros((3, 2, 2))
    np.add.at(expected, (cells, Y, wide(X)), weights)
    np.testing.assert_allclose(C, expected / weights.sum(), rtol=1e-13)
    with pytest.raises(ValueError, match="predicted must be among 0, ..., 1; got 2"):
        lmo.count(np.full(len(X), 2))


def test_a_bound_may_be_left_out_or_below_the_cost():
    for answer in (lambda C, rule: (C, rule), lambda C, rule: (C, rule, None)):
        C, _, bound = checked(answer)(ZERO_ONE)
        assert bound == (ZERO_ONE * C).sum()
    for low in (np.float32(-0.5), -np.inf):
        assert checked(lambda C, rule, low=low: (C, rule, low))(ZERO_ONE)[2] == low


def test_exactness_is_what_the_lmo_says():
    class Exact(Cheaper):
        exact = True

    assert CheckedLMO(Exact().fit(X, Y), Y, n_classes=2).exact


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda C, rule: (C[0], rule), ValueError, r"tensor of Cheaper must have shape"),
        (lambda C, rule: (2 * C, rule), ValueError, "shares of the labels"),
        (lambda C, rule: (C * np.nan, rule), ValueError, "finite numbers; got nan"),
        (lambda C, rule: (C + [[[-1.0, 1.0], [0.0, 0.0]]], rule), ValueError, "negative"),
        (lambda C, rule: C, TypeError, r"must return \(C, handle\) or"),
        (lambda C, rule: (rule, C), TypeError, "the confusion tensor first and then"),
        (lambda C, rule: (C, rule, "low"), TypeError, "bound of Cheaper .* got 'low'"),
        (lambda C, rule: (C, rule, 1.0), ValueError, "the bound 1, which is above"),
        (lambda C, rule: (C, rule, np.nan), ValueError, "the bound nan"),
    ],
)
def test_answers_that_cannot_be_right_are_refused(answer, error, words):
    with pytest.raises(error, match=words):
        checked(answer)(ZERO_ONE)


@pytest.mark.parametrize("ask", [lambda lmo: lmo(ZERO_ONE), lambda lmo: lmo.count(Y)])
def test_an_lmo_that_is_not_fitted_says_so(ask):
    with pytest.raises(NotFittedError, match="This WeightedLMO is not fitted yet"):
        ask(WeightedLMO())


def test_what_is_not_written_is_named():
    with pytest.raises(NotImplementedError, match="LMO has no __call__"):
        LMO().fit(X, Y)(ZERO_ONE)
