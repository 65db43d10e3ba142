"""CPU seconds to a duality gap, beside hand-written prototypes of the same methods.

The prototypes are C++ programs for one shape of problem each, with sizes, label costs and
vector instructions fixed when they are compiled. They make accelerated block steps over
cached labelings (BCFW on OCR) and over marginals (CRFs), and show how fast these can be.
The library and a prototype take turns, and the last column is the quotient of their
medians. The library's seconds are of a whole `fit`, with all checks of the data.
All run in one thread. PROTOTYPES names the folder that has ``accelerated.cpp``,
``core.h`` and ``crf/sdca.cpp``; without it, only the library runs.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

from _common import (
    ChainStructure,
    compile_cpp,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    print_table,
)
from _tagging import load_ewt
from scipy import sparse

from sklearn_structsvm import BCFWClassifier, CRFClassifier

FLAGS = "-O3 -march=native -ffast-math -w".split()
CRF_FLAGS = [*FLAGS, "-mprefer-vector-width=512", "-DR=double"]
# Subset of OCR, λ (None: 1/n), gap.
MARGINS = [("small", None, 1e-3), ("small", 0.01, 1e-3), ("large", 1e-3, 1e-2)]
CRFS = ["ocr-small", "ocr-large", "ewt"]
RELATIVE = 1e-3


def write_raw(path, X, y):
    """OCR as the prototype of BCFW reads it."""
    lengths = np.array([len(x) for x in X], dtype=np.int32)
    _, labels = np.unique(np.concatenate(y), return_inverse=True)
    with path.open("wb") as file:
        file.write(np.int32(len(X)).tobytes() + lengths.tobytes())
        file.write(np.concatenate(X).astype(np.float64).tobytes())
        file.write(labels.astype(np.int32).tobytes())


def write_rows(path, X, y, classes):
    """Sequences of binary rows as the prototype of CRFs reads them."""
    rows = sparse.vstack([sparse.csr_array(x) for x in X]).tocsr()
    rows.sort_indices()
    lengths = [x.shape[0] for x in X]
    sizes = [len(X), len(classes), rows.shape[1], rows.shape[0], rows.nnz]
    labels = np.searchsorted(classes, np.concatenate(y))
    with path.open("wb") as file:
        for numbers in (sizes, lengths, rows.indptr, rows.indices, labels):
            file.write(np.asarray(numbers).astype(np.int32).tobytes())


def with_biases(X):
    """Rows with columns for the bias, the first and the last position."""
    result = []
    for x in X:
        biases = np.zeros((len(x), 3))
        biases[:, 0] = biases[0, 1] = biases[-1, 2] = 1.0
        result.append(np.hstack([x, biases]))
    return result


def output(command):
    return subprocess.check_output([*map(str, command)], text=True)


class Prototypes:
    """The programs, compiled in a folder of their own; none if there is no source."""

    def __init__(self, source, folder):
        self.source, self.folder = source and Path(source), Path(folder)

    def compiled(self, name, flags):
        program = self.folder / f"program-{len(os.listdir(self.folder))}"
        compile_cpp(self.source / name, program, flags)
        return program

    def margin_runner(self, X, y, lam, tol):
        """A function that runs the prototype of BCFW: its seconds and passes."""
        if self.source is None:
            return lambda seed: (np.nan, np.nan)
        program = self.compiled("accelerated.cpp", FLAGS)
        data = self.folder / "words.raw"
        write_raw(data, X, y)
        # Two cached passes between full ones, 50 steps of a visit to 0.3 of its gap, 20
        # passes until an idle labeling goes, 9 s at most, λ' = 10 λ, 3 passes an outer
        # step. The passes that it prints include its checks of the gap.
        settings = f"{lam} {tol} 2 50 0.3 20 9 {10 * lam} 3 -1 0"

        def run(seed):
            words = output([program, data, *settings.split(), seed])
            found = re.search(r"cpu ([\d.]+).* full ([\d.]+)", words)
            return float(found[1]), float(found[2])

        return run

    def crf_runner(self, X, y, c2, is_ocr):
        """The same for the prototype of CRFs."""
        if self.source is None:
            return lambda seed: (np.nan, np.nan)
        classes = np.unique(np.concatenate(y))
        lanes = -(-len(classes) // 8) * 8
        flags = [*CRF_FLAGS, f"-DKP={lanes}", "-lmvec", "-lm"]
        program = self.compiled("crf/sdca.cpp", flags)
        rows = with_biases(X) if is_ocr else X
        for part, some in (("train", len(X)), ("test", 1)):
            write_rows(self.folder / f"rows.{part}", rows[:some], y[:some], classes)
        # λ' = 5 λ, 2 passes an outer step, log-odds of 10 for the truth at the start.
        settings = f"{c2} {RELATIVE} 5 2 10 600".split()

        def run(seed):
            words = output([program, self.folder / "rows", *settings])
            found = re.findall(r"1e-03: ([\d.]+)s (\d+)p", words)
            return float(found[-1][0]), int(found[-1][1])

        return run


def timed(model, X, y):
    start = process_time()
    fit_quietly(model, X, y)
    return process_time() - start, model.n_iter_


def compare(name, setting, model, X, y, prototype, repeats):
    """Row of the table: medians of runs in turns, each with its own seed."""
    ours, theirs = [], []
    for seed in range(repeats):
        ours.append(timed(model.set_params(random_state=seed), X, y))
        theirs.append(prototype(seed))
    (s, passes), (peer_s, peer_passes) = np.median(ours, 0), np.median(theirs, 0)
    return [name, setting, s, passes, peer_s, peer_passes, s / peer_s]


def margin_rows(args, prototypes):
    for subset, lam, tol in MARGINS:
        X, y = load_ocr(subset, args.data)
        setting = f"λ = {'1/n' if lam is None else f'{lam:g}'}, gap {tol:g}"
        lam = 1.0 / len(X) if lam is None else lam
        model = BCFWClassifier(ChainStructure(), C=1.0 / (lam * len(X)), tol=tol)
        run = prototypes.margin_runner(X, y, lam, tol)
        yield compare(f"BCFW, OCR-{subset}", setting, model, X, y, run, args.repeats)


def crf_rows(args, prototypes):
    for name in args.crfs:
        is_ocr = name.startswith("ocr-")
        structure = ChainStructure()
        if is_ocr:
            X, y = load_ocr(name.removeprefix("ocr-"), args.data)
        else:
            data = load_ewt(args.data)
            if data is None:
                continue
            X, y = data[:2]
            # Its attributes have the biases.
            structure = ChainStructure(bias=False, first_bias=False, last_bias=False)
        model = CRFClassifier(structure, C=0.5 / args.c2, random_state=0)
        # The objective that the gap is to be relative to, not timed.
        objective = fit_quietly(model.set_params(tol=0.02), X, y).objective_
        model.set_params(tol=RELATIVE * objective)
        run = prototypes.crf_runner(X, y, args.c2, is_ocr)
        setting = f"c2 = {args.c2:g}, relative {RELATIVE:g}"
        yield compare(f"CRF, {name}", setting, model, X, y, run, args.repeats)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each")
    parser.add_argument("--c2", type=float, default=1.0, help="strength for the CRFs")
    parser.add_argument("--crfs", nargs="*", choices=CRFS, default=CRFS)
    parser.add_argument("--no-bcfw", action="store_true", help="only CRFs")
    args = parser.parse_args()
    source = os.environ.get("PROTOTYPES")
    if source is None:
        print("PROTOTYPES names no folder: only the library runs.", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        prototypes = Prototypes(source, folder)
        rows = [] if args.no_bcfw else list(margin_rows(args, prototypes))
        rows += crf_rows(args, prototypes)
    header = ["", "", "library s", "passes", "prototype s", "passes", "times its time"]
    print_table(header, rows)


if __name__ == "__main__":
    main()
