"""Structures in Python whose methods are wrong end in an error, not in a certificate."""

from functools import partial

import numpy as np
import pytest
from _estimators import PythonMulticlass
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    SlackRescaledSSVM,
    bcfw_path,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.solvers.blocks import bcfw
from sklearn_structsvm.structures import ChainStructure


class ForgetsTheLoss(PythonMulticlass):
    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return self.decode(x, w)

    def slack_augmented_decode(self, x, y_true, w, one=1.0):
        return self.decode(x, w)


class TakesTheLeast(PythonMulticlass):
    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        wrong = np.arange(self.n_classes) != y_true
        return int((w.reshape(self.n_classes, -1) @ x + lam * wrong).argmin())

    def slack_augmented_decode(self, x, y_true, w, one=1.0):
        scores = w.reshape(self.n_classes, -1) @ x
        wrong = np.arange(self.n_classes) != y_true
        return int((wrong * (one + scores - scores[y_true])).argmin())


class HasIntegerFeatures(PythonMulticlass):
    """What it maximizes has the features as they are."""

    def joint_feature(self, x, y):
        phi = np.zeros((self.n_classes, len(x)), dtype=int)
        phi[y] = x
        return phi.ravel()


class HasAnotherLoss(PythonMulticlass):
    """The first wrong label, which all take as long as w is 0, costs twice as much."""

    def loss(self, y_true, y):
        return super().loss(y_true, y) * (2.0 if y == (y_true == 0) else 1.0)


class IsWrongForFew(PythonMulticlass):
    """Examples of one class alone are decoded as they should not be."""

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        if y_true == 2:
            return self.decode(x, w)
        return super().loss_augmented_decode(x, y_true, w, lam)


class TakesTheLeastProduct(PythonMulticlass):
    """Knows the largest loss, but not the largest product."""

    slack_augmented_decode = TakesTheLeast.slack_augmented_decode


BROKEN = [
    ForgetsTheLoss, TakesTheLeast, HasIntegerFeatures, HasAnotherLoss, IsWrongForFew,
]  # fmt: skip
# The answers of a search are the labels that `slack_augmented_decode` names.
BROKEN_PRODUCTS = [
    partial(kind, product=True) for kind in (*BROKEN[:2], TakesTheLeastProduct)
]
WRONG = "oracle did not find the maximum.*check_structure"

SOLVERS = [
    BCFWClassifier(step="fw", solver_options={"cache": False}),
    BCFWClassifier(step="pairwise"),
    BCFWClassifier(step="away", solver_options={"average": True}),
    BCFWClassifier(solver_options={"algorithm": "batch"}),
    SlackRescaledSSVM(rescaling="margin"),
    SlackRescaledSSVM(rescaling="margin", solver="sgd"),
    SlackRescaledSSVM(rescaling="margin", solver="cutting_plane"),
    BMRMClassifier(solver_options={"formulation": "n-slack"}),
    BMRMClassifier(solver_options={"formulation": "one-slack"}),
]


def random_data(n=30, noise=1.0):
    rng = new_rng(0)
    y = np.arange(n) % 3
    X = 1.5 * np.eye(4)[y] + noise * rng.standard_normal((n, 4))
    return list(X), y.tolist()


def data_of_one_direction():
    """(X, y, C) on which an oracle that forgets losses has nothing to certify.

    Rows are positive multiples of one vector, so that they score labels in the same
    order, and C is so small that no score exceeds another by a loss. At a certified point
    an example has all its dual mass on the best of the wrong labels, or none where its
    own label is best and the loss forgotten. Mass lowers the scores of the labels that it
    is on, and raises those of the true ones; scores sum to zero.

    - A label that is best and forgotten, alone or tied, is lowered by the examples of the
      others, and cannot be best. All might be tied at zero if labels 0 and 1 held each
      other's mass, but one has more examples.
    - If label 2 alone is forgotten and is not best, its examples outnumber the others,
      and raise it above zero. The best label is higher still, and the sum not zero.
    """
    rng, y = new_rng(0), np.repeat([0, 1, 2], [4, 8, 18])
    direction = rng.standard_normal(4)
    X = rng.uniform(0.9, 1.1, size=(len(y), 1)) * direction / np.linalg.norm(direction)
    return list(X), y.tolist(), small_C(X)


def small_C(X):
    """So small that scores differ by a quarter at most."""
    return 1.0 / (8.0 * len(X) * max(x @ x for x in X))


def data_that_show(broken):
    """(X, y, C) on which no solver can certify what such an oracle finds."""
    if getattr(broken, "func", broken) in (ForgetsTheLoss, IsWrongForFew):
        return data_of_one_direction()
    if broken is HasAnotherLoss:
        # That makes up for no cost. Once a class has the dearer label, that has the lower
        # scores, and the other one is named.
        X, y = random_data(noise=0.1)
        return X, y, small_C(X)
    return *random_data(), 10.0


@pytest.mark.parametrize(
    ("solver", "broken"),
    [
        (solver, broken)
        for solver in SOLVERS
        for broken in BROKEN
        # It keeps no labelings that would prove so little.
        if getattr(solver, "solver", "") != "sgd"
        or broken not in (HasAnotherLoss, IsWrongForFew)
    ],
    ids=str,
)
def test_every_solver_says_so(solver, broken):
    X, y, C = data_that_show(broken)
    model = clone(solver).set_params(C=C, tol=1e-4, max_iter=300, random_state=0)
    error, words = ValueError, WRONG
    if getattr(solver, "solver", "") == "sgd":
        # Its bound may be too loose to prove it, and to converge.
        error, words = (ValueError, ConvergenceWarning), "oracle did not|stopped at"
    with pytest.raises(error, match=words):
        model.set_params(structure=broken()).fit(X, y)


@pytest.mark.parametrize("broken", BROKEN_PRODUCTS, ids=str)
@pytest.mark.parametrize("solver", ["bcfw", "sgd", "cutting_plane", "one_slack"])
def test_slack_rescaling_says_so(broken, solver):
    X, y, C = data_that_show(broken)
    model = SlackRescaledSSVM(
        broken(), solver=solver, C=C, tol=1e-4, max_iter=300, random_state=0
    )
    with pytest.raises(ValueError, match=WRONG):
        model.fit(X, y)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_a_path_and_the_choice_of_c_say_so_and_the_fit_before_stays(broken):
    X, y = random_data()
    short = {"eps": 0.01, "min_lambda": 1e-3, "max_iter": 100, "random_state": 0}
    with pytest.raises(ValueError, match=WRONG):
        bcfw_path(X, y, structure=broken(), **short)
    model = BCFWClassifierCV(PythonMulticlass(), Cs=[1.0, 10.0], cv=2, random_state=0)
    coef = model.fit(X, y).coef_
    if broken is HasAnotherLoss:
        with pytest.raises(ValueError, match=WRONG):
            model.set_params(structure=broken()).fit(X, y)
        assert model.coef_ is coef


class CostsNothing(PythonMulticlass):
    def loss(self, y_true, y):
        return 0.0

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return self.decode(x, w)


@pytest.mark.parametrize(
    "fit",
    [
        BCFWClassifier(CostsNothing()).fit,
        BMRMClassifier(CostsNothing()).fit,
        SlackRescaledSSVM(
            CostsNothing(), solver_options={"search": "binary"}, solver="sgd"
        ).fit,
    ],
)
def test_where_nothing_costs_anything_there_is_a_warning(fit):
    X, y = random_data()
    with pytest.warns(UserWarning, match="nothing to learn") as record:
        fit(X, y)
    assert record[0].filename == __file__


def test_nobody_is_blamed_for_what_is_built_in(monkeypatch):
    def overstated(iterate, *args):
        row, *others = certify(iterate, *args)
        row["dual_gap"] = -1.0
        return row, *others

    certify = bcfw.certify
    monkeypatch.setattr(bcfw, "certify", overstated)
    X, y = make_chains(10, random_state=new_seed())
    with pytest.raises(ValueError, match="Scale the features.*report it") as record:
        BCFWClassifier("chain", step="fw").fit(X, y)
    assert "oracle" not in str(record.value)

    class Own(ChainStructure):
        pass

    with pytest.raises(ValueError, match=WRONG):
        BCFWClassifier(Own(), step="fw").fit(X, y)
