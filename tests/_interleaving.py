"""What another thread might do at each line of a call, without a thread or a clock."""

import sys
from pathlib import Path

import sklearn_structsvm

PACKAGE = str(Path(sklearn_structsvm.__file__).parent)
# Where fitted attributes are read and set.
AROUND_FITS = tuple(
    str(Path(PACKAGE, name))
    for name in (
        "estimators",
        "export",
        "plotting",
        "preprocessing",
        "confusion/scoring.py",
        "_utils/sequence_scores.py",
        "_utils/snapshots.py",
    )
)


def at_each(event, call, act, within=AROUND_FITS):
    """call(), where act(n) runs at the n-th event within these files until it is true.

    An event is a "line" that is about to run for the first time, or the "call" of a
    function for the first time. Those that `act` causes do not count.
    """
    seen = set()
    # Under a coverage tool there is another one.
    before = sys.gettrace()

    def trace(frame, kind, arg):
        if kind == "call" and not frame.f_code.co_filename.startswith(within):
            return None
        place = frame.f_code, frame.f_lineno
        if kind == event and place not in seen:
            seen.add(place)
            if act(len(seen)):
                sys.settrace(before)
        return trace

    sys.settrace(trace)
    try:
        return call()
    finally:
        sys.settrace(before)


def at(number, event, call, act):
    """call(), where act() runs at the event with this number. The rest is not traced."""
    return at_each(event, call, lambda n: n == number and (act(), True))


def count(event, call, within=AROUND_FITS):
    """The number of events of a call."""
    seen = []
    at_each(event, call, seen.append, within)
    return len(seen)
