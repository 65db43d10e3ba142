"""What the benchmarks share: data, tables, peers in other environments.

Import it before NumPy: it keeps the BLAS on one thread.
"""

import argparse
import atexit
import importlib.util
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager
from datetime import date
from inspect import signature
from pathlib import Path
from time import process_time

THREADS = dict.fromkeys(
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"
)
os.environ.update(THREADS)

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import fetch_ocr_letters
from sklearn_structsvm.structures import ChainStructure

HERE = Path(__file__).parent
# A gap_check_interval that leaves the checks at the start and at the end.
NO_CHECKS = 10**9
# Inches: of a panel, and of a figure with many of them. README.md is read at some 830
# pixels, where letters are then at least ten pixels high.
PANEL_WIDTH, PANEL_HEIGHT, LARGEST_WIDTH = 3.8, 3.1, 11.4
FONT_SIZE = 11


def make_parser(description):
    """Parser with the option that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--data",
        default=os.environ.get("SKLEARN_STRUCTSVM_DATA"),
        help="folder of the data sets, as data_home of the fetch functions",
    )
    parser.add_argument(
        "--save", action=Saved, nargs=0, help="write the tables to results/tables, too"
    )
    return parser


class Saved(argparse.Action):
    """What is printed from now on is kept, and its tables are written at the end."""

    def __call__(self, parser, namespace, values, option_string=None):
        self.lines, self.write = [], sys.stdout.write
        sys.stdout.write = self.keep
        atexit.register(self.save, parser.description)

    def keep(self, text):
        self.lines.append(text)
        return self.write(text)

    def save(self, description):
        script = Path(sys.argv[0])
        about = circumstances(script) | {
            "title": description.partition("\n")[0].rstrip("."),
            "command": " ".join([script.name, *sys.argv[1:]]),
            "said": [],
            "tables": tables_in("".join(self.lines)),
        }
        path = HERE / "results" / "tables" / f"{script.stem.removeprefix('bench_')}.json"
        if path.exists():
            about["figures"] = json.loads(path.read_text("utf-8")).get("figures", [])
        text = json.dumps(about, indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")


def tables_in(text):
    """Markdown tables with the line that is before each of them."""
    found, title, is_open = [], "", False
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
            if not is_open:
                found.append({"title": title, "columns": cells, "rows": []})
            elif not line.startswith("| --- "):
                found[-1]["rows"].append(cells)
            title, is_open = "", True
        else:
            title, is_open = line.strip("# ").rstrip(".:") or title, False
    return found


def load_ocr(subset, data_home):
    """Words and letters of OCR-small, OCR-large or all."""
    return fetch_ocr_letters(subset=subset, data_home=data_home, return_X_y=True)


def load_yeast(data_home):
    """Return X, Y, X_test, Y_test of Mulan's yeast, or print what is missing.

    They are read from yeast/data.npz: X_train, Y_train, X_test and Y_test.
    """
    path = data_file(data_home, "yeast", "data.npz")
    if path is None:
        return None
    with np.load(path) as data:
        parts = [data[name] for name in ("X_train", "Y_train", "X_test", "Y_test")]
    return [part.astype(np.float64 if part.dtype.kind == "f" else int) for part in parts]


def load_reuters(data_home, n_topics):
    """Do the same for Reuters-21578, with its most frequent topics and CSR features.

    They are read from reuters90/: X_train.npz, X_test.npz (CSR), Y_train.npy, Y_test.npy.
    Documents without any of the topics are left out.
    """
    path = data_file(data_home, "reuters90", "X_train.npz")
    if path is None:
        return None
    parts, topics = [], None
    for name in ("train", "test"):
        X = sparse.load_npz(path.parent / f"X_{name}.npz").astype(np.float64)
        Y = np.load(path.parent / f"Y_{name}.npy").astype(int)
        if topics is None:
            topics = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:n_topics])
        rows = np.flatnonzero(Y[:, topics].any(axis=1))
        parts += [X[rows], Y[np.ix_(rows, topics)]]
    return parts


def data_file(data_home, folder, name):
    path = Path(data_home or ".", folder, name)
    if path.exists():
        return path
    print(f"[skipped {folder}: no {folder}/{name} in the folder that --data names]\n")
    return None


def has_highs():
    """Tell whether the solver of linear programs is installed; print it if not."""
    if importlib.util.find_spec("highspy") is None:
        print("[skipped lp: highspy is not installed]\n")
        return False
    return True


def placed(kind):
    """A class that takes its `solver_options` as keywords as well."""

    def make(*args, **params):
        names = signature(kind).parameters
        options = {name: params.pop(name) for name in [*params] if name not in names}
        if options:
            params["solver_options"] = params.get("solver_options", {}) | options
        return kind(*args, **params)

    return make


def chain_classifier(transitions=None, **params):
    """BCFWClassifier of a full chain model, Hamming loss over the length."""
    return placed(BCFWClassifier)(ChainStructure(transitions=transitions), **params)


def fit_quietly(estimator, X, y, **params):
    """Fit a model that may stop before it converges, without the warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y, **params)


def fit_seconds(model, X, y, repeats):
    """Return the median CPU seconds of fits with different seeds, and the last model."""
    seconds = []
    for seed in range(repeats):
        model.set_params(random_state=seed)
        start = process_time()
        fit_quietly(model, X, y)
        seconds.append(process_time() - start)
    return float(np.median(seconds))


def pass_seconds(X, y, passes, **params):
    """Seconds of a pass, without the gap checks at the fit's start and end.

    The check at the end is assumed to take as long as the one at the start.
    """
    model = chain_classifier(
        tol=0.0,
        max_iter=passes,
        solver_options={"gap_check_interval": NO_CHECKS},
        **params,
    )
    seconds = fit_quietly(model, X, y).history_["seconds"]
    return (seconds[-1] - 2 * seconds[0]) / passes


def reached(history, key, target):
    """Value of ``history[key]`` at the first gap check at or below the target."""
    below = np.flatnonzero(np.asarray(history["dual_gap"]) <= target)
    return float(history[key][below[0]]) if len(below) else np.inf


def true_gap(iterate):
    """Primal minus dual objective; the stored gaps of the blocks stay as they are."""
    w = iterate.weights
    return iterate.hinge(w) - iterate.loss + iterate.lam * w @ w


def print_table(header, rows):
    """Print a Markdown table: floats with three digits, a dash for a missed target."""

    def cell(value):
        if isinstance(value, (float, np.floating)):
            return f"{value:.3g}" if np.isfinite(value) else "-"
        return str(value)

    lines = [header, ["---"] * len(header), *rows]
    for line in lines:
        print("| " + " | ".join(map(cell, line)) + " |", flush=True)
    print()


def make_axes(n_rows, n_columns):
    """Make a grid of panels. Matplotlib is imported here, as tables do not need it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rc("font", size=FONT_SIZE)
    width = min(PANEL_WIDTH * n_columns, LARGEST_WIDTH)
    size = (width, PANEL_HEIGHT * n_rows + 0.5)
    return plt.subplots(
        n_rows, n_columns, squeeze=False, layout="constrained", figsize=size
    )


def save_figure(figure, axes, path):
    """Write it with grids and one legend, that of the first panel."""
    for ax in axes.flat:
        ax.grid(alpha=0.3)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    # Of long names fewer stand side by side.
    letters = max(map(len, labels)) + 6
    columns = min(len(labels), int(11 * figure.get_figwidth() / letters))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    path.parent.mkdir(exist_ok=True, parents=True)
    # With few colors, in a third of the bytes.
    from PIL import Image

    figure.savefig(path, dpi=140)
    with Image.open(path) as image:
        image.convert("RGB").quantize(64).save(path, optimize=True)


def peak_megabytes():
    """Highest resident memory of this process so far."""
    # On Linux ru_maxrss starts at the memory of the process that started this one.
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def save_sequences(path, X, y, classes):
    """Write items as flat CSR rows (or dense ones) and label indices."""
    arrays = {"offsets": np.cumsum([0] + [len(labels) for labels in y])}
    arrays["y"] = np.searchsorted(classes, np.concatenate(y)).astype(np.int32)
    if sparse.issparse(X[0]):
        rows = sparse.vstack(X, format="csr")
        arrays |= {"indices": rows.indices, "indptr": rows.indptr, "data": rows.data}
        arrays["n_features"] = rows.shape[1]
    else:
        arrays["X"] = np.concatenate(X)
    np.savez(path, **arrays)


@contextmanager
def saved(**problems):
    """Paths of temporary ``.npz`` files of several ``(X, y, classes)``."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder, f"{name}.npz")) for name in problems}
        for name, problem in problems.items():
            save_sequences(paths[name], *problem)
        yield paths


def compile_cpp(source, output, flags):
    """Compile a C++ file with the compiler that CXX names, or the system's."""
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        raise OSError(f"{source.name} needs a C++ compiler: set CXX.")
    subprocess.run([compiler, str(source), "-o", str(output), *flags], check=True)


def peer_python(variable, module):
    """Return the interpreter that has the peer; print how to name one and return None."""
    python = os.environ.get(variable, sys.executable)
    try:
        subprocess.run(
            [python, "-c", f"import {module}"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        print(f"[skipped {module}: set {variable} to an interpreter that has it]\n")
        return None
    return python


def peer_version(python, distribution):
    """Version of a package that an interpreter has, of Python 3.6 too."""
    code = (
        "try:\n from importlib.metadata import version\n"
        "except ImportError:\n from pkg_resources import get_distribution as found\n"
        " version = lambda name: found(name).version\n"
        f"print(version({distribution!r}))"
    )
    return subprocess.check_output([python, "-c", code], text=True).strip()


def circumstances(script):
    """Describe when, where and with which versions this script was run."""
    # The last one that changed the package.
    command = ["git", "log", "-1", "--format=%h", "--", "../sklearn_structsvm"]
    commit = subprocess.check_output(command, text=True, cwd=HERE).strip()
    processor = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists() and "model name" in info.read_text():
        processor = info.read_text().split("model name")[1].split(":")[1].split("\n")[0]
    return {
        "date": date.today().isoformat(),
        "commit": commit,
        "machine": f"{processor.strip()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "numpy": peer_version(sys.executable, "numpy"),
        "scikit-learn": peer_version(sys.executable, "scikit-learn"),
        "command": f"python benchmarks/{Path(script).name}",
    }


def run_lines(command, timeout=None):
    """Return the JSON lines that a command prints until it ends or its time is up."""
    command = [str(part) for part in command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(timeout or 10**6, process.kill)
    timer.start()
    try:
        lines = [json.loads(line) for line in process.stdout if line.startswith("{")]
        if process.wait() > 0:
            raise RuntimeError(f"{command[1]} ended with status {process.returncode}")
    finally:
        timer.cancel()
        process.kill()
    return lines


def as_history(lines):
    """The lines of a peer as a dict of arrays, like `history_`."""
    keys = lines[0] if lines else ("seconds", "dual_gap")
    return {key: np.array([line[key] for line in lines]) for key in keys}
