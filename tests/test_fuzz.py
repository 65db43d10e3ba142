"""A sample of what `make fuzz` calls: random calls end in a result or a clear error."""

import pytest
from _seeds import new_seed
from outcomes import outcome

pytestmark = pytest.mark.thread_unsafe(reason="figures and warnings are of the process")

SAMPLES = {"display": 8, "convert": 4}


@pytest.mark.parametrize("kind", SAMPLES)
def test_random_calls_have_a_clear_outcome(kind):
    if kind == "convert":
        pytest.importorskip("skl2onnx")
    for number in range(SAMPLES[kind]):
        name, wrong = outcome(new_seed(1), number, [kind])
        assert wrong is None, f"{name}, call {number} of seed {new_seed(1)}:\n{wrong}"
