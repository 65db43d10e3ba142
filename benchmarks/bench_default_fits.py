"""Default fits of every estimator on data as people have them.

Raw columns of very different sizes, amounts beside indicators, counts that nothing
divides, constant and repeated columns, rare classes, other types than float64, data
frames, chains and many labels. No rule of a solver was chosen on these sets.

For each set, and each estimator with its default parameters: passes until the gap is at
most its `tol`, or a dash with the gap that is left after its `max_iter` passes or --limit
seconds. A star says that there was a warning. Then what warnings and errors say, and on
how many sets each estimator converges.

With --kinds, 200 rows of each of eleven kinds of columns, three values of C, and all
losses and penalties; of chains the same rows, five each. Fits that miss `tol` are
repeated with scaled columns. Fits that `results/default_fits.json` lacks are measured and
added to it, so the table can be measured in parts.
"""

import json
import sys
import warnings
from itertools import product

import pandas as pd
from _common import (
    HERE,
    circumstances,
    data_file,
    make_parser,
    np,
    placed,
    print_table,
    sparse,
)
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

import sklearn_structsvm
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.preprocessing import SequenceTransformer

RESULTS = HERE / "results" / "default_fits.json"

OF_ALL = ["BCFWClassifier", "CRFClassifier", "BMRMClassifier", "SlackRescaledSSVM"]
OF_ROWS = [*OF_ALL, "SubLBFGSClassifier", "ComplexMetricClassifier"]
OF_LABELS = [*OF_ALL, "MultilabelMetricClassifier"]
CS = [1e-3, 1.0, 1e3]
# Losses, penalties and solvers of 200 rows, and whether they are for two classes only.
OF_KINDS = {
    "BCFW": ("BCFWClassifier", {}),
    "BCFW .5": ("BCFWClassifier", {"l1_ratio": 0.5}),
    "BCFW .9": ("BCFWClassifier", {"l1_ratio": 0.9}),
    "CRF": ("CRFClassifier", {}),
    "CRF .5": ("CRFClassifier", {"l1_ratio": 0.5}),
    "CRF L1": ("CRFClassifier", {"l1_ratio": 1.0}),
    "slack": ("SlackRescaledSSVM", {}),
    "BMRM": ("BMRMClassifier", {}),
    "Pragam": ("PragamClassifier", {}),
    "hinge": ("SubLBFGSClassifier", {}),
    "squares": ("SubLBFGSClassifier", {"loss": "squared_hinge"}),
    "hinge L1": ("SubLBFGSClassifier", {"penalty": "l1"}),
    "squares L1": ("SubLBFGSClassifier", {"penalty": "l1", "loss": "squared_hinge"}),
    "logistic L1": ("SubLBFGSClassifier", {"penalty": "l1", "loss": "logistic"}),
}
FOR_TWO_CLASSES = ["hinge L1", "logistic L1"]
STORED = ["adult", "compas", "crimes", "lawschool", "pageblocks", "abalone", "covtype7"]


def bundled():
    """(name, X, y) of scikit-learn's sets."""
    wine, iris, cancer, digits = (
        getattr(datasets, f"load_{name}")(return_X_y=True)
        for name in ("wine", "iris", "breast_cancer", "digits")
    )
    yield "digits, as bytes", digits[0].astype(np.uint8), digits[1]
    yield "iris, in tenths, int16", (10 * iris[0]).astype(np.int16), iris[1]
    yield "wine, float32", wine[0].astype(np.float32), wine[1]
    yield "cancer, each row ten times", *(np.repeat(part, 10, axis=0) for part in cancer)
    yield "cancer, columns twice", np.hstack([cancer[0]] * 2), cancer[1]
    yield "wine, times 1e-6", wine[0] * 1e-6, wine[1]
    yield "wine, times 1e6", wine[0] * 1e6, wine[1]
    X, target = datasets.load_diabetes(return_X_y=True, scaled=False)
    yield "diabetes, five levels", X, np.digitize(target, [80, 120, 160, 220])
    X, target = datasets.load_linnerud(return_X_y=True)
    yield "linnerud, 20 rows", X, (target[:, 0] > 176).astype(int)


def generated(n=1500):
    """(name, X, y) of random sets."""
    rng = np.random.default_rng(11)
    amounts = rng.lognormal(8, 2, size=(n, 3))
    places, flags = rng.integers(0, 40, n), rng.random((n, 4)) < 0.2
    score = np.log(amounts[:, 0]) - np.log(amounts[:, 1]) + 2 * flags[:, 0]
    y = (score + rng.normal(size=n) > 0.4).astype(int)
    frame = pd.DataFrame(amounts, columns=["income", "debt", "rent"])
    frame["year"] = 1950 + rng.integers(0, 60, n)
    frame["owner"] = flags[:, 0]
    frame["place"] = pd.Categorical(places)
    yield "frame of amounts and dummies", pd.get_dummies(frame), y
    seconds = 1_600_000_000 + rng.integers(0, 10**8, n)
    yield "time stamps beside flags", np.column_stack([seconds, flags]), y
    with_constant = np.column_stack([amounts, np.ones(n), np.zeros(n)])
    yield "amounts and constant columns", with_constant, y
    rare = y.copy()
    rare[:6] = 2
    yield "amounts, a class of six rows", amounts, rare
    yield "40 lognormal columns", rng.lognormal(0, 3, size=(n, 40)), y
    yield "heavy tails", rng.standard_cauchy((n, 6)) + y[:, np.newaxis], y
    columns = rng.normal(size=(n, 6)) + 0.3 * y[:, np.newaxis]
    yield "columns from 1e-5 to 1e5", columns * np.logspace(-5, 5, 6), y
    yield "labels at random, about 1e4", rng.normal(size=(n, 5)) + 1e4, y
    rates = rng.lognormal(0, 2, size=(3, 800))
    topic = rng.integers(0, 3, n)
    lengths = rng.lognormal(4, 1, n)[:, np.newaxis]
    counts = rng.poisson(lengths * rates[topic] / rates.sum(axis=1)[topic, np.newaxis])
    yield "counts of words, sparse int64", sparse.csr_matrix(counts), topic
    yield "30 counts, dense", counts[:, :30], topic


def stored(home, n=2000):
    """(name, X, y) of the first rows of sets in the folder."""
    for name in STORED:
        path = data_file(home, name, f"{name}.npz")
        if path is not None:
            with np.load(path) as data:
                yield name, data["X"][:n], data["y"][:n]


def chains():
    """(name, X, y) of sequences."""
    X, y = make_chains(120, n_features=4, n_classes=3, random_state=3)
    X = [np.asarray(x) for x in X]
    scales = np.array([1.0, 1e2, 1e4, 1e-2])
    yield "chains, scales 1e-2 to 1e4", [x * scales for x in X], y
    yield "chains, about 1,000, float32", [np.float32(x + 1000) for x in X], y
    yield "chains, integers", [np.rint(10 * x).astype(int) + 50 for x in X], y
    yield "chains, one feature", [x[:, :1] + 20 for x in X], y
    words = [np.hstack([x > 0, np.exp(3 * x[:, :2])]) for x in X]
    yield "chains, flags beside amounts", words, y
    yield "chains, sparse", [sparse.csr_matrix(x * (x > 0)) for x in X], y


def many_labels():
    """(name, X, Y) of many labels."""
    X, Y = datasets.make_multilabel_classification(600, 20, n_classes=6, random_state=3)
    yield "labels, counts", X, Y
    yield "labels, scales 1 to 1e4", X * np.logspace(0, 4, 20), Y
    Y = Y.copy()
    Y[:, 0] = 0
    Y[:4, 0] = 1
    yield "labels, one of four rows", X, Y


def kinds(n=200):
    """(name, X, score) of eleven kinds of columns; the score depends on some of them."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(n, 7))
    score = Z[:, 0] - Z[:, 1] + 0.5 * rng.logistic(size=n)
    yield "scaled", Z, score
    money = rng.lognormal(9, 2, size=(n, 4))
    yield "money", money, np.log(money[:, 0]) - np.log(money[:, 1]) + score
    counts = rng.poisson(np.exp(1.5 + Z))
    yield "counts", counts, score
    places = np.eye(12)[rng.integers(0, 12, n)]
    yield "one-hot", places, places @ rng.normal(size=12) + 0.3 * score
    yield "Cauchy", rng.standard_cauchy((n, 7)) + Z[:, :1], score
    years = rng.integers(1990, 2025, n)
    yield "years", np.column_stack([years, Z]), score
    yield "row ids", np.column_stack([np.arange(n) + 1e5, Z]), score
    seconds = 1.7e9 + 3e7 * rng.random(n)
    yield "Unix time", np.column_stack([seconds, Z]), score
    near = Z[:, :1] + 1e-6 * rng.normal(size=(n, 3))
    yield "near-collinear", np.column_stack([Z, near]), score
    yield "n < d", rng.normal(size=(n, 300)) * np.logspace(-2, 3, 300), score
    yield "all about 1e8", 1e8 * (Z + 3.0), score


def labels_of(score, n_classes):
    """As many examples of each class."""
    return np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def cut(rows, length=5):
    return [rows[i : i + length] for i in range(0, len(rows), length)]


def problems_of_kinds():
    """(title, estimators, [(name, X, y)]) of the eleven kinds."""
    of_three = [name for name in OF_KINDS if name not in FOR_TWO_CLASSES]
    of_chains = [name for name, (kind, _) in OF_KINDS.items() if kind in OF_ALL]
    for title, names, k in (
        ("two classes", list(OF_KINDS), 2),
        ("three classes", of_three, 3),
    ):
        yield title, names, [(name, X, labels_of(s, k)) for name, X, s in kinds()]
    yield (
        "chains of five",
        of_chains,
        [(name, cut(X), cut(labels_of(s, 3))) for name, X, s in kinds()],
    )


def measure_kinds(args):
    """Measure the fits that the results lack, and print the table of all."""
    for title, names, sets in problems_of_kinds():
        for (name, X, y), C, each in product(sets, CS, names):
            key = f"{title}; {name}; {C:g}; {each}"
            is_asked = any(own in each for own in args.only)
            is_asked &= args.sets in name and args.title in title
            if is_asked and key not in known_fits():
                fit = measured(each, X, y, args.limit, C=C)
                print(key, fit, file=sys.stderr)
                fits = known_fits() | {key: fit}
                results = {"circumstances": circumstances(__file__), "fits": fits}
                RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print_kinds(known_fits())


def known_fits():
    return json.loads(RESULTS.read_text())["fits"] if RESULTS.exists() else {}


def measured(name, X, y, limit, **params):
    """The cell of a fit and what it says; if it misses `tol`, also that of scaled X."""
    kind, own = OF_KINDS[name]
    said = []
    cell, is_good = told(kind, X, y, limit, said, **own, **params)
    fit = {"cell": cell, "is_good": is_good, "said": said}
    if not is_good:
        scaler = StandardScaler()
        scaler = SequenceTransformer(scaler) if isinstance(X, list) else scaler
        scaled = scaler.fit_transform(X)
        fit["scaled"], _ = told(kind, scaled, y, limit, [], **own, **params)
    return fit


def print_kinds(fits):
    for title, names, sets in problems_of_kinds():
        rows = []
        for name, _, _ in sets:
            keys = [[f"{title}; {name}; {C:g}; {each}" for C in CS] for each in names]
            cells = [[fits[k]["cell"] if k in fits else "?" for k in own] for own in keys]
            rows.append([name, *map(", ".join, cells)])
        print(f"{title}, C = 1e-3, 1 and 1e3:\n")
        print_table(["columns", *names], rows)
    missed = {key: fit for key, fit in fits.items() if not fit["is_good"]}
    for key, fit in missed.items():
        print(f"{key}: {fit['cell']}; scaled: {fit['scaled']}; {' '.join(fit['said'])}")
    print(f"{len(fits) - len(missed)} of {len(fits)} fits end within tol.")


def told(name, X, y, limit, said, **params):
    """One cell of the table; `said` gets what warnings and errors say."""
    model = placed(getattr(sklearn_structsvm, name))(max_time=limit, **params)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except Exception as error:
            said.append(f"{name}: {type(error).__name__}: {error}")
            return "error", False
    said += [f"{name}: {str(warning.message).splitlines()[0]}" for warning in caught]
    star = "*" * bool(caught)
    gap = getattr(model, "dual_gap_", None)
    if gap is None:
        return f"done{star}", True
    if gap > model.tol:
        return f"- ({gap:.2g}){star}", False
    return f"{model.n_iter_}{star}", True


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--sets", default="", help="only sets whose name has this")
    parser.add_argument("--kinds", action="store_true", help="eleven kinds of 200 rows")
    parser.add_argument("--only", nargs="*", default=[""], help="only such estimators")
    parser.add_argument("--title", default="", help="of these, only such problems")
    args = parser.parse_args()
    if args.kinds:
        measure_kinds(args)
        return
    groups = [
        ("rows", OF_ROWS, [*bundled(), *generated(), *stored(args.data)]),
        ("chains", OF_ALL, chains()),
        ("many labels", OF_LABELS, many_labels()),
    ]
    for title, names, sets in groups:
        rows, said, n_good = [], [], dict.fromkeys(names, 0)
        for name, X, y in sets:
            if args.sets in name:
                words = []
                cells = [told(each, X, y, args.limit, words) for each in names]
                rows.append([name, *(text for text, _ in cells)])
                print(*rows[-1], file=sys.stderr)
                said += [f"{name}; {each}" for each in dict.fromkeys(words)]
                for each, (_, is_good) in zip(names, cells, strict=True):
                    n_good[each] += is_good
        print(f"{title}: converged on {n_good}, of {len(rows)} sets.\n")
        print_table(["data", *names], rows)
        print("\n".join(said), "\n")


if __name__ == "__main__":
    main()
