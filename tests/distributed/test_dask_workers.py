"""Workers that are late, slow, out of memory or gone: the same fit, or a clear error."""

import numpy as np
import pytest
from _dask_cluster import (
    PATIENCE,
    Scheduler,
    call_when_told,
    check_nothing_is_left,
    die,
    each_message,
    pause,
    resume,
)
from _dask_data import da, dask, divided, in_bag, rows
from _dask_items import chains
from _estimators import assert_same_optimum
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SubLBFGSClassifier
from sklearn_structsvm.distributed import dask_workers

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")


FIT = {"C": 0.05, "tol": 1e-2, "max_iter": 10**5}
MODELS = {
    "bcfw": BCFWClassifier(**FIT, random_state=0),
    "crf": CRFClassifier(**FIT, random_state=0),
    "sublbfgs": SubLBFGSClassifier(**FIT),
}


def problem_of(name):
    """An estimator, its data on the cluster, and 1/λ."""
    if name == "sublbfgs":
        data = [divided(d, (75,) * 4) for d in rows(2)[:2]]
        return clone(MODELS[name]), *data, 300 * FIT["C"]
    return clone(MODELS[name]), *map(in_bag, chains()), 60 * FIT["C"]


each_model = pytest.mark.parametrize("name", MODELS)


@each_model
def test_a_slow_worker_changes_no_bit(client, name, monkeypatch):
    """One of two replies is made only when the other has come."""
    model, X, y, total = problem_of(name)
    expected = clone(model).fit(X, y)
    compute, submit = client.compute, client.submit
    gather = dask_workers.ClusterWorkers._gather
    event = distributed.Event(f"slow {name}", client=client)
    slow, *_ = addresses = list(client.nthreads())
    waiting, n_waits = [], []

    def compute_apart(delayed):
        pairs = zip(delayed, addresses, strict=True)
        return [compute(part, workers=[address]) for part, address in pairs]

    def submit_to_wait(function, *args, workers=None, **options):
        if workers != slow:
            return submit(function, *args, workers=workers, **options)
        args = event.name, function, *args
        waiting.append(submit(call_when_told, *args, workers=workers, **options))
        return waiting[-1]

    def gather_the_slow_last(workers, futures):
        others = [future for future in futures if future not in waiting]
        if waiting:
            if len(set(workers.homes)) > 1:
                distributed.wait(others)
                n_waits.append(len(others))
            event.set()
        found = gather(workers, futures)
        waiting.clear()
        event.clear()
        return found

    monkeypatch.setattr(client, "compute", compute_apart)
    monkeypatch.setattr(client, "submit", submit_to_wait)
    monkeypatch.setattr(dask_workers.ClusterWorkers, "_gather", gather_the_slow_last)
    model.fit(X, y)
    assert n_waits and min(n_waits) == 1
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.dual_gap_ == expected.dual_gap_


def test_a_fit_waits_for_a_worker_that_pauses_for_a_while(client, monkeypatch):
    model, X, y, _ = problem_of("bcfw")
    expected = clone(model).fit(X, y)
    has_stopped, looks = dask_workers.ClusterWorkers._has_stopped, []

    def look_and_resume(workers):
        looks.append(has_stopped(workers))
        if looks[-1]:
            client.run(resume)
        return looks[-1]

    monkeypatch.setattr(dask_workers, "LOOK_INTERVAL", 0.05)
    monkeypatch.setattr(dask_workers.ClusterWorkers, "_has_stopped", look_and_resume)
    each_message(monkeypatch, 6, lambda workers: client.run(pause))
    model.fit(X, y)
    assert any(looks)
    # A part that another worker took in the meantime begins anew.
    assert model.dual_gap_ <= model.tol and expected.dual_gap_ <= model.tol
    assert model.dual_objective_ <= expected.objective_
    assert expected.dual_objective_ <= model.objective_


@pytest.mark.parametrize("number", [None, 4])
@pytest.mark.parametrize("name", ["bcfw", "sublbfgs"])
def test_workers_without_memory_are_an_error_that_says_so(
    client, name, number, monkeypatch
):
    model, X, y, _ = problem_of(name)
    monkeypatch.setattr(dask_workers, "LOOK_INTERVAL", 0.05)
    try:
        if number is None:
            client.run(pause)
        else:
            each_message(monkeypatch, number, lambda workers: client.run(pause))
        with pytest.raises(RuntimeError, match="have stopped, .*memory_limit"):
            model.fit(X, y)
    finally:
        client.run(resume)
    assert not hasattr(model, "coef_")
    check_nothing_is_left(client)


def test_requests_to_a_worker_that_is_gone_do_not_wait_for_ever(client, monkeypatch):
    """Dask forgets, where none can work for a moment, that others may do them."""
    model, X, y, _ = problem_of("bcfw")

    def lose_homes(workers):
        workers.homes = ["tcp://127.0.0.1:1"] * len(workers.homes)
        client.run(pause)

    has_stopped = dask_workers.ClusterWorkers._has_stopped

    def look_and_resume(workers):
        client.run(resume)
        return has_stopped(workers)

    monkeypatch.setattr(dask_workers, "LOOK_INTERVAL", 0.05)
    monkeypatch.setattr(dask_workers.ClusterWorkers, "_has_stopped", look_and_resume)
    each_message(monkeypatch, 4, lose_homes)
    with pytest.raises(RuntimeError, match="have stopped, .*memory_limit"):
        model.fit(X, y)
    check_nothing_is_left(client)


def test_a_fit_that_kills_its_workers_is_an_error_that_says_so(own_client):
    own_client.run_on_scheduler(forgive_nothing)
    model, X, y, _ = problem_of("sublbfgs")
    with pytest.raises(RuntimeError, match="killed its workers, .*memory_limit"):
        model.fit(da.from_delayed(dask.delayed(die)(X), X.shape, X.dtype), y.rechunk(-1))
    assert not hasattr(model, "coef_")


def forgive_nothing(dask_scheduler):
    """A task fails with the first worker that dies of it."""
    dask_scheduler.allowed_failures = 0


@pytest.mark.parametrize("name", ["bcfw", "sublbfgs"])
def test_a_restart_in_a_fit_is_an_error_and_the_next_fit_the_same(
    own_client, name, monkeypatch
):
    model, X, y, total = problem_of(name)
    expected = clone(model).fit(X, y)
    with monkeypatch.context() as patch:
        each_message(patch, 4, lambda workers: own_client.restart())
        with pytest.raises(RuntimeError, match="stopped or restarted.*Fit again"):
            model.fit(X, y)
    assert not hasattr(model, "coef_")
    own_client.wait_for_workers(2)
    np.testing.assert_array_equal(model.fit(X, y).coef_, expected.coef_)


def test_a_scheduler_that_restarts_is_an_error_and_the_next_fit_the_same(monkeypatch):
    model, X, y, _ = problem_of("bcfw")
    scheduler = Scheduler()

    def restart(workers):
        scheduler.stop()
        scheduler.start()

    try:
        with (
            distributed.Client(
                scheduler.address, set_as_default=False, timeout=PATIENCE
            ) as client,
            client.as_current(),
        ):
            client.wait_for_workers(1)
            expected = clone(model).fit(X, y)
            with monkeypatch.context() as patch:
                each_message(patch, 4, restart)
                with pytest.raises(RuntimeError, match="stopped or restarted.*Fit again"):
                    model.fit(X, y)
            assert not hasattr(model, "coef_")
            client.wait_for_workers(1)
            np.testing.assert_array_equal(model.fit(X, y).coef_, expected.coef_)
    finally:
        scheduler.stop()


@each_model
def test_workers_that_come_late_and_retire_change_nothing_but_loads(
    own_client, name, monkeypatch
):
    model, X, y, total = problem_of(name)
    expected = clone(model).fit(X, y)

    def grow(workers):
        own_client.cluster.scale(3)
        own_client.wait_for_workers(3)

    def shrink(workers):
        own_client.retire_workers([workers.homes[0]])

    # The second fit uses all three, until one hands its examples over.
    for change in (grow, shrink):
        with monkeypatch.context() as patch:
            homes, _ = each_message(patch, 4, change)
            model = clone(model).fit(X, y)
        assert len(homes) > 4
        assert model.dual_gap_ <= model.tol
        assert_same_optimum(model, expected, total)
        assert change is shrink or len(own_client.nthreads()) == 3
