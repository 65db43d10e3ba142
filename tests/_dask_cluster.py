"""A cluster of two worker processes, one of which may be killed."""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
from contextlib import contextmanager
from time import monotonic, sleep

import pytest

from sklearn_structsvm.distributed import dask_workers

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

# Workers are forked from a process that has imported what they need, if the system
# supports it.
FORK = "forkserver"
IMPORTS = ["dask.array", "dask.bag", "distributed", "sklearn_structsvm"]

# After this many seconds, something hangs. On a busy machine a process may wait that
# long.
PATIENCE = 300.0


def processes():
    """The context of `multiprocessing` that makes them."""
    dask.config.set(
        {
            "distributed.comm.timeouts.connect": PATIENCE,
            "distributed.comm.timeouts.tcp": PATIENCE,
        }
    )
    if FORK in multiprocessing.get_all_start_methods():
        dask.config.set({"distributed.worker.multiprocessing-method": FORK})
        distributed.utils.get_mp_context().set_forkserver_preload(IMPORTS)
    return distributed.utils.get_mp_context()


@contextmanager
def start_client():
    """A client that is current within its block."""
    processes()
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )  # fmt: skip
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def serve(kind, args, options):
    """Be a scheduler or a worker until the end."""

    async def run():
        async with kind(*args, **options) as server:
            await server.finished()

    asyncio.run(run())


class Scheduler:
    """A scheduler with a process of its own and one worker, which can be restarted."""

    def __init__(self):
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            self.port = chosen.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes = []
        self.start()

    def start(self):
        place = {"host": "127.0.0.1", "port": self.port, "dashboard": False}
        worker = {"nthreads": 1, "dashboard": False}
        for kind, args, options in (
            (distributed.Scheduler, (), place),
            (distributed.Worker, (self.address,), worker),
        ):
            process = processes().Process(target=serve, args=(kind, args, options))
            process.start()
            self.processes.append(process)

    def stop(self):
        """End the processes without a word to anyone."""
        while self.processes:
            process = self.processes.pop()
            process.kill()
            process.join()


def tasks(client):
    """The keys of everything the scheduler knows."""
    return client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.tasks))


def check_nothing_is_left(client, but=frozenset()):
    """Wait until released keys are forgotten."""
    until = monotonic() + PATIENCE
    while tasks(client) - but and monotonic() < until:
        sleep(0.05)
    assert tasks(client) <= but


def kill_worker(client, address):
    (pid,) = client.run(os.getpid, workers=[address]).values()
    # Windows has only one way.
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def each_message(monkeypatch, number, call, name="tell"):
    """Call before the message with this number, with the workers that get it.

    The homes of the workers at each message, and the replies.
    """
    original, homes, replies = getattr(dask_workers.ClusterWorkers, name), [], []

    def send(workers, *args):
        homes.append(workers.homes)
        if len(homes) == number:
            call(workers)
        replies.append(original(workers, *args))
        return replies[-1]

    monkeypatch.setattr(dask_workers.ClusterWorkers, name, send)
    return homes, replies


# What workers are made to do; they import this file.


def pause(dask_worker):
    """Begin no more tasks, as a worker does that uses most of its memory."""
    dask_worker.memory_manager.memory_pause_fraction = False
    dask_worker.status = distributed.Status.paused


def resume(dask_worker):
    dask_worker.status = distributed.Status.running


def call_when_told(name, function, *args):
    distributed.Event(name).wait()
    return function(*args)


def die(*args):
    """End the process, as the system does where there is no memory left."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
