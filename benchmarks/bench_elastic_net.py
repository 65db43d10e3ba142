"""Elastic nets of conditional random fields: passes, CPU seconds and weights left.

Ours are at a certified relative gap of 1e-3, beside the squared L2 norm with the same c2.
CRFsuite minimizes the same objective by OWL-QN, with all transitions and states, or those
states alone that occur in training, and ends where it stops by itself. It has no
certificate: what it reaches is compared to our dual objective. CRFSUITE_PYTHON names an
interpreter that has python-crfsuite.
"""

import sys

from _common import (
    ChainStructure,
    fit_quietly,
    fit_seconds,
    load_ocr,
    make_parser,
    np,
    peer_python,
    print_table,
    saved,
)
from _crfsuite import run_crfsuite
from scipy import sparse

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import fetch_conll2000
from sklearn_structsvm.metrics import entity_f1_score, token_accuracy_score

RELATIVE = 1e-3
# c1 and c2 of CRFsuite.
PENALTIES = ("0,0.1", "0.1,0.1", "0.5,0.1", "1,0.1", "1,1", "1,0")


def load(name, n, data_home):
    """X, y, X_test, y_test, and what is said of predictions."""
    if name == "ocr-small":
        train, test = (load_ocr(subset, data_home) for subset in ("small", "large"))
        return *train, *test, lambda y, p: 1.0 - token_accuracy_score(y, p)
    (X, y), test = (
        fetch_conll2000(subset=subset, data_home=data_home, return_X_y=True)
        for subset in ("train", "test")
    )
    return X[:n], y[:n], *test, entity_f1_score


def own_row(problem, c1, c2, args):
    X, y, X_test, y_test, score = problem
    # No biases, which CRFsuite has not.
    structure = ChainStructure(bias=False, first_bias=False, last_bias=False)
    C = 1.0 / (c1 + 2.0 * c2)
    model = CRFClassifier(
        structure, C=C, l1_ratio=c1 * C, max_iter=args.passes, random_state=0
    )
    # The objective that the gap is to be relative to, not timed.
    objective = fit_quietly(model.set_params(tol=0.03), X, y).objective_
    model.set_params(tol=RELATIVE * objective)
    seconds = fit_seconds(model, X, y, args.repeats)
    found = score(y_test, model.predict(X_test))
    gap = model.dual_gap_ / model.objective_
    row = ["library", c1, c2, seconds, model.n_iter_, gap]
    return [*row, np.count_nonzero(model.coef_), found], model


def peer_rows(python, problem, c1, c2, model):
    X, y, X_test, y_test, score = problem
    classes = np.unique(np.concatenate([*y, *y_test]))
    problems = {
        "train": ([*map(sparse.csr_array, X)], y, classes),
        "test": ([*map(sparse.csr_array, X_test)], y_test, classes),
    }
    rows = []
    for states, name in ((1, "CRFsuite"), (0, "CRFsuite, seen states")):
        params = {"c1": c1, "c2": c2, "feature.possible_transitions": 1}
        params["feature.possible_states"] = states
        lengths = [len(labels) for labels in y_test]
        with saved(**problems) as paths:
            facts, found = run_crfsuite(
                python, ("lbfgs", params), paths, classes, lengths
            )
        reached = facts["losses"][-1] / len(X)
        above = (reached - model.dual_objective_) / model.objective_
        row = [name, c1, c2, facts["cpu_seconds"], facts["n_iter"], above]
        rows.append([*row, facts["n_weights"], score(y_test, found)])
    return rows


def main():
    parser = make_parser(__doc__)
    names = ["ocr-small", "conll2000"]
    parser.add_argument("--problems", nargs="+", choices=names, default=names)
    parser.add_argument("--penalties", nargs="+", default=PENALTIES, help="c1,c2")
    parser.add_argument("--sentences", type=int, default=500, help="of CoNLL-2000")
    parser.add_argument("--passes", type=int, default=1000, help="at most")
    parser.add_argument("--repeats", type=int, default=1)
    args = parser.parse_args()
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    for name in args.problems:
        problem, rows = load(name, args.sentences, args.data), []
        for penalty in args.penalties:
            c1, c2 = map(float, penalty.split(","))
            row, model = own_row(problem, c1, c2, args)
            rows.append(row)
            if python:
                rows += peer_rows(python, problem, c1, c2, model)
        print(f"{name}: {len(problem[0])} sequences\n")
        title = "test error" if name == "ocr-small" else "test chunk F1"
        header = ["", "c1", "c2", "CPU s", "passes", "above our dual", "weights", title]
        print_table(header, rows)


if __name__ == "__main__":
    sys.exit(main())
