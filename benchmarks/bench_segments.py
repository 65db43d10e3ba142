"""What do least lengths of segments and windows cost?

`min_length` beside plain probabilities: T rows, K labels, segments of at least L rows. A
step is one addition of scores. For each row and label there are K + L of them: what goes
on, what other runs hand over, and the first L rows of a run. Then WindowFeatures: numbers
in and out, by the length of the window; means and deviations take log2(length) merges of
each number.
"""

from time import process_time

from _common import fit_quietly, make_parser, np, print_table

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.preprocessing import WindowFeatures
from sklearn_structsvm.structures import ChainStructure


def seconds(repeats, call, *args, **options):
    taken = []
    for _ in range(repeats):
        start = process_time()
        call(*args, **options)
        taken.append(process_time() - start)
    return float(np.median(taken))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    args = parser.parse_args()
    rng, rows = np.random.default_rng(0), []
    for k in (4, 20):
        y = [np.r_[np.arange(k), rng.integers(k, size=200)] for _ in range(5)]
        X = [np.log(rng.dirichlet(np.ones(k), size=len(own))) for own in y]
        model = CRFClassifier(ChainStructure(emission="given"), max_iter=5, tol=1.0)
        fit_quietly(model, X, y)
        for n in args.rows:
            x = [np.log(rng.dirichlet(np.ones(k), size=n))]
            plain = seconds(args.repeats, model.predict_proba, x)
            for least in (2, 10, 100):
                best, proba = (
                    seconds(args.repeats, ask, x, min_length=least)
                    for ask in (model.predict, model.predict_proba)
                )
                steps = n * k * (k + least)
                rows.append([n, k, least, plain, best, proba, f"{steps:.2g}",
                             1e9 * best / steps, 1e9 * proba / steps])  # fmt: skip
    print("Least lengths:\n")
    print_table(
        ["T", "K", "L", "s plain probabilities", "s labels", "s probabilities", "steps",
         "ns a step, labels", "ns a step, probabilities"], rows,
    )  # fmt: skip
    rows = []
    for n in args.rows:
        X = [rng.normal(size=(n // 10, 10)).astype(np.float32) for _ in range(10)]
        for length in (5, 100, 1000):
            windows = WindowFeatures(1, 1, statistics={"mean": length, "std": length})
            windows.fit(X)
            taken = seconds(args.repeats, windows.transform, X)
            rows.append([n, length, 10 * n, 50 * n, taken, 1e9 * taken / (50 * n)])
    print("Windows over 10 columns:\n")
    print_table(["rows", "length", "numbers in", "numbers out", "s", "ns a number"], rows)


if __name__ == "__main__":
    main()
