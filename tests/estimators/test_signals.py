"""Long loops of kernels look at signals, so that Ctrl-C is answered soon."""

import signal

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.blocks._sgd import SubgradientSteps
from sklearn_structsvm.structures import (
    GraphStructure,
    PairwiseMultilabelStructure,
    grid_edges,
)

pytestmark = [
    pytest.mark.skipif(
        not hasattr(signal, "setitimer"), reason="Windows has no timers of processor time"
    ),
    pytest.mark.thread_unsafe(reason="signals are handled in the main thread"),
]

# Enough rows for several looks, with enough labels for some milliseconds in between.
N_ROWS, N_LABELS = 40_000, {"enumerate": 12, "roof": 20}


def count_looks(call):
    """How many signals are handled while a call runs.

    One is sent every few milliseconds of the processor's time. A call that does not look
    leaves those that come to its end, where they are one; it may have begun with another.
    """
    handled = []
    before = signal.signal(signal.SIGVTALRM, lambda *_: handled.append(1))
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.002, 0.002)
    try:
        call()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return len(handled)


def task_of(inference):
    rng, k, n = new_rng(0), N_LABELS[inference], N_ROWS
    X, Y = rng.normal(size=(n, 2)), (rng.random((n, k)) < 0.5).astype(int)
    structure = PairwiseMultilabelStructure(inference=inference).fit(X, Y)
    return structure, X, Y, rng.normal(size=structure.n_weights_)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("inference", N_LABELS)
def test_predictions_look_at_signals(inference, n_threads):
    structure, X, _, w = task_of(inference)
    assert count_looks(lambda: structure.decode_batch(X, w, n_threads)) > 3


@pytest.mark.parametrize("inference", ["messages", "expansion"])
def test_large_graphs_look_at_signals_one_by_one(inference):
    rng = new_rng(2)
    x, labels = rng.normal(size=(225, 2)), rng.integers(4, size=225)
    x = x, grid_edges((15, 15))
    structure = GraphStructure(transition="directed", inference=inference)
    structure.fit(*structure.check_data([x], [labels]))
    w = rng.normal(size=structure.n_weights_)

    def looks(n):
        oracle = structure.make_oracle(*structure.check_data([x] * n, [labels] * n))
        return count_looks(lambda: oracle.decode(w, 1.0))

    # Fewer than there are in a chunk. Some weights are so easy that 250 are decoded in
    # 15 ms, between three or four signals.
    assert looks(250) > 3 or looks(1000) > 3


def run_by_gap(oracle, p):
    solver = BlockFrankWolfe(oracle, p, 0.1)
    solver.check_gaps()
    solver.run_by_gap(new_rng(1).random(len(p)))


LOOPS = {
    "decode": lambda oracle, p, w: oracle.decode(w, 1.0),
    "ask": lambda oracle, p, w: EmpiricalRisk(oracle, p).ask(w),
    "subgradients": lambda oracle, p, w: SubgradientSteps(oracle, p, 0.1).run(
        np.arange(len(p))
    ),
    "steps": lambda oracle, p, w: BlockFrankWolfe(oracle, p, 0.1).run(np.arange(len(p))),
    "steps by gap": lambda oracle, p, w: run_by_gap(oracle, p),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_training_looks_at_signals(loop):
    structure, X, Y, w = task_of("enumerate")
    oracle, p = structure.make_oracle(X, Y), np.full(len(X), 1.0 / len(X))
    assert count_looks(lambda: loop(oracle, p, w)) > 3
