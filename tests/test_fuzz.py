"""A sample of `make fuzz`: calls end in a result or a clear error, and change no data."""

import pytest
from _seeds import new_seed
from outcomes import outcome

pytestmark = [
    pytest.mark.slow,
    pytest.mark.thread_unsafe(reason="figures and warnings are of the process"),
]

SAMPLES = {"fit": 12, "words": 12, "display": 8, "convert": 4}
# Parts of the samples, for tests that run side by side.
PARTS = 6
USES, PROBLEMS, DECISIONS = 300, 80, 30


def check(kind, numbers):
    for number in numbers:
        name, wrong = outcome(new_seed(1), number, [kind])
        assert wrong is None, f"{name}, call {number} of seed {new_seed(1)}:\n{wrong}"


@pytest.mark.parametrize("kind", SAMPLES)
def test_random_calls_have_a_clear_outcome(kind):
    if kind == "convert":
        pytest.importorskip("skl2onnx")
    check(kind, range(SAMPLES[kind]))


@pytest.mark.parametrize("part", range(PARTS))
def test_equal_content_gives_equal_answers_in_random_uses(part):
    check("use", range(part, USES, PARTS))


@pytest.mark.parametrize("part", range(2))
def test_certificates_hold_for_random_problems(part):
    check("problem", range(part, PROBLEMS, 2))


def test_mixtures_and_rules_end_at_the_optimum_of_random_decision_problems():
    check("decision", range(DECISIONS))
