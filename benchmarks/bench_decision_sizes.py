"""Seconds and memory of large decisions, beside fairlearn and xCOLUMNs.

Scores of many rows are given. For groups: the best balanced accuracy with recalls that
differ by at most .05, by `ComplexMetricClassifier` and fairlearn's `ThresholdOptimizer`,
for 100,000 rows with 500 groups and a million rows with 20. For 500 labels of 50,000
rows: macro-F1 with any number of labels for each row and with three, by
`MultilabelMetricClassifier`; with three by block coordinate ascent of xCOLUMNs as well.

Each fit is a process of its own: CPU seconds, and the peak memory beyond that of the
data (of xCOLUMNs, of the process). Differences of recalls are of the labels as they are;
by default ours counts smoothed ones.
"""

import json
import sys
import tempfile
from pathlib import Path
from time import process_time

from _common import (
    HERE,
    make_parser,
    np,
    peak_megabytes,
    peer_python,
    print_table,
    run_lines,
)  # first: it keeps the BLAS on one thread
from _confusion import Given, GivenLabels
from scipy import sparse
from scipy.special import expit
from sklearn.metrics import f1_score

from sklearn_structsvm import ComplexMetricClassifier, MultilabelMetricClassifier
from sklearn_structsvm.metrics import EqualOpportunity

GROUPS = [(100_000, 500), (1_000_000, 20)]
LABELS, PER_ROW = (50_000, 500), 3
SLACK = 0.05
PEER = HERE / "peers" / "xcolumns_labels.py"


def grouped(n, n_groups):
    """Probabilities of two classes, labels, and groups that differ in both."""
    rng = np.random.default_rng(0)
    groups = rng.integers(n_groups, size=n)
    eta = expit(1.5 * rng.normal(size=n) + 0.5 * rng.normal(size=n_groups)[groups] - 1.0)
    y = (rng.random(n) < eta).astype(int)
    return np.column_stack([1.0 - eta, eta]), y, groups


def labeled(n, n_labels):
    """Probabilities of labels, of which most are rare, and the labels."""
    rng = np.random.default_rng(0)
    shares = np.geomspace(0.3, 0.002, n_labels)
    eta = expit(np.log(shares) + 1.5 * rng.normal(size=(n, n_labels)))
    return eta, (rng.random(eta.shape) < eta).astype(int)


def balanced(y, p):
    """Balanced accuracy of the probabilities of label 1 that a rule draws with."""
    return (p[y == 1].mean() + (1.0 - p[y == 0]).mean()) / 2.0


def of_groups(method, n, n_groups):
    P, y, groups = grouped(n, n_groups)
    before, start = peak_megabytes(), process_time()
    if method == "ours":
        fair = EqualOpportunity(slack=SLACK)
        model = ComplexMetricClassifier(Given(2), "balanced", fair, cv="prefit")
        model.fit(P, y, sensitive_features=groups)
    else:
        from fairlearn.postprocessing import ThresholdOptimizer

        model = ThresholdOptimizer(
            estimator=Given(2),
            constraints="true_positive_rate_parity",
            objective="balanced_accuracy_score",
            prefit=True,
            predict_method="predict_proba",
            tol=SLACK,
        ).fit(P, y, sensitive_features=groups)
    seconds, megabytes = process_time() - start, peak_megabytes() - before
    if method == "ours":
        p = model.predict_proba(P, sensitive_features=groups)[:, 1]
    else:
        p = model._pmf_predict(P, sensitive_features=groups)[:, 1]
    recalls = [p[(groups == g) & (y == 1)].mean() for g in range(n_groups)]
    return seconds, megabytes, balanced(y, p), float(np.ptp(recalls))


def of_labels(k):
    eta, Y = labeled(*LABELS)
    before, start = peak_megabytes(), process_time()
    model = MultilabelMetricClassifier(
        GivenLabels(), labels_per_row=k or None, cv="prefit"
    )
    model.fit(eta, Y)
    seconds, megabytes = process_time() - start, peak_megabytes() - before
    return seconds, megabytes, f1_score(Y, model.predict(eta), average="macro"), None


def peer_of_labels(python):
    """As `of_labels`, but the memory is that of the process."""
    eta, Y = labeled(*LABELS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "labels.npz")
        np.savez(path, eta=eta)
        command = [python, PEER, "batch", path, PER_ROW, "--repeats", 1]
        for line in run_lines(command):
            predicted = sparse.load_npz(line["output"]).astype(bool).toarray()
            score = f1_score(Y, predicted, average="macro")
            return line["seconds"], line["megabytes"], score, None


def run_alone(*case):
    """What a process of its own finds."""
    (line,) = run_lines([sys.executable, __file__, "--case", *case])
    return line["found"]


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--case", nargs="+")
    args = parser.parse_args()
    if args.case:
        kind, *rest = args.case
        rest = map(int, rest)
        found = of_labels(*rest) if kind == "labels" else of_groups(kind, *rest)
        print(json.dumps({"found": found}))
        return
    rows = []
    for n, n_groups in GROUPS:
        for kind, name in (("ours", "ours"), ("fairlearn", "`ThresholdOptimizer`")):
            found = run_alone(kind, n, n_groups)
            rows.append([f"{n:,} rows, {n_groups} groups", name, *shown(found)])
    what = f"{LABELS[0]:,} rows, {LABELS[1]} labels"
    for k in (0, PER_ROW):
        name = f"ours, {k or 'any number of'} labels a row"
        rows.append([what, name, *shown(run_alone("labels", k))])
    python = peer_python("XCOLUMNS_PYTHON", "xcolumns")
    if python:
        name = f"xCOLUMNs, {PER_ROW} labels a row, batch"
        rows.append([what, name, *shown(peer_of_labels(python))])
    header = ["", "", "CPU s", "peak MB", "score", "difference of recalls"]
    print_table(header, rows)


def shown(found):
    seconds, megabytes, score, gap = found
    gap = "-" if gap is None else f"{gap:.3f}"
    return f"{seconds:.2f}", f"{megabytes:.0f}", f"{score:.4f}", gap


if __name__ == "__main__":
    main()
