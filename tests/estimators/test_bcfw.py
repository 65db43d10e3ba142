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
    for_each_estimator,
    however_near,
    make_problem,
)
from _mixtures import no_complaint_of_convergence
from _seeds import new_rng
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.loop import HISTORY_KEYS
from sklearn_structsvm.structures import MulticlassStructure

SHAPES = {
    "binary": (1, 4),
    "multiclass": (3, 4),
    "multilabel": (3, 5),
    "multilabel-csr": (3, 5),
    # Emissions, three biases, transitions.
    "chain": (5 * 3 + 3 * 3 + 3 * 3,),
    "chain-csr": (5 * 3 + 3 * 3 + 3 * 3,),
    "custom": (3 * 4,),
}
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ["block", "batch"])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_history_runs_from_the_start_to_what_the_attributes_say(
    kind, algorithm, average
):
    model = make_problem(kind).fitted(
        algorithm=algorithm,
        step="fw",
        acceleration=False,
        average=average,
        max_iter=25,
        tol=1e-6,
    )
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


@pytest.mark.parametrize("kind", [*FLAT, "chain", "custom"])
@pytest.mark.parametrize(
    "options",
    [{}, {"average": True, "tol": 0.1}, {"cache": True},
     {"C": 0.01, "sampling": "permuted"}, {"coef_bounds": (-0.05, 0.1)}],
    ids=repr,
)  # fmt: skip
def test_the_objective_is_that_of_the_returned_coefficients(kind, options):
    problem = make_problem(kind, n=12)
    weights = new_rng(0).uniform(0.5, 2.0, size=problem.n)
    model = problem.estimator(**options).fit(problem.X, problem.y, weights)
    lam = 1.0 / (model.C * weights.sum())
    squares = (model.coef_**2).sum() + (
        getattr(model, "intercept_", np.zeros(1)) ** 2
    ).sum()
    losses = hinges(problem, model, problem.X, problem.y)
    primal = 0.5 * lam * squares + np.average(losses, weights=weights)
    assert abs(model.objective_ - primal) <= 1e-12 * max(1.0, primal)


@however_near
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_dual_gap_bounds_the_distance_to_the_optimum(kind, C):
    problem = make_problem(kind)
    best = problem.fitted(C=C, **ACCURATE)
    for tol in (0.1, 1e-3):
        model = problem.fitted(C=C, tol=tol)
        assert model.dual_gap_ <= tol
        assert model.objective_ - best.objective_ <= model.dual_gap_ + 1e-13
        assert model.dual_objective_ <= best.objective_ + 1e-13


@pytest.mark.parametrize("kind", ["binary", "chain"])
@pytest.mark.parametrize(
    ("limit", "value"), [("max_iter", 1), ("max_iter", 13), ("max_time", 1e-9)]
)
def test_a_fit_that_is_cut_short_warns_and_certifies_how_far_it_is(kind, limit, value):
    problem = make_problem(kind)
    model = problem.estimator(tol=1e-12, step="fw", **{limit: value})
    with pytest.warns(ConvergenceWarning, match=f"stopped at {limit}={value}") as record:
        model.fit(problem.X, problem.y)
    assert len(record) == 1
    # It points to the line that called fit.
    assert record[0].filename == __file__
    assert model.n_iter_ == (1 if limit == "max_time" else value)
    assert model.dual_gap_ > 1e-12
    with no_complaint_of_convergence():
        best = problem.fitted(**ACCURATE)
    assert best.dual_objective_ - 1e-13 <= model.objective_
    assert model.dual_objective_ <= best.objective_ + 1e-13


@pytest.mark.parametrize("kind", KINDS)
def test_averaging_does_not_keep_a_fit_from_its_tolerance(kind):
    assert make_problem(kind, n=20).fitted(average=True).dual_gap_ <= 1e-3


def test_the_last_check_of_a_fit_counts_even_where_passes_have_run_out():
    problem = make_problem("binary")
    options = {"sampling": "permuted", "tol": 1e-2}
    passes = problem.fitted(gap_check_interval=1, **options).n_iter_
    # No warning, though no check was due before the last pass.
    model = problem.fitted(gap_check_interval=10**6, max_iter=passes, **options)
    assert model.dual_gap_ <= 1e-2


@pytest.mark.parametrize(
    ("kind", "method"),
    [*product([*FLAT, "custom"], ["predict_k_best", "max_marginals"])]
    + [(kind, "decision_function") for kind in ("chain", "custom")],
)
def test_methods_are_of_rows_or_of_nodes(kind, method):
    problem = make_problem(kind)
    for model in (problem.estimator(), problem.fitted()):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=method):
            getattr(model, method)(problem.X)


def test_auto_offers_the_methods_of_what_it_has_read():
    chains, classes = make_problem("chain"), make_problem("multiclass")
    flat = BCFWClassifier().fit(classes.X, classes.y)
    structured = BCFWClassifier(tol=0.1).fit(chains.X, chains.y)
    for name, of_chains in [
        ("decision_function", False),
        ("predict_k_best", True),
        ("max_marginals", True),
    ]:
        assert hasattr(structured, name) == of_chains
        assert hasattr(flat, name) != of_chains


@pytest.mark.parametrize("kind", FLAT)
def test_the_decision_function_decides_the_prediction(kind):
    problem = make_problem(kind)
    model = problem.fitted()
    scores = model.decision_function(problem.X)
    expected = problem.X @ model.coef_.T + model.intercept_
    if kind == "binary":
        expected = expected[:, 0]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    decided = scores.argmax(axis=1) if kind == "multiclass" else scores > 0
    np.testing.assert_array_equal(model.predict(problem.X), decided)


def test_two_classes_in_a_multiclass_structure_have_one_score():
    problem = make_problem("binary")
    model = BCFWClassifier(MulticlassStructure()).fit(problem.X, problem.y)
    scores = model.decision_function(problem.X)
    assert scores.shape == (problem.n,) and model.coef_.shape == (2, 4)
    np.testing.assert_array_equal(model.predict(problem.X), scores > 0)


@pytest.mark.parametrize("kind", CHAINS)
def test_the_best_of_the_k_best_labelings_is_the_prediction(kind):
    problem = make_problem(kind)
    model = problem.fitted()
    labelings, scores = model.predict_k_best(problem.X, k=4)
    predicted = model.predict(problem.X)
    for items in (labelings, scores):
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


@pytest.mark.parametrize("kind", CHAINS)
def test_max_marginals_peak_at_the_prediction(kind):
    problem = make_problem(kind)
    model = problem.fitted()
    marginals = model.max_marginals(problem.X)
    _, scores = model.predict_k_best(problem.X, k=1)
    assert marginals.shape == (problem.n,) and marginals.dtype == object
    for table, labels, best in zip(
        marginals, model.predict(problem.X), scores, strict=True
    ):
        assert table.shape == (len(labels), 3)
        np.testing.assert_allclose(table.max(axis=1), best[0], rtol=1e-12, atol=1e-12)
        of_prediction = table[np.arange(len(labels)), labels]
        np.testing.assert_allclose(of_prediction, best[0], rtol=1e-12, atol=1e-12)


def test_predictions_of_chains_are_a_flat_object_array_even_at_equal_lengths():
    problem = make_problem("chain")
    model = problem.fitted()
    X = [x[:1] for x in problem.X]
    predicted = model.predict(X)
    assert predicted.shape == (problem.n,) and predicted.dtype == object
    assert {labels.shape for labels in predicted} == {(1,)}


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", ["gap", "uniform", "permuted"])
def test_random_state_reproduces_a_fit_bit_for_bit(kind, sampling):
    problem = make_problem(kind)
    options = {"sampling": sampling, "step": "auto", "cache": "auto", "tol": 0.01}
    first = problem.fitted(random_state=3, **options)
    assert_same_fit(first, problem.fitted(random_state=3, **options))
    other = problem.fitted(random_state=4, **options)
    assert not np.array_equal(first.coef_, other.coef_)


@however_near
@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_c_and_the_weights_of_examples_multiply(make_problem, kind):
    problem = make_problem(kind)
    weights = np.full(problem.n, 3.0)
    first = problem.estimator(C=0.5, **ACCURATE).fit(problem.X, problem.y, weights)
    second = problem.fitted(C=1.5, **ACCURATE)
    assert_same_optimum(first, second, 1.5 * problem.n)


@pytest.mark.parametrize("kind", FLAT)
def test_without_an_intercept_there_is_none(kind):
    model = make_problem(kind).fitted(fit_intercept=False)
    np.testing.assert_array_equal(model.intercept_, np.zeros(len(model.coef_)))


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


def test_what_auto_settled_for_is_told():
    python = make_problem("custom").fitted(step="auto", cache="auto")
    assert (python.step_, python.cache_) == ("corrective", False)
    named = make_problem("binary").fitted(step="away", cache=True)
    assert (named.step_, named.cache_) == ("away", True)
