"""Threads and workers beside one thread: wall seconds and passes to a gap.

Wall seconds of whole fits, medians of --repeats rounds, one thread and several in turn.
With --busy one process for each core counts beside them and keeps it busy. With --workers
fits on a Dask LocalCluster with that many workers follow; these have their parts already.
--only takes the problems whose names begin with it.
"""

import os
import sys
from multiprocessing import Process
from time import perf_counter

from _common import ChainStructure, fit_quietly, load_ocr, make_parser, np, print_table
from scipy.optimize import linear_sum_assignment

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SlackRescaledSSVM
from sklearn_structsvm.datasets import fetch_conll2000
from sklearn_structsvm.structures import Structure


class Matching(Structure):
    """The structure of the example of a structure in Python."""

    def joint_feature(self, x, y):
        first, second = x
        return -((first - second[y]) ** 2).sum(axis=0)

    def loss(self, y_true, y):
        return float(np.mean(y_true != y))

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        first, second = x
        scores = -((first[:, np.newaxis] - second) ** 2) @ w + lam / len(y_true)
        scores[np.arange(len(y_true)), y_true] -= lam / len(y_true)
        return linear_sum_assignment(scores, maximize=True)[1]


def make_matchings(n, n_points, n_entries):
    rng = np.random.default_rng(0)
    noise = np.geomspace(0.3, 5.0, n_entries)
    X, y = [], []
    for _ in range(n):
        first = rng.normal(size=(n_points, n_entries))
        y.append(rng.permutation(n_points))
        second = np.empty_like(first)
        second[y[-1]] = first + noise * rng.normal(size=first.shape)
        X.append((first, second))
    return X, y


def works(args):
    """(name, estimator, X, y, λ, gap)"""
    X, y = make_matchings(300, 100, 12)
    yield "matchings, 0.1", BCFWClassifier(Matching()), X, y, 0.1, 1e-3
    small, large = (load_ocr(subset, args.data) for subset in ("small", "large"))
    chain = {"structure": ChainStructure()}
    yield "OCR-small, 0.01", BCFWClassifier(**chain), *small, 0.01, 1e-3
    slack = SlackRescaledSSVM(**chain)
    yield "OCR-small slack, 0.01", slack, *small, 0.01, 1e-3
    for name, lam in (("0.001", 1e-3), ("1/n", 1 / len(large[0]))):
        yield f"OCR-large, {name}", BCFWClassifier(**chain), *large, lam, 1e-2
    X, y = fetch_conll2000(data_home=args.data, return_X_y=True)
    yield "CoNLL-2000, C = 0.1", BCFWClassifier(**chain), X, y, 10.0 / len(X), 1e-2
    # C = 1/2 is c2 = 1 of CRFsuite.
    sets = {"OCR-small": small, "OCR-large": large, "CoNLL-2000": (X, y)}
    for name, data in sets.items():
        lam = 2.0 / len(data[0])
        yield f"CRF, {name}, C = 0.5", CRFClassifier(**chain), *data, lam, 1e-3


def fit_once(model, X, y, n, lam, gap, **options):
    """Wall seconds and passes."""
    model = type(model)(**model.get_params(deep=False))
    model.set_params(C=1.0 / (lam * n), tol=gap, random_state=0, **options)
    started = perf_counter()
    fit_quietly(model, X, y)
    return perf_counter() - started, model.n_iter_


def by_threads(args):
    counts = [1, *args.threads]
    rows = []
    for name, model, X, y, lam, gap in works(args):
        found = {k: [] for k in counts}
        if not name.startswith(args.only):
            continue
        for _ in range(args.repeats):
            for k, facts in found.items():
                facts.append(fit_once(model, X, y, len(X), lam, gap, n_jobs=k))
        medians = [np.median(found[k], axis=0) for k in counts]
        ratios = [medians[0][0] / m[0] for m in medians[1:]]
        rows.append([name, *np.ravel(medians), *ratios])
        print(*rows[-1], file=sys.stderr)
    each = [f"{k} threads, s|passes".split("|") for k in counts]
    ratios = [f"ratio of {k}" for k in counts[1:]]
    print_table(["data, λ", *sum(each, []), *ratios], rows)


def by_workers(args):
    import dask.bag as db
    from dask.distributed import Client, LocalCluster, wait

    rows = []
    options = {"n_workers": args.workers, "threads_per_worker": 1}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for name, model, X, y, lam, gap in works(args):
            if not name.startswith(args.only):
                continue
            alone = fit_once(model, X, y, len(X), lam, gap)
            # Words come sorted by what they are.
            order = np.random.default_rng(0).permutation(len(X))
            shuffled = [[data[i] for i in order] for data in (X, y)]
            parts = [
                db.from_sequence(data, npartitions=args.workers).persist()
                for data in shuffled
            ]
            wait(parts)
            together = fit_once(model, *parts, len(X), lam, gap)
            rows.append([name, *alone, *together, alone[0] / together[0]])
            print(*rows[-1], file=sys.stderr)
            del parts
        client.close()
    names = ["one process, s", "passes", f"{args.workers} workers, s", "passes", "ratio"]
    print_table(["data, λ", *names], rows)


def count():
    while True:
        sum(range(10**6))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="*", default=[2])
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--busy", action="store_true")
    args = parser.parse_args()
    others = [Process(target=count, daemon=True) for _ in range(os.cpu_count())]
    for other in others if args.busy else []:
        other.start()
    by_threads(args)
    if args.workers:
        by_workers(args)
    for other in others if args.busy else []:
        other.terminate()


if __name__ == "__main__":
    main()
