"""Every variant reaches one objective, which is that of other people's solvers."""

from itertools import product
from typing import get_args

import numpy as np
import pytest
from _options import placed
from _problems import list_structure, optimum, random_problem
from _references import Listed
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks._bcfw import CODES
from sklearn_structsvm.solvers.blocks.bcfw import CACHE_SIZE, run_bcfw, start_bcfw
from sklearn_structsvm.solvers.blocks.steps import STEPS, BlockStepName, StepName
from sklearn_structsvm.structures import (
    BinaryStructure,
    MulticlassStructure,
    MultilabelStructure,
)

SAMPLINGS = ("gap", "uniform", "permuted")
VARIANTS = [
    *product(("fw", "pairwise", "away"), SAMPLINGS, (False, True)),
    *product(("corrective",), SAMPLINGS, (False,)),
]

# Where plain steps, whose gap falls like 1/k, get to 1e-6 in well under a second.
PROBLEMS = [("binary", 0.01), ("multiclass", 1.0), ("multilabel", 0.3), ("chain", 3.0)]
# Kinds of data are told apart by steps, and not by samplings and caches.
CASES = [
    *product(PROBLEMS[3:], VARIANTS),
    *product(PROBLEMS[:3], [one for one in VARIANTS if one[1:] == ("gap", False)]),
]


@pytest.mark.parametrize(("case", "variant"), CASES)
def test_all_variants_reach_one_objective(case, variant):
    (kind, lam), (step, sampling, cached) = case, variant
    problem = random_problem(kind)
    best = optimum(problem, lam)
    solver = problem.solver(lam, step=step, cache_size=CACHE_SIZE * cached)
    result = run_bcfw(solver, sampling=sampling, tol=1e-6 * best, max_iter=10**6, rng=0)
    assert result.status == "converged"
    assert abs(result.objective - best) <= 1e-6 * best
    # The claimed objective is the true one.
    assert result.objective == pytest.approx(
        problem.listed.primal(result.solution, lam), rel=1e-11
    )


@pytest.mark.parametrize(("kind", "lam"), PROBLEMS)
def test_batch_steps_reach_the_same_objective(kind, lam):
    problem = random_problem(kind)
    best = optimum(problem, lam)
    # Batch steps are n times shorter: a less exact optimum for the same time, which is
    # as 1 / tol. The certificate is as exact at any.
    tol = 1e-3 * best
    result = run_bcfw(
        problem.solver(lam), algorithm="batch", tol=tol, max_iter=10**6, rng=0
    )
    assert result.status == "converged"
    assert -1e-10 <= result.objective - best <= tol


@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
def test_a_cache_saves_calls_of_the_oracle(step):
    problem = random_problem("chain")
    calls = []
    for size in (0, 50):
        solver = problem.solver(0.01, step=step, cache_size=size)
        result = run_bcfw(solver, acceleration=False, tol=0.02, rng=0, max_iter=5000)
        assert result.status == "converged"
        calls.append(result.n_oracle_calls)
        assert (solver.n_cache_hits > 0) == (size > 0)
    assert calls[1] < 0.7 * calls[0]


def test_pairwise_steps_go_on_where_plain_ones_crawl():
    """Section 5.1: an advantage at small gaps (appendix G: linear convergence)."""
    gaps = {"fw": [], "pairwise": []}
    for seed in range(5):
        for step, max_iter in (("fw", 600), ("pairwise", 3000)):
            solver = random_problem("chain", seed=seed).solver(0.1, step=step)
            result = run_bcfw(
                solver,
                sampling="permuted",
                acceleration=False,
                tol=1e-10,
                max_iter=max_iter,
                rng=0,
            )
            gaps[step].append(result.gap)
    # A linear rate may be a slow one.
    assert np.median(gaps["pairwise"]) <= 1e-10
    assert np.median(gaps["fw"]) >= 1e-5


@pytest.mark.parametrize("step", ["pairwise", "away"])
def test_a_cache_forgets_labelings_without_mass_beyond_its_size(step):
    problem = random_problem("multilabel")
    solver = problem.solver(0.003, step=step, cache_size=2)
    run_bcfw(solver, tol=0.0, max_iter=300, rng=0)
    # More than it shall keep without mass.
    assert max(count_atoms(solver)[0]) > 2
    # For a large λ one plain step per block moves all mass to the labeling of the largest
    # loss: that with all labels wrong, by far.
    solver.set_lambda(1e3)
    solver.check_gaps()
    solver.run(np.tile(np.arange(problem.n), 3))
    kept, with_mass = count_atoms(solver)
    assert max(with_mass) == 1
    assert max(kept) <= 2


def test_a_full_cache_forgets_what_was_best_longest_ago():
    # Without losses nothing moves, and what the oracle says is just remembered.
    problem = list_structure(Listed([list(range(6))], [0], [np.eye(6)], [np.zeros(6)]))
    answers = iter([1, 2, 3, 4, 3, 5])
    problem.structure.loss_augmented_decode = lambda *args: next(answers)
    solver = problem.solver(1.0, step="pairwise", cache_size=3)
    kept = []
    for _ in range(6):
        solver.run(np.array([0]))
        kept.append({labeling for labeling, _, _ in solver.get_state()["atoms"][0]})
    assert kept[2:] == [{0, 2, 3}, {0, 3, 4}, {0, 3, 4}, {0, 3, 5}]


def count_atoms(solver):
    """Labelings kept for each block, and those of them that carry dual mass."""
    atoms = solver.get_state()["atoms"]
    return (
        [len(block) for block in atoms],
        [sum(mass > 0.0 for _, mass, _ in block) for block in atoms],
    )


def hinge_objective(X, y, model, C, s, scaling):
    """1/2 ||w||² + C Σ s_i max(0, 1 - y_i f_i), over C Σ s_i."""
    w, b = model.coef_[0], np.atleast_1d(model.intercept_)[0] / scaling
    margins = (2 * y - 1) * (X @ w + scaling * b)
    total = 0.5 * (w @ w + b * b) + C * s @ np.maximum(0.0, 1.0 - margins)
    return total / (C * s.sum())


def crammer_singer_objective(X, y, model, C, s, scaling):
    W, b = model.coef_, np.broadcast_to(model.intercept_, len(model.coef_)) / scaling
    scores = X @ W.T + scaling * b
    truth = scores[np.arange(len(y)), y]
    scores = scores + 1.0
    scores[np.arange(len(y)), y] -= 1.0
    total = 0.5 * ((W**2).sum() + b @ b) + C * s @ (scores.max(axis=1) - truth)
    return total / (C * s.sum())


INTERCEPTS = [(False, 1.0), (True, 1.0), (True, 4.0)]


def against_linear_svc(structure, X, y, options, objective, intercept, C, weighted):
    fit_intercept, scaling = intercept
    s = np.ones(len(y))
    if weighted:
        s = new_rng(0).uniform(0.1, 3.0, size=len(y))
    shared = {
        "C": C,
        "fit_intercept": fit_intercept,
        "intercept_scaling": scaling,
        "random_state": 0,
    }
    peer = LinearSVC(**options, **shared, tol=1e-9, max_iter=10**7)
    peer.fit(X, y, sample_weight=s)
    mine = placed(BCFWClassifier)(structure, **shared, step="pairwise", tol=1e-9)
    mine.set_params(max_iter=10**5).fit(X, y, sample_weight=s)
    reached = objective(X, y, mine, C, s, scaling)
    assert mine.objective_ == pytest.approx(reached, rel=1e-11)
    assert reached == pytest.approx(objective(X, y, peer, C, s, scaling), rel=1e-6)
    np.testing.assert_allclose(mine.coef_, peer.coef_, rtol=0, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.02, 1.0])
def test_two_classes_give_the_support_vector_machine_of_liblinear(C, intercept, weighted):
    X, y = make_classification(60, 5, flip_y=0.2, random_state=new_seed(0))
    options = {"loss": "hinge"}
    against_linear_svc(
        BinaryStructure(), X, y, options, hinge_objective, intercept, C, weighted
    )


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.02, 1.0])
def test_several_classes_give_the_crammer_singer_machine_of_liblinear(C, intercept):
    X, y = make_classification(
        60,
        5,
        n_informative=4,
        n_redundant=0,
        n_classes=3,
        flip_y=0.2,
        random_state=new_seed(0),
    )
    options = {"multi_class": "crammer_singer"}
    against_linear_svc(
        MulticlassStructure(),
        X,
        y,
        options,
        crammer_singer_objective,
        intercept,
        C,
        False,
    )


def test_labels_without_normalization_are_one_binary_problem_each():
    rng = new_rng(0)
    X, Y = rng.standard_normal((40, 4)), rng.integers(2, size=(40, 3))
    shared = {"C": 0.3, "tol": 1e-9, "step": "pairwise", "max_iter": 10**5}
    together = placed(BCFWClassifier)(MultilabelStructure(), random_state=0, **shared)
    together.fit(X, Y)
    apart = [
        placed(BCFWClassifier)(BinaryStructure(), random_state=0, **shared).fit(
            X, Y[:, c]
        )
        for c in range(3)
    ]
    total = sum(model.objective_ for model in apart)
    assert together.objective_ == pytest.approx(total, abs=4e-9)
    np.testing.assert_allclose(
        together.coef_, np.vstack([model.coef_ for model in apart]), atol=1e-3
    )


@pytest.mark.parametrize(
    ("kind", "threshold", "expected"),
    [
        ("multilabel", np.inf, ("fw", False)),
        ("multilabel", 0.0, ("corrective", False)),
        # A structure in Python declares no cost, and is expensive whatever the threshold.
        ("custom", np.inf, ("corrective", False)),
    ],
)
def test_auto_goes_by_the_cost_of_the_oracle(monkeypatch, kind, threshold, expected):
    for name in ("EXPENSIVE_FOR_STEPS", "EXPENSIVE_FOR_CACHE"):
        monkeypatch.setattr(f"sklearn_structsvm.solvers.blocks.bcfw.{name}", threshold)
    problem = random_problem(kind)
    _, step, cache = start_bcfw(problem.make_oracle(), problem.listed.uniform, 0.1)
    assert (step, cache) == expected
    assert isinstance(cache, bool)


@pytest.mark.parametrize("options", [{}, {"step": "away", "cache": True}])
def test_to_choose_takes_no_call_of_the_oracle(options):
    problem = random_problem("custom")
    calls = []
    decode = problem.structure.loss_augmented_decode
    problem.structure.loss_augmented_decode = lambda *args: (
        calls.append(1) or decode(*args)
    )
    _, step, cache = start_bcfw(
        problem.make_oracle(), problem.listed.uniform, 0.1, **options
    )
    expected = (options.get("step", "corrective"), options.get("cache", False), [])
    assert (step, cache, calls) == expected


def test_the_classifiers_variants_agree():
    problem = random_problem("chain")
    objectives = []
    for step, cache, algorithm in [
        ("fw", False, "block"),
        ("away", True, "block"),
        ("corrective", "auto", "block"),
        ("auto", "auto", "batch"),
    ]:
        model = BCFWClassifier(
            clone(problem.structure),
            C=0.05,
            step=step,
            solver_options={"cache": cache},
            random_state=0,
        )
        model.set_params(solver_options__algorithm=algorithm, tol=1e-4, max_iter=10**5)
        model.fit(problem.X, problem.y)
        objectives.append(model.objective_)
    best = optimum(problem, 1 / (0.05 * problem.n))
    assert max(abs(value - best) for value in objectives) <= 1e-4


def test_each_step_of_the_table_has_a_name_and_a_code():
    """Exact steps, of rows alone, have a class of their own."""
    assert get_args(StepName) == ("auto", *STEPS)
    assert set(get_args(BlockStepName)) == {"auto", *CODES}
    assert set(STEPS) == {"exact", *CODES}
