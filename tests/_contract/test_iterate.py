"""Classes that solvers move have what is declared of them."""

import pytest

from sklearn_structsvm._contract.iterate import BlockIterate, Iterate
from sklearn_structsvm.distributed.blocks import DistributedBlocks
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._crf import MarginalAscent
from sklearn_structsvm.solvers.blocks._exact import ExactAscent
from sklearn_structsvm.solvers.blocks.concave_convex import ConcaveConvex
from sklearn_structsvm.solvers.turns import Turn


def declared(protocol):
    """Names of attributes and methods, those of parents included."""
    return {
        name
        for kind in protocol.__mro__[:-1]
        for name in (*vars(kind).get("__annotations__", ()), *vars(kind))
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        (Iterate, ConcaveConvex),
        (Iterate, Turn),
        (BlockIterate, BlockFrankWolfe),
        (BlockIterate, ExactAscent),
        (BlockIterate, MarginalAscent),
        (BlockIterate, DistributedBlocks),
    ],
)
def test_what_is_declared_is_there(protocol, kind):
    own = set()
    if kind is DistributedBlocks:
        # `__init__` sets two, and no fit starts from dual points of workers.
        own = {"active_blocks", "n_oracle_calls", "get_state"}
    assert declared(protocol) - own <= set(dir(kind))
