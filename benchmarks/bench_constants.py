"""What a constant of a solver is worth: calls of default fits with another value of it.

    python bench_constants.py blocks.planes:SURELY=1 blocks.acceleration:RATIO=30

Each argument names a module of `sklearn_structsvm.solvers`, a constant there, and a
value. For each of them alone: the calls of the oracle until the gap is within `tol`,
divided by those of the package as it is (geometric mean, least, most), the number of
fits of which they differ by more than 5 %, and the fits that end above `tol` before and
now. A rule that no fit notices when it is switched off has no place in a solver.

The fits: raw and scaled rows, chains and trees; letters, text, images, tags and matchings
where the data are there; C from 0.01 to 100, L1 and elastic nets. All counts are
deterministic. --tol replaces every tolerance.
"""

import importlib
import sys

from _batch import load_problems
from _common import fit_quietly, load_ocr, make_parser, np, print_table
from bench_parallel import Matching, make_matchings
from bench_raw_columns import chains_of_the_table, rows_of_the_table

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains, make_multilabel

# Name: rows at most, and the values of C.
STORED = {
    "letter": (4000, (0.01, 1.0, 100.0)),
    "a9a": (4000, (0.01, 1.0, 100.0)),
    "satimage": (3000, (0.01, 1.0, 100.0)),
    "reuters_usa": (3000, (1.0, 100.0)),
    "polarity": (1500, (1.0, 100.0)),
    "ocr-26": (2000, (1.0,)),
    "scene": (1000, (1.0,)),
    "reuters-58": (1000, (1.0, 30.0)),
}


def fits(home):
    """(name, estimator, X, y)"""
    for kind, problems in (("rows", rows_of_the_table), ("chains", chains_of_the_table)):
        for name, X, y, C in problems():
            structure = {"structure": "chain"} if kind == "chains" else {}
            X, y = X[:300], y[:300]
            yield f"{name}, SVM", BCFWClassifier(C=C, **structure), X, y
            yield f"{name}, CRF", CRFClassifier(C=C, **structure), X, y
            net = CRFClassifier(C=C, l1_ratio=0.5, **structure)
            yield f"{name}, CRF, elastic net", net, X, y
            if kind == "rows":
                net = BCFWClassifier(C=C, l1_ratio=0.5)
                yield f"{name}, SVM, elastic net", net, X, y
    for name, (n, Cs) in STORED.items():
        for problem in load_problems([name], home):
            rows = np.random.default_rng(3).permutation(problem.X.shape[0])[:n]
            X, y = problem.X[rows], np.asarray(problem.y)[rows]
            for C in Cs:
                yield f"{name}, C={C:g}, SVM", BCFWClassifier(C=C), X, y
            if y.ndim == 1:
                yield f"{name}, CRF", CRFClassifier(), X, y
                yield f"{name}, CRF, L1", CRFClassifier(l1_ratio=1.0), X, y
                yield f"{name}, subLBFGS", SubLBFGSClassifier(), X, y
                yield f"{name}, BMRM", BMRMClassifier(), X, y
    X, y = (part[:300] for part in load_ocr("small", home))
    for C in (0.1, 1.0, 30.0):
        yield f"words, C={C:g}, SVM", BCFWClassifier(C=C), X, y
        yield f"words, C={C:g}, CRF", CRFClassifier(C=C), X, y
    yield "words, CRF, L1", CRFClassifier(l1_ratio=1.0), X, y
    yield "words, SVM, elastic net", BCFWClassifier(l1_ratio=0.5), X[:100], y[:100]
    yield "words, slack rescaling", SlackRescaledSSVM(), X[:60], y[:60]
    X, y = make_chains(150, n_classes=4, random_state=0)
    rng = np.random.default_rng(0)
    parents = [np.array([-1, *(rng.integers(v) for v in range(1, len(x)))]) for x in X]
    yield "trees, SVM", BCFWClassifier("tree"), list(zip(X, parents, strict=True)), y
    yield "60 labels", BCFWClassifier(), *make_chains(40, n_classes=60, random_state=0)
    X, y = make_multilabel(300, random_state=0)
    yield "sets of labels, SVM", BCFWClassifier(), X, y
    yield "pairs of labels, SVM", BCFWClassifier("pairwise"), X, y
    yield "matchings in Python", BCFWClassifier(Matching()), *make_matchings(30, 8, 6)


def count_calls(home, tol):
    """{name: (calls, whether the gap is within tol)}"""
    found = {}
    for name, model, X, y in fits(home):
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        model.set_params(max_iter=300, tol=model.tol if tol is None else tol)
        fit_quietly(model, X, y)
        calls = getattr(model, "n_oracle_calls_", 0) or model.n_iter_
        found[name] = max(calls, 1), model.dual_gap_ <= model.tol
    return found


def replace(module, name, value):
    """Set the constant wherever a solver has imported it; return what undoes it."""
    owner = importlib.import_module(f"sklearn_structsvm.solvers.{module}")
    before = getattr(owner, name)
    importing = [
        other
        for key, other in sys.modules.items()
        if key.startswith("sklearn_structsvm.solvers") and name in vars(other)
    ]

    def put(value):
        for other in importing:
            setattr(other, name, value)

    put(type(before)(float(value)))
    return lambda: put(before)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("constants", nargs="*", metavar="MODULE:NAME=VALUE")
    parser.add_argument("--tol", type=float)
    args = parser.parse_args()
    before = count_calls(args.data, args.tol)
    rows = []
    for text in args.constants:
        place, value = text.split("=")
        restore = replace(*place.split(":"), value)
        now = count_calls(args.data, args.tol)
        restore()
        ratios = {name: now[name][0] / calls for name, (calls, _) in before.items()}
        least, most = min(ratios, key=ratios.get), max(ratios, key=ratios.get)
        mean = np.exp(np.mean(np.log(list(ratios.values()))))
        noticed = sum(not 0.95 <= ratio <= 1.05 for ratio in ratios.values())
        missed = [sum(not ends for _, ends in found.values()) for found in (before, now)]
        ends = (f"{ratios[name]:.2f} {name}" for name in (least, most))
        rows.append([text, f"{mean:.3f}", *ends, noticed, *missed])
    header = ["constant", "mean", "least", "most", "noticed by", "missed before", "now"]
    print(f"{len(before)} fits")
    print_table(header, rows)


if __name__ == "__main__":
    main()
