"""Fits on a cluster of two workers, each a process: the optimum, and workers that die."""

import gc
import pickle
from time import sleep

import numpy as np
import pytest
from _dask_cluster import check_nothing_is_left, each_message, kill_worker, tasks
from _dask_data import (
    EXACT,
    check_the_same,
    check_the_threshold,
    da,
    dask,
    divided,
    in_bag,
    problems,
    rows,
    spoilt,
)
from _dask_items import check_items, item_problems
from _estimators import assert_same_optimum
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, BMRMClassifier, SubLBFGSClassifier
from sklearn_structsvm.distributed import dask_workers

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")

FEW_STEPS = EXACT | {"C": 0.005}
HYBRID = SubLBFGSClassifier(solver="hybrid", **FEW_STEPS)
# Its bound is made of gradients: 1e-9 is where steps of objectives that are rounded end.
SPARSE_LOGISTIC = SubLBFGSClassifier("logistic", penalty="l1", C=0.1, tol=1e-8)


DUAL = BCFWClassifier(C=0.1, random_state=0)


def fits(name):
    """(model, X, y, weights, collections of these)."""
    if name in ("chains", "slack", "crf"):
        model, X, y = item_problems()[name]
        s = np.ones(len(X))
        return model, X, y, s, [in_bag(X), in_bag(y), None]
    model, kind = {
        "auto": (SubLBFGSClassifier(**FEW_STEPS), "four classes"),
        "hybrid": (HYBRID, "two classes"),
        "bmrm": (BMRMClassifier(**FEW_STEPS), "two classes"),
        "owlqn": (SPARSE_LOGISTIC, "two classes"),
        "dual": (DUAL, "four classes"),
        "dual, sparse": (DUAL, "sparse rows"),
        "start": (SubLBFGSClassifier(C=0.1), "four classes"),
    }[name]
    X, y, s, _ = problems()[kind]
    return clone(model), X, y, s, [divided(data) for data in (X, y, s)]


def check_the_optimum(model, here, X, y, s):
    if isinstance(X, list):
        check_items(model, X, y, s, here)
    elif model.get_params().get("penalty") == "l1":
        # Not strongly convex: of objectives alone the gaps tell something.
        gap = max(model.dual_gap_, here.dual_gap_)
        assert abs(model.objective_ - here.objective_) <= gap + 1e-14
    elif model.tol == EXACT["tol"]:
        check_the_same(model, here)
    else:
        assert_same_optimum(model, here, model.C * s.sum())
    if hasattr(model, "threshold_"):
        check_the_threshold(model, X, y, s)


NAMES = (
    "auto", "hybrid", "bmrm", "owlqn", "dual", "dual, sparse", "chains", "slack", "crf",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_reaches_the_optimum_of_the_fit_in_memory(client, name):
    model, X, y, s, _ = fits(name)

    def data():
        return fits(name)[4]

    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(*data()[:2], sample_weight=data()[2])
    check_the_optimum(model, here, X, y, s)
    if isinstance(X, list):
        again = clone(model).fit(*data()[:2])
        np.testing.assert_array_equal(again.coef_, model.coef_)
        assert len(model.predict(data()[0]).compute()) == len(X)
    gc.collect()
    check_nothing_is_left(client)


def test_rows_never_leave_their_worker(client, monkeypatch):
    X, y, _ = rows()
    X, y = np.tile(X, (40, 1)), np.tile(y, 40)
    chunks = (3000,) * 4
    received = []
    gather = client.gather

    def watched(futures, *args, **kwargs):
        results = gather(futures, *args, **kwargs)
        received.append(len(pickle.dumps(results)))
        return results

    monkeypatch.setattr(client, "gather", watched)
    model = SubLBFGSClassifier(C=1e-4, solver="hybrid")
    model.fit(divided(X, chunks), divided(y, chunks))
    # From each of two workers as many breakpoints as were asked for, or twice as many,
    # of three numbers each.
    assert len(received) > 20 and max(received) < 2 * 2 * 1024 * 24 + 2000
    assert max(received) < 0.2 * X.nbytes
    assert model.objective_ == pytest.approx(clone(model).fit(X, y).objective_, abs=1e-3)


def test_collections_that_are_kept_by_the_workers_stay_there(client):
    X, y, _ = rows()
    data = [d.persist() for d in (divided(X), divided(y))]
    distributed.wait(data)
    before = tasks(client)
    assert BMRMClassifier(C=0.01).fit(*data).dual_gap_ <= 1e-3
    check_nothing_is_left(client, but=before)


def test_errors_of_the_workers_are_those_of_the_data(client):
    X, y, s = spoilt(("X", 160, 2), np.nan)
    with pytest.raises(ValueError, match="(?s)Chunk 2 of the Dask coll.*X contains NaN"):
        SubLBFGSClassifier().fit(X, y, sample_weight=s)
    check_nothing_is_left(client)


def test_replies_of_many_shards_are_merged_by_the_workers(client, monkeypatch):
    X, y, s, _ = problems()["two classes"]
    monkeypatch.setattr("sklearn_structsvm.distributed.rows.n_places", lambda: 5)
    monkeypatch.setattr(dask_workers, "FAN_IN", 2)
    model = BMRMClassifier(C=0.01, tol=1e-9)
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    check_the_same(model, here)


@pytest.mark.parametrize(("name", "method"), [("hybrid", "ask"), ("chains", "tell")])
def test_an_interrupted_fit_leaves_nothing_behind(client, name, method, monkeypatch):
    model, _, _, _, data = fits(name)

    def interrupt(workers):
        raise KeyboardInterrupt

    each_message(monkeypatch, 8, interrupt, method)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data[:2])
    assert not hasattr(model, "coef_")
    check_nothing_is_left(client)


@pytest.mark.parametrize(
    ("name", "large", "method", "at"),
    [
        ("hybrid", 2**20, "ask", 20),
        # All vectors are scattered.
        ("bmrm", 0, "ask", 20),
        ("dual", 2**20, "tell", 6),
        ("start", 2**20, "tell", 6),
        ("chains", 0, "tell", 6),
        ("crf", 2**20, "tell", 4),
    ],
)
def test_a_killed_worker_changes_nothing_but_time(
    own_client, name, large, method, at, monkeypatch
):
    model, X, y, s, data = fits(name)
    here = clone(model).fit(X, y, sample_weight=s)

    def kill(workers):
        kill_worker(own_client, workers.homes[0])
        # What is sent to all before the scheduler knows waits for the dead one.
        while (
            name == "chains" and not large and workers.homes[0] in own_client.nthreads()
        ):
            sleep(0.05)

    monkeypatch.setattr(dask_workers, "LARGE_MESSAGE", large)
    homes, replies = each_message(monkeypatch, at, kill, method)
    model.fit(*data[:2], sample_weight=data[2])
    assert len(homes) > at
    if name != "crf":
        # Another one took over.
        assert homes[at - 1][0] not in homes[-1]
    is_new = [getattr(reply, "is_new", None) for reply in replies]
    if True in is_new:
        assert not any(is_new[: at - 1])
    assert name in ("hybrid", "bmrm", "crf") or any(is_new[at - 1 :])
    check_the_optimum(model, here, X, y, s)


def test_rows_that_nobody_can_compute_again_are_an_error(own_client, monkeypatch):
    X, y, _ = rows()
    halves = own_client.scatter([X[:150], X[150:]], hash=False)
    chunks = [
        da.from_delayed(dask.delayed(half), shape=(150, X.shape[1]), dtype=X.dtype)
        for half in halves
    ]
    each_message(
        monkeypatch, 10, lambda workers: kill_worker(own_client, workers.homes[0]), "ask"
    )
    with pytest.raises(RuntimeError, match="a worker was lost with rows"):
        model = SubLBFGSClassifier(**EXACT, solver="hybrid")
        model.fit(da.concatenate(chunks), divided(y, (150, 150)))
