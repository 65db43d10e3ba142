"""The seed that random data are drawn from, and that all of them are."""

import re
from pathlib import Path

import _seeds
import pytest

TESTS = Path(__file__).parent
# The fuzzer's calls have seeds of their own.
FILES = [path for path in TESTS.rglob("*.py") if "fuzz" not in path.parts]


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("7", [7]), ("0-2", [0, 1, 2]), ("5-5", [5]), ("all", list(range(100)))],
)
def test_a_number_a_range_and_all_are_the_seeds_they_say(text, seeds):
    assert _seeds.seeds_of(text) == seeds


def test_any_and_today_are_one_seed():
    assert _seeds.seeds_of("any") != _seeds.seeds_of("any")
    (today,) = _seeds.seeds_of("today")
    assert 20_000_000 < today < 100_000_000


def test_a_run_begins_by_naming_the_seed(request, global_random_seed):
    config = request.config
    lines = config.hook.pytest_report_header(config=config, start_path=TESTS)
    (line,) = [line for line in lines if _seeds.VARIABLE in str(line)]
    named = re.search(r"=(\d+)(?:-(\d+))?$", line)
    assert int(named[1]) <= global_random_seed <= int(named[2] or named[1])


@pytest.mark.parametrize("text", ["", "x", "3-1", "-1", "1.5", "1-"])
def test_what_is_no_seed_is_refused(text):
    with pytest.raises(ValueError, match=f"{_seeds.VARIABLE} is {text!r}, and not"):
        _seeds.seeds_of(text)


@pytest.mark.thread_unsafe(reason="the seed is that of all tests")
def test_another_seed_draws_other_numbers_and_the_same_one_the_same(global_random_seed):
    def draw():
        return new_rng(3).random(), new_seed(3), remembered(3)

    new_rng, new_seed = _seeds.new_rng, _seeds.new_seed
    remembered = _seeds.cache_by_seed(lambda k: new_rng(k).random())
    first = draw()
    try:
        _seeds.use(global_random_seed + 1)
        other = draw()
    finally:
        _seeds.use(global_random_seed)
    assert not set(first) & set(other)
    assert draw() == first
    assert new_rng(4).random() != first[0]


def test_all_random_data_of_the_tests_follow_the_seed():
    own = re.compile(r"default_rng\(|np\.random\.(?!RandomState|Generator|PCG64)\w+\(")
    found = [
        f"{path.relative_to(TESTS)}: {line.strip()}"
        for path in FILES
        if path not in (TESTS / "_seeds.py", Path(__file__))
        for line in path.read_text(encoding="utf-8").splitlines()
        if own.search(line)
    ]
    assert not found, "draw with new_rng of tests/_seeds.py instead"


def test_generators_of_data_follow_the_seed():
    """Where a test says which random_state, that of `make_…` is of the seed too."""
    call = re.compile(r"\bmake_\w+\([^()]*random_state=\d", re.DOTALL)
    found = [
        f"{path.relative_to(TESTS)}: {match[0]}"
        for path in FILES
        for match in call.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found, "write random_state=new_seed(…), of tests/_seeds.py"
