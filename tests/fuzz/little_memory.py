"""Fits and predictions with less memory than they need, and their outcomes.

    python tests/fuzz/little_memory.py                      every case at .9, .7 and .5
    python tests/fuzz/little_memory.py --levels 20 bcfw     cases by parts of their names

A call without a limit tells what it returns, and by how much the address space of the
process grows meanwhile. The same call then gets a share of that. It has to return the
same, bit for bit, or to raise MemoryError; and the call after it, without a limit, to
return the same as ever. Each call has a process of its own, forked from one that holds
the data.
"""

import argparse
import ctypes
import faulthandler
import os
import pickle
import resource
import sys
import traceback
import warnings
from collections import Counter
from functools import partial
from hashlib import sha256

import numpy as np
from cases_of_memory import CASES
from scipy import sparse
from sklearn.base import BaseEstimator

LEVELS = (0.9, 0.7, 0.5)
RIGHT, REFUSED = "right", "MemoryError"
# Larger pieces of memory go back to the system when they are freed.
HOLE = 1 << 15
# One thread, since the stacks of threads are memory as well, and no memory that is kept
# for later by Python or by malloc.
ENVIRONMENT = {
    "PYTHONMALLOC": "malloc", "MALLOC_MMAP_THRESHOLD_": f"{2 * HOLE}",
    "MALLOC_TRIM_THRESHOLD_": f"{2 * HOLE}", "MALLOC_TOP_PAD_": "0",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
}  # fmt: skip
# Seconds of processor time after which a call hangs: those that it took, times this.
PATIENCE = 20


def address_space(name):
    """A size of this process in bytes, by its name in /proc."""
    with open("/proc/self/status") as status:
        found = next(line for line in status if line.startswith(name))
    return int(found.split()[1]) << 10


def fill_holes():
    """Allocate what earlier work has freed, so that each new array needs new memory."""
    libc = ctypes.CDLL(None)
    for name in ("malloc", "sbrk"):
        getattr(libc, name).restype = ctypes.c_void_p
        getattr(libc, name).argtypes = [ctypes.c_size_t]
    size = HOLE
    while size > 16:
        end = libc.sbrk(0)
        libc.malloc(size)
        if libc.sbrk(0) > end:
            size //= 2


def digest(value):
    """A text that differs for results that differ in a bit."""
    found = sha256()
    for part in parts_of(value):
        found.update(part)
    return found.hexdigest()


def parts_of(value):
    if isinstance(value, BaseEstimator):
        value = {
            name: part for name, part in vars(value).items()
            if name.endswith("_") and name != "structure_"
        }  # fmt: skip
    if sparse.issparse(value):
        value = value.tocsr()
        value = [value.data, value.indices, value.indptr]
    if isinstance(value, dict):
        for name in sorted(value, key=str):
            if name != "seconds":
                yield str(name).encode()
                yield from parts_of(value[name])
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, (list, tuple, np.ndarray)):
        yield str(len(value)).encode()
        for part in value:
            yield from parts_of(part)
    elif hasattr(value, "__dict__"):
        yield from parts_of(vars(value))
    else:
        yield repr(value).encode()


def in_a_fork(work):
    """What `work` returns in a process of its own, or how that died."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Nothing of the parent's may run on its way out.
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(work(), pipe)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return pickle.loads(answer) if status == 0 else f"died: {status}"


def unlimited(call):
    """(digest of the result, growth of the address space, seconds of the processor)."""
    before, seconds = address_space("VmSize"), os.times().user
    result = call()
    growth = address_space("VmPeak") - before
    return digest(result), growth, os.times().user - seconds


def limited(call, growth, expected, seconds):
    """The outcome of a call whose process may grow by this many bytes."""
    # A hang is ended by a signal.
    seconds = int(10 + PATIENCE * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    limit = address_space("VmSize") + growth
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    text = None
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        result = call()
    except MemoryError:
        outcome = REFUSED
    except Exception as error:
        outcome = type(error).__name__
        text = error
    else:
        outcome = None
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    if outcome is None:
        outcome = RIGHT if digest(result) == expected else "wrong"
    elif text is not None:
        outcome = "".join(traceback.format_exception(text))
    # Whatever was left half done is used again.
    if digest(call()) != expected:
        outcome += ", and wrong afterwards"
    return outcome


def outcomes(call, levels):
    """The growth of a call, and its outcome at each level."""
    expected, growth, seconds = in_a_fork(partial(unlimited, call))
    return growth, [
        in_a_fork(partial(limited, call, int(level * growth), expected, seconds))
        for level in levels
    ]


def outcomes_of(name, levels):
    """(what is called, growth, outcomes) of each call of a case."""
    case = CASES[name]()
    # What is imported late is there from now on, and there is a model for predictions.
    case.fit()
    case.predict()
    fill_holes()
    return [
        (call.__name__, *outcomes(call, levels)) for call in (case.fit, case.predict)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of the names of cases")
    parser.add_argument("--levels", type=int, help="this many, evenly spaced")
    options = parser.parse_args()
    levels = LEVELS
    if options.levels:
        levels = [(options.levels - j) / options.levels for j in range(options.levels)]
    faulthandler.enable()
    warnings.simplefilter("ignore")
    if os.environ.get("PYTHONMALLOC") != "malloc":
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ENVIRONMENT)
    wrong, total = 0, Counter()
    print(f"{'case':44} {'MB':>7}  {'right':>5} {'refused':>7} {'wrong':>5}")
    for name in CASES:
        if options.names and not any(part in name for part in options.names):
            continue
        for what, growth, found in in_a_fork(partial(outcomes_of, name, levels)):
            counts = Counter(found)
            others = len(found) - counts[RIGHT] - counts[REFUSED]
            print(
                f"{name + ', ' + what:44} {growth / 1e6:7.1f}  {counts[RIGHT]:5} "
                f"{counts[REFUSED]:7} {others:5}", flush=True,
            )  # fmt: skip
            for level, outcome in zip(levels, found, strict=True):
                if outcome not in (RIGHT, REFUSED):
                    print(f"  at {level:.2f}: {outcome}", flush=True)
            total += counts
            wrong += others
    print(f"{total.total()} calls: {total[RIGHT]} right, {total[REFUSED]} refused, "
          f"{wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
