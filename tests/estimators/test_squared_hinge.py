"""The squared hinge: optima of LIBLINEAR, certificates, one class against the rest."""

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from sklearn_structsvm import SubLBFGSClassifier


def make_data(n_classes=2, n=80, seed=0):
    X, y = make_classification(
        n,
        n_features=6,
        n_informative=4,
        n_classes=n_classes,
        flip_y=0.2,
        random_state=new_seed(seed),
    )
    return X, np.array(["a", "b", "c"])[y]


def objective(model, X, y, *, C, weights=None, scaling=1.0):
    """The normalized objective by its definition, at `coef_` and `intercept_`."""
    s = np.ones(len(y)) if weights is None else weights
    W, b = model.coef_, model.intercept_
    labels = model.classes_[1:] if len(W) == 1 else model.classes_
    signs = np.where(np.equal.outer(y, labels), 1.0, -1.0)
    losses = (np.maximum(0.0, 1.0 - signs * (X @ W.T + b)) ** 2).sum(axis=1)
    square = (W**2).sum() + (b**2).sum() / scaling**2
    return square / (2.0 * C * s.sum()) + s @ losses / s.sum()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dual", [False, True], ids=["-s 2", "-s 1"])
def test_the_optimum_is_that_of_liblinear(dual, n_classes, layout):
    X, y = make_data(n_classes)
    s = new_rng(1).uniform(0.2, 2.0, len(y))
    options = {"C": 0.3, "intercept_scaling": 2.0}
    model = SubLBFGSClassifier("squared_hinge", tol=1e-9, **options)
    model.fit(layout(X), y, sample_weight=s)
    peer = LinearSVC(dual=dual, tol=1e-10, max_iter=10**6, random_state=0, **options)
    peer.fit(X, y, sample_weight=s)
    known = {"C": 0.3, "weights": s, "scaling": 2.0}
    assert model.objective_ == pytest.approx(objective(model, X, y, **known), rel=1e-12)
    assert model.objective_ == pytest.approx(objective(peer, X, y, **known), rel=1e-6)
    # λ/2 ‖w - w*‖² <= gap, and λ is about 1 / 25.
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=1e-3)
    assert model.decision_function(X).shape == peer.decision_function(X).shape
    assert model.solver_ == "newton"


def test_class_weights_of_two_classes_are_those_of_liblinear():
    X, y = make_data()
    options = {"C": 0.3, "class_weight": {"a": 3.0, "b": 0.5}}
    model = SubLBFGSClassifier("squared_hinge", tol=1e-10, **options).fit(X, y)
    peer = LinearSVC(tol=1e-10, max_iter=10**6, dual=False, **options).fit(X, y)
    s = np.where(y == "a", 3.0, 0.5)
    value = objective(peer, X, y, C=0.3, weights=s)
    assert model.objective_ == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gap_bounds_the_distance_from_the_optimum_of_another_solver(n_classes):
    rng = new_rng(2)
    for place in range(4):
        X, y = make_data(n_classes, n=40, seed=place)
        s = rng.uniform(0.0, 2.0, 40) * (rng.random(40) < 0.8)
        s[:3] = 1.0
        C, tol = 10.0 ** rng.uniform(-3, 1), 10.0 ** rng.uniform(-8, -1)
        model = SubLBFGSClassifier("squared_hinge", C=C, tol=tol)
        model.fit(X, y, sample_weight=s)
        probe = clone(model).fit(X, y, sample_weight=s)

        def value(w, probe=probe, X=X, y=y, C=C, s=s):
            W = w.reshape(-1, 7)
            probe.coef_, probe.intercept_ = W[:, :6], W[:, 6]
            return objective(probe, X, y, C=C, weights=s)

        start = np.hstack([model.coef_, model.intercept_[:, np.newaxis]]).ravel()
        other = minimize(value, start, tol=1e-10).fun
        assert model.dual_objective_ <= other + 1e-12 * abs(other)
        assert model.objective_ - other <= model.dual_gap_ + 1e-12 * abs(other)
        assert model.dual_gap_ <= tol


def test_the_optimum_meets_the_kkt_conditions():
    """w = 2 C Σ s_i ξ_i y_i x_i, up to what the gap leaves of the gradient."""
    X, y = make_data()
    s = new_rng(3).uniform(0.2, 2.0, len(y))
    model = SubLBFGSClassifier("squared_hinge", C=0.3, tol=1e-12)
    model.fit(X, y, sample_weight=s)
    signs = np.where(y == "b", 1.0, -1.0)
    slack = np.maximum(0.0, 1.0 - signs * model.decision_function(X))
    full = np.hstack([X, np.ones((len(X), 1))])
    w = np.append(model.coef_[0], model.intercept_)
    rest = w - 2.0 * 0.3 * full.T @ (s * slack * signs)
    gap = rest @ rest / (2.0 * 0.3 * s.sum())
    assert gap <= 2e-12
    # It is no smaller than the rounding error of its terms.
    assert model.dual_gap_ == pytest.approx(gap, rel=0.1, abs=1e-14)


def test_several_classes_are_one_problem_for_each_against_the_rest():
    X, y = make_data(3)
    model = SubLBFGSClassifier("squared_hinge", tol=1e-12).fit(X, y)
    alone = SubLBFGSClassifier("squared_hinge", tol=1e-12)
    rest = OneVsRestClassifier(alone).fit(X, y)
    parts = rest.estimators_
    assert model.objective_ == pytest.approx(sum(p.objective_ for p in parts), abs=1e-11)
    np.testing.assert_allclose(
        model.coef_, np.vstack([p.coef_ for p in parts]), rtol=0, atol=1e-4
    )
    # Scores that are no closer than the weights are decide.
    scores = np.sort(model.decision_function(X), axis=1)
    clear = scores[:, -1] - scores[:, -2] > 0.01
    np.testing.assert_array_equal(model.predict(X)[clear], rest.predict(X)[clear])


def test_whole_weights_are_repetitions_and_zeros_are_absences():
    X, y = make_data()
    counts = new_rng(4).integers(0, 3, len(y))
    counts[[np.flatnonzero(y == c)[0] for c in "ab"]] = 1
    model = SubLBFGSClassifier("squared_hinge", tol=1e-13)
    weighted = clone(model).fit(X, y, sample_weight=counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-12)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=0, atol=1e-4)


@pytest.mark.parametrize("solver", ["sublbfgs", "subbfgs"])
def test_quasi_newton_steps_reach_the_same_optimum(solver):
    X, y = make_data(3)
    best = SubLBFGSClassifier("squared_hinge", tol=1e-10).fit(X, y).objective_
    model = SubLBFGSClassifier("squared_hinge", solver=solver, tol=1e-6).fit(X, y)
    assert best - 1e-10 <= model.objective_ <= best + 1e-6
    assert model.dual_gap_ <= 1e-6


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"label_costs": np.ones((2, 2))}, "label_costs=.* requires loss='hinge'"),
        ({"solver": "hybrid"}, "solver='hybrid' requires loss=.* Use solver='newton'"),
        ({"solver": "dual-hybrid"}, "solver='dual-hybrid' requires loss="),
        ({"loss": "hinge", "solver": "newton"}, "solver='newton' requires loss='squared"),
        ({"k": 3}, "k=3 requires loss="),
    ],
)
def test_what_does_not_go_with_it_is_refused(params, words):
    X, y = make_data()
    with pytest.raises(ValueError, match=words):
        SubLBFGSClassifier(**{"loss": "squared_hinge"} | params).fit(X, y)


def test_an_indicator_of_labels_is_refused_with_what_to_do():
    X, _ = make_data()
    Y = new_rng(5).integers(0, 2, (len(X), 3))
    with pytest.raises(ValueError, match="or OneVsRestClassifier for one problem per"):
        SubLBFGSClassifier("squared_hinge").fit(X, Y)
