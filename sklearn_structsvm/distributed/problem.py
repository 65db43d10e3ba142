"""Training data whose parts stay on workers, bound to a fitted structure."""

from functools import partial

import numpy as np

from sklearn_structsvm._utils.weights import normalized_lambda
from sklearn_structsvm.distributed.blocks import BlockShard, DistributedBlocks
from sklearn_structsvm.distributed.sums import DistributedSums, SumShard
from sklearn_structsvm.solvers.loop import Rounding
from sklearn_structsvm.structures.answers import oracle_of


class RemoteProblem:
    """The counterpart of `LocalProblem` for Dask, a context that ends with `release`.

    `total`: Σs. `workers`: of the checked parts. `sizes`: examples of each part.
    `bind`: a picklable function from a checked part to its `Examples`. `example` (X,
    y): one in the structure's form, for `make_oracle`. `largest`: the largest absolute
    value of a feature.
    """

    is_remote = True
    has_hidden = False
    # The weight of that example.
    weights = np.ones(1)
    risk = costs = None

    def __init__(self, structure, total, workers, sizes, bind, example, largest):
        self.structure, self.total = structure, total
        self.sizes, self.bind = sizes, bind
        self.example, self.largest = example, largest
        # The checked parts, and everything made from them.
        self.workers, self.held = workers, [workers]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.release()

    def release(self):
        """Allow the workers to forget the parts."""
        for workers in self.held:
            workers.release()

    def lam(self, C):
        return normalized_lambda(C, self.total)

    def largest_feature(self):
        return self.largest

    def make_oracle(self):
        """The oracle of one example, with the properties of the structure's oracles."""
        return oracle_of(self.structure, *self.example)

    def make_iterate(self, lam, steps, rng=None, state=None):
        """The iterate whose parts are on the workers, and the resolved options.

        Without `rng`, the seed of the parts is 0. A `state` is not supported.
        """
        seed = 0 if rng is None else int(rng.integers(2**31))
        makers = [
            partial(BlockShard, steps=steps, seed=(seed, k))
            for k in range(len(self.sizes))
        ]
        iterate = DistributedBlocks(
            self._make_parts(makers),
            sum(self.sizes),
            len(self.sizes),
            self.structure.n_weights_,
            lam,
            steps.bounds,
        )
        iterate.rounding = self.rounding
        return iterate, steps.resolved()

    @property
    def rounding(self):
        """The `Rounding` of means over the examples, whose features are elsewhere."""
        return Rounding(0.0, sum(self.sizes))

    def make_sums(self):
        """The oracle of the log-loss, weights of its blocks, and mean squares.

        The weights of the examples are stored in the parts.
        """
        parts = self._make_parts([SumShard] * len(self.sizes))
        oracle = DistributedSums(parts, sum(self.sizes), self.structure.n_weights_)
        weights = np.broadcast_to(1.0, oracle.n_blocks)
        return oracle, weights, oracle.mean_squares()

    def _make_parts(self, makers):
        return self._map(_make_part, [(self.bind, make) for make in makers])

    def _map(self, function, arguments):
        workers = self.workers.map(function, arguments)
        self.held.append(workers)
        return workers


def _make_part(checked, bind, make):
    return make(bind(checked))
