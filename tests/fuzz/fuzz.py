"""Call the public interface at random, and count unclear outcomes.

    python tests/fuzz/fuzz.py --calls 10000 --seed 0     a table of what was found
    python tests/fuzz/fuzz.py --only 1234 --seed 0       that call again, here
    python tests/fuzz/fuzz.py --kinds display words      calls of these kinds only
    python tests/fuzz/fuzz.py --kinds problem --calls 8000    certificates that are true
    python tests/fuzz/fuzz.py --kinds use --calls 5000        uses that agree with another
    python tests/fuzz/fuzz.py --kinds decision --calls 3000   optima of mixtures and rules

With another checkout in PYTHONPATH they are of its package. Optima of problems are more
exact if Clarabel is installed.

A call is known by its number and the seed. Calls are made in processes of their own: one
that dies was killed by a crash, or by the limit on processor time, and the next one goes
on from there.
"""

import argparse
import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from tempfile import TemporaryFile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from outcomes import outcome
from parts import SHARES

# Seconds of processor time per call. No call is meant to take long.
LIMIT = 30
# Seconds without a sign of life. A call that waits forever takes no processor time.
SILENCE = 900


def work(seed, first, stop, kinds):
    """Make calls, with one line about each. Their output is discarded."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    faulthandler.enable()
    for number in range(first, stop):
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        print(json.dumps([number, *outcome(seed, number, kinds)]), file=out)


def fuzz(seed, n_calls, first=0, kinds=None):
    """Yield (number, name, None or the problem) of each call."""
    stop = first + n_calls
    while first < stop:
        command = [sys.executable, __file__, "--seed", seed, "--work", first, stop]
        command += ["--kinds", *(kinds or SHARES)]
        command = [str(part) for part in command]
        with (
            TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
        ):
            for line in _lively(process):
                number, name, wrong = json.loads(line)
                yield number, name, wrong
                first = number + 1
            if process.wait() == 0 and first == stop:
                return
            errors.seek(0)
            yield first, *_death(process.returncode, errors.read())
            first += 1


def _lively(process):
    """The lines of a process, which is killed if none comes for too long."""
    while True:
        timer = threading.Timer(SILENCE, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if not line:
            return
        yield line


def _death(code, errors):
    """The name and description of a call that ended its process."""
    name = "died"
    why = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    if why == "SIGPROF":
        why = f"time-out: more than {LIMIT} s of processor time"
    # The list of all compiled modules is not informative.
    errors = errors.split("\nExtension modules:")[0]
    return name, f"{errors[-4000:]}\n{why}"


def table(found):
    """The number of failed calls by name, and the failures."""
    calls, wrong = Counter(), Counter()
    for _, name, what in found:
        name = name.split("(")[0]
        calls[name] += 1
        wrong[name] += what is not None
    lines = [f"{'call':50} {'calls':>7} {'wrong':>7}"]
    lines += [f"{name:50} {calls[name]:7} {wrong[name]:7}" for name in sorted(calls)]
    lines += [f"{'all':50} {calls.total():7} {wrong.total():7}"]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="where to go on from")
    parser.add_argument("--only", type=int, help="one call, in this process")
    parser.add_argument("--kinds", nargs="+", choices=SHARES, help="kinds of calls")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.seed, *options.work, options.kinds)
    if options.only is not None:
        return print(*outcome(options.seed, options.only, options.kinds), sep="\n")
    found = []
    asked = options.seed, options.calls, options.first, options.kinds
    for number, name, wrong in fuzz(*asked):
        found.append((number, name, wrong))
        if wrong is not None:
            head = f"==== call {number} of seed {options.seed}: {name}"
            print(f"{head}\n{wrong}", flush=True)
    print(table(found))
    return any(wrong for _, _, wrong in found)


if __name__ == "__main__":
    sys.exit(main())
