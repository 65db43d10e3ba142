"""Whether the outcome of a random call is clear."""

import linecache
import traceback
import warnings
from pathlib import Path

from _untouched import Changed
from calls import CLEAR, Broken
from parts import SHARES, PartCall

import sklearn_structsvm

# Kinds of calls with sensible arguments, whose checks must not fail themselves.
CHECKED = ("decision", "problem", "use")
BUFFERS = (
    "Buffer dtype mismatch", "Buffer has wrong", "buffer source array", "ndarray is",
)  # fmt: skip

# Their functions in Python raise errors of their own, as those in C do without a line.
THEIRS = ("numpy", "scipy")


def outcome(seed, number, kinds=None):
    """(name, None or the problem) of one call. For an exception it is the traceback."""
    call = PartCall(seed, number)
    shares = {kind: SHARES[kind] for kind in kinds or SHARES}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call.run(shares)
    except Exception as error:
        is_wrong = is_raw(error) or (call.kind in CHECKED and is_of_a_check(error))
        if isinstance(error, Broken | Changed) or is_wrong:
            return call.name, "".join(traceback.format_exception(error))
    return call.name, None


def is_of_a_check(error):
    """Whether an exception is a mistake in a check, and not a clear refusal."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_here = Path(last.filename).is_relative_to(Path(__file__).parents[1])
    return is_here and not (last.line or "").startswith("raise ")


def is_raw(error):
    """Whether an exception is not a message of this package or of scikit-learn."""
    stack = traceback.extract_tb(error.__traceback__)
    files = [frame.filename.replace("\\", "/") for frame in stack]
    inner = next((f for f in reversed(files) if "sklearn" in f), files[-1])
    # Kernels name their source relative to the folder of the package.
    root = Path(sklearn_structsvm.__file__).parents[1]
    if not any("sklearn_structsvm" in name for name in files):
        return False
    if isinstance(error, MemoryError) and "Unable to allocate" in str(error):
        return False  # 2**40 classes are not for this machine; numpy says how much.
    line = stack[-1].line or linecache.getline(str(root / files[-1]), stack[-1].lineno)
    if "sklearn_structsvm" not in inner:
        return not (isinstance(error, (ValueError, TypeError)) or "raise" in line)
    if not isinstance(error, CLEAR) or str(error).startswith(BUFFERS):
        return True
    if any(f"/{name}/" in files[-1] for name in THEIRS):
        return True
    return not line.strip().startswith("raise")
