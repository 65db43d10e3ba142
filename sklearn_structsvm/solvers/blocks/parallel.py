"""Passes that several threads share, each with a part of the examples."""

from contextlib import nullcontext
from functools import partial
from queue import SimpleQueue
from threading import Thread
from time import perf_counter

import numpy as np

from sklearn_structsvm.solvers.blocks._parts import Parts

# Rounds per pass, and per pass over the cached labelings, by whether there are many
# weights. With a third of them the parts hinder each other: OCR-small takes 75 passes for
# 67, generated chains 70 for 61, and OCR-large 53 for 46. More save nothing, and each
# takes a tenth of a millisecond, as weights go from core to core. If there are many, to
# combine them takes as long as the steps.
ROUNDS = {False: (30, 10), True: (4, 2)}

# The fewest operations of a part in a pass, as oracles declare them. They take about a
# hundred times as long as handing them to another thread.
LEAST_OPERATIONS = 5_000_000

# Above this, weights count as many, and several threads combine them.
MANY_PAGES = 1024


def make_team(iterate, n_threads):
    """A context manager of the `Team` that moves an iterate, or None for one thread.

    `n_threads` is the most that are used. Only the sizes of the problem decide.
    """
    if n_threads < 2 or not iterate.can_be_parted:
        return nullcontext()
    n_blocks = len(iterate.active_blocks)
    n_parts = n_blocks * iterate.oracle.step_cost() / LEAST_OPERATIONS
    # A part has a block for every third round at least.
    n_threads = min(n_threads, int(n_parts), 3 * n_blocks // ROUNDS[False][0])
    return Team(iterate, n_threads) if n_threads > 1 else nullcontext()


class Team:
    """Threads that move an iterate by rounds of its parts; see `_parts`.

    Who waits for others soon sleeps, so other programs can use the cores. The result
    depends on the number of threads, but not on their pace.

    `iterate` (BlockFrankWolfe or MarginalAscent): an iterate that `can_be_parted`.
    `n_threads`: at least 2.
    """

    def __init__(self, iterate, n_threads):
        self.iterate = iterate
        blocks, weights = iterate.active_blocks, iterate.block_weights
        self.parts = []
        for k in range(n_threads):
            mine = np.zeros(len(weights))
            mine[blocks[k::n_threads]] = weights[blocks[k::n_threads]]
            self.parts.append(iterate.part(mine))
        # In one of 30 rounds parts hinder each other little. Every second pass over the
        # cached labelings undoes what went too far.
        self.sigmas = [1.0 if iterate.has_best_step else n_threads, n_threads]
        self.n_cached = 0
        self.joint = Parts(iterate, self.parts)
        n_pages = self.joint.n_pages
        has_many = n_pages >= MANY_PAGES
        self.rounds = ROUNDS[has_many]
        n_slices = n_threads if has_many else 1
        cuts = [n_pages * min(k, n_slices) // n_slices for k in range(n_threads + 1)]
        self.slices = list(zip(cuts[:-1], cuts[1:], strict=True))
        # Calls and answers of each other thread.
        self.lanes = [(SimpleQueue(), SimpleQueue()) for _ in range(n_threads - 1)]
        self.threads = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        try:
            for calls, _ in self.lanes:
                calls.put(None)
        finally:
            # Once more, if that was interrupted.
            for calls, _ in self.lanes:
                calls.put(None)
        for thread in self.threads:
            thread.join()

    def make_pass(self, rng, deadline=np.inf):
        """Make one pass in a random order of each part; it stops at the deadline."""
        self.n_cached = 0
        self.run([rng.permutation(part.active_blocks) for part in self.parts], deadline)

    def make_cached_pass(self, rng, deadline=np.inf):
        """Make a pass over the cached labelings, after `make_pass`.

        Returns their gap before.
        """
        self.n_cached += 1
        orders = [rng.permutation(part.movable_blocks) for part in self.parts]
        return self.run(orders, deadline, True)

    def run(self, orders, deadline=np.inf, cached=False):
        """Make steps on these blocks of each part, in their order.

        `orders` (list of ndarray intp): each block occurs at most once. `cached`:
        whether the steps are those of `run_cached`. With `cached`, returns the sum of
        the results of `run_cached`.
        """

        def is_over():
            return perf_counter() >= deadline

        # The whole may have moved to another center in the meantime.
        self.joint.refresh(self.sigmas[self.n_cached > 0 and self.n_cached % 2 == 0])
        for part in self.parts:
            self.iterate.begin_pass_of(part)
        make, n_rounds = self.joint.make_rounds, self.rounds[cached]
        try:
            calls = [
                partial(make, k, order, n_rounds, cached, *self.slices[k], is_over)
                for k, order in enumerate(orders)
            ]
            return sum(self._together(calls))
        finally:
            for part in self.parts:
                self.iterate.end_pass_of(part)

    def _together(self, calls):
        """Run the calls at once, the first in this thread, and return their results."""
        first, *others = calls
        # Not before the block is entered, whose end sends them away, interrupted or not.
        for own in self.lanes[len(self.threads) :]:
            thread = Thread(target=_serve, args=own, daemon=True)
            thread.start()
            self.threads.append(thread)
        asked = []
        try:
            for lane, call in zip(self.lanes, others, strict=True):
                lane[0].put(call)
                asked.append(lane)
            result = first()
        except BaseException:
            # The others must not wait for this thread.
            self.joint.leave()
            raise
        finally:
            answers = [own_answers.get() for _, own_answers in asked]
        for _, error in answers:
            if error is not None:
                raise error
        return [result, *(answer for answer, _ in answers)]


def _serve(calls, answers):
    """Make calls, one after another, until there is None, and answer (result, error)."""
    while (call := calls.get()) is not None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # raised where the answer is read
            answers.put((None, error))
