"""Letter error and training time on OCR: this library, CRFsuite, LinearSVC.

Ours chooses C by cross-validation; CRFsuite is tried with every setting, and its best
result on the test words counts. CRFSUITE_PYTHON names an interpreter that has
python-crfsuite.
"""

import sys
from time import perf_counter

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
from _crfsuite import SETTINGS, run_crfsuite
from scipy import sparse
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.metrics import token_accuracy_score

CS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def ours(X, y, X_test, y_test, args):
    """Row of the table for the library, and the seconds of choosing C.

    Both the candidates and the final fit are averages of a few passes, which predict as
    well as the optimum does; the final fit's gap says how far from it they are.
    """
    model = BCFWClassifier(
        ChainStructure(),
        step="fw",
        solver_options={"cache": False, "average": True},
        max_iter=args.passes,
        random_state=0,
    )
    start = perf_counter()
    # Equal words stand side by side: without shuffling, folds would have none in common.
    folds = KFold(args.cv, shuffle=True, random_state=0)
    search = GridSearchCV(model, {"C": args.Cs}, cv=folds, refit=False)
    fit_quietly(search, X, y)
    search_seconds = perf_counter() - start
    model.set_params(**search.best_params_)
    seconds = []
    for seed in range(args.repeats):
        model.set_params(random_state=seed)
        start = perf_counter()
        fit_quietly(model, X, y)
        seconds.append(perf_counter() - start)
    error = 1.0 - token_accuracy_score(y_test, model.predict(X_test))
    name = f"library, C={model.C:.3g}, gap {model.dual_gap_:.1g}"
    return [name, float(np.median(seconds)), error], search_seconds


def linear_svc(X, y, X_test, y_test):
    """Row of LinearSVC, which sees letters without their neighbors."""
    start = perf_counter()
    model = LinearSVC(random_state=0).fit(np.concatenate(X), np.concatenate(y))
    seconds = perf_counter() - start
    error = 1.0 - model.score(np.concatenate(X_test), np.concatenate(y_test))
    return ["LinearSVC, each letter alone", seconds, error]


def crfsuite_rows(python, settings, X, y, X_test, y_test):
    """Rows of CRFsuite. Its attributes are the pixels that are on."""
    classes = np.unique(np.concatenate(y))
    problems = {
        "train": ([*map(sparse.csr_array, X)], y, classes),
        "test": ([*map(sparse.csr_array, X_test)], y_test, classes),
    }
    lengths = [len(labels) for labels in y_test]
    rows = []
    with saved(**problems) as paths:
        for setting in settings:
            facts, predicted = run_crfsuite(
                python, setting, paths, classes, lengths, biases=True
            )
            error = 1.0 - token_accuracy_score(y_test, predicted)
            rows.append([f"CRFsuite, {setting}", facts["seconds"], error])
    return rows


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--Cs", type=float, nargs="+", default=CS)
    parser.add_argument("--cv", type=int, default=3)
    parser.add_argument("--passes", type=int, default=15, help="of our fits")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=[*SETTINGS])
    parser.add_argument("--subsets", nargs="+", default=["small", "large"])
    args = parser.parse_args()
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    for subset in args.subsets:
        train = load_ocr(subset, args.data)
        test = load_ocr({"small": "large", "large": "small"}[subset], args.data)
        own, search = ours(*train, *test, args)
        rows = [own, linear_svc(*train, *test)]
        if python:
            rows += crfsuite_rows(python, args.settings, *train, *test)
        print(
            f"OCR-{subset}: {len(train[0])} words, tested on {len(test[0])}; "
            f"choosing C took {search:.1f} s\n"
        )
        print_table(
            ["", "s to train", "letter error", "times our time", "times our error"],
            [[*row, row[1] / own[1], row[2] / own[2]] for row in rows],
        )


if __name__ == "__main__":
    sys.exit(main())
