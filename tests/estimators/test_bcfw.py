"""BCFWClassifier: what a fit leaves, what it certifies, and what it can be asked."""

from itertools import product

import numpy as np
import pytest
from _estimators import (
    ACCURATE,
    FLAT,
    KINDS,
    assert_same_fit,
    assert_same_optimum,
    however_near,
    linear_objective,
    make_problem,
)
from _mixtures import no_complaint_of_convergence
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier, BCFWClassifierCV, bcfw_path
from sklearn_structsvm.solvers.loop import HISTORY_KEYS
from sklearn_structsvm.structures import MulticlassStructure

SHAPES = {
    "binary": (1, 4), "multiclass": (3, 4), "multilabel": (3, 5),
    "multilabel-csr": (3, 5),
    # Emissions, three biases, transitions.
    "chain": (5 * 3 + 3 * 3 + 3 * 3,), "chain-csr": (5 * 3 + 3 * 3 + 3 * 3,),
    "custom": (3 * 4,),
}  # fmt: skip
CHAINS = ("chain", "chain-csr")


@pytest.mark.parametrize("kind", KINDS)
def test_fitted_attributes_have_the_shapes_of_their_kind(kind):
    problem = make_problem(kind)
    model = problem.fitted()
    assert model.coef_.shape == SHAPES[kind]
    assert model.coef_.dtype == np.float64
    assert hasattr(model, "intercept_") == problem.flat
    if problem.flat:
        assert model.intercept_.shape == SHAPES[kind][:1]
    assert hasattr(model, "classes_") == (kind != "custom")
    if kind != "custom":
        np.testing.assert_array_equal(
            model.classes_, np.arange(2 if kind == "binary" else 3)
        )
    assert type(model.structure_) is type(problem.structure)
    assert model.structure_ is not problem.structure
    assert type(model.n_iter_) is int and model.n_iter_ > 0
    assert model.n_oracle_calls_ >= problem.n
    assert model.step_ in ("fw", "pairwise") and model.cache_ in (True, False)
    for name in ("objective_", "dual_objective_", "dual_gap_"):
        assert isinstance(getattr(model, name), float)


@pytest.mark.parametrize(
    ("kind", "algorithm", "average"),
    [*product(KINDS, ["block"], [False]), *product(KINDS[1:3], ["batch"], [False, True]),
     *product(["chain", "custom"], ["block", "batch"], [True])],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_history_runs_from_the_start_to_what_the_attributes_say(
    kind, algorithm, average
):
    options = {"step": "fw", "acceleration": False, "max_iter": 25, "tol": 1e-6}
    model = make_problem(kind).fitted(algorithm=algorithm, average=average, **options)
    history = model.history_
    assert tuple(history) == (*HISTORY_KEYS, "method")
    assert history["method"][0] == "start" and set(history["method"][1:]) == {"blocks"}
    assert {len(column) for column in history.values()} == {len(history["n_iter"])}
    assert history["n_iter"][0] == 0 and history["objective"][0] == history["dual_gap"][0]
    assert (np.diff(history["n_iter"]) > 0).all()
    assert (np.diff(history["n_oracle_calls"]) > 0).all()
    assert (np.diff(history["seconds"]) >= 0).all() and history["seconds"][0] >= 0
    # The duality gap is what lies between the two objectives, and never negative.
    np.testing.assert_allclose(
        history["objective"] - history["dual_objective"], history["dual_gap"], atol=1e-14
    )
    assert (history["dual_gap"] > -1e-14).all()
    if not average:
        assert (np.diff(history["dual_objective"]) >= -1e-14).all()
    for key in ("n_iter", "n_oracle_calls", "objective", "dual_objective", "dual_gap"):
        assert history[key][-1] == getattr(model, f"{key}_")


def hinges(problem, model, X, y):
    """H_i(w), every labeling tried."""
    if problem.kind in FLAT:
        scores = X @ model.coef_.T + model.intercept_
    if problem.kind == "binary":
        return np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * scores[:, 0])
    if problem.kind == "multiclass":
        rows = np.arange(len(y))
        costs = 1.0 - np.eye(3)[y]
        return (costs + scores).max(axis=1) - scores[rows, y]
    if problem.kind == "multilabel":
        return np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * scores).sum(axis=1)
    structure, values = model.structure_, []
    for x, truth in zip(X, y, strict=True):
        labelings = range(3)
        if problem.kind in CHAINS:
            labelings = map(np.array, product(range(3), repeat=len(truth)))
        true_score = structure.joint_feature(x, truth) @ model.coef_
        values.append(
            max(
                structure.loss(truth, c) + structure.joint_feature(x, c) @ model.coef_
                for c in labelings
            )
            - true_score
        )
    return np.array(values)


WAYS = [
    {}, {"average": True, "tol": 0.1}, {"cache": True},
    {"C": 0.01, "sampling": "permuted"}, {"coef_bounds": (-0.05, 0.1)},
]  # fmt: skip


@however_near
@pytest.mark.parametrize(
    ("kind", "options"),
    [*product([*FLAT, "chain", "custom"], WAYS[:1]),
     *product(["chain", "custom"], WAYS[1:]), ("binary", WAYS[1]),
     ("multiclass", WAYS[2]), ("multilabel", WAYS[4])],
)  # fmt: skip
def test_the_objective_is_that_of_the_coefficients_and_the_gap_bounds_what_is_left(
    kind, options
):
    problem = make_problem(kind, n=12)
    weights = new_rng(0).uniform(0.5, 2.0, size=problem.n)
    model = problem.estimator(**options).fit(problem.X, problem.y, weights)
    lam = 1.0 / (model.C * weights.sum())
    squares = np.square(model.coef_).sum()
    squares += np.square(getattr(model, "intercept_", 0.0)).sum()
    losses = hinges(problem, model, problem.X, problem.y)
    primal = 0.5 * lam * squares + np.average(losses, weights=weights)
    assert abs(model.objective_ - primal) <= 1e-12 * max(1.0, primal)
    best = problem.estimator(**{**options, **ACCURATE, "average": False, "cache": False})
    best.fit(problem.X, problem.y, weights)
    assert model.dual_gap_ <= model.tol
    assert model.objective_ - best.objective_ <= model.dual_gap_ + 1e-13
    assert model.dual_objective_ <= best.objective_ + 1e-13


@pytest.mark.parametrize(
    ("kind", "step"), [("binary", "fw"), ("chain", "fw"), ("multiclass", "exact")]
)
@pytest.mark.parametrize(
    ("limit", "value"), [("max_iter", 1), ("max_iter", 13), ("max_time", 1e-9)]
)
def test_a_fit_that_is_cut_short_warns_and_certifies_how_far_it_is(
    kind, step, limit, value
):
    problem = make_problem(kind)
    model = problem.estimator(tol=1e-14, step=step, **{limit: value})
    with pytest.warns(ConvergenceWarning, match=f"stopped at {limit}={value}") as record:
        model.fit(problem.X, problem.y)
    assert len(record) == 1
    # It points to the line that called fit.
    assert record[0].filename == __file__
    assert model.n_iter_ == (1 if limit == "max_time" else value)
    assert model.dual_gap_ > 1e-14
    with no_complaint_of_convergence():
        best = problem.fitted(**ACCURATE)
    assert best.dual_objective_ - 1e-13 <= model.objective_
    assert model.dual_objective_ <= best.objective_ + 1e-13


def test_the_last_check_of_a_fit_counts_even_where_passes_have_run_out():
    problem = make_problem("binary")
    options = {"sampling": "permuted", "tol": 1e-2}
    passes = problem.fitted(gap_check_interval=1, **options).n_iter_
    # No warning, though no check was due before the last pass.
    model = problem.fitted(gap_check_interval=10**6, max_iter=passes, **options)
    assert model.dual_gap_ <= 1e-2


@pytest.mark.parametrize("kind", [*FLAT, "chain", "custom"])
def test_methods_are_of_rows_or_of_nodes(kind):
    problem = make_problem(kind)
    of_rows, of_nodes = ["decision_function"], ["predict_k_best", "max_marginals"]
    for model in (problem.estimator(), problem.fitted()):
        for method in of_rows + of_nodes:
            has = kind == "chain" if method in of_nodes else problem.flat
            assert hasattr(model, method) == has
            if not has:
                with pytest.raises(AttributeError, match=method):
                    getattr(model, method)(problem.X)
    if kind != "custom":
        read = BCFWClassifier(tol=0.1).fit(problem.X, problem.y)
        for method in of_rows + of_nodes:
            assert hasattr(read, method) == hasattr(model, method)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [*FLAT, "binary as multiclass"])
def test_the_decision_function_decides_the_prediction(kind, fit_intercept):
    name, _, other = kind.partition(" as ")
    problem = make_problem(name)
    structure = {"structure": MulticlassStructure()} if other else {}
    model = problem.fitted(fit_intercept=fit_intercept, **structure)
    assert fit_intercept or not model.intercept_.any()
    scores = model.decision_function(problem.X)
    expected = problem.X @ model.coef_.T + model.intercept_
    if name == "binary":
        expected = np.diff(expected)[:, 0] if other else expected[:, 0]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    decided = scores.argmax(axis=1) if kind == "multiclass" else scores > 0
    np.testing.assert_array_equal(model.predict(problem.X), decided)


@pytest.mark.parametrize("kind", CHAINS)
def test_the_best_of_the_k_best_labelings_is_the_prediction(kind):
    problem = make_problem(kind)
    model = problem.fitted()
    labelings, scores = model.predict_k_best(problem.X, k=4)
    predicted, marginals = model.predict(problem.X), model.max_marginals(problem.X)
    alike = model.predict([x[:1] for x in problem.X])
    for items in (labelings, scores, marginals, predicted, alike):
        assert items.shape == (problem.n,) and items.dtype == object
    for i in range(problem.n):
        T = len(predicted[i])
        assert labelings[i].shape == (min(4, 3**T), T)
        assert (np.diff(scores[i]) <= 0).all()
        assert len(set(map(tuple, labelings[i]))) == len(labelings[i])
        # The optimum may leave the two best tied, up to rounding.
        equal = labelings[i][scores[i] >= scores[i][0] - 1e-12]
        assert (equal == predicted[i]).all(axis=1).any()
        for labeling, score in zip(labelings[i], scores[i], strict=True):
            phi = model.structure_.joint_feature(problem.X[i], labeling)
            assert abs(score - phi @ model.coef_) <= 1e-12 * max(1.0, abs(score))
        of_prediction = marginals[i][np.arange(T), predicted[i]]
        for best in (marginals[i].max(axis=1), of_prediction):
            np.testing.assert_allclose(best, scores[i][0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_that_of_its_kind(kind):
    problem = make_problem(kind)
    model = problem.fitted(C=0.01)
    predicted = model.predict(problem.X)
    weights = new_rng(0).uniform(size=problem.n)
    right = [
        np.atleast_1d(np.asarray(a) == b)
        for a, b in zip(problem.y, predicted, strict=True)
    ]
    if kind.startswith("multilabel"):
        right = [row.all(keepdims=True) for row in right]
    lengths = np.array([len(row) for row in right])
    counts = np.array([row.sum() for row in right])
    for s in (np.ones(problem.n), weights):
        expected = (s @ counts) / (s @ lengths)
        assert 0 < expected <= 1
        score = model.score(problem.X, problem.y, sample_weight=s)
        assert abs(score - expected) <= 1e-14
    assert model.score(problem.X, problem.y) == pytest.approx(
        counts.sum() / lengths.sum(), abs=1e-14
    )


@pytest.mark.parametrize(
    ("kind", "sampling"),
    [*product(KINDS, ["permuted"]), *product(KINDS[1:5:3], ["gap", "uniform"])],
)
def test_random_state_reproduces_a_fit_bit_for_bit(kind, sampling):
    problem = make_problem(kind)
    options = {"sampling": sampling, "step": "auto", "cache": "auto", "tol": 0.01}
    first = problem.fitted(random_state=3, **options)
    assert_same_fit(first, problem.fitted(random_state=3, **options))
    other = problem.fitted(random_state=4, **options)
    assert not np.array_equal(first.coef_, other.coef_)


@however_near
@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("scaling", [0.1, 10.0])
def test_the_scaling_of_intercepts_is_the_value_of_a_constant_feature(kind, scaling):
    problem = make_problem(kind)
    model = problem.fitted(intercept_scaling=scaling, **ACCURATE)
    X = np.column_stack([problem.X, np.full(problem.n, scaling)])
    other = problem.estimator(fit_intercept=False, **ACCURATE).fit(X, problem.y)
    weights = np.column_stack([model.coef_, model.intercept_ / scaling])
    assert_same_optimum(model, other, problem.n, (weights, other.coef_))


@however_near
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_for_the_coefficients_and_not_for_the_intercept(kind):
    problem = make_problem(kind)
    free = problem.fitted(**ACCURATE)
    lower, upper = np.minimum(free.coef_, 0.0) / 2, np.maximum(free.coef_, 0.0) / 2
    model = problem.fitted(coef_bounds=(lower, upper), tol=1e-6)
    assert (model.coef_ >= lower).all() and (model.coef_ <= upper).all()
    # If it were inside, it would be the optimum without bounds, which they leave out.
    assert ((model.coef_ == lower) | (model.coef_ == upper)).any()
    assert model.objective_ > free.objective_


OF_ROWS = ("binary", "multiclass", "multilabel")


def random_rows(n=300, seed=0):
    return make_classification(
        n, 8, n_informative=6, n_classes=3, flip_y=0.1, random_state=new_seed(seed)
    )


@pytest.mark.parametrize(
    ("n_classes", "C", "fit_intercept"),
    [(2, 0.02, False), (2, 1.0, True), (4, 0.02, True), (4, 1.0, False)],
)
def test_the_objective_is_that_of_liblinear(n_classes, C, fit_intercept):
    X, y = make_classification(
        80, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.2,
        random_state=new_seed(0),
    )  # fmt: skip
    shared = {"C": C, "fit_intercept": fit_intercept, "random_state": 0}
    peer = LinearSVC(
        loss="hinge", multi_class="ovr" if n_classes == 2 else "crammer_singer",
        tol=1e-9, max_iter=10**7, **shared,
    ).fit(X, y)  # fmt: skip
    mine = BCFWClassifier(step="exact", tol=1e-8, max_iter=10**5, **shared).fit(X, y)
    if not fit_intercept:
        peer.intercept_, mine.intercept_ = np.zeros(1), np.zeros(1)
    reached = linear_objective(mine, X, y, C=C)
    assert mine.objective_ == pytest.approx(reached, rel=1e-11)
    assert reached == pytest.approx(linear_objective(peer, X, y, C=C), rel=1e-6)


@pytest.mark.parametrize("kind", [*OF_ROWS, "multilabel-csr", "chain", "custom"])
def test_auto_takes_exact_steps_wherever_it_can(kind):
    problem = make_problem(kind)
    auto = {"step": "auto", "tol": 0.1}
    if not problem.flat:
        name = type(problem.structure).__name__
        words = f"step='exact' requires structure=.*structure={name}"
        with pytest.raises(ValueError, match=words):
            problem.fitted(step="exact")
        assert problem.fitted(cache=False, **auto).step_ in ("fw", "corrective")
        return
    assert problem.fitted(step="auto", cache="auto").step_ == "exact"
    ways = [{"cache": True}, {"algorithm": "batch"}, {"average": True}]
    ways += [{"coef_bounds": (-1.0, 1.0)}]
    if kind == "multiclass":

        class Own(MulticlassStructure):
            """Someone's own, whose oracle may be anything."""

        ways += [{"structure": Own()}]
    for options in ways:
        assert problem.fitted(**auto | options).step_ in ("fw", "pairwise")


def test_paths_are_made_by_other_steps_and_what_auto_settled_for_is_told():
    problem = make_problem("multiclass", n=30)
    with pytest.raises(ValueError, match="step='exact'.*path"):
        bcfw_path(problem.X, problem.y, step="exact")
    search = BCFWClassifierCV(Cs=[0.01, 0.1], cv=2, random_state=0)
    with pytest.raises(ValueError, match="step='exact'.*path"):
        clone(search).set_params(step="exact").fit(problem.X, problem.y)
    assert search.fit(problem.X, problem.y).step_ == "exact"
    python = make_problem("custom").fitted(step="auto", cache="auto")
    assert (python.step_, python.cache_) == ("corrective", False)
    named = make_problem("binary").fitted(step="away", cache=True)
    assert (named.step_, named.cache_) == ("away", True)


@pytest.mark.parametrize("kind", OF_ROWS)
@pytest.mark.parametrize("first", ["fw", "pairwise"])
def test_exact_and_other_steps_start_from_the_dual_point_of_one_another(kind, first):
    problem = make_problem(kind)
    model = problem.fitted(step=first, tol=1e-3, warm_start=True)
    reached = model.dual_objective_
    model.set_params(step="exact", tol=1e-6).fit(problem.X, problem.y)
    assert model.step_ == "exact"
    assert model.history_["dual_objective"][0] == pytest.approx(reached, abs=1e-12)
    reached = model.dual_objective_
    model.set_params(step="fw", solver_options__cache=False, tol=1e-2)
    assert model.fit(problem.X, problem.y).n_iter_ == 0
    assert model.dual_objective_ == pytest.approx(reached, abs=1e-12)
    with pytest.warns(UserWarning, match="the step is not that .* no active sets"):
        model.set_params(step="pairwise", tol=0.1).fit(problem.X, problem.y)
    fresh = problem.fitted(step="pairwise", cache=False, tol=0.1)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)


def test_an_interrupted_fit_is_certified_where_it_was_cut(monkeypatch):
    X, y = random_rows()
    model = BCFWClassifier(C=0.01, warm_start=True, tol=1e-6, random_state=0)
    optimal = clone(model).fit(X, y)

    def interrupt(n_iter, row, done):
        if n_iter == 5:
            raise KeyboardInterrupt

    module = "sklearn_structsvm.estimators.base"
    monkeypatch.setattr(f"{module}.PassReporter.__call__", lambda _, *a: interrupt(*a))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.n_iter_ == 5 and model.dual_gap_ > 1e-6
    assert model.objective_ == pytest.approx(
        linear_objective(model, X, y, C=0.01), rel=1e-12
    )
    assert 0.0 <= model.objective_ - optimal.objective_ <= model.dual_gap_
    model.fit(X, y)
    assert abs(model.objective_ - optimal.objective_) <= 1e-6
