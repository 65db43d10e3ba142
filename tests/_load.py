"""A machine that is busy with other things."""

from contextlib import contextmanager
from threading import Event, Thread
from time import sleep

import numpy as np


@contextmanager
def busy_machine():
    """Threads that compute beside the block, and shift where its memory lies."""
    done = Event()

    def multiply():
        A = np.ones((150, 150))
        while not done.is_set():
            A @ A
            sleep(0)

    def allocate():
        kept, size = [], 1
        while not done.is_set():
            size = (size * 5 + 3) % 4099
            kept = [*kept[-40:], np.empty(size)]
            # Else each call of Python by a kernel would wait 5 ms for its turn.
            sleep(0)

    threads = [Thread(target=work, daemon=True) for work in (multiply, allocate)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
