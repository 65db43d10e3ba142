"""The L1 penalty, and the squared hinge: optima of others, certificates, zeros."""

import numpy as np
import pytest
import sklearn
from _options import placed
from _seeds import new_rng, new_seed
from scipy import sparse
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.fixes import parse_version

from sklearn_structsvm import SubLBFGSClassifier

LOSSES = ["hinge", "squared_hinge"]
L1, SQUARED = {"penalty": "l1"}, {"loss": "squared_hinge"}


def make_data(n_classes=2, n=80, n_features=10, seed=0):
    X, y = make_classification(
        n, n_features=n_features, n_informative=4, n_classes=n_classes, flip_y=0.2,
        random_state=new_seed(seed),
    )  # fmt: skip
    return X, np.array(["a", "b", "c"])[y]


def objective(model, X, y, *, C, weights=None, scaling=1.0, costs=(1.0, 1.0)):
    """The normalized objective by its definition, at `coef_` and `intercept_`."""
    s = np.ones(len(y)) if weights is None else weights
    W, b = model.coef_, model.intercept_
    labels = model.classes_[1:] if len(W) == 1 else model.classes_
    present = np.equal.outer(y, labels)
    margins = np.where(present, costs[1], costs[0])
    losses = np.maximum(0.0, margins - np.where(present, 1, -1) * (X @ W.T + b))
    if model.loss == "squared_hinge":
        losses **= 2
    size = np.abs(W).sum() + np.abs(b).sum() / scaling
    if model.penalty == "l2":
        size = 0.5 * ((W**2).sum() + (b**2).sum() / scaling**2)
    return size / (C * s.sum()) + s @ losses.sum(axis=1) / s.sum()


def linear_program(X, y, *, C, weights, costs=(1.0, 1.0)):
    """The least objective with the hinge, by a solver of linear programs."""
    signs, p = np.where(y == "b", 1.0, -1.0), weights / weights.sum()
    full = signs[:, np.newaxis] * np.hstack([X, np.ones((len(X), 1))])
    n, d = full.shape
    cost = np.concatenate([np.full(2 * d, 1.0 / (C * weights.sum())), p])
    above = np.hstack([-full, full, -np.eye(n)])
    margins = np.where(y == "b", costs[1], costs[0])
    return linprog(cost, above, -margins).fun


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_squared_hinge_has_the_optimum_of_liblinear(n_classes, layout):
    X, y = make_data(n_classes)
    s = new_rng(1).uniform(0.2, 2.0, len(y))
    options = {"C": 0.1, "intercept_scaling": 2.0}
    model = placed(SubLBFGSClassifier)("squared_hinge", penalty="l1", tol=1e-9, **options)
    model.fit(layout(X), y, sample_weight=s)
    peer = LinearSVC(
        penalty="l1", dual=False, tol=1e-9, max_iter=10**6, random_state=0, **options
    ).fit(X, y, sample_weight=s)
    peer.loss = "squared_hinge"
    known = {"C": 0.1, "weights": s, "scaling": 2.0}
    assert model.dual_gap_ <= 1e-9
    assert model.objective_ == pytest.approx(objective(model, X, y, **known), rel=1e-12)
    assert model.objective_ == pytest.approx(objective(peer, X, y, **known), rel=1e-6)
    assert model.solver_ == "newton"


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_the_hinge_has_the_optimum_of_a_linear_program(C, layout):
    X, y = make_data()
    s = new_rng(1).uniform(0.2, 2.0, len(y))
    costs = np.array([[0.0, 2.0], [0.5, 0.0]])
    model = SubLBFGSClassifier(penalty="l1", C=C, tol=1e-9, label_costs=costs)
    model.fit(layout(X), y, sample_weight=s)
    known = {"C": C, "weights": s, "costs": (2.0, 0.5)}
    assert model.dual_gap_ <= 1e-9
    assert model.objective_ == pytest.approx(objective(model, X, y, **known), rel=1e-12)
    assert model.objective_ == pytest.approx(linear_program(X, y, **known), rel=1e-7)


def test_the_optimum_of_the_squared_hinge_meets_the_kkt_conditions():
    """Slopes of the loss are at most λ, and -λ sign(w) where w is not zero.

    With the gradient g* of the optimum, the gap is at least Σ λ |w_j| + g*_j w_j, and
    ‖g - g*‖² is at most 2 L times the gap, L being the largest second derivative.
    """
    X, y = make_data(n=60)
    lam = 1.0 / (0.1 * 60)
    model = SubLBFGSClassifier(
        "squared_hinge", penalty="l1", C=0.1, tol=1e-11, fit_intercept=False
    ).fit(X, y)
    signs, w = np.where(y == "b", 1.0, -1.0), model.coef_[0]
    g = -2.0 * X.T @ (signs * np.maximum(1.0 - signs * (X @ w), 0.0)) / 60
    near = np.sqrt(4.0 * np.linalg.norm(X, 2) ** 2 / 60 * 1e-11)
    assert w.any()
    assert (np.abs(g) <= lam + near).all()
    assert (lam * np.abs(w) + g * w).sum() <= 1e-11 + near * np.abs(w).sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_no_certificate_is_below_the_truth(loss):
    rng = new_rng(2)
    for _ in range(12):
        n, d = rng.integers(2, 30), rng.integers(1, 25)
        X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1)
        X[rng.random(X.shape) < rng.choice([0.0, 0.6])] = 0.0
        y = np.where(rng.random(n) < 0.5, "a", "b")
        y[:2] = "a", "b"
        s = rng.uniform(0.0, 2.0, n) * (rng.random(n) < 0.8)
        s[:2] = 1.0
        C = 10.0 ** rng.uniform(-1, 1.5)
        model = SubLBFGSClassifier(loss, penalty="l1", C=C, tol=1e-9, max_iter=3000)
        best = clone(model).fit(X, y, sample_weight=s)
        optimum = best.objective_
        if loss == "hinge":
            truth = linear_program(X, y, C=C, weights=s)
            assert optimum == pytest.approx(truth, rel=1e-7, abs=2e-9)
            optimum = min(optimum, truth)
        model.set_params(tol=10.0 ** rng.uniform(-6, 0)).fit(X, y, sample_weight=s)
        history = model.history_
        assert (history["dual_objective"] <= optimum + 1e-10).all()
        assert (history["dual_gap"] >= history["objective"] - optimum - 1e-10).all()
        assert (np.diff(history["objective"]) <= 1e-12).all()
        value = objective(model, X, y, C=C, weights=s)
        assert model.objective_ == pytest.approx(value, rel=1e-10)


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


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_the_logistic_loss_is_certified_on_raw_columns(C):
    rng, n = new_rng(4), 300
    columns = [
        rng.lognormal(8.0, 1.5, n),
        rng.integers(18, 90, n),
        rng.normal(1e4, 3.0, n),
        1e-3 * rng.random(n),
        rng.random(n) < 0.02,
    ]
    X = np.column_stack(columns).astype(float)
    y = np.log(X[:, 0]) + 2.0 * rng.standard_normal(n) > 8.0
    model = SubLBFGSClassifier("logistic", penalty="l1", C=C, tol=1e-7).fit(X, y)
    old = parse_version(sklearn.__version__) < parse_version("1.8")
    l1 = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    peer = LogisticRegression(C=C, solver="liblinear", tol=1e-8, random_state=0, **l1)
    peer.fit(X, y)

    def value(m):
        z = np.where(y, 1.0, -1.0) * (X @ m.coef_[0] + m.intercept_)
        size = np.abs(m.coef_).sum() + np.abs(m.intercept_).sum()
        return size / (C * n) + np.logaddexp(0.0, -z).mean()

    assert model.solver_ == "newton" and model.dual_gap_ <= 1e-7
    assert model.objective_ == pytest.approx(value(model), rel=1e-9)
    assert model.dual_objective_ - 1e-9 <= model.objective_ <= value(peer) + 1e-7


RAW_COLUMNS = {
    "year": lambda rng, n: rng.integers(1990, 2025, n),
    "row id": lambda rng, n: np.arange(n) + 1e5,
    "money": lambda rng, n: rng.lognormal(9.0, 2.0, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "offset": lambda rng, n: rng.normal(1e3, 1.0, n),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("column", RAW_COLUMNS)
def test_default_fits_to_raw_columns_end_within_the_tolerance(loss, column):
    rng, n = new_rng(5), 200
    X = np.c_[RAW_COLUMNS[column](rng, n), rng.normal(size=(n, 7))]
    y = (X[:, 1] + rng.logistic(size=n) > 0.0).astype(int)
    for C in (1e-3, 1.0, 1e3):
        # A fit that ends above `tol` warns.
        model = SubLBFGSClassifier(loss, penalty="l1", C=C).fit(X, y)
        value = objective(model, X, y, C=C)
        assert model.objective_ == pytest.approx(value, rel=1e-9)
        assert model.n_iter_ <= 100


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


def test_both_solvers_of_a_smooth_loss_have_the_same_optimum():
    X, y = make_data()
    for loss in ("squared_hinge", "logistic"):
        model = SubLBFGSClassifier(loss, penalty="l1", C=0.1, tol=1e-6, max_iter=10**4)
        newton = clone(model).set_params(solver="newton", tol=1e-10).fit(X, y)
        other = clone(model).set_params(solver="owlqn").fit(X, y)
        assert newton.objective_ == pytest.approx(other.objective_, abs=1.1e-6)


def test_single_precision_gives_the_bits_of_the_same_numbers():
    X, y = make_data()
    X = X.astype(np.float32)
    model = SubLBFGSClassifier(penalty="l1")
    one, other = (clone(model).fit(data, y) for data in (X, X.astype(float)))
    np.testing.assert_array_equal(one.coef_, other.coef_)


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


@pytest.mark.parametrize(
    ("params", "words"),
    [(L1 | {"loss": "slack_hinge"}, "penalty='l1' requires loss='hinge'"),
     (L1 | {"loss": "f1"}, "penalty='l1' requires loss='hinge'"),
     (L1 | {"solver": "owlqn"}, "solver='owlqn' requires loss=.* Use solver='newton'"),
     (L1 | {"solver": "hybrid"}, "solver='hybrid' requires penalty='l2'"),
     (L1 | {"line_search": "wolfe"}, "line_search='wolfe' requires"),
     (SQUARED | {"label_costs": np.eye(2)}, "label_costs=.* requires loss='hinge'"),
     (SQUARED | {"solver": "hybrid"}, "solver='hybrid' requires.* Use solver='newton'"),
     (SQUARED | {"solver": "dual-hybrid"}, "solver='dual-hybrid' requires loss="),
     ({"solver": "newton"}, "solver='newton' requires loss='squared"),
     (SQUARED | {"k": 3}, "k=3 requires loss=")],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(params, words):
    with pytest.raises(ValueError, match=words):
        placed(SubLBFGSClassifier)(**params).fit(*make_data())


def test_the_hinge_is_for_two_classes():
    X, y = make_data(3)
    with pytest.raises(ValueError, match="'hinge' with penalty='l1' .* OneVsRest"):
        SubLBFGSClassifier(penalty="l1").fit(X, y)
    tags = SubLBFGSClassifier(penalty="l1").__sklearn_tags__()
    assert not tags.classifier_tags.multi_class


# The squared hinge with the L2 penalty.


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dual", [False, True], ids=["-s 2", "-s 1"])
def test_the_optimum_of_the_squared_hinge_is_that_of_liblinear(dual, n_classes, layout):
    X, y = make_data(n_classes)
    s = new_rng(1).uniform(0.2, 2.0, len(y))
    options = {"C": 0.3, "intercept_scaling": 2.0}
    model = placed(SubLBFGSClassifier)("squared_hinge", tol=1e-9, **options)
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
    model = placed(SubLBFGSClassifier)("squared_hinge", tol=1e-10, **options).fit(X, y)
    peer = LinearSVC(tol=1e-10, max_iter=10**6, dual=False, **options).fit(X, y)
    s = np.where(y == "a", 3.0, 0.5)
    value = objective(peer, X, y, C=0.3, weights=s)
    assert model.objective_ == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gap_bounds_the_distance_from_the_optimum_of_another_solver(n_classes):
    rng = new_rng(2)
    for place in range(4):
        X, y = make_data(n_classes, n=40, n_features=6, seed=place)
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


def test_the_optimum_without_a_penalty_of_sizes_meets_the_kkt_conditions():
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


def test_an_indicator_of_labels_is_refused_with_what_to_do():
    X, _ = make_data()
    Y = new_rng(5).integers(0, 2, (len(X), 3))
    with pytest.raises(ValueError, match="or OneVsRestClassifier for one problem per"):
        SubLBFGSClassifier("squared_hinge").fit(X, Y)
