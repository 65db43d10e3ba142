"""Shards of a Dask collection, in this process or on the workers of a cluster.

All calls of Dask are here. If a shard is lost with its worker, the cluster's scheduler
recomputes it from the graph of the collection.
"""

from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import compress
from time import sleep

import numpy as np

from sklearn_structsvm.distributed.merging import merge
from sklearn_structsvm.distributed.shard import answer

# Larger vectors (in bytes) are sent to the workers once, and from there to the others. A
# scheduler with more than ten times this in its tasks warns.
LARGE_MESSAGE = 2**20

# The number of replies that workers merge before sending the result here.
FAN_IN = 8

# What is lost with a worker is sent, or asked for, at most this many times in a row.
MOST_REQUESTS = 20

# Workers stop to begin tasks while they use most of their memory, and tasks that were to
# run on a worker that died meanwhile may never begin. A fit gives up if no worker works
# at this many looks in a row and this many seconds apart.
MAX_LOOKS = 6
LOOK_INTERVAL = 10.0
# States of a worker's tasks that need no more work.
DONE = {"memory", "released", "error", "forgotten"}


def import_dask():
    """Import dask. An ImportError says how to install it."""
    try:
        import dask
    except ImportError as error:
        raise ImportError(
            "Dask collections need Dask, which is not installed: "
            'pip install "dask[array]" distributed'
        ) from error
    return dask


def holds_dask(*data):
    """Whether some data are a Dask collection; Dask is not imported for other data."""
    lazy = [x for x in data if hasattr(x, "__dask_graph__") or _is_list_of_parts(x)]
    return bool(lazy) and any(
        _is_list_of_parts(x) or import_dask().is_dask_collection(x) for x in lazy
    )


def _is_list_of_parts(x):
    return isinstance(x, (list, tuple)) and len(x) > 0 and hasattr(x[0], "__dask_graph__")


def parts_of(data, name):
    """One delayed object for each part of a bag or of a list of delayed parts."""
    parts = data.to_delayed() if hasattr(data, "to_delayed") else data
    if not hasattr(data, "npartitions") and not _is_list_of_parts(parts):
        raise TypeError(
            f"{name} must be a dask.bag or a list of delayed parts, because X is one; "
            f"got {type(data).__name__}."
        )
    return list(parts)


def map_lazily(model, name, X, like):
    """Lazy results of a method of the model for the parts of X.

    `X` (Dask collection chunked by rows, bag, or list of delayed parts). `like`: an
    empty array with the dtype and the other dimensions of the result. Returns
    dask.array with the row chunks of X; a bag or a list of parts if X is one.
    """
    dask = import_dask()
    model, call = dask.delayed(model), dask.delayed(_call)
    if _is_list_of_parts(X):
        return [call(model, name, part, like) for part in X]
    chunks = X.to_delayed()
    parts = [call(model, name, part, like) for part in np.ravel(chunks).tolist()]
    if not hasattr(X, "chunks") and not hasattr(X, "divisions"):
        from dask.bag import from_delayed

        return from_delayed(parts)
    from dask import array

    sizes = X.chunks[0] if hasattr(X, "chunks") else [float("nan")] * len(parts)
    return array.concatenate(
        [
            array.from_delayed(part, (size, *like.shape[1:]), meta=like)
            for part, size in zip(parts, sizes, strict=True)
        ]
    )


def _call(model, name, X, like):
    if not hasattr(X, "shape"):
        X = list(X)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    return getattr(model, name)(X) if n else like


def n_places():
    """The number of threads of all workers; 1 without a cluster."""
    client = _client()
    return 1 if client is None else max(1, sum(client.nthreads().values()))


def start_workers(delayed):
    """Compute delayed shards where they will stay: here, or on a cluster's workers."""
    client = _client()
    if client is None:
        return LocalWorkers(list(import_dask().compute(*delayed)))
    return ClusterWorkers(client, client.compute(delayed))


def _client():
    """The active client, if there is one."""
    try:
        from distributed import Client
    except ImportError:
        return None
    try:
        client = Client.current()
    except ValueError:
        return None
    if client.asynchronous:
        raise TypeError(
            "fit waits for its workers, so it needs a synchronous Client "
            "(asynchronous=False)."
        )
    return client


class LocalWorkers:
    """This process, with shards computed by Dask's own scheduler."""

    def __init__(self, shards):
        self.shards = shards

    def map(self, function, arguments):
        """The shards that the function makes of these and a tuple for each."""
        pairs = zip(self.shards, arguments, strict=True)
        return LocalWorkers([function(shard, *more) for shard, more in pairs])

    def collect(self, function):
        """Results of the function for each shard."""
        return [function(shard) for shard in self.shards]

    def keep(self, is_kept):
        """Keep only these shards."""
        self.shards = list(compress(self.shards, is_kept))

    def release(self):
        """Forget the shards."""
        self.shards = []

    def find_homes(self):
        """Find the workers of the shards again after some were lost."""

    def ask(self, question):
        """The merged reply to a `Question`, or None if a shard lacks rows."""
        return self.tell(answer, question, merge)

    def tell(self, function, message, merge):
        """The merged results of the function for each shard and the message.

        The function runs on the shard's worker, and may change the shard.
        """
        return merge([function(shard, message) for shard in self.shards])


class ClusterWorkers:
    """The workers of a cluster, with a future of each shard that includes its recipe."""

    def __init__(self, client, futures):
        self.client, self.futures = client, futures
        # Addresses of the workers that have answered for the shards, and know their rows.
        self.homes = None

    def map(self, function, arguments):
        pairs = zip(self.futures, arguments, strict=True)
        futures = [self._submit(function, future, *more) for future, more in pairs]
        return ClusterWorkers(self.client, futures)

    def collect(self, function):
        with clear_errors():
            return self._gather([self._submit(function, f) for f in self.futures])

    def keep(self, is_kept):
        self.futures = list(compress(self.futures, is_kept))

    def release(self):
        # Otherwise, a stored error would keep the futures and thus their inputs.
        for future in self.futures:
            future.release()

    def ask(self, question):
        reply = self.tell(answer, question, merge)
        if reply is None:
            self.find_homes()
        return reply

    def tell(self, function, message, merge):
        if self.homes is None:
            self.find_homes()
        with clear_errors(OSError):
            for attempt in range(MOST_REQUESTS):
                try:
                    return self._tell(function, message, merge)
                except (CancelledError, OSError):
                    if message.nbytes <= LARGE_MESSAGE or attempt == MOST_REQUESTS - 1:
                        raise
                    # By then, the scheduler knows that the worker is gone.
                    sleep(1.0)

    def find_homes(self):
        """Choose the worker for each shard, of which several may have a copy."""
        with clear_errors():
            self._wait(self.futures)
            holders = self.client.who_has(self.futures)
        homes = []
        for future, home in zip(
            self.futures, self.homes or [None] * len(self.futures), strict=True
        ):
            known = sorted(holders.get(future.key, ()))
            homes.append(home if home in known else next(iter(known), None))
        self.homes = homes

    def _tell(self, function, message, merge):
        if message.nbytes > LARGE_MESSAGE:
            (message,) = self.client.scatter([message], broadcast=True, hash=False)
        replies = [
            self._submit(
                function,
                future,
                message,
                workers=home,
                allow_other_workers=home is not None,
            )
            for future, home in zip(self.futures, self.homes, strict=True)
        ]
        while len(replies) > FAN_IN:
            replies = [
                self._submit(merge, replies[j : j + FAN_IN])
                for j in range(0, len(replies), FAN_IN)
            ]
        return merge(self._gather(replies))

    def _gather(self, futures):
        try:
            self._wait(futures)
            return self.client.gather(futures)
        finally:
            for future in futures:
                future.release()

    def _wait(self, futures):
        """Wait for futures, but not for ever for workers that have no memory left."""
        from distributed import wait

        n_looks = 0
        while n_looks < MAX_LOOKS:
            try:
                return wait(futures, timeout=LOOK_INTERVAL)
            except TimeoutError:
                n_looks = n_looks + 1 if self._has_stopped() else 0
        raise RuntimeError(
            "The workers have stopped, because they use most of their memory, or have "
            "died of it. Give them more (memory_limit), start more workers, or let the "
            "data take less, as float32 or sparse chunks."
        )

    def _has_stopped(self):
        """Whether there are workers, and none works or is about to."""
        workers = self.client.sync(self.client.scheduler.identity)["workers"].values()
        return bool(workers) and not any(map(_works, workers))

    def _submit(self, function, *args, **options):
        return self.client.submit(function, *args, pure=False, **options)


def _works(worker):
    """Whether a worker has tasks other than those that it has done or cannot begin."""
    counts = worker["metrics"].get("task_counts", {})
    if worker["status"] == "paused":
        return counts.get("executing", 0) > 0
    return any(counts.get(state, 0) for state in counts.keys() - DONE)


@contextmanager
def clear_errors(*others):
    """Replace the errors of a cluster that has lost tasks, and others, by advice."""
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(
            "The fit has killed its workers, most likely because they had too little "
            "memory: give them more (memory_limit), start more workers, or let the data "
            f"take less, as float32 or sparse chunks. Dask says: {error}"
        ) from error
    except (CancelledError, CommClosedError, *others) as error:
        raise RuntimeError(
            "The cluster has given up: the fit was canceled, or the cluster was stopped "
            "or restarted, or a worker was lost with rows that cannot be recomputed, "
            "such as those of client.scatter. Fit again, with data that the workers can "
            f"load or compute. Dask says: {error}"
        ) from error
