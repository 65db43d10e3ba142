"""Fits and predictions with less memory than they need, and their outcomes.

    python tests/fuzz/little_memory.py                      every case at .9, .7 and .5
    python tests/fuzz/little_memory.py --levels 20 bcfw     cases by parts of their names

A call without a limit tells what it returns, and by how much the address space of its
process grows meanwhile. The same call then gets a share of that. It has to return the
same, bit for bit, or to raise MemoryError; and the call after it, without a limit, to
return the same as ever. Each call has a process of its own, forked from one that holds
the data. For Linux with glibc.
"""

import argparse
import ctypes
import faulthandler
import os
import pickle
import re
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
# for later by Python or by malloc. Small products of OpenBLAS for AVX-512 end the process
# where they find no room; those for Haswell need none.
ENVIRONMENT = {
    "PYTHONMALLOC": "malloc",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": f"{2 * HOLE}",
    "MALLOC_TOP_PAD_": "0",
    "MALLOC_TRIM_THRESHOLD_": f"{2 * HOLE}",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
}
# NumPy 2.4 ends the process where it finds no room for the buffers of a ufunc, which it
# asks for without the GIL. The smallest ones leave little chance for that.
BUFFER_SIZE = 16
# What Python 3.11 says where it finds no room for the frame of a call, and NumPy for a
# buffer.
NO_ROOM = "without exception set|<(function|ufunc) .* without setting an exception"
# A call hangs that takes this many times the processor time it took without a limit.
PATIENCE = 20


def address_space(name):
    """A size of this process in bytes, by its name in /proc."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(name))
    return int(line.split()[1]) << 10


def fill_holes():
    """Allocate what earlier work has freed, so that each new array needs new memory."""
    libc = ctypes.CDLL(None)
    for function in (libc.malloc, libc.sbrk):
        function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
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
            name: part
            for name, part in vars(value).items()
            if name.endswith("_") and name != "structure_"
        }
    if sparse.issparse(value):
        value = value.tocsr()
        value = [value.data, value.indices, value.indptr]
    if isinstance(value, dict):
        for name in sorted(value.keys() - {"seconds"}, key=str):
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
    """What `work` returns in a process of its own, or a text that says how that died."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(work(), pipe)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        # Nothing of the parent's runs at the end of this process.
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
    seconds = int(10 + PATIENCE * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    limit = address_space("VmSize") + growth
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    result = error = None
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        result = call()
    except Exception as raised:
        error = raised
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    if error is None:
        outcome = RIGHT if digest(result) == expected else "wrong"
    elif isinstance(error, MemoryError) or re.search(NO_ROOM, str(error)):
        outcome = REFUSED
    else:
        outcome = "".join(traceback.format_exception(error))
    # Whatever was left half done is used again.
    return outcome if digest(call()) == expected else f"{outcome}, and wrong afterwards"


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
    calls = [case.fit, *([case.predict] if case.predict is not None else [])]
    for call in calls:
        call()
    fill_holes()
    return [(call.__name__, *outcomes(call, levels)) for call in calls]


def report(names, levels):
    """Print the outcomes of cases; returns how many were wrong."""
    total = Counter()
    print(f"{'case':40} {'MB':>6}  {'right':>5} {'refused':>7} {'wrong':>5}")
    for name in CASES:
        if names and not any(part in name for part in names):
            continue
        for what, growth, found in in_a_fork(partial(outcomes_of, name, levels)):
            others = [outcome for outcome in found if outcome not in (RIGHT, REFUSED)]
            counts = Counter(found)
            counts["wrong"] = len(others)
            print(
                f"{f'{name}, {what}':40} {growth / 1e6:6.1f}  {counts[RIGHT]:5} "
                f"{counts[REFUSED]:7} {counts['wrong']:5}"
            )
            for level, outcome in zip(levels, found, strict=True):
                if outcome in others:
                    print(f"  at {level:.2f}: {outcome}")
            sys.stdout.flush()
            total.update(counts)
    n_calls = sum(total[kind] for kind in (RIGHT, REFUSED, "wrong"))
    print(
        f"{n_calls} calls: {total[RIGHT]} right, {total[REFUSED]} refused, "
        f"{total['wrong']} wrong"
    )
    return total["wrong"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of the names of cases")
    parser.add_argument("--levels", type=int, help="this many, evenly spaced")
    options = parser.parse_args()
    if os.environ.keys() & ENVIRONMENT.keys() != ENVIRONMENT.keys():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ENVIRONMENT)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    np.setbufsize(BUFFER_SIZE)
    levels = LEVELS
    if options.levels:
        levels = [(options.levels - j) / options.levels for j in range(options.levels)]
    return report(options.names, levels) > 0


if __name__ == "__main__":
    sys.exit(main())
