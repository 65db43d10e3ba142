"""Log-losses of examples that stay on workers, one part each.

The loss and its gradient are sums over the parts. Parts keep nothing between two
questions, so a part that was lost with its worker is simply asked again.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_structsvm.distributed.examples import with_origin


@dataclass
class Point:
    """A message to all parts.

    `w` (d,).
    """

    w: np.ndarray
    n_threads: int

    @property
    def nbytes(self):
        return self.w.nbytes


class SumShard:
    """A part: its examples and, after the first question, their oracle."""

    def __init__(self, examples):
        self.examples = examples
        self.oracle = None

    def __getstate__(self):
        return vars(self) | {"oracle": None}


@with_origin
def log_loss(shard, point):
    """The log-loss of the part at a point, and its gradient."""
    examples = shard.examples
    if shard.oracle is None:
        shard.oracle = examples.make_oracle()
    # Arrays that Dask has sent may be unaligned.
    w = np.require(point.w, requirements="A")
    return shard.oracle.log_loss(examples.weights, w, point.n_threads)


@with_origin
def mean_squares(shard, point):
    """The structure's mean squares of the part's features."""
    examples = shard.examples
    return examples.structure._mean_squares(examples.X, examples.weights)


def summed(replies):
    """Merge replies into one."""
    values, gradients = zip(*replies, strict=True)
    return sum(values), np.sum(gradients, axis=0)


class DistributedSums:
    """The oracle of `run_lbfgs` if the examples are on workers."""

    can_tighten = False

    def __init__(self, workers, n_blocks, n_weights):
        self.workers = workers
        self.n_blocks, self.n_weights = n_blocks, n_weights

    def log_loss(self, weights, w, n_threads=1):
        """Same as for `BlockOracle`; the weights of the examples are in the parts."""
        return self.workers.tell(log_loss, Point(w, n_threads), summed)

    def mean_squares(self):
        """The structure's mean squares of all features."""
        nothing = Point(np.zeros(0), 1)
        return self.workers.tell(mean_squares, nothing, sum)
