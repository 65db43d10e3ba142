"""How many threads a kernel starts for what scikit-learn calls n_jobs, and BLAS."""

import os
from contextlib import contextmanager
from functools import cache
from threading import Lock

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

# No kernel has work for more.
MOST_THREADS = 256

# Whether this process, or the one that it was forked from, has started threads.
_has_started = False
_has_lost = False


def count_threads(n_jobs, n_items=MOST_THREADS):
    """Threads for an `n_jobs`, as joblib reads it; 1 where those of before were lost.

    Nor are there more for one item, for which joblib need not be asked.

    A fork takes one thread along. That its others are gone OpenMP does not see, and the
    child would wait for them for ever.
    """
    global _has_started
    if _has_lost or n_items == 1:
        return 1
    n_threads = max(1, min(effective_n_jobs(n_jobs), MOST_THREADS))
    _has_started = _has_started or n_threads > 1
    return n_threads


@cache
def _blas():
    return ThreadpoolController()


class _Limit:
    """Who wants BLAS to have one thread; the last to leave restores what it had."""

    def __init__(self):
        self.lock, self.n_inside, self.limiter = Lock(), 0, None


_limit = _Limit()


@contextmanager
def one_blas_thread():
    """A context in which BLAS has one thread, for vectors and small matrices.

    To wake more threads for these takes as long as what they do, and a hundred times as
    long on a busy machine. Several Python threads may be in it at once.
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
