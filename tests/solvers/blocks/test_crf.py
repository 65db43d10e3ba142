"""Dual ascent of conditional random fields: its certificate, steps and states."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from _listed_crf import KINDS, Listed
from _seeds import cache_by_seed, new_rng
from scipy.special import logsumexp

from sklearn_structsvm.solvers.batch.elastic_net import run_elastic_net
from sklearn_structsvm.solvers.batch.lbfgs import run_lbfgs
from sklearn_structsvm.solvers.blocks.bcfw import make_pass
from sklearn_structsvm.solvers.blocks.crf import certify, run_crf
from sklearn_structsvm.solvers.loop import Rounding
from sklearn_structsvm.structures import ChainStructure, MulticlassStructure

RATIOS = (0.0, 0.2, 0.9, 1.0)


@cache_by_seed
def best_objective(kind, seed, l1_ratio, lam):
    problem = Listed(kind, seed, l1_ratio=l1_ratio)
    problem.lam = lam
    return problem.sparse_optimum() if l1_ratio else problem.optimum()[1]


def ascent(problem, **options):
    return run_crf(problem.ascent(), rng=0, gap_check_interval=2, **options)


def steps(problem, **options):
    """L-BFGS, or OWL-QN."""
    data = problem.oracle(), problem.p, problem.lam
    if problem.l1_ratio:
        return run_elastic_net(*data, problem.l1_ratio, **options)
    return run_lbfgs(*data, **options)


# The L1 norm alone is always accelerated.
@pytest.mark.parametrize(
    ("l1_ratio", "solve"),
    [*product(RATIOS, (ascent, steps))]
    + [*product(RATIOS[:-1], [partial(ascent, acceleration=False)])],
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bracket_holds_the_optimum_of_another_solver(kind, l1_ratio, solve):
    problem = Listed(kind, 1, l1_ratio=l1_ratio)
    above = best_objective(kind, 1, l1_ratio, problem.lam)
    for max_iter in (1, 7, 40):
        result = solve(problem, tol=0.0, max_iter=max_iter)
        primal = problem.primal(result.solution)
        assert result.objective == pytest.approx(primal, rel=1e-9)
        history = result.history
        assert (history["dual_objective"] <= above + 1e-9).all()
        suboptimality = history["objective"] - above
        assert (suboptimality <= history["dual_gap"] + 1e-9).all()
        differences = history["objective"] - history["dual_objective"]
        # No gap is known where rounding has the bound above the objective.
        known = np.isfinite(history["dual_gap"])
        assert known[0]
        assert differences[known] == pytest.approx(history["dual_gap"][known], abs=1e-12)
        if l1_ratio:
            # The last gap may be the rounding error of its terms, which change.
            assert (np.diff(history["dual_objective"]) >= -1e-14).all()
            assert (np.diff(history["objective"]) <= 1e-12).all()


@pytest.mark.parametrize("l1_ratio", RATIOS[:-1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", ["permuted", "uniform", "gap"])
def test_all_methods_close_the_gap(kind, sampling, l1_ratio):
    problem = Listed(kind, 7, l1_ratio=l1_ratio)
    if l1_ratio:
        problem.lam = 0.3
    tol = 1e-6 if l1_ratio else 1e-9
    results = [
        run_crf(
            problem.ascent(), tol=tol, max_iter=10**4, sampling=sampling, rng=0,
            acceleration=acceleration,
        )
        for acceleration in ("auto", False)
    ]  # fmt: skip
    results.append(steps(problem, tol=tol))
    above = best_objective(kind, 7, l1_ratio, problem.lam)
    for result in results:
        assert result.status == "converged" and result.gap <= tol
        assert result.objective == pytest.approx(above, abs=2.0 * tol)
        # λ/2 ‖w - w*‖² <= gap of each.
        far = np.linalg.norm(result.solution - results[0].solution)
        assert far <= 2.0 * np.sqrt(2.0 * tol / (1.0 - l1_ratio) / problem.lam)


def dual_of(problem, ascent):
    """D(α) with α_i written out from its log factors."""
    state = ascent.get_state()["factors"]
    oracle = problem.oracle()
    k = len(problem.structure.classes_)
    u, entropy, at = np.zeros(problem.structure.n_weights_), 0.0, 0
    for i, (p, phi) in enumerate(zip(problem.p, problem.phi, strict=True)):
        x, structure = problem.X[i], problem.structure
        labelings = [np.asarray(labels) for labels in structure.labelings(x)]
        if isinstance(structure, ChainStructure):
            T = len(x)
            theta = state[at : at + T * k].reshape(T, k)
            pairs = state[at + T * k : at + (T + k) * k].reshape(k, k)
            at += (T + k) * k
            scores = np.array([
                theta[np.arange(T), y].sum() + pairs[y[:-1], y[1:]].sum()
                for y in labelings
            ])  # fmt: skip
        elif isinstance(structure, MulticlassStructure):
            scores, at = state[at : at + k], at + k
        log_alpha = scores - logsumexp(scores)
        alpha = np.exp(log_alpha)
        entropy -= p * alpha @ log_alpha
        u -= p / problem.lam * alpha @ phi
    assert at == len(state) and oracle.n_blocks == problem.n
    return entropy - 0.5 * problem.lam * u @ u


@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_the_dual_objective_is_that_of_the_distributions(kind):
    for seed in range(4):
        problem = Listed(kind, seed)
        ascent = problem.ascent()
        for acceleration in (False, True):
            result = run_crf(
                ascent, tol=0.0, max_iter=3, acceleration=acceleration, rng=seed
            )
            expected = dual_of(problem, ascent)
            assert result.dual_objective == pytest.approx(expected, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", ["permuted", "uniform", "gap"])
def test_the_dual_never_falls(kind, sampling):
    for seed in range(3):
        ascent = Listed(kind, seed).ascent()
        rng = new_rng(seed)
        before = ascent.dual_objective
        certify(ascent)
        for _ in range(10):
            make_pass(ascent, sampling, rng)
            now = ascent.dual_objective
            assert now >= before - 1e-12 * max(1.0, abs(before))
            before = now


def test_blocks_whose_distribution_is_certain_move_again():
    # With so small a λ, true labels get log odds of hundreds, and marginals of one.
    problem = Listed("chain", 1, n=3)
    problem.lam = 1e-7
    result = run_crf(problem.ascent(), tol=1e-8, max_iter=10**4, rng=0)
    assert result.status == "converged"


def test_a_state_is_one_for_any_penalty_and_so_are_weights_alone():
    problem = Listed("chain", 9)
    state = problem.ascent().get_state()
    penalties = ((0.0, 1.0), (0.5, 1.0), (1.0, 3.0), (1.0, 0.5), (0.1, 0.5), (0.0, 1.0))
    for l1_ratio, scale in penalties:
        problem.l1_ratio, problem.lam = l1_ratio, scale * problem.lam
        ascent = problem.ascent()
        ascent.set_state(state)
        result = run_crf(ascent, tol=1e-7, max_iter=2000, rng=0)
        assert result.gap <= 1e-7
        assert result.objective == pytest.approx(problem.primal(result.solution))
        state = ascent.get_state()
        again = problem.ascent()
        again.set_state(state)
        row, w, *_ = certify(again)
        assert row["objective"] == pytest.approx(result.objective, rel=1e-9)
        assert w == pytest.approx(result.solution, rel=1e-9, abs=1e-12)
        # Weights alone are one as well.
        again = problem.ascent()
        again.set_state({"weights": result.solution})
        row, found, *_ = certify(again)
        if l1_ratio == 0.0:
            # Their distributions have the weights w - ∇P(w) / λ.
            w = result.solution
            there = w - problem.gradient(w) / problem.lam
            assert found == pytest.approx(there, abs=1e-7)
        assert run_crf(again, tol=1e-6, max_iter=2000, rng=0).gap <= 1e-6


@pytest.mark.parametrize("factors", [np.zeros(3), np.zeros((2, 2)), "words", None])
def test_a_state_of_other_examples_is_refused(factors):
    problem = Listed("chain", 2)
    with pytest.raises(ValueError, match="factors"):
        problem.ascent().set_state({"factors": factors})
    with pytest.raises(ValueError, match="weights must"):
        problem.ascent().set_state({"weights": np.zeros(2)})
    state = problem.ascent().get_state()
    state["factors"][1] = np.nan
    with pytest.raises(ValueError, match="factors must be finite"):
        problem.ascent().set_state(state)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.6])
@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_threads_make_steps_that_never_lower_the_dual(kind, n_threads, l1_ratio):
    problem = Listed(kind, 5, n=170 * n_threads, l1_ratio=l1_ratio)
    assert problem.n >= 160 * n_threads
    problem.lam = 0.05
    options = {"tol": 1e-5, "max_iter": 1000, "gap_check_interval": 1, "rng": 0}
    if not l1_ratio:
        options["acceleration"] = False
    ascent = problem.ascent()
    result = run_crf(ascent, n_threads=n_threads, **options)
    assert (np.diff(result.history["dual_objective"]) >= -1e-12).all()
    assert result.status == "converged"
    assert result.objective == pytest.approx(problem.primal(result.solution))
    again = run_crf(problem.ascent(), n_threads=n_threads, **options)
    assert np.array_equal(again.solution, result.solution)
    # The dual point is that of its factors, whatever thread moved them.
    again = problem.ascent()
    again.set_state(ascent.get_state())
    row, w, *_ = certify(again)
    if not l1_ratio:
        assert w == pytest.approx(ascent.weights, rel=1e-8, abs=1e-10)
        assert row["dual_objective"] == pytest.approx(result.dual_objective, abs=1e-12)
    alone = run_crf(problem.ascent(), **options)
    assert abs(result.objective - alone.objective) <= 1e-5


def test_lbfgs_ends_where_rounding_leaves_nothing_to_gain():
    problem = Listed("multiclass", 5)
    sizes = np.abs(np.concatenate(problem.phi)).max()
    result = run_lbfgs(
        problem.oracle(), problem.p, problem.lam, tol=0.0, max_iter=10**4,
        rounding=Rounding(sizes, problem.n),
    )  # fmt: skip
    assert result.status in ("stalled", "converged")
    assert result.gap <= 1e-10 * max(1.0, result.objective)
