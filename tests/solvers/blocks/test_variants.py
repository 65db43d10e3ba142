"""Every method reaches one optimum, which is that of other people's solvers."""

from itertools import product
from typing import get_args

import numpy as np
import pytest
from _options import placed
from _problems import PRESENTED, list_structure, optimum, random_problem, uneven_weights
from _references import Listed
from _seeds import cache_by_seed, new_rng, new_seed
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks._bcfw import CODES
from sklearn_structsvm.solvers.blocks.bcfw import CACHE_SIZE, run_bcfw, start_bcfw
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane
from sklearn_structsvm.solvers.blocks.exact import run_exact
from sklearn_structsvm.solvers.blocks.steps import STEPS, BlockStepName, StepName
from sklearn_structsvm.solvers.loop import HISTORY_KEYS
from sklearn_structsvm.structures import (
    BinaryStructure,
    MulticlassStructure,
    MultilabelStructure,
)

# Where plain steps, whose gap falls like 1/k, get to 1e-6 in well under a second.
PROBLEMS = {
    "binary": 0.01, "multiclass": 1.0, "multilabel": 0.3, "chain": 3.0, "custom": 1.0,
}  # fmt: skip
SAMPLINGS = ("gap", "uniform", "permuted")
STEPS_WITH_CACHES = [
    (step, size)
    for step in CODES
    for size in (0, CACHE_SIZE)[: 1 + STEPS[step].takes_cache]
]


def by_blocks(step, sampling="gap", cache_size=0, **options):
    def run(problem, lam, p, tol):
        solver = problem.solver(lam, p, step=step, cache_size=cache_size)
        limits = {"sampling": sampling, "tol": tol, "max_iter": 10**6, "rng": 0}
        return run_bcfw(solver, **limits | options)

    return run


def by_planes(form, cache_size):
    def run(problem, lam, p, tol):
        options = {"form": form, "cache_size": cache_size, "tol": tol}
        return run_cutting_plane(problem.make_oracle(), p, lam, **options)

    return run


def by_exact_steps(sampling):
    def run(problem, lam, p, tol):
        options = {"sampling": sampling, "tol": tol, "max_iter": 10**5, "rng": 0}
        return run_exact(problem.ascent(lam, p), **options)

    return run


# Methods with their tolerance, as a share of the optimum. Batch steps are n times
# shorter: a less exact optimum for the same time, which is as 1 / tol.
ANY = {
    f"{step}, accelerated": (
        by_blocks(step, "permuted", acceleration=True),
        1e-3 if STEPS[step].is_plain else 1e-6,
    )
    for step in CODES
}
ANY |= {step: (by_blocks(step), 1e-6) for step in CODES}
ANY |= {"batch": (by_blocks("fw", "permuted", algorithm="batch"), 1e-3)}
ANY |= {
    f"{form}, {size}": (by_planes(form, size), 1e-8)
    for form in ("n-slack", "one-slack")
    for size in (None, 2)
}
# Kinds of data are told apart by steps, and not by samplings and caches.
OF_CHAINS = {
    f"{step}, {sampling}, {size}": (by_blocks(step, sampling, size), 1e-6)
    for (step, size), sampling in product(STEPS_WITH_CACHES, SAMPLINGS)
}
OF_ROWS = {f"exact, {own}": (by_exact_steps(own), 1e-9) for own in SAMPLINGS}
METHODS = ANY | OF_CHAINS | OF_ROWS
CASES = [(kind, layout, name) for kind, layout in PRESENTED for name in ANY]
CASES += [("chain", "dense", name) for name in OF_CHAINS]
CASES += [(*pair, name) for pair in PRESENTED[:6] for name in OF_ROWS]


@cache_by_seed
def best_of(kind):
    return optimum(random_problem(kind), PROBLEMS[kind], uneven_weights())


@pytest.mark.parametrize(("kind", "layout", "name"), CASES)
def test_every_method_reaches_the_optimum_and_certifies_it(kind, layout, name):
    run, tol = METHODS[name]
    lam, p, best = PROBLEMS[kind], uneven_weights(), best_of(kind)
    problem = random_problem(kind, layout)
    result = run(problem, lam, p, tol * best)
    assert result.status == "converged"
    assert 0.0 <= result.gap + 1e-15 <= tol * best + 2e-15
    primal = problem.listed.primal(result.solution, lam, p)
    assert result.objective == pytest.approx(primal, rel=1e-11)
    assert result.gap == pytest.approx(
        result.objective - result.dual_objective, abs=1e-15
    )
    assert result.dual_objective - 2e-10 <= best <= result.objective + 2e-10
    history = result.history
    assert set(history) == {*HISTORY_KEYS, "method"}
    assert (history["dual_objective"] <= best + 2e-10).all()
    assert (np.diff(history["n_oracle_calls"]) >= 0).all()


@pytest.mark.parametrize("step", [step for step, size in STEPS_WITH_CACHES if size])
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
                solver, sampling="permuted", acceleration=False, tol=1e-10,
                max_iter=max_iter, rng=0,
            )  # fmt: skip
            gaps[step].append(result.gap)
    # A linear rate may be a slow one.
    assert np.median(gaps["pairwise"]) <= 1e-10
    assert np.median(gaps["fw"]) >= 1e-5


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


def svm_objective(X, y, model, C, s, scaling):
    """1/2 ||w||² + C Σ s_i max_c [c ≠ y_i] + f_c - f_y, over C Σ s_i, of all classes."""
    W, b = model.coef_, np.atleast_1d(model.intercept_)[:, np.newaxis] / scaling
    b = np.broadcast_to(b, (len(W), 1))
    scores = X @ W.T + scaling * b.T
    if len(W) == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    truth = scores[np.arange(len(y)), y]
    hinges = (scores - truth[:, np.newaxis] + 1.0 - np.eye(scores.shape[1])[y]).max(
        axis=1
    )
    return (0.5 * ((W**2).sum() + (b**2).sum()) + C * s @ hinges) / (C * s.sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [(False, 1.0), (True, 1.0), (True, 4.0)])
@pytest.mark.parametrize("C", [0.02, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_machines_are_those_of_liblinear(n_classes, C, intercept, weighted):
    X, y = make_classification(
        60, 5, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2,
        random_state=new_seed(0),
    )  # fmt: skip
    of_classes = {"multi_class": "crammer_singer"} if n_classes > 2 else {"loss": "hinge"}
    structure = BinaryStructure() if n_classes == 2 else MulticlassStructure()
    s = new_rng(0).uniform(0.1, 3.0, size=60) if weighted else np.ones(60)
    shared = {"C": C, "random_state": 0}
    shared["fit_intercept"], shared["intercept_scaling"] = intercept
    peer = LinearSVC(**of_classes, **shared, tol=1e-9, max_iter=10**7)
    # Crammer and Singer's machine of liblinear takes no weights.
    peer.fit(X, y, sample_weight=s if n_classes == 2 else None)
    mine = placed(BCFWClassifier)(structure, **shared, step="pairwise", tol=1e-9)
    mine.set_params(max_iter=10**5).fit(X, y, sample_weight=s)
    data = X, y, mine, C, s, intercept[1]
    assert mine.objective_ == pytest.approx(svm_objective(*data), rel=1e-11)
    if n_classes == 2 or not weighted:
        expected = svm_objective(X, y, peer, C, s, intercept[1])
        assert mine.objective_ == pytest.approx(expected, rel=1e-6)
        np.testing.assert_allclose(mine.coef_, peer.coef_, rtol=0, atol=1e-3)


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


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("cache", ["auto", True, False])
@pytest.mark.parametrize("kind", ["multilabel", "custom"])
def test_auto_goes_by_the_cost_of_the_oracle_which_it_does_not_call(kind, cache, average):
    """A structure in Python declares no cost, and is expensive."""
    problem = random_problem(kind)

    def forbidden(*args):
        raise AssertionError

    problem.structure.loss_augmented_decode = forbidden
    data = problem.make_oracle(), problem.listed.uniform, 0.1
    found = start_bcfw(*data, cache=cache, average=average)[1:]
    if kind == "multilabel":
        assert found == ("fw", cache is True)
    elif cache is True or average:
        assert found == ("pairwise", cache is not False)
    else:
        assert found == ("corrective", False)
    with pytest.raises(ValueError, match="step='corrective' keeps the labelings"):
        start_bcfw(*data, step="corrective", cache=True)


def test_each_step_of_the_table_has_a_name_and_a_code():
    """Exact steps, of rows alone, have a class of their own."""
    assert get_args(StepName) == ("auto", *STEPS)
    assert set(get_args(BlockStepName)) == {"auto", *CODES}
    assert set(STEPS) == {"exact", *CODES}
