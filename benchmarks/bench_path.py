"""The regularization path of OCR within eps: exact and heuristic, beside a grid.

The grid has a fit from scratch, to a gap of eps, at each breakpoint of the path (or at
every k-th, times k): what the path saves.

With --kappas (Figure 7 of the paper): the path by plain steps with gap sampling, and by
pairwise steps with gap sampling and a cache, as in the paper without acceleration, for
each kappa: passes and seconds to each lambda; the heuristic path, seconds and the true
gap of each breakpoint, which are measured beside it. Writes figures/path_kappa.png.
"""

import sys
from pathlib import Path
from time import perf_counter

from _common import (
    HERE,
    ChainStructure,
    chain_classifier,
    fit_quietly,
    load_ocr,
    make_axes,
    make_parser,
    np,
    print_table,
    save_figure,
    true_gap,
)

from sklearn_structsvm import bcfw_path
from sklearn_structsvm.solvers.blocks.bcfw import start_bcfw
from sklearn_structsvm.solvers.blocks.path import regularization_path

KAPPAS = [0.1, 0.3, 0.5, 0.7, 0.9, 0.97]
SOLVERS = {
    "plain": {"step": "fw", "cache": False},
    "pairwise, cache": {"step": "pairwise", "cache": True},
}


def grid_seconds(X, y, lambdas, eps, most=30):
    """Seconds of separate fits at the breakpoints, from at most `most` of them."""
    every = -(-len(lambdas) // most)
    start = perf_counter()
    for lam in lambdas[::every]:
        fit_quietly(
            chain_classifier(C=1.0 / (lam * len(X)), tol=eps, random_state=0), X, y
        )
    return (perf_counter() - start) * len(lambdas) / len(lambdas[::every])


def path_of(problem, kappa, heuristic, options, args):
    """The path, and passes, seconds and the true gap at its breakpoints."""
    X, y = problem
    structure = ChainStructure().fit(X, y)
    p = np.full(len(X), 1.0 / len(X))
    iterate, _, _ = start_bcfw(structure.make_oracle(X, y), p, 1.0, **options)
    gaps, beside, calls = [], [], []

    def look(iterate):
        start, before = perf_counter(), iterate.n_oracle_calls
        calls.append(before - sum(c for _, c in beside))
        gaps.append(true_gap(iterate))
        beside.append((perf_counter() - start, iterate.n_oracle_calls - before))

    path, _ = regularization_path(
        iterate,
        eps=args.eps,
        kappa=kappa,
        heuristic=heuristic,
        min_lambda=args.min_lambda,
        sampling="gap",
        max_time=args.max_time,
        rng=0,
        on_breakpoint=look if heuristic else None,
    )
    if not heuristic:
        return path, path.n_oracle_calls / len(X), path.seconds, path.gaps
    spent = np.cumsum([0.0] + [seconds for seconds, _ in beside])[:-1]
    return path, np.array(calls) / len(X), path.seconds - spent, np.array(gaps)


def by_kappa(args):
    """Figure 7."""
    problem = load_ocr("small", args.data)
    figure, axes = make_axes(4, len(SOLVERS))
    header = ["kappa", "breakpoints", "passes", "s", "smallest lambda"]
    header += ["largest true gap / eps", "share of breakpoints above eps"]
    for column, (solver, options) in enumerate(SOLVERS.items()):
        for half, heuristic in enumerate((False, True)):
            rows = []
            for kappa in args.kappas:
                path, passes, seconds, gaps = path_of(
                    problem, kappa, heuristic, options, args
                )
                above = float(np.mean(gaps > args.eps))
                rows.append(
                    [kappa, len(gaps), float(passes[-1]), float(seconds[-1]),
                     float(path.lambdas[-1]), float(gaps.max() / args.eps), above]
                )  # fmt: skip
                print(solver, heuristic, *rows[-1], file=sys.stderr)
                shown = (seconds, gaps) if heuristic else (passes, seconds)
                for row, values in enumerate(shown):
                    axes[2 * half + row, column].loglog(
                        path.lambdas, values, label=f"$\\kappa$ = {kappa:g}"
                    )
            kind = "heuristic" if heuristic else "exact"
            print(f"{solver}, {kind}: OCR-small, eps = {args.eps:g}\n")
            print_table(header, rows)
        for row, name in enumerate(("passes", "seconds", "seconds", "true gap")):
            kind = "heuristic" if row > 1 else "exact"
            axes[row, column].set(title=f"{solver}: {kind}", ylabel=name)
            axes[row, column].invert_xaxis()
        axes[3, column].axhline(args.eps, color="black", linewidth=0.6)
        axes[3, column].set_xlabel("$\\lambda$")
    save_figure(figure, axes, Path(args.figures, "path_kappa.png"))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--subsets", nargs="+", default=["small", "large"])
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--no-grid", action="store_true")
    parser.add_argument("--kappas", type=float, nargs="*", help="Figure 7; none: some")
    parser.add_argument("--min-lambda", type=float, default=2.0**-15, help="of Figure 7")
    parser.add_argument("--max-time", type=float, default=60.0, help="of its paths")
    parser.add_argument("--figures", default=str(HERE / "figures"), help="folder")
    args = parser.parse_args()
    if args.kappas is not None:
        args.kappas = args.kappas or KAPPAS
        by_kappa(args)
        return
    header = [
        "",
        "s",
        "breakpoints",
        "passes",
        "largest lambda",
        "smallest lambda",
        "largest gap seen / eps",
        "s of the grid",
        "times faster than the grid",
    ]
    for subset in args.subsets:
        X, y = load_ocr(subset, args.data)
        rows = []
        for heuristic in (False, True):
            start = perf_counter()
            path = bcfw_path(
                X,
                y,
                structure=ChainStructure(),
                eps=args.eps,
                heuristic=heuristic,
                random_state=0,
            )
            seconds = perf_counter() - start
            grid = float("nan")
            if not args.no_grid:
                grid = grid_seconds(X, y, path.lambdas, args.eps)
            rows.append(
                [
                    "heuristic" if heuristic else "exact",
                    seconds,
                    len(path.lambdas),
                    float(path.n_iter[-1]),
                    float(path.lambdas[0]),
                    float(path.lambdas[-1]),
                    float(path.gaps.max() / args.eps),
                    grid,
                    grid / seconds,
                ]
            )
        print(f"OCR-{subset}, eps = {args.eps:g}\n")
        print_table(header, rows)


if __name__ == "__main__":
    sys.exit(main())
