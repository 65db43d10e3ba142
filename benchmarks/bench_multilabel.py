"""Macro-F1 of many labels beside xCOLUMNs: the same probabilities are given to both.

On reuters90, yeast and scene: the macro-F1 that is expected of the test rows and the one
that their labels have, chosen for these rows' probabilities together; the rule learned
from held-out probabilities of the training rows; CPU seconds of both. Then time and
memory of a large sparse case.
"""

import tempfile
import warnings
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from _common import (
    HERE,
    data_file,
    load_reuters,
    load_yeast,
    make_parser,
    peak_megabytes,
    peer_python,
    print_table,
    run_lines,
)  # first: it keeps the BLAS on one thread
from _confusion import GivenLabels
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier

from sklearn_structsvm import MultilabelMetricClassifier

PER_ROW = 0, 1, 2, 3, 5
PEER = HERE / "peers" / "xcolumns_labels.py"


def load(name, data_home):
    """X, Y, X_test, Y_test and C, or None."""
    if name == "reuters90":
        parts, C = load_reuters(data_home, 90), 10.0
    elif name == "yeast":
        parts, C = load_yeast(data_home), 1.0
    else:
        path, C = data_file(data_home, name, "data.npz"), 1.0
        if path is None:
            return None
        with np.load(path) as data:
            parts = [data[key] for key in ("X_train", "Y_train", "X_test", "Y_test")]
        parts = [p.astype(float if p.dtype.kind == "f" else int) for p in parts]
    return None if parts is None else (*parts, C)


def probabilities(X, Y, X_test, C):
    """Held-out probabilities of the training rows, and those of the test rows."""
    solver = "liblinear" if sparse.issparse(X) else "lbfgs"
    inner = LogisticRegression(C=C, max_iter=1000, solver=solver)
    with warnings.catch_warnings():
        # Labels that a fold has none of.
        warnings.simplefilter("ignore")
        held_out = np.empty(Y.shape)
        for train, test in KFold(5, shuffle=True, random_state=0).split(X):
            model = OneVsRestClassifier(inner).fit(X[train], Y[train])
            held_out[test] = model.predict_proba(X[test])
        return held_out, OneVsRestClassifier(inner).fit(X, Y).predict_proba(X_test)


def timed(run, repeats):
    """The last result, and the median of the CPU seconds."""
    seconds = []
    for _ in range(repeats):
        started = process_time()
        found = run()
        seconds.append(process_time() - started)
    return found, median(seconds)


def expected_macro_f1(Y, eta):
    """2 Σ η y / (Σ y + Σ η), the mean of the labels."""
    return float(np.mean(2 * (Y * eta).sum(axis=0) / (Y.sum(axis=0) + eta.sum(axis=0))))


def run_set(name, args, python, folder):
    loaded = load(name, args.data)
    if loaded is None:
        return
    X, Y, X_test, Y_test, C = loaded
    held_out, eta = probabilities(X, Y, X_test, C)
    path = Path(folder, f"{name}.npz")
    np.savez(path, eta=eta, eta_train=held_out, Y_train=Y)
    peers = {}
    for method in ("batch", "learn") if python else ():
        command = [python, PEER, method, path, *PER_ROW, "--repeats", args.repeats]
        for line in run_lines(command):
            peers[method, line["k"]] = line

    def scores(predicted):
        of_labels = f1_score(Y_test, predicted, average="macro", zero_division=0)
        return expected_macro_f1(predicted, eta), of_labels

    rows = []
    for k in PER_ROW:
        model = MultilabelMetricClassifier(
            GivenLabels(), labels_per_row=k or None, cv="prefit",
            # What is expected of these very probabilities is compared.
            confusion="probabilities" if k else "auto",
        )  # fmt: skip
        learned, fit_seconds = timed(
            lambda model=model: model.fit(held_out, Y).predict(eta), args.repeats
        )
        batch, seconds = timed(lambda model=model: model.predict_batch(eta), args.repeats)
        for method, predicted, ours in (
            ("batch", batch, seconds),
            ("learn", learned, fit_seconds),
        ):
            row = [name, k or "any", method, *scores(predicted), ours]
            line = peers.get((method, k))
            if line is None:
                rows.append([*row, np.inf, np.inf, np.inf, np.inf])
                continue
            theirs = sparse.load_npz(line["output"]).toarray()
            rows.append([*row, *scores(theirs), line["seconds"], line["seconds"] / ours])
    print_table(
        [
            "data", "labels a row", "chosen by", "expected", "test", "CPU s",
            "xCOLUMNs expected", "test", "CPU s", "ratio",
        ],
        rows,
    )  # fmt: skip


def run_large(args, python, folder):
    """Compare both on many rows and labels with few entries in a row."""
    n, n_labels, per_row, k = args.large
    rng = np.random.default_rng(0)
    # Labels by Zipf's law, as of a long tail.
    chances = 1.0 / np.arange(1, n_labels + 1)
    labels = rng.choice(n_labels, size=n * per_row, p=chances / chances.sum())
    values = rng.beta(0.3, 3.0, size=n * per_row).astype(np.float64)
    eta = sparse.csr_matrix(
        (values, labels, np.arange(0, n * per_row + 1, per_row)), (n, n_labels)
    )
    eta.sum_duplicates()
    eta.data = np.minimum(eta.data, 1.0)
    Y = sparse.csr_matrix(
        (rng.random(eta.nnz) < eta.data, eta.indices, eta.indptr), eta.shape
    )
    path = Path(folder, "large.sparse")
    np.savez(
        path.with_suffix(".sparse.npz"),
        data=eta.data, indices=eta.indices, indptr=eta.indptr, shape=eta.shape,
    )  # fmt: skip
    del labels, values
    before, rows = peak_megabytes(), []

    def expected(Y):
        hits = np.asarray(Y.multiply(eta).sum(axis=0)).ravel()
        sizes = np.asarray(Y.sum(axis=0) + eta.sum(axis=0)).ravel()
        return float(np.mean(2 * hits / np.maximum(sizes, 1e-300)))

    for what, params, call in (
        ("thresholds, fit", {}, "fit"),
        (f"{k} a row, fit", {"labels_per_row": k}, "fit"),
        (f"{k} a row, batch", {"labels_per_row": k}, "batch"),
    ):
        model = MultilabelMetricClassifier(
            GivenLabels(), cv="prefit", confusion="probabilities", **params
        ).fit(eta, Y)
        if call == "fit":
            _, seconds = timed(lambda model=model: model.fit(eta, Y), 1)
            predicted = model.predict(eta)
        else:
            predicted, seconds = timed(lambda model=model: model.predict_batch(eta), 1)
        rows.append([what, seconds, peak_megabytes() - before, expected(predicted)])
    if python:
        command = [python, PEER, "batch", path, k, "--repeats", 1]
        for line in run_lines(
            [*command, "--max-iter", args.peer_passes], args.peer_timeout
        ):
            theirs = expected(sparse.load_npz(line["output"]))
            what = f"xCOLUMNs, {k} a row, batch"
            rows.append([what, line["seconds"], line["megabytes"], theirs])
    entries = (eta.data.nbytes + eta.indices.nbytes + eta.indptr.nbytes) / 2**20
    print(
        f"{n} x {n_labels}, {eta.nnz} entries, {entries:.0f} MB of them, "
        f"{8 * n * n_labels / 2**20:.0f} MB if dense. Our memory is what came on top of "
        "the data, theirs that of the process.\n"
    )
    print_table(["", "CPU s", "peak MB", "expected macro-F1"], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=["reuters90", "yeast", "scene"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--large", type=int, nargs=4, default=[100_000, 10_000, 50, 5],
        metavar=("ROWS", "LABELS", "ENTRIES", "K"),
    )  # fmt: skip
    parser.add_argument("--peer-passes", type=int, default=100)
    parser.add_argument("--peer-timeout", type=float, default=600.0)
    args = parser.parse_args()
    python = peer_python("XCOLUMNS_PYTHON", "xcolumns")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.sets:
            run_set(name, args, python, folder)
        run_large(args, python, folder)


if __name__ == "__main__":
    main()
