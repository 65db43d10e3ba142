"""Default fits of every estimator on data as people have them.

Raw columns of very different sizes, amounts beside indicators, counts that nothing
divides, constant and repeated columns, rare classes, other types than float64, data
frames, chains and many labels. No rule of a solver was chosen on these sets.

For each set, and each estimator with its default parameters: passes until the gap is at
most its `tol`, or a dash with the gap that is left after its `max_iter` passes or --limit
seconds. A star says that there was a warning. Then what warnings and errors say, and on
how many sets each estimator converges.
"""

import sys
import warnings

import pandas as pd
from _common import data_file, make_parser, np, print_table, sparse
from sklearn import datasets

import sklearn_structsvm
from sklearn_structsvm.datasets import make_chains

OF_ALL = ["BCFWClassifier", "CRFClassifier", "BMRMClassifier", "SlackRescaledSSVM"]
OF_ROWS = [*OF_ALL, "SubLBFGSClassifier", "ComplexMetricClassifier"]
OF_LABELS = [*OF_ALL, "MultilabelMetricClassifier"]
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


def told(name, X, y, limit, said):
    """One cell of the table; `said` gets what warnings and errors say."""
    model = getattr(sklearn_structsvm, name)(max_time=limit)
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
    args = parser.parse_args()
    kinds = [
        ("rows", OF_ROWS, [*bundled(), *generated(), *stored(args.data)]),
        ("chains", OF_ALL, chains()),
        ("many labels", OF_LABELS, many_labels()),
    ]
    for title, names, sets in kinds:
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
