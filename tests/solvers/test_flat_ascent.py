"""Exact steps on flat structures: the optimum, its certificate, and what a user sees."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from _estimators import make_problem
from _problems import LAYOUTS, Problem, optimum, random_problem
from _twins import list_multiclass, messy_csr, random_costs
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier, BCFWClassifierCV, bcfw_path
from sklearn_structsvm._flat_problem import make_ascent
from sklearn_structsvm.solvers.bcfw import run_bcfw
from sklearn_structsvm.solvers.flat_ascent import certify, run_flat_ascent
from sklearn_structsvm.structures import MulticlassStructure

KINDS = ("binary", "multiclass", "multilabel")
SAMPLINGS = ("gap", "uniform", "permuted")
LAM = 0.05


def start(problem, lam=LAM, p=None):
    p = problem.listed.uniform if p is None else p
    bound = SimpleNamespace(
        structure=problem.structure, X=problem.X, y=problem.y, weights=p
    )
    return make_ascent(bound, lam)


def explicit_alpha(problem, ascent):
    """The dual variables of all labelings, checked to be distributions."""
    listed, alpha = problem.listed, []
    for i, nu in enumerate(ascent.get_state()["blocks"]):
        truth = listed.labelings[i][listed.truth[i]]
        if type(problem.structure) is MulticlassStructure:
            masses = nu + np.eye(len(nu))[truth]
        else:
            # Labels are independent: the mass of a labeling is a product.
            wrong = np.abs(nu)
            signs = np.where(np.atleast_1d(truth), -1.0, 1.0)
            np.testing.assert_array_equal(signs * nu, wrong)
            masses = np.array(
                [
                    np.prod(np.where(np.equal(labeling, truth), 1.0 - wrong, wrong))
                    for labeling in listed.labelings[i]
                ]
            )
        assert masses.min() >= -1e-15
        assert masses.sum() == pytest.approx(1.0, abs=1e-12)
        alpha.append(masses)
    return alpha


def dual(problem, ascent, lam=LAM, p=None):
    return problem.listed.dual(explicit_alpha(problem, ascent), lam, p)


# ----------------------------------------------------------------- the optimum


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lam", [0.003, 0.1, 3.0])
def test_exact_steps_reach_the_optimum_over_all_labelings(kind, layout, sampling, lam):
    problem = random_problem(kind, layout)
    best = optimum(problem, lam)
    ascent = start(problem, lam)
    result = run_flat_ascent(ascent, sampling=sampling, tol=1e-9, max_iter=10**5, rng=0)
    assert result.status == "converged"
    assert abs(result.objective - best) <= 2e-9
    # What is claimed is so: the objective, the dual one and the gap between them.
    listed = problem.listed
    assert result.objective == pytest.approx(
        listed.primal(result.weights, lam), rel=1e-12
    )
    certified = dual(problem, ascent, lam)
    assert result.dual_objective == pytest.approx(certified, abs=1e-12)
    assert result.gap == pytest.approx(result.objective - certified, abs=1e-12)


@pytest.mark.parametrize("intercept", [0.0, 1.5])
@pytest.mark.parametrize("kind", KINDS)
def test_unequal_and_zero_weights_are_those_of_the_examples(kind, intercept):
    problem = random_problem(kind, intercept=intercept)
    p = np.array([0.3, 0.0, 0.1, 0.25, 0.0, 0.2, 0.1, 0.05])
    ascent = start(problem, LAM, p)
    result = run_flat_ascent(ascent, tol=1e-10, max_iter=10**5, rng=0)
    assert abs(result.objective - optimum(problem, LAM, p)) <= 1e-9
    assert not ascent.get_state()["blocks"][p == 0.0].any()
    np.testing.assert_array_equal(ascent.active_blocks, np.flatnonzero(p))


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_leaves_its_example_without_a_gap_and_never_lowers_the_dual(kind):
    problem = random_problem(kind)
    ascent = start(problem)
    rng = np.random.default_rng(0)
    before = dual(problem, ascent)
    for i in rng.integers(problem.n, size=60):
        ascent.run(np.array([i]))
        after = dual(problem, ascent)
        assert after >= before - 1e-15
        before = after
        # Of the block's labelings, those with mass all have the largest value.
        values = problem.listed.values(i, ascent.weights)
        alpha = explicit_alpha(problem, ascent)[i]
        assert alpha @ (values.max() - values) <= 1e-13


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("k", [2, 3, 7, 8, 9, 15, 16, 17, 26, 33])
def test_any_number_of_classes_and_features_is_scored_and_updated_right(k, layout):
    """Vectors of eight, their overlaps and what is left over: each has its own code."""
    for n_features in (1, 2, 5):
        problem = random_multiclass(k, n_features, layout)
        ascent = start(problem, 1e-3)
        for _ in range(4):
            ascent.run(np.random.default_rng(0).permutation(problem.n))
        w = ascent.weights.copy()
        hinge = ascent.hinge(w)
        assert hinge == pytest.approx(problem.listed.hinge(w), rel=1e-12)
        ascent.rebuild_weights()
        np.testing.assert_allclose(ascent.weights, w, rtol=0, atol=1e-11)
        v, _ = problem.listed.dual_point(explicit_alpha(problem, ascent), 1e-3)
        np.testing.assert_allclose(w, v, rtol=0, atol=1e-11)


def random_multiclass(k, n_features, layout, n=40):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, n_features)), np.arange(n) % k
    costs = random_costs(k, rng)
    structure = MulticlassStructure(costs)
    listed = list_multiclass(X, y, k, costs, 1.5)
    X = X if layout == "dense" else messy_csr(X, 0)
    return Problem(structure.fit(X, y, bias=1.5), X, y, listed)


# ---------------------------------------------------------------- who rests


def random_rows(n=300, seed=0):
    return make_classification(
        n, 8, n_informative=6, n_classes=3, flip_y=0.1, random_state=seed
    )


def test_resting_saves_steps_and_changes_nothing_else():
    X, y = random_rows()
    fits = {}
    for sampling in ("gap", "permuted"):
        model = BCFWClassifier(
            C=0.1, step="exact", sampling=sampling, tol=1e-8, max_iter=10**4,
            random_state=0,
        )  # fmt: skip
        fits[sampling] = model.fit(X, y)
    assert abs(fits["gap"].objective_ - fits["permuted"].objective_) <= 1e-8
    assert fits["gap"].n_oracle_calls_ < 0.6 * fits["permuted"].n_oracle_calls_


def test_no_example_rests_for_more_than_31_sweeps():
    problem = random_problem("multiclass", n=40)
    ascent = start(problem, 3.0)
    rng = np.random.default_rng(0)
    last_seen, longest = np.zeros(problem.n, dtype=int), 0
    for sweep in range(1, 200):
        blocks = ascent.draw_sweep(rng).copy()
        assert len(np.unique(blocks)) == len(blocks)
        if len(blocks):
            longest = max(longest, (sweep - last_seen[blocks]).max())
        last_seen[blocks] = sweep
        ascent.run(blocks)
        ascent.end_sweep(blocks)
    assert longest == 32
    assert (last_seen > 200 - 33).all()


def test_a_check_wakes_the_examples_whose_gaps_have_grown():
    problem = random_problem("binary", n=40)
    ascent = start(problem)
    rng = np.random.default_rng(0)
    for _ in range(30):
        blocks = ascent.draw_sweep(rng).copy()
        ascent.run(blocks)
        ascent.end_sweep(blocks)
    assert len(ascent.draw_sweep(rng)) < problem.n
    # With other weights, other examples have gaps.
    ascent.weights[:] = -ascent.weights
    ascent.check_gaps()
    alpha, gaps = explicit_alpha(problem, ascent), []
    for i in range(problem.n):
        values = problem.listed.values(i, ascent.weights)
        gaps.append(alpha[i] @ (values.max() - values))
    violated = np.flatnonzero(np.array(gaps) > 1.0)
    assert len(violated) and set(violated) <= set(ascent.draw_sweep(rng))


# ----------------------------------------------------- what others would find


def objective_of(model, X, y, C):
    """1/2 ||w||² + C Σ hinge over C n, of one row of coef_ or one per class."""
    W, b = model.coef_, np.broadcast_to(model.intercept_, len(model.coef_))
    scores = X @ W.T + b
    if len(W) == 1:
        losses = np.maximum(0.0, 1.0 - (2 * y - 1) * scores[:, 0])
    else:
        wrong = np.arange(len(W)) != y[:, np.newaxis]
        rows = np.arange(len(y))
        losses = (scores + wrong).max(axis=1) - scores[rows, y]
    squares = (W**2).sum() + b @ b
    return squares / (2 * C * len(y)) + losses.mean()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [0.02, 1.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_objective_is_that_of_liblinear(n_classes, C, fit_intercept):
    X, y = make_classification(
        80, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.2,
        random_state=0,
    )  # fmt: skip
    shared = {"C": C, "fit_intercept": fit_intercept, "random_state": 0}
    peer = LinearSVC(
        loss="hinge", multi_class="ovr" if n_classes == 2 else "crammer_singer",
        tol=1e-9, max_iter=10**7, **shared,
    ).fit(X, y)  # fmt: skip
    mine = BCFWClassifier(step="exact", tol=1e-8, max_iter=10**5, **shared).fit(X, y)
    if not fit_intercept:
        peer.intercept_, mine.intercept_ = np.zeros(1), np.zeros(1)
    reached = objective_of(mine, X, y, C)
    assert mine.objective_ == pytest.approx(reached, rel=1e-11)
    assert reached == pytest.approx(objective_of(peer, X, y, C), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_that_of_pairwise_steps(kind):
    problem = random_problem(kind, n=30)
    solver = problem.solver(0.02, step="pairwise")
    best = run_bcfw(solver, tol=1e-9, max_iter=10**5, rng=0)
    result = run_flat_ascent(start(problem, 0.02), tol=1e-9, max_iter=10**5, rng=0)
    assert result.objective == pytest.approx(best.objective, rel=1e-6)
    assert result.n_oracle_calls < best.n_oracle_calls


# ----------------------------------------------------------------- extremes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lam", [1e-10, 1e-6, 1e6, 1e12])
def test_huge_and_tiny_regularization_is_certified(kind, lam):
    problem = random_problem(kind)
    ascent = start(problem, lam)
    duals, listed = [], problem.listed
    for _ in range(20):
        ascent.run(np.arange(problem.n))
        row, weights = certify(ascent)
        primal = listed.primal(weights, lam)
        assert row["objective"] == pytest.approx(primal, rel=1e-9)
        duals.append(dual(problem, ascent, lam))
        scale = 1.0 + abs(primal)
        assert row["dual_objective"] == pytest.approx(duals[-1], abs=1e-9 * scale)
        assert row["dual_gap"] >= -1e-12 * scale
    assert (np.diff(duals) >= -1e-9 * np.abs(duals[1:])).all()
    if lam >= 1e6:
        assert row["dual_gap"] <= 1e-6


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_features_of_zero_leave_the_largest_cost_as_the_hinge(kind, layout):
    problem = random_problem(kind, layout, intercept=0.0)
    problem.X = problem.X * 0.0
    result = run_flat_ascent(start(problem), tol=1e-15, max_iter=2, rng=0)
    assert result.status == "converged" and not result.weights.any()
    largest = [loss.max() for loss in problem.listed.loss]
    assert result.objective == pytest.approx(np.mean(largest), rel=1e-15)
    assert result.gap == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_occurs_twice_counts_as_one_of_twice_the_weight(kind):
    problem = make_problem(kind)
    twice = np.concatenate([np.arange(problem.n), [0, 0, 3]])
    weights = np.bincount(twice).astype(float)
    options = {"step": "exact", "cache": False, "tol": 1e-10, "max_iter": 10**5}
    repeated = problem.estimator(C=0.5, **options).fit(*problem.take(twice))
    weighted = problem.estimator(C=0.5, **options)
    weighted.fit(problem.X, problem.y, sample_weight=weights)
    assert abs(repeated.objective_ - weighted.objective_) <= 1e-10


def test_one_example_and_one_feature_are_enough():
    model = BCFWClassifier(step="exact", classes=[0, 1, 2], fit_intercept=False, C=10.0)
    model.fit([[1.0]], [1])
    assert model.predict([[1.0]]) == [1] and model.dual_gap_ <= 1e-3


# ------------------------------------------------------------ what a user sees


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_certificate_is_that_of_the_returned_coefficients(kind, sampling):
    problem = make_problem(kind, n=60)
    model = problem.fitted(
        step="exact", C=1.0, tol=1e-4, sampling=sampling, gap_check_interval=2
    )
    history = model.history_
    assert model.step_ == "exact" and model.cache_ is False
    assert history["n_iter"][0] == 0 and history["objective"][0] == history["dual_gap"][0]
    np.testing.assert_allclose(
        history["objective"] - history["dual_objective"], history["dual_gap"], atol=1e-14
    )
    assert (np.diff(history["dual_objective"]) >= -1e-14).all()
    assert (np.diff(history["n_oracle_calls"]) >= problem.n).all()
    # The optimum, by other steps, is within the gap of every check.
    best = problem.fitted(C=1.0, tol=1e-10, max_iter=10**5)
    assert (history["objective"] - history["dual_gap"] <= best.objective_ + 1e-12).all()
    assert (history["objective"] >= best.objective_ - 1e-10).all()
    assert model.objective_ == history["objective"][-1]
    if kind != "multilabel":
        assert model.objective_ == pytest.approx(
            objective_of(model, problem.X, problem.y, 1.0), rel=1e-12
        )


def test_the_better_of_the_last_weights_and_their_average_is_returned():
    X, y = random_rows()
    problem = SimpleNamespace(
        structure=MulticlassStructure().fit(X, y), X=X, y=y, weights=np.full(300, 1 / 300)
    )
    ascent = make_ascent(problem, 1e-5)
    result = run_flat_ascent(ascent, tol=0.0, max_iter=20, rng=0)
    objectives = [
        0.5 * 1e-5 * w @ w + ascent.hinge(w)
        for w in (ascent.weights, ascent.average_weights)
    ]
    # Oscillating, the last weights are far behind.
    assert objectives[1] < 0.9 * objectives[0]
    assert result.objective == pytest.approx(objectives[1], rel=1e-12)
    np.testing.assert_array_equal(result.weights, ascent.average_weights)


@pytest.mark.parametrize("kind", [*KINDS, "multilabel-csr"])
def test_auto_takes_exact_steps_wherever_it_can(kind):
    problem = make_problem(kind)
    assert problem.fitted(step="auto", cache="auto").step_ == "exact"
    for options in (
        {"cache": True},
        {"algorithm": "batch"},
        {"average": True},
        {"coef_bounds": (-1.0, 1.0)},
    ):
        model = problem.estimator(**{"step": "auto", "tol": 0.1} | options).fit(
            problem.X, problem.y
        )
        assert model.step_ in ("fw", "pairwise")
        with pytest.raises(ValueError, match=next(iter(options))):
            problem.fitted(**{"step": "exact", "tol": 0.1} | options)


@pytest.mark.parametrize("kind", ["chain", "custom"])
def test_other_structures_have_no_exact_steps(kind):
    problem = make_problem(kind)
    name = type(problem.structure).__name__
    with pytest.raises(ValueError, match=f"step='exact' is for.*structure={name}"):
        problem.fitted(step="exact")
    assert problem.fitted(step="auto", cache=False).step_ in ("fw", "pairwise")


class Reluctant(MulticlassStructure):
    """Someone's own, whose oracle may be anything."""


def test_a_subclass_of_a_structure_is_asked_through_its_oracle():
    problem = make_problem("multiclass")
    model = problem.fitted(structure=Reluctant(), step="auto")
    assert model.step_ in ("fw", "pairwise")


def test_paths_are_made_by_other_steps():
    problem = make_problem("multiclass", n=30)
    with pytest.raises(ValueError, match="step='exact'.*path"):
        bcfw_path(problem.X, problem.y, step="exact")
    search = BCFWClassifierCV(Cs=[0.01, 0.1], cv=2, random_state=0)
    with pytest.raises(ValueError, match="step='exact'.*path"):
        clone(search).set_params(step="exact").fit(problem.X, problem.y)
    assert search.fit(problem.X, problem.y).step_ == "exact"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_random_state_repeats_a_fit_bit_for_bit(kind, sampling):
    problem = make_problem(kind, n=50)
    options = {"step": "auto", "cache": "auto", "sampling": sampling, "tol": 1e-5}
    first, second = (problem.fitted(n_jobs=jobs, **options) for jobs in (1, 2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.n_iter_ == second.n_iter_ and first.dual_gap_ == second.dual_gap_
    other = problem.fitted(random_state=1, **options)
    assert (first.coef_ != other.coef_).any()


def test_dense_and_sparse_rows_give_the_same_up_to_rounding():
    dense, sparse = (random_problem("multiclass", layout, n=30) for layout in LAYOUTS)
    results = [
        run_flat_ascent(start(problem), tol=1e-6, max_iter=500, rng=0)
        for problem in (dense, sparse)
    ]
    assert results[0].n_oracle_calls == results[1].n_oracle_calls
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-9)


# ------------------------------------------------------- warm starts, cut fits


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_goes_on_where_the_last_fit_ended(kind):
    problem = make_problem(kind, n=60)
    options = {"step": "exact", "tol": 1e-4, "warm_start": True}
    model = problem.fitted(**options)
    objective, coef = model.objective_, model.coef_
    model.fit(problem.X, problem.y)
    assert model.n_iter_ == 0 and model.objective_ == pytest.approx(objective, rel=1e-12)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-9)
    warm = model.set_params(C=1.1).fit(problem.X, problem.y)
    cold = problem.fitted(**options | {"C": 1.1, "warm_start": False})
    assert abs(warm.objective_ - cold.objective_) <= 1e-4
    assert 0 < warm.n_oracle_calls_ < cold.n_oracle_calls_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "then"), [("fw", "exact"), ("pairwise", "exact")])
def test_exact_steps_start_from_the_dual_point_of_others(kind, first, then):
    problem = make_problem(kind)
    model = problem.fitted(step=first, tol=1e-3, warm_start=True)
    reached = model.dual_objective_
    model.set_params(step=then, tol=1e-6).fit(problem.X, problem.y)
    assert model.step_ == then
    assert model.history_["dual_objective"][0] == pytest.approx(reached, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_steps_start_from_the_dual_point_of_exact_ones(kind):
    problem = make_problem(kind)
    model = problem.fitted(step="exact", tol=1e-6, warm_start=True)
    reached = model.dual_objective_
    model.set_params(step="fw", cache=False, tol=1e-2).fit(problem.X, problem.y)
    assert model.n_iter_ == 0
    assert model.dual_objective_ == pytest.approx(reached, abs=1e-12)
    with pytest.raises(ValueError, match="active sets"):
        model.set_params(step="pairwise").fit(problem.X, problem.y)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize(("limit", "value"), [("max_iter", 3), ("max_time", 1e-9)])
def test_a_fit_that_is_cut_short_warns_and_certifies_how_far_it_is(
    limit, value, sampling
):
    X, y = random_rows()
    model = BCFWClassifier(tol=1e-12, sampling=sampling, random_state=0)
    with pytest.warns(ConvergenceWarning, match=f"stopped at {limit}={value}") as record:
        model.set_params(**{limit: value}).fit(X, y)
    assert len(record) == 1 and record[0].filename == __file__
    assert "pairwise" not in str(record[0].message)
    assert model.n_iter_ == (3 if limit == "max_iter" else 1)
    assert model.objective_ == pytest.approx(objective_of(model, X, y, 1.0), rel=1e-12)


def test_an_interrupted_fit_is_certified_where_it_was_cut(monkeypatch):
    X, y = random_rows()
    model = BCFWClassifier(C=0.01, warm_start=True, tol=1e-6, random_state=0)
    optimal = clone(model).fit(X, y)

    def interrupt(n_iter, row, done):
        if n_iter == 5:
            raise KeyboardInterrupt

    module = "sklearn_structsvm._training"
    monkeypatch.setattr(f"{module}.PassReporter.__call__", lambda _, *a: interrupt(*a))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.n_iter_ == 5 and model.dual_gap_ > 1e-6
    assert model.objective_ == pytest.approx(objective_of(model, X, y, 0.01), rel=1e-12)
    assert 0.0 <= model.objective_ - optimal.objective_ <= model.dual_gap_
    model.fit(X, y)
    assert abs(model.objective_ - optimal.objective_) <= 1e-6


@pytest.mark.parametrize("k", [2, 3])
def test_every_sampling_and_sign_of_cost_agree(k):
    """Costs of zero off the diagonal: labels that may be wrong for nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % k
    costs = np.triu(np.ones((k, k)), 1)
    structure = MulticlassStructure(costs)
    objectives = [
        BCFWClassifier(
            structure, step=step, cache=False, sampling=sampling, tol=1e-9,
            max_iter=10**5, random_state=0,
        ).fit(X, y).objective_
        for step, sampling in product(("exact", "pairwise"), ("gap", "permuted"))
    ]  # fmt: skip
    np.testing.assert_allclose(objectives, objectives[0], atol=1e-8)
