"""Dual points of all steps: a true gap, a dual that never falls, states that return.

Everything is computed anew from all labelings.
"""

import pickle

import numpy as np
import pytest
from _cases import binary_cases, chain_cases, multiclass_cases, multilabel_cases
from _problems import (
    PRESENTED,
    Problem,
    dual_of_box,
    explicit_alpha,
    explicit_distributions,
    odd_box,
    random_problem,
    uneven_weights,
)
from _references import visits
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import certify, start_bcfw

LAM, N = 0.05, 8
STEPS = ("fw", "pairwise", "away", "corrective")
VARIANTS = (
    "plain", "cached", "boxed", "accelerated", "accelerated, boxed", "slack",
    "slack, cached",
)  # fmt: skip
# Bounds and centers are of w, whatever the labelings; CSR matters for what is added.
FEW = ("plain", "cached", "slack")
CASES = [
    (kind, layout, step, variant)
    for kind, layout in PRESENTED
    for step in STEPS
    for variant in (VARIANTS if kind in ("multiclass", "chain") else FEW)
    if not (layout == "csr" and variant not in ("plain", "slack"))
    and not (step == "corrective" and "cached" in variant)
    and not (kind == "custom" and "slack" in variant)
]
STATES = [case for case in CASES if "accelerated" not in case[3]]


class Watched:
    """A solver of a variant, and its dual point by the definitions."""

    def __init__(self, kind, layout, step, variant):
        self.problem, self.step = random_problem(kind, layout), step
        self.listed = self.problem.listed
        self.p = uneven_weights(empty=())
        free = np.full(self.listed.d, np.inf)
        is_boxed = "boxed" in variant
        self.bounds = odd_box(self.listed.d) if is_boxed else (-free, free)
        self.options = {"step": step, "cache_size": 3 * ("cached" in variant)}
        if is_boxed:
            self.options |= dict(zip(("lower", "upper"), self.bounds, strict=True))
        self.is_slack = "slack" in variant
        if self.is_slack:
            self.listed = self.listed.slack_rescaled()
        self.solver = self.make(LAM, self.p)

    def make(self, lam, p):
        oracle = self.problem.make_oracle()
        if self.is_slack:
            oracle = SlackOracle(oracle)
        return BlockFrankWolfe(oracle, p, lam, **self.options)

    def place(self, i, labeling):
        """In the list of labelings of example i."""
        labels, listed = np.atleast_1d(labeling).tolist(), self.listed.labelings[i]
        return listed.index(tuple(labels) if isinstance(listed[0], tuple) else labels[0])

    def dual_point(self, solver, lam=LAM, p=None):
        """(v, ℓ, α or None)."""
        p = self.p if p is None else p
        if self.step != "fw":
            alpha = explicit_distributions(self.problem, solver, 1e-12)
            return *self.listed.dual_point(alpha, lam, p), alpha
        if self.is_slack:
            return *solver.dual_point(), None
        return *dual_point_of_blocks(self.problem, solver.get_state(), lam, p), None

    def proximal_dual(self):
        """D' of the proximal problem, up to what depends on the center alone."""
        solver = self.solver
        v, loss, _ = self.dual_point(solver)
        lam = solver.lam + solver.kappa
        _, center, _ = solver.primal_state().get("center", (0.0, 0.0, 0.0))
        v = (solver.lam * v + solver.kappa * center) / lam
        return dual_of_box(v, loss, lam, *self.bounds)


def dual_point_of_blocks(problem, state, lam, p):
    """(Aα, b'α) from the marginals that the blocks hold, by the definition of φ."""
    v, at = np.zeros(problem.listed.d), 0
    for i in range(problem.n):
        x = problem.X[i : i + 1]
        if problem.structure.flat:
            x = x.toarray() if sparse.issparse(x) else x
            x = np.append(x, problem.structure.bias_)
            feature = np.outer(x, state["blocks"][i]).ravel()
        elif isinstance(state["blocks"], tuple):
            nodes, edges = state["blocks"]
            edges = sparse.csr_array(edges, shape=(problem.n, nodes.shape[1] ** 2))
            (x,) = x
            x = x.toarray() if sparse.issparse(x) else x
            mu = nodes[at : at + len(x)]
            at += len(x)
            parts = [x.T @ mu, mu.sum(axis=0), mu[0], mu[-1], edges[[i]].toarray()]
            feature = np.concatenate([part.ravel() for part in parts])
        else:
            feature = np.zeros(problem.listed.d)
            indices, values = state["blocks"][i]
            feature[indices] = values
        v -= p[i] / lam * feature
    return v, p @ state["loss"]


def check_certificate(watched):
    """What is certified, by the dual variables."""
    solver, listed, p = watched.solver, watched.listed, watched.p
    row, w, lowest = certify(solver)
    v, loss, alpha = watched.dual_point(solver)
    scale = 1.0 + np.abs(v).max() + np.abs(solver.weights).max()
    # κ / λ up to 1e3 is what a difference of v and z is multiplied by.
    np.testing.assert_allclose(solver.dual_image(), v, rtol=0, atol=1e-11 * scale)
    assert solver.loss == pytest.approx(loss, rel=1e-12)
    lower, upper = watched.bounds
    assert ((w >= lower) & (w <= upper)).all()
    primal, dual = listed.primal(w, LAM, p), dual_of_box(v, loss, LAM, lower, upper)
    size = 1.0 + abs(primal) + abs(dual)
    assert row["objective"] == pytest.approx(primal, rel=1e-11)
    assert row["dual_gap"] == pytest.approx(primal - dual, abs=1e-10 * size)
    assert row["dual_objective"] == pytest.approx(dual, abs=1e-10 * size)
    assert lowest >= -1e-12 * size
    if alpha is not None and solver.kappa == 0.0:
        # Equation 7: the gap of each block.
        values = [listed.values(i, solver.weights) for i in range(N)]
        means = np.array([p[i] * alpha[i] @ values[i] for i in range(N)])
        gaps = [p[i] * values[i].max() for i in range(N)] - means
        np.testing.assert_allclose(solver.block_gaps, gaps, rtol=0, atol=1e-13 * size)
        np.testing.assert_allclose(solver.block_means, means, rtol=0, atol=1e-13 * size)


@pytest.mark.parametrize(("kind", "layout", "step", "variant"), CASES)
def test_the_gap_is_primal_minus_dual_and_no_step_decreases_the_dual(
    kind, layout, step, variant
):
    watched, rng = Watched(kind, layout, step, variant), new_rng(0)
    solver = watched.solver
    n_hits = 0
    for blocks in np.split(visits(N, passes=30), 6):
        check_certificate(watched)
        before = watched.proximal_dual()
        last, n_before = -np.inf, solver.n_cache_hits
        for i in blocks:
            solver.run(np.array([i]))
            if solver.kappa == 0.0:
                assert solver.dual_objective >= last - 1e-14
                last = solver.dual_objective
        n_hits += solver.n_cache_hits - n_before
        if step != "fw":
            calls = solver.n_oracle_calls
            solver.run_cached(blocks[:N])
            assert solver.n_oracle_calls == calls
        after = watched.proximal_dual()
        assert after >= before - 1e-12 * (1.0 + abs(before))
        if "accelerated" in variant:
            # Centers that no one would choose.
            if solver.kappa == 0.0 or rng.random() < 0.3:
                solver.set_kappa(LAM * rng.choice([0.0, 0.5, 9.0, 1e3]))
            if solver.kappa > 0.0:
                solver.extrapolate(rng.uniform(-0.5, 2.0))
    check_certificate(watched)
    assert (n_hits > 0) == ("cached" in variant)
    if step == "corrective":
        # Gram matrices are those of the joint features.
        for i, block in enumerate(solver.get_state()["atoms"]):
            places = [watched.place(i, labeling) for labeling, _, _ in block]
            features = watched.listed.delta(i)[places]
            gram = features @ features.T
            atol = 1e-12 * (1.0 + np.abs(gram).max())
            np.testing.assert_allclose(solver.gram(i), gram, rtol=0, atol=atol)
    # Rounding does not pile up.
    v = solver.dual_image().copy()
    solver.rebuild_weights()
    scale = 1.0 + np.abs(v).max()
    np.testing.assert_allclose(solver.dual_image(), v, rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize(("kind", "layout", "step", "variant"), STATES)
def test_a_pickled_state_is_the_same_dual_point_for_any_lambda_and_weights(
    kind, layout, step, variant
):
    watched = Watched(kind, layout, step, variant)
    old = watched.solver
    old.check_gaps()
    old.run(visits(N, passes=5))
    state = pickle.loads(pickle.dumps(old.get_state()))
    v, _, alpha = watched.dual_point(old)
    for lam, p in ((LAM, watched.p), (0.2, uneven_weights())):
        new = watched.make(lam, p)
        new.set_state(state)
        if watched.is_slack and step == "fw" and lam != LAM:
            continue
        v, loss, same = watched.dual_point(new, lam, p)
        np.testing.assert_allclose(
            new.weights, np.clip(v, *watched.bounds), rtol=0, atol=1e-12
        )
        assert new.loss == pytest.approx(loss, rel=1e-12)
        if alpha is not None:
            for one, other in zip(alpha, same, strict=True):
                np.testing.assert_array_equal(one, other)
        primal = watched.listed.primal(new.weights, lam, p)
        dual = dual_of_box(v, loss, lam, *watched.bounds)
        assert new.check_gaps()[1] == pytest.approx(primal - dual, rel=1e-9, abs=1e-12)
    # λ alone may also be changed in place.
    old.set_lambda(0.2)
    new = watched.make(0.2, watched.p)
    new.set_state(state)
    np.testing.assert_allclose(old.weights, new.weights, rtol=0, atol=1e-12)
    # A state is a copy.
    before = pickle.dumps(state)
    new.run(visits(N, passes=3))
    assert pickle.dumps(state) == before


@given(
    multiclass_cases() | binary_cases() | multilabel_cases() | chain_cases(),
    st.sampled_from([1e-9, 1e-2, 1.0, 1e9]),
    st.sampled_from(["pairwise", "away", "corrective"]),
    st.sampled_from([0, 2]),
)
def test_the_gap_is_true_for_ties_zeros_duplicates_and_any_lambda(
    case, lam, step, cache_size
):
    problem = Problem(case.structure, case.X, case.y, case.listed)
    solver = problem.solver(lam, step=step, cache_size=cache_size)
    for k in range(4):
        gap = solver.check_gaps()[1]
        alpha, w = explicit_alpha(problem, solver), solver.weights
        v, loss = case.listed.dual_point(alpha, lam)
        # Rounding is relative to the largest terms of the two objectives, and to the
        # longest w there may have been on the way.
        radius = case.listed.radius()
        size = 1.0 + lam * w @ w + radius**2 / lam
        size += max(np.abs(case.listed.values(i, w)).max() for i in range(problem.n))
        atol = 1e-14 * max(1.0, radius / lam)
        np.testing.assert_allclose(w, v, rtol=0, atol=atol)
        difference = case.listed.primal(w, lam) - case.listed.dual(alpha, lam)
        assert abs(gap - difference) <= 1e-14 * size
        assert solver.block_gaps.min() >= -1e-14 * size
        solver.run(new_rng(k).integers(problem.n, size=3 * problem.n))


@pytest.mark.parametrize("step", ["pairwise", "away"])
def test_plain_steps_take_any_state_and_other_steps_need_its_masses(step):
    problem = random_problem("chain")
    plain, other = problem.solver(LAM), problem.solver(LAM, step=step)
    for solver in (plain, other):
        solver.run(visits(N, passes=5))
    with pytest.raises(ValueError, match="plain steps.*pairwise, away and corrective"):
        problem.solver(LAM, step=step).set_state(plain.get_state())
    for old in (plain, other):
        new = problem.solver(LAM, cache_size=4)
        new.set_state(old.get_state())
        np.testing.assert_allclose(new.weights, old.weights, rtol=0, atol=1e-12)
    for solver, expected in ((plain, "fw"), (other, "corrective")):
        oracle, p = problem.make_oracle(), problem.listed.uniform
        assert start_bcfw(oracle, p, LAM, state=solver.get_state())[1] == expected
