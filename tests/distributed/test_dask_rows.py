"""Dual steps on rows in parts: their certificate, the optimum, and what comes after."""

import numpy as np
import pytest
from _dask_cluster import check_nothing_is_left, kill_worker
from _dask_data import (
    COSTS,
    EXACT,
    check_the_same,
    da,
    disturbed_passes,
    divided,
    problems,
    rows,
)
from _estimators import assert_same_optimum
from _options import placed
from _problems import LAYOUTS, alpha_of_moves, random_problem
from _seeds import new_rng, new_seed
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM, SubLBFGSClassifier
from sklearn_structsvm.distributed import blocks, dask_workers
from sklearn_structsvm.distributed.blocks import BlockShard, DistributedBlocks
from sklearn_structsvm.distributed.dask_workers import LocalWorkers
from sklearn_structsvm.distributed.examples import Examples
from sklearn_structsvm.estimators.steps import ExactSteps
from sklearn_structsvm.solvers.blocks.dual_start import DualStart
from sklearn_structsvm.solvers.blocks.exact import certify
from sklearn_structsvm.structures import (
    ChainStructure,
    HierarchicalStructure,
    MulticlassStructure,
    MultilabelStructure,
)

distributed = pytest.importorskip("distributed")

LAM, N, K = 0.05, 12, 3
FIT = {"C": 0.1, "tol": 1e-6, "max_iter": 10**5, "random_state": 0}
FLAT = ("binary", "multiclass", "multilabel")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", FLAT)
def test_the_gap_is_true_whatever_happens_to_the_parts(kind, layout):
    problem, rng = random_problem(kind, layout, n=N), new_rng(1)
    p = rng.uniform(0.2, 1.0, size=N)
    p[4] = 0.0
    p /= p.sum()
    parts = [np.arange(k, N, K) for k in range(K)]
    shards = [
        BlockShard(
            Examples(problem.structure, problem.X[mine], problem.y[mine], p[mine]),
            ExactSteps(),
            (new_seed(0), k),
        )
        for k, mine in enumerate(parts)
    ]
    sizes = N, K, problem.structure.n_weights_
    iterate = DistributedBlocks(LocalWorkers(shards), *sizes, LAM)
    for _ in disturbed_passes(iterate, rng):
        row, weights = certify(iterate)
        moves = np.empty((N, shards[0].iterate.k))
        for mine, shard in zip(parts, shards, strict=True):
            moves[mine] = shard.iterate.get_state()["blocks"]
        dual = problem.listed.dual(alpha_of_moves(problem, moves), LAM, p)
        primal = problem.listed.primal(weights, LAM, p)
        size = 1.0 + abs(dual)
        assert row["objective"] == pytest.approx(primal, abs=1e-10 * size)
        assert row["dual_gap"] == pytest.approx(primal - dual, abs=1e-9 * size)
        # And so is the plane that a start leaves.
        _, offset, gradient = iterate.plane()
        lowest = offset - gradient @ gradient / (2.0 * LAM)
        assert lowest == pytest.approx(dual, abs=1e-9 * size)
        risk = primal - 0.5 * LAM * weights @ weights
        assert offset + gradient @ weights <= risk + 1e-9 * size


def fits():
    found = {
        name: (placed(BCFWClassifier)(**FIT, **options), X, y, s)
        for name, (X, y, s, options) in problems().items()
        if not {"label_costs", "loss"} & set(options) and name != "pairs of labels"
    }
    X, y, s = rows()
    several = problems()["several labels"][1]
    plain = BCFWClassifier(**FIT | {"tol": 1e-3}, solver_options={"acceleration": False})
    found |= {
        "costs": (BCFWClassifier(MulticlassStructure(COSTS), **FIT), X, y, s),
        "named": (BCFWClassifier(MultilabelStructure(), **FIT), X, several, s),
        "bounds": (
            BCFWClassifier(**FIT, solver_options={"coef_bounds": (-0.1, 0.1)}),
            X,
            y,
            s,
        ),
        "pairwise": (BCFWClassifier(**FIT, step="pairwise"), X, several, s),
        "plain rounds": (plain, X, y, s),
        "slack": (SlackRescaledSSVM(**FIT), X, several, s),
        "margin": (SlackRescaledSSVM(**FIT, rescaling="margin"), X, y, s),
    }
    return found


@pytest.mark.parametrize("name", list(fits()))
def test_the_optimum_is_that_of_the_fit_in_memory(name, monkeypatch):
    model, X, y, s = fits()[name]
    here = clone(model).fit(X, y, sample_weight=s)
    monkeypatch.setattr("sklearn_structsvm.distributed.rows.n_places", lambda: K)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    assert model.dual_gap_ <= model.tol
    assert (here.step_ == "exact") == (model.step_ == "exact")
    bound = 2.0 * max(model.dual_gap_, here.dual_gap_)
    assert abs(model.objective_ - here.objective_) <= bound
    np.testing.assert_array_equal(model.classes_, here.classes_)
    assert model.predict(divided(X)).compute().shape == y.shape
    again = clone(model).fit(divided(X), divided(y), sample_weight=divided(s))
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_wrong_rows_are_errors_before_any_work():
    X, y, s = rows()
    data = divided(X), divided(y)
    for structure in (HierarchicalStructure([[0, 1], [0, 2]]), ChainStructure()):
        with pytest.raises(
            TypeError, match="does not support Dask arrays and data frames"
        ):
            BCFWClassifier(structure).fit(*data)
    with pytest.raises(ValueError, match="warm_start=True needs data in memory"):
        BCFWClassifier(warm_start=True).fit(*data)
    with pytest.raises(ValueError, match="step='exact' requires coef_bounds=None"):
        BCFWClassifier(step="exact", solver_options={"coef_bounds": (-1, 1)}).fit(*data)
    with pytest.raises(TypeError, match="y must be a Dask collection"):
        BCFWClassifier().fit(data[0], y)
    with pytest.raises(ValueError, match=r"Chunk \d of the Dask collection"):
        BCFWClassifier().fit(da.full_like(data[0], np.nan), data[1])
    with pytest.raises(ValueError, match="X has features as large as .*overflow"):
        BCFWClassifier().fit(da.full_like(data[0], 1e160), data[1])
    masks = [da.ma.masked_array(own, mask=own == own) for own in data]
    with pytest.raises(ValueError, match=r"^Chunk \d of the .*: X is a masked array"):
        BCFWClassifier().fit(masks[0], data[1])
    with pytest.raises(ValueError, match=r"^Chunk \d of the .*: y has a masked label"):
        BCFWClassifier().fit(data[0], masks[1])


# The start of SubLBFGSClassifier.


@pytest.mark.parametrize("name", ["two classes", "four classes", "sparse rows"])
@pytest.mark.parametrize("n_rounds", [1, 4])
def test_what_comes_after_the_start_has_its_bound(name, n_rounds, monkeypatch):
    X, y, s, options = problems()[name]
    monkeypatch.setattr("sklearn_structsvm.distributed.rows.n_places", lambda: K)
    monkeypatch.setattr(DualStart, "is_slow", property(lambda s: s.n_made == n_rounds))
    model = placed(SubLBFGSClassifier)(solver="dual-hybrid", **EXACT, **options)
    here = clone(model).fit(X, y, sample_weight=s)
    plane, kept = DistributedBlocks.plane, []

    def keep(iterate):
        kept.append(iterate.dual_objective)
        return plane(iterate)

    monkeypatch.setattr(DistributedBlocks, "plane", keep)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    check_the_same(model, here)
    (bound,) = kept
    after = model.history_["n_iter"] > n_rounds
    assert model.history_["dual_objective"][after].min() >= bound - 1e-12


def test_the_start_ends_where_other_methods_need_less_time(monkeypatch):
    """After twenty rounds, by the gap that there is then."""
    X, y, _ = rows()
    hard = SubLBFGSClassifier(C=10.0, tol=1e-9, max_iter=3000)
    starts = []

    class Watched(DualStart):
        def __init__(self, *args):
            super().__init__(*args)
            starts.append(self)

    with monkeypatch.context() as patch:
        patch.setattr("sklearn_structsvm.distributed.rows.n_places", lambda: 5)
        patch.setattr("sklearn_structsvm.estimators.sublbfgs.DualStart", Watched)
        hard.fit(divided(X), divided(y))
        easy = clone(hard).set_params(C=1e-6, tol=1e-3).fit(divided(X), divided(y))
    for model in (hard, easy):
        assert model.dual_gap_ <= model.tol
    first, second = starts
    assert 20 <= first.n_made < hard.n_iter_
    assert second.n_made == easy.n_iter_


# On a cluster.


@pytest.mark.parametrize("kind", ["four classes", "sparse rows"])
def test_a_cluster_reaches_the_optimum(client, kind):
    X, y, s, options = problems()[kind]
    model = placed(BCFWClassifier)(C=0.1, random_state=0, **options)
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    assert_same_optimum(model, here, model.C * s.sum())
    check_nothing_is_left(client)


@pytest.mark.slow
@pytest.mark.parametrize("make", [BCFWClassifier, SubLBFGSClassifier])
def test_a_killed_worker_changes_nothing_but_time(own_client, make, monkeypatch):
    X, y, s = rows()
    model = make(C=0.1)
    here = clone(model).fit(X, y, sample_weight=s)
    told, replies = [], []
    tell = dask_workers.ClusterWorkers.tell

    def tell_and_kill(workers, function, message, merge):
        if function is blocks.make_round:
            told.append(workers.homes)
            if len(told) == 6:
                kill_worker(own_client, workers.homes[0])
        reply = tell(workers, function, message, merge)
        if isinstance(reply, blocks.BlockReply):
            replies.append(reply.is_new)
        return reply

    monkeypatch.setattr(dask_workers.ClusterWorkers, "tell", tell_and_kill)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    assert any(replies[5:]) and not any(replies[:5])
    assert model.dual_gap_ <= model.tol
    assert abs(model.objective_ - here.objective_) <= model.tol
