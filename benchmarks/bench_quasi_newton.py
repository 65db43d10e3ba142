"""Figures 8, 11 and 12 of Yu et al. (2010), and the columns k of their Tables 2 and 3.

buffer (Figure 8): subLBFGS with buffers of 1 to 25 pairs on a binary, a multiclass and a
    multilabel set. Writes figures/sublbfgs_buffer.png.
k (Tables 2 and 3): rounds of direction finding beyond the first of each iteration, for L2
    and hinge losses, and for L1 and the logistic loss by OWL-QN* and, with random first
    subgradients, OWL-QN*r.
l1 (Figures 11 and 12): OWL-QN beside OWL-QN*, OWL-QNr and OWL-QN*r on the logistic loss
    with an L1 penalty: the objective against seconds, and seconds to within --within of
    the optimum against lambda. Writes figures/owlqn.png.

A run ends as in the paper: where the objective fell by less than 1e-5 of itself, a mean
over 5 iterations (1e-8 for L2). Seconds are of this process. No intercepts; one thread.
"""

import sys
from pathlib import Path
from time import process_time

from _batch import CURVES, L1_CURVES, add_optimum_options, load_problems, optimum
from _common import HERE, make_axes, make_parser, np, print_table, save_figure

from sklearn_structsvm.risks import (
    BinaryHinge,
    Logistic,
    MulticlassHinge,
    MultilabelHinge,
)
from sklearn_structsvm.solvers.batch.owlqn import L1Risk, OrthantSteps, run_owlqn
from sklearn_structsvm.solvers.batch.quasi_newton import QuasiNewtonSteps
from sklearn_structsvm.solvers.batch.sublbfgs import RegularizedRisk

BUFFERS = [1, 5, 10, 15, 20, 25]
BUFFER_SETS = {"a9a": 1e-5, "letter": 1e-6, "scene": 1e-1}
WINDOW = 5
# What the objective fell by, at the end of a run.
FALL = {"l1": 1e-5, "l2": 1e-8}
L1_METHODS = {
    "OWL-QN": {"direction": "owlqn", "style": {"color": "tab:blue"}},
    "OWL-QN*": {"direction": "sub", "style": {"color": "tab:red"}},
    "OWL-QNr": {
        "direction": "owlqn", "random": True,
        "style": {"color": "tab:blue", "linestyle": ":"},
    },
    "OWL-QN*r": {
        "direction": "sub", "random": True,
        "style": {"color": "tab:orange", "linestyle": "--"},
    },
}  # fmt: skip
SHARES = [0.1, 0.01, 0.001]


def hinge_risk(problem):
    X, y = problem.X, problem.y
    if problem.kind == "binary":
        return BinaryHinge(X, (y + 1) // 2)
    if problem.kind == "multiclass":
        return MulticlassHinge(X, y)
    return MultilabelHinge(X, y)


def drive(make_steps, fall, max_time):
    """Rows (iteration, seconds, objective), and k: rounds of direction finding."""
    start = process_time()
    steps = make_steps()
    rows = [(0, process_time() - start, steps.objective.value)]
    while rows[-1][1] < max_time:
        if not steps.move():
            break
        rows.append((len(rows), process_time() - start, steps.objective.value))
        if len(rows) > WINDOW:
            before, now = rows[-1 - WINDOW][2], rows[-1][2]
            if before - now < WINDOW * fall * now:
                break
    return np.array(rows), steps.n_directions


def drive_l2(problem, lam, args, **options):
    risk = hinge_risk(problem)
    return drive(
        lambda: QuasiNewtonSteps(RegularizedRisk(risk, lam), **options),
        FALL["l2"],
        args.max_time,
    )


def drive_l1(problem, lam, args, direction, random=False, style=None):
    risk = Logistic(problem.X, (problem.y + 1) // 2)
    rng = np.random.default_rng(args.seed) if random else None
    return drive(
        lambda: OrthantSteps(L1Risk(risk, lam, rng=rng), direction=direction),
        FALL["l1"],
        args.max_time,
    )


def first(rows, column, target):
    """A column where the objective is first at most the target, or inf."""
    below = np.flatnonzero(rows[:, 2] <= target)
    return float(rows[below[0], column]) if len(below) else np.inf


def buffers(args):
    """Figure 8."""
    problems = list(load_problems(BUFFER_SETS, args.data))
    figure, axes = make_axes(1, max(len(problems), 1))
    for ax, problem in zip(axes[0], problems, strict=False):
        lam = BUFFER_SETS[problem.name]
        best, _ = optimum(problem, lam, args, 1e-4)
        rows = []
        for m in args.buffers:
            found, _ = drive_l2(problem, lam, args, buffer=m)
            ax.loglog(found[:, 1], found[:, 2], label=f"m = {m}")
            targets = [best * (1.0 + share) for share in SHARES]
            rows.append(
                [m, len(found) - 1, float(found[-1, 2] / best - 1.0)]
                + [first(found, 0, t) for t in targets]
                + [first(found, 1, t) for t in targets]
            )
        ax.axhline(best, color="black", linewidth=0.6)
        ax.set(title=f"{problem.name}, $\\lambda$ = {lam:g}", xlabel="seconds")
        print(f"{problem.name}, lambda = {lam:g}: subLBFGS by its buffer\n")
        header = ["m", "iterations", "last objective / optimum - 1"]
        header += [f"iterations to {share:.1%}" for share in SHARES]
        header += [f"s to {share:.1%}" for share in SHARES]
        print_table(header, rows)
    axes[0, 0].set_ylabel("objective")
    save_figure(figure, axes, Path(args.figures, "sublbfgs_buffer.png"))


def rounds(args):
    """The columns k."""
    header = ["set", "lambda", "iterations", "k"]
    rows = []
    for sets in CURVES.values():
        for problem in load_problems(sets, args.data):
            lam = sets[problem.name]
            found, k = drive_l2(problem, lam, args)
            rows.append([problem.name, f"{lam:g}", len(found) - 1, k])
    print("L2, hinge losses\n")
    print_table(header, rows)
    header = ["set", "lambda"]
    methods = ["OWL-QN*", "OWL-QN*r"]
    for method in methods:
        header += [f"iterations of {method}", "k", "last objective"]
    rows = []
    for problem in load_problems(L1_CURVES, args.data):
        lam = L1_CURVES[problem.name]
        row = [problem.name, f"{lam:g}"]
        for method in methods:
            found, k = drive_l1(problem, lam, args, **L1_METHODS[method])
            row += [len(found) - 1, k, float(found[-1, 2])]
        rows.append(row)
    print("L1, logistic loss\n")
    print_table(header, rows)


def l1_optimum(problem, lam, args):
    """The least objective that a run finds until its gap is a thousandth of it."""
    risk = Logistic(problem.X, (problem.y + 1) // 2)
    scale = run_owlqn(risk, lam, tol=np.inf).objective
    limits = {"max_time": args.optimum_time, "max_iter": 10**6}
    for rtol in (1e-2, 1e-3):
        result = run_owlqn(risk, lam, tol=rtol * scale, **limits)
        scale = result.objective
    return result


def l1(args):
    """Figures 11 and 12."""
    problems = list(load_problems(L1_CURVES, args.data))
    figure, axes = make_axes(2, max(len(problems), 1))
    for column, problem in enumerate(problems):
        shown = L1_CURVES[problem.name]
        best = {}
        for lam in sorted({*args.lams, shown}):
            result = l1_optimum(problem, lam, args)
            best[lam] = result.objective
            if result.gap > args.within * result.objective:
                print(f"[{problem.name}, {lam:g}: known to {result.gap:.1e} only]\n")
        rows, slower = [], []
        for method, options in L1_METHODS.items():
            style = options["style"]
            found, _ = drive_l1(problem, shown, args, **options)
            axes[0, column].loglog(found[:, 1], found[:, 2], label=method, **style)
            targets = [best[shown] * (1.0 + share) for share in SHARES]
            rows.append(
                [method, len(found) - 1, float(found[-1, 2] / best[shown] - 1.0)]
                + [first(found, 0, t) for t in targets]
                + [first(found, 1, t) for t in targets]
            )
            if "random" in options:
                continue
            seconds, iterations = [], []
            for lam in args.lams:
                found, _ = drive_l1(problem, lam, args, **options)
                target = best[lam] * (1.0 + args.within)
                seconds.append(first(found, 1, target))
                iterations.append(first(found, 0, target))
            # Where zero is optimal there is no point, as in the paper.
            shown_seconds = np.where(np.array(iterations) > 0, seconds, np.nan)
            axes[1, column].loglog(args.lams, shown_seconds, marker=".", **style)
            slower += [[f"{method}, s", *seconds], [f"{method}, iterations", *iterations]]
        axes[0, column].axhline(best[shown], color="black", linewidth=0.6)
        axes[0, column].set(
            title=f"{problem.name}, $\\lambda$ = {shown:g}", xlabel="seconds"
        )
        axes[1, column].set(title=problem.name, xlabel="$\\lambda$")
        print(f"{problem.name}, lambda = {shown:g}: to so far above the optimum\n")
        header = ["", "iterations", "last objective / optimum - 1"]
        header += [f"iterations to {share:.1%}" for share in SHARES]
        header += [f"s to {share:.1%}" for share in SHARES]
        print_table(header, rows)
        print(f"{problem.name}: to {args.within:.0%} above the optimum, by lambda\n")
        print_table(["", *(f"{lam:g}" for lam in args.lams)], slower)
    axes[0, 0].set_ylabel("objective")
    axes[1, 0].set_ylabel(f"seconds to within {args.within:.0%}")
    save_figure(figure, axes, Path(args.figures, "owlqn.png"))


PARTS = {"buffer": buffers, "k": rounds, "l1": l1}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--buffers", type=int, nargs="+", default=BUFFERS)
    parser.add_argument(
        "--lams", type=float, nargs="+", default=list(10.0 ** -np.arange(6, 0, -1))
    )
    parser.add_argument("--within", type=float, default=0.02)
    parser.add_argument("--max-time", type=float, default=15.0, help="of a run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figures", default=str(HERE / "figures"), help="folder")
    add_optimum_options(parser)
    args = parser.parse_args()
    for part in args.parts:
        PARTS[part](args)


if __name__ == "__main__":
    sys.exit(main())
