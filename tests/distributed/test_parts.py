"""Iterates whose examples are in parts: true, whatever happens to the parts.

They are in this process. A part is lost with its worker, or handed over to another.
"""

import pickle
import threading

import numpy as np
import pytest
from _dask_data import disturbed_passes
from _estimators import PythonMulticlass, make_problem
from _problems import (
    KINDS,
    PRESENTED,
    alpha_of_moves,
    dual_of_box,
    explicit_alpha,
    random_box,
    random_problem,
)
from _seeds import new_rng, new_seed

from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.distributed import blocks
from sklearn_structsvm.distributed.blocks import BlockShard, DistributedBlocks
from sklearn_structsvm.distributed.dask_workers import LocalWorkers
from sklearn_structsvm.distributed.examples import Examples
from sklearn_structsvm.distributed.sums import DistributedSums, SumShard
from sklearn_structsvm.estimators.steps import BlockSteps, ExactSteps
from sklearn_structsvm.solvers.blocks import bcfw, exact
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw
from sklearn_structsvm.solvers.blocks.mixture import PlaneMixture
from sklearn_structsvm.structures import ChainStructure

LAM, N, K = 0.05, 12, 3
FLAT = ("binary", "multiclass", "multilabel")
CASES = [(*pair, "exact", False) for pair in PRESENTED if pair[0] in FLAT]
CASES += [
    (kind, "dense", step, has_box)
    for kind in KINDS
    if kind != "custom"
    for step in ("corrective", "pairwise")
    for has_box in (False, True)
]


def taken(data, places):
    return data[places] if hasattr(data, "shape") else [data[i] for i in places]


def make_shards(problem, p, steps):
    shards = []
    for k in range(K):
        mine = np.arange(k, problem.n, K)
        data = taken(problem.X, mine), taken(problem.y, mine)
        examples = Examples(problem.structure, *data, p[mine])
        shards.append(BlockShard(examples, steps, (new_seed(0), k)))
    return shards


def make_iterate(problem, p, step, bounds=None, workers=LocalWorkers):
    steps = ExactSteps() if step == "exact" else BlockSteps(step, bounds=bounds)
    shards = make_shards(problem, p, steps)
    sizes = problem.n, K, problem.structure.n_weights_
    return DistributedBlocks(workers(shards), *sizes, LAM, bounds)


def whole_alpha(problem, iterate):
    """Dual variables over the listed labelings, of all parts."""
    alpha = [None] * problem.n
    for k, shard in enumerate(iterate.workers.shards):
        mine = np.arange(k, problem.n, K)

        class Part:
            class listed:
                loss = [problem.listed.loss[i] for i in mine]
                labelings = [problem.listed.labelings[i] for i in mine]
                truth = [problem.listed.truth[i] for i in mine]

            structure = problem.structure

        if hasattr(shard.iterate, "is_corrective"):
            own = explicit_alpha(Part, shard.iterate)
        else:
            own = alpha_of_moves(Part, shard.iterate.get_state()["blocks"])
        for i, masses in zip(mine, own, strict=True):
            alpha[i] = masses
    return alpha


@pytest.mark.parametrize(("kind", "layout", "step", "has_box"), CASES)
def test_the_gap_is_true_whatever_happens_to_the_parts(kind, layout, step, has_box):
    problem, rng = random_problem(kind, layout, n=N), new_rng(1)
    p = rng.uniform(0.2, 1.0, size=N)
    p[4] = 0.0
    p /= p.sum()
    lower, upper, _ = random_box(rng, problem.listed.d, has_box=has_box)
    iterate = make_iterate(problem, p, step, (lower, upper) if has_box else None)
    certify = exact.certify if step == "exact" else bcfw.certify
    for _ in disturbed_passes(iterate, rng):
        row, weights, *_ = certify(iterate)
        v, loss = problem.listed.dual_point(whole_alpha(problem, iterate), LAM, p)
        dual = dual_of_box(v, loss, LAM, lower, upper)
        primal = problem.listed.primal(weights, LAM, p)
        size = 1.0 + abs(dual)
        assert row["objective"] == pytest.approx(primal, abs=1e-10 * size)
        assert row["dual_gap"] == pytest.approx(primal - dual, abs=1e-9 * size)
        if step == "exact":
            # And so is the plane that a start leaves.
            _, offset, gradient = iterate.plane()
            lowest = offset - gradient @ gradient / (2.0 * LAM)
            assert lowest == pytest.approx(dual, abs=1e-9 * size)
            risk = primal - 0.5 * LAM * weights @ weights
            assert offset + gradient @ weights <= risk + 1e-9 * size


@pytest.mark.parametrize("step", ["corrective", "pairwise"])
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_mixtures_of_planes_are_true_whatever_happens_to_the_parts(kind, step):
    problem, rng = random_problem(kind, n=N), new_rng(2)
    p = problem.listed.uniform
    iterate = make_iterate(problem, p, step)
    shards = iterate.workers.shards
    fresh = [pickle.dumps(shard) for shard in shards]
    iterate.make_pass(None)
    iterate.rebuild_weights()
    mixture = PlaneMixture(iterate)
    mixture.start(iterate.weights.copy())
    for k in range(40):
        before, is_event = iterate.dual_objective, rng.random() < 0.2
        if is_event:
            j = rng.integers(K)
            other = fresh[j] if k % 2 else pickle.dumps(shards[j])
            shards[j] = pickle.loads(other)
        mixture.take()
        v, loss = problem.listed.dual_point(whole_alpha(problem, iterate), LAM, p)
        dual = loss - 0.5 * LAM * v @ v
        assert iterate.dual_objective == pytest.approx(dual, abs=1e-10)
        assert is_event or iterate.dual_objective >= before - 1e-12
        if np.isfinite(mixture.objective):
            primal = problem.listed.primal(mixture.best, LAM, p)
            assert mixture.objective == pytest.approx(primal, abs=1e-10)
    for _ in range(200):
        mixture.take()
    assert mixture.gap() <= 1e-6


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "custom"])
def test_rounds_of_parts_reach_the_optimum(kind):
    problem = random_problem(kind, n=N)
    iterate = make_iterate(problem, problem.listed.uniform, "corrective")
    options = {"tol": 1e-6, "max_iter": 10**4, "rng": 0}
    result = run_bcfw(iterate, team=iterate, sampling="permuted", **options)
    assert result.status == "converged"
    other = run_bcfw(problem.solver(LAM, step="corrective"), **options)
    assert abs(result.objective - other.objective) <= 1e-6


def test_sums_over_parts_are_those_of_all_whatever_happens_to_them():
    X, y = make_chains(40, n_classes=3, random_state=new_seed(0))
    structure = ChainStructure().fit(*ChainStructure().check_data(X, y))
    X, y = structure.check_data(X, y)
    rng = new_rng(1)
    p = rng.random(len(X))
    p /= p.sum()
    shards = [
        SumShard(Examples(structure, taken(X, mine), taken(y, mine), p[mine]))
        for mine in (np.arange(k, len(X), K) for k in range(K))
    ]
    sums = DistributedSums(LocalWorkers(shards), len(X), structure.n_weights_)
    squares = structure._mean_squares(X, p)
    np.testing.assert_allclose(sums.mean_squares(), squares, rtol=1e-12)
    oracle = structure.make_oracle(X, y)
    for k in range(4):
        w = rng.standard_normal(structure.n_weights_)
        value, gradient = sums.log_loss(None, w)
        expected, slope = oracle.log_loss(p, w)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12)
        shards[k % K] = pickle.loads(pickle.dumps(shards[k % K]))
        assert shards[k % K].oracle is None


# Copies, as of workers that are short of memory.


class Copied(LocalWorkers):
    """Parts of which each answer is that of a copy."""

    def __init__(self, shards):
        super().__init__(shards)
        self.replies = []

    def tell(self, function, message, merge):
        self.shards = [pickle.loads(pickle.dumps(shard)) for shard in self.shards]
        self.replies.append(super().tell(function, message, merge))
        return self.replies[-1]


@pytest.mark.parametrize(
    ("kind", "step"),
    [("chain", "corrective"), ("chain-csr", "pairwise"), ("custom", "corrective")]
    + [("multiclass", "exact"), ("multilabel", "exact")],
)
def test_a_copy_goes_on_where_the_part_was(kind, step):
    """The best step is a share of the last round's, which the copy has to know."""
    problem, p = make_problem(kind, n=24), np.full(24, 1.0 / 24)
    problem.structure.fit(problem.X, problem.y)
    iterate, other = (
        make_iterate(problem, p, step, workers=w) for w in (Copied, LocalWorkers)
    )
    for _ in range(15):
        before = iterate.dual_objective
        for each in (iterate, other):
            each.make_pass(None)
        assert iterate.dual_objective >= before - 1e-12
    assert not any(reply.is_new for reply in iterate.workers.replies)
    _, gap = iterate.check_gaps()
    assert iterate.dual_objective + gap >= other.dual_objective - 1e-12
    v = iterate.unclipped_weights.copy()
    iterate.rebuild_weights()
    np.testing.assert_allclose(iterate.unclipped_weights, v, atol=1e-12)


def test_a_copy_has_no_planes_and_says_so():
    problem = random_problem("chain", n=N)
    iterate = make_iterate(problem, problem.listed.uniform, "corrective")
    iterate.make_pass(None)
    shares = np.array([0.5, 0.5])
    _, a, _ = iterate.take_plane(iterate.weights.copy(), 0, 2)
    u = 0.5 * iterate.dual_image() - 0.5 * a / LAM
    iterate.mix(shares, u)
    shards = iterate.workers.shards
    shards[1] = pickle.loads(pickle.dumps(shards[1]))
    with pytest.raises(blocks.PlanesLost):
        iterate.mix(shares, u)
    # Its weights are those of the parts again.
    hinge, gap = iterate.check_gaps()
    assert gap >= -1e-12
    assert iterate.dual_objective <= iterate.penalty(iterate.weights) + hinge


class Watched(PythonMulticlass):
    """Calls this before each decoding in training."""

    watch = staticmethod(lambda: None)

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        self.watch()
        return super().loss_augmented_decode(x, y_true, w, lam)


def test_a_part_is_copied_between_rounds_only(monkeypatch):
    """A worker copies it in a thread of its own, which may do so at any time."""
    problem = make_problem("custom", n=24)
    problem.structure = Watched().fit(problem.X, problem.y)
    part = make_shards(problem, np.full(24, 1.0 / 24), BlockSteps("corrective"))[0]
    copies, threads = [], []

    def watch():
        assert part._lock.locked()
        if not threads:
            copy = threading.Thread(target=lambda: copies.append(pickle.dumps(part)))
            threads.append(copy)
            copy.start()

    monkeypatch.setattr(Watched, "watch", staticmethod(watch))
    v = np.zeros(problem.structure.n_weights_)
    blocks.make_round(part, blocks.Message(0, 1.0, v, LAM))
    threads[0].join()
    copied = pickle.loads(copies[0])
    assert copied.number == 0 and copied.awaits_gamma
    expected = part.iterate.get_state()["loss"]
    assert expected.any()
    np.testing.assert_array_equal(copied.state["loss"], expected)


def test_parts_that_are_always_lost_are_an_error():
    problem = random_problem("chain", n=N)
    fresh = make_shards(problem, problem.listed.uniform, BlockSteps("corrective"))

    class Lost(LocalWorkers):
        def tell(self, function, message, merge):
            self.shards = pickle.loads(pickle.dumps(fresh))
            return super().tell(function, message, merge)

    iterate = make_iterate(problem, problem.listed.uniform, "corrective", workers=Lost)
    with pytest.raises(RuntimeError, match="too little memory to keep .* Give them more"):
        iterate.make_pass(None)
        iterate.make_pass(None)
