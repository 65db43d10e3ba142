"""How the cost grows: seconds of a pass against n, T and K, peak memory against d.

Beside seconds and memory stands what linear growth from the first line would give. A pass
costs n T (F K + K^2) operations, so against K it should grow by that.
"""

import json
import sys

from _common import (
    chain_classifier,
    fetch_ocr_letters,
    fit_quietly,
    make_parser,
    np,
    pass_seconds,
    peak_megabytes,
    print_table,
    run_lines,
    sparse,
)

from sklearn_structsvm.datasets import make_chains

PLAIN = {"C": 1.0, "step": "fw", "sampling": "permuted", "acceleration": False}
N, T, F, K = 500, 10, 100, 20


def median_seconds(X, y, args):
    seconds = [
        pass_seconds(X, y, args.passes, random_state=seed, **PLAIN)
        for seed in range(args.repeats)
    ]
    return float(np.median(seconds))


def print_growth(name, sizes, work, values, unit):
    """Values beside those that grow as the work, from the first one on."""
    linear = values[0] * np.divide(work, work[0])
    print_table(
        [name, unit, "if linear", "ratio"],
        [
            [s, float(v), float(e), float(v / e)]
            for s, v, e in zip(sizes, values, linear, strict=True)
        ],
    )


def against_n(args):
    words = fetch_ocr_letters(subset="large", data_home=args.data)
    sizes, work, seconds = [], [], []
    for last in range(1, 10):
        chosen = np.flatnonzero(words.fold <= last)
        X, y = [words.data[i] for i in chosen], [words.target[i] for i in chosen]
        sizes.append(len(X))
        work.append(sum(map(len, X)))
        seconds.append(median_seconds(X, y, args))
    print_growth("n (OCR folds 1, 1-2, ...)", sizes, work, seconds, "s a pass")


def against_length(args):
    sizes, seconds = (5, 10, 20, 40, 80, 160), []
    for length in sizes:
        X, y = make_chains(
            N,
            n_features=F,
            n_classes=K,
            min_length=length,
            max_length=length,
            random_state=0,
        )
        seconds.append(median_seconds(X, y, args))
    print_growth("T", sizes, sizes, seconds, "s a pass")


def against_labels(args):
    sizes, seconds = (5, 10, 20, 40, 80, 160), []
    for labels in sizes:
        X, y = make_chains(
            N,
            n_features=F,
            n_classes=labels,
            min_length=T,
            max_length=T,
            random_state=0,
        )
        seconds.append(median_seconds(X, y, args))
    work = [k * (2 * 2 * F + 2 * k) for k in sizes]
    print_growth("K", sizes, work, seconds, "s a pass")


def peak_of_fit(n_features):
    """The child process: memory that a fit adds to that of its small data."""
    rng = np.random.RandomState(0)
    ones, indptr = np.ones(10 * T), np.arange(0, 10 * T + 1, 10)
    X, y = [], [rng.randint(K, size=T) for _ in range(N)]
    for _ in range(N):
        columns = rng.randint(n_features, size=10 * T)
        X.append(sparse.csr_array((ones, columns, indptr), shape=(T, n_features)))
    before = peak_megabytes()
    model = fit_quietly(chain_classifier(tol=0.0, max_iter=3, **PLAIN), X, y)
    facts = {"added": peak_megabytes() - before, "n_weights": model.coef_.size}
    print(json.dumps(facts))


def against_weights(args):
    rows = []
    for n_features in (10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6):
        command = [sys.executable, __file__, "--child", n_features]
        facts = run_lines(command)[0]
        size = facts["n_weights"] * 8 / 2**20
        rows.append([facts["n_weights"], size, facts["added"], facts["added"] / size])
    print_table(["d", "w in MB", "peak of the fit, MB", "times w"], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--passes", type=int, default=20, help="of one timing")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    against_n(args)
    against_length(args)
    against_labels(args)
    against_weights(args)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(peak_of_fit(int(sys.argv[2])))
    sys.exit(main())
