"""A chain on the scores of a network: CPU seconds to one objective, beside pytorch-crf.

A network with one hidden layer scores the letters of handwritten words. The chain on top
learns a scale, biases and transitions. pytorch-crf learns the same weights for the same
objective by L-BFGS of PyTorch. It has no certificate: it is credited with the first
evaluation within 1e-3 of the optimum, which ours finds to a gap of 1e-8 of it, not timed.
The second table has the layer of the guide's page "On top of a network" beside that of
pytorch-crf. PYTORCH_CRF_PYTHON names an interpreter that has pytorch-crf and the package.
"""

import sys

from _common import (
    HERE,
    ChainStructure,
    fit_quietly,
    fit_seconds,
    make_parser,
    np,
    peer_python,
    print_table,
    run_lines,
    saved,
)
from sklearn.model_selection import GroupKFold, cross_val_predict, train_test_split
from sklearn.neural_network import MLPClassifier

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import load_ocr_letters

RELATIVE = 1e-3


def load():
    """Out-of-fold scores and labels of words, and those of a test part."""
    X, y = load_ocr_letters(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    lengths = [len(word) for word in X]
    rows, labels = np.concatenate(X), np.concatenate(y)
    network = MLPClassifier(
        [64], alpha=1.0, learning_rate_init=0.005, early_stopping=True, random_state=0
    )
    scores = cross_val_predict(
        network,
        rows,
        labels,
        groups=np.repeat(np.arange(len(X)), lengths),
        cv=GroupKFold(5),
        method="predict_log_proba",
    )
    network.fit(rows, labels)
    parts = np.split(scores.astype(np.float32), np.cumsum(lengths)[:-1])
    test = [network.predict_log_proba(word).astype(np.float32) for word in X_test]
    return parts, y, test, y_test


def own_row(data, C, solver, best, repeats):
    X, y, X_test, y_test = data
    model = CRFClassifier(
        ChainStructure(emission="given"), C=C, solver=solver, tol=RELATIVE * best
    )
    seconds = fit_seconds(model, X, y, repeats)
    error = 1.0 - model.score(X_test, y_test)
    return [f"library, {solver}", C, seconds, model.n_iter_, error]


def peer_row(python, data, C, best, max_iter):
    X, y, X_test, y_test = data
    classes = np.unique(np.concatenate(y))
    script = HERE / "peers" / "torchcrf_chain.py"
    with saved(train=(X, y, classes), test=(X_test, y_test, classes)) as paths:
        options = ["--C", C, "--max-iter", max_iter]
        *lines, last = run_lines([python, script, *paths.values(), *options])
    # Ours is in units of the mean loss of a word.
    objectives = np.array([line["objective"] for line in lines]) / (C * len(y))
    within = np.flatnonzero(objectives <= (1.0 + RELATIVE) * best)
    reached = lines[within[0]]["seconds"] if len(within) else np.inf
    passes = int(within[0]) + 1 if len(within) else len(lines)
    print(f"C={C:g}: optimum {best:.8g}, pytorch-crf's lowest {objectives.min():.8g}\n")
    error = np.mean(classes[last["labels"]] != np.concatenate(y_test))
    return ["pytorch-crf, L-BFGS", C, reached, passes, error]


def print_layers(python):
    lines = run_lines([python, HERE / "peers" / "torch_layers.py"])
    rows = []
    for line in lines:
        ours, theirs = line["milliseconds"]
        rows.append([line["name"], ours, theirs, theirs / ours])
    header = ["a loss and its gradient", "the guide's, ms", "pytorch-crf, ms", "ratio"]
    print_table(header, rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--solvers", nargs="+", default=["dual", "lbfgs"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-iter", type=int, default=100, help="of pytorch-crf")
    args = parser.parse_args()
    python = peer_python("PYTORCH_CRF_PYTHON", "torchcrf")
    data, rows = load(), []
    for C in args.C:
        exact = CRFClassifier(ChainStructure(emission="given"), C=C, solver="lbfgs")
        objective = fit_quietly(exact, *data[:2]).objective_
        best = fit_quietly(exact.set_params(tol=1e-8 * objective), *data[:2]).objective_
        own = [own_row(data, C, s, best, args.repeats) for s in args.solvers]
        if python:
            own.append(peer_row(python, data, C, best, args.max_iter))
        rows += [[*row, row[2] / own[0][2]] for row in own]
    header = ["", "C", "CPU s to 1e-3", "passes", "test error", "times our time"]
    print_table(header, rows)
    if python:
        print_layers(python)


if __name__ == "__main__":
    sys.exit(main())
