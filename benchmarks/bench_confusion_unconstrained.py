"""Metrics without constraints on four multiclass sets (the paper's Tables 6 and 7).

Test losses (mean ± standard deviation over the splits) of the expected confusion matrix
of each randomized classifier; calls of the linear minimization oracle until the gap is
certified to be at most --tol (the most over the splits; a dash where it is not within
--calls); median seconds of the fits, the class probabilities being given: one logistic
regression behind StandardScaler for all. Seven tenths of each set are for training, drawn
without regard to the labels by the seeds 0, 1, ..., as in the paper's code, which does
not scale the features.

ours: ComplexMetricClassifier as it is; with the labels counted instead of the
    probabilities; with the paper's solvers, stopped at the gap or after --calls (the
    ellipsoid after a fifth of them); Frank-Wolfe with the steps 2 / (t + 1) and the best.
xCOLUMNs: Frank-Wolfe with its line search on a grid of 1000 steps, as by default. (Its
    ternary search stays at the start, where the loss is flat.)
paper's code: its solvers of the H-mean and of micro-F1. Frank-Wolfe and GDA have 5000
    calls, the ellipsoid --ellipsoid-calls of the 1000. The figures that the paper gives
    are of means and two standard errors, and for covtype of all 581,012 rows.

XCOLUMNS_PYTHON names an interpreter that has xcolumns (default: the one that runs this).
CONSTRAINED_CLASSIFICATION is the folder of the paper's code, which is skipped without it.
"""

import os

from _common import make_parser, np
from _confusion import (
    METRICS,
    MULTICLASS,
    Peer,
    balanced,
    fit_ours,
    largest_class,
    load_splits,
    loss,
    mean_std,
    median,
    metric_of,
    print_by_data,
    saved_splits,
    zero_one,
)

OURS = "ours"
LABELS = "ours, labels"
CONVEX = ["h_mean", "q_mean", "g_mean", "min_max"]
# Name: metrics, parameters, share of --calls. The paper's share for the ellipsoid is 0.2:
# each of its calls solves a program of its own.
SOLVERS = {
    "frank_wolfe": (CONVEX, {"solver_options": {"step": "paper"}}, 1.0),
    "frank_wolfe, line search": (CONVEX, {}, 1.0),
    "gda": (CONVEX, {}, 1.0),
    "ellipsoid": (CONVEX, {}, 0.2),
    "bisection": (["micro_f1"], {}, 1.0),
}
PAPERS_CODE = {
    "paper_frank_wolfe": "h_mean",
    "paper_gda": "h_mean",
    "paper_ellipsoid": "h_mean",
    "paper_bisection": "micro_f1",
}
# Tables 6 and 7 of the paper.
PAPER = {
    "h_mean": {
        "paper: plug-in, 0-1": [
            "1.0 ± 0.0", "0.416 ± 0.128", "0.279 ± 0.01", "1.0 ± 0.0"
        ],
        "paper: plug-in, balanced": [
            "0.890 ± 0.038", "0.130 ± 0.034", "0.173 ± 0.008", "0.507 ± 0.001"
        ],
        "paper: TFCO": [
            "0.824 ± 0.018", "0.200 ± 0.023", "0.170 ± 0.006", "0.469 ± 0.001"
        ],
        "paper: Frank-Wolfe": [
            "0.816 ± 0.020", "0.120 ± 0.028", "0.171 ± 0.007", "0.463 ± 0.001"
        ],
        "paper: GDA": ["0.818 ± 0.017", "0.130 ± 0.04", "0.173 ± 0.008", "0.463 ± 0.001"],
        "paper: ellipsoid": [
            "0.817 ± 0.019", "0.110 ± 0.025", "0.170 ± 0.006", "0.461 ± 0.001"
        ],
    },
    "micro_f1": {
        "paper: plug-in, 0-1": [
            "0.713 ± 0.006", "0.218 ± 0.012", "0.180 ± 0.005", "0.548 ± 0.001"
        ],
        "paper: plug-in, balanced": [
            "0.760 ± 0.004", "0.441 ± 0.033", "0.185 ± 0.007", "0.625 ± 0.003"
        ],
        "paper: TFCO": [
            "0.728 ± 0.012", "0.216 ± 0.018", "0.234 ± 0.003", "0.486 ± 0.001"
        ],
        "paper: bisection": [
            "0.693 ± 0.006", "0.211 ± 0.016", "0.180 ± 0.005", "0.403 ± 0.001"
        ],
    },
}  # fmt: skip


def our_runs(splits, metric, args):
    """The runs of each of our variants, by name."""
    variants = {OURS: {}, LABELS: {"confusion": "labels"}}
    for name, (metrics, params, share) in SOLVERS.items():
        if metric in metrics and name in args.solvers:
            solver = name.partition(",")[0]
            max_iter = int(share * args.calls)
            variants[f"ours, {name}"] = {"solver": solver, "max_iter": max_iter, **params}
    return {
        name: [fit_ours(split, metric, tol=args.tol, **params)[0] for split in splits]
        for name, params in variants.items()
    }


def peer_runs(path, metric, default, peers, args):
    """The runs of each peer on the saved splits, by name."""
    found, options = {}, {"default_class": default}
    if "xcolumns" in peers:
        found["xCOLUMNs"] = peers["xcolumns"].runs(path, "xcolumns", metric, **options)
    if "paper" in peers:
        for method, of in PAPERS_CODE.items():
            limit = {}
            if method == "paper_ellipsoid":
                limit = {"calls": args.ellipsoid_calls}
            if of == metric:
                name = f"paper's code: {method[6:]}"
                runs = peers["paper"].runs(path, method, metric, **options, **limit)
                found[name] = runs
    return found


def measure(metric, splits, peers, args):
    """{method: runs} of a metric on a data set."""
    # The first fit of a process pays for imports.
    fit_ours(splits[0], metric)
    runs = our_runs(splits, metric, args)
    with saved_splits(splits) as path:
        runs |= peer_runs(path, metric, largest_class(splits[0]), peers, args)
    runs["plug-in, 0-1"] = [zero_one(split) for split in splits]
    runs["plug-in, balanced"] = [balanced(split) for split in splits]
    return runs


def print_metric(name, results, args):
    """Tables of losses, calls, seconds and ratios of seconds for one metric.

    Parameters
    ----------
    results : dict of {data: (metric, {method: runs})}
    """
    losses, calls, seconds, ratios = {}, {}, {}, {}
    for data, (metric, runs) in results.items():
        our_seconds = median([run.seconds for run in runs[OURS]])
        for method, of_splits in runs.items():
            if not of_splits:
                continue
            values = [loss(metric, run.test) for run in of_splits]
            losses.setdefault(method, {})[data] = mean_std(values)
            took = median([run.seconds for run in of_splits])
            if np.isfinite(took):
                seconds.setdefault(method, {})[data] = took
                ratios.setdefault(method, {})[data] = took / our_seconds
            if method.startswith("ours") and method != LABELS:
                certified = all(run.gap <= args.tol for run in of_splits)
                most = max(run.calls for run in of_splits)
                calls.setdefault(method, {})[data] = most if certified else "-"
    for method, figures in PAPER.get(name, {}).items():
        losses[method] = dict(zip(MULTICLASS, figures, strict=True))
    columns = list(results)
    print_by_data(f"{name}: test loss", losses, columns)
    print_by_data(f"{name}: calls to a certified gap of {args.tol:g}", calls, columns)
    print_by_data(f"{name}: seconds of a fit", seconds, columns)
    print_by_data(f"{name}: times our seconds", ratios, columns)


def print_summary(results):
    """How far our test losses are above the least other one, in standard deviations."""
    cells = {}
    for name, of_metric in results.items():
        for data, (metric, runs) in of_metric.items():
            values = {
                method: [loss(metric, run.test) for run in of_splits]
                for method, of_splits in runs.items()
                if of_splits
            }
            least = min(
                (m for m in values if not m.startswith("ours")),
                key=lambda method: np.mean(values[method]),
            )
            for ours in (OURS, LABELS):
                above = np.mean(values[ours]) - np.mean(values[least])
                row = cells.setdefault(f"{name}: {ours}", {})
                row[data] = f"{above / np.std(values[ours]):+.2f} ({least})"
    title = "Our mean test loss less the best of the others, in our standard deviations"
    print_by_data(title, cells, list(next(iter(results.values()))))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=MULTICLASS)
    parser.add_argument("--metrics", nargs="+", default=METRICS)
    parser.add_argument("--solvers", nargs="*", default=list(SOLVERS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--calls", type=int, default=5000, help="of the paper's solvers")
    parser.add_argument("--ellipsoid-calls", type=int, default=200)
    args = parser.parse_args()
    names = ["xcolumns"]
    if os.environ.get("CONSTRAINED_CLASSIFICATION"):
        names.append("paper")
    else:
        print("[skipped the paper's code: set CONSTRAINED_CLASSIFICATION]\n")
    peers = {name: Peer(name) for name in names}
    sets = {name: load_splits(name, args.data, args.splits) for name in args.sets}
    sets = {name: splits for name, splits in sets.items() if splits}
    results = {}
    for metric in args.metrics if sets else ():
        results[metric] = {
            name: (metric_of(metric, splits[0]), measure(metric, splits, peers, args))
            for name, splits in sets.items()
        }
        print_metric(metric, results[metric], args)
    if results:
        print_summary(results)


if __name__ == "__main__":
    main()
