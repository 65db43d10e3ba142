"""Stochastic subgradient descent against the textbook, and its certificate."""

import numpy as np
import pytest
from _problems import (
    KINDS,
    PRESENTED,
    assert_same_weights,
    optimum,
    random_problem,
    uneven_weights,
)
from _seeds import new_rng
from scipy.optimize import minimize_scalar

from sklearn_structsvm.solvers.blocks._sgd import SubgradientSteps
from sklearn_structsvm.solvers.blocks.sgd import run_sgd
from sklearn_structsvm.solvers.loop import HISTORY_KEYS

LAM = 0.2


def run(problem, p=None, lam=LAM, **options):
    p = problem.listed.uniform if p is None else p
    return run_sgd(problem.make_oracle(), p, lam, **{"tol": 0.0, "rng": 0} | options)


class Pegasos:
    """w ← (1 - 1/t) w - (1/t) (n p_i / λ) δ(y), with y the most violating labeling."""

    def __init__(self, listed, lam, p):
        self.listed, self.lam, self.p = listed, lam, p
        self.n = np.count_nonzero(p)
        self.w = np.zeros(listed.d)
        self.iterates, self.found = [], []

    def run(self, blocks):
        for i in blocks:
            t = len(self.iterates) + 1
            y = int(self.listed.values(i, self.w).argmax())
            step = self.n * self.p[i] / self.lam * self.listed.delta(i)[y]
            self.w = (1 - 1 / t) * self.w - step / t
            self.iterates.append(self.w)
            self.found.append((i, y))
        return self

    def average(self):
        t = np.arange(1, len(self.iterates) + 1)
        return 2 / (len(t) * (len(t) + 1)) * t @ np.array(self.iterates)

    def alpha(self, scale):
        """Explicit dual variables of the iterate, scaled."""
        alpha = [np.zeros(len(loss)) for loss in self.listed.loss]
        for i, y in self.found:
            alpha[i][y] += scale * self.n / len(self.found)
        for i, truth in enumerate(self.listed.truth):
            alpha[i][truth] += 1 - alpha[i].sum()
        return alpha

    def dual_objective(self):
        """The best over all scales that leave no dual variable negative."""
        counts = np.bincount([i for i, _ in self.found])
        largest = len(self.found) / (self.n * counts.max())
        best = minimize_scalar(
            lambda scale: -self.listed.dual(self.alpha(scale), self.lam, self.p),
            bounds=(0, largest),
            method="bounded",
            options={"xatol": 1e-9},
        )
        ends = [self.listed.dual(self.alpha(s), self.lam, self.p) for s in (0, largest)]
        assert min(a.min() for a in self.alpha(largest)) >= -1e-13
        return max(-best.fun, *ends)


def visits(p, passes, permuted, seed=0):
    rng, active = new_rng(seed), np.flatnonzero(p)
    if permuted:
        return np.concatenate([rng.permutation(active) for _ in range(passes)])
    return rng.choice(active, size=passes * len(active))


@pytest.mark.parametrize("permuted", [True, False])
@pytest.mark.parametrize(("kind", "layout"), PRESENTED)
def test_iterates_and_their_average_are_those_of_the_textbook(kind, layout, permuted):
    problem, p = random_problem(kind, layout), uneven_weights()
    mine = SubgradientSteps(problem.make_oracle(), p, LAM)
    reference = Pegasos(problem.listed, LAM, p)
    for blocks in np.split(visits(p, 15, permuted), 5):
        mine.run(blocks)
        reference.run(blocks)
        assert_same_weights(mine.weights, reference.w)
        assert_same_weights(mine.average_weights(), reference.average())
        expected = reference.dual_objective()
        assert mine.dual_objective() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_passes_leave_the_dual_point_feasible_as_it_is(kind):
    """It is scaled only where a smaller one is better."""
    problem = random_problem(kind)
    p = problem.listed.uniform
    mine = SubgradientSteps(problem.make_oracle(), p, LAM)
    reference = Pegasos(problem.listed, LAM, p)
    for blocks in np.split(visits(p, 40, True), 10):
        mine.run(blocks)
        reference.run(blocks)
    v, loss = problem.listed.dual_point(reference.alpha(1.0), LAM)
    np.testing.assert_allclose(mine.weights, v, rtol=0, atol=1e-12)
    squares = LAM * v @ v
    scale = min(1.0, loss / squares)
    best = scale * loss - 0.5 * scale**2 * squares
    assert mine.dual_objective() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("sampling", ["permuted", "uniform"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_certifies_the_objective(kind, sampling, average):
    problem, p = random_problem(kind), uneven_weights()
    best = optimum(problem, LAM, p)
    result = run(problem, p, sampling=sampling, average=average, max_iter=300)
    primal = problem.listed.primal(result.solution, LAM, p)
    assert result.objective == pytest.approx(primal, rel=1e-12)
    assert result.gap == result.objective - result.dual_objective
    assert result.dual_objective - 1e-10 <= best <= result.objective + 1e-10
    bound = problem.listed.subgradient_bound(LAM, 300 * np.count_nonzero(p))
    assert result.objective - best <= bound
    # Draws with replacement leave blocks behind, whose masses cap the others': of 300
    # draws of each, the fewest are about 5 sqrt(300) fewer.
    assert result.gap <= bound + (0.0 if sampling == "permuted" else 0.3) * best
    assert set(result.history) == {*HISTORY_KEYS, "method"}
    assert (np.diff(result.history["dual_objective"]) >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_pass_is_enough_where_the_largest_losses_are_the_answer(kind):
    # So large that scores do not decide between losses that differ by little.
    lam, problem, p = 1e6, random_problem(kind), uneven_weights()
    result = run_sgd(
        problem.make_oracle(), p, lam, average=False, tol=1e-14, gap_check_interval=1
    )
    assert (result.status, result.n_iter) == ("converged", 1)
    assert result.objective == pytest.approx(optimum(problem, lam, p), rel=1e-9)
