"""What a constant of a solver is worth: calls of default fits with another value of it.

    python bench_constants.py blocks.planes:SURELY=1 blocks.acceleration:RATIO=30

Each argument names a module of `sklearn_structsvm.solvers`, a constant there, and a
value. For each of them alone: the calls of the oracle until the gap is within `tol`,
divided by those of the package as it is (geometric mean, least, most), the number of
fits of which they differ by more than 5 %, and the fits that end above `tol` before and
now. A rule that no fit notices when it is switched off has no place in a solver.

The fits: raw and scaled rows, chains and trees; letters, text, images, tags, matchings,
where the data are there; C from 0.01 to 100, L1 and elastic nets; decisions by metrics,
with and without constraints, by several solvers. Counts are deterministic. --tol sets
every tolerance; --only keeps the fits with this in their name.
"""

import importlib
import sys
from itertools import chain

from _batch import load_problems
from _common import fit_quietly, load_ocr, make_parser, np, print_table
from _confusion import Given
from bench_parallel import Matching, make_matchings
from bench_raw_columns import chains_of_the_table, rows_of_the_table

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains, make_multilabel
from sklearn_structsvm.metrics import (
    EqualizedOdds,
    EqualOpportunity,
    PredictiveParity,
    Recall,
    SelectionRate,
)

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

# Name: the metric, its constraint or none, and the solver.
DECISIONS = {
    "G-mean": ("g_mean", (), "auto"),
    "min-max": ("min_max", (), "auto"),
    "macro-F1": ("macro_f1", (), "auto"),
    "micro-F1, bisection": ("micro_f1", (), "bisection"),
    "H-mean, Frank-Wolfe": ("h_mean", (), "frank_wolfe"),
    "G-mean, shares": ("g_mean", SelectionRate(target="priors", slack=0.01), "auto"),
    "error, recalls": ("zero_one", Recall(at_least=0.2), "auto"),
    "G-mean, opportunity": ("g_mean", EqualOpportunity(slack=0.02), "auto"),
    "min-max, odds": ("min_max", EqualizedOdds(slack=0.05), "auto"),
    "micro-F1, odds": ("micro_f1", EqualizedOdds(slack=0.05), "auto"),
    "G-mean, precisions": ("g_mean", PredictiveParity(slack=0.1), "auto"),
    "H-mean, odds, Frank-Wolfe": ("h_mean", EqualizedOdds(slack=0.05), "frank_wolfe"),
    "H-mean, ellipsoid": ("h_mean", (), "ellipsoid"),
    "H-mean, opportunity, ellipsoid": (
        "h_mean",
        EqualOpportunity(slack=0.02),
        "ellipsoid",
    ),
    "min-max, odds, GDA": ("min_max", EqualizedOdds(slack=0.05), "gda"),
}


def decisions():
    """(name, estimator, X, y, other arguments of `fit`), by drawn probabilities."""
    for k, n_groups in ((2, 2), (3, 4), (6, 2)):
        rng = np.random.default_rng(k)
        P = rng.dirichlet(0.7 * np.arange(1, k + 1), size=400)
        y = np.array([rng.choice(k, p=p) for p in P])
        groups = (n_groups * rng.random(400) ** (1.0 + 0.3 * y)).astype(int)
        for name, (metric, constraint, solver) in DECISIONS.items():
            options = {"solver": solver}
            model = ComplexMetricClassifier(
                Given(k), metric, constraint, cv="prefit", solver_options=options
            )
            by = {"sensitive_features": groups} if constraint else {}
            yield f"{name}, {k} classes", model, P, y, by


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


def count_calls(args):
    """{name: (calls, whether the gap is within tol)}"""
    found = {}
    for name, model, X, y, *by in chain(fits(args.data), decisions()):
        if args.only not in name:
            continue
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        tol = model.tol if args.tol is None else args.tol
        model.set_params(max_iter=300, tol=tol)
        fit_quietly(model, X, y, **(by[0] if by else {}))
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
    parser.add_argument("--only", default="", metavar="WORDS")
    args = parser.parse_args()
    before = count_calls(args)
    rows = []
    for text in args.constants:
        place, value = text.split("=")
        restore = replace(*place.split(":"), value)
        now = count_calls(args)
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
