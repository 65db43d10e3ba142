"""Where the shards of a Dask collection are: here, or with the workers of a cluster.

All of Dask that is called here. A shard that was lost with its worker is computed anew by
the cluster's scheduler, from the graph of the collection.
"""

from concurrent.futures import CancelledError
from time import sleep

from sklearn_structsvm.distributed.merging import merge
from sklearn_structsvm.distributed.shard import answer

# Vectors of more bytes are sent to the workers once, and from there to the others; a
# scheduler that has more of them in its tasks than ten times this warns.
LARGE = 2**20

# How many replies are merged where they are, before they come here.
FAN_IN = 8

# Where they are lost with a worker they are sent again, after this many seconds: by then,
# the scheduler knows that the worker is gone.
ATTEMPTS = 4
PAUSE = 1.0


def import_dask():
    """The package, or what to do about it."""
    try:
        import dask
    except ImportError as error:
        raise ImportError(
            "Dask collections need Dask. Install it with "
            'pip install "sklearn-structsvm[dask]".'
        ) from error
    return dask


def holds_dask(*data):
    """Whether any of the data is a Dask collection, without importing Dask for others."""
    lazy = [x for x in data if hasattr(x, "__dask_graph__")]
    return bool(lazy) and any(import_dask().is_dask_collection(x) for x in lazy)


def n_places():
    """Threads of all workers, which shards are made for; one without a cluster."""
    client = _client()
    return 1 if client is None else max(1, sum(client.nthreads().values()))


def start_workers(delayed):
    """Compute them where they shall stay: with the workers if there is a client."""
    client = _client()
    if client is None:
        return LocalWorkers(list(import_dask().compute(*delayed)))
    return ClusterWorkers(client, client.compute(delayed))


def _client():
    """The client that is active, if any."""
    try:
        from distributed import Client
    except ImportError:
        return None
    try:
        client = Client.current()
    except ValueError:
        return None
    if client.asynchronous:
        raise TypeError("fit waits for its workers: it needs a Client that is not async.")
    return client


class LocalWorkers:
    """This process, with the shards of collections that Dask's own scheduler computes."""

    def __init__(self, shards):
        self.shards = shards

    def map(self, function, arguments):
        """The shards that the function makes of these and of one tuple for each."""
        pairs = zip(self.shards, arguments, strict=True)
        return LocalWorkers([function(shard, *more) for shard, more in pairs])

    def collect(self, function):
        """What the function says of each shard."""
        return [function(shard) for shard in self.shards]

    def release(self):
        """Forget the shards."""
        self.shards = []

    def ask(self, question):
        """The merged reply to a `Question`; None where one lacks rows."""
        return merge([answer(shard, question) for shard in self.shards])


class ClusterWorkers:
    """The workers of a cluster, with a future of each shard, that has its recipe."""

    def __init__(self, client, futures):
        self.client, self.futures = client, futures
        # Addresses of the workers that have answered for them, and know their rows.
        self.homes = None

    def map(self, function, arguments):
        pairs = zip(self.futures, arguments, strict=True)
        futures = [self._submit(function, future, *more) for future, more in pairs]
        return ClusterWorkers(self.client, futures)

    def collect(self, function):
        return self._gather([self._submit(function, future) for future in self.futures])

    def release(self):
        # An error would keep its futures, and they what they are made from.
        for future in self.futures:
            future.release()

    def ask(self, question):
        if self.homes is None:
            self._find_homes()
        for attempt in range(ATTEMPTS):
            try:
                reply = self._ask(question)
                break
            except (CancelledError, OSError) as error:
                if question.nbytes > LARGE and attempt < ATTEMPTS - 1:
                    sleep(PAUSE)
                    continue
                raise RuntimeError(
                    f"The cluster has given up: {error} Either the fit was cancelled, "
                    "or rows were lost with a worker that cannot be computed again, as "
                    "those of client.scatter."
                ) from error
        if reply is None:
            self._find_homes()
        return reply

    def _find_homes(self):
        """Of shards that are with several workers, choose one to ask from now on."""
        from distributed import wait

        wait(self.futures)
        holders = self.client.who_has(self.futures)
        homes = []
        for future, home in zip(
            self.futures, self.homes or [None] * len(self.futures), strict=True
        ):
            known = sorted(holders.get(future.key, ()))
            homes.append(home if home in known else next(iter(known), None))
        self.homes = homes

    def _ask(self, question):
        if question.nbytes > LARGE:
            (question,) = self.client.scatter([question], broadcast=True, hash=False)
        replies = [
            self._submit(
                answer,
                future,
                question,
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
            return self.client.gather(futures)
        finally:
            for future in futures:
                future.release()

    def _submit(self, function, *args, **options):
        return self.client.submit(function, *args, pure=False, **options)
