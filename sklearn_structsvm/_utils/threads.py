"""How many threads a kernel starts for what scikit-learn calls n_jobs."""

import os

from joblib import effective_n_jobs

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


def _note_fork():
    global _has_lost
    _has_lost = _has_lost or _has_started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
