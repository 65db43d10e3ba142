"""Settings that hold for the whole suite."""

import gc
import os
from functools import partialmethod
from importlib.util import find_spec

import _seeds
import matplotlib
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from joblib._parallel_backends import LokyBackend

# Threads of kernels that wait for one another sleep, as other tests need the processor.
# OpenMP reads this when the first of them is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Processes of joblib end after 300 idle seconds, about as long as the suite takes. A call
# that came just then was waited for without an end.
LokyBackend.configure = partialmethod(LokyBackend.configure, idle_worker_timeout=3600)

# No window opens, and figures look the same on every machine.
matplotlib.use("Agg")

# A slow example, or slow generation on a busy machine, is not a failure.
no_clock = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# Running again finds a failure again.
settings.register_profile("repeatable", derandomize=True, max_examples=50, **no_clock)
# Other examples in every run, for a nightly job; --hypothesis-profile=random selects it.
settings.register_profile("random", print_blob=True, max_examples=300, **no_clock)
settings.load_profile("repeatable")


# Fixtures that change state shared by all threads; `make parallel` runs their tests in
# one.
OF_THE_PROCESS = {"routing", "no_figure_is_left_open", "small_parts"}
# Doctests that need an optional package, by the beginnings of their names.
OPTIONAL = {
    "deployment.rst": "onnxruntime",
    "sklearn_structsvm.callbacks.": "sklearn.callback",
    "sklearn_structsvm.onnx.": "skl2onnx",
    "sklearn_structsvm.structures.polytope.": "highspy",
}


def pytest_addoption(parser):
    words = "of a test with more cases than this, only so many, evenly chosen"
    parser.addoption("--cases", type=int, metavar="N", help=words)


def pytest_collection_modifyitems(config, items):
    if config.getoption("cases"):
        leave_some_cases(config, items)
    for item in items:
        if shared := OF_THE_PROCESS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.thread_unsafe(reason=f"of {shared}"))
    for start, package in OPTIONAL.items():
        if find_spec(package) is None:
            for item in items:
                if item.name.startswith(start):
                    item.add_marker(pytest.mark.skip(reason=f"needs {package}"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What collection makes stays, and nobody looks for garbage in it."""
    gc.disable()
    found = yield
    # With its first example Hypothesis makes a generator, and asks who refers to it.
    given(strategies.none())(lambda nothing: None)()
    gc.freeze()
    gc.enable()
    return found


def leave_some_cases(config, items):
    by_test = {}
    for item in items:
        by_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = set()
    for cases in by_test.values():
        n = min(config.getoption("cases"), len(cases))
        kept.update(cases[at] for at in np.linspace(0, len(cases) - 1, n).astype(int))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


if find_spec("highspy") is None:

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call():
        try:
            return (yield)
        except ImportError as error:
            if "HiGHS" in str(error):
                pytest.skip("needs highspy")
            raise


@pytest.fixture(scope="session", autouse=True)
def global_random_seed(request):
    """What `new_rng` and `new_seed` draw from, for all tests, as in scikit-learn's."""
    seed = getattr(request, "param", _seeds.SEEDS[0])
    _seeds.use(seed)
    return seed


@pytest.fixture(autouse=True)
def unseeded_draws(global_random_seed):
    """What draws without a seed draws the same in each run, whatever ran before."""
    _seeds.seed_unseeded()


@pytest.fixture
def small_parts(monkeypatch):
    """Threads share the passes of small problems, too."""
    name = "sklearn_structsvm.solvers.blocks.parallel.LEAST_OPERATIONS"
    monkeypatch.setattr(name, 1)


def pytest_generate_tests(metafunc):
    if len(_seeds.SEEDS) > 1:
        metafunc.parametrize(
            "global_random_seed", _seeds.SEEDS, indirect=True, scope="session"
        )


def pytest_report_header():
    return _seeds.told()


def pytest_terminal_summary(terminalreporter, exitstatus):
    terminalreporter.write_line(_seeds.told())
    if exitstatus and "GITHUB_ACTIONS" in os.environ:
        # On the run's page, because a seed of the day would be gone tomorrow.
        terminalreporter.write_line(f"::error title=Tests failed::{_seeds.told()}")
