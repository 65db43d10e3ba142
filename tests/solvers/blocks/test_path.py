"""The ε-approximate regularization path and what it promises."""

from dataclasses import replace

import numpy as np
import pytest
from _options import placed
from _problems import explicit_alpha, random_problem, solve_listed, uneven_weights
from _references import list_binary, visits
from _seeds import new_rng
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import bcfw_path
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks.path import (
    default_kappa,
    first_breakpoint,
    regularization_path,
)
from sklearn_structsvm.structures import BinaryStructure

EPS, MIN_LAMBDA, N = 0.2, 1e-2, 8
KINDS = ("binary", "multiclass", "multilabel", "chain")


def make_path(problem, p=None, step="fw", **options):
    iterate = problem.solver(123.0, p, step=step)
    options = {"eps": EPS, "min_lambda": MIN_LAMBDA, "rng": 0} | options
    path, stopped_by = regularization_path(iterate, **options)
    assert stopped_by is None
    return path


def excess(problem, w, lam, p=None):
    """At most 1e-6 more than the suboptimality of w."""
    _, lower_bound = solve_listed(problem.listed, lam, p, tol=1e-6)
    return problem.listed.primal(w, lam, p) - lower_bound


@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_at_any_lambda_the_weights_are_eps_optimal(kind, step):
    problem, p = random_problem(kind), uneven_weights()
    path = make_path(problem, p, step)
    ends = np.log([MIN_LAMBDA, 20 * path.lambdas[0]])
    for lam in np.exp(new_rng(0).uniform(*ends, size=25)):
        assert excess(problem, path.coef(lam), lam, p) <= EPS + 1e-6
    # The breakpoints themselves, and the far end of each one's interval.
    for j, lam in enumerate(path.lambdas):
        _, lower_bound = solve_listed(problem.listed, lam, p, tol=1e-6)
        here = problem.listed.primal(path.coefs[j], lam, p)
        assert here - lower_bound <= path.gaps[j] + 1e-6
        there = problem.listed.primal(path.coefs[max(j - 1, 0)], lam, p)
        assert there - lower_bound <= EPS + 1e-6


@pytest.mark.parametrize("kappa", [None, 0.5, 0.95])
@pytest.mark.parametrize("kind", KINDS)
def test_each_breakpoint_is_solved_to_kappa_eps(kind, kappa):
    problem = random_problem(kind)
    path = make_path(problem, kappa=kappa)
    share = 0.7 if kappa is None else kappa
    if kappa == 0.5 and kind == "chain":
        more = make_path(problem, kappa=0.95)
        assert len(more.lambdas) > 1.5 * len(path.lambdas)
    assert path.gaps.max() <= share * EPS
    # A path that solved everything exactly would tell nothing.
    assert path.gaps.max() >= 0.3 * share * EPS


@pytest.mark.parametrize("step", ["fw", "pairwise"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_path_may_leap_to_the_lambdas_that_are_wanted(kind, step):
    problem, p = random_problem(kind), uneven_weights()
    whole = make_path(problem, p, step)
    wanted = np.geomspace(whole.lambdas[0], MIN_LAMBDA, 7)[1:]
    path = make_path(problem, p, step, wanted=wanted)
    # None is solved for nobody, and the end is met to the bit.
    assert set(path.lambdas[1:]) <= set(wanted)
    assert path.lambdas[-1] == MIN_LAMBDA == path.end or path.complete
    assert len(path.lambdas) < len(whole.lambdas)
    for lam in [*wanted, 2 * path.lambdas[0]]:
        assert excess(problem, path.coef(lam), lam, p) <= EPS + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_breakpoints_follow_from_equation_13(kind):
    problem = random_problem(kind)
    # Plain steps, of which the iterate has the path's own w.
    path = make_path(problem, acceleration=False)
    ratios = path.lambdas[1:] / path.lambdas[:-1]
    assert (ratios < 1).all()
    # At the last breakpoint but one the iterate is still to be had: stop there.
    last = path.lambdas[-2]
    iterate = problem.solver(1.0)
    options = {"min_lambda": last * (1 + 1e-9), "acceleration": False}
    regularization_path(iterate, eps=EPS, rng=0, **options)
    assert iterate.lam == last
    extra = iterate.proximal_gap()
    rho = 1 - (EPS - iterate.gap - extra) / (iterate.block_means.sum() - extra)
    assert ratios[-1] == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_breakpoint_is_that_of_algorithm_6(kind):
    problem, p = random_problem(kind), uneven_weights()
    listed = problem.listed
    corners = [loss.argmax() for loss in listed.loss]
    psi = -sum(p[i] * listed.delta(i)[c] for i, c in enumerate(corners))
    expected = (psi @ psi + listed.hinge(psi, p, lam=0.0)) / (default_kappa() * EPS)
    assert first_breakpoint(problem.solver(1.0, p), EPS) == pytest.approx(expected)
    path = make_path(problem, p)
    assert path.lambdas[0] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(path.coefs[0], psi / expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        path.coef(10 * expected), psi / (10 * expected), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
@pytest.mark.parametrize("kind", KINDS)
def test_rescaling_does_what_proposition_1_says(kind, step):
    problem, p = random_problem(kind), uneven_weights()
    solver = problem.solver(0.1, p, step=step, cache_size=5)
    blocks = visits(N, passes=4)
    solver.run(blocks[blocks != 2])
    _, gap = solver.check_gaps()
    w, gaps, delta = solver.weights.copy(), solver.block_gaps, solver.block_means
    alpha = explicit_alpha(problem, solver) if step != "fw" else []
    solver.rescale(0.3 * solver.lam)
    assert solver.lam == pytest.approx(0.03)
    np.testing.assert_array_equal(solver.weights, w)
    updated = solver.block_gaps
    np.testing.assert_allclose(updated, gaps + 0.7 * delta, rtol=0, atol=1e-15)
    assert solver.gap == pytest.approx(gap + 0.7 * delta.sum(), rel=1e-13)
    assert solver.estimated_gap == pytest.approx(solver.gap, rel=1e-13)
    # The same from a true check, from the blocks, and from the dual variables.
    assert solver.check_gaps()[1] == pytest.approx(updated.sum(), rel=1e-12)
    np.testing.assert_allclose(solver.block_gaps, updated, rtol=0, atol=1e-14)
    solver.rebuild_weights()
    np.testing.assert_allclose(solver.weights, w, rtol=0, atol=1e-13)
    for i, before in enumerate(alpha):
        expected = 0.3 * before
        expected[problem.listed.truth[i]] += 0.7
        after = explicit_alpha(problem, solver)[i]
        np.testing.assert_allclose(after, expected, rtol=0, atol=1e-15)


def test_a_complete_path_serves_all_smaller_lambdas():
    X = new_rng(0).standard_normal((10, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.sign(X[:, 0])
    oracle = BinaryStructure().fit(X, y).make_oracle(X, y)
    iterate = BlockFrankWolfe(oracle, np.full(10, 0.1), 1.0)
    path, stopped_by = regularization_path(iterate, eps=0.1, min_lambda=0.0, rng=0)
    assert stopped_by is None
    assert path.complete and path.end == 0.0
    # The optimum is not negative, so an objective of eps is eps-optimal.
    w, listed = path.coef(1e-12), list_binary(X, y)
    np.testing.assert_array_equal(w, path.coefs[-1])
    for lam in path.lambdas[-1] * np.array([0.9, 0.5, 1e-3, 1e-9]):
        lower = solve_listed(listed, lam, tol=1e-6)[1] if lam > 1e-3 else 0.0
        assert listed.primal(w, lam) - max(lower, 0.0) <= 0.1 + 1e-6


def test_where_the_features_of_the_worst_labelings_cancel_zero_serves_all_lambdas():
    X, y = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([0, 1])
    oracle = BinaryStructure().fit(X, y).make_oracle(X, y)
    iterate = BlockFrankWolfe(oracle, np.full(2, 0.5), 1.0)
    path, _ = regularization_path(iterate, eps=0.1, max_iter=500, rng=0)
    assert path.complete
    for lam in (1e-6, 1.0, 1e6):
        assert not path.coef(lam).any()
    np.testing.assert_allclose(path.gaps, [0.0], rtol=0, atol=1e-14)


def test_a_path_ends_below_min_lambda_and_holds_from_each_breakpoint_to_the_next():
    problem = random_problem("multiclass")
    # Features that say nothing leave a risk that no weights make small.
    problem.X = np.zeros_like(problem.X)
    path = make_path(problem)
    assert path.lambdas[-1] < MIN_LAMBDA <= path.lambdas[-2]
    assert not path.complete
    with pytest.raises(ValueError, match="The path ends at lambda=0.00.*lam=0.0001"):
        path.coef(1e-4)
    for lam in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match=f"lam must be positive; got {lam}"):
            path.coef(lam)
    path = make_path(random_problem("multiclass"))
    for j in (0, 3, len(path.lambdas) - 2):
        for lam in (path.lambdas[j], 0.5 * (path.lambdas[j] + path.lambdas[j + 1])):
            np.testing.assert_array_equal(path.coef(lam), path.coefs[j])


@pytest.mark.parametrize("heuristic", [False, True])
def test_each_breakpoint_is_shown_as_it_is_solved_with_what_it_cost(heuristic):
    problem, seen = random_problem("chain"), []
    path, _ = regularization_path(
        problem.solver(1.0), eps=EPS, min_lambda=MIN_LAMBDA, heuristic=heuristic,
        acceleration=False, rng=0,
        on_breakpoint=lambda iterate: seen.append((iterate.lam, iterate.weights.copy())),
    )  # fmt: skip
    lambdas, coefs = zip(*seen, strict=True)
    np.testing.assert_array_equal(lambdas, path.lambdas)
    np.testing.assert_array_equal(coefs, path.coefs)
    assert path.n_iter[0] == 0
    # The worst labelings, the bound's maxima, the first check.
    assert path.n_oracle_calls[0] == 3 * N
    for spent in (path.seconds, path.n_iter, path.n_oracle_calls):
        assert (np.diff(spent) >= 0).all()
    steps = path.n_iter[-1] * N
    checks = (path.n_oracle_calls[-1] - steps) / N
    assert checks == int(checks) >= (not heuristic) * (len(path.lambdas) - 1)


def test_a_heuristic_path_is_cheaper_and_not_far_off():
    problem, calls = random_problem("chain", n=30), []
    for heuristic in (False, True):
        path = make_path(problem, step="pairwise", heuristic=heuristic)
        calls.append(path.n_oracle_calls[-1])
    assert calls[1] < calls[0]
    assert path.gaps.max() <= 0.7 * EPS
    for j in range(0, len(path.lambdas), 16):
        assert excess(problem, path.coefs[j], path.lambdas[j]) <= 2 * EPS


def test_a_path_cut_short_keeps_what_it_solved():
    problem = random_problem("chain")
    whole = make_path(problem)
    # Some data need few passes for the whole path.
    half = whole.n_iter[-1] // 2
    iterate = problem.solver(1.0)
    path, stopped_by = regularization_path(
        iterate, eps=EPS, min_lambda=MIN_LAMBDA, rng=0, max_iter=half
    )
    assert stopped_by == "max_iter"
    assert not path.complete and path.end == path.lambdas[-1]
    np.testing.assert_array_equal(path.lambdas, whole.lambdas[: len(path.lambdas)])
    assert 1 < len(path.lambdas) < len(whole.lambdas)
    # A pass that has begun is ended.
    assert path.n_iter[-1] < half + 1


@pytest.mark.parametrize("sampling", ["gap", "uniform", "permuted"])
def test_bcfw_path_keeps_the_promise_for_weighted_examples(sampling):
    problem = random_problem("multiclass", "csr")
    s = np.array([1.0, 2, 0, 1, 3, 1, 1, 1])
    path = bcfw_path(
        problem.X, problem.y, structure=clone(problem.structure), sample_weight=s,
        eps=EPS, min_lambda=MIN_LAMBDA,
        solver_options={"intercept_scaling": 1.5, "sampling": sampling}, random_state=0,
    )  # fmt: skip
    assert path.eps == EPS
    for lam in np.geomspace(MIN_LAMBDA, 2 * path.lambdas[0], 10):
        assert excess(problem, path.coef(lam), lam, s / s.sum()) <= EPS + 1e-6


def test_bcfw_path_warns_where_it_was_cut_short():
    problem = random_problem("chain")
    limits = {"max_iter": 3}, {"solver_options": {"max_time": 1e-9}}
    for options in limits:
        ((name, limit),) = options.get("solver_options", options).items()
        message = f"cut short by {name}={limit} at lambda=.*ncrease {name}"
        with pytest.warns(ConvergenceWarning, match=message) as record:
            path = bcfw_path(
                problem.X, problem.y, structure=clone(problem.structure), random_state=0,
                **options,
            )  # fmt: skip
        assert len(record) == 1 and record[0].filename == __file__
        assert not path.complete
        # What was reached is there: the first breakpoint at least, and above it all.
        assert path.end == path.lambdas[-1]
        assert excess(problem, path.coef(path.end), path.end) <= 0.1 + 1e-6
        with pytest.raises(ValueError, match="cut short, with larger limits"):
            path.coef(0.5 * path.end)


def test_a_path_of_features_that_are_not_scaled_has_an_end():
    X, y = load_wine(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter=100 .*StandardScaler"):
        path = bcfw_path(X, y, max_iter=100, random_state=0)
    assert path.n_iter[-1] <= 101 and len(path.lambdas) > 10
    scaled = bcfw_path(StandardScaler().fit_transform(X), y, random_state=0, max_iter=100)
    assert scaled.end == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": 0.0}, r"in the range \(0.0, inf\). Got 0.0"),
        ({"kappa": 1.0}, r"in the range \(0.0, 1.0\) or None. Got 1.0"),
        ({"min_lambda": "small"}, r"in the range \[0.0, inf\). Got 'small'"),
        ({"max_iter": 2.5}, r"int in the range \[1, inf\) or None. Got 2.5"),
        ({"max_time": -2.0}, r"in the range \(0.0, inf\) or None. Got -2.0"),
        ({"heuristic": "yes"}, "Got 'yes'"),
        ({"step": "up"}, "Got 'up'"),
        ({"n_jobs": 0.5}, "Got 0.5"),
    ],
)
def test_bcfw_path_refuses_what_makes_no_path(options, message):
    problem = random_problem("multiclass")
    (name,) = options
    message = f"The '{name}' parameter of .*bcfw_path must be .*{message}"
    with pytest.raises(ValueError, match=message):
        placed(bcfw_path)(problem.X, problem.y, **options)
    for X in (1e160 * np.asarray(problem.X), 1e300 * np.asarray(problem.X)):
        with pytest.raises(ValueError, match="as large as .*squares overflow. Scale"):
            bcfw_path(X, problem.y)


@pytest.mark.parametrize("complete", [False, True])
def test_a_path_whose_parts_no_longer_fit_together_is_refused(complete):
    path = replace(make_path(random_problem("binary")), complete=complete)
    for name, value in (
        ("lambdas", "x"),
        ("lambdas", np.append(path.lambdas, 1e-9)),
        ("coefs", path.coefs[0]),
    ):
        damaged = replace(path, **{name: value})
        with pytest.raises(ValueError, match="^(lambdas|coefs) must"):
            damaged.coef(path.lambdas[0])
        if not complete:
            with pytest.raises(ValueError, match="^(lambdas|coefs) must"):
                _ = damaged.end
