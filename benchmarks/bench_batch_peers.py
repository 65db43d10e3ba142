"""Seconds of one fit to a true relative suboptimality of 1e-3: batch solvers and peers.

All minimize lambda/2 |W|^2 + mean hinge without an intercept, so C = 1 / (lambda n), and
with several classes the hinge of Crammer and Singer, by one thread.

Ours: the seconds of a fit until `history_` has an objective within --rtol of the optimum
    (in it are all its checks of the gap so far), and all that fit does besides. The
    default of SubLBFGSClassifier, which starts in the dual, has a second line: the
    seconds until its gap certifies --rtol. "hybrid" is without that start.
LIBLINEAR, LinearSVC, ReHLine: the training call of the first run whose objective is
    within --rtol of the optimum, tolerances halved from 1 on. LIBLINEAR and ReHLine are
    not charged for bringing the data into their form.
SVM-OCAS and its BMRM: their own time, ended at the target by the option -q. They are
    not charged for certifying it.

Medians of --repeats fits of at most --limit seconds. Ratios divide a peer's seconds by
ours: ours is faster where they exceed 1. A fit over the limit counts as --limit seconds.
The optima are computed first, to a relative gap of 1e-7, and kept in --optima.

LIBLINEAR_PYTHON and REHLINE_PYTHON name interpreters that have liblinear-official and
rehline (default: the one that runs this); svmocas and msvmocas are looked for in the
folder OCAS_BIN, or on PATH. Missing peers are skipped.

With --write the seconds replace those of the same methods in results/batch_peers.json.
``python doc/measured.py`` and the documentation make their tables from that file.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from _batch import (
    add_optimum_options,
    first_seconds,
    fit,
    load_problems,
    optimum,
)
from _common import (
    HERE,
    circumstances,
    make_parser,
    np,
    peer_python,
    print_table,
    run_lines,
    sparse,
)
from sklearn.datasets import dump_svmlight_file

RESULTS = HERE / "results" / "batch_peers.json"
DATA = ["a9a", "reuters_usa", "ocr-2", "letter", "reuters-58", "ocr-26", "satimage"]
OURS = ["SubLBFGS", "SubLBFGS, hybrid", "BMRM, line search", "BMRM", "Pragam", "BCFW"]
OPTIMUM_RTOL = 1e-7
CERTIFIED = "SubLBFGS, certified"
# The method of svmocas that is meant, as its option -m has it.
OCAS = {"SVM-OCAS": 1, "its BMRM": 0}
LINEAR = {
    "LIBLINEAR": ("liblinear", "LIBLINEAR_PYTHON", "liblinear"),
    "LinearSVC": ("linearsvc", None, "sklearn"),
    "ReHLine": ("rehline", "REHLINE_PYTHON", "rehline"),
}

# Of another loss, for bench_claims.
SQUARED = {"LinearSVC, squared hinge": ("linearsvc-squared", None, "sklearn")}


def our_seconds(method, problem, lam, best, args):
    """Seconds until the objective meets the target, and until the gap certifies it."""
    target, gap = best * (1.0 + args.rtol), best * args.rtol
    runs = []
    for _ in range(args.repeats):
        start = perf_counter()
        model = fit(method, problem, lam, tol=gap, max_time=args.limit)
        history = model.history_
        around = perf_counter() - start - history["seconds"][-1]
        arrived = first_seconds(history, "objective", target)
        runs.append([arrived + around, first_seconds(history, "dual_gap", gap) + around])
        if not np.isfinite(arrived):
            break
    return np.median(runs, axis=0)


class LinearPeer:
    """A solver that peers/linear_peer.py runs, by an interpreter that has it."""

    def __init__(self, name):
        self.method, variable, module = (LINEAR | SQUARED)[name]
        self.python = sys.executable
        if variable is not None:
            self.python = peer_python(variable, module)
        self.found = self.python is not None

    def takes(self, problem):
        return self.method != "rehline" or problem.kind == "binary"

    def save(self, problem, folder):
        self.path = Path(folder, "problem.npz")
        X = problem.X
        arrays = {"X": X}
        if sparse.issparse(X):
            arrays = {"indices": X.indices, "indptr": X.indptr, "data": X.data}
            arrays["shape"] = X.shape
        np.savez(self.path, y=problem.y, **arrays)

    def seconds(self, problem, lam, target, args, key="seconds"):
        """Median seconds of fits that met the target; `key="cpu_seconds"`: CPU time."""
        command = [self.python, HERE / "peers" / "linear_peer.py", self.path]
        command += [self.method, lam, target]
        command += ["--limit", int(args.limit), "--repeats", args.repeats]
        fits = [line[key] for line in run_lines(command) if line["arrived"]]
        return float(np.median(fits)) if fits else np.inf


class Ocas:
    """svmocas or msvmocas, by its method."""

    def __init__(self, name):
        self.method = OCAS[name]
        path = os.environ.get("OCAS_BIN")
        self.programs = [shutil.which(p, path=path) for p in ("svmocas", "msvmocas")]
        self.found = all(self.programs)
        if not self.found:
            print(f"[skipped {name}: set OCAS_BIN to the folder of svmocas]\n")

    def takes(self, problem):
        return True

    def save(self, problem, folder):
        self.path = Path(folder, f"problem{self.method}.svmlight")
        self.model = Path(folder, "model")
        # msvmocas counts classes from 1.
        y = problem.y + (problem.kind == "multiclass")
        dump_svmlight_file(problem.X, y, str(self.path), zero_based=False)

    def seconds(self, problem, lam, target, args):
        n = problem.n_samples
        program = self.programs[problem.kind == "multiclass"]
        command = [program, "-m", self.method, "-c", repr(1.0 / (lam * n))]
        # Its objective is ours divided by lambda. What -r asks of the gap it asks of its
        # inner problem too, so no more than is needed.
        command += ["-q", repr(target / lam), "-r", args.rtol, "-t", args.limit]
        runs = []
        for _ in range(args.repeats):
            run = subprocess.run(
                [*map(str, command), self.path, self.model],
                check=True,
                capture_output=True,
                text=True,
            )
            seconds = float(re.findall(r"ocas_time\s*: ([\d.]+)", run.stdout)[0])
            arrived = bool(re.search("condition: (Q_P|1-Q_D/Q_P) <=", run.stdout))
            runs.append(seconds if arrived else np.inf)
            if not arrived:
                break
        return float(np.median(runs))


def measure(problem, lam, peers, args):
    """Seconds by method at one lambda, ours first; inf for what misses the target."""
    best, _ = optimum(problem, lam, args, OPTIMUM_RTOL)
    seconds = {}
    for method in args.methods:
        arrived, certified = our_seconds(method, problem, lam, best, args)
        seconds[method] = arrived
        if method == "SubLBFGS":
            seconds[CERTIFIED] = certified
    for name, peer in peers.items():
        if peer.takes(problem):
            seconds[name] = peer.seconds(problem, lam, best * (1.0 + args.rtol), args)
    return seconds


def ratio(seconds, peer, ours, limit):
    """A peer's seconds divided by ours; NaN if unknown, as when both miss the target."""
    if peer not in seconds:
        return np.nan
    a, b = min(seconds[peer], limit), min(seconds[ours], limit)
    return np.nan if a == b == limit else a / b


def print_ratios(title, rows):
    """Numbers by (problem, lambda), below them the median and the least of each."""
    print(f"{title}\n")
    columns = list(next(iter(rows.values())))
    lines = [[*key, *(row[c] for c in columns)] for key, row in rows.items()]
    for name, summary in (("median", np.nanmedian), ("least", np.nanmin)):
        line = [name, ""]
        for column in columns:
            values = [row[column] for row in rows.values()]
            is_known = not isinstance(values[0], str) and not np.isnan(values).all()
            line.append(float(summary(values)) if is_known else "")
        lines.append(line)
    print_table(["data", "lambda", *columns], lines)


def print_comparison(seconds, peers, limit):
    """All ratios: to SubLBFGS, and of the fastest peer to each of ours."""
    ours = [name for name in next(iter(seconds.values())) if name not in peers]
    for method in [name for name in ("SubLBFGS", CERTIFIED) if name in ours]:
        others = [*peers, *(name for name in ("BMRM",) if name in ours)]
        print_ratios(
            f"Seconds to those of {method}",
            {
                key: {n: ratio(row, n, method, limit) for n in others}
                for key, row in seconds.items()
            },
        )
    rows = {}
    for key, row in seconds.items():
        peer = min((name for name in peers if name in row), key=row.get, default=None)
        if peer is None:
            continue
        best = min(ours, key=row.get)
        rows[key] = {"fastest peer": peer, "fastest here": best}
        rows[key]["the two"] = ratio(row, peer, best, limit)
        rows[key] |= {name: ratio(row, peer, name, limit) for name in ours}
    if rows:
        print_ratios("Seconds of the fastest peer to ours", rows)


def write_results(problems, seconds, known):
    """Put the seconds of a run into the file; other methods keep theirs.

    The seconds of a fit that missed the target are None.
    """
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    methods = list(dict.fromkeys(name for row in seconds.values() for name in row))
    others = [run for run in found.get("runs", []) if set(run["methods"]) - {*methods}]
    for run in others:
        run["methods"] = [name for name in run["methods"] if name not in methods]
    kept = found.get("seconds", {})
    for rows in kept.values():
        for row in rows.values():
            for name in methods:
                row.pop(name, None)
    for (name, lam), row in seconds.items():
        kept.setdefault(name, {}).setdefault(lam, {}).update(
            {m: float(f"{s:.3g}") if np.isfinite(s) else None for m, s in row.items()}
        )
    results = {
        "runs": [known | {"methods": methods}, *others],
        "problems": found.get("problems", {}) | problems,
        "seconds": kept,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def description(problem):
    """What a table says of a problem."""
    return {
        "shape": problem.X.shape,
        "sparse": sparse.issparse(problem.X),
        "classes": len(np.unique(problem.y)),
    }


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--problems", nargs="+", default=DATA)
    parser.add_argument("--lams", type=float, nargs="+", default=[1e-2, 1e-3, 1e-4, 1e-5])
    parser.add_argument("--methods", nargs="+", default=OURS)
    parser.add_argument(
        "--peers", nargs="*", default=[*LINEAR, *OCAS], choices=[*LINEAR, *OCAS]
    )
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--limit", type=float, default=25.0, help="seconds of a fit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="results/batch_peers.json")
    add_optimum_options(parser)
    args = parser.parse_args()
    known = circumstances(__file__) | {"repeats": args.repeats, "limit": args.limit}
    peers = {n: LinearPeer(n) if n in LINEAR else Ocas(n) for n in args.peers}
    peers = {name: peer for name, peer in peers.items() if peer.found}
    all_seconds, described = {}, {}
    for problem in load_problems(args.problems, args.data):
        with tempfile.TemporaryDirectory() as folder:
            for peer in peers.values():
                peer.save(problem, folder)
            seconds = {lam: measure(problem, lam, peers, args) for lam in args.lams}
        shape = " x ".join(map(str, problem.X.shape))
        print(f"{problem.name} ({problem.kind}, {shape}): seconds\n")
        print_table(
            ["", *(f"lambda = {lam:g}" for lam in args.lams)],
            [[m, *(seconds[lam][m] for lam in args.lams)] for m in seconds[args.lams[0]]],
        )
        described[problem.name] = description(problem)
        all_seconds |= {(problem.name, f"{lam:g}"): seconds[lam] for lam in args.lams}
    if all_seconds:
        print_comparison(all_seconds, peers, args.limit)
        if args.write:
            write_results(described, all_seconds, known)


if __name__ == "__main__":
    sys.exit(main())
