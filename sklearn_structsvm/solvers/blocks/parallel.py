"""Passes that several threads share, each with a part of the examples."""

from contextlib import nullcontext
from functools import partial
from queue import SimpleQueue
from threading import Thread
from time import perf_counter

import numpy as np

from sklearn_structsvm.solvers.blocks._parts import Parts

# Rounds per pass, and per pass over the cached labelings, whose steps are smaller. With
# more rounds, fewer passes are needed, but threads wait and weights are combined more
# often. If there are many weights, combining them takes as long as the steps.
ROUNDS = (10, 5)
ROUNDS_OF_MANY_WEIGHTS = (4, 2)

# The fewest operations of a part in a round, as oracles declare them. These take about
# ten times as long as handing them to another thread: with a sixth of them two threads
# are slower than one, and with 1.7 times as many they are faster.
LEAST_OPERATIONS = 500_000

# Above this, weights count as many, and several threads combine them.
MANY_PAGES = 1024


def sigma_of(n_parts, share=0.5):
    """σ for this many parts.

    It lies between one, which is enough if the steps of different parts do not interact,
    and the number of parts, which is always safe.
    """
    return 1.0 + share * (n_parts - 1)


def make_team(iterate, n_threads):
    """A context manager of the `Team` that moves an iterate, or None for one thread.

    `n_threads` is the most that are used. Only the sizes of the problem decide.
    """
    if n_threads < 2 or not iterate.can_be_parted:
        return nullcontext()
    n_steps = len(iterate.active_blocks) / ROUNDS[0]
    n_parts = min(n_steps, n_steps * iterate.oracle.step_cost() / LEAST_OPERATIONS)
    n_threads = min(n_threads, int(n_parts))
    return Team(iterate, n_threads) if n_threads > 1 else nullcontext()


class Team:
    """Threads that move an iterate by rounds of its parts; see `_parts`.

    They wait for each other without spinning, so other programs can use the cores. The
    result depends on the number of threads, but not on their pace.

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
        # Passes that ask the oracle hinder each other little. Every second pass over the
        # cached labelings undoes what went too far; other ones are as the first. With
        # sigma_of(n_threads) for all, letters take 17 passes for 16, and 59 for 53;
        # generated chains, on which this was not chosen, 50 for 43.
        share = 0.25 if iterate.has_best_step else 1.0
        self.sigmas = [sigma_of(n_threads, share), float(n_threads)]
        self.n_cached = 0
        self.joint = Parts(iterate, self.parts)
        n_pages = self.joint.n_pages
        has_many = n_pages >= MANY_PAGES
        self.rounds = ROUNDS_OF_MANY_WEIGHTS if has_many else ROUNDS
        n_slices = n_threads if has_many else 1
        cuts = [n_pages * k // n_slices for k in range(n_slices + 1)]
        self.slices = list(zip(cuts[:-1], cuts[1:], strict=True))
        # Calls and answers of each other thread.
        self.lanes = [(SimpleQueue(), SimpleQueue()) for _ in range(n_threads - 1)]

    def __enter__(self):
        self.threads = [Thread(target=_serve, args=own) for own in self.lanes]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exception):
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
        # The whole may have moved to another center in the meantime.
        self.joint.refresh(self.sigmas[self.n_cached > 0 and self.n_cached % 2 == 0])
        for part in self.parts:
            self.iterate.begin_pass_of(part)
        n_rounds = self.rounds[cached]
        nothing = [order[:0] for order in orders]
        made, gamma, gap = nothing, 1.0, 0.0
        try:
            for r in range(n_rounds):
                chunks = [
                    order[len(order) * r // n_rounds : len(order) * (r + 1) // n_rounds]
                    for order in orders
                ]
                gap += self._make_round(made, gamma, chunks, cached)
                made, gamma = chunks, self._join()
                if perf_counter() >= deadline:
                    break
            self._make_round(made, gamma, nothing, cached)
        finally:
            for part in self.parts:
                self.iterate.end_pass_of(part)
        return gap

    def _make_round(self, made, gamma, chunks, cached):
        """Scale the updates of the last round, and make the next steps."""

        def move(part, last, chunk):
            part.scale_update(last, gamma)
            part.snapshot(chunk)
            if cached:
                return part.run_cached(chunk)
            part.run(chunk)
            return 0.0

        calls = map(partial, [move] * len(chunks), self.parts, made, chunks)
        return sum(self._together(calls))

    def _join(self):
        """Make the best step along the sum of all parts' updates.

        Returns its length γ.
        """
        joint = self.joint
        found = self._together([partial(joint.compare, *pages) for pages in self.slices])
        loss_change = sum(part.loss_change for part in self.parts)
        sums = map(sum, zip(*found, strict=True))
        gamma = self.iterate.best_step(loss_change, *sums)
        self._together([partial(joint.join, gamma, *pages) for pages in self.slices])
        return gamma

    def _together(self, calls):
        """Run the calls at once, the first in this thread, and return their results."""
        first, *others = calls
        lanes = self.lanes[: len(others)]
        for (own_calls, _), call in zip(lanes, others, strict=True):
            own_calls.put(call)
        try:
            result = first()
        finally:
            answers = [own_answers.get() for _, own_answers in lanes]
        for _, error in answers:
            if error is not None:
                raise error
        return [result, *(answer for answer, _ in answers)]


def _serve(calls, answers):
    """Make calls, one after another, until there is None, and answer (result, error)."""
    # An executor's futures would take a tenth of a round, which takes a millisecond.
    while (call := calls.get()) is not None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # raised where the answer is read
            answers.put((None, error))
