"""SubLBFGSClassifier, BMRMClassifier and PragamClassifier: agreement, and manners."""

import re
import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest
from _estimators import linear_objective
from _options import placed, set_placed
from _seeds import cache_by_seed, new_rng, new_seed
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import label_ranking_loss
from sklearn.svm import SVC, LinearSVC

from sklearn_structsvm import (
    BMRMClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains, make_multilabel
from sklearn_structsvm.structures import (
    ChainStructure,
    GraphStructure,
    MulticlassStructure,
    MultilabelStructure,
)
from sklearn_structsvm.structures.ranking import best_threshold

CLASSES = [SubLBFGSClassifier, BMRMClassifier, PragamClassifier]
KINDS = ("binary", "multiclass", "ranking")
TOL = 1e-8
COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [3.0, 1.0, 0.0]])
COSTS_OF = {
    "binary": np.array([[0, 1], [4, 0]]),
    "multiclass": COSTS,
    "ranking": np.array([[0, 1, 2, 1], [1, 0, 1, 0.5], [2, 1, 0, 1], [1, 0.5, 3, 0]]),
}

Accurate = {
    "dual-hybrid": partial(SubLBFGSClassifier, tol=TOL),
    "hybrid": partial(SubLBFGSClassifier, solver="hybrid", tol=TOL),
    "wolfe": partial(
        SubLBFGSClassifier, solver_options={"line_search": "wolfe"}, tol=TOL
    ),
    "ls-bmrm": partial(BMRMClassifier, tol=TOL),
    "qp-bmrm": partial(BMRMClassifier, solver_options={"line_search": False}, tol=TOL),
    "pragam": partial(PragamClassifier, tol=1e-7, max_iter=50_000),
}
accurately = pytest.mark.parametrize("make", Accurate.values(), ids=Accurate.keys())
for_each_class = pytest.mark.parametrize("make", CLASSES)
for_each_kind = pytest.mark.parametrize("kind", KINDS)


def make_data(kind, n=60):
    if kind == "ranking":
        return make_multilabel(n, n_features=5, n_classes=4, random_state=new_seed(0))
    k = 2 if kind == "binary" else 3
    X, y = make_classification(
        n, n_features=5, n_informative=3, n_redundant=0, n_classes=k,
        n_clusters_per_class=1, class_sep=0.5, random_state=new_seed(1),
    )  # fmt: skip
    return X, np.array(["a", "b", "c"])[y]


@cache_by_seed
def best(kind, **params):
    """A fit to the accuracy of rounding."""
    params = {"C": 0.1, "tol": 1e-12} | params
    return placed(BMRMClassifier)(**params).fit(*make_data(kind))


# What is the same for all three.


@accurately
@for_each_kind
def test_the_gap_bounds_what_is_left_to_one_optimum(make, kind):
    free = make is Accurate["pragam"] and kind == "binary"
    optimum = best(kind, fit_intercept=not free)
    for tol in (0.3, 0.01, None):
        model = make(C=0.1, fit_intercept=not free)
        model.set_params(tol=tol or model.tol).fit(*make_data(kind))
        assert model.dual_objective_ <= optimum.objective_ + 1e-12
        left = model.objective_ - optimum.dual_objective_
        assert -1e-12 <= left <= model.dual_gap_ + 1e-12 <= model.tol + 1e-12
        assert model.dual_gap_ == model.objective_ - model.dual_objective_
        for name in ("dual_gap", "n_iter", "n_oracle_calls"):
            assert model.history_[name][-1] == getattr(model, f"{name}_")
    np.testing.assert_allclose(model.objective_, optimum.objective_, rtol=1e-6)


@for_each_class
@for_each_kind
def test_weights_are_repetitions_and_csr_is_dense(make, kind):
    X, y = make_data(kind)
    X, s = X * (X > 0.0), new_rng(0).integers(0, 3, len(X))
    weighted = make(C=0.1, tol=1e-6).fit(X, y, sample_weight=s)
    repeated = make(C=0.1, tol=1e-6).fit(np.repeat(X, s, axis=0), np.repeat(y, s, axis=0))
    csr = sparse.csr_array(X)
    other = make(C=0.1, tol=1e-6).fit(csr, y, sample_weight=s)
    for model in (repeated, other):
        np.testing.assert_allclose(weighted.objective_, model.objective_, atol=1e-6)
    np.testing.assert_allclose(
        other.decision_function(csr), other.decision_function(X), atol=1e-12
    )


@for_each_class
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_class_weights_are_sample_weights(make, kind):
    X, y = make_data(kind)
    model = make(C=0.1, class_weight={"a": 3.0}).fit(X, y)
    same = make(C=0.1).fit(X, y, sample_weight=np.where(y == "a", 3.0, 1.0))
    np.testing.assert_array_equal(model.coef_, same.coef_)
    with pytest.raises(ValueError, match="class_weight cannot be used"):
        make(class_weight="balanced").fit(*make_data("ranking"))


@for_each_class
@for_each_kind
def test_classes_may_be_missing_from_y(make, kind):
    X, y = make_data(kind)
    if kind == "ranking":
        model = make(solver_options={"classes": list("pqrs")}).fit(X, y)
        assert model.classes_.tolist() == list("pqrs")
        return
    names = np.append(np.unique(y), "z")
    model = make(C=0.1, solver_options={"classes": names}).fit(X, y)
    assert model.coef_.shape == (len(names), X.shape[1])
    assert "z" not in model.predict(X)


@for_each_class
def test_a_fit_that_ends_early_says_so_and_verbose_prints_each_check(make, capsys):
    X, y = make_data("multiclass")
    with pytest.warns(ConvergenceWarning, match="max_iter=2 with a duality gap"):
        model = make(max_iter=2, tol=1e-9, verbose=1).fit(X, y)
    assert model.n_iter_ == 2 and model.dual_gap_ > 1e-9
    assert f"[{make.__name__}] pass" in capsys.readouterr().out


def test_a_bound_by_gradients_that_meets_no_tol_says_so():
    model = SubLBFGSClassifier("logistic", penalty="l1", tol=1e-15)
    message = "Newton's method made no further progress.* Use a larger tol"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*make_data("binary"))
    assert model.dual_gap_ < 1e-6
    assert len(caught) == 1 and re.search(message, str(caught[0].message))


# Against others.


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_the_optimum_is_that_of_linear_svc(kind, fit_intercept):
    X, y = make_data(kind)
    name = {"binary": "hinge", "multiclass": "crammer_singer"}[kind]
    option = {"loss" if kind == "binary" else "multi_class": name}
    peer = LinearSVC(C=0.1, fit_intercept=fit_intercept, random_state=0, **option)
    peer.set_params(tol=1e-9, max_iter=10**6).fit(X, y)
    peer.intercept_ = np.array(np.broadcast_to(peer.intercept_, len(peer.coef_)), float)
    expected = best(kind, fit_intercept=fit_intercept).objective_
    np.testing.assert_allclose(linear_objective(peer, X, y, C=0.1), expected, rtol=1e-6)


@accurately
@for_each_kind
def test_costs_are_those_of_the_margin_or_of_the_slack(make, kind):
    X, y = make_data(kind)
    costs, free = COSTS_OF[kind], make is Accurate["pragam"] and kind == "binary"
    model = make(C=0.1, label_costs=costs).fit(X, y)
    value = linear_objective(model, X, y, C=0.1, costs=costs, free=free)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-12)
    assert model.dual_gap_ <= model.tol
    for loss in ("hinge", "slack_hinge") if kind == "multiclass" else ():
        peer = SlackRescaledSSVM(
            MulticlassStructure(costs), solver_options={"search": "exact"}, C=0.1,
            rescaling={"hinge": "margin", "slack_hinge": "slack"}[loss],
            step="pairwise", tol=TOL, random_state=0,
        ).fit(X, y)  # fmt: skip
        model.set_params(loss=loss).fit(X, y)
        np.testing.assert_allclose(model.objective_, peer.objective_, rtol=1e-6)


def test_the_free_intercept_is_that_of_svc():
    X, y = make_data("binary")
    X = X + 3.0
    model = PragamClassifier(C=0.1, tol=1e-7, max_iter=50_000).fit(X, y)
    peer = SVC(kernel="linear", C=0.1, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        model.objective_, linear_objective(peer, X, y, C=0.1, free=True), rtol=1e-6
    )
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=2e-3)
    scaled = PragamClassifier(
        C=0.1, solver_options={"intercept_scaling": 7.0}, tol=1e-7, max_iter=50_000
    )
    np.testing.assert_array_equal(scaled.fit(X, y).intercept_, model.intercept_)
    # One that is regularized costs something, wherever the features are.
    assert model.objective_ <= best("binary").objective_ + model.tol


@pytest.mark.parametrize("scale", [0.0, 1e-160, 1e-9])
@pytest.mark.parametrize("C", [1e-12, 1.0])
def test_without_features_to_speak_of_the_smaller_class_is_lost(scale, C):
    X = scale * new_rng(0).standard_normal((9, 2))
    model = PragamClassifier(C=C).fit(X, [0] * 6 + [1] * 3)
    assert model.objective_ == pytest.approx(2 / 3, rel=1e-12)
    assert model.dual_objective_ == pytest.approx(2 / 3, rel=1e-12)
    assert model.predict(X).tolist() == [0] * 9


@pytest.mark.parametrize(
    "params, kind, solver",
    [
        ({}, "binary", "dual-hybrid"),
        ({}, "ranking", "hybrid"),
        ({"loss": "slack_hinge"}, "multiclass", "hybrid"),
        ({"loss": "squared_hinge"}, "multiclass", "newton"),
        ({"loss": "logistic", "penalty": "l1"}, "binary", "newton"),
        ({"solver": "hybrid"}, "binary", "hybrid"),
    ],
)
def test_the_solver_that_auto_stands_for_is_known(params, kind, solver):
    model = placed(SubLBFGSClassifier)(C=0.1, tol=0.1, **params).fit(*make_data(kind))
    assert model.solver_ == solver


@pytest.mark.filterwarnings("ignore:BMRM.*:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSClassifier(solver="sublbfgs"),
        SubLBFGSClassifier(solver="subbfgs"),
        BMRMClassifier(solver_options={"subproblem": "line"}),
    ],
    ids=repr,
)
@for_each_kind
def test_quasi_newton_and_one_dimensional_bundle_steps_come_near(model, kind):
    model = clone(model).set_params(C=0.1, tol=0.01).fit(*make_data(kind))
    assert model.objective_ <= best(kind).objective_ + 0.01


QUASI_NEWTON = SubLBFGSClassifier(solver="sublbfgs", max_iter=30, tol=0.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "option"),
    [
        (QUASI_NEWTON, {"line_search": "wolfe"}),
        (QUASI_NEWTON, {"solver": "subbfgs"}),
        (QUASI_NEWTON, {"buffer": 1}),
        (BMRMClassifier(), {"line_search": False}),
        (BMRMClassifier(), {"subproblem": "line"}),
        (BMRMClassifier("multiclass"), {"formulation": "n-slack"}),
    ],
    ids=repr,
)
def test_options_of_steps_reach_them(model, option):
    X, y = make_data("multiclass")
    plain, other = (set_placed(clone(model), C=0.1, **o).fit(X, y) for o in ({}, option))
    # Either may need as many iterations, but not the same ones.
    assert not np.array_equal(plain.coef_, other.coef_)


# Several labels.


@for_each_class
def test_labels_above_the_threshold_are_predicted(make):
    X, y = make_data("ranking", n=200)
    model = make(tol=1e-4).fit(X, y)
    # Half of the pairs are wrong by chance.
    assert label_ranking_loss(y, model.decision_function(X)) < 0.3
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(
        model.decision_function(X), scores - model.threshold_, atol=1e-12
    )
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, scores > model.threshold_)
    assert predicted.shape == y.shape and set(np.unique(predicted)) == {0, 1}
    wrong = (predicted != y).mean()
    assert wrong < min(y.mean(), 1.0 - y.mean())
    others = [((scores > t) != y).mean() for t in np.linspace(-3, 3, 101)]
    assert wrong <= min(others)


def test_the_threshold_leaves_the_fewest_wrong_labels_in_the_widest_gap():
    for seed in range(20):
        rng = new_rng(seed)
        m = rng.integers(1, 12)
        scores = rng.integers(-2, 3, m) / 2.0
        present, weights = rng.random(m) < 0.5, rng.integers(0, 3, m) * 1.0
        weights[0] = 1.0
        found = best_threshold(scores, present, weights)
        wrong = [
            weights @ ((scores > t) != present) for t in (found, *np.linspace(-2, 2, 33))
        ]
        assert wrong[0] == min(wrong)
    scores, present = np.array([9.0, 0.0, 4.0, 1.0]), np.array([1, 0, 0, 1]) == 1
    assert best_threshold(scores, present, np.ones(4)) == 6.5
    # The middle of these is rounded to the upper one.
    low = np.nextafter(1.0, 2.0)
    high = np.nextafter(low, 2.0)
    found = best_threshold(np.array([high, low]), np.array([True, False]), np.ones(2))
    assert low <= found < high


def test_all_labels_or_none_are_no_ranking():
    X = np.eye(4)
    for y in (np.zeros((4, 2), dtype=int), np.ones((4, 2), dtype=int)):
        model = SubLBFGSClassifier().fit(X, y)
        assert model.objective_ == 0.0
        np.testing.assert_array_equal(model.predict(X), y)


# Structures.


def test_pragam_reads_sequences_as_chains():
    X, y = make_chains(15, n_features=4, n_classes=3, random_state=new_seed(0))
    read, named = (
        PragamClassifier(structure=structure, C=0.1, tol=0.01).fit(X, y)
        for structure in ("auto", ChainStructure())
    )
    np.testing.assert_array_equal(read.coef_, named.coef_)
    assert isinstance(read.structure_, ChainStructure)
    assert not hasattr(read, "intercept_")
    assert read.coef_.shape == (read.structure_.n_weights_,)
    with pytest.warns(ConvergenceWarning, match="Pragam stopped at max_iter=2"):
        cut = PragamClassifier(C=0.1, max_iter=2).fit(X, y)
    assert cut.dual_gap_ > 0.001
    np.testing.assert_array_equal(cut.history_["n_iter"], [0, 1, 2])
    assert (cut.history_["n_oracle_calls"] % len(X) == 0).all()


@pytest.mark.parametrize(
    "structure", [MulticlassStructure(), MultilabelStructure(), GraphStructure()], ids=str
)
def test_pragam_names_the_structures_that_have_marginals(structure):
    X, y = make_data("multiclass")
    if isinstance(structure, MultilabelStructure):
        y = np.eye(3, dtype=int)[np.arange(len(X)) % 3]
    if isinstance(structure, GraphStructure):
        X, y = [(x[np.newaxis], np.empty((0, 2), dtype=int)) for x in X], y[:, np.newaxis]
    model = PragamClassifier(structure=structure)
    with pytest.raises(TypeError, match="Use ChainStructure, TreeStructure"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


# Warm starts.

L1 = SubLBFGSClassifier("logistic", penalty="l1")
SQUARED = SubLBFGSClassifier("squared_hinge", C=0.1)
WARM = [
    *product([SubLBFGSClassifier(C=0.1, solver=own)
              for own in ("auto", "hybrid", "sublbfgs")], KINDS),
    *product([BMRMClassifier(C=0.1)], KINDS),
    *product([SQUARED, SubLBFGSClassifier("squared_hinge", penalty="l1")], KINDS[:2]),
    (L1, "binary"), (SubLBFGSClassifier(penalty="l1"), "binary"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:subBFGS stopped at max_iter")
@pytest.mark.parametrize(("model", "kind"), WARM, ids=repr)
def test_a_warm_start_begins_where_the_last_fit_ended(model, kind):
    X, y = make_data(kind)
    model = set_placed(clone(model), warm_start=True, intercept_scaling=3.0).fit(X, y)
    first, coef = model.objective_, model.coef_
    # So that a cold start could be told from a warm one.
    assert model.history_["objective"][0] > (1.0 + 1e-9) * first
    model.set_params(tol=model.tol / 2).fit(X, y)
    np.testing.assert_allclose(model.history_["objective"][0], first, rtol=1e-12)
    assert model.objective_ <= (1.0 + 1e-12) * first
    assert model.dual_gap_ <= model.tol or model.n_iter_ == model.max_iter
    assert model.coef_ is not coef


@pytest.mark.parametrize("make", [SubLBFGSClassifier, BMRMClassifier])
def test_a_warm_start_from_other_classes_or_sequences_is_a_cold_one(make):
    chains = make_chains(10, n_features=5, n_classes=2, random_state=new_seed(0))
    models = [make(C=0.1, warm_start=True).fit(*make_data("binary"))]
    if make is BMRMClassifier:
        for structure in ("auto", ChainStructure(transition=False)):
            models.append(make(structure, C=0.1).fit(*chains))
    for model in models:
        X, y = make_data("multiclass")
        params = {"structure": "auto"} if make is BMRMClassifier else {}
        model.set_params(warm_start=True, **params)
        with pytest.warns(UserWarning, match="starting anew") as seen:
            model.fit(X, y)
        assert seen[0].filename == __file__
        np.testing.assert_array_equal(model.coef_, make(C=0.1).fit(X, y).coef_)


@pytest.mark.parametrize("make", [SubLBFGSClassifier, BMRMClassifier])
@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b[:, np.newaxis], lambda b: b * np.nan]
)
def test_a_warm_start_from_damaged_intercepts_is_refused(make, change):
    X, y = make_data("multiclass")
    model = make(warm_start=True).fit(X, y)
    model.intercept_ = change(model.intercept_)
    with pytest.raises(ValueError, match="^intercept_ must"):
        model.fit(X, y)


# Misuse.

BINARY_COSTS = COSTS[:2, :2]


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (SubLBFGSClassifier(solver="dual-hybrid"), "ranking",
         "not support several labels per example. Use solver='hybrid'"),
        (SubLBFGSClassifier("slack_hinge", solver="dual-hybrid"), "multiclass",
         "not support loss='slack_hinge'"),
        (L1, "multiclass", "Only binary classification"),
        (L1, "ranking", "needs one label per example"),
        (L1, "chain", "needs one row of X per example"),
        (SubLBFGSClassifier(), "chain", "needs one row of X per example"),
        (PragamClassifier(loss="slack_hinge"), "ranking", "one label per example"),
        (PragamClassifier(loss="slack_hinge"), "chain", "not for sequences"),
        (PragamClassifier(structure=ChainStructure(), label_costs=COSTS), "chain",
         "not for ChainStructure: a structure has its own loss"),
        (BMRMClassifier(solver_options={"formulation": "n-slack"}), "binary",
         "needs a structure"),
        *((make(label_costs=COSTS), kind, "label_costs must have shape")
          for make in CLASSES for kind in ("binary", "ranking")),
        *((make(loss="slack_hinge", label_costs=BINARY_COSTS), "binary",
           "use class_weight") for make in CLASSES),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(model, kind, message):
    if kind == "chain":
        X, y = make_chains(10, n_features=4, n_classes=3, random_state=new_seed(0))
    else:
        X, y = make_data(kind)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


@for_each_class
def test_weights_that_are_none_are_refused(make):
    X, y = make_data("binary")
    with pytest.raises(ValueError, match="(?i)weight.*zero"):
        make().fit(X, y, sample_weight=np.zeros(len(y)))
    for weight in (-1.0, np.nan):
        words = f"class_weight .* got {weight} for class 'a'"
        with pytest.raises(ValueError, match=words):
            make(class_weight={"a": weight, "b": weight}).fit(X, y)


# The ends of the ranges.


@for_each_kind
@for_each_class
def test_an_example_of_tiny_weight_is_as_good_as_none(make, kind):
    X, y = make_data(kind)
    s = np.ones(len(y))
    # Of all classes there are enough others.
    s[:3] = 1e-170
    without = make(C=0.1, tol=1e-6).fit(X[3:], y[3:])
    model = clone(without).fit(X, y, sample_weight=s)
    assert model.dual_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(without.objective_, abs=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@for_each_kind
@for_each_class
def test_regularization_of_any_strength_leaves_a_certificate(make, kind):
    X, y = make_data(kind)
    for C, scale in ((1e-8, 1.0), (1e8, 1.0), (1.0, 1e-8), (1.0, 1e8)):
        model = make(C=C, max_iter=30).fit(scale * X, y)
        assert np.isfinite(model.coef_).all()
        history = model.history_
        assert (history["dual_gap"] >= -1e-12 * (1.0 + history["objective"])).all()


# One of each solver, with its options.
SOLVERS = {
    **{name: make(tol=1e-3) for name, make in Accurate.items()},
    "sublbfgs": SubLBFGSClassifier(solver="sublbfgs"),
    "subbfgs": SubLBFGSClassifier(solver="subbfgs"),
    "line": BMRMClassifier(solver_options={"subproblem": "line"}),
    "slack": PragamClassifier(loss="slack_hinge"),
    "newton": SubLBFGSClassifier("squared_hinge"),
    "l1": SubLBFGSClassifier("squared_hinge", penalty="l1"),
    "l1 hinge": SubLBFGSClassifier(penalty="l1"),
    "owlqn": SubLBFGSClassifier("logistic", penalty="l1", solver="owlqn"),
    "owlqn*": SubLBFGSClassifier("logistic", penalty="l1", solver="owlqn*"),
}
for_each_solver = pytest.mark.parametrize("name", SOLVERS)


@for_each_solver
def test_features_whose_squares_overflow_or_vanish(name):
    """They are refused, and leave the intercept."""
    (X, y), model = make_data("binary"), clone(SOLVERS[name])
    for scale, layout in ((-1e150, np.asarray), (1e300, sparse.csr_array)):
        with pytest.raises(ValueError, match="X has features as large as .* Scale them"):
            clone(model).fit(layout(scale * X), y)
    X, y = X[:50], np.repeat(["a", "b"], [20, 30])
    flat = clone(model).set_params(tol=1e-6).fit(np.zeros_like(X), y)
    for scale in (1e-300, 1e-160):
        model.set_params(tol=1e-6).fit(scale * X, y)
        assert model.objective_ == pytest.approx(flat.objective_, abs=2e-6)
        assert -1e-14 <= model.dual_gap_ <= 1e-6
        assert (model.predict(X) == "b").all()


# With an L1 penalty no square of the weights is part of the problem.
@pytest.mark.parametrize(
    "model",
    [m for m in SOLVERS.values() if getattr(m, "penalty", "l2") == "l2"],
    ids=repr,
)
def test_a_c_whose_weights_overflow_is_refused(model):
    X, y = make_data("binary")
    for C, scale in ((1e160, 1.0), (1e300, 1.0), (1e308, 1.0), (1e40, 1e120)):
        with pytest.raises(
            ValueError, match=r"C=1e\+\d+ is too large for features as lar"
        ):
            clone(model).set_params(C=C).fit(scale * X, y)
