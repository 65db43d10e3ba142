"""Feasible dual points of the L1 penalty, against distributions over listed labelings."""

import numpy as np
import pytest
from _listed_crf import KINDS, Listed
from _seeds import new_rng
from scipy.special import logsumexp

from sklearn_structsvm.solvers.blocks import feasible_shares
from sklearn_structsvm.solvers.blocks._feasible_shares import (
    block_images,
    image_of,
    nearest_shares,
)
from sklearn_structsvm.solvers.blocks.crf import run_crf
from sklearn_structsvm.solvers.blocks.feasible_shares import FeasibleShares


@pytest.fixture
def always(monkeypatch):
    """Shares are found even where they cost more than they bring."""
    monkeypatch.setattr(feasible_shares, "MOST_TERMS", 1000)
    monkeypatch.setattr(feasible_shares, "MOST_LOOKS", 1000)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_the_dual_objective_of_a_feasible_point(kind):
    for seed in range(3):
        problem = Listed(kind, seed, l1_ratio=1.0)
        above = problem.sparse_optimum()
        ascent = problem.ascent()
        w = 10.0 ** new_rng(seed).uniform(-1.0, 1.0) * problem.gradient(
            np.zeros(problem.structure.n_weights_)
        )
        ascent.go_to(-w)
        shares, bound = FeasibleShares(ascent).find()
        assert ((shares >= 0.0) & (shares <= 1.0)).all()
        u, total = 0.0, 0.0
        for p, phi, share in zip(problem.p, problem.phi, shares, strict=True):
            mixed = share * np.exp(phi @ -w - logsumexp(phi @ -w))
            mixed[np.flatnonzero(~phi.any(axis=1))[0]] += 1.0 - share
            u -= p * mixed @ phi / problem.lam
            total -= p * np.sum(mixed * np.log(np.maximum(mixed, 1e-300)))
        assert np.abs(u).max() <= 1.0 + 1e-9
        assert image_of(ascent, shares) == pytest.approx(u, rel=1e-9, abs=1e-9)
        assert bound == pytest.approx(total, rel=1e-9, abs=1e-9)
        assert bound <= above + 1e-9


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_with_shares_brackets_the_optimum(kind, monkeypatch):
    # Try at each check.
    monkeypatch.setattr(
        FeasibleShares, "bound", lambda self, objective, tol: self.find()[1]
    )
    problem = Listed(kind, 7, l1_ratio=1.0)
    ascent = problem.ascent()
    result = run_crf(ascent, tol=1e-6, max_iter=100, gap_check_interval=2, rng=0)
    above = problem.sparse_optimum()
    assert result.objective >= above - 1e-9
    assert (result.history["dual_objective"] <= above + 1e-9).all()
    assert result.objective == pytest.approx(problem.primal(result.solution), rel=1e-9)


def test_parts_of_the_blocks_sum_to_the_image():
    problem = Listed("chain", 8, l1_ratio=1.0)
    ascent = problem.ascent()
    ascent.run(np.arange(len(problem.p)))
    ascent.rebuild_weights()
    n = problem.structure.n_weights_
    data, places, indptr = block_images(ascent, np.arange(n), 10**6)
    sums = np.bincount(places, data, minlength=n)
    assert sums == pytest.approx(ascent.dual_image(), rel=1e-9, abs=1e-12)
    ones = np.ones(len(problem.p))
    assert sums == pytest.approx(image_of(ascent, ones), rel=1e-9, abs=1e-12)
    assert (np.diff(indptr) > 0).tolist() == (problem.p > 0.0).tolist()
    assert block_images(ascent, np.arange(n), 1) is None
    with pytest.raises(IndexError, match="no weight"):
        block_images(ascent, np.array([n]), 10)


def test_shares_are_the_nearest_that_are_feasible():
    rng = new_rng()
    n, m = 6, 3
    p = rng.uniform(0.5, 1.5, n)
    a = rng.uniform(-0.2, 1.0, (n, m))
    blocks, indptr = np.tile(np.arange(n), m), n * np.arange(m + 1)
    shares = nearest_shares(a.T.ravel(), blocks, indptr, p, 20000)
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    assert (shares @ a).max() <= 1.0 + 1e-6
    distance = p @ np.square(1.0 - shares)
    # A feasible point toward any other is no nearer.
    for other in rng.uniform(0.0, 1.0, (200, n)):
        for step in (1e-3, 0.1, 1.0):
            point = shares + step * (other - shares)
            point /= max((point @ a).max(), 1.0)
            assert p @ np.square(1.0 - point) >= distance - 1e-5
    with pytest.raises(IndexError, match="no block"):
        nearest_shares(np.ones(1), np.array([n]), np.array([0, 1]), p, 1)


def test_it_is_not_tried_where_it_cannot_help_or_costs_too_much():
    problem = Listed("chain", 9, l1_ratio=0.5)
    assert FeasibleShares(problem.ascent()).bound(1.0, 1.0) == -np.inf
    problem.l1_ratio = 1.0
    ascent = problem.ascent()
    shares = FeasibleShares(ascent)
    assert shares.bound(ascent.loss + 2.0, 1.0) == -np.inf
    assert shares.is_possible
