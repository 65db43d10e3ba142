"""Number of threads: of a kernel for an `n_jobs`, and of BLAS."""

import os
from contextlib import contextmanager
from functools import cache
from threading import Lock

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from sklearn_structsvm._utils.borders import check_integer

# Maximum number of threads: no kernel has work for more.
MOST_THREADS = 256

# Doubles of a cache line.
LINE = 8

# Whether this process, or the process it was forked from, has started threads.
_has_started = False
_has_lost = False


def whole_lines(size):
    """The fewest doubles, at least `size`, that fill cache lines.

    The scratch rows of threads have such lengths, so that all begin alike: old kernels of
    a BLAS add in an order that depends on where an array begins in memory.
    """
    return -(-size // LINE) * LINE


def count_threads(n_jobs, n_items=MOST_THREADS):
    """Number of threads for an `n_jobs`, as joblib reads it; 1 if a fork has lost some.

    A single item has one thread, too.

    Only one thread survives a fork. OpenMP does not notice that the others are gone, and
    the child would wait for them forever.
    """
    global _has_started
    if n_jobs is not None:
        check_integer("n_jobs", n_jobs, -np.inf)
    if _has_lost or n_items == 1:
        return 1
    n_threads = max(1, min(effective_n_jobs(n_jobs), MOST_THREADS))
    _has_started = _has_started or n_threads > 1
    return n_threads


@cache
def _blas():
    return ThreadpoolController()


class _Limit:
    """Counts the contexts in which BLAS has one thread; the last one restores it."""

    def __init__(self):
        self.lock, self.n_inside, self.limiter = Lock(), 0, None


_limit = _Limit()


@contextmanager
def one_blas_thread():
    """A context in which BLAS has one thread, for vectors and small matrices.

    For these, waking more threads takes as long as the work, or a hundred times as long
    on a busy machine. Several Python threads may be in the context at once.
    """
    limit = _limit
    with limit.lock:
        if limit.n_inside == 0:
            limit.limiter = _blas().limit(limits=1, user_api="blas")
        limit.n_inside += 1
    try:
        yield
    finally:
        with limit.lock:
            limit.n_inside -= 1
            if limit.n_inside == 0:
                limit.limiter.restore_original_limits()


def _note_fork():
    global _has_lost, _limit
    _has_lost = _has_lost or _has_started
    # Another thread may have held the lock.
    _limit = _Limit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
