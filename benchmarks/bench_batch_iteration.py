"""What an iteration of SubLBFGSClassifier costs beside one X @ W and one X.T @ G.

The problems are a generated dense one of 60,000 x 784 and 10 classes, topics of news
(58 classes) and places of news (two), both sparse. An iteration is a mean over a fit of
at most --iterations, line search, direction finding, planes, the bundle's program and
the checks of the gap included; "median" is of the times between two checks. The products
are NumPy's and SciPy's of one thread, the median of several before and after each fit.

A fit ends when its gap is --rtol of the objective. "steps" names the method: the hybrid,
which changes to bundle steps, or subLBFGS alone. None of them starts in the dual, as
the default does.

The last table has the seconds of the first problem's fits with n_jobs=2 and 1. With
--workers 1 2 a table comes first for the master and worker form of section 8 of Yu et
al.: wall seconds of an iteration in this process, and on Dask clusters of 1 and 2
processes that have their rows already. --only-workers leaves out the rest.
"""

import sys
from time import perf_counter

from _batch import METHODS, Problem, fit, load_problems
from _common import make_parser, np, print_table

N_FEATURES, N_CLASSES = 784, 10
# Of the classes' noise to their scores: some rows are wrong at the optimum.
NOISE = 0.5
STEPS = ["SubLBFGS, hybrid", "subLBFGS alone"]


def generated(n_samples):
    """A dense problem, rows of length about 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, N_FEATURES))
    X /= np.sqrt(N_FEATURES)
    scores = X @ rng.standard_normal((N_FEATURES, N_CLASSES))
    y = np.argmax(scores + NOISE * rng.gumbel(size=scores.shape), axis=1)
    return Problem("generated", X, y.astype(np.intc))


def product_seconds(problem, repeats):
    """Seconds of X @ W and X.T @ G, one of each, several times."""
    X, rng = problem.X, np.random.default_rng(0)
    k = () if problem.kind == "binary" else (problem.y.max() + 1,)
    W = rng.standard_normal((X.shape[1], *k))
    G = rng.standard_normal((X.shape[0], *k))
    times = []
    for _ in range(repeats):
        start = perf_counter()
        X @ W
        X.T @ G
        times.append(perf_counter() - start)
    return times


def run(method, problem, lam, args, n_jobs=None):
    """History of a fit to a gap of `--rtol` of the objective."""
    limits = {"max_time": args.max_time, "max_iter": args.iterations, "n_jobs": n_jobs}
    # The first only for the scale of the objective.
    scale = fit(method, problem, lam, tol=0.1, **limits).objective_
    return fit(method, problem, lam, tol=args.rtol * scale, **limits).history_


def cost(method, problem, lam, args):
    """Iterations, their mean and median cost in milliseconds, that of the products."""
    products = product_seconds(problem, args.repeats)
    history = run(method, problem, lam, args)
    products += product_seconds(problem, args.repeats)
    seconds, n_iter = np.diff(history["seconds"]), np.diff(history["n_iter"])
    seconds, n_iter = seconds[n_iter > 0], n_iter[n_iter > 0]
    mean = seconds.sum() / n_iter.sum()
    product = np.median(products)
    median = np.median(np.repeat(seconds / n_iter, n_iter))
    ms = [1e3 * product, 1e3 * mean, 1e3 * median]
    return [int(n_iter.sum()), *map(float, ms), float(mean / product)]


def threads(problem, lam, args):
    """Seconds of an iteration with one thread and two, and their ratio."""
    for method in args.thread_steps:
        times = []
        for n_jobs in (1, 2):
            history = run(method, problem, lam, args, n_jobs)
            times.append(history["seconds"][-1])
        yield [problem.name, method, *map(float, times), float(times[0] / times[1])]


def by_workers(problem, lam, args):
    """Iterations and wall seconds of one, in this process and on so many workers."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster, wait

    for method in args.steps:
        # No gap is reached: all make as many iterations, and the first is not counted.
        limits = {"tol": 0.0, "max_time": args.max_time, "max_iter": args.iterations}
        history = fit(method, problem, lam, **limits).history_
        alone = per_iteration(history)
        yield [
            problem.name,
            method,
            "this process",
            int(history["n_iter"][-1]),
            alone,
            1.0,
        ]
        for count in args.workers:
            options = {"n_workers": count, "threads_per_worker": 1}
            with LocalCluster(**options) as cluster, Client(cluster):
                rows = -(-problem.n_samples // count)
                X = da.from_array(problem.X, chunks=(rows, -1)).persist()
                y = da.from_array(problem.y, chunks=rows).persist()
                wait([X, y])
                history = fit(method, problem._replace(X=X, y=y), lam, **limits).history_
            seconds = per_iteration(history)
            yield [
                problem.name, method, f"{count} workers", int(history["n_iter"][-1]),
                seconds, alone / seconds,
            ]  # fmt: skip


def per_iteration(history):
    """Wall seconds, from the first check after the start on."""
    return float(
        (history["seconds"][-1] - history["seconds"][1])
        / (history["n_iter"][-1] - history["n_iter"][1])
    )


def main():
    parser = make_parser(__doc__)
    parser.add_argument(
        "--samples", type=int, default=60_000, help="of the dense problem"
    )
    parser.add_argument("--problems", nargs="*", default=["reuters-58", "reuters_usa"])
    parser.add_argument("--steps", nargs="+", default=STEPS, choices=METHODS)
    parser.add_argument("--thread-steps", nargs="+", default=["SubLBFGS", *STEPS])
    parser.add_argument("--lams", type=float, nargs="+", default=[1e-3, 1e-4, 1e-5])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--max-time", type=float, default=60.0, help="of a fit")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=10, help="of the products")
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--only-workers", action="store_true")
    args = parser.parse_args()
    dense = generated(args.samples)
    if args.workers:
        rows = by_workers(dense, args.lams[-1], args)
        header = ["data", "steps", "where", "iterations", "s an iteration", "speed-up"]
        print_table(header, rows)
    if args.only_workers:
        return
    rows = [
        [p.name, f"{lam:g}", method, *cost(method, p, lam, args)]
        for p in (dense, *load_problems(args.problems, args.data))
        for lam in args.lams
        for method in args.steps
    ]
    header = ["data", "lambda", "steps", "iterations", "ms of the products"]
    header += ["ms of an iteration", "median", "ratio of the mean"]
    print_table(header, rows)
    print("Two threads: seconds of a fit\n")
    rows = threads(dense, args.lams[-1], args)
    print_table(["data", "steps", "n_jobs=1", "n_jobs=2", "ratio"], rows)


if __name__ == "__main__":
    sys.exit(main())
