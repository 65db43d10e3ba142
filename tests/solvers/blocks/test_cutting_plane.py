"""Cutting planes, of both forms, against other solvers and certificates of their own."""

from functools import partial

import numpy as np
import pytest
from _cases import binary_cases, chain_cases, multiclass_cases, multilabel_cases
from _problems import (
    KINDS,
    PRESENTED,
    Problem,
    explicit_distributions,
    list_structure,
    random_problem,
    uneven_weights,
)
from _references import Listed
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st

from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane
from sklearn_structsvm.solvers.blocks.sgd import run_sgd
from sklearn_structsvm.solvers.qp.bundle import Bundle

LAM, N = 0.05, 8


@given(
    multiclass_cases() | binary_cases() | multilabel_cases() | chain_cases(),
    st.sampled_from([1e-3, 1e-2, 1.0, 1e9]),
    st.sampled_from([("n-slack", None), ("n-slack", 1), ("one-slack", 3)]),
)
def test_ties_zeros_and_duplicates_are_no_trouble(case, lam, form_and_size):
    form, size = form_and_size
    problem = Problem(case.structure, case.X, case.y, case.listed)
    largest = np.mean([loss.max() for loss in case.listed.loss])
    tol = 1e-6 * largest
    options = {"form": form, "cache_size": size, "tol": tol}
    p = problem.listed.uniform
    result = run_cutting_plane(problem.make_oracle(), p, lam, **options)
    assert result.status == "converged"
    primal = case.listed.primal(result.solution, lam)
    assert result.objective == pytest.approx(primal, rel=1e-11, abs=1e-300)
    assert -1e-14 * largest <= result.gap <= tol


def test_a_cache_of_labelings_saves_calls_of_the_oracle():
    problem = random_problem("chain", n=30)
    data = problem.make_oracle(), problem.listed.uniform, LAM
    calls = [
        run_cutting_plane(
            *data, form="one-slack", cache_size=size, tol=1e-6
        ).n_oracle_calls
        for size in (None, 5)
    ]
    assert calls[1] < 0.5 * calls[0]


def rounds_without_damping(problem, lam, tol):
    """The one-slack form of Joachims et al.: planes at the minimizers."""
    oracle, best, n_rounds = problem.make_oracle(), np.inf, 0
    risk = EmpiricalRisk(oracle, problem.listed.uniform)
    bundle = Bundle(oracle.n_weights, lam)
    bundle.add(np.zeros(oracle.n_weights), 0.0)
    bundle.solve()
    while True:
        w = bundle.weights
        best = min(best, 0.5 * lam * w @ w + risk.ask(w))
        if best - bundle.dual_objective <= tol:
            return n_rounds
        n_rounds += 1
        bundle.add(*risk.plane())
        bundle.solve()
        risk.release_answers()


def test_planes_beside_the_best_point_take_fewer_rounds():
    rounds = []
    for seed in range(4):
        problem = random_problem("chain", n=30, seed=seed)
        data = problem.make_oracle(), problem.listed.uniform, 1e-3
        damped = run_cutting_plane(*data, form="one-slack", tol=1e-3)
        assert damped.status == "converged"
        rounds.append((damped.n_iter, rounds_without_damping(problem, 1e-3, 1e-3)))
    ours, theirs = np.sum(rounds, axis=0)
    assert ours < 0.7 * theirs


def with_cached_labelings(kind, n_found=3, cache_size=50):
    """A solver with some cached labelings, and the same problem over these alone."""
    problem, p = random_problem(kind), uneven_weights()
    solver = BlockFrankWolfe(
        problem.make_oracle(), p, LAM, step="pairwise", cache_size=cache_size
    )
    risk, listed = EmpiricalRisk(solver.oracle, p), problem.listed
    known = [{truth} for truth in listed.truth]
    for w in new_rng(0).standard_normal((n_found, listed.d)):
        risk.ask(w)
        solver.extend(*risk.answers, -np.inf)
        for i in np.flatnonzero(p):
            known[i].add(int(listed.values(i, w).argmax()))
    rows = [sorted(places) for places in known]
    restricted = Listed(
        [list(range(len(r))) for r in rows],
        [r.index(truth) for r, truth in zip(rows, listed.truth, strict=True)],
        [phi[r] for phi, r in zip(listed.phi, rows, strict=True)],
        [loss[r] for loss, r in zip(listed.loss, rows, strict=True)],
    )
    return problem, p, solver, restricted


@pytest.mark.parametrize("kind", KINDS)
def test_cached_steps_solve_the_problem_over_the_working_sets(kind):
    problem, p, solver, restricted = with_cached_labelings(kind)
    calls, last = solver.n_oracle_calls, 0.0
    # How soon is a matter of the linear rate of these steps.
    for _ in range(30_000):
        gap = solver.run_cached(solver.movable_blocks)
        w = solver.weights
        dual = solver.loss - 0.5 * LAM * w @ w
        assert dual >= last - 1e-15
        last = dual
        # Gaps of blocks are those before their steps: of these weights it may be more.
        if gap <= 1e-8 and restricted.primal(w, LAM, p) - dual <= 1e-8:
            break
    assert solver.n_oracle_calls == calls
    values = [restricted.values(i, w).max() if p[i] else 0.0 for i in range(N)]
    np.testing.assert_allclose(solver.largest_cached(), values, rtol=0, atol=1e-12)
    assert dual - 1e-15 <= restricted.primal(w, LAM, p) <= dual + 1e-8
    alpha = explicit_distributions(problem, solver)
    v, loss = problem.listed.dual_point(alpha, LAM, p)
    np.testing.assert_allclose(w, v, rtol=0, atol=1e-12)
    assert solver.loss == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_only_labelings_that_violate_by_more_than_eps_are_taken(share):
    problem, p, solver, restricted = with_cached_labelings("chain", n_found=1)
    solver.run_cached(solver.movable_blocks)
    risk, w = EmpiricalRisk(solver.oracle, p), solver.weights
    risk.ask(w)
    active = np.flatnonzero(p)
    violations = np.array(
        [
            problem.listed.values(i, w).max() - restricted.values(i, w).max()
            for i in active
        ]
    )
    eps = violations.min() + share * np.ptp(violations)
    before = [len(atoms) for atoms in solver.get_state()["atoms"]]
    added = solver.extend(*risk.answers, eps)
    after = [len(atoms) for atoms in solver.get_state()["atoms"]]
    grown = np.subtract(after, before)[active]
    np.testing.assert_array_equal(grown, violations > eps)
    assert 0 < added == grown.sum() < len(active)


@pytest.mark.parametrize("cache_size", [1, 2, 50])
def test_working_sets_keep_what_has_mass_and_little_else(cache_size):
    problem, _, solver, _ = with_cached_labelings("chain", 12, cache_size)
    sizes = [len(atoms) for atoms in solver.get_state()["atoms"]]
    # The one added last, beside.
    assert max(sizes) <= cache_size + 1
    assert (max(sizes) > 3) == (cache_size == 50)
    solver.run_cached(solver.active_blocks)
    explicit_distributions(problem, solver)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_a_joint_plane_touches_the_risk_and_lies_below_it(kind, layout, n_threads):
    problem, p = random_problem(kind, layout), uneven_weights()
    risk, listed = EmpiricalRisk(problem.make_oracle(), p, 2), problem.listed
    points = new_rng(0).standard_normal((6, listed.d))
    for w in points:
        value = risk.ask(w, n_threads)
        assert value == pytest.approx(listed.hinge(w, p), rel=1e-12)
        values = [listed.values(i, w).max() * (p[i] > 0) for i in range(N)]
        np.testing.assert_allclose(risk.block_values, values, rtol=0, atol=1e-12)
        a, b = risk.plane()
        assert a @ w + b == pytest.approx(value, rel=1e-12)
        for other in points:
            assert a @ other + b <= listed.hinge(other, p) + 1e-12
        risk.cache_answers()


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_labelings_are_recalled_and_no_others(kind):
    problem = random_problem(kind)
    listed, p = problem.listed, uneven_weights()
    risk = EmpiricalRisk(problem.make_oracle(), p, 2)
    known = [[] for _ in range(N)]
    for w in new_rng(0).standard_normal((12, listed.d)):
        value = risk.recall(w)
        expected = np.zeros(N)
        for i in np.flatnonzero(p):
            values = listed.values(i, w)
            # The truth has the value 0, and the one recalled is used last.
            best = max(known[i], key=lambda y: values[y], default=None)
            if best is not None and values[best] > 0:
                known[i].remove(best)
                known[i].append(best)
                expected[i] = values[best]
        np.testing.assert_allclose(risk.block_values, expected, rtol=0, atol=1e-12)
        assert value == pytest.approx(p @ expected, abs=1e-12)
        a, b = risk.plane()
        assert a @ w + b == pytest.approx(value, abs=1e-12)
        risk.ask(w)
        risk.cache_answers()
        for i in np.flatnonzero(p):
            y = int(listed.values(i, w).argmax())
            if y in known[i]:
                known[i].remove(y)
            known[i] = [*known[i], y][-2:]
    assert risk.n_oracle_calls == 12 * (N - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_terms_are_those_of_the_answers_and_of_the_best_known_labelings(kind):
    problem, p = random_problem(kind), uneven_weights()
    risk, listed = EmpiricalRisk(problem.make_oracle(), p, 1), problem.listed
    first, w = new_rng(0).standard_normal((2, listed.d))
    risk.ask(first)
    risk.cache_answers()
    risk.ask(w)
    expected = 0.0
    for i in np.flatnonzero(p):
        values, sizes = listed.values(i, w), np.abs(listed.delta(i)) @ np.abs(w)
        known = listed.values(i, first).argmax()
        expected += p[i] * sizes[values.argmax()]
        # The truth has no terms.
        expected += p[i] * sizes[known] * (values[known] > 0.0)
    assert risk.size_of_terms(w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "run",
    [
        partial(run_cutting_plane, form="one-slack", cache_size=0, tol=1e-8),
        partial(run_sgd, tol=0.0, max_iter=20),
    ],
)
def test_what_needs_no_labelings_holds_none(run):
    rng, m = new_rng(0), 12
    losses = rng.uniform(0.5, 1.5, size=(4, m)) * (1.0 - np.eye(4, m))
    phi = list(rng.standard_normal((4, m, 5)))
    problem = list_structure(
        Listed([list(range(m))] * 4, [0, 1, 2, 3], phi, list(losses))
    )
    decode, found = problem.structure.loss_augmented_decode, [set() for _ in range(4)]

    def noting_decode(x, *args):
        y = decode(x, *args)
        found[x].add(y)
        return y

    problem.structure.loss_augmented_decode = noting_decode
    oracle = problem.make_oracle()
    run(oracle, np.full(4, 0.25), 1e-3)
    # If they were held, new ones would come after place 2.
    assert max(map(len, found)) > 3
    for i, places in enumerate(found):
        new = (set(range(m)) - places).pop()
        # After the truth and the answer of the last round.
        assert oracle.labeling_from_object(i, new)[0] <= 2
