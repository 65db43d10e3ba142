"""The random data of the tests, all of which depend on one seed.

SKLEARN_STRUCTSVM_TESTS_GLOBAL_RANDOM_SEED is a number, "a-b" for each of a to b in turn,
"all" for 0-99, "today" for the date, or "any" for one drawn at random.
"""

import os
import re
import secrets
from datetime import UTC, datetime
from functools import cache, wraps

import numpy as np

VARIABLE = "SKLEARN_STRUCTSVM_TESTS_GLOBAL_RANDOM_SEED"
DEFAULT = "42"


def seeds_of(text):
    """The seeds given by a value of the variable."""
    if text == "any":
        return [secrets.randbelow(2**31)]
    if text == "today":
        return [int(datetime.now(UTC).strftime("%Y%m%d"))]
    ends = re.fullmatch(r"(\d+)(?:-(\d+))?", "0-99" if text == "all" else text)
    first, last = map(int, (ends[1], ends[2] or ends[1])) if ends else (1, 0)
    if first > last:
        raise ValueError(
            f'{VARIABLE} is {text!r}, and not a number, a range "a-b", "all", "today" or '
            '"any".'
        )
    return list(range(first, last + 1))


SEEDS = seeds_of(os.environ.get(VARIABLE, DEFAULT))
if len(SEEDS) == 1:
    # Other processes must use the same one.
    os.environ[VARIABLE] = str(SEEDS[0])

_current = SEEDS[0]


def told():
    """The setting that repeats a run on the same data."""
    first, last = SEEDS[0], SEEDS[-1]
    seeds = f"{first}" if first == last else f"{first}-{last}"
    return f"The data are those of {VARIABLE}={seeds}"


def use(seed):
    """Use this seed from now on."""
    global _current
    _current = seed


def new_rng(*offsets: int) -> np.random.Generator:
    """A generator seeded by the global seed and by these numbers, which identify it."""
    return np.random.default_rng([_current, *map(int, offsets)])


def new_seed(*offsets: int) -> int:
    """The same as a number, for a `random_state`."""
    return int(np.random.SeedSequence([_current, *offsets]).generate_state(1)[0])


def seed_unseeded():
    """Seed what draws without a seed, such as a `random_state` of None."""
    np.random.seed(_current)


def cache_by_seed(function):
    """`functools.cache` for a function that draws data."""
    remembered = cache(lambda seed, *args, **options: function(*args, **options))
    return wraps(function)(
        lambda *args, **options: remembered(_current, *args, **options)
    )
