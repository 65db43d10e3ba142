"""Rounds of parts that threads make at once: dual points, certificates, the same bits."""

import gc
from itertools import count
from threading import Event, Thread

import numpy as np
import pytest
from _estimators import assert_same_optimum
from _problems import (
    KINDS,
    PRESENTED,
    dual_of_box,
    explicit_alpha,
    explicit_distributions,
    random_box,
    random_problem,
    uneven_weights,
)
from _seeds import new_rng, new_seed
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SlackRescaledSSVM, bcfw_path
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.solvers.blocks import parallel
from sklearn_structsvm.solvers.blocks._active_sets import ActiveSets
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks.bcfw import certify
from sklearn_structsvm.solvers.blocks.parallel import Team
from sklearn_structsvm.structures import ChainStructure, MulticlassStructure
from sklearn_structsvm.structures._probe import Probe

LAM, N = 0.05, 12
# Structures in Python are asked by one thread.
KINDS = [kind for kind in KINDS if kind != "custom"]
STEPS = ["pairwise", "away", "corrective"]


def proximal_dual(problem, solver, p, lower, upper):
    """D' of the proximal problem, from α, up to what depends on the center alone."""
    v, loss = problem.listed.dual_point(explicit_alpha(problem, solver), solver.lam, p)
    lam = solver.lam + solver.kappa
    _, center, _ = solver.primal_state().get("center", (0.0, 0.0, 0.0))
    v = (solver.lam * v + solver.kappa * center) / lam
    return dual_of_box(v, loss, lam, lower, upper)


@pytest.mark.parametrize("sigma", [1.0, None])
@pytest.mark.parametrize("has_box", [False, True])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("kind", "layout"), [p for p in PRESENTED if p[0] in KINDS])
def test_rounds_leave_a_dual_point_and_never_lower_its_objective(
    kind, layout, step, has_box, sigma
):
    rng = new_rng(1)
    p = uneven_weights(N, (3,))
    problem = random_problem(kind, layout, n=N)
    lower, upper, box = random_box(rng, problem.listed.d, has_box=has_box)
    solver = problem.solver(LAM, p, step=step, **box)
    with Team(solver, 3) as team:
        if sigma is not None:
            # Steps that are too long for parts that have much in common.
            team.sigmas = [sigma, sigma]
        for _ in range(6):
            before = proximal_dual(problem, solver, p, lower, upper)
            team.make_pass(rng)
            if step == "corrective":
                for _ in range(2):
                    team.make_cached_pass(rng)
            after = proximal_dual(problem, solver, p, lower, upper)
            assert after >= before - 1e-12 * (1.0 + abs(before))
            row, weights, lowest = certify(solver)
            alpha = explicit_distributions(problem, solver, 1e-12)
            v, loss = problem.listed.dual_point(alpha, LAM, p)
            assert solver.loss == pytest.approx(loss, rel=1e-11)
            scale = 1.0 + np.abs(v).max()
            np.testing.assert_allclose(solver.dual_image(), v, rtol=0, atol=1e-10 * scale)
            dual = dual_of_box(v, loss, LAM, lower, upper)
            gap = problem.listed.primal(weights, LAM, p) - dual
            assert row["dual_gap"] == pytest.approx(gap, abs=1e-9 * (1.0 + abs(dual)))
            assert lowest >= -1e-12
            if solver.kappa == 0.0:
                solver.set_kappa(9 * LAM)
            solver.extrapolate(0.5)
    assert solver.n_steps == 6 * (N - 1)


def test_a_round_that_went_too_far_is_taken_back_in_part(monkeypatch):
    """All examples are alike: without σ the parts together go K times too far."""
    X, y = np.ones((60, 2)), np.zeros(60, dtype=int)
    y[:5] = 1
    structure = MulticlassStructure().fit(X, y)
    solver = BlockFrankWolfe(
        structure.make_oracle(X, y), np.full(60, 1 / 60), 0.01, step="corrective"
    )
    gammas = []
    with Team(solver, 6) as team:
        team.sigmas = [1.0, 1.0]
        monkeypatch.setattr(
            parallel, "perf_counter", lambda: gammas.append(team.joint.gamma) or 0.0
        )
        for _ in range(5):
            dual = solver.dual_objective
            team.make_pass(new_rng(0))
            assert solver.dual_objective >= dual
    assert 0.0 <= min(gammas) <= max(gammas) <= 1.0
    assert any(0.0 < gamma < 0.9 for gamma in gammas)


@pytest.mark.parametrize("model", [BCFWClassifier(), CRFClassifier(C=0.1)])
def test_small_fits_take_one_thread_whatever_n_jobs_is(model):
    X, y = make_chains(400, n_features=4, n_classes=3, random_state=new_seed())
    one, two = (
        clone(model).set_params(n_jobs=n_jobs, random_state=0).fit(X, y)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize(("kind", "layout"), [p for p in PRESENTED if p[0] in KINDS])
def test_pages_that_are_not_marked_are_not_touched(kind, layout):
    problem, rng = random_problem(kind, layout, n_features=40), new_rng(3)
    oracle = problem.make_oracle()
    for i in range(problem.n):
        probe = Probe(oracle, i, rng.standard_normal(oracle.n_weights))
        target, _ = probe.direction([0.7], [probe.best(1.0)[0]])
        marked = probe.marked()
        assert marked[target != 0.0].all()
        if layout == "csr" and not target.any():
            assert not marked.all()


# Estimators.


OPTIONS = {"C": 0.1, "tol": 1e-4, "max_iter": 10**5, "random_state": 0}
MODELS = {
    "default": BCFWClassifier(**OPTIONS),
    "pairwise": BCFWClassifier(
        **OPTIONS, step="pairwise", solver_options={"cache": True}
    ),
    "box": BCFWClassifier(**OPTIONS, solver_options={"coef_bounds": (-0.2, 0.2)}),
    "slack": SlackRescaledSSVM(**OPTIONS),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.mark.usefixtures("small_parts")
@each_model
def test_threads_agree_with_one_within_their_gaps_and_their_pace_changes_no_bit(model):
    X, y = make_chains(n_samples=100, random_state=new_seed(0))
    s = new_rng(0).uniform(0.5, 2.0, size=100)
    one = clone(model).fit(X, y, sample_weight=s)
    two = clone(model).set_params(n_jobs=2).fit(X, y, sample_weight=s)
    assert max(one.dual_gap_, two.dual_gap_) <= 1e-4
    # They did not go the same way.
    assert (one.coef_ != two.coef_).any()
    assert_same_optimum(one, two, 0.1 * s.sum())

    rough, is_over = clone(two).set_params(tol=0.05), Event()
    first = clone(rough).fit(X, y)

    def disturb():
        while not is_over.wait(1e-4):
            sum(range(1000))

    others = [Thread(target=disturb) for _ in range(2)]
    for other in others:
        other.start()
    try:
        second = clone(rough).fit(X, y)
    finally:
        is_over.set()
        for other in others:
            other.join()
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.n_oracle_calls_ == second.n_oracle_calls_


@pytest.mark.usefixtures("small_parts")
def test_a_path_by_threads_is_as_good_everywhere():
    X, y = make_chains(n_samples=100, random_state=new_seed(0))
    one, two = (
        bcfw_path(X, y, eps=0.2, min_lambda=1e-2, n_jobs=n_jobs, random_state=0)
        for n_jobs in (1, 2)
    )
    assert two.gaps.max() <= 0.2 and two.end <= 1e-2
    structure = ChainStructure().fit(X, y)
    for lam in np.exp(new_rng(0).uniform(np.log(1e-2), np.log(two.lambdas[0]), size=5)):
        values = []
        for path in (one, two):
            solver = BlockFrankWolfe(structure.make_oracle(X, y), np.full(100, 0.01), lam)
            w = path.coef(lam)
            values.append(0.5 * lam * w @ w + solver.hinge(w))
        # Each is at most eps above the optimum.
        assert abs(values[0] - values[1]) <= 0.2


def test_sets_that_are_collected_with_their_owner_are_freed_once():
    for _ in range(20):
        sizes = np.array([3, 2], dtype=np.intp)
        owner = ActiveSets(sizes)
        cycle = [owner, ActiveSets(sizes, owner=owner)]
        cycle.append(cycle)
        del owner, cycle
        # The youngest are enough; all objects of the suite are a lot to look through.
        gc.collect(0)
    gc.collect()


@pytest.mark.usefixtures("small_parts")
def test_an_interrupted_fit_is_certified_where_it_was_cut(monkeypatch):
    X, y = make_chains(n_samples=400, random_state=new_seed(0))
    model = BCFWClassifier(C=1.0, tol=1e-6, n_jobs=2, warm_start=True, random_state=0)
    rounds = count()

    def interrupt():
        if next(rounds) == 25:
            raise KeyboardInterrupt
        return 0.0

    with monkeypatch.context() as patch:
        # Each round asks for the time.
        patch.setattr(parallel, "perf_counter", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    gap, value = model.dual_gap_, model.objective_
    assert 1e-6 < gap < np.inf
    model.set_params(tol=0.5 * gap).fit(X, y)
    assert model.dual_gap_ <= 0.5 * gap
    assert value - gap <= model.objective_ + 1e-12


def test_an_error_in_another_thread_is_raised_and_ends_the_threads():
    def fail():
        raise OSError("there")

    with Team(random_problem("chain", "dense", n=N).solver(LAM), 3) as team:
        # Before, an interrupt would leave threads that nobody sends away.
        assert not team.threads
        with pytest.raises(OSError, match="there"):
            team._together([int, int, fail])
        assert team._together([int, str, list]) == [0, "", []]
    assert len(team.threads) == 2
    assert not any(thread.is_alive() for thread in team.threads)
