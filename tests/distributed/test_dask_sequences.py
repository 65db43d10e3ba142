"""Structural SVMs over parts of the examples: optimum, certificate, lost parts."""

import pickle
from time import sleep

import numpy as np
import pytest
from _dask_cluster import check_nothing_is_left, each_message, kill_worker
from _dask_data import disturbed_passes, in_bag
from _estimators import PythonMulticlass, assert_same_optimum
from _problems import KINDS, dual_of_box, explicit_alpha, random_box, random_problem
from _seeds import new_rng, new_seed
from _wrong_rows import row_of
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import (
    BCFWClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.distributed import blocks, dask_workers
from sklearn_structsvm.distributed.blocks import BlockShard, DistributedBlocks
from sklearn_structsvm.distributed.dask_workers import LocalWorkers
from sklearn_structsvm.distributed.examples import Examples
from sklearn_structsvm.estimators.steps import BlockSteps
from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.solvers.blocks.bcfw import certify, run_bcfw
from sklearn_structsvm.solvers.blocks.mixture import PlaneMixture
from sklearn_structsvm.structures import (
    ChainStructure,
    MulticlassStructure,
    TreeStructure,
)
from sklearn_structsvm.structures._probe import Probe

dask = pytest.importorskip("dask")
bag = pytest.importorskip("dask.bag")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

LAM, N = 0.05, 12


def make_iterate(problem, n_parts, p, bounds=None, step="corrective"):
    """Parts in this process: (the iterate, their shards)."""
    shards = []
    for k in range(n_parts):
        mine = range(k, problem.n, n_parts)
        X = problem.X
        X = X[list(mine)] if hasattr(X, "shape") else [X[i] for i in mine]
        y = [problem.y[i] for i in mine]
        y = np.array(y) if hasattr(problem.y, "shape") else y
        shards.append(
            BlockShard(
                Examples(problem.structure, X, y, p[list(mine)]),
                BlockSteps(step, bounds=bounds),
                (new_seed(0), k),
            )
        )
    sizes = problem.n, n_parts, problem.structure.n_weights_
    return DistributedBlocks(LocalWorkers(shards), *sizes, LAM, bounds)


def whole_alpha(problem, iterate):
    """Dual variables over the listed labelings, of all parts."""
    shards = iterate.workers.shards
    alpha = [None] * problem.n
    for k, shard in enumerate(shards):
        mine = range(k, problem.n, len(shards))
        part = random_part(problem, mine)
        for i, masses in zip(mine, explicit_alpha(part, shard.iterate), strict=True):
            alpha[i] = masses
    return alpha


def random_part(problem, mine):
    class Part:
        class listed:
            loss = [problem.listed.loss[i] for i in mine]
            labelings = [problem.listed.labelings[i] for i in mine]

    return Part


@pytest.mark.parametrize("has_box", [False, True])
@pytest.mark.parametrize("step", ["corrective", "pairwise"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "custom"])
def test_the_gap_is_true_whatever_happens_to_the_parts(kind, step, has_box):
    problem, rng = random_problem(kind, n=N), new_rng(1)
    p = rng.uniform(0.2, 1.0, size=N)
    p /= p.sum()
    lower, upper, _ = random_box(rng, problem.listed.d, has_box=has_box)
    bounds = (lower, upper) if has_box else None
    iterate = make_iterate(problem, 3, p, bounds, step)
    for _ in disturbed_passes(iterate, rng):
        row, weights, lowest = certify(iterate)
        v, loss = problem.listed.dual_point(whole_alpha(problem, iterate), LAM, p)
        dual = dual_of_box(v, loss, LAM, lower, upper)
        primal = problem.listed.primal(weights, LAM, p)
        size = 1.0 + abs(dual)
        assert row["objective"] == pytest.approx(primal, abs=1e-10 * size)
        assert row["dual_gap"] == pytest.approx(primal - dual, abs=1e-9 * size)
        assert lowest >= -1e-12 * size


@pytest.mark.parametrize("step", ["corrective", "pairwise"])
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_mixtures_of_planes_are_true_whatever_happens_to_the_parts(kind, step):
    problem, rng = random_problem(kind, n=N), new_rng(2)
    p = problem.listed.uniform
    iterate = make_iterate(problem, 3, p, None, step)
    shards = iterate.workers.shards
    fresh = [pickle.dumps(shard) for shard in shards]
    iterate.make_pass(None)
    iterate.rebuild_weights()
    mixture = PlaneMixture(iterate)
    mixture.start(iterate.weights.copy())
    for k in range(40):
        before, is_event = iterate.dual_objective, rng.random() < 0.2
        if is_event:
            j = rng.integers(3)
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
    iterate = make_iterate(problem, 3, problem.listed.uniform)
    result = run_bcfw(
        iterate, team=iterate, sampling="permuted", tol=1e-6, max_iter=10**4, rng=0
    )
    assert result.status == "converged"
    alone = problem.solver(LAM, step="corrective")
    other = run_bcfw(alone, tol=1e-6, max_iter=10**4, rng=0)
    assert abs(result.objective - other.objective) <= 1e-6


# Estimators.


def chains(n=60):
    return make_chains(n_samples=n, random_state=new_seed(0))


def problems():
    X, y = chains()
    few = [sparse.csr_array(np.where(np.abs(x) > 1.0, x, 0.0)) for x in X]
    split = [SplitMatrix([x, own]) for x, own in zip(X, few, strict=True)]
    names = [np.array(list("abcdefghijkl"))[labels] for labels in y]
    rng = new_rng(0)
    trees = [(x, np.array([-1, *(rng.integers(t) for t in range(1, len(x)))])) for x in X]
    vectors = list(rng.standard_normal((60, 4)))
    labels = [int(np.argmax(x[:3])) for x in vectors]
    fit = {"C": 0.05, "tol": 1e-4, "max_iter": 10**5, "random_state": 0}
    balanced = {"class_weight": "balanced"}
    return {
        "chains": (BCFWClassifier(**fit), X, y),
        "names": (BCFWClassifier(ChainStructure(), **fit, **balanced), few, names),
        "pairwise": (BCFWClassifier(**fit, step="pairwise"), X, y),
        "bounds": (
            BCFWClassifier(**fit, solver_options={"coef_bounds": (-0.1, 0.2)}),
            split,
            y,
        ),
        "trees": (BCFWClassifier(TreeStructure(), **fit), trees, y),
        "slack": (SlackRescaledSSVM(**fit), X, y),
        "margin": (SlackRescaledSSVM(**fit, rescaling="margin"), X, y),
        "crf": (CRFClassifier(**fit), X, y),
        "python": (BCFWClassifier(PythonMulticlass(), **fit), vectors, labels),
    }


KINDS_OF_FITS = list(problems())


def check_the_optimum(model, X, y, s, here):
    assert_same_optimum(model, here, model.C * s.sum())
    assert model.dual_gap_ <= model.tol
    assert model.structure_.n_weights_ == here.structure_.n_weights_
    assert model.n_oracle_calls_ > len(X)
    # The objective, one example at a time.
    if isinstance(model, BCFWClassifier):
        w, hinge = model.coef_, 0.0
        for weight, x, labels in zip(s / s.sum(), X, y, strict=True):
            X_in, y_in = model.structure_.check_data([x], [labels])
            probe = Probe(model.structure_.make_oracle(X_in, y_in), 0, w)
            hinge += weight * sum(probe.best(1.0)[1:3])
        value = 0.5 * w @ w / (model.C * s.sum()) + hinge
        assert model.objective_ == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS_OF_FITS)
def test_the_optimum_is_that_of_the_fit_in_memory(kind, monkeypatch):
    model, X, y = problems()[kind]
    s = new_rng(1).uniform(0.5, 2.0, size=len(X))
    here = clone(model).fit(X, y, sample_weight=s)
    monkeypatch.setattr("sklearn_structsvm.distributed.sequences.n_places", lambda: 3)
    model.fit(in_bag(X), in_bag(y), sample_weight=in_bag(s))
    check_the_optimum(model, X, y, s, here)
    if kind == "slack":
        assert model.n_queries_ >= model.n_oracle_calls_
    predicted = model.predict(in_bag(X))
    assert isinstance(predicted, bag.Bag)
    given = predicted.compute(scheduler="sync")
    for labels, expected in zip(given, model.predict(X), strict=True):
        np.testing.assert_array_equal(labels, expected)


def test_delayed_parts_do_as_well():
    X, y = chains()
    model = BCFWClassifier(C=0.05, tol=0.01, random_state=0)
    parts = [dask.delayed(list)(X[i : i + 20]) for i in (0, 20, 40)]
    labels = [dask.delayed(list)(y[i : i + 20]) for i in (0, 20, 40)]
    model.fit(parts, labels)
    here = clone(model).fit(in_bag(X), in_bag(y))
    np.testing.assert_array_equal(model.coef_, here.coef_)
    predicted = dask.compute(*model.predict(parts))
    assert [len(part) for part in predicted] == [20, 20, 20]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BCFWClassifier(warm_start=True), "warm_start=True needs data in memory"),
        (BCFWClassifier(step="fw"), "step='fw' needs data in memory"),
        (
            BCFWClassifier(solver_options={"average": True}),
            "average=True needs data in memory",
        ),
        (
            BCFWClassifier(solver_options={"sampling": "gap"}),
            "sampling='gap' needs data in memory",
        ),
        (SlackRescaledSSVM(solver="sgd"), "solver='sgd' needs data in memory"),
    ],
    ids=str,
)
def test_what_needs_data_in_memory_says_so(model, message):
    X, y = chains(9)
    with pytest.raises(ValueError, match=message):
        model.fit(in_bag(X), in_bag(y))
    assert not hasattr(model, "coef_")


def test_wrong_parts_are_errors_before_any_work():
    X, y = chains(9)
    model = BCFWClassifier()
    with pytest.raises(TypeError, match="one row per example: pass a Dask array or da"):
        BCFWClassifier(MulticlassStructure()).fit(in_bag(X), in_bag(y))
    with pytest.raises(ValueError, match="class_weight cannot be used with Python"):
        own = BCFWClassifier(PythonMulticlass(), class_weight="balanced")
        own.fit(in_bag(X), in_bag(y))
    with pytest.raises(ValueError, match="same number of parts; got 4, 3"):
        model.fit(in_bag(X), in_bag(y, 2))
    with pytest.raises(TypeError, match="y must be a dask.bag"):
        model.fit(in_bag(X), y)
    with pytest.raises(ValueError, match="Part 1 has 3 examples in X, but 2 in y"):
        model.fit(in_bag(X), in_bag(y[:7]))
    with pytest.raises(ValueError, match="X is empty"):
        model.fit(in_bag([]), in_bag([]))
    other = [*X[:-1], X[-1][:, :3]]
    with pytest.raises(ValueError, match="features"):
        model.fit(in_bag(other), in_bag(y))
    huge = [*X[:-1], 1e160 * X[-1]]
    with pytest.raises(ValueError, match="X has features as large as .*overflow"):
        model.fit(in_bag(huge), in_bag(y))
    with pytest.raises(ValueError, match="Part 1: "):
        model.fit(in_bag(X), in_bag(y), sample_weight=in_bag([1, 1, 1, -1, *[1] * 5]))


class Strays(PythonMulticlass):
    """For one example, its joint features have an index out of range."""

    def joint_feature(self, x, y):
        phi = super().joint_feature(x, y)
        return row_of(len(phi), [99]) if x[0] == 7.0 else phi


def test_errors_of_a_structure_on_a_worker_tell_of_which_part_they_are(monkeypatch):
    monkeypatch.setattr("sklearn_structsvm.distributed.sequences.n_places", lambda: 2)
    X, y = list(np.ones((12, 4))), [0] * 12
    X[7] = np.full(4, 7.0)
    message = "joint_feature of Strays must have indices from 0 to 11; got the index 99"
    with pytest.raises(ValueError, match=f"{message} for example 3") as caught:
        BCFWClassifier(Strays()).fit(in_bag(X, 3), in_bag(y, 3))
    assert caught.value.__notes__ == [
        "The example is one of part 1, 3, counted on from its start."
    ]


# Predictions of collections of rows.


def test_predictions_of_collections_are_lazy_and_those_of_the_rows():
    X = new_rng(0).standard_normal((90, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    Y = (X[:, :3] > 0).astype(int)
    sizes = (50, 30, 10)
    models = [
        SubLBFGSClassifier(C=0.1).fit(X, y),
        BCFWClassifier(C=0.1, random_state=0).fit(X, y),
        BCFWClassifier(C=0.1, random_state=0).fit(X, Y),
        ComplexMetricClassifier(LogisticRegression(), random_state=0).fit(X, y),
    ]
    array = da.from_array(X, chunks=(sizes, 4))
    for model in models:
        expected = model.predict(X)
        dense = model.predict(array)
        assert isinstance(dense, da.Array) and dense.shape == expected.shape
        assert dense.dtype == expected.dtype
        np.testing.assert_array_equal(dense.compute(), expected)
        csr = model.predict(array.map_blocks(sparse.csr_array))
        np.testing.assert_array_equal(csr.compute(), expected)


def test_predictions_of_frames_are_lazy_and_those_of_the_rows():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", exc_type=ImportError)
    X = new_rng(0).standard_normal((90, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    frame = pd.DataFrame(X, columns=["p", "q", "r", "s"])
    for model in (SubLBFGSClassifier(C=0.1), ComplexMetricClassifier(random_state=0)):
        model.fit(frame, y)
        lazy = model.predict(dd.from_pandas(frame, npartitions=3))
        np.testing.assert_array_equal(lazy.compute(), model.predict(frame))


# On a cluster.


@pytest.mark.parametrize("kind", ["chains", "slack", "crf"])
def test_a_cluster_reaches_the_optimum(client, kind):
    model, X, y = problems()[kind]
    s = np.ones(len(X))
    here = clone(model).fit(X, y)
    model.fit(in_bag(X), in_bag(y))
    check_the_optimum(model, X, y, s, here)
    again = clone(model).fit(in_bag(X), in_bag(y))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert len(model.predict(in_bag(X)).compute()) == len(X)
    check_nothing_is_left(client)


@pytest.mark.slow
@pytest.mark.parametrize("large", [2**20, 0])
def test_a_killed_worker_changes_nothing_but_time(own_client, large, monkeypatch):
    model, X, y = problems()["chains"]
    here = clone(model).fit(X, y)

    def kill(workers):
        kill_worker(own_client, workers.homes[0])
        # What is sent to all before the scheduler knows waits for the dead one.
        while not large and workers.homes[0] in own_client.nthreads():
            sleep(0.05)

    monkeypatch.setattr(dask_workers, "LARGE_MESSAGE", large)
    _, replies = each_message(monkeypatch, 6, kill)
    model.fit(in_bag(X), in_bag(y))
    assert any(reply.is_new for reply in replies[5:])
    assert not any(reply.is_new for reply in replies[:5])
    check_the_optimum(model, X, y, np.ones(len(X)), here)


@pytest.mark.slow
def test_sums_go_on_where_a_worker_is_lost(own_client, monkeypatch):
    X, y = chains()
    model = CRFClassifier(C=0.05, tol=1e-6, random_state=0)
    here = clone(model).fit(X, y)
    homes, _ = each_message(
        monkeypatch, 4, lambda workers: kill_worker(own_client, workers.homes[0])
    )
    model.fit(in_bag(X), in_bag(y))
    assert len(homes) > 4
    assert_same_optimum(model, here, model.C * len(X))


def test_interrupted_fits_leave_nothing_behind(client, monkeypatch):
    X, y = chains()
    make_round, rounds = blocks.make_round, []

    def interrupted(self, rng, deadline=np.inf):
        rounds.append(make_round)
        if len(rounds) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(blocks.DistributedBlocks, "make_pass", interrupted)
    model = BCFWClassifier(C=0.05)
    with pytest.raises(KeyboardInterrupt):
        model.fit(in_bag(X), in_bag(y))
    assert not hasattr(model, "coef_")
    check_nothing_is_left(client)
