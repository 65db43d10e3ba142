"""Fits on a cluster whose workers come late, are slow, retire, die or lack memory.

Two workers of one thread each, on this machine. The first table lets something happen
before the request with number --request; beside it stands the fit to which nothing
happens. The second table gives the workers less memory, as a multiple of what their
processes take at the end of a fit to which nothing happens. Fits are counted, not timed.
"""

import logging
import os
import signal
import sys
import warnings
from contextlib import contextmanager

from _common import make_parser, np, print_table
from dask import array, config, delayed
from distributed import Client, Event, LocalCluster

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SubLBFGSClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.distributed import dask_workers

N_PARTS, N_CHAINS, N_ROWS, N_FEATURES = 4, 800, 40_000, 100
MEMORY = (2.0, 1.5, 1.4, 1.3, 1.2, 1.05)
MODELS = {
    "chains, BCFW": BCFWClassifier(C=0.01, tol=0.01, random_state=0),
    "chains, CRF": CRFClassifier(C=0.01, tol=0.01, random_state=0),
    "rows, SubLBFGS": SubLBFGSClassifier(C=1e-4, tol=0.01),
}


def chains(k):
    return make_chains(
        N_CHAINS, n_features=2 * N_FEATURES, n_classes=5, max_length=20, random_state=k
    )


def rows(k):
    rng = np.random.default_rng(k)
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    return X, (X[:, 0] + rng.standard_normal(N_ROWS) > 0.0).astype(int)


def data_of(name):
    """X and y, which each worker makes for itself."""
    parts = [delayed(chains if "chains" in name else rows, nout=2)(k) for k in range(4)]
    X, y = map(list, zip(*parts, strict=True))
    if "chains" in name:
        return X, y
    return (
        array.concatenate(
            [array.from_delayed(x, (N_ROWS, N_FEATURES), np.float64) for x in X]
        ),
        array.concatenate([array.from_delayed(own, (N_ROWS,), np.int64) for own in y]),
    )


@contextmanager
def cluster(memory="auto"):
    with (
        LocalCluster(
            2, threads_per_worker=1, processes=True, dashboard_address=":0",
            memory_limit=memory, silence_logs=logging.CRITICAL,
        ) as started,
        Client(started, set_as_default=False) as client,
        client.as_current(),
    ):  # fmt: skip
        yield client


def pages(dask_worker):
    """Bytes of a worker's process."""
    return dask_worker.monitor.proc.memory_info().rss


def counted(at=None, event=None):
    """Count the requests of fits, and let something happen before one of them."""
    tell, told = dask_workers.ClusterWorkers.tell, []

    def tell_and_count(workers, function, message, merge):
        if len(told) + 1 == at:
            event(workers)
        reply = tell(workers, function, message, merge)
        told.append(reply is None or getattr(reply, "is_new", False))
        return reply

    dask_workers.ClusterWorkers.tell = tell_and_count
    return told, lambda: setattr(dask_workers.ClusterWorkers, "tell", tell)


def fitted(name, at=None, event=None):
    """(the model or None, the number of requests, those that found a part changed)."""
    told, undo = counted(at, event)
    model = MODELS[name]
    try:
        model.fit(*data_of(name))
    except RuntimeError as error:
        print(f"{name}: {error}"[:160], file=sys.stderr)
        model = None
    finally:
        undo()
    return model, len(told), sum(told)


def kill(client):
    def event(workers):
        (pid,) = client.run(os.getpid, workers=[workers.homes[0]]).values()
        os.kill(pid, signal.SIGKILL)

    return event


def grow(client):
    def event(workers):
        client.cluster.scale(3)
        client.wait_for_workers(3)

    return event


def keep_busy(client):
    """Occupy one worker until the other has waited for long."""

    def event(workers):
        told = Event("go on", client=client)
        client.submit(told.wait, 5, workers=[workers.homes[0]], pure=False)
        event.kept = told

    return event


EVENTS = {
    "nothing": lambda client: lambda workers: None,
    "a third worker comes": grow,
    "one is busy for 5 s": keep_busy,
    "one retires": lambda client: lambda workers: client.retire_workers(
        [workers.homes[0]]
    ),
    "one is killed": kill,
    "the cluster restarts": lambda client: lambda workers: client.restart(),
}


def outcome(model, first, tol):
    if model is None:
        return "error"
    if np.array_equal(model.coef_, first[0]):
        return "same bits"
    # Either is at most its gap above the optimum.
    assert abs(model.objective_ - first[1]) <= tol
    return f"objective within {abs(model.objective_ / first[1] - 1.0):.0e}"


def events(at):
    for name in MODELS:
        first = None
        for what, make in EVENTS.items():
            with cluster() as client:
                model, n, n_new = fitted(name, at, make(client))
                if first is None:
                    first = model.coef_.copy(), model.objective_
                yield name, what, outcome(model, first, MODELS[name].tol), n, n_new


def memory():
    for name in MODELS:
        with cluster(0) as client:
            model, n, _ = fitted(name)
            needed = max(client.run(pages).values())
            first = model.coef_.copy(), model.objective_
        for share in MEMORY:
            with cluster(int(share * needed)):
                model, n, n_new = fitted(name)
                found = outcome(model, first, MODELS[name].tol)
            yield name, share, found, n, n_new


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--request", type=int, default=6)
    parser.add_argument("--memory", action="store_true", help="the second table alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # A new worker takes a moment this way, and not seconds.
    config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    names = ["outcome", "requests", "with changed parts"]
    if not options.memory:
        print_table(["fit", "event", *names], events(options.request))
    print_table(["fit", "memory", *names], memory())


if __name__ == "__main__":
    main()
