"""The L1 penalty, and the squared hinge: optima of others, certificates, zeros."""

import numpy as np
import pytest
from _estimators import linear_objective
from _options import placed
from _seeds import new_rng, new_seed
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from sklearn_structsvm import SubLBFGSClassifier

LOSSES = ["hinge", "squared_hinge"]


def make_data(n_classes=2, n=80, n_features=10, seed=0):
    X, y = make_classification(
        n, n_features=n_features, n_informative=4, n_classes=n_classes, flip_y=0.2,
        random_state=new_seed(seed),
    )  # fmt: skip
    return X, np.array(["a", "b", "c"])[y]


def objective(model, X, y, **known):
    l1 = float(model.penalty == "l1")
    return linear_objective(model, X, y, loss=model.loss, l1=l1, **known)


def linear_program(X, y, *, C, s, costs):
    """The least objective with the hinge, by a solver of linear programs."""
    signs, p = np.where(y == "b", 1.0, -1.0), s / s.sum()
    full = signs[:, np.newaxis] * np.hstack([X, np.ones((len(X), 1))])
    n, d = full.shape
    cost = np.concatenate([np.full(2 * d, 1.0 / (C * s.sum())), p])
    above = np.hstack([-full, full, -np.eye(n)])
    margins = np.where(y == "b", costs[1].sum(), costs[0].sum())
    return linprog(cost, above, -margins).fun


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_the_hinge_has_the_optimum_of_a_linear_program(C, layout):
    X, y = make_data()
    s = new_rng(1).uniform(0.2, 2.0, len(y))
    costs = np.array([[0.0, 2.0], [0.5, 0.0]])
    model = SubLBFGSClassifier(penalty="l1", C=C, tol=1e-9, label_costs=costs)
    model.fit(layout(X), y, sample_weight=s)
    known = {"C": C, "s": s, "costs": costs}
    assert model.dual_gap_ <= 1e-9
    assert model.objective_ == pytest.approx(objective(model, X, y, **known), rel=1e-12)
    assert model.objective_ == pytest.approx(linear_program(X, y, **known), rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_weight_is_the_answer_where_the_penalty_is_large(loss):
    X, y = make_data()
    full = np.hstack([X, np.ones((len(X), 1))])
    slope = np.abs(full.T @ np.where(y == "b", 1.0, -1.0)).max()
    C = 1.0 / (slope * (2.0 if loss == "squared_hinge" else 1.0))
    model = SubLBFGSClassifier(loss, penalty="l1", tol=1e-9)
    nothing = clone(model).set_params(C=0.999 * C).fit(X, y)
    assert nothing.n_iter_ == 0 and not nothing.coef_.any()
    some = clone(model).set_params(C=1.1 * C).fit(X, y)
    assert some.coef_.any() or some.intercept_.any()


@pytest.mark.parametrize("loss", [*LOSSES, "logistic"])
def test_unused_columns_have_weights_of_zero(loss):
    X, y = make_data()
    X = np.hstack([X, 1e-3 * new_rng(3).standard_normal((len(X), 5))])
    model = SubLBFGSClassifier(loss, penalty="l1", solver="newton", C=0.5, tol=1e-8)
    model.fit(X, y)
    # Their slopes are at most twice their largest value, as mean slacks are at most 1,
    # and λ is 1 / 40.
    assert (model.coef_[0, -5:] == 0.0).all() and model.coef_.any()


def test_with_more_features_than_rows_a_slow_fit_of_the_logistic_loss_names_newton():
    X, y = make_data(n=30, n_features=40)
    X *= 10.0 ** np.linspace(0.0, 5.0, 40)
    model = SubLBFGSClassifier("logistic", penalty="l1", C=10.0, tol=1e-7, max_iter=200)
    # One data set in forty needs a few more steps only.
    words = r"try solver='newton'|increase max_iter \(about \d+ may do\)"
    with pytest.warns(ConvergenceWarning, match=words):
        model.fit(X, y)
    assert model.solver_ == "owlqn"
    assert model.set_params(solver="newton").fit(X, y).dual_gap_ <= 1e-7


@pytest.mark.parametrize("loss", [*LOSSES, "logistic"])
@pytest.mark.parametrize("C", [1e-300, 1e300])
@pytest.mark.parametrize("scale", [1e-100, 1e30, 1e120])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_extreme_sizes_overflow_nowhere(loss, C, scale):
    X, y = make_data(n=30)
    model = SubLBFGSClassifier(loss, penalty="l1", solver="newton", C=C, tol=0.0)
    model.set_params(max_iter=100).fit(scale * X, y)
    assert np.isfinite(model.coef_).all()
    assert model.dual_gap_ >= -1e-12


def test_several_classes_are_one_problem_for_each_or_refused_with_what_to_do():
    X, y = make_data(3)
    with pytest.raises(ValueError, match="'hinge' with penalty='l1' .* OneVsRest"):
        SubLBFGSClassifier(penalty="l1").fit(X, y)
    tags = SubLBFGSClassifier(penalty="l1").__sklearn_tags__()
    assert not tags.classifier_tags.multi_class
    Y = new_rng(5).integers(0, 2, (len(X), 3))
    with pytest.raises(ValueError, match="or OneVsRestClassifier for one problem per"):
        SubLBFGSClassifier("squared_hinge").fit(X, Y)
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


PEERS = {
    "-s 1": ({"penalty": "l2"}, {"dual": True}),
    "-s 2": ({"penalty": "l2"}, {"dual": False}),
    "-s 5": ({"penalty": "l1"}, {"dual": False}),
}


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("n_classes", "class_weight"), [
    (2, None), (2, {"a": 3.0, "b": 0.5}), (3, None)])  # fmt: skip
@pytest.mark.parametrize(("penalty", "dual"), PEERS.values(), ids=PEERS)
def test_the_optimum_of_the_squared_hinge_is_that_of_liblinear(
    penalty, dual, n_classes, class_weight, layout
):
    X, y = make_data(n_classes)
    s = new_rng(1).uniform(0.2, 2.0, len(y))
    options = {"C": 0.3, "intercept_scaling": 2.0, "class_weight": class_weight}
    model = placed(SubLBFGSClassifier)("squared_hinge", tol=1e-9, **penalty, **options)
    model.fit(layout(X), y, sample_weight=s)
    peer = LinearSVC(**penalty, **dual, **options, random_state=0)
    peer.set_params(tol=1e-10, max_iter=10**6).fit(X, y, sample_weight=s)
    peer.loss = "squared_hinge"
    if class_weight:
        s = s * np.where(y == "a", 3.0, 0.5)
    known = {"C": 0.3, "s": s, "scaling": 2.0}
    assert model.dual_gap_ <= 1e-9 and model.solver_ == "newton"
    assert model.objective_ == pytest.approx(objective(model, X, y, **known), rel=1e-12)
    assert model.objective_ == pytest.approx(objective(peer, X, y, **known), rel=1e-6)
    if model.penalty == "l2":
        # λ/2 ‖w - w*‖² <= gap, and λ is about 1 / 25.
        np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=1e-3)
    assert model.decision_function(X).shape == peer.decision_function(X).shape


@pytest.mark.parametrize(
    ("loss", "penalty", "solver"),
    [("squared_hinge", "l2", "sublbfgs"), ("squared_hinge", "l2", "subbfgs"),
     ("squared_hinge", "l1", "owlqn"), ("logistic", "l1", "owlqn")],
)  # fmt: skip
def test_quasi_newton_steps_reach_the_same_optimum(loss, penalty, solver):
    X, y = make_data(3 if penalty == "l2" else 2)
    model = SubLBFGSClassifier(loss, penalty=penalty, tol=1e-6, max_iter=10**4)
    best = clone(model).set_params(solver="newton", tol=1e-10).fit(X, y).objective_
    model.set_params(solver=solver).fit(X, y)
    assert best - 1e-10 <= model.objective_ <= best + 1.1e-6
    assert model.dual_gap_ <= 1e-6
