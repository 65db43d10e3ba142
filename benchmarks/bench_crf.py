"""CPU seconds of conditional random fields to a relative 1e-3, beside CRFsuite.

Ours are certified by the duality gap. CRFsuite has no certificate: it is credited with
the first iteration within 1e-3 of the best loss that it reaches, and its seconds until
it stops by itself stand beside. All have the same strength of regularization, that of
CRFsuite being c2; it is given all transitions, and of attributes and labels those that
occur together. CRFSUITE_PYTHON names an interpreter that has python-crfsuite.
"""

import sys
from time import process_time

from _common import (
    ChainStructure,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    peer_python,
    print_table,
    saved,
)
from _crfsuite import run_crfsuite
from _tagging import load_ewt
from scipy import sparse

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.metrics import token_accuracy_score

RELATIVE = 1e-3
OCR = {"ocr-small": ("small", "large"), "ocr-large": ("large", "small")}


def load(name, data_home):
    """X, y, X_test, y_test and the structure of a problem, or None."""
    if name in OCR:
        parts = [load_ocr(subset, data_home) for subset in OCR[name]]
        return *parts[0], *parts[1], ChainStructure()
    data = load_ewt(data_home)
    if data is None:
        return None
    # Its attributes have the biases.
    return *data, ChainStructure(bias=False, first_bias=False, last_bias=False)


def own_row(problem, c2, solver, repeats):
    """Row of the table: the median of the repetitions, each with its own seed."""
    X, y, X_test, y_test, structure = problem
    model = CRFClassifier(structure, C=0.5 / c2, solver=solver, random_state=0)
    # The objective that the gap is to be relative to, not timed.
    objective = fit_quietly(model.set_params(tol=0.02), X, y).objective_
    model.set_params(tol=RELATIVE * objective)
    seconds = []
    for seed in range(repeats):
        model.set_params(random_state=seed)
        start = process_time()
        fit_quietly(model, X, y)
        seconds.append(process_time() - start)
    error = 1.0 - token_accuracy_score(y_test, model.predict(X_test))
    seconds = float(np.median(seconds))
    return [f"library, {solver}", seconds, seconds, model.n_iter_, error]


def peer_row(python, problem, c2):
    X, y, X_test, y_test, structure = problem
    classes = np.unique(np.concatenate(y))
    problems = {
        "train": ([*map(sparse.csr_array, X)], y, classes),
        "test": ([*map(sparse.csr_array, X_test)], y_test, classes),
    }
    lengths = [len(labels) for labels in y_test]
    params = {"c1": 0.0, "c2": c2, "feature.possible_transitions": 1}
    with saved(**problems) as paths:
        facts, predicted = run_crfsuite(
            python, ("lbfgs", params), paths, classes, lengths, biases=structure.bias
        )
    losses = np.array(facts["losses"])
    within = int(np.flatnonzero(losses <= (1.0 + RELATIVE) * losses.min())[0]) + 1
    share = within / len(losses)
    error = 1.0 - token_accuracy_score(y_test, predicted)
    cpu = facts["cpu_seconds"]
    return ["CRFsuite, lbfgs", share * cpu, cpu, facts["n_iter"], error]


def main():
    parser = make_parser(__doc__)
    names = [*OCR, "ud_ewt"]
    parser.add_argument("--problems", nargs="+", choices=names, default=names)
    parser.add_argument("--c2", type=float, nargs="+", default=[1.0, 0.1])
    parser.add_argument("--solvers", nargs="+", default=["dual", "lbfgs"])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    for name in args.problems:
        problem = load(name, args.data)
        if problem is None:
            continue
        for c2 in args.c2:
            rows = [own_row(problem, c2, s, args.repeats) for s in args.solvers]
            if python:
                rows.append(peer_row(python, problem, c2))
            print(f"{name}, c2 = {c2:g}: {len(problem[0])} sequences\n")
            print_table(
                [
                    "",
                    "CPU s to 1e-3",
                    "CPU s in all",
                    "passes",
                    "test error",
                    "times our time",
                ],
                [[*row, row[1] / rows[0][1]] for row in rows],
            )


if __name__ == "__main__":
    sys.exit(main())
