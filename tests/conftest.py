"""Settings that hold for the whole suite."""

import _seeds
import matplotlib
import pytest
from hypothesis import settings

# No window is opened, and a figure looks the same on every machine.
matplotlib.use("Agg")

# A failure is found again by running again; how long an example takes is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
# Other examples in every run, for a nightly job; --hypothesis-profile=random chooses it.
settings.register_profile("random", deadline=None, print_blob=True, max_examples=300)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def global_random_seed(request):
    """What `new_rng` and `new_seed` draw from, for all tests, as in scikit-learn's."""
    seed = getattr(request, "param", _seeds.SEEDS[0])
    _seeds.use(seed)
    return seed


def pytest_generate_tests(metafunc):
    if len(_seeds.SEEDS) > 1:
        metafunc.parametrize(
            "global_random_seed", _seeds.SEEDS, indirect=True, scope="session"
        )


def pytest_terminal_summary(terminalreporter):
    first, last = _seeds.SEEDS[0], _seeds.SEEDS[-1]
    seeds = f"{first}" if first == last else f"{first}-{last}"
    terminalreporter.write_line(f"The data were those of {_seeds.VARIABLE}={seeds}")
