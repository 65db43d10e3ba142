"""Going on from a dual point: at another λ, with other weights, after a pickle."""

import pickle

import numpy as np
import pytest
from _options import set_placed
from _problems import (
    KINDS,
    PRESENTED,
    assert_same_weights,
    explicit_alpha,
    optimum,
    random_problem,
    uneven_weights,
)
from _references import visits
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw, start_bcfw

LAM, N = 0.05, 8
STEPS = ("fw", "pairwise", "away")


def moved(problem, **options):
    solver = problem.solver(LAM, **options)
    solver.check_gaps()
    solver.run(visits(N, passes=5))
    return solver


@pytest.mark.parametrize("cache_size", [0, 4])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_a_pickled_state_gives_the_iterate_back(kind, layout, step, cache_size):
    problem = random_problem(kind, layout)
    old = moved(problem, step=step, cache_size=cache_size)
    new = problem.solver(LAM, step=step, cache_size=cache_size)
    new.set_state(pickle.loads(pickle.dumps(old.get_state())))
    assert_same_weights(new.weights, old.weights)
    assert new.loss == old.loss
    np.testing.assert_allclose(new.check_gaps(), old.check_gaps(), rtol=1e-12)
    # And it goes on alike, with the cache refilled or not. In the block that moved last
    # two labelings may tie, of which rounding takes one, until others have moved.
    if cache_size == 0:
        last = visits(N, passes=5)[-1]
        order = np.append(np.delete(np.arange(N), last), last)
        for solver in (old, new):
            solver.run(order)
        assert_same_weights(new.weights, old.weights, 1e-11)


@pytest.mark.parametrize("step", ["pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_lambda_and_weights_may_change_under_the_dual_variables(kind, step):
    problem, p = random_problem(kind), uneven_weights()
    old = moved(problem, step=step, cache_size=4)
    alpha = explicit_alpha(problem, old)
    new = problem.solver(0.2, p, step=step, cache_size=4)
    new.set_state(old.get_state())
    for before, after in zip(alpha, explicit_alpha(problem, new), strict=True):
        np.testing.assert_array_equal(before, after)
    v, loss = problem.listed.dual_point(alpha, 0.2, p)
    np.testing.assert_allclose(new.weights, v, rtol=0, atol=1e-12)
    assert new.loss == pytest.approx(loss, rel=1e-12)
    primal, dual = problem.listed.primal(v, 0.2, p), problem.listed.dual(alpha, 0.2, p)
    assert new.check_gaps()[1] == pytest.approx(primal - dual, rel=1e-10)
    result = run_bcfw(new, tol=1e-4, max_iter=10**4, rng=0)
    assert result.status == "converged"
    assert abs(result.objective - optimum(problem, 0.2, p)) <= 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_plain_steps_go_on_at_another_lambda_too(kind):
    problem, p = random_problem(kind), uneven_weights()
    old = moved(problem)
    new, same = problem.solver(0.2, p), problem.solver(LAM)
    for solver in (new, same):
        solver.set_state(old.get_state())
    # Block by block, w is p_i / λ times what the dual variables say.
    total = np.zeros(problem.listed.d)
    for i in range(N):
        alone = problem.solver(LAM, np.eye(N)[i])
        alone.set_state(old.get_state())
        total += p[i] / 0.2 * LAM * alone.weights
    np.testing.assert_allclose(new.weights, total, rtol=0, atol=1e-12)
    result = run_bcfw(new, tol=1e-2, max_iter=10**4, rng=0)
    assert abs(result.objective - optimum(problem, 0.2, p)) <= 1e-2


def test_set_lambda_scales_the_weights_and_keeps_the_dual_variables():
    problem = random_problem("multiclass")
    solver = moved(problem, step="pairwise")
    w, loss, alpha = solver.weights.copy(), solver.loss, explicit_alpha(problem, solver)
    solver.set_lambda(0.01)
    np.testing.assert_allclose(solver.weights, LAM / 0.01 * w, rtol=1e-12)
    assert solver.loss == loss
    gap = problem.listed.primal(solver.weights, 0.01) - problem.listed.dual(alpha, 0.01)
    assert solver.check_gaps()[1] == pytest.approx(gap, rel=1e-10)


@pytest.mark.parametrize("step", ["pairwise", "away"])
def test_a_state_without_masses_is_refused_where_they_are_needed(step):
    problem = random_problem("chain")
    state = moved(problem).get_state()
    with pytest.raises(ValueError, match="plain steps.*pairwise, away and corrective"):
        problem.solver(LAM, step=step).set_state(state)
    problem.solver(LAM, cache_size=4).set_state(state)


@pytest.mark.parametrize("step", ["pairwise", "away"])
def test_plain_steps_may_go_on_from_any_state(step):
    problem = random_problem("chain")
    old = moved(problem, step=step)
    new = problem.solver(LAM, cache_size=4)
    new.set_state(old.get_state())
    np.testing.assert_allclose(new.weights, old.weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("step", "cache_size", "expected"),
    [("fw", 0, "fw"), ("fw", 4, "fw"), ("pairwise", 0, "corrective")],
)
def test_auto_keeps_to_what_the_state_allows(step, cache_size, expected):
    problem = random_problem("chain")
    state = moved(problem, step=step, cache_size=cache_size).get_state()
    oracle = problem.make_oracle()
    _, chosen, _ = start_bcfw(oracle, problem.listed.uniform, LAM, state=state)
    assert chosen == expected


def test_a_state_is_a_copy():
    solver = moved(random_problem("chain"), step="pairwise")
    state = solver.get_state()
    before = pickle.dumps(state)
    solver.run(visits(N, passes=3, seed=1))
    assert pickle.dumps(state) == before
    solver.set_state(state)
    solver.run(visits(N, passes=3, seed=1))
    assert pickle.dumps(state) == before


def classifier(problem, **options):
    model = BCFWClassifier(clone(problem.structure), C=2.0, random_state=0)
    return set_placed(model, warm_start=True, max_iter=10**4, **options)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("kind", "layout"), PRESENTED[:-1])
def test_fitting_again_starts_where_the_last_fit_ended(kind, layout, step):
    problem = random_problem(kind, layout)
    model = classifier(problem, step=step, tol=1e-2).fit(problem.X, problem.y)
    coef, gap = model.coef_.copy(), model.dual_gap_
    model = pickle.loads(pickle.dumps(model)).fit(problem.X, problem.y)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-11)
    assert model.dual_gap_ == pytest.approx(gap, rel=1e-10)


@pytest.mark.parametrize("step", STEPS)
def test_fitting_again_may_change_c_and_the_sample_weights(step):
    problem = random_problem("multiclass")
    model = classifier(problem, step=step, tol=1e-2, intercept_scaling=1.5)
    model.fit(problem.X, problem.y)
    s = np.array([1.0, 2, 1, 1, 0, 1, 1, 3])
    model.set_params(C=0.5).fit(problem.X, problem.y, sample_weight=s)
    lam, p = 1 / (0.5 * s.sum()), s / s.sum()
    w = model.structure_.join_weights(model.coef_, model.intercept_)
    primal = problem.listed.primal(w, lam, p)
    assert model.objective_ == pytest.approx(primal, rel=1e-12)
    assert -1e-10 <= primal - optimum(problem, lam, p) <= model.dual_gap_ <= 1e-2


def test_a_warm_start_is_nearly_done_at_a_neighboring_c():
    """The same α at ρ C has the weights ρ w.

    Its gap is ρ (λ ||w||² + H(w)) - b · α at most, as H(ρ w) <= ρ H(w), and so at most
    ρ times the gap before, plus (ρ - 1) b · α, which is no more than (ρ - 1) H(0).
    """
    problem = random_problem("chain")
    model = classifier(problem, step="pairwise", tol=1e-4).fit(problem.X, problem.y)
    gap, ratio = model.dual_gap_, 1.05
    model.set_params(C=ratio * model.C).fit(problem.X, problem.y)
    n, nothing = len(problem.y), np.zeros(problem.structure.n_weights_)
    at_zero = problem.listed.primal(nothing, 1.0, np.full(n, 1.0 / n))
    assert model.history_["dual_gap"][0] <= ratio * gap + (ratio - 1.0) * at_zero + 1e-10
    assert model.dual_gap_ <= 1e-4


def test_other_labels_start_anew_with_a_warning():
    problem = random_problem("chain")
    model = classifier(problem, tol=1e-1).fit(problem.X, problem.y)
    y = [(labels + 1) % 3 for labels in problem.y]
    with pytest.warns(UserWarning, match="starting anew"):
        model.fit(problem.X, y)
    np.testing.assert_array_equal(model.coef_, clone(model).fit(problem.X, y).coef_)


def test_without_warm_start_nothing_is_kept():
    problem = random_problem("chain")
    model = classifier(problem, tol=1e-1).set_params(warm_start=False)
    model.fit(problem.X, problem.y)
    assert model.set_params(warm_start=True).fit(problem.X, problem.y).n_iter_ > 0


@pytest.mark.parametrize("acceleration", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_short_fits_reach_what_one_long_fit_does(acceleration):
    problem = random_problem("chain")
    model = classifier(problem, step="pairwise", acceleration=acceleration, tol=1e-4)
    gap, duals = np.inf, [0.0]
    while gap > 1e-4 and len(duals) < 3000:
        model.set_params(max_iter=3).fit(problem.X, problem.y)
        gap = model.dual_gap_
        duals.append(model.dual_objective_)
    # That of the accelerated problem grows, not that of the problem itself.
    assert acceleration or (np.diff(duals) >= -1e-14).all()
    assert gap <= 1e-4
    assert abs(model.objective_ - optimum(problem, 1.0 / (2.0 * N))) <= gap + 1e-10
