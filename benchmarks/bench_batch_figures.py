"""The papers' figures on batch methods, redone: plots and tables.

Figures 9 and 10, 13 and 14, 15 and 16 of Yu et al. (2010), for binary, multiclass and
multilabel hinge losses: above, the objective against seconds at the lambda at which the
paper showed the set, or at which it predicts best; below, the seconds to within
--within of the optimum against lambda. SubLBFGS is the default, which starts in the dual
where it can; its hybrid begins with quasi-Newton steps and goes over to bundle steps.
"BMRM, line search" is the paper's ls-BMRM. Quasi-Newton steps look at their gap, and so
note their objective, at every tenth only. Written to figures/batch_KIND.png.

Figures 1 to 4 of Saha et al. (2009), for binary losses: against iterations and against
seconds, the best objective so far less the optimum, and the test accuracy of the weights
that have it (of a9a's test set; of the others, of a fifth held out). ls-BMRM is there the
variant that minimizes between its last solution and the new plane, qp-BMRM the one that
minimizes over all planes, both without a line search of the objective; OCAS has it.
Pragam-b has an intercept that is not regularized, and so an objective of its own.
LIBLINEAR is LinearSVC, a fit for each number of passes. pegasos-n takes subgradients of
all rows, with the projection; pegasos-1 of one row drawn, without it, and is looked at
now and then, uncharged for that: an iteration is n of its steps. Written to
figures/pragam_error.png and pragam_accuracy.png.

No intercepts; one thread.
"""

import sys
from pathlib import Path
from time import perf_counter

from _batch import (
    CURVES,
    Problem,
    add_optimum_options,
    first_seconds,
    fit,
    load_problems,
    load_test,
    optimum,
)
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

from sklearn_structsvm.risks import BinaryHinge
from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.batch.pragam import run_pragam
from sklearn_structsvm.solvers.blocks._sgd import SubgradientSteps
from sklearn_structsvm.solvers.loop import History
from sklearn_structsvm.structures import BinaryStructure

QUASI_NEWTON = {
    "SubLBFGS": {"color": "tab:red"},
    "SubLBFGS, hybrid": {"color": "tab:brown"},
    "subLBFGS alone": {"color": "tab:orange"},
    "BMRM, line search": {"color": "tab:green", "linestyle": "-."},
    "BMRM": {"color": "tab:blue", "linestyle": "--"},
}
PRAGAM_SETS = ["a9a", "reuters_usa", "polarity"]
PRAGAM = {
    "Pragam": {"color": "tab:red"},
    "Pragam-b": {"color": "tab:red", "linestyle": "--"},
    "ls-BMRM": {"color": "tab:green", "linestyle": "-."},
    "qp-BMRM": {"color": "tab:blue", "linestyle": "--"},
    "OCAS": {"color": "tab:purple", "linestyle": ":"},
    "pegasos-n": {"color": "tab:olive"},
    "pegasos-1": {"color": "tab:olive", "linestyle": ":"},
    "LIBLINEAR": {"color": "black"},
}
# Iterations at which test accuracy is measured.
MARKS = {*np.geomspace(1, 10**6, 150).astype(int).tolist()}
# Shares of n steps after which pegasos-1 is looked at first.
FIRST_PARTS = 100
# The history of a fit that is not made.
NOTHING = {"objective": np.empty(0), "seconds": np.empty(0)}
# Passes of LIBLINEAR that have a fit of their own.
PASSES = np.unique(np.geomspace(1, 10**4, 40).astype(int))
# Columns of the tables of curves: shares of the optimum, and errors.
SHARES = [0.1, 0.01, 0.001]
ERRORS = [1e-2, 1e-3, 1e-4, 1e-5]
# Below the accuracy at the end: what counts as having it.
ACCURACY = 0.002


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


class Trace:
    """(iteration, seconds, objective, test accuracy) of the best weights so far."""

    def __init__(self, test):
        self.X, self.y = test
        self.rows = []
        self.best = np.inf
        self.accuracy = np.nan

    def note(self, n_iter, seconds, objective, w, intercept=0.0, is_shown=True):
        """Take in weights, which may be the best even where they are not shown."""
        if objective < self.best:
            self.best = objective
            self.weights = np.array(w), intercept
        if is_shown:
            w, b = self.weights
            right = ((self.X @ w + b > 0.0) == (self.y > 0)).mean()
            self.rows.append((n_iter, seconds, self.best, right))

    def columns(self):
        keys = ("n_iter", "seconds", "objective", "accuracy")
        return dict(zip(keys, np.array(self.rows).T, strict=True))


def batch_trace(run, problem, test, lam, tol, max_time, **options):
    """`Trace` of a solver of the package, by its own best weights at each row."""
    trace, history, seen = Trace(test), History(), []

    def look(n_iter, row, done):
        if n_iter in MARKS or done:
            solution = np.array(history.solution)
            seen.append((n_iter, row["seconds"], row["objective"], solution))

    risk = BinaryHinge(problem.X, (problem.y + 1) // 2)
    run(
        risk, lam, tol=tol, max_iter=10**6, max_time=max_time, history=history,
        on_pass=look, **options,
    )  # fmt: skip
    for n_iter, seconds, value, solution in seen:
        # Pragam-b appends its intercept.
        w, b = solution[: risk.n_weights], solution[risk.n_weights :].sum()
        trace.note(n_iter, seconds, value, w, b)
    return trace.columns()


def pegasos_n(problem, test, lam, max_time):
    """Subgradient steps of length 1/(λ t) on all rows, projected on the ball 1/√λ."""
    X, y, n = problem.X, problem.y.astype(float), problem.n_samples
    trace, w, spent = Trace(test), np.zeros(problem.X.shape[1]), 0.0
    for t in range(1, 10**6):
        start = perf_counter()
        margins = y * (X @ w)
        violating = np.flatnonzero(margins < 1.0)
        value = 0.5 * lam * w @ w + np.maximum(1.0 - margins, 0.0).mean()
        before = w
        slope = X[violating].T @ y[violating]
        w = (1.0 - 1.0 / t) * w + slope / (lam * t * n)
        w *= min(1.0, 1.0 / np.sqrt(lam * max(w @ w, 1e-300)))
        spent += perf_counter() - start
        is_last = spent >= max_time
        # The value is that of the weights before the step.
        trace.note(t - 1, spent, value, before, is_shown=t in MARKS or is_last)
        if is_last:
            return trace.columns()


def pegasos_1(problem, test, lam, max_time):
    """Subgradient steps of one random row, without projection; n are an iteration."""
    X, y, n = problem.X, (problem.y + 1) // 2, problem.n_samples
    trace, rng, spent, size = Trace(test), np.random.default_rng(0), 0.0, 1
    structure = BinaryStructure().fit(X, y)
    steps = SubgradientSteps(structure.make_oracle(X, y), np.full(n, 1.0 / n), lam, False)
    while spent < max_time:
        draws = rng.integers(n, size=size)
        start = perf_counter()
        steps.run(draws)
        spent += perf_counter() - start
        w = steps.weights
        value = objective(X, problem.y, w[None], lam)
        trace.note(steps.n_steps / n, spent, value, w)
        # Ever rarer, as for the others.
        size = max(n // FIRST_PARTS, steps.n_steps // 20)
    return trace.columns()


def liblinear(problem, test, lam, max_time):
    """The objective after each number of passes, and the seconds of that fit."""
    trace = Trace(test)
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
        value = objective(problem.X, problem.y, model.coef_, lam)
        trace.note(passes, seconds, value, model.coef_[0])
        if seconds > max_time or model.n_iter_ < passes:
            break
    return trace.columns()


def pragam_runs(problem, test, args):
    """By method: iterations, seconds, the least error so far and the test accuracy."""
    lam = CURVES["binary"][problem.name]
    trained = Problem(f"{problem.name}-train", problem.X, problem.y)
    # Two solvers agree on the optimum to rounding; the lower bound keeps errors positive.
    _, best = optimum(trained, lam, args, 0.1 * min(ERRORS))
    data = problem, test, lam
    limits = 0.1 * min(ERRORS) * best, args.max_time
    qp = {"line_search": False}
    runs = {
        "Pragam": batch_trace(run_pragam, *data, *limits),
        "Pragam-b": batch_trace(run_pragam, *data, *limits, fit_intercept=True),
        "ls-BMRM": batch_trace(run_bmrm, *data, *limits, **qp, subproblem="line"),
        "qp-BMRM": batch_trace(run_bmrm, *data, *limits, **qp),
        "OCAS": batch_trace(run_bmrm, *data, *limits),
        "pegasos-n": pegasos_n(*data, args.max_time),
        "pegasos-1": pegasos_1(*data, args.max_time),
        "LIBLINEAR": liblinear(*data, args.max_time),
    }
    for name, run in runs.items():
        # With a free intercept the objective is another one.
        run["error"] = np.full(len(run["objective"]), np.nan)
        if name != "Pragam-b":
            run["error"] = np.minimum.accumulate(run["objective"]) - best
    return runs


def print_errors(runs):
    """Iterations and seconds of each method to the errors, and to the accuracy."""
    header = ["", "iterations", "last error"]
    last = runs["OCAS"]["accuracy"][-1]
    header += [f"iterations to {error:g}" for error in ERRORS]
    header += [f"s to {error:g}" for error in ERRORS]
    header += ["last accuracy", f"iterations to {last - ACCURACY:.3f}", "s to it"]
    rows = []
    for name, run in runs.items():
        row = [name, float(run["n_iter"][-1]), float(run["error"][-1])]
        for key in ("n_iter", "seconds"):
            for error in ERRORS:
                below = np.flatnonzero(run["error"] <= error)
                row.append(float(run[key][below[0]]) if len(below) else np.inf)
        row.append(float(run["accuracy"][-1]))
        there = np.flatnonzero(run["accuracy"] >= last - ACCURACY)
        for key in ("n_iter", "seconds"):
            row.append(float(run[key][there[0]]) if len(there) else np.inf)
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


def plot_pragam(results, column_shown, label, path):
    """Error or accuracy, against iterations above, against seconds below."""
    figure, axes = make_axes(2, len(results))
    for column, (name, runs) in enumerate(results.items()):
        for row, key in enumerate(("n_iter", "seconds")):
            ax = axes[row, column]
            for method, style in PRAGAM.items():
                run = runs[method]
                if np.isnan(run[column_shown]).all():
                    continue
                shown = run[key] > 0
                ax.semilogx(
                    run[key][shown], run[column_shown][shown], label=method, **style
                )
            # What pegasos-1 has before a tenth of a pass is another story.
            ax.set_xlim(left=0.1 if row == 0 else 1e-3)
            if column_shown == "error":
                ax.set_yscale("log")
                ax.set_ylim(0.1 * min(ERRORS), 2.0)
            else:
                last = runs["OCAS"]["accuracy"][-1]
                ax.set_ylim(last - 0.1, last + 0.02)
            lam = CURVES["binary"][name]
            ax.set(title=f"{name}, $\\lambda$ = {lam:g}")
            ax.set_xlabel("iterations" if row == 0 else "seconds")
    for ax in axes[:, 0]:
        ax.set_ylabel(label)
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
        problem, test = load_test(problem, args.data)
        results[problem.name] = pragam_runs(problem, test, args)
        print(f"{problem.name}: iterations and seconds to errors of the objective\n")
        print_errors(results[problem.name])
    if results:
        for shown, label in (("error", "objective less optimum"), ("accuracy",) * 2):
            path = Path(args.figures, f"pragam_{shown}.png")
            plot_pragam(results, shown, label, path)


if __name__ == "__main__":
    sys.exit(main())
