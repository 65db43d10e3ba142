"""Raw columns, few weights, large C: the default call beside blocks and planes alone.

Calls of the oracle for each example until the certified gap is --tol, or a dash with the
gap that is left after 1,000 passes or --limit seconds. "default": BCFWClassifier with its
defaults. "blocks": its steps without cutting planes, which was the default before.
"planes": BMRMClassifier with the same structure. Blocks alone fail on the first
sets; the others were chosen afterwards, to see whether the default fails on any.

With --others passes of the other estimators' defaults, with the solver that they took.
"""

import sys

from _common import (
    ChainStructure,
    data_file,
    fit_quietly,
    make_parser,
    np,
    placed,
    print_table,
    sparse,
)
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import scale

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.structures import (
    GraphStructure,
    MultilabelStructure,
    grid_edges,
)


def rows_of_the_table():
    """(name, X, y, C) of rows."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2000, 3))
    noise = 0.3 * rng.normal(size=2000)
    sign = (Z[:, 0] + noise > 0).astype(int)
    three = np.digitize(Z[:, 0] + noise, [-0.5, 0.5])
    wine, cancer, iris = (
        load(return_X_y=True) for load in (load_wine, load_breast_cancer, load_iris)
    )
    yield "wine, raw", *wine, 1.0
    yield "breast cancer, raw", *cancer, 1.0
    yield "iris, C=1e3", *iris, 1e3
    yield "3 features about 40, C=10", Z + 40, sign, 10.0
    yield "the same, 3 classes", Z + 40, three, 10.0
    columns = Z * [1.0, 1e3, 1e6] + [5.0, 0.0, 1e6]
    yield "columns from 1 to 1e6", columns, sign, 1.0
    yield "wine, scaled", scale(wine[0]), wine[1], 1.0
    yield "breast cancer, scaled", scale(cancer[0]), cancer[1], 1.0


def chains_of_the_table():
    def chains(n, n_features, offset=0.0, scales=1.0):
        X, y = make_chains(n, n_features=n_features, n_classes=3, random_state=0)
        return [np.asarray(x) * scales + offset for x in X], y

    yield "chains, 2 features, C=10", *chains(150, 2), 10.0
    yield "chains, 4 about 30", *chains(150, 4, 30.0), 1.0
    scales = np.logspace(0, 3, 4), np.logspace(0, 4, 4)
    yield "chains, scales 1 to 1e3, C=.01", *chains(150, 4, 0.0, scales[0]), 0.01
    yield "chains, 10 features, C=.1", *chains(150, 10), 0.1
    yield "chains, 4 about 30, n=400", *chains(400, 4, 30.0), 1.0
    yield "chains, 1 to 1e4, n=400, C=.01", *chains(400, 4, 0.0, scales[1]), 0.01
    yield "chains, 2 features, n=400, C=100", *chains(400, 2), 100.0


def grids():
    """6 x 6 images of four squares of three labels each, with noise."""
    rng, edges = np.random.default_rng(0), grid_edges((6, 6))
    X, y = [], []
    for _ in range(200):
        labels = np.kron(rng.integers(0, 3, size=(2, 2)), np.ones((3, 3), int)).ravel()
        X.append((np.eye(3)[labels] + rng.normal(size=(36, 3)), edges))
        y.append(labels)
    return X, y


def amounts(n=3000):
    """Amounts of money and an age beside the indicators of thirty places."""
    rng = np.random.default_rng(1)
    income, debt = rng.lognormal(10, 1, n), rng.lognormal(7, 2, n)
    age, place = rng.integers(18, 90, n), rng.integers(0, 30, n)
    score = np.log(income) - 10 - 0.5 * (np.log(debt) - 7) + (age - 50) / 20
    score += rng.normal(size=30)[place] + rng.normal(size=n)
    X = np.column_stack([income, debt, age, np.eye(30)[place]])
    return X, (score > 0).astype(int)


def counts(n=1500, n_words=3000):
    """Counts of words in texts of four topics, of very different lengths."""
    rng = np.random.default_rng(2)
    base = 1.0 / np.arange(1, n_words + 1)
    topics = base * np.exp(0.7 * rng.normal(size=(4, n_words)))
    topics /= topics.sum(axis=1, keepdims=True)
    y = rng.integers(0, 4, n)
    lengths = np.minimum(rng.lognormal(4.5, 1.0, n).astype(int) + 3, 5000)
    rows = [rng.multinomial(m, topics[c]) for m, c in zip(lengths, y, strict=True)]
    return sparse.csr_matrix(np.array(rows, dtype=float)), y


def other_rows(home):
    yield "amounts beside indicators", *amounts(), 1.0
    yield "counts of words", *counts(), 1.0
    diabetes = load_diabetes(scaled=False)
    yield "diabetes, raw", diabetes.data, (diabetes.target > 140).astype(int), 1.0
    yield "iris, raw", *load_iris(return_X_y=True), 1.0
    yield "iris, C=1e5", *load_iris(return_X_y=True), 1e5
    for name in ("pageblocks", "abalone", "satimage", "lawschool", "covtype7"):
        path = data_file(home, name, f"{name}.npz")
        if path is not None:
            with np.load(path) as data:
                yield f"{name}, as it is", data["X"], data["y"], 1.0
    for name in ("yeast", "scene"):
        path = data_file(home, name, "data.npz")
        if path is not None:
            with np.load(path) as data:
                yield f"{name}, as it is", data["X_train"], data["Y_train"], 1.0


def works(home):
    """(name, structure, X, y, C); without a structure for rows of one label."""
    for name, X, y, C in rows_of_the_table():
        yield name, None, X, y, C
    for name, X, y, C in chains_of_the_table():
        yield name, ChainStructure(), X, y, C
    for C in (10.0, 1000.0):
        yield f"6 x 6 grids, n=200, C={C:g}", GraphStructure(), *grids(), C
    for name, X, y, C in other_rows(home):
        yield name, None if np.ndim(y) == 1 else MultilabelStructure(), X, y, C


def told(model, n, tol):
    """Calls for each example or the gap that is left, and seconds."""
    calls = f"{model.n_oracle_calls_ / n:.0f}"
    if model.dual_gap_ > tol:
        calls = f"- ({model.dual_gap_:.2g})"
    return [calls, model.history_["seconds"][-1]]


def measure_others(args):
    """Print the passes of the other estimators."""
    kinds = {
        "CRF": (CRFClassifier, {}),
        "SubLBFGS": (SubLBFGSClassifier, {}),
        "slack rescaling": (SlackRescaledSSVM, {}),
        "the same, n-slack": (SlackRescaledSSVM, {"solver": "cutting_plane"}),
        "one-slack": (SlackRescaledSSVM, {"solver": "one_slack"}),
    }
    rows = []
    for name, structure, X, y, C in [*works(None)][:15]:
        row = [name]
        for Classifier, params in kinds.values():
            params = params | {"C": C, "tol": args.tol, "max_time": args.limit}
            if Classifier is not SubLBFGSClassifier:
                params["random_state"] = 0
            if structure is not None:
                params["structure"] = structure
            if Classifier is SubLBFGSClassifier and structure is not None:
                row.append("")
                continue
            model = fit_quietly(placed(Classifier)(**params), X, y)
            is_done = model.dual_gap_ <= args.tol
            passes = model.n_iter_ if is_done else f"- ({model.dual_gap_:.2g})"
            row.append(f"{getattr(model, 'solver_', '')} {passes}".strip())
        rows.append(row)
    print_table(["data", *kinds], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.others:
        measure_others(args)
        return
    rows = []
    for name, structure, X, y, C in works(args.data):
        n = len(y)
        kinds = [
            (BCFWClassifier, {}, n),
            (BCFWClassifier, {"acceleration": True}, n),
            # Without a structure a call is about all rows.
            (BMRMClassifier, {}, 1 if structure is None else n),
        ]
        row = [name]
        for Classifier, params, n_examples in kinds:
            params |= {"C": C, "tol": args.tol, "max_time": args.limit}
            if structure is not None:
                params["structure"] = structure
            fits = []
            for seed in range(args.repeats):
                model = placed(Classifier)(**params, random_state=seed)
                fit_quietly(model, X, y)
                fits.append((model.dual_gap_ > args.tol, model.n_oracle_calls_, model))
            fits.sort(key=lambda fit: fit[:2])
            row += told(fits[len(fits) // 2][-1], n_examples, args.tol)
        rows.append(row)
        print(*row, file=sys.stderr)
    header = ["data", "default", "s", "blocks", "s", "planes", "s"]
    print_table(header, rows)


if __name__ == "__main__":
    main()
