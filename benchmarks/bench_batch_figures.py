"""The papers' figures on batch methods, redone: plots and tables.

Figures 9 and 10, 13 and 14, 15 and 16 of Yu et al. (2010), for binary, multiclass and
multilabel hinge losses: above, the objective against seconds at the lambda at which the
paper showed the set, or at which it predicts best; below, the seconds to within
--within of the optimum against lambda. SubLBFGS is the default, which starts in the dual
where it can; its hybrid begins with quasi-Newton steps and goes over to bundle steps.
"BMRM, line search" is the paper's ls-BMRM. Quasi-Newton steps look at their gap, and so
note their objective, at every tenth only. Written to figures/batch_KIND.png.

Figures 1 and 2 of Saha et al. (2009): the best objective so far less the optimum against
iterations and against seconds, for binary losses. ls-BMRM is there the variant that
minimises between its last solution and the new plane, qp-BMRM the one that minimises
over all planes, both without a line search of the objective; OCAS has it. LIBLINEAR is
LinearSVC, a fit for each number of passes. Written to figures/pragam_error.png.

No intercepts; one thread.
"""

import sys
from pathlib import Path
from time import perf_counter

from _batch import CURVES, add_optimum_options, first_seconds, fit, load_problems, optimum
from _common import (
    HERE,
    fit_quietly,
    make_axes,
    make_parser,
    np,
    print_table,
    save_figure,
)
from peers.linear_peer import objective
from sklearn.svm import LinearSVC

QUASI_NEWTON = {
    "SubLBFGS": {"color": "tab:red"},
    "SubLBFGS, hybrid": {"color": "tab:brown"},
    "subLBFGS alone": {"color": "tab:orange"},
    "BMRM, line search": {"color": "tab:green", "linestyle": "-."},
    "BMRM": {"color": "tab:blue", "linestyle": "--"},
}
PRAGAM_SETS = ["a9a", "reuters_usa", "polarity"]
PRAGAM = {
    "Pragam": ("Pragam", {"color": "tab:red"}),
    "ls-BMRM": ("BMRM, one variable", {"color": "tab:green", "linestyle": "-."}),
    "qp-BMRM": ("BMRM", {"color": "tab:blue", "linestyle": "--"}),
    "OCAS": ("BMRM, line search", {"color": "tab:purple", "linestyle": ":"}),
    "LIBLINEAR": (None, {"color": "black"}),
}
# The history of a fit that is not made.
NOTHING = {"objective": np.empty(0), "seconds": np.empty(0)}
# Passes of LIBLINEAR that have a fit of their own.
PASSES = np.unique(np.geomspace(1, 10**4, 40).astype(int))
# Columns of the tables of curves: shares of the optimum, and errors.
SHARES = [0.1, 0.01, 0.001]
ERRORS = [1e-2, 1e-3, 1e-4, 1e-5]


def quasi_newton_runs(problem, args):
    """Histories by method and lambda, and the optimum by lambda."""
    shown = CURVES[problem.kind][problem.name]
    runs, best = {}, {}
    for lam in sorted({*args.lams, shown}):
        best[lam], below = optimum(problem, lam, args, args.curve_rtol)
        if best[lam] - below > args.within * best[lam]:
            # Who is how near is not known then.
            runs |= {(method, lam): NOTHING for method in QUASI_NEWTON}
            continue
        # What is only timed to --within need not go on for long after.
        rtol = args.curve_rtol if lam == shown else 0.5 * args.within
        for method in QUASI_NEWTON:
            model = fit(
                method, problem, lam, tol=rtol * best[lam], max_time=args.max_time
            )
            runs[method, lam] = model.history_
    return runs, best


def seconds_within(runs, best, lams, within):
    """By method: seconds to within a share of the optimum, by lambda and share."""
    return {
        method: [
            first_seconds(runs[method, lam], "objective", best[lam] * (1.0 + share))
            for lam in lams
            for share in within
        ]
        for method in QUASI_NEWTON
    }


def print_seconds(kind, name, runs, best, args):
    """What the two panels of a set show."""
    lam = CURVES[kind][name]
    print(f"{name}, lambda = {lam:g}: seconds to so far above the optimum\n")
    rows = seconds_within(runs, best, [lam], SHARES)
    header = ["", *(f"{share:.1%}" for share in SHARES)]
    print_table(header, [[method, *row] for method, row in rows.items()])
    print(f"{name}: seconds to {args.within:.1%} above the optimum, by lambda\n")
    rows = seconds_within(runs, best, args.lams, [args.within])
    header = ["", *(f"{lam:g}" for lam in args.lams)]
    print_table(header, [[method, *row] for method, row in rows.items()])


def liblinear_history(problem, lam, limit):
    """Objective after each number of passes, and the seconds of that fit."""
    rows = []
    for passes in PASSES:
        model = LinearSVC(
            loss="hinge",
            C=1.0 / (lam * problem.n_samples),
            fit_intercept=False,
            tol=1e-12,
            max_iter=int(passes),
            random_state=0,
        )
        start = perf_counter()
        fit_quietly(model, problem.X, problem.y)
        seconds = perf_counter() - start
        rows.append([passes, seconds, objective(problem.X, problem.y, model.coef_, lam)])
        if seconds > limit or model.n_iter_ < passes:
            break
    keys = ("n_iter", "seconds", "objective")
    return dict(zip(keys, np.array(rows).T, strict=True))


def pragam_runs(problem, args):
    """By method: iterations, seconds and the least error so far."""
    lam = CURVES["binary"][problem.name]
    # Two solvers agree on the optimum to rounding; the lower bound keeps errors positive.
    _, best = optimum(problem, lam, args, 0.1 * min(ERRORS))
    runs = {}
    for name, (method, _) in PRAGAM.items():
        if method is None:
            history = liblinear_history(problem, lam, args.max_time)
        else:
            tol = 0.1 * min(ERRORS) * best
            history = fit(method, problem, lam, tol=tol, max_time=args.max_time).history_
        error = np.minimum.accumulate(history["objective"]) - best
        runs[name] = {**history, "error": error}
    return runs


def print_errors(runs):
    """Iterations and seconds of each method to the errors."""
    header = ["", "iterations", "last error"]
    header += [f"iterations to {error:g}" for error in ERRORS]
    header += [f"s to {error:g}" for error in ERRORS]
    rows = []
    for name, run in runs.items():
        row = [name, int(run["n_iter"][-1]), float(run["error"][-1])]
        for key in ("n_iter", "seconds"):
            for error in ERRORS:
                below = np.flatnonzero(run["error"] <= error)
                row.append(float(run[key][below[0]]) if len(below) else np.inf)
        rows.append(row)
    print_table(header, rows)


def plot_quasi_newton(kind, results, path, args):
    """Above the objective against seconds, below seconds against lambda."""
    figure, axes = make_axes(2, len(results))
    for column, (name, (runs, best)) in enumerate(results.items()):
        lam = CURVES[kind][name]
        seconds = seconds_within(runs, best, args.lams, [args.within])
        for method, style in QUASI_NEWTON.items():
            history = runs[method, lam]
            axes[0, column].loglog(
                history["seconds"], history["objective"], label=method, **style
            )
            axes[1, column].loglog(args.lams, seconds[method], marker=".", **style)
        axes[0, column].axhline(best[lam], color="black", linewidth=0.6)
        axes[0, column].set(title=f"{name}, $\\lambda$ = {lam:g}", xlabel="seconds")
        axes[1, column].set(title=name, xlabel="$\\lambda$")
    axes[0, 0].set_ylabel("objective")
    axes[1, 0].set_ylabel(f"seconds to within {args.within:.0%}")
    save_figure(figure, axes, path)


def plot_pragam(results, path):
    """Error against iterations above, against seconds below."""
    figure, axes = make_axes(2, len(results))
    for column, (name, runs) in enumerate(results.items()):
        for row, key in enumerate(("n_iter", "seconds")):
            ax = axes[row, column]
            for method, (_, style) in PRAGAM.items():
                shown = runs[method]["n_iter"] > 0
                ax.loglog(
                    runs[method][key][shown],
                    runs[method]["error"][shown],
                    label=method,
                    **style,
                )
            lam = CURVES["binary"][name]
            ax.set(title=f"{name}, $\\lambda$ = {lam:g}")
            ax.set_xlabel("iterations" if row == 0 else "seconds")
    for ax in axes[:, 0]:
        ax.set_ylabel("objective less optimum")
    save_figure(figure, axes, path)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--kinds", nargs="*", default=list(CURVES), choices=CURVES)
    parser.add_argument("--sets", nargs="+", help="only these data")
    parser.add_argument(
        "--lams", type=float, nargs="+", default=list(10.0 ** -np.arange(6, 0, -1))
    )
    parser.add_argument("--within", type=float, default=0.02)
    parser.add_argument(
        "--curve-rtol", type=float, default=1e-4, help="gap of the curves"
    )
    parser.add_argument("--max-time", type=float, default=15.0, help="of a fit")
    parser.add_argument("--no-pragam", action="store_true")
    parser.add_argument("--figures", default=str(HERE / "figures"), help="folder")
    add_optimum_options(parser)
    args = parser.parse_args()

    def load(names):
        names = [name for name in names if args.sets is None or name in args.sets]
        return load_problems(names, args.data)

    for kind in args.kinds:
        results = {}
        for problem in load(CURVES[kind]):
            runs, best = results[problem.name] = quasi_newton_runs(problem, args)
            print_seconds(kind, problem.name, runs, best, args)
        if results:
            path = Path(args.figures, f"batch_{kind}.png")
            plot_quasi_newton(kind, results, path, args)
    results = {}
    for problem in [] if args.no_pragam else load(PRAGAM_SETS):
        results[problem.name] = pragam_runs(problem, args)
        print(f"{problem.name}: iterations and seconds to errors of the objective\n")
        print_errors(results[problem.name])
    if results:
        plot_pragam(results, Path(args.figures, "pragam_error.png"))


if __name__ == "__main__":
    sys.exit(main())
