"""Fits on a cluster whose workers come late, are slow, retire, die or lack memory.

Two workers of one thread each, in processes on this machine. In the first table something
happens before the request with number --request. In the second one workers have less
memory, as a multiple of what their processes take at the end of a fit to which nothing
happens. Fits are not timed. Writes `results/workers.json`. For Linux.
"""

import json
import logging
import os
import signal
import warnings
from contextlib import contextmanager
from functools import partial

from _common import HERE, make_parser, np, print_table
from dask import array, config, delayed
from distributed import Client, Event, LocalCluster
from distributed.utils import get_mp_context

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SubLBFGSClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.distributed.dask_workers import ClusterWorkers

N_PARTS, N_CHAINS, N_ROWS, N_FEATURES = 4, 800, 40_000, 100
MEMORY = (2.0, 1.5, 1.3, 1.1)
MODELS = {
    "chains, BCFW": BCFWClassifier(C=0.001, tol=0.02, random_state=0),
    "chains, CRF": CRFClassifier(C=0.01, tol=0.005, random_state=0),
    "rows, SubLBFGS": SubLBFGSClassifier(C=1e-5, tol=0.02),
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
    make = delayed(chains if "chains" in name else rows, nout=2)
    X, y = map(list, zip(*map(make, range(N_PARTS)), strict=True))
    if "chains" in name:
        return X, y
    X = [array.from_delayed(part, (N_ROWS, N_FEATURES), np.float64) for part in X]
    y = [array.from_delayed(part, (N_ROWS,), np.int64) for part in y]
    return array.concatenate(X), array.concatenate(y)


@contextmanager
def started(memory=0):
    """A client of two workers, each with so many bytes; 0 for no limit."""
    with (
        LocalCluster(
            2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=memory,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        yield client


def pages(dask_worker):
    """Bytes of a worker's process."""
    return dask_worker.monitor.proc.memory_info().rss


@contextmanager
def counted(at, event):
    """Whether parts had changed, for each request; something happens before one."""
    tell, told = ClusterWorkers.tell, []

    def tell_and_count(workers, function, message, merge):
        if len(told) + 1 == at:
            event(workers)
        reply = tell(workers, function, message, merge)
        told.append(reply is None or getattr(reply, "is_new", False))
        return reply

    ClusterWorkers.tell = tell_and_count
    try:
        yield told
    finally:
        ClusterWorkers.tell = tell


class Fit:
    """A fit on a cluster, or the error it ended with."""

    def __init__(self, name, at=None, event=None):
        self.model, self.error = MODELS[name], None
        with counted(at, event) as told:
            try:
                self.model.fit(*data_of(name))
            except RuntimeError as error:
                self.error = str(error)
            else:
                self.weights, self.objective = self.model.coef_, self.model.objective_
        self.n_requests, self.n_changed = len(told), sum(told)

    def beside(self, first):
        """What came of it, beside the one to which nothing happened."""
        if self.error is not None:
            said = self.error.replace(",", ":").partition(":")[0]
            return [f"error: {said}", self.n_requests, self.n_changed]
        if np.array_equal(self.weights, first.weights):
            found = "same bits"
        else:
            # Either is at most its gap above the optimum.
            assert abs(self.objective - first.objective) <= self.model.tol
            found = f"within {abs(self.objective / first.objective - 1.0):.0e}"
        return [found, self.n_requests, self.n_changed]


def grow(client, workers):
    client.cluster.scale(3)
    client.wait_for_workers(3)


def keep_busy(client, workers):
    told = Event("never", client=client)
    workers.busy = client.submit(told.wait, 5, workers=[workers.homes[0]])


def kill(client, workers):
    (pid,) = client.run(os.getpid, workers=[workers.homes[0]]).values()
    os.kill(pid, signal.SIGKILL)


EVENTS = {
    "nothing": lambda client, workers: None,
    "a third worker comes": grow,
    "a worker does other work for 5 s": keep_busy,
    "a worker retires": lambda client, workers: client.retire_workers([workers.homes[0]]),
    "a worker is killed": kill,
    "the cluster restarts": lambda client, workers: client.restart(),
}


def fits_with_events(at):
    for name in MODELS:
        first = None
        for what, event in EVENTS.items():
            with started() as client:
                fit = Fit(name, at, partial(event, client))
            first = first or fit
            yield name, what, *fit.beside(first)


def fits_with_little_memory():
    for name in MODELS:
        with started() as client:
            first = Fit(name)
            needed = max(client.run(pages).values())
        for share in MEMORY:
            with started(int(share * needed)):
                fit = Fit(name)
            yield name, f"{share:g}", *fit.beside(first)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--request", type=int, default=6)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # A new worker takes a moment this way, and not seconds.
    config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    get_mp_context().set_forkserver_preload(["distributed", "sklearn_structsvm"])
    results = {
        "event": list(fits_with_events(options.request)),
        "memory": list(fits_with_little_memory()),
    }
    path = HERE / "results" / "workers.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    for what, rows_of in results.items():
        print_table(["fit", what, "outcome", "requests", "with changed parts"], rows_of)


if __name__ == "__main__":
    main()
