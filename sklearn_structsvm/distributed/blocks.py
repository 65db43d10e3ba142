"""Block-coordinate Frank-Wolfe over examples that stay on workers, one part each.

A part has its examples, their cached labelings and dual variables. In a round it gets the
weights, makes a pass over its examples, and returns the changes of the weights and of the
loss. The sum of all changes is one direction, along which the best step is made here. The
next message contains the length of this step. See `solvers.blocks._parts`.
"""

from dataclasses import dataclass
from functools import wraps
from threading import Lock

import numpy as np

from sklearn_structsvm.distributed.dask_workers import MOST_REQUESTS
from sklearn_structsvm.distributed.examples import with_origin
from sklearn_structsvm.solvers.blocks._proximal import ProximalIterate
from sklearn_structsvm.solvers.blocks.mixture import PlanesLost


@dataclass
class Message:
    """A message to all parts.

    `gamma`: the share of the last round's changes to keep. `v` (d,): the weights,
    before they are clipped. `plane` (int, int): the number of a plane to store, and the
    largest number of planes. `shares` or None: the shares of the dual point and of the
    stored planes in a mixture.
    """

    number: int
    gamma: float
    v: np.ndarray
    lam: float
    plane: tuple = ()
    shares: np.ndarray | None = None

    @property
    def nbytes(self):
        return self.v.nbytes


@dataclass
class BlockReply:
    """The reply of one part, or of several merged.

    `is_new`: whether a part missed the previous message, so that its state may differ
    from the one assumed here. `vector` (d,) or None: change of the weights, Aα, or the
    slope of a plane. `loss`: change of Σ p_i ℓ_i, Σ p_i ℓ_i itself, or the offset of a
    plane. `hinge`, `gap`, `most_negative_gap`, `bound_excess`: Σ p_i H_i, Σ g_i, the
    smallest g_i, and the excess of upper bounds over the labelings found.
    """

    is_new: bool
    vector: np.ndarray | None = None
    loss: float = 0.0
    hinge: float = 0.0
    gap: float = 0.0
    most_negative_gap: float = 0.0
    bound_excess: float = 0.0
    n_steps: int = 0
    n_oracle_calls: int = 0
    n_queries: int = 0


def merged(replies):
    """Merge replies into one."""
    vectors = [reply.vector for reply in replies if reply.vector is not None]
    return BlockReply(
        any(reply.is_new for reply in replies),
        np.sum(vectors, axis=0) if vectors else None,
        most_negative_gap=min(reply.most_negative_gap for reply in replies),
        **{
            name: sum(getattr(reply, name) for reply in replies)
            for name in (
                "loss",
                "hinge",
                "gap",
                "bound_excess",
                "n_steps",
                "n_oracle_calls",
                "n_queries",
            )
        },
    )


class BlockShard:
    """A part of the examples, with their dual variables.

    A copy, for example on another worker or on a worker's disk, includes the dual
    variables, but no planes. A lost part that is recomputed begins with all dual mass on
    the true labelings. A part that the message does not fit says so in its reply.

    `steps` (BlockSteps or ExactSteps). `seed`: of the order of the steps.
    """

    def __init__(self, examples, steps, seed):
        self.examples, self.steps = examples, steps
        self.rng = np.random.default_rng(seed)
        self.number, self.awaits_gamma = -1, False
        self.iterate = self.state = None
        # Numbers of the planes that the iterate has.
        self.planes = set()
        self._lock = Lock()

    def __getstate__(self):
        # A worker makes copies in a thread of its own, beside the one that computes.
        with self._lock:
            state = vars(self) | {"iterate": None, "planes": set()}
            if self.iterate is not None:
                state["state"] = self.iterate.get_state()
        del state["_lock"]
        return state

    def __setstate__(self, state):
        vars(self).update(state)
        self._lock = Lock()

    def read(self, message):
        """Update the iterate to the message. Returns whether the part `is_new`."""
        if self.iterate is None:
            self._start()
        iterate = self.iterate
        is_new = self.number + 1 != message.number
        if self.awaits_gamma and not is_new:
            iterate.scale_update(iterate.active_blocks, message.gamma)
        self.number, self.awaits_gamma = message.number, False
        iterate.set_weights(message.v, message.lam)
        return is_new

    def _start(self):
        self.iterate, _ = self.steps.start(self.examples, 1.0, self.state)
        self.iterate.become_part()
        self.state, self.n_queries = None, self._count_queries()

    def _count_queries(self):
        return getattr(getattr(self.iterate, "oracle", None), "n_queries", 0)

    def counted(self, **reply):
        """A reply with the numbers of steps and calls since the last one."""
        iterate = self.iterate
        n_steps, n_calls = iterate.n_steps, iterate.n_oracle_calls
        iterate.forget_counts()
        asked, self.n_queries = self.n_queries, self._count_queries()
        return BlockReply(
            n_steps=n_steps,
            n_oracle_calls=n_calls,
            n_queries=self.n_queries - asked,
            **reply,
        )


def locked(function):
    """The function of a shard and a message, with the shard locked meanwhile."""

    @wraps(function)
    def call(shard, message):
        with shard._lock:
            return function(shard, message)

    return call


@with_origin
@locked
def make_round(shard, message):
    """Make a pass over the examples of the part. Returns the changes."""
    is_new, iterate = shard.read(message), shard.iterate
    iterate.snapshot(iterate.active_blocks)
    shard.steps.make_pass(iterate, shard.rng)
    shard.awaits_gamma = True
    return shard.counted(
        is_new=is_new,
        vector=iterate.unclipped_weights - message.v,
        loss=iterate.loss_change,
        gap=iterate.estimated_gap,
    )


@with_origin
@locked
def check(shard, message):
    """The gaps of the part at the weights."""
    is_new, iterate = shard.read(message), shard.iterate
    hinge, gap = iterate.check_gaps()
    return shard.counted(
        is_new=is_new,
        hinge=hinge,
        gap=gap,
        most_negative_gap=iterate.block_gaps.min(),
        bound_excess=iterate.bound_excess,
    )


@with_origin
@locked
def dual_image(shard, message):
    """The part's share of Aα, with λ for λ'."""
    is_new, iterate = shard.read(message), shard.iterate
    iterate.rebuild_weights()
    return shard.counted(
        is_new=is_new, vector=iterate.unclipped_weights.copy(), loss=iterate.loss
    )


@with_origin
@locked
def take_plane(shard, message):
    """The part's share of the plane at the weights, which the part stores."""
    is_new, iterate = shard.read(message), shard.iterate
    hinge, plane, offset = iterate.take_plane(iterate.weights.copy(), *message.plane)
    shard.planes.add(message.plane[0])
    return shard.counted(is_new=is_new, vector=plane, loss=offset, hinge=hinge)


@with_origin
@locked
def mix(shard, message):
    """Mix the part's dual variables with its stored planes, unless they are lost."""
    is_new, iterate = shard.read(message), shard.iterate
    is_new |= not shard.planes.issuperset(range(len(message.shares) - 1))
    if not is_new:
        iterate.mix(message.shares, message.v)
    return shard.counted(is_new=is_new, loss=iterate.loss)


class DistributedBlocks(ProximalIterate):
    """An iterate for `run_bcfw` whose blocks are on workers.

    `bounds` (lower, upper) of (n_weights,) or None.
    """

    is_corrective = False
    # Its blocks are not in this process.
    is_remote = True
    average_weights = None

    def __init__(self, workers, n_blocks, n_parts, n_weights, lam, bounds=None):
        super().__init__(n_weights, lam, *(bounds or ()))
        self.workers = workers
        self.active_blocks = range(n_blocks)
        # σ lies between one, which is enough if the steps of different parts do not
        # interact, and the number of parts, which is always safe.
        self.sigma = 0.5 * (1 + n_parts)
        self.n_messages = self.n_steps = self.n_oracle_calls = self.n_queries = 0
        self.gamma, self.loss = 1.0, 0.0
        self.gap = self.estimated_gap_of_blocks = np.inf
        self.block_gaps = np.zeros(1)

    def _tell(self, function, v, lam, **more):
        message = Message(self.n_messages, self.gamma, v, lam, **more)
        self.n_messages += 1
        reply = self.workers.tell(function, message, merged)
        self.gamma = 1.0
        self.n_steps += reply.n_steps
        self.n_oracle_calls += reply.n_oracle_calls
        self.n_queries += reply.n_queries
        return reply

    def make_pass(self, rng, deadline=np.inf):
        """Make a round: a pass of each part over its examples, combined by one step."""
        lam = self.lam + self.kappa
        reply = self._tell(make_round, self.unclipped_weights.copy(), lam / self.sigma)
        delta = reply.vector / self.sigma
        w = self.weights
        self.gamma = self.best_step(reply.loss, w.dot(delta), delta.dot(delta))
        self.advance(delta, self.gamma)
        self.loss += self.gamma * reply.loss
        self.estimated_gap_of_blocks = reply.gap
        if reply.is_new:
            self.rebuild_weights()

    def rebuild_weights(self):
        """The weights of the dual variables of all parts."""
        self.workers.find_homes()
        for _ in range(MOST_REQUESTS):
            reply = self._tell(dual_image, np.zeros(len(self.weights)), self.lam)
            if not reply.is_new:
                self.set_dual_image(reply.vector)
                self.loss = reply.loss
                return
        raise RuntimeError(
            f"The workers lost examples between {MOST_REQUESTS} requests in a row, so "
            "their weights cannot be computed: workers die again and again, or have too "
            "little memory to keep their examples. Give them more, or start more workers."
        )

    def check_gaps(self, n_threads=1):
        """True gaps at the weights: (Σ p_i H_i, Σ g_i)."""
        reply = self._tell(check, self.unclipped_weights.copy(), self.lam)
        while reply.is_new:
            self.rebuild_weights()
            reply = self._tell(check, self.unclipped_weights.copy(), self.lam)
        self.gap = self.estimated_gap_of_blocks = reply.gap
        self.bound_excess = reply.bound_excess
        self.block_gaps = np.array([reply.most_negative_gap])
        return reply.hinge, reply.gap

    def take_plane(self, w, j, most, n_threads=1, cached=False):
        """(Σ p_i H_i, a, b) at weights in the box; the parts store the plane as number j.

        PlanesLost if a part was recomputed.
        """
        reply = self._tell(take_plane, w, self.lam, plane=(j, most))
        self._check_planes(reply)
        return reply.hinge, reply.vector, reply.loss

    def mix(self, shares, u):
        """Same as for `BlockDual`; new parts mix nothing."""
        reply = self._tell(mix, u, self.lam, shares=shares)
        self._check_planes(reply)
        self.set_dual_image(u)
        self.loss = reply.loss

    def _check_planes(self, reply):
        """Raise `PlanesLost` if a part was recomputed, because it has no planes."""
        if reply.is_new:
            self.rebuild_weights()
            raise PlanesLost

    @property
    def estimated_gap(self):
        """An estimate of the gap from the last known block gaps."""
        return self.estimated_gap_of_blocks + self.proximal_gap()

    @property
    def dual_objective(self):
        return self.dual_value(self.loss)

    def plane(self):
        """Same as for `ExactAscent`, but without coefficients."""
        return None, self.loss, -self.lam * self.dual_image()
