"""Dual ascent of conditional random fields: its certificate, steps and states."""

import numpy as np
import pytest
from _listed_crf import KINDS, Listed
from _seeds import new_rng
from scipy.special import logsumexp

from sklearn_structsvm.solvers.batch.lbfgs import run_lbfgs
from sklearn_structsvm.solvers.blocks.bcfw import make_pass
from sklearn_structsvm.solvers.blocks.crf import certify, run_crf
from sklearn_structsvm.structures import ChainStructure, MulticlassStructure


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_is_that_of_the_enumeration_and_bounds_the_truth(kind):
    for seed in range(3):
        problem = Listed(kind, seed)
        below, above = problem.optimum()
        rng = new_rng(seed)
        for n_passes, acceleration in ((1, False), (3, True), (20, True), (20, False)):
            result = run_crf(
                problem.ascent(), tol=0.0, max_iter=n_passes, rng=rng,
                acceleration=acceleration, gap_check_interval=2,
            )  # fmt: skip
            w = result.solution
            assert result.objective == pytest.approx(problem.primal(w), rel=1e-9)
            assert result.objective - above <= result.gap + 1e-9
            assert result.dual_objective <= above + 1e-9
            assert result.gap >= result.objective - above - 1e-9
            assert result.objective >= below - 1e-9
            history = result.history
            differences = history["objective"] - history["dual_objective"]
            assert differences == pytest.approx(history["dual_gap"], abs=1e-12)


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", ["permuted", "uniform", "gap"])
def test_both_solvers_find_the_optimum(kind, sampling):
    problem = Listed(kind, 7)
    tol = 1e-9
    _, above = problem.optimum()
    one = run_crf(problem.ascent(), tol=tol, max_iter=10**4, sampling=sampling, rng=0)
    other = run_lbfgs(problem.oracle(), problem.p, problem.lam, tol=tol)
    for result in (one, other):
        assert result.status == "converged" and result.gap <= tol
        assert result.objective == pytest.approx(above, abs=2e-9)
    # λ/2 ‖w - w*‖² <= gap of each.
    far = np.linalg.norm(one.solution - other.solution)
    assert far <= 2.0 * np.sqrt(2.0 * tol / problem.lam)


def test_blocks_whose_distribution_is_certain_move_again():
    # With so small a λ, true labels get log odds of hundreds, and marginals of one.
    problem = Listed("chain", 1, n=3)
    problem.lam = 1e-7
    result = run_crf(problem.ascent(), tol=1e-8, max_iter=10**4, rng=0)
    assert result.status == "converged"


def test_a_state_is_where_it_was_saved():
    problem = Listed("chain", 2)
    for acceleration in (False, True):
        ascent = problem.ascent()
        run_crf(ascent, tol=0.0, max_iter=3, acceleration=acceleration, rng=0)
        again = problem.ascent()
        again.set_state(ascent.get_state())
        (row, w, *_), (other, w_again, *_) = certify(ascent), certify(again)
        assert w_again == pytest.approx(w, rel=1e-9, abs=1e-12)
        assert other["dual_gap"] == pytest.approx(row["dual_gap"], rel=1e-9, abs=1e-12)


def test_weights_alone_are_a_state():
    problem = Listed("tree", 3)
    w = run_lbfgs(problem.oracle(), problem.p, problem.lam, tol=1e-10).solution
    ascent = problem.ascent()
    ascent.set_state({"weights": w})
    row, found, *_ = certify(ascent)
    # Their distributions have the weights w - ∇P(w) / λ.
    assert found == pytest.approx(w - problem.gradient(w) / problem.lam, abs=1e-7)
    assert row["dual_gap"] <= 1e-6


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


def test_threads_check_the_same_gap():
    problem = Listed("chain", 4, n=40)
    runs = [run_crf(problem.ascent(), tol=1e-6, n_threads=n, rng=0) for n in (1, 3)]
    assert np.array_equal(runs[0].solution, runs[1].solution)
    assert runs[0].gap == runs[1].gap


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_threads_make_steps_that_never_lower_the_dual(kind, n_threads):
    problem = Listed(kind, 5, n=500)
    assert problem.n >= 160 * n_threads
    problem.lam = 0.05
    runs = []
    for _ in range(2):
        ascent = problem.ascent()
        result = run_crf(
            ascent, tol=1e-5, max_iter=100, n_threads=n_threads, acceleration=False,
            gap_check_interval=1, rng=0,
        )  # fmt: skip
        runs.append(result)
        assert (np.diff(result.history["dual_objective"]) >= -1e-12).all()
        assert result.status == "converged"
        assert result.objective == pytest.approx(problem.primal(result.solution))
    assert np.array_equal(runs[0].solution, runs[1].solution)
    # The dual point is that of its factors, whatever thread moved them.
    again = problem.ascent()
    again.set_state(ascent.get_state())
    row, w, *_ = certify(again)
    assert w == pytest.approx(ascent.weights, rel=1e-8, abs=1e-10)
    assert row["dual_objective"] == pytest.approx(result.dual_objective, abs=1e-12)
    # What is returned are the best weights of all checks.
    assert result.objective <= row["objective"] + 1e-12
    other = run_lbfgs(problem.oracle(), problem.p, problem.lam, tol=1e-7)
    assert other.objective <= result.objective + 1e-7
    assert result.dual_objective <= other.objective + 1e-9


def test_lbfgs_reports_a_gap_that_bounds_the_truth():
    for seed in range(5):
        problem = Listed(KINDS[seed], seed)
        _, above = problem.optimum()
        result = run_lbfgs(problem.oracle(), problem.p, problem.lam, tol=0.0, max_iter=30)
        suboptimality = result.history["objective"] - above
        assert (suboptimality <= result.history["dual_gap"] + 1e-9).all()
        assert (result.history["dual_objective"] <= above + 1e-9).all()
        assert result.objective == pytest.approx(problem.primal(result.solution))


def test_lbfgs_ends_where_rounding_leaves_nothing_to_gain():
    problem = Listed("multiclass", 5)
    result = run_lbfgs(problem.oracle(), problem.p, problem.lam, tol=0.0, max_iter=10**4)
    assert result.status in ("stalled", "converged")
    assert result.gap <= 1e-10 * max(1.0, result.objective)
