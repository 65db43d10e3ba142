"""What all solvers share: limits, histories, interruptions, seeds, threads, no work."""

from functools import partial

import numpy as np
import pytest
from _batch_problems import random_batch
from _forests import random_forests
from _listed_crf import Listed
from _problems import Problem, check_interrupted, random_problem, uneven_weights
from _seeds import new_rng

from sklearn_structsvm.risks import Logistic, ProximalHinge
from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.batch.elastic_net import run_elastic_net
from sklearn_structsvm.solvers.batch.lbfgs import run_lbfgs
from sklearn_structsvm.solvers.batch.newton import run_newton
from sklearn_structsvm.solvers.batch.owlqn import run_owlqn
from sklearn_structsvm.solvers.batch.pragam import run_pragam
from sklearn_structsvm.solvers.batch.proximal_newton import run_proximal_newton
from sklearn_structsvm.solvers.batch.sublbfgs import run_sublbfgs
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw
from sklearn_structsvm.solvers.blocks.crf import run_crf
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane
from sklearn_structsvm.solvers.blocks.exact import run_exact
from sklearn_structsvm.solvers.blocks.excessive_gap import run_excessive_gap
from sklearn_structsvm.solvers.blocks.sgd import run_sgd

# Of structures, and of others, whose weights would be zero for a larger one.
LAM, SMALL = 0.5, 0.02


def chains(n=13):
    return random_problem("chain", n=n)


def asked(solve, problem=None, p=None, **options):
    """A run of a solver that asks an oracle, and the objective."""
    problem = chains() if problem is None else problem
    p = problem.listed.uniform if p is None else p

    def run(**limits):
        return solve(problem.make_oracle(), p, LAM, **options | limits)

    return run, partial(problem.listed.primal, lam=LAM, p=p)


def moved(problem=None, p=None, **options):
    """The same for block steps."""
    problem = chains() if problem is None else problem
    p = problem.listed.uniform if p is None else p

    def run(**limits):
        return run_bcfw(
            problem.solver(LAM, p), **{"acceleration": False} | options | limits
        )

    return run, partial(problem.listed.primal, lam=LAM, p=p)


def exact():
    problem = random_problem("multiclass", n=13)
    objective = partial(problem.listed.primal, lam=LAM)
    return lambda **limits: run_exact(problem.ascent(LAM), **limits), objective


def excessive_gap():
    return asked(run_excessive_gap, Problem(*random_forests("chain")))


def field(solve, l1_ratio=0.0):
    problem = Listed("chain", 4, n=40, l1_ratio=l1_ratio)
    problem.lam = SMALL
    return lambda **limits: solve(problem, **limits), problem.primal


def dual(problem, **limits):
    return run_crf(problem.ascent(), **limits)


def lbfgs(problem, **limits):
    return run_lbfgs(problem.oracle(), problem.p, SMALL, **limits)


def elastic_net(problem, **limits):
    return run_elastic_net(problem.oracle(), problem.p, SMALL, problem.l1_ratio, **limits)


def batch(solve, kind="multiclass", **options):
    """A run on rows; threads are of the risk."""
    problem = random_batch(kind, n=60)

    def run(n_threads=1, **limits):
        risk = random_batch(kind, n=60, n_threads=n_threads).risk
        return solve(risk, SMALL, **options | limits)

    return run, partial(problem.objective, lam=SMALL)


def smooth(solve, *ratio, kind=Logistic, **options):
    rng = new_rng(0)
    X, y = rng.normal(size=(60, 8)), rng.integers(2, size=60)
    l1 = 1.0 if solve is run_owlqn else sum(ratio)

    def run(n_threads=1, **limits):
        return solve(kind(X, y, n_threads=n_threads), SMALL, *ratio, **options | limits)

    def objective(w):
        risk = kind(X, y)
        loss = risk.hinge if kind is ProximalHinge else risk.value
        penalty = 0.5 * (1.0 - l1) * w @ w + l1 * np.abs(w).sum()
        return loss(risk.scores(w)) + SMALL * penalty

    return run, objective


# What takes a random state.
RANDOM = {
    **{f"blocks, {own}": partial(moved, sampling=own) for own in ("gap", "uniform")},
    "blocks": partial(moved, sampling="permuted"),
    "exact": exact,
    "n-slack": partial(asked, run_cutting_plane, form="n-slack"),
    "n-slack, 1": partial(asked, run_cutting_plane, form="n-slack", cache_size=1),
    "sgd": partial(asked, run_sgd),
    "sgd, uniform": partial(asked, run_sgd, sampling="uniform", average=False),
    "random field": partial(field, dual),
    "random field, L1": partial(field, dual, 0.5),
}
RUNS = RANDOM | {
    "batch": partial(moved, algorithm="batch"),
    "one-slack": partial(asked, run_cutting_plane, form="one-slack"),
    "one-slack, 3": partial(asked, run_cutting_plane, form="one-slack", cache_size=3),
    "excessive gap": excessive_gap,
    "lbfgs": partial(field, lbfgs),
    "elastic net": partial(field, elastic_net, 0.5),
    "bmrm": partial(batch, run_bmrm),
    "bmrm, minimizers": partial(batch, run_bmrm, line_search=False),
    "bmrm, line": partial(batch, run_bmrm, subproblem="line"),
    "pragam": partial(batch, run_pragam),
    "pragam, pairs": partial(batch, run_pragam, "pairs"),
    "sublbfgs": partial(batch, run_sublbfgs),
    "subbfgs": partial(batch, run_sublbfgs, full_matrix=True),
    "wolfe": partial(batch, run_sublbfgs, line_search="wolfe"),
    "hybrid": partial(batch, run_sublbfgs, hybrid=True),
    "newton": partial(smooth, run_newton),
    "proximal newton": partial(smooth, run_proximal_newton, 0.5),
    "multipliers": partial(smooth, run_proximal_newton, 1.0, kind=ProximalHinge),
    "owlqn": partial(smooth, run_owlqn),
    "owlqn*": partial(smooth, run_owlqn, direction="sub"),
}


@pytest.mark.parametrize("name", RUNS)
def test_each_limit_ends_a_run_with_the_best_weights_and_their_certificate(name):
    run, objective = RUNS[name]()
    if name in RANDOM:
        run = partial(run, rng=0)
    few = run(tol=0.0, max_iter=2)
    late = run(tol=0.0, max_time=1e-9)
    stopped = run(tol=0.0, on_pass=lambda n_iter, row, done: n_iter == 1)
    assert (few.status, few.n_iter) == ("max_iter", 2)
    assert (late.status, late.n_iter) == ("max_time", 1)
    assert (stopped.status, stopped.n_iter) == ("stopped", 1)
    near = run(tol=0.9 * few.gap, max_iter=10**5)
    assert near.status == "converged" and near.gap <= 0.9 * few.gap
    for result in (few, late, stopped, near):
        assert result.objective == pytest.approx(objective(result.solution), rel=1e-10)
        gap = result.objective - result.dual_objective
        assert result.gap == pytest.approx(gap, rel=1e-9, abs=1e-14)
        history = result.history
        assert history["n_iter"][0] == 0 and history["n_iter"][-1] == result.n_iter
        assert history["n_oracle_calls"][-1] == result.n_oracle_calls
        assert (np.diff(history["n_oracle_calls"]) >= 0).all()
        assert result.objective <= history["objective"].min() * (1.0 + 1e-12)
    check_interrupted(run, objective, at=2, rel=1e-10)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_repeated_bit_for_bit_on_any_number_of_threads(name):
    run, _ = RUNS[name]()
    options = {"tol": 1e-6, "max_iter": 30}
    seed = {"rng": 5} if name in RANDOM else {}
    first = run(**options, **seed)
    # Sums over labelings have an order of their own for each number.
    for n_threads in (1, 1 if name in ("lbfgs", "elastic net") else 3):
        other = run(**options, **seed, n_threads=n_threads)
        np.testing.assert_array_equal(other.solution, first.solution)
        np.testing.assert_array_equal(
            other.history["dual_gap"], first.history["dual_gap"]
        )
    if name in RANDOM:
        assert (run(**options, rng=6).solution != first.solution).any()


ASKING = [
    name for name, make in RUNS.items() if getattr(make, "func", 0) in (moved, asked)
]


@pytest.mark.parametrize("name", ASKING)
def test_examples_without_weight_are_never_asked_and_no_violation_no_work(name):
    problem, p = random_problem("custom"), uneven_weights()
    calls, decode = [], problem.structure.loss_augmented_decode
    problem.structure.loss_augmented_decode = lambda x, *args: (
        calls.append(x) or decode(x, *args)
    )
    run, _ = RUNS[name](problem=problem, p=p)
    result = run(tol=1e-4, max_iter=20)
    assert set(calls) == set(np.flatnonzero(p))
    assert len(calls) == result.n_oracle_calls
    problem.structure.loss_augmented_decode = lambda x, y_true, w, lam: y_true
    run, _ = RUNS[name](problem=problem, p=p)
    result = run(tol=1e-4)
    assert (result.status, result.n_iter, result.gap) == ("converged", 0, 0.0)
    assert not result.solution.any()
