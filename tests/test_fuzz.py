"""A sample of what `make fuzz` calls: random calls end in a result or a clear error."""

import pytest
from _seeds import new_seed
from outcomes import outcome
from parts import SHARES

pytestmark = pytest.mark.thread_unsafe(reason="figures and warnings are of the process")

SAMPLES = {"structure": 15, "measure": 15, "display": 8, "words": 12, "convert": 4}


def test_every_kind_of_call_is_a_method_of_the_fuzzer():
    assert {*SAMPLES, "file", "fit", "state", "other"} == {*SHARES}


@pytest.mark.parametrize("kind", SAMPLES)
def test_random_calls_have_a_clear_outcome(kind):
    for number in range(SAMPLES[kind]):
        name, wrong = outcome(new_seed(1), number, [kind])
        assert wrong is None, f"{name}, call {number} of seed {new_seed(1)}:\n{wrong}"


@pytest.mark.parametrize("number", range(20))
def test_a_damaged_model_predicts_or_is_refused(number):
    name, wrong = outcome(new_seed(2), number, ["file"])
    assert wrong is None, f"{name}, call {number} of seed {new_seed(2)}:\n{wrong}"
