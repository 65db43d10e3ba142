"""Losses against calls of the linear minimization oracle (the paper's Figures 10 to 12).

min_max, h_mean (Figures 10 and 11): losses after that many iterations of a solver, with
    one call of the oracle each. Training losses are the solvers' own, under the class
    probabilities, above a dashed line that no classifier can go below (certified to
    1e-5); test losses are of the labels. Frank-Wolfe has the paper's steps, 2 / (t + 1).
coverage (Figure 12): the same of the H-mean under coverage within 0.01, and how far the
    shares of the test predictions are from those of the classes.
refit (Tables 8 and 12): test losses of the H-mean after --refit-calls of an oracle that
    fits a logistic regression to weighted examples, beside the plug-in rule.

Means over --splits; the refits have --refit-splits. Writes figures/confusion_calls.png.
"""

from _common import HERE, make_axes, make_parser, np, print_table, save_figure
from _confusion import (
    COVERAGE_SLACK,
    coverage,
    fit_ours,
    load_splits,
    loss,
    mean_std,
    print_by_data,
    violation,
)

SOLVERS = {
    "column_generation": "column generation (auto)",
    "frank_wolfe": "Frank-Wolfe",
    "gda": "GDA",
    "ellipsoid": "ellipsoid",
}
COLORS = dict(zip(SOLVERS, ["C3", "C0", "C1", "C2"], strict=True))
MARKERS = dict(zip(SOLVERS, "os^D", strict=True))
TASKS = {
    "min_max": ("min_max", None),
    "h_mean": ("h_mean", None),
    "coverage": ("h_mean", coverage()),
}
CALLS = [2, 5, 10, 20, 50, 100, 200, 500, 1000]
EXACTLY = 1e-5  # gap of what is drawn as optimum
NO_GAP = 1e-9  # that a solver goes on to its limit
# Tables 8 and 12 of the paper: (plug-in, refitted) by calls, solver and data set.
REFIT_SETS = ["abalone", "pageblocks", "satimage", "covtype7"]
PAPER = {
    (20, "frank_wolfe"): "0.797 0.791  0.13 0.084  0.174 0.171  0.468 0.453",
    (20, "gda"): "0.892 0.838  0.129 0.083  0.173 0.176  0.488 0.453",
    (20, "ellipsoid"): "0.833 0.833  0.105 0.080  0.168 0.167  0.463 0.447",
    (100, "frank_wolfe"): "0.812 0.798  0.127 0.079  0.171 0.170  0.466 0.450",
    (100, "gda"): "0.841 0.837  0.122 0.084  0.171 0.170  0.463 0.447",
    (100, "ellipsoid"): "0.815 0.817  0.111 0.079  0.170 0.167  0.466 0.451",
}
# Of the oracle in tables and in `fit_ours`.
ORACLES = {"plug-in": "plugin", "refitted": "weighted"}


def curve(splits, metric, constraint, solver, calls):
    """Array (len(calls), 3): mean training loss, test loss and test deviation."""
    params = {"solver": solver, "tol": NO_GAP}
    if solver == "frank_wolfe" and constraint is None:
        params["solver_options"] = {"step": "paper"}
    rows = []
    for limit in calls:
        found = []
        for split in splits:
            run, model = fit_ours(split, metric, constraint, max_iter=limit, **params)
            deviation = violation(coverage(), run.test) + COVERAGE_SLACK
            found.append((model.objective_, loss(metric, run.test), deviation))
        rows.append(np.mean(found, axis=0))
    return np.array(rows)


def optimum(splits, metric, constraint):
    """Mean of the certified optima of the training losses."""
    runs = [fit_ours(split, metric, constraint, tol=EXACTLY)[1] for split in splits]
    return float(np.mean([model.dual_objective_ for model in runs]))


def measure(task, splits, args):
    """{solver: curve} and the optimum."""
    metric, constraint = TASKS[task]
    found = {
        solver: curve(splits, metric, constraint, solver, args.calls)
        for solver in args.solvers
    }
    return found, optimum(splits, metric, constraint)


def panels(task):
    """Names of what is shown of a task, and the column of it in a curve."""
    names = ["training loss", "test loss"]
    return [*names, "test deviation"] if task == "coverage" else names


def print_task(task, data, found, best, args):
    for column, name in enumerate(panels(task)):
        rows = [[SOLVERS[s], *points[:, column]] for s, points in found.items()]
        if column == 0:
            rows.append(["no classifier is below", *[best] * len(args.calls)])
        print(f"{task}, {data}: {name} by iterations\n")
        print_table(["", *args.calls], rows)


def plot(results, args, path):
    """A row of panels for each task and data set."""
    n_columns = max(len(panels(task)) for task, _ in results)
    figure, axes = make_axes(len(results), n_columns)
    for row, ((task, data), (found, best)) in zip(axes, results.items(), strict=True):
        for column, ax in enumerate(row):
            if column >= len(panels(task)):
                ax.axis("off")
                continue
            for solver, points in found.items():
                ax.semilogx(
                    args.calls, points[:, column], color=COLORS[solver],
                    marker=MARKERS[solver], markersize=4,
                    label=SOLVERS[solver],
                )  # fmt: skip
            if column == 0:
                ax.axhline(best, color="0.3", linestyle="--", linewidth=1.0)
            if column == 2:
                ax.axhspan(0.0, COVERAGE_SLACK, color="C2", alpha=0.2)
                ax.set_ylim(bottom=0.0)
            ax.set(title=f"{task}, {data}", ylabel=panels(task)[column])
    for ax in axes[-1]:
        ax.set_xlabel("calls")
    save_figure(figure, axes, path)


def compare_refits(args):
    """The tables of the plug-in rule beside refits."""
    splits = {}
    for data in args.refit_sets:
        found = load_splits(data, args.data, args.refit_splits)
        if found:
            splits[data] = found
    for calls in args.refit_calls:
        cells = {}
        for solver in args.solvers:
            for name, lmo in ORACLES.items():
                row = cells.setdefault(f"{SOLVERS[solver]}, {name}", {})
                for data, of_data in splits.items():
                    losses = [refit_loss(s, solver, lmo, calls) for s in of_data]
                    row[data] = mean_std(losses)
            paper = PAPER.get((calls, solver), "").split()
            for i, name in enumerate(ORACLES if paper else ()):
                figures = dict(zip(REFIT_SETS, paper[i::2], strict=True))
                cells[f"paper: {SOLVERS[solver]}, {name}"] = figures
        print_by_data(f"H-mean after {calls} calls: test loss", cells, list(splits))


def refit_loss(split, solver, lmo, calls):
    run, _ = fit_ours(split, "h_mean", lmo=lmo, solver=solver, max_iter=calls, tol=NO_GAP)
    return loss("h_mean", run.test)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["abalone", "pageblocks"])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=TASKS)
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS)
    parser.add_argument("--calls", nargs="+", type=int, default=CALLS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--refit-sets", nargs="*", default=REFIT_SETS)
    parser.add_argument("--refit-calls", nargs="*", type=int, default=[20])
    parser.add_argument("--refit-splits", type=int, default=10)
    args = parser.parse_args()
    sets = {name: load_splits(name, args.data, args.splits) for name in args.sets}
    results = {}
    for task in args.tasks:
        for data, splits in sets.items():
            if splits:
                results[task, data] = measure(task, splits, args)
                print_task(task, data, *results[task, data], args)
    if results:
        path = HERE / "figures" / "confusion_calls.png"
        plot(results, args, path)
        print(f"wrote figures/{path.name}\n")
    if args.refit_calls:
        compare_refits(args)


if __name__ == "__main__":
    main()
