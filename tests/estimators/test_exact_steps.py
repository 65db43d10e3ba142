"""BCFWClassifier by exact steps: its peers, its certificate, warm starts, refusals."""

from itertools import product

import numpy as np
import pytest
from _estimators import gaps_of, however_near, make_problem
from _options import placed, set_placed
from _seeds import new_rng, new_seed
from scipy.linalg import block_diag
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier, BCFWClassifierCV, bcfw_path
from sklearn_structsvm.structures import MulticlassStructure

KINDS = ("binary", "multiclass", "multilabel")
SAMPLINGS = ("gap", "uniform", "permuted")


def random_rows(n=300, seed=0):
    return make_classification(
        n, 8, n_informative=6, n_classes=3, flip_y=0.1, random_state=new_seed(seed)
    )


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
        random_state=new_seed(0),
    )  # fmt: skip
    shared = {"C": C, "fit_intercept": fit_intercept, "random_state": 0}
    peer = LinearSVC(
        loss="hinge", multi_class="ovr" if n_classes == 2 else "crammer_singer",
        tol=1e-9, max_iter=10**7, **shared,
    ).fit(X, y)  # fmt: skip
    mine = placed(BCFWClassifier)(step="exact", tol=1e-8, max_iter=10**5, **shared).fit(
        X, y
    )
    if not fit_intercept:
        peer.intercept_, mine.intercept_ = np.zeros(1), np.zeros(1)
    reached = objective_of(mine, X, y, C)
    assert mine.objective_ == pytest.approx(reached, rel=1e-11)
    assert reached == pytest.approx(objective_of(peer, X, y, C), rel=1e-6)


def test_resting_saves_steps_and_changes_nothing_else():
    """Nine of ten rows have a feature of their own: one step on each is all."""
    X, y = random_rows(30)
    X, y = block_diag(X, np.eye(270)), np.concatenate([y, np.arange(270) % 3])
    fits = {}
    for sampling in ("gap", "permuted"):
        model = BCFWClassifier(
            C=0.1, step="exact",
            solver_options={"sampling": sampling, "acceleration": False}, tol=1e-6,
            max_iter=10**5, fit_intercept=False, random_state=0,
        )  # fmt: skip
        fits[sampling] = model.fit(X, y)
    assert abs(fits["gap"].objective_ - fits["permuted"].objective_) <= 1e-6
    assert fits["gap"].n_oracle_calls_ < 0.5 * fits["permuted"].n_oracle_calls_


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
    model = BCFWClassifier(
        step="exact", solver_options={"classes": [0, 1, 2]}, fit_intercept=False, C=10.0
    )
    model.fit([[1.0]], [1])
    assert model.predict([[1.0]]) == [1] and model.dual_gap_ <= 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("is_fast", [False, True])
def test_the_certificate_is_that_of_the_returned_coefficients(kind, sampling, is_fast):
    problem = make_problem(kind, n=60)
    options = {"sampling": sampling, "acceleration": is_fast, "gap_check_interval": 2}
    model = problem.fitted(step="exact", C=1.0, tol=1e-4, **options)
    history = model.history_
    assert model.step_ == "exact" and model.cache_ is False
    assert history["n_iter"][0] == 0 and history["objective"][0] == history["dual_gap"][0]
    np.testing.assert_allclose(
        history["objective"] - history["dual_objective"], history["dual_gap"], atol=1e-14
    )
    # That of the accelerated problem grows, not that of the problem itself.
    assert is_fast or (np.diff(history["dual_objective"]) >= -1e-14).all()
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
    with pytest.raises(
        ValueError, match=f"step='exact' requires structure=.*structure={name}"
    ):
        problem.fitted(step="exact")
    assert problem.fitted(step="auto", cache=False).step_ in ("fw", "corrective")


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


# ------------------------------------------------------- warm starts, cut fits


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_goes_on_where_the_last_fit_ended(kind):
    problem = make_problem(kind, n=60)
    options = {"step": "exact", "tol": 1e-4, "warm_start": True}
    model = problem.fitted(**options)
    objective, coef, gap = model.objective_, model.coef_, model.dual_gap_
    model.fit(problem.X, problem.y)
    assert model.n_iter_ == 0 and model.objective_ == pytest.approx(objective, rel=1e-12)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-9)
    warm = model.set_params(C=1.1).fit(problem.X, problem.y)
    cold = problem.fitted(**options | {"C": 1.1, "warm_start": False})
    assert abs(warm.objective_ - cold.objective_) <= 1e-4
    # r times C leaves at most r times the gap and r - 1 times the loss of the dual point.
    # That is at most the largest loss, which is the gap that other fits begin with.
    begun = warm.history_["dual_gap"][0]
    assert begun <= 1.1 * gap + 0.1 * cold.history_["dual_gap"][0]


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
    model.set_params(step="fw", solver_options__cache=False, tol=1e-2).fit(
        problem.X, problem.y
    )
    assert model.n_iter_ == 0
    assert model.dual_objective_ == pytest.approx(reached, abs=1e-12)
    with pytest.warns(UserWarning, match="the step is not that .* no active sets"):
        model.set_params(step="pairwise", tol=0.1).fit(problem.X, problem.y)
    fresh = problem.fitted(step="pairwise", cache=False, tol=0.1)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize(("limit", "value"), [("max_iter", 3), ("max_time", 1e-9)])
def test_a_fit_that_is_cut_short_warns_and_certifies_how_far_it_is(
    limit, value, sampling
):
    X, y = random_rows()
    model = BCFWClassifier(
        tol=1e-12, solver_options={"sampling": sampling}, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=f"stopped at {limit}={value}") as record:
        set_placed(model, **{limit: value}).fit(X, y)
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

    module = "sklearn_structsvm.estimators.base"
    monkeypatch.setattr(f"{module}.PassReporter.__call__", lambda _, *a: interrupt(*a))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.n_iter_ == 5 and model.dual_gap_ > 1e-6
    assert model.objective_ == pytest.approx(objective_of(model, X, y, 0.01), rel=1e-12)
    assert 0.0 <= model.objective_ - optimal.objective_ <= model.dual_gap_
    model.fit(X, y)
    assert abs(model.objective_ - optimal.objective_) <= 1e-6


@however_near
@pytest.mark.parametrize("k", [2, 3])
def test_every_sampling_and_sign_of_cost_agree(k):
    rng = new_rng(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % k
    costs = np.triu(np.ones((k, k)), 1)
    structure = MulticlassStructure(costs)
    models = [
        BCFWClassifier(
            structure, step=step,
            solver_options={"cache": False, "sampling": sampling}, tol=1e-9,
            max_iter=10**4, random_state=0,
        ).fit(X, y)
        for step, sampling in product(("exact", "pairwise"), ("gap", "permuted"))
    ]  # fmt: skip
    objectives = np.array([model.objective_ for model in models])
    assert (objectives - gaps_of(*models) <= objectives.min()).all()
