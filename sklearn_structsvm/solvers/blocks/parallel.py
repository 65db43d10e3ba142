"""Passes that several threads make at once, over parts of the examples."""

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from functools import partial
from time import perf_counter

import numpy as np

from sklearn_structsvm.solvers.blocks._parts import Parts

# Rounds of a pass, and of one over the cached labelings, if steps are smaller. The
# more there are, the fewer passes it takes, and the more often threads wait and weights
# are compared. If these are many, that takes as long as the steps.
ROUNDS = (10, 5)
ROUNDS_OF_MANY_WEIGHTS = (4, 2)

# Steps that a part is to make in a round: fewer are not worth the waiting.
FEWEST_STEPS = 16

# What is many; and then several threads compare them.
MANY_PAGES = 1024


def sigma_of(n_parts):
    """σ of this many parts.

    Between one, which is enough if steps of different parts have nothing in common,
    and their number, which is safe. Of chains it was the best or next to it for 2, 4, 8.
    """
    return 0.5 * (n_parts + 1)


def make_team(iterate, n_threads):
    """A context with the `Team` that moves an iterate, or None for one thread.

    What decides is the sizes of the problem alone.
    """
    n = len(iterate.active_blocks)
    n_threads = min(n_threads, n // (ROUNDS[0] * FEWEST_STEPS))
    if n_threads < 2 or not iterate.can_be_parted:
        return nullcontext()
    return Team(iterate, n_threads)


class Team:
    """Threads that move an iterate by rounds of its parts; see `_parts`.

    They wait for each other, and do not spin: if other programs want the cores, they
    get them. What comes out depends on the number of threads, and not on their pace.

    Parameters
    ----------
    iterate : BlockFrankWolfe or MarginalAscent
        That `can_be_parted`.
    n_threads : int
        At least 2.
    """

    def __init__(self, iterate, n_threads):
        self.iterate = iterate
        blocks, weights = iterate.active_blocks, iterate.block_weights
        self.parts = []
        for k in range(n_threads):
            mine = np.zeros(len(weights))
            mine[blocks[k::n_threads]] = weights[blocks[k::n_threads]]
            self.parts.append(iterate.part(mine))
        sigma = sigma_of(n_threads) if iterate.has_best_step else float(n_threads)
        self.joint = Parts(iterate, self.parts, sigma)
        n_pages = self.joint.n_pages
        has_many = n_pages >= MANY_PAGES
        self.rounds = ROUNDS_OF_MANY_WEIGHTS if has_many else ROUNDS
        n_slices = n_threads if has_many else 1
        cuts = [n_pages * k // n_slices for k in range(n_slices + 1)]
        self.slices = list(zip(cuts[:-1], cuts[1:], strict=True))
        self.pool = ThreadPoolExecutor(n_threads - 1)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.pool.shutdown()

    def make_pass(self, rng, deadline=np.inf):
        """One pass, in a random order of each part; cut short after the deadline."""
        # The whole may have moved meanwhile, to another center.
        self.joint.refresh()
        self.run([rng.permutation(part.active_blocks) for part in self.parts], deadline)

    def make_cached_pass(self, rng, deadline=np.inf):
        """A pass over the cached labelings, after `make_pass`; their gap before it."""
        orders = [rng.permutation(part.movable_blocks) for part in self.parts]
        return self.run(orders, deadline, True)

    def run(self, orders, deadline=np.inf, cached=False):
        """Steps on these blocks of each part, in their order.

        Parameters
        ----------
        orders : list of ndarray of dtype intp
            No block twice.
        deadline : float
        cached : bool
            Whether the steps are those of `run_cached`.

        Returns
        -------
        float
            With `cached` the sum of what `run_cached` returns.
        """
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
        """Take the best step along what all parts did; γ."""
        joint = self.joint
        found = self._together([partial(joint.compare, *pages) for pages in self.slices])
        loss_change = sum(part.loss_change for part in self.parts)
        sums = map(sum, zip(*found, strict=True))
        gamma = self.iterate.best_step(loss_change, *sums)
        self._together([partial(joint.join, gamma, *pages) for pages in self.slices])
        return gamma

    def _together(self, calls):
        """The results of the calls, the first of which this thread makes."""
        first, *others = calls
        others = [self.pool.submit(call) for call in others]
        try:
            result = first()
        finally:
            wait(others)
        return [result, *(other.result() for other in others)]
